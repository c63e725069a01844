//! Controls: workloads without security hooks, whose minimum must be the same under every module.

use std::{hint::black_box, io};

use crate::{
    place::Place,
    workload::{Group, Prepared, Scope, Tasks, Workload},
};

/// Steps of the loop without a system call: as long as a system call with a path, so that ticks fall into it as often.
const STEPS: u64 = 1_000;

pub(super) static WORKLOADS: &[Workload] = &[
    control("null", "getppid: a system call without a hook", null),
    control("loop", "1,000 steps of arithmetic, no system call", arithmetic),
];

const fn control(name: &'static str, about: &'static str, setup: fn(&Place) -> Prepared) -> Workload {
    Workload { name, about, group: Group::Control, tasks: Tasks::One, scope: Scope::Fixed, samples: 200, setup }
}

fn null(_: &Place) -> Prepared {
    Ok(Box::new(|| {
        black_box(nix::unistd::getppid());
        io::Result::Ok(())
    }))
}

fn arithmetic(_: &Place) -> Prepared {
    Ok(Box::new(|| {
        // Knuth's linear congruential generator; `black_box` keeps the compiler from folding the loop.
        let mut state = 1_u64;
        for _ in 0..STEPS {
            state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        io::Result::Ok(())
    }))
}
