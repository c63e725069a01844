//! Names and contexts: turns text into identifiers and back, as `string_to_context_struct` and `mls_context_to_sid` do.

use std::collections::HashMap;

use crate::model::{Bits, Context, Level, Policy, Range};

/// The kind of thing that a name belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    User,
    Role,
    Type,
    Class,
    Permission,
    Sensitivity,
    Category,
    Boolean,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Role => "role",
            Self::Type => "type",
            Self::Class => "class",
            Self::Permission => "permission",
            Self::Sensitivity => "sensitivity",
            Self::Category => "category",
            Self::Boolean => "boolean",
        })
    }
}

/// Why a text is not a context, or the policy does not have a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The policy does not have this name.
    #[error("the {} has no {kind} `{name}`{}", owner(.kind), offer(.nearest))]
    #[expect(missing_docs, reason = "the names say it")]
    Unknown {
        /// The kind of thing that was looked for.
        kind: Kind,
        name: String,
        /// Similar names of that kind, the most similar first.
        nearest: Vec<String>,
    },
    /// An attribute where a type is needed.
    #[error("`{name}` is an attribute, not a type: contexts and questions need one of its types")]
    #[expect(missing_docs, reason = "the names say it")]
    Attribute { name: String },
    /// Fields are missing, or there are too many.
    #[error("`{text}` is not a context: {expected} is expected")]
    Shape {
        /// The text as it was given.
        text: String,
        /// The form of contexts in this policy.
        expected: &'static str,
    },
    /// A range that cannot be read.
    #[error("`{text}` is not a range: levels are like s0 or s0:c1,c5.c9, a range is LOW-HIGH")]
    Range {
        /// The text as it was given.
        text: String,
    },
    /// The parts exist but are not valid together.
    #[error("`{text}` is not a valid context: {reason}")]
    Invalid {
        /// The text as it was given.
        text: String,
        /// Why they are not.
        reason: String,
    },
    /// There are more levels than the tables can hold.
    #[error(transparent)]
    Levels(#[from] crate::decide::TooManyLevels),
}

fn owner(kind: &Kind) -> &'static str {
    if *kind == Kind::Permission { "class" } else { "policy" }
}

fn offer(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(" (like it: {})", nearest.join(", ")) }
}

/// The names of a policy, by kind.
#[derive(Debug, Default)]
pub struct Names {
    by_kind: HashMap<Kind, HashMap<String, u32>>,
    attributes: HashMap<String, u32>,
    permissions: Vec<HashMap<String, u32>>,
}

impl Names {
    /// The names of `policy`, including aliases.
    pub fn of(policy: &Policy) -> Self {
        fn index<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<String, u32> {
            names
                .zip(0..)
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, number)| (name.to_owned(), number))
                .collect()
        }
        let mut names = Self::default();
        let mut types = index(policy.types.iter().map(|t| if t.attribute { "" } else { t.name.as_str() }));
        types.extend(policy.type_aliases.iter().cloned());
        let mut sensitivities = index(policy.sensitivities.iter().map(|s| s.name.as_str()));
        for (sensitivity, number) in policy.sensitivities.iter().zip(0..) {
            sensitivities.extend(sensitivity.aliases.iter().map(|alias| (alias.clone(), number)));
        }
        let mut categories = index(policy.categories.iter().map(|c| c.name.as_str()));
        for (category, number) in policy.categories.iter().zip(0..) {
            categories.extend(category.aliases.iter().map(|alias| (alias.clone(), number)));
        }
        names.attributes = index(policy.types.iter().map(|t| if t.attribute { t.name.as_str() } else { "" }));
        names.permissions =
            policy.classes.iter().map(|class| index(class.permissions.iter().map(String::as_str))).collect();
        names.by_kind.extend([
            (Kind::User, index(policy.users.iter().map(|u| u.name.as_str()))),
            (Kind::Role, index(policy.roles.iter().map(|r| r.name.as_str()))),
            (Kind::Type, types),
            (Kind::Class, index(policy.classes.iter().map(|c| c.name.as_str()))),
            (Kind::Sensitivity, sensitivities),
            (Kind::Category, categories),
            (Kind::Boolean, index(policy.booleans.iter().map(|b| b.name.as_str()))),
        ]);
        names
    }

    /// The identifier of a name. Not for permissions, which belong to a class.
    pub fn find(&self, kind: Kind, name: &str) -> Result<u32, ContextError> {
        let known = self.by_kind.get(&kind);
        match known.and_then(|known| known.get(name)) {
            Some(identifier) => Ok(*identifier),
            None if kind == Kind::Type && self.attributes.contains_key(name) => {
                Err(ContextError::Attribute { name: name.to_owned() })
            }
            None => {
                let nearest = nearest(name, known.into_iter().flat_map(HashMap::keys).map(String::as_str));
                Err(ContextError::Unknown { kind, name: name.to_owned(), nearest })
            }
        }
    }

    /// The identifier of an attribute.
    pub fn attribute(&self, name: &str) -> Option<u32> {
        self.attributes.get(name).copied()
    }

    /// A permission of a class as a bit of its access vector.
    pub fn permission(&self, class: u32, name: &str) -> Result<u32, ContextError> {
        let known = self.permissions.get(class as usize);
        known.and_then(|known| known.get(name)).map(|number| 1 << number).ok_or_else(|| ContextError::Unknown {
            kind: Kind::Permission,
            name: name.to_owned(),
            nearest: nearest(name, known.into_iter().flat_map(HashMap::keys).map(String::as_str)),
        })
    }

    /// Parses `USER:ROLE:TYPE[:RANGE]`. Whether the parts are valid together is not checked.
    pub fn context(&self, policy: &Policy, text: &str) -> Result<Context, ContextError> {
        let expected = if policy.mls { "USER:ROLE:TYPE:RANGE" } else { "USER:ROLE:TYPE" };
        let shape = || ContextError::Shape { text: text.to_owned(), expected };
        let mut parts = text.splitn(4, ':');
        let (Some(user), Some(role), Some(type_), range) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(shape());
        };
        if range.is_some() != policy.mls {
            return Err(shape());
        }
        Ok(Context {
            user: self.find(Kind::User, user)?,
            role: self.find(Kind::Role, role)?,
            type_: self.find(Kind::Type, type_)?,
            range: range.map_or_else(|| Ok(Range::default()), |range| self.range(range))?,
        })
    }

    /// `LEVEL` or `LEVEL-LEVEL`.
    pub fn range(&self, text: &str) -> Result<Range, ContextError> {
        // CIL does not allow a dash in the name of a sensitivity.
        let (low, high) = text.split_once('-').map_or((text, text), |(low, high)| (low, high));
        Ok(Range { low: self.level(text, low)?, high: self.level(text, high)? })
    }

    fn level(&self, range: &str, text: &str) -> Result<Level, ContextError> {
        let malformed = || ContextError::Range { text: range.to_owned() };
        let (sensitivity, categories) = text.split_once(':').map_or((text, None), |(s, c)| (s, Some(c)));
        if sensitivity.is_empty() || categories.is_some_and(str::is_empty) {
            return Err(malformed());
        }
        let mut level = Level { sensitivity: self.find(Kind::Sensitivity, sensitivity)?, categories: Bits::default() };
        for item in categories.into_iter().flat_map(|list| list.split(',')) {
            let (first, last) = item.split_once('.').map_or((item, None), |(first, last)| (first, Some(last)));
            let first = self.find(Kind::Category, first)?;
            let last = last.map(|last| self.find(Kind::Category, last)).transpose()?;
            // The kernel also refuses a range with a single category.
            if last.is_some_and(|last| last <= first) {
                return Err(malformed());
            }
            (first..=last.unwrap_or(first)).for_each(|category| level.categories.insert(category));
        }
        Ok(level)
    }
}

