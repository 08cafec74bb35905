//! Parser of responses, limited to their length and their decisions.

use memchr::{memchr, memmem};

use super::{Dialect, Step};

/// A response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
    /// Size of the response in bytes.
    pub(super) size: usize,
    /// True if the server closes the connection after it.
    pub(super) is_last: bool,
}

/// Errors of parsing a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ParseError {
    #[error("the response is not HTTP")]
    NoHttp,
    #[error("the response is not Redis' answer to a take")]
    NoRedis,
    #[error("the response is in chunks, whose length is not known in advance")]
    Chunked,
    #[error("the response is longer than {SIZE_MAX} bytes")]
    TooLong,
}

/// Maximum size of a response: more than a batch of thousands needs.
pub(super) const SIZE_MAX: usize = 16 << 20;

/// Maximum size of a head.
const HEAD_MAX: usize = 64 << 10;

/// Parses the first response if it is complete. `is_end` means that no more bytes follow.
pub(super) fn first(bytes: &[u8], is_end: bool) -> Result<Option<Answer<'_>>, ParseError> {
    if bytes.len() >= 7 && !bytes.starts_with(b"HTTP/1.") {
        return Err(ParseError::NoHttp);
    }
    let Some(head_size) = memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4) else {
        return match bytes.len() > HEAD_MAX {
            true => Err(ParseError::TooLong),
            false => Ok(None),
        };
    };
    let head = Head::parse(&bytes[..head_size])?;
    let body_size = match head.length {
        Some(length) if length > SIZE_MAX => return Err(ParseError::TooLong),
        Some(length) => length,
        // The body ends with the connection.
        None if is_end => bytes.len() - head_size,
        None if bytes.len() > SIZE_MAX => return Err(ParseError::TooLong),
        None => return Ok(None),
    };
    let size = head_size + body_size;
    Ok((size <= bytes.len()).then(|| Answer {
        status: head.status,
        body: &bytes[head_size..size],
        size,
        is_last: head.is_last,
    }))
}

struct Head {
    status: u16,
    length: Option<usize>,
    is_last: bool,
}

impl Head {
    /// Parses a status line and headers, up to the empty line.
    fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<usize>().ok();
        let status = bytes
            .get(9..12)
            .and_then(number)
            .ok_or(ParseError::NoHttp)?;
        let mut head = Self {
            status: status as u16,
            length: None,
            is_last: bytes.starts_with(b"HTTP/1.0"),
        };
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            // The first letter rules out most lines.
            match line.first().map(u8::to_ascii_lowercase) {
                Some(b'c') => {
                    if let Some(value) = value(line, b"content-length:") {
                        head.length = Some(number(value).ok_or(ParseError::NoHttp)?);
                    } else if let Some(value) = value(line, b"connection:") {
                        head.is_last = value.trim_ascii().eq_ignore_ascii_case(b"close");
                    }
                }
                Some(b't') if value(line, b"transfer-encoding:").is_some() => {
                    return Err(ParseError::Chunked);
                }
                _ => {}
            }
        }
        Ok(head)
    }
}

/// Returns the value of a header line if it begins with `name`.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (begin, value) = line.split_at_checked(name.len())?;
    begin.eq_ignore_ascii_case(name).then_some(value)
}

/// Decisions in a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Decisions {
    pub(super) allowed: u32,
    pub(super) limited: u32,
}

const ALLOWED: Decisions = Decisions {
    allowed: 1,
    limited: 0,
};
const LIMITED: Decisions = Decisions {
    allowed: 0,
    limited: 1,
};

/// Returns the decisions about takes. The error is a stable word for the tally.
pub(super) fn of_takes(dialect: Dialect, answer: Answer<'_>) -> Result<Decisions, String> {
    match (dialect, answer.status) {
        (Dialect::Request | Dialect::Script(_), 200) => Ok(ALLOWED),
        (Dialect::Request | Dialect::Script(_), 429) => Ok(LIMITED),
        (Dialect::Throttle, 200) => several(answer.body, 1),
        (Dialect::Take { batch: 1, .. }, 200) => Ok(ALLOWED),
        (Dialect::Take { batch: 1, .. }, 429) => Ok(LIMITED),
        (Dialect::Take { batch, .. }, 200) => several(answer.body, batch),
        (_, status) => Err(format!("status-{status}")),
    }
}

/// Returns the decision of a virtual user's step.
pub(super) fn of_step(step: Step, answer: Answer<'_>) -> Result<Decisions, String> {
    match (step, answer.status) {
        (_, 200) => Ok(ALLOWED),
        (Step::Request | Step::Test, 429) => Ok(LIMITED),
        (_, status) => Err(format!("status-{status}")),
    }
}

