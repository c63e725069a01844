//! A generation: one policy as the object managers read it. It is prepared completely before it is put in force.

mod contexts;
mod names;
mod networks;
mod translation;

use std::{
    collections::HashSet,
    io,
    mem::offset_of,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    slice,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use libbpf_rs::{MapHandle, MapInfo, MapType};
use sha2::{Digest, Sha256};
use tollgate_abi::{
    CLASSES,
    enforcer::{
        SECINITSID_UNLABELED, TG_BEFORE, TG_FIRST_SID, TG_IN_FORCE, TG_NO_PERMISSION, TG_SECCLASSES, TG_SID_MACHINE,
        TG_SIDS, tg_generation, tg_secclass,
    },
    tables::{TG_TYPE_PERMISSIVE, tg_decision, tg_question, tg_type},
};
use tollgate_policy::{
    built::{Built, BuiltError},
    context::{ContextError, Kind, Names},
    decide::{Levels, Tables, TablesError, TooManyLevels},
    model::{HandleUnknown, Policy},
};

use crate::{
    contexts::Sid,
    mapping::Mapping,
    programs::{self, Place},
};

/// The policy capabilities that object managers look at, in the order of `enum tg_policycap`.
pub(crate) const CAPABILITIES: [&str; 14] = [
    "network_peer_controls",
    "open_perms",
    "extended_socket_class",
    "always_check_network",
    "cgroup_seclabel",
    "nnp_nosuid_transition",
    "genfs_seclabel_symlinks",
    "ioctl_skip_cloexec",
    "userspace_initial_context",
    "netlink_xperm",
    "netif_wildcard",
    "genfs_seclabel_wildcard",
    "functionfs_seclabel",
    "memfd_class",
];

/// The attribute of programs by which systemd starts those of units. A process that executes one stays the machine's.
const EXECUTORS: &str = "unit_executor";
/// The attribute of domains whose processes the guard checks.
const GUARDED: &str = "guarded";

/// Why a policy cannot be put in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GenerationError {
    /// The policy cannot be used.
    #[error(transparent)]
    Built(#[from] BuiltError),
    /// The decision tables cannot be made of it.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The policy has more levels than there is room for.
    #[error(transparent)]
    Levels(#[from] TooManyLevels),
    /// The tables are larger than those for which programs were loaded.
    #[error(
        "the policy's decision tables have {has} bytes, and the programs in force were loaded for at most {most}; the policy \
         before stays in force. Keep this one for the next start, which loads programs for it: `tollgate policy install \
         --no-reload`, or write it to /etc/tollgate/policy; or start now: `tollgate stop`, then `tollgate enforce POLICY`"
    )]
    TooLarge {
        /// The size of the policy's tables.
        has: usize,
        /// The size for which programs were loaded.
        most: usize,
    },
    /// The unconfined domains include a type that the policy does not have.
    #[error("the policy has no type {0}, which should be unconfined; `tollgate policy stats --types` lists its types")]
    NoType(String),
    /// The policy does not have this domain.
    #[error("{0}; a domain is known once a policy that has it is in force: `tollgate reload POLICY`")]
    NoDomain(ContextError),
    /// The policy demands to be refused if it lacks classes or permissions, and it does.
    #[error(
        "the policy demands to be refused if it does not define all classes and permissions (handleunknown reject), and it does not define {0}"
    )]
    Unknown(String),
    /// The kernel did not create the map.
    #[error("cannot make the map of a generation: {cause}")]
    Map {
        /// What the kernel returned.
        cause: libbpf_rs::Error,
    },
    /// The map could not be mapped into memory.
    #[error("cannot map the memory of a generation: {cause}")]
    Memory {
        /// What the kernel returned.
        cause: io::Error,
    },
}

/// A policy in a map of its own.
#[derive(Debug)]
pub struct Generation {
    /// Number of the generation, from 1.
    pub number: u32,
    /// The policy that it was made of.
    pub policy: Arc<Policy>,
    /// The text of the policy's `file_contexts`.
    pub file_contexts: String,
    policy_number: u64,
    names: Names,
    tables: Tables,
    levels: Levels,
    map: MapHandle,
    memory: Mapping<tg_generation>,
}