/// A context as text. Numbers that the policy does not have are written as `#N`.
pub fn text(policy: &Policy, context: &Context) -> String {
    let name = |name: Option<&String>, number: u32| name.map_or_else(|| format!("#{number}"), Clone::clone);
    let user = name(policy.users.get(context.user as usize).map(|u| &u.name), context.user);
    let role = name(policy.roles.get(context.role as usize).map(|r| &r.name), context.role);
    let type_ = name(policy.types.get(context.type_ as usize).map(|t| &t.name), context.type_);
    if policy.mls {
        format!("{user}:{role}:{type_}:{}", range_text(policy, &context.range))
    } else {
        format!("{user}:{role}:{type_}")
    }
}

/// A range as text: `LOW`, or `LOW-HIGH` if they differ.
pub fn range_text(policy: &Policy, range: &Range) -> String {
    let low = level_text(policy, &range.low);
    if range.low == range.high { low } else { format!("{low}-{}", level_text(policy, &range.high)) }
}

/// A level as text. Three or more consecutive categories are written `c1.c3`, as `mls_sid_to_context` does.
pub fn level_text(policy: &Policy, level: &Level) -> String {
    let sensitivity = policy.sensitivities.get(level.sensitivity as usize);
    let mut text = sensitivity.map_or_else(|| format!("#{}", level.sensitivity), |s| s.name.clone());
    let category =
        |number: u32| policy.categories.get(number as usize).map_or_else(|| format!("#{number}"), |c| c.name.clone());
    let mut separator = ':';
    let mut categories = level.categories.iter().peekable();
    while let Some(first) = categories.next() {
        let mut last = first;
        while let Some(next) = categories.next_if_eq(&(last + 1)) {
            last = next;
        }
        text.push(separator);
        text.push_str(&category(first));
        match last - first {
            0 => {}
            1 => text.push_str(&format!(",{}", category(last))),
            _ => text.push_str(&format!(".{}", category(last))),
        }
        separator = ',';
    }
    text
}

/// At most three names that are similar to `name`, the most similar first.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    let limit = name.chars().count() / 3 + 1;
    let mut near: Vec<(usize, &str)> = candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit)
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// The context that a file with context `from` gets if `file_contexts` say `to`; `None`: it keeps its own. The file
/// keeps its user, role and range, unless the whole context is wanted (restorecon's `-F`). A file with the type of
/// `unlabelled` has none to keep, and gets the whole context.
#[must_use]
pub fn restored(from: &str, to: &str, unlabelled: &str, whole: bool) -> Option<String> {
    let type_of = |context: &str| context.split(':').nth(2).map(str::to_owned);
    if whole || type_of(from) == type_of(unlabelled) {
        return (from != to).then(|| to.to_owned());
    }
    let mut parts: Vec<&str> = from.splitn(4, ':').collect();
    let type_ = to.split(':').nth(2)?;
    match parts.get_mut(2) {
        Some(part) if *part == type_ => None,
        Some(part) => {
            *part = type_;
            Some(parts.join(":"))
        }
        // A file without a context has nothing to keep.
        None => Some(to.to_owned()),
    }
}

#[cfg(test)]
mod tests;
