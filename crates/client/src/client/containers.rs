//! Containers.

use std::os::fd::BorrowedFd;

use super::{Client, ClientError, unexpected};
use crate::{
    containers::Container,
    protocol::{Containers, Request},
};

impl Client {
    /// Gives a container that is about to start its context, and returns it with the label of the container's files.
    /// `process` is the pidfd of its first process, and `root` the directory that will be its root. What names no range
    /// gets two categories that no other container has.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] with the reason: the container must not start.
    pub fn contain(
        &mut self,
        process: BorrowedFd<'_>,
        root: Option<BorrowedFd<'_>>,
        context: &str,
        files: &str,
    ) -> Result<(String, String), ClientError> {
        let add = Containers::Add { context: context.to_owned(), files: files.to_owned() };
        let with: Vec<BorrowedFd<'_>> = [process].into_iter().chain(root).collect();
        let words = self.request(&Request::Containers(add), &with)?;
        <[String; 2]>::try_from(words)
            .map(|[context, files]| (context, files))
            .map_err(|words| unexpected("a context and a label", words.join(" ")))
    }

    /// Has the contexts of containers that have ended taken back at once, and not within a second.
    pub fn sweep_containers(&mut self) -> Result<(), ClientError> {
        self.request(&Request::Containers(Containers::Sweep), &[]).map(drop)
    }

    /// The containers that have a context.
    pub fn containers(&mut self) -> Result<Vec<Container>, ClientError> {
        let json = self.word(&Request::Containers(Containers::Report), &[])?;
        serde_json::from_str(&json).map_err(|_| unexpected("containers", json))
    }
}
