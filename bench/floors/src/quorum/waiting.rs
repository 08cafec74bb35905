//! Frames that are not committed yet, in the order of the log.

use std::collections::VecDeque;
use std::sync::Arc;

use contract::Header;

use crate::group::Group;
use crate::socket::Socket;

/// Taken bytes from which on the rest is moved to the front.
const TAKEN_SIZE_MAX: usize = 1 << 20;

/// The frames from the committed position on.
#[derive(Default)]
pub(super) struct Waiting {
    bytes: Vec<u8>,
    /// Bytes at the start that are taken.
    taken: usize,
    /// Runs of bytes in order: the connection, its key, and how many bytes.
    runs: VecDeque<(Arc<Socket>, usize, usize)>,
    /// The position in the log of the first frame that is not taken.
    position: u64,
}

impl Waiting {
    /// Adds the frames of a turn and empties it.
    pub(super) fn push(&mut self, turn: &mut Group) {
        self.bytes.extend_from_slice(&turn.bytes);
        self.runs.extend(turn.runs.drain(..));
        turn.clear();
    }

    /// Moves the frames that end at `committed` or before it into `group`.
    pub(super) fn take(&mut self, committed: u64, group: &mut Group) {
        while let Some((socket, key, size)) = self.runs.front_mut() {
            let room = committed.saturating_sub(self.position) as usize;
            let run = &self.bytes[self.taken..self.taken + *size];
            let complete = match *size <= room {
                true => *size,
                false => whole_frames(run, room),
            };
            if complete == 0 {
                break;
            }
            group.push(socket, *key, &run[..complete]);
            self.taken += complete;
            self.position += complete as u64;
            *size -= complete;
            if *size > 0 {
                break;
            }
            self.runs.pop_front();
        }
        if self.taken == self.bytes.len() {
            self.bytes.clear();
            self.taken = 0;
        } else if self.taken > TAKEN_SIZE_MAX {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }
}

/// The size of the frames at the start of `run` that fit into `room`.
fn whole_frames(run: &[u8], room: usize) -> usize {
    let mut size = 0;
    while let Ok(Some(header)) = Header::decode(&run[size..]) {
        if size + header.frame_size() > room {
            break;
        }
        size += header.frame_size();
    }
    size
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use contract::Address;

    use super::*;

    fn socket(name: &str) -> Arc<Socket> {
        let path = std::env::temp_dir().join(format!("waiting-{}-{name}", std::process::id()));
        let _listener = UnixListener::bind(&path).unwrap();
        let socket = Socket::connect(&Address::Unix(path.clone())).unwrap();
        std::fs::remove_file(path).unwrap();
        Arc::new(socket)
    }

    fn frame(id: u64, payload_size: usize) -> Vec<u8> {
        let mut bytes = Header { payload_size, id }.encode().to_vec();
        bytes.resize(bytes.len() + payload_size, id as u8);
        bytes
    }

    #[test]
    fn frames_are_taken_whole_and_in_order_at_any_position() {
        let sockets = [socket("a"), socket("b")];
        let mut sent = Vec::new();
        let mut turn = Group::default();
        let mut waiting = Waiting::default();
        for id in 0..20u64 {
            let key = (id / 3 % 2) as usize;
            let bytes = frame(id, id as usize * 5 % 23);
            turn.push(&sockets[key], key, &bytes);
            sent.extend(bytes);
            if id % 4 == 3 {
                waiting.push(&mut turn);
            }
        }
        let mut taken = Group::default();
        for committed in 0..=sent.len() as u64 {
            waiting.take(committed, &mut taken);
            assert!(taken.bytes.len() as u64 <= committed);
            assert_eq!(taken.bytes, sent[..taken.bytes.len()]);
            assert_eq!(whole_frames(&sent, committed as usize), taken.bytes.len());
        }
        assert_eq!(taken.bytes, sent);
        let runs: usize = taken.runs.iter().map(|(_, _, size)| size).sum();
        assert_eq!(runs, sent.len());
    }
}
