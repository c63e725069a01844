//! Permissive domains: what they are denied is granted and audited, until the next generation.

use std::{
    collections::BTreeMap,
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use tracing::warn;

use super::{Enforcer, EnforcerError};

impl Enforcer {
    /// Makes a domain permissive or enforcing until the next generation; without a domain, sets the mode of all.
    pub fn set_permissive(&mut self, domain: Option<&str>, permissive: bool) -> Result<(), EnforcerError> {
        if !permissive {
            self.revalidate()?;
        }
        match domain {
            Some(domain) => self.set_domain(domain, permissive)?,
            None => self.state.set_enforcing(!permissive),
        }
        self.publish()?;
        // What was opened meanwhile may be held.
        if permissive { Ok(()) } else { self.settle_held() }
    }

    /// Makes a domain permissive, or enforcing again.
    fn set_domain(&mut self, domain: &str, permissive: bool) -> Result<(), EnforcerError> {
        self.generation.set_permissive(domain, permissive)?;
        self.state.forget();
        let folder = &self.options.folder;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text = fs::read_to_string(folder.permissive()).unwrap_or_default();
        let lines = changed(&text, self.generation.number, domain, permissive.then_some(now));
        // Setting the mode must not fail because there is no room to note the time.
        if let Err(cause) = folder.replace(&folder.permissive(), lines.as_bytes()) {
            warn!(%cause, "the time since when {domain} is permissive is not recorded: {cause}");
        }
        Ok(())
    }

    /// The permissive domains, and since when each is, in seconds since 1970. For those that the policy itself makes
    /// permissive, that is `in_force`, the time since when it is in force.
    #[must_use]
    pub fn permissive_since(&self, in_force: u64) -> BTreeMap<String, u64> {
        let text = fs::read_to_string(self.options.folder.permissive()).unwrap_or_default();
        let recorded: BTreeMap<&str, u64> = lines(&text, self.generation.number).collect();
        let since = |domain: String| {
            let since = recorded.get(domain.as_str()).copied().unwrap_or(in_force);
            (domain, since)
        };
        self.generation.permissive().into_iter().map(since).collect()
    }
}

/// The domains of a generation that somebody has made permissive, and when.
fn lines(text: &str, generation: u32) -> impl Iterator<Item = (&str, u64)> {
    let parse = move |line| {
        let mut words = str::split_whitespace(line);
        let own = words.next()?.parse() == Ok(generation);
        let (since, domain) = (words.next()?.parse().ok()?, words.next()?);
        own.then_some((domain, since))
    };
    text.lines().filter_map(parse)
}

/// The lines of a generation after a change: a domain is permissive from `since` on, or no longer. A domain that is
/// permissive already keeps its time.
fn changed(text: &str, generation: u32, domain: &str, since: Option<u64>) -> String {
    let mut all: BTreeMap<&str, u64> = lines(text, generation).collect();
    match since {
        Some(since) => drop(all.entry(domain).or_insert(since)),
        None => drop(all.remove(domain)),
    }
    all.iter().map(|(domain, since)| format!("{generation} {since} {domain}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_since_when_each_domain_is_permissive_in_this_generation() {
        let first = changed("", 3, "web_t", Some(100));
        let second = changed(&first, 3, "mail_t", Some(200));
        assert_eq!(lines(&second, 3).collect::<Vec<_>>(), [("mail_t", 200), ("web_t", 100)]);
        assert_eq!(changed(&second, 3, "web_t", Some(300)), second, "it was already");
        assert_eq!(lines(&changed(&second, 3, "web_t", None), 3).collect::<Vec<_>>(), [("mail_t", 200)]);
        assert_eq!(lines(&second, 4).count(), 0, "another policy knows nothing of it");
        assert_eq!(changed(&second, 4, "new_t", Some(5)), "4 5 new_t\n");
    }

    #[test]
    fn takes_nothing_from_lines_that_it_did_not_write() {
        assert_eq!(lines("3\n3 x web_t\n\u{0}\n3 9\n x 3 4\n", 3).count(), 0);
    }
}