/// A digest that differs between any two policies, even if somebody makes them on purpose.
fn digest(built: &Built) -> [u8; 32] {
    Sha256::digest(built.to_bytes()).into()
}

/// The policy's number in sealed labels. The tables and what the file was built from do not matter: another version of the
/// program lays the tables out otherwise.
fn policy_number(built: &Built) -> u64 {
    let digest: [u8; 32] = Sha256::digest(&built.model).into();
    digest.as_chunks::<8>().0.first().map_or(0, |first| u64::from_be_bytes(*first))
}

impl Generation {
    /// Makes generation `number` of a built policy. `unconfined` names the unconfined domains.
    /// `template` is the map whose properties all maps of generations copy.
    pub fn prepare(
        number: u32,
        built: Built,
        unconfined: &[String],
        template: &MapHandle,
    ) -> Result<Self, GenerationError> {
        let (digest, policy_number) = (digest(&built), policy_number(&built));
        let Built { policy, tables, levels, file_contexts, .. } = built;
        let classes = classes(&policy)?;
        let (has, most) = (tables.len(), programs::capacity(template));
        if has > most {
            return Err(GenerationError::TooLarge { has, most });
        }
        let map = like(template).map_err(|cause| GenerationError::Map { cause })?;
        let memory = Mapping::with_tail(&map, most).map_err(|cause| GenerationError::Memory { cause })?;
        let (tables, levels) = (Tables::new(&tables)?, Levels::new(&levels)?);
        let names = Names::of(&policy);
        let policy = Arc::new(policy);
        let mut generation = Self { number, policy, file_contexts, policy_number, names, tables, levels, map, memory };
        generation.fill(&classes, unconfined)?;
        // SAFETY: the member lies in the mapping, and nobody reads the generation before it is in force.
        unsafe { (&raw mut (*generation.memory.get()).policy).write_volatile(digest) };
        Ok(generation)
    }

    /// The number of the generation in `map`.
    pub fn number(map: &MapHandle) -> Result<u32, GenerationError> {
        let memory = Mapping::<tg_generation>::new(map).map_err(|cause| GenerationError::Memory { cause })?;
        // SAFETY: the member lies in the mapping, and is written before the generation is put in force only.
        Ok(unsafe { (&raw const (*memory.get()).number).read_volatile() })
    }

    /// The SHA-256 of the built policy, in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> String {
        // SAFETY: the member lies in the mapping, and is written before the generation is put in force only.
        let digest = unsafe { (&raw const (*self.memory.get()).policy).read_volatile() };
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the generation in `map` was made of this policy.
    pub fn is_of(map: &MapHandle, built: &Built) -> Result<bool, GenerationError> {
        let memory = Mapping::<tg_generation>::new(map).map_err(|cause| GenerationError::Memory { cause })?;
        // SAFETY: as above.
        Ok(unsafe { (&raw const (*memory.get()).policy).read_volatile() } == digest(built))
    }

    /// A generation that is in the kernel, with the policy that it was made of.
    pub fn adopted(map: MapHandle, built: Built) -> Result<Self, GenerationError> {
        let policy_number = policy_number(&built);
        let Built { policy, tables, levels, file_contexts, .. } = built;
        let (has, most) = (tables.len(), programs::capacity(&map));
        if has > most {
            return Err(GenerationError::TooLarge { has, most });
        }
        let memory =
            Mapping::<tg_generation>::with_tail(&map, most).map_err(|cause| GenerationError::Memory { cause })?;
        // SAFETY: as in `number`.
        let number = unsafe { (&raw const (*memory.get()).number).read_volatile() };
        let (tables, levels) = (Tables::new(&tables)?, Levels::new(&levels)?);
        let names = Names::of(&policy);
        let policy = Arc::new(policy);
        let mut generation = Self { number, policy, file_contexts, policy_number, names, tables, levels, map, memory };
        // Contexts have levels that the policy does not name.
        let memory = generation.memory.get();
        // SAFETY: levels up to the counter are not written again.
        let (all, last) = unsafe { (&(*memory).levels, (&raw const (*memory).last_level).read_volatile()) };
        generation.levels.follow(all, last);
        Ok(generation)
    }

