//! Explains a denial: which rule is missing, the CIL that would allow it, which domains that would let in, and whether
//! the object has the label that its path should have. Pure.

use std::{fmt, path::Path};

use serde::Serialize;
use tollgate_policy::{
    context::{self, Names, restored},
    explain::{Admitted, Explainer, Explanation, Lack, Question, Verdict},
    model::{Context, Policy},
};

use crate::{
    Denial, Entry,
    avc::{ENDS_ENFORCEMENT, Object},
    clock::Zone,
    follow::{self, Colour},
    learn,
    untrusted::for_people,
};

/// How many names of a list are printed.
const MAX_SHOWN: usize = 6;

/// Why an act was denied.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The denial that is explained.
    pub denial: Denial,
    /// The reason for each permission that the policy knows.
    pub permissions: Vec<Explanation>,
    /// Names in the denial that the policy does not know.
    pub unknown: Vec<String>,
    /// Rules that would allow as much as rules can, if they were added to the sources.
    pub cil: Vec<String>,
    /// The domains that these rules would let in.
    pub admitted: Option<Admitted>,
    /// The label that `file_contexts` give to the path, if the object has another.
    pub label: Option<Label>,
    /// Whether the object has no label of its own that the policy knows.
    pub unlabelled: bool,
}

/// The label that `file_contexts` give to an object.
#[derive(Debug, Serialize)]
pub struct Label {
    /// The object's path.
    pub path: String,
    /// The context that they give it.
    pub context: String,
    /// Whether user, role and range must be set, too: `tollgate label restore -F`.
    pub whole: bool,
    /// Whether the act is allowed on an object with that label.
    pub allowed: bool,
}

/// Returns the label that `file_contexts` give to a path with this file mode (`st_mode`); `None`: they give none.
pub type ByPath<'p> = dyn Fn(&Path, u32) -> Option<String> + 'p;

/// Explains a denial by a policy and, if they are given, the `file_contexts`.
#[must_use]
pub fn explain(explainer: &Explainer<'_>, by_path: Option<&ByPath<'_>>, denial: Denial) -> Explained {
    let (policy, names) = (explainer.policy(), Names::of(explainer.policy()));
    let learnt = learn::learn(explainer, [Entry::Avc(denial.clone())]);
    let (mut questions, mut unknown) = (Vec::new(), Vec::new());
    for asked in learn::each(&denial) {
        match asked.question(policy, &names) {
            Ok(question) => questions.push(question),
            Err(cause) => unknown.push(for_people(cause.to_string())),
        }
    }
    unknown.dedup();
    let (cil, unlabelled) = (learnt.cil(), unlabelled(policy));
    Explained {
        unlabelled: unlabelled
            .is_some_and(|unlabelled| questions.first().is_some_and(|own| own.target.type_ == unlabelled.type_)),
        admitted: questions.first().filter(|_| !cil.is_empty()).map(|question| explainer.admitted(question)),
        label: by_path.and_then(|by_path| label(explainer, &names, by_path, &denial, &questions)),
        permissions: questions.iter().map(|question| explainer.explain(question)).collect(),
        denial,
        unknown,
        cil,
    }
}

/// The label that the path should have, if the object has another.
fn label(
    explainer: &Explainer<'_>,
    names: &Names,
    by_path: &ByPath<'_>,
    denial: &Denial,
    questions: &[Question],
) -> Option<Label> {
    let (Object::Path { path, .. } | Object::Ioctl { path, .. }) = &denial.object else { return None };
    let path =
        std::str::from_utf8(path.bytes()).ok().filter(|path| path.starts_with('/') && !path.ends_with(" (deleted)"))?;
    let context = by_path(Path::new(path), mode(&denial.tclass)?)?;
    let (policy, own) = (explainer.policy(), questions.first()?);
    if questions.iter().all(|question| explainer.lack(question) == Lack::Nothing) {
        return None;
    }
    let unlabelled = unlabelled(policy).map(|context| context::text(policy, context)).unwrap_or_default();
    let present = context::text(policy, &own.target);
    let allows = |context: &str| {
        let target = names.context(policy, context).ok()?;
        let instead = |question: &Question| Question { target: target.clone(), ..question.clone() };
        Some(questions.iter().all(|question| explainer.lack(&instead(question)) == Lack::Nothing))
    };
    // Only the type is restored, unless the file is unlabelled. A level that somebody gave the file is kept if it does
    // not stand in the way.
    let mut found = None;
    for whole in [false, true] {
        let Some(restored) = restored(&present, &context, &unlabelled, whole) else { continue };
        let allowed = allows(&restored)?;
        if allowed || (found.is_none() && !whole) {
            found = Some(Label { path: for_people(path), context: restored, whole, allowed });
        }
        if allowed {
            break;
        }
    }
    found
}

