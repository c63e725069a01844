//! Known answers, and labels that are not valid.

use siphasher::sip::SipHasher24;

use super::{Addresses, Claim, Flow, Key, MOST_TOLERANCE, Receiver, SealError, Sealed, nearest, window};
use crate::{Doi, Label, ReadError, ipv4, ipv6};

const TCP: u8 = 6;
const UDP: u8 = 17;
const GENERATION: u64 = 0x1122_3344_5566_7788;
const NOW: u64 = 213_000_123;

/// The key of SipHash's published vectors.
fn key() -> Key {
    Key { number: 3, secret: std::array::from_fn(|at| at as u8) }
}

fn doi() -> Doi {
    Doi::new(0x5447_0001).unwrap()
}

fn claim() -> Claim {
    Claim { context: 0x1234, node: 7, generation: GENERATION, window: NOW }
}

fn flow_4() -> Flow {
    let addresses = Addresses::V4([10, 77, 0, 1].into(), [10, 77, 0, 2].into());
    Flow { addresses, protocol: UDP, ports: (40000, 5001) }
}

fn flow_6() -> Flow {
    let addresses = Addresses::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    Flow { addresses, protocol: TCP, ports: (40000, 5001) }
}

fn sealed() -> Sealed {
    Sealed::seal(&claim(), &flow_4(), doi(), &key())
}

/// What a receiver says that knows `keys` and `generations` and accepts one window more or less.
fn open(sealed: &Sealed, flow: &Flow, keys: &[Key], generations: &[u64], now: u64) -> Result<Claim, SealError> {
    sealed.open(flow, &Receiver { doi: doi(), keys, generations, now, tolerance: 1 })
}

fn open_here(sealed: &Sealed, flow: &Flow) -> Result<Claim, SealError> {
    open(sealed, flow, &[key()], &[GENERATION], NOW)
}

#[test]
fn agrees_with_the_published_vectors_of_siphash() {
    // vectors.h of the reference implementation: key 00 01 .. 0f, input 00 01 .. of this length.
    let vectors = [
        (0, 0x726f_db47_dd0e_0e31),
        (1, 0x74f8_39c5_93dc_67fd),
        (7, 0xab02_00f5_8b01_d137),
        (8, 0x93f5_f579_9a93_2462),
        (15, 0xa129_ca61_49be_45e5),
        (28, 0xde4d_aaac_a71d_c9a5_u64),
    ];
    let input: Vec<u8> = (0..28).collect();
    for (length, hash) in vectors {
        assert_eq!(SipHasher24::new_with_key(&key().secret).hash(&input[..length]), hash, "{length}");
    }
}

#[test]
fn seals_as_another_implementation_does() {
    // Both MACs by a Python program written from the paper, over the bytes that the documentation lists.
    assert_eq!(sealed().mac, 0x313d_0127_94d0_2406);
    assert_eq!(Sealed::seal(&claim(), &flow_6(), doi(), &key()).mac, 0xc26d_347f_ee65_8a5f);
}

#[test]
fn writes_the_documented_layout_in_each_option() {
    let body = [1, 3, 0x1f, 0xbb, 0, 7, 0x77, 0x88, 0, 0, 0x12, 0x34, 6, 0x24, 0xd0, 0x94, 0x27, 1, 0x3d, 0x31];
    let cipso = sealed().write_cipso(doi());
    assert_eq!(cipso, [&[0x86, 28, 0x54, 0x47, 0, 1, 129, 22][..], &body].concat());
    assert_eq!(Sealed::read_cipso(&cipso), Ok((doi(), sealed())));
    let experiment = sealed().write_ipv4();
    assert_eq!(experiment, [&[158, 22][..], &body].concat());
    assert_eq!((Sealed::read_ipv4(&experiment), ipv4::pad(experiment).len()), (Ok(sealed()), 24));
    let header = ipv6::header(TCP, &sealed().write_ipv6());
    assert_eq!(header, [&[TCP, 2, 0x1e, 20][..], &body].concat());
    assert_eq!(Sealed::read_ipv6(&header[2..]), Ok(sealed()));
    let label = |doi| Ok(Some(Label::Sealed { doi, sealed: sealed() }));
    assert_eq!(Label::in_ipv4(&cipso), label(Some(doi())));
    assert_eq!(Label::in_ipv4(&ipv4::pad(sealed().write_ipv4())), label(None));
    assert_eq!(Label::in_ipv6(&header), label(None));
}

