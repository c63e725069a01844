//! What the daemon does when it is woken: it logs denials, labels what has appeared, reports what was lost, and removes what
//! is not needed any more.

use std::{
    os::fd::{AsFd, AsRawFd},
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::{
    TG_EVENT_AVC, TG_EVENT_IDENTIFIER, TG_EVENT_MOUNT, TG_EVENT_NAMESPACE, TG_EVENT_SERVICE, TG_FAILED_EVENT_LIMIT,
    TG_FAILED_EVENT_LOST, TG_FAILED_NO_LABEL, tg_event,
};
use tollgate_audit::Reason;
use tollgate_client::shares::Room;
use tracing::{error, warn};

use super::{Enforced, known};
use crate::{
    daemon::{devices::Device, machine::Ready, messages},
    datapath::running::Met,
    enforcer::{Enforcer, of_device},
};

/// How often entries for owners of files that no longer exist are removed.
/// When one in `BUSY_FRACTION` of the places or more is taken, it is done more often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
const BUSY_SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const BUSY_FRACTION: u32 = 64;

impl Enforced {
    /// Does all that is due.
    pub(super) fn upkeep(&mut self, ready: &Ready) {
        if let Some(enforcer) = &mut self.enforcer {
            self.gaps.look(enforcer, &mut self.audit, ready);
        }
        self.events();
        if ready.has(self.devices.as_ref().map(|devices| devices.as_fd().as_raw_fd())) {
            self.devices();
        }
        self.losses();
        self.unlabelled();
        self.sweep();
        self.enforcer.iter_mut().for_each(|enforcer| {
            enforcer.follow_devices();
            enforcer.follow_units(ready.has(enforcer.units_changed().map(|units| units.as_raw_fd())));
            if ready.has(enforcer.replaced_wakes().map(|replaced| replaced.as_raw_fd())) {
                enforcer.follow_replaced();
            }
            enforcer.follow_containers();
            enforcer.watch_services();
            enforcer.set_clock();
        });
        self.enforcer.iter_mut().for_each(|enforcer| self.asking.follow(enforcer));
        if let Some(enforcer) = &mut self.enforcer
            && let Err(cause) = enforcer.look_again()
        {
            warn!(%cause, "what processes hold: {cause}");
        }
    }

    /// Logs denials, and does what events request for labels.
    pub(super) fn events(&mut self) {
        let batch = match self.events.wait(Duration::ZERO) {
            Ok(batch) => batch,
            Err(cause) => return error!(%cause, "cannot read events: {cause}"),
        };
        let Some(enforcer) = &mut self.enforcer else { return };
        enforcer.learn();
        self.audit.lost(Reason::Malformed, batch.malformed);
        let mut namespaces = Vec::new();
        for event in batch.events {
            self.trace.event(&event, |sid| known(enforcer, sid));
            match event.kind {
                TG_EVENT_AVC => {
                    self.denials += u64::from(event.denied != 0);
                    self.audit.event(&event, |sid| known(enforcer, sid));
                }
                TG_EVENT_MOUNT => mounted(enforcer, &event),
                TG_EVENT_SERVICE => enforcer.began(),
                TG_EVENT_IDENTIFIER => self.asking.met(&event, enforcer),
                TG_EVENT_NAMESPACE => {
                    namespaces.push(Met { number: event.device.into(), cookie: event.inode, process: event.tgid });
                }
                _ => {}
            }
        }
        enforcer.enter_namespaces(&namespaces);
        // Requests for labels are served here even if their events were lost, or were read by a daemon that was
        // killed.
        enforcer.catch_up().iter().for_each(|failure| warn!("labels: {failure}"));
        enforcer.checkpoint().iter().for_each(|failure| warn!("labels: {failure}"));
    }

    /// Labels the nodes of devices that have appeared.
    fn devices(&mut self) {
        let (Some(enforcer), Some(devices)) = (&mut self.enforcer, &self.devices) else { return };
        loop {
            match devices.next() {
                Ok(Some(device)) => appeared(enforcer, &device),
                Ok(None) => return,
                Err(cause) => {
                    warn!(
                        %cause,
                        "devices that appeared are not labelled: {cause}: `tollgate label restore -R /dev`"
                    );
                    return;
                }
            }
        }
    }

    /// Logs how many events were lost since a daemon last did so.
    fn losses(&mut self) {
        let Some(enforcer) = &self.enforcer else { return };
        let kinds = [(TG_FAILED_EVENT_LOST, Reason::RingBuffer), (TG_FAILED_EVENT_LIMIT, Reason::KernelLimit)];
        for (failure, reason) in kinds {
            let lost = enforcer.state().unreported(failure);
            self.denials += lost;
            self.audit.lost(reason, lost);
        }
    }

    /// Reports objects without a label that confined processes have met. What was denied to them is not always in the
    /// log.
    fn unlabelled(&self) {
        let Some(enforcer) = &self.enforcer else { return };
        let count = enforcer.state().unreported(TG_FAILED_NO_LABEL);
        if count > 0 {
            let last = enforcer.state().unlabelled();
            warn!("{}", messages::unlabelled(count, &last, &of_device(Some(last.device))));
        }
    }

    /// Removes entries for owners of files that no longer exist. It is done more often when many places are taken.
    fn sweep(&mut self) {
        let Some(enforcer) = &self.enforcer else { return };
        let shares = enforcer.state().shares();
        let (taken, places) = (shares.taken(Room::Owners), shares.room(Room::Owners));
        let pause = if taken < places / BUSY_FRACTION { SWEEP_INTERVAL } else { BUSY_SWEEP_INTERVAL };
        if taken == 0 || self.swept.elapsed() < pause {
            return;
        }
        self.swept = Instant::now();
        if let Err(cause) = self.inquiries.sweep() {
            warn!(%cause, "entries for owners of files that no longer exist are not removed: {cause}");
        }
    }
}

/// Labels the files of a file system that was mounted, or of a subvolume that has appeared in one.
fn mounted(enforcer: &mut Enforcer, event: &tg_event) {
    let labelled = match event.inode {
        0 => enforcer.label_mount(event.device),
        subvolume => enforcer.label_subvolume(event.device, subvolume, event.source),
    };
    match labelled {
        Ok(report) => report.messages.iter().for_each(|failure| warn!("not labelled: {failure}")),
        Err(cause) => warn!(%cause, "a new mount is not labelled: {cause}"),
    }
}

/// Labels the node of a device by `file_contexts`.
fn appeared(enforcer: &mut Enforcer, device: &Device) {
    let path = device.path();
    let labelled = match device.open() {
        Ok(Some((node, mode))) => enforcer.label_by_path(node.as_fd(), &path, mode).map_err(|cause| cause.to_string()),
        Ok(None) => Ok(()),
        Err(cause) => Err(cause.to_string()),
    };
    if let Err(cause) = labelled {
        warn!(path = %path.display(), %cause, "{} is not labelled: {cause}", path.display());
    }
}
