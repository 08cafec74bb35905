//! Metrics of pending work: messages in mailboxes, and lag of consumer groups.
//!
//! The number of series is bounded: the largest values have their own series, the others are
//! counted.

use std::fmt::Error;

use messaging::mailboxes::Backlog;
use node::Node;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use topic_service::Topics;

/// Most series of one metric.
const SERIES_MAX: usize = 1_000;

/// Appends the backlog of mailboxes and the lag of consumer groups.
pub(super) fn encode(node: &Node, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    encode_mailboxes(node, encoder)?;
    match node.topics() {
        Some(topics) => encode_lags(&topics, encoder),
        None => Ok(()),
    }
}

fn encode_mailboxes(node: &Node, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let mailboxes = node.messaging().mailboxes();
    let backlog = mailboxes.map_or_else(Backlog::default, |it| it.backlog(SERIES_MAX));
    for (name, help, value) in [
        (
            "mailbox_messages",
            "Messages in all mailboxes that are not acknowledged, without dead letters",
            backlog.messages,
        ),
        (
            "mailbox_dead_letters",
            "Dead letters in all mailboxes",
            backlog.dead,
        ),
        (
            "mailbox_backlog_omitted",
            "Mailboxes with messages that have no series of their own (the 1,000 fullest have)",
            backlog.omitted,
        ),
    ] {
        let value = ConstGauge::new(value as i64);
        value.encode(encoder.encode_descriptor(name, help, None, value.metric_type())?)?;
    }
    let kind = ConstGauge::new(0i64).metric_type();
    let help = "Messages that are not acknowledged, without dead letters, by mailbox";
    let mut family = encoder.encode_descriptor("mailbox_backlog_messages", help, None, kind)?;
    for it in &backlog.mailboxes {
        let labels = [("mailbox", it.name.as_str())];
        ConstGauge::new(it.messages as i64).encode(family.encode_family(&labels)?)?;
    }
    let help = "Age of the oldest message that is not acknowledged, by mailbox";
    let mut family =
        encoder.encode_descriptor("mailbox_oldest_message_age_seconds", help, None, kind)?;
    for it in &backlog.mailboxes {
        if let Some(age) = it.oldest_age {
            let labels = [("mailbox", it.name.as_str())];
            ConstGauge::new(age.as_secs_f64()).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_lags(topics: &Topics, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let (lags, omitted) = topics.group_lags(SERIES_MAX);
    let help = "Records behind the offset that a consumer group has committed";
    let kind = ConstGauge::new(0i64).metric_type();
    let mut family = encoder.encode_descriptor("kafka_group_lag", help, None, kind)?;
    for it in &lags {
        let partition = it.partition.to_string();
        let labels = [
            ("group", &*it.group),
            ("topic", &*it.topic),
            ("partition", partition.as_str()),
        ];
        ConstGauge::new(it.lag as i64).encode(family.encode_family(&labels)?)?;
    }
    let help = "Lags that have no series of their own (the 1,000 largest have)";
    let value = ConstGauge::new(omitted as i64);
    value.encode(encoder.encode_descriptor("kafka_group_lag_omitted", help, None, kind)?)
}
