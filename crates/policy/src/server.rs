//! Questions and answers by name: the security server of one policy.

use tollgate_abi::tables::{TG_ASK_CHANGE, TG_ASK_MEMBER, TG_ASK_TRANSITION, tg_context, tg_decision, tg_question};

use crate::{
    context::{self, ContextError, Kind, Names},
    decide::{self, Labelled, Levels, Tables, TablesError, TooManyLevels},
    model::{Context, Level, Policy, Range},
};

/// How many levels a question may add: those of its two contexts and of the answer.
const LEVELS_PER_QUESTION: usize = 6;

/// The kind of a labelling decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// The context of a new object, or of a process after exec.
    Transition,
    /// The context of a member of a polyinstantiated object.
    Member,
    /// The context to relabel an object to.
    Change,
}

/// Why tables and a policy do not make a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The tables cannot be used.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// The policy has too many levels of its own.
    #[error(transparent)]
    Levels(#[from] TooManyLevels),
    /// The tables belong to another policy.
    #[error("the decision tables are not of this policy: build it again with `tollgate policy build`")]
    Mismatch,
}

/// Why a labelling decision gives no context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The rules give a context that the policy does not permit. The kernel then refuses to make the object.
    #[error("the rules give `{text}`, which is not a valid context: {reason}")]
    #[expect(missing_docs, reason = "the names say it")]
    Invalid {
        text: String,
        /// Why it is not valid.
        reason: String,
    },
    /// The new range would be the common part of two ranges, and they have none (`mls_context_glblub`). The kernel then
    /// refuses.
    #[error("objects of this class get the levels that source and target have in common, and these have none")]
    NoCommonLevel,
    /// There is no such class.
    #[error("the policy has no such class")]
    NoClass,
    /// There are more levels than the tables can hold.
    #[error(transparent)]
    Levels(#[from] TooManyLevels),
}

/// A policy that answers questions.
#[derive(Debug)]
pub struct SecurityServer<'a> {
    policy: &'a Policy,
    names: Names,
    tables: Tables,
    levels: Levels,
}

impl<'a> SecurityServer<'a> {
    /// The server of `policy`, with its tables and its own levels.
    pub fn new(policy: &'a Policy, tables: &[u8], levels: &[Level]) -> Result<Self, ServerError> {
        let tables = Tables::new(tables)?;
        let header = tables.header();
        let counts = [header.types, header.classes, header.roles, header.users, header.sensitivities];
        let expected = [
            policy.types.len(),
            policy.classes.len(),
            policy.roles.len(),
            policy.users.len(),
            policy.sensitivities.len(),
        ];
        if counts.iter().zip(expected).any(|(count, length)| *count as usize + 1 != length.max(1)) {
            return Err(ServerError::Mismatch);
        }
        Ok(Self { policy, names: Names::of(policy), tables, levels: Levels::new(levels)? })
    }

