//! A database: programs and rules.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    call::Act,
    digest::Digest,
    item::{Class, Item, Mode, Program, Rule, Until, Word},
    name::Name,
};

/// The maximum number of programs.
const MAX_PROGRAMS: usize = 1 << 17;
/// The maximum number of rules.
const MAX_RULES: usize = 1 << 20;
/// The maximum number of contents of one program.
pub(crate) const MAX_DIGESTS: usize = u16::MAX as usize;

/// Why an item cannot be entered or removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// A rule names a program that the database lacks.
    #[error("the database has no program {0}: enter it with `tollgate guard add {0}`")]
    NoProgram(Name),
    /// Two programs have the same content.
    #[error("{digest} is the content of {other} already: one content has one name; give the rule to {other}")]
    Taken {
        /// The content.
        digest: Digest,
        /// The program that has it.
        other: Name,
    },
    /// A program that rules name.
    #[error("rules name the program {0}: remove them first, such as `{1}`")]
    InUse(Name, Rule),
    /// There is no such item.
    #[error("the database has no such line; `tollgate guard list` prints those that it has")]
    Missing,
    /// A default is always there.
    #[error("this line is always there: set another value instead of removing it")]
    Always,
    /// There are too many.
    #[error("a database has at most {MAX_PROGRAMS} programs, {MAX_RULES} rules and {MAX_DIGESTS} contents per program")]
    Full,
}

/// Programs and rules, and what holds for programs that it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    defaults: BTreeMap<Class, Mode>,
    word: Word,
    programs: BTreeMap<Name, Program>,
    /// Whose each content is.
    contents: BTreeMap<Digest, Name>,
    /// The rules of each program, and what ends them. Of one act there is one rule.
    rules: BTreeMap<Name, BTreeMap<Act, Until>>,
    count: usize,
}

impl Default for Database {
    /// No program. Setuid programs are learnt, and daemons left alone.
    fn default() -> Self {
        Self {
            defaults: BTreeMap::from([(Class::Setuid, Mode::Learn), (Class::Daemon, Mode::Off)]),
            word: Word::default(),
            programs: BTreeMap::new(),
            contents: BTreeMap::new(),
            rules: BTreeMap::new(),
            count: 0,
        }
    }
}

impl Database {
    /// The mode of programs of a class that the database lacks.
    #[must_use]
    pub fn default_mode(&self, class: Class) -> Mode {
        self.defaults.get(&class).copied().unwrap_or(Mode::Enforce)
    }

    /// The first word of lines in the log.
    #[must_use]
    pub fn word(&self) -> &Word {
        &self.word
    }

    /// The programs, by name.
    pub fn programs(&self) -> impl ExactSizeIterator<Item = (&Name, &Program)> {
        self.programs.iter()
    }

    /// A program.
    #[must_use]
    pub fn program(&self, name: &Name) -> Option<&Program> {
        self.programs.get(name)
    }

    /// The name of the program with a content.
    #[must_use]
    pub fn name_of(&self, digest: &Digest) -> Option<&Name> {
        self.contents.get(digest)
    }

    /// What a program may do, and what ends that.
    pub fn acts(&self, caller: &Name) -> impl Iterator<Item = (&Act, Until)> {
        self.rules.get(caller).into_iter().flatten().map(|(act, until)| (act, *until))
    }

    /// Whether a program may do this, and what ends that.
    pub(crate) fn until(&self, caller: &Name, act: &Act) -> Option<Until> {
        self.rules.get(caller)?.get(act).copied()
    }

