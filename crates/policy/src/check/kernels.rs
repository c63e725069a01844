//! What the SELinux of each kernel defines: the table `kernels.txt`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

const TABLE: &str = include_str!("kernels.txt");

/// A kernel that is older than all in the table, or a text that is not a release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "what the SELinux of kernel `{asked}` knows is not known here: give a release from {oldest} on, such as {newest}"
)]
pub struct UnknownKernel {
    /// The release that was given.
    pub asked: String,
    /// The oldest series in the table.
    pub oldest: String,
    /// The newest series in the table.
    pub newest: String,
}

/// Classes, each with its permissions.
type Classes = BTreeMap<String, BTreeSet<String>>;

/// What one kernel's SELinux defines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The series of the table that was used: the newest that is not newer than the given release.
    pub series: String,
    /// Its classes and permissions.
    pub classes: Classes,
    /// Its policy capabilities.
    pub capabilities: BTreeSet<String>,
    /// Classes and permissions of all kernels in the table.
    pub ever: Classes,
}

impl Kernel {
    /// What the kernel with this release defines (`6.1.0-56-cloud-amd64`, `6.1`).
    pub fn find(release: &str) -> Result<Self, UnknownKernel> {
        // The table is part of the program, and a test reads every line of it.
        let table = Table::parse(TABLE).unwrap_or_default();
        let unknown = || UnknownKernel {
            asked: release.to_owned(),
            oldest: table.kernels.first().copied().unwrap_or_default().to_owned(),
            newest: table.kernels.last().copied().unwrap_or_default().to_owned(),
        };
        let asked = version(release).ok_or_else(unknown)?;
        let place = table.kernels.iter().rposition(|series| version(series) <= Some(asked)).ok_or_else(unknown)?;
        Ok(table.kernel(place))
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The indices of the first and of the last kernel that a line is about.
type Span = (usize, usize);

#[derive(Debug, Default)]
struct Table<'t> {
    kernels: Vec<&'t str>,
    capabilities: Vec<(Span, &'t str)>,
    permissions: Vec<(Span, &'t str, &'t str)>,
}

impl<'t> Table<'t> {
    /// Reads lines as `kernels.txt` describes them. The error is the first line that cannot be read.
    fn parse(text: &'t str) -> Result<Self, &'t str> {
        let mut table = Self::default();
        let mut commons: HashMap<&str, Vec<&str>> = HashMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("kernels") => table.kernels = words.collect(),
                Some("common") => {
                    commons.insert(words.next().ok_or(line)?, words.collect());
                }
                Some("capabilities") => {
                    let span = words.next().and_then(|span| table.span(span)).ok_or(line)?;
                    table.capabilities.extend(words.map(|name| (span, name)));
                }
                Some("class") => {
                    let span = words.next().and_then(|span| table.span(span)).ok_or(line)?;
                    let classes: Vec<&str> = words.by_ref().take_while(|word| *word != ":").collect();
                    for word in words {
                        let alone = vec![word];
                        let named = word.strip_prefix('@').map(|name| commons.get(name).ok_or(line)).transpose()?;
                        for permission in named.unwrap_or(&alone) {
                            table.permissions.extend(classes.iter().map(|class| (span, *class, *permission)));
                        }
                    }
                }
                _ => return Err(line),
            }
        }
        Ok(table)
    }

    /// Reads `FIRST-LAST`, as indices.
    fn span(&self, text: &str) -> Option<Span> {
        let (first, last) = text.split_once('-')?;
        let place = |series: &str| self.kernels.iter().position(|known| *known == series);
        let first = if first.is_empty() { 0 } else { place(first)? };
        let last = if last.is_empty() { self.kernels.len().checked_sub(1)? } else { place(last)? };
        Some((first, last))
    }

    fn kernel(&self, place: usize) -> Kernel {
        let within = |(first, last): Span| (first..=last).contains(&place);
        let mut kernel = Kernel { series: self.kernels[place].to_owned(), ..Kernel::default() };
        let capabilities = self.capabilities.iter().filter(|(span, _)| within(*span));
        kernel.capabilities = capabilities.map(|(_, name)| (*name).to_owned()).collect();
        for (span, class, permission) in &self.permissions {
            kernel.ever.entry((*class).to_owned()).or_default().insert((*permission).to_owned());
            if within(*span) {
                kernel.classes.entry((*class).to_owned()).or_default().insert((*permission).to_owned());
            }
        }
        kernel
    }
}

#[cfg(test)]
mod tests {
    use super::{Kernel, TABLE, Table};

    /// Counted in the kernels' images, from which the table was made by another program.
    #[test]
    fn has_as_many_classes_and_permissions_as_the_kernels() {
        let table = Table::parse(TABLE).unwrap();
        let counts = |place| {
            let kernel = table.kernel(place);
            let permissions = kernel.classes.values().map(std::collections::BTreeSet::len).sum::<usize>();
            (kernel.series, kernel.classes.len(), permissions, kernel.capabilities.len())
        };
        let all: Vec<_> = (0..table.kernels.len()).map(counts).collect();
        let expected = [
            ("5.10", 94, 1651, 8),
            ("6.1", 97, 1699, 8),
            ("6.12", 97, 1699, 9),
            ("6.18", 96, 1694, 13),
            ("7.2", 97, 1724, 15),
        ];
        assert_eq!(all, expected.map(|(series, c, p, k)| (series.to_owned(), c, p, k)));
    }

    #[test]
    fn takes_the_newest_series_that_is_not_newer() {
        let series = |release| Kernel::find(release).map(|kernel| kernel.series);
        assert_eq!(series("6.1.0-56-cloud-amd64").as_deref(), Ok("6.1"));
        assert_eq!(series("6.5.3").as_deref(), Ok("6.1"));
        assert_eq!(series("9.0").as_deref(), Ok("7.2"));
    }

    #[test]
    fn rejects_what_it_does_not_know() {
        for release in ["4.19.0", "6", "", "linux"] {
            assert!(Kernel::find(release).is_err(), "{release}");
        }
    }

    #[test]
    fn rejects_lines_that_are_none() {
        for line in ["klass - file : read", "class 1.0- file : read", "class - file : @nothing", "capabilities"] {
            let text = format!("kernels 5.10 6.1\n{line}");
            assert_eq!(Table::parse(&text).err(), Some(line));
        }
    }
}
