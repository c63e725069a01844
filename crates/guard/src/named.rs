//! Names of small sets.

/// Names of a small set: printed, and read from text with an error that lists them.
macro_rules! named {
    ($type:ty, $what:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let known = <$type>::ALL.iter().find(|(item, _)| item == self);
                known.map_or(Ok(()), |(_, name)| f.pad(name))
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = <$type>::ALL.into_iter().find(|(_, name)| *name == text);
                found.map(|(item, _)| item).ok_or_else(|| {
                    let names = <$type>::ALL.map(|(_, name)| name).join(", ");
                    format!(concat!("`{}` is no ", $what, ": use one of {}"), text, names)
                })
            }
        }
    };
}
