//! Machines that are saved once they have booted: what goes on from them is as good as booted, and one's own.
//!
//! QEMU, and a kernel in the cache or a network to fetch it, are needed: without them these tests fail, and say so.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::program::{Ended, Scratch, entries, guests::take, word};

/// Saves a machine with these words of `vm save`.
fn save(scratch: &Scratch, more: &[&str]) -> (PathBuf, Ended) {
    let machine = scratch.path("machine, saved");
    let _place = take(1);
    let ended = scratch.run(&[&["vm", "save", "-o", word(&machine)], more].concat());
    (machine, ended)
}

/// Lets a machine go on.
fn go_on(scratch: &Scratch, machine: &Path, more: &[&str]) -> Ended {
    let _place = take(1);
    scratch.run(&[&["vm", "run", "--saved", word(machine)], more].concat())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn continues_twice_with_files_time_and_random_numbers_of_its_own() {
    let scratch = Scratch::new();
    let [kept, changed, sent] = ["kept", "changed", "sent"].map(|name| scratch.file(name, &format!("{name}\n")));
    let [kept, changed, sent] =
        [kept, changed, sent].map(|path| format!("{}:/in/{}", word(&path), path.file_name().unwrap().display()));
    let prepare = "echo other > /in/changed; echo left > /in/left; echo prepared; sleep 1000 &";
    let contents = ["--lsm", "yama,landlock", "--module", "overlay", "--file", &kept, "--file", &changed];
    let (machine, ended) = save(&scratch, &[&contents[..], &["--", "sh", "-c", prepare]].concat());
    assert_eq!(ended.with(0).says(&["saved in", "kernel 6.1."]).stdout, "prepared\n");
    let script = "cat /sys/kernel/security/lsm; echo; cat /in/*; dd if=/dev/urandom bs=8 count=64 2>/dev/null | od -A n -v -t x8 -w512; date +%s
        grep -c -E '^(brd|overlay) ' /proc/modules; pidof sleep >/dev/null && echo running
        echo mine > /in/mine; echo err >&2; exit 7";
    let files = ["--file", &kept, "--file", &changed, "--file", &sent, "--module", "brd", "--module", "overlay"];
    let mut random = Vec::new();
    for _ in 0..2 {
        let before = now();
        let ended = go_on(&scratch, &machine, &[&files[..], &["--", "sh", "-c", script]].concat());
        let ended = ended.with(7).says(&["err\n", "(as it was saved)", "kernel 6.1."]);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        // What was changed in the machine is as the command line says, and nothing is of the guest before.
        let expected = ["lockdown,capability,yama,landlock", "changed", "kept", "left", "sent"];
        assert_eq!(lines[..5], expected, "{}", ended.stdout);
        random.extend(lines[5].split_whitespace().map(str::to_owned));
        let time: u64 = lines[6].parse().unwrap();
        assert!((before..=now()).contains(&time), "{before} {time}");
        assert_eq!(lines[7..], ["2", "running"], "{}", ended.stdout);
    }
    // Generators of one state give the same numbers again, whatever else has asked them meanwhile.
    assert_eq!((random.len(), random.iter().collect::<BTreeSet<_>>().len()), (128, 128), "{random:?}");
}

#[test]
fn saves_nothing_unless_the_command_succeeds() {
    let scratch = Scratch::new();
    let (machine, ended) = save(&scratch, &["--", "sh", "-c", "echo out; echo why >&2; exit 3"]);
    assert_eq!(ended.with(2).says(&["why\n", "ended with status 3: the machine was not saved"]).stdout, "out\n");
    assert!(!machine.exists());
    let left: Vec<PathBuf> = entries(scratch.path(".").as_path());
    assert!(!left.iter().any(|path| word(path).contains(".tollgate-")), "{left:?}");
}

#[test]
fn refuses_a_saved_machine_that_is_none_or_anothers() {
    let scratch = Scratch::new();
    let (machine, ended) = save(&scratch, &["--memory", "256"]);
    ended.with(0);
    save(&scratch, &[]).1.refused(&["exists already", "name another folder"]);
    for option in ["--kernel=6.1", "--lsm=bpf", "--memory=256", "--cpus=2", "--append=x", "--clock=wall", "--volume=x"]
    {
        let name = option.split('=').next().unwrap();
        go_on(&scratch, &machine, &[option, "--", "true"]).refused(&["'--saved <FOLDER>' cannot be used with", name]);
    }
    go_on(&scratch, &scratch.path("none"), &["--", "true"]).refused(&["none holds no saved machine", "vm save -o"]);
    let record = machine.join("machine.json");
    let text = fs::read_to_string(&record).unwrap();
    let with = |key: &str| {
        let mut other: serde_json::Value = serde_json::from_str(&text).unwrap();
        other[key] = "another".into();
        fs::write(&record, other.to_string()).unwrap();
        go_on(&scratch, &machine, &["--", "true"])
    };
    with("emulator").refused(&["was saved by another, and this is QEMU emulator version", "save it again"]);
    with("program").refused(&["was saved by another build of this program", "save it again"]);
    fs::write(&record, "{").unwrap();
    go_on(&scratch, &machine, &["--", "true"]).refused(&["machine.json", "holds no saved machine"]);
    fs::write(&record, &text).unwrap();
    // What the machine has is still there, without its initramfs.
    go_on(&scratch, &machine, &["--", "grep", "-c", "processor", "/proc/cpuinfo"]).with(0);
    fs::write(machine.join("state"), "nonsense").unwrap();
    go_on(&scratch, &machine, &["--", "true"]).refused(&["QEMU ended early"]);
}

/// One end boots, and the other goes on from a saved machine; a third guest at an end that is taken is refused.
#[test]
fn joins_two_guests_by_a_wire() {
    // Each notices programs that are left behind, and one guest runs while others end.
    let (scratch, second) = (Scratch::new(), Scratch::new());
    let (machine, ended) = save(&scratch, &["--", "sh", "-c", "true"]);
    ended.with(0);
    let [one, two] = ["one", "two, here"].map(|name| word(&scratch.path(name)).to_owned());
    let address = |own: u8| {
        format!("ip addr add 10.77.0.{own}/24 dev eth0 && ip link set eth0 up; cat /sys/class/net/eth0/address")
    };
    let asks = format!("{}; until ping -c 1 -W 1 10.77.0.2; do sleep 1; done", address(1));
    let answers = format!("{}; echo there; sleep 100000", address(2));
    let _places = take(2);
    let wires = [format!("{one}:{two}"), format!("{two}:{one}")];
    let at = |scratch: &Scratch, own: usize, more: &[&str]| {
        scratch.tollgate(&[&["vm", "run", "--wire", &wires[own]], more].concat())
    };
    let mut answering = scratch.start(at(&scratch, 1, &["--saved", word(&machine), "--", "sh", "-c", &answers]));
    answering.wait_until("the guest is there", |guest| guest.stdout().contains("there"));
    second.finish(at(&second, 1, &["--", "true"])).refused(&["two, here", "another guest or program is at this end"]);
    let asked = second.finish(at(&second, 0, &["--", "sh", "-c", &asks])).with(0).stdout;
    assert!(asked.contains("64 bytes from 10.77.0.2"), "{asked}");
    let hardware = |output: &str| output.lines().find(|line| line.starts_with("52:54:00:")).map(str::to_owned);
    assert!(hardware(&asked).is_some() && hardware(&asked) != hardware(&answering.stdout()), "{asked}");
    answering.interrupt();
    answering.finish().with(130);
    assert!(!Path::new(&one).exists() && !Path::new(&two).exists(), "a socket was left");
}
