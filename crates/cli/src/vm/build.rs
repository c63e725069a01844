//! `tollgate vm build`: builds kernels from source.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Args;
use tollgate_host::{Cache, Error as HostError};
use tollgate_vm::{
    Error,
    built::{self, RECIPES, Recipe},
};

use crate::interrupt;

/// How often a step is printed if standard error is not a terminal.
const STEP_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Kernels to build (see `tollgate vm kernels`); by default all that can be built
    kernel: Vec<String>,
}

pub(super) fn run(arguments: &Build) -> anyhow::Result<ExitCode> {
    let cache = Cache::of_user()?.interruptible(interrupt::flag()?);
    let recipes = if arguments.kernel.is_empty() {
        RECIPES.iter().collect()
    } else {
        arguments.kernel.iter().map(|name| find(name)).collect::<anyhow::Result<Vec<_>>>()?
    };
    for recipe in recipes {
        build(&cache, recipe)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn find(name: &str) -> anyhow::Result<&'static Recipe> {
    let Some(recipe) = built::recipe(name) else {
        let all: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        bail!(
            "no kernel {name:?} can be built; there are: {} (others are fetched when they are named)",
            all.join(", ")
        );
    };
    Ok(recipe)
}

/// Builds the missing ones among kernels that are built here, for `study run --build-kernels`.
pub(crate) fn missing(cache: &Cache, kernels: &[String]) -> anyhow::Result<()> {
    let recipes = kernels.iter().filter_map(|name| built::recipe(name));
    for recipe in recipes.filter(|recipe| !recipe.is_built(cache)) {
        build(cache, recipe)?;
    }
    Ok(())
}

fn build(cache: &Cache, recipe: &Recipe) -> anyhow::Result<()> {
    eprintln!(
        "{}: at most some {} minutes of one processor and {} MiB in {}; Ctrl-C keeps what is compiled, the same command goes on",
        recipe.name,
        recipe.minutes,
        recipe.mebibytes,
        cache.root().display()
    );
    let started = Instant::now();
    let mut steps = Steps { name: recipe.name, is_terminal: std::io::stderr().is_terminal(), said: None };
    let built = recipe.build(cache, &mut |step| steps.say(step));
    steps.clear();
    let kernel = match built {
        Err(Error::Host(HostError::Interrupted)) => bail!("interrupted; `tollgate vm build {}` goes on", recipe.name),
        other => other?,
    };
    eprintln!(
        "{}: {} after {} s, {}",
        recipe.name,
        kernel.release,
        started.elapsed().as_secs(),
        kernel.image.display()
    );
    Ok(())
}

/// The progress of a build, which takes half an hour. A terminal shows one line that changes. A file gets the first
/// step, and one step per minute.
struct Steps {
    name: &'static str,
    is_terminal: bool,
    said: Option<Instant>,
}

impl Steps {
    fn say(&mut self, step: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[K{}: {step}", self.name);
            let _ = std::io::stderr().flush();
        } else if self.is_due(Instant::now()) {
            eprintln!("{}: {step}", self.name);
        }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.said.is_none_or(|said| now.duration_since(said) >= STEP_INTERVAL);
        if due {
            self.said = Some(now);
        }
        due
    }

    /// Clears the line that changes.
    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_the_first_step_to_a_file_and_one_every_minute() {
        let (mut steps, start) = (Steps { name: "6.1-built", is_terminal: false, said: None }, Instant::now());
        let mut due = |seconds| steps.is_due(start + Duration::from_secs(seconds));
        let said: Vec<bool> = [0, 20, 59, 60, 61, 119, 120, 500].map(&mut due).into();
        assert_eq!(said, [true, false, false, true, false, false, true, true]);
    }
}
