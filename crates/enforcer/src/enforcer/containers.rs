//! Contexts of containers, in the map in which programs look them up. The map is all that is known: the next daemon goes on
//! with it.

use std::{collections::BTreeSet, io, os::fd::BorrowedFd, path::Path};

use libbpf_rs::{MapCore, MapFlags};
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, fstatfs};
use tollgate_abi::{
    bytes_of,
    enforcer::{TG_CONTAINER_DEPTH, tg_container},
};
use tollgate_client::containers;
use tracing::{info, warn};
use zerocopy::FromBytes;

use super::{Enforcer, object::object};
use crate::{
    containers::{
        Container, ContainerError, DOMAINS,
        categories::{self, Pair},
        cgroup::{Cgroup, Hierarchy, number_of, path_of_process},
        has_range, pair_of, with_pair,
    },
    contexts::Sid,
};

fn kernel(cause: impl std::fmt::Display) -> ContainerError {
    ContainerError::Kernel(cause.to_string())
}

impl Enforcer {
    /// The context and the label that a container gets whose first process this is. What names no range gets two
    /// categories that no other container has. `caller`: the process that asks, which cannot be in the container.
    pub fn name_container(
        &mut self,
        process: BorrowedFd<'_>,
        [context, files]: [&str; 2],
        caller: i32,
    ) -> Result<Container, ContainerError> {
        let cgroup = cgroup_of(process, caller)?;
        let entries = self.container_entries()?;
        if let Some((number, known)) = entries.iter().find(|(number, _)| *number == cgroup.number) {
            return self.known_container(*number, known, context);
        }
        let taken: BTreeSet<Pair> = entries.iter().filter_map(|(_, known)| pair_of(self.meaning(known.sid)?)).collect();
        let pair = if has_range(context) && has_range(files) {
            None
        } else {
            let full = || ContainerError::Full("each pair of categories is taken".into());
            self.last_pair = Some(categories::free(self.last_pair, &taken).ok_or_else(full)?);
            self.last_pair
        };
        let text = |context: &str| pair.map_or_else(|| context.to_owned(), |pair| with_pair(context, pair));
        let (context, files) = (text(context), text(files));
        if !self.is_container_domain(&context)? {
            return Err(ContainerError::Domain(context));
        }
        Ok(Container {
            cgroup: cgroup.number,
            context: (self.intern(&context).map_err(kernel)?, context),
            files: (self.intern(&files).map_err(kernel)?, files),
        })
    }

    /// Puts the context of a container in force. `root`: the directory that will be its root. If that is the root of an
    /// overlay, all its files have the container's label.
    pub fn contain(&mut self, container: &Container, root: Option<BorrowedFd<'_>>) -> Result<(), ContainerError> {
        let files = container.files.0;
        let device = root.map(overlay).transpose().map_err(kernel)?.flatten();
        let entries = self.container_entries()?;
        let others = entries.iter().filter(|(number, _)| *number != container.cgroup);
        if others.into_iter().any(|(_, other)| device == Some(other.device) && other.files != files) {
            return Err(ContainerError::Root);
        }
        let entry = tg_container { sid: container.context.0, files, device: device.unwrap_or(0), reserved: 0 };
        // The program looks as soon as there is an entry.
        self.state.set_containers(entries.len() as u32 + 1);
        let put = self.maps.containers.update(&container.cgroup.to_ne_bytes(), bytes_of(&entry), MapFlags::ANY);
        put.map_err(|cause| ContainerError::Full(cause.to_string()))?;
        if let Some(device) = device
            && !self.kernel_maps().set_context(device, files).map_err(kernel)?
        {
            return Err(kernel("its root file system was mounted before enforcement began: mount it again"));
        }
        self.state.forget();
        info!("a container starts as {}", container.context.1);
        Ok(())
    }

    /// Takes back the contexts and categories of containers whose cgroups are gone.
    pub fn sweep_containers(&mut self) -> Result<(), ContainerError> {
        if self.state.containers() == 0 {
            return Ok(());
        }
        let hierarchy = Hierarchy::open().map_err(ContainerError::Cgroup)?;
        let (mut left, mut gone) = (Vec::new(), Vec::new());
        for (number, entry) in self.container_entries()? {
            let found = hierarchy.find(number).map_err(ContainerError::Cgroup)?;
            if found.is_some() { &mut left } else { &mut gone }.push((number, entry));
        }
        for (number, entry) in &gone {
            self.maps.containers.delete(&number.to_ne_bytes()).map_err(kernel)?;
            if entry.device != 0 && !left.iter().any(|(_, other)| other.device == entry.device) {
                self.leave_root(entry).map_err(kernel)?;
            }
        }
        self.state.set_containers(left.len() as u32);
        if !gone.is_empty() {
            self.state.forget();
        }
        Ok(())
    }

