//! What the guest does, as a script of bash.

use std::fmt::Write as _;

use super::Applications;

/// Runs without the guard and with it alternate in so many pairs of blocks.
const BLOCKS: u32 = 4;

/// Functions. The clock is read by bash itself: no program is started between what is timed and the clock. Failures are told
/// wherever the output of a step goes.
const FUNCTIONS: &str = r#"
exec 3>&1
: >/run/guard.log
: >/run/guard.started
denied() { grep -h ' denied: ' /run/guard.log /run/guard.started; }
fail() { denied >&3; echo "failed $*" >&3; exit 1; }
mkfifo /run/never; exec 9<>/run/never
pause() { read -t "$1" -u 9 -r; true; }
sample() {
    "before_$2" || fail "$1 $2: before"
    local begin=${EPOCHREALTIME/./} status
    "run_$2" >/run/said 2>&1
    status=$?
    local end=${EPOCHREALTIME/./}
    [ $status = 0 ] || fail "$1 $2: $status, $(tail -3 /run/said)"
    echo "sample $1 $2 $((end - begin))"
}
on() {
    : >/run/guard.started
    tollgate guard run >/run/guard.started 2>&1 &
    until grep -q 'in force' /run/guard.started; do
        kill -0 $! 2>/dev/null || fail "guard run: $(cat /run/guard.started)"
        pause 0.5
    done
}
off() {
    [ -z "$ON" ] || echo "status $(tollgate guard status | grep -E '^calls|^events' | tr '\n' ' ')"
    tollgate guard stop >/dev/null || fail "guard stop"
    kill $! 2>/dev/null
    wait
    cat /run/guard.started >>/run/guard.log
    : >/run/guard.started
}
"#;

/// Learns by two runs of all, each after a restart of the daemons, and enforces what was learnt.
const LEARN: &str = r#"
on
tollgate guard mode daemon learn || fail "guard mode"
for run in 1 2; do restart; for name in $NAMES; do sample learn $name >/dev/null; done; done
restart
pause 3
tollgate guard learn --write >/dev/null || fail "guard learn"
for program in $(tollgate guard list | awk '$1 == "program" { print $2 }'); do
    tollgate guard mode "$program" enforce || fail "guard mode $program"
done
tollgate guard list | sed 's/^/database /'
off
"#;

impl Applications {
    /// The script, which prints samples.
    #[must_use]
    pub fn script(&self) -> String {
        let mut text = format!("set -u; ON=\n{FUNCTIONS}set_up() {{\n{}\ntrue; }}\n", self.system.set_up);
        let _ = writeln!(text, "restart() {{\n{}\ntrue; }}", self.system.restart);
        for application in &self.applications {
            let (name, before, run) = (&application.name, &application.before, &application.run);
            let _ = writeln!(text, "before_{name}() {{\n{before}\ntrue; }}\nrun_{name}() {{\n{run}\n}}");
        }
        let names: Vec<&str> = self.applications.iter().map(|application| application.name.as_str()).collect();
        let _ = writeln!(text, "NAMES='{}'\nset_up\n{LEARN}", names.join(" "));
        for (guarded, runs) in self.blocks() {
            let (word, on, off) = if guarded { ("with", "ON=1; on", "off; ON=") } else { ("without", "", "") };
            // The first run after a restart of the daemons is none.
            let _ = writeln!(
                text,
                "{on}\nrestart\nfor name in $NAMES; do sample warm $name >/dev/null; done\n\
                 for run in $(seq {runs}); do for name in $NAMES; do sample {word} $name; done; done\n{off}"
            );
        }
        text.push_str("denied\necho end\n");
        text
    }

    /// Whether the guard runs, and how often each application: without, with, with, without.
    fn blocks(&self) -> Vec<(bool, u32)> {
        let pairs = BLOCKS.min(self.runs);
        let sizes = (0..pairs).map(|block| self.runs / pairs + u32::from(block < self.runs % pairs));
        sizes
            .enumerate()
            .flat_map(|(block, size)| {
                let first = block % 2 == 1;
                [(first, size), (!first, size)]
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternates_blocks_so_that_drift_is_in_both() {
        let text = |runs: u32| {
            format!(
                "name = 'a'\ntitle = 'A'\nclock = 'wall'\nkernel = '6.1'\nruns = {runs}\nmargin = 1.0\ntimeout = 9\n\
                 [system]\nrelease = 'bookworm'\npackages = []\n\
                 [[application]]\nname = 'copy'\nabout = 'copies'\nrun = 'true'\n"
            )
        };
        let blocks = |runs: u32| Applications::parse("a", &text(runs)).unwrap().blocks();
        let order: Vec<bool> = blocks(40).iter().map(|(guarded, _)| *guarded).collect();
        assert_eq!(order, [false, true, true, false, false, true, true, false]);
        for runs in [2, 3, 5, 40] {
            for with in [false, true] {
                let all: u32 = blocks(runs).iter().filter(|(guarded, _)| *guarded == with).map(|(_, size)| size).sum();
                assert_eq!(all, runs);
            }
        }
    }
}
