//! Asks the SELinux of the running kernel through selinuxfs. Where SELinux runs, a policy's decisions are compared with
//! its answers.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crate::{model::Policy, server::Ask};

/// Where selinuxfs is mounted.
pub const SELINUXFS: &str = "/sys/fs/selinux";
/// The maximum length of an answer: simple_transaction_get provides a page.
const PAGE: usize = 4096;
/// The flag with which the kernel marks a permissive source: `AVD_FLAGS_PERMISSIVE`.
const PERMISSIVE: u32 = 1;

/// Why the kernel cannot be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// There is no selinuxfs.
    #[error(
        "{} does not exist: the kernel must run SELinux (`lsm=` on its command line names selinux), and selinuxfs must be mounted: mount -t selinuxfs none {}",
        .root.display(), .root.display()
    )]
    NoSelinux {
        /// Where it should be mounted.
        root: PathBuf,
    },
    /// The kernel runs another policy.
    #[error("the kernel runs another policy than this: {difference}; load this one first, or compare with libsepol")]
    OtherPolicy {
        /// A difference between the two, in words.
        difference: String,
    },
    /// The kernel refused a question, or gave an answer that cannot be read.
    #[error("ask the kernel `{request}` by {}: {cause}", .file.display())]
    Ask {
        /// The file of selinuxfs.
        file: PathBuf,
        /// What was written to it.
        request: String,
        /// What went wrong.
        cause: io::Error,
    },
}

/// A decision of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Permissions that are granted, bit = number less 1.
    pub allowed: u32,
    /// Permissions whose grants are audited.
    pub auditallow: u32,
    /// Permissions whose denials are audited.
    pub auditdeny: u32,
    /// Whether the source's type is permissive.
    pub permissive: bool,
}

/// The kernel's security server.
#[derive(Debug)]
pub struct Kernel {
    root: PathBuf,
    enforcing: bool,
}

impl Kernel {
    /// The kernel whose selinuxfs is mounted at `root`. It must run `policy`: the same numbers for the same classes and
    /// permissions, the same values of booleans.
    pub fn open(root: &Path, policy: &Policy) -> Result<Self, KernelError> {
        let enforcing = fs::read_to_string(root.join("enforce"));
        let enforcing = enforcing.map_err(|_| KernelError::NoSelinux { root: root.to_owned() })?;
        let kernel = Self { root: root.to_owned(), enforcing: enforcing.trim() == "1" };
        match kernel.difference(policy) {
            None => Ok(kernel),
            Some(difference) => Err(KernelError::OtherPolicy { difference }),
        }
    }

    /// Whether the kernel enforces: if it does not, it makes objects of contexts that its policy does not permit.
    pub fn is_enforcing(&self) -> bool {
        self.enforcing
    }

