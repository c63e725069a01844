//! Studies: the kernels, configurations and workloads to measure. docs/study-files.md describes the file.

mod command;
mod expand;
mod figure;
mod header;
mod latency;
mod position;
mod published;
mod raw;
mod read;
#[cfg(test)]
mod tests;
mod wrong;

use std::path::PathBuf;

use tollgate_bench::counter::Counter;

pub use command::OwnCommand;
pub use figure::Figure;
pub use header::{Printed, StudyHeader};
pub use latency::Latency;
pub use published::{PrintedRow, Published};

/// The kernel name of the running host.
pub const HOST: &str = "host";

/// The configurations of the host's own A/A pair: the baseline, and the same machine again.
pub const HOST_TWINS: (&str, &str) = ("host", "host-again");

/// A study, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name: lower case letters, digits and hyphens.
    pub name: String,
    /// One line that describes the study.
    pub title: String,
    /// The unit of the samples.
    pub clock: Counter,
    /// Kernels: series such as `6.1`, paths of images, or [`HOST`].
    pub kernels: Vec<String>,
    /// Kernels that are also measured if they have been built.
    pub kernels_if_built: Vec<String>,
    /// Configurations, in the order of the tables.
    pub configurations: Vec<String>,
    /// The study's own configurations.
    pub own: Vec<OwnConfiguration>,
    /// The study's own commands; each is among the workloads.
    pub commands: Vec<OwnCommand>,
    /// The configuration that others are compared with.
    pub baseline: String,
    /// Selections, expanded, each once, as `tollgate_bench` spells them.
    pub workloads: Vec<String>,
    /// Samples per workload and boot; `None`: the catalogue's number.
    pub samples: Option<u32>,
    /// Boots per configuration, each with a different memory layout, on the instruction clock.
    pub paddings: u32,
    /// Rounds, on the wall clock.
    pub rounds: u32,
    /// The figure of tables and comparisons, on the instruction clock.
    pub figure: Figure,
    /// The least increase, in percent, that comparisons call dearer.
    pub threshold: f64,
    /// Runs with delayed hooks.
    pub latency: Option<Latency>,
    /// Published figures, one table per source.
    pub published: Vec<Published>,
    /// The file, word for word.
    pub text: String,
}

/// A configuration that the study file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnConfiguration {
    /// Its name: lower case letters, digits and hyphens.
    pub name: String,
    /// The `lsm=` list; the base's if none is given.
    pub lsm: Option<String>,
    /// The name of the entry of [`configuration::KNOWN`](crate::configuration::KNOWN) whose set-up in the guest it uses.
    pub base: String,
    /// Hooks to attach programs to; if empty, the default set. Only with a base that attaches programs.
    pub hooks: Vec<String>,
    /// The level of the workloads; the base's if none is given. Only with a base whose policy has levels.
    pub level: Option<String>,
    /// Additional words for the kernel's command line.
    pub command_line: String,
}

/// A study file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The file cannot be read.
    #[error("study file {}: {cause}", path.display())]
    Unreadable {
        /// The path of the study file.
        path: PathBuf,
        /// The operating system's error; part of the message, and not a `source`, which a printed chain would repeat.
        cause: std::io::Error,
    },
    /// A value in the file is wrong.
    #[error("{file}:{line}:{column}: {message}")]
    Wrong {
        /// The file, as it was given.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong, and what is allowed.
        message: String,
    },
}

impl Study {
    /// Boots per configuration: paddings on the instruction clock, rounds on the wall clock.
    pub fn boots(&self) -> u32 {
        match self.clock {
            Counter::Instructions => self.paddings,
            Counter::Wall => self.rounds,
        }
    }

    /// Replaces all configurations by the host's own A/A pair, for a wall-clock study where no guest can be timed.
    pub fn only_the_host(&mut self) {
        let names = [HOST_TWINS.0, HOST_TWINS.1];
        self.kernels = vec![HOST.to_owned()];
        self.kernels_if_built.clear();
        self.configurations = names.map(str::to_owned).to_vec();
        self.baseline = names[0].to_owned();
        self.own = names
            .map(|name| OwnConfiguration {
                name: name.to_owned(),
                lsm: None,
                base: "none".to_owned(),
                hooks: Vec::new(),
                level: None,
                command_line: String::new(),
            })
            .to_vec();
    }

    /// The study on some of its kernels only, of those that need not be built.
    ///
    /// # Errors
    ///
    /// A name that is not among the kernels, with their names.
    pub fn on(&self, kernels: &[String]) -> Result<Study, String> {
        let all = [self.kernels.as_slice(), &self.kernels_if_built].concat();
        if let Some(other) = kernels.iter().find(|name| !all.contains(name)) {
            return Err(format!("{other:?} is none of the study's kernels, which are {}", all.join(", ")));
        }
        let kernels = all.into_iter().filter(|name| kernels.contains(name)).collect();
        Ok(Study { kernels, kernels_if_built: Vec::new(), ..self.clone() })
    }

    /// The study with those of [`Study::kernels_if_built`] that have been built; the others stay in the list.
    #[must_use]
    pub fn with_built(mut self, is_built: impl Fn(&str) -> bool) -> Study {
        let (built, others) = self.kernels_if_built.into_iter().partition(|name| is_built(name));
        self.kernels.extend::<Vec<String>>(built);
        self.kernels_if_built = others;
        self
    }

    /// The study's own configuration of this name.
    pub fn own(&self, name: &str) -> Option<&OwnConfiguration> {
        self.own.iter().find(|own| own.name == name)
    }

    /// The level of the workloads under a configuration, if the study says one.
    pub fn level(&self, configuration: &str) -> Option<&str> {
        self.own(configuration)?.level.as_deref()
    }

    /// The part of the study that results contain.
    pub fn header(&self) -> StudyHeader {
        StudyHeader {
            name: self.name.clone(),
            title: self.title.clone(),
            kernels: self.kernels.clone(),
            configurations: self.configurations.clone(),
            baseline: self.baseline.clone(),
            boots: self.boots(),
            figure: self.figure,
            threshold: self.threshold,
            published: self.published.clone(),
            text: self.text.clone(),
        }
    }
}
