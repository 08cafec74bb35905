//! `telpher topic produce`: records from the command line, or one for each line of the standard input.

use std::io::BufRead;

use client::CallError;
use client::topic::{NewRecord, Place};
use serde_json::json;
use tokio::sync::mpsc;

use super::{pair, tell_call};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher topic produce orders 'two books'   one record
  telpher topic produce orders 'two books' --key customer-7 --header trace=7f3
  telpher topic produce orders < orders.txt  one record for each line
  telpher topic produce orders --key-separator=: < orders.txt
                                             each line is a key, a colon and a value
  telpher topic consume a --raw --key-separator | telpher topic produce b --key-separator";

/// Records of one append, at most, and bytes of their lines.
const BATCH_COUNT: usize = 1_000;
const BATCH_SIZE: usize = 256 << 10;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the topic; it is made if it is not there and the node makes topics
    topic: String,

    /// Values of records; the lines of the standard input if there is none
    values: Vec<String>,

    /// The key of all records
    #[arg(long, conflicts_with = "key_separator")]
    key: Option<String>,

    /// A key stands before the value of each line, and this between them: a tab, if it is not said
    #[arg(
        long,
        value_name = "TEXT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "\t",
        value_parser = clap::builder::NonEmptyStringValueParser::new(),
    )]
    key_separator: Option<String>,

    /// The partition of all records, whatever their keys say
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// A header of all records
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    header: Vec<(String, String)>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.target.connect(environment).await?;
        let topic = client.topic(&args.topic);
        let told = |error: CallError| tell_call(args.format, &args.topic, &error);
        let mut count = 0;
        let mut lines = Lines::of(&args.values);
        while let Some(batch) = lines.batch().await? {
            let records = batch.iter().map(|line| record(args, line));
            let records: Vec<_> = records.collect::<Result<_, _>>()?;
            let places = topic.append(&records).await.map_err(told)?;
            count += places.len();
            show(args.format, &places)?;
        }
        let s = if count == 1 { "" } else { "s" };
        match args.format.json {
            true => Ok(()),
            false => output::print_text(&format!("{count} record{s} in {}\n", args.topic)),
        }
    })
}

/// For programs: where each record is, on a line of its own.
fn show(format: Format, places: &[Place]) -> Result<(), Failure> {
    if !format.json {
        return Ok(());
    }
    let line = |it: &Place| json!({ "partition": it.partition, "offset": it.offset });
    let lines: String = places.iter().map(|it| format!("{}\n", line(it))).collect();
    output::print_text(&lines)
}

fn record(args: &Args, line: &[u8]) -> Result<NewRecord, Failure> {
    let (key, value) = match &args.key_separator {
        None => (args.key.as_ref().map(|key| key.clone().into_bytes()), line),
        Some(separator) => {
            let (key, value) = split(line, separator.as_bytes()).ok_or_else(|| {
                let line = String::from_utf8_lossy(line);
                let message = format!("no separator {separator:?} in the line {line:?}");
                Failure::new(Exit::Usage, message)
                    .hint("--key-separator=TEXT says what stands between key and value")
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

/// What is to be appended, as much at once as is there.
struct Lines {
    lines: mpsc::Receiver<Result<Vec<u8>, std::io::Error>>,
}

impl Lines {
    /// The values that were given, else the lines of the standard input.
    fn of(values: &[String]) -> Self {
        let (sender, lines) = mpsc::channel(BATCH_COUNT);
        let values: Vec<_> = values
            .iter()
            .map(|it| Ok(it.clone().into_bytes()))
            .collect();
        // Whoever reads the standard input cannot be stopped; it ends with the process.
        std::thread::spawn(move || match values.is_empty() {
            true => send_all(&sender, read_lines()),
            false => send_all(&sender, values.into_iter()),
        });
        Self { lines }
    }

    /// The next ones; `None` at the end.
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
