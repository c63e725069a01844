//! Which names decide what new files are labelled: those of type transitions by name.

use tollgate_abi::enforcer::{TG_NAME_PLACE_BITS, tg_generation};
use tollgate_policy::model::{Bits, Policy};

/// Says in which directories a name may decide, and which names rules have.
pub(super) fn put(policy: &Policy, to: &mut tg_generation) {
    for transition in &policy.name_transitions {
        let target = policy.types.get(transition.target as usize);
        let members = target.filter(|target| target.attribute).map(|attribute| &attribute.set);
        for type_ in std::iter::once(transition.target).chain(members.into_iter().flat_map(Bits::iter)) {
            to.named[type_ as usize / 64] |= 1 << (type_ % 64);
        }
        let place = place(&transition.name);
        to.names[place / 64] |= 1 << (place % 64);
    }
}

/// Where a name is in `names`: tg_name_place of `bpf/transition.h`.
fn place(name: &str) -> usize {
    let mut first = [0; 8];
    first.iter_mut().zip(name.bytes()).for_each(|(to, byte)| *to = byte);
    let mixed = (u64::from_le_bytes(first) ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - TG_NAME_PLACE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tollgate_abi::enforcer::TG_NAME_PLACES;

    use super::*;

    #[test]
    fn tells_names_apart_by_their_length_and_their_beginning() {
        let names = (0..1000).map(|number| format!("{number}.txt"));
        let places: HashSet<usize> = names.map(|name| place(&name)).collect();
        assert!(places.len() > 950 && places.iter().all(|place| *place < TG_NAME_PLACES as usize), "{}", places.len());
        assert_ne!(place("passwd"), place("passwd-"));
        assert_eq!(place("beginning.one"), place("beginning.two"));
    }
}
