//! Reads the stream in which the confined child describes a binary policy (`c/dump.c`), and which a built policy keeps.
//! It is checked as if it came from an attacker.
//!
//! Numbers have 4 bytes, little endian. Text is a length and bytes of UTF-8. A set is a count of words and words of 8
//! bytes. A list is a count and elements. Magic and version come first, then the content of [`Policy`]. The number of
//! each kind of thing comes before the lists that refer to it, so that each identifier is checked when it is read.

mod rules;
mod stream;
#[cfg(test)]
mod tests;

use stream::{Counts, Stream};

use crate::model::{
    Boolean, Category, Class, Comparison, Constraint, HandleUnknown, Logic, NameKind, Pair, Party, Policy, Role,
    Sensitivity, Term, Type, User, WhoseDefault,
};

const MAGIC: u32 = u32::from_le_bytes(*b"TGMD");
/// The version of the format that this program writes and reads.
pub const VERSION: u32 = 1;

/// Why a stream does not describe a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DumpError {
    /// It ends too early, or contains a count that is too large.
    #[error("the description of the policy ends too early")]
    Short,
    /// It is of another version, or something else.
    #[error("not a description of a policy, or one of another version")]
    Version,
    /// It contains something that is not possible.
    #[error("the description of the policy holds {0}")]
    Content(&'static str),
    /// Something follows its end.
    #[error("something follows the end of the description of the policy")]
    Long,
}

/// Reads a stream.
pub fn read(bytes: &[u8]) -> Result<Policy, DumpError> {
    let stream = &mut Stream::new(bytes);
    let (mut policy, counts) = head(stream)?;
    rules::read(stream, &counts, &mut policy)?;
    if !stream.is_empty() {
        return Err(DumpError::Long);
    }
    Ok(policy)
}

/// Reads names and what belongs to them, without rules and what follows. The rest is four fifths of a stream.
pub fn read_names(bytes: &[u8]) -> Result<Policy, DumpError> {
    Ok(head(&mut Stream::new(bytes))?.0)
}

fn head(stream: &mut Stream<'_>) -> Result<(Policy, Counts), DumpError> {
    if stream.number()? != MAGIC || stream.number()? != VERSION {
        return Err(DumpError::Version);
    }
    let mut policy = Policy { version: stream.number()?, mls: stream.within(0, 1)? == 1, ..Policy::default() };
    policy.handle_unknown = match stream.number()? {
        0 => HandleUnknown::Deny,
        2 => HandleUnknown::Reject,
        4 => HandleUnknown::Allow,
        _ => return Err(DumpError::Content("an unknown answer to what is unknown")),
    };
    policy.capabilities = stream.list(4, Stream::text)?;
    let mut counts = Counts { mls: policy.mls, ..Counts::default() };
    for count in [
        &mut counts.classes,
        &mut counts.types,
        &mut counts.roles,
        &mut counts.users,
        &mut counts.sensitivities,
        &mut counts.categories,
        &mut counts.booleans,
    ] {
        *count = stream.within(0, u16::MAX.into())? as usize;
    }
    symbols(stream, &counts, &mut policy)?;
    Ok((policy, counts))
}

/// Classes, types, roles, users, levels, booleans and conditions.
fn symbols(stream: &mut Stream<'_>, counts: &Counts, policy: &mut Policy) -> Result<(), DumpError> {
    policy.classes = stream.numbered(32, |stream| class(stream, counts))?;
    policy.types = stream.numbered(16, |stream| type_(stream, counts))?;
    for number in 1..policy.types.len() {
        for attribute in policy.types[number].set.clone().iter() {
            if let Some(attribute) = policy.types.get_mut(attribute as usize)
                && attribute.attribute
            {
                attribute.set.insert(number as u32);
            }
        }
    }
    policy.type_aliases = stream.list(8, |stream| Ok((stream.text()?, stream.within(1, counts.types)?)))?;
    policy.type_aliases.sort();
    policy.roles = stream.numbered(12, |stream| {
        Ok(Role { name: stream.text()?, types: stream.set(counts.types)?, dominates: stream.set(counts.roles)? })
    })?;
    policy.users = stream.numbered(32, |stream| user(stream, counts))?;
    policy.sensitivities = stream.numbered(12, |stream| {
        let (name, aliases) = (stream.text()?, stream.list(4, Stream::text)?);
        Ok(Sensitivity { name, aliases, categories: stream.categories(counts.categories)? })
    })?;
    policy.categories =
        stream.list(8, |stream| Ok(Category { name: stream.text()?, aliases: stream.list(4, Stream::text)? }))?;
    policy.booleans =
        stream.list(8, |stream| Ok(Boolean { name: stream.text()?, value: stream.within(0, 1)? == 1 }))?;
    policy.conditions = stream.list(4, |stream| stream.list(8, |stream| logic(stream, counts)))?;
    let found = [
        policy.classes.len() - 1,
        policy.types.len() - 1,
        policy.roles.len() - 1,
        policy.users.len() - 1,
        policy.sensitivities.len() - 1,
        policy.categories.len(),
        policy.booleans.len(),
    ];
    let announced = [
        counts.classes,
        counts.types,
        counts.roles,
        counts.users,
        counts.sensitivities,
        counts.categories,
        counts.booleans,
    ];
    if found == announced { Ok(()) } else { Err(DumpError::Content("lists of another length than announced")) }
}

