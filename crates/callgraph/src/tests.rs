//! The whole path from bytes to hooks, on a small kernel, and on damaged copies of it.

use crate::{
    Error, Graph, Image, Reach, Search, Source, StopList, Symbols,
    sample::{self, Layout, at},
};

fn reach(stop: &str, direct_only: bool) -> Reach {
    let graph = sample::graph(Layout::OffsetsLast).unwrap();
    Search::new(&graph, &StopList::parse(stop).unwrap(), direct_only).of("open").unwrap()
}

fn names(reach: &Reach) -> Vec<(&str, bool, usize)> {
    reach.hooks.iter().map(|hook| (hook.hook.as_str(), hook.direct, hook.depth)).collect()
}

#[test]
fn reaches_hooks_by_calls_by_tail_jumps_and_through_operation_tables() {
    let reach = reach("", false);
    assert_eq!(names(&reach), [("file_open", true, 2), ("inode_permission", false, 3)]);
    let way: Vec<_> =
        reach.hooks[1].path.iter().map(|step| (step.function.as_str(), step.pointer.as_deref())).collect();
    let expected = [
        ("__x64_sys_open", None),
        ("vfs_open", None),
        ("ext_open", Some("ops.open")),
        ("security_inode_permission", None),
    ];
    assert_eq!(way, expected);
}

#[test]
fn counts_functions_and_calls_of_which_nothing_is_known() {
    let reach = reach("", false);
    // The direct ones are open, vfs_open, logs and security_file_open; pointers add ext_open and security_inode_permission.
    assert_eq!((reach.functions.direct, reach.functions.all, reach.unknown), (4, 6, 1));
}

#[test]
fn follows_no_pointer_where_only_direct_calls_are_asked_for() {
    assert_eq!(names(&reach("", true)), [("file_open", true, 2)]);
}

#[test]
fn enters_no_function_of_the_stop_list() {
    assert_eq!(names(&reach("vfs_open  a test\n", false)), []);
    assert_eq!(reach("logs  a test\n", false).unknown, 0);
}

#[test]
fn adds_calls_that_are_made_later() {
    let later = reach("logs -> security_inode_permission  a test\n", true);
    assert_eq!(names(&later), [("file_open", true, 2), ("inode_permission", true, 2)]);
}

#[test]
fn knows_hooks_by_what_they_ask_not_by_their_names() {
    let graph = sample::graph(Layout::OffsetsLast).unwrap();
    let asking: Vec<_> = graph.hook_functions().map(|(name, _)| name).collect();
    assert_eq!(asking, ["file_open", "inode_permission"]);
    // A hook that no function calls is a hook as well.
    assert!(graph.hooks().contains("inode_unlink"));
}

#[test]
fn offers_names_like_the_one_that_no_system_call_has() {
    let graph = sample::graph(Layout::OffsetsLast).unwrap();
    let error = Search::new(&graph, &StopList::default(), false).of("ope").unwrap_err();
    assert_eq!(error.to_string(), "this kernel has no system call \"ope\"; there is open");
}

#[test]
fn reads_kallsyms_in_every_order_that_kernels_had() {
    let layouts =
        [Layout::OffsetsFirst, Layout::WithOrder, Layout::OffsetsLast, Layout::PlainOffsets, Layout::OwnPlaces];
    for layout in layouts {
        let image = Image::parse(sample::elf(layout)).unwrap();
        let symbols = Symbols::of(&image, None).unwrap_or_else(|e| panic!("{layout:?}: {e}"));
        assert_eq!(symbols.source(), Source::Kallsyms);
        let found: Vec<_> =
            symbols.all().iter().map(|s| (s.address, format!("{}{}", char::from(s.kind), s.name))).collect();
        assert_eq!(found, sample::symbols(), "{layout:?}");
    }
}

#[test]
fn takes_a_system_map_where_there_is_one_and_not_its_stub() {
    let image = Image::parse(sample::elf(Layout::None)).unwrap();
    let symbols = Symbols::of(&image, Some(&sample::map())).unwrap();
    assert_eq!((symbols.source(), symbols.address("vfs_open")), (Source::File, Some(at("vfs_open"))));
    let stub = "ffffffffffffffff B The real System.map is in the linux-image-<version>-dbg package\n";
    assert!(matches!(Symbols::of(&image, Some(stub)), Err(Error::NoSymbols)));
    let with_kallsyms = Image::parse(sample::elf(Layout::OffsetsLast)).unwrap();
    assert_eq!(Symbols::of(&with_kallsyms, Some(stub)).unwrap().source(), Source::Kallsyms);
}

#[test]
fn refuses_symbols_of_addresses_that_the_image_does_not_have() {
    let image = Image::parse(sample::elf(Layout::None)).unwrap();
    let moved = sample::map().replace("ffffffff81", "ffffffff91");
    let error = Symbols::of_map(&image, &moved).unwrap_err().to_string();
    assert!(error.contains("nokaslr"), "{error}");
}

#[test]
fn refuses_a_section_that_lies_past_the_last_address() {
    let mut file = sample::elf(Layout::None);
    let place = file.windows(8).position(|window| window == sample::TEXT.to_le_bytes()).unwrap();
    file[place..place + 8].copy_from_slice(&(u64::MAX - 16).to_le_bytes());
    let refused = Image::parse(file).unwrap_err().to_string();
    assert!(refused.contains("past the last address"), "{refused}");
}

#[test]
fn says_what_is_unknown_without_types() {
    let mut file = sample::elf(Layout::OffsetsLast);
    let name = file.windows(5).position(|window| window == b".BTF\0").unwrap();
    file[name + 1] = b'X';
    let image = Image::parse(file).unwrap();
    let graph = Graph::of(&image, &Symbols::of(&image, None).unwrap()).unwrap();
    assert!(!graph.figures().types);
    let reach = Search::new(&graph, &StopList::default(), false).of("open").unwrap();
    // Direct calls are followed as before; the call through file->op->open is unknown now.
    assert_eq!((names(&reach), reach.unknown), (vec![("file_open", true, 2)], 2));
}

#[test]
fn refuses_a_kernel_whose_functions_ask_nobody() {
    let image = Image::parse(sample::elf(Layout::None)).unwrap();
    let without = sample::map().replace("security_hook_heads", "other");
    let symbols = Symbols::of_map(&image, &without).unwrap();
    assert!(matches!(Graph::of(&image, &symbols), Err(Error::NoHooks)));
}

fn whole_way(file: Vec<u8>) -> Result<usize, Error> {
    let image = Image::parse(file)?;
    let graph = Graph::of(&image, &Symbols::of(&image, None)?)?;
    let all = Search::new(&graph, &StopList::own(), false).all();
    Ok(all.iter().map(|reach| reach.hooks.len()).sum())
}

#[test]
fn panics_at_no_image_that_has_bytes_changed_or_cut_off() {
    let layouts = [Layout::WithOrder, Layout::OffsetsLast, Layout::OwnPlaces];
    let mut random = fastrand::Rng::with_seed(1);
    let (mut read, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut file = sample::elf(layouts[round % layouts.len()]);
        for _ in 0..random.usize(1..=8) {
            let place = random.usize(..file.len());
            // Numbers at the limits find more errors than random bytes.
            file[place] = [0, 1, 0x7f, 0x80, 0xff, random.u8(..)][random.usize(..6)];
        }
        if round % 5 == 0 {
            file.truncate(random.usize(..file.len()));
        }
        match whole_way(if round % 2 == 0 { file } else { sample::bzimage(&file) }) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    // Both must occur, or this test proves nothing.
    assert!(read > 500 && refused > 500, "{read} {refused}");
}
