use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use proptest::prelude::*;
use tokio::io::AsyncReadExt;

use super::*;
use crate::outbox::tests::LimitedSink;
use crate::{Outbox, listen_tcp, split_tcp};

/// Bytes of a file that begin at `place`.
struct Range {
    file: Arc<std::fs::File>,
    place: u64,
    size: usize,
}

impl FileBytes for Range {
    fn size(&self) -> usize {
        self.size
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u64)> {
        Some((self.file.as_fd(), self.place))
    }

    fn read_at(&self, _: &mut [u8], _: usize) -> io::Result<()> {
        Err(io::Error::other("the system sends it"))
    }
}

/// Bytes that are not in a file of the system.
struct Unsendable(Vec<u8>);

impl FileBytes for Unsendable {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u64)> {
        None
    }

    fn read_at(&self, buffer: &mut [u8], at: usize) -> io::Result<()> {
        buffer.copy_from_slice(&self.0[at..at + buffer.len()]);
        Ok(())
    }
}

/// A piece of the output: its kind and its bytes.
type Piece = (u8, Vec<u8>);

fn push(out: &mut Output, (kind, bytes): &Piece) {
    match kind {
        0 => out.buffer().extend_from_slice(bytes),
        1 => out.push_shared(Bytes::from(bytes.clone())),
        _ => out.push_file(Box::new(Unsendable(bytes.clone()))),
    }
}

proptest! {
    #[test]
    fn parts_and_buffered_bytes_arrive_in_order_for_any_short_writes(
        pieces in prop::collection::vec((0u8..3, prop::collection::vec(any::<u8>(), 0..50)), 1..80),
        rooms in prop::collection::vec(1usize..90, 1..20),
        pushes in 1usize..5,
    ) {
        let sink = Arc::new(LimitedSink::default());
        let outbox = Outbox::new(sink.clone());
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for some in pieces.chunks(pushes) {
            outbox.push_output(|out| some.iter().for_each(|piece| push(out, piece)));
            outbox.flush();
        }
        let expected: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        prop_assert_eq!(outbox.queued_size(), expected.len());
        let has_files = pieces.iter().any(|(kind, bytes)| *kind == 2 && !bytes.is_empty());
        prop_assert_eq!(outbox.files().unsent > 0, has_files);
        let mut rooms = rooms.iter().cycle();
        while outbox.queued_size() > 0 {
            sink.room.store(*rooms.next().unwrap(), Ordering::Relaxed);
            prop_assert!(outbox.poll_drain(&mut cx).is_pending());
        }
        prop_assert_eq!(&*sink.taken.lock(), &expected);
        prop_assert_eq!(outbox.files().unsent, 0);
    }
}

#[test]
fn shared_bytes_are_released_when_the_peer_does_not_read() {
    let outbox = Outbox::new(Arc::new(LimitedSink::default()));
    let (first, second) = (Bytes::from(vec![1; 100]), Bytes::from(vec![2; 100]));
    outbox.push_output(|out| out.push_shared(first.clone()));
    assert!(!first.is_unique());
    outbox.flush();
    outbox.push_output(|out| out.push_shared(second.clone()));
    assert!(first.is_unique() && second.is_unique());
    assert_eq!(outbox.queued_size(), 200);
}

/// A file with these bytes that has no name any more.
fn file(bytes: &[u8]) -> Arc<std::fs::File> {
    let file = tempfile::tempfile().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, bytes, 0).unwrap();
    Arc::new(file)
}

async fn connection() -> (crate::Stream, tokio::net::TcpStream) {
    let listener = listen_tcp("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peer = tokio::net::TcpStream::connect(address).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    (split_tcp(accepted).unwrap(), peer)
}

/// Drives an outbox until it is empty or closed.
async fn drain(outbox: &Outbox) {
    outbox.flush();
    std::future::poll_fn(|cx| match outbox.poll_drain(cx) {
        Poll::Pending if outbox.queued_size() > 0 => Poll::Pending,
        _ => Poll::Ready(()),
    })
    .await;
}

#[tokio::test]
async fn file_ranges_arrive_over_tcp_between_other_bytes() {
    let content: Vec<u8> = (0..9_000_000u32).map(|at| (at * 7 % 251) as u8).collect();
    let file = file(&content);
    let (stream, mut peer) = connection().await;
    let outbox = Outbox::new(stream.sink.clone());
    let mut expected = Vec::new();
    outbox.push_output(|out| {
        for (place, size) in [(0, 1), (17, 4_096), (5_000, 6_000_000), (70_000, 65_537)] {
            out.buffer().extend_from_slice(b"head");
            out.push_shared(Bytes::from_static(b"shared"));
            let file = file.clone();
            out.push_file(Box::new(Range { file, place, size }));
            expected.extend_from_slice(b"headshared");
            expected.extend_from_slice(&content[place as usize..place as usize + size]);
        }
        out.buffer().extend_from_slice(b"tail");
        expected.extend_from_slice(b"tail");
    });
    let mut received = vec![0; expected.len()];
    let (_, read) = tokio::join!(drain(&outbox), peer.read_exact(&mut received));
    read.unwrap();
    assert!(received == expected);
    assert!(!outbox.is_closed());
    assert_eq!((outbox.files().pushed, outbox.files().unsent), (4, 0));
}

#[tokio::test]
async fn file_that_ends_early_closes_the_connection_and_is_reported() {
    let file = file(&[1; 1000]);
    let (stream, mut peer) = connection().await;
    let outbox = Outbox::new(stream.sink.clone());
    outbox.push_output(|out| {
        let (place, size) = (500, 1000);
        out.push_file(Box::new(Range { file, place, size }));
    });
    let mut received = Vec::new();
    let (_, read) = tokio::join!(drain(&outbox), peer.read_to_end(&mut received));
    read.unwrap();
    assert_eq!(received, [1; 500]);
    assert!(outbox.is_closed());
    assert!(outbox.take_failure().is_some());
}

#[tokio::test]
async fn lost_connection_is_not_reported_as_a_failed_file() {
    let file = file(&vec![1; 20_000_000]);
    let (stream, peer) = connection().await;
    let outbox = Outbox::new(stream.sink.clone());
    outbox.push_output(|out| {
        let (place, size) = (0, 20_000_000);
        out.push_file(Box::new(Range { file, place, size }));
    });
    outbox.flush();
    assert_eq!(outbox.files().unsent, 1);
    drop(peer);
    drain(&outbox).await;
    assert!(outbox.is_closed());
    assert_eq!(outbox.files().unsent, 0);
    assert!(outbox.take_failure().is_none());
}
