//! The guest's init: sets the guest up, runs the command, sends the result, powers off.
//!
//! It is the same static program as the host's; the host puts the order in the image as a file.

mod random;
mod saved;
mod system;

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    channel::{Decoder, Done, Frame, Ready},
    order::Order,
    wire,
};
use nix::{
    errno::Errno,
    kmod::{ModuleInitFlags, finit_module},
    mount::{MsFlags, mount},
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        reboot::{RebootMode, reboot},
        termios::{SetArg, cfmakeraw, tcdrain, tcgetattr, tcsetattr},
        time::TimeValLike,
    },
    time::{ClockId, clock_gettime},
    unistd::sync,
};

pub use crate::order::System;
pub(crate) use system::FILES;

/// The agent's path in the image. A command in the guest can run it as `tollgate`.
pub const PROGRAM: &str = "/bin/tollgate";
/// The agent's path in a system on a disk.
pub const PROGRAM_ON_DISK: &str = "/usr/local/bin/tollgate-agent";
/// The path of the order in the image.
pub(crate) const ORDER: &str = "/order.json";
const PORT: &str = "/dev/ttyS1";
/// How long to wait for a disk: its driver sets it up at the same time as this program runs.
const DEVICE_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Milliseconds for which the streams of a command that has ended are still read.
const LAST_WORDS: u8 = 100;
const PATH: &str = "/bin:/sbin:/usr/bin:/usr/sbin";

/// The measuring functions that the agent calls. The program takes them from its bench.
#[derive(Debug, Clone, Copy)]
pub struct Instruments {
    /// Waits until the kernel is quiet, and returns what it found as text.
    pub settle: fn() -> String,
    /// Nanoseconds for which the processor has been idle since boot, if the kernel counts them.
    pub idle_ns: fn() -> Option<u64>,
}

/// Whether this process is a guest's init.
#[must_use]
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(ORDER).exists()
}

/// Does the agent's work and powers the guest off; never returns.
pub fn main(instruments: Instruments) -> ! {
    mount_all();
    answer(|port| begin(port, instruments))
}

/// The same as a service of the system on the first disk: follows the order in a file.
pub fn service(order: &Path, instruments: Instruments) -> ! {
    answer(|port| {
        let done = read_order(order).and_then(|order| serve(port, &order, instruments));
        sync();
        done
    })
}

/// Sends the result of the work, and powers the guest off.
#[allow(clippy::print_stderr, reason = "this is the program inside the guest, and the console is all that it has")]
fn answer(work: impl FnOnce(&mut File) -> Result<Done, String>) -> ! {
    match open_port() {
        Ok(mut port) => {
            let last = match work(&mut port) {
                Ok(done) => Frame::Done(done),
                Err(reason) => Frame::Failed(reason),
            };
            // If the port fails, nothing else can report it: the host sees a guest that ended without a result.
            if send(&mut port, &last).and_then(|()| Ok(tcdrain(&port)?)).is_err() {
                eprintln!("tollgate: cannot write to {PORT}");
            }
        }
        Err(e) => eprintln!("tollgate: {PORT}: {e}"),
    }
    // reboot(2) with POWER_OFF does not return; should it fail, init's end makes the kernel panic and QEMU exit.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    std::process::exit(1)
}

fn begin(port: &mut File, instruments: Instruments) -> Result<Done, String> {
    let order = read_order(Path::new(ORDER))?;
    random::make_ready().map_err(|e| format!("seed the random number generator: {e}"))?;
    make_ready(&order)?;
    if let Some(system) = &order.system {
        if !system.bare {
            match system::enter(system.context.as_deref())? {}
        }
        system::become_root()?;
        mount_all();
    }
    bring_up_loopback().map_err(|e| format!("bring up the loopback interface: {e}"))?;
    let begun = SystemTime::now();
    let done = serve(port, &order, instruments)?;
    if !order.save || done.code != Some(0) {
        return Ok(done);
    }
    let next = saved::wait(port, &order, begun)?;
    make_ready(&next)?;
    serve(port, &next, instruments)
}

fn read_order(path: &Path) -> Result<Order, String> {
    let text = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_slice(&text).map_err(|e| format!("{}: {e}", path.display()))
}

fn serve(port: &mut File, order: &Order, instruments: Instruments) -> Result<Done, String> {
    let settled = order.settle.then(instruments.settle);
    let release = read_trimmed("/proc/sys/kernel/osrelease");
    send(port, &Frame::Ready(Ready { release, settled })).map_err(|e| format!("{PORT}: {e}"))?;
    if order.argv.is_empty() {
        return Ok(Done { code: Some(0), signal: None, elapsed_ns: 0, idle_ns: None, oom_kills: 0 });
    }
    run(port, order, instruments)
}

