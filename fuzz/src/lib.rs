//! What targets share: a small kernel around bytes that may be anyone's, and the good input that mutations begin with.

#[allow(dead_code, reason = "the crate's tests need more of it")]
#[path = "../../crates/callgraph/src/sample.rs"]
mod sample;
pub mod seeds;

use tollgate_callgraph::{Error, Graph, Image, Search, StopList, Symbols};
use tollgate_netlabel::{
    Doi,
    sealed::{Addresses, Flow, Key, Receiver, Sealed},
};

/// The whole way from a kernel's types to the hooks that its system calls reach.
pub fn types(btf: &[u8]) {
    // Names come from a System.map, which is read faster.
    let _ = reach(sample::elf_of(btf.to_vec(), Vec::new()), Some(&sample::map()));
}

/// The same from its symbols.
pub fn symbols(kallsyms: &[u8]) {
    let _ = reach(sample::elf_of(sample::btf(), kallsyms.to_vec()), None);
}

fn reach(file: Vec<u8>, map: Option<&str>) -> Result<usize, Error> {
    let image = Image::parse(file)?;
    let graph = Graph::of(&image, &Symbols::of(&image, map)?)?;
    let all = Search::new(&graph, &StopList::own(), false).all();
    Ok(all.len())
}

/// Nobody can guess a MAC, whatever the receiver knows.
pub fn refuses_seal(sealed: &Sealed, doi: Option<Doi>, addresses: Addresses) {
    let flow = Flow { addresses, protocol: 17, ports: (1, 2) };
    let receiver = Receiver {
        doi: doi.unwrap_or(seeds::DOI),
        keys: &[Key { number: sealed.key, secret: *b"not in the seeds" }],
        generations: &[sealed.generation.into()],
        now: sealed.window.into(),
        tolerance: 0,
    };
    assert!(sealed.open(&flow, &receiver).is_err(), "{sealed:?}");
}
