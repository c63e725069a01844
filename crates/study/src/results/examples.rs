//! Records and results for tests.

use tollgate_bench::{
    asked::Asked,
    counter::Counter,
    decisions::{Decisions, Manager},
    job::{ActOutcome, Measured, Report},
    labels::Label,
    oracle::Act,
    place::Network,
    selection::Selection,
    workload::Tasks,
};

use super::{Environment, KernelImage, Results, build, build::Head};
use crate::{
    record::{self, BootRecord, Denial, Outcome},
    study::{Figure, StudyHeader},
};

/// A record under construction.
#[derive(Debug, Clone)]
pub(crate) struct Boot(pub(crate) BootRecord);

/// A boot on 6.1, on the instruction clock, with an empty report.
pub(crate) fn boot(configuration: &str, number: u32) -> Boot {
    Boot(BootRecord {
        schema: record::SCHEMA,
        tollgate: "0.1.0".to_owned(),
        kernel: "6.1".to_owned(),
        configuration: configuration.to_owned(),
        clock: Counter::Instructions,
        boot: number,
        lsm: "capability".to_owned(),
        command_line: "lsm=capability".to_owned(),
        machine: vec!["qemu-system-x86_64".to_owned()],
        denials: Vec::new(),
        labels: Vec::new(),
        seconds: 12.5,
        outcome: Outcome::Report(Box::new(Report {
            release: "6.1.0-56-cloud-amd64".to_owned(),
            lsm: "capability".to_owned(),
            confinement: String::new(),
            acts: Vec::new(),
            labels: Vec::new(),
            settled: None,
            workloads: Vec::new(),
            delayed: Vec::new(),
            calibration: None,
            logged: None,
        })),
    })
}

/// A boot whose policy must deny an act.
pub(crate) fn denying(configuration: &str, act: Act, errno: i32) -> Boot {
    boot(configuration, 0).must_deny(act, errno)
}

/// A boot without a report.
pub(crate) fn failed(configuration: &str, reason: &str) -> Boot {
    let mut boot = boot(configuration, 0);
    boot.0.outcome = Outcome::Failed(reason.to_owned());
    boot
}

impl Boot {
    fn report(&mut self) -> &mut Report {
        match &mut self.0.outcome {
            Outcome::Report(report) => report,
            Outcome::Failed(reason) => panic!("no report: {reason}"),
        }
    }

    pub(crate) fn on(mut self, kernel: &str) -> Self {
        kernel.clone_into(&mut self.0.kernel);
        self
    }

    pub(crate) fn wall(mut self) -> Self {
        self.0.clock = Counter::Wall;
        self
    }

    pub(crate) fn must_deny(mut self, act: Act, errno: i32) -> Self {
        self.0.denials.push(Denial { act, errno });
        self
    }

    pub(crate) fn tried(mut self, act: Act, errno: Option<i32>) -> Self {
        self.report().acts.push(ActOutcome { act, errno });
        self
    }

    /// Receivers on the other side of the veth pair must see this label.
    pub(crate) fn must_show(mut self, label: &str) -> Self {
        self.0.labels.push(Label { network: Network::Veth, label: Some(label.to_owned()) });
        self
    }

    /// Receivers there saw these, one after the other.
    pub(crate) fn saw(mut self, labels: &[Option<&str>]) -> Self {
        let seen = labels.iter().map(|label| Label { network: Network::Veth, label: label.map(str::to_owned) });
        self.report().labels.extend(seen);
        self
    }

    pub(crate) fn measured(self, name: &str, samples: &[f64]) -> Self {
        self.workload(name, samples, None)
    }

    pub(crate) fn broken(self, name: &str, error: &str) -> Self {
        self.workload(name, &[], Some(error.to_owned()))
    }

    /// Adds decisions in this many operations of the last workload: managers, each with its decisions by cache and tables.
    pub(crate) fn decided(mut self, operations: u64, managers: &[(&str, u64, u64)]) -> Self {
        let manager = |(name, cached, tables): &(&str, u64, u64)| Manager {
            name: (*name).to_owned(),
            cached: *cached,
            tables: *tables,
            denied: 0,
        };
        let decisions = Decisions { operations, managers: managers.iter().map(manager).collect(), asked: None };
        if let Some(last) = self.report().workloads.last_mut() {
            last.decisions = Some(decisions);
        }
        self
    }

    /// Adds the checks of the last workload's decisions, one by one.
    pub(crate) fn asked(mut self, asked: Asked) -> Self {
        let last = self.report().workloads.last_mut();
        if let Some(decisions) = last.and_then(|workload| workload.decisions.as_mut()) {
            decisions.asked = Some(asked);
        }
        self
    }

    fn workload(mut self, name: &str, samples: &[f64], error: Option<String>) -> Self {
        let tasks = name.parse::<Selection>().map_or(Tasks::One, |s| s.workload.tasks);
        let unit = self.0.clock.unit().to_owned();
        let (name, samples) = (name.to_owned(), samples.to_vec());
        self.report().workloads.push(Measured { name, unit, tasks, samples, idle: None, decisions: None, error });
        self
    }
}

/// The head of the examples' study; its configurations and kernels are those of the boots.
pub(crate) fn head(clock: Counter, boots: &[Boot]) -> Head {
    let mut kernels: Vec<String> = Vec::new();
    let mut configurations: Vec<String> = Vec::new();
    for Boot(boot) in boots {
        if !kernels.contains(&boot.kernel) {
            kernels.push(boot.kernel.clone());
        }
        if !configurations.contains(&boot.configuration) {
            configurations.push(boot.configuration.clone());
        }
    }
    let images = kernels.iter().map(|kernel| KernelImage {
        kernel: kernel.clone(),
        package: format!("linux-image-{kernel}-cloud-amd64"),
        version: format!("{kernel}.1-1"),
    });
    Head {
        clock,
        accelerator: "emulation".to_owned(),
        accelerator_reason: "the instruction clock needs it".to_owned(),
        started: "2026-11-21T01:00:00Z".to_owned(),
        environment: Environment {
            tollgate: "0.1.0".to_owned(),
            cpu: "a processor".to_owned(),
            cores: 2,
            kernels: images.collect(),
            ..Environment::default()
        },
        study: StudyHeader {
            name: "example".to_owned(),
            title: "An example".to_owned(),
            kernels,
            configurations,
            baseline: "none".to_owned(),
            boots: boots.iter().map(|b| b.0.boot + 1).max().unwrap_or(1),
            figure: Figure::Minimum,
            threshold: 1.0,
            published: Vec::new(),
            text: String::new(),
        },
    }
}

/// Results on the instruction clock.
pub(crate) fn results(boots: &[Boot]) -> Results {
    let records: Vec<BootRecord> = boots.iter().map(|b| b.0.clone()).collect();
    build(head(Counter::Instructions, boots), &records)
}

/// Results on the instruction clock, of a study that uses means.
pub(crate) fn mean_results(boots: &[Boot]) -> Results {
    let records: Vec<BootRecord> = boots.iter().map(|b| b.0.clone()).collect();
    let mut head = head(Counter::Instructions, boots);
    head.study.figure = Figure::Mean;
    build(head, &records)
}

/// Results on the wall clock.
pub(crate) fn wall_results(boots: &[Boot]) -> Results {
    let records: Vec<BootRecord> = boots.iter().map(|b| b.0.clone()).collect();
    build(head(Counter::Wall, boots), &records)
}
