//! Calls of the Lua function on the server: encoding of arguments and decoding of answers.
//!
//! `decide.lua` defines how cells are stored and what is returned, and handles the common cases;
//! `cells.lua` handles the others, `limbs.lua` large integers, `calendar.lua` the periods of
//! budgets. The rate of a bucket is sent in lowest terms: 40,000 per minute is 1 per 1,500,000 ns.
//! Its credit then stays below 2^52 where possible.

use quota::{Bucket, Kind, Zone};
use quota_service::quota_store::{
    Lease, RemoteCell, RemoteCellState, RemoteDecision, ReturnedLease,
};
use quota_service::quota_store::{RemoteTake, Verb};
use redis::{FromRedisValue, ParsingError, RedisResult, Value};

const SOURCE: &str = concat!(
    include_str!("limbs.lua"),
    include_str!("calendar.lua"),
    include_str!("cells.lua"),
    include_str!("decide.lua"),
);

/// The Lua function, identified by its digest.
pub struct Script {
    digest: String,
}

/// One call of the function.
pub struct Call {
    keys: Vec<String>,
    args: Vec<String>,
}

impl Default for Script {
    fn default() -> Self {
        let digest = redis::Script::new(SOURCE).get_hash().to_owned();
        Self { digest }
    }
}

impl Script {
    /// Builds a call by digest. A server without the function answers `NOSCRIPT` and has done
    /// nothing.
    pub fn by_digest(&self, call: &Call) -> redis::Cmd {
        call.command("EVALSHA", &self.digest)
    }

    /// Builds a call with the whole source, which the server then caches.
    pub fn with_source(&self, call: &Call) -> redis::Cmd {
        call.command("EVAL", SOURCE)
    }
}

impl Call {
    /// Builds a take at `now_ns` (nanoseconds since 1970-01-01 UTC); `None` uses the server's
    /// clock.
    pub fn take(take: &RemoteTake, now_ns: Option<u64>) -> Self {
        let mut call = Self::new(word(take.verb), now_ns);
        for cell in &take.cells {
            call.put(cell, cell.count, cell.mark);
        }
        call
    }

    /// Builds the lease of a cell that `nodes` nodes share.
    pub fn lease(
        cell: &RemoteCell,
        want: u64,
        before: Option<ReturnedLease>,
        nodes: u32,
        now_ns: Option<u64>,
    ) -> Self {
        let mut call = Self::new("lease", now_ns);
        let want = i64::try_from(want.min(quota::AMOUNT_MAX)).unwrap_or(i64::MAX);
        call.put(cell, want, before.map(|before| before.lease.mark));
        let (spent, unspent) = before.map_or((0, 0), |ReturnedLease { lease, spent }| {
            let spent = spent.min(lease.granted);
            (spent, lease.granted - spent)
        });
        call.args.push(nodes.max(1).to_string());
        call.args.extend([spent.to_string(), unspent.to_string()]);
        call
    }

    fn new(verb: &str, now_ns: Option<u64>) -> Self {
        let moment = now_ns.map_or_else(String::new, |now_ns| now_ns.to_string());
        Self {
            keys: Vec::new(),
            args: vec![moment, verb.to_owned()],
        }
    }

    fn put(&mut self, cell: &RemoteCell, count: i64, mark: Option<u64>) {
        self.keys.push(cell.key.clone());
        let (kind, numbers) = match cell.kind {
            Kind::Bucket(bucket) => ("b", in_lowest_terms(bucket)),
            Kind::Budget {
                amount,
                every,
                zone,
            } => (
                "u",
                format!("{amount} {} {}", every.as_str(), offsets(zone)),
            ),
            Kind::Slots { capacity } => {
                let lasting_s = cell.lasting_ns.div_ceil(1_000_000_000);
                ("s", format!("{capacity} {lasting_s}"))
            }
        };
        self.args.extend([kind.to_owned(), numbers]);
        self.args.push(count.to_string());
        self.args.push(u8::from(cell.is_enforced).to_string());
        let mark = mark.map_or_else(String::new, |mark| mark.to_string());
        self.args.push(mark);
    }

    fn command(&self, word: &str, source: &str) -> redis::Cmd {
        let mut command = redis::cmd(word);
        command.arg(source).arg(self.keys.len());
        command.arg(&self.keys).arg(&self.args);
        command
    }
}

/// Returns the UTC offset of a budget's calendar, and the offset of its next period if that
/// differs.
fn offsets(zone: Zone) -> String {
    match zone {
        Zone::Fixed(offset_s) => offset_s.to_string(),
        Zone::Changing {
            offset_s,
            next_offset_s,
        } => format!("{offset_s} {next_offset_s}"),
        Zone::Named(_) => unreachable!("a store is told of offsets"),
    }
}

fn word(verb: Verb) -> &'static str {
    match verb {
        Verb::Take => "take",
        Verb::Force => "force",
        Verb::Look => "look",
        Verb::Reset => "reset",
        Verb::Grant => "grant",
    }
}

fn in_lowest_terms(bucket: Bucket) -> String {
    let (mut divisor, mut rest) = (bucket.period_ns.max(1), bucket.amount);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    let (amount, period_ns) = (bucket.amount / divisor, bucket.period_ns / divisor);
    format!("{} {amount} {period_ns}", bucket.capacity)
}

