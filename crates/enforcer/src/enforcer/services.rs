//! Services as expected and as they run: what the kernel, the policy and proc say together.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{self, File},
    io,
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tollgate_abi::enforcer::{SECINITSID_UNLABELED, TG_SID_MACHINE, tg_lineage};
use tollgate_client::services::{Service, Verdict};
use tracing::warn;

use super::{Enforcer, EnforcerError};
use crate::{
    contexts::{bare, domain},
    labels::alone,
    lineage::Tasks,
    services::{
        Lack, Process, entry, judge, listening,
        processes::{self, PROC},
        seen::{InForce, Seen},
    },
};

/// How often all processes are examined even if no event says that one began.
const SCAN_INTERVAL: Duration = Duration::from_secs(30);
/// For how long an answer is used again.
const MAX_AGE: Duration = Duration::from_secs(1);
/// A process that has just executed a program may not be in its final domain yet, because a service executes several programs
/// one after the other. It is examined after this time, and again until it has been there for `SETTLE_TIME`.
const FIRST_SCAN_DELAY: Duration = Duration::from_millis(300);
/// How many paths of programs are remembered with their labels.
const MAX_LABELS: usize = 1024;
/// After this time since it executed a program, a process is in its final domain.
const SETTLE_TIME: Duration = Duration::from_millis(900);

/// What is remembered of services, and what was reported.
#[derive(Debug)]
pub(super) struct Memory {
    seen: Seen,
    /// When processes are examined next, and when they last were.
    due: Instant,
    looked: Option<Instant>,
    /// When the processes that began last are in their final domain.
    settled: Instant,
    /// What is not as expected, and how many services are.
    findings: BTreeSet<String>,
    confined: usize,
    /// Processes whose arguments could not be read because they do not answer: their number, and when they began.
    silent: BTreeSet<(u32, u64)>,
    /// Whether the policy in force differs from that of the machine's last run.
    another_policy: bool,
    policy: Option<Said>,
}

/// What one generation says of programs.
#[derive(Debug)]
struct Said {
    generation: u32,
    /// Domains by the types of their programs.
    entries: BTreeMap<String, String>,
    /// Labels that `file_contexts` give to the paths of programs, as far as they were asked for.
    labels: HashMap<PathBuf, Option<String>>,
}

impl Memory {
    pub(super) fn new(folder: &Path) -> Self {
        let seen = Seen::read(folder).unwrap_or_else(|cause| {
            warn!(%cause, "the record of what was confined before cannot be read: {}: {cause}", folder.display());
            Seen::default()
        });
        let findings = BTreeSet::new();
        Self {
            seen,
            due: Instant::now(),
            looked: None,
            settled: Instant::now(),
            findings,
            confined: 0,
            silent: BTreeSet::new(),
            another_policy: false,
            policy: None,
        }
    }
}

impl Enforcer {
    /// Records that a program began in a unit that was confined before.
    pub fn began(&mut self) {
        let now = Instant::now();
        self.memory.due = self.memory.due.min(now + FIRST_SCAN_DELAY);
        self.memory.settled = now + SETTLE_TIME;
    }

    /// When processes are examined next.
    #[must_use]
    pub fn services_due(&self) -> Instant {
        self.memory.due
    }

    /// Examines all processes if that is due, and reports what is new.
    pub fn watch_services(&mut self) {
        let now = Instant::now();
        if now < self.memory.due {
            return;
        }
        self.memory.due = now + if now < self.memory.settled { FIRST_SCAN_DELAY } else { SCAN_INTERVAL };
        if let Err(cause) = self.services(false) {
            warn!(%cause, "services cannot be compared with what is expected of them: {cause}");
        }
    }

    /// All services as they are now; with `listens`, also their addresses.
    pub fn services(&mut self, listens: bool) -> Result<Vec<Service>, EnforcerError> {
        let processes = self.processes()?;
        self.remember(&processes);
        let listening = if listens { listening::all(Path::new(PROC)) } else { BTreeMap::new() };
        let mut services = judge(&processes, &listening);
        self.add_units(&mut services);
        self.tell(&services);
        Ok(services)
    }

    /// What is not as expected, and the number of services that are. The answer is at most a second old.
    pub fn findings(&mut self) -> Result<(Vec<String>, usize), EnforcerError> {
        if self.memory.looked.is_none_or(|looked| looked.elapsed() > MAX_AGE) {
            self.services(false)?;
        }
        Ok((self.memory.findings.iter().cloned().collect(), self.memory.confined))
    }

    /// Makes what runs now what is expected. What was seen of other programs of these units is forgotten.
    pub fn accept_services(&mut self) -> Result<(), EnforcerError> {
        let units: BTreeSet<String> = self.memory.seen.units().map(str::to_owned).collect();
        for process in self.processes()?.iter().filter(|process| process.lack.is_some()) {
            if let (Some(unit), Some(program)) = (&process.unit, process.programs.last())
                && units.contains(unit)
            {
                self.memory.seen.forget(unit, program);
            }
        }
        self.policy_is_meant();
        self.write_seen();
        self.services(false).map(drop)
    }

