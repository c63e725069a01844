//! Names of addresses: from the symbol table, from a System.map, or from the kallsyms in the image.

mod kallsyms;
mod symtab;

use std::collections::HashMap;

use serde::Serialize;

use crate::{Error, Image};

/// A symbol in the form of `/proc/kallsyms`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Symbol {
    /// The symbol's address.
    pub address: u64,
    /// The letter that nm prints.
    pub kind: u8,
    /// The name.
    pub name: String,
}

impl Symbol {
    fn is_text(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}

/// The source of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `.symtab`.
    SymbolTable,
    /// A System.map, or a saved `/proc/kallsyms`.
    File,
    /// The kallsyms in the image.
    Kallsyms,
}

impl Source {
    /// A description for people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::SymbolTable => "its symbol table",
            Self::File => "a System.map",
            Self::Kallsyms => "the kallsyms in the image",
        }
    }
}

/// The symbols of a kernel: functions and data by address.
#[derive(Debug)]
pub struct Symbols {
    all: Vec<Symbol>,
    functions: Vec<Function>,
    by_name: HashMap<String, u64>,
    source: Source,
}

/// A function: its start, its end, and its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction.
    pub start: u64,
    /// The next function's first instruction, or the section's end.
    pub end: u64,
    /// The name; of several, the one that is used most.
    pub name: String,
    /// The other names of the same address.
    pub aliases: Vec<String>,
}

/// A System.map has at least this many symbols: Debian's image packages contain a stub of one line.
const MIN_SYMBOLS: usize = 100;

impl Symbols {
    /// The symbols of an image: those in `map` if it has enough, else the image's own.
    pub fn of(image: &Image, map: Option<&str>) -> Result<Self, Error> {
        if let Some(map) = map.and_then(|map| Self::of_map(image, map).ok()) {
            return Ok(map);
        }
        let table = symtab::read(image);
        if table.len() >= MIN_SYMBOLS {
            return Self::sorted(image, table, Source::SymbolTable);
        }
        Self::sorted(image, kallsyms::find(image).ok_or(Error::NoSymbols)?, Source::Kallsyms)
    }

    /// The symbols of a System.map, or of a saved `/proc/kallsyms`.
    pub fn of_map(image: &Image, map: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::SymbolFile { reason: reason.into() };
        let all = parse_map(map);
        if all.len() < MIN_SYMBOLS {
            return Err(wrong("it has fewer than a hundred lines of address, letter and name"));
        }
        let start = all.iter().find(|symbol| symbol.name == "_stext").map(|symbol| symbol.address);
        if !start.and_then(|start| image.section_at(start)).is_some_and(|section| section.executable) {
            return Err(wrong(
                "its _stext is not where the image has instructions; a kernel that was booted without nokaslr shows \
                 addresses that are not its image's",
            ));
        }
        Self::sorted(image, all, Source::File)
    }

    fn sorted(image: &Image, mut all: Vec<Symbol>, source: Source) -> Result<Self, Error> {
        all.sort_by(|a, b| (a.address, rank(a), &a.name).cmp(&(b.address, rank(b), &b.name)));
        all.dedup();
        let functions = functions(image, &all);
        if functions.is_empty() {
            return Err(Error::NoSymbols);
        }
        // If static functions share a name, the first by address has it, as in kallsyms_lookup_name.
        let mut by_name = HashMap::with_capacity(all.len());
        for symbol in &all {
            by_name.entry(symbol.name.clone()).or_insert(symbol.address);
        }
        Ok(Self { all, functions, by_name, source })
    }

    /// All symbols, by address.
    #[must_use]
    pub fn all(&self) -> &[Symbol] {
        &self.all
    }

    /// Functions, by address; their numbers are indices in this list.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The source of the names.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// The address of a symbol, by name.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// The number of the function that contains an address.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let number = after.checked_sub(1)?;
        (address < self.functions[number].end).then_some(number)
    }

    /// The number of the function that starts at an address.
    #[must_use]
    pub fn function_starting(&self, address: u64) -> Option<usize> {
        self.functions.binary_search_by_key(&address, |function| function.start).ok()
    }

    /// A symbol, and the distance to the next one.
    #[must_use]
    pub fn object(&self, index: usize) -> (&Symbol, u64) {
        let symbol = &self.all[index];
        let next = self.all.partition_point(|other| other.address <= symbol.address);
        (symbol, self.all.get(next).map_or(0, |next| next.address - symbol.address))
    }
}

/// Global names before local ones, weak ones last: `__x64_sys_open` rather than an alias of a missing call.
fn rank(symbol: &Symbol) -> u8 {
    match symbol.kind {
        b'T' | b'D' | b'R' | b'B' => 0,
        b'W' | b'w' | b'V' | b'v' => 2,
        _ => 1,
    }
}

fn functions(image: &Image, all: &[Symbol]) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    // __pfx_NAME is the padding before a function (CONFIG_PREFIX_SYMBOLS).
    let text = all.iter().filter(|symbol| symbol.is_text());
    for symbol in text {
        let Some(section) = image.section_at(symbol.address).filter(|section| section.executable) else { continue };
        let end = section.address + section.size;
        if let Some(last) = functions.last_mut() {
            if last.start == symbol.address {
                last.aliases.push(symbol.name.clone());
                continue;
            }
            last.end = last.end.min(symbol.address);
        }
        functions.push(Function { start: symbol.address, end, name: symbol.name.clone(), aliases: Vec::new() });
    }
    functions.retain(|function| !function.name.starts_with("__pfx_"));
    functions
}

/// Parses lines of a System.map or of `/proc/kallsyms`: address, letter, name, and for a module's symbol the module.
fn parse_map(text: &str) -> Vec<Symbol> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let kind = *words.next()?.as_bytes().first()?;
        let name = words.next()?.to_string();
        // A fourth word names the module.
        words.next().is_none().then_some(Symbol { address, kind, name })
    });
    lines.collect()
}
