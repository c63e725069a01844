//! What decision tables cannot hold.

use tollgate_abi::tables::{TG_BOUNDS, TG_CAPACITY, TG_CATEGORIES, TG_LEVELS, TG_NAME, TG_NAMED, TG_PROBES, TG_STEPS};

/// How many sets of names constraints may have: the bits of `tg_type.sets`.
pub(super) const MAX_SETS: usize = 64;
/// How many values an expression may have on the stack: the bits of the one in `tg_constrain`.
pub(super) const MAX_DEPTH: usize = 32;
/// How many levels of its own a policy may have. The others are for levels that occur at run time.
pub(super) const MAX_LEVELS: usize = TG_LEVELS as usize / 2;

/// Why a policy does not fit into decision tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableLimit {
    /// There are more identifiers of one kind than 16 bits can number.
    #[error("decision tables number at most {most} {what}, the policy has {has}: remove those that no rule needs")]
    Identifiers {
        /// What is numbered, in the plural: "types".
        what: &'static str,
        /// How many there are.
        has: usize,
        /// How many are possible.
        most: usize,
    },
    /// The tables would be too large.
    #[error(
        "decision tables hold {TG_CAPACITY} bytes, the policy needs {needs} or more by its {section}: remove modules that are not \
         needed, or write fewer rules for single types"
    )]
    Capacity {
        /// The section that did not fit any more.
        section: &'static str,
        /// How many bytes are needed up to there.
        needs: usize,
    },
    /// The keys do not fit into the rest of the tables.
    #[error(
        "the policy's {keys} single rules (self, transitions, names) find no place in the {room} bytes that decision tables have \
         left for them, {TG_PROBES} slots each: remove modules that are not needed"
    )]
    Keys {
        /// Number of keys.
        keys: usize,
        /// How many bytes are left.
        room: usize,
    },
    /// Constraints name more different sets of users, roles and types than a word has bits.
    #[error(
        "constraints may name {MAX_SETS} different sets of users, roles or types, the policy's name more, the first in class \
         {class}: use the same attributes in several constraints"
    )]
    NameSets {
        /// The class whose constraint has the first set that is too many.
        class: String,
    },
    /// The constraints of a class are too long.
    #[error(
        "constraints of a class may have {TG_STEPS} terms, those of class {class} have {has}, two of them for each \
         constraint: join constraints that have one expression"
    )]
    #[expect(missing_docs, reason = "the names say it")]
    Steps {
        class: String,
        /// Number of terms, plus two for each constraint.
        has: usize,
    },
    /// A constraint is nested too deeply.
    #[error(
        "constraints may have {MAX_DEPTH} values waiting for an operator, one of class {class} has {has}: write `A and B and C` \
         as `(A and B) and C`"
    )]
    #[expect(missing_docs, reason = "the names say it")]
    Depth {
        class: String,
        /// Number of values on the stack.
        has: usize,
    },
    /// The kernel does not evaluate this constraint.
    #[error("a constraint of class {class} is not one that the kernel evaluates: {why}")]
    #[expect(missing_docs, reason = "the names say it")]
    Expression {
        class: String,
        /// What the kernel does not evaluate in it.
        why: &'static str,
    },
    /// There are too many categories.
    #[error("decision tables have {TG_CATEGORIES} categories, the policy has {has}: use fewer")]
    Categories {
        /// How many there are.
        has: usize,
    },
    /// Users, sensitivities and range transitions have too many different levels.
    #[error(
        "a policy may have {MAX_LEVELS} levels of its own, the first too many is that of {of}: give users and range transitions \
         the same ranges"
    )]
    Levels {
        /// What has the first level that is too many.
        of: &'static str,
    },
    /// A bounded type has too many parents above it.
    #[error(
        "a type may have {TG_BOUNDS} parents above it, {type_} has more, or is its own: bound it by one that is higher up"
    )]
    #[expect(missing_docs, reason = "the names say it")]
    Bounds { type_: String },
    /// A file name is longer than file names can be.
    #[error("file names have at most {TG_NAME} bytes, a type transition has one of {has}, {name}: no file can have it")]
    NameLength {
        /// The file name of the transition.
        name: String,
        /// Its length in bytes.
        has: usize,
    },
    /// A file name leads to too many types.
    #[error(
        "type transitions may give {TG_NAMED} types to one file name, target and class, {has} are given to {name} in {target}: \
         write fewer rules for that name"
    )]
    NameSources {
        /// The file name of the transition.
        name: String,
        /// The target type.
        target: String,
        /// How many types there are.
        has: usize,
    },
    /// Two file names have the same hash.
    #[error("the file names {first} and {second} of type transitions have the same 48-bit hash: rename one of them")]
    NameHash {
        /// One of the two file names.
        first: String,
        /// The other file name.
        second: String,
    },
}
