//! What each LSM hook is for, read from `hooks.txt`.

use tollgate_abi::{CLASSES, Class};

/// The table. `docs/hooks.md` is made from it as well.
const TABLE: &str = include_str!("../hooks.txt");

/// The classes that the word `files` stands for.
pub(crate) const FILES: [&str; 9] =
    ["file", "dir", "lnk_file", "chr_file", "blk_file", "sock_file", "fifo_file", "anon_inode", "memfd_file"];

/// A hook, and what Tollgate does there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Name of the hook.
    pub name: &'static str,
    /// What is done there.
    pub purpose: Purpose,
    /// Further explanation; empty if there is none.
    pub remark: &'static str,
}

/// What is done at a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A program checks permissions.
    Asks {
        /// Whether it maintains labels or subjects as well, so that it is needed whatever the policy says.
        keeps: bool,
        /// The permissions that it checks.
        questions: Vec<Question>,
    },
    /// A program maintains labels or subjects, and checks nothing.
    Keeps,
    /// There is no program. If SELinux checks something there, the remark says why Tollgate does not.
    Nothing,
}

/// A class, and those of its permissions that are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The class, with all of its permissions.
    pub class: &'static Class,
    /// Names of the permissions.
    pub permissions: Vec<&'static str>,
}

/// A line of the table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hooks.txt: {reason} in `{line}`")]
pub struct BadLine {
    line: &'static str,
    reason: &'static str,
}

/// All hooks, in the order of the table.
pub fn all() -> Result<Vec<Hook>, BadLine> {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| hook(line).map_err(|reason| BadLine { line, reason })).collect()
}

fn hook(line: &'static str) -> Result<Hook, &'static str> {
    let (name, rest) = line.split_once(": ").ok_or("no hook")?;
    let (what, remark) = rest.split_once(" | ").unwrap_or((rest, ""));
    let purpose = match what {
        "keeps" => Purpose::Keeps,
        "nothing" => Purpose::Nothing,
        _ => {
            let keeps = what.strip_prefix("keeps; ");
            let asked = keeps.unwrap_or(what).strip_prefix("asks ").ok_or("neither a question nor none")?;
            let questions: Result<Vec<_>, _> = asked.split("; ").map(questions).collect();
            Purpose::Asks { keeps: keeps.is_some(), questions: questions?.concat() }
        }
    };
    Ok(Hook { name, purpose, remark })
}

/// The permissions in `CLASS PERMISSION...`. A word for several classes means those permissions that each of them has.
fn questions(text: &'static str) -> Result<Vec<Question>, &'static str> {
    let mut words = text.split(' ');
    let name = words.next().unwrap_or_default();
    let permissions: Vec<&str> = words.collect();
    let classes: Vec<&Class> = CLASSES.iter().filter(|class| is_meant(name, class)).collect();
    let known = |permission: &&str| classes.iter().any(|class| class.permissions.contains(permission));
    if classes.is_empty() || !permissions.iter().all(known) {
        return Err("an unknown class or permission");
    }
    let of = |class: &'static Class| Question {
        class,
        permissions: class
            .permissions
            .iter()
            .copied()
            .filter(|name| permissions.is_empty() || permissions.contains(name))
            .collect(),
    };
    Ok(classes.into_iter().map(of).filter(|question| !question.permissions.is_empty()).collect())
}

/// Whether a line's word for a class includes this one.
fn is_meant(word: &str, class: &Class) -> bool {
    match word {
        "files" => FILES.contains(&class.name),
        "anyobject" => FILES.contains(&class.name) || class.name.ends_with("socket"),
        "sockets" => class.name.ends_with("socket"),
        _ => class.name == word,
    }
}

/// The table as Markdown, for `docs/hooks.md`. `header` returns the header below `bpf/` that has a hook's program.
pub fn document(header: impl Fn(&str) -> Option<String>) -> Result<String, BadLine> {
    let mut text = String::from(include_str!("../hooks.md"));
    for hook in all()? {
        let line = TABLE.lines().find_map(|line| line.strip_prefix(hook.name)?.strip_prefix(": "));
        let asked = line.map_or("", |line| line.split(" | ").next().unwrap_or_default());
        let what = match hook.purpose {
            Purpose::Asks { .. } => asked.trim_start_matches("keeps; ").trim_start_matches("asks ").to_owned(),
            Purpose::Keeps => "keeps labels".to_owned(),
            Purpose::Nothing => "nothing".to_owned(),
        };
        let answered = header(hook.name).map_or_else(String::new, |header| format!("`{header}`"));
        text.push_str(&format!("| `{}` | {what} | {answered} | {} |\n", hook.name, hook.remark));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
