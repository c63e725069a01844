//! What results keep of the study that they belong to.

use serde::{Deserialize, Serialize};

use super::Published;
use crate::stats::exact::Figure;

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
    /// Figures that somebody else printed, to be shown beside these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// The study file, word for word.
    pub text: String,
}