    /// Makes a domain permissive or enforcing, in the tables that programs read.
    pub fn set_permissive(&mut self, domain: &str, permissive: bool) -> Result<(), GenerationError> {
        let type_ = self.names.find(Kind::Type, domain).map_err(GenerationError::NoDomain)? as usize;
        let at = self.tables.header().type_at as usize + type_ * size_of::<tg_type>() + offset_of!(tg_type, flags);
        assert!(at.is_multiple_of(4) && at + 4 <= self.tables.as_bytes().len(), "the server has checked the tables");
        // SAFETY: the record of a type that the tables have lies in them, aligned; programs read the flags at once.
        let flags = unsafe { AtomicU32::from_ptr(self.memory.tail().add(at).cast()) };
        if permissive {
            flags.fetch_or(TG_TYPE_PERMISSIVE, Ordering::SeqCst);
        } else {
            flags.fetch_and(!TG_TYPE_PERMISSIVE, Ordering::SeqCst);
        }
        Ok(())
    }

    /// The permissive domains, whose denials are granted and audited.
    #[must_use]
    pub fn permissive(&self) -> Vec<String> {
        self.named(|type_| self.is_permissive(type_))
    }

    /// The types of the permissive domains.
    #[must_use]
    pub fn permissive_types(&self) -> Vec<u32> {
        let types = (0..).zip(&self.policy.types).skip(1).filter(|(_, type_)| !type_.attribute);
        types.map(|(number, _)| number).filter(|number| self.is_permissive(*number as usize)).collect()
    }

    fn is_permissive(&self, type_: usize) -> bool {
        let at = self.tables.header().type_at as usize + type_ * size_of::<tg_type>() + offset_of!(tg_type, flags);
        // SAFETY: as in `set_permissive`; the record is below the tables' end, for the server has checked them.
        let flags = unsafe { AtomicU32::from_ptr(self.memory.tail().add(at).cast()) };
        flags.load(Ordering::SeqCst) & TG_TYPE_PERMISSIVE != 0
    }

    /// The unconfined domains.
    #[must_use]
    pub fn unconfined(&self) -> Vec<String> {
        self.named(|type_| self.has_unconfined(type_))
    }

    /// Whether a domain is unconfined (`tg_is_unconfined`).
    #[must_use]
    pub fn is_unconfined(&self, sid: Sid) -> bool {
        sid == TG_SID_MACHINE || self.get(sid).is_some_and(|context| self.has_unconfined(context.type_ as usize))
    }

    /// Likewise, in the map of a generation that is not adopted yet.
    pub(crate) fn is_unconfined_in(map: &MapHandle, sid: Sid) -> Result<bool, GenerationError> {
        let memory = Mapping::<tg_generation>::new(map).map_err(|cause| GenerationError::Memory { cause })?;
        let place = (sid as usize).min(TG_SIDS as usize - 1);
        // SAFETY: the arrays lie in the mapping; a context is written before its SID is given to anybody.
        let type_ = unsafe { (&raw const (*memory.get()).contexts[place].type_).read_volatile() };
        Ok(sid == TG_SID_MACHINE || type_ != 0 && has_unconfined(&memory, type_ as usize))
    }

    /// Whether the guard checks the processes of a domain, in the memory of a generation.
    pub(crate) fn is_guarded_in(memory: &Mapping<tg_generation>, sid: Sid) -> bool {
        let place = (sid as usize).min(TG_SIDS as usize - 1);
        // SAFETY: as above; the bits are written before the generation is put in force only.
        let (type_, words) =
            unsafe { ((&raw const (*memory.get()).contexts[place].type_).read_volatile(), &(*memory.get()).guarded) };
        words.get(type_ as usize / 64).is_some_and(|word| word >> (type_ % 64) & 1 != 0)
    }

    /// The SIDs with the context of unlabelled objects, in the map of a generation.
    pub(crate) fn unlabelled_in(map: &MapHandle) -> Result<HashSet<Sid>, GenerationError> {
        let memory = Mapping::<tg_generation>::new(map).map_err(|cause| GenerationError::Memory { cause })?;
        // SAFETY: as above.
        let context = |sid: Sid| unsafe { (&raw const (*memory.get()).contexts[sid as usize]).read_volatile() };
        let unlabelled = context(SECINITSID_UNLABELED);
        Ok((TG_FIRST_SID..TG_SIDS).filter(|sid| context(*sid) == unlabelled).collect())
    }

