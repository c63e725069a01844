//! Items from records: what would allow all that was granted while learning.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    call::{Act, Place},
    database::Database,
    item::{Item, Rule},
    name::Name,
    names::Changing,
    record::Record,
};

/// What is learnt of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The database with everything that is new.
    pub database: Database,
    /// Rules that stand for names that change, and the paths of the records.
    pub merged: BTreeMap<Rule, BTreeSet<Name>>,
    /// Records of which nothing can be learnt, and why.
    pub left: Vec<(Record, String)>,
}

/// Enters what would allow the recorded calls. A content that the database does not have is entered under the path that it
/// had, beside those that the program has already. Of names that change ([`Changing`]), the rule is one of all of them.
#[must_use]
pub fn learn<'a>(database: &Database, records: impl IntoIterator<Item = &'a Record>) -> Learnt {
    let mut learnt = Learnt { database: database.clone(), merged: BTreeMap::new(), left: Vec::new() };
    let mut rules = Vec::new();
    for record in records {
        match record.items(&learnt.database).and_then(|items| enter(&mut learnt.database, items)) {
            Ok(new) => rules.extend(new.into_iter().map(|rule| (record, rule))),
            Err(why) => learnt.left.push((record.clone(), why)),
        }
    }
    let known: Vec<Act> = database.rules().map(|rule| rule.act).collect();
    let changing = Changing::of(known.iter().chain(rules.iter().map(|(_, rule)| &rule.act)).filter_map(place));
    // What stands for more is entered first, for the rest may be among it.
    let (general, exact): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .map(|(record, rule)| (record, merge(&changing, rule)))
        .partition(|(_, (_, path))| path.is_some());
    for (record, (rule, path)) in general.into_iter().chain(exact) {
        if is_allowed(&learnt.database, &rule) {
            learnt.merged.entry(rule).and_modify(|paths| paths.extend(path));
            continue;
        }
        match learnt.database.enter(Item::Rule(rule.clone())) {
            Ok(_) => drop(path.map(|path| learnt.merged.insert(rule, [path].into()))),
            Err(cause) => learnt.left.push((record.clone(), cause.to_string())),
        }
    }
    learnt
}

/// Enters programs, which can be refused, and returns the rules, which name only those.
fn enter(database: &mut Database, items: Vec<Item>) -> Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for item in items {
        match item {
            Item::Rule(rule) => rules.push(rule),
            item => drop(database.enter(item).map_err(|cause| cause.to_string())?),
        }
    }
    Ok(rules)
}

fn place(act: &Act) -> Option<&Place> {
    if let Act::File(_, place) = act { Some(place) } else { None }
}

/// The rule that is entered instead of this one, and the path that it had if a name in it changes.
fn merge(changing: &Changing, rule: Rule) -> (Rule, Option<Name>) {
    let Act::File(call, Place::Is(path)) = &rule.act else { return (rule, None) };
    let Some(place) = changing.place(path) else { return (rule, None) };
    (Rule { act: Act::File(*call, place), ..rule.clone() }, Some(path.clone()))
}

/// Whether there is a rule for this already. It stays as it is, whatever ends it.
fn is_allowed(database: &Database, rule: &Rule) -> bool {
    let allows = |act: &Act| match (act, &rule.act) {
        (Act::File(call, known), Act::File(asked, Place::Is(path))) => call == asked && known.has(path),
        _ => false,
    };
    database.until(&rule.caller, &rule.act).is_some() || database.acts(&rule.caller).any(|(act, _)| allows(act))
}

#[cfg(test)]
mod tests {
    use tollgate_abi::guard::{
        TG_GUARD_CHMOD, TG_GUARD_CHOWN, TG_GUARD_EXEC, TG_GUARD_RENAME, TG_GUARD_SET_USER, TG_GUARD_SETUID,
        TG_GUARD_UNLINK, TG_GUARD_WRITE, tg_guard_event,
    };

    use super::*;
    use crate::{
        changes::changes,
        decide::{Asked, Question},
        digest::Digest,
        item::{Class, Until},
        record::tests::event,
    };

