//! Where each rule of a policy was written: the statements of its CIL sources as libsepol resolves them (blocks and
//! optionals opened, macros expanded, names qualified), each with its file and line.
//!
//! libsepol writes its resolved tree with `cil_write_resolve_ast`, including the line marks that it found in the
//! source. Therefore [`mark`] puts a mark around every statement in a copy of the source, and [`Lines::from_resolved`]
//! reads what libsepol made of it.

mod mark;
mod resolved;
#[cfg(test)]
mod tests;

pub(crate) use mark::lists;
pub use mark::mark;

/// The version of the format of [`Lines::to_bytes`].
pub const VERSION: u32 = 1;

/// The statements of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Names of the sources.
    pub files: Vec<String>,
    /// The statements, in the order of the sources.
    pub statements: Vec<Statement>,
    /// Why there are no statements; `None`: there are some.
    pub missing: Option<String>,
}

/// A statement of the policy's source, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Index of the file in [`Lines::files`].
    pub file: u32,
    /// Number of the line on which it starts, from 1. A statement in a macro is where the macro is called.
    pub line: u32,
    /// The statement as CIL, on one line. If it depends on booleans, it is wrapped: `(booleanif (a) (true (allow
    /// ...)))`.
    pub text: String,
}

/// Why bytes do not contain statements.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinesError {
    /// They end too early, or a length reaches beyond their end.
    #[error("the statements' places end after {0} bytes; the file is truncated or corrupted: build it again")]
    Truncated(usize),
    /// They were written by another version.
    #[error("the statements' places have version {0}, this program reads {VERSION}: build the policy again")]
    Version(u32),
    /// They are not text.
    #[error("the statements' places hold what is not UTF-8 before byte {0}; the file is corrupted: build it again")]
    Text(usize),
    /// A statement's file does not exist.
    #[error("a statement lies in file {file} of {files}; the file is corrupted: build it again")]
    File {
        /// Index of the file in the statement.
        file: u32,
        /// How many files there are.
        files: usize,
    },
    /// There are more bytes than announced.
    #[error("{0} bytes follow the statements' places; the file is corrupted: build it again")]
    Trailing(usize),
}

impl Lines {
    /// No statements, and why.
    pub fn missing(why: impl Into<String>) -> Self {
        Self { missing: Some(why.into()), ..Self::default() }
    }

    /// `FILE:LINE` of a statement.
    pub fn place(&self, statement: &Statement) -> String {
        let file = self.files.get(statement.file as usize).map_or("?", String::as_str);
        format!("{file}:{}", statement.line)
    }

    /// The statements in what libsepol wrote for sources that [`mark`] had marked. `files` are their names.
    pub fn from_resolved(files: Vec<String>, resolved: &str) -> Self {
        let statements = resolved::statements(resolved, files.len());
        Self { files, statements, missing: None }
    }

    /// The form in a file: little-endian numbers of 32 bits, and texts with their length before them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let number = |bytes: &mut Vec<u8>, value: usize| bytes.extend((value as u32).to_le_bytes());
        let text = |bytes: &mut Vec<u8>, text: &str| {
            number(bytes, text.len());
            bytes.extend(text.as_bytes());
        };
        number(&mut bytes, VERSION as usize);
        number(&mut bytes, self.missing.is_some().into());
        text(&mut bytes, self.missing.as_deref().unwrap_or_default());
        number(&mut bytes, self.files.len());
        self.files.iter().for_each(|file| text(&mut bytes, file));
        number(&mut bytes, self.statements.len());
        for statement in &self.statements {
            number(&mut bytes, statement.file as usize);
            number(&mut bytes, statement.line as usize);
            text(&mut bytes, &statement.text);
        }
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote. The bytes may come from anyone.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LinesError> {
        let mut input = Input { bytes, at: 0 };
        match input.number()? {
            VERSION => {}
            other => return Err(LinesError::Version(other)),
        }
        let is_missing = input.number()? != 0;
        let why = input.text()?;
        let mut lines = Self { missing: is_missing.then_some(why), ..Self::default() };
        for _ in 0..input.number()? {
            lines.files.push(input.text()?);
        }
        for _ in 0..input.number()? {
            let (file, line) = (input.number()?, input.number()?);
            if file as usize >= lines.files.len() {
                return Err(LinesError::File { file, files: lines.files.len() });
            }
            lines.statements.push(Statement { file, line, text: input.text()? });
        }
        match bytes.len() - input.at {
            0 => Ok(lines),
            rest => Err(LinesError::Trailing(rest)),
        }
    }
}

/// Bytes, and the read position. Vectors grow with what is read, and never by an announced count.
struct Input<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Input<'_> {
    fn take(&mut self, length: usize) -> Result<&[u8], LinesError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or(LinesError::Truncated(self.bytes.len()))?;
        self.at += length;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, LinesError> {
        let mut number = [0; 4];
        number.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(number))
    }

    fn text(&mut self) -> Result<String, LinesError> {
        let length = self.number()? as usize;
        let bytes = self.take(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| LinesError::Text(self.at))
    }
}
