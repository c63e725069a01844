//! Takes command lines and files out of a page, as its reader does.

/// The first word of a line that is a command.
const COMMANDS: [&str; 35] = [
    "apt",
    "apt-get",
    "audit2allow",
    "audit2why",
    "aureport",
    "ausearch",
    "cat",
    "cc",
    "cd",
    "chmod",
    "chown",
    "cp",
    "curl",
    "dpkg",
    "echo",
    "export",
    "grep",
    "install",
    "journalctl",
    "kill",
    "ls",
    "make",
    "mkdir",
    "mount",
    "mv",
    "restorecon",
    "rm",
    "sed",
    "semodule",
    "su",
    "sudo",
    "sysctl",
    "systemctl",
    "tollgate",
    "update-grub",
];

/// A command line, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// Indented or fenced lines, without their indentation.
#[derive(Debug)]
struct Block {
    number: usize,
    lines: Vec<String>,
}

/// The command lines of a page, in their order.
pub(crate) fn commands(page: &str) -> Vec<Line> {
    groups(page).into_iter().flatten().collect()
}

/// The same, grouped by blocks.
pub(crate) fn groups(page: &str) -> Vec<Vec<Line>> {
    blocks(page).iter().map(Block::commands).filter(|group| !group.is_empty()).collect()
}

/// The block that begins with this line.
pub(crate) fn file(page: &str, first: &str) -> Option<String> {
    let block = blocks(page).into_iter().find(|block| block.lines[0] == first)?;
    Some(block.lines.join("\n") + "\n")
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open, mut fenced): (Vec<Block>, bool, bool) = (Vec::new(), false, false);
    for (line, number) in page.lines().zip(1..) {
        let fence = line.trim_start().starts_with("```");
        if fence {
            fenced = !fenced;
        }
        let inside = !fence && (fenced || line.starts_with("    "));
        if inside && !open {
            blocks.push(Block { number, lines: Vec::new() });
        }
        if inside && let Some(block) = blocks.last_mut() {
            block.lines.push(line.to_owned());
        }
        open = inside;
    }
    blocks.into_iter().map(Block::dedented).collect()
}

impl Block {
    fn dedented(mut self) -> Self {
        let indent = |line: &String| line.len() - line.trim_start().len();
        let common = self.lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
        for line in &mut self.lines {
            *line = line.get(common..).unwrap_or_default().trim_end().to_owned();
        }
        self
    }

    /// If lines begin with `$`, those; else all lines, if they are commands.
    fn commands(&self) -> Vec<Line> {
        let numbered = || self.lines.iter().zip(self.number..);
        let line = |text: &str, number| Line { number, text: without_comment(text).to_owned() };
        let shown: Vec<_> =
            numbered().filter_map(|(text, number)| Some(line(text.strip_prefix("$ ")?, number))).collect();
        if !shown.is_empty() {
            return shown;
        }
        let (commands, others): (Vec<_>, Vec<_>) = numbered().partition(|(text, _)| is_command(text));
        // The `$` distinguishes what is typed from what is printed.
        let plain = others.iter().all(|(text, _)| text.is_empty() || text.starts_with('#'));
        assert!(commands.is_empty() || plain, "line {}: commands and something else: {others:?}", self.number);
        commands.into_iter().map(|(text, number)| line(text, number)).collect()
    }
}

fn is_command(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| COMMANDS.contains(&word))
}

/// A line without its comment, as the shell runs it.
fn without_comment(line: &str) -> &str {
    line.split_once("  #").map_or(line, |(command, _)| command).trim_end()
}

#[test]
fn takes_what_is_typed_and_leaves_what_is_printed() {
    let page = "Text.\n\n    $ tollgate status\n    tollgate: no daemon answers\n\n1. Then\n\n       cd /\n       cat file    # all of it\n\n\
                ```\nmake\n```\n\n    [Service]\n    ExecStart=make\n";
    let found: Vec<_> = commands(page).into_iter().map(|line| (line.number, line.text)).collect();
    let expected = [(3, "tollgate status"), (8, "cd /"), (9, "cat file"), (12, "make")];
    assert_eq!(found, expected.map(|(number, text)| (number, text.to_owned())));
    assert_eq!(file(page, "[Service]").unwrap(), "[Service]\nExecStart=make\n");
}
