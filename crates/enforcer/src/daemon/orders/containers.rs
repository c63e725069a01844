//! What hooks of container runtimes ask for: the context of a container that is about to start.

use std::os::fd::{AsFd, OwnedFd};

use tollgate_client::protocol::{Containers, Refusal, Reply};

use super::{Order, json, sid_of};

impl Order<'_> {
    pub(super) fn containers(&mut self, asked: Containers, with: &[OwnedFd]) -> Reply {
        match asked {
            Containers::Add { context, files } => self.contain([&context, &files], with),
            Containers::Sweep => {
                self.administrator(&[])?;
                self.machine.sweep_containers()?;
                Ok(vec![])
            }
            Containers::Report => {
                self.administrator(&["read_policy"])?;
                Ok(vec![json(&self.machine.containers()?)?])
            }
        }
    }

    /// A caller who is confined must be one who may start such a process itself, and label such files. The process is still
    /// the runtime's, one of the machine.
    fn contain(&mut self, names: [&str; 2], with: &[OwnedFd]) -> Reply {
        self.administrator(&[])?;
        let process = with.first().ok_or_else(|| Refusal::new(libc::EBADF, "no descriptor"))?.as_fd();
        let runs_as = sid_of(self.machine.task(process)?);
        if !self.machine.is_unconfined(runs_as) {
            return Err(Refusal::new(libc::EINVAL, "the process is confined already"));
        }
        let container = self.machine.name_container(process, names, self.peer.pid)?;
        self.may(container.context.0, "process", "transition")?;
        self.may(container.files.0, "file", "relabelto")?;
        self.machine.contain(&container, with.get(1).map(AsFd::as_fd))?;
        Ok(vec![container.context.1, container.files.1])
    }
}
