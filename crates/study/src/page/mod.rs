//! A study's results as one HTML page that needs no other file (`tollgate study report DIR --html FILE`), and the page's heat
//! map as a picture (`--svg FILE`).
//!
//! Results become a [`model::Page`], and a page becomes HTML. Both steps are functions of values, so the same results give
//! the same bytes. maud writes the HTML: its templates are checked at compile time, and no template file is needed at run
//! time.

pub mod material;
mod model;
mod picture;
mod render;
mod rows;
mod sections;

pub use material::Material;

use crate::results::Results;
use model::Page;
use sections::{alive, caches, counts, depth, kernels, latency, levels, measured, overhead, published, reach, summary};

/// The page of a study, as HTML.
#[must_use]
pub fn html(material: &Material) -> String {
    render::document(&page(material))
}

/// The picture of a study, as SVG.
#[must_use]
pub fn svg(results: &Results) -> String {
    render::picture::svg(&picture::picture(results))
}

fn page(material: &Material) -> Page {
    let results = &material.results;
    let sections = [
        summary::section(results),
        overhead::section(results),
        depth::section(results),
        levels::section(results),
        alive::section(results),
        kernels::section(results),
        published::section(results),
        latency::section(&material.observations),
        caches::section(results),
        counts::section(&material.counts),
        reach::section(&material.graphs),
    ];
    let first = measured::section(results);
    Page {
        title: results.study.title.clone(),
        name: results.study.name.clone(),
        writer: env!("CARGO_PKG_VERSION").to_owned(),
        sections: std::iter::once(first).chain(sections.into_iter().flatten()).collect(),
    }
}

#[cfg(test)]
mod tests;
