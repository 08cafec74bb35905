//! Connections within one process: two bounded pipes of bytes, and a registry of names.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, LazyLock, Weak};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use parking_lot::Mutex;

use crate::stream::{Sink, Source, Stream};

/// Bytes in a pipe before its writer must wait.
pub const PIPE_SIZE_MAX: usize = 1 << 20;

/// Connections that wait to be accepted at most. Further ones are refused.
pub const BACKLOG_MAX: usize = 1024;

static LISTENERS: LazyLock<Mutex<HashMap<String, Weak<Mutex<Queue>>>>> =
    LazyLock::new(Mutex::default);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Stream>,
    waker: Option<Waker>,
}

/// Accepts connections to a name until it is dropped.
pub struct Listener {
    queue: Arc<Mutex<Queue>>,
}

/// Listens on a name. Fails if the process has a listener with this name.
pub fn listen(name: &str) -> io::Result<Listener> {
    let mut listeners = LISTENERS.lock();
    if listeners
        .get(name)
        .is_some_and(|queue| queue.strong_count() > 0)
    {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let queue = Arc::new(Mutex::new(Queue::default()));
    listeners.insert(name.to_owned(), Arc::downgrade(&queue));
    Ok(Listener { queue })
}

/// Connects to a name. Refused without a listener.
pub fn connect(name: &str) -> io::Result<Stream> {
    let queue = LISTENERS.lock().get(name).and_then(Weak::upgrade);
    let queue = queue.ok_or(io::ErrorKind::ConnectionRefused)?;
    let (near, far) = pair(name);
    let mut queue = queue.lock();
    if queue.waiting.len() >= BACKLOG_MAX {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    queue.waiting.push_back(far);
    if let Some(waker) = queue.waker.take() {
        waker.wake();
    }
    Ok(near)
}

impl Listener {
    /// Waits for the next connection.
    pub async fn accept(&self) -> Stream {
        std::future::poll_fn(|cx| self.poll_accept(cx)).await
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Stream> {
        let mut queue = self.queue.lock();
        match queue.waiting.pop_front() {
            Some(stream) => Poll::Ready(stream),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Creates two connected streams.
pub fn pair(name: &str) -> (Stream, Stream) {
    let (left, right) = (Pipe::new(), Pipe::new());
    let stream = |read: &Arc<Pipe>, write: &Arc<Pipe>| {
        let ends = Arc::new(Ends {
            read: read.clone(),
            write: write.clone(),
        });
        Stream {
            source: Box::new(PipeSource(ends.clone())),
            sink: Arc::new(PipeSink(ends)),
            peer: format!("inproc:{name}"),
        }
    };
    (stream(&left, &right), stream(&right, &left))
}

#[derive(Default)]
struct PipeState {
    bytes: VecDeque<u8>,
    is_closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

struct Pipe(Mutex<PipeState>);

impl Pipe {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    fn close(&self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        for waker in [state.reader.take(), state.writer.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }
}

/// Closes both directions when the last half of one side is dropped.
struct Ends {
    read: Arc<Pipe>,
    write: Arc<Pipe>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.read.close();
        self.write.close();
    }
}

struct PipeSource(Arc<Ends>);

impl PipeSource {
    /// Takes bytes out of the pipe, with `take`, which returns their number.
    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut VecDeque<u8>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let mut state = self.0.read.0.lock();
        if state.bytes.is_empty() {
            if state.is_closed {
                return Poll::Ready(Ok(0));
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = take(&mut state.bytes)?;
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(count))
    }
}

impl Source for PipeSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_take(cx, |bytes| io::Read::read(bytes, buffer))
    }

    fn poll_read_behind(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut BytesMut,
        size_max: usize,
    ) -> Option<Poll<io::Result<usize>>> {
        Some(self.poll_take(cx, |bytes| {
            let (first, _) = bytes.as_slices();
            let count = first.len().min(size_max);
            buffer.extend_from_slice(&first[..count]);
            bytes.drain(..count);
            Ok(count)
        }))
    }
}

struct PipeSink(Arc<Ends>);

impl Sink for PipeSink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.write.0.lock();
        if state.is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = bytes.len().min(PIPE_SIZE_MAX - state.bytes.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.bytes.extend(&bytes[..count]);
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Ok(count)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.write.0.lock();
        if state.is_closed || state.bytes.len() < PIPE_SIZE_MAX {
            return Poll::Ready(Ok(()));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn finish(&self) {
        self.0.write.close();
    }

    fn close(&self) {
        self.0.read.close();
        self.0.write.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pipe_carries_bytes_until_one_side_is_dropped() {
        let listener = listen("carries").unwrap();
        let near = connect("carries").unwrap();
        let mut far = listener.accept().await;
        assert_eq!(near.sink.try_write(b"hello").unwrap(), 5);
        let mut buffer = [0; 16];
        let count = std::future::poll_fn(|cx| far.source.poll_read(cx, &mut buffer))
            .await
            .unwrap();
        assert_eq!(&buffer[..count], b"hello");
        assert_eq!(near.sink.try_write(b" world").unwrap(), 6);
        let mut read = BytesMut::from(&b"hello"[..]);
        for size_max in [2, 100] {
            let (source, read) = (&mut far.source, &mut read);
            let behind = |cx: &mut Context<'_>| {
                let polled = source.poll_read_behind(cx, read, size_max);
                polled.expect("a pipe can do that")
            };
            assert!(std::future::poll_fn(behind).await.is_ok());
        }
        assert_eq!(read, b"hello world"[..]);
        drop(near);
        let end = std::future::poll_fn(|cx| far.source.poll_read(cx, &mut buffer)).await;
        assert_eq!(end.unwrap(), 0);
        assert!(far.sink.try_write(b"x").is_err());
    }

    #[test]
    fn full_pipe_blocks_and_a_name_has_one_listener() {
        let (near, _far) = pair("full");
        assert_eq!(
            near.sink.try_write(&vec![0; PIPE_SIZE_MAX + 9]).unwrap(),
            PIPE_SIZE_MAX
        );
        let full = near.sink.try_write(b"x").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let listener = listen("taken").unwrap();
        assert!(listen("taken").is_err());
        drop(listener);
        assert!(listen("taken").is_ok());
        assert!(connect("nobody").is_err());
    }
}
