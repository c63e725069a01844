//! Who has a place at the daemon: nobody takes those of others, be it with many connections that say nothing.

use std::time::{Duration, Instant};

use crate::shares::Holder;

/// The most connections; of them those of all users together, and of all confined domains of root. The rest is for root,
/// unconfined, who may have all.
pub(super) const MOST: usize = 128;
const MOST_OF_USERS: usize = 64;
const MOST_OF_DOMAINS: usize = 48;
/// The most of one user, and of one domain.
pub(super) const MOST_OF_ONE: usize = 32;
/// Who has no more than the newcomer gives way only when he has said nothing for so long.
const SILENT: Duration = Duration::from_secs(1);

/// A connection, as it counts here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    /// Whose it is.
    pub(super) holder: Holder,
    /// His domain is asked by the policy.
    pub(super) confined: bool,
    /// When he said something last.
    pub(super) heard: Instant,
}

/// What there is for a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// One that nobody has.
    Free,
    /// That of another, by his number.
    Of(usize),
    /// None.
    None,
}

fn is_alike(one: Holder, other: Holder) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// The place of a newcomer. Root, unconfined, takes that of another if need be; a user or a domain of who has more than
/// he: of those, the one who has said nothing for longest.
pub(super) fn place(newcomer: Holder, confined: bool, seats: &[Seat], now: Instant) -> Place {
    let count = |holder: Holder| seats.iter().filter(|seat| seat.holder == holder).count();
    let own = count(newcomer);
    let alike = seats.iter().filter(|seat| is_alike(seat.holder, newcomer)).count();
    let (most_of_one, most_of_alike) = match newcomer {
        Holder::Machine => (MOST, MOST),
        Holder::Domain(_) => (MOST_OF_ONE, MOST_OF_DOMAINS),
        Holder::User(_) => (MOST_OF_ONE, MOST_OF_USERS),
    };
    if own < most_of_one && alike < most_of_alike && seats.len() < MOST {
        return Place::Free;
    }
    let numbered = || seats.iter().enumerate();
    // Of himself nobody has less for being confined elsewhere.
    let of_himself = |seat: &Seat| seat.holder == newcomer && seat.confined && !confined;
    let gives_way = |seat: &Seat| match (newcomer, seat.holder) {
        (_, Holder::Machine) => false,
        (Holder::Machine, _) => true,
        (_, other) if own >= most_of_one || !is_alike(newcomer, other) => false,
        (_, other) => count(other) > own + 1 || count(other) > own && now.duration_since(seat.heard) >= SILENT,
    };
    let own_confined = numbered().filter(|(_, seat)| of_himself(seat)).min_by_key(|(_, seat)| seat.heard);
    let others = numbered().filter(|(_, seat)| gives_way(seat));
    let found = own_confined
        .or_else(|| others.min_by_key(|(_, seat)| (std::cmp::Reverse(count(seat.holder)), !seat.confined, seat.heard)));
    found.map_or(Place::None, |(number, _)| Place::Of(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a place for a holder; whether he got one.
    fn comes(seats: &mut Vec<Seat>, holder: Holder, confined: bool, heard: Instant) -> bool {
        match place(holder, confined, seats, heard) {
            Place::None => return false,
            Place::Free => {}
            Place::Of(number) => drop(seats.swap_remove(number)),
        }
        seats.push(Seat { holder, confined, heard });
        true
    }

    fn held(seats: &[Seat], holder: Holder) -> usize {
        seats.iter().filter(|seat| seat.holder == holder).count()
    }

    #[test]
    fn gives_a_newcomer_the_place_of_who_has_most() {
        let now = Instant::now();
        let (mut seats, users) = (Vec::new(), [1, 2, 3, 4].map(Holder::User));
        for _ in 0..1000 {
            for user in users {
                comes(&mut seats, user, true, now);
            }
        }
        assert_eq!(users.map(|user| held(&seats, user)), [16; 4]);
        let other = Holder::User(5);
        assert!((0..12).all(|_| comes(&mut seats, other, true, now)));
        assert!(!(0..12).all(|_| comes(&mut seats, other, true, now)), "he has as much as they");
        assert!(comes(&mut seats, Holder::Domain(40), true, now), "domains have places of their own");
    }

    #[test]
    fn refuses_one_who_has_too_many() {
        let now = Instant::now();
        for holder in [Holder::User(1), Holder::Domain(40)] {
            let mut seats = Vec::new();
            assert!((0..MOST_OF_ONE).all(|_| comes(&mut seats, holder, true, now)));
            assert!(!comes(&mut seats, holder, true, now));
            assert!(comes(&mut seats, holder, false, now), "unconfined he is worth more than confined");
            assert_eq!(seats.len(), MOST_OF_ONE);
        }
    }

    #[test]
    fn takes_no_place_of_who_has_one_and_speaks() {
        let now = Instant::now();
        let mut seats = Vec::new();
        for user in 0..MOST_OF_USERS as u32 {
            assert!(comes(&mut seats, Holder::User(user), true, now));
        }
        assert!(!comes(&mut seats, Holder::User(1000), true, now));
        assert!(comes(&mut seats, Holder::User(1000), true, now + SILENT));
        assert_eq!(seats.len(), MOST_OF_USERS);
    }

    #[test]
    fn keeps_places_for_root_who_may_have_all() {
        let now = Instant::now();
        let mut seats = Vec::new();
        for number in 0..1000 {
            comes(&mut seats, Holder::User(number % 7), true, now);
            comes(&mut seats, Holder::Domain(number % 7), true, now);
        }
        assert_eq!(seats.len(), MOST_OF_USERS + MOST_OF_DOMAINS);
        assert!((0..MOST).all(|_| comes(&mut seats, Holder::Machine, false, now)));
        assert_eq!(held(&seats, Holder::Machine), MOST);
        assert!(!comes(&mut seats, Holder::Machine, false, now));
        assert!(!comes(&mut seats, Holder::User(1), true, now));
    }
}
