//! A denial explained: what is missing, the CIL that would allow it, whom that would let in, and whether the object is labelled
//! as it should be. Pure.

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

/// So many names of a list are told.
const TOLD: usize = 6;

/// Why something was denied.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// It.
    pub denial: Denial,
    /// Why, permission by permission; of those that the policy knows.
    pub permissions: Vec<Explanation>,
    /// What the policy does not know.
    pub unknown: Vec<String>,
    /// Rules which, added to the sources, would allow what rules can.
    pub cil: Vec<String>,
    /// Whom they would let in.
    pub admitted: Option<Admitted>,
    /// The label that the object would have by its path, where that is another.
    pub label: Option<Label>,
    /// Whether the object has no label of its own that the policy knows.
    pub unlabelled: bool,
}

/// What `file_contexts` say of an object.
#[derive(Debug, Serialize)]
pub struct Label {
    /// Its path.
    pub path: String,
    /// The context that they give it.
    pub context: String,
    /// Whether user, role and range have to be given, too: `tollgate label restore -F`.
    pub whole: bool,
    /// Whether that may be accessed so.
    pub allowed: bool,
}

/// The label that `file_contexts` give to a path of a file of this mode (`st_mode`); `None`: none.
pub type ByPath<'p> = dyn Fn(&Path, u32) -> Option<String> + 'p;

/// Explains a denial by a policy and, where there are some, what its `file_contexts` say.
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

/// The label by path of what is labelled otherwise.
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
    // The type alone is restored, unless the file is unlabelled. A level that the file was given is not to be doubted where it is
    // not in the way.
    let mut told = None;
    for whole in [false, true] {
        let Some(restored) = restored(&present, &context, &unlabelled, whole) else { continue };
        let allowed = allows(&restored)?;
        if allowed || (told.is_none() && !whole) {
            told = Some(Label { path: for_people(path), context: restored, whole, allowed });
        }
        if allowed {
            break;
        }
    }
    told
}

/// The context of what has no label of its own.
fn unlabelled(policy: &Policy) -> Option<&Context> {
    policy.initial_sids.iter().find(|sid| sid.name == learn::UNLABELLED).map(|sid| &sid.context)
}

/// The mode of the objects of a class.
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
            // Whatever else would allow it would be for all objects that are labelled as this one should not be.
            return label.remedy(f, "denied by this label alone");
        }
        if self.unlabelled {
            return self.give_label(f);
        }
        for told in &self.permissions {
            match simple(told) {
                Some(text) => writeln!(f, "{}: {text}", told.permission)?,
                None => in_full(f, told)?,
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
    /// How the object gets it, and what then.
    fn remedy(&self, f: &mut fmt::Formatter<'_>, why: &str) -> fmt::Result {
        let Self { path, context, whole, allowed } = self;
        let then = if *allowed { "with that label it is allowed" } else { "with that label it is denied, too" };
        let force = if *whole { "-F " } else { "" };
        writeln!(
            f,
            "{why}: file_contexts give {path} another, {context}; {then}:\n  tollgate label restore {force}{path}"
        )
    }
}

impl Explained {
    /// An object that has no label, or one that the policy does not have.
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
        writeln!(f, "a rule for it would be one for all that is unlabelled")
    }

    /// Why nobody should be given what was denied, where that ends enforcement.
    fn ends_enforcement(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, permission) = ENDS_ENFORCEMENT;
        if self.denial.tclass != class || !self.denial.permissions.iter().any(|own| own == permission) {
            return Ok(());
        }
        if let Some(withheld) = &self.denial.withheld {
            let asked = for_people(withheld);
            writeln!(
                f,
                "the policy allows {asked}, but enforcement lives by the object: only who may end it changes that"
            )?;
        }
        writeln!(
            f,
            "do it unconfined, as the administrator: a rule for {permission} lets the process end enforcement, too"
        )
    }

    /// Whether rules are all that lacks.
    fn is_mended(&self) -> bool {
        self.unknown.is_empty() && self.permissions.iter().all(|told| simple(told).is_some())
    }
}

