//! The durable echo floor's server: every frame is on disk before it is answered.
//!
//! With two threads, one reads all connections and queues what came; the other takes the whole
//! queue, appends it, syncs once, and answers each connection with one write. While it syncs, the
//! next group gathers. With one thread the same steps follow each other and the sockets do the
//! gathering: no hand-over, no overlap. Which is faster depends on the shape of the load, so the
//! floor of a claim is the faster of the two. Nothing lingers in either.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;

use contract::{
    Failure, Flags, Inbox, Outcome, Serve, ZeroedFile, announce, end_with_input, end_with_signal,
    take_place,
};

use crate::echo::CHUNK_SIZE;
use crate::group::{Group, Queue, answer};
use crate::poll::{Poll, Ready};
use crate::socket::{Listener, Socket};

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
                && turn.receive(socket, ready, inbox).is_err()
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
