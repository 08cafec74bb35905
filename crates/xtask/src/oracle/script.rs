//! Sends requests to both brokers, and records the differences.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kafka::RequestBody;

use super::connection::Connection;
use crate::step::now;

/// Fields that are not compared, because they differ by nature: ids that a broker assigns,
/// addresses, messages, and fields about the age of Apache Kafka.
const OWN: [&str; 24] = [
    "broker_ids",
    "client_host",
    "cluster_id",
    "controller_id",
    "coordinator_key",
    "current_leader",
    "epoch",
    "error_message",
    "host",
    "leader",
    "leader_epoch",
    "leader_id",
    "member_id",
    "node_endpoints",
    "node_id",
    "port",
    "producer_id",
    "batch_index_error_message",
    "replica_nodes",
    "isr_nodes",
    // Times of recent writes, which each broker measures itself.
    "last_timestamp",
    "transaction_start_time_ms",
    "throttle_time_ms",
    "topic_id",
];

/// Errors of a broker that is still loading its coordinator state, or writing the end of a
/// transaction. It has done nothing, and the request is retried, as clients do.
pub(super) const NOT_YET: [&str; 4] = [
    "error_code: ConcurrentTransactions",
    "error_code: CoordinatorLoadInProgress",
    "error_code: CoordinatorNotAvailable",
    "error_code: NotCoordinator",
];

const PAUSE: Duration = Duration::from_millis(100);

/// Maximum time for a broker to become ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time limit of all requests.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Maximum number of retries for a change that a broker learns from its controller a moment later.
const LOOKS: u32 = 50;

/// How the responses of two brokers, or of two clusters, are compared.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Fields that are compared although they differ by nature between brokers of their own.
    pub(super) compared: &'static [&'static str],
    /// Errors after which a request is repeated.
    pub(super) not_yet: &'static [&'static str],
    /// Intended differences: the title of the request, and the reason.
    pub(super) intended: &'static [(&'static str, &'static str)],
}

/// Connections to both brokers, and the differences found.
pub(super) struct Script {
    rules: Rules,
    oracle: Connection,
    subject: Connection,
    began: Instant,
    asked: u32,
    differences: Vec<String>,
    unserved: Vec<String>,
    /// Intended differences that were seen.
    intended: BTreeSet<&'static str>,
}

impl Script {
    pub(super) fn new(oracle: &str, subject: &str, rules: Rules) -> Result<Self> {
        Ok(Self {
            rules,
            oracle: Connection::open(oracle)?,
            subject: Connection::open(subject)?,
            began: now(),
            asked: 0,
            differences: Vec::new(),
            unserved: Vec::new(),
            intended: BTreeSet::new(),
        })
    }

    /// Connects to other brokers.
    ///
    /// # Errors
    /// When a broker cannot be reached.
    pub(super) fn connect(&mut self, [oracle, subject]: [&str; 2]) -> Result<()> {
        self.oracle = Connection::open(oracle)?;
        self.subject = Connection::open(subject)?;
        Ok(())
    }

    /// Sends the same request to both brokers, and returns the responses without a comparison.
    ///
    /// # Errors
    /// When a broker cannot be reached or does not answer.
    pub(super) fn ask<R: RequestBody>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Result<[R::Response; 2]>
    where
        R::Response: Debug,
    {
        let not_yet = self.rules.not_yet;
        let theirs = ready(&mut self.oracle, version, request, not_yet)?;
        let ours = ready(&mut self.subject, version, request, not_yet)?;
        let both = theirs.zip(ours).context("a connection was closed")?;
        Ok(both.into())
    }

    /// Notes a difference unless a statement about our node holds.
    pub(super) fn check(&mut self, holds: bool, statement: &str) {
        self.asked += 1;
        if !holds {
            self.differences.push(format!("not so: {statement}"));
        }
    }

