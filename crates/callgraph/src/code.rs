//! The effects of a function's instructions: which functions they call, and which pointers to functions they follow and
//! store.

mod blocks;
mod flow;
mod memory;
mod state;

use std::collections::{BTreeSet, HashMap};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use crate::{
    Image,
    btf::{Btf, Id},
    symbols::{Function, Symbols},
};

/// A function's number: its index in [`Symbols::functions`].
pub(crate) type Number = u32;

/// A place that holds a pointer to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// A member of every object of a structure.
    Member { owner: Id, offset: u32 },
    /// A parameter of a function, from 0.
    Parameter { function: Number, index: u8 },
    /// A variable.
    Variable(u64),
    /// An array of pointers.
    Array(u64),
}

/// A value that is stored into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Stored {
    Function(Number),
    /// The content of another slot.
    Of(Slot),
}

/// A pointer into an object of a type, at this offset in bytes.
pub(crate) type Pointed = (Id, i32);

/// The effects of one function.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// Functions that it calls, or jumps to at its end.
    pub(crate) calls: BTreeSet<Number>,
    /// Parts of it that the compiler has moved elsewhere (`NAME.cold`).
    pub(crate) parts: BTreeSet<Number>,
    /// Slots whose pointers it follows.
    pub(crate) followed: BTreeSet<Slot>,
    /// The number of calls through these slots.
    pub(crate) sites: u32,
    /// The number of calls through unknown pointers.
    pub(crate) unknown: u32,
    /// Trampolines of static calls, which the running kernel patches.
    pub(crate) statics: BTreeSet<Number>,
    /// Its stores into slots.
    pub(crate) stores: Vec<(Slot, Stored)>,
    /// Objects whose addresses it uses as those of this structure.
    pub(crate) typed: Vec<(u64, Id)>,
    /// The types of pointers that it stores into variables.
    pub(crate) variables: Vec<(u64, Pointed)>,
    /// Addresses of data that it uses.
    pub(crate) named: BTreeSet<u64>,
}

/// The longest function, in bytes; the longest of Debian's kernels has 60 kB.
const MAX_FUNCTION_SIZE: usize = 1 << 20;

/// The target of a call, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Function(Number),
    /// A thunk that jumps to the address in a register.
    Thunk(Register),
    /// The trampoline of a static call.
    Static(Number),
    /// A function that is patched away or only returns: `__fentry__`, the return thunk.
    Nothing,
}

/// The data for reading functions; the same for all.
pub(crate) struct Reader<'k> {
    pub(crate) image: &'k Image,
    pub(crate) symbols: &'k Symbols,
    pub(crate) btf: Option<&'k Btf>,
    /// The prototype of each function, if it is known.
    pub(crate) prototypes: Vec<Option<Id>>,
    /// Possible targets of jump labels, by the labels' addresses.
    labels: HashMap<u64, u64>,
    targets: Vec<Target>,
    percpu: Option<u64>,
    /// The types to which variables point, according to stores; none if they differ.
    variables: HashMap<u64, Option<Pointed>>,
}

impl<'k> Reader<'k> {
    pub(crate) fn new(image: &'k Image, symbols: &'k Symbols, btf: Option<&'k Btf>) -> Self {
        let functions = symbols.functions();
        let prototypes = functions.iter().map(|function| btf?.function(&function.name)).collect();
        let targets = (0..).zip(functions).map(|(number, function)| target(number, function)).collect();
        let percpu = image.section(".data..percpu").map(|section| section.address);
        Self {
            image,
            symbols,
            btf,
            prototypes,
            labels: jump_labels(image, symbols),
            targets,
            percpu,
            variables: HashMap::new(),
        }
    }