fn run(port: &mut File, order: &Order, instruments: Instruments) -> Result<Done, String> {
    let kills = oom_kills();
    let idle = (instruments.idle_ns)();
    let start = now_ns();
    let mut child = Command::new(&order.argv[0])
        .args(&order.argv[1..])
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/root")
        .envs(order.env.iter().cloned())
        .current_dir("/")
        .process_group(0)
        .stdin(if order.stdin { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", order.argv[0]))?;
    forward(port, &mut child).map_err(|e| format!("forward the command's output: {e}"))?;
    let status = child.wait().map_err(|e| format!("wait for the command: {e}"))?;
    let elapsed_ns = now_ns() - start;
    let idle_ns = idle.zip((instruments.idle_ns)()).map(|(before, after)| after.saturating_sub(before));
    Ok(Done { code: status.code(), signal: status.signal(), elapsed_ns, idle_ns, oom_kills: oom_kills() - kills })
}

/// Sends both streams as they come, until the command has ended and what it wrote has been read. What it has left running
/// in the background may hold the streams open and is not waited for.
fn forward(port: &mut File, child: &mut Child) -> std::io::Result<()> {
    let ended = pidfd(child)?;
    let mut out = child.stdout.take();
    let mut err = child.stderr.take();
    let mut input = child.stdin.take();
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 16 << 10];
    let mut timeout = PollTimeout::NONE;
    loop {
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(3);
        polled.extend(out.as_ref().map(|o| PollFd::new(o.as_fd(), PollFlags::POLLIN)));
        polled.extend(err.as_ref().map(|e| PollFd::new(e.as_fd(), PollFlags::POLLIN)));
        let streams = polled.len();
        if timeout.is_none() {
            polled.push(PollFd::new(ended.as_fd(), PollFlags::POLLIN));
        }
        let port_at = polled.len();
        if input.is_some() {
            polled.push(PollFd::new(port.as_fd(), PollFlags::POLLIN));
        }
        let count = poll(&mut polled, timeout)?;
        let ready: Vec<bool> = polled.iter().map(|p| p.any().unwrap_or(true)).collect();
        drop(polled);
        if count == 0 || ready.is_empty() {
            return Ok(());
        }
        if let Some(to) = input.as_mut().filter(|_| ready[port_at]) {
            pass_in(port, &mut decoder, &mut buffer, to)?;
        }
        if timeout.is_none() && ready[streams] {
            timeout = PollTimeout::from(LAST_WORDS);
        }
        let out_ready = out.is_some() && ready[0];
        let err_ready = err.is_some() && ready[streams - 1];
        if out_ready && !pass_on(port, &mut out, &mut buffer, Frame::Stdout)? {
            out = None;
        }
        if err_ready && !pass_on(port, &mut err, &mut buffer, Frame::Stderr)? {
            err = None;
        }
    }
}

/// A descriptor that becomes readable when the command ends: no timer has to wake the guest up to check.
fn pidfd(child: &Child) -> std::io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two numbers; a descriptor that it returns is new and owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, child.id(), 0);
        if fd < 0 { Err(std::io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

/// Passes on one piece. Returns false at the end of the stream.
fn pass_on<R: Read>(
    port: &mut File,
    from: &mut Option<R>,
    buffer: &mut [u8],
    frame: fn(Vec<u8>) -> Frame,
) -> std::io::Result<bool> {
    let Some(stream) = from else { return Ok(false) };
    let count = stream.read(buffer)?;
    if count > 0 {
        send(port, &frame(buffer[..count].to_vec()))?;
    }
    Ok(count > 0)
}

/// Passes on what the host has sent for the command.
fn pass_in(port: &mut File, decoder: &mut Decoder, buffer: &mut [u8], to: &mut impl Write) -> std::io::Result<()> {
    let count = port.read(buffer)?;
    decoder.push(&buffer[..count]);
    while let Some(frame) = decoder.next_frame().map_err(std::io::Error::other)? {
        if let Frame::Stdin(bytes) = frame {
            to.write_all(&bytes)?;
        }
    }
    Ok(())
}

fn send(port: &mut File, frame: &Frame) -> std::io::Result<()> {
    port.write_all(&frame.encode())
}

/// The port without line discipline: every byte arrives as it was sent.
fn open_port() -> std::io::Result<File> {
    let port = OpenOptions::new().read(true).write(true).open(PORT)?;
    let mut settings = tcgetattr(&port)?;
    cfmakeraw(&mut settings);
    tcsetattr(&port, SetArg::TCSANOW, &settings)?;
    Ok(port)
}

/// Mounts the file systems that a program expects. One that the kernel lacks is left out.
fn mount_all() {
    let mounts = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("devpts", "/dev/pts"),
        ("tmpfs", "/dev/shm"),
        ("mqueue", "/dev/mqueue"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
        ("securityfs", "/sys/kernel/security"),
        ("tracefs", "/sys/kernel/tracing"),
        ("bpf", "/sys/fs/bpf"),
        ("cgroup2", "/sys/fs/cgroup"),
    ];
    for (kind, target) in mounts {
        // In /sys the folders are the kernel's: making them fails, and mounting shows whether they exist.
        let _ = fs::create_dir_all(target);
        let _ = mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>);
    }
}

/// Loads the modules, and waits for the network card.
fn make_ready(order: &Order) -> Result<(), String> {
    load_modules(&order.modules)?;
    if order.wire && !wait_for_device(Path::new(wire::CARD)) {
        return Err("the network card does not appear: the kernel has no driver of virtio cards (virtio_net)".into());
    }
    Ok(())
}

fn load_modules(paths: &[String]) -> Result<(), String> {
    for path in paths {
        let file = File::open(path).map_err(|e| format!("{path}: {e}"))?;
        let none = CString::default();
        match finit_module(file.as_fd(), &none, ModuleInitFlags::empty()) {
            // A machine that was saved may have it.
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(e) => return Err(format!("load {path}: {e}")),
        }
    }
    Ok(())
}

/// Waits until a device appears. Returns false if it does not within [`DEVICE_TIMEOUT`].
fn wait_for_device(device: &Path) -> bool {
    let begun = Instant::now();
    while !device.exists() && begun.elapsed() < DEVICE_TIMEOUT {
        thread::sleep(POLL_INTERVAL);
    }
    device.exists()
}

fn bring_up_loopback() -> std::io::Result<()> {
    let socket = nix::sys::socket::socket(
        nix::sys::socket::AddressFamily::Inet,
        nix::sys::socket::SockType::Datagram,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    // SAFETY: ifreq is plain data; all zeroes is a valid value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo\0") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which lives until the call returns; the socket is open.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")).and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(|t| t.num_nanoseconds()).unwrap_or(0);
    u64::try_from(time).unwrap_or(0)
}

fn read_trimmed(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_string()
}
