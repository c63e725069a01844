//! The cost of guests: a line per guest in `guests.tsv`, beside the test program's temporary files; `make test` adds them up.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    thread,
    time::Duration,
};

/// The unit of the times in `/proc/PID/stat`: USER_HZ, which is 100 on x86-64.
const TICK: Duration = Duration::from_millis(10);

/// The processor time of a process that has ended and was not waited for, with the children that it waited for: the
/// emulators. `None` while it runs.
pub(super) fn processor_of_ended(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("read what the program used");
    // The name, in parentheses, may contain anything; proc(5) numbers the fields after it from 3.
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("a name").1.split(' ').collect();
    let ticks = |number: usize| fields[number - 3].parse::<u32>().expect("a time");
    (fields[0] == "Z").then(|| TICK * (14..=17).map(ticks).sum())
}

/// Notes what a command has cost that boots guests.
pub(super) fn note(words: &[String], took: Duration, processor: Duration) {
    let [first, second, ..] = words else { return };
    if !["vm run", "vm save", "study run"].contains(&format!("{first} {second}").as_str()) {
        return;
    }
    let value = |option: &str| words.iter().skip_while(|word| *word != option).nth(1).map(Path::new);
    let kernel = value("--kernel").or_else(|| value("--saved")).and_then(Path::file_name);
    let kernel = kernel.map_or("-".into(), |name| name.to_string_lossy());
    let current = thread::current();
    let test = current.name().unwrap_or("-");
    let line =
        format!("{test}\t{first} {second}\t{kernel}\t{:.1}\t{:.1}\n", took.as_secs_f64(), processor.as_secs_f64());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests.tsv");
    // One write of a line at the file's end is whole, whatever other tests write.
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("note what a guest cost");
}