/// Decodes the answer to a take.
pub fn decision(value: Value) -> RedisResult<RemoteDecision> {
    let mut words = words(value)?.into_iter();
    let mut next = || words.next().unwrap_or(Value::Nil);
    let denied = parse_integer(next())?.unwrap_or(0);
    let retry_after_ns = parse_count(next())?;
    Ok(RemoteDecision {
        denied_by: usize::try_from(denied)
            .ok()
            .and_then(|place| place.checked_sub(1)),
        retry_after_ns,
        cells: words.map(cell_state).collect::<RedisResult<_>>()?,
    })
}

fn cell_state(value: Value) -> RedisResult<RemoteCellState> {
    let mut words = words(value)?.into_iter();
    let mut next = || words.next().unwrap_or(Value::Nil);
    let have = parse_integer(next())?.ok_or_else(|| unexpected_answer("the remaining credit"))?;
    let is_short = parse_integer(next())? == Some(1);
    let mark = parse_count(next())?.unwrap_or(0);
    let reset_after_ns = parse_count(next())?;
    let (touched_s, touched_ns) = (
        parse_count(next())?.unwrap_or(0),
        parse_count(next())?.unwrap_or(0),
    );
    let touched_ns = touched_s
        .saturating_mul(1_000_000_000)
        .saturating_add(touched_ns);
    Ok(RemoteCellState {
        have,
        is_short,
        mark,
        reset_after_ns,
        touched_ns: (touched_ns > 0).then_some(touched_ns),
    })
}

/// Decodes the answer to a lease.
pub fn leased(value: Value) -> RedisResult<Lease> {
    let mut words = words(value)?.into_iter();
    let mut next = || words.next().unwrap_or(Value::Nil);
    let mut must = |what| parse_integer(next())?.ok_or_else(|| unexpected_answer(what));
    let granted = must("the leased credit")?;
    let mark = must("the mark of a lease")?;
    let lasts_ns = must("the duration of a lease")?;
    let retry_after_ns = parse_count(next())?;
    let have = parse_integer(next())?.ok_or_else(|| unexpected_answer("the remaining credit"))?;
    Ok(Lease {
        granted: granted.max(0) as u64,
        mark: mark.max(0) as u64,
        lasts_ns: lasts_ns.max(0) as u64,
        have,
        retry_after_ns,
    })
}

fn words(value: Value) -> RedisResult<Vec<Value>> {
    match value {
        Value::Array(words) => Ok(words),
        _ => Err(unexpected_answer("a list of values")),
    }
}

/// Decodes an integer of any size, saturating at 64 bits; `None` for an empty text.
fn parse_integer(value: Value) -> RedisResult<Option<i64>> {
    if let Value::Int(number) = value {
        return Ok(Some(number));
    }
    let digits: String = FromRedisValue::from_redis_value(value)?;
    if digits.is_empty() {
        return Ok(None);
    }
    let size = digits.strip_prefix('-').unwrap_or(&digits);
    if size.is_empty() || !size.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(unexpected_answer("a number"));
    }
    let bound = if size == digits { i64::MAX } else { i64::MIN };
    Ok(Some(digits.parse().unwrap_or(bound)))
}

/// Decodes an integer that is never negative and may use all 64 bits.
fn parse_count(value: Value) -> RedisResult<Option<u64>> {
    if let Value::BulkString(digits) = &value
        && let Ok(Ok(number)) = std::str::from_utf8(digits).map(str::parse)
    {
        return Ok(Some(number));
    }
    Ok(parse_integer(value)?.map(|number| u64::try_from(number).unwrap_or(0)))
}

fn unexpected_answer(what: &str) -> redis::RedisError {
    ParsingError::from(format!(
        "the answer of the script on the server lacks {what}"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lowest(capacity: u64, amount: u64, period_ns: u64) -> String {
        in_lowest_terms(Bucket {
            capacity,
            amount,
            period_ns,
        })
    }

    #[test]
    fn rates_are_sent_in_lowest_terms() {
        assert_eq!(lowest(100, 10, 1_000_000_000), "100 1 100000000");
        assert_eq!(lowest(7, 40_000, 60_000_000_000), "7 1 1500000");
        assert_eq!(lowest(5, 0, 1_000), "5 0 1");
        assert_eq!(lowest(5, 7, 1_000), "5 7 1000");
    }

    #[test]
    fn any_answer_is_decoded_or_rejected() {
        let list = |words: &[Value]| Value::Array(words.to_vec());
        let text = |words: &str| Value::BulkString(words.as_bytes().to_vec());
        let cell = list(&[
            text("-99999999999999999999"),
            Value::Int(1),
            Value::Int(9),
            text("18446744073709551615"),
            Value::Int(3),
            Value::Int(4),
        ]);
        let read = decision(list(&[Value::Int(1), text(""), cell])).unwrap();
        assert_eq!((read.denied_by, read.retry_after_ns), (Some(0), None));
        let state = RemoteCellState {
            have: i64::MIN,
            is_short: true,
            mark: 9,
            reset_after_ns: Some(u64::MAX),
            touched_ns: Some(3_000_000_004),
        };
        assert_eq!(read.cells, [state]);
        assert!(decision(Value::Okay).is_err());
        assert!(decision(list(&[text("a"), text("")])).is_err());
        assert!(decision(list(&[Value::Int(0), text(""), list(&[])])).is_err());
        assert!(leased(list(&[Value::Int(1)])).is_err());
    }
}
