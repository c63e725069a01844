//! The types in a kernel's image: BTF (Documentation/bpf/btf.rst), as far as a call graph needs them.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

/// A type's number; 0 is void.
pub(crate) type Id = u32;

const MAGIC: u16 = 0xeb9f;
/// The greatest depth of modifiers and nested structures; no kernel has deeper ones.
const MAX_DEPTH: u32 = 24;
/// The most members that are searched for one offset of an object; the largest structures have some hundreds.
const MAX_MEMBERS: u32 = 4096;

/// A type.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Type {
    Void,
    Number {
        size: u32,
    },
    Pointer(Id),
    Array {
        element: Id,
        count: u32,
    },
    Compound {
        name: u32,
        size: u32,
        members: (u32, u32),
        union: bool,
    },
    /// A typedef, const, volatile, restrict or type tag.
    Alias(Id),
    /// A type that this kernel declares and does not define.
    Declared {
        name: u32,
    },
    Prototype {
        returns: Id,
        parameters: (u32, u32),
    },
    Other,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    name: u32,
    kind: Id,
    /// Its offset in bits; none for a bit field.
    bits: Option<u32>,
}

/// The content of eight bytes at an offset of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// A pointer to this type.
    Pointer(Id),
    /// A pointer to a function: the structure that has it, the offset there, and the prototype.
    Function { owner: Id, offset: u32, prototype: Id },
}

/// All types of a kernel.
#[derive(Debug)]
pub(crate) struct Btf {
    types: Vec<Type>,
    members: Vec<Member>,
    parameters: Vec<Id>,
    strings: Vec<u8>,
    /// Prototypes of functions, by name.
    functions: HashMap<Box<str>, Id>,
    /// Variables by section name: offset and type.
    variables: Vec<(String, Vec<(u32, Id)>)>,
    /// The first of all compounds with the same name and size.
    canonical: HashMap<(u32, u32, bool), Id>,
}

/// Reads little-endian numbers; `None` at the end.
struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }
}

