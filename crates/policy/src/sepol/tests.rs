use super::*;

pub(crate) const SMALL: &str = "(handleunknown deny)
(mls true)
(policycap open_perms)
(class file (read write))
(class process (transition))
(classorder (file process))
(sid kernel)
(sidorder (kernel))
(sensitivity s0)
(sensitivityorder (s0))
(category c0)
(categoryorder (c0))
(sensitivitycategory s0 (c0))
(user system_u)
(role system_r)
(role object_r)
(roletype object_r file_t)
(userrole system_u system_r)
(userrole system_u object_r)
(userlevel system_u (s0))
(userrange system_u ((s0) (s0 (c0))))
(type kernel_t)
(type file_t)
(roletype system_r kernel_t)
(boolean tune false)
(sidcontext kernel (system_u system_r kernel_t ((s0) (s0))))
(macro reads ((type source))
    (allow source file_t (file (read))))
(block web
    (type t)
    (optional more
        (call reads (t))))
(booleanif tune
    (true
        (allow kernel_t file_t (file (write)))))
(filecon \"/a(/.*)?\" file (system_u object_r file_t ((s0) (s0))))
";

pub(crate) fn small() -> Vec<CilFile> {
    vec![CilFile { name: "small.cil".into(), text: SMALL.into() }]
}

fn compiled() -> Compiled {
    compile(&small(), &Options::default()).unwrap()
}

#[test]
fn compiles_a_policy_with_model_places_and_file_contexts() {
    let policy = compiled();
    assert_eq!(policy.image[..4], POLICY_MAGIC.to_le_bytes());
    let model = crate::dump::read(&policy.model).unwrap();
    assert_eq!(model.version, VERSION);
    assert!(model.types.iter().any(|type_| type_.name == "web.t"));
    assert_eq!(policy.file_contexts, "/a(/.*)?\t--\tsystem_u:object_r:file_t:s0\n");
    let places: Vec<String> = policy
        .lines
        .statements
        .iter()
        .filter(|statement| statement.text.contains("(allow"))
        .map(|statement| format!("{} {}", policy.lines.place(statement), statement.text))
        .collect();
    assert_eq!(policy.lines.missing, None);
    assert_eq!(
        places,
        [
            "small.cil:32 (allow web.t file_t (file (read)))",
            "small.cil:35 (booleanif (tune) (true (allow kernel_t file_t (file (write)))))"
        ]
    );
}

const TRY: Task = Task { name: "try", seconds: 10 };

fn refusal<T: std::fmt::Debug>(result: Result<T, SepolError>) -> String {
    result.unwrap_err().to_string()
}

fn with(text: &str) -> Vec<CilFile> {
    vec![CilFile { name: "small.cil".into(), text: format!("{SMALL}{text}").into_bytes() }]
}

#[test]
fn compiles_several_files_together_and_names_the_one_at_fault() {
    let mut files = small();
    files.push(CilFile {
        name: "more.cil".into(),
        text: b"\n(type more_t)\n(allow more_t absent_t (file (read)))".into(),
    });
    let error = refusal(compile(&files, &Options::default()));
    assert!(error.contains("more.cil:3"), "{error}");
    files[1].text = b"(type more_t)".into();
    assert!(compile(&files, &Options::default()).is_ok());
}

#[test]
fn names_file_and_line_of_a_syntax_error() {
    let error = refusal(compile(&with("(type a\n"), &Options::default()));
    assert!(error.contains("small.cil:38: "), "{error}");
    let error = refusal(compile(&with("(block b\n (nonsense a))\n"), &Options::default()));
    assert!(error.contains("Unknown keyword nonsense at small.cil:38"), "{error}");
    let error = refusal(compile(&with("(type \u{1})\n"), &Options::default()));
    assert!(error.contains("small.cil:37: ") && !error.contains('\u{1}'), "{error}");
}

#[test]
fn lists_the_rules_that_a_neverallow_forbids() {
    let broken = with(
        "(neverallow t_attr file_t (file (write)))\n(typeattribute t_attr)(typeattributeset t_attr (web.t))\n(allow web.t file_t (file (write)))\n",
    );
    let error = refusal(compile(&broken, &Options::default()));
    assert!(
        error.contains("neverallow") && error.contains("small.cil:37") && error.contains("small.cil:39"),
        "{error}"
    );
    assert!(compile(&broken, &Options { disable_neverallow: true, ..Options::default() }).is_ok());
}

#[test]
fn compiles_for_the_version_that_is_asked_for() {
    let old = compile(&small(), &Options { version: 30, ..Options::default() }).unwrap();
    assert_eq!(old.image[16..20], 30u32.to_le_bytes());
    let error = refusal(compile(&small(), &Options { version: 99, ..Options::default() }));
    assert!(error.contains("policy version 99; libsepol reads 19 up to 33"), "{error}");
}

#[test]
fn allows_repetition_only_where_it_is_asked_for() {
    let twice = with("(filecon \"/a(/.*)?\" file (system_u object_r file_t ((s0) (s0))))\n(type file_t)\n");
    assert!(compile(&twice, &Options::default()).is_err());
    let policy = compile(&twice, &Options { multiple_decls: true, ..Options::default() }).unwrap();
    assert_eq!(policy.file_contexts.lines().count(), 1);
    assert_eq!(policy.lines.missing, None);
}

#[test]
fn tells_a_policy_that_was_read_from_its_image() {
    let policy = compiled();
    let again = read(&policy.image).unwrap();
    assert_eq!((again.image, again.model), (policy.image, policy.model));
    assert!(again.lines.missing.is_some());
}

#[test]
fn rejects_what_is_not_a_binary_policy() {
    assert!(refusal(read(SMALL.as_bytes())).contains("not a binary policy"));
    let package = [0xf97c_ff8f_u32.to_le_bytes(), [0; 4]].concat();
    assert!(refusal(read(&package)).contains("not a binary policy"));
    let mut image = compiled().image;
    image[16] = 99;
    let error = refusal(read(&image));
    assert!(error.contains("policy version 99; libsepol reads 19 up to 33"), "{error}");
    assert!(refusal(module_to_cil(&compiled().image[..40])).contains("cannot turn the module package into CIL"));
}

#[test]
fn rejects_a_policy_cut_short_anywhere() {
    let image = compiled().image;
    for end in (0..image.len()).step_by(image.len() / 60).chain([image.len() - 1]) {
        assert!(read(&image[..end]).is_err(), "{end} of {}", image.len());
    }
}

#[test]
fn survives_every_flipped_bit_with_an_error_or_a_policy() {
    let image = compiled().image;
    let mut refused = 0;
    for flip in 0..300 {
        let mut damaged = image.clone();
        // Spread over the file, each bit of a byte in its turn.
        damaged[flip * image.len() / 300] ^= 1 << (flip % 8);
        match read_within(&damaged, Task { seconds: 1, ..READ }) {
            // Names need not be UTF-8 for libsepol.
            Ok(policy) => refused += u32::from(crate::dump::read(&policy.model).is_err()),
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    assert!(refused > 50, "{refused} of 300");
}

#[test]
fn turns_death_of_the_child_into_an_error() {
    let died = |work: fn(i32) -> i32| refusal(child::run(TRY, work));
    // SAFETY: the child has nothing that an abort could harm.
    let error = died(|_| unsafe { libc::abort() });
    assert!(error.contains("cannot try: its reader died of SIGABRT"), "{error}");
    let error = died(|_| panic!("in the child"));
    assert!(error.starts_with("cannot try"), "{error}");
    let error = died(|_| 0);
    assert!(error.contains("not whole"), "{error}");
    // SAFETY: getppid has no preconditions; it is not among the calls that are allowed.
    let error = died(|_| unsafe { libc::getppid() });
    assert!(error.contains("died of SIGSYS"), "{error}");
}

#[test]
fn denies_the_child_files_programs_and_executable_memory() {
    let died = |work: fn(i32) -> i32| refusal(child::run(TRY, work)).contains("died of SIGSYS");
    let answer = child::run(TRY, |out| {
        // SAFETY: the path is a C string.
        let opened = unsafe { libc::open(c"/etc/passwd".as_ptr(), libc::O_RDONLY) };
        let say = format!("{opened} {:?}", io::Error::last_os_error().raw_os_error());
        i32::from(!(shim::section(out, shim::CIL, say.as_bytes()) && shim::section(out, shim::END, &[])))
    });
    assert_eq!(answer.unwrap().cil.as_deref(), Some(&b"-1 Some(13)"[..]));
    // SAFETY: the paths are C strings and the lists end with a null pointer.
    assert!(died(|_| unsafe { libc::execl(c"/bin/true".as_ptr(), c"true".as_ptr(), std::ptr::null::<i8>()) }));
    // SAFETY: socket has no preconditions.
    assert!(died(|_| unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) }));
    // SAFETY: signal 0 of a process does nothing to it.
    assert!(died(|_| unsafe { libc::kill(1, 0) }));
    // SAFETY: a new mapping overlaps nothing.
    assert!(died(|_| unsafe {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        i32::from(libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0).is_null())
    }));
}

