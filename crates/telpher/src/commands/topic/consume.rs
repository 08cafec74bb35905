//! `telpher topic consume`: records of one partition, or of all of them.

use std::future::poll_fn;
use std::task::Poll;

use client::ReadLimit;
use client::topic::{FollowRecords, Partition, Record};
use serde_json::{Map, Value};

use super::{path_of, tell};
use crate::commands::body;
use crate::commands::conversation::ask::{Node, Question, Trouble, parse};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::serve::Signals;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher topic consume orders               every record there is, partition after partition
  telpher topic consume orders --from latest --follow
                                             what comes from now on
  telpher topic consume orders --partition 2 --from 100 --max 10
  telpher topic consume orders --raw         values and nothing else, each on a line
  telpher topic consume orders --raw --key-separator
                                             key, tab and value: what `produce` takes";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the topic
    topic: String,

    /// One partition and no other
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Where it begins: earliest, latest, or an offset of the partition
    #[arg(long, value_name = "OFFSET", default_value = "earliest", value_parser = from)]
    from: From,

    /// Wait for the records to come
    #[arg(short, long)]
    follow: bool,

    /// End after so many records
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    /// Print the bytes of each value and a line break, and nothing else
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    /// With --raw, print the key and this before the value: a tab, if it is not said
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
    format: Format,

    #[command(flatten)]
    target: Target,
}

/// Where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Earliest,
    Latest,
    Offset(u64),
}

fn from(text: &str) -> Result<From, String> {
    match (text, text.parse()) {
        ("earliest", _) => Ok(From::Earliest),
        ("latest", _) => Ok(From::Latest),
        (_, Ok(offset)) => Ok(From::Offset(offset)),
        _ => Err("write earliest, latest or an offset".to_owned()),
    }
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    if matches!(args.from, From::Offset(_)) && args.partition.is_none() {
        let message = "an offset is one of a partition";
        let failure = Failure::new(Exit::Usage, message);
        return Err(failure.hint("--partition N says of which one"));
    }
    block_on(async {
        let mut signals = Signals::listen()?;
        let node = Node::connect(&args.target, environment).await?;
        let mut consuming = Consuming {
            args,
            left: args.max.unwrap_or(u64::MAX),
        };
        tokio::select! {
            consumed = consuming.run(&node) => {
                consumed.map_err(|trouble| tell(args.format, &args.topic, trouble))
            }
            () = signals.next() => Ok(()),
        }
    })
}

struct Consuming<'a> {
    args: &'a Args,
    /// Records that are still wanted.
    left: u64,
}

impl Consuming<'_> {
    async fn run(&mut self, node: &Node) -> Result<(), Trouble> {
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

    /// The partitions that are wanted.
    async fn partitions(&self, node: &Node) -> Result<Vec<u32>, Trouble> {
        if let Some(partition) = self.args.partition {
            return Ok(vec![partition]);
        }
        let topic = node.ask(&Question::get(path_of(&self.args.topic))).await?;
        let count = parse(&topic)?["partitions"].as_u64().unwrap_or(0);
        Ok((0..u32::try_from(count).unwrap_or(u32::MAX)).collect())
    }

    /// Shows what is there; the offset behind it.
    async fn read(&mut self, number: u32, partition: &Partition) -> Result<u64, Trouble> {
        let (start, end) = partition.bounds().await.map_err(Trouble::Call)?;
        let mut next = match self.args.from {
            From::Earliest => start,
            From::Latest => return Ok(end),
            From::Offset(offset) => offset,
        };
        while self.left > 0 {
            let limit = ReadLimit::default();
            let records_max = u32::try_from(self.left).unwrap_or(u32::MAX);
            let limit = ReadLimit {
                records_max: records_max.min(limit.records_max),
                ..limit
            };
            let page = partition.read_at_most(next, limit).await;
            let page = page.map_err(Trouble::Call)?;
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

    /// Shows what comes, of whichever partition.
    async fn follow(&mut self, mut followed: Vec<(u32, FollowRecords)>) -> Result<(), Trouble> {
        // Whoever had something comes last the next time.
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
                Some(record) => self.show(number, &record.map_err(Trouble::Call)?)?,
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
        output::print_text(&match self.args.format.json {
            true => format!("{}\n", described(partition, record)),
            false => human(partition, record),
        })
    }
}

/// A record for people: its place, its key if it has one, its value.
fn human(partition: u32, record: &Record) -> String {
    let offset = record.offset;
    let value = record.value.as_deref();
    let value = value.map_or_else(|| "(no value)".to_owned(), body::show);
    match &record.key {
        Some(key) => format!("{partition}:{offset} {}: {value}\n", body::show(key)),
        None => format!("{partition}:{offset} {value}\n"),
    }
}

/// A record for programs.
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
