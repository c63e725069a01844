//! Questions of the daemon to the kernel. The decision tables answer, in the same mode and with the same audit as for
//! hooks.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use libbpf_rs::Program;
use tollgate_abi::enforcer::{tg_inquiry, tg_socket};

use crate::{
    contexts::Sid,
    programs::{Pins, ProgramsError, run},
};

/// The question could not be asked. Then nothing is granted.
#[derive(Debug, thiserror::Error)]
#[error("the kernel did not run the program {program}: {cause}")]
pub struct InquiryError {
    /// Name of the program in `bpf/programs/inquiry.h`.
    pub program: &'static str,
    /// Why the program did not run.
    pub cause: io::Error,
}

#[derive(Debug)]
struct Inquiry {
    name: &'static str,
    program: OwnedFd,
}

impl Inquiry {
    fn open(pins: &Pins, name: &'static str) -> Result<Self, ProgramsError> {
        let path = pins.inquiry(name);
        let failed =
            |cause: libbpf_rs::Error| ProgramsError::Pins { path: path.clone(), cause: io::Error::other(cause) };
        Ok(Self { name, program: Program::fd_from_pinned_path(&path).map_err(failed)? })
    }

    /// Runs the program on `inquiry`, which holds the answer afterwards.
    fn put(&self, inquiry: &mut tg_inquiry) -> Result<(), InquiryError> {
        run(self.program.as_fd(), inquiry).map_err(|cause| InquiryError { program: self.name, cause })
    }
}

/// The programs that answer, opened.
#[derive(Debug)]
pub struct Inquiries {
    check: Inquiry,
    validate: Inquiry,
    keep: Inquiry,
    sweep: Inquiry,
    socket_label: Inquiry,
}

impl Inquiries {
    /// Opens the pinned programs.
    pub fn open(pins: &Pins) -> Result<Self, ProgramsError> {
        let open = |name| Inquiry::open(pins, name);
        Ok(Self {
            check: open("check")?,
            validate: open("validate")?,
            keep: open("keep")?,
            sweep: open("sweep")?,
            socket_label: open("socket_label")?,
        })
    }

    /// Whether a process of the domain `source` has the permissions `vector`. The audit names `process` as the subject.
    pub fn check(&self, source: Sid, target: Sid, class: u32, vector: u32, process: u32) -> Result<bool, InquiryError> {
        let mut inquiry = tg_inquiry { source, target, class, av: vector, process, ..Default::default() };
        self.check.put(&mut inquiry)?;
        Ok(inquiry.result == 0)
    }

    /// Registers an object that enforcement depends on, by a descriptor of this process that stays open. `place` is
    /// below `TG_VITAL`.
    pub fn keep(&self, place: u32, file: BorrowedFd<'_>) -> Result<(), InquiryError> {
        let mut inquiry = tg_inquiry { place, descriptor: file.as_raw_fd().cast_unsigned(), ..Default::default() };
        self.keep.put(&mut inquiry)?;
        match inquiry.result {
            0 => Ok(()),
            error => Err(InquiryError { program: self.keep.name, cause: io::Error::from_raw_os_error(-error) }),
        }
    }

    /// Removes entries about the owners of files that no longer exist. Returns how many.
    pub fn sweep(&self) -> Result<u32, InquiryError> {
        let mut inquiry = tg_inquiry::default();
        self.sweep.put(&mut inquiry)?;
        Ok(inquiry.result.cast_unsigned())
    }

    /// The labels of a socket of this process and of its peer. `None`: the machine made it, and nothing is known of its
    /// peer.
    pub fn socket_label(&self, socket: BorrowedFd<'_>) -> Result<Option<tg_socket>, InquiryError> {
        let mut inquiry = tg_inquiry { descriptor: socket.as_raw_fd().cast_unsigned(), ..Default::default() };
        self.socket_label.put(&mut inquiry)?;
        let label = tg_socket { sid: inquiry.source, class: inquiry.class, peer: inquiry.target, labelled: 0 };
        Ok((inquiry.result == 0).then_some(label))
    }

    /// Whether `task` may change the label of an object from `old` to `new` (validatetrans).
    pub fn validate(&self, old: Sid, new: Sid, task: Sid, class: u32) -> Result<bool, InquiryError> {
        let mut inquiry = tg_inquiry { source: old, target: new, task, class, ..Default::default() };
        self.validate.put(&mut inquiry)?;
        Ok(inquiry.result == 0)
    }
}
