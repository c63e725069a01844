//! Figures about a policy and its tables.

use serde::Serialize;
use tollgate_abi::tables::{
    TG_BLOCK, TG_CAPACITY, TG_LEVELS, TG_SELF, TG_STEPS, tg_class, tg_entry, tg_folded, tg_step, tg_tuple, tg_type,
};

use crate::{
    built::Built,
    decide::Tables,
    model::{HandleUnknown, Policy, RuleKind, Term},
    vectors::{entries, records},
};

/// Names and numbers, in the order of reports.
pub type Figures = Vec<(&'static str, u64)>;

/// Figures of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// The version of the binary policy.
    pub version: u32,
    /// Whether contexts have a range.
    pub mls: bool,
    /// `deny`, `reject` or `allow`.
    pub handle_unknown: &'static str,
    /// The policy capabilities.
    pub capabilities: Vec<String>,
    /// The number of statements and names, by kind.
    #[serde(serialize_with = "as_object")]
    pub policy: Figures,
    /// The tables: numbers of their parts, and sizes in bytes.
    #[serde(serialize_with = "as_object")]
    pub tables: Figures,
    /// Sizes of the built file's sections, in bytes.
    #[serde(serialize_with = "as_object")]
    pub sections: Figures,
}

/// As a JSON object: `type aliases` becomes the key `type_aliases`.
fn as_object<S: serde::Serializer>(figures: &Figures, serializer: S) -> Result<S::Ok, S::Error> {
    let key = |name: &str| name.to_lowercase().replace(", ", "_").replace(' ', "_");
    serializer.collect_map(figures.iter().map(|(name, figure)| (key(name), figure)))
}

/// The figures of a built policy with these tables.
pub fn stats(built: &Built, tables: &Tables) -> Stats {
    let policy = &built.policy;
    Stats {
        version: policy.version,
        mls: policy.mls,
        handle_unknown: match policy.handle_unknown {
            HandleUnknown::Deny => "deny",
            HandleUnknown::Reject => "reject",
            HandleUnknown::Allow => "allow",
        },
        capabilities: policy.capabilities.clone(),
        policy: names(policy).into_iter().chain(rules(policy)).chain(statements(policy)).collect(),
        tables: laid(tables, built.levels.len()),
        sections: vec![
            ("binary policy", built.image.len() as u64),
            ("model", built.model.len() as u64),
            ("tables", built.tables.len() as u64),
            ("lines", built.lines.to_bytes().len() as u64),
            ("file contexts", built.file_contexts.len() as u64),
        ],
    }
}

fn names(policy: &Policy) -> Figures {
    let types = policy.types.iter().filter(|t| !t.name.is_empty());
    let (attributes, types): (Vec<_>, Vec<_>) = types.partition(|t| t.attribute);
    let mut permissions: Vec<&str> =
        policy.classes.iter().flat_map(|class| &class.permissions).map(String::as_str).collect();
    let all = permissions.len();
    permissions.sort_unstable();
    permissions.dedup();
    vec![
        ("types", types.len() as u64),
        ("attributes", attributes.len() as u64),
        ("type aliases", policy.type_aliases.len() as u64),
        ("classes", policy.classes.iter().filter(|class| !class.name.is_empty()).count() as u64),
        ("permissions of classes", all as u64),
        ("names of permissions", permissions.len() as u64),
        ("roles", policy.roles.iter().filter(|role| !role.name.is_empty()).count() as u64),
        ("users", policy.users.iter().filter(|user| !user.name.is_empty()).count() as u64),
        ("sensitivities", policy.sensitivities.iter().filter(|s| !s.name.is_empty()).count() as u64),
        ("categories", policy.categories.len() as u64),
        ("booleans", policy.booleans.len() as u64),
        ("conditional expressions", policy.conditions.len() as u64),
        ("permissive types", types.iter().filter(|t| t.permissive).count() as u64),
        ("bounded types", types.iter().filter(|t| t.bounds != 0).count() as u64),
    ]
}

fn rules(policy: &Policy) -> Figures {
    let kinds = [
        (RuleKind::Allow, "allow", "allow, conditional"),
        (RuleKind::AuditAllow, "auditallow", "auditallow, conditional"),
        (RuleKind::DontAudit, "dontaudit", "dontaudit, conditional"),
        (RuleKind::Transition, "type transitions", "type transitions, conditional"),
        (RuleKind::Member, "type members", "type members, conditional"),
        (RuleKind::Change, "type changes", "type changes, conditional"),
    ];
    let count = |kind, conditional| {
        let rules = policy.rules.iter();
        rules.filter(|rule| rule.kind == kind && rule.condition.is_some() == conditional).count() as u64
    };
    kinds
        .into_iter()
        .flat_map(|(kind, always, conditional)| [(always, count(kind, false)), (conditional, count(kind, true))])
        .collect()
}

