//! `tollgate container runtime`: between a container's manager and its OCI runtime. The runtimes refuse a configuration with
//! SELinux labels where the kernel's SELinux is not on. Here the labels become arguments of the hook.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};

/// Options before the command that have a value: of runc, crun and youki.
const VALUED: [&str; 8] = ["--root", "-r", "--log", "-l", "--log-format", "--log-level", "--cgroup-manager", "--criu"];
/// Commands that start nothing, so that there is nothing to change. Without a command, a runtime prints its help.
const OTHERS: [&str; 15] = [
    "checkpoint",
    "delete",
    "events",
    "features",
    "help",
    "info",
    "kill",
    "list",
    "pause",
    "ps",
    "resume",
    "spec",
    "start",
    "state",
    "update",
];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The runtime: runc, crun, youki
    runtime: OsString,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(Arguments { runtime, arguments }: Arguments) -> anyhow::Result<ExitCode> {
    match edited(&arguments)? {
        Some(Edited::Bundle(bundle)) => {
            let program = std::env::current_exe().context("cannot find this program")?;
            change(&bundle.join("config.json"), |config| take_labels(config, &program))?;
        }
        Some(Edited::Process(file)) => change(&file, |process| {
            remove(process, "selinuxLabel");
        })?,
        None => {}
    }
    let cause = process::Command::new(&runtime).args(&arguments).exec();
    Err(cause).with_context(|| format!("cannot run {}", runtime.display()))
}

/// What a command of the runtime reads, and we change before.
#[derive(Debug, PartialEq, Eq)]
enum Edited {
    /// A container's folder, with its config.json.
    Bundle(PathBuf),
    /// What to execute in a container.
    Process(PathBuf),
}

/// What the runtime will read; `None`: nothing that has labels. An error if it is not known which command this is: then a
/// container could start without our hook.
fn edited(arguments: &[OsString]) -> anyhow::Result<Option<Edited>> {
    let Some((command, options)) = command(arguments) else { return Ok(None) };
    let named = command.to_string_lossy();
    Ok(match &*named {
        "exec" => value(options, "-p", "--process").map(|file| Edited::Process(file.into())),
        "create" | "run" | "restore" => {
            Some(Edited::Bundle(value(options, "-b", "--bundle").unwrap_or_else(|| ".".into()).into()))
        }
        other if OTHERS.contains(&other) => None,
        other => bail!("{other} is no command of an OCI runtime; write options before the command as --option=value"),
    })
}

/// The runtime's command, and what follows it.
fn command(mut words: &[OsString]) -> Option<(&OsString, &[OsString])> {
    loop {
        let (word, rest) = words.split_first()?;
        if !word.to_string_lossy().starts_with('-') {
            return Some((word, rest));
        }
        words = if VALUED.iter().any(|option| word == option) { rest.get(1..).unwrap_or_default() } else { rest };
    }
}

/// The value of an option: `-b VALUE`, `--bundle VALUE`, `--bundle=VALUE`.
fn value(options: &[OsString], short: &str, long: &str) -> Option<OsString> {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == short || option == long {
            return options.next().cloned();
        }
        let text = option.to_string_lossy();
        if let Some(value) = text.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value.into());
        }
    }
    None
}

/// Changes a file of JSON, all at once.
fn change(path: &Path, edit: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
    let failed = || format!("cannot change {}: the container does not start", path.display());
    let file = File::open(path).with_context(failed)?;
    let permissions = file.metadata().with_context(failed)?.permissions();
    let mut value: Value = serde_json::from_reader(io::BufReader::new(file)).with_context(failed)?;
    edit(&mut value);
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut written = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    written.write_all(value.to_string().as_bytes()).with_context(failed)?;
    fs::set_permissions(written.path(), permissions).with_context(failed)?;
    written.persist(path).with_context(failed)?;
    Ok(())
}

fn remove(object: &mut Value, name: &str) -> Option<String> {
    object.as_object_mut()?.remove(name)?.as_str().filter(|label| !label.is_empty()).map(str::to_owned)
}

