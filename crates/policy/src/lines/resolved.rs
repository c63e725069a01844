//! Reads what `cil_write_resolve_ast` writes: one statement per line, indented. Lists of statements open on a line of
//! their own and close on one.

use std::collections::VecDeque;

use super::Statement;

/// A list of statements that is open.
#[derive(Clone, Copy)]
enum Open<'t> {
    /// A block or an optional: its statements hold as they are. With the number of statements before it.
    Plain(usize),
    /// A macro that is called, likewise. Whether it has a place of its own.
    Call(bool),
    /// The definition of a macro, or the content of an `in`: the statements hold where they were copied to.
    Template,
    /// The expression of a condition.
    If(&'t str),
    /// `true` or `false`.
    Branch(&'t str),
}

/// Where statements were written, until the mark ends.
#[derive(Clone)]
struct Place {
    file: u32,
    line: u32,
    /// The remaining lines of the items of branches.
    inner: VecDeque<u32>,
}

impl Place {
    /// `lmx LINE fFILE` or `lmx LINE fFILE:LINE,LINE...`.
    fn of(mark: &str, files: usize) -> Option<Self> {
        let mut words = mark.split_ascii_whitespace().skip(1);
        let line = words.next()?.parse().ok()?;
        let word = words.next()?;
        let (file, inner) = word.split_once(':').unwrap_or((word, ""));
        let file: u32 = file.strip_prefix('f')?.parse().ok()?;
        let inner = inner.split(',').filter_map(|line| line.parse().ok()).collect();
        ((file as usize) < files).then_some(Self { file, line, inner })
    }

    /// The place of the next item in a branch.
    fn next(&mut self) -> Self {
        Self { file: self.file, line: self.inner.pop_front().unwrap_or(self.line), inner: VecDeque::new() }
    }
}

/// The statements in `text`, which refers to `files` files by their numbers.
pub(super) fn statements(text: &str, files: usize) -> Vec<Statement> {
    let mut reader = Reader { files, ..Reader::default() };
    text.lines().for_each(|line| reader.read(line.trim()));
    reader.statements
}

#[derive(Default)]
struct Reader<'t> {
    files: usize,
    statements: Vec<Statement>,
    places: Vec<Option<Place>>,
    open: Vec<Open<'t>>,
}

impl<'t> Reader<'t> {
    fn read(&mut self, line: &'t str) {
        if let Some(mark) = line.strip_prefix(";;* ") {
            match mark {
                "lme" => drop(self.places.pop()),
                _ => self.places.push(Place::of(mark, self.files)),
            }
        } else if line == ")" {
            if let Some(Open::Call(true)) = self.open.pop() {
                self.places.pop();
            }
        } else if line.starts_with("(blockabstract ") {
            self.forget_block();
        } else if let Some(list) = opens(line, self.statements.len()) {
            self.begin(list, line);
        } else if line.starts_with('(') && !self.open.iter().any(|list| matches!(list, Open::Template)) {
            self.state(line);
        }
    }

    /// The statements of an abstract block hold only where it is inherited.
    fn forget_block(&mut self) {
        if let Some(block) = self.open.last_mut() {
            if let Open::Plain(before) = *block {
                self.statements.truncate(before);
            }
            *block = Open::Template;
        }
    }

    fn begin(&mut self, list: Open<'t>, line: &str) {
        let place = self.of_branch();
        match list {
            _ if !is_open(line) => {}
            Open::Call(_) => {
                let own = place.is_some();
                if own {
                    self.places.push(place);
                }
                self.open.push(Open::Call(own));
            }
            list => self.open.push(list),
        }
    }

    fn state(&mut self, line: &str) {
        let of_branch = self.of_branch();
        if let Some(place) = of_branch.as_ref().or_else(|| self.places.last()?.as_ref()) {
            let text = wrap(line, &self.open);
            self.statements.push(Statement { file: place.file, line: place.line, text });
        }
    }

    /// The place of the next item, if it is directly in a branch whose mark lists places.
    fn of_branch(&mut self) -> Option<Place> {
        match (self.open.last(), self.places.last_mut()) {
            (Some(Open::Branch(_)), Some(Some(place))) => Some(place.next()),
            _ => None,
        }
    }
}

/// The list that `line` opens. The line may also close it.
fn opens(line: &str, before: usize) -> Option<Open<'_>> {
    let (word, rest) = line.strip_prefix('(').map(|inside| inside.split_once(' ').unwrap_or((inside, "")))?;
    match word {
        "block" | "optional" | "blockinherit" => Some(Open::Plain(before)),
        "call" => Some(Open::Call(false)),
        "macro" | "in" => Some(Open::Template),
        "booleanif" | "tunableif" => Some(Open::If(rest)),
        "true" | "false" => Some(Open::Branch(word)),
        _ => None,
    }
}

fn is_open(line: &str) -> bool {
    let mut quoted = false;
    let mut depth = 0i64;
    for byte in line.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            b'(' if !quoted => depth += 1,
            b')' if !quoted => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// `statement` within the conditions that contain it.
fn wrap(statement: &str, open: &[Open<'_>]) -> String {
    let mut text = statement.to_owned();
    let mut branch = None;
    for list in open.iter().rev() {
        match (list, branch) {
            (Open::Branch(value), _) => branch = Some(value),
            (Open::If(expression), Some(value)) => {
                text = format!("(booleanif {expression} ({value} {text}))");
                branch = None;
            }
            _ => {}
        }
    }
    text
}
