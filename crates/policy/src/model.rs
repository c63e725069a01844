//! A policy as libsepol understands it, in plain data. The shim writes it (`dump`), tables are built from it, and
//! `explain`, `diff`, `reach` and `stats` read it. Identifiers are libsepol's: users, roles, types, classes,
//! sensitivities and permissions start at 1, categories and booleans at 0. Where one may be missing, 0 means none.

/// A set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(pub Vec<u64>);

impl Bits {
    /// Whether `bit` is in the set.
    pub fn has(&self, bit: u32) -> bool {
        self.0.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    /// Puts `bit` in the set.
    pub fn insert(&mut self, bit: u32) {
        let word = bit as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (bit % 64);
    }

    /// The numbers in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..)
            .zip(&self.0)
            .flat_map(|(index, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit))
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> Self {
        let mut set = Self::default();
        for bit in bits {
            set.insert(bit);
        }
        set
    }
}

/// A sensitivity and its categories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level {
    /// The sensitivity; 0 in a policy without MLS.
    pub sensitivity: u32,
    /// The categories, without trailing empty words.
    pub categories: Bits,
}

/// Two levels, of which the second dominates the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// The lower, current or effective level.
    pub low: Level,
    /// The upper level, or clearance.
    pub high: Level,
}

/// A security context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Context {
    pub user: u32,
    pub role: u32,
    pub type_: u32,
    /// The range; empty in a policy without MLS.
    pub range: Range,
}

/// What a policy says about the kernel's classes and permissions that it does not define.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HandleUnknown {
    /// They are denied.
    #[default]
    Deny,
    /// The policy must not be loaded then.
    Reject,
    /// They are allowed.
    Allow,
}

/// A type or an attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Type {
    /// Name of the type; empty where the policy has a gap.
    pub name: String,
    /// Whether it is an attribute, and not a type.
    pub attribute: bool,
    /// The parent, whose permissions limit those of this type; 0: none.
    pub bounds: u32,
    /// Whether the type is permissive: what its processes are denied is granted, and audited.
    pub permissive: bool,
    /// For a type: its attributes and itself. For an attribute: its types.
    pub set: Bits,
}

/// A role and the types that contexts may combine with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Role {
    pub name: String,
    /// The types that are valid with it.
    pub types: Bits,
    /// The roles that it dominates, including itself.
    pub dominates: Bits,
}

/// A user, with the roles and levels that contexts may combine with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct User {
    pub name: String,
    /// The roles that are valid with it.
    pub roles: Bits,
    /// The range that limits its contexts.
    pub range: Range,
    /// Its default level.
    pub default_level: Level,
}

/// A sensitivity, the first part of a level: `s0`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Sensitivity {
    pub name: String,
    /// Aliases of the sensitivity.
    pub aliases: Vec<String>,
    /// The categories that its levels may have.
    pub categories: Bits,
}

/// A category. Its number is its index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Category {
    pub name: String,
    /// Aliases of the category.
    pub aliases: Vec<String>,
}

/// A boolean that conditions of rules refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Boolean {
    pub name: String,
    /// Its value in this policy. A running kernel can have another.
    pub value: bool,
}

/// From whom a new object gets its user, role or type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhoseDefault {
    /// As usual for this kind of class.
    #[default]
    None,
    /// From the creating process.
    Source,
    /// From the object that contains it.
    Target,
}

/// An object class: its permissions, constraints and defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Class {
    /// Name of the class; empty where the policy has a gap.
    pub name: String,
    /// Names of its permissions by number less 1, those of its common first; at most 32.
    pub permissions: Vec<String>,
    /// Constraints, which deny although rules allow.
    pub constraints: Vec<Constraint>,
    /// Expressions that must hold when an object is relabelled.
    pub validatetrans: Vec<Vec<Term>>,
    /// Whose user a new object has.
    pub default_user: WhoseDefault,
    /// Whose role a new object has.
    pub default_role: WhoseDefault,
    /// Whose type a new object has.
    pub default_type: WhoseDefault,
    /// From whom a new object gets its range: 0 or `TG_RANGE_*`.
    pub default_range: u32,
}

/// A constraint: permissions that need `expression`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Constraint {
    /// The permissions, bit = number less 1.
    pub permissions: u32,
    /// The expression, in postfix order.
    pub expression: Vec<Term>,
}