/// Takes the labels out of a configuration, and adds our hook with them. A configuration that has our hook already keeps it:
/// its labels were taken out before.
fn take_labels(config: &mut Value, program: &Path) {
    let mut named = |object: &str, name: &str| config.get_mut(object).and_then(|object| remove(object, name));
    let (context, files) = (named("process", "selinuxLabel"), named("linux", "mountLabel"));
    let program = program.to_string_lossy().into_owned();
    let is_ours =
        |hook: &Value| hook["path"] == program.as_str() && hook["args"][1] == "container" && hook["args"][2] == "hook";
    let Some(config) = config.as_object_mut() else { return };
    let hooks = config.entry("hooks").or_insert_with(|| Value::Object(Map::new()));
    for stage in ["createRuntime", "poststop"] {
        let mut own: Vec<Value> = hooks[stage].as_array().cloned().unwrap_or_default();
        if context.is_none() && own.iter().any(is_ours) {
            continue;
        }
        own.retain(|hook| !is_ours(hook));
        let labels = [("--context", &context), ("--files", &files)].into_iter();
        let options = labels.filter_map(|(option, label)| Some([option, label.as_deref()?])).flatten();
        let arguments: Vec<&str> = ["tollgate", "container", "hook"].into_iter().chain(options).collect();
        own.insert(0, json!({"path": program, "args": arguments}));
        hooks[stage] = own.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn finds_what_the_runtime_reads() {
        let edited = |words: &[OsString]| edited(words).unwrap();
        let bundle = |path: &str| Some(Edited::Bundle(path.into()));
        assert_eq!(edited(&words("--root /r --systemd-cgroup create --bundle /b --pid-file p id")), bundle("/b"));
        assert_eq!(edited(&words("run -b /b id")), bundle("/b"));
        assert_eq!(edited(&words("create --bundle=/b id")), bundle("/b"));
        assert_eq!(edited(&words("create id")), bundle("."));
        assert_eq!(edited(&words("exec --process /p id")), Some(Edited::Process("/p".into())));
        assert_eq!((edited(&words("exec id sh")), edited(&words("delete id"))), (None, None));
    }

    #[test]
    fn takes_no_value_of_an_option_for_the_command() {
        for value in ["exec", "delete", "run"] {
            let line = format!("--root {value} --log={value} --log-format {value} create --bundle /b id");
            assert_eq!(edited(&words(&line)).unwrap(), Some(Edited::Bundle("/b".into())));
        }
        assert!(edited(&words("--unknown exec-like create id")).is_err());
    }

    #[test]
    fn hands_labels_from_the_configuration_to_the_hook() {
        let mut config = json!({
            "process": {"selinuxLabel": "u:r:container_t:s0:c1,c2", "args": ["sh"]},
            "linux": {"mountLabel": "u:object_r:container_file_t:s0:c1,c2"},
            "hooks": {"createRuntime": [{"path": "/bin/other"}]},
        });
        take_labels(&mut config, Path::new("/usr/bin/tollgate"));
        assert_eq!((config["process"].get("selinuxLabel"), config["linux"].get("mountLabel")), (None, None));
        let hooks = config["hooks"]["createRuntime"].as_array().unwrap().clone();
        let expected = json!([
            "tollgate",
            "container",
            "hook",
            "--context",
            "u:r:container_t:s0:c1,c2",
            "--files",
            "u:object_r:container_file_t:s0:c1,c2"
        ]);
        assert_eq!((hooks.len(), &hooks[0]["args"], &hooks[1]["path"]), (2, &expected, &json!("/bin/other")));
        // The same folder is run again.
        take_labels(&mut config, Path::new("/usr/bin/tollgate"));
        assert_eq!(config["hooks"]["createRuntime"].as_array().unwrap(), &hooks);
        assert_eq!(config["hooks"]["poststop"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn adds_the_hook_to_a_configuration_without_labels() {
        let mut config = json!({"process": {"selinuxLabel": ""}});
        take_labels(&mut config, Path::new("/usr/bin/tollgate"));
        assert_eq!(config["hooks"]["createRuntime"][0]["args"], json!(["tollgate", "container", "hook"]));
    }
}
