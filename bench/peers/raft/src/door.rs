//! The clients: complete frames of a read go into the building block of one group.

use std::io;
use std::sync::Arc;

use contract::Inbox;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::net::tcp::OwnedReadHalf;

use crate::group::{Client, Group};
use crate::pipe::Pipe;

/// Bytes that one read takes at most, unless a single frame is longer.
const CHUNK_SIZE: usize = 256 << 10;

/// Accepts clients for ever. A client's frames go to one group, client after client to the next
/// one, so that its replies keep the order of its requests.
pub(crate) async fn accept(listener: TcpListener, groups: Vec<Arc<Group>>) -> io::Error {
    let mut number = 0;
    loop {
        let pipe = match listener.accept().await {
            Ok((socket, _)) => Pipe::new(socket),
            Err(error) => Err(error),
        };
        match pipe {
            Ok((reader, pipe)) => {
                let group = groups[number as usize % groups.len()].clone();
                tokio::spawn(read(reader, Arc::new(Client { pipe, number }), group));
                number += 1;
            }
            Err(error) => return error,
        }
    }
}

/// Reads a client until it ends or sends garbage.
async fn read(mut reader: OwnedReadHalf, client: Arc<Client>, group: Arc<Group>) {
    let mut inbox = Inbox::new(CHUNK_SIZE);
    while let Ok(size @ 1..) = reader.read(inbox.space()).await {
        inbox.advance(size);
        match inbox.complete() {
            Ok(0) => {}
            Ok(size) => {
                group.push(&client, &inbox.bytes()[..size]);
                inbox.consume(size);
            }
            Err(_) => break,
        }
        group.wait_for_room().await;
    }
    client.pipe.close();
}