    /// What shows that the kernel's policy is not `policy`.
    fn difference(&self, policy: &Policy) -> Option<String> {
        let read = |path: String| fs::read_to_string(self.root.join(path)).ok();
        let number = |path: String| read(path).and_then(|text| text.trim().parse::<usize>().ok());
        for (index, class) in policy.classes.iter().enumerate().filter(|(_, class)| !class.name.is_empty()) {
            let name = &class.name;
            if number(format!("class/{name}/index")) != Some(index) {
                return Some(format!("class {name} has another number"));
            }
            for (bit, permission) in class.permissions.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
                if number(format!("class/{name}/perms/{permission}")) != Some(bit + 1) {
                    return Some(format!("permission {permission} of class {name} has another number"));
                }
            }
        }
        for boolean in &policy.booleans {
            let value = read(format!("booleans/{}", boolean.name));
            let value = value.as_deref().and_then(|text| text.split_whitespace().next());
            if value != Some(if boolean.value { "1" } else { "0" }) {
                return Some(format!("boolean {} has another value", boolean.name));
            }
        }
        None
    }

    /// `security_compute_av_user`: the access vectors of two contexts and a class.
    pub fn access(&self, source: &str, target: &str, class: u32) -> Result<Access, KernelError> {
        let request = format!("{source} {target} {class} ffffffff");
        let answer = self.ask("access", &request).map_err(|cause| self.failed("access", &request, cause))?;
        let malformed = || io::Error::new(io::ErrorKind::InvalidData, format!("the answer was `{answer}`"));
        // allowed, decided, auditallow, auditdeny, sequence number (decimal), flags
        let words: Vec<u32> = answer.split_whitespace().map_while(|word| u32::from_str_radix(word, 16).ok()).collect();
        match words[..] {
            [allowed, _, auditallow, auditdeny, _, flags] => {
                Ok(Access { allowed, auditallow, auditdeny, permissive: flags & PERMISSIVE != 0 })
            }
            _ => Err(self.failed("access", &request, malformed())),
        }
    }

    /// Whether a context is valid (`security_context_to_sid`).
    pub fn is_valid(&self, context: &str) -> Result<bool, KernelError> {
        match self.ask("context", context) {
            Ok(_) => Ok(true),
            Err(cause) if cause.raw_os_error() == Some(libc::EINVAL) => Ok(false),
            Err(cause) => Err(self.failed("context", context, cause)),
        }
    }

    /// `security_transition_sid_user`, `security_member_sid` or `security_change_sid`: a labelling decision; `None`
    /// when the kernel refuses to make such a context, or there is none. Both contexts must be valid.
    pub fn label(
        &self,
        ask: Ask,
        source: &str,
        target: &str,
        class: u32,
        name: Option<&str>,
    ) -> Result<Option<String>, KernelError> {
        let file = match ask {
            Ask::Transition => "create",
            Ask::Member => "member",
            Ask::Change => "relabel",
        };
        let mut request = format!("{source} {target} {class}");
        if let Some(name) = name.filter(|_| ask == Ask::Transition) {
            request.push(' ');
            request.push_str(&escaped(name));
        }
        match self.ask(file, &request) {
            Ok(answer) => Ok(Some(answer)),
            // EINVAL: mls_context_glblub found no level
            Err(cause) if matches!(cause.raw_os_error(), Some(libc::EACCES | libc::EINVAL)) => Ok(None),
            Err(cause) => Err(self.failed(file, &request, cause)),
        }
    }

    /// `security_validate_transition_user`: whether `task` may relabel an object from `old` to `new`.
    pub fn validate(&self, old: &str, new: &str, task: &str, class: u32) -> Result<bool, KernelError> {
        let request = format!("{old} {new} {class} {task}");
        let written = OpenOptions::new()
            .write(true)
            .open(self.root.join("validatetrans"))
            .and_then(|mut file| file.write(request.as_bytes()));
        match written {
            Ok(_) => Ok(true),
            Err(cause) if cause.raw_os_error() == Some(libc::EPERM) => Ok(false),
            Err(cause) => Err(self.failed("validatetrans", &request, cause)),
        }
    }

    /// A question and its answer: one write and one read of a file that is opened anew each time, as simple
    /// transactions demand.
    fn ask(&self, file: &str, request: &str) -> io::Result<String> {
        let mut file: File = OpenOptions::new().read(true).write(true).open(self.root.join(file))?;
        // In one piece: the kernel takes each write for a question.
        if file.write(request.as_bytes())? != request.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let mut answer = [0; PAGE];
        let length = file.read(&mut answer)?;
        let text = String::from_utf8_lossy(&answer[..length]);
        Ok(text.trim_end_matches(['\0', '\n']).to_owned())
    }

    fn failed(&self, file: &str, request: &str, cause: io::Error) -> KernelError {
        KernelError::Ask { file: self.root.join(file), request: request.to_owned(), cause }
    }
}

/// A file name as `create` takes it: what is neither a letter, a digit nor one of `._-` as %XX (sel_write_create).
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Boolean, Class};

    fn policy() -> Policy {
        let file = Class { name: "file".into(), permissions: vec!["read".into(), "write".into()], ..Class::default() };
        Policy {
            classes: vec![Class::default(), file],
            booleans: vec![Boolean { name: "open_door".into(), value: true }],
            ..Policy::default()
        }
    }

    /// A folder that looks like selinuxfs.
    fn selinuxfs() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("enforce", "0");
        write("class/file/index", "1");
        write("class/file/perms/read", "1");
        write("class/file/perms/write", "2");
        write("booleans/open_door", "1 1");
        root
    }

    #[test]
    fn rejects_a_machine_without_selinux_and_says_what_to_do() {
        let error = Kernel::open(Path::new("/no/selinux"), &policy()).unwrap_err().to_string();
        assert!(error.contains("/no/selinux") && error.contains("lsm=") && error.contains("mount"), "{error}");
    }

    #[test]
    fn rejects_a_kernel_that_runs_another_policy() {
        let root = selinuxfs();
        assert!(!Kernel::open(root.path(), &policy()).unwrap().is_enforcing());
        let refused = |file: &str, text: &str, expected: &str| {
            let before = fs::read(root.path().join(file)).unwrap();
            fs::write(root.path().join(file), text).unwrap();
            let error = Kernel::open(root.path(), &policy()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("another policy"), "{error}");
            fs::write(root.path().join(file), before).unwrap();
        };
        refused("class/file/index", "2", "class file has another number");
        refused("class/file/perms/write", "3", "permission write of class file");
        refused("booleans/open_door", "0 0", "boolean open_door");
    }

    #[test]
    fn writes_names_as_the_kernel_reads_them() {
        assert_eq!(escaped("resolv.conf"), "resolv.conf");
        assert_eq!(escaped("a b+c%"), "a%20b%2bc%25");
    }

    #[test]
    fn reports_an_answer_that_is_none() {
        let root = selinuxfs();
        let kernel = Kernel::open(root.path(), &policy()).unwrap();
        fs::write(root.path().join("access"), "").unwrap();
        let error = kernel.access("a", "b", 1).unwrap_err().to_string();
        assert!(error.contains("`a b 1 ffffffff`") && error.contains("/access"), "{error}");
    }
}
