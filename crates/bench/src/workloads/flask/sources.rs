//! The program that is built: as many files, lines and bytes as that of Flask's evaluation, the same in every run.

use std::fmt::Write as _;

/// The functions of the program.
const FUNCTIONS: &str = include_str!("functions.c");
const TYPES: &str = include_str!("types.h");
/// The separator of functions in that file.
const BETWEEN: &str = "/* == */\n";
/// The number of sources besides `main.c`.
const UNITS: usize = 19;
/// The lines of each of them.
const UNIT_LINES: usize = 391;
/// The lines of all files except the makefile (Flask's Table 5).
const LINES: usize = 8060;
/// Headers that declare the functions of units, beside `types.h`.
const HEADERS: [&str; 3] = ["lower.h", "middle.h", "upper.h"];

/// A file of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
}

impl Source {
    fn new(name: impl Into<String>, text: String) -> Source {
        Source { name: name.into(), text }
    }
}

/// A unit: its functions, and the file that holds them.
struct Unit {
    functions: Vec<String>,
    source: Source,
}

/// All files: 4 headers, 20 sources, the makefile.
pub(super) fn sources() -> Vec<Source> {
    let units: Vec<Unit> = (1..=UNITS).map(unit).collect();
    let mut files = vec![Source::new("types.h", TYPES.to_owned())];
    let share = UNITS.div_ceil(HEADERS.len());
    files.extend(HEADERS.iter().zip(units.chunks(share)).map(|(name, units)| header(name, units)));
    let main = main(&units);
    files.extend(units.into_iter().map(|unit| unit.source));
    let lines: usize = files.iter().map(|file| lines(&file.text)).sum();
    files.push(Source::new("main.c", filled(main, LINES.saturating_sub(lines))));
    files.push(makefile());
    files
}

fn unit(number: usize) -> Unit {
    let kinds: Vec<&str> = FUNCTIONS.split(BETWEEN).skip(1).collect();
    let mut text = format!("/* Unit {number} of the program. */\n#include \"types.h\"\n");
    let mut functions = Vec::new();
    // Each unit begins with another kind; if one has no room left, the next may have.
    let mut turn = number;
    while let Some(kind) =
        (turn..turn + kinds.len()).find(|kind| lines(&text) + lines(kinds[kind % kinds.len()]) < UNIT_LINES)
    {
        let name = format!("unit{number:02}_{:02}", functions.len());
        let seed = (number * 1000 + functions.len()) * 7919 + 1;
        let function = kinds[kind % kinds.len()].replace("NAME", &name).replace("SEED", &seed.to_string());
        text.push('\n');
        text.push_str(&function);
        functions.push(name);
        turn = kind + 1;
    }
    Unit { functions, source: Source::new(format!("unit{number:02}.c"), filled(text, UNIT_LINES)) }
}

fn header(name: &str, units: &[Unit]) -> Source {
    let guard = name.to_uppercase().replace('.', "_");
    let mut text = format!("#ifndef {guard}\n#define {guard}\n\n#include \"types.h\"\n");
    for unit in units {
        // Writing to a string does not fail.
        let _ = write!(text, "\n/* {} */\n", unit.source.name);
        unit.functions.iter().for_each(|function| text.push_str(&format!("word {function}(word input);\n")));
    }
    text.push_str("\n#endif\n");
    Source::new(name, text)
}

/// The program's entry, which calls every function once, and ends by exit(0).
fn main(units: &[Unit]) -> String {
    let mut text = String::from("/* Calls every function once. */\n");
    HEADERS.iter().for_each(|header| text.push_str(&format!("#include \"{header}\"\n")));
    text.push_str("\nvoid _start(void)\n{\n\tword sum = 1;\n\n");
    let functions = units.iter().flat_map(|unit| &unit.functions);
    functions.for_each(|function| text.push_str(&format!("\tsum ^= {function}(sum);\n")));
    text.push_str(
        "\t__asm__ volatile(\"syscall\" : : \"a\"(60), \"D\"(sum == 1) : \"rcx\", \"r11\", \"memory\");\n}\n",
    );
    text
}

fn makefile() -> Source {
    let mut objects: Vec<String> = (1..=UNITS).map(|number| format!("unit{number:02}.o")).collect();
    objects.push("main.o".to_owned());
    let text = format!(
        "CC = gcc\nCFLAGS = -O0 -ffreestanding -fno-stack-protector\nOBJECTS = {}\n\n\
         program: $(OBJECTS)\n\t$(CC) -nostdlib -static -o $@ $(OBJECTS)\n\n\
         $(OBJECTS): types.h\nmain.o: {}\n",
        objects.join(" "),
        HEADERS.join(" ")
    );
    Source::new("Makefile", text)
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// The text with empty lines at its end, up to this number of lines.
fn filled(mut text: String, count: usize) -> String {
    let missing = count.saturating_sub(lines(&text));
    text.extend(std::iter::repeat_n('\n', missing));
    text
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn has_the_files_and_lines_of_flasks_program() {
        let files = sources();
        let of = |ending: &str| files.iter().filter(|file| file.name.ends_with(ending)).count();
        assert_eq!((of(".c"), of(".h"), files.len()), (20, 4, 25));
        let sources = || files.iter().filter(|file| file.name != "Makefile");
        assert_eq!(sources().map(|file| lines(&file.text)).sum::<usize>(), LINES);
        // "About 190 KB"
        let bytes: usize = sources().map(|file| file.text.len()).sum();
        assert!((185_000..=200_000).contains(&bytes), "{bytes}");
        // Hardly any of it is empty lines.
        let empty = |file: &Source| file.text.len() - file.text.trim_end().len();
        assert!(sources().all(|file| empty(file) < 16), "{:?}", sources().map(empty).collect::<Vec<_>>());
    }

    #[test]
    fn builds_with_the_systems_compiler_and_runs() {
        let folder = tempfile::tempdir().unwrap();
        for file in sources() {
            fs::write(folder.path().join(file.name), file.text).unwrap();
        }
        let compiled = Command::new("make").arg("-s").current_dir(folder.path()).output().unwrap();
        assert!(compiled.status.success() && compiled.stderr.is_empty(), "{compiled:?}");
        assert_eq!(Command::new(folder.path().join("program")).status().unwrap().code(), Some(0));
    }
}
