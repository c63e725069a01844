//! The candidate: a policy that is checked beside the policy in force. It decides nothing. What it would have decided
//! otherwise is counted (`bpf/shadow.h`).

use std::{
    fs,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use libbpf_rs::{MapCore, MapFlags};
use nix::time::{ClockId, clock_gettime};
use tollgate_abi::{
    CLASSES,
    enforcer::{SECINITSID_UNLABELED, TG_CANDIDATE, tg_difference, tg_difference_key},
};
use tollgate_client::shadow::{Candidate, Difference, MAX_DIFFERENCES, Report};
use tollgate_policy::built::Built;

use super::{Enforcer, EnforcerError, attached, map_error};
use crate::{
    contexts::Sid,
    generation::Generation,
    needs::{self, Need},
    programs,
};

/// The generation number of a candidate, above all numbers of generations that are put in force.
const GENERATION_NUMBER: u32 = 1 << 31;

/// The candidate, and the user's name for it.
#[derive(Debug)]
pub(super) struct Shadow {
    generation: Generation,
    candidate: Candidate,
}

impl Enforcer {
    /// Makes a policy the candidate, in place of an earlier one. Returns the contexts in use that it does not permit.
    /// For the candidate, these are unlabelled.
    pub fn start_shadow(&mut self, built: Built, name: &str) -> Result<Vec<String>, EnforcerError> {
        self.learn();
        self.stop_shadow()?;
        let machine = self.options.machine(&built.policy)?;
        let contexts = self.contexts.renewed(&built.policy, &machine);
        let unconfined = self.options.unconfined(&built.policy, &contexts);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let candidate = Candidate { policy: name.to_owned(), since };
        self.options.folder.replace(&self.options.folder.shadow(), &built.to_bytes())?;
        let mut generation = Generation::prepare(GENERATION_NUMBER, built, &unconfined, &self.maps.template)?;
        generation.context(&machine)?;
        let invalid = generation.adopt(&contexts);
        let (policy, tables) = (&generation.policy, generation.tables());
        let needed = attached::needed(&self.options, self.setting(), policy, tables, &unconfined)?;
        generation.put(&self.maps.generations, TG_CANDIDATE)?;
        self.shadow = Some(Shadow { generation, candidate });
        self.attach(&needed)?;
        self.state.set_shadow(true);
        Ok(invalid.into_iter().map(|(_, context)| context).collect())
    }

    /// Removes the candidate, so that only the policy in force is checked.
    pub fn stop_shadow(&mut self) -> Result<(), EnforcerError> {
        self.state.set_shadow(false);
        if self.shadow.take().is_some() {
            self.settle_held()?;
        }
        // Nobody looks at them any more. What stays only uses memory.
        let _ = self.maps.generations.delete(&TG_CANDIDATE.to_ne_bytes());
        let _ = fs::remove_file(self.options.folder.shadow());
        for key in self.maps.differences.keys().collect::<Vec<_>>() {
            let _ = self.maps.differences.delete(&key);
        }
        Ok(())
    }

    /// Takes over the candidate of an earlier daemon.
    pub(super) fn adopt_shadow(&mut self) -> Result<(), EnforcerError> {
        if !self.state.shadow() {
            return Ok(());
        }
        let file = self.options.folder.shadow();
        let changed = fs::metadata(&file).and_then(|file| file.modified()).ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default().as_secs();
        let candidate = Candidate { policy: file.display().to_string(), since };
        let map = programs::generation(&self.maps.generations, TG_CANDIDATE)?;
        self.shadow = Some(Shadow { generation: Generation::adopted(map, Built::open(&file)?)?, candidate });
        Ok(())
    }

    /// The hooks that the candidate needs.
    pub(super) fn needed_by_shadow(&self) -> Result<Vec<String>, EnforcerError> {
        let Some(Shadow { generation, .. }) = &self.shadow else { return Ok(Vec::new()) };
        let unconfined = generation.unconfined();
        attached::needed(&self.options, self.setting(), &generation.policy, generation.tables(), &unconfined)
    }

    /// Why the candidate needs hooks: one, or all.
    pub(super) fn why_of_shadow(&self, hook: Option<&str>) -> Result<Vec<Need>, EnforcerError> {
        let Some(Shadow { generation, .. }) = &self.shadow else { return Ok(Vec::new()) };
        let (policy, tables, unconfined) = (&generation.policy, generation.tables(), generation.unconfined());
        let mut needs = needs::why(policy, tables, &unconfined, self.setting(), &|_, _, _| Vec::new(), hook)?;
        let all = needs.iter_mut().flat_map(|need| &mut need.reasons);
        all.for_each(|reason| reason.text.insert_str(0, "the policy on trial: "));
        Ok(needs)
    }

    /// Gives the candidate the context of a SID. A context that it does not have is unlabelled for it.
    pub(super) fn tell_shadow(&mut self, sid: Sid, text: &str) {
        let Some(Shadow { generation, .. }) = &mut self.shadow else { return };
        let context = generation.context(text).ok().or_else(|| generation.get(SECINITSID_UNLABELED));
        generation.set(sid, context.unwrap_or_default());
    }

    /// The candidate, if there is one.
    #[must_use]
    pub fn candidate(&self) -> Option<&Candidate> {
        self.shadow.as_ref().map(|shadow| &shadow.candidate)
    }

    /// Its generation.
    #[must_use]
    pub fn shadow_generation(&self) -> Option<&Generation> {
        self.shadow.as_ref().map(|shadow| &shadow.generation)
    }

    /// What the candidate would have decided otherwise; `None`: there is no candidate.
    pub fn shadow_report(&mut self) -> Result<Option<Report>, EnforcerError> {
        self.learn();
        let Some(Shadow { candidate, .. }) = &self.shadow else { return Ok(None) };
        let mut differences = Vec::new();
        for key in self.maps.differences.keys() {
            let found = self.maps.differences.lookup(&key, MapFlags::ANY).map_err(map_error("read differences"))?;
            let Some((key, value)) = found.and_then(|value| records(&key, &value)) else { continue };
            differences.push(self.difference(&key, &value));
        }
        differences.sort_by_key(|difference: &Difference| std::cmp::Reverse(difference.count));
        let omitted = differences.len().saturating_sub(MAX_DIFFERENCES) as u64;
        differences.truncate(MAX_DIFFERENCES);
        differences.sort_by(|a, b| (&a.source, &a.target, &a.class).cmp(&(&b.source, &b.target, &b.class)));
        Ok(Some(Report { candidate: candidate.clone(), differences, omitted, not_asked: self.state.shadow_failures() }))
    }

    fn difference(&self, key: &tg_difference_key, value: &tg_difference) -> Difference {
        let class = (key.class as usize).checked_sub(1).and_then(|index| CLASSES.get(index));
        let names = |vector: u32| {
            let all = class.map_or(&[][..], |class| class.permissions);
            (0..).zip(all).filter(|(bit, _)| vector >> bit & 1 != 0).map(|(_, name)| (*name).to_owned()).collect()
        };
        let command = value.command.iter().map(|c| c.cast_unsigned()).take_while(|byte| *byte != 0).collect::<Vec<_>>();
        Difference {
            source: self.contexts.text(key.source).to_owned(),
            target: self.contexts.text(key.target).to_owned(),
            class: class.map_or_else(|| format!("number {}", key.class), |class| class.name.to_owned()),
            denied: names(value.denied),
            granted: names(value.granted),
            count: value.count,
            since: since_boot(value.since),
            process: value.process,
            command: String::from_utf8_lossy(&command).into_owned(),
        }
    }
}

/// Turns nanoseconds since boot into seconds since 1970.
fn since_boot(nanoseconds: u64) -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    let ago = now.saturating_sub(Duration::from_nanos(nanoseconds));
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(ago).as_secs()
}

/// Reads an entry of `differences`.
fn records(key: &[u8], value: &[u8]) -> Option<(tg_difference_key, tg_difference)> {
    if key.len() != size_of::<tg_difference_key>() || value.len() != size_of::<tg_difference>() {
        return None;
    }
    // SAFETY: both structures consist of integers, of which all bytes are values, and there are as many bytes.
    Some(unsafe {
        (
            key.as_ptr().cast::<tg_difference_key>().read_unaligned(),
            value.as_ptr().cast::<tg_difference>().read_unaligned(),
        )
    })
}