#[test]
fn opens_what_was_sealed_for_this_packet() {
    assert_eq!(open_here(&sealed(), &flow_4()), Ok(claim()));
    assert_eq!(open_here(&Sealed::seal(&claim(), &flow_6(), doi(), &key()), &flow_6()), Ok(claim()));
}

#[test]
fn refuses_a_label_that_was_moved_to_another_flow() {
    let addresses = |from, to| Addresses::V4([10, 77, 0, from].into(), [10, 77, 0, to].into());
    let others = [
        Flow { addresses: addresses(3, 2), ..flow_4() },
        Flow { addresses: addresses(1, 3), ..flow_4() },
        Flow { addresses: addresses(2, 1), ..flow_4() },
        Flow { protocol: TCP, ..flow_4() },
        Flow { ports: (40001, 5001), ..flow_4() },
        Flow { ports: (40000, 5000), ..flow_4() },
        Flow { ports: (5001, 40000), ..flow_4() },
        Flow { ports: (0, 0), ..flow_4() },
        Flow { addresses: flow_6().addresses, ..flow_4() },
    ];
    for other in others {
        assert_eq!(open_here(&sealed(), &other), Err(SealError::Mac), "{other:?}");
    }
}

#[test]
fn refuses_a_label_that_was_changed() {
    for changed in [
        Sealed { node: 8, ..sealed() },
        Sealed { context: 0x1235, ..sealed() },
        Sealed { window: sealed().window + 1, ..sealed() },
        Sealed { mac: sealed().mac ^ 1, ..sealed() },
        Sealed { mac: sealed().mac ^ 1 << 63, ..sealed() },
    ] {
        assert_eq!(open_here(&changed, &flow_4()), Err(SealError::Mac), "{changed:?}");
    }
    let other =
        Receiver { doi: Doi::new(2).unwrap(), keys: &[key()], generations: &[GENERATION], now: NOW, tolerance: 1 };
    assert_eq!(sealed().open(&flow_4(), &other), Err(SealError::Mac));
}

#[test]
fn opens_no_option_of_which_a_byte_was_changed() {
    let option = sealed().write_cipso(doi());
    for at in 0..option.len() {
        for change in 1..=255 {
            let mut changed = option.clone();
            changed[at] ^= change;
            if let Ok((doi, sealed)) = Sealed::read_cipso(&changed) {
                let receiver =
                    Receiver { doi, keys: &[key()], generations: &[GENERATION], now: NOW, tolerance: MOST_TOLERANCE };
                assert!(sealed.open(&flow_4(), &receiver).is_err(), "byte {at} with {:#04x}", changed[at]);
            }
        }
    }
}

#[test]
fn refuses_a_replay_after_its_window() {
    for now in [NOW - 1, NOW, NOW + 1] {
        assert_eq!(open(&sealed(), &flow_4(), &[key()], &[GENERATION], now), Ok(claim()));
    }
    for now in [NOW - 2, NOW + 2, NOW + 1000] {
        let error = SealError::Window { window: NOW, now };
        assert_eq!(open(&sealed(), &flow_4(), &[key()], &[GENERATION], now), Err(error));
    }
    // The low bits come again, and the window is another one.
    let again = NOW + (1 << 16);
    assert_eq!(open(&sealed(), &flow_4(), &[key()], &[GENERATION], again), Err(SealError::Mac));
}