    /// Compares the policy that enforcement starts with to the one of the machine's last run.
    pub(super) fn compare_policy(&mut self) {
        let policy = self.policy_in_force();
        if self.memory.seen.was_another(&policy) {
            self.memory.another_policy = true;
        } else {
            self.policy_is_meant();
        }
    }

    /// Records that the administrator wants the policy in force.
    pub(super) fn policy_is_meant(&mut self) {
        self.memory.another_policy = false;
        let policy = self.policy_in_force();
        if self.memory.seen.set_policy(policy) {
            self.write_seen();
        }
    }

    fn policy_in_force(&self) -> InForce {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        InForce { digest: self.generation.digest(), boot: boot.trim().to_owned() }
    }

    /// The units in which something was seen confined.
    pub(super) fn units_seen(&self) -> BTreeSet<String> {
        self.memory.seen.units().map(str::to_owned).collect()
    }

    /// All processes except the kernel's, without those that another process of their unit has made and that run like
    /// it.
    fn processes(&mut self) -> Result<Vec<Process>, EnforcerError> {
        let tasks = Tasks::look(&self.options.pins)?;
        // The scan makes the kernel give SIDs to domains that no process has entered yet.
        self.learn();
        let leaders: Vec<tg_lineage> =
            tasks.all().filter(|task| task.task == task.process && task.program != 0).copied().collect();
        let place = |number: u32| Path::new(PROC).join(number.to_string());
        let units: BTreeMap<u32, String> =
            leaders.iter().filter_map(|task| Some((task.task, processes::unit(&place(task.task))?))).collect();
        let is_main = |task: &tg_lineage| {
            units.get(&task.task).is_some_and(|unit| is_service(unit) && units.get(&task.parent) != Some(unit))
        };
        // Processes that others of a confined unit have made run like those.
        let shown = leaders.iter().filter(|task| task.sid == 0 || is_main(task) || !units.contains_key(&task.task));
        let found: Result<Vec<Process>, _> =
            shown.map(|task| self.process(task, units.get(&task.task).cloned(), is_main(task))).collect();
        // Processes that are gone no longer count as silent.
        self.memory.silent.retain(|silent| leaders.iter().any(|task| (task.task, task.began) == *silent));
        found
    }

    fn process(&mut self, task: &tg_lineage, unit: Option<String>, is_main: bool) -> Result<Process, EnforcerError> {
        let sid = if task.sid == 0 { TG_SID_MACHINE } else { task.sid };
        let confined = !self.generation.is_unconfined(sid);
        let place = Path::new(PROC).join(task.task.to_string());
        let mut programs: Vec<PathBuf> = processes::program(&place).into_iter().collect();
        if is_main && !self.memory.silent.contains(&(task.task, task.began)) {
            match processes::script_of(&place) {
                Ok(script) => programs.extend(script.filter(|script| !programs.contains(script))),
                // A process that lets others wait is read only once.
                Err(cause) if cause.kind() == io::ErrorKind::TimedOut => {
                    self.memory.silent.insert((task.task, task.began));
                }
                Err(_) => {}
            }
        }
        let name: Vec<u8> = task.name.iter().map(|byte| byte.cast_unsigned()).take_while(|byte| *byte != 0).collect();
        let lack = if confined { None } else { self.lack(task, unit.as_deref(), &programs)? };
        Ok(Process {
            number: task.task,
            name: String::from_utf8_lossy(&name).into_owned(),
            context: self.contexts.text(sid).to_owned(),
            unit,
            programs,
            confined,
            lack,
        })
    }

    /// The domain that an unconfined process should be in, if anything says so.
    fn lack(
        &mut self,
        task: &tg_lineage,
        unit: Option<&str>,
        programs: &[PathBuf],
    ) -> Result<Option<Lack>, EnforcerError> {
        let restart = unit.map_or("start it again".to_owned(), |unit| format!("`systemctl restart {unit}`"));
        if task.domain != 0 && task.domain != SECINITSID_UNLABELED {
            let domain = domain(self.contexts.text(task.domain)).to_owned();
            return Ok(Some(Lack { domain, why: format!("it began before this policy or label: {restart}") }));
        }
        for program in programs {
            if let Some((domain, why)) = self.by_file_contexts(program)? {
                return Ok(Some(Lack { domain, why: format!("{why}{restart}") }));
            }
        }
        let seen = unit.zip(programs.last()).and_then(|(unit, program)| {
            let domain = self.memory.seen.domain(unit, program)?.to_owned();
            let program = program.display();
            let why = format!(
                "{program} ran so before, but nothing says so now: if that is intended, run `tollgate service accept`"
            );
            Some(Lack { domain, why })
        });
        Ok(seen)
    }