/// The context of objects that have no label of their own.
fn unlabelled(policy: &Policy) -> Option<&Context> {
    policy.initial_sids.iter().find(|sid| sid.name == learn::UNLABELLED).map(|sid| &sid.context)
}

/// The file mode of the objects of a class.
fn mode(class: &str) -> Option<u32> {
    Some(match class {
        "file" => libc::S_IFREG,
        "dir" => libc::S_IFDIR,
        "lnk_file" => libc::S_IFLNK,
        "chr_file" => libc::S_IFCHR,
        "blk_file" => libc::S_IFBLK,
        "sock_file" => libc::S_IFSOCK,
        "fifo_file" => libc::S_IFIFO,
        _ => return None,
    })
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", follow::line(&Entry::Avc(self.denial.clone()), Colour::Off, Zone::Local))?;
        let context = |text: &Option<String>, sid| text.clone().unwrap_or_else(|| format!("SID {sid}"));
        writeln!(f, "  process  {}", for_people(context(&self.denial.scontext, self.denial.ssid)))?;
        writeln!(f, "  object   {}", for_people(context(&self.denial.tcontext, self.denial.tsid)))?;
        self.ends_enforcement(f)?;
        self.unknown.iter().try_for_each(|unknown| writeln!(f, "{unknown}"))?;
        if let Some(label) = self.label.as_ref().filter(|label| label.allowed) {
            // Any rule that would allow it would apply to all objects with this label, which this object should not
            // have.
            return label.remedy(f, "denied by this label alone");
        }
        if self.unlabelled {
            return self.give_label(f);
        }
        for explanation in &self.permissions {
            match simple(explanation) {
                Some(text) => writeln!(f, "{}: {text}", explanation.permission)?,
                None => in_full(f, explanation)?,
            }
        }
        if !self.cil.is_empty() {
            writeln!(
                f,
                "this CIL would allow {}:",
                if self.is_mended() { "it" } else { "what rules can allow of it" }
            )?;
            self.cil.iter().try_for_each(|cil| writeln!(f, "  {cil}"))?;
        }
        self.admitted.iter().try_for_each(|admitted| admit(f, admitted))?;
        let Some(label) = &self.label else { return Ok(()) };
        label.remedy(f, "not labelled as its path says")
    }
}

impl Label {
    /// How the object gets this label, and what is allowed then.
    fn remedy(&self, f: &mut fmt::Formatter<'_>, why: &str) -> fmt::Result {
        let Self { path, context, whole, allowed } = self;
        let then = if *allowed { "with that label it is allowed" } else { "with that label it is denied as well" };
        let force = if *whole { "-F " } else { "" };
        writeln!(
            f,
            "{why}: file_contexts give {path} the label {context}; {then}:\n  tollgate label restore {force}{path}"
        )
    }
}

impl Explained {
    /// For an object that has no label, or one that the policy does not have.
    fn give_label(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the object is unlabelled: it has no label, or one that this policy does not have (tollgate label lost)"
        )?;
        let named = match &self.denial.object {
            Object::Path { path, .. } | Object::Ioctl { path, .. } => Some(path.for_people()),
            Object::Inode { place: Some(place), .. } => {
                writeln!(f, "  find MOUNT -xdev -inum {}", place.ino)?;
                None
            }
            _ => None,
        };
        writeln!(f, "  tollgate label restore {}", named.as_deref().unwrap_or("PATH"))?;
        writeln!(f, "a rule would apply to everything that is unlabelled")
    }

    /// If the denied permission ends enforcement: why nobody should be given it.
    fn ends_enforcement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, permission) = ENDS_ENFORCEMENT;
        if self.denial.tclass != class || !self.denial.permissions.iter().any(|own| own == permission) {
            return Ok(());
        }
        if let Some(withheld) = &self.denial.withheld {
            let asked = for_people(withheld);
            writeln!(
                f,
                "the policy allows {asked}, but enforcement depends on the object: only a domain that may end enforcement can change it"
            )?;
        }
        writeln!(
            f,
            "do it unconfined, as the administrator: a rule for {permission} would also let the process end enforcement"
        )
    }

    /// Whether rules alone would allow the act.
    fn is_mended(&self) -> bool {
        self.unknown.is_empty() && self.permissions.iter().all(|explanation| simple(explanation).is_some())
    }
}

