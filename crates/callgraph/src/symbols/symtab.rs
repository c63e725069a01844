//! The symbols of an ELF file's `.symtab`.

use object::{Object, ObjectSymbol, SymbolKind};

use super::Symbol;
use crate::Image;

/// The symbols of the image's symbol table; none if it is stripped.
pub(super) fn read(image: &Image) -> Vec<Symbol> {
    let Ok(elf) = image.elf() else { return Vec::new() };
    let symbols = elf.symbols().filter(|symbol| symbol.is_definition() || symbol.kind() == SymbolKind::Unknown);
    symbols
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            let text = image.section_at(symbol.address()).is_some_and(|section| section.executable);
            let kind = if text { b't' } else { b'd' };
            let kind = if symbol.is_weak() {
                if text { b'W' } else { b'V' }
            } else if symbol.is_global() {
                kind.to_ascii_uppercase()
            } else {
                kind
            };
            Some(Symbol { address: symbol.address(), kind, name: name.into() })
        })
        .collect()
}
