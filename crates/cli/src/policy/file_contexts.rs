//! `--file-contexts`: files of labels by path, which are added to a policy that is built.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tollgate_enforcer::labels::file_contexts::FileContexts;
use tollgate_policy::{
    built::Built,
    file_contexts::{Files, Named, without_needless},
    origin::Source,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Label files also by this file, in the form of SELinux's `file_contexts`, and by the files beside it that libselinux
    /// reads with it: FILE.homedirs, FILE.local, FILE.subs_dist and FILE.subs. May be given several times. If two files have
    /// a line for the same expression and kind of file, the last one counts; two such lines in one file are refused if their
    /// contexts differ
    #[arg(long, value_name = "FILE")]
    file_contexts: Vec<PathBuf>,
}

impl Arguments {
    /// Adds the lines to a policy; returns the files that were read.
    pub(super) fn put(&self, built: &mut Built) -> anyhow::Result<Vec<PathBuf>> {
        let read = |path: &PathBuf| {
            Files::read(path)
                .map_err(|(path, cause)| anyhow::Error::new(cause).context(format!("cannot read {}", path.display())))
        };
        let several = self.file_contexts.iter().map(read).collect::<anyhow::Result<Vec<Files>>>()?;
        Files::put(&several, built)
            .map_err(|(path, cause)| anyhow::Error::new(cause).context(path.display().to_string()))?;
        // What libselinux refuses is refused here, not when enforcement starts: each file alone, so that the error names it.
        for Named { path, text } in several.iter().flat_map(Files::lines) {
            let once = without_needless(text).with_context(|| path.display().to_string())?;
            FileContexts::new(&once).with_context(|| path.display().to_string())?;
        }
        if !several.is_empty() {
            FileContexts::new(&built.file_contexts).context("file contexts, all together")?;
        }
        let all: Vec<&Named> = several.iter().flat_map(Files::all).collect();
        if let Some(origin) = &mut built.origin {
            let source = |named: &&Named| Source::new(named.path.display().to_string(), named.text.as_bytes());
            origin.sources.extend(all.iter().map(source));
        }
        Ok(all.into_iter().map(|named| named.path.clone()).collect())
    }
}

/// The files that were read, for people; `None`: there were none.
pub(super) fn told(files: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    (!names.is_empty()).then(|| format!("labels of files by {}", names.join(", ")))
}