    /// The policy that decides.
    pub fn policy(&self) -> &'a Policy {
        self.policy
    }

    /// The identifiers of the policy's names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The decision tables that were laid out from the policy.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The levels that have been used so far.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Makes room for the levels of another question with two contexts, if there is too little. Contexts that were
    /// returned before must not be used afterwards.
    pub fn make_room(&mut self) {
        if self.levels.room() < LEVELS_PER_QUESTION {
            self.levels.forget();
        }
    }

    /// The class with this name.
    pub fn class(&self, name: &str) -> Result<u32, ContextError> {
        self.names.find(Kind::Class, name)
    }

    /// Reads a context, which must be valid.
    pub fn context(&mut self, text: &str) -> Result<tg_context, ContextError> {
        let context = self.names.context(self.policy, text)?;
        let context = self.intern(&context)?;
        if self.tables.valid(&self.levels, &context) {
            return Ok(context);
        }
        let reason = self.invalid(&self.expand(&context));
        Err(ContextError::Invalid { text: text.to_owned(), reason })
    }

    /// A context with identifiers for its levels; it need not be valid.
    pub fn intern(&mut self, context: &Context) -> Result<tg_context, ContextError> {
        let too_many = |_| TooManyLevels;
        Ok(tg_context {
            user: u16::try_from(context.user).map_err(too_many)?,
            role: u16::try_from(context.role).map_err(too_many)?,
            type_: context.type_,
            low: self.levels.intern(&context.range.low)?,
            high: self.levels.intern(&context.range.high)?,
        })
    }

    /// A context with its complete levels.
    pub fn expand(&self, context: &tg_context) -> Context {
        let range = Range { low: self.levels.get(context.low), high: self.levels.get(context.high) };
        Context { user: context.user.into(), role: context.role.into(), type_: context.type_, range }
    }

    /// A context as text.
    pub fn text(&self, context: &tg_context) -> String {
        context::text(self.policy, &self.expand(context))
    }

    /// The access vectors of a source, a target and a class.
    pub fn access(&self, source: tg_context, target: tg_context, class: u32) -> tg_decision {
        let question = tg_question { source, target, class, ..tg_question::default() };
        self.tables
            .decide(&self.levels, &question)
            .unwrap_or(tg_decision { auditdeny: u32::MAX, ..tg_decision::default() })
    }

    /// A labelling decision. Only transitions use `name`.
    pub fn label(
        &mut self,
        ask: Ask,
        source: tg_context,
        target: tg_context,
        class: u32,
        name: Option<&str>,
    ) -> Result<tg_context, LabelError> {
        let raw = match ask {
            Ask::Transition => TG_ASK_TRANSITION,
            Ask::Member => TG_ASK_MEMBER,
            Ask::Change => TG_ASK_CHANGE,
        };
        let question = tg_question { source, target, class, ask: raw, ..tg_question::default() };
        let name = name.filter(|_| ask == Ask::Transition).and_then(decide::name);
        match self.tables.label(&mut self.levels, &question, name.as_ref()) {
            Labelled::Valid(context) => Ok(context),
            Labelled::Invalid(context) => {
                let context = self.expand(&context);
                if self.policy.mls && context.range.low.sensitivity == 0 {
                    return Err(LabelError::NoCommonLevel);
                }
                let reason = self.invalid(&context);
                Err(LabelError::Invalid { text: context::text(self.policy, &context), reason })
            }
            Labelled::Nothing => Err(LabelError::NoClass),
            Labelled::TooManyLevels => Err(LabelError::Levels(TooManyLevels)),
        }
    }

    /// Whether `task` may relabel an object of `class` from `old` to `new`, according to validatetrans statements.
    pub fn validate(&self, old: tg_context, new: tg_context, task: tg_context, class: u32) -> bool {
        let question = tg_question { source: old, target: new, task, class, ..tg_question::default() };
        self.tables.validate(&self.levels, &question)
    }

    /// The names of an access vector's permissions, sorted.
    pub fn permissions(&self, class: u32, vector: u32) -> Vec<&'a str> {
        let Some(class) = self.policy.classes.get(class as usize) else { return Vec::new() };
        let named = class.permissions.iter().enumerate().filter(|(number, _)| vector >> number & 1 == 1);
        let mut names: Vec<&str> = named.map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Why a context is not valid (`policydb_context_isvalid`).
    fn invalid(&self, context: &Context) -> String {
        let (Some(user), Some(role)) =
            (self.policy.users.get(context.user as usize), self.policy.roles.get(context.role as usize))
        else {
            return "it has no user or no role".to_owned();
        };
        let object = context.role == tollgate_abi::tables::TG_OBJECT_R;
        if !object && !role.types.has(context.type_) {
            let type_ = self.policy.types.get(context.type_ as usize).map_or("", |t| &t.name);
            return format!("role {} may not have type {type_}", role.name);
        }
        if !object && !user.roles.has(context.role) {
            return format!("user {} may not have role {}", user.name, role.name);
        }
        for level in [&context.range.low, &context.range.high] {
            let sensitivity = self.policy.sensitivities.get(level.sensitivity as usize);
            if let Some(sensitivity) = sensitivity
                && level.categories.iter().any(|category| !sensitivity.categories.has(category))
            {
                return format!("sensitivity {} may not have all of these categories", sensitivity.name);
            }
        }
        let range = context::range_text(self.policy, &user.range);
        format!("its high level must dominate its low one, and user {} has no more than {range}", user.name)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        built::Built,
        sepol::{self, CilFile, Options},
    };

    /// Any process may write up, with 70 categories.
    fn built() -> Built {
        let categories: String = (0..70).map(|number| format!("c{number} ")).collect();
        let text = format!(
            "(handleunknown deny) (mls true) (class file (write)) (classorder (file))
            (sid kernel) (sidorder (kernel)) (sidcontext kernel (u r a ((s0) (s0))))
            (sensitivity s0) (sensitivityorder (s0)) {} (categoryorder ({categories}))
            (sensitivitycategory s0 (range c0 c69))
            (user u) (userrole u r) (userlevel u (s0)) (userrange u ((s0) (s0 (range c0 c69))))
            (role r) (role object_r) (roletype r a)
            (type a) (allow a a (file (write))) (mlsconstrain (file (write)) (domby l1 l2))",
            (0..70).map(|number| format!("(category c{number})")).collect::<String>()
        );
        let file = CilFile { name: "levels.cil".to_owned(), text: text.into_bytes() };
        Built::from_compiled(sepol::compile(&[file], &Options::default()).unwrap()).unwrap()
    }

    /// The level of the categories whose bits are set in `number`, as it is written; every second one has c69.
    fn level(number: u32) -> String {
        let mut text = "s0".to_owned();
        for (count, bit) in (0..13).filter(|bit| number >> bit & 1 == 1).enumerate() {
            text.push(if count == 0 { ':' } else { ',' });
            text.push_str(&format!("c{}", 2 * bit));
        }
        if number % 2 == 1 { text + ",c69" } else { text }
    }

    #[test]
    fn answers_any_number_of_questions_about_any_levels() {
        let built = built();
        let mut server = built.server().unwrap();
        let class = server.class("file").unwrap();
        for number in 0..6000 {
            server.make_room();
            let source = server.context("u:r:a:s0:c0").unwrap();
            let written = format!("u:object_r:a:{}", level(number));
            let target = server.context(&written).unwrap();
            assert_eq!(server.text(&target), written);
            assert_eq!(server.access(source, target, class).allowed, number & 1, "{written}");
        }
    }
}
