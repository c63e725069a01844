//! Filters of devices (cls_bpf in clsact), for kernels without links.

use std::{io, os::fd::AsFd, os::fd::AsRawFd};

use super::super::{
    netlink::{self, CREATE, ECHO, EXCLUSIVE, Message, REPLACE, Request, Socket},
    programs::{Direction, Loaded},
};

/// Length of struct tcmsg, with which messages about filters begin.
const FIXED: usize = 20;
/// Attributes (TCA_..., TCA_BPF_...).
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_ID: u16 = 11;
/// The program itself says what becomes of a packet (TCA_BPF_FLAG_ACT_DIRECT).
const DIRECT_ACTION: u32 = 1;
/// Where a device has its clsact, and the handle of it (TC_H_CLSACT).
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
/// By priority and handle our filters are recognized. With the lowest priority number they run first.
const PRIORITY: u32 = 1;
const HANDLE: u32 = 0x746f_6c6c;
const NAME: &str = "tollgate";

/// The end of clsact where filters of a direction are (TC_H_MIN_EGRESS, TC_H_MIN_INGRESS).
fn parent(direction: Direction) -> u32 {
    match direction {
        Direction::Egress => 0xffff_fff3,
        Direction::Ingress => 0xffff_fff2,
    }
}

/// Struct tcmsg.
fn fixed(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, index, handle, parent, info].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Struct tcmsg of our filter, whatever the protocol of a packet.
fn own(index: u32, direction: Direction) -> Vec<u8> {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    fixed(index, HANDLE, parent(direction), PRIORITY << 16 | u32::from(protocol))
}

/// Whether our filter is there, with this program.
pub(super) fn is_there(socket: &Socket, index: u32, direction: Direction, program: u32) -> io::Result<bool> {
    let request = Request::new(libc::RTM_GETTFILTER, 0, &own(index, direction)).string(KIND, "bpf");
    match socket.ask(request) {
        Ok(found) => Ok(found.iter().any(|filter| program_of(filter) == Some(program))),
        // There is no such filter, or no clsact.
        Err(cause) if matches!(cause.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// The number of a filter's program.
fn program_of(filter: &Message) -> Option<u32> {
    let (_, attributes) = filter.split(FIXED).filter(|_| filter.kind == libc::RTM_NEWTFILTER)?;
    netlink::number(netlink::attribute(attributes, OPTIONS)?, BPF_ID)
}

/// Gives a device a clsact, unless it has one. Returns whether it had none.
pub(super) fn make_qdisc(socket: &Socket, index: u32) -> io::Result<bool> {
    let fixed = fixed(index, CLSACT_HANDLE, CLSACT, 0);
    let request = Request::new(libc::RTM_NEWQDISC, CREATE | EXCLUSIVE, &fixed).string(KIND, "clsact");
    match socket.ask(request) {
        Ok(_) => Ok(true),
        Err(cause) if cause.raw_os_error() == Some(libc::EEXIST) => Ok(false),
        Err(cause) => Err(cause),
    }
}

/// Whether the queueing discipline in the place of a clsact is one. `ingress` takes filters of both directions, and runs all
/// of them on packets that come.
pub(super) fn is_clsact(socket: &Socket, index: u32) -> io::Result<bool> {
    let found = socket.ask(Request::new(libc::RTM_GETQDISC, ECHO, &fixed(index, 0, CLSACT, 0)))?;
    let kind = found.iter().find_map(|qdisc| netlink::string(qdisc.split(FIXED)?.1, KIND));
    Ok(kind.as_deref() == Some("clsact"))
}

/// Removes a device's clsact.
pub(super) fn remove_qdisc(socket: &Socket, index: u32) -> io::Result<()> {
    let request = Request::new(libc::RTM_DELQDISC, 0, &fixed(index, CLSACT_HANDLE, CLSACT, 0));
    socket.ask(request.string(KIND, "clsact")).map(drop)
}

/// Puts our filter in place, instead of an earlier one of ours.
pub(super) fn put(socket: &Socket, index: u32, direction: Direction, program: &Loaded) -> io::Result<()> {
    let request = Request::new(libc::RTM_NEWTFILTER, CREATE | REPLACE, &own(index, direction)).string(KIND, "bpf");
    let request = request.nested(OPTIONS, |options| {
        let options = options.number(BPF_FD, program.as_fd().as_raw_fd().cast_unsigned());
        options.string(BPF_NAME, NAME).number(BPF_FLAGS, DIRECT_ACTION)
    });
    socket.ask(request).map(drop)
}

/// Removes our filter.
pub(super) fn remove(socket: &Socket, index: u32, direction: Direction) -> io::Result<()> {
    let request = Request::new(libc::RTM_DELTFILTER, 0, &own(index, direction)).string(KIND, "bpf");
    socket.ask(request).map(drop)
}

/// Whether a device's clsact has no filter.
pub(super) fn are_none(socket: &Socket, index: u32) -> io::Result<bool> {
    for direction in Direction::ALL {
        let found = socket.list(libc::RTM_GETTFILTER, &fixed(index, 0, parent(direction), 0), |request| request)?;
        if !found.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}
