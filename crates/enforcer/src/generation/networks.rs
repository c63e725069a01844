//! Labels of the network, and labels in packets, in one generation.

use tollgate_abi::enforcer::tg_datapath;

use super::Generation;
use crate::network::Network;

impl Generation {
    /// Writes the labels of the network. No program may read this generation yet.
    pub fn put_network(&mut self, network: &Network) {
        // SAFETY: the structure lies in the mapping, and programs read it once the generation is in force.
        network.put(unsafe { &mut (*self.memory.get()).network });
    }

    /// Writes which networks are labelled. No program may read this generation yet.
    pub fn put_datapath(&mut self, datapath: &tg_datapath) {
        // SAFETY: as above; the other structure is not the mapping's.
        unsafe { (&raw mut (*self.memory.get()).datapath).copy_from_nonoverlapping(datapath, 1) };
    }

    /// Whether the generation has these labelled networks.
    #[must_use]
    pub fn has_datapath(&self, datapath: &tg_datapath) -> bool {
        // SAFETY: the structure lies in the mapping, and is written before the generation is put in force only.
        unsafe { &(*self.memory.get()).datapath == datapath }
    }

    /// The policy's number in sealed labels, which is the same on all machines that have it in force.
    #[must_use]
    pub fn policy_number(&self) -> u64 {
        let [number, ..] = *self.policy_digest().as_chunks::<8>().0 else { return 0 };
        u64::from_be_bytes(number)
    }
}
