//! Names that are valid in CIL.

/// The maximum length of a block's name, so that its types and contexts stay short.
const MAX_LENGTH: usize = 48;

/// Words that CIL reserves, and names of one letter that constraints use.
const RESERVED: [&str; 26] = [
    "all",
    "and",
    "block",
    "call",
    "category",
    "class",
    "common",
    "context",
    "in",
    "level",
    "macro",
    "not",
    "optional",
    "or",
    "perm",
    "policy",
    "range",
    "role",
    "self",
    "sensitivity",
    "t",
    "type",
    "user",
    "xor",
    "true",
    "false",
];

/// Turns a service's name into one for CIL: letters, digits and `_`, beginning with a letter. If it is reserved or
/// `taken`, `_service` is added, and then a number.
pub fn identifier(name: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut text: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if !text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        text.insert_str(0, "s_");
    }
    text.truncate(MAX_LENGTH);
    let is_free = |text: &str| !RESERVED.contains(&text) && !taken(text);
    if is_free(&text) {
        return text;
    }
    text.push_str("_service");
    let mut numbered = (2u32..).map(|number| format!("{text}_{number}"));
    if is_free(&text) { text } else { numbered.find(|text| is_free(text)).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_identifiers_of_the_names_that_units_have() {
        let of = |name: &str| identifier(name, |_| false);
        assert_eq!(of("notes"), "notes");
        assert_eq!(of("postgresql@15-main"), "postgresql_15_main");
        assert_eq!(of("0ad.server"), "s_0ad_server");
        assert_eq!(of("dev-disk\\x2dby"), "dev_disk_x2dby");
        assert_eq!(of("größe"), "gr__e");
        assert_eq!(of(""), "s_");
        assert!(of(&"x".repeat(300)).len() == MAX_LENGTH);
    }

    #[test]
    fn keeps_away_from_names_that_are_there() {
        assert_eq!(identifier("self", |_| false), "self_service");
        assert_eq!(identifier("cron", |name| name == "cron"), "cron_service");
        assert_eq!(identifier("cron", |name| name != "cron_service_3"), "cron_service_3");
    }
}