#[test]
fn refuses_windows_beyond_the_greatest_tolerance() {
    let open_at = |now| {
        let receiver = Receiver { doi: doi(), keys: &[key()], generations: &[GENERATION], now, tolerance: u16::MAX };
        sealed().open(&flow_4(), &receiver)
    };
    let edge = u64::from(MOST_TOLERANCE);
    assert_eq!(open_at(NOW + edge), Ok(claim()));
    let error = SealError::Window { window: NOW, now: NOW + edge + 1 };
    assert_eq!(open_at(NOW + edge + 1), Err(error));
}

#[test]
fn opens_by_either_of_two_keys_and_refuses_others() {
    let next = Key { number: 4, secret: [9; 16] };
    let open_by = |sealed: &Sealed, keys: &[Key]| open(sealed, &flow_4(), keys, &[GENERATION], NOW);
    let by_next = Sealed::seal(&claim(), &flow_4(), doi(), &next);
    let both = [key(), next.clone()];
    assert_eq!((open_by(&sealed(), &both), open_by(&by_next, &both)), (Ok(claim()), Ok(claim())));
    assert_eq!(open_by(&sealed(), &[next]), Err(SealError::Key { number: 3 }));
    let same_number = Key { number: 3, secret: [9; 16] };
    assert_eq!(open_by(&sealed(), std::slice::from_ref(&same_number)), Err(SealError::Mac));
    assert_eq!(open_by(&sealed(), &[same_number, key()]), Ok(claim()));
}

#[test]
fn knows_generations_by_all_of_their_bits() {
    let open_by = |generations: &[u64]| open(&sealed(), &flow_4(), &[key()], generations, NOW);
    let same_end = GENERATION ^ 1 << 40;
    assert_eq!(open_by(&[1, same_end, GENERATION]), Ok(claim()));
    assert_eq!(open_by(&[same_end]), Err(SealError::Mac));
    assert_eq!(open_by(&[1]), Err(SealError::Generation { generation: 0x7788 }));
}

#[test]
fn finds_the_nearest_window_with_the_same_low_bits() {
    assert_eq!(nearest(5, 5), 5);
    assert_eq!(nearest(0xffff, 0x1_0000), 0xffff);
    assert_eq!(nearest(0, 0xffff), 0x1_0000);
    assert_eq!(nearest(0x7fff, 0x1_0000), 0x1_7fff);
    // No such window is near: it is far from any clock, and nothing panics.
    assert_eq!(nearest(0xffff, 0), u64::MAX);
    assert_eq!(nearest(0, u64::MAX), 0);
    assert_eq!((window(0), window(7), window(8)), (0, 0, 1));
}

#[test]
fn refuses_other_versions_and_lengths() {
    let mut option = sealed().write_ipv4();
    option[2] = 2;
    assert_eq!(Sealed::read_ipv4(&option), Err(ReadError::Version { found: 2 }));
    option[1] = 21;
    assert_eq!(Sealed::read_ipv4(&option[..21]), Err(ReadError::OptionLength { kind: 158, length: 21 }));
    assert_eq!(Sealed::read_ipv6(&[0x1e, 1, 1]), Err(ReadError::OptionLength { kind: 0x1e, length: 1 }));
    let short = [134, 9, 0, 0, 0, 1, 129, 3, 1];
    assert_eq!(Sealed::read_cipso(&short), Err(ReadError::TagLength { tag: 129, length: 3 }));
    let other = [134, 10, 0, 0, 0, 1, 1, 4, 0, 3];
    assert_eq!(Sealed::read_cipso(&other), Err(ReadError::TagType { tag: 1 }));
}

#[test]
fn keeps_the_secret_out_of_messages() {
    assert_eq!(format!("{:?}", key()), "Key { number: 3, .. }");
}

#[test]
fn numbers_contexts_by_the_key() {
    let key = |secret| Key { number: 1, secret: [secret; 16] };
    let identifier = key(1).identifier("u:r:t:s0");
    assert_eq!(identifier, Key { number: 2, secret: [1; 16] }.identifier("u:r:t:s0"));
    assert_ne!(identifier, key(1).identifier("u:r:t:s1"));
    assert_ne!(identifier, key(2).identifier("u:r:t:s0"));
    assert_ne!(identifier, 0);
}
