//! Labels by path on file systems that keep none (`genfscon`), as a trie that is walked one name at a time.
//!
//! SELinux compares strings: among all paths in the policy, the longest one with which the whole path begins counts
//! (`__security_genfs_sid`), so `/sys` labels `/sysvipc` too. A hook sees one name and its directory. Therefore each
//! directory on the way to a path in the policy is a node. The prefixes of names in it are the keys, and an inode
//! remembers the node below it. Two rules hold for every trie, so that a hook needs no second look-up:
//!
//! - a node has a key for the empty name: the longest path that ends at or above the directory;
//! - a value always has a label: where the policy names nothing, it is that of the next shorter key.
//!
//! The number of a node is computed from the file system and the path, so that inodes in memory have the right node in
//! every policy.

use std::collections::{BTreeMap, HashMap};

use tollgate_abi::enforcer::{TG_GENFS_NAME, TG_SID_SURVIVAL, tg_genfs_key, tg_genfs_value};

/// An entry of the map `genfs`: the key is a node and the prefix of names in it.
pub type Entry = (tg_genfs_key, tg_genfs_value);

/// The label of a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// SID of the label.
    pub sid: u32,
    /// For a directory, the node below the name; 0: everything in it is labelled like the directory.
    pub node: u32,
}

/// A path that cannot be a key, because one of its names is longer than [`TG_GENFS_NAME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameTooLong;

/// The labels by path of one file system.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    keys: BTreeMap<Vec<u8>, Key>,
}

#[derive(Debug, Default)]
struct Key {
    sid: Option<u32>,
    /// [`TG_SID_SURVIVAL`], or 0.
    survival: u32,
    /// Index of the node below it in `nodes`.
    below: Option<usize>,
}

impl Key {
    /// The label of names with this prefix; `shorter` is the label of names with the next shorter prefix. Enforcement
    /// depends on everything in a place on which it depends, whatever its label.
    fn label(&self, shorter: u32) -> u32 {
        self.sid.unwrap_or(shorter) | self.survival | shorter & TG_SID_SURVIVAL
    }
}

impl Tree {
    /// Adds a path with its label. If a path is added twice, the first label counts.
    ///
    /// A path that does not start with a slash, or has two in a row, is no prefix of any path.
    pub fn insert(&mut self, path: &str, sid: u32) -> Result<(), NameTooLong> {
        self.at(path, |key| key.sid = key.sid.or(Some(sid)))
    }

    /// Marks everything that begins with a path as an object on which enforcement depends ([`TG_SID_SURVIVAL`]).
    pub fn protect(&mut self, path: &str) -> Result<(), NameTooLong> {
        self.at(path, |key| key.survival = TG_SID_SURVIVAL)
    }

    /// Changes the key at which a path ends. A path that is no prefix of any has none.
    fn at(&mut self, path: &str, put: impl FnOnce(&mut Key)) -> Result<(), NameTooLong> {
        let Some(names) = path.strip_prefix('/').filter(|_| !path.contains("//")) else { return Ok(()) };
        if names.split('/').any(|name| name.len() > TG_GENFS_NAME as usize) {
            return Err(NameTooLong);
        }
        self.root();
        let (mut node, mut put) = (0, Some(put));
        let mut names = names.split('/').peekable();
        while let Some(name) = names.next() {
            let next = self.nodes.len();
            let key = self.nodes[node].keys.entry(name.as_bytes().to_vec()).or_default();
            if names.peek().is_none()
                && let Some(put) = put.take()
            {
                put(key);
            }
            // The empty name stands for all names, so nothing is below it.
            if !name.is_empty() {
                node = *key.below.get_or_insert(next);
                if node == next {
                    self.nodes.push(Node::default());
                }
            }
        }
        Ok(())
    }

