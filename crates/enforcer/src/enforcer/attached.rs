//! The hooks whose programs are attached: those that the policy in force needs, and no others.

use tollgate_policy::{decide::Tables, model::Policy};

use crate::{
    enforcer::{Enforcer, EnforcerError, Options},
    generation::Generation,
    needs::{self, Setting, THROUGH_OVERLAY},
    programs::{self, Loading},
    survival,
};

/// While this hook has no program, other hooks check what it would.
const LOOKUPS: &str = "inode_permission";

/// The hooks that a policy needs, out of those that this kernel has.
pub(super) fn needed(
    options: &Options,
    setting: Setting,
    policy: &Policy,
    tables: &Tables,
    unconfined: &[String],
) -> Result<Vec<String>, EnforcerError> {
    let needs = needs::hooks(policy, tables, unconfined, setting)?;
    let mut hooks = programs::hooks()?;
    if options.hooks.is_empty() {
        hooks.retain(|hook| needs.iter().any(|need| need == hook));
    } else {
        hooks.retain(|hook| options.hooks.contains(hook));
    }
    Ok(hooks)
}

impl Enforcer {
    /// What decides beside the policy which hooks are needed.
    pub(super) fn setting(&self) -> Setting {
        Setting {
            descriptors: self.state.descriptors(),
            labelled: self.networks.are_labelled(),
            overlay: self.writes_through_overlay,
        }
    }

    /// The hooks that the policy in force or a candidate needs.
    pub(super) fn needed(&self) -> Result<Vec<String>, EnforcerError> {
        let Generation { policy, .. } = &self.generation;
        let unconfined = self.generation.unconfined();
        let mut hooks = needed(&self.options, self.setting(), policy, self.generation.tables(), &unconfined)?;
        hooks.extend(self.needed_by_shadow()?);
        Ok(hooks)
    }

    /// Attaches the programs that the generation needs and that are not attached. This comes before it is put in force.
    pub(super) fn attach(&self, needed: &[String]) -> Result<(), EnforcerError> {
        let pins = &self.options.pins;
        let attached = programs::attached(pins)?;
        let new: Vec<String> = needed.iter().filter(|hook| !attached.contains(hook)).cloned().collect();
        if !new.is_empty() {
            let objects = survival::load(pins, &new, &Loading::default())?;
            objects.iter().try_for_each(|object| programs::attach(pins, object))?;
            self.protect_pins()?;
        }
        // From here on the hook checks by itself. While it is not attached, the others check for it.
        self.state.set_no_lookups(!programs::attached(pins)?.iter().any(|hook| hook == LOOKUPS));
        Ok(())
    }

    /// Attaches the program that gives an inode the label which is written through overlayfs, before that is done for the
    /// first time. It stays: where files of an overlayfs are labelled once, more of them are.
    pub(super) fn attach_for_overlay(&mut self) -> Result<(), EnforcerError> {
        let own = &self.options.hooks;
        if self.writes_through_overlay || !own.is_empty() && !own.iter().any(|hook| hook == THROUGH_OVERLAY) {
            return Ok(());
        }
        self.attach(&[THROUGH_OVERLAY.to_owned()])?;
        self.writes_through_overlay = true;
        Ok(())
    }

    /// Detaches the programs that the generation in force does not need.
    pub(super) fn detach_all_but(&self, needed: &[String]) -> Result<(), EnforcerError> {
        self.state.set_no_lookups(!needed.iter().any(|hook| hook == LOOKUPS));
        for hook in programs::attached(&self.options.pins)?.iter().filter(|hook| !needed.contains(hook)) {
            programs::detach(&self.options.pins, hook)?;
        }
        Ok(())
    }
}
