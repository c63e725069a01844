//! Items from records: what would allow all that was granted while learning.

use crate::{database::Database, item::Item, record::Record};

/// What is learnt of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The database with everything that is new.
    pub database: Database,
    /// Records of which nothing can be learnt, and why.
    pub left: Vec<(Record, String)>,
}

/// Enters what would allow the recorded calls. A content that the database does not have is entered under the path that it
/// had, beside those that the program has already.
#[must_use]
pub fn learn<'a>(database: &Database, records: impl IntoIterator<Item = &'a Record>) -> Learnt {
    let mut learnt = Learnt { database: database.clone(), left: Vec::new() };
    for record in records {
        let entered = record.items(&learnt.database).and_then(|items| enter(&mut learnt.database, items));
        if let Err(why) = entered {
            learnt.left.push((record.clone(), why));
        }
    }
    learnt
}

/// Enters items: programs, which can be refused, and then rules, which name only those. A rule that is there stays as it is,
/// whatever ends it.
fn enter(database: &mut Database, items: Vec<Item>) -> Result<(), String> {
    for item in items {
        if !matches!(&item, Item::Rule(rule) if database.until(&rule.caller, &rule.act).is_some()) {
            database.enter(item).map_err(|cause| cause.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tollgate_abi::guard::{TG_GUARD_CHMOD, TG_GUARD_EXEC, TG_GUARD_SET_USER, TG_GUARD_SETUID, tg_guard_event};

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
}
