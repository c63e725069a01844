//! A server of pages.
//!
//! Every socket lingers for 0 seconds, as those of the TCP workloads do.

use std::{
    ffi::CString,
    fs,
    mem::forget,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open},
    sys::{
        socket::{
            AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrIn, accept4, connect, getsockname, listen,
            recv, send, setsockopt, socket, sockopt,
        },
        stat::{Mode, fstat},
    },
    unistd::read,
};

use crate::{
    error::Context,
    network::{Link, Side},
    place::{Network, Place},
    workload::{Operation, Prepared},
    workloads::peer::Peer,
};

const DIRECTORIES: usize = 10;
const PAGES: usize = 100;
const BYTES: usize = 4096;
const CONNECTIONS: usize = 200;

struct Web {
    server: Peer,
    address: SockaddrIn,
    next: usize,
}

pub(super) fn web(place: &Place) -> Prepared {
    let link = Link::open(Network::Loopback)?;
    let listener = link.socket(Side::Far, SockType::Stream)?;
    close_by_reset(&listener).context("set SO_LINGER".to_owned())?;
    listen(&listener, Backlog::MAXALLOWABLE).context("listen on a TCP socket")?;
    let address = getsockname(listener.as_raw_fd()).context("read a socket's address")?;
    let mut pages = Vec::new();
    for page in 0..PAGES {
        let directory = place.dir.join((page % DIRECTORIES).to_string());
        fs::create_dir_all(&directory).context(format!("make {}", directory.display()))?;
        let path = directory.join(page.to_string());
        fs::write(&path, [b'p'; BYTES]).context(format!("write {}", path.display()))?;
        pages.push(CString::new(path.as_os_str().as_bytes()).context(format!("name {}", path.display()))?);
    }
    let mut buffer = vec![0; BYTES];
    let server = Peer::fork(move || serve(&listener, &pages, &mut buffer))?;
    Ok(Box::new(Web { server, address, next: 0 }))
}

/// Answers one connection.
fn serve(listener: &OwnedFd, pages: &[CString], buffer: &mut [u8]) -> nix::Result<()> {
    let accepted = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC)?;
    // SAFETY: the kernel has just made this descriptor for us, and nothing else knows it.
    let connection = unsafe { OwnedFd::from_raw_fd(accepted) };
    let answered = answer(&connection, pages, buffer);
    if answered.is_err() {
        // It ends with this process, when the error is known to the other side.
        forget(connection);
    }
    answered
}

fn answer(connection: &OwnedFd, pages: &[CString], buffer: &mut [u8]) -> nix::Result<()> {
    let mut asked = [0];
    recv(connection.as_raw_fd(), &mut asked, MsgFlags::empty())?;
    let page = open(pages[usize::from(asked[0])].as_c_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let size = fstat(&page)?.st_size;
    let length = read(&page, buffer)?;
    if length as i64 != size {
        return Err(Errno::EIO);
    }
    // A page fits into the socket's buffer.
    send(connection.as_raw_fd(), &buffer[..length], MsgFlags::empty()).map(drop)
}

impl Web {
    fn fetch(&mut self) -> nix::Result<()> {
        let near = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        connect(near.as_raw_fd(), &self.address)?;
        self.next = (self.next + 1) % PAGES;
        send(near.as_raw_fd(), &[self.next as u8], MsgFlags::empty())?;
        let (mut page, mut length) = ([0; BYTES], 0);
        while length < BYTES {
            match recv(near.as_raw_fd(), &mut page[length..], MsgFlags::empty())? {
                0 => return Err(Errno::ECONNRESET),
                received => length += received,
            }
        }
        close_by_reset(&near)
    }
}

impl Operation for Web {
    fn leaves_work(&self) -> bool {
        true
    }

    fn warm_ups(&self, _: usize) -> usize {
        1
    }

    fn run(&mut self) -> std::io::Result<()> {
        let fetched = (0..CONNECTIONS).try_for_each(|_| self.fetch());
        self.server.explain(fetched)
    }
}

fn close_by_reset(socket: &OwnedFd) -> nix::Result<()> {
    setsockopt(socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_every_page_and_says_when_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path().to_owned(), Network::Loopback, folder.path().to_owned());
        let mut operation = web(&place).unwrap();
        operation.run().unwrap();
        assert_eq!(
            (0..DIRECTORIES).map(|d| fs::read_dir(folder.path().join(d.to_string())).unwrap().count()).sum::<usize>(),
            PAGES
        );
        fs::remove_file(folder.path().join("7/57")).unwrap();
        let error = operation.run().unwrap_err();
        assert!(error.to_string().contains("ENOENT"), "{error}");
    }
}
