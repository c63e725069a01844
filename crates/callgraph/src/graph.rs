//! The call graph: functions, the edges between them, and what the image does not show.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::{
    Error, Image,
    btf::Btf,
    code::{Body, Number, Reader, Slot, Stored},
    hooks::{self, Hooks},
    symbols::{Source, Symbols},
    tables::{self, Tables},
};

/// The kind of an edge from one function to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// To a part of the same function.
    Part,
    /// A call, or a jump at the end.
    Call,
    /// Through a pointer in a slot.
    Pointer(Slot),
}

/// The call graph of a kernel.
#[derive(Debug)]
pub struct Graph {
    pub(crate) names: Vec<String>,
    pub(crate) edges: Vec<Vec<(Number, Way)>>,
    /// The number of calls with unknown targets, per function.
    pub(crate) unknown: Vec<u32>,
    pub(crate) hooks: Hooks,
    /// Entry points of system calls, by name.
    pub(crate) syscalls: BTreeMap<String, Number>,
    by_name: HashMap<String, Number>,
    slots: HashMap<Slot, String>,
    figures: Figures,
}

/// The size of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// The source of the names.
    pub symbols: Source,
    /// Whether the image has types (BTF); without them pointers are not followed.
    pub types: bool,
    /// The number of functions.
    pub functions: usize,
    /// Edges by direct calls and jumps.
    pub direct: usize,
    /// Calls through pointers in a known slot.
    pub followed: usize,
    /// The number of these calls without a target, because no object of the image holds a function there.
    pub empty: usize,
    /// Calls through unknown pointers.
    pub unknown: usize,
    /// Edges through pointers.
    pub indirect: usize,
    /// Objects in the image with pointers to functions.
    pub objects: usize,
    /// The objects among them whose structure is known.
    pub objects_typed: usize,
}

const ENTRY: &str = "__x64_sys_";

impl Graph {
    /// Reads an image's code.
    pub fn of(image: &Image, symbols: &Symbols) -> Result<Self, Error> {
        let btf = image.section(".BTF").and_then(|section| Btf::parse(image.bytes_of(section)));
        let mut reader = Reader::new(image, symbols, btf.as_ref());
        let mut bodies = reader.all();
        let tables = tables::find(&reader, &bodies);
        reader.again(&mut bodies, &tables.kinds);
        let hooks = hooks::find(&reader, &bodies);
        if hooks.functions.is_empty() {
            return Err(Error::NoHooks);
        }
        Ok(Self::join(&reader, &bodies, tables, hooks))
    }

    fn join(reader: &Reader<'_>, bodies: &[Body], tables: Tables, hooks: Hooks) -> Self {
        let symbols = reader.symbols;
        let mut figures = Figures {
            symbols: symbols.source(),
            types: reader.btf.is_some(),
            functions: symbols.functions().len(),
            direct: 0,
            followed: 0,
            empty: 0,
            unknown: 0,
            indirect: 0,
            objects: tables.objects,
            objects_typed: tables.typed,
        };
        let held = held(reader, bodies, tables);
        let edges = (0..).zip(bodies).map(|(number, body)| {
            let mut edges: BTreeSet<(Number, Way)> = body.calls.iter().map(|to| (*to, Way::Call)).collect();
            edges.extend(body.parts.iter().map(|to| (*to, Way::Part)));
            figures.direct += edges.len();
            figures.followed += body.sites as usize;
            figures.unknown += body.unknown as usize;
            // Functions that a hook calls through pointers belong to modules.
            if !hooks.functions.contains_key(&number) {
                for slot in &body.followed {
                    let targets = held.get(slot);
                    figures.empty += usize::from(targets.is_none());
                    let pointed = targets.into_iter().flatten().map(|to| (*to, Way::Pointer(*slot)));
                    edges.extend(pointed.inspect(|_| figures.indirect += 1));
                }
            }
            edges.into_iter().collect::<Vec<_>>()
        });
        let edges: Vec<Vec<_>> = edges.collect();
        let names: Vec<String> = symbols.functions().iter().map(|function| function.name.clone()).collect();
        let slots = bodies.iter().flat_map(|body| &body.followed).map(|slot| (*slot, describe(*slot, reader)));
        let slots = slots.collect();
        let mut by_name = HashMap::new();
        for (number, function) in (0..).zip(symbols.functions()) {
            for name in std::iter::once(&function.name).chain(&function.aliases) {
                by_name.entry(name.clone()).or_insert(number);
            }
        }
        Self {
            syscalls: syscalls(symbols),
            unknown: bodies.iter().map(|body| body.unknown).collect(),
            names,
            edges,
            hooks,
            by_name,
            slots,
            figures,
        }
    }

