//! A node whose consensus ends by itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use journal::disk::SimulatedDisk;
use journal::{AppendError, StreamId};
use net::Stream;
use tokio::time::timeout;

use super::disk::{Running, SHARD, run};
use crate::link::{Dialer, Key, ReportFile, Services};
use crate::member::{Addresses, Member};
use crate::node::{Node, Settings};

/// A node without peers.
struct NoPeers;

impl Dialer for NoPeers {
    fn dial(&self, _: &str) -> BoxFuture<'static, io::Result<Stream>> {
        let refused = Err(io::ErrorKind::ConnectionRefused.into());
        Box::pin(std::future::ready(refused))
    }
}

impl Services for NoPeers {
    fn answer(&self, _: u64, request: Bytes) -> BoxFuture<'static, Bytes> {
        Box::pin(std::future::ready(request))
    }

    fn pipe(&self, _: u64, _: Stream) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn join(&self, _: Stream) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl ReportFile for NoPeers {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn write(&self, _: Vec<u8>) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[test]
fn reign_ends_with_the_consensus_although_nothing_is_written() {
    run(async {
        let disk = Arc::new(SimulatedDisk::new(1));
        let running = Running::open(&disk, 1);
        let journal = running.log().journal.clone();
        let member = Member {
            id: 1,
            addresses: Addresses::default(),
        };
        crate::init::init(&journal, &[member], 5).await.unwrap();
        let settings = Settings {
            cluster: 9,
            id: 1,
            key: Key::new(&[7; 32]).unwrap(),
            entropy: 3,
            settle: Duration::from_secs(1),
        };
        let (dialer, services, file) = (Box::new(NoPeers), Arc::new(NoPeers), Box::new(NoPeers));
        let node = Node::start(journal.clone(), settings, dialer, services, file, || 1000);
        let node = node.await.unwrap();
        let mut reigns = node.reigns(SHARD);
        reigns.wait_for(Option::is_some).await.unwrap();
        let append = || journal.lock(SHARD, 1000).append(StreamId(1), None, 0, b"x");
        append().unwrap();
        node.group(SHARD).raft.shutdown().await.unwrap();
        let ended = timeout(Duration::from_secs(60), reigns.wait_for(Option::is_none));
        assert!(ended.await.is_ok(), "the reign goes on");
        assert!(matches!(append(), Err(AppendError::Moved)));
        assert!(node.failure().is_some());
    });
}