fn several(body: &[u8], wanted: u32) -> Result<Decisions, String> {
    const NAME: &[u8] = b"\"allowed\":";
    let mut decided = Decisions {
        allowed: 0,
        limited: 0,
    };
    for at in memmem::find_iter(body, NAME) {
        match body[at + NAME.len()..].trim_ascii_start().first() {
            Some(b't') => decided.allowed += 1,
            Some(b'f') => decided.limited += 1,
            _ => {}
        }
    }
    match decided.allowed + decided.limited == wanted {
        true => Ok(decided),
        false => Err("answers-missing".to_owned()),
    }
}

/// Runs the checks of the report's script. Returns how many there are for the step, and how many
/// pass.
pub(super) fn checks(step: Step, answer: Answer<'_>) -> (u64, u64) {
    let json = || serde_json::from_slice::<serde_json::Value>(answer.body);
    let is = |holds: bool| u64::from(holds);
    let status = is(of_step(step, answer).is_ok());
    match step {
        Step::Health | Step::Test => (1, status),
        Step::Request => (2, status + is(json().is_ok())),
        Step::Quota => {
            let has = json().is_ok_and(|quota| quota["remaining"].is_number());
            (2, status + is(has))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TakeCost;
    use super::*;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nCONTENT-length: 2\r\n\r\nokHTTP/1.1 429 Too";

    fn answer(status: u16, body: &[u8]) -> Answer<'_> {
        Answer {
            status,
            body,
            size: 0,
            is_last: false,
        }
    }

    #[test]
    fn a_response_ends_at_its_content_length() {
        let found = first(OK, false).unwrap().unwrap();
        assert_eq!(
            (found.status, found.body, found.size),
            (200, &b"ok"[..], 40)
        );
        for cut in 0..found.size {
            assert_eq!(first(&OK[..cut], false), Ok(None), "{cut}");
        }
    }

    #[test]
    fn response_without_content_length_ends_with_the_connection() {
        let bytes = b"HTTP/1.0 200 OK\r\n\r\nall of it";
        assert_eq!(first(bytes, false), Ok(None));
        let found = first(bytes, true).unwrap().unwrap();
        assert_eq!((found.body, found.is_last), (&b"all of it"[..], true));
    }

    #[test]
    fn a_response_tells_whether_the_connection_closes() {
        let is_last = |head: &str| {
            let text = format!("{head}\r\nContent-Length: 0\r\n\r\n");
            first(text.as_bytes(), false).unwrap().unwrap().is_last
        };
        assert!(!is_last("HTTP/1.1 200 OK"));
        assert!(is_last("HTTP/1.1 200 OK\r\nConnection: close"));
        assert!(is_last("HTTP/1.0 200 OK"));
        assert!(!is_last("HTTP/1.0 200 OK\r\nConnection: keep-alive"));
    }

    #[test]
    fn invalid_responses_are_errors() {
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(first(chunked, false), Err(ParseError::Chunked));
        assert_eq!(first(b"SSH-2.0-OpenSSH", false), Err(ParseError::NoHttp));
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
        assert_eq!(first(long, false), Err(ParseError::TooLong));
        let no_number = b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n";
        assert_eq!(first(no_number, false), Err(ParseError::NoHttp));
    }

    #[test]
    fn a_denial_is_an_answer_and_other_statuses_are_errors() {
        let of = |status| of_takes(Dialect::Request, answer(status, b""));
        assert_eq!((of(200), of(429)), (Ok(ALLOWED), Ok(LIMITED)));
        assert_eq!(of(503), Err("status-503".to_owned()));
        assert_eq!(of_step(Step::Test, answer(429, b"")), Ok(LIMITED));
        assert!(of_step(Step::Health, answer(429, b"")).is_err());
    }

    #[test]
    fn every_take_of_a_batch_must_be_decided() {
        let body = br#"[{"allowed":true},{"allowed": false},{"allowed":true}]"#;
        let take = |batch| Dialect::Take {
            batch,
            costs: TakeCost::Request,
        };
        let of = |batch| of_takes(take(batch), answer(200, body));
        let decided = Decisions {
            allowed: 2,
            limited: 1,
        };
        assert_eq!(of(3), Ok(decided));
        assert_eq!(of(4), Err("answers-missing".to_owned()));
        assert_eq!(of_takes(take(1), answer(429, b"{}")), Ok(LIMITED));
        let crab = answer(200, br#"{"allowed":false,"limit":100}"#);
        assert_eq!(of_takes(Dialect::Throttle, crab), Ok(LIMITED));
    }

    #[test]
    fn the_checks_are_those_of_the_report() {
        let all = [
            (Step::Health, 200, "{}"),
            (Step::Request, 429, "{}"),
            (Step::Quota, 200, r#"{"remaining":3}"#),
            (Step::Test, 429, "{}"),
        ];
        let (made, held) = all
            .iter()
            .fold((0, 0), |(made, held), (step, status, body)| {
                let (some, good) = checks(*step, answer(*status, body.as_bytes()));
                (made + some, held + good)
            });
        assert_eq!((made, held), (6, 6));
        assert_eq!(checks(Step::Quota, answer(200, b"{}")), (2, 1));
        assert_eq!(checks(Step::Request, answer(500, b"<html>")), (2, 0));
    }
}