    /// Sends the same request to both brokers. Returns the oracle's response first.
    ///
    /// # Errors
    /// When a broker cannot be reached or does not answer in time.
    pub(super) fn compare<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        request: &R,
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        self.compare_each(name, version, [request, request])
    }

    /// Sends the same request until the responses agree, or the retries are used up. A broker
    /// learns of a change from its controller a moment after the controller has confirmed it. The
    /// request must not change anything.
    ///
    /// # Errors
    /// When a broker cannot be reached or does not answer in time.
    pub(super) fn compare_eventually<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        request: &R,
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        self.compare_unordered(name, version, request, |_| ())
    }

    /// Works like [`Self::compare_eventually`] for responses with lists in no defined order, which `tidy`
    /// sorts before they are compared.
    ///
    /// # Errors
    /// When a broker cannot be reached or does not answer in time.
    pub(super) fn compare_unordered<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        request: &R,
        tidy: fn(&mut R::Response),
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        let Rules {
            compared, not_yet, ..
        } = self.rules;
        let words = |answer: Option<R::Response>| {
            answer.map(|mut answer| {
                tidy(&mut answer);
                masked(&answer, compared)
            })
        };
        for _ in 0..LOOKS {
            let theirs = ready(&mut self.oracle, version, request, not_yet)
                .with_context(|| title::<R>(name, version))?;
            let ours = ready(&mut self.subject, version, request, not_yet)
                .with_context(|| title::<R>(name, version))?;
            if words(theirs) == words(ours) {
                break;
            }
            thread::sleep(PAUSE);
        }
        self.compare_tidied(name, version, [request, request], tidy)
    }

    /// Sends each broker its own request, when requests contain ids of that broker.
    ///
    /// # Errors
    /// When a broker cannot be reached or does not answer in time.
    pub(super) fn compare_each<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        requests: [&R; 2],
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        self.compare_tidied(name, version, requests, |_| ())
    }

    fn compare_tidied<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        [of_oracle, of_subject]: [&R; 2],
        tidy: fn(&mut R::Response),
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        let title = title::<R>(name, version);
        let took = self.began.elapsed();
        ensure!(
            took < LIMIT,
            "{title}: not sent after {took:.0?}, the limit is {LIMIT:.0?}"
        );
        let Rules {
            compared, not_yet, ..
        } = self.rules;
        let expected = ready(&mut self.oracle, version, of_oracle, not_yet);
        let expected = expected.with_context(|| format!("{title}, by Apache Kafka"))?;
        // Apache Kafka drops some requests without a response: there is nothing to compare with.
        let Some(mut expected) = expected else {
            self.unserved.push(format!("{title}, by Apache Kafka"));
            return Ok([None, None]);
        };
        if !self.subject.serves::<R>(version) {
            self.unserved.push(title);
            return Ok([Some(expected), None]);
        }
        self.asked += 1;
        let mut answer = match ready(&mut self.subject, version, of_subject, not_yet) {
            Ok(Some(answer)) => answer,
            nothing => {
                let why = match nothing {
                    Ok(_) => "the connection was closed".to_owned(),
                    Err(error) => format!("{error:#}"),
                };
                self.differences.push(format!("{title}\n  {why}"));
                return Ok([Some(expected), None]);
            }
        };
        tidy(&mut expected);
        tidy(&mut answer);
        let (theirs, ours) = (masked(&expected, compared), masked(&answer, compared));
        self.record(&title, theirs, ours);
        Ok([Some(expected), Some(answer)])
    }

    fn record(&mut self, title: &str, theirs: String, ours: String) {
        let intended = self
            .rules
            .intended
            .iter()
            .find(|(asked, _)| *asked == title);
        match (theirs == ours, intended) {
            (true, None) => {}
            (false, Some((asked, _))) => {
                self.intended.insert(asked);
            }
            (true, Some((_, why))) => self.differences.push(format!(
                "{title}\n  does not differ, although it should: {why}"
            )),
            (false, None) => self
                .differences
                .push(format!("{title}\n  kafka    {theirs}\n  telpher  {ours}")),
        }
    }

    /// Prints everything, and returns the number of unintended differences and of intended ones
    /// that are missing.
    pub(super) fn report(mut self) -> usize {
        for (asked, _) in self.rules.intended {
            if !self.intended.contains(asked)
                && !self.differences.iter().any(|it| it.starts_with(asked))
            {
                self.differences.push(format!("{asked}\n  was not sent"));
            }
        }
        for difference in &self.differences {
            eprintln!("differs: {difference}");
        }
        for unserved in &self.unserved {
            eprintln!("not supported: {unserved}");
        }
        for (asked, why) in self.rules.intended {
            eprintln!("intended difference: {asked}: {why}");
        }
        let (asked, differ) = (self.asked, self.differences.len());
        let (intended, unserved) = (self.intended.len(), self.unserved.len());
        eprintln!(
            "{asked} responses compared: {differ} differ, {intended} intended differences; {unserved} requests are not supported"
        );
        differ
    }
}

