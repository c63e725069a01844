//! Labels of the network, and labels in packets, in one generation.

use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_abi::enforcer::{TG_SIDS, tg_datapath};

use super::Generation;
use crate::{contexts::Sid, network::Network};

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
        let mut own: Box<tg_datapath> = Box::default();
        // SAFETY: the structure lies in the mapping. Programs write to the zones' counters alone, and what is read of
        // those is not used.
        unsafe { (&raw const (*self.memory.get()).datapath).copy_to_nonoverlapping(&raw mut *own, 1) };
        own.zone.iter_mut().for_each(|zone| zone.labels = 0);
        *own == *datapath
    }

    /// Sets the cluster's number for the context of a SID, in sealed labels; 0: it has none.
    pub fn set_identifier(&self, sid: Sid, identifier: u32) {
        let memory = self.memory.get();
        let place = sid as usize % TG_SIDS as usize;
        // SAFETY: the word lies in the mapping and is aligned; programs read it at once.
        unsafe { AtomicU32::from_ptr(&raw mut (*memory).identifiers[place]) }.store(identifier, Ordering::SeqCst);
    }

    /// The policy's number in sealed labels, which is the same on all machines that have it in force.
    #[must_use]
    pub fn policy_number(&self) -> u64 {
        self.policy_number
    }
}
