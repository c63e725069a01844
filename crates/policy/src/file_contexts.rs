//! A `file_contexts` that somebody wrote, put beside a policy.

use crate::{
    built::{Built, BuiltError},
    context::ContextError,
};

/// What a path has that is to have no label.
const NONE: &str = "<<none>>";

/// Why it cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileContextsError {
    /// A line gives a context that the policy does not permit.
    #[error("line {line}: {cause}")]
    Context {
        /// The line, from 1.
        line: usize,
        /// Why not.
        cause: ContextError,
    },
    /// A line is none.
    #[error(
        "line {0}: expected a regular expression, perhaps a kind of file (--, -d, -l, -c, -b, -p, -s), and a context"
    )]
    Line(usize),
    /// The policy cannot be asked.
    #[error(transparent)]
    Built(#[from] BuiltError),
}

/// Puts lines after those that the policy has: of several that match a path the last counts.
pub fn append(built: &mut Built, text: &str) -> Result<(), FileContextsError> {
    let mut server = built.server()?;
    for (line, words) in (1..).zip(text.lines()).map(|(line, text)| (line, text.split_whitespace().collect::<Vec<_>>()))
    {
        let context = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [_, context] | [_, _, context] => context,
            _ => return Err(FileContextsError::Line(line)),
        };
        if context != NONE {
            server.context(context).map_err(|cause| FileContextsError::Context { line, cause })?;
        }
    }
    if !built.file_contexts.is_empty() && !built.file_contexts.ends_with('\n') {
        built.file_contexts.push('\n');
    }
    built.file_contexts.push_str(text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sepol::{self, Options, tests::small};

    fn built() -> Built {
        Built::from_compiled(sepol::compile(&small(), &Options::default()).unwrap()).unwrap()
    }

    fn own(built: &mut Built) -> String {
        let mut server = built.server().unwrap();
        let text = built.file_contexts.split_whitespace().last().unwrap().to_owned();
        server.context(&text).unwrap();
        text
    }

    #[test]
    fn appends_lines_whose_contexts_the_policy_permits() {
        let mut built = built();
        let (before, context) = (built.file_contexts.clone(), own(&mut built));
        let text = format!("# ours\n\n/b(/.*)? -d {context}\n/c {context}\n/d <<none>>\n");
        append(&mut built, &text).unwrap();
        assert_eq!(built.file_contexts, format!("{before}{text}"));
    }

    #[test]
    fn refuses_lines_by_their_number_and_keeps_the_policy_as_it_is() {
        let mut built = built();
        let before = built.file_contexts.clone();
        let error = append(&mut built, "# none\n/b system_u:object_r:nobody_t:s0\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: ") && error.contains("nobody_t"), "{error}");
        assert!(append(&mut built, "/b\n").unwrap_err().to_string().starts_with("line 1: expected"));
        assert_eq!(built.file_contexts, before);
    }
}