    /// The domain of a program by the label that `file_contexts` give to its path, and why that was not entered.
    fn by_file_contexts(&mut self, program: &Path) -> Result<Option<(String, String)>, EnforcerError> {
        // The name comes first, so that a file is opened only if an administrator has named the program.
        let Some(default) = self.label_of_program(program)? else { return Ok(None) };
        let Some(domain_) = self.entries().get(domain(&default)).cloned() else { return Ok(None) };
        let Ok(file) = File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(program) else {
            return Ok(None);
        };
        let sid = bare(self.label(file.as_fd())?);
        let label = self.contexts.text(sid).to_owned();
        let program = program.display();
        let why = if domain(&label) == domain(&default) {
            format!(
                "it began before, or by an interpreter that it was given to ({program} as an argument; `tollgate unit set` confines that): "
            )
        } else {
            format!("{program} is {label}, and file_contexts say {default}: `tollgate label restore {program}`, then ")
        };
        Ok(Some((domain_, why)))
    }

    /// The label that `file_contexts` give to the path of a program. Each scan asks for the same paths.
    fn label_of_program(&mut self, program: &Path) -> Result<Option<String>, EnforcerError> {
        if let Some(label) = self.said().labels.get(program) {
            return Ok(label.clone());
        }
        let label = self.default_label(program, libc::S_IFREG)?;
        let known = &mut self.said().labels;
        if known.len() >= MAX_LABELS {
            known.clear();
        }
        known.insert(program.to_owned(), label.clone());
        Ok(label)
    }

    /// Domains by the types of their programs.
    pub(super) fn entries(&mut self) -> &BTreeMap<String, String> {
        &self.said().entries
    }

    fn said(&mut self) -> &mut Said {
        let generation = self.generation.number;
        let known = self.memory.policy.take().filter(|said| said.generation == generation);
        let said = known.unwrap_or_else(|| {
            let machine = self.generation.get(TG_SID_MACHINE).map_or(0, |context| context.type_);
            let asked = |type_: u32| !self.generation.has_unconfined(type_ as usize);
            let entries = entry::domains(&self.generation.policy, machine, asked);
            Said { generation, entries, labels: HashMap::new() }
        });
        self.memory.policy.insert(said)
    }

    fn remember(&mut self, processes: &[Process]) {
        let mut is_new = false;
        for process in processes.iter().filter(|process| process.confined) {
            if let (Some(unit), Some(program)) = (&process.unit, process.programs.last()) {
                is_new |= self.memory.seen.see(unit, program, domain(&process.context));
            }
        }
        if is_new {
            self.write_seen();
            self.look_at_units();
        }
    }

    /// In a thread, because the file system may be frozen.
    fn write_seen(&self) {
        let (text, folder) = (self.memory.seen.text(), self.options.notes.as_ref().to_owned());
        let begun = alone::spawn("seen", Vec::new(), move |alone: io::Result<()>| {
            let made = fs::create_dir_all(&folder);
            if let Err(cause) = alone.and(made).and_then(|()| Seen::write(&text, &folder)) {
                warn!(%cause, "what is confined is not recorded: {}: {cause}", folder.display());
            }
        });
        if let Err(cause) = begun {
            warn!(%cause, "what is confined is not recorded: {cause}");
        }
    }

    /// Adds units that have a context: those that do not run, and those that cannot.
    fn add_units(&self, services: &mut Vec<Service>) {
        for unit in self.known_units.iter().filter(|unit| !unit.context.is_empty() || unit.problem.is_some()) {
            let expected = domain(&unit.context).to_owned();
            let why: Vec<String> =
                unit.problem.iter().map(|cause| format!("{}: {cause}", unit.source.display())).collect();
            let verdict = if why.is_empty() { Verdict::Confined } else { Verdict::NotConfined };
            match services.iter_mut().find(|service| service.name == unit.name) {
                Some(service) => {
                    service.verdict = service.verdict.min(verdict);
                    service.expected = Some(expected);
                    service.why.extend(why);
                }
                None => services.push(Service {
                    name: unit.name.clone(),
                    expected: Some(expected),
                    domains: BTreeMap::new(),
                    listening: BTreeSet::new(),
                    verdict,
                    why,
                }),
            }
        }
        services.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// Reports what is not as expected, once as long as it lasts.
    fn tell(&mut self, services: &[Service]) {
        let lacking = services.iter().filter(|service| service.verdict == Verdict::NotConfined);
        let mut findings: BTreeSet<String> =
            lacking.map(|service| format!("{} is not confined: {}", service.name, service.why.join("; "))).collect();
        if self.memory.another_policy {
            findings.insert(
                "the policy in force is not the one that was in force when the machine ran last: `tollgate service accept` if \
                 that is meant"
                    .to_owned(),
            );
        }
        self.memory.looked = Some(Instant::now());
        self.memory.confined = services.iter().filter(|service| service.verdict == Verdict::Confined).count();
        for finding in findings.difference(&self.memory.findings) {
            warn!("{finding}");
        }
        self.memory.findings = findings;
    }
}

/// Whether a unit is a service of the machine, and not a user's session or manager.
fn is_service(unit: &str) -> bool {
    !unit.starts_with("user@") && !unit.ends_with(".scope")
}