    /// The rules, by their callers.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        let of = |(caller, acts): (&Name, &BTreeMap<Act, Until>)| {
            let caller = caller.clone();
            acts.clone().into_iter().map(move |(act, until)| Rule { caller: caller.clone(), act, until })
        };
        self.rules.iter().flat_map(of)
    }

    /// The number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.count
    }

    /// All items, in the order of the text.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        let defaults = self.defaults.iter().map(|(class, mode)| Item::Default(*class, *mode));
        let programs = self.programs.iter().map(|(name, program)| Item::Program(name.clone(), program.clone()));
        let rules = self.rules().map(Item::Rule);
        defaults.chain([Item::Word(self.word.clone())]).chain(programs).chain(rules)
    }

    /// Enters an item. A program that is there gets the mode, and the contents beside its own; a rule for the same act
    /// replaces the one that is there. Returns whether anything has changed.
    pub fn enter(&mut self, item: Item) -> Result<bool, ItemError> {
        match item {
            Item::Default(class, mode) => Ok(self.defaults.insert(class, mode) != Some(mode)),
            Item::Word(word) => Ok(std::mem::replace(&mut self.word, word.clone()) != word),
            Item::Program(name, program) => self.enter_program(name, program),
            Item::Rule(rule) => self.enter_rule(rule),
        }
    }

    fn enter_program(&mut self, name: Name, program: Program) -> Result<bool, ItemError> {
        let mut taken = program.digests.iter().filter_map(|digest| Some((*digest, self.contents.get(digest)?)));
        if let Some((digest, other)) = taken.find(|(_, other)| **other != name) {
            return Err(ItemError::Taken { digest, other: other.clone() });
        }
        let known = self.programs.get(&name);
        let digests: BTreeSet<Digest> =
            known.map(|known| known.digests.clone()).unwrap_or_default().union(&program.digests).copied().collect();
        if digests.len() > MAX_DIGESTS || known.is_none() && self.programs.len() == MAX_PROGRAMS {
            return Err(ItemError::Full);
        }
        self.contents.extend(program.digests.iter().map(|digest| (*digest, name.clone())));
        let new = Program { mode: program.mode, digests };
        Ok(self.programs.insert(name, new.clone()) != Some(new))
    }

    fn enter_rule(&mut self, Rule { caller, act, until }: Rule) -> Result<bool, ItemError> {
        let named = [Some(&caller), if let Act::Exec { program, .. } = &act { Some(program) } else { None }];
        if let Some(unknown) = named.into_iter().flatten().find(|name| !self.programs.contains_key(name)) {
            return Err(ItemError::NoProgram(unknown.clone()));
        }
        let other = opposite(&act);
        let acts = self.rules.entry(caller).or_default();
        let replaced = other.is_some_and(|other| acts.remove(&other).is_some());
        if replaced || acts.contains_key(&act) {
            return Ok(acts.insert(act, until) != Some(until) || replaced);
        }
        if self.count == MAX_RULES {
            self.rules.retain(|_, acts| !acts.is_empty());
            return Err(ItemError::Full);
        }
        acts.insert(act, until);
        self.count += 1;
        Ok(true)
    }

    /// Removes an item: a rule, or contents of a program, or a program with the last of them.
    pub fn remove(&mut self, item: &Item) -> Result<(), ItemError> {
        match item {
            Item::Default(..) | Item::Word(_) => Err(ItemError::Always),
            Item::Rule(Rule { caller, act, until }) => {
                let acts = self.rules.get_mut(caller).ok_or(ItemError::Missing)?;
                if acts.get(act) != Some(until) {
                    return Err(ItemError::Missing);
                }
                acts.remove(act);
                self.count -= 1;
                self.rules.retain(|_, acts| !acts.is_empty());
                Ok(())
            }
            Item::Program(name, program) => self.remove_contents(name, &program.digests),
        }
    }

    fn remove_contents(&mut self, name: &Name, digests: &BTreeSet<Digest>) -> Result<(), ItemError> {
        let known = self.programs.get(name).filter(|known| digests.is_subset(&known.digests));
        let known = known.ok_or(ItemError::Missing)?;
        if known.digests == *digests
            && let Some(rule) = self.rule_with(name)
        {
            return Err(ItemError::InUse(name.clone(), rule));
        }
        self.contents.retain(|digest, _| !digests.contains(digest));
        if let Some(program) = self.programs.get_mut(name) {
            program.digests.retain(|digest| !digests.contains(digest));
        }
        self.programs.retain(|_, program| !program.digests.is_empty());
        Ok(())
    }

    /// A rule that names a program.
    fn rule_with(&self, name: &Name) -> Option<Rule> {
        let executes = |act: &Act| matches!(act, Act::Exec { program, .. } if program == name);
        self.rules().find(|rule| rule.caller == *name || executes(&rule.act))
    }

    /// Enters all programs and rules of another database that this one lacks. What it has, it keeps: modes, defaults,
    /// and whether what is executed is free. Returns how many items are new.
    pub fn merge(&mut self, other: &Self) -> Result<usize, ItemError> {
        let mut new = 0;
        for (name, program) in &other.programs {
            let mode = self.programs.get(name).map_or(program.mode, |own| own.mode);
            let program = Program { mode, digests: program.digests.clone() };
            new += usize::from(self.enter_program(name.clone(), program)?);
        }
        for rule in other.rules() {
            let has = |act: &Act| self.until(&rule.caller, act).is_some();
            if has(&rule.act) || opposite(&rule.act).is_some_and(|other| has(&other)) {
                continue;
            }
            new += usize::from(self.enter_rule(rule)?);
        }
        Ok(new)
    }
}

