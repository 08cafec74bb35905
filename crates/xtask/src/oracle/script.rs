//! Asking both, and keeping what differs.

use std::fmt::Debug;

use anyhow::Result;
use kafka::RequestBody;

use super::door::Door;

/// Fields that are anybody's own: ids that a broker makes up, addresses, words, and what Apache Kafka says
/// of its own age.
const OWN: [&str; 23] = [
    "authorized_operations",
    "broker_ids",
    "client_host",
    "cluster_authorized_operations",
    "cluster_id",
    "controller_id",
    "coordinator_key",
    "current_leader",
    "error_message",
    "host",
    "leader",
    "leader_id",
    "member_id",
    "node_endpoints",
    "node_id",
    "port",
    "producer_id",
    "batch_index_error_message",
    "replica_nodes",
    "isr_nodes",
    "throttle_time_ms",
    "topic_authorized_operations",
    "topic_id",
];

/// Both, and what became of what they were asked.
pub(super) struct Script {
    oracle: Door,
    subject: Door,
    asked: u32,
    differences: Vec<String>,
    unserved: Vec<String>,
}

impl Script {
    pub(super) fn new(oracle: &str, subject: &str) -> Result<Self> {
        Ok(Self {
            oracle: Door::open(oracle)?,
            subject: Door::open(subject)?,
            asked: 0,
            differences: Vec::new(),
            unserved: Vec::new(),
        })
    }

    /// Asks both the same; the oracle's answer first.
    ///
    /// # Errors
    /// When nobody is there any more.
    pub(super) fn both<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        request: &R,
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        self.each(name, version, [request, request])
    }

    /// Asks each what it is to be asked, where that holds ids of its own.
    ///
    /// # Errors
    /// When nobody is there any more.
    pub(super) fn each<R: RequestBody>(
        &mut self,
        name: &str,
        version: i16,
        [of_oracle, of_subject]: [&R; 2],
    ) -> Result<[Option<R::Response>; 2]>
    where
        R::Response: Debug,
    {
        let title = format!("{} v{version}, {name}", R::KEY.api().name);
        let expected = match self.oracle.ask(version, of_oracle) {
            Ok(expected) => expected,
            // Some requests it drops without a word: there is nothing to be held against.
            Err(error) => {
                self.unserved
                    .push(format!("{title}, by Apache Kafka: {error:#}"));
                return Ok([None, None]);
            }
        };
        if !self.subject.serves::<R>(version) {
            self.unserved.push(title);
            return Ok([Some(expected), None]);
        }
        self.asked += 1;
        let answer = match self.subject.ask(version, of_subject) {
            Ok(answer) => answer,
            Err(error) => {
                self.differences.push(format!("{title}\n  {error:#}"));
                return Ok([Some(expected), None]);
            }
        };
        let [theirs, ours] = [masked(&expected), masked(&answer)];
        if theirs != ours {
            self.differences
                .push(format!("{title}\n  kafka    {theirs}\n  telpher  {ours}"));
        }
        Ok([Some(expected), Some(answer)])
    }

    /// Takes back what was found under that name: it was asked until both were ready.
    pub(super) fn forget(&mut self, name: &str) {
        self.differences
            .retain(|difference| !difference.contains(name));
        self.unserved.retain(|unserved| !unserved.contains(name));
    }

    pub(super) fn differences(&self) -> usize {
        self.differences.len()
    }

    /// Prints everything that was found.
    pub(super) fn tell(&self) {
        for difference in &self.differences {
            eprintln!("differs: {difference}");
        }
        for unserved in &self.unserved {
            eprintln!("not served: {unserved}");
        }
        let (asked, differ) = (self.asked, self.differences.len());
        let unserved = self.unserved.len();
        eprintln!("{asked} answers compared: {differ} differ; {unserved} requests are not served");
    }
}

/// The answer in words, with an underscore in place of what is anybody's own.
fn masked(answer: &impl Debug) -> String {
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
        if OWN.contains(&field) {
            masked.push('_');
            rest = &behind[value_size(behind)..];
        }
    }
    masked + rest
}

/// Bytes of the value that a text begins with, as `Debug` writes one.
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

    /// Only ever printed.
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
    fn what_is_anybodys_own_is_masked_and_nothing_else() {
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
            masked(&answer),
            "Answer { error_message: _, count: 7, host: _, members: [Member { member_id: _, code: 3 }, \
             Member { member_id: _, code: 4 }] }"
        );
    }
}
