//! Tables of what caches of other sizes would have answered.

use std::fmt::Write;

use tollgate_abi::enforcer::{TG_ACCESS_ROWS, TG_AVC_ENTRIES};

use crate::{
    caches::{DOMAINS, Point, ROWS, VECTORS},
    results::Results,
};

/// A table: one row per size, one column per number of domains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curves {
    /// The workload's selection.
    pub(crate) workload: String,
    /// What the figures are.
    pub(crate) caption: String,
    /// What the rows are.
    pub(crate) corner: &'static str,
    /// A size, and a figure for each number of domains.
    pub(crate) rows: Vec<(u32, Vec<f64>)>,
}

/// The tables of all workloads whose checks were recorded on a kernel.
pub(crate) fn curves(results: &Results, kernel: &str) -> Vec<Curves> {
    let workloads = results.on(kernel).flat_map(|configuration| &configuration.workloads);
    workloads.filter(|workload| !workload.caches.is_empty()).flat_map(|w| of(&w.name, &w.caches)).collect()
}

fn of(workload: &str, points: &[Point]) -> [Curves; 5] {
    let curves =
        |caption: &str, corner, sizes: &[u32], size: fn(u32) -> (u32, u32), figure: fn(&Point) -> f64| Curves {
            workload: workload.to_owned(),
            caption: caption.to_owned(),
            corner,
            rows: sizes.iter().map(|own| (*own, figures(points, size(*own), figure))).collect(),
        };
    let (vectors, rows) = ("entries", "rows");
    [
        curves(
            "checks that come to the tables, in percent, by the size of the access vector cache, without the caches of files",
            vectors,
            &VECTORS,
            |vectors| (0, vectors),
            Point::to_tables,
        ),
        curves(
            "the same, with the caches of files",
            vectors,
            &VECTORS,
            |vectors| (TG_ACCESS_ROWS, vectors),
            Point::to_tables,
        ),
        curves(
            "the mean check in nanoseconds, by the size of the access vector cache",
            vectors,
            &VECTORS,
            |vectors| (TG_ACCESS_ROWS, vectors),
            Point::mean,
        ),
        curves(
            "the mean check in nanoseconds, by the size of the caches of files",
            rows,
            &ROWS,
            |rows| (rows, TG_AVC_ENTRIES),
            Point::mean,
        ),
        curves(
            "checks that come to the tables in addition after a reload",
            vectors,
            &VECTORS,
            |vectors| (TG_ACCESS_ROWS, vectors),
            |point| point.for_reload() as f64,
        ),
    ]
}

fn figures(points: &[Point], size: (u32, u32), figure: fn(&Point) -> f64) -> Vec<f64> {
    let has = |point: &&Point, domains| (point.rows, point.vectors) == size && point.domains == domains;
    DOMAINS.iter().filter_map(|domains| points.iter().find(|point| has(point, *domains)).map(figure)).collect()
}

/// The heads of the columns.
pub(crate) fn heads(points: &Curves) -> Vec<String> {
    let domains = DOMAINS.iter().map(|domains| format!("{domains} domain{}", if *domains == 1 { "" } else { "s" }));
    std::iter::once(points.corner.to_owned()).chain(domains).collect()
}

/// The cells of the rows.
pub(crate) fn cells(curves: &Curves) -> Vec<Vec<String>> {
    let row = |(size, figures): &(u32, Vec<f64>)| {
        let figures = figures.iter().map(|figure| figure_of(*figure));
        std::iter::once(size.to_string()).chain(figures).collect()
    };
    curves.rows.iter().map(row).collect()
}

/// A figure with three digits.
fn figure_of(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        _ if figure < 1.0 => format!("{figure:.3}"),
        _ if figure < 100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

/// The tables as text; empty if nothing was recorded.
pub(super) fn render(results: &Results, kernel: &str) -> String {
    let mut text = String::new();
    for curves in curves(results, kernel) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {}", curves.workload, curves.caption);
        for line in std::iter::once(heads(&curves)).chain(cells(&curves)) {
            let line: String = line.iter().map(|cell| format!("{cell:>14}")).collect();
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tollgate_bench::asked::{Asked, Question};

    use super::*;
    use crate::results::examples::{boot, results};

    #[test]
    fn shows_each_size_by_the_number_of_domains() {
        let question = Question { inode: 0, source: 32, target: 33, class: 6 };
        let asked = Asked { questions: vec![question], order: vec![0; 3000] };
        let built = results(&[
            boot("none", 0).measured("stat", &[1.0]),
            boot("counted", 0).measured("stat", &[1.0]).decided(5, &[("files", 1, 0)]).asked(asked),
        ]);
        let shown = curves(&built, "6.1");
        assert_eq!(shown.len(), 5);
        assert_eq!(shown[0].rows.len(), VECTORS.len());
        assert_eq!((shown[2].rows[0].0, shown[2].rows[0].1[0]), (256, 15.0), "{shown:?}");
        let text = render(&built, "6.1");
        assert!(text.contains("stat: the mean check") && text.contains("1000 domains"), "{text}");
        assert!(built.configurations[1].workloads[0].decisions.as_ref().unwrap().asked.is_none());
    }

    #[test]
    fn says_nothing_where_nothing_was_recorded() {
        assert_eq!(render(&results(&[boot("none", 0).measured("stat", &[1.0])]), "6.1"), "");
    }
}