/// It was forked by a thread with an arena of its own, which glibc's `free` shrinks when enough of it is free, after a
/// look at /proc/sys/vm/overcommit_memory (`check_may_shrink_heap`): refused, and no reason to die.
#[test]
fn lets_the_child_give_back_what_it_allocated() {
    let answer = child::run(TRY, |out| {
        let pieces: Vec<Box<[u8]>> = (0..8 << 10).map(|_| vec![1_u8; 1 << 10].into_boxed_slice()).collect();
        let sum: usize = pieces.iter().map(|piece| usize::from(piece[7])).sum();
        drop(pieces);
        let say = sum.to_string();
        i32::from(!(shim::section(out, shim::CIL, say.as_bytes()) && shim::section(out, shim::END, &[])))
    });
    assert_eq!(answer.unwrap().cil.as_deref(), Some(&b"8192"[..]));
}

#[test]
fn denies_the_child_memory_without_bounds() {
    let answer = child::run(TRY, |out| {
        let huge = Vec::<u8>::new().try_reserve_exact(5 << 30).is_err();
        let say = format!("{huge}");
        i32::from(!(shim::section(out, shim::CIL, say.as_bytes()) && shim::section(out, shim::END, &[])))
    });
    assert_eq!(answer.unwrap().cil.as_deref(), Some(&b"true"[..]));
}

