//! Matrices in blocks, of which equal ones are stored once (`tg_folded`). The matrix of types and the vectors of classes
//! would be most of the tables; of Debian's policies, blocks leave a seventh of them.

use std::collections::HashMap;

use tollgate_abi::tables::{TG_BLOCK, tg_folded};

use super::{layout::Layout, limit::TableLimit};

/// A matrix in blocks.
#[derive(Debug)]
pub(super) struct Folded {
    /// By row: the numbers of its blocks.
    index: Vec<u16>,
    /// Blocks per row.
    width: usize,
    blocks: Vec<u16>,
}

impl Folded {
    /// Folds rows of `columns` cells. The number of blocks has 16 bits; `section` names what has more.
    pub(super) fn new(section: &'static str, cells: &[u16], columns: usize) -> Result<Self, TableLimit> {
        let width = columns.div_ceil(TG_BLOCK as usize);
        let mut known: HashMap<[u16; TG_BLOCK as usize], u16> = HashMap::new();
        let (mut index, mut blocks) = (Vec::new(), Vec::new());
        for part in cells.chunks(columns.max(1)).flat_map(|row| row.chunks(TG_BLOCK as usize)) {
            let mut block = [0; TG_BLOCK as usize];
            block[..part.len()].copy_from_slice(part);
            let count = known.len();
            let number = match known.get(&block) {
                Some(number) => *number,
                None => u16::try_from(count).map_err(|_| TableLimit::Identifiers {
                    what: section,
                    has: count + 1,
                    most: 1 << u16::BITS,
                })?,
            };
            if usize::from(number) == count {
                known.insert(block, number);
                blocks.extend_from_slice(&block);
            }
            index.push(number);
        }
        Ok(Self { index, width, blocks })
    }

    /// Appends it to the tables.
    pub(super) fn push(&self, section: &'static str, layout: &mut Layout) -> Result<tg_folded, TableLimit> {
        Ok(tg_folded {
            index_at: layout.push(section, &self.index)?,
            width: self.width as u32,
            block_at: layout.push(section, &self.blocks)?,
            blocks: (self.blocks.len() / TG_BLOCK as usize) as u32,
        })
    }
}
