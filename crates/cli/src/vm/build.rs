//! `tollgate vm build`: builds kernels from source.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::Instant,
};

use anyhow::bail;
use clap::Args;
use tollgate_host::{Cache, Error as HostError};
use tollgate_vm::{
    Error,
    built::{self, RECIPES, Recipe},
};

use crate::interrupt;

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
    let terminal = std::io::stderr().is_terminal();
    let built = recipe.build(cache, &mut |step| {
        if terminal {
            eprint!("\r\x1b[K{}: {step}", recipe.name);
            let _ = std::io::stderr().flush();
        }
    });
    if terminal {
        eprint!("\r\x1b[K");
    }
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
