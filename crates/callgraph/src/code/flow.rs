//! Follows values through a function: from its parameters, whose types BTF gives, through fields of structures to calls.
//!
//! Only the types of memory are known, not its content. A call whose target cannot be found is counted as unknown.

use std::collections::BTreeMap;

use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

use super::{
    Body, Reader, Slot, Target,
    blocks::Blocks,
    branch,
    state::{PARAMETERS, State, Value},
};
use crate::btf::{Field, Id};

/// The address range of the kernel's image; modules follow (Documentation/arch/x86/x86_64/mm.rst).
const KERNEL: std::ops::Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;

/// Finds the effects of a function: its blocks are followed until their states no longer change.
pub(super) fn follow(reader: &Reader<'_>, number: usize, instructions: &[Instruction]) -> Body {
    let mut follower = Follower {
        reader,
        number,
        objects: BTreeMap::new(),
        body: Body::default(),
        factory: InstructionInfoFactory::new(),
    };
    let blocks = Blocks::of(reader, number, instructions);
    let mut states = follower.states(&blocks, instructions);
    if !follower.objects.is_empty() {
        // The types of objects on the stack, found at calls, hold from the beginning.
        states = follower.states(&blocks, instructions);
    }
    follower.body = Body::default();
    for (block, state) in blocks.starts.iter().zip(&mut states) {
        // A block without predecessors may be the target of a fixup or a jump table.
        let mut state = state.take().unwrap_or_default();
        for instruction in blocks.instructions(*block, instructions) {
            follower.step(&mut state, instruction, true);
        }
    }
    follower.body
}

pub(super) struct Follower<'r, 'k> {
    pub(super) reader: &'r Reader<'k>,
    number: usize,
    /// Types of objects on the stack, by offset, from calls that take their addresses.
    pub(super) objects: BTreeMap<i32, Id>,
    pub(super) body: Body,
    factory: InstructionInfoFactory,
}

impl Follower<'_, '_> {
    /// The state before each block.
    fn states(&mut self, blocks: &Blocks, instructions: &[Instruction]) -> Vec<Option<State>> {
        let mut states: Vec<Option<State>> = vec![None; blocks.starts.len()];
        states[0] = Some(self.entry());
        let mut waiting = std::collections::BTreeSet::from([0]);
        while let Some(place) = waiting.pop_first() {
            let Some(mut state) = states[place].clone() else { continue };
            for instruction in blocks.instructions(blocks.starts[place], instructions) {
                self.step(&mut state, instruction, false);
            }
            for next in &blocks.next[place] {
                let joined =
                    states[*next].as_ref().map_or_else(|| state.clone(), |known| known.join(&state, self.reader.btf));
                // Joining only removes knowledge, so this ends.
                if states[*next].as_ref() != Some(&joined) {
                    states[*next] = Some(joined);
                    waiting.insert(*next);
                }
            }
        }
        states
    }

    fn entry(&self) -> State {
        let mut state = State::entry();
        for (index, register, kind) in self.parameters(self.number) {
            let own = Value::Of(Slot::Parameter { function: self.function(), index });
            let pointee = kind.zip(self.reader.btf).and_then(|(kind, btf)| btf.pointee(kind).map(|to| (to, btf)));
            let value = match pointee {
                Some((to, btf)) if btf.is_prototype(to) => own,
                Some((to, _)) if to != 0 => Value::Pointer { to, offset: 0 },
                _ if kind.is_none() => own,
                _ => Value::Unknown,
            };
            state.set(register, value);
        }
        state
    }

    /// The registers of a function's parameters, with their types; without a prototype all six.
    fn parameters(&self, number: usize) -> Vec<(u8, Register, Option<Id>)> {
        let typed = self.reader.prototypes[number].zip(self.reader.btf);
        let Some((types, btf)) = typed.and_then(|(id, btf)| Some((btf.prototype(id)?.1, btf))) else {
            return (0..).zip(PARAMETERS).map(|(index, register)| (index, register, None)).collect();
        };
        let mut registers = (0..).zip(PARAMETERS);
        let mut parameters = Vec::new();
        for kind in types {
            // A structure of two words is passed in two registers, a larger one on the stack.
            match btf.size(*kind) {
                0..=8 => parameters.extend(registers.next().map(|(index, register)| (index, register, Some(*kind)))),
                9..=16 => drop(registers.nth(1)),
                _ => {}
            }
        }
        parameters
    }