/// The reason in a few words, if there is no more to say.
fn simple(explanation: &Explanation) -> Option<&'static str> {
    let [step] = &explanation.steps[..] else { return None };
    let remedy = explanation.remedy.as_ref();
    let rule_alone = remedy.is_some_and(|remedy| remedy.obstacle.is_none() && remedy.forbidden_by.is_empty());
    match explanation.verdict {
        Verdict::Allowed if explanation.extended.is_none() => Some("the policy now allows it"),
        Verdict::Denied
            if rule_alone
                && step.constraints.is_empty()
                && step.role_allow.is_none()
                && step.switched_off.is_empty() =>
        {
            Some("no rule allows it")
        }
        _ => None,
    }
}

/// The whole explanation, without the question, which has been printed already.
fn in_full(f: &mut fmt::Formatter<'_>, explanation: &Explanation) -> fmt::Result {
    writeln!(f, "{}:", explanation.permission)?;
    let text = explanation.to_string();
    text.lines().skip(2).filter(|line| !line.is_empty()).try_for_each(|line| writeln!(f, "  {line}"))
}

fn admit(f: &mut fmt::Formatter<'_>, Admitted { domain, entered_from, wider }: &Admitted) -> fmt::Result {
    let from = if entered_from.is_empty() { "no other domain".to_owned() } else { some(entered_from) };
    writeln!(f, "that would let in {domain} alone, which can be entered from {from}")?;
    if wider.is_empty() {
        return Ok(());
    }
    let wider: Vec<String> = wider.iter().map(|wider| format!("{} ({} types)", wider.attribute, wider.types)).collect();
    writeln!(f, "a rule for an attribute of it would let in more: {}", some(&wider))
}