/// How the two sides of a [`Pair`] are compared, or a name with a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal, or in the set.
    Eq,
    /// Not equal, or not in the set.
    Neq,
    /// The first level dominates the second.
    Dom,
    /// The second level dominates the first.
    DomBy,
    /// Neither level dominates the other.
    Incomp,
}

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pair {
    /// Source and target user.
    Users,
    /// Source and target role.
    Roles,
    /// Source and target type.
    Types,
    /// Source's low and target's low level.
    L1L2,
    /// Source's low and target's high level.
    L1H2,
    /// Source's high and target's low level.
    H1L2,
    /// Source's high and target's high level.
    H1H2,
    /// Source's low and high level.
    L1H1,
    /// Target's low and high level.
    L2H2,
}

/// Whose name is looked up in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Party {
    /// The source's (validatetrans: the old context's).
    Source,
    /// The target's (validatetrans: the new context's).
    Target,
    /// The task's (validatetrans).
    Task,
}

/// The kind of names in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NameKind {
    User,
    Role,
    Type,
}

/// A term of a constraint's expression.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term {
    /// Negates the value before it.
    Not,
    /// Whether both values before it hold.
    And,
    /// Whether at least one of the two values before it holds.
    Or,
    /// Compares two sides.
    Compare(Pair, Comparison),
    /// Whether a name is in a set, or (`Neq`) is not.
    In {
        /// Whose name is looked up.
        party: Party,
        /// What kind of name.
        kind: NameKind,
        /// `Eq` or `Neq`.
        comparison: Comparison,
        /// The identifiers, with attributes resolved.
        names: Bits,
        /// The types and attributes as written, if the policy still knows; else empty.
        written: Bits,
    },
}

impl Term {
    /// Whether it compares levels, so that its constraint belongs to MLS.
    pub fn compares_levels(&self) -> bool {
        matches!(self, Self::Compare(pair, _) if !matches!(pair, Pair::Users | Pair::Roles | Pair::Types))
    }
}

/// The kind of a rule for two types and a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RuleKind {
    /// `data`: permissions granted.
    Allow,
    /// `data`: permissions whose grants are audited.
    AuditAllow,
    /// `data`: permissions whose denials are not audited.
    DontAudit,
    /// `data`: the type of a new object.
    Transition,
    /// `data`: the type of a member of a polyinstantiated object.
    Member,
    /// `data`: the type to relabel to.
    Change,
}

/// When a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Condition {
    /// Which of [`Policy::conditions`].
    pub condition: u32,
    /// The value that it must have.
    pub value: bool,
}

/// A rule; source and target are types or attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Rule {
    /// What it says.
    pub kind: RuleKind,
    pub source: u32,
    pub target: u32,
    pub class: u32,
    /// Permissions or a type, as [`RuleKind`] says.
    pub data: u32,
    /// When it holds; `None`: always.
    pub condition: Option<Condition>,
}

/// What an extended rule's bits are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extension {
    /// Functions of one ioctl driver.
    IoctlFunction {
        /// The driver: the command's second byte.
        driver: u8,
    },
    /// Whole ioctl drivers.
    IoctlDriver,
}

/// A rule of extended permissions; `kind` is one of the first three.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ExtendedRule {
    /// What it says.
    pub kind: RuleKind,
    pub source: u32,
    pub target: u32,
    pub class: u32,
    /// What its bits are.
    pub extension: Extension,
    /// 256 bits, least significant first.
    pub bits: [u64; 4],
    /// When it holds; `None`: always.
    pub condition: Option<Condition>,
}

/// A term of a condition, postfix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logic {
    /// The value of a boolean.
    Boolean(u32),
    /// The value before it is negated.
    Not,
    /// Both values before it hold.
    And,
    /// Either or both.
    Or,
    /// Either, not both.
    Xor,
    /// Both values before it are the same.
    Eq,
    /// Not the same.
    Neq,
}

/// A type transition by file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NameTransition {
    /// The creating types.
    pub sources: Bits,
    /// The type of the directory.
    pub target: u32,
    /// The class of the new object.
    pub class: u32,
    pub name: String,
    /// The type that the new object gets.
    pub result: u32,
}

/// A role transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RoleTransition {
    /// The role of the process before the transition.
    pub role: u32,
    /// The type of what is executed, or of the directory.
    pub target: u32,
    pub class: u32,
    /// The new role.
    pub result: u32,
}

