//! The types of an attribute, as the policy's statements define it. Attributes that only neverallow statements use are
//! not in a binary policy. A type that is put in one attribute may by that enter or leave others.

use std::{collections::HashMap, rc::Rc};

use super::statement::Sexp;
use crate::model::{Bits, Policy};

/// How deep definitions may refer to each other, including nested lists. The statements may come from anyone.
const MAX_DEPTH: usize = 200;

/// The attributes of a policy.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    policy: &'a Policy,
    numbers: HashMap<&'a str, u32>,
    definitions: HashMap<&'a str, Vec<Sexp<'a>>>,
}

/// A type that is supposed to be put in an attribute.
pub(super) type Membership = (u32, u32);

impl<'a> Attributes<'a> {
    /// The attributes of `policy`, as far as it knows them.
    pub(super) fn of(policy: &'a Policy) -> Self {
        let types = (0..).zip(&policy.types).filter(|(_, t)| !t.name.is_empty());
        let mut numbers: HashMap<&str, u32> = types.map(|(number, t)| (t.name.as_str(), number)).collect();
        numbers.extend(policy.type_aliases.iter().map(|(name, number)| (name.as_str(), *number)));
        Self { policy, numbers, definitions: HashMap::new() }
    }

    /// Records a `(typeattributeset NAME EXPRESSION)`.
    pub(super) fn define(&mut self, name: &'a str, expression: Sexp<'a>) {
        self.definitions.entry(name.trim_start_matches('.')).or_default().push(expression);
    }

    /// The number of a type, an alias or an attribute of the policy.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name.trim_start_matches('.')).copied()
    }

    /// The meaning of names if some types were put in attributes.
    pub(super) fn supposing<'n>(&'n self, put: &'n [Membership]) -> Supposed<'n, 'a> {
        Supposed { attributes: self, put, known: HashMap::new(), depth: 0 }
    }

    fn is_attribute(&self, number: u32) -> bool {
        self.policy.types.get(number as usize).is_some_and(|t| t.attribute)
    }

    fn set(&self, number: u32) -> Bits {
        self.policy.types.get(number as usize).map(|t| t.set.clone()).unwrap_or_default()
    }

    fn all(&self) -> Bits {
        let types = (0..).zip(&self.policy.types).filter(|(_, t)| !t.attribute && !t.name.is_empty());
        types.map(|(number, _)| number).collect()
    }

    /// For attributes that are defined in a block, libsepol writes names as in the source, without the block's name.
    fn definition(&self, name: &str) -> Option<&Vec<Sexp<'a>>> {
        let mut name = name;
        loop {
            match self.definitions.get(name) {
                Some(found) => return Some(found),
                None => name = name.split_once('.')?.1,
            }
        }
    }
}

/// The meaning of names if some types were put in attributes. Results are remembered.
pub(super) struct Supposed<'n, 'a> {
    attributes: &'n Attributes<'a>,
    put: &'n [Membership],
    known: HashMap<&'n str, Rc<Bits>>,
    depth: usize,
}

impl<'n, 'a> Supposed<'n, 'a> {
    /// Whether a type has this name, or is in the attribute with this name.
    pub(super) fn names(&mut self, name: &'n str, type_: u32) -> bool {
        match self.attributes.number(name) {
            Some(number) if self.put.is_empty() => {
                self.attributes.policy.types.get(type_ as usize).is_some_and(|t| t.set.has(number))
            }
            _ => self.types(name).has(type_),
        }
    }

    /// All types that `name` stands for.
    pub(super) fn types(&mut self, name: &'n str) -> Bits {
        match self.attributes.number(name) {
            Some(number) if !self.attributes.is_attribute(number) => only(number),
            Some(number) if self.put.is_empty() => self.attributes.set(number),
            _ => Bits::clone(&self.defined(name)),
        }
    }

    /// The attributes of a type, like [`crate::model::Type::set`].
    pub(super) fn set(&mut self, type_: u32) -> Bits {
        let mut set = self.attributes.set(type_);
        let mut as_is = self.attributes.supposing(&[]);
        for (number, attribute) in (0..).zip(&self.attributes.policy.types).filter(|(_, t)| t.attribute) {
            // The statements count only where the new membership changes their result, because they may be incomplete.
            let is = as_is.defined(&attribute.name).has(type_);
            let would = self.defined(&attribute.name).has(type_);
            if is != would {
                put_in(&mut set, number, would);
            }
        }
        self.put.iter().filter(|put| put.0 == type_).for_each(|put| set.insert(put.1));
        set
    }

    /// The types that the statements give to an attribute, and those that were put in it.
    fn defined(&mut self, name: &'n str) -> Rc<Bits> {
        let name = name.trim_start_matches('.');
        if let Some(known) = self.known.get(name) {
            return Rc::clone(known);
        }
        self.known.insert(name, Rc::default()); // what is defined by itself holds nothing by that
        let number = self.attributes.number(name);
        let mut types = match self.attributes.definition(name) {
            Some(expressions) => self.any(expressions),
            None => number.map(|number| self.attributes.set(number)).unwrap_or_default(),
        };
        self.put.iter().filter(|put| number == Some(put.1)).for_each(|put| types.insert(put.0));
        let types = Rc::new(types);
        self.known.insert(name, Rc::clone(&types));
        types
    }