    /// Whether domains of a type are unconfined.
    pub(crate) fn has_unconfined(&self, type_: usize) -> bool {
        has_unconfined(&self.memory, type_)
    }

    /// Whether a type has the attribute with this name.
    #[must_use]
    pub fn has_attribute(&self, type_: u32, name: &str) -> bool {
        let mut attributes = self.policy.types.iter().filter(|type_| type_.attribute && type_.name == name);
        attributes.any(|attribute| attribute.set.iter().any(|member| member == type_))
    }

    /// The names of the types for which `is` is true.
    fn named(&self, is: impl Fn(usize) -> bool) -> Vec<String> {
        let types = self.policy.types.iter().enumerate().skip(1).filter(|(_, type_)| !type_.attribute);
        types.filter(|(number, _)| is(*number)).map(|(_, type_)| type_.name.clone()).collect()
    }

    /// The names of the permissions that one context has on another.
    pub fn access(&mut self, source: &str, target: &str, class: &str) -> Result<Vec<String>, ContextError> {
        let (source, target) = (self.context(source)?, self.context(target)?);
        let class = self.names.find(Kind::Class, class)?;
        let question = tg_question { source, target, class, ..tg_question::default() };
        let allowed = self.decide(&question).map_or(0, |decision| decision.allowed);
        let names = self.policy.classes.get(class as usize).map_or(&[][..], |class| &class.permissions[..]);
        let mut names: Vec<String> =
            (0..32).zip(names).filter(|(bit, _)| allowed >> bit & 1 != 0).map(|(_, name)| name.clone()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The decision of the tables, evaluated by this process; `None`: the policy has no such class.
    #[must_use]
    pub fn decide(&self, question: &tg_question) -> Option<tg_decision> {
        self.tables.decide(&self.levels, question)
    }

    /// Writes everything but the contexts.
    fn fill(&mut self, classes: &[tg_secclass], unconfined: &[String]) -> Result<(), GenerationError> {
        let memory = self.memory.get();
        let tables = self.tables.as_bytes();
        // SAFETY: the mapping is as long as a generation with these tables, and no program reads this one before it is put in
        // force.
        let to = unsafe {
            self.memory.tail().copy_from_nonoverlapping(tables.as_ptr(), tables.len());
            &mut *memory
        };
        to.classes[..classes.len()].copy_from_slice(classes);
        to.number = self.number;
        to.allow_unknown = (self.policy.handle_unknown == HandleUnknown::Allow).into();
        to.capabilities = (0..).zip(CAPABILITIES).fold(0, |bits, (bit, name)| {
            bits | u64::from(self.policy.capabilities.iter().any(|capability| capability == name)) << bit
        });
        for (attribute, bits) in [(EXECUTORS, &mut to.executors), (GUARDED, &mut to.guarded)] {
            let found = self.policy.types.iter().filter(|type_| type_.attribute && type_.name == attribute);
            for type_ in found.flat_map(|attribute| attribute.set.iter()) {
                bits[type_ as usize / 64] |= 1 << (type_ % 64);
            }
        }
        for name in unconfined {
            let type_ = self.type_of(name).ok_or_else(|| GenerationError::NoType(name.clone()))?;
            to.unconfined[type_ / 64] |= 1 << (type_ % 64);
        }
        names::put(&self.policy, to);
        self.put_levels();
        Ok(())
    }

    fn type_of(&self, name: &str) -> Option<usize> {
        self.policy.types.iter().position(|type_| type_.name == name && !type_.attribute)
    }

    fn put_levels(&self) {
        let levels = self.levels.as_bytes();
        let memory = self.memory.get();
        // SAFETY: the mapping is as long as a generation, and no program reads this one before it is put in force.
        unsafe {
            (&raw mut (*memory).levels).cast::<u8>().copy_from_nonoverlapping(levels.as_ptr(), levels.len());
            (&raw mut (*memory).last_level).write_volatile(self.levels.last());
        }
    }

    /// The decision tables.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Likewise, as programs read them.
    #[must_use]
    pub fn tables_read_back(&self) -> Vec<u8> {
        // SAFETY: the mapping is as long as a generation with these tables. Flags alone change, by `set_permissive`, which
        // nobody else calls meanwhile: it needs `&mut self`.
        unsafe { slice::from_raw_parts(self.memory.tail(), self.tables.as_bytes().len()) }.to_vec()
    }

    /// The map that holds the generation.
    #[must_use]
    pub fn map(&self) -> &MapHandle {
        &self.map
    }

    /// Puts the generation in force, by switching one index of `generations` with `put`. Contexts that the kernel gave SIDs
    /// meanwhile are translated from `previous`.
    pub fn put_in_force(
        &self,
        generations: &MapHandle,
        previous: Option<&Generation>,
        put: impl FnOnce(Place<'_>) -> libbpf_rs::Result<()>,
    ) -> Result<(), GenerationError> {
        if let Some(previous) = previous {
            previous.put(generations, TG_BEFORE)?;
        }
        put(self.at(generations, TG_IN_FORCE)).map_err(|cause| GenerationError::Map { cause })
    }

    /// Puts the generation at one of the places of `generations` (`enum tg_which`).
    pub fn put(&self, generations: &MapHandle, which: u32) -> Result<(), GenerationError> {
        self.at(generations, which).put().map_err(|cause| GenerationError::Map { cause })
    }

    fn at<'p>(&'p self, maps: &'p MapHandle, number: u32) -> Place<'p> {
        Place { maps, number, map: &self.map }
    }
}

/// Makes a map like `template`, down to its types. Before Linux 6.2 the kernel compares even those of maps that are put
/// in a map.
fn like(template: &MapHandle) -> Result<MapHandle, libbpf_rs::Error> {
    let info = MapInfo::new(template.as_fd())?.info;
    // SAFETY: the call takes a number only.
    let types = unsafe { libbpf_rs::libbpf_sys::bpf_btf_get_fd_by_id(info.btf_id) };
    if types < 0 {
        return Err(io::Error::from_raw_os_error(-types).into());
    }
    // SAFETY: the kernel has just given this descriptor to us.
    let types = unsafe { OwnedFd::from_raw_fd(types) };
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
        map_flags: info.map_flags,
        btf_fd: types.as_raw_fd() as u32,
        btf_key_type_id: info.btf_key_type_id,
        btf_value_type_id: info.btf_value_type_id,
        ..Default::default()
    };
    MapHandle::create(MapType::Array, Some("generation"), info.key_size, info.value_size, info.max_entries, &options)
}

/// How a policy numbers our classes and permissions. The programs grant or deny what it does not define, as it says
/// itself. A policy that demands to be refused in that case is refused here.
fn classes(policy: &Policy) -> Result<Vec<tg_secclass>, GenerationError> {
    let mut classes = vec![tg_secclass { bit: [TG_NO_PERMISSION as u8; 32], ..tg_secclass::default() }];
    for class in CLASSES {
        let mut raw = tg_secclass { bit: [TG_NO_PERMISSION as u8; 32], ..tg_secclass::default() };
        let own = policy.classes.iter().position(|own| own.name == class.name);
        raw.class = own.unwrap_or(0) as u32;
        for (bit, permission) in class.permissions.iter().enumerate() {
            let own = own.and_then(|own| policy.classes[own].permissions.iter().position(|name| name == permission));
            match own {
                Some(own) => raw.bit[bit] = own as u8,
                None => raw.unknown |= 1 << bit,
            }
        }
        if raw.unknown != 0 && policy.handle_unknown == HandleUnknown::Reject {
            return Err(GenerationError::Unknown(class.name.to_owned()));
        }
        classes.push(raw);
    }
    debug_assert!(classes.len() <= TG_SECCLASSES as usize);
    Ok(classes)
}
fn has_unconfined(memory: &Mapping<tg_generation>, type_: usize) -> bool {
    // SAFETY: the array lies in the mapping, and is written before the generation is put in force only.
    let words = unsafe { &(*memory.get()).unconfined };
    words.get(type_ / 64).is_some_and(|word| word >> (type_ % 64) & 1 != 0)
}
