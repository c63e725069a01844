//! A storm of forks.

use std::{io, ptr};

use nix::{
    errno::Errno,
    sys::wait::{WaitStatus, waitpid},
    unistd::{ForkResult, Pid, fork},
};

use crate::{
    place::Place,
    program::Program,
    workload::{Operation, Prepared},
};

const CHILDREN: usize = 100;

struct Storm {
    program: Program,
    children: Vec<Pid>,
}

pub(super) fn storm(place: &Place) -> Prepared {
    Ok(Box::new(Storm { program: Program::write_into(&place.dir)?, children: Vec::with_capacity(CHILDREN) }))
}

impl Operation for Storm {
    fn leaves_work(&self) -> bool {
        true
    }

    fn warm_ups(&self, _: usize) -> usize {
        1
    }

    fn run(&mut self) -> io::Result<()> {
        let path = self.program.path().as_ptr();
        let arguments = [path, ptr::null()];
        for _ in 0..CHILDREN {
            // SAFETY: the child makes two system calls, with pointers to what the parent has prepared.
            match unsafe { fork() }? {
                // SAFETY: the pointers lead to what the parent has prepared, and the array ends with a null pointer.
                ForkResult::Child => unsafe {
                    libc::execve(path, arguments.as_ptr(), arguments[1..].as_ptr());
                    libc::_exit(libc::EXIT_FAILURE)
                },
                ForkResult::Parent { child } => self.children.push(child),
            }
        }
        self.children.drain(..).map(reap).fold(Ok(()), Result::and)
    }
}

fn reap(child: Pid) -> io::Result<()> {
    loop {
        return match waitpid(child, None) {
            Err(Errno::EINTR) => continue,
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            Ok(status) => Err(io::Error::other(format!("a child cannot execute the program: {status:?}"))),
            Err(errno) => Err(errno.into()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::place::Network;

    #[test]
    fn runs_the_program_in_every_child_and_says_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path().to_owned(), Network::Loopback, folder.path().to_owned());
        let mut operation = storm(&place).unwrap();
        operation.run().unwrap();
        fs::remove_file(folder.path().join("exit")).unwrap();
        let error = operation.run().unwrap_err();
        assert!(error.to_string().contains("cannot execute"), "{error}");
    }
}
