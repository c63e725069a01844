//! Places of maps that hold maps: what is in force is what is there.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// A map, and the place in a map of maps where it shall be.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// The map of maps.
    pub maps: &'p MapHandle,
    /// The number of the place.
    pub number: u32,
    /// What comes there.
    pub map: &'p MapHandle,
}

/// Whether something is put in force, or what was there before is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is put in force.
    Forth,
    /// It was refused.
    Back,
}

impl Place<'_> {
    /// Puts it there, in place of what is there.
    pub fn put(self) -> libbpf_rs::Result<()> {
        let descriptor = self.map.as_fd().as_raw_fd().to_ne_bytes();
        self.maps.update(&self.number.to_ne_bytes(), &descriptor, MapFlags::ANY)
    }
}