fn statements(policy: &Policy) -> Figures {
    let constraints = || policy.classes.iter().flat_map(|class| &class.constraints);
    let levels = |terms: &[Term]| terms.iter().any(Term::compares_levels);
    let with_levels = constraints().filter(|constraint| levels(&constraint.expression)).count();
    let sources: usize = policy.name_transitions.iter().map(|transition| transition.sources.iter().count()).sum();
    vec![
        ("type transitions by name", policy.name_transitions.len() as u64),
        ("type transitions by name, each source", sources as u64),
        ("range transitions", policy.range_transitions.len() as u64),
        ("role transitions", policy.role_transitions.len() as u64),
        ("role allows", policy.role_allows.len() as u64),
        ("extended permission rules", policy.extended_rules.len() as u64),
        ("constraints", (constraints().count() - with_levels) as u64),
        ("constraints on levels", with_levels as u64),
        ("validatetrans", policy.classes.iter().map(|class| class.validatetrans.len()).sum::<usize>() as u64),
        ("terms of constraints", constraints().map(|constraint| constraint.expression.len()).sum::<usize>() as u64),
        ("initial SIDs", policy.initial_sids.len() as u64),
        ("fs_use", policy.fs_uses.len() as u64),
        ("genfscon", policy.genfs.len() as u64),
        ("portcon", policy.ports.len() as u64),
        ("netifcon", policy.interfaces.len() as u64),
        ("nodecon", policy.nodes.len() as u64),
        ("ibpkeycon and ibendportcon", policy.infiniband.into()),
    ]
}

/// Numbers of the parts of the tables, and their sizes in bytes.
fn laid(tables: &Tables, levels: usize) -> Figures {
    let header = tables.header();
    let slots = 1u64 << 64u32.saturating_sub(header.key_shift).min(32);
    let keys = entries(tables).count() as u64;
    let itself = entries(tables).filter(|(key, _)| key >> 48 == u64::from(TG_SELF)).count() as u64;
    let steps = steps(tables);
    let (rows, columns, vectors) = (u64::from(header.rows), u64::from(header.columns), u64::from(header.vectors));
    vec![
        ("rows", rows),
        ("columns", columns),
        ("vectors", vectors),
        ("tuples", header.tuples.into()),
        ("keys", keys),
        ("self keys", itself),
        ("slots for keys", slots),
        ("steps of constraint code", steps.iter().sum::<u64>()),
        ("steps of the longest class", steps.iter().copied().max().unwrap_or_default()),
        ("levels", levels as u64),
        ("bytes", header.size.into()),
        ("bytes of the matrix", folded(rows, &header.matrix)),
        ("bytes of vectors", folded(vectors, &header.vector)),
        ("bytes of tuples", u64::from(header.tuples) * size_of::<tg_tuple>() as u64),
        ("bytes of keys", slots * size_of::<tg_entry>() as u64),
        ("bytes of types", (u64::from(header.types) + 1) * size_of::<tg_type>() as u64),
        ("bytes of constraint code", steps.iter().sum::<u64>() * size_of::<tg_step>() as u64),
    ]
}

/// The bytes of a matrix with so many rows.
fn folded(rows: u64, matrix: &tg_folded) -> u64 {
    (rows * u64::from(matrix.width) + u64::from(matrix.blocks) * u64::from(TG_BLOCK)) * 2
}

/// By class: the steps of its constraints and of its validatetrans.
fn steps(tables: &Tables) -> Vec<u64> {
    let header = tables.header();
    let classes = records(tables, header.class_at, header.classes as usize + 1, size_of::<tg_class>());
    // The second and the fourth member of struct tg_class.
    classes.flat_map(|record| [1, 3].map(|member| u64::from(crate::vectors::word(record, member * 4)))).collect()
}

/// Something that the tables limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// What it is, in the plural: "types".
    pub what: &'static str,
    /// How much the policy has.
    pub used: u64,
    /// How much is possible.
    pub limit: u64,
}

/// How much of each limit the policy uses.
pub fn shares(tables: &Tables, levels: usize) -> Vec<Share> {
    let header = tables.header();
    let longest = steps(tables).into_iter().max().unwrap_or_default();
    [
        ("bytes of tables", header.size.into(), TG_CAPACITY),
        ("types", header.types.into(), 0xffff),
        ("distinct vectors", header.vectors.into(), 0xffff),
        ("distinct blocks of the matrix", header.matrix.blocks.into(), 0xffff),
        ("distinct blocks of vectors", header.vector.blocks.into(), 0xffff),
        ("distinct access vectors", header.tuples.into(), 0xffff),
        ("steps of a class's constraints", longest, TG_STEPS),
        // The other half is for levels that occur at run time.
        ("levels of the policy", levels as u64, TG_LEVELS / 2),
    ]
    .into_iter()
    .map(|(what, used, limit)| Share { what, used, limit: limit.into() })
    .collect()
}
