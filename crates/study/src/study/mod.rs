//! Studies: what is measured, on which kernels, under which configurations. docs/study-files.md describes the file.

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

use std::path::PathBuf;

use tollgate_bench::counter::Counter;

pub use figure::Figure;
pub use header::{Printed, StudyHeader};
pub use latency::Latency;
pub use published::Published;

/// The kernel's name that stands for the running host.
pub const HOST: &str = "host";

/// The configurations of the host's own A/A pair: the baseline, and the same machine once more.
pub const HOST_TWINS: (&str, &str) = ("host", "host-again");

/// A study, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Its name: lower case letters, digits and hyphens.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What samples are counted in.
    pub clock: Counter,
    /// Kernels: series such as `6.1`, paths of images, or [`HOST`].
    pub kernels: Vec<String>,
    /// Kernels that are measured too where they have been built.
    pub kernels_if_built: Vec<String>,
    /// Configurations, in the order of the tables.
    pub configurations: Vec<String>,
    /// What the configurations that are the user's own are made of.
    pub own: Vec<OwnConfiguration>,
    /// The configuration that others are compared with.
    pub baseline: String,
    /// Selections, expanded, each once, as `tollgate_bench` spells them.
    pub workloads: Vec<String>,
    /// Samples a workload and boot, instead of the catalogue's number.
    pub samples: Option<u32>,
    /// Boots a configuration that differ in layout, on the instruction clock.
    pub paddings: u32,
    /// Rounds, on the wall clock.
    pub rounds: u32,
    /// Which figure tables show and comparisons go by, on the instruction clock.
    pub figure: Figure,
    /// From how many percent on a comparison calls something dearer.
    pub threshold: f64,
    /// Runs in which hooks take longer.
    pub latency: Option<Latency>,
    /// Figures that others printed, a table a source.
    pub published: Vec<Published>,
    /// The file, word for word.
    pub text: String,
}

/// A configuration that the user made up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnConfiguration {
    /// Its name: lower case letters, digits and hyphens.
    pub name: String,
    /// The `lsm=` list; the base's if none is given.
    pub lsm: Option<String>,
    /// One of [`configuration::KNOWN`](crate::configuration::KNOWN), whose set-up in the guest it takes.
    pub base: String,
    /// Hooks to attach programs to; the default set if there are none. Only with a base that attaches some.
    pub hooks: Vec<String>,
    /// What the kernel's command line is to say besides.
    pub command_line: String,
}

/// A study file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// The file cannot be read.
    #[error("study file {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why; part of the message, so no `source` that a printed chain would repeat.
        cause: std::io::Error,
    },
    /// Something in it is wrong.
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
    /// Boots a configuration: paddings on the instruction clock, rounds on the wall clock.
    pub fn boots(&self) -> u32 {
        match self.clock {
            Counter::Instructions => self.paddings,
            Counter::Wall => self.rounds,
        }
    }

    /// Makes it the host's own A/A pair: what remains of a wall-clock study where no guest can be timed.
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
                command_line: String::new(),
            })
            .to_vec();
    }

    /// The study on some of its kernels only, those among them that need not be built.
    ///
    /// # Errors
    ///
    /// The name that is none of them, and those that are.
    pub fn on(&self, kernels: &[String]) -> Result<Study, String> {
        let all = [self.kernels.as_slice(), &self.kernels_if_built].concat();
        if let Some(other) = kernels.iter().find(|name| !all.contains(name)) {
            return Err(format!("{other:?} is none of the study's kernels, which are {}", all.join(", ")));
        }
        let kernels = all.into_iter().filter(|name| kernels.contains(name)).collect();
        Ok(Study { kernels, kernels_if_built: Vec::new(), ..self.clone() })
    }

    /// The study with those of [`Study::kernels_if_built`] that are; the others are left there.
    #[must_use]
    pub fn with_built(mut self, is_built: impl Fn(&str) -> bool) -> Study {
        let (built, others) = self.kernels_if_built.into_iter().partition(|name| is_built(name));
        self.kernels.extend::<Vec<String>>(built);
        self.kernels_if_built = others;
        self
    }

    /// The user's own configuration of this name, if it is one.
    pub fn own(&self, name: &str) -> Option<&OwnConfiguration> {
        self.own.iter().find(|own| own.name == name)
    }

    /// What results keep of the study.
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
