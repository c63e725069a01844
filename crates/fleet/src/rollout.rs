//! Rollouts: which nodes take a generation in which mode, and the steps, each a manifest with a higher number.

use crate::{
    hash::Hash,
    manifest::{Manifest, Progress},
    name::Name,
    stage::{Mode, Nodes, Stage},
    time::Time,
};

/// What a node must do by a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It takes the generation, in this mode.
    Take(Mode),
    /// It is not its turn: it keeps what it has.
    Wait,
    /// The rollout is paused: it takes nothing, and keeps the generation if it has it, in this mode.
    Keep(Mode),
}

impl Manifest {
    /// What a node of the group must do. `groups`: smaller groups, to which it belongs as well.
    #[must_use]
    pub fn duty(&self, node: &Name, groups: &[Name]) -> Duty {
        match (self.stage(node, groups), self.progress) {
            (None, _) => Duty::Wait,
            (Some(stage), Progress::Paused(_)) => Duty::Keep(stage.mode),
            (Some(stage), _) => Duty::Take(stage.mode),
        }
    }

    /// The stage in which a node is now: the latest of its stages, so that a canary becomes enforcing with everybody.
    #[must_use]
    pub fn stage(&self, node: &Name, groups: &[Name]) -> Option<&Stage> {
        let share = share_of(node, &self.generation());
        let has = |stage: &&Stage| match &stage.nodes {
            Nodes::Share(percent) => share < u64::from(*percent) * 100,
            Nodes::Group(group) => groups.contains(group),
        };
        self.open().iter().rev().find(has)
    }

    /// Whether all nodes take it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.progress, Progress::Emergency) || self.progress == Progress::Open(self.stages.len())
    }
}

/// In which ten thousandth of the nodes this one is, for this generation: no node is always the first.
fn share_of(node: &Name, generation: &Hash) -> u64 {
    let Hash(hash) = Hash::of(format!("{generation} {node}").as_bytes());
    hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) % 10_000
}

/// A step of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The next stage begins.
    Promote,
    /// No further node takes the generation.
    Pause,
    /// They do again.
    Resume,
    /// All nodes take it at once, in the last stage's mode.
    Emergency,
    /// Nothing changes but the time at which the manifest expires.
    Renew,
}

/// Why a step cannot be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// No stage is left.
    #[error("the rollout is complete, so there is no next stage; `rollout renew` signs it again")]
    Complete,
    /// It is paused.
    #[error("the rollout is paused: begin with `rollout resume`")]
    Paused,
    /// It is not paused.
    #[error("the rollout is not paused, so it cannot be resumed")]
    Running,
    /// Its present stage has not held long enough.
    #[error("the present stage must hold until {0}: wait, or say --now if this is an emergency")]
    Hold(Time),
    /// Too many nodes are without proof.
    #[error(
        "{found} nodes do not prove that they have it, and {limit} may: see `report`, or say --now in an emergency"
    )]
    Missing {
        /// How many are.
        found: usize,
        /// How many may be.
        limit: u32,
    },
    /// There is nothing to go back to.
    #[error("this is the fleet's first generation, so there is none to go back to: publish another one")]
    First,
}

/// What comes after a manifest, and how long it is valid.
#[derive(Debug, Clone, Copy)]
pub struct After<'a> {
    /// The manifest in force.
    pub manifest: &'a Manifest,
    /// Its hash.
    pub hash: Hash,
    /// The version of the root file whose keys sign the next one.
    pub root: u64,
    /// When the next one is made.
    pub made: Time,
    /// When it expires.
    pub expires: Time,
}

