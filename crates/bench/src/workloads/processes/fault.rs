//! Page faults and protection faults.

use std::{
    arch::asm,
    fs::{self, File},
    io,
    num::NonZeroUsize,
    os::unix::fs::FileExt,
    path::PathBuf,
    ptr::{self, NonNull},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use super::signal::Handler;
use crate::{
    error::Context,
    place::Place,
    workload::{Operation, Prepared},
};

/// The distance of two touched pages. A fault also maps the cached pages around it, as far as 64 KB (mm/memory.c:
/// `fault_around_bytes`), and must find only its own.
const STRIDE: usize = 64 * 1024;
/// How many pages to touch before all are unmapped again.
const PAGES: u32 = 32;
const PAGE: NonZeroUsize = match NonZeroUsize::new(4096) {
    Some(size) => size,
    None => unreachable!(),
};

pub(super) fn page(place: &Place) -> Prepared {
    let path = place.dir.join("mapped");
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.context(format!("create {}", path.display()))?;
    let file = SparseFile { file, path };
    let mapping = file.fill().and_then(|size| Mapping::of_file(&file.file, size));
    let mapping = mapping.context(format!("map {}", file.path.display()))?;
    Ok(Box::new(PageFaults { next: 0, mapping, _file: file }))
}

/// A file with a page in each stride and holes between them; removed on drop.
struct SparseFile {
    file: File,
    path: PathBuf,
}

impl SparseFile {
    /// Writes the pages and returns the file's size.
    fn fill(&self) -> io::Result<NonZeroUsize> {
        let size = STRIDE * PAGES as usize;
        self.file.set_len(size as u64)?;
        for start in (0..size).step_by(STRIDE) {
            self.file.write_all_at(&[1; PAGE.get()], start as u64)?;
        }
        NonZeroUsize::new(size).ok_or_else(|| io::Error::other("no page to touch"))
    }
}

impl Drop for SparseFile {
    fn drop(&mut self) {
        // The place's directory is removed soon; an error cannot be reported in a drop.
        let _ = fs::remove_file(&self.path);
    }
}

struct PageFaults {
    /// The page to touch next.
    next: u32,
    mapping: Mapping,
    _file: SparseFile,
}

impl Operation for PageFaults {
    fn before(&mut self) -> io::Result<()> {
        self.next = 0;
        // SAFETY: the mapping is private and never written: what is dropped comes back from the file.
        unsafe { madvise(self.mapping.start, self.mapping.size.get(), MmapAdvise::MADV_DONTNEED) }?;
        Ok(())
    }

    fn reach(&self) -> u32 {
        PAGES
    }

    fn run(&mut self) -> io::Result<()> {
        let offset = self.next as usize * STRIDE;
        debug_assert!(offset < self.mapping.size.get());
        // SAFETY: `reach` keeps the offset inside the mapping.
        unsafe { ptr::read_volatile(self.mapping.start.as_ptr().byte_add(offset).cast::<u8>()) };
        self.next += 1;
        Ok(())
    }
}

/// Mapped memory, unmapped on drop.
struct Mapping {
    start: NonNull<libc::c_void>,
    size: NonZeroUsize,
}

impl Mapping {
    fn of_file(file: &File, size: NonZeroUsize) -> io::Result<Mapping> {
        // SAFETY: at an address of the kernel's choice, so over nothing that is in use.
        let start = unsafe { mmap(None, size, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, file, 0) }?;
        Ok(Mapping { start, size })
    }

    /// A page that may be read only.
    fn read_only() -> io::Result<Mapping> {
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(None, PAGE, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE) }?;
        Ok(Mapping { start, size: PAGE })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing points into it any more.
        let _ = unsafe { munmap(self.start, self.size.get()) };
    }
}

/// Signal handlers belong to the whole process: one operation at a time may have SIGSEGV.
static SIGSEGV: Mutex<()> = Mutex::new(());
/// The page whose faults belong to the workload; 0 if there is none.
static FORBIDDEN: AtomicUsize = AtomicUsize::new(0);
/// The faults on it so far.
static FAULTS: AtomicUsize = AtomicUsize::new(0);

pub(super) fn protection(_: &Place) -> Prepared {
    let page = Mapping::read_only().context("map a read-only page")?;
    let handler = Handler::install(libc::SIGSEGV, &SIGSEGV, step_over)?;
    FORBIDDEN.store(page.start.as_ptr().addr(), Ordering::Relaxed);
    Ok(Box::new(ProtectionFaults { _handler: handler, page }))
}

/// Fields are dropped in this order: the handler goes before the page.
struct ProtectionFaults {
    _handler: Handler,
    page: Mapping,
}

impl Operation for ProtectionFaults {
    fn run(&mut self) -> io::Result<()> {
        let before = FAULTS.load(Ordering::Relaxed);
        // SAFETY: the page may not be written, so nothing is: `step_over` goes on where r8 says. The handler keeps
        // all other registers, and the red zone is the kernel's to spare.
        unsafe {
            asm!(
                "lea r8, [rip + 2f]",
                "mov byte ptr [{page}], 0",
                "2:",
                page = in(reg) self.page.start.as_ptr(),
                out("r8") _,
                options(nostack),
            );
        }
        match FAULTS.load(Ordering::Relaxed) == before + 1 {
            true => Ok(()),
            false => Err(io::Error::other("writing to a read-only page did not fault")),
        }
    }
}

impl Drop for ProtectionFaults {
    fn drop(&mut self) {
        FORBIDDEN.store(0, Ordering::Relaxed);
    }
}

/// Handles SIGSEGV: continues after the write that faulted.
extern "C" fn step_over(signal: libc::c_int, origin: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let context: *mut libc::ucontext_t = context.cast();
    // SAFETY: with SA_SIGINFO the kernel passes both, and takes the registers back from the context.
    unsafe {
        if (*origin).si_addr().addr() == FORBIDDEN.load(Ordering::Relaxed) {
            FAULTS.fetch_add(1, Ordering::Relaxed);
            let registers = &mut (*context).uc_mcontext.gregs;
            registers[libc::REG_RIP as usize] = registers[libc::REG_R8 as usize];
        } else {
            // A fault elsewhere: the instruction runs again, and ends the process as it would have done.
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}
