//! `telpher topic consume`: prints the records of one partition or of all partitions.

use std::future::poll_fn;
use std::task::Poll;

use client::ReadLimit;
use client::topic::{FollowRecords, Partition, Record};
use console::{Environment, Exit, Failure, Signals, body, output};
use serde_json::{Map, Value};

use super::report::{path_of, report};
use crate::commands::conversation::http::{HttpError, HttpRequest, Node, parse};
use crate::commands::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher topic consume orders               all records, partition after partition
  telpher topic consume orders --from latest --follow
                                             only new records
  telpher topic consume orders --partition 2 --from 100 --max 10
  telpher topic consume orders --raw         only the values, one per line
  telpher topic consume orders --raw --key-separator
                                             key, tab and value, the input format of `produce`";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the topic
    topic: String,

    /// Partition to read [default: all]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Start: earliest, latest, or an offset of the partition
    #[arg(long, value_name = "OFFSET", default_value = "earliest", value_parser = parse_start)]
    from: StartOffset,

    /// Wait for new records and print them
    #[arg(short, long)]
    follow: bool,

    /// End after this number of records
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    /// Print only the bytes of each value and a line break
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// With --raw, print the key and this separator before the value; without TEXT, a tab
    #[arg(
        long,
        value_name = "TEXT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "\t",
        requires = "raw",
    )]
    key_separator: Option<String>,

    #[command(flatten)]
    node: NodeArgs,
}

/// The start of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartOffset {
    Earliest,
    Latest,
    Offset(u64),
}

fn parse_start(text: &str) -> Result<StartOffset, String> {
    match (text, text.parse()) {
        ("earliest", _) => Ok(StartOffset::Earliest),
        ("latest", _) => Ok(StartOffset::Latest),
        (_, Ok(offset)) => Ok(StartOffset::Offset(offset)),
        _ => Err("write earliest, latest or an offset".to_owned()),
    }
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    if matches!(args.from, StartOffset::Offset(_)) && args.partition.is_none() {
        let message = "an offset needs a partition";
        let failure = Failure::new(Exit::Usage, message);
        return Err(failure.hint("--partition N selects one"));
    }
    block_on(async {
        let mut signals = Signals::listen()?;
        let node = Node::connect(&args.node.target, environment).await?;
        let mut consumer = Consumer {
            args,
            left: args.max.unwrap_or(u64::MAX),
        };
        tokio::select! {
            consumed = consumer.run(&node) => {
                consumed.map_err(|error| report(args.node.format, &args.topic, error))
            }
            () = signals.next() => Ok(()),
        }
    })
}

struct Consumer<'a> {
    args: &'a Args,
    /// Number of records still to print.
    left: u64,
}

impl Consumer<'_> {
    async fn run(&mut self, node: &Node) -> Result<(), HttpError> {
        let topic = node.client().topic(&self.args.topic);
        let mut followed = Vec::new();
        for number in self.partitions(node).await? {
            let partition = topic.partition(number);
            let next = self.read(number, &partition).await?;
            if self.left == 0 {
                return Ok(());
            }
            if self.args.follow {
                followed.push((number, partition.follow(next)));
            }
        }
        match self.args.follow {
            true => self.follow(followed).await,
            false => Ok(()),
        }
    }

    /// Returns the partitions to read.
    async fn partitions(&self, node: &Node) -> Result<Vec<u32>, HttpError> {
        if let Some(partition) = self.args.partition {
            return Ok(vec![partition]);
        }
        let topic = node
            .ask(&HttpRequest::get(path_of(&self.args.topic)))
            .await?;
        let count = parse(&topic)?["partitions"].as_u64().unwrap_or(0);
        Ok((0..u32::try_from(count).unwrap_or(u32::MAX)).collect())
    }

    /// Prints the existing records and returns the offset after them.
    async fn read(&mut self, number: u32, partition: &Partition) -> Result<u64, HttpError> {
        let (start, end) = partition.bounds().await.map_err(HttpError::Call)?;
        let mut next = match self.args.from {
            StartOffset::Earliest => start,
            StartOffset::Latest => return Ok(end),
            StartOffset::Offset(offset) => offset,
        };
        while self.left > 0 {
            let limit = ReadLimit::default();
            let records_max = u32::try_from(self.left).unwrap_or(u32::MAX);
            let limit = ReadLimit {
                records_max: records_max.min(limit.records_max),
                ..limit
            };
            let page = partition.read_at_most(next, limit).await;
            let page = page.map_err(HttpError::Call)?;
            next = page.next;
            if page.records.is_empty() {
                break;
            }
            for record in &page.records {
                self.show(number, record)?;
            }
        }
        Ok(next)
    }

    /// Prints new records of all partitions.
    async fn follow(&mut self, mut followed: Vec<(u32, FollowRecords)>) -> Result<(), HttpError> {
        // A partition that had a record is polled last the next time.
        while self.left > 0 {
            let came = poll_fn(|cx| {
                for index in 0..followed.len() {
                    if let Poll::Ready(record) = followed[index].1.poll_next(cx) {
                        let number = followed[index].0;
                        followed[index..].rotate_left(1);
                        return Poll::Ready((number, record));
                    }
                }
                Poll::Pending
            });
            let (number, record) = came.await;
            match record {
                Some(record) => self.show(number, &record.map_err(HttpError::Call)?)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn show(&mut self, partition: u32, record: &Record) -> Result<(), Failure> {
        self.left -= 1;
        if self.args.raw {
            let mut line = Vec::new();
            if let Some(separator) = &self.args.key_separator {
                line.extend_from_slice(record.key.as_deref().unwrap_or_default());
                line.extend_from_slice(separator.as_bytes());
            }
            line.extend_from_slice(record.value.as_deref().unwrap_or_default());
            line.push(b'\n');
            return output::print_piece(&line);
        }
        output::print_text(&match self.args.node.format.json {
            true => format!("{}\n", described(partition, record)),
            false => human(partition, record),
        })
    }
}

/// Formats a record: partition and offset, key if there is one, value.
fn human(partition: u32, record: &Record) -> String {
    let offset = record.offset;
    let value = record.value.as_deref();
    let value = value.map_or_else(|| "(no value)".to_owned(), body::show);
    match &record.key {
        Some(key) => format!("{partition}:{offset} {}: {value}\n", body::show(key)),
        None => format!("{partition}:{offset} {value}\n"),
    }
}

/// Formats a record as JSON.
fn described(partition: u32, record: &Record) -> Value {
    let mut value = Map::new();
    value.insert("partition".to_owned(), partition.into());
    value.insert("offset".to_owned(), record.offset.into());
    value.insert("timestamp_ms".to_owned(), record.timestamp_ms.into());
    if let Some(key) = &record.key {
        body::insert(&mut value, "key", key);
    }
    match &record.value {
        Some(bytes) => body::insert(&mut value, "value", bytes),
        None => drop(value.insert("value".to_owned(), Value::Null)),
    }
    if !record.headers.is_empty() {
        let headers = record.headers.iter().map(|(name, value)| {
            let mut header = Map::from_iter([("name".to_owned(), name.as_str().into())]);
            if let Some(value) = value {
                body::insert(&mut header, "value", value);
            }
            Value::Object(header)
        });
        value.insert("headers".to_owned(), headers.collect());
    }
    Value::Object(value)
}
