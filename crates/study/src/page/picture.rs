//! A study's heat map as a picture for other pages: `tollgate study report DIR --svg FILE`.

use super::{
    model::Table,
    rows,
    sections::{measured, overhead},
};
use crate::results::Results;

/// The facts below the figures, because a picture is often shown without the study's folder.
const FACTS: [&str; 5] = ["Clock", "Kernels", "Boots", "Samples", "Started"];

/// A picture before it is SVG.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    /// The study's title.
    pub(crate) title: String,
    /// Operations by modules, one table per kernel, without the controls.
    pub(crate) tables: Vec<Table>,
    /// What was measured, where and when, one line each.
    pub(crate) facts: Vec<String>,
}

/// The picture of a study's results.
pub(super) fn picture(results: &Results) -> Picture {
    let table = |kernel: &str| {
        let operations = rows::single(results, kernel).into_iter().filter(|w| !rows::is_control(w));
        overhead::table(results, kernel, &operations.collect::<Vec<_>>())
    };
    let tables = results.kernels().into_iter().map(table).collect();
    let facts = measured::facts(results).into_iter().filter(|(name, _)| FACTS.contains(name));
    let mut facts: Vec<String> = facts.map(|(name, value)| format!("{name}: {value}")).collect();
    // The clock has a line of its own; the other facts share one.
    let beside = facts.split_off(1.min(facts.len())).join(" \u{b7} ");
    facts.push(beside);
    facts.push(format!(
        "Written by tollgate {} from the study \u{201c}{}\u{201d}",
        env!("CARGO_PKG_VERSION"),
        results.study.name
    ));
    Picture { title: results.study.title.clone(), tables, facts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn leaves_the_controls_out_and_says_on_what_it_was_measured() {
        let built = results(&[
            boot("none", 0).measured("null", &[9.0]).measured("stat", &[1000.0]),
            boot("yama", 0).measured("null", &[9.0]).measured("stat", &[1250.0]),
        ]);
        let picture = picture(&built);
        let rows: Vec<&str> = picture.tables[0].groups.iter().flat_map(|g| &g.rows).map(|r| r.name.as_str()).collect();
        assert_eq!(rows, ["stat"]);
        for fact in ["Clock: instructions", "Kernels: 6.1", "Boots: 2 of 2", "Samples: 4", "Started: "] {
            assert!(picture.facts.iter().any(|line| line.contains(fact)), "{fact}: {:?}", picture.facts);
        }
    }
}
