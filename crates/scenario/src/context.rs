//! Contexts in scenarios: whole, or a type alone.

/// The whole context of a subject (role `system_r`) or of an object, if only its type is given.
pub(crate) fn whole(context: &str, role: &str) -> String {
    if context.contains(':') { context.to_owned() } else { format!("system_u:{role}:{context}:s0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_a_type_to_a_context() {
        assert_eq!(whole("worker", "system_r"), "system_u:system_r:worker:s0");
        assert_eq!(whole("u:r:t:s1", "system_r"), "u:r:t:s1");
    }
}
