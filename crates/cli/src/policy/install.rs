//! `tollgate policy install`: adds modules to the policy of this machine.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;

use crate::{signed, store};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Modules: NAME.cil, with its file contexts in NAME.fc beside it; a module of the same name is replaced
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    options: store::Options,
}

/// The files of a module.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    policy: Vec<u8>,
    contexts: Option<Vec<u8>>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let modules = read(&arguments.files, signed::check)?;
    store::change(&arguments.options, |contents, _| {
        let mut done = Vec::new();
        for (name, Module { policy, contexts }) in modules {
            let labels = if contexts.is_some() { ", with file contexts" } else { "" };
            let replaced = contents.install(&name, policy, contexts)?;
            done.push(format!("module {name}: {}{labels}", if replaced { "replaced" } else { "installed" }));
        }
        Ok(done)
    })
}

/// Reads the modules of the given files, by name. Each file must pass `check`.
fn read(
    files: &[PathBuf],
    check: impl Fn(&Path, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<BTreeMap<String, Module>> {
    let mut modules = BTreeMap::new();
    for path in files {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("cil") => {}
            // NAME.fc comes with its module.
            Some("fc") if files.contains(&path.with_extension("cil")) => continue,
            Some("fc") => bail!(
                "{} belongs to a module that is not named: name {} too; to add labels alone, use `tollgate fcontext add`",
                path.display(),
                path.with_extension("cil").display()
            ),
            _ => bail!(
                "{} is no module: a module is NAME.cil, with its file contexts in NAME.fc beside it; module packages (.pp) are \
                 of another policy: `tollgate policy build`",
                path.display()
            ),
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let read = |path: &Path| {
            let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            check(path, &bytes).map(|()| bytes)
        };
        let contexts = path.with_extension("fc");
        let contexts = contexts.exists().then(|| read(&contexts)).transpose()?;
        let module = Module { policy: read(path)?, contexts };
        if modules.insert(name.clone(), module).is_some() {
            bail!("two files belong to the module {name}: name one of them");
        }
    }
    Ok(modules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_file_contexts_with_their_module() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, name).unwrap();
            path
        };
        let (cil, fc, other) = (file("web.cil"), file("web.fc"), file("other.cil"));
        let web = Module { policy: b"web.cil".to_vec(), contexts: Some(b"web.fc".to_vec()) };
        let expected = BTreeMap::from([
            ("other".to_owned(), Module { policy: b"other.cil".to_vec(), contexts: None }),
            ("web".to_owned(), web),
        ]);
        let any = |_: &Path, _: &[u8]| Ok(());
        assert_eq!(read(&[cil.clone(), other.clone()], any).unwrap(), expected);
        assert_eq!(read(&[fc.clone(), other, cil.clone()], any).unwrap(), expected, "named, too");
        let refusal = |files: &[PathBuf]| read(files, any).unwrap_err().to_string();
        let unsigned = |path: &Path, _: &[u8]| match path.extension() {
            Some(extension) if extension == "fc" => bail!("unsigned"),
            _ => Ok(()),
        };
        assert_eq!(read(std::slice::from_ref(&cil), unsigned).unwrap_err().to_string(), "unsigned", "labels, too");
        assert!(refusal(&[fc]).contains("belongs to a module that is not named"));
        assert!(refusal(&[file("web.pp")]).contains("web.pp is no module"));
        assert!(refusal(&[cil.clone(), cil]).contains("two files belong to the module web"));
    }
}
