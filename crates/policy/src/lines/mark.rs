//! Puts line marks around every statement of a CIL source.

/// The kind of an open list, as far as finding statements needs it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    /// `block`, `in`, `optional`, or a branch of a `tunableif`: its items are statements.
    Statements,
    /// `tunableif`: its branches are lists of statements.
    If,
    /// Anything else, or a list whose first word has not come yet.
    Other,
}

/// A list that is open.
struct Open {
    list: List,
    /// Whether it is marked, so that its end needs a mark as well.
    marked: bool,
    /// Whether it is empty so far.
    empty: bool,
}

/// `text` with libsepol's high-level line marks around every statement, so that each carries the number of its line in
/// `text` and `fFILE` as the name of its file. The source's own marks and its comments are left out. Anything that is
/// not CIL stays as it is, and libsepol refuses it.
///
/// libsepol accepts no marks inside `booleanif`, where macros may be called. So the statements of a macro are not
/// marked: they count as being where it is called. The mark of a `booleanif` lists the lines of the items of its
/// branches: `f0:12,13,17`.
pub fn mark(text: &[u8], file: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 3);
    let mut open: Vec<Open> = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&byte) = text.get(at) {
        let length = token(&text[at..]);
        match byte {
            b'\n' | b'\r' => {
                line += 1;
                out.push(b' ');
            }
            b';' => {}
            b'(' => {
                let marked = begins_statement(&open) && first_word(&text[at + 1..]) != b"blockabstract";
                if marked {
                    let inner = branches(&text[at..], line);
                    out.extend(format!("\n;;* lmx {line} f{file}{inner}\n").into_bytes());
                }
                if let Some(outer) = open.last_mut() {
                    outer.empty = false;
                }
                open.push(Open { list: List::Other, marked, empty: true });
                out.push(b'(');
            }
            b')' => {
                out.push(b')');
                if open.pop().is_some_and(|closed| closed.marked) {
                    out.extend(b"\n;;* lme\n");
                }
            }
            b' ' | b'\t' => out.push(b' '),
            _ => {
                meet_word(&mut open, &text[at..at + length]);
                out.extend(&text[at..at + length]);
            }
        }
        at += length;
    }
    out
}

/// The lines of lists in `text` that begin with `word`.
pub(crate) fn lists(text: &[u8], word: &[u8]) -> Vec<u32> {
    let mut lines = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\n' | b'\r' => line += 1,
            b'(' if first_word(&text[at + 1..]) == word => lines.push(line),
            _ => {}
        }
        at += token(&text[at..]);
    }
    lines
}

/// The length of the token at the start of `rest`, by the rules of cil_lexer.l.
fn token(rest: &[u8]) -> usize {
    let until = |end: fn(u8) -> bool| rest[1..].iter().position(|byte| end(*byte)).map_or(rest.len(), |n| n + 1);
    match rest[0] {
        b';' => until(|byte| matches!(byte, b'\n' | b'\r')),
        b'"' => match until(|byte| matches!(byte, b'"' | b'\n')) {
            end if rest.get(end) == Some(&b'"') => end + 1,
            // It is not closed on its line, which libsepol refuses.
            _ => 1,
        },
        b'\n' | b'\r' | b' ' | b'\t' | b'(' | b')' => 1,
        _ => until(|byte| matches!(byte, b'\n' | b'\r' | b' ' | b'\t' | b'(' | b')' | b';' | b'"')),
    }
}

/// Whether a list that opens now is a statement that may be marked.
fn begins_statement(open: &[Open]) -> bool {
    open.last().is_none_or(|list| list.list == List::Statements)
}

/// The first word of a list. A `blockabstract` concerns the list that contains it, and there must be no mark between
/// them.
fn first_word(inside: &[u8]) -> &[u8] {
    let start = inside.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(inside.len());
    let word = &inside[start..];
    if word.is_empty() { word } else { &word[..token(word)] }
}

fn meet_word(open: &mut [Open], word: &[u8]) {
    let outer = open.len().checked_sub(2).map(|n| open[n].list);
    let Some(list) = open.last_mut() else { return };
    if list.empty {
        list.list = match word {
            b"block" | b"in" | b"optional" if list.marked => List::Statements,
            b"tunableif" if list.marked => List::If,
            b"true" | b"false" if outer == Some(List::If) => List::Statements,
            _ => List::Other,
        };
    }
    list.empty = false;
}

/// `:` and the lines of the items in the branches of the `booleanif` that starts `text` on `line`. Empty if something
/// else starts there, or if libsepol may leave out some of it.
fn branches(text: &[u8], mut line: u32) -> String {
    if first_word(&text[1..]) != b"booleanif" {
        return String::new();
    }
    let mut lines = Vec::new();
    let (mut at, mut depth, mut in_branch) = (0, 0, false);
    while let Some(&byte) = text.get(at) {
        let length = token(&text[at..]);
        match byte {
            b'\n' | b'\r' => line += 1,
            b'(' => {
                depth += 1;
                let word = first_word(&text[at + 1..]);
                match depth {
                    2 => in_branch = matches!(word, b"true" | b"false"),
                    3 if in_branch => lines.push(line.to_string()),
                    _ => {}
                }
                if word == b"tunableif" {
                    return String::new();
                }
            }
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        at += length;
    }
    if lines.is_empty() { String::new() } else { format!(":{}", lines.join(",")) }
}
