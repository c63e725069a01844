//! An explanation as text for people.

use std::fmt::{self, Display, Formatter, Write as _};

use super::{
    Explanation, Gain, Match, Node, Place, Remedy, ReportedCondition, ReportedConstraint, ReportedRule, Step, Verdict,
};

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let answer = match (self.verdict, self.permissive) {
            (Verdict::Allowed, _) => "allowed",
            (Verdict::Denied, false) => "denied",
            (Verdict::Denied, true) => "denied, but granted and audited: the source's domain is permissive",
            (Verdict::Invalid, _) => "not decided: a context is not valid",
        };
        writeln!(f, "{answer}")?;
        writeln!(f, "{} {} of {} by {}", self.class, self.permission, self.target, self.source)?;
        for invalid in &self.invalid {
            writeln!(f, "{}: {}", invalid.context, invalid.reason)?;
        }
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f)?;
            if index > 0 {
                writeln!(f, "{} bounds it; of {} on {}:", step.source, step.source, step.target)?;
            }
            write!(f, "{step}")?;
        }
        rules(f, "grants are audited", &self.auditallow)?;
        if self.verdict != Verdict::Allowed {
            rules(f, "denials are not audited", &self.dontaudit)?;
        }
        self.commands(f)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "\n{remedy}")?;
        }
        if let Some(why) = &self.no_places {
            writeln!(f, "\nno files and lines are shown, and no neverallow rules are known: {why}")?;
        }
        Ok(())
    }
}

impl Explanation {
    fn commands(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(extended) = &self.extended else { return Ok(()) };
        let allowed = if extended.allowed.is_empty() { "none".to_owned() } else { extended.allowed.join(" ") };
        writeln!(f, "\nrules name ioctl commands, so only these are allowed: {allowed}")?;
        extended.rules.iter().try_for_each(|rule| writeln!(f, "  {rule}"))
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.rules.is_empty() {
            writeln!(f, "no rule allows it")?;
        } else {
            rules(f, "rules allow it", &self.rules)?;
        }
        rules(f, "rules that would allow it are switched off", &self.switched_off)?;
        if let Some(role_allow) = &self.role_allow {
            let exists = if role_allow.exists { "exists" } else { "is missing" };
            writeln!(f, "the role changes, which needs {}: it {exists}", role_allow.cil)?;
        }
        self.constraints.iter().try_for_each(|constraint| write!(f, "{constraint}"))?;
        match self.constraints_asked - self.constraints.len().min(self.constraints_asked) {
            0 => Ok(()),
            1 => writeln!(f, "one constraint is about it and holds"),
            several => writeln!(f, "{several} constraints are about it and hold"),
        }
    }
}

impl Display for ReportedConstraint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "a constraint forbids it:")?;
        if self.places.is_empty() {
            writeln!(f, "  {}", self.cil)?;
        }
        places(f, &self.places)?;
        leaves(f, &self.expression)
    }
}

impl Display for Remedy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(obstacle) = &self.obstacle {
            writeln!(f, "no statement that could be added would allow it: {obstacle}")?;
        }
        if !self.forbidden_by.is_empty() {
            writeln!(f, "neverallow rules of the policy forbid this:")?;
            places(f, &self.forbidden_by)?;
            writeln!(f, "as long as they do, no policy can be built with what would allow it:")?;
        } else if !self.cil.is_empty() {
            writeln!(f, "this CIL would allow it:")?;
        }
        self.cil.iter().try_for_each(|cil| writeln!(f, "  {cil}"))?;
        for Gain { type_, attribute, rules: (sources, targets) } in &self.gains {
            writeln!(
                f,
                "  and with {attribute}, {type_} gets what {sources} allow rules give it as source and {targets} as target"
            )?;
        }
        if !self.alternatives.is_empty() {
            writeln!(f, "constraints would not stop it with another context:")?;
            for other in &self.alternatives {
                writeln!(f, "  {:<14} {}", other.part, other.context)?;
            }
            if !self.with_alternatives.is_empty() {
                writeln!(f, "which also needs:")?;
                self.with_alternatives.iter().try_for_each(|cil| writeln!(f, "  {cil}"))?;
            }
        }
        Ok(())
    }
}

fn rules(f: &mut Formatter<'_>, heading: &str, rules: &[ReportedRule]) -> fmt::Result {
    if rules.is_empty() {
        return Ok(());
    }
    writeln!(f, "{heading}:")?;
    for rule in rules {
        if rule.places.is_empty() {
            writeln!(f, "  {}", rule.cil)?;
        }
        places(f, &rule.places)?;
        let mut how = Vec::new();
        if let Match::Attribute { name } = &rule.source {
            how.push(format!("the source has attribute {name}"));
        }
        match &rule.target {
            Match::Attribute { name } => how.push(format!("the target has attribute {name}")),
            Match::Itself => how.push("the target is the source (self)".to_owned()),
            Match::Name => {}
        }
        how.extend(rule.condition.as_ref().map(when));
        how.iter().try_for_each(|how| writeln!(f, "    {how}"))?;
    }
    Ok(())
}

fn when(condition: &ReportedCondition) -> String {
    let value = |value: bool| if value { "on" } else { "off" };
    let values: Vec<String> =
        condition.booleans.iter().map(|now| format!("{} is {}", now.boolean, value(now.value))).collect();
    let mut text = format!("when {} ({})", condition.expression, values.join(", "));
    if !condition.flips.is_empty() {
        let flips: Vec<String> =
            condition.flips.iter().map(|flip| format!("{}={}", flip.boolean, value(flip.value))).collect();
        let _ = write!(text, ": set {}", flips.join(" "));
    }
    text
}

fn places(f: &mut Formatter<'_>, places: &[Place]) -> fmt::Result {
    places.iter().try_for_each(|place| writeln!(f, "  {}:{}: {}", place.file, place.line, place.cil))
}

/// The comparisons in an expression, each with its value.
fn leaves(f: &mut Formatter<'_>, node: &Node) -> fmt::Result {
    if let Some(compared) = &node.compared {
        writeln!(f, "    {:<5}  {}  {compared}", node.holds, node.cil)?;
    }
    node.parts.iter().try_for_each(|part| leaves(f, part))
}