fn type_(stream: &mut Stream<'_>, counts: &Counts) -> Result<Type, DumpError> {
    let (name, flags) = (stream.text()?, stream.within(0, 3)?);
    let (bounds, set) = (stream.within(0, counts.types)?, stream.set(counts.types)?);
    let attribute = flags & 1 == 1;
    // The types of an attribute follow from the attributes of types.
    let set = if attribute { crate::model::Bits::default() } else { set };
    Ok(Type { name, attribute, bounds, permissive: flags & 2 == 2, set })
}

/// A user that does not exist has neither a name nor a range.
fn user(stream: &mut Stream<'_>, counts: &Counts) -> Result<User, DumpError> {
    let (name, roles) = (stream.text()?, stream.set(counts.roles)?);
    let counts = Counts { mls: counts.mls && !name.is_empty(), ..*counts };
    Ok(User { name, roles, range: counts.range(stream)?, default_level: counts.level(stream)? })
}

fn class(stream: &mut Stream<'_>, counts: &Counts) -> Result<Class, DumpError> {
    let name = stream.text()?;
    let permissions = stream.list(4, Stream::text)?;
    if permissions.len() > 32 {
        return Err(DumpError::Content("a class with more than 32 permissions"));
    }
    // Policies are compared by names.
    if (1..permissions.len()).any(|at| !permissions[at].is_empty() && permissions[..at].contains(&permissions[at])) {
        return Err(DumpError::Content("a class with two permissions of one name"));
    }
    let mut whose = || match stream.number()? {
        0 => Ok(WhoseDefault::None),
        1 => Ok(WhoseDefault::Source),
        2 => Ok(WhoseDefault::Target),
        _ => Err(DumpError::Content("an unknown default")),
    };
    let (default_user, default_role, default_type) = (whose()?, whose()?, whose()?);
    let default_range = stream.within(0, 7)?;
    let mut constraint = |stream: &mut Stream<'_>| {
        let permissions = stream.number()?;
        Ok(Constraint { permissions, expression: stream.list(12, |stream| term(stream, counts))? })
    };
    let constraints = stream.list(8, &mut constraint)?;
    let validatetrans = stream.list(8, &mut constraint)?.into_iter().map(|one| one.expression).collect();
    Ok(Class { name, permissions, constraints, validatetrans, default_user, default_role, default_type, default_range })
}

/// A term of a constraint, numbered as libsepol does (`CEXPR_*`, sepol/policydb/constraint.h).
fn term(stream: &mut Stream<'_>, counts: &Counts) -> Result<Term, DumpError> {
    let (kind, operand, operator) = (stream.number()?, stream.number()?, stream.number()?);
    let comparison = || match operator {
        1 => Ok(Comparison::Eq),
        2 => Ok(Comparison::Neq),
        3 => Ok(Comparison::Dom),
        4 => Ok(Comparison::DomBy),
        5 => Ok(Comparison::Incomp),
        _ => Err(DumpError::Content("an unknown comparison")),
    };
    match kind {
        1 => Ok(Term::Not),
        2 => Ok(Term::And),
        3 => Ok(Term::Or),
        4 => {
            let pair = match operand {
                1 => Pair::Users,
                2 => Pair::Roles,
                4 => Pair::Types,
                32 => Pair::L1L2,
                64 => Pair::L1H2,
                128 => Pair::H1L2,
                256 => Pair::H1H2,
                512 => Pair::L1H1,
                1024 => Pair::L2H2,
                _ => return Err(DumpError::Content("an unknown operand of a constraint")),
            };
            Ok(Term::Compare(pair, comparison()?))
        }
        5 => {
            let party = match operand & !7 {
                0 => Party::Source,
                // The kernel examines the target's mark first (constraint_expr_eval).
                8 | 24 => Party::Target,
                16 => Party::Task,
                _ => return Err(DumpError::Content("an unknown party of a constraint")),
            };
            let (kind, greatest) = match operand & 7 {
                1 => (NameKind::User, counts.users),
                2 => (NameKind::Role, counts.roles),
                4 => (NameKind::Type, counts.types),
                _ => return Err(DumpError::Content("unknown names in a constraint")),
            };
            let comparison = comparison()?;
            if !matches!(comparison, Comparison::Eq | Comparison::Neq) {
                return Err(DumpError::Content("a comparison that names do not have"));
            }
            Ok(Term::In { party, kind, comparison, names: stream.set(greatest)?, written: stream.set(counts.types)? })
        }
        _ => Err(DumpError::Content("an unknown term of a constraint")),
    }
}

/// A term of a condition, numbered as libsepol does (`COND_*`, sepol/policydb/conditional.h).
fn logic(stream: &mut Stream<'_>, counts: &Counts) -> Result<Logic, DumpError> {
    let (kind, boolean) = (stream.number()?, stream.number()?);
    match kind {
        1 if boolean == 0 || boolean as usize > counts.booleans => {
            Err(DumpError::Content("a boolean that is not there"))
        }
        1 => Ok(Logic::Boolean(boolean - 1)),
        2 => Ok(Logic::Not),
        3 => Ok(Logic::Or),
        4 => Ok(Logic::And),
        5 => Ok(Logic::Xor),
        6 => Ok(Logic::Eq),
        7 => Ok(Logic::Neq),
        _ => Err(DumpError::Content("an unknown term of a condition")),
    }
}
