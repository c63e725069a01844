//! The known content of registers and stack at a point of a function.

use iced_x86::Register;

use super::Slot;
use crate::btf::{Btf, Id};

/// A value, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Value {
    #[default]
    Unknown,
    /// A pointer into an object of a type, at this offset in bytes.
    Pointer { to: Id, offset: i32 },
    /// The content of a slot.
    Of(Slot),
    /// A number, most often an address.
    Constant(u64),
    /// An address on the function's stack, relative to the stack pointer at its entry.
    Stack(i32),
}

impl Value {
    /// The value plus a number of bytes.
    pub(super) fn moved(self, by: i64) -> Self {
        let moved = |offset: i32| i32::try_from(by).ok().and_then(|by| offset.checked_add(by));
        match self {
            Self::Pointer { to, offset } => moved(offset).map_or(Self::Unknown, |offset| Self::Pointer { to, offset }),
            Self::Stack(offset) => moved(offset).map_or(Self::Unknown, Self::Stack),
            Self::Constant(address) => Self::Constant(address.wrapping_add_signed(by)),
            _ if by == 0 => self,
            _ => Self::Unknown,
        }
    }

    /// The common knowledge where two paths meet. A null pointer on one path does not contradict the other. Of a list's
    /// element and the list's next pointer, both are elements.
    fn join(self, other: Self, btf: Option<&Btf>) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Constant(0), known @ (Self::Pointer { .. } | Self::Of(_)))
            | (known @ (Self::Pointer { .. } | Self::Of(_)), Self::Constant(0)) => known,
            (element @ Self::Pointer { to, offset }, Self::Pointer { to: node, offset: 0 })
            | (Self::Pointer { to: node, offset: 0 }, element @ Self::Pointer { to, offset })
                if btf.is_some_and(|btf| btf.is_node(to, offset, node)) =>
            {
                element
            }
            _ => Self::Unknown,
        }
    }
}

/// How many words of the stack are followed.
const WORDS: usize = 64;

/// Registers and words of the stack whose content is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    registers: [Value; 16],
    /// By offset.
    stack: Vec<(i32, Value)>,
}

/// The registers of the first six parameters.
pub(super) const PARAMETERS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];

/// Registers that a called function may change.
const SCRATCH: [Register; 9] = [
    Register::RAX,
    Register::RDI,
    Register::RSI,
    Register::RDX,
    Register::RCX,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

impl State {
    /// The state at the first instruction.
    pub(super) fn entry() -> Self {
        let mut state = Self::default();
        state.set(Register::RSP, Value::Stack(0));
        state
    }

    pub(super) fn get(&self, register: Register) -> Value {
        index(register).map_or(Value::Unknown, |index| self.registers[index])
    }

    pub(super) fn set(&mut self, register: Register, value: Value) {
        if let Some(index) = index(register) {
            self.registers[index] = value;
        }
    }

    pub(super) fn load(&self, offset: i32) -> Value {
        let found = self.stack.binary_search_by_key(&offset, |(at, _)| *at);
        found.map_or(Value::Unknown, |index| self.stack[index].1)
    }

    /// A store of this many bytes, after which every word that it touches is unknown.
    pub(super) fn store(&mut self, offset: i32, size: i32, value: Value) {
        self.stack.retain(|(at, _)| at.saturating_add(8) <= offset || *at >= offset.saturating_add(size));
        if size == 8 && value != Value::Unknown && self.stack.len() < WORDS {
            let index = self.stack.partition_point(|(at, _)| *at < offset);
            self.stack.insert(index, (offset, value));
        }
    }

    pub(super) fn forget_scratch(&mut self) {
        for register in SCRATCH {
            self.set(register, Value::Unknown);
        }
    }

    /// The common knowledge of both states.
    pub(super) fn join(&self, other: &Self, btf: Option<&Btf>) -> Self {
        let registers = std::array::from_fn(|index| self.registers[index].join(other.registers[index], btf));
        let stack = self.stack.iter().map(|(at, value)| (*at, value.join(other.load(*at), btf)));
        Self { registers, stack: stack.filter(|(_, value)| *value != Value::Unknown).collect() }
    }
}

fn index(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr64()).then(|| full.number())
}
