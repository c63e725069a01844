//! Constraints and validatetrans as code over predicate bits (`tg_constrain`).

use std::collections::HashMap;

use tollgate_abi::tables::{
    TG_AND, TG_BEGIN, TG_DOM, TG_DOMBY, TG_END, TG_EQ, TG_H1_H2, TG_H1_L2, TG_INCOMP, TG_L1_H1, TG_L1_H2, TG_L1_L2,
    TG_L2_H2, TG_LEAF, TG_NEQ, TG_NOT, TG_OR, TG_R1_DOM, TG_R1_DOMBY, TG_R1_INCOMP, TG_R1_R2, TG_STEPS, TG_T1_T2,
    TG_U1_U2, tg_operation, tg_predicate, tg_step,
};

use crate::model::{Bits, Class, Comparison, NameKind, Pair, Party, Policy, Term};

use super::limit::{MAX_DEPTH, MAX_SETS, TableLimit};

/// The code of all classes.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) steps: Vec<tg_step>,
    /// Where each class's code begins, by number of the class.
    pub(super) classes: Vec<ClassCode>,
    pub(super) sets: Sets,
}

/// Where a class's code is.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ClassCode {
    /// Constraints: the first step, and how many.
    pub(super) code: (u32, u32),
    /// Validatetrans: the first step, and how many.
    pub(super) change: (u32, u32),
    /// Whether a constraint compares levels.
    pub(super) levels: bool,
}

/// Compiles the constraints of all classes.
pub(super) fn compile(policy: &Policy) -> Result<Code, TableLimit> {
    let mut code = Code { steps: Vec::new(), classes: Vec::new(), sets: Sets::default() };
    for class in &policy.classes {
        let constraints = class.constraints.iter().map(|c| (c.permissions, c.expression.as_slice()));
        let changes = class.validatetrans.iter().map(|expression| (1, expression.as_slice()));
        let place = ClassCode {
            code: code.run(class, constraints, &[Party::Source, Party::Target])?,
            change: code.run(class, changes, &[Party::Source, Party::Target, Party::Task])?,
            levels: class.constraints.iter().flat_map(|c| &c.expression).any(compares_levels),
        };
        code.classes.push(place);
    }
    Ok(code)
}

impl Code {
    /// Appends expressions, each with the permissions that need it. Returns their first step and the number of steps.
    fn run<'e>(
        &mut self,
        class: &Class,
        expressions: impl Iterator<Item = (u32, &'e [Term])>,
        parties: &[Party],
    ) -> Result<(u32, u32), TableLimit> {
        let first = self.steps.len();
        for (permissions, expression) in expressions {
            check(class, expression, parties)?;
            let begin = self.steps.len();
            self.push(TG_BEGIN, 0, permissions);
            for term in expression {
                self.term(term).ok_or_else(|| TableLimit::NameSets { class: class.name.clone() })?;
            }
            self.push(TG_END, 0, permissions);
            let has = self.steps.len() - first;
            if has > TG_STEPS as usize {
                return Err(TableLimit::Steps { class: class.name.clone(), has });
            }
            // Lossless: no more than TG_STEPS.
            self.steps[begin].operand = (self.steps.len() - begin - 1) as u16;
        }
        Ok((first as u32, (self.steps.len() - first) as u32))
    }

    /// Appends a term; `None`: it has one set of names too many.
    fn term(&mut self, term: &Term) -> Option<()> {
        match term {
            Term::Not => self.push(TG_NOT, 0, 0),
            Term::And => self.push(TG_AND, 0, 0),
            Term::Or => self.push(TG_OR, 0, 0),
            Term::Compare(pair, comparison) => self.compare(*pair, *comparison),
            Term::In { party, kind, comparison, names, .. } => {
                let word = match party {
                    Party::Source => 1,
                    Party::Target => 2,
                    Party::Task => 3,
                };
                let set = self.sets.intern(*kind, names)?;
                self.leaf(word << 6 | set, *comparison == Comparison::Neq);
            }
        }
        Some(())
    }

