//! Request templates as bytes, in which only the agents' numbers are rewritten.

use super::agents::{DIGITS, Names, write_digits};
use super::script;
use super::{CAPACITY, Dialect, REFILL_PER_S, Reuse, Step, TOKENS, TakeCost};

/// A request template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    bytes: Vec<u8>,
    /// Offsets of the digits of each number.
    numbers: Vec<usize>,
    /// Endpoint, in words.
    pub(super) endpoint: &'static str,
}

/// Destination of a request, and the reuse of its connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) host: &'a str,
    pub(super) reuse: Reuse,
}

/// Placeholder of an agent's number; it occurs nowhere else in a request.
const NUMBER: &str = "\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}\u{1}";

impl Template {
    /// Makes the template of a virtual user's step.
    pub(super) fn step(step: Step, to: Destination<'_>, names: &Names) -> Self {
        let name = format!("{}{NUMBER}", names.prefix);
        match step {
            Step::Health => Self::new("GET /health", to, "", "/health"),
            Step::Request => Self::take(Dialect::Request, to, names),
            Step::Quota => {
                let line = format!("GET /api/quota/{name}");
                Self::new(&line, to, "", "/api/quota")
            }
            Step::Test => Self::new("GET /api/test-rate-limit", to, "", "/api/test-rate-limit"),
        }
    }

    /// Makes the template of one or several takes.
    pub(super) fn take(dialect: Dialect, to: Destination<'_>, names: &Names) -> Self {
        let name = format!("{}{NUMBER}", names.prefix);
        match dialect {
            Dialect::Request => {
                let body = format!("{{\"agentId\":\"{name}\",\"tokens\":1}}");
                Self::new("POST /api/request", to, &body, "/api/request")
            }
            Dialect::Take { batch, costs } => {
                let cost = match costs {
                    TakeCost::Request => String::new(),
                    TakeCost::RequestAndTokens => {
                        format!(",\"cost\":{{\"requests\":1,\"tokens\":{TOKENS}}}")
                    }
                };
                let one = format!("{{\"subject\":\"default/default/{name}\"{cost}}}");
                let body = match batch {
                    1 => one,
                    _ => format!("[{}]", vec![one; batch as usize].join(",")),
                };
                Self::new("POST /v1/take", to, &body, "/v1/take")
            }
            Dialect::Throttle => {
                let body = format!(
                    "{{\"key\":\"{name}\",\"max_burst\":{CAPACITY},\"count_per_period\":{REFILL_PER_S},\
                     \"period\":1,\"quantity\":1}}"
                );
                Self::new("POST /throttle", to, &body, "/throttle")
            }
            Dialect::Script(bucket) => Self::of(script::take(&name, bucket), "take"),
        }
    }

    fn new(line: &str, to: Destination<'_>, body: &str, endpoint: &'static str) -> Self {
        // Apache Bench speaks HTTP/1.0, and requests keep-alive.
        let (version, connection) = match to.reuse {
            Reuse::Kept => ("1.1", ""),
            Reuse::Asked => ("1.0", "Connection: Keep-Alive\r\n"),
            Reuse::Never => ("1.0", ""),
        };
        let host = to.host;
        let mut text = format!("{line} HTTP/{version}\r\nHost: {host}\r\n{connection}");
        if !body.is_empty() {
            let length = body.len();
            text += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        text += "\r\n";
        text += body;
        Self::of(text, endpoint)
    }

    fn of(text: String, endpoint: &'static str) -> Self {
        let numbers = text.match_indices(NUMBER).map(|(at, _)| at).collect();
        Self {
            bytes: text.into_bytes(),
            numbers,
            endpoint,
        }
    }

    /// Appends the request to `out`, with each number from `agent`.
    pub(super) fn write(&self, out: &mut Vec<u8>, mut agent: impl FnMut() -> u32) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        for at in &self.numbers {
            let position = start + at;
            write_digits(&mut out[position..position + DIGITS], agent());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Order;

    fn names() -> Names {
        Names {
            prefix: "x-".to_owned(),
            count: 10,
            order: Order::InTurn,
        }
    }

    fn written(template: &Template) -> String {
        let mut out = Vec::new();
        let mut next = 40;
        template.write(&mut out, || {
            next += 1;
            next
        });
        String::from_utf8(out).unwrap()
    }

    fn to(reuse: Reuse) -> Destination<'static> {
        Destination {
            host: "127.0.0.1:3000",
            reuse,
        }
    }

    #[test]
    fn a_take_names_its_agent_and_the_length_is_right() {
        let take = Template::take(Dialect::Request, to(Reuse::Kept), &names());
        let text = written(&take);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "{\"agentId\":\"x-00000041\",\"tokens\":1}");
        assert!(
            head.starts_with("POST /api/request HTTP/1.1\r\nHost: 127.0.0.1:3000\r\n"),
            "{head}"
        );
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }

    #[test]
    fn each_take_of_a_batch_has_its_own_agent() {
        let dialect = Dialect::Take {
            batch: 3,
            costs: TakeCost::RequestAndTokens,
        };
        let take = Template::take(dialect, to(Reuse::Kept), &names());
        let text = written(&take);
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let items: Vec<serde_json::Value> = serde_json::from_str(body).unwrap();
        assert!(
            items.iter().all(|item| item["cost"]["tokens"] == 100),
            "{body}"
        );
        let subjects = items.iter().map(|item| item["subject"].as_str().unwrap());
        assert!(
            subjects.eq([
                "default/default/x-00000041",
                "default/default/x-00000042",
                "default/default/x-00000043",
            ]),
            "{body}"
        );
    }

    #[test]
    fn apache_bench_requests_keep_alive() {
        let one = |reuse| written(&Template::step(Step::Quota, to(reuse), &names()));
        let asked = one(Reuse::Asked);
        assert!(
            asked.starts_with("GET /api/quota/x-00000041 HTTP/1.0\r\n"),
            "{asked}"
        );
        assert!(
            asked.ends_with("\r\nConnection: Keep-Alive\r\n\r\n"),
            "{asked}"
        );
        assert!(!one(Reuse::Never).contains("Connection"));
    }
}
