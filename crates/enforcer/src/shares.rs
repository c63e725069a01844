//! Shares of limited resources: how many places in the maps each user, and each confined domain of root, may take and
//! has taken.
//!
//! The kernel's half is `bpf/share.h`. Both count in the programs' global variables.

use std::{
    collections::HashMap,
    fs,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use tollgate_abi::enforcer::{
    TG_EIGHTHS_OF_DOMAINS, TG_EIGHTHS_OF_ONE, TG_EIGHTHS_OF_USERS, TG_FIRST_SHARE_OF_DOMAINS, TG_FIRST_SHARE_OF_USERS,
    TG_HOLDERS_DOMAINS, TG_HOLDERS_MACHINE, TG_HOLDERS_USERS, TG_OWNERS_LOST, TG_OWNERS_LOST_OF_MACHINE,
    TG_SHARE_TRIES, TG_SHARES, TG_SHARES_OF_DOMAINS, TG_SHARES_OF_USERS, TG_SUBORDINATES, tg_holders, tg_share,
    tg_state, tg_subordinate,
};
use tollgate_client::shares::{Held, Room};

use crate::{contexts::Sid, mapping::Mapping};

/// The number of places of a room, for example `labels=4194304`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// The limited resource.
    pub room: Room,
    /// Number of places.
    pub places: u32,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = Room::ALL.map(Room::name).join(", ");
        let (name, places) = text.split_once('=').ok_or(format!("expected ROOM=PLACES, ROOM one of {names}"))?;
        let room = Room::ALL.into_iter().find(|room| room.name() == name);
        let room = room.ok_or(format!("there is no room {name}: name one of {names}"))?;
        let places: u32 = places.parse().map_err(|_| format!("{places} is not a number of places"))?;
        let sizes = room.sizes();
        if !sizes.contains(&places) {
            return Err(format!("{room} can have {} to {} places", sizes.start(), sizes.end()));
        }
        Ok(Self { room, places })
    }
}

/// A holder of places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Unconfined root, the kernel and the daemon. They have no share and may take everything.
    Machine,
    /// A confined domain of root.
    Domain(Sid),
    /// A user, by uid.
    User(u32),
}

impl Holder {
    /// The holder that a process counts as.
    #[must_use]
    pub fn of(uid: u32, sid: Sid, unconfined: bool) -> Self {
        match uid {
            0 if unconfined => Self::Machine,
            0 => Self::Domain(sid),
            _ => Self::User(uid),
        }
    }

    /// The holder of the label of a file that a walk finds.
    #[must_use]
    pub fn of_file(owner: u32) -> Self {
        Self::of(owner, 0, true)
    }

    fn word(self) -> u64 {
        let (holders, number): (tg_holders, u32) = match self {
            Self::Machine => return 0,
            Self::Domain(sid) => (TG_HOLDERS_DOMAINS, sid),
            Self::User(uid) => (TG_HOLDERS_USERS, uid),
        };
        u64::from(holders) << 32 | u64::from(number)
    }

    /// The places in which the holder's share is searched (`tg_share_at`), and the common place if none is free.
    fn places(self) -> (Vec<u32>, u32) {
        let (number, first, count, common) = match self {
            Self::Machine => return (Vec::new(), TG_HOLDERS_MACHINE),
            Self::Domain(sid) => (sid, TG_FIRST_SHARE_OF_DOMAINS, TG_SHARES_OF_DOMAINS, TG_HOLDERS_DOMAINS),
            Self::User(uid) => (uid, TG_FIRST_SHARE_OF_USERS, TG_SHARES_OF_USERS, TG_HOLDERS_USERS),
        };
        let hash = number.wrapping_mul(0x9e37_79b1) >> 16;
        ((0..TG_SHARE_TRIES).map(|attempt| first + (hash + attempt) % count).collect(), common)
    }
}

/// The place of a share (`tg_state.shares`).
pub type Place = u16;

/// The shares, in the programs' global variables.
#[derive(Debug, Clone)]
pub struct Shares(Arc<Mapping<tg_state>>);

fn holders_of(place: u32) -> tg_holders {
    match place {
        TG_HOLDERS_MACHINE | TG_HOLDERS_DOMAINS | TG_HOLDERS_USERS => place,
        TG_FIRST_SHARE_OF_USERS.. => TG_HOLDERS_USERS,
        _ => TG_HOLDERS_DOMAINS,
    }
}

/// How many places holders of a kind may take: one of them, and all together.
fn parts(holders: tg_holders, all: u32) -> (u32, u32) {
    match holders {
        TG_HOLDERS_MACHINE => (all, all),
        TG_HOLDERS_USERS => (all / 8 * TG_EIGHTHS_OF_ONE, all / 8 * TG_EIGHTHS_OF_USERS),
        _ => (all / 8 * TG_EIGHTHS_OF_ONE, all / 8 * TG_EIGHTHS_OF_DOMAINS),
    }
}