    fn any(&mut self, items: &'n [Sexp<'a>]) -> Bits {
        items.iter().fold(Bits::default(), |sum, item| merge(&sum, &self.meant(item), |a, b| a | b))
    }

    /// The types that an expression selects.
    fn meant(&mut self, expression: &'n Sexp<'a>) -> Bits {
        if self.depth == MAX_DEPTH {
            return Bits::default();
        }
        self.depth += 1;
        let types = self.operation(expression);
        self.depth -= 1;
        types
    }

    fn operation(&mut self, expression: &'n Sexp<'a>) -> Bits {
        let items = match expression {
            Sexp::Word("all") => return self.attributes.all(),
            Sexp::Word(name) => {
                return match self.attributes.number(name).filter(|number| !self.attributes.is_attribute(*number)) {
                    Some(number) => only(number),
                    None => Bits::clone(&self.defined(name)),
                };
            }
            Sexp::List(items) => items,
        };
        let Some((first, rest)) = items.split_first() else { return Bits::default() };
        let attributes = self.attributes;
        let mut each = |start: Bits, with: fn(u64, u64) -> u64| {
            rest.iter().fold(start, |sum, item| merge(&sum, &self.meant(item), with))
        };
        match first {
            Sexp::Word("all") => attributes.all(),
            Sexp::Word("not") => each(attributes.all(), |a, b| a & !b),
            Sexp::Word("and") => each(attributes.all(), |a, b| a & b),
            Sexp::Word("xor") => each(Bits::default(), |a, b| a ^ b),
            Sexp::Word("or") => each(Bits::default(), |a, b| a | b),
            _ => self.any(items),
        }
    }
}

/// The set of one number.
pub(super) fn only(number: u32) -> Bits {
    std::iter::once(number).collect()
}

/// Combines two sets word by word.
pub(super) fn merge(first: &Bits, second: &Bits, with: impl Fn(u64, u64) -> u64) -> Bits {
    let word = |set: &Bits, index: usize| set.0.get(index).copied().unwrap_or(0);
    let length = first.0.len().max(second.0.len());
    Bits((0..length).map(|index| with(word(first, index), word(second, index))).collect())
}

/// Adds a number to a set, or removes it.
pub(super) fn put_in(set: &mut Bits, number: u32, value: bool) {
    if value {
        set.insert(number);
    } else if let Some(word) = set.0.get_mut(number as usize / 64) {
        *word &= !(1 << (number % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::Attributes;
    use crate::{
        explain::statement::Sexp,
        model::{Policy, Type},
    };

    fn policy() -> Policy {
        let type_ = |name: &str, attribute: bool, set: &[u32]| Type {
            name: name.to_owned(),
            attribute,
            set: set.iter().copied().collect(),
            ..Type::default()
        };
        Policy {
            types: vec![
                Type::default(),
                type_("a", false, &[1, 4, 6]),
                type_("b", false, &[2, 4]),
                type_("c", false, &[3, 5, 6]),
                type_("both", true, &[1, 2]),
                type_("rest", true, &[3]),
                type_("odd", true, &[1, 3]),
            ],
            type_aliases: vec![("also_c".to_owned(), 3)],
            ..Policy::default()
        }
    }

    fn attributes(policy: &Policy) -> Attributes<'_> {
        let mut attributes = Attributes::of(policy);
        for (name, expression) in [
            ("both", "(a b)"),
            ("rest", "(not (both))"),
            (".odd", "(xor both (b also_c))"),
            ("unused", "(and (or a c) (not b) (all))"),
            ("round", "(a round)"),
        ] {
            attributes.define(name, Sexp::read(expression).unwrap());
        }
        attributes
    }

    #[test]
    fn knows_attributes_that_only_statements_have() {
        let policy = policy();
        let attributes = attributes(&policy);
        assert!(attributes.supposing(&[]).types("unused").iter().eq([1, 3]));
        assert!(attributes.supposing(&[]).names("unused", 3) && !attributes.supposing(&[]).names("unused", 2));
        assert!(attributes.supposing(&[]).names("blk.unused", 3), "as a block's own");
        assert!(attributes.supposing(&[]).types("round").iter().eq([1]), "what contains itself ends");
        assert!(attributes.supposing(&[]).types("nowhere").is_empty());
        assert!(attributes.supposing(&[]).types("also_c").iter().eq([3]));
    }

    #[test]
    fn follows_a_membership_into_attributes_defined_by_it() {
        let policy = policy();
        let attributes = attributes(&policy);
        assert!(attributes.supposing(&[(3, 4)]).set(3).iter().eq([3, 4]), "c in both: not in rest, and no longer odd");
        assert!(attributes.supposing(&[(2, 6)]).set(2).iter().eq([2, 4, 6]), "put in what it would not be in");
        assert!(attributes.supposing(&[(3, 4)]).types("rest").is_empty());
    }

    #[test]
    fn follows_a_membership_without_statements() {
        let policy = policy();
        assert!(Attributes::of(&policy).supposing(&[(3, 4)]).set(3).iter().eq([3, 4, 5, 6]));
    }
}
