//! The files of a generation on the shelf, and whether they may be put in force together.

use std::path::{Path, PathBuf};

use tollgate_client::{protocol::Refusal, sanity};
use tollgate_fleet::{Generation, part::Part};
use tollgate_policy::built::Built;

use crate::{
    daemon::machine::Beside,
    datapath::{Networks, Source, table},
    guard,
};

/// The files of a generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The built policy.
    pub policy: PathBuf,
    /// What is put in force beside it.
    pub beside: Beside,
}

impl Files {
    /// The files in the folder of a generation.
    pub(super) fn of(folder: &Path) -> Self {
        let part = |part: Part| Some(folder.join(part.to_string())).filter(|path| path.exists());
        let beside = Beside { guard: part(Part::Guard), network: part(Part::Network) };
        Self { policy: folder.join("policy"), beside }
    }

    /// Checks all parts before any is in force: the policy answers its questions, its contexts are those that the labelled
    /// networks name, and the guard's database can be read. Returns the questions, which are asked again of the kernel's
    /// tables.
    pub(super) fn check(&self, generation: &Generation) -> Result<Vec<sanity::Question>, Refusal> {
        let built = Built::from_bytes(&generation.policy()).map_err(|cause| invalid(&cause))?;
        if let Some(path) = &self.beside.guard {
            guard::read(path).map_err(|cause| invalid(&cause))?;
        }
        if let Some(path) = &self.beside.network {
            let networks = Networks::read(&Source::named(path.clone())).map_err(|cause| invalid(&cause))?;
            let mut server = built.server().map_err(|cause| invalid(&cause))?;
            table::check(&networks, &built.policy, &mut server).map_err(|cause| invalid(&cause))?;
        }
        let questions = questions(generation)?;
        crate::sanity::ask(&built, &questions)?;
        Ok(questions)
    }
}

fn questions(generation: &Generation) -> Result<Vec<sanity::Question>, Refusal> {
    let Some(text) = generation.part(Part::Sanity) else { return Ok(Vec::new()) };
    let text = str::from_utf8(text).map_err(|_| invalid(&"the sanity questions are no text: publish others"))?;
    sanity::parse(text).map_err(|cause| invalid(&cause))
}

fn invalid(cause: &impl ToString) -> Refusal {
    Refusal::new(libc::EINVAL, cause.to_string())
}
