//! `tollgate service confine`: takes a service from unconfined to enforced.
//!
//! The command can end at each step and be called again: the module records how far the service is.

use std::{path::PathBuf, process::ExitCode, thread, time::Duration};

use anyhow::{Context, bail};
use clap::Args;
use tollgate_audit::{learn::Learnt, sink};
use tollgate_client::{Client, protocol::Mode};
use tollgate_policy::built::Built;
use tollgate_service::{
    answers::unanswered,
    block::{Block, Way},
    identifier::identifier,
    listening::Listening,
    machine,
    module::{Module, State},
    narrow::narrow,
    service::{Entry, Service},
    unit::Unit,
};

use super::{
    act,
    exercise::{self, Until},
    known::Known,
    proposal,
};
use crate::{audit, output, policies, store};

/// How long to watch a service after it was enforced.
const WATCH_TIME: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The service, `web` or `web.service`; or the path of a program that cron or another program starts
    name: String,
    /// Begin with nothing allowed and the domain permissive, and learn what the service does (the default, unless the policy
    /// has a domain for the service)
    #[arg(long)]
    learn: bool,
    /// Begin with what the policy's macros allow, enforced at once
    #[arg(long, conflicts_with = "learn")]
    r#macro: bool,
    /// Enforce what was learnt without a question
    #[arg(long)]
    yes: bool,
    /// Let the service be used for this time, then make rules of what it did: `5min`
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    passed: Option<Duration>,
    /// Let it be used until nothing new was denied for this time; with --yes and no other time, 10s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, conflicts_with = "passed")]
    until_quiet: Option<Duration>,
    /// The folder that the daemon writes its log to
    #[arg(long, value_name = "FOLDER", default_value = sink::FOLDER)]
    log: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let service = machine::service(&arguments.name)?;
    service.unit().map(Unit::is_seen).transpose()?;
    let subject = subject(&service);
    let before = act::module_of(&subject)?;
    let (built, policy) = policies::running()?;
    let mut known = Known::of(&built, &policy)?;
    let shipped = match &before {
        Some((_, module)) if !module.block.is_empty() => None,
        _ => known.domain(&service)?,
    };
    let name = match &before {
        Some((name, _)) => name.clone(),
        None => {
            let macros = store::here().read()?.macros();
            identifier(&service.name(), |name| known.has(name) || macros.contains(name))
        }
    };
    if before.is_none() {
        act::check_free(&name)?;
    }
    let course = Course { arguments, service, subject, name };
    match (before, shipped) {
        (None, Some(domain)) if !arguments.learn => course.take(&known, &domain),
        (None, Some(domain)) => course.begin_in(&domain),
        (None, None) => course.begin(&known, None),
        (Some((_, module)), _) if arguments.r#macro && !module.block.is_empty() => course.begin(&known, Some(&module)),
        (Some((_, module)), _) => course.go_on(&known, module),
    }
}

/// What the module of a service names as its subject: the unit, or the program.
pub(super) fn subject(service: &Service) -> String {
    match service.unit() {
        Some(unit) => unit.name.clone(),
        None => service.program.path().display().to_string(),
    }
}

/// One run of the command, for one service.
struct Course<'a> {
    arguments: &'a Arguments,
    service: Service,
    subject: String,
    /// The name of the module and of its block.
    name: String,
}