    /// Reads all functions.
    pub(crate) fn all(&self) -> Vec<Body> {
        self.read(&|_| true).into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Reads again those functions that use a variable whose content is now known: a function stores a pointer of a known
    /// type into it, or it points to an object of a known structure.
    pub(crate) fn again(&mut self, bodies: &mut [Body], kinds: &HashMap<u64, Id>) {
        let named = bodies.iter().flat_map(|body| &body.named);
        let pointing = named.filter_map(|address| {
            let kind = kinds.get(&self.image.word_at(*address)?)?;
            Some((*address, (*kind, 0)))
        });
        let mut variables: HashMap<u64, Option<Pointed>> = HashMap::new();
        for (address, pointed) in pointing.chain(bodies.iter().flat_map(|body| body.variables.iter().copied())) {
            let known = variables.entry(address).or_insert(Some(pointed));
            if *known != Some(pointed) {
                *known = None;
            }
        }
        self.variables = variables;
        let found = |address: &u64| matches!(self.variables.get(address), Some(Some(_)));
        let again = self.read(&|number| bodies[number].named.iter().any(found));
        for (body, again) in bodies.iter_mut().zip(again) {
            if let Some(again) = again {
                *body = again;
            }
        }
    }

    /// Reads the wanted functions, with as many threads as there are processors.
    fn read(&self, wanted: &(dyn Fn(usize) -> bool + Sync)) -> Vec<Option<Body>> {
        let count = self.symbols.functions().len();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // Work is dealt in small pieces, because large functions lie together.
        let body = |number: usize| wanted(number).then(|| self.body(number));
        let share = |first: usize| (first..count).step_by(threads).map(body).collect::<Vec<_>>();
        let mut shares: Vec<std::vec::IntoIter<Option<Body>>> = std::thread::scope(|scope| {
            let share = &share;
            let others: Vec<_> = (1..threads).map(|first| scope.spawn(move || share(first))).collect();
            let mut shares = vec![share(0)];
            shares.extend(others.into_iter().map(|other| match other.join() {
                Ok(share) => share,
                Err(panic) => std::panic::resume_unwind(panic),
            }));
            shares.into_iter().map(Vec::into_iter).collect()
        });
        (0..count).filter_map(|number| shares[number % threads].next()).collect()
    }

    fn body(&self, number: usize) -> Body {
        let function = &self.symbols.functions()[number];
        if !matches!(self.targets[number], Target::Function(_)) {
            return Body::default();
        }
        let bytes = self.image.bytes_at(function.start).unwrap_or_default();
        let size = usize::try_from(function.end - function.start).unwrap_or(usize::MAX).min(bytes.len());
        let size = size.min(MAX_FUNCTION_SIZE);
        let decoder = Decoder::with_ip(64, &bytes[..size], function.start, DecoderOptions::NONE);
        let instructions: Vec<Instruction> = decoder.into_iter().collect();
        flow::follow(self, number, &instructions)
    }

    /// The meaning of a call or jump to an address.
    fn target_at(&self, address: u64) -> Option<Target> {
        self.symbols.function_at(address).map(|number| self.targets[number])
    }

    /// The type at an address of per-CPU data, and the offset within it.
    fn percpu_field(&self, address: u64) -> Option<(Id, u32)> {
        let offset = u32::try_from(address.checked_sub(self.percpu?)?).ok()?;
        self.btf?.variable(".data..percpu", offset)
    }
}

fn target(number: Number, function: &Function) -> Target {
    // The first thunk is also __x86_indirect_thunk_array, and a return thunk may have several names.
    let mut names = std::iter::once(&function.name).chain(&function.aliases);
    let special = names.find_map(|name| match name.as_str() {
        _ if name.starts_with("__SCT__") => Some(Target::Static(number)),
        // The thunk is __x86_indirect_thunk_rax, since 6.2 also __x86_indirect_call_thunk_rax, since 6.12
        // __x86_indirect_its_thunk_rax.
        _ if name.starts_with("__x86_indirect_") => name.rsplit('_').next().and_then(register).map(Target::Thunk),
        _ if name.ends_with("_return_thunk") || name == "__fentry__" => Some(Target::Nothing),
        _ => None,
    });
    special.unwrap_or(Target::Function(number))
}

fn register(name: &str) -> Option<Register> {
    const NAMES: [(&str, Register); 15] = [
        ("rax", Register::RAX),
        ("rbx", Register::RBX),
        ("rcx", Register::RCX),
        ("rdx", Register::RDX),
        ("rsi", Register::RSI),
        ("rdi", Register::RDI),
        ("rbp", Register::RBP),
        ("r8", Register::R8),
        ("r9", Register::R9),
        ("r10", Register::R10),
        ("r11", Register::R11),
        ("r12", Register::R12),
        ("r13", Register::R13),
        ("r14", Register::R14),
        ("r15", Register::R15),
    ];
    NAMES.iter().find(|(text, _)| *text == name).map(|(_, register)| *register)
}

/// Reads `__jump_table` (arch_static_branch): pairs of offsets relative to their own places, and a key.
fn jump_labels(image: &Image, symbols: &Symbols) -> HashMap<u64, u64> {
    let bounds = symbols.address("__start___jump_table").zip(symbols.address("__stop___jump_table"));
    let Some((start, stop)) = bounds else { return HashMap::new() };
    let bytes = image.bytes_at(start).unwrap_or_default();
    let size = usize::try_from(stop.saturating_sub(start)).unwrap_or(0).min(bytes.len());
    let entries = (0..).step_by(16).zip(bytes[..size].chunks_exact(16)).map(|(inner, entry)| (start + inner, entry));
    let place = |at: u64, bytes: &[u8]| {
        let offset = bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        at.wrapping_add_signed(i64::from(offset))
    };
    entries.map(|(at, entry)| (place(at, entry), place(at + 4, &entry[4..]))).collect()
}

/// The target of an instruction's direct branch.
fn branch(instruction: &Instruction) -> Option<u64> {
    let direct = matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32);
    direct.then(|| instruction.near_branch_target())
}

/// Whether control never continues behind an instruction.
fn ends(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    ) || matches!(instruction.mnemonic(), Mnemonic::Ud2 | Mnemonic::Int3 | Mnemonic::INVALID)
}
