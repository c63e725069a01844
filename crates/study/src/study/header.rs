//! What results keep of the study that they belong to.

use serde::{Deserialize, Deserializer, Serialize};

use super::{Figure, Published};

/// The study that results belong to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyHeader {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The kernels it asks for.
    pub kernels: Vec<String>,
    /// The configurations it asks for.
    pub configurations: Vec<String>,
    /// The configuration that others are compared with.
    pub baseline: String,
    /// Boots a configuration: paddings on the instruction clock, rounds on the wall clock.
    pub boots: u32,
    /// Which figure tables show and comparisons go by, on the instruction clock.
    pub figure: Figure,
    /// From how many percent on a comparison calls something dearer.
    pub threshold: f64,
    /// Figures that others printed, a table a source, to be shown beside these.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
    pub published: Vec<Published>,
    /// The study file, word for word.
    pub text: String,
}

/// Results of a study that could name one source only hold no list.
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

/// A figure that somebody else printed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Printed<'a> {
    /// What tells its source from the others of the study: a letter; nothing if there is one source only.
    pub mark: Option<char>,
    /// The baseline's figure in the clock's unit, or another configuration's difference in percent.
    pub figure: f64,
    /// Whose it is.
    pub source: &'a str,
}

impl StudyHeader {
    /// What tells the figures of a source from those of the others.
    pub fn mark(&self, source: usize) -> Option<char> {
        (self.published.len() > 1).then(|| char::from(b'a' + (source % 26) as u8))
    }

    /// What was printed for a workload under a configuration.
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
