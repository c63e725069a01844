//! Reads the rules in decision tables as a whole: rows and columns of types, the vector where they meet, and the rules
//! of a type on itself. It answers by row and column, so that code that compares or follows all types of a policy need
//! not look up each pair.

use std::collections::HashMap;

use tollgate_abi::tables::{TG_BLOCK, TG_SELF, tg_entry, tg_folded, tg_tuple};

use crate::decide::Tables;

/// Access vectors from rules, without constraints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// Permissions that are allowed.
    pub allow: u32,
    /// Permissions whose grants are audited.
    pub auditallow: u32,
    /// Permissions whose denials are not audited.
    pub dontaudit: u32,
}

impl Access {
    /// The union of both, vector by vector.
    pub fn or(self, other: Self) -> Self {
        Self {
            allow: self.allow | other.allow,
            auditallow: self.auditallow | other.auditallow,
            dontaudit: self.dontaudit | other.dontaudit,
        }
    }

    /// Whether it is empty.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The rules in the tables. A number out of range counts as one without rules.
#[derive(Debug, Default)]
pub struct Vectors {
    /// By type: its row and its column.
    places: Vec<(u32, u32)>,
    classes: usize,
    columns: usize,
    matrix: Vec<u16>,
    vectors: Vec<u16>,
    tuples: Vec<Access>,
    itself: HashMap<(u32, u32), Access>,
}

impl Vectors {
    /// Reads `tables`.
    pub fn of(tables: &Tables) -> Self {
        let (header, bytes) = (*tables.header(), tables.as_bytes());
        let classes = header.classes as usize;
        let matrix = unfold(bytes, &header.matrix, header.rows, header.columns);
        // At most as many as there are cells, whatever the header says.
        let columns = matrix.len().min(header.columns as usize);
        let size = size_of::<tollgate_abi::tables::tg_type>();
        let places = part(bytes, header.type_at, (header.types as usize + 1) * size)
            .chunks_exact(size)
            .map(|record| (word(record, 0), word(record, 4)))
            .collect();
        let size = size_of::<tg_tuple>();
        let tuples: Vec<Access> = part(bytes, header.tuple_at, header.tuples as usize * size)
            .chunks_exact(size)
            .map(|record| Access { allow: word(record, 0), auditallow: word(record, 4), dontaudit: word(record, 8) })
            .collect();
        let itself = entries(tables)
            .filter(|(key, _)| key >> 48 == u64::from(TG_SELF))
            .map(|(key, value)| {
                let tuple = usize::try_from(value).ok().and_then(|tuple| tuples.get(tuple));
                (((key >> 32 & 0xffff) as u32, (key & 0xffff) as u32), tuple.copied().unwrap_or_default())
            })
            .collect();
        Self {
            places,
            classes,
            columns,
            matrix,
            vectors: unfold(bytes, &header.vector, header.vectors, header.classes.saturating_add(1)),
            tuples,
            itself,
        }
    }

    /// The number of classes. The first is 1.
    pub fn classes(&self) -> u32 {
        self.classes as u32
    }

    /// The number of columns.
    pub fn columns(&self) -> u32 {
        self.columns as u32
    }

    /// The number of rows.
    pub fn rows(&self) -> u32 {
        self.matrix.len().checked_div(self.columns).unwrap_or(0) as u32
    }

    /// The number of vectors.
    pub fn vectors(&self) -> u32 {
        (self.vectors.len() / (self.classes + 1)) as u32
    }

    /// The row of a source type.
    pub fn row(&self, type_: u32) -> u32 {
        self.places.get(type_ as usize).map_or(0, |place| place.0)
    }

    /// The column of a target type.
    pub fn column(&self, type_: u32) -> u32 {
        self.places.get(type_ as usize).map_or(0, |place| place.1)
    }

    /// The vectors of a row, by column.
    pub fn row_of(&self, row: u32) -> &[u16] {
        let start = row as usize * self.columns;
        self.matrix.get(start..start + self.columns).unwrap_or_default()
    }

    /// The vector where a row and a column meet.
    pub fn vector(&self, row: u32, column: u32) -> u32 {
        self.row_of(row).get(column as usize).copied().unwrap_or_default().into()
    }

    /// The access of a vector for a class.
    pub fn access(&self, vector: u32, class: u32) -> Access {
        if class as usize > self.classes {
            return Access::default();
        }
        let tuple = self.vectors.get(vector as usize * (self.classes + 1) + class as usize);
        tuple.and_then(|tuple| self.tuples.get(usize::from(*tuple))).copied().unwrap_or_default()
    }

    /// The additional access if source and target are both `type_`.
    pub fn itself(&self, type_: u32, class: u32) -> Access {
        self.itself.get(&(type_, class)).copied().unwrap_or_default()
    }

    /// All rules of types on themselves: the type, the class, the access.
    pub fn own(&self) -> impl Iterator<Item = (u32, u32, Access)> + '_ {
        self.itself.iter().map(|((type_, class), access)| (*type_, *class, *access))
    }

    /// The access of a source, a target and a class, like `tg_rules`.
    pub fn rules(&self, source: u32, target: u32, class: u32) -> Access {
        let access = self.access(self.vector(self.row(source), self.column(target)), class);
        if source == target { access.or(self.itself(source, class)) } else { access }
    }
}

/// The used keys of the tables' hash, with their values.
pub(crate) fn entries(tables: &Tables) -> impl Iterator<Item = (u64, u64)> + '_ {
    let header = tables.header();
    let slots = 1usize << (64u32.saturating_sub(header.key_shift)).min(32);
    let slots = slots + tollgate_abi::tables::TG_PROBES as usize;
    let size = size_of::<tg_entry>();
    part(tables.as_bytes(), header.key_at, slots.saturating_mul(size))
        .chunks_exact(size)
        .map(|entry| (u64::from(word(entry, 0)) | u64::from(word(entry, 4)) << 32, entry))
        .filter(|(key, _)| *key != 0)
        .map(|(key, entry)| (key, u64::from(word(entry, 8)) | u64::from(word(entry, 12)) << 32))
}

/// The records of a part.
pub(crate) fn records(tables: &Tables, at: u32, count: usize, size: usize) -> std::slice::ChunksExact<'_, u8> {
    part(tables.as_bytes(), at, count.saturating_mul(size)).chunks_exact(size)
}

/// The part, as far as the tables have it.
fn part(bytes: &[u8], at: u32, length: usize) -> &[u8] {
    let rest = bytes.get(at as usize..).unwrap_or_default();
    &rest[..length.min(rest.len())]
}

/// The word at an offset in a record; 0 beyond its end.
pub(crate) fn word(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The cells of a folded matrix, row by row, as far as the tables have its rows.
fn unfold(bytes: &[u8], matrix: &tg_folded, rows: u32, columns: u32) -> Vec<u16> {
    let (width, columns) = (columns.div_ceil(TG_BLOCK) as usize, columns as usize);
    let index = halves(part(bytes, matrix.index_at, (rows as usize).saturating_mul(width).saturating_mul(2)));
    let blocks = halves(part(bytes, matrix.block_at, (matrix.blocks as usize).saturating_mul(2 * TG_BLOCK as usize)));
    let block = |number: &u16| {
        blocks.chunks_exact(TG_BLOCK as usize).nth(usize::from(*number)).unwrap_or(&[0; TG_BLOCK as usize])
    };
    let row = |numbers: &[u16]| numbers.iter().flat_map(block).copied().take(columns).collect::<Vec<_>>();
    index.chunks_exact(width.max(1)).flat_map(row).collect()
}

fn halves(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|two| u16::from_ne_bytes([two[0], two[1]])).collect()
}