    /// The size of the graph.
    #[must_use]
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// All hooks for which modules can register.
    #[must_use]
    pub fn hooks(&self) -> &BTreeSet<String> {
        &self.hooks.all
    }

    /// The framework's functions, without `security_`, each with the hooks that it calls.
    pub fn hook_functions(&self) -> impl Iterator<Item = (&str, &BTreeSet<String>)> {
        self.hooks.functions.iter().map(|(number, asked)| (self.hook_name(*number), asked))
    }

    /// The names of its system calls.
    pub fn syscalls(&self) -> impl Iterator<Item = &str> {
        self.syscalls.keys().map(String::as_str)
    }

    pub(crate) fn hook_name(&self, number: Number) -> &str {
        let name = &self.names[number as usize];
        name.strip_prefix("security_").unwrap_or(name)
    }

    pub(crate) fn function(&self, name: &str) -> Option<Number> {
        self.by_name.get(name).copied()
    }

    /// A slot in words: `file_operations.open`.
    pub(crate) fn slot(&self, slot: Slot) -> &str {
        self.slots.get(&slot).map_or("a pointer", String::as_str)
    }
}

/// The system calls of this kernel; one that it does not have is `sys_ni_syscall` under another name.
fn syscalls(symbols: &Symbols) -> BTreeMap<String, Number> {
    let absent = ["sys_ni_syscall", "__x64_sys_ni_syscall"].map(|name| symbols.address(name));
    let mut syscalls = BTreeMap::new();
    for (number, function) in (0..).zip(symbols.functions()) {
        if absent.contains(&Some(function.start)) {
            continue;
        }
        for name in std::iter::once(&function.name).chain(&function.aliases) {
            if let Some(name) = name.strip_prefix(ENTRY) {
                syscalls.insert(name.to_string(), number);
            }
        }
    }
    syscalls
}

fn describe(slot: Slot, reader: &Reader<'_>) -> String {
    let at = |address: u64| {
        let all = reader.symbols.all();
        let index = all.partition_point(|symbol| symbol.address <= address).checked_sub(1);
        index.map_or_else(|| format!("{address:#x}"), |index| all[index].name.clone())
    };
    match slot {
        Slot::Member { owner, offset } => {
            let name = reader.btf.map_or("", |btf| btf.name(owner));
            let member = reader.btf.and_then(|btf| btf.member_name(owner, offset));
            format!("{name}.{}", member.unwrap_or_else(|| format!("+{offset}")))
        }
        Slot::Parameter { function, index } => {
            format!("parameter {} of {}", index + 1, reader.symbols.functions()[function as usize].name)
        }
        Slot::Variable(address) | Slot::Array(address) => at(address),
    }
}

/// The functions that each slot can hold: from tables, from stores, and from other slots until nothing is added.
fn held(reader: &Reader<'_>, bodies: &[Body], tables: Tables) -> BTreeMap<Slot, BTreeSet<Number>> {
    let mut held = tables.held;
    let mut flows: BTreeSet<(Slot, Slot)> = BTreeSet::new();
    for (slot, stored) in bodies.iter().flat_map(|body| &body.stores) {
        match stored {
            Stored::Function(number) => drop(held.entry(*slot).or_default().insert(*number)),
            Stored::Of(other) => drop(flows.insert((*slot, *other))),
        }
    }
    let named = bodies.iter().flat_map(|body| &body.followed).chain(flows.iter().map(|(_, from)| from));
    for slot in named.copied().collect::<BTreeSet<_>>() {
        let found = in_image(reader, slot);
        if !found.is_empty() {
            held.entry(slot).or_default().extend(found);
        }
    }
    loop {
        let mut grown = false;
        for (to, from) in &flows {
            let Some(more) = held.get(from).cloned() else { continue };
            let known = held.entry(*to).or_default();
            let before = known.len();
            known.extend(more);
            grown |= known.len() > before;
        }
        if !grown {
            return held;
        }
    }
}

/// The content of a variable, or of an array of pointers, when the kernel starts.
fn in_image(reader: &Reader<'_>, slot: Slot) -> Vec<Number> {
    let function = |address: u64| {
        let word = reader.image.word_at(address)?;
        reader.symbols.function_starting(word).and_then(|number| u32::try_from(number).ok())
    };
    match slot {
        Slot::Variable(address) => function(address).into_iter().collect(),
        Slot::Array(address) => {
            let all = reader.symbols.all();
            let next = all.get(all.partition_point(|symbol| symbol.address <= address));
            let end = next.map_or(address, |next| next.address).min(address.saturating_add(1 << 16));
            (address..end).step_by(8).filter_map(function).collect()
        }
        _ => Vec::new(),
    }
}
