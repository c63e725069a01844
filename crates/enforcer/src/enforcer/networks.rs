//! Which networks are labelled, in the generation in force.

use std::sync::Arc;

use tollgate_abi::enforcer::tg_datapath;
use tollgate_policy::model::Level;

use super::{Enforcer, EnforcerError};
use crate::{
    contexts::Sid,
    datapath::{
        Networks,
        config::ConfigError,
        table::{self, Numbers},
    },
};

impl Enforcer {
    /// Which networks are labelled, as the file said when the generation in force was made.
    #[must_use]
    pub fn networks(&self) -> &Networks {
        &self.networks
    }

    /// Writes which networks are labelled into the generation, which no program may read yet.
    pub(super) fn label_packets(&mut self) -> Result<(), EnforcerError> {
        let table = self.datapath()?;
        self.generation.put_datapath(&table);
        Ok(())
    }

    /// Whether the file says something else than the generation has, which an earlier daemon has put in force.
    pub(super) fn networks_differ(&mut self) -> bool {
        // What does not fit the policy in force cannot be in force.
        self.datapath().map_or(true, |table| !self.generation.has_datapath(&table))
    }

    fn datapath(&mut self) -> Result<Box<tg_datapath>, ConfigError> {
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