/// A range transition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RangeTransition {
    /// The type of the process.
    pub source: u32,
    /// The type of what is executed, or of the directory.
    pub target: u32,
    pub class: u32,
    /// The new range.
    pub range: Range,
}

/// How objects of a file system are labelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsUse {
    /// 1 xattr, 2 trans, 3 task (`SECURITY_FS_USE_*`).
    pub behaviour: u32,
    /// The file system.
    pub name: String,
    /// The file system's own context.
    pub context: Context,
}

/// Contexts of a file system that has no attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct GenFs {
    /// The file system.
    pub name: String,
    /// What paths start with.
    pub path: String,
    /// The class that it is for; 0: all.
    pub class: u32,
    pub context: Context,
}

/// A context for ports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PortContext {
    /// The IP protocol's number.
    pub protocol: u8,
    /// The first port.
    pub low: u16,
    /// The last port.
    pub high: u16,
    pub context: Context,
}

/// Contexts for a network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct InterfaceContext {
    pub name: String,
    /// Its own context.
    pub interface: Context,
    /// The context of packets that come in by it.
    pub packet: Context,
}

/// A context for hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NodeContext {
    /// The address of the host or network.
    pub address: std::net::IpAddr,
    /// The bits of the address that count.
    pub mask: std::net::IpAddr,
    pub context: Context,
}

/// The context of what the kernel makes before a policy is loaded, or has no better label for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct InitialSid {
    /// The number that the kernel knows it by.
    pub sid: u32,
    /// Its name, which binary policies do not have: the kernel's name for the number.
    pub name: String,
    pub context: Context,
}

/// A policy. In vectors that are indexed by identifiers that start at 1, element 0 is unused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Policy {
    /// The version of the binary policy.
    pub version: u32,
    /// Whether contexts have a range.
    pub mls: bool,
    /// What to do about the kernel's classes and permissions that it does not define.
    pub handle_unknown: HandleUnknown,
    /// The names of the policy capabilities that it has.
    pub capabilities: Vec<String>,
    pub classes: Vec<Class>,
    pub types: Vec<Type>,
    /// Other names of types, sorted by name.
    pub type_aliases: Vec<(String, u32)>,
    pub roles: Vec<Role>,
    pub users: Vec<User>,
    pub sensitivities: Vec<Sensitivity>,
    pub categories: Vec<Category>,
    pub booleans: Vec<Boolean>,
    /// By condition: postfix.
    pub conditions: Vec<Vec<Logic>>,
    /// Rules of two types and a class.
    pub rules: Vec<Rule>,
    /// Rules of extended permissions.
    pub extended_rules: Vec<ExtendedRule>,
    /// Type transitions by file name.
    pub name_transitions: Vec<NameTransition>,
    pub role_transitions: Vec<RoleTransition>,
    /// Which role may become which.
    pub role_allows: Vec<(u32, u32)>,
    pub range_transitions: Vec<RangeTransition>,
    pub initial_sids: Vec<InitialSid>,
    /// File systems that labels are kept by.
    pub fs_uses: Vec<FsUse>,
    /// File systems without labels of their own.
    pub genfs: Vec<GenFs>,
    pub ports: Vec<PortContext>,
    pub interfaces: Vec<InterfaceContext>,
    pub nodes: Vec<NodeContext>,
    /// `ibpkeycon` and `ibendportcon` statements, which are counted only.
    pub infiniband: u32,
}

impl Policy {
    /// Whether a rule of that condition holds with the booleans as they are.
    pub fn holds(&self, condition: Option<Condition>) -> bool {
        let Some(Condition { condition, value }) = condition else { return true };
        let mut stack = Vec::new();
        for term in self.conditions.get(condition as usize).into_iter().flatten() {
            let mut pop = || stack.pop().unwrap_or(false);
            let result = match term {
                Logic::Boolean(number) => self.booleans.get(*number as usize).is_some_and(|boolean| boolean.value),
                Logic::Not => !pop(),
                Logic::And => pop() & pop(),
                Logic::Or => pop() | pop(),
                Logic::Xor | Logic::Neq => pop() ^ pop(),
                Logic::Eq => pop() == pop(),
            };
            stack.push(result);
        }
        stack.pop() == Some(value)
    }
}
