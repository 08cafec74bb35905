//! Samples: what a node answered at one moment, and the rates between two of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::metrics::Metrics;

/// A question to a node. Each view needs the answers of some.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// The agents and their instances.
    Agents,
    /// The connections.
    Connections,
    /// The fullest mailboxes.
    Backlog,
    /// The largest topics.
    Topics,
    /// The consumer groups.
    Groups,
    /// The subjects of the most denied takes.
    Denied,
    /// The buckets with the most use.
    Taken,
    /// The members of the cluster.
    Cluster,
    /// The partitions of a topic.
    Topic(String),
    /// The messages of a mailbox.
    Messages(String),
    /// The limits of a subject.
    Subject(String),
}

/// The answer to a question, or the reason why there is none.
pub(crate) type Answer = Result<Value, String>;

/// The answers of a node at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// The time since the first sample, in milliseconds.
    pub(crate) at_ms: u64,
    /// The time of day, in seconds since 1970-01-01 UTC.
    pub(crate) unix_s: u64,
    pub(crate) metrics: Metrics,
    pub(crate) answers: BTreeMap<Question, Answer>,
}

/// The newest two samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    before: Option<Sample>,
    now: Sample,
}

impl Sample {
    /// Returns the entries of a list in an answer.
    pub(crate) fn list(&self, question: &Question, key: &str) -> &[Value] {
        match self.answers.get(question) {
            Some(Ok(answer)) => answer[key].as_array().map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }

    /// Returns the number of entries that an answer left out.
    pub(crate) fn omitted(&self, question: &Question) -> u64 {
        match self.answers.get(question) {
            Some(Ok(answer)) => count(&answer["omitted"]),
            _ => 0,
        }
    }
}

impl History {
    /// Adds a sample; the oldest one is dropped.
    pub(crate) fn add(&mut self, sample: Sample) {
        let before = std::mem::replace(&mut self.now, sample);
        // The initial sample is empty and nothing can be compared with it.
        let is_initial = before.unix_s == 0;
        self.before = Some(before).filter(|_| !is_initial);
    }

    /// Returns the newest sample.
    pub(crate) fn now(&self) -> &Sample {
        &self.now
    }

    /// Returns the sample before the newest one.
    pub(crate) fn before(&self) -> Option<&Sample> {
        self.before.as_ref()
    }

    /// Returns the time between the samples, in seconds; `None` if there is one sample only.
    pub(crate) fn interval_s(&self) -> Option<f64> {
        let before = self.before.as_ref()?;
        let millis = self.now.at_ms.checked_sub(before.at_ms)?;
        (millis > 0).then_some(millis as f64 / 1e3)
    }

    /// Returns the change of a gauge per second.
    pub(crate) fn change(&self, before: Option<f64>, now: Option<f64>) -> Option<f64> {
        Some((now? - before?) / self.interval_s()?)
    }

    /// Returns the rate of a counter per second; `None` if it was reset meanwhile.
    pub(crate) fn rate(&self, before: Option<f64>, now: Option<f64>) -> Option<f64> {
        self.change(before, now).filter(|rate| *rate >= 0.0)
    }

    /// Returns the rate of a metric per second, of all labels together. A series that did not
    /// exist before was 0.
    pub(crate) fn metric_rate(&self, name: &str) -> Option<f64> {
        let now = self.now.metrics.sum(name);
        let before = self.before.as_ref()?.metrics.sum(name).unwrap_or(0.0);
        self.rate(Some(before), now)
    }
}

/// Values of entries by their key.
#[derive(Debug, Default)]
pub(crate) struct Values<'a>(BTreeMap<&'a str, f64>);

impl<'a> Values<'a> {
    /// Collects a value of each entry of a list in a sample. Entries with the same key are added.
    pub(crate) fn of(
        sample: Option<&'a Sample>,
        question: &Question,
        list: &str,
        key: &str,
        value: impl Fn(&Value) -> f64,
    ) -> Self {
        let mut values = Self::default();
        for entry in sample.map_or(&[][..], |sample| sample.list(question, list)) {
            let key = entry[key].as_str().unwrap_or_default();
            *values.0.entry(key).or_default() += value(entry);
        }
        values
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).copied()
    }
}

/// Returns a count; 0 for anything else.
pub(crate) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns a text; empty for anything else.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the entries of a list.
pub(crate) fn entries<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, page: &str) -> Sample {
        Sample {
            at_ms,
            unix_s: 1_700_000_000,
            metrics: Metrics::parse(page),
            answers: BTreeMap::new(),
        }
    }

    #[test]
    fn rates_need_two_samples_and_a_counter_that_grows() {
        let mut history = History::default();
        history.add(sample(1_000, "a_total 10"));
        assert_eq!(history.metric_rate("a_total"), None);
        history.add(sample(3_000, "a_total 14\nb_total{x=\"y\"} 6"));
        assert_eq!(history.metric_rate("a_total"), Some(2.0));
        assert_eq!(history.metric_rate("b_total"), Some(3.0), "a new series");
        assert_eq!(history.metric_rate("c_total"), None);
        history.add(sample(4_000, "a_total 1"));
        assert_eq!(history.metric_rate("a_total"), None, "the node restarted");
        assert_eq!(history.change(Some(14.0), Some(1.0)), Some(-13.0));
        history.add(sample(4_000, "a_total 2"));
        assert_eq!(history.metric_rate("a_total"), None, "no time has passed");
    }
}