/// The processor's time that it may use would never be over.
#[test]
fn ends_a_child_that_stays_after_its_answer() {
    let task = Task { name: "stay", seconds: 60 };
    let error = refusal(child::run(task, |out| {
        shim::section(out, shim::END, &[]);
        let word = 0;
        loop {
            // SAFETY: it waits while the word, which outlives the call, is 0.
            unsafe { libc::syscall(libc::SYS_futex, &raw const word, libc::FUTEX_WAIT, 0, std::ptr::null::<i8>()) };
        }
    }));
    assert!(error.contains("cannot stay: its reader died of SIGKILL"), "{error}");
}

#[test]
fn rejects_answers_that_are_not_whole_or_not_answers() {
    let section = |tag: shim::Tag, length: u64, content: &[u8]| {
        [&tag.to_le_bytes()[..1], &length.to_le_bytes(), content].concat()
    };
    let whole = [section(shim::CIL, 3, b"abc"), section(shim::END, 0, b"")].concat();
    let answer = child::read_answer(&mut &whole[..]).unwrap();
    assert_eq!(answer.cil.as_deref(), Some(&b"abc"[..]));
    for end in 0..whole.len() {
        assert!(child::read_answer(&mut &whole[..end]).is_err(), "{end}");
    }
    for garbled in [section(shim::CIL, u64::MAX, b""), section(77, 0, b""), section(shim::END, 1, b"x")] {
        let error = child::read_answer(&mut &garbled[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{garbled:?}");
    }
}

#[test]
fn places_the_statements_of_macros_and_inherited_blocks_under_libsepol_too() {
    let policy = compile(
        &with(
            "(macro outer ((type x))\n (booleanif tune (true (call reads (x)))))\n(call outer (kernel_t))\n\
             (booleanif tune (false\n (call reads (kernel_t))))\n\
             (block base (blockabstract base)\n (type u) (allow u file_t (file (write))))\n\
             (block heir (blockinherit base))\n(in heir\n (allow u u (file (read))))\n",
        ),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(policy.lines.missing, None);
    let told: Vec<(u32, &str)> =
        policy.lines.statements.iter().filter(|s| s.line >= 37).map(|s| (s.line, s.text.as_str())).collect();
    assert_eq!(
        told,
        [
            (39, "(booleanif (tune) (true (allow kernel_t file_t (file (read)))))"),
            (41, "(booleanif (tune) (false (allow kernel_t file_t (file (read)))))"),
            (43, "(type heir.u)"),
            (43, "(allow heir.u file_t (file (write)))"),
            (46, "(allow heir.u heir.u (file (read)))"),
        ]
    );
}

/// The child is as hostile as what it reads: its answer is read to an end, or is an error.
#[test]
fn fuzz_answers_of_the_child_are_answers_or_errors() {
    let section = |tag: shim::Tag, content: &[u8]| {
        let head = tag.to_le_bytes().into_iter().take(1).chain((content.len() as u64).to_le_bytes());
        head.chain(content.iter().copied()).collect::<Vec<u8>>()
    };
    let policy = compiled();
    let good = [
        section(shim::IMAGE, &policy.image),
        section(shim::MODEL, &policy.model),
        section(shim::FILE_CONTEXTS, policy.file_contexts.as_bytes()),
        section(shim::CIL, SMALL.as_bytes()),
        section(shim::MESSAGES, b"a warning\x1b[2J\n"),
        section(shim::REFUSED_STEP, b"no"),
        section(shim::END, &[]),
    ]
    .concat();
    let short = [section(shim::MESSAGES, b"no"), section(shim::END, &[])].concat();
    assert!(child::read_answer(&mut good.as_slice()).is_ok());
    let mut whole = 0_u64;
    crate::fuzz::run(&[&good, &short], |bytes| {
        if let Ok(answer) = child::read_answer(&mut &*bytes) {
            whole += 1;
            messages(&answer.messages);
            let kept = [&answer.image, &answer.model, &answer.file_contexts, &answer.cil].into_iter().flatten();
            assert!(kept.map(Vec::len).sum::<usize>() <= bytes.len());
        }
    });
    assert!(whole > 0, "no mutation was read whole");
}

/// libsepol may die of a hostile image, this process may not: what comes is a policy that can be laid out, or an error.
#[test]
fn fuzz_binary_policies_are_policies_or_errors() {
    let everything = CilFile { name: "all.cil".into(), text: include_bytes!("../dump/everything.cil").to_vec() };
    let everything = compile(&[everything], &Options { without_lines: true, ..Options::default() }).unwrap();
    let mut read_whole = 0_u64;
    crate::fuzz::run(&[&compiled().image, &everything.image], |bytes| {
        if let Ok(compiled) = read_within(bytes, Task { seconds: 1, ..READ })
            && let Ok(model) = crate::dump::read(&compiled.model)
        {
            read_whole += 1;
            let _ = crate::tables::build(&model);
        }
    });
    assert!(read_whole > 0, "no mutation was read");
}
