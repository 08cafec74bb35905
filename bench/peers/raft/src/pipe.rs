//! A socket that is written to from anywhere and read in one place.
//!
//! Read a socket through `AsyncRead`: after a read that did not fill its buffer tokio knows that the
//! socket is empty. After `try_read` it does not, and asks the kernel once more.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Unwritten bytes at which a peer counts as one that does not read.
const UNWRITTEN_SIZE_MAX: usize = 128 << 20;

/// The writing half of a socket, with the bytes that it had no room for.
pub(crate) struct Pipe {
    socket: OwnedWriteHalf,
    output: Mutex<Output>,
    unwritten: Notify,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    is_closed: bool,
}

/// Bytes that are left to write.
enum Rest {
    Nothing,
    Something,
    /// None that matter: the socket is closed.
    Closed,
}

impl Pipe {
    /// Takes a connected socket, and starts a task that writes what [`Pipe::send`] cannot.
    pub(crate) fn new(socket: TcpStream) -> io::Result<(OwnedReadHalf, Arc<Pipe>)> {
        socket.set_nodelay(true)?;
        let (reader, socket) = socket.into_split();
        let pipe = Arc::new(Pipe {
            socket,
            output: Mutex::default(),
            unwritten: Notify::new(),
        });
        tokio::spawn(pipe.clone().write_rest());
        Ok((reader, pipe))
    }

    /// Sends what `write` appends: at once, with one system call, unless the socket is full.
    /// A pipe that is broken or closed takes it and forgets it; the task that reads the socket notices.
    pub(crate) fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut output = self.lock();
        let was_empty = output.bytes.is_empty();
        write(&mut output.bytes);
        if !was_empty {
            if output.bytes.len() > UNWRITTEN_SIZE_MAX {
                output.is_closed = true;
                self.unwritten.notify_one();
            }
            return;
        }
        match self.socket.try_write(&output.bytes) {
            Ok(size) if size == output.bytes.len() => output.bytes.clear(),
            Ok(size) => {
                output.bytes.drain(..size);
                self.unwritten.notify_one();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.unwritten.notify_one(),
            Err(_) => output.bytes.clear(),
        }
    }

    /// Ends the task that writes; the socket is closed with the last reference.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.unwritten.notify_one();
    }

    async fn write_rest(self: Arc<Pipe>) {
        loop {
            self.unwritten.notified().await;
            loop {
                match self.write_some() {
                    Rest::Nothing => break,
                    Rest::Something if self.socket.writable().await.is_ok() => {}
                    Rest::Something | Rest::Closed => return,
                }
            }
        }
    }

    /// Writes what there is room for.
    fn write_some(&self) -> Rest {
        let mut output = self.lock();
        if output.is_closed {
            return Rest::Closed;
        }
        match self.socket.try_write(&output.bytes) {
            Ok(size) => drop(output.bytes.drain(..size)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return Rest::Closed,
        }
        match output.bytes.is_empty() {
            true => Rest::Nothing,
            false => Rest::Something,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