impl After<'_> {
    /// A step of its rollout.
    pub fn step(&self, step: Step) -> Result<Manifest, StepError> {
        let Manifest { progress, stages, .. } = self.manifest;
        let progress = match (step, *progress) {
            (Step::Renew, progress) => progress,
            (Step::Emergency, _) => Progress::Emergency,
            (Step::Promote | Step::Pause, Progress::Paused(_)) => return Err(StepError::Paused),
            (Step::Promote, Progress::Open(open)) if open < stages.len() => Progress::Open(open + 1),
            (Step::Pause, Progress::Open(open)) if open < stages.len() => Progress::Paused(open),
            (Step::Promote | Step::Pause, _) => return Err(StepError::Complete),
            (Step::Resume, Progress::Paused(open)) => Progress::Open(open),
            (Step::Resume, _) => return Err(StepError::Running),
        };
        Ok(Manifest { progress, ..self.next() })
    }

    /// Whether the limits of the present stage allow the next one, where so many nodes do not prove that they have the
    /// generation, though they should.
    pub fn may_promote(&self, missing: usize) -> Result<(), StepError> {
        let Some(stage) = self.manifest.open().last() else { return Ok(()) };
        let until = self.manifest.made.after(stage.hold);
        match () {
            () if self.made < until => Err(StepError::Hold(until)),
            () if missing as u64 > u64::from(stage.missing) => {
                Err(StepError::Missing { found: missing, limit: stage.missing })
            }
            () => Ok(()),
        }
    }

    /// Back at once to the generation that all nodes had before: `base`, which the manifest names.
    pub fn back(&self, base: &Manifest) -> Manifest {
        let mode = base.stages.last().map_or(Mode::Enforcing, |stage| stage.mode);
        let (parts, stages) = (base.parts.clone(), vec![Stage::everybody(mode)]);
        Manifest { parts, stages, progress: Progress::Emergency, base: base.base, ..self.next() }
    }

    /// The manifest whose generation all nodes have when a rollout begins now.
    #[must_use]
    pub fn base(&self) -> Option<Hash> {
        if self.manifest.is_complete() { Some(self.hash) } else { self.manifest.base }
    }

    /// The manifest of the next number, with all else as it is.
    #[must_use]
    pub fn next(&self) -> Manifest {
        let Self { manifest, hash, root, made, expires } = *self;
        // A new root file begins anew, so that a stolen key's number does not last.
        let number = if root == manifest.root { manifest.number.saturating_add(1) } else { 1 };
        Manifest { number, root, before: Some(hash), made, expires, ..manifest.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        document::Signed,
        trust::tests::{manifest, name},
    };

    fn at(progress: Progress) -> Manifest {
        Manifest { progress, ..manifest(7) }
    }

    fn after(manifest: &Manifest) -> After<'_> {
        let (made, expires) = (manifest.made, manifest.expires);
        After { manifest, hash: Signed::new(manifest.clone()).hash(), root: 1, made, expires }
    }

    #[test]
    fn takes_the_share_that_a_stage_names_and_keeps_it_in_the_next() {
        let nodes: Vec<Name> = (0..10_000).map(|number| name(&format!("node-{number}"))).collect();
        let count = |manifest: &Manifest, duty| nodes.iter().filter(|node| manifest.duty(node, &[]) == duty).count();
        let tenth = count(&at(Progress::Open(2)), Duty::Take(Mode::Permissive));
        assert!((900..1100).contains(&tenth), "{tenth}");
        assert_eq!(count(&at(Progress::Open(1)), Duty::Wait), 10_000, "only the canary group");
        assert_eq!(count(&at(Progress::Paused(2)), Duty::Keep(Mode::Permissive)), tenth);
        for progress in [Progress::Open(3), Progress::Emergency] {
            assert_eq!(count(&at(progress), Duty::Take(Mode::Enforcing)), 10_000);
        }
        // Another generation begins with other nodes.
        let other = Manifest { parts: manifest(7).parts[..6].to_vec(), ..at(Progress::Open(2)) };
        let both = nodes
            .iter()
            .filter(|node| [&other, &at(Progress::Open(2))].iter().all(|m| m.duty(node, &[]) != Duty::Wait));
        assert!(both.count() < tenth / 2);
    }

    #[test]
    fn takes_nodes_of_a_named_group_first() {
        let canary = [name("canary")];
        assert_eq!(at(Progress::Open(1)).duty(&name("a"), &canary), Duty::Take(Mode::Shadow));
        assert_eq!(at(Progress::Open(1)).duty(&name("a"), &[]), Duty::Wait);
        assert_eq!(at(Progress::Open(3)).duty(&name("a"), &canary), Duty::Take(Mode::Enforcing));
    }

    #[test]
    fn steps_from_stage_to_stage_and_refuses_steps_that_make_no_sense() {
        use Progress::{Emergency, Open, Paused};
        let step = |from, step| after(&at(from)).step(step).map(|next| next.progress);
        assert_eq!(step(Open(1), Step::Promote), Ok(Open(2)));
        assert_eq!(step(Open(3), Step::Promote), Err(StepError::Complete));
        assert_eq!(step(Open(1), Step::Pause), Ok(Paused(1)));
        assert_eq!(step(Paused(1), Step::Promote), Err(StepError::Paused));
        assert_eq!(step(Paused(1), Step::Resume), Ok(Open(1)));
        assert_eq!(step(Open(1), Step::Resume), Err(StepError::Running));
        assert_eq!(step(Paused(2), Step::Emergency), Ok(Emergency));
        assert_eq!(step(Emergency, Step::Pause), Err(StepError::Complete));
        let next = after(&at(Open(2))).step(Step::Renew).unwrap();
        assert_eq!((next.number, next.before, next.progress), (8, Some(after(&at(Open(2))).hash), Open(2)));
        assert_eq!(next.fault(), None);
    }

    #[test]
    fn refuses_the_next_stage_before_the_present_one_has_held_and_is_proven() {
        let current = at(Progress::Open(2));
        let after = |seconds| After { made: current.made.after(Duration::from_secs(seconds)), ..after(&current) };
        assert_eq!(after(3600).may_promote(2), Ok(()));
        assert_eq!(after(3599).may_promote(0), Err(StepError::Hold(current.made.after(Duration::from_secs(3600)))));
        assert_eq!(after(3600).may_promote(3), Err(StepError::Missing { found: 3, limit: 2 }));
    }

    #[test]
    fn goes_back_to_the_generation_before_with_a_higher_number() {
        let base = Manifest { parts: manifest(3).parts[..6].to_vec(), ..manifest(3) };
        let current = at(Progress::Open(2));
        let back = after(&current).back(&base);
        assert_eq!((back.number, back.generation(), back.fault()), (8, base.generation(), None));
        assert_eq!(back.duty(&name("a"), &[]), Duty::Take(Mode::Enforcing));
    }

    #[test]
    fn begins_with_1_under_a_new_root_file() {
        let current = at(Progress::Open(2));
        assert_eq!(After { root: 2, ..after(&current) }.next().number, 1);
    }

    #[test]
    fn names_as_base_what_all_nodes_had() {
        let base = Some(Hash::of(b"base"));
        let running = Manifest { base, ..at(Progress::Open(2)) };
        assert_eq!(after(&running).base(), base);
        let complete = at(Progress::Open(3));
        assert_eq!(after(&complete).base(), Some(after(&complete).hash));
    }
}
