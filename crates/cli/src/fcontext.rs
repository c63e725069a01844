//! `tollgate fcontext`: which paths get which label, as with semanage's fcontext.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use tollgate_policy::{
    file_contexts::{self, Line},
    store::context_like,
};

use crate::{output, store};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give paths a label, and restore the labels that differ
    Add(Add),
    /// Remove a label that was added here
    Remove(Remove),
    /// List which paths get which label; of several lines that match a path the last counts
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The type, or a whole context; `none`: the path gets no label
    #[arg(short = 't', long = "type", value_name = "TYPE", required_unless_present = "equal")]
    type_: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Label a path, and everything below it, like this one
    #[arg(short = 'e', long, value_name = "PATH", conflicts_with_all = ["type_", "kind"])]
    equal: Option<String>,
    #[command(flatten)]
    options: store::Options,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    which: Which,
    /// Remove an --equal path
    #[arg(short = 'e', long, conflicts_with = "kind")]
    equal: bool,
    #[command(flatten)]
    options: store::Options,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List only labels that were added here
    #[arg(short = 'C', long)]
    local: bool,
    #[command(flatten)]
    root: store::Root,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Which {
    /// The kind of file: a any, f files, d directories, l links, c and b devices, p pipes, s sockets
    #[arg(short = 'f', long = "ftype", value_enum, value_name = "KIND", default_value = "a")]
    kind: Kind,
    /// A regular expression that the whole path must match, such as '/srv/web(/.*)?'; with --equal a path
    expression: String,
}

/// The kinds of file, by the letters of semanage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum Kind {
    A,
    F,
    D,
    L,
    C,
    B,
    P,
    S,
}

impl Kind {
    /// The word for the kind in a line of file_contexts.
    fn word(self) -> Option<&'static str> {
        let word = match self {
            Self::A => return None,
            Self::F => "--",
            Self::D => "-d",
            Self::L => "-l",
            Self::C => "-c",
            Self::B => "-b",
            Self::P => "-p",
            Self::S => "-s",
        };
        Some(word)
    }
}

/// A line of file_contexts, as it is listed.
#[derive(Debug, Serialize)]
struct Listed<'l> {
    expression: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'l str>,
    context: Option<&'l str>,
    local: bool,
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Add(arguments) => add(arguments),
        Command::Remove(arguments) => remove(arguments),
        Command::List(arguments) => list(arguments),
    }
}

fn add(arguments: &Add) -> anyhow::Result<ExitCode> {
    let Add { type_, which: Which { kind, expression }, equal, options } = arguments;
    if let Some(original) = equal {
        check_path(original)?;
        check_path(expression)?;
        return store::change(options, |contents, _| {
            let others = without_alias(contents.aliases()?, expression).0;
            contents.set_aliases(format!("{others}{expression} {original}\n"));
            Ok(vec![format!("{expression} is labelled as {original}")])
        });
    }
    check_expression(expression)?;
    store::change(options, |contents, current| {
        let context = match type_.as_deref() {
            Some("none") | None => None,
            Some(type_) => Some(current.with(|built| Ok(context_like(built, "file", type_)?))?),
        };
        let line = Line { expression, kind: kind.word(), context: context.as_deref() };
        let text = file_contexts::with(contents.file_contexts()?, &line);
        contents.set_file_contexts(text);
        Ok(vec![format!("{line}")])
    })
}

fn remove(arguments: &Remove) -> anyhow::Result<ExitCode> {
    let Remove { which: Which { kind, expression }, equal, options } = arguments;
    store::change(options, |contents, _| {
        if *equal {
            let (others, known) = without_alias(contents.aliases()?, expression);
            if !known {
                bail!(
                    "{expression} is labelled as no other path: `tollgate fcontext list --local` lists those that are"
                );
            }
            contents.set_aliases(others);
        } else {
            let left = file_contexts::without_line(contents.file_contexts()?, expression, kind.word());
            let Some(left) = left else {
                bail!(
                    "no line of one's own is for `{expression}` and this kind of file: `tollgate fcontext list --local` lists \
                     them; --ftype names the kind"
                );
            };
            contents.set_file_contexts(left);
        }
        Ok(vec![format!("{expression}: removed")])
    })
}

fn list(arguments: &List) -> anyhow::Result<ExitCode> {
    let store = arguments.root.store();
    let contents = store.read()?;
    let (kept, own) = (store.kept()?, contents.file_contexts()?);
    let current = store::Current { kept: kept.as_ref(), sources: &contents };
    let whole = current.with(|built| Ok(built.file_contexts.clone()))?;
    let is_own = |line: &Line<'_>| file_contexts::lines(own).any(|own| own == *line);
    let lines = file_contexts::lines(&whole).map(|line| (is_own(&line), line));
    let lines: Vec<_> = lines.filter(|(local, _)| *local || !arguments.local).collect();
    if arguments.json {
        let listed = lines.iter().map(|(local, Line { expression, kind, context })| Listed {
            expression,
            kind: *kind,
            context: *context,
            local: *local,
        });
        output::json(&listed.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for (local, Line { expression, kind, context }) in &lines {
        let own = if *local && !arguments.local { "  (local)" } else { "" };
        let (kind, context) = (kind.unwrap_or("any"), context.unwrap_or("<<none>>"));
        output::line(&format!("{expression:<50} {kind:<3} {context}{own}"))?;
    }
    for (alias, path) in aliases(contents.aliases()?) {
        output::line(&format!("{alias} = {path}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn aliases(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    pairs.filter_map(|line| line.trim().split_once(char::is_whitespace).map(|(alias, path)| (alias, path.trim())))
}

/// The lines without those of an alias, and whether there were some.
fn without_alias(text: &str, alias: &str) -> (String, bool) {
    let is_it = |line: &&str| aliases(line).any(|(own, _)| own == alias);
    let left = text.lines().filter(|line| !is_it(line)).flat_map(|line| [line, "\n"]).collect();
    (left, text.lines().any(|line| is_it(&line)))
}

fn check_expression(text: &str) -> anyhow::Result<()> {
    if !text.starts_with('/') {
        bail!("`{text}` matches no path: an expression must match the whole of one, so it begins with /");
    }
    if text.contains(char::is_whitespace) {
        bail!("`{text}` has a space, which ends an expression: write \\s, or . for any character");
    }
    Ok(())
}

/// Refuses a path that contains characters of an expression.
fn check_path(text: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "/._-,@".contains(c);
    if !text.starts_with('/') || text.ends_with('/') || !text.chars().all(plain) {
        bail!(
            "`{text}` is no path that can be labelled as another: it begins with /, does not end with one, and has no signs \
               of expressions"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_one_path_for_each_alias() {
        let text = "# ours\n/web /srv/www\n/other   /srv\n";
        assert_eq!(aliases(text).collect::<Vec<_>>(), [("/web", "/srv/www"), ("/other", "/srv")]);
        assert_eq!(without_alias(text, "/web"), ("# ours\n/other   /srv\n".to_owned(), true));
        assert_eq!(without_alias(text, "/srv"), (text.to_owned(), false));
    }

    #[test]
    fn refuses_what_can_match_no_path() {
        assert!(check_expression("/srv/web(/.*)?").is_ok() && check_path("/srv/web.d").is_ok());
        for wrong in ["srv/web", "", "/srv/my web"] {
            assert!(check_expression(wrong).is_err(), "{wrong}");
        }
        for wrong in ["srv", "/srv/", "/srv(/.*)?", "/srv/a b"] {
            assert!(check_path(wrong).is_err(), "{wrong}");
        }
    }
}
