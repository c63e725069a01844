//! Places for connections. Nobody can take the places of others, even with many connections that send nothing.

use std::time::{Duration, Instant};

use crate::shares::Holder;

/// The maximum number of connections: in all, of all users together, and of all confined domains of root together.
/// The rest is for unconfined root, which may use all.
pub(super) const MAX_CONNECTIONS: usize = 128;
const MAX_OF_USERS: usize = 64;
const MAX_OF_DOMAINS: usize = 48;
/// The maximum number of connections of one user, and of one domain.
pub(super) const MAX_OF_HOLDER: usize = 32;
/// A connection whose holder has no more connections than the newcomer can be closed only after this silence.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection, as it counts for its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seat {
    /// The holder in whose share it counts.
    pub(super) holder: Holder,
    /// Whether the client's domain is confined.
    pub(super) confined: bool,
    /// When the client last sent something.
    pub(super) heard: Instant,
}

/// The place for a newcomer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A free place.
    Free,
    /// The place of another connection, by its index.
    Of(usize),
    /// There is no place.
    None,
}

fn is_alike(one: Holder, other: Holder) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// The place for a newcomer. If none is free, unconfined root may take the place of another connection. A user or a
/// domain may take one from a holder with more connections. Of those, the one that has been silent for longest is
/// closed.
pub(super) fn place(newcomer: Holder, confined: bool, seats: &[Seat], now: Instant) -> Place {
    let count = |holder: Holder| seats.iter().filter(|seat| seat.holder == holder).count();
    let own = count(newcomer);
    let alike = seats.iter().filter(|seat| is_alike(seat.holder, newcomer)).count();
    let (most_of_one, most_of_alike) = match newcomer {
        Holder::Machine => (MAX_CONNECTIONS, MAX_CONNECTIONS),
        Holder::Domain(_) => (MAX_OF_HOLDER, MAX_OF_DOMAINS),
        Holder::User(_) => (MAX_OF_HOLDER, MAX_OF_USERS),
    };
    if own < most_of_one && alike < most_of_alike && seats.len() < MAX_CONNECTIONS {
        return Place::Free;
    }
    let numbered = || seats.iter().enumerate();
    // A holder's own connections do not count as fewer because one is confined elsewhere.
    let of_himself = |seat: &Seat| seat.holder == newcomer && seat.confined && !confined;
    let gives_way = |seat: &Seat| match (newcomer, seat.holder) {
        (_, Holder::Machine) => false,
        (Holder::Machine, _) => true,
        (_, other) if own >= most_of_one || !is_alike(newcomer, other) => false,
        (_, other) => count(other) > own + 1 || count(other) > own && now.duration_since(seat.heard) >= SILENCE_TIMEOUT,
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
            assert!((0..MAX_OF_HOLDER).all(|_| comes(&mut seats, holder, true, now)));
            assert!(!comes(&mut seats, holder, true, now));
            assert!(comes(&mut seats, holder, false, now), "unconfined he is worth more than confined");
            assert_eq!(seats.len(), MAX_OF_HOLDER);
        }
    }

    #[test]
    fn takes_no_place_of_who_has_one_and_speaks() {
        let now = Instant::now();
        let mut seats = Vec::new();
        for user in 0..MAX_OF_USERS as u32 {
            assert!(comes(&mut seats, Holder::User(user), true, now));
        }
        assert!(!comes(&mut seats, Holder::User(1000), true, now));
        assert!(comes(&mut seats, Holder::User(1000), true, now + SILENCE_TIMEOUT));
        assert_eq!(seats.len(), MAX_OF_USERS);
    }

    #[test]
    fn keeps_places_for_root_who_may_have_all() {
        let now = Instant::now();
        let mut seats = Vec::new();
        for number in 0..1000 {
            comes(&mut seats, Holder::User(number % 7), true, now);
            comes(&mut seats, Holder::Domain(number % 7), true, now);
        }
        assert_eq!(seats.len(), MAX_OF_USERS + MAX_OF_DOMAINS);
        assert!((0..MAX_CONNECTIONS).all(|_| comes(&mut seats, Holder::Machine, false, now)));
        assert_eq!(held(&seats, Holder::Machine), MAX_CONNECTIONS);
        assert!(!comes(&mut seats, Holder::Machine, false, now));
        assert!(!comes(&mut seats, Holder::User(1), true, now));
    }
}
