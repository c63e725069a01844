//! Access vectors and extended permissions, interned. Vectors and `self` rules refer to them.

use std::collections::{BTreeMap, HashMap};

use tollgate_abi::tables::{TG_DRIVER, tg_extended, tg_tuple};

use crate::model::{Extension, Policy, RuleKind};

use super::{
    keys::{Keys, key},
    limit::TableLimit,
};

/// What rules say about one source, target and class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Access {
    pub(super) allow: u32,
    pub(super) auditallow: u32,
    pub(super) dontaudit: u32,
    /// Indices of `Policy::extended_rules`. Only when interned, they are sorted and unique.
    pub(super) extended: Vec<u32>,
}

impl Access {
    /// No rules.
    pub(super) const NONE: Self = Self { allow: 0, auditallow: 0, dontaudit: 0, extended: Vec::new() };

    /// Adds a rule's permissions.
    pub(super) fn permit(&mut self, kind: RuleKind, permissions: u32) {
        match kind {
            RuleKind::Allow => self.allow |= permissions,
            RuleKind::AuditAllow => self.auditallow |= permissions,
            RuleKind::DontAudit => self.dontaudit |= permissions,
            RuleKind::Transition | RuleKind::Member | RuleKind::Change => {}
        }
    }

    /// Adds what other rules say.
    pub(super) fn add(&mut self, other: &Self) {
        self.allow |= other.allow;
        self.auditallow |= other.auditallow;
        self.dontaudit |= other.dontaudit;
        self.extended.extend_from_slice(&other.extended);
    }
}

/// The functions of each driver.
type Drivers = BTreeMap<u8, Functions>;
/// Functions that are allowed, audited when allowed, not audited when denied.
type Functions = [[u64; 4]; 3];

/// Tuples, each once. The first is all zero.
#[derive(Debug)]
pub(super) struct Tuples<'p> {
    policy: &'p Policy,
    tuples: Vec<tg_tuple>,
    known: HashMap<Access, u16>,
    /// Indexed by `tg_tuple.extended` less 1.
    drivers: Vec<Drivers>,
    drivers_known: HashMap<Drivers, u32>,
}

impl<'p> Tuples<'p> {
    pub(super) fn new(policy: &'p Policy) -> Self {
        Self {
            policy,
            tuples: vec![tg_tuple::default()],
            known: HashMap::from([(Access::NONE, 0)]),
            drivers: Vec::new(),
            drivers_known: HashMap::new(),
        }
    }

    /// The number of the tuple for `access`.
    pub(super) fn intern(&mut self, access: &mut Access) -> Result<u16, TableLimit> {
        access.extended.sort_unstable();
        access.extended.dedup();
        if let Some(tuple) = self.known.get(access) {
            return Ok(*tuple);
        }
        let number = u16::try_from(self.tuples.len()).map_err(|_| TableLimit::Identifiers {
            what: "different access vectors",
            has: self.tuples.len() + 1,
            most: 1 << u16::BITS,
        })?;
        let extended = self.extended(&access.extended);
        let Access { allow, auditallow, dontaudit, .. } = *access;
        self.tuples.push(tg_tuple { allow, auditallow, dontaudit, extended });
        self.known.insert(access.clone(), number);
        Ok(number)
    }

    /// The number for what extended rules say together; 0: there are none.
    fn extended(&mut self, rules: &[u32]) -> u32 {
        if rules.is_empty() {
            return 0;
        }
        let drivers = drivers(self.policy, rules);
        let next = self.drivers.len() as u32 + 1;
        *self.drivers_known.entry(drivers).or_insert_with_key(|drivers| {
            self.drivers.push(drivers.clone());
            next
        })
    }

    /// The tuples and their extended permissions, to which `keys` lead afterwards.
    pub(super) fn finish(self, keys: &mut Keys) -> (Vec<tg_tuple>, Vec<tg_extended>) {
        let mut extended = Vec::new();
        let mut known: HashMap<Functions, u64> = HashMap::new();
        for (drivers, number) in self.drivers.into_iter().zip(1..) {
            for (driver, functions) in drivers {
                let next = extended.len() as u64;
                let index = *known.entry(functions).or_insert_with(|| {
                    let [allow, auditallow, dontaudit] = functions;
                    extended.push(tg_extended { allow, auditallow, dontaudit, reserved: [0; 4] });
                    next
                });
                keys.insert(key(TG_DRIVER, number, driver.into(), 0), index);
            }
        }
        (self.tuples, extended)
    }
}

/// What rules say about each driver that they name (`services_compute_xperms_decision`).
fn drivers(policy: &Policy, rules: &[u32]) -> Drivers {
    let mut drivers = Drivers::new();
    for rule in rules.iter().map(|place| &policy.extended_rules[*place as usize]) {
        let kind = match rule.kind {
            RuleKind::Allow => 0,
            RuleKind::AuditAllow => 1,
            _ => 2,
        };
        match rule.extension {
            Extension::IoctlFunction { driver } => {
                let functions = &mut drivers.entry(driver).or_default()[kind];
                functions.iter_mut().zip(rule.bits).for_each(|(word, bits)| *word |= bits);
            }
            Extension::IoctlDriver => {
                let whole =
                    (0..=u8::MAX).filter(|driver| rule.bits[usize::from(*driver) / 64] >> (driver % 64) & 1 == 1);
                whole.for_each(|driver| drivers.entry(driver).or_default()[kind] = [u64::MAX; 4]);
            }
        }
    }
    drivers
}
