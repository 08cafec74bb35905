//! `telpher topic produce`: appends records from the command line or from lines of the standard
//! input.

use std::io::BufRead;

use client::CallError;
use client::topic::{NewRecord, RecordPosition};
use console::output::{self, Format};
use console::{Environment, Exit, Failure};
use serde_json::json;
use tokio::sync::mpsc;

use super::report::{pair, report_call};
use crate::commands::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher topic produce orders 'two books'   one record
  telpher topic produce orders 'two books' --key customer-7 --header trace=7f3
  telpher topic produce orders < orders.txt  one record for each line
  telpher topic produce orders --key-separator=: < orders.txt
                                             each line has a key, a colon and a value
  telpher topic consume a --raw --key-separator | telpher topic produce b --key-separator";

/// Maximum number of records in one append, and maximum bytes of their lines.
const BATCH_COUNT: usize = 1_000;
const BATCH_SIZE: usize = 256 << 10;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the topic; a missing topic is created if the node allows it (topics.auto_create)
    topic: String,

    /// Values of the records [default: the lines of the standard input]
    values: Vec<String>,

    /// Key of all records
    #[arg(long, conflicts_with = "key_separator")]
    key: Option<String>,

    /// Split each line into key and value at this separator; without TEXT, a tab
    #[arg(
        long,
        value_name = "TEXT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "\t",
        value_parser = clap::builder::NonEmptyStringValueParser::new(),
    )]
    key_separator: Option<String>,

    /// Partition of all records, regardless of their keys
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Header of all records; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let topic = client.topic(&args.topic);
        let to_failure = |error: CallError| report_call(args.node.format, &args.topic, &error);
        let mut count = 0;
        let mut lines = Lines::of(&args.values);
        while let Some(batch) = lines.batch().await? {
            let records = batch.iter().map(|line| record(args, line));
            let records: Vec<_> = records.collect::<Result<_, _>>()?;
            let places = topic.append(&records).await.map_err(to_failure)?;
            count += places.len();
            show(args.node.format, &places)?;
        }
        let s = if count == 1 { "" } else { "s" };
        match args.node.format.json {
            true => Ok(()),
            false => output::print_text(&format!("{count} record{s} in {}\n", args.topic)),
        }
    })
}

/// With `--json`, prints the partition and offset of each record as a line.
fn show(format: Format, places: &[RecordPosition]) -> Result<(), Failure> {
    if !format.json {
        return Ok(());
    }
    let line = |it: &RecordPosition| json!({ "partition": it.partition, "offset": it.offset });
    let lines: String = places.iter().map(|it| format!("{}\n", line(it))).collect();
    output::print_text(&lines)
}

fn record(args: &Args, line: &[u8]) -> Result<NewRecord, Failure> {
    let (key, value) = match &args.key_separator {
        None => (args.key.as_ref().map(|key| key.clone().into_bytes()), line),
        Some(separator) => {
            let (key, value) = split(line, separator.as_bytes()).ok_or_else(|| {
                let line = String::from_utf8_lossy(line);
                let message = format!("the line {line:?} has no separator {separator:?}");
                Failure::new(Exit::Usage, message)
                    .hint("--key-separator=TEXT sets the text between key and value")
            })?;
            (Some(key.to_vec()), value)
        }
    };
    let headers = args.header.iter();
    let headers = headers.map(|(name, value)| (name.clone(), Some(value.clone().into_bytes())));
    Ok(NewRecord {
        key,
        value: Some(value.to_vec()),
        headers: headers.collect(),
        partition: args.partition,
    })
}

fn split<'a>(line: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = line
        .windows(separator.len())
        .position(|it| it == separator)?;
    Some((&line[..at], &line[at + separator.len()..]))
}

/// The lines to append, in batches of the lines that are available.
struct Lines {
    lines: mpsc::Receiver<Result<Vec<u8>, std::io::Error>>,
}

impl Lines {
    /// Reads the given values, or the lines of the standard input if there are none.
    fn of(values: &[String]) -> Self {
        let (sender, lines) = mpsc::channel(BATCH_COUNT);
        let values: Vec<_> = values
            .iter()
            .map(|it| Ok(it.clone().into_bytes()))
            .collect();
        // A blocked read of the standard input cannot be cancelled; the thread ends with the
        // process.
        std::thread::spawn(move || match values.is_empty() {
            true => send_all(&sender, read_lines()),
            false => send_all(&sender, values.into_iter()),
        });
        Self { lines }
    }

    /// Returns the next batch; `None` at the end.
    async fn batch(&mut self) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let mut size = 0;
        let mut batch = Vec::new();
        let mut next = self.lines.recv().await;
        while let Some(line) = next {
            let line = line.map_err(|error| {
                let message = format!("cannot read the standard input: {error}");
                Failure::new(Exit::Failed, message).hint("give the values as arguments")
            })?;
            size += line.len();
            batch.push(line);
            if batch.len() >= BATCH_COUNT || size >= BATCH_SIZE {
                break;
            }
            next = self.lines.try_recv().ok();
        }
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }
}

type Line = Result<Vec<u8>, std::io::Error>;

fn send_all(sender: &mpsc::Sender<Line>, lines: impl Iterator<Item = Line>) {
    for line in lines {
        if sender.blocking_send(line).is_err() {
            return;
        }
    }
}

fn read_lines() -> impl Iterator<Item = Line> {
    std::io::stdin().lock().split(b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_at_the_first_separator() {
        assert_eq!(split(b"k\tv\tw", b"\t"), Some((&b"k"[..], &b"v\tw"[..])));
        assert_eq!(split(b"\tv", b"\t"), Some((&b""[..], &b"v"[..])));
        assert_eq!(split(b"k=>v", b"=>"), Some((&b"k"[..], &b"v"[..])));
        assert_eq!(split(b"kv", b"\t"), None);
        assert_eq!(split(b"", b"\t"), None);
    }
}