    #[test]
    fn allows_what_was_recorded_and_nothing_twice() {
        let unknown = tg_guard_event { target: [0; 8], ..event(TG_GUARD_EXEC, 0, "/tmp/x") };
        let events = [
            event(TG_GUARD_EXEC, 0, "/bin/sh"),
            event(TG_GUARD_SETUID, 0, ""),
            event(TG_GUARD_CHMOD, TG_GUARD_SET_USER, "file"),
            event(TG_GUARD_EXEC, 0, "/bin/sh"),
            unknown,
        ];
        let database = Database::default();
        let records = events.map(|event| Record::of(&event, &database, 0));
        let learnt = learn(&database, &records);
        let lines: Vec<String> = changes(&database, &learnt.database).iter().map(ToString::to_string).collect();
        let [sh, weak] = ["/bin/sh", "/bin/weak"].map(|path| Digest::of(path.as_bytes()));
        let expected = [
            format!("+ program /bin/sh learn {sh}"),
            format!("+ program /bin/weak learn {weak}"),
            "+ allow /bin/weak exec /bin/sh".to_owned(),
            "+ allow /bin/weak setuid 0".to_owned(),
            "+ allow /bin/weak chmod u+s".to_owned(),
        ];
        assert_eq!(lines, expected);
        assert!(
            matches!(&learnt.left[..], [(record, why)] if record.argument == "/tmp/x" && why.contains("not known"))
        );
        let question =
            Question { class: Class::Setuid, caller: Some(weak), history: Until::NEVER, asked: Asked::Exec(Some(sh)) };
        assert!(learnt.database.decide(&question).allowed);
        assert_eq!(learn(&learnt.database, &records).database, learnt.database, "nothing is new");
    }

    #[test]
    fn keeps_the_name_of_a_known_content_and_adds_contents_to_a_known_name() {
        let old = Digest::of(b"old");
        let text = format!("program /bin/weak warn {old}\nprogram /usr/bin/dash learn {}", Digest::of(b"/bin/sh"));
        let database = Database::parse(&text).unwrap();
        let record = Record::of(&event(TG_GUARD_EXEC, 0, "/bin/sh"), &database, 0);
        let learnt = learn(&database, [&record]).database;
        assert!(learnt.to_string().contains("allow /bin/weak exec /usr/bin/dash\n"), "{learnt}");
        let weak = learnt.program(&"/bin/weak".parse().unwrap()).unwrap();
        assert_eq!((weak.digests.len(), weak.mode.to_string().as_str()), (2, "warn"));
    }

    #[test]
    fn makes_one_rule_of_names_that_change_and_says_of_which() {
        let file = |call, path: &str| {
            event(
                call,
                0,
                &path.rsplit('/').filter(|name| !name.is_empty()).fold(String::new(), |all, name| all + name + "\0"),
            )
        };
        let database = Database::default();
        let records = |events: &[tg_guard_event]| -> Vec<Record> {
            events.iter().map(|event| Record::of(event, &database, 0)).collect()
        };
        let seen = records(&[
            file(TG_GUARD_WRITE, "/run/mount/utab.fWlIU9"),
            file(TG_GUARD_WRITE, "/run/mount/utab.lTnKkQ"),
            file(TG_GUARD_CHOWN, "/run/mount/utab.lTnKkQ"),
            file(TG_GUARD_WRITE, "/proc/366/loginuid"),
            file(TG_GUARD_WRITE, "/proc/77/loginuid"),
            file(TG_GUARD_UNLINK, "/var/spool/lpd/lp/log"),
            file(TG_GUARD_UNLINK, "/var/spool/lpd/lp/hfA355"),
            file(TG_GUARD_UNLINK, "/var/spool/lpd/lp/hfA12"),
            file(TG_GUARD_WRITE, "/var/spool/lpd/lp/hfA12"),
        ]);
        let learnt = learn(&database, &seen);
        let rules: Vec<String> = learnt.database.rules().map(|rule| rule.to_string()).collect();
        let expected = [
            "allow /bin/weak write /proc/*/loginuid",
            "allow /bin/weak write /run/mount/utab.??????",
            "allow /bin/weak write /var/spool/lpd/lp/",
            "allow /bin/weak unlink /var/spool/lpd/lp/",
            "allow /bin/weak chown /run/mount/utab.??????",
        ];
        assert_eq!(
            rules.iter().collect::<std::collections::BTreeSet<_>>(),
            expected.map(str::to_owned).iter().collect()
        );
        let paths: Vec<usize> = learnt.merged.values().map(BTreeSet::len).collect();
        assert_eq!((paths.iter().sum::<usize>(), paths.len()), (6, 4), "{:?}", learnt.merged);
        assert_eq!(learn(&learnt.database, &seen).database, learnt.database, "nothing is new");
        let next =
            records(&[file(TG_GUARD_RENAME, "/run/mount/utab.aaaaaa"), file(TG_GUARD_CHOWN, "/run/mount/utab.bbbbbb")]);
        let added: Vec<String> = changes(&learnt.database, &learn(&learnt.database, &next).database)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(added, ["+ allow /bin/weak rename /run/mount/utab.??????"]);
    }
}
