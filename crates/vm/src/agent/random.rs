//! The kernel's random number generator.

use std::{fs::File, io, os::fd::AsRawFd};

/// The kernel's numbers of its calls (linux/random.h).
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;
/// What a generator is seeded with that nothing else seeds: the digits of pi.
const FIXED: &[u8; 64] = b"3.14159265358979323846264338327950288419716939937510582097494459";

/// Seeds a generator that is not ready yet.
///
/// The instruction clock's processor has no randomness of its own, since two boots may not differ. Until interrupts have
/// brought enough, minutes later, the kernel makes a new key for each random number: a connection, a fork or an exec then
/// takes up to 40 percent more instructions than on a machine that has run for some seconds.
pub(super) fn make_ready() -> io::Result<()> {
    if is_ready()? { Ok(()) } else { reseed(FIXED) }
}

fn is_ready() -> io::Result<bool> {
    let mut byte = [0_u8; 1];
    // SAFETY: the buffer has the length that the kernel is told.
    let read = unsafe { libc::getrandom(byte.as_mut_ptr().cast(), byte.len(), libc::GRND_NONBLOCK) };
    match io::Error::last_os_error() {
        _ if read == 1 => Ok(true),
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        error => Err(error),
    }
}

/// Mixes these bytes in, takes them for random, and draws all further numbers by them.
pub(super) fn reseed(seed: &[u8]) -> io::Result<()> {
    let generator = File::open("/dev/urandom")?;
    let length = i32::try_from(seed.len()).unwrap_or(0);
    // struct rand_pool_info: bits of entropy, bytes, the bytes.
    let pool = [&(8 * length).to_ne_bytes()[..], &length.to_ne_bytes(), seed].concat();
    // SAFETY: the kernel reads two numbers and as many bytes as the second says, all of which the vector holds.
    let added = unsafe { libc::ioctl(generator.as_raw_fd(), RNDADDENTROPY as _, pool.as_ptr()) };
    // SAFETY: this request takes no argument.
    if added == 0 && unsafe { libc::ioctl(generator.as_raw_fd(), RNDRESEEDCRNG as _) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