impl Shares {
    pub(crate) fn new(state: Arc<Mapping<tg_state>>) -> Self {
        Self(state)
    }

    fn share(&self, place: u32) -> *mut tg_share {
        // SAFETY: the index is below the number of shares, which lie in the mapping.
        unsafe { (&raw mut (*self.0.get()).shares[0]).add(place.min(TG_SHARES - 1) as usize) }
    }

    fn holder(&self, place: u32) -> &AtomicU64 {
        // SAFETY: the member lies in the mapping and is aligned; programs and daemon use it by single accesses only.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.share(place)).holder) }
    }

    fn held(&self, place: u32, room: Room) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.share(place)).held[room.number()]) }
    }

    fn together(&self, holders: tg_holders, room: Room) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).held[holders as usize][room.number()]) }
    }

    fn labels_left(&self, place: u32) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.share(place)).labels_left) }
    }

    fn places(&self, room: Room) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).room[room.number()]) }
    }

    /// Sets the number of places of a room.
    pub fn set_places(&self, room: Room, places: u32) {
        self.places(room).store(places, Ordering::SeqCst);
    }

    /// The number of places of a room.
    #[must_use]
    pub fn room(&self, room: Room) -> u32 {
        self.places(room).load(Ordering::SeqCst)
    }

    fn owners_lost(&self, place: u32) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.share(place)).owners_lost) }
    }

    fn is_idle(&self, place: u32) -> bool {
        self.owners_lost(place).load(Ordering::SeqCst) == 0
            && self.labels_left(place).load(Ordering::SeqCst) == 0
            && Room::ALL.iter().all(|room| self.held(place, *room).load(Ordering::SeqCst) == 0)
    }

    /// How many places of a room are taken.
    #[must_use]
    pub fn taken(&self, room: Room) -> u32 {
        let kinds = [TG_HOLDERS_MACHINE, TG_HOLDERS_DOMAINS, TG_HOLDERS_USERS];
        kinds.into_iter().map(|holders| self.together(holders, room).load(Ordering::SeqCst)).sum()
    }

    /// The share of a holder, as `tg_share_of` finds or makes it. A subordinate uid has the share of its user.
    #[must_use]
    pub fn of(&self, holder: Holder) -> Place {
        let holder = if let Holder::User(uid) = holder { Holder::User(self.main_user(uid)) } else { holder };
        let (word, (places, common)) = (holder.word(), holder.places());
        let known = places.iter().find(|place| self.holder(**place).load(Ordering::SeqCst) == word);
        let idle = || places.iter().find(|place| self.is_idle(**place));
        let found = known.or_else(idle).copied();
        if let Some(place) = found {
            self.holder(place).store(word, Ordering::SeqCst);
        }
        // There are fewer shares than `Place` has values.
        found.unwrap_or(common) as Place
    }

    fn subordinate(&self, place: usize) -> *mut tg_subordinate {
        // SAFETY: the index is below the number of ranges, which lie in the mapping.
        unsafe { (&raw mut (*self.0.get()).subordinate[0]).add(place.min(TG_SUBORDINATES as usize - 1)) }
    }

    fn subordinates_from(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).subordinates_from) }
    }

    /// The user to whom a uid belongs, as in `tg_main_user`.
    pub(crate) fn main_user(&self, uid: u32) -> u32 {
        if self.subordinates_from().load(Ordering::SeqCst) == 0 {
            return uid;
        }
        // SAFETY: the daemon alone writes them.
        let all = (1..TG_SUBORDINATES as usize).map(|place| unsafe { self.subordinate(place).read_volatile() });
        let range = all.take_while(|range| range.first <= uid).last();
        range.filter(|range| uid <= range.last).map_or(uid, |range| range.user)
    }

    /// Sets which uids belong to which user. The ranges are sorted and do not overlap. The uids of ranges for which
    /// there is no place count as separate users. Returns the number of these ranges.
    pub fn set_subordinates(&self, ranges: &[tg_subordinate]) -> usize {
        let places = 1..TG_SUBORDINATES as usize;
        let none = tg_subordinate { first: u32::MAX, last: 0, user: 0 };
        let all = || places.clone().zip(ranges.iter().copied().chain(std::iter::repeat(none)));
        let without = ranges.len().saturating_sub(places.len());
        // SAFETY: as above.
        if all().all(|(place, range)| unsafe { self.subordinate(place).read_volatile() } == range) {
            return without;
        }
        let from = ranges.first().map_or(0, |range| range.first);
        // For files that change owners by this, it is not known whether their labels found room.
        // SAFETY: as above.
        if unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).labels_left) }.load(Ordering::SeqCst) != 0 {
            self.labels_left(TG_HOLDERS_USERS).store(1, Ordering::SeqCst);
        }
        // Nor is it known who set their owner for signals, if that was lost.
        // SAFETY: as above.
        if unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).owners_lost) }.load(Ordering::SeqCst) != 0 {
            let lost = TG_OWNERS_LOST | TG_OWNERS_LOST_OF_MACHINE;
            self.owners_lost(TG_HOLDERS_USERS).store(lost, Ordering::SeqCst);
        }
        self.subordinates_from().store(0, Ordering::SeqCst);
        for (place, range) in all() {
            // SAFETY: as above; programs read single members, and look for none meanwhile.
            unsafe { self.subordinate(place).write_volatile(range) };
        }
        self.subordinates_from().store(from, Ordering::SeqCst);
        without
    }

    /// Takes a place of a room. Returns false if the share is used up.
    pub fn take(&self, room: Room, share: Place) -> bool {
        let (place, holders) = (u32::from(share), holders_of(share.into()));
        let (own, all) = parts(holders, self.places(room).load(Ordering::SeqCst));
        if self.held(place, room).fetch_add(1, Ordering::SeqCst) < own {
            if self.together(holders, room).fetch_add(1, Ordering::SeqCst) < all {
                return true;
            }
            self.together(holders, room).fetch_sub(1, Ordering::SeqCst);
        }
        self.held(place, room).fetch_sub(1, Ordering::SeqCst);
        false
    }

    /// Returns a place of a room.
    pub fn give(&self, room: Room, share: Place) {
        self.held(share.into(), room).fetch_sub(1, Ordering::SeqCst);
        self.together(holders_of(share.into()), room).fetch_sub(1, Ordering::SeqCst);
    }

    /// Records that the label of a holder's file found no room. The holder's files whose label is not written down have
    /// none from now on, because it may differ from their directory's.
    pub fn leave_label(&self, share: Place) {
        self.labels_left(share.into()).store(1, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.0.get()).labels_left) }.store(1, Ordering::SeqCst);
    }

    /// The largest holders of each room, at most `most` of each.
    pub fn biggest(&self, most: usize, mut context: impl FnMut(Sid) -> Option<String>) -> Vec<Held> {
        let users = users(&fs::read_to_string("/etc/passwd").unwrap_or_default());
        let mut name = |place: u32| {
            let word = self.holder(place).load(Ordering::SeqCst);
            let number = word as u32;
            match (place, holders_of(place)) {
                (TG_HOLDERS_MACHINE, _) => "the machine".to_owned(),
                (TG_HOLDERS_DOMAINS, _) => "domains without a share".to_owned(),
                (TG_HOLDERS_USERS, _) => "users without a share".to_owned(),
                (_, TG_HOLDERS_USERS) => users.get(&number).cloned().unwrap_or_else(|| format!("user {number}")),
                _ => context(number).unwrap_or_else(|| format!("SID {number}")),
            }
        };
        let of_room = |room: Room| {
            let mut held: Vec<(u32, u32)> =
                (0..TG_SHARES).map(|place| (self.held(place, room).load(Ordering::SeqCst), place)).collect();
            held.retain(|(held, _)| *held > 0);
            held.sort_unstable_by(|one, other| other.cmp(one));
            held.truncate(most);
            held
        };
        let mut all = Vec::new();
        for room in Room::ALL {
            let places = self.places(room).load(Ordering::SeqCst);
            all.extend(of_room(room).into_iter().map(|(held, place)| Held {
                room,
                holder: name(place),
                held,
                share: parts(holders_of(place), places).0,
                unlabelled: room == Room::Labels && self.labels_left(place).load(Ordering::SeqCst) != 0,
            }));
        }
        all
    }
}

