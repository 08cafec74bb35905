//! Allocations of an append, as counted by an allocator.
//!
//! The node serves its connection on the thread of the test, and only allocations of that thread
//! are counted: the journal's threads work at their own pace.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use door_testing::{CountingAllocator, ManualClock, allocated};
use journal::Journal;
use journal::disk::SimulatedDisk;
use node::{Node, Parts, StorageParts};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const APPENDS: u64 = 200;
/// Largest number of allocations of an append on the fast path.
const FAST_MAX: u64 = 20;

const BODY: &str = r#"{"messages":[{"role":"user","content":"hello"}]}"#;

/// Returns a connection to a node that this thread serves.
fn connect() -> DuplexStream {
    let clock = Arc::new(ManualClock::default());
    let options = door_testing::journal_options(1);
    let disk = Arc::new(SimulatedDisk::new(7));
    let (journal, _) = Journal::open(disk, &options, || 0).unwrap();
    let storage = StorageParts::new(Arc::new(journal));
    let ports = door_testing::ports(clock, 1 << 32);
    let node = Node::open(Parts::with_storage(ports, storage)).unwrap();
    let routes = door_http::routes(node, Arc::new(door::Open), Arc::default(), &[], None);
    let (near, far) = tokio::io::duplex(64 << 10);
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let options = door_http::Options::default();
    tokio::spawn(door_http::serve_stream(far, peer, routes, options));
    near
}

/// Sends the request and reads its answer, and returns the number of allocations.
async fn append(stream: &mut DuplexStream, request: &str) -> u64 {
    let before = allocated();
    stream.write_all(request.as_bytes()).await.unwrap();
    let (mut buffer, mut size) = ([0; 2_048], 0);
    // The body ends with the id of the message.
    while !buffer[..size].ends_with(b"}]}") {
        size += stream.read(&mut buffer[size..]).await.unwrap();
    }
    assert!(buffer.starts_with(b"HTTP/1.1 201 "));
    allocated() - before
}

/// Returns the allocations of an append on a connection that has served some.
async fn allocations_of(request: &str) -> u64 {
    let mut stream = connect();
    for _ in 0..APPENDS {
        append(&mut stream, request).await;
    }
    let mut sum = 0;
    for _ in 0..APPENDS {
        sum += append(&mut stream, request).await;
    }
    sum / APPENDS
}

#[tokio::test]
async fn an_append_on_the_fast_path_allocates_little() {
    let head = "POST /v1/conversations/c-1/messages HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\n";
    let size = BODY.len();
    let fast = allocations_of(&format!("{head}content-length: {size}\r\n\r\n{BODY}")).await;
    let chunked =
        format!("{head}transfer-encoding: chunked\r\n\r\n{size:x}\r\n{BODY}\r\n0\r\n\r\n");
    let routed = allocations_of(&chunked).await;
    println!("allocations of an append: {fast} on the fast path, {routed} through the router");
    assert!(fast <= FAST_MAX, "{fast}");
    assert!(2 * fast < routed, "{fast} {routed}");
}
