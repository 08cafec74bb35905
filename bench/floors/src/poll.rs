//! Readiness of many sockets: `epoll`, level-triggered.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A set of descriptors to wait for.
pub(crate) struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// One descriptor is ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    /// The key it was added with.
    pub(crate) key: usize,
    /// A read will not wait, be it for bytes, the end or an error.
    pub(crate) readable: bool,
    /// There is room for a write.
    pub(crate) writable: bool,
}

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    ReadAndWrite,
}

impl Poll {
    /// A set without descriptors.
    pub(crate) fn new() -> io::Result<Poll> {
        #[expect(unsafe_code, reason = "std has no epoll")]
        // SAFETY: a fresh descriptor that nobody else owns, checked to be one.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Poll {
            epoll,
            events: vec![libc::epoll_event { events: 0, u64: 0 }; 1024],
        })
    }

    /// Adds a descriptor; it leaves the set when it is closed.
    pub(crate) fn add(&self, fd: RawFd, key: usize) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, key, Interest::Read)
    }

    /// Changes what is waited for.
    pub(crate) fn change(&self, fd: RawFd, key: usize, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, key, interest)
    }

    /// Waits until something is ready, for ever if `timeout_ms` is -1, and lists it in `ready`.
    pub(crate) fn wait(&mut self, timeout_ms: i32, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let capacity = self.events.len() as i32;
        let count = loop {
            let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
            #[expect(unsafe_code, reason = "std has no epoll")]
            // SAFETY: the kernel writes at most `capacity` events, as many as the vector holds.
            let count = unsafe { libc::epoll_wait(epoll, events, capacity, timeout_ms) };
            if count >= 0 {
                break count as usize;
            }
            match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            }
        };
        let ended = libc::EPOLLHUP | libc::EPOLLERR;
        ready.extend(
            self.events[..count]
                .iter()
                .map(|&libc::epoll_event { events, u64: key }| Ready {
                    key: key as usize,
                    readable: events & (libc::EPOLLIN | ended) as u32 != 0,
                    writable: events & libc::EPOLLOUT as u32 != 0,
                }),
        );
        Ok(())
    }

    fn control(&self, what: i32, fd: RawFd, key: usize, interest: Interest) -> io::Result<()> {
        let events = match interest {
            Interest::Read => libc::EPOLLIN,
            Interest::ReadAndWrite => libc::EPOLLIN | libc::EPOLLOUT,
        };
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: key as u64,
        };
        #[expect(unsafe_code, reason = "std has no epoll")]
        // SAFETY: the event is valid for the call; a wrong descriptor is only an error.
        let result = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, fd, &mut event) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}