    fn function(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    /// Applies an instruction to the state; with `told`, its effects are also added to the body.
    fn step(&mut self, state: &mut State, instruction: &Instruction, told: bool) {
        if told {
            self.name(instruction);
        }
        match instruction.mnemonic() {
            Mnemonic::Call => self.call(state, instruction, told),
            Mnemonic::Jmp => self.jump(state, instruction, told),
            Mnemonic::Mov => self.move_(state, instruction, told),
            Mnemonic::Lea => {
                let value = self.address(state, instruction);
                state.set(instruction.op0_register(), value);
            }
            Mnemonic::Add | Mnemonic::Sub
                if has_immediate(instruction) && instruction.op0_kind() == OpKind::Register =>
            {
                let by = instruction.immediate(1).cast_signed();
                let by = if instruction.mnemonic() == Mnemonic::Add { by } else { by.wrapping_neg() };
                let register = instruction.op0_register();
                let value = if register.size() == 8 { state.get(register).moved(by) } else { Value::Unknown };
                state.set(register, value);
            }
            Mnemonic::Xor if is_zeroing(instruction) => state.set(instruction.op0_register(), Value::Constant(0)),
            Mnemonic::Push => self.push(state, instruction),
            Mnemonic::Pop => {
                let top = state.get(Register::RSP);
                let value = if let Value::Stack(offset) = top { state.load(offset) } else { Value::Unknown };
                if instruction.op0_kind() == OpKind::Register {
                    state.set(instruction.op0_register(), value);
                }
                state.set(Register::RSP, top.moved(8));
            }
            Mnemonic::Test | Mnemonic::Cmp | Mnemonic::Nop | Mnemonic::Endbr64 => {}
            _ if branch(instruction).is_some() => {
                if told {
                    self.leave(instruction);
                }
            }
            _ => self.other(state, instruction),
        }
    }

    /// Records data whose address an instruction uses; hooks are recognised by it.
    fn name(&mut self, instruction: &Instruction) {
        for operand in 0..instruction.op_count() {
            let address = match instruction.op_kind(operand) {
                OpKind::Memory if instruction.is_ip_rel_memory_operand() => instruction.ip_rel_memory_address(),
                OpKind::Memory => instruction.memory_displacement64(),
                OpKind::Immediate32to64 | OpKind::Immediate64 | OpKind::Immediate32 => instruction.immediate(operand),
                _ => continue,
            };
            if KERNEL.contains(&address) {
                self.body.named.insert(address);
            }
        }
    }

    fn push(&mut self, state: &mut State, instruction: &Instruction) {
        let value = match instruction.op0_kind() {
            OpKind::Register => state.get(instruction.op0_register()),
            _ => Value::Unknown,
        };
        let top = state.get(Register::RSP).moved(-8);
        state.set(Register::RSP, top);
        if let Value::Stack(offset) = top {
            state.store(offset, 8, value);
        }
    }

    fn move_(&mut self, state: &mut State, instruction: &Instruction, told: bool) {
        let value = match instruction.op1_kind() {
            OpKind::Register if instruction.op1_register().size() == 8 => state.get(instruction.op1_register()),
            OpKind::Memory if instruction.memory_size().size() == 8 => self.load(state, instruction),
            OpKind::Immediate32to64 | OpKind::Immediate64 | OpKind::Immediate32 => {
                Value::Constant(instruction.immediate(1))
            }
            _ => Value::Unknown,
        };
        match instruction.op0_kind() {
            OpKind::Register => {
                // A narrow load into a register leaves no pointer in it.
                let whole = instruction.op0_register().size() >= 4;
                state.set(instruction.op0_register(), if whole { value } else { Value::Unknown });
            }
            OpKind::Memory => self.store(state, instruction, value, told),
            _ => {}
        }
    }

    fn call(&mut self, state: &mut State, instruction: &Instruction, told: bool) {
        let target = branch(instruction).and_then(|address| self.reader.target_at(address));
        let prototype = match target {
            Some(Target::Function(number)) => {
                self.arguments(state, number, told);
                if told {
                    self.body.calls.insert(number);
                }
                self.reader.prototypes[number as usize]
            }
            Some(Target::Static(number)) => {
                if told {
                    self.body.statics.insert(number);
                }
                None
            }
            Some(Target::Thunk(register)) => self.follow(state.get(register), told),
            None if branch(instruction).is_none() => {
                let value = self.operand(state, instruction);
                self.follow(value, told)
            }
            Some(Target::Nothing) | None => None,
        };
        if target == Some(Target::Nothing) {
            return;
        }
        let returned = prototype.zip(self.reader.btf).and_then(|(id, btf)| btf.pointee(btf.prototype(id)?.0));
        state.forget_scratch();
        if let Some(to) = returned.filter(|to| *to != 0) {
            state.set(Register::RAX, Value::Pointer { to, offset: 0 });
        }
    }

    fn operand(&self, state: &State, instruction: &Instruction) -> Value {
        match instruction.op0_kind() {
            OpKind::Register => state.get(instruction.op0_register()),
            OpKind::Memory => self.load(state, instruction),
            _ => Value::Unknown,
        }
    }

    /// A call of the function in a value; returns its prototype, if it is known.
    fn follow(&mut self, value: Value, told: bool) -> Option<Id> {
        match value {
            Value::Of(slot) => {
                if told {
                    self.body.followed.insert(slot);
                    self.body.sites += 1;
                }
                match (slot, self.reader.btf) {
                    (Slot::Member { owner, offset }, Some(btf)) => match btf.field(owner, offset) {
                        Some(Field::Function { prototype, .. }) => Some(prototype),
                        _ => None,
                    },
                    _ => None,
                }
            }
            Value::Constant(address) => {
                let Some(Target::Function(number)) = self.reader.target_at(address) else { return None };
                if told {
                    self.body.calls.insert(number);
                }
                self.reader.prototypes[number as usize]
            }
            _ => {
                if told {
                    self.body.unknown += 1;
                }
                None
            }
        }
    }

    fn jump(&mut self, state: &State, instruction: &Instruction, told: bool) {
        if branch(instruction).is_none() {
            let value = self.operand(state, instruction);
            self.follow(value, told);
            return;
        }
        match branch(instruction).and_then(|address| self.reader.target_at(address)) {
            Some(Target::Thunk(register)) => drop(self.follow(state.get(register), told)),
            Some(Target::Function(number)) if number != self.function() => self.arguments(state, number, told),
            _ => {}
        }
        if told {
            self.leave(instruction);
        }
    }

    /// A jump out of the function is a call that does not return, or continues in the function's cold part.
    fn leave(&mut self, instruction: &Instruction) {
        match branch(instruction).and_then(|address| self.reader.target_at(address)) {
            Some(Target::Function(number)) if number != self.function() => {
                let functions = self.reader.symbols.functions();
                let part = |name: &str| name.ends_with(".cold") || name.contains(".cold.");
                let (name, own) = (&functions[number as usize].name, &functions[self.number].name);
                let into = if part(name) || part(own) { &mut self.body.parts } else { &mut self.body.calls };
                into.insert(number);
            }
            Some(Target::Static(number)) => drop(self.body.statics.insert(number)),
            _ => {}
        }
    }

    /// The arguments of a call: functions into parameters, and the types of objects.
    fn arguments(&mut self, state: &State, number: u32, told: bool) {
        let btf = self.reader.btf;
        for (index, register, kind) in self.parameters(number as usize) {
            let value = state.get(register);
            let to = kind.zip(btf).and_then(|(kind, btf)| btf.pointee(kind));
            let compound = to.zip(btf).filter(|(to, btf)| btf.is_compound(*to));
            match (value, compound) {
                (Value::Stack(offset), Some((to, _))) => {
                    self.objects.entry(offset).or_insert(to);
                }
                (Value::Constant(address), Some((to, btf))) if told && address != 0 => {
                    self.body.typed.push((address, btf.canonical(to)));
                }
                (Value::Constant(_) | Value::Of(_), None) if told => {
                    self.put(Slot::Parameter { function: number, index }, value);
                }
                _ => {}
            }
        }
    }

    /// Any other instruction: its result is unknown.
    fn other(&mut self, state: &mut State, instruction: &Instruction) {
        let conditional = matches!(instruction.code(), Code::Cmove_r64_rm64 | Code::Cmovne_r64_rm64);
        if conditional && instruction.op1_kind() == OpKind::Register {
            let (first, second) = (state.get(instruction.op0_register()), state.get(instruction.op1_register()));
            let value = match (first, second) {
                _ if first == second => first,
                (Value::Constant(0), known) | (known, Value::Constant(0)) => known,
                _ => Value::Unknown,
            };
            return state.set(instruction.op0_register(), value);
        }
        let info = self.factory.info(instruction);
        for used in info.used_registers() {
            let written = matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            );
            if written && used.register().is_gpr() {
                state.set(used.register(), Value::Unknown);
            }
        }
    }
}

fn has_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32
            | OpKind::Immediate32to64
    )
}

fn is_zeroing(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register()
}