/// The names of users, as in passwd(5).
#[must_use]
pub fn users(passwd: &str) -> HashMap<u32, String> {
    let user = |line: &str| {
        let mut parts = line.split(':');
        Some((parts.nth(2)?.parse().ok()?, line.split(':').next()?.to_owned()))
    };
    passwd.lines().filter_map(user).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> Shares {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size_of::<tg_state>().next_multiple_of(4096) as u64).unwrap();
        let shares = Shares::new(Mapping::new(&file).unwrap().into());
        Room::ALL.into_iter().for_each(|room| shares.set_places(room, 80));
        shares
    }

    /// How much a holder gets of a room.
    fn taken(shares: &Shares, holder: Holder) -> usize {
        let share = shares.of(holder);
        (0..1000).take_while(|_| shares.take(Room::Labels, share)).count()
    }

    #[test]
    fn refuses_one_his_eighth_users_a_half_domains_three_eighths_and_the_machine_nothing() {
        let shares = shares();
        let users: Vec<usize> = (1000..1006).map(|uid| taken(&shares, Holder::User(uid))).collect();
        assert_eq!(users, [10, 10, 10, 10, 0, 0]);
        let domains: Vec<usize> = (40..44).map(|sid| taken(&shares, Holder::Domain(sid))).collect();
        assert_eq!(domains, [10, 10, 10, 0]);
        assert_eq!(taken(&shares, Holder::Machine), 80, "the map itself ends that");
        shares.give(Room::Labels, shares.of(Holder::User(1000)));
        assert_eq!(taken(&shares, Holder::User(1005)), 1, "what is given back is another's");
    }

    #[test]
    fn gives_a_user_one_share_with_all_his_subordinate_uids() {
        let shares = shares();
        let ranges = [(100_000, 165_535, 1000), (165_536, 231_071, 1001)];
        let ranges = ranges.map(|(first, last, user)| tg_subordinate { first, last, user });
        assert_eq!(shares.set_subordinates(&ranges), 0);
        let users: Vec<usize> = (0..6).map(|count| taken(&shares, Holder::User(100_000 + count))).collect();
        assert_eq!(users, [10, 0, 0, 0, 0, 0]);
        assert_eq!(taken(&shares, Holder::User(1000)), 0);
        for (uid, user) in [(165_535, 1000), (165_536, 1001), (231_071, 1001), (231_072, 231_072), (99_999, 99_999)] {
            assert_eq!(shares.main_user(uid), user);
        }
        let many = vec![tg_subordinate { first: 5, last: 5, user: 1 }; TG_SUBORDINATES as usize];
        assert_eq!(shares.set_subordinates(&many), 1);
        shares.set_subordinates(&[]);
        assert_eq!(shares.main_user(100_000), 100_000);
    }

    #[test]
    fn tells_the_biggest_holders_first() {
        let shares = shares();
        for (holder, times) in
            [(Holder::User(7), 2), (Holder::Domain(40), 4), (Holder::Machine, 1), (Holder::User(8), 3)]
        {
            let share = shares.of(holder);
            (0..times).for_each(|_| assert!(shares.take(Room::Owners, share)));
        }
        shares.leave_label(shares.of(Holder::User(7)));
        let shown = shares.biggest(3, |sid| Some(format!("context {sid}")));
        let shown: Vec<_> = shown.iter().map(|held| (held.room, held.holder.as_str(), held.held, held.share)).collect();
        let user = users(&fs::read_to_string("/etc/passwd").unwrap_or_default());
        let name = |uid| user.get(&uid).cloned().unwrap_or_else(|| format!("user {uid}"));
        let (seven, eight) = (name(7), name(8));
        let expected = [
            (Room::Owners, "context 40", 4, 10),
            (Room::Owners, eight.as_str(), 3, 10),
            (Room::Owners, seven.as_str(), 2, 10),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn gives_an_idle_share_to_another_and_lets_those_without_share_one() {
        let shares = shares();
        // All users whose shares are looked for in the same places.
        let alike = |uid: u32| Holder::User(uid).places().0[0] == Holder::User(1000).places().0[0];
        let users: Vec<Holder> = (1000..).filter(|uid| alike(*uid)).map(Holder::User).take(10).collect();
        let places: Vec<Place> = users.iter().map(|user| shares.of(*user)).collect();
        assert!(places.iter().all(|place| *place == places[0]), "none holds anything: {places:?}");
        let places: Vec<Place> = users
            .iter()
            .map(|user| {
                let share = shares.of(*user);
                assert!(shares.take(Room::Owners, share));
                share
            })
            .collect();
        assert_eq!(places.iter().filter(|place| u32::from(**place) == TG_HOLDERS_USERS).count(), 2, "{places:?}");
        shares.give(Room::Owners, places[3]);
        assert_eq!(shares.of(users[9]), places[3]);
    }

    #[test]
    fn reads_how_much_room_there_is_to_be() {
        assert_eq!("labels=4194304".parse(), Ok(Size { room: Room::Labels, places: 1 << 22 }));
        assert_eq!("credentials=1048576".parse(), Ok(Size { room: Room::Credentials, places: 1 << 20 }));
        let more = "credentials=1048577".parse::<Size>();
        assert_eq!(more, Err("credentials has 64 to 1048576 places".to_owned()));
        for wrong in ["labels", "labels=", "labels=-1", "levels=100", "owners=1", "labels=4294967295"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn reads_the_names_of_users() {
        let users = users("root:x:0:0:root:/root:/bin/sh\nalice:x:1000:\n\nbroken\n");
        assert_eq!((users.len(), users[&1000].as_str()), (2, "alice"));
    }
}
