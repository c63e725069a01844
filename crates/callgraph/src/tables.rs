//! Operation tables: the structures of the image's objects, and so the functions in their members.
//!
//! A kernel's BTF has structures and prototypes of functions, but no types of variables. An object counts as one of a
//! structure if its size is the structure's, or a multiple, and each of its pointers to a function stands where the structure
//! has a pointer to a function of the same prototype. If code uses its address as a pointer to a structure, that decides
//! among several.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    Image,
    btf::{Btf, Field, Id, Shape},
    code::{Body, Number, Reader, Slot},
    symbols::{Symbol, Symbols},
};

/// The compiler pads an object by at most this many bytes before the next one.
const PADDING: u64 = 64;
/// The largest operation table, in bytes; larger objects are something else.
const MAX_TABLE_SIZE: u64 = 1 << 16;
/// The most words of a structure that counts as an operation table.
const WORDS: u32 = 1024;

/// The content of members and variables in the image.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// The functions in each slot.
    pub(crate) held: BTreeMap<Slot, BTreeSet<Number>>,
    /// The structures of objects that fit only one.
    pub(crate) kinds: HashMap<u64, Id>,
    /// The number of objects with pointers to functions.
    pub(crate) objects: usize,
    pub(crate) typed: usize,
}

/// A structure as an operation table.
struct Layout<'b> {
    id: Id,
    size: u64,
    /// Members by offset: the slot, and the signature of the functions in it.
    functions: BTreeMap<u32, (Slot, Option<Vec<Shape<'b>>>)>,
}

/// The pointers to functions in an object.
struct Object {
    address: u64,
    size: u64,
    functions: Vec<(u32, Number)>,
}

/// Finds all operation tables.
pub(crate) fn find(reader: &Reader<'_>, bodies: &[Body]) -> Tables {
    let mut tables = Tables::default();
    let Some(btf) = reader.btf else { return tables };
    let layouts = layouts(btf);
    let mut by_slot: HashMap<u32, Vec<usize>> = HashMap::new();
    for (index, layout) in layouts.iter().enumerate() {
        for offset in layout.functions.keys() {
            by_slot.entry(*offset).or_default().push(index);
        }
    }
    let by_id: HashMap<Id, usize> = layouts.iter().enumerate().map(|(index, layout)| (layout.id, index)).collect();
    let mut used: HashMap<u64, BTreeSet<Id>> = HashMap::new();
    for (address, id) in bodies.iter().flat_map(|body| &body.typed) {
        used.entry(*address).or_default().insert(*id);
    }
    let finder = Finder { reader, btf, layouts, by_slot, by_id, used };
    for object in objects(reader.image, reader.symbols) {
        tables.objects += 1;
        let kinds = finder.kinds(&object);
        tables.typed += usize::from(!kinds.is_empty());
        if let [only] = &kinds[..] {
            tables.kinds.insert(object.address, only.id);
        }
        for layout in kinds {
            for (offset, number) in &object.functions {
                if let Some((slot, _)) = layout.at(*offset) {
                    tables.held.entry(*slot).or_default().insert(*number);
                }
            }
        }
    }
    tables
}

impl<'b> Layout<'b> {
    /// The member at an offset of an object, which may be an array.
    fn at(&self, offset: u32) -> Option<&(Slot, Option<Vec<Shape<'b>>>)> {
        self.functions.get(&u32::try_from(u64::from(offset) % self.size).ok()?)
    }
}

struct Finder<'r, 'k> {
    reader: &'r Reader<'k>,
    btf: &'k Btf,
    layouts: Vec<Layout<'k>>,
    /// Structures that have a pointer to a function at an offset.
    by_slot: HashMap<u32, Vec<usize>>,
    by_id: HashMap<Id, usize>,
    /// The structures for which code uses each address.
    used: HashMap<u64, BTreeSet<Id>>,
}

impl<'k> Finder<'_, 'k> {
    /// The structures that an object fits.
    fn kinds(&self, object: &Object) -> Vec<&Layout<'k>> {
        let used = self.used.get(&object.address).into_iter().flatten().filter_map(|id| self.by_id.get(id));
        let used = self.fitting(object, used);
        // Functions without a prototype fit everywhere: assembly in the interrupt tables.
        let known = |(_, number): &(u32, Number)| self.reader.prototypes[*number as usize].is_some();
        if !used.is_empty() || !object.functions.iter().any(known) {
            return used;
        }
        let first = object.functions.first().and_then(|(offset, _)| self.by_slot.get(offset));
        let fitting = self.fitting(object, first.into_iter().flatten());
        let single: Vec<_> = fitting.iter().copied().filter(|layout| object.size < layout.size + PADDING).collect();
        if single.is_empty() { fitting } else { single }
    }

    fn fitting<'a>(&self, object: &Object, places: impl Iterator<Item = &'a usize>) -> Vec<&Layout<'k>> {
        places.map(|place| &self.layouts[*place]).filter(|layout| self.fits(object, layout)).collect()
    }

    fn fits(&self, object: &Object, layout: &Layout<'_>) -> bool {
        layout.size <= object.size
            && object.size % layout.size < PADDING
            && object.functions.iter().all(|(offset, number)| match layout.at(*offset) {
                Some((_, Some(shape))) => {
                    let prototype = self.reader.prototypes[*number as usize];
                    prototype.and_then(|id| self.btf.signature(id)).is_none_or(|own| own == *shape)
                }
                Some((_, None)) => true,
                None => false,
            })
    }
}

/// Each structure with pointers to functions, once.
fn layouts(btf: &Btf) -> Vec<Layout<'_>> {
    let compounds = btf.compounds().filter(|id| btf.canonical(*id) == *id);
    let layouts = compounds.filter_map(|id| {
        let size = btf.size(id);
        if !(8..=WORDS * 8).contains(&size) {
            return None;
        }
        let mut layout = Layout { id, size: size.into(), functions: BTreeMap::new() };
        for offset in (0..size - 7).step_by(8) {
            if let Some(Field::Function { owner, offset: place, prototype }) = btf.field(id, offset) {
                let slot = Slot::Member { owner, offset: place };
                layout.functions.insert(offset, (slot, btf.signature(prototype)));
            }
        }
        (!layout.functions.is_empty()).then_some(layout)
    });
    layouts.collect()
}

/// Objects with pointers to functions, in all sections without instructions.
fn objects(image: &Image, symbols: &Symbols) -> Vec<Object> {
    let all = symbols.all();
    // nm's letter does not help: since 6.18 much of .data has a letter of code.
    let is_data = |symbol: &Symbol| image.section_at(symbol.address).is_some_and(|section| !section.executable);
    let places = all.iter().enumerate().filter(|(_, symbol)| symbol.address % 8 == 0 && is_data(symbol));
    let objects = places.filter_map(|(index, symbol)| {
        let (_, size) = symbols.object(index);
        let bytes = image.bytes_at(symbol.address).filter(|_| (8..=MAX_TABLE_SIZE).contains(&size))?;
        let mut object = Object { address: symbol.address, size, functions: Vec::new() };
        for (offset, word) in
            (0..).step_by(8).zip(bytes.chunks_exact(8)).take_while(|(offset, _)| u64::from(*offset) < size)
        {
            let word = word.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let number = symbols.function_starting(word).and_then(|number| u32::try_from(number).ok());
            object.functions.extend(number.map(|number| (offset, number)));
        }
        (!object.functions.is_empty()).then_some(object)
    });
    objects.collect()
}
