//! The page's colours for a stand-alone picture, because some programs that draw SVG do not know `light-dark()`.

/// A colour that the style sheet names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Colour<'s> {
    /// The name without the two hyphens.
    pub(super) name: &'s str,
    pub(super) light: &'s str,
    pub(super) dark: &'s str,
}

/// The colours of a style sheet: `--NAME: light-dark(LIGHT, DARK);`.
pub(super) fn colours(style: &str) -> Vec<Colour<'_>> {
    let colour = |declaration| {
        let (name, value) = str::split_once(declaration, ": light-dark(")?;
        let (light, dark) = value.split_once(')')?.0.split_once(", ")?;
        Some(Colour { name: name.trim().strip_prefix("--")?, light, dark })
    };
    style.split(';').filter_map(colour).collect()
}

#[test]
fn takes_both_shades_of_each_colour_and_nothing_else() {
    let style = ":root {\n  color-scheme: light dark;\n  --paper: light-dark(#fff, #111);\n  --ink: light-dark(#000, #eee); --gap: 2px;\n}";
    let found = colours(style);
    let is = |name, light, dark| Colour { name, light, dark };
    assert_eq!(found, [is("paper", "#fff", "#111"), is("ink", "#000", "#eee")]);
}
