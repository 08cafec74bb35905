//! The HTTP floor's server: a thread per connection, the same answer to everything.
//!
//! It looks at a request only as far as it must to find its end, and decides nothing: what is left is
//! two system calls and the kernel's part of a round trip.

use std::io;

use crate::socket::Socket;

/// A request and what may follow it in one read; a longer one ends its connection.
const INBOX_SIZE: usize = 64 << 10;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n\
    {\"success\":true,\"message\":\"Request allowed\",\"tokensConsumed\":1,\"remaining\":99,\"limit\":100}";

/// Answers one connection until it ends.
pub(crate) fn answer(socket: &Socket) -> io::Result<()> {
    let mut inbox = vec![0; INBOX_SIZE];
    let mut answers = Vec::new();
    let mut filled = 0;
    loop {
        match socket.read(&mut inbox[filled..])? {
            0 => return Ok(()),
            size => filled += size,
        }
        answers.clear();
        let mut at = 0;
        while let Some(end) = request_end(&inbox[at..filled]) {
            at += end;
            answers.extend_from_slice(ANSWER);
        }
        inbox.copy_within(at..filled, 0);
        filled -= at;
        if filled == inbox.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        socket.write_all(&answers)?;
    }
}

/// Where the first request ends, its body included; `None` while it is not whole.
fn request_end(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let length = bytes[..head]
        .split(|byte| *byte == b'\n')
        .find_map(content_length)
        .unwrap_or(0);
    let end = head.checked_add(length)?;
    (end <= bytes.len()).then_some(end)
}

fn content_length(line: &[u8]) -> Option<usize> {
    let (name, value) = line.split_at_checked("content-length:".len())?;
    let value = name
        .eq_ignore_ascii_case(b"content-length:")
        .then_some(value)?;
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_as_long_as_it_says() {
        let text = std::str::from_utf8(ANSWER).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let length = head
            .lines()
            .find_map(|line| content_length(line.as_bytes()));
        assert_eq!(length, Some(body.len()));
    }

    #[test]
    fn a_request_ends_with_its_body() {
        let post = b"POST / HTTP/1.1\r\nHost: x\r\ncontent-LENGTH: 3\r\n\r\nabc";
        let get = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
        let both = [&post[..], &get[..]].concat();
        assert_eq!(request_end(&both), Some(post.len()));
        assert_eq!(request_end(&both[post.len()..]), Some(get.len()));
        for cut in [&post[..10], &post[..post.len() - 1], &get[..get.len() - 1]] {
            assert_eq!(request_end(cut), None);
        }
        let endless = b"POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n";
        assert_eq!(request_end(endless), None);
    }
}
