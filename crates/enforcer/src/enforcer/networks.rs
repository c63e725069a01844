//! Which networks are labelled, in the generation in force.

use std::{mem, sync::Arc};

use tollgate_abi::enforcer::{TG_NAMESPACES_FREE, tg_datapath};
use tollgate_policy::model::Level;
use tracing::warn;

use super::{Enforcer, EnforcerError};
use crate::{
    contexts::Sid,
    datapath::{
        Networks, Source,
        config::ConfigError,
        labelled,
        namespaces::Others,
        running::{self, Datapath, DatapathError, Met},
        table::{self, Numbers},
    },
};

impl Enforcer {
    /// Which networks are labelled, as the file said when the generation in force was made.
    #[must_use]
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    /// The same, to be kept: another one is in force when the file was read again.
    #[must_use]
    pub fn shared_networks(&self) -> &Arc<Networks> {
        &self.networks
    }

    /// Where labelled networks are configured. What is there is in force since the last reload.
    #[must_use]
    pub fn networks_source(&self) -> &Source {
        &self.options.network
    }

    /// Says where the next reload finds labelled networks. Returns where the last one has found them.
    pub fn set_networks_source(&mut self, source: Source) -> Source {
        mem::replace(&mut self.options.network, source)
    }

    /// Writes which networks are labelled into the generation, which no program may read yet.
    pub(super) fn label_packets(&mut self) -> Result<(), EnforcerError> {
        let table = self.table_of_packets()?;
        self.generation.put_datapath(&table);
        Ok(())
    }

    /// Begins to label packets from and to these networks, or goes on with them. If none is labelled, ends it.
    pub(super) fn label_devices(&mut self, networks: &Networks) -> Result<(), EnforcerError> {
        let (pins, folder) = (&self.options.pins, self.options.folder.path());
        if !networks.are_labelled() {
            if self.datapath.take().is_some() || pins.datapath().exists() {
                running::end(pins, folder);
            }
            return Ok(());
        }
        self.state.make_secret().map_err(DatapathError::from)?;
        let labelled = labelled::networks(&networks.config, self.generation.policy.categories.len());
        match &mut self.datapath {
            Some(datapath) => datapath.set_networks(labelled),
            None => self.datapath = Some(Datapath::start(pins, folder, labelled)?),
        }
        self.tell_room();
        self.protect_pins()
    }

    /// Tells programs whether packets can be labelled in other namespaces.
    fn tell_room(&mut self) {
        self.state.set_namespaces_full(self.datapath.as_ref().map_or(TG_NAMESPACES_FREE, Datapath::fullness));
        if self.datapath.as_mut().is_some_and(Datapath::take_uncovered) {
            self.state.forget_labelled();
        }
    }

    /// Labels in packets; `None`: no network has any.
    #[must_use]
    pub fn datapath(&self) -> Option<&Datapath> {
        self.datapath.as_ref()
    }

    /// Follows network devices and routes.
    pub(crate) fn follow_devices(&mut self) {
        if self.datapath.as_mut().is_some_and(Datapath::follow)
            && let Err(cause) = self.protect_pins()
        {
            warn!(%cause, "new pins are not labelled: {cause}");
        }
        self.tell_room();
    }

    /// Labels packets in the network namespaces of confined processes' sockets.
    pub(crate) fn enter_namespaces(&mut self, all: &[Met]) {
        let mut others = Others::default();
        for met in all {
            let Some(datapath) = &mut self.datapath else { return };
            datapath.enter(*met, &mut others);
            self.tell_room();
        }
        if !all.is_empty()
            && let Err(cause) = self.protect_pins()
        {
            warn!(%cause, "new pins are not labelled: {cause}");
        }
    }

    /// Whether the generation in force has something else than the file said when it was read.
    pub fn networks_differ(&mut self) -> bool {
        // What does not fit the policy in force cannot be in force.
        self.table_of_packets().map_or(true, |table| !self.generation.has_datapath(&table))
    }

    fn table_of_packets(&mut self) -> Result<Box<tg_datapath>, ConfigError> {
        let (networks, policy) = (Arc::clone(&self.networks), Arc::clone(&self.generation.policy));
        let mut table = table::of(&networks, &policy, self)?;
        table.seal.generation = self.generation.policy_number();
        Ok(table)
    }
}

impl Numbers for Enforcer {
    fn sid(&mut self, context: &str) -> Result<Sid, String> {
        self.intern(context).map_err(|cause| cause.to_string())
    }

    fn level(&mut self, level: &Level) -> Result<u32, String> {
        self.generation.level(level).map_err(|cause| cause.to_string())
    }
}
