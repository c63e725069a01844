//! Loads and stores: fields of structures, the stack, variables.

use iced_x86::{Instruction, Register};

use super::{
    Slot, Stored,
    flow::Follower,
    state::{State, Value},
};
use crate::btf::Field;

impl Follower<'_, '_> {
    /// A pointer to the target of a memory operand, without the index, because all elements of an array share a place.
    pub(super) fn address(&self, state: &State, instruction: &Instruction) -> Value {
        if instruction.is_ip_rel_memory_operand() {
            return Value::Constant(instruction.ip_rel_memory_address());
        }
        let displacement = instruction.memory_displacement64().cast_signed();
        match instruction.memory_base() {
            Register::None if instruction.memory_index() == Register::None => {
                Value::Constant(instruction.memory_displacement64())
            }
            Register::None => Value::Unknown,
            base => {
                let value = state.get(base).moved(displacement);
                let plain = instruction.memory_index() == Register::None;
                if plain || matches!(value, Value::Pointer { .. }) { value } else { Value::Unknown }
            }
        }
    }

    pub(super) fn load(&self, state: &State, instruction: &Instruction) -> Value {
        let btf = self.reader.btf;
        if matches!(instruction.segment_prefix(), Register::GS) {
            let address = if instruction.is_ip_rel_memory_operand() {
                instruction.ip_rel_memory_address()
            } else {
                instruction.memory_displacement64()
            };
            let plain = instruction.memory_base() == Register::None || instruction.is_ip_rel_memory_operand();
            let found = self.reader.percpu_field(address).filter(|_| plain);
            return found.zip(btf).map_or(Value::Unknown, |((kind, offset), btf)| value_of(btf.field(kind, offset)));
        }
        if instruction.memory_base() == Register::None && instruction.memory_index_scale() == 8 {
            let address = instruction.memory_displacement64();
            let slot = if instruction.memory_index() == Register::None { Slot::Variable } else { Slot::Array };
            return self.variable(address, slot);
        }
        match self.address(state, instruction) {
            Value::Pointer { to, offset } => {
                let offset = u32::try_from(offset).ok();
                offset.zip(btf).map_or(Value::Unknown, |(offset, btf)| value_of(btf.field(to, offset)))
            }
            Value::Constant(address) if address != 0 => self.variable(address, Slot::Variable),
            Value::Stack(offset) if instruction.memory_index() == Register::None => match state.load(offset) {
                Value::Unknown => self.object_field(offset),
                known => known,
            },
            _ => Value::Unknown,
        }
    }

    fn variable(&self, address: u64, slot: fn(u64) -> Slot) -> Value {
        match self.reader.variables.get(&address) {
            Some(Some((to, offset))) => Value::Pointer { to: *to, offset: *offset },
            _ => Value::Of(slot(address)),
        }
    }

    /// The content of an object on the stack.
    fn object_field(&self, offset: i32) -> Value {
        let Some(btf) = self.reader.btf else { return Value::Unknown };
        let mut before = self.objects.range(..=offset).rev();
        let found = before.find_map(|(start, kind)| {
            let inner = offset.checked_sub(*start).and_then(|inner| u32::try_from(inner).ok())?;
            (inner < btf.size(*kind)).then(|| value_of(btf.field(*kind, inner)))
        });
        found.unwrap_or_default()
    }

    pub(super) fn store(&mut self, state: &mut State, instruction: &Instruction, value: Value, told: bool) {
        let size = i32::try_from(instruction.memory_size().size()).unwrap_or(8);
        let indexed = instruction.memory_base() == Register::None && instruction.memory_index_scale() == 8;
        let to = if indexed {
            Value::Constant(instruction.memory_displacement64())
        } else {
            self.address(state, instruction)
        };
        if let Value::Stack(offset) = to {
            state.store(offset, size, value);
        }
        if !told || size != 8 {
            return;
        }
        let Some(btf) = self.reader.btf else { return };
        let field = match to {
            Value::Pointer { to, offset } => u32::try_from(offset).ok().and_then(|offset| btf.field(to, offset)),
            Value::Stack(offset) => {
                let object = self.objects.range(..=offset).next_back();
                object.and_then(|(start, kind)| btf.field(*kind, u32::try_from(offset.checked_sub(*start)?).ok()?))
            }
            Value::Constant(address) => {
                self.put(if indexed { Slot::Array } else { Slot::Variable }(address), value);
                if let Value::Pointer { to, offset } = value {
                    self.body.variables.push((address, (to, offset)));
                }
                None
            }
            _ => None,
        };
        match (field, value) {
            (Some(Field::Function { owner, offset, .. }), _) => self.put(Slot::Member { owner, offset }, value),
            (Some(Field::Pointer(to)), Value::Constant(address)) if btf.is_compound(to) => {
                self.body.typed.push((address, btf.canonical(to)));
            }
            _ => {}
        }
    }

    pub(super) fn put(&mut self, slot: Slot, value: Value) {
        let stored = match value {
            Value::Of(other) => Some(Stored::Of(other)).filter(|_| other != slot),
            Value::Constant(address) => {
                let function = self.reader.symbols.function_starting(address);
                function.and_then(|number| u32::try_from(number).ok()).map(Stored::Function)
            }
            _ => None,
        };
        self.body.stores.extend(stored.map(|stored| (slot, stored)));
    }
}

/// The value of a field.
fn value_of(field: Option<Field>) -> Value {
    match field {
        Some(Field::Pointer(to)) if to != 0 => Value::Pointer { to, offset: 0 },
        Some(Field::Function { owner, offset, .. }) => Value::Of(Slot::Member { owner, offset }),
        _ => Value::Unknown,
    }
}