    /// Whether no path was added.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn root(&mut self) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
    }

    /// The entries of the map. The root has the number `root`. `default` is the label where the policy names nothing.
    pub fn entries(&self, root: u32, default: u32) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut pending = vec![(0, root, default)];
        while let Some((index, number, inherited)) = pending.pop() {
            let Some(node) = self.nodes.get(index) else { continue };
            let all = node.keys.get([].as_slice()).map_or(inherited, |key| key.label(inherited));
            entries.push(entry(number, &[], tg_genfs_value { sid: all, ..Default::default() }));
            // In this order, a key comes after all its prefixes.
            let mut labels: HashMap<&[u8], u32> = HashMap::from([([].as_slice(), all)]);
            for (name, key) in node.keys.iter().filter(|(name, _)| !name.is_empty()) {
                let shorter = (0..name.len()).rev().find_map(|length| labels.get(&name[..length]));
                let sid = key.label(shorter.copied().unwrap_or(all));
                labels.insert(name, sid);
                let below = key.below.map(|below| (below, below_of(number, name), sid));
                let node = below.map_or(0, |(_, number, _)| number);
                entries.push(entry(number, name, tg_genfs_value { sid, node, ..Default::default() }));
                pending.extend(below);
            }
        }
        entries
    }
}

/// The number of the node below a name; never 0. It is the FNV-1a hash of the path's names with a slash after each.
#[must_use]
pub fn below_of(node: u32, name: &[u8]) -> u32 {
    let number = name.iter().chain(b"/").fold(node, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    number.max(1)
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn entry(node: u32, name: &[u8], value: tg_genfs_value) -> Entry {
    let length = to_u32(name.len());
    let mut key = tg_genfs_key { bits: 32 + 8 * length, node, ..Default::default() };
    for (to, from) in key.name.iter_mut().zip(name) {
        *to = from.cast_signed();
    }
    (key, tg_genfs_value { length, ..value })
}

/// The map `genfs` in user space, with the same look-up.
#[derive(Debug, Default)]
pub struct Genfs {
    values: HashMap<(u32, Vec<u8>), tg_genfs_value>,
}

impl Genfs {
    /// Looks up in these entries.
    pub fn new(entries: &[Entry]) -> Self {
        let key = |key: &tg_genfs_key, value: &tg_genfs_value| {
            let name = &key.name[..value.length as usize];
            (key.node, name.iter().map(|byte| byte.cast_unsigned()).collect())
        };
        Self { values: entries.iter().map(|(k, value)| (key(k, value), *value)).collect() }
    }

    /// The label of a name in the directory of `node`; `None`: there is no such node.
    pub fn find(&self, node: u32, name: &[u8]) -> Option<Found> {
        let longest = name.len().min(TG_GENFS_NAME as usize);
        let value = (0..=longest).rev().find_map(|length| self.values.get(&(node, name[..length].to_vec())))?;
        // The node belongs to the directory of exactly this name.
        let node = if value.length as usize == name.len() { value.node } else { 0 };
        Some(Found { sid: value.sid, node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SELinux's rule: the longest of the paths that `path` begins with.
    fn by_strings(paths: &[(String, u32)], path: &str, default: u32) -> u32 {
        let matching = paths.iter().filter(|(prefix, _)| path.starts_with(prefix.as_str()));
        matching.max_by_key(|(prefix, _)| prefix.len()).map_or(default, |(_, sid)| *sid)
    }

    /// What hooks do: each inode has its label and its node, and gives them to what is looked up in it.
    fn by_names(genfs: &Genfs, root: u32, path: &str) -> u32 {
        let mut found = Found { sid: genfs.find(root, b"").unwrap().sid, node: root };
        for name in path.split('/').filter(|name| !name.is_empty()) {
            found = match found.node {
                0 => found,
                node => genfs.find(node, name.as_bytes()).unwrap(),
            };
        }
        found.sid
    }

    fn genfs(paths: &[(String, u32)]) -> Genfs {
        let mut tree = Tree::default();
        tree.root();
        for (path, sid) in paths {
            tree.insert(path, *sid).unwrap();
        }
        Genfs::new(&tree.entries(7, 1000))
    }

    fn numbered(paths: &[&str]) -> Vec<(String, u32)> {
        paths.iter().map(|path| (*path).to_owned()).zip(1..).collect()
    }

    #[test]
    fn labels_what_begins_with_a_path_like_it() {
        let paths = numbered(&["/", "/sys", "/sys/net", "/sys/net/unix"]);
        let genfs = genfs(&paths);
        for (path, sid) in [
            ("/", 1),
            ("/kmsg", 1),
            ("/sys", 2),
            ("/sysvipc", 2),
            ("/sysvipc/net", 2),
            ("/sys/kernel", 2),
            ("/sys/net", 3),
            ("/sys/netfilter/unix", 3),
            ("/sys/net/unix/a", 4),
            ("/sys/net/unixes", 4),
        ] {
            assert_eq!(by_names(&genfs, 7, path), sid, "{path}");
            assert_eq!(by_strings(&paths, path, 1000), sid, "{path}");
        }
    }

    #[test]
    fn labels_only_what_is_in_a_directory_by_a_path_that_ends_in_a_slash() {
        let genfs = genfs(&numbered(&["/", "/a/"]));
        assert_eq!([by_names(&genfs, 7, "/a"), by_names(&genfs, 7, "/a/b"), by_names(&genfs, 7, "/ab")], [1, 2, 1]);
    }

    #[test]
    fn gives_the_default_where_policy_names_nothing() {
        let genfs = genfs(&numbered(&["/a/b"]));
        assert_eq!([by_names(&genfs, 7, "/a"), by_names(&genfs, 7, "/a/b"), by_names(&genfs, 7, "/")], [1000, 1, 1000]);
    }

    #[test]
    fn knows_a_node_below_each_name_that_policy_names() {
        // /proc/PID/net is labelled by its process; what lies in it is labelled by path.
        let genfs = genfs(&numbered(&["/", "/net"]));
        let net = genfs.find(7, b"net").unwrap();
        assert_eq!((net.sid, genfs.find(net.node, b"tcp")), (2, Some(Found { sid: 2, node: 0 })));
        assert_eq!(genfs.find(7, b"nets"), Some(Found { sid: 2, node: 0 }));
    }

    #[test]
    fn refuses_names_that_are_too_long_for_a_key_and_finds_names_that_are_longer() {
        let mut tree = Tree::default();
        let longest = "n".repeat(TG_GENFS_NAME as usize);
        assert_eq!(tree.insert(&format!("/{longest}n/a"), 1), Err(NameTooLong));
        assert!(tree.is_empty());
        tree.insert(&format!("/{longest}/a"), 2).unwrap();
        tree.insert(&format!("/{longest}"), 1).unwrap();
        let genfs = Genfs::new(&tree.entries(1, 9));
        assert_eq!(by_names(&genfs, 1, &format!("/{longest}/a")), 2);
        assert_eq!(by_names(&genfs, 1, &format!("/{longest}n/a")), 1);
    }

    #[test]
    fn keeps_a_path_that_enforcement_lives_by_and_what_is_below_it_whatever_their_labels() {
        let mut tree = Tree::default();
        tree.insert("/", 1).unwrap();
        tree.protect("/kernel/live").unwrap();
        tree.insert("/kernel", 2).unwrap();
        tree.insert("/kernel/livepatch/one", 3).unwrap();
        let genfs = Genfs::new(&tree.entries(1, 9));
        let survival = |path| by_names(&genfs, 1, path);
        assert_eq!(survival("/kernel"), 2);
        assert_eq!(survival("/kernel/lived"), 2 | TG_SID_SURVIVAL);
        assert_eq!(survival("/kernel/livepatch/two"), 2 | TG_SID_SURVIVAL);
        assert_eq!(survival("/kernel/livepatch/one/enabled"), 3 | TG_SID_SURVIVAL);
        assert_eq!(survival("/power"), 1);
    }

    /// A path of few letters, so that paths are often prefixes of others.
    fn random_path(random: &mut fastrand::Rng) -> String {
        let mut path = String::new();
        for _ in 0..random.u32(1..=3) {
            path.push('/');
            (0..random.u32(1..=3)).for_each(|_| path.push(if random.u32(..3) == 0 { 'b' } else { 'a' }));
        }
        path
    }

    #[test]
    fn agrees_with_the_rule_of_strings_on_random_paths() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut distinct = std::collections::HashSet::new();
        for _ in 0..400 {
            let mut paths: Vec<String> = (0..random.u32(..12)).map(|_| random_path(&mut random)).collect();
            if random.u32(..4) > 0 {
                paths.push("/".into());
            }
            if random.u32(..4) == 0 {
                paths.push(format!("{}/", random_path(&mut random)));
            }
            paths.sort();
            paths.dedup();
            let paths: Vec<(String, u32)> = paths.into_iter().zip(1..).collect();
            let genfs = genfs(&paths);
            for _ in 0..100 {
                let path = random_path(&mut random);
                let expected = by_strings(&paths, &path, 1000);
                assert_eq!(by_names(&genfs, 7, &path), expected, "{path} in {paths:?}");
                distinct.insert(expected);
            }
        }
        assert!(distinct.len() > 10, "the paths are too alike");
    }
}