    /// [`Self::sweep_containers`], once per second.
    pub fn follow_containers(&mut self) {
        if let Err(cause) = self.sweep_containers() {
            warn!(%cause, "categories of containers that have ended are not given back: {cause}");
        }
    }

    /// The containers that have a context.
    pub fn containers(&mut self) -> Result<Vec<containers::Container>, ContainerError> {
        self.learn();
        self.sweep_containers()?;
        let entries = self.container_entries()?;
        let hierarchy =
            if entries.is_empty() { None } else { Some(Hierarchy::open().map_err(ContainerError::Cgroup)?) };
        let text = |sid: Sid| self.meaning(sid).unwrap_or_default().to_owned();
        let report = |(number, entry): (u64, tg_container)| {
            let cgroup = hierarchy.as_ref()?.find(number).ok()??;
            Some(containers::Container { cgroup, context: text(entry.sid), files: text(entry.files) })
        };
        let mut report: Vec<containers::Container> = entries.into_iter().filter_map(report).collect();
        report.sort_by(|one, other| one.cgroup.cmp(&other.cgroup));
        Ok(report)
    }

    /// A container whose hook is called again has its context already.
    fn known_container(&self, cgroup: u64, known: &tg_container, wanted: &str) -> Result<Container, ContainerError> {
        let text = |sid: Sid| self.meaning(sid).unwrap_or_default().to_owned();
        let context = text(known.sid);
        if context != wanted && (has_range(wanted) || !context.starts_with(&format!("{wanted}:"))) {
            return Err(ContainerError::Known(context));
        }
        Ok(Container { cgroup, context: (known.sid, context), files: (known.files, text(known.files)) })
    }

    fn is_container_domain(&mut self, context: &str) -> Result<bool, ContainerError> {
        let found = self.generation.context(context).map_err(kernel)?;
        Ok(self.generation.has_attribute(found.type_, DOMAINS))
    }

    fn container_entries(&self) -> Result<Vec<(u64, tg_container)>, ContainerError> {
        let map = &self.maps.containers;
        let entry = |key: Vec<u8>| {
            let value = map.lookup(&key, MapFlags::ANY).map_err(kernel)?;
            // Nobody but this daemon removes entries.
            let value = value.and_then(|value| tg_container::read_from_bytes(&value).ok());
            Ok(key.first_chunk().copied().map(u64::from_ne_bytes).zip(value))
        };
        map.keys().filter_map(|key| entry(key).transpose()).collect()
    }

    /// Files of an overlay that is no container's root any more have labels of their own again.
    fn leave_root(&self, entry: &tg_container) -> io::Result<()> {
        let maps = self.kernel_maps();
        match maps.superblock(entry.device)? {
            Some(found) if found.context == entry.files => maps.set_context(entry.device, 0).map(drop),
            _ => Ok(()),
        }
    }
}

/// The cgroup of a container's first process. Neither the caller nor the daemon is in it: everything that the machine executes
/// there is confined.
fn cgroup_of(process: BorrowedFd<'_>, caller: i32) -> Result<Cgroup, ContainerError> {
    let ended = || ContainerError::Cgroup(io::Error::from_raw_os_error(libc::ESRCH));
    let number = number_of(process).map_err(ContainerError::Cgroup)?.ok_or_else(ended)?;
    let hierarchy = Hierarchy::open().map_err(ContainerError::Cgroup)?;
    let cgroup = hierarchy.of_process(number).map_err(ContainerError::Cgroup)?;
    // The number was still the process's, and not another's by then.
    number_of(process).map_err(ContainerError::Cgroup)?.ok_or_else(ended)?;
    for other in [caller, std::process::id() as i32] {
        let path = path_of_process(other).map_err(ContainerError::Cgroup)?;
        if cgroup.path == Path::new("/") || cgroup.holds(&path) {
            return Err(ContainerError::Shared(cgroup.path.display().to_string()));
        }
    }
    if cgroup.depth() > TG_CONTAINER_DEPTH as usize {
        return Err(ContainerError::Deep(cgroup.path.display().to_string()));
    }
    Ok(cgroup)
}

/// The device of an overlay, of which a directory is the root; `None`: the directory is not one.
fn overlay(root: BorrowedFd<'_>) -> io::Result<Option<u32>> {
    if fstatfs(root)?.filesystem_type() != OVERLAYFS_SUPER_MAGIC {
        return Ok(None);
    }
    Ok(Some(object(root).map_err(io::Error::other)?.device))
}