impl Course<'_> {
    /// Uses a domain that the policy has.
    fn take(&self, known: &Known<'_>, domain: &str) -> anyhow::Result<ExitCode> {
        output::line(&format!("{}: the policy has a domain for it, {domain}", self.subject))?;
        act::restore(known.files_of(domain))?;
        let since = exercise::now();
        self.start(domain)?;
        proposal::tell(&known.words_of(domain))?;
        self.watch(domain, since)
    }

    /// Learns what a service does for which the policy has a domain.
    fn begin_in(&self, domain: &str) -> anyhow::Result<ExitCode> {
        let module = Module::of_domain(&self.subject, domain, State::Learning(exercise::text(exercise::now())));
        act::install(&self.name, &module, "")?;
        self.start(domain)?;
        self.learn(module)
    }

    /// Writes the service's block, and restarts the service in its domain.
    fn begin(&self, known: &Known<'_>, before: Option<&Module>) -> anyhow::Result<ExitCode> {
        let way = if self.arguments.r#macro { Way::Macro } else { Way::Learn };
        let block = self.block(known, way, before)?;
        self.describe(&block)?;
        let since = exercise::now();
        let module = Module::of_block(&self.subject, &block, &exercise::text(since), before);
        act::install(&self.name, &module, &block.file_contexts())?;
        if let (Some(unit), Entry::Unit) = (self.service.unit(), block.entry) {
            act::set_unit(unit, Some(&block.context()))?;
        }
        match way {
            Way::Learn => {
                self.start(&module.domain)?;
                self.learn(module)
            }
            Way::Macro => self.check(&module, since),
        }
    }

    fn block(&self, known: &Known<'_>, way: Way, before: Option<&Module>) -> anyhow::Result<Block> {
        let mut block = Block::new(&self.name, way, &self.service, &known.found(&self.service, &self.name)?);
        if let Some(before) = before {
            block.own_ports.extend(before.ports("port_t"));
            block.remote_ports.extend(before.ports("remote_port_t"));
        }
        Ok(block)
    }

    fn describe(&self, block: &Block) -> anyhow::Result<()> {
        let entered = match block.entry {
            Entry::Program => format!("by its program, {}", self.service.program.path().display()),
            Entry::Unit => {
                format!("by its unit, because {} is a shared program", self.service.program.path().display())
            }
        };
        let package = self.service.package.as_ref().map_or("none", |package| package.name.as_str());
        let mut text =
            format!("{}: a new domain, {}, entered {entered}\n  package: {package}\n", self.subject, block.domain());
        for place in &block.places {
            text.push_str(&format!("  {} {}.{}\n", place.path.display(), self.name, place.kind.type_name()));
        }
        for port in &block.own_ports {
            text.push_str(&format!("  {port} {}.port_t\n", self.name));
        }
        text.push_str(&block.port_types.iter().map(|kind| format!("  listens on {kind}\n")).collect::<String>());
        output::write(&text)
    }

    /// Continues with a service that has a module.
    fn go_on(&self, known: &Known<'_>, module: Module) -> anyhow::Result<ExitCode> {
        match &module.state {
            State::Learning(since) => {
                output::line(&format!("{}: {} is permissive since {since}", self.subject, module.domain))?;
                self.learn(module)
            }
            State::Enforced if self.arguments.learn => {
                let mut module = module;
                module.state = State::Learning(exercise::text(exercise::now()));
                if module.block.is_empty() {
                    act::install(&self.name, &module, "")?;
                } else {
                    return self.begin(known, Some(&module));
                }
                self.start(&module.domain)?;
                self.learn(module)
            }
            State::Enforced => {
                output::line(&format!("{}: {} is enforced", self.subject, module.domain))?;
                self.in_domain(&module.domain)?;
                proposal::tell(&known.words_of(&module.domain))?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Starts the service, and checks which domain it is in.
    fn start(&self, domain: &str) -> anyhow::Result<()> {
        let Some(unit) = self.service.unit() else { return Ok(()) };
        act::restart(unit)?;
        self.in_domain(domain)
    }

    fn in_domain(&self, domain: &str) -> anyhow::Result<()> {
        let Some(unit) = self.service.unit() else { return Ok(()) };
        let domains = act::domains(unit)?;
        if domains.is_empty() && unit.is_job() {
            return output::line(&format!("{}: a job, which has ended", self.subject));
        }
        let told: Vec<String> = domains.iter().map(|(domain, count)| format!("{domain} ({count})")).collect();
        if domains.iter().any(|(own, _)| own == domain) {
            return output::line(&format!("{}: processes by domain: {}", self.subject, told.join(", ")));
        }
        match &told[..] {
            [] => bail!("{} has no process: `systemctl status {0}` says why", self.subject),
            told => bail!(
                "{} does not run in {domain}, but in {}: its program's label (`tollgate label get`), or its unit's context \
                 (`tollgate unit list`), is not what starts it",
                self.subject,
                told.join(", ")
            ),
        }
    }

    /// Lets the service be used, makes rules of what it did, and enforces them.
    fn learn(&self, mut module: Module) -> anyhow::Result<ExitCode> {
        let State::Learning(since) = &module.state else { bail!("{} is enforced already", self.subject) };
        let since = audit::since(since)?;
        let Arguments { passed, until_quiet, yes, log, .. } = self.arguments;
        let Some(until) = Until::of(*passed, *until_quiet, *yes) else {
            output::line(&self.later())?;
            return Ok(ExitCode::from(1));
        };
        output::line(&self.invitation(until))?;
        until.wait(log, &module.domain)?;
        let (built, _) = policies::running()?;
        let learnt = proposal::learnt(&built, log, &module.domain, since)?;
        if learnt.evidence.count == 0 && module.learnt.is_empty() {
            output::line(&format!("{} did nothing since then that is in the log: has it run?", module.domain))?;
            return Ok(ExitCode::from(1));
        }
        let contexts = self.add(&built, &mut module, learnt)?;
        act::install(&self.name, &module, &contexts)?;
        let (built, policy) = policies::running()?;
        let known = Known::of(&built, &policy)?;
        let domain = known.words_of(&module.domain);
        proposal::tell(&domain)?;
        proposal::tell_unanswered(&self.subject, &unanswered(&domain.grants, &machine::listening(&self.again()?)));
        if !yes && !proposal::consent(proposal::grave(&domain))? {
            output::line(&self.later())?;
            return Ok(ExitCode::from(1));
        }
        self.enforce(module, &contexts)
    }

    /// Adds to a module what was learnt, with port types of its own if it used few ports; returns its file contexts.
    fn add(&self, built: &Built, module: &mut Module, mut learnt: Learnt) -> anyhow::Result<String> {
        proposal::tell_doubts(&learnt);
        let known = Known::of(built, "the policy in force")?;
        let narrowed = narrow(&mut learnt.rules, &module.domain);
        proposal::group(&mut learnt, built);
        let macros: Vec<&str> = learnt.calls.iter().map(|call| call.name.as_str()).collect();
        output::line(&format!(
            "learnt: denials: {}, rules: {}, macros: {}",
            learnt.evidence.count,
            learnt.rules.len(),
            if macros.is_empty() { "none".to_owned() } else { macros.join(" ") }
        ))?;
        let mut contexts = String::new();
        if !module.block.is_empty() {
            let mut service = self.service.clone();
            service.listening = Listening { ports: narrowed.bound, ..machine::listening(&self.again()?) };
            let found = known.found(&service, &self.name)?;
            let mut block = Block::new(&self.name, Way::Learn, &service, &found);
            block.own_ports.extend(module.ports("port_t"));
            block.remote_ports.extend(module.ports("remote_port_t").into_iter().chain(narrowed.connected));
            module.block = block.cil();
            contexts = block.file_contexts();
        }
        module.learn(&rules(&learnt));
        Ok(contexts)
    }

    /// The service as it runs now.
    fn again(&self) -> anyhow::Result<Service> {
        let mut service = self.service.clone();
        if let Some(unit) = self.service.unit() {
            service.starter = tollgate_service::service::Starter::Unit(Box::new(machine::unit(&unit.name)?));
        }
        Ok(service)
    }

    /// Enforces the service; if it does not start, its domain becomes permissive again.
    fn enforce(&self, mut module: Module, contexts: &str) -> anyhow::Result<ExitCode> {
        let learning = module.state.clone();
        module.state = State::Enforced;
        act::install(&self.name, &module, contexts)?;
        let since = exercise::now();
        let Err(cause) = self.start(&module.domain) else { return self.watch(&module.domain, since) };
        module.state = learning;
        act::install(&self.name, &module, contexts)?;
        self.service.unit().map(act::restart).transpose()?;
        Err(cause).with_context(|| {
            format!(
                "{} did not start enforced, so {} is permissive again: the same command goes on",
                self.subject, module.domain
            )
        })
    }

    /// Starts a service that is confined by macros, enforced.
    fn check(&self, module: &Module, since: u64) -> anyhow::Result<ExitCode> {
        self.start(&module.domain).with_context(|| {
            format!(
                "{0} does not run with what macros allow: `tollgate service confine {1} --learn` learns what else it needs, \
                 `tollgate service unconfine {1}` takes its domain away",
                self.subject, self.arguments.name
            )
        })?;
        let (built, policy) = policies::running()?;
        proposal::tell(&Known::of(&built, &policy)?.words_of(&module.domain))?;
        self.watch(&module.domain, since)
    }

    /// Says how the service is confined, and what was denied to it so far; exit status 1 if something was.
    fn watch(&self, domain: &str, since: u64) -> anyhow::Result<ExitCode> {
        if self.service.unit().is_some() {
            thread::sleep(WATCH_TIME);
        }
        let denied = exercise::denied(&self.arguments.log, domain, since)?;
        let status = Client::connect()?.status()?;
        let permissive = status.mode == Mode::Permissive || status.permissive.iter().any(|own| own == domain);
        let how = match (permissive, status.mode) {
            (false, _) => "is enforced",
            (true, Mode::Permissive) => "is permissive, as all are: `tollgate mode enforcing`",
            (true, Mode::Enforcing) => "is permissive",
        };
        output::line(&format!("{}: {domain} {how}", self.subject))?;
        let undo = match act::module_of(&self.subject)? {
            Some(_) => format!("tollgate service unconfine {}", self.arguments.name),
            None => format!("tollgate mode permissive --domain {domain}"),
        };
        output::line(&format!("undo: {undo}"))?;
        if denied == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let name = &self.arguments.name;
        eprintln!(
            "tollgate: {domain} was denied {denied} times since: `tollgate audit --domain {domain}` lists them, `tollgate service \
             confine {name} --learn` learns them"
        );
        Ok(ExitCode::from(1))
    }

    fn invitation(&self, until: Until) -> String {
        let what = match self.service.unit().map(Unit::is_job) {
            Some(false) => "use it now: all that it does, a reload and what comes at night too",
            Some(true) | None => "have it run now, with all that it does",
        };
        let end = match until {
            Until::Enter => "press Enter when that is done".to_owned(),
            Until::Passed(time) => format!("going on in {}", humantime::format_duration(time)),
            Until::Quiet(time) => format!("going on when nothing was denied for {}", humantime::format_duration(time)),
        };
        format!("{}: nothing is denied, everything is logged: {what}; {end}", self.subject)
    }

    fn later(&self) -> String {
        format!(
            "{}: permissive; `tollgate service confine {}` goes on, with --yes in a script",
            self.subject, self.arguments.name
        )
    }
}

/// Rules as CIL, with their evidence, without the head of the file.
fn rules(learnt: &Learnt) -> String {
    let text = learnt.to_string();
    let at = text.find("\n\n").map_or(text.len(), |at| at + 2);
    text[at..].to_owned()
}
