//! A function's instructions as basic blocks, with their successors.

use iced_x86::{Instruction, Mnemonic};

use super::{Reader, branch, ends};

/// Basic blocks, by the index of their first instruction.
pub(super) struct Blocks {
    pub(super) starts: Vec<usize>,
    /// The successors of each block.
    pub(super) next: Vec<Vec<usize>>,
    length: usize,
}

impl Blocks {
    pub(super) fn of(reader: &Reader<'_>, number: usize, instructions: &[Instruction]) -> Self {
        let function = &reader.symbols.functions()[number];
        let at = |address: u64| instructions.binary_search_by_key(&address, Instruction::ip).ok();
        let inside = |address: u64| (function.start..function.end).contains(&address).then(|| at(address)).flatten();
        let leaves = |instruction: &Instruction| {
            let direct = branch(instruction).filter(|_| instruction.mnemonic() != Mnemonic::Call);
            let label = reader.labels.get(&instruction.ip()).copied();
            [direct.and_then(inside), label.and_then(inside)]
        };
        let mut starts = vec![0];
        for (index, instruction) in instructions.iter().enumerate() {
            let targets = leaves(instruction);
            starts.extend(targets.into_iter().flatten());
            if (targets != [None, None] || ends(instruction)) && index + 1 < instructions.len() {
                starts.push(index + 1);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        let length = instructions.len();
        let mut blocks = Self { next: Vec::new(), starts, length };
        for (place, start) in blocks.starts.iter().enumerate() {
            let end = blocks.starts.get(place + 1).copied().unwrap_or(length);
            let Some(last) = instructions.get(*start..end).and_then(<[_]>::last) else { continue };
            let mut next: Vec<usize> = leaves(last).into_iter().flatten().collect();
            // Code outside of functions returns: static_cpu_has, in .altinstr_aux.
            let returns = branch(last).is_some_and(|address| reader.symbols.function_at(address).is_none());
            if (!ends(last) || returns) && end < length {
                next.push(end);
            }
            blocks.next.push(next.iter().filter_map(|index| blocks.starts.binary_search(index).ok()).collect());
        }
        blocks.next.resize(blocks.starts.len(), Vec::new());
        blocks
    }

    /// The instructions of the block that starts at this index.
    pub(super) fn instructions<'i>(&self, start: usize, all: &'i [Instruction]) -> &'i [Instruction] {
        let place = self.starts.partition_point(|other| *other <= start);
        &all[start..self.starts.get(place).copied().unwrap_or(self.length)]
    }
}
