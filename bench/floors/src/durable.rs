//! The durable echo floor's server: every frame is on disk before it is answered.
//!
//! With two threads, one reads all connections and queues what came; the other takes the whole
//! queue, appends it, syncs once, and answers each connection with one write. While it syncs, the
//! next group gathers. With one thread the same steps follow each other and the sockets do the
//! gathering: no hand-over, no overlap. Which is faster depends on the shape of the load, so the
//! floor of a claim is the faster of the two. Nothing lingers in either.

use std::collections::HashMap;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use contract::{Failure, Flags, Outcome, Serve, announce, end_with_input, end_with_signal};

use crate::echo::CHUNK_SIZE;
use crate::frame::Inbox;
use crate::poll::{Poll, Ready};
use crate::socket::{Listener, Socket};
use crate::zeroed::{ZeroedFile, take_place};

/// Queued bytes from which on the sockets are left unread.
const QUEUE_SIZE_MAX: usize = 32 << 20;
/// The key of the listener in the poll; connections count from 1.
const LISTENER: usize = 0;

/// Serves until the parent goes.
pub(crate) fn serve(mut flags: Flags) -> Outcome<()> {
    let options = Serve::take(&mut flags)?;
    let (path, size) = take_place(&mut flags)?;
    let threads = flags.number("threads", 2, 1, 2)?;
    flags.finish()?;
    let listener = Listener::bind(&options.listen)?;
    let mut files = listener.files();
    files.push(path.clone());
    end_with_signal(files.clone());
    let outcome = ZeroedFile::create(path, size).and_then(|file| {
        end_with_input(files.clone());
        let sink = match threads {
            1 => Sink::Here(Writer::new(file)),
            _ => {
                let queue = Arc::new(Queue::default());
                let taken = queue.clone();
                thread::spawn(move || Writer::new(file).run(&taken));
                Sink::Queue(queue)
            }
        };
        announce(&listener.address()?)?;
        read(&listener, sink)
            .map_err(|error| Failure::run(format!("cannot serve: {error}"), "raise `ulimit -n`"))
    });
    for file in &files {
        let _ = std::fs::remove_file(file);
    }
    outcome
}

/// Frames that will share a sync, and whose they are.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    /// Runs of bytes in order: the connection, its key, and how many bytes.
    runs: Vec<(Arc<Socket>, usize, usize)>,
}

impl Group {
    fn push(&mut self, socket: &Arc<Socket>, key: usize, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        match self.runs.last_mut() {
            Some((_, last, size)) if *last == key => *size += bytes.len(),
            _ => self.runs.push((socket.clone(), key, bytes.len())),
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.runs.clear();
    }
}

/// What is read and not yet on disk.
#[derive(Default)]
struct Queue {
    group: Mutex<Group>,
    filled: Condvar,
    emptied: Condvar,
}

impl Queue {
    /// Appends a turn's frames; waits while too many are queued.
    fn put(&self, turn: &mut Group) {
        let mut group = self.lock();
        while group.bytes.len() > QUEUE_SIZE_MAX {
            group = self
                .emptied
                .wait(group)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let was_empty = group.bytes.is_empty();
        if was_empty {
            mem::swap(&mut *group, turn);
        } else {
            group.bytes.extend_from_slice(&turn.bytes);
            group.runs.append(&mut turn.runs);
        }
        drop(group);
        turn.clear();
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Takes everything into `taken`, which is empty; waits while there is nothing.
    fn take(&self, taken: &mut Group) {
        let mut group = self.lock();
        while group.bytes.is_empty() {
            group = self
                .filled
                .wait(group)
                .unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(&mut *group, taken);
        drop(group);
        if taken.bytes.len() > QUEUE_SIZE_MAX {
            self.emptied.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the frames of a turn go.
enum Sink {
    /// To the writer thread.
    Queue(Arc<Queue>),
    /// To disk and back, at once.
    Here(Writer),
}

/// Reads all connections. A connection that ends, or sends garbage, is dropped.
fn read(listener: &Listener, mut sink: Sink) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.add(listener.fd(), LISTENER)?;
    let mut connections: HashMap<usize, (Arc<Socket>, Inbox)> = HashMap::new();
    let mut key = LISTENER;
    let mut ready = Vec::new();
    let mut turn = Group::default();
    loop {
        poll.wait(-1, &mut ready)?;
        for &Ready { key: ready, .. } in &ready {
            if ready == LISTENER {
                key += 1;
                let socket = listener.accept()?;
                poll.add(socket.fd(), key)?;
                connections.insert(key, (Arc::new(socket), Inbox::new(CHUNK_SIZE)));
            } else if let Some((socket, inbox)) = connections.get_mut(&ready)
                && receive(socket, ready, inbox, &mut turn).is_err()
            {
                connections.remove(&ready);
            }
        }
        if turn.bytes.is_empty() {
            continue;
        }
        match &mut sink {
            Sink::Queue(queue) => queue.put(&mut turn),
            Sink::Here(writer) => writer.write(&mut turn),
        }
    }
}

/// Reads once and queues the complete frames.
fn receive(
    socket: &Arc<Socket>,
    key: usize,
    inbox: &mut Inbox,
    turn: &mut Group,
) -> io::Result<()> {
    match socket.read(inbox.space())? {
        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
        size => inbox.advance(size),
    }
    let complete = inbox.complete().map_err(|_| io::ErrorKind::InvalidData)?;
    if complete > 0 {
        turn.push(socket, key, &inbox.bytes()[..complete]);
        inbox.consume(complete);
    }
    Ok(())
}

/// Appends, syncs and answers.
struct Writer {
    file: ZeroedFile,
    gathered: Vec<u8>,
}

impl Writer {
    fn new(file: ZeroedFile) -> Writer {
        Writer {
            file,
            gathered: Vec::new(),
        }
    }

    /// Writes group after group as they are queued.
    fn run(mut self, queue: &Queue) {
        let mut group = Group::default();
        loop {
            queue.take(&mut group);
            self.write(&mut group);
        }
    }

    /// Writes one group and empties it. A disk that fails ends the program.
    fn write(&mut self, group: &mut Group) {
        if let Err(error) = self.file.append(&group.bytes) {
            self.file.fail(&error);
        }
        answer(group, &mut self.gathered);
        group.clear();
    }
}

/// Echoes the group: one write for all the bytes of a connection, in their order.
fn answer(group: &Group, gathered: &mut Vec<u8>) {
    let mut offset = 0;
    let mut runs: Vec<(&Arc<Socket>, usize, &[u8])> = Vec::with_capacity(group.runs.len());
    for (socket, key, size) in &group.runs {
        runs.push((socket, *key, &group.bytes[offset..offset + size]));
        offset += size;
    }
    runs.sort_by_key(|(_, key, _)| *key);
    for runs in runs.chunk_by(|(_, left, _), (_, right, _)| left == right) {
        // A connection that cannot be written to has ended; the reader will notice.
        let _ = match runs {
            [(socket, _, bytes)] => socket.write_all(bytes),
            _ => {
                gathered.clear();
                runs.iter()
                    .for_each(|(_, _, bytes)| gathered.extend_from_slice(bytes));
                runs[0].0.write_all(gathered)
            }
        };
    }
}
