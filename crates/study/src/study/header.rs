//! The part of a study that results contain.

use serde::{Deserialize, Deserializer, Serialize};

use super::{Figure, Published};

/// The study that results belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyHeader {
    /// The study's name.
    pub name: String,
    /// The study's title.
    pub title: String,
    /// The kernels of the study file.
    pub kernels: Vec<String>,
    /// The configurations of the study file.
    pub configurations: Vec<String>,
    /// The configuration that others are compared with.
    pub baseline: String,
    /// Boots per configuration: paddings on the instruction clock, rounds on the wall clock.
    pub boots: u32,
    /// The figure of tables and comparisons, on the instruction clock.
    pub figure: Figure,
    /// The least increase, in percent, that comparisons call dearer.
    pub threshold: f64,
    /// Published figures to show beside the study's own, one table per source.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
    pub published: Vec<Published>,
    /// The study file, word for word.
    pub text: String,
}

/// Older results hold one source and no list.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Published>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Sources {
        One(Published),
        Several(Vec<Published>),
    }
    Sources::deserialize(deserializer).map(|sources| match sources {
        Sources::One(one) => vec![one],
        Sources::Several(several) => several,
    })
}

/// A figure that was published elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed<'a> {
    /// A letter that identifies the source; none if there is one source only.
    pub mark: Option<char>,
    /// The baseline's figure in the clock's unit, or another configuration's difference in percent.
    pub figure: f64,
    /// The source of the figure.
    pub source: &'a str,
}

impl StudyHeader {
    /// The letter of a source.
    pub fn mark(&self, source: usize) -> Option<char> {
        (self.published.len() > 1).then(|| char::from(b'a' + (source % 26) as u8))
    }

    /// The published figures for a workload under a configuration.
    pub fn printed(&self, kernel: &str, configuration: &str, workload: &str) -> impl Iterator<Item = Printed<'_>> {
        self.published.iter().enumerate().filter_map(move |(number, table)| {
            let figure = if configuration == self.baseline {
                table.baseline(kernel, workload)
            } else {
                table.percent(kernel, workload, configuration)
            };
            figure.map(|figure| Printed { mark: self.mark(number), figure, source: &table.source })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_one_source_and_a_list_of_them() {
        let header = |published: &str| {
            let text = format!(
                r#"{{"name":"x","title":"X","kernels":[],"configurations":[],"baseline":"none","boots":1,"figure":"minimum",
                "threshold":1.0,{published}"text":""}}"#
            );
            serde_json::from_str::<StudyHeader>(&text).unwrap().published.len()
        };
        let source = r#"{"source":"a paper","kernel":"6.1","baseline":{},"percent":{}}"#;
        assert_eq!(header(""), 0);
        assert_eq!(header(&format!(r#""published":{source},"#)), 1);
        assert_eq!(header(&format!(r#""published":[{source},{source}],"#)), 2);
    }
}