/// What lacks in a few words, where that is all there is to say.
fn simple(told: &Explanation) -> Option<&'static str> {
    let [step] = &told.steps[..] else { return None };
    let remedy = told.remedy.as_ref();
    let rule_alone = remedy.is_some_and(|remedy| remedy.obstacle.is_none() && remedy.forbidden_by.is_empty());
    match told.verdict {
        Verdict::Allowed if told.extended.is_none() => Some("the policy allows it by now"),
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

/// All that is to be said, but for the question, which stands above it.
fn in_full(f: &mut fmt::Formatter<'_>, told: &Explanation) -> fmt::Result {
    writeln!(f, "{}:", told.permission)?;
    let text = told.to_string();
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
    let told = names.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > TOLD { format!("{told} and {} more", names.len() - TOLD) } else { told }
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
        let told = explained(
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
        assert!(told.starts_with(&expected), "{told}");
        assert!(told.contains("plain (4 types)") && told.contains("domain (5 types)"), "{told}");
    }

    #[test]
    fn tells_a_constraint_in_full_and_what_rules_can_do_beside() {
        let told =
            explained("system_u:system_r:web_t:s0", "system_u:object_r:secret_t:s2", "file execute entrypoint", "", "");
        assert!(told.contains("entrypoint: no rule allows it\n"), "{told}");
        assert!(
            told.contains(
                "this CIL would allow what rules can allow of it:\n  (allow web_t secret_t (file (entrypoint)))"
            ),
            "{told}"
        );
        assert!(told.contains("a constraint forbids it:") && told.contains("l1 is s0, l2 is s2"), "{told}");
    }

    #[test]
    fn tells_that_enforcement_lives_by_an_object() {
        let record = "type=AVC msg=audit(1700000001.000:7): avc:  denied  { setenforce } for  pid=9 comm=\"sh\" \
             path=\"/proc/sys/kernel/ftrace_enabled\" dev=\"proc\" ino=5 scontext=system_u:system_r:web_t:s0 \
             tcontext=system_u:object_r:secret_t:s0 tclass=security permissive=0 withheld=file:write,open";
        let Some(Entry::Avc(denial)) = text::parse(record) else { panic!("{record}") };
        let built = built();
        let told = explain(&Explainer::new(&built.policy, &built.lines), None, denial).to_string();
        let line = "denied web_t secret_t:security { setenforce } /proc/sys/kernel/ftrace_enabled, for file:write,open, by sh[9]\n";
        assert!(told.contains(line), "{told}");
        assert!(told.contains("the policy allows file:write,open, but enforcement lives by the object"), "{told}");
    }

    #[test]
    fn tells_an_object_that_is_not_labelled_as_its_path_says() {
        let ask = |object: &str, contexts: &str| {
            explained("system_u:system_r:web_t:s0", "system_u:object_r:secret_t:s0", "file ioctl", object, contexts)
        };
        let page = "path=\"/srv/page\" dev=\"sda\" ino=5";
        let data = "/srv(/.*)? system_u:object_r:web_data_t:s0\n";
        let told = ask(page, data);
        assert!(told.ends_with("with that label it is allowed:\n  tollgate label restore /srv/page\n"), "{told}");
        let told = ask(page, "/srv(/.*)? system_u:object_r:blk.data_t:s0\n");
        assert!(told.contains("with that label it is denied, too"), "{told}");
        for (object, contexts) in [
            (page, "/srv(/.*)? system_u:object_r:secret_t:s0\n"),
            ("path=\"srv/page\" dev=\"sda\" ino=5", data),
            ("path=2F7372762F70616765202864656C6574656429 dev=\"sda\" ino=5", data),
            ("name=\"page\" dev=\"sda\" ino=5", data),
        ] {
            let told = ask(object, contexts);
            assert!(!told.contains("restore"), "{object}: {told}");
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
        let told = ask("s2", "/srv(/.*)? system_u:object_r:web_data_t:s0\n");
        assert!(told.ends_with("with that label it is allowed:\n  tollgate label restore -F /srv/page\n"), "{told}");
        assert!(!told.contains("mlstrusted") && !told.contains("CIL"), "{told}");
        for (level, contexts) in [
            ("s2", "/srv(/.*)? system_u:object_r:web_data_t:s2\n"),
            ("s0", "/srv(/.*)? system_u:object_r:web_data_t:s2\n"),
        ] {
            let told = ask(level, contexts);
            assert!(!told.contains("restore"), "{level}: {told}");
        }
    }

    #[test]
    fn offers_no_rule_for_what_is_unlabelled() {
        let told = explained(
            "system_u:system_r:web_t:s0",
            "system_u:object_r:web_part_t:s2:c0.c2",
            "file read",
            "name=\"page\" dev=\"sda\" ino=5",
            "",
        );
        let expected = "the object is unlabelled: it has no label, or one that this policy does not have (tollgate label lost)\n\
                        \x20 find MOUNT -xdev -inum 5\n  tollgate label restore PATH\n";
        assert!(told.contains(expected) && !told.contains("mlstrusted"), "{told}");
    }
}
