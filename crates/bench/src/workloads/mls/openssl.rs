//! Calculation by openssl, a fixed count of it: `openssl speed` counts what it can do in a time.

use crate::{
    place::Place,
    workload::Prepared,
    workloads::commands::{Repeated, require},
};

/// Digests in memory, without a file that is read: of a password and a salt that are always the same.
const DIGESTS: &str = "for digest in MD5 SHA1 SHA256 SHA512; do
    openssl kdf -keylen 16 -kdfopt digest:$digest -kdfopt pass:word -kdfopt salt:12345678 -kdfopt iter:20000 PBKDF2
done";

/// The prime of the second Oakley group (RFC 2409, 6.2).
const PRIME: &str = "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE6\
49286651ECE65381FFFFFFFFFFFFFFFF";

pub(super) fn digests(place: &Place) -> Prepared {
    run("digests", place, &["sh", "-ec", DIGESTS])
}

pub(super) fn prime(place: &Place) -> Prepared {
    run("prime", place, &["openssl", "prime", "-hex", PRIME])
}

fn run(workload: &str, place: &Place, words: &'static [&'static str]) -> Prepared {
    require(workload, &["sh", "openssl"], "the package openssl")?;
    Ok(Box::new(Repeated { folder: place.dir.clone(), words, clean: |_| Ok(()), given: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Network;

    #[test]
    fn calculates_the_same_again_and_again_or_names_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(folder.path().to_owned(), Network::Loopback, folder.path().to_owned());
        for set_up in [digests, prime] {
            match set_up(&place) {
                Ok(mut operation) => (0..2).for_each(|_| operation.run().unwrap()),
                Err(error) => assert!(error.to_string().contains("install the package openssl"), "{error}"),
            }
        }
    }
}
