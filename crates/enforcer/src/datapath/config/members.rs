//! The members of TOML tables, each with its place in the text, so that an error says where it is.

use std::ops::{Range, RangeInclusive};

use tollgate_policy::context::nearest;
use toml::{
    Spanned,
    de::{DeInteger, DeTable, DeValue},
};

/// What is wrong, and where: a range of bytes of the text.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: Range<usize>,
    pub(super) message: String,
}

/// A value with its range in the text.
#[derive(Debug, Clone)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) at: Range<usize>,
}

/// Numbers by their names.
pub(super) type Numbers<'a> = Vec<(&'a str, At<u32>)>;

/// A table, and what messages call it.
pub(super) struct Entry<'a> {
    text: &'a str,
    pub(super) name: String,
    table: &'a DeTable<'a>,
    pub(super) at: Range<usize>,
}

impl<'a> Entry<'a> {
    /// The whole file.
    pub(super) fn root(text: &'a str, table: &'a Spanned<DeTable<'a>>, known: &[&str]) -> Result<Self, Wrong> {
        let root = Self { text, name: String::new(), table: table.get_ref(), at: 0..0 };
        root.only(known).map(|()| root)
    }

    /// The tables `[[name]]`, in their order. `known` are the members that they may have.
    pub(super) fn tables(&self, name: &str, known: &[&str]) -> Result<Vec<Entry<'a>>, Wrong> {
        let Some(list) = self.table.get(name) else { return Ok(Vec::new()) };
        let refused = |at| self.wrong(at, format!("`{name}` is a list of tables: write [[{name}]] above each"));
        let DeValue::Array(list_of) = list.get_ref() else { return Err(refused(list.span())) };
        let entry = |(number, value): (usize, &'a Spanned<DeValue<'a>>)| {
            self.below(value, format!("[[{name}]] {number}"), known)?.ok_or_else(|| refused(value.span()))
        };
        (1..).zip(list_of.iter()).map(entry).collect()
    }

    /// The table `[name]`.
    pub(super) fn table(&self, name: &str, known: &[&str]) -> Result<Option<Entry<'a>>, Wrong> {
        let Some(value) = self.table.get(name) else { return Ok(None) };
        let refused = || self.wrong(value.span(), format!("`{name}` is one table: write [{name}] above it"));
        self.below(value, format!("[{name}]"), known)?.ok_or_else(refused).map(Some)
    }

    fn below(&self, value: &'a Spanned<DeValue<'a>>, name: String, known: &[&str]) -> Result<Option<Entry<'a>>, Wrong> {
        let DeValue::Table(table) = value.get_ref() else { return Ok(None) };
        let entry = Entry { text: self.text, name, table, at: value.span() };
        entry.only(known).map(|()| Some(entry))
    }

    /// Refuses members that are not known, and offers the nearest one.
    fn only(&self, known: &[&str]) -> Result<(), Wrong> {
        let unknown = self.table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(()) };
        let name = key.get_ref();
        let near = nearest(name, known.iter().copied());
        let remedy = match near.first() {
            Some(near) => format!("write {near}"),
            None => format!("it has {}", known.join(", ")),
        };
        Err(self.wrong(key.span(), format!("there is no member {name}; {remedy}")))
    }

    /// An error about a place in this table.
    pub(super) fn wrong(&self, at: Range<usize>, message: impl std::fmt::Display) -> Wrong {
        let colon = if self.name.is_empty() { "" } else { ": " };
        Wrong { at, message: format!("{}{colon}{message}", self.name) }
    }

    /// An error about the value of a member.
    pub(super) fn value<T>(&self, member: &str, at: &At<T>, message: impl std::fmt::Display) -> Wrong {
        let value = self.text.get(at.at.clone()).unwrap_or_default();
        self.wrong(at.at.clone(), format!("{member} = {value}: {message}"))
    }

    fn get(&self, member: &str) -> Option<At<&'a DeValue<'a>>> {
        self.table.get(member).map(located)
    }

    /// A member that must be there.
    pub(super) fn needed<T>(&self, member: &str, value: Option<T>, such_as: &str) -> Result<T, Wrong> {
        let lacks =
            || self.wrong(self.at.clone(), format!("{member} is missing: add a line such as {member} = {such_as}"));
        value.ok_or_else(lacks)
    }

    /// A text.
    pub(super) fn text(&self, member: &str) -> Result<Option<At<&'a str>>, Wrong> {
        self.get(member).map(|value| self.text_of(member, &value)).transpose()
    }

    fn text_of(&self, member: &str, value: &At<&'a DeValue<'a>>) -> Result<At<&'a str>, Wrong> {
        match value.value {
            DeValue::String(text) => Ok(At { value: text.as_ref(), at: value.at.clone() }),
            _ => Err(self.value(member, value, "it is a text: write it in quotation marks")),
        }
    }

    /// A list of texts.
    pub(super) fn texts(&self, member: &str) -> Result<Option<Vec<At<&'a str>>>, Wrong> {
        let Some(value) = self.get(member) else { return Ok(None) };
        let DeValue::Array(list) = value.value else {
            return Err(self.value(member, &value, "it is a list of texts: write [\"...\", \"...\"]"));
        };
        list.iter().map(|one| self.text_of(member, &located(one))).collect::<Result<_, _>>().map(Some)
    }

    /// A number within limits.
    pub(super) fn number(&self, member: &str, limits: RangeInclusive<u32>) -> Result<Option<At<u32>>, Wrong> {
        self.get(member).map(|value| self.number_of(member, &value, &limits)).transpose()
    }

    fn number_of(
        &self,
        member: &str,
        value: &At<&DeValue<'_>>,
        limits: &RangeInclusive<u32>,
    ) -> Result<At<u32>, Wrong> {
        let number = |number: &DeInteger<'_>| u32::from_str_radix(number.as_str(), number.radix()).ok();
        let found = if let DeValue::Integer(integer) = value.value { number(integer) } else { None };
        let found = found.filter(|number| limits.contains(number));
        let (least, most) = limits.clone().into_inner();
        let refused = || self.value(member, value, format!("it is a number from {least} to {most}"));
        Ok(At { value: found.ok_or_else(refused)?, at: value.at.clone() })
    }

    /// A table of numbers within limits, in the order of its names.
    pub(super) fn numbers(&self, member: &str, limits: RangeInclusive<u32>) -> Result<Option<Numbers<'a>>, Wrong> {
        let Some(value) = self.get(member) else { return Ok(None) };
        let DeValue::Table(table) = value.value else {
            return Err(self.value(member, &value, "it is a table of names and numbers: write { NAME = NUMBER }"));
        };
        let one = |(name, number): (&'a Spanned<std::borrow::Cow<'a, str>>, &Spanned<DeValue<'_>>)| {
            let name: &'a str = name.get_ref().as_ref();
            Ok((name, self.number_of(&format!("{member}: {name}"), &located(number), &limits)?))
        };
        table.iter().map(one).collect::<Result<_, _>>().map(Some)
    }
}

fn located<'a, 'b>(value: &'b Spanned<DeValue<'a>>) -> At<&'b DeValue<'a>> {
    At { value: value.get_ref(), at: value.span() }
}
