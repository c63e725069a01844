//! Why hooks have programs, or have none.

use std::cell::OnceCell;

use tollgate_client::why::{Kind, Reason, Why};
use tollgate_policy::{built::Built, context::nearest, explain::Explainer, model::Term};

use super::{Enforcer, EnforcerError};
use crate::{
    generation::Generation,
    hooks::{self, Hook, Purpose},
    needs::{self, Need, USE},
    programs,
};

/// The words for a program that is needed and not attached.
const DETACHED: &str =
    "needed, but somebody has detached it: end enforcement with `tollgate stop --force`, then start it again";
/// The words for the one program that a cgroup runs.
const NO_CGROUP: &str = "no cgroup runs it: mount cgroup v2 on /sys/fs/cgroup, and reload";

/// What is known about a hook beside its policies.
#[derive(Debug, Clone, Copy)]
struct Facts {
    attached: bool,
    /// Whether the kernel has the hook.
    here: bool,
    /// Whether the administrator named this hook; `None`: he named none.
    chosen: Option<bool>,
}

impl Enforcer {
    /// Why hooks have programs, or have none: `hook`, or all that have a program in this version.
    pub fn why(&self, hook: Option<&str>) -> Result<Vec<Why>, EnforcerError> {
        if let Some(known) = self.without_program(hook)? {
            return Ok(vec![known]);
        }
        let (attached, here) = (self.hooks()?, programs::hooks()?);
        let mut trial = self.why_of_shadow(hook)?;
        let mut all = Vec::new();
        for Need { hook, mut reasons } in self.why_of_policy(hook)? {
            reasons.iter_mut().for_each(|reason| self.add_mode(reason));
            reasons.extend(
                trial.iter_mut().find(|need| need.hook == hook).into_iter().flat_map(|need| need.reasons.drain(..)),
            );
            reasons.extend(self.why_revoking(hook));
            let chosen = (!self.options.hooks.is_empty()).then(|| self.options.hooks.iter().any(|name| name == hook));
            let is_in = |list: &[String]| list.iter().any(|name| name == hook);
            let facts = Facts { attached: is_in(&attached), here: is_in(&here), chosen };
            all.push(judged(hook, reasons, facts, needs::omitted(hook, self.setting())));
        }
        Ok(all)
    }

    /// The answer for a hook that has no program in this version; an error for a name that no hook has.
    fn without_program(&self, hook: Option<&str>) -> Result<Option<Why>, EnforcerError> {
        let Some(name) = hook else { return Ok(None) };
        let all = hooks::all()?;
        let Some(Hook { purpose, remark, .. }) = all.iter().find(|hook| hook.name == name) else {
            let like = nearest(name, all.iter().map(|hook| hook.name));
            return Err(EnforcerError::NoHook { name: name.to_owned(), like });
        };
        let text = if remark.is_empty() { "nothing is checked there, and no label is kept" } else { remark };
        let why = || Why { hook: name.to_owned(), attached: false, reasons: vec![Reason::new(Kind::NoProgram, text)] };
        Ok((*purpose == Purpose::Nothing).then(why))
    }

    fn why_of_policy(&self, hook: Option<&str>) -> Result<Vec<Need>, EnforcerError> {
        let Generation { policy, number, .. } = &self.generation;
        let lines = OnceCell::new();
        let explainer = OnceCell::new();
        let read = || Built::open(&self.options.folder.policy(*number)).map(|built| built.lines).unwrap_or_default();
        let places = |class, permission, expression: &[Term]| {
            let explainer: &Explainer<'_> = explainer.get_or_init(|| Explainer::new(policy, lines.get_or_init(read)));
            let places = explainer.constraint(class, permission, expression);
            places.into_iter().map(|place| format!("{}:{}", place.file, place.line)).collect()
        };
        let unconfined = self.generation.unconfined();
        Ok(needs::why(policy, self.generation.tables(), &unconfined, self.setting(), &places, hook)?)
    }

