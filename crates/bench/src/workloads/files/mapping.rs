//! Mapping a file into memory.

use std::{ffi::c_void, fs::File, io, num::NonZeroUsize, ptr::NonNull};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, mprotect, munmap};

use super::{file_of, on_file};
use crate::{
    Error,
    error::Context,
    place::Place,
    workload::{Operation, Prepared, Workload},
};

/// One page of x86-64.
const PAGE: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");

pub(in super::super) static WORKLOADS: &[Workload] = &[
    on_file("mmap+munmap", "map 4 KB of a file shared and readable, unmap them untouched", map_unmap),
    on_file("mprotect", "make a private page of a file writable, and read-only again", protect),
];

fn page_of(place: &Place) -> Result<File, Error> {
    file_of(place, PAGE.get())?;
    let path = place.dir.join("file");
    File::open(&path).context(format!("open {}", path.display()))
}

fn map(file: &File, flags: MapFlags) -> io::Result<NonNull<c_void>> {
    // SAFETY: the kernel chooses an address that nothing uses, and nobody makes a reference into the mapping.
    Ok(unsafe { mmap(None, PAGE, ProtFlags::PROT_READ, flags, file, 0) }?)
}

fn map_unmap(place: &Place) -> Prepared {
    let file = page_of(place)?;
    Ok(Box::new(move || {
        let page = map(&file, MapFlags::MAP_SHARED)?;
        // SAFETY: it was mapped with this length just now, and nothing points into it.
        Ok(unsafe { munmap(page, PAGE.get()) }?)
    }))
}

/// A page of a file, mapped for as long as this lives.
struct Page(NonNull<c_void>);

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing else points into it.
        let _ = unsafe { munmap(self.0, PAGE.get()) };
    }
}

impl Operation for Page {
    fn run(&mut self) -> io::Result<()> {
        for protection in [ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, ProtFlags::PROT_READ] {
            // SAFETY: the page is ours, and no reference points into it.
            unsafe { mprotect(self.0, PAGE.get(), protection) }?;
        }
        Ok(())
    }
}

fn protect(place: &Place) -> Prepared {
    let file = page_of(place)?;
    let page = map(&file, MapFlags::MAP_PRIVATE).context("map a page of the file")?;
    Ok(Box::new(Page(page)))
}