fn some(names: &[String]) -> String {
    let shown = names.iter().take(MAX_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MAX_SHOWN { format!("{shown} and {} more", names.len() - MAX_SHOWN) } else { shown }
}

#[cfg(test)]
mod tests {
    use tollgate_policy::{
        built::Built,
        sepol::{self, CilFile, Options},
    };

    use super::*;
    use crate::{clock, text};

    /// With a context for what is unlabelled, which only l1 s2 may read.
    fn built() -> Built {
        let sids = "(sid kernel) (sidorder (kernel))";
        let more = "(sid kernel) (sid security) (sid unlabeled) (sidorder (kernel security unlabeled)) \
                    (sidcontext security (system_u object_r log_t (low low))) \
                    (sidcontext unlabeled (system_u object_r web_part_t (high high)))";
        let text = include_str!("../../policy/tests/explain.cil").replace(sids, more).into_bytes();
        let files = [CilFile { name: "explain.cil".to_owned(), text }];
        Built::from_compiled(sepol::compile(&files, &Options::default()).unwrap()).unwrap()
    }

    fn explained(source: &str, target: &str, asked: &str, object: &str, contexts: &str) -> String {
        let (class, permissions) = asked.split_once(' ').unwrap();
        let record = format!(
            "type=AVC msg=audit(1700000001.000:7): avc:  denied  {{ {permissions} }} for  pid=9 comm=\"sh\" {object} \
             scontext={source} tcontext={target} tclass={class} permissive=0"
        );
        let Some(Entry::Avc(denial)) = text::parse(&record) else { panic!("{record}") };
        let built = built();
        // One line each, of a directory and all that it holds.
        let by_path = |path: &Path, _: u32| {
            let mut lines = contexts.lines().filter_map(|line| line.split_once("(/.*)? "));
            lines.find(|(directory, _)| path.starts_with(directory)).map(|(_, context)| context.to_owned())
        };
        explain(&Explainer::new(&built.policy, &built.lines), Some(&by_path), denial).to_string()
    }

    #[test]
    fn tells_the_rule_that_is_missing_and_whom_it_would_let_in() {
        let text = explained(
            "staff_u:staff_r:shell_t:s0",
            "system_u:object_r:secret_t:s0",
            "file append ioctl",
            "path=\"/etc/shadow\" dev=\"sda\" ino=5",
            "",
        );
        let expected = " denied shell_t secret_t:file { append ioctl } /etc/shadow, by sh[9]\n\
            \x20 process  staff_u:staff_r:shell_t:s0\n\
            \x20 object   system_u:object_r:secret_t:s0\n\
            append: no rule allows it\n\
            ioctl: no rule allows it\n\
            this CIL would allow it:\n\
            \x20 (allow shell_t secret_t (file (append ioctl)))\n\
            that would let in shell_t alone, which can be entered from admin_t, blk.t, web_child_t, web_t\n\
            a rule for an attribute of it would let in more: ";
        let expected = format!("{}{expected}", clock::text(1_700_000_001_000, Zone::Local));
        assert!(text.starts_with(&expected), "{text}");
        assert!(text.contains("plain (4 types)") && text.contains("domain (5 types)"), "{text}");
    }

    #[test]
    fn tells_a_constraint_in_full_and_what_rules_can_do_beside() {
        let text =
            explained("system_u:system_r:web_t:s0", "system_u:object_r:secret_t:s2", "file execute entrypoint", "", "");
        assert!(text.contains("entrypoint: no rule allows it\n"), "{text}");
        assert!(
            text.contains(
                "this CIL would allow what rules can allow of it:\n  (allow web_t secret_t (file (entrypoint)))"
            ),
            "{text}"
        );
        assert!(text.contains("a constraint forbids it:") && text.contains("l1 is s0, l2 is s2"), "{text}");
    }

    #[test]
    fn tells_that_enforcement_lives_by_an_object() {
        let record = "type=AVC msg=audit(1700000001.000:7): avc:  denied  { setenforce } for  pid=9 comm=\"sh\" \
             path=\"/proc/sys/kernel/ftrace_enabled\" dev=\"proc\" ino=5 scontext=system_u:system_r:web_t:s0 \
             tcontext=system_u:object_r:secret_t:s0 tclass=security permissive=0 withheld=file:write,open";
        let Some(Entry::Avc(denial)) = text::parse(record) else { panic!("{record}") };
        let built = built();
        let text = explain(&Explainer::new(&built.policy, &built.lines), None, denial).to_string();
        let line = "denied web_t secret_t:security { setenforce } /proc/sys/kernel/ftrace_enabled, for file:write,open, by sh[9]\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("the policy allows file:write,open, but enforcement depends on the object"), "{text}");
    }

    #[test]
    fn tells_an_object_that_is_not_labelled_as_its_path_says() {
        let ask = |object: &str, contexts: &str| {
            explained("system_u:system_r:web_t:s0", "system_u:object_r:secret_t:s0", "file ioctl", object, contexts)
        };
        let page = "path=\"/srv/page\" dev=\"sda\" ino=5";
        let data = "/srv(/.*)? system_u:object_r:web_data_t:s0\n";
        let text = ask(page, data);
        assert!(text.ends_with("with that label it is allowed:\n  tollgate label restore /srv/page\n"), "{text}");
        let text = ask(page, "/srv(/.*)? system_u:object_r:blk.data_t:s0\n");
        assert!(text.contains("with that label it is denied as well"), "{text}");
        for (object, contexts) in [
            (page, "/srv(/.*)? system_u:object_r:secret_t:s0\n"),
            ("path=\"srv/page\" dev=\"sda\" ino=5", data),
            ("path=2F7372762F70616765202864656C6574656429 dev=\"sda\" ino=5", data),
            ("name=\"page\" dev=\"sda\" ino=5", data),
        ] {
            let text = ask(object, contexts);
            assert!(!text.contains("restore"), "{object}: {text}");
        }
    }

    #[test]
    fn advises_no_trust_where_a_level_is_not_what_the_path_says() {
        let ask = |level: &str, contexts: &str| {
            let object = "path=\"/srv/page\" dev=\"sda\" ino=5";
            explained(
                "system_u:system_r:web_t:s0",
                &format!("system_u:object_r:web_data_t:{level}"),
                "file read",
                object,
                contexts,
            )
        };
        let text = ask("s2", "/srv(/.*)? system_u:object_r:web_data_t:s0\n");
        assert!(text.ends_with("with that label it is allowed:\n  tollgate label restore -F /srv/page\n"), "{text}");
        assert!(!text.contains("mlstrusted") && !text.contains("CIL"), "{text}");
        for (level, contexts) in [
            ("s2", "/srv(/.*)? system_u:object_r:web_data_t:s2\n"),
            ("s0", "/srv(/.*)? system_u:object_r:web_data_t:s2\n"),
        ] {
            let text = ask(level, contexts);
            assert!(!text.contains("restore"), "{level}: {text}");
        }
    }

    #[test]
    fn offers_no_rule_for_what_is_unlabelled() {
        let text = explained(
            "system_u:system_r:web_t:s0",
            "system_u:object_r:web_part_t:s2:c0.c2",
            "file read",
            "name=\"page\" dev=\"sda\" ino=5",
            "",
        );
        let expected = "the object is unlabelled: it has no label, or one that this policy does not have (tollgate label lost)\n\
                        \x20 find MOUNT -xdev -inum 5\n  tollgate label restore PATH\n";
        assert!(text.contains(expected) && !text.contains("mlstrusted"), "{text}");
    }
}