    /// Adds what a mode makes of a denial.
    fn add_mode(&self, reason: &mut Reason) {
        let Some(example) = reason.example.as_ref().filter(|_| reason.kind != Kind::Audit) else { return };
        if !self.state.enforcing() {
            reason.text.push_str(" (in permissive mode, it is granted and audited)");
        } else if self.generation.permissive().contains(&example.source) {
            reason.text.push_str(" (the domain is permissive, so it is granted and audited)");
        }
    }

    /// Each use of a descriptor is checked while one is held that the policy denies.
    fn why_revoking(&self, hook: &str) -> Option<Reason> {
        let held = self.revoked();
        let is_held = hook == USE && held.descriptors + held.mappings > 0;
        let text = || {
            format!("{} descriptors and {} mappings are held that the policy denies", held.descriptors, held.mappings)
        };
        is_held.then(|| Reason::new(Kind::Revocation, text()))
    }
}

/// The answer for a hook. `omitted` is the reason if there is no other.
fn judged(hook: &str, mut reasons: Vec<Reason>, facts: Facts, omitted: Reason) -> Why {
    let Facts { attached, here, chosen } = facts;
    match chosen {
        Some(true) => reasons = vec![Reason::new(Kind::Chosen, "`enforce --hook` names it")],
        Some(false) => reasons = Vec::new(),
        None => {}
    }
    let instead = match (attached, reasons.is_empty()) {
        (false, _) if !here => Some(Reason::new(Kind::Absent, "this kernel has no such hook")),
        (false, true) if chosen.is_some() => Some(Reason::new(Kind::Chosen, "`enforce --hook` names others")),
        (false, true) => Some(omitted),
        (false, false) if hook == programs::PEERS => Some(Reason::new(Kind::Absent, NO_CGROUP)),
        (false, false) => Some(Reason::new(Kind::Detached, DETACHED)),
        (true, true) => Some(Reason::new(Kind::Unneeded, "nothing needs it any more; the next reload detaches it")),
        (true, false) => None,
    };
    if let Some(instead) = instead {
        reasons.insert(0, instead);
    }
    Why { hook: hook.to_owned(), attached, reasons }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Facts = Facts { attached: true, here: true, chosen: None };

    fn kinds(reasons: &[Kind], facts: Facts) -> Vec<Kind> {
        let reasons = reasons.iter().map(|kind| Reason::new(*kind, "")).collect();
        let why = judged("file_open", reasons, facts, Reason::new(Kind::Omitted, ""));
        assert_eq!(why.attached, facts.attached);
        why.reasons.into_iter().map(|reason| reason.kind).collect()
    }

    #[test]
    fn has_the_policys_reasons_for_a_program_that_is_attached() {
        assert_eq!(kinds(&[Kind::Labels, Kind::Rule], HERE), [Kind::Labels, Kind::Rule]);
        assert_eq!(kinds(&[], HERE), [Kind::Unneeded]);
    }

    #[test]
    fn says_why_a_program_is_not_attached() {
        let facts = Facts { attached: false, ..HERE };
        assert_eq!(kinds(&[], facts), [Kind::Omitted]);
        assert_eq!(kinds(&[Kind::Rule], facts), [Kind::Detached, Kind::Rule]);
        let absent = Facts { here: false, ..facts };
        assert_eq!(kinds(&[], absent), [Kind::Absent]);
        assert_eq!(kinds(&[Kind::Rule], absent), [Kind::Absent, Kind::Rule]);
    }

    #[test]
    fn gives_no_reason_of_the_policys_where_the_administrator_has_named_the_hooks() {
        assert_eq!(kinds(&[Kind::Rule], Facts { chosen: Some(true), ..HERE }), [Kind::Chosen]);
        assert_eq!(kinds(&[Kind::Rule], Facts { chosen: Some(false), attached: false, here: true }), [Kind::Chosen]);
    }
}
