//! What a command line runs: a program of its own, or an interpreter with a script.

use std::path::{Path, PathBuf};

/// What a command line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program that can have a label of its own.
    Own(PathBuf),
    /// A program that many services use, such as an interpreter.
    Shared {
        /// Path of the program.
        program: PathBuf,
        /// The script that it executes, if one is named.
        script: Option<PathBuf>,
    },
}

/// How an interpreter reads its arguments.
struct Interpreter {
    /// Its names, without a version.
    names: &'static [&'static str],
    /// Options whose argument is the next word.
    takes: &'static [&'static str],
    /// Options whose argument is the script.
    script: &'static [&'static str],
    /// Options after which no script follows, because their argument is the code, or the name of a module.
    inline: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter { names: &["python", "pypy"], takes: &["-W", "-X"], script: &[], inline: &["-c", "-m"] },
    Interpreter { names: &["perl"], takes: &["-I", "-M", "-m"], script: &[], inline: &["-e", "-E"] },
    Interpreter { names: &["ruby", "jruby"], takes: &["-I", "-r", "-C", "-E"], script: &[], inline: &["-e"] },
    Interpreter {
        names: &["node", "nodejs", "deno", "bun"],
        takes: &["-r", "--require", "--import"],
        script: &["run"],
        inline: &["-e", "--eval", "-p", "--print"],
    },
    Interpreter {
        names: &["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"],
        takes: &["-o", "+o", "-O", "--rcfile", "--init-file"],
        script: &[],
        inline: &["-c"],
    },
    Interpreter {
        names: &["java"],
        takes: &["-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules"],
        script: &["-jar"],
        inline: &["-m", "--module"],
    },
    Interpreter {
        names: &["php", "php-cgi"],
        takes: &["-c", "-d", "-S", "-t", "-z"],
        script: &["-f"],
        inline: &["-r"],
    },
    Interpreter { names: &["lua", "luajit"], takes: &["-l"], script: &[], inline: &["-e"] },
    Interpreter { names: &["mono", "dotnet", "guile", "Rscript", "tclsh"], takes: &[], script: &[], inline: &["-c"] },
];

/// Programs that contain many others. Their arguments say which one runs.
const MULTIPLE: [&str; 2] = ["busybox", "toybox"];

impl Program {
    /// What a command line runs that is started in `folder`; `None`: it has no words.
    #[must_use]
    pub fn of(words: &[String], folder: &Path) -> Option<Self> {
        let (first, rest) = words.split_first()?;
        let (program, name) = (PathBuf::from(first), file_name(first));
        if name == "env" {
            let rest: Vec<String> = rest.iter().skip_while(|word| is_of_env(word)).cloned().collect();
            return Self::of(&rest, folder).or(Some(Self::Shared { program, script: None }));
        }
        if MULTIPLE.contains(&name) {
            return Some(Self::Shared { program, script: None });
        }
        let Some(interpreter) = interpreter(name) else { return Some(Self::Own(program)) };
        let script = interpreter.script(rest).map(|script| folder.join(script));
        Some(Self::Shared { program, script })
    }

    /// Path of the program itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(program) | Self::Shared { program, .. } => program,
        }
    }

    /// The file that is specific to the service: the script, or the program.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Own(program) => Some(program),
            Self::Shared { script, .. } => script.as_deref(),
        }
    }

    /// The same, as a program that others use as well.
    #[must_use]
    pub fn shared(self) -> Self {
        match self {
            Self::Own(program) => Self::Shared { program, script: None },
            shared @ Self::Shared { .. } => shared,
        }
    }
}

impl Interpreter {
    fn script<'w>(&self, words: &'w [String]) -> Option<&'w str> {
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if self.script.contains(&word) {
                return words.next();
            } else if self.inline.contains(&word) {
                return None;
            } else if self.takes.contains(&word) {
                words.next();
            } else if word == "--" {
                return words.next();
            } else if !word.starts_with(['-', '+']) {
                // For java it is the name of a class.
                return (!self.names.contains(&"java")).then_some(word);
            }
        }
        None
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word is an option of `env`, or a variable that it sets.
fn is_of_env(word: &str) -> bool {
    word.starts_with('-') || word.contains('=')
}

/// The interpreter with this name. `python3.11` is python.
fn interpreter(name: &str) -> Option<&'static Interpreter> {
    let stem = name.trim_end_matches(|end: char| end.is_ascii_digit() || matches!(end, '.' | '-'));
    INTERPRETERS.iter().find(|interpreter| interpreter.names.iter().any(|own| *own == name || *own == stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(line: &str) -> Program {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Program::of(&words, Path::new("/srv/app")).unwrap()
    }

    fn shared(program: &str, script: Option<&str>) -> Program {
        Program::Shared { program: program.into(), script: script.map(PathBuf::from) }
    }

    #[test]
    fn takes_a_program_for_its_own() {
        for path in ["/usr/sbin/nginx", "/usr/local/bin/notes", "/opt/a/python-notes", "/usr/bin/shell"] {
            assert_eq!(program(&format!("{path} -c /etc/conf")), Program::Own(path.into()), "{path}");
        }
    }

    #[test]
    fn finds_the_script_of_each_interpreter_behind_its_options() {
        for (line, script) in [
            ("/usr/bin/python3 -u -W ignore -X dev /opt/x.py --port 1", "/opt/x.py"),
            ("/usr/bin/python3.11 x.py", "/srv/app/x.py"),
            ("/usr/bin/perl -w -I /opt/lib /opt/x.pl", "/opt/x.pl"),
            ("/usr/bin/ruby3.1 -r json /opt/x.rb", "/opt/x.rb"),
            ("/usr/bin/node --require ./a.js --max-old-space-size=9 /opt/x.js", "/opt/x.js"),
            ("/bin/sh -e -o pipefail /opt/x.sh -c no", "/opt/x.sh"),
            ("/usr/bin/bash -- /opt/x.sh", "/opt/x.sh"),
            ("/usr/bin/java -Xmx1g -cp /a:/b -jar /opt/x.jar", "/opt/x.jar"),
            ("/usr/bin/php8.2 -d a=b -f /opt/x.php", "/opt/x.php"),
            ("/usr/bin/lua5.4 -l json /opt/x.lua", "/opt/x.lua"),
        ] {
            let first = line.split(' ').next().unwrap();
            assert_eq!(program(line), shared(first, Some(script)), "{line}");
        }
    }

    #[test]
    fn knows_that_no_file_is_named() {
        for line in [
            "/usr/bin/python3 -m http.server",
            "/usr/bin/python3 -c pass",
            "/bin/sh -c exec",
            "/usr/bin/java -cp /a org.example.Main",
            "/usr/bin/java -m app/org.example.Main",
            "/bin/busybox httpd -f /srv",
            "/usr/bin/perl",
        ] {
            assert_eq!(program(line), shared(line.split(' ').next().unwrap(), None), "{line}");
        }
    }

    #[test]
    fn looks_behind_env() {
        assert_eq!(program("/usr/bin/env -i A=b /opt/notes serve"), Program::Own("/opt/notes".into()));
        assert_eq!(program("/usr/bin/env python3 /opt/x.py"), shared("python3", Some("/opt/x.py")));
        assert_eq!(program("/usr/bin/env"), shared("/usr/bin/env", None));
    }

    #[test]
    fn gives_nothing_for_nothing() {
        assert_eq!(Program::of(&[], Path::new("/")), None);
    }
}
