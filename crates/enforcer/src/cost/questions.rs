//! Questions about a policy, for [`super::Bench`].

use std::collections::{HashMap, HashSet};

use tollgate_abi::{CLASSES, enforcer::tg_cost_question, tables::tg_question};
use tollgate_policy::{
    context,
    verify::{Batch, Kind, Question, Random},
};

use crate::{
    contexts::{self, Sid},
    generation::Generation,
};

/// How many questions are made at a time.
const BATCH: usize = 20_000;

/// A question in the numbers of a generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) source: Sid,
    pub(super) target: Sid,
    /// Its place in `CLASSES`, from 1.
    pub(super) class: u32,
    /// The permissions that are asked for.
    pub(super) av: u32,
    /// The same in the policy's own numbers.
    pub(super) question: tg_question,
}

impl Asked {
    pub(super) fn raw(&self) -> tg_cost_question {
        let Self { source, target, class, av, question } = *self;
        tg_cost_question { source, target, class, av, question, took: 0 }
    }
}

/// Makes questions about a policy, each of which is made once. Half of them follow rules, so that some are granted.
#[derive(Debug)]
pub(super) struct Maker {
    random: Random,
    sids: Sids,
    made: HashSet<(Sid, Sid, u32)>,
}

impl Maker {
    pub(super) fn new() -> Self {
        Self { random: Random::new(1), sids: Sids::default(), made: HashSet::new() }
    }

    /// More questions in the numbers of a generation, which gets the SIDs of their contexts.
    pub(super) fn more(&mut self, generation: &mut Generation) -> Vec<Asked> {
        let batch = Batch::new(&generation.policy, Kind::Access, BATCH, &mut self.random);
        let texts: Vec<_> = batch.contexts.iter().map(|own| context::text(&generation.policy, own)).collect();
        let contexts: Vec<_> = texts.into_iter().map(|text| self.sids.of(generation, text)).collect();
        let questions = batch.questions.iter().filter_map(|question| in_numbers(generation, &contexts, question));
        questions.filter(|asked| self.made.insert((asked.source, asked.target, asked.class))).collect()
    }
}

/// A question in the numbers of a generation; `None`: the kernel has no such class, or the policy permits not both contexts.
fn in_numbers(generation: &Generation, contexts: &[Option<Sid>], question: &Question) -> Option<Asked> {
    let class = &generation.policy.classes.get(question.class as usize)?.name;
    let class = CLASSES.iter().position(|own| own.name == class)? as u32 + 1;
    let (source, target) = (contexts[question.source]?, contexts[question.target]?);
    let question = tg_question {
        source: generation.get(source)?,
        target: generation.get(target)?,
        class: question.class,
        ..tg_question::default()
    };
    Some(Asked { source, target, class, av: 0, question })
}

/// The SIDs of contexts.
#[derive(Debug, Default)]
struct Sids {
    known: HashMap<String, Option<Sid>>,
    last: Sid,
}

impl Sids {
    /// The SID of a context; `None`: the policy does not permit the context.
    fn of(&mut self, generation: &mut Generation, text: String) -> Option<Sid> {
        let last = &mut self.last;
        *self.known.entry(text).or_insert_with_key(|text| {
            let context = generation.context(text).ok()?;
            *last = contexts::next(*last);
            generation.set(*last, context);
            Some(*last)
        })
    }
}
