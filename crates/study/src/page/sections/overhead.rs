//! Section: the heat map, operations by modules, one table per kernel.

use crate::{
    page::{
        model::{Block, Fold, Group, Row, Section, Table},
        rows,
    },
    results::{ConfigurationResult, Results},
    table::{labels, notes},
};

/// One table per kernel, each with its legend.
pub(in crate::page) fn section(results: &Results) -> Option<Section> {
    let kernels = results.kernels();
    let mut blocks = vec![Block::Scale];
    for (i, kernel) in kernels.iter().enumerate() {
        let title = format!("Linux {kernel}");
        blocks.push(Block::Fold(Fold { title, open: i == 0, blocks: on_kernel(results, kernel) }));
    }
    (!kernels.is_empty()).then_some(Section { id: "overhead", title: "Overhead by operation and module", blocks })
}

fn on_kernel(results: &Results, kernel: &str) -> Vec<Block> {
    let names = rows::single(results, kernel);
    let remarks = notes::own_legend(results, kernel, &names).into_iter().chain(notes::notes(results, kernel));
    vec![Block::Table(table(results, kernel, &names)), Block::Notes(remarks.collect())]
}

/// Operations by modules on one kernel: the baseline's figure, then each module's difference to it.
pub(in crate::page) fn table(results: &Results, kernel: &str, operations: &[&str]) -> Table {
    let baseline = results.find(kernel, &results.study.baseline);
    let columns: Vec<&ConfigurationResult> = baseline.into_iter().chain(super::others(results, kernel)).collect();
    let row = |workload: &str| Row {
        name: workload.to_owned(),
        cells: columns.iter().map(|c| super::cell(results, c, workload)).collect(),
    };
    let mut groups: Vec<Group> = Vec::new();
    for label in labels(operations) {
        if label.heading.is_some() || groups.is_empty() {
            groups.push(Group { heading: label.heading.map(str::to_owned), rows: Vec::new() });
        }
        if let Some(group) = groups.last_mut() {
            group.rows.push(row(&label.name));
        }
    }
    Table {
        caption: format!(
            "Linux {kernel}: {} in {}, then the difference to it in percent",
            results.study.baseline,
            super::unit(results)
        ),
        corner: "operation",
        columns: columns.iter().map(|c| super::name(c)).collect(),
        groups,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        page::model::Cell,
        results::examples::{boot, results},
    };

    #[test]
    fn shows_the_baselines_figure_and_the_others_difference_with_sign_and_shade() {
        let built = results(&[
            boot("none", 0).measured("stat", &[1000.]).measured("pipe", &[100.]).measured("null", &[9.]),
            boot("yama", 0).measured("stat", &[1250.]).measured("pipe", &[90.]).broken("null", "gone"),
        ]);
        let section = section(&built).unwrap();
        let Some(Block::Fold(fold)) = section.blocks.get(1) else { panic!("{:?}", section.blocks) };
        let Some(Block::Table(table)) = fold.blocks.first() else { panic!("{:?}", fold.blocks) };
        assert_eq!(table.columns, ["none", "yama"]);
        let headings: Vec<&str> = table.groups.iter().filter_map(|g| g.heading.as_deref()).collect();
        assert_eq!(headings, ["controls", "files", "communication"]);
        let cells: Vec<&Cell> = table.groups.iter().flat_map(|g| &g.rows).map(|row| &row.cells[1]).collect();
        let is = |text: &str, shade| Cell::Difference { text: text.into(), margin: String::new(), shade };
        assert_eq!(cells, [&is("-", 0), &is("+25.0", 5), &is("-10.0", -2)]);
        assert_eq!(table.groups[1].rows[0].cells[0], Cell::Number("1000".into()));
    }
}
