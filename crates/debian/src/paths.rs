//! Completes Debian's `file_contexts` with the lines that depend on a system: homes, and aliases of paths.

use tollgate_policy::file_contexts::{once, with_aliases};

/// Patterns of home directories for a template, each with the SELinux user of its owner.
pub(super) type Homes = [(&'static str, &'static str); 2];

/// The lines of a `file_contexts`, with those for homes and aliases.
pub(super) fn complete(text: &str, homes: Homes, aliases: &str) -> String {
    with_aliases(&with_homes(text, homes), aliases)
}

/// The lines for homes, as genhomedircon writes them for root and for users without a SELinux user of their own.
fn with_homes(text: &str, homes: Homes) -> String {
    let about_homes = |line: &&str| line.starts_with("HOME_DIR");
    let any =
        |line: &str| line.replace("HOME_ROOT", "/home").replace("%{USERID}", "[0-9]+").replace("%{USERNAME}", "[^/]+");
    let mut whole: Vec<String> = text.lines().filter(|line| !about_homes(line)).map(any).collect();
    for (home, user) in homes {
        let of_user = |line: &str| any(line).replace("HOME_DIR", home).replace("system_u:", &format!("{user}:"));
        whole.extend(text.lines().filter(about_homes).map(of_user));
    }
    once(whole.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOMES: Homes = [("/root", "root"), ("/home/[^/]+", "user_u")];

    #[test]
    fn gives_each_home_its_lines_and_its_user() {
        let text = "HOME_DIR\t-d\tsystem_u:object_r:home_t:s0\n/etc\tsystem_u:object_r:etc_t:s0\n";
        let whole = complete(text, HOMES, "");
        let expected = "/etc\tsystem_u:object_r:etc_t:s0\n/root\t-d\troot:object_r:home_t:s0\n\
                        /home/[^/]+\t-d\tuser_u:object_r:home_t:s0\n";
        assert_eq!(whole, expected);
    }

    #[test]
    fn names_users_by_what_any_name_and_number_matches() {
        let text = "HOME_ROOT/x u:r:t:s0\n/run/user/%{USERID} u:r:t:s0\n/tmp/of-%{USERNAME} u:r:t:s0\n";
        let expected = "/home/x u:r:t:s0\n/run/user/[0-9]+ u:r:t:s0\n/tmp/of-[^/]+ u:r:t:s0\n";
        assert_eq!(complete(text, HOMES, ""), expected);
    }

    #[test]
    fn says_of_an_alias_what_is_said_of_its_path() {
        let text = "/usr/lib u:r:a:s0\n/usr/lib(/.*)? u:r:b:s0\n/usr/library u:r:c:s0\n/usr/lib/x\\.y -- u:r:d:s0\n";
        let expected = format!("{text}/lib u:r:a:s0\n/lib(/.*)? u:r:b:s0\n/lib/x\\.y -- u:r:d:s0\n");
        assert_eq!(complete(text, HOMES, "# /usr/lib\n/lib /usr/lib\nnonsense\n"), expected);
    }
}