impl Btf {
    /// Parses `.BTF`; `None` if it is damaged.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if u16::from_le_bytes(*bytes.first_chunk()?) != MAGIC {
            return None;
        }
        let mut header = Reader(bytes.get(4..)?);
        let [length, types, types_length, strings, strings_length] = std::array::from_fn(|_| header.u32());
        let part = |offset: u32, size: u32| {
            let start = (length? as usize).checked_add(offset as usize)?;
            bytes.get(start..start.checked_add(size as usize)?)
        };
        let mut btf = Self {
            types: vec![Type::Void],
            members: Vec::new(),
            parameters: Vec::new(),
            strings: part(strings?, strings_length?)?.to_vec(),
            functions: HashMap::new(),
            variables: Vec::new(),
            canonical: HashMap::new(),
        };
        let mut reader = Reader(part(types?, types_length?)?);
        let mut variables = HashMap::new();
        while !reader.0.is_empty() {
            let kind = btf.read(&mut reader, &mut variables)?;
            btf.types.push(kind);
        }
        Some(btf)
    }

    fn read(&mut self, reader: &mut Reader<'_>, variables: &mut HashMap<Id, Id>) -> Option<Type> {
        let (name, info, size) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let (kind, count, flag) = (info >> 24 & 0x1f, info & 0xffff, info >> 31 != 0);
        let id = u32::try_from(self.types.len()).ok()?;
        Some(match kind {
            1 => {
                reader.u32()?;
                Type::Number { size }
            }
            2 => Type::Pointer(size),
            3 => {
                let (element, _index, count) = (reader.u32()?, reader.u32()?, reader.u32()?);
                Type::Array { element, count }
            }
            4 | 5 => {
                let start = u32::try_from(self.members.len()).ok()?;
                for _ in 0..count {
                    let (name, kind, offset) = (reader.u32()?, reader.u32()?, reader.u32()?);
                    // With the flag, the upper eight bits are the width of a bit field.
                    let bits = if flag { (offset >> 24 == 0).then_some(offset & 0xff_ffff) } else { Some(offset) };
                    self.members.push(Member { name, kind, bits });
                }
                self.canonical.entry((name, size, kind == 5)).or_insert(id);
                Type::Compound { name, size, members: (start, start + count), union: kind == 5 }
            }
            6 => {
                (0..2 * count).try_for_each(|_| reader.u32().map(drop))?;
                Type::Number { size }
            }
            8 | 9 | 10 | 11 | 18 => Type::Alias(size),
            12 => {
                let name = self.text(name).into();
                self.functions.entry(name).or_insert(size);
                Type::Other
            }
            13 => {
                let start = u32::try_from(self.parameters.len()).ok()?;
                for _ in 0..count {
                    let (_name, kind) = (reader.u32()?, reader.u32()?);
                    self.parameters.push(kind);
                }
                Type::Prototype { returns: size, parameters: (start, start + count) }
            }
            14 => {
                reader.u32()?;
                variables.insert(id, size);
                Type::Other
            }
            15 => {
                let mut all = Vec::new();
                for _ in 0..count {
                    let (variable, offset, _size) = (reader.u32()?, reader.u32()?, reader.u32()?);
                    all.extend(variables.get(&variable).map(|kind| (offset, *kind)));
                }
                all.sort_unstable();
                self.variables.push((self.text(name).into(), all));
                Type::Other
            }
            16 => Type::Number { size },
            17 => {
                reader.u32()?;
                Type::Other
            }
            19 => {
                (0..3 * count).try_for_each(|_| reader.u32().map(drop))?;
                Type::Number { size }
            }
            7 => Type::Declared { name },
            _ => return None,
        })
    }

    fn text(&self, offset: u32) -> &str {
        let bytes = self.strings.get(offset as usize..).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).unwrap_or_default()
    }

    /// The type behind typedefs, const and similar modifiers.
    pub(crate) fn bare(&self, id: Id) -> Id {
        let mut id = id;
        for _ in 0..MAX_DEPTH {
            match self.get(id) {
                Type::Alias(to) => id = *to,
                _ => return id,
            }
        }
        0
    }

    fn get(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Void)
    }

    fn members_of(&self, (start, end): (u32, u32)) -> &[Member] {
        self.members.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The name of a structure or union; empty if it has none.
    pub(crate) fn name(&self, id: Id) -> &str {
        match self.get(id) {
            Type::Compound { name, .. } => self.text(*name),
            _ => "",
        }
    }

    /// The name of a compound's member at an offset; for a union, the first member.
    pub(crate) fn member_name(&self, id: Id, offset: u32) -> Option<String> {
        self.member_path(id, offset, &mut MAX_MEMBERS.clone(), 0)
    }

    fn member_path(&self, id: Id, offset: u32, looks: &mut u32, depth: u32) -> Option<String> {
        let Type::Compound { members, .. } = self.get(self.bare(id)) else { return None };
        self.members_of(*members).iter().filter(|_| depth < MAX_DEPTH).find_map(|member| {
            *looks = looks.checked_sub(1)?;
            let start = member.bits? / 8;
            let inner = offset.checked_sub(start).filter(|inner| *inner < self.size(member.kind))?;
            let name = self.text(member.name);
            match self.get(self.bare(member.kind)) {
                Type::Compound { .. } => {
                    let rest = self.member_path(member.kind, inner, looks, depth + 1)?;
                    Some(if name.is_empty() { rest } else { format!("{name}.{rest}") })
                }
                _ => Some(name.to_string()),
            }
        })
    }

    pub(crate) fn size(&self, id: Id) -> u32 {
        self.size_within(id, 0)
    }

    fn size_within(&self, id: Id, depth: u32) -> u32 {
        match self.get(self.bare(id)) {
            Type::Number { size } | Type::Compound { size, .. } => *size,
            Type::Pointer(_) => 8,
            Type::Array { element, count } if depth < MAX_DEPTH => {
                self.size_within(*element, depth + 1).saturating_mul(*count)
            }
            _ => 0,
        }
    }

    /// The prototype of a function, by name.
    pub(crate) fn function(&self, name: &str) -> Option<Id> {
        self.functions.get(name).copied()
    }

    /// The result and the parameters of a prototype.
    pub(crate) fn prototype(&self, id: Id) -> Option<(Id, &[Id])> {
        match self.get(id) {
            Type::Prototype { returns, parameters: (start, end) } => {
                Some((*returns, self.parameters.get(*start as usize..*end as usize)?))
            }
            _ => None,
        }
    }

    /// The type to which a pointer points.
    pub(crate) fn pointee(&self, id: Id) -> Option<Id> {
        match self.get(self.bare(id)) {
            Type::Pointer(to) => Some(self.bare(*to)),
            _ => None,
        }
    }

    pub(crate) fn is_prototype(&self, id: Id) -> bool {
        matches!(self.get(id), Type::Prototype { .. })
    }

    pub(crate) fn is_compound(&self, id: Id) -> bool {
        matches!(self.get(id), Type::Compound { .. })
    }

    /// The first compound with the same name and size, because each compilation unit may have its own.
    pub(crate) fn canonical(&self, id: Id) -> Id {
        match self.get(id) {
            Type::Compound { name, size, union, .. } if *name != 0 => {
                self.canonical.get(&(*name, *size, *union)).copied().unwrap_or(id)
            }
            _ => id,
        }
    }

    /// The number of a compound, by name.
    pub(crate) fn compound(&self, name: &str) -> Option<Id> {
        let found = self.types.iter().position(|kind| match kind {
            Type::Compound { name: at, .. } => self.text(*at) == name,
            _ => false,
        });
        found.and_then(|id| u32::try_from(id).ok())
    }

    /// The direct members of a compound: name, offset in bytes, size.
    pub(crate) fn members(&self, id: Id) -> impl Iterator<Item = (&str, u32, u32)> {
        let range = match self.get(id) {
            Type::Compound { members, .. } => *members,
            _ => (0, 0),
        };
        let members = self.members_of(range).iter();
        members.filter_map(|member| Some((self.text(member.name), member.bits? / 8, self.size(member.kind))))
    }

    /// All compounds.
    pub(crate) fn compounds(&self) -> impl Iterator<Item = Id> {
        (0..).zip(&self.types).filter(|(_, kind)| matches!(kind, Type::Compound { .. })).map(|(id, _)| id)
    }

    /// The content at an offset of an object of a type.
    pub(crate) fn field(&self, id: Id, offset: u32) -> Option<Field> {
        self.field_in(self.bare(id), offset, None, &mut MAX_MEMBERS.clone())
    }

    fn field_in(&self, id: Id, offset: u32, owner: Option<(Id, u32)>, looks: &mut u32) -> Option<Field> {
        *looks = looks.checked_sub(1)?;
        match self.get(id) {
            Type::Pointer(to) if offset == 0 => {
                let to = self.bare(*to);
                match owner {
                    Some((owner, offset)) if self.is_prototype(to) => {
                        Some(Field::Function { owner: self.canonical(owner), offset, prototype: to })
                    }
                    _ => Some(Field::Pointer(to)),
                }
            }
            Type::Array { element, .. } => {
                let size = self.size(*element);
                // All elements of an array share the place of the first.
                let inner = offset.checked_rem(size)?;
                let owner = owner.map(|(owner, at)| (owner, at - (offset - inner).min(at)));
                self.field_in(self.bare(*element), inner, owner, looks)
            }
            Type::Compound { name, members, .. } => {
                // A place belongs to the innermost structure that has a name.
                let owner = if *name != 0 || owner.is_none() { Some((id, offset)) } else { owner };
                let mut found = None;
                for member in self.members_of(*members) {
                    *looks = looks.checked_sub(1)?;
                    let Some(bits) = member.bits else { continue };
                    let Some(inner) = offset.checked_sub(bits / 8) else { continue };
                    if inner >= self.size(member.kind).max(1) {
                        continue;
                    }
                    match self.field_in(self.bare(member.kind), inner, owner, looks) {
                        function @ Some(Field::Function { .. }) => return function,
                        Some(field) if found.is_some_and(|other| other != field) => return None,
                        Some(field) => found = Some(field),
                        None => {}
                    }
                }
                found
            }
            _ => None,
        }
    }

    /// Whether `node` is a list's link (`list_head`, `hlist_node`) and a structure has one at the offset.
    pub(crate) fn is_node(&self, id: Id, offset: i32, node: Id) -> bool {
        let Type::Compound { members, .. } = self.get(id) else { return false };
        let is_link = matches!(self.name(node), "list_head" | "hlist_node");
        let Some(at) = u32::try_from(offset).ok().and_then(|offset| offset.checked_mul(8)) else { return false };
        let mut members = self.members_of(*members).iter();
        is_link && members.any(|member| member.bits == Some(at) && self.name(self.bare(member.kind)) == self.name(node))
    }

    /// The type of the variable at an offset of a section of variables, and the offset within it.
    pub(crate) fn variable(&self, section: &str, offset: u32) -> Option<(Id, u32)> {
        let (_, all) = self.variables.iter().find(|(name, _)| name == section)?;
        let (start, kind) = *all.get(all.partition_point(|(start, _)| *start <= offset).checked_sub(1)?)?;
        let inner = offset - start;
        (inner < self.size(kind)).then_some((self.bare(kind), inner))
    }

    /// The signature of a prototype; functions with the same calling convention share one. Structures are compared by name,
    /// other pointers only as pointers.
    pub(crate) fn signature(&self, prototype: Id) -> Option<Vec<Shape<'_>>> {
        let (returns, parameters) = self.prototype(prototype)?;
        Some(std::iter::once(&returns).chain(parameters).map(|id| self.shape(*id)).collect())
    }

    fn shape(&self, id: Id) -> Shape<'_> {
        match self.get(self.bare(id)) {
            Type::Number { size } => Shape::Number(*size),
            Type::Compound { name, .. } => Shape::Whole(self.text(*name)),
            Type::Pointer(to) => match self.get(self.bare(*to)) {
                Type::Compound { name, .. } | Type::Declared { name } => Shape::To(self.text(*name)),
                Type::Number { size } => Shape::ToNumber(*size),
                Type::Prototype { .. } => Shape::ToFunction,
                _ => Shape::Pointer,
            },
            _ => Shape::Nothing,
        }
    }
}

/// A parameter as callers see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Shape<'b> {
    Nothing,
    Number(u32),
    Whole(&'b str),
    To(&'b str),
    ToNumber(u32),
    ToFunction,
    Pointer,
}
