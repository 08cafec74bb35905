//! Appends to Redis: `RPUSH` to a list for each conversation, over RESP2.

use std::rc::Rc;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;

use super::shared_sender::SharedSender;
use crate::store::{LoadSpec, message};
use bench::workload::role::Failure;

/// A slot on a user's connection.
pub(super) struct Slot {
    line: Rc<SharedSender>,
    command: Vec<u8>,
}

/// Connects a user and returns its slots.
pub(super) async fn open(
    spec: &LoadSpec,
    vu: u32,
) -> Result<impl Iterator<Item = Slot> + use<>, Failure> {
    let stream = TcpStream::connect(&spec.address).await?;
    stream.set_nodelay(true)?;
    let (source, sink) = stream.into_split();
    let line = SharedSender::over(sink);
    tokio::task::spawn_local(read(line.clone(), source));
    let command = push(&format!("conversation:{vu}"), &message::text(spec.size, vu));
    let slot = move |_| Slot {
        line: line.clone(),
        command: command.clone(),
    };
    Ok((0..spec.pipeline).map(slot))
}

impl Slot {
    pub(super) async fn append(&mut self) -> Result<(), String> {
        self.line.send(&self.command).await
    }
}

/// Encodes `RPUSH key value` as an array of bulk strings.
fn push(key: &str, value: &str) -> Vec<u8> {
    let words = ["RPUSH", key, value];
    let bulk = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), bulk.concat()).into_bytes()
}

/// Reads replies, which come in the order of the commands.
async fn read(line: Rc<SharedSender>, source: OwnedReadHalf) {
    let mut source = BufReader::new(source);
    let mut reply = String::new();
    loop {
        reply.clear();
        match source.read_line(&mut reply).await {
            Ok(size) if size > 0 => line.answer(judge(&reply)),
            _ => return line.disconnect(),
        }
    }
}

/// Judges a reply: the new length of the list is a success; the first word of an error is its kind.
fn judge(reply: &str) -> Result<(), String> {
    match reply.strip_prefix(':') {
        Some(_) => Ok(()),
        None => {
            let word = reply.trim_start_matches('-').split_whitespace().next();
            Err(word.unwrap_or("empty").to_lowercase())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_push_is_encoded_as_rpush_and_succeeds_with_an_integer() {
        assert_eq!(
            push("k", "abc"),
            b"*3\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$3\r\nabc\r\n"
        );
        assert_eq!(judge(":17\r\n"), Ok(()));
        assert_eq!(
            judge("-MISCONF Errors writing\r\n"),
            Err("misconf".to_owned())
        );
        assert_eq!(judge("\r\n"), Err("empty".to_owned()));
    }
}
