//! Request counting in fixed windows per client address.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

/// Requests per window.
pub(super) const COUNT_MAX: u64 = 100;
const WINDOW_NS: u64 = 60_000_000_000;
/// Most addresses tracked at a time; further addresses share one window.
const ADDRESSES_MAX: usize = 10_000;

/// The open windows. A refused request does not count.
#[derive(Debug, Default)]
pub(super) struct Windows {
    open: Mutex<HashMap<Option<IpAddr>, Window>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    until_ns: u64,
    count: u64,
}

/// The outcome of counting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    /// True if the request is within the limit of its window.
    pub(super) is_allowed: bool,
    /// Allowed requests in the window, including this one.
    pub(super) count: u64,
    /// End of the window.
    pub(super) until_ns: u64,
}

impl Windows {
    /// Counts a request and decides whether it is allowed.
    pub(super) fn count(&self, address: IpAddr, now_ns: u64) -> Counted {
        let mut open = self.open.lock();
        let mut key = Some(address);
        if open.len() >= ADDRESSES_MAX && !open.contains_key(&key) {
            open.retain(|_, window| now_ns < window.until_ns);
            if open.len() >= ADDRESSES_MAX {
                key = None;
            }
        }
        let fresh = Window {
            until_ns: now_ns + WINDOW_NS,
            count: 0,
        };
        let window = open.entry(key).or_insert(fresh);
        if now_ns >= window.until_ns {
            *window = fresh;
        }
        let is_allowed = window.count < COUNT_MAX;
        window.count += u64::from(is_allowed);
        Counted {
            is_allowed,
            count: window.count,
            until_ns: window.until_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn each_window_allows_its_own_number_of_requests() {
        let windows = Windows::default();
        let allowed = |now_ns| {
            let counted = (0..150).map(|_| windows.count(HERE, now_ns));
            counted.filter(|counted| counted.is_allowed).count()
        };
        assert_eq!(allowed(5), 100);
        assert_eq!(allowed(WINDOW_NS + 4), 0);
        assert_eq!(windows.count(HERE, 6).until_ns, WINDOW_NS + 5);
        assert_eq!(allowed(WINDOW_NS + 5), 100);
    }

    #[test]
    fn addresses_beyond_the_maximum_share_a_window() {
        let windows = Windows::default();
        let address = |number: usize| IpAddr::from((number as u32).to_be_bytes());
        for number in 0..ADDRESSES_MAX {
            assert_eq!(windows.count(address(number), 0).count, 1);
        }
        assert_eq!(windows.count(address(ADDRESSES_MAX), 0).count, 1);
        assert_eq!(windows.count(address(ADDRESSES_MAX + 1), 0).count, 2);
        assert_eq!(windows.open.lock().len(), ADDRESSES_MAX + 1);
        assert_eq!(windows.count(HERE, WINDOW_NS).count, 1);
        assert_eq!(windows.open.lock().len(), 1);
    }
}
