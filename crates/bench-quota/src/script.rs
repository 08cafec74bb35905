//! Redis function that is called for each take: the baseline for leases.
//!
//! The function is a minimal bucket in Redis: the server's clock, one key, integers, and no expiry
//! of keys. The generator calls it directly, without a node.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

use memchr::memchr;

use super::answer::{Answer, ParseError};
use super::limits::Bucket;

/// Source of the function. Credit is stored in millionths of a take, since Redis returns the time
/// in microseconds. It is below 2^53 for every bucket here, so Lua's numbers are exact.
const FUNCTION: &str = "#!lua name=bench
redis.register_function('take', function(keys, args)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local full, per_s = args[1] * 1000000, tonumber(args[2])
  local kept = redis.call('HMGET', keys[1], 'credit', 'at')
  local credit, at = tonumber(kept[1]) or full, tonumber(kept[2]) or now
  if now > at then
    credit, at = math.min(credit + (now - at) * per_s, full), now
  end
  local passes = credit >= 1000000
  if passes then
    credit = credit - 1000000
  end
  redis.call('HSET', keys[1], 'credit', credit, 'at', at)
  return passes and 1 or 0
end)
";

/// Loads the function into the Redis at `address`.
pub(super) fn install(address: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(command(&["FUNCTION", "LOAD", FUNCTION]).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    match answer.starts_with('$') {
        true => Ok(()),
        false => Err(io::Error::other(answer.trim_end().to_owned())),
    }
}

/// Encodes a take from the agent's bucket.
pub(super) fn take(agent: &str, bucket: Bucket) -> String {
    let (capacity, refill) = (bucket.capacity.to_string(), bucket.refill_per_s.to_string());
    command(&["FCALL", "take", "1", agent, &capacity, &refill])
}

/// Encodes a command as RESP2.
fn command(words: &[&str]) -> String {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text += &format!("${}\r\n{word}\r\n", word.len());
    }
    text
}

/// Parses the first answer as an HTTP status: 200 for an admitted take, 429 for a denied one, 500
/// for an error.
pub(super) fn first(bytes: &[u8]) -> Result<Option<Answer<'_>>, ParseError> {
    let Some(end) = memchr(b'\n', bytes) else {
        return Ok(None);
    };
    let status = match bytes[..end].trim_ascii_end() {
        b":1" => 200,
        b":0" => 429,
        [b'-', ..] => 500,
        _ => return Err(ParseError::NoRedis),
    };
    Ok(Some(Answer {
        status,
        body: &bytes[..end],
        size: end + 1,
        is_last: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_take_is_encoded_as_fcall_with_its_bucket() {
        let bucket = Bucket {
            capacity: 100,
            refill_per_s: 10,
        };
        assert_eq!(
            take("ab", bucket),
            "*6\r\n$5\r\nFCALL\r\n$4\r\ntake\r\n$1\r\n1\r\n$2\r\nab\r\n$3\r\n100\r\n$2\r\n10\r\n"
        );
    }

    #[test]
    fn redis_function_answers_are_parsed_line_by_line() {
        let status = |bytes| first(bytes).map(|answer| answer.map(|one| (one.status, one.size)));
        assert_eq!(status(b":1\r\n:0\r\n"), Ok(Some((200, 4))));
        assert_eq!(status(b":0\r\n"), Ok(Some((429, 4))));
        assert_eq!(status(b"-ERR no such function\r\n"), Ok(Some((500, 23))));
        assert_eq!(status(b":1\r"), Ok(None));
        assert_eq!(status(b"+OK\r\n"), Err(ParseError::NoRedis));
    }
}