    fn compare(&mut self, pair: Pair, comparison: Comparison) {
        let identity = match (pair, comparison) {
            (Pair::Roles, Comparison::Dom) => return self.leaf(TG_R1_DOM, false),
            (Pair::Roles, Comparison::DomBy) => return self.leaf(TG_R1_DOMBY, false),
            (Pair::Roles, Comparison::Incomp) => return self.leaf(TG_R1_INCOMP, false),
            (Pair::Users, _) => TG_U1_U2,
            (Pair::Roles, _) => TG_R1_R2,
            (Pair::Types, _) => TG_T1_T2,
            (Pair::L1L2, _) => return self.leaf(TG_L1_L2 + relation(comparison), false),
            (Pair::L1H2, _) => return self.leaf(TG_L1_H2 + relation(comparison), false),
            (Pair::H1L2, _) => return self.leaf(TG_H1_L2 + relation(comparison), false),
            (Pair::H1H2, _) => return self.leaf(TG_H1_H2 + relation(comparison), false),
            (Pair::L1H1, _) => return self.leaf(TG_L1_H1 + relation(comparison), false),
            (Pair::L2H2, _) => return self.leaf(TG_L2_H2 + relation(comparison), false),
        };
        self.leaf(identity, comparison == Comparison::Neq);
    }

    /// Pushes a predicate, or its negation.
    fn leaf(&mut self, predicate: tg_predicate, negated: bool) {
        self.push(TG_LEAF, predicate, 0);
        if negated {
            self.push(TG_NOT, 0, 0);
        }
    }

    fn push(&mut self, operation: tg_operation, operand: u32, permissions: u32) {
        // Lossless: operations and predicates are small.
        self.steps.push(tg_step { operation: operation as u16, operand: operand as u16, permissions });
    }
}

fn relation(comparison: Comparison) -> u32 {
    match comparison {
        Comparison::Eq => TG_EQ,
        Comparison::Neq => TG_NEQ,
        Comparison::Dom => TG_DOM,
        Comparison::DomBy => TG_DOMBY,
        Comparison::Incomp => TG_INCOMP,
    }
}

fn compares_levels(term: &Term) -> bool {
    matches!(term, Term::Compare(pair, _) if !matches!(pair, Pair::Users | Pair::Roles | Pair::Types))
}

/// Refuses expressions that `constraint_expr_eval` would not evaluate, and those that are too deep for the tables.
fn check(class: &Class, expression: &[Term], parties: &[Party]) -> Result<(), TableLimit> {
    let refuse = |why| Err(TableLimit::Expression { class: class.name.clone(), why });
    let mut depth = 0_usize;
    for term in expression {
        let (takes, refused) = match term {
            Term::Not => (1, None),
            Term::And | Term::Or => (2, None),
            Term::Compare(Pair::Users | Pair::Types, Comparison::Dom | Comparison::DomBy | Comparison::Incomp) => {
                (0, Some("dominance of users or types, which only roles and levels have"))
            }
            Term::Compare(..) => (0, None),
            Term::In { comparison: Comparison::Dom | Comparison::DomBy | Comparison::Incomp, .. } => {
                (0, Some("a set of names that is compared, where only == and != are defined"))
            }
            Term::In { party, .. } if !parties.contains(party) => {
                (0, Some("u3, r3 or t3, which only validatetrans and mlsvalidatetrans have"))
            }
            Term::In { .. } => (0, None),
        };
        if let Some(why) = refused {
            return refuse(why);
        }
        if depth < takes {
            return refuse("an operator without values");
        }
        depth = depth - takes + 1;
        if depth > MAX_DEPTH {
            return Err(TableLimit::Depth { class: class.name.clone(), has: depth });
        }
    }
    if depth == 1 { Ok(()) } else { refuse("values without an operator, or none") }
}

/// The sets of names in constraints, each once. A set is a bit of `sets` in the records of its members.
#[derive(Debug, Default)]
pub(super) struct Sets {
    sets: Vec<(NameKind, Bits)>,
    known: HashMap<(NameKind, Bits), u32>,
}

impl Sets {
    /// The number of a set; `None`: there are too many.
    fn intern(&mut self, kind: NameKind, names: &Bits) -> Option<u32> {
        let set = (kind, names.clone());
        if let Some(number) = self.known.get(&set) {
            return Some(*number);
        }
        if self.sets.len() == MAX_SETS {
            return None;
        }
        let number = self.sets.len() as u32;
        self.known.insert(set.clone(), number);
        self.sets.push(set);
        Some(number)
    }

    /// The sets that contain a user, role or type.
    pub(super) fn of(&self, kind: NameKind, identifier: u32) -> u64 {
        let member = |(of, names): &(NameKind, Bits)| *of == kind && names.has(identifier);
        (0..).zip(&self.sets).filter(|(_, set)| member(set)).fold(0, |word, (bit, _)| word | 1 << bit)
    }
}