/// The rule of the same act that says otherwise whether what is executed is free.
fn opposite(act: &Act) -> Option<Act> {
    match act {
        Act::Exec { program, free } => Some(Act::Exec { program: program.clone(), free: !free }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(lines: &[&str]) -> Database {
        let mut database = Database::default();
        for line in lines {
            database.enter(line.parse().unwrap()).unwrap();
        }
        database
    }

    fn program(name: &str, content: &str) -> String {
        format!("program {name} learn {}", Digest::of(content.as_bytes()))
    }

    #[test]
    fn adds_contents_to_a_program_and_replaces_its_mode() {
        let mut database = database(&[&program("/su", "1"), &program("/sh", "sh")]);
        let upgraded = program("/su", "2").replace("learn", "enforce");
        assert_eq!(database.enter(upgraded.parse().unwrap()), Ok(true));
        assert_eq!(database.enter(upgraded.parse().unwrap()), Ok(false), "it is there");
        let su = database.program(&"/su".parse().unwrap()).unwrap();
        assert_eq!((su.mode, su.digests.len()), (Mode::Enforce, 2));
        let error = database.enter(program("/bash", "sh").parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("is the content of /sh already"), "{error}");
    }

    #[test]
    fn has_one_rule_for_one_act() {
        let mut database = database(&[&program("/su", "su"), &program("/sh", "sh"), "allow /su exec /sh"]);
        assert_eq!(database.enter("allow /su exec /sh free".parse().unwrap()), Ok(true));
        let rules: Vec<String> = database.rules().map(|rule| rule.to_string()).collect();
        assert_eq!((rules.as_slice(), database.rule_count()), (&["allow /su exec /sh free".to_owned()][..], 1));
        let error = database.enter("allow /su exec /none".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("`tollgate guard add /none`"), "{error}");
    }

    #[test]
    fn removes_contents_rules_and_then_the_program() {
        let two = format!("{} {}", program("/su", "1"), Digest::of(b"2"));
        let mut database = database(&[&two, &program("/sh", "sh"), "allow /su exec /sh"]);
        let remove = |database: &mut Database, line: &str| database.remove(&line.parse().unwrap());
        remove(&mut database, &program("/su", "2")).unwrap();
        let in_use = remove(&mut database, &program("/sh", "sh")).unwrap_err().to_string();
        assert!(in_use.contains("`allow /su exec /sh`"), "{in_use}");
        assert_eq!(remove(&mut database, "allow /su exec /sh free"), Err(ItemError::Missing));
        assert_eq!(remove(&mut database, "word GUARD"), Err(ItemError::Always));
        remove(&mut database, "allow /su exec /sh").unwrap();
        remove(&mut database, &program("/sh", "sh")).unwrap();
        remove(&mut database, &program("/su", "1")).unwrap();
        assert_eq!(database, Database::default());
    }

    #[test]
    fn keeps_its_own_word_when_it_takes_over_what_is_new() {
        let su = program("/su", "su");
        let mut own = database(&[&su.replace("learn", "enforce"), &program("/sh", "sh"), "allow /su exec /sh free"]);
        let learnt = database(&[&su, &program("/sh", "sh"), "allow /su exec /sh", "allow /su setuid 0", "word X"]);
        assert_eq!(own.merge(&learnt), Ok(1));
        let rules: Vec<String> = own.rules().map(|rule| rule.to_string()).collect();
        assert_eq!(rules, ["allow /su exec /sh free", "allow /su setuid 0"]);
        assert_eq!(own.program(&"/su".parse().unwrap()).unwrap().mode, Mode::Enforce);
        assert_eq!(own.word(), &Word::default());
    }
}