/// Returns the title of a request in the output.
fn title<R: RequestBody>(name: &str, version: i16) -> String {
    format!("{} v{version}, {name}", R::KEY.api().name)
}

/// Repeats the request until the broker is ready to answer.
fn ready<R: RequestBody>(
    door: &mut Connection,
    version: i16,
    request: &R,
    not_yet: &[&str],
) -> Result<Option<R::Response>>
where
    R::Response: Debug,
{
    let began = now();
    loop {
        let Some(answer) = door.ask(version, request)? else {
            return Ok(None);
        };
        let text = format!("{answer:?}");
        if !not_yet.iter().any(|code| text.contains(code)) {
            return Ok(Some(answer));
        }
        ensure!(
            began.elapsed() < PATIENCE,
            "not ready after {PATIENCE:?}: {text}"
        );
        thread::sleep(PAUSE);
    }
}

/// Formats the response by `Debug`, with an underscore in place of each value that is not compared.
fn masked(answer: &impl Debug, compared: &[&str]) -> String {
    let text = format!("{answer:?}");
    let mut masked = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, behind)) = rest.split_once(": ") {
        let field = before
            .rsplit([' ', '{', '(', '['])
            .next()
            .unwrap_or_default();
        masked += before;
        masked += ": ";
        rest = behind;
        if OWN.contains(&field) && !compared.contains(&field) {
            masked.push('_');
            rest = &behind[value_size(behind)..];
        }
    }
    masked + rest
}

/// Returns the length of the value at the start of a `Debug` text.
fn value_size(text: &str) -> usize {
    let (mut depth, mut is_quoted, mut is_escaped) = (0_i32, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '{' | '[' | '(' => depth += 1,
            ',' | ' ' if depth == 0 => return at,
            '}' | ']' | ')' if depth == 0 => return at,
            '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields are only read by `Debug`.
    #[derive(Debug)]
    #[allow(dead_code, reason = "read by Debug alone")]
    struct Answer {
        error_message: Option<String>,
        count: i32,
        host: &'static str,
        members: Vec<Member>,
    }

    #[derive(Debug)]
    #[allow(dead_code, reason = "read by Debug alone")]
    struct Member {
        member_id: &'static str,
        code: i16,
    }

    #[test]
    fn only_ignored_fields_are_masked() {
        let answer = Answer {
            error_message: Some("a \"quoted\", bracketed } [word".to_owned()),
            count: 7,
            host: "",
            members: vec![
                Member {
                    member_id: "a-1",
                    code: 3,
                },
                Member {
                    member_id: "b: 2",
                    code: 4,
                },
            ],
        };
        assert_eq!(
            masked(&answer, &[]),
            "Answer { error_message: _, count: 7, host: _, members: [Member { member_id: _, code: 3 }, \
             Member { member_id: _, code: 4 }] }"
        );
        let compared = masked(&answer.members[0], &["member_id"]);
        assert_eq!(compared, "Member { member_id: \"a-1\", code: 3 }");
    }
}
