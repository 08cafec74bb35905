//! `telpher append`, `telpher read` and `telpher streams`: records of raw streams.

use client::{CallError, Client, ReadLimit, Record, RecordPage, RecordStream};
use console::output::{self, Format, table};
use console::{Environment, Exit, Failure, Signals, body, utc};
use model::{ErrorCode, Name};
use serde_json::{Map, Value, json};

use super::agents::text;
use super::mailbox::pages;
use super::target::{NodeArgs, block_on, report_call_failure};

const APPEND_EXAMPLES: &str = "\
Examples:
  telpher append acme/demo/log 'it rains'    one record
  telpher append acme/demo/log - < notes     one record: the standard input
  telpher append acme/demo/log --lines - < notes.txt
                                             one record for each line, all or none
  telpher append acme/demo/log --expect 7 x  append only if the next offset is 7

The first append creates the stream.";

const READ_EXAMPLES: &str = "\
Examples:
  telpher read acme/demo/log                 print every record on a line
  telpher read acme/demo/log --from 100 --follow
                                             from offset 100 on, and new records
  telpher read acme/demo/log --raw --count 1 > first
                                             the bytes of one record, unchanged";

/// Append records to a stream; returns when they are on disk
#[derive(Debug, clap::Args)]
#[command(after_help = APPEND_EXAMPLES)]
pub(crate) struct AppendArgs {
    /// Name of the stream: org/namespace/x, or x
    stream: String,

    /// Record, or `-` for the standard input
    body: String,

    /// Append each line as a record
    #[arg(long)]
    lines: bool,

    /// Append only if the first record gets this offset
    #[arg(long, value_name = "OFFSET")]
    expect: Option<u64>,

    #[command(flatten)]
    node: NodeArgs,
}

/// Read the records of a stream
#[derive(Debug, clap::Args)]
#[command(after_help = READ_EXAMPLES)]
pub(crate) struct ReadArgs {
    /// Name of the stream: org/namespace/x, or x
    stream: String,

    /// First offset to read [default: the oldest stored]
    #[arg(long, value_name = "OFFSET")]
    from: Option<u64>,

    /// Wait for new records and print them
    #[arg(short, long)]
    follow: bool,

    /// End after this number of records
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Print only the bytes of the records
    #[arg(long, conflicts_with = "json")]
    raw: bool,

    #[command(flatten)]
    node: NodeArgs,
}

const STREAMS: &str = "\
Examples:
  telpher streams
  telpher streams acme/ --json";

/// List the streams
#[derive(Debug, clap::Args)]
#[command(after_help = STREAMS)]
pub(crate) struct StreamsArgs {
    /// Prefix of names to list
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run_append(args: AppendArgs, environment: &Environment) -> Result<(), Failure> {
    let name = stream_name(&args.stream)?;
    let bytes = body::read(&args.body)?;
    let records = match args.lines {
        true => lines(&bytes),
        false => vec![&bytes[..]],
    };
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let stream = open(&client, &name)?;
        let appended = match args.expect {
            Some(expected) => stream.append_expecting(expected, &records).await,
            None => stream.append(&records).await,
        };
        let appended = appended.map_err(|error| append_failure(args.node.format, &name, &error))?;
        let (first, next) = (appended.first, appended.next);
        let human = match next - first {
            1 => format!("appended at {first}\n"),
            count => format!("appended {count} at {first}\n"),
        };
        output::print(
            args.node.format,
            &json!({ "first": first, "next": next }),
            &human,
        )
    })
}

/// Splits bytes into lines. A last line without a line break counts; an empty last line does not.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.split(|byte| *byte == b'\n').collect()
}

fn append_failure(format: Format, name: &Name, error: &CallError) -> Failure {
    let failure = report_call_failure(format, name, error);
    match RecordStream::end_of_conflict(error) {
        Some(next) => failure.hint(format!("the next offset is {next}: --expect {next}")),
        None => failure,
    }
}

pub(crate) fn run_read(args: ReadArgs, environment: &Environment) -> Result<(), Failure> {
    let name = stream_name(&args.stream)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let client = args.node.target.connect(environment).await?;
        let stream = open(&client, &name)?;
        tokio::select! {
            read = read(&stream, &args) => {
                read.map_err(|error| match error {
                    ReadError::Call(error) => report_call_failure(args.node.format, &name, &error),
                    ReadError::Output(failure) => failure,
                })
            }
            () = signals.next() => Ok(()),
        }
    })
}

enum ReadError {
    Call(CallError),
    Output(Failure),
}

impl From<CallError> for ReadError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Output(failure)
    }
}

async fn read(stream: &RecordStream, args: &ReadArgs) -> Result<(), ReadError> {
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut from = match args.from {
        Some(from) => from,
        None => oldest(stream).await?,
    };
    while left > 0 {
        let extract = stream.read_at_most(from, limit(left)).await?;
        let Some(last) = extract.records.last() else {
            if extract.next == 0 && !args.follow {
                let message = format!("no stream `{}`", args.stream);
                return Err(CallError::new(ErrorCode::NotFound, message).into());
            }
            break;
        };
        from = last.offset + 1;
        left -= extract.records.len() as u64;
        for record in &extract.records {
            show(record, args)?;
        }
    }
    if !args.follow || left == 0 {
        return Ok(());
    }
    let mut follow = stream.follow(from);
    while left > 0 {
        let Some(record) = follow.next().await else {
            break;
        };
        show(&record?, args)?;
        left -= 1;
    }
    Ok(())
}

fn limit(left: u64) -> ReadLimit {
    let limit = ReadLimit::default();
    ReadLimit {
        records_max: u32::try_from(left)
            .unwrap_or(u32::MAX)
            .min(limit.records_max),
        ..limit
    }
}

/// Returns the oldest stored offset.
async fn oldest(stream: &RecordStream) -> Result<u64, CallError> {
    // A read after the end returns no records, but the start of the stream.
    let RecordPage { start, .. } = stream.read(u64::MAX).await?;
    Ok(start)
}

fn show(record: &Record, args: &ReadArgs) -> Result<(), Failure> {
    if args.raw {
        return output::print_bytes(&record.body);
    }
    output::print_text(&match args.node.format.json {
        true => format!("{}\n", describe(record)),
        false => format!("{} {}\n", record.offset, body::show(&record.body)),
    })
}

fn describe(record: &Record) -> Value {
    let mut value = Map::new();
    value.insert("offset".to_owned(), record.offset.into());
    value.insert("time_ms".to_owned(), record.time_ms.into());
    value.insert("time".to_owned(), utc::format(record.time_ms / 1000).into());
    body::insert(&mut value, "body", &record.body);
    Value::Object(value)
}

pub(crate) fn run_streams(args: StreamsArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let client = args.node.target.connect(environment).await?;
        let found = pages(&client, args.node.format, "streams", &args.prefix).await?;
        let line = |stream: &Value| ["name", "start", "next"].map(|key| text(&stream[key]));
        let lines: Vec<_> = found.iter().map(line).collect();
        let human = table(["NAME", "START", "NEXT"], &lines);
        output::print(args.node.format, &json!({ "streams": found }), &human)
    })
}

fn open(client: &Client, name: &Name) -> Result<RecordStream, Failure> {
    client
        .stream(name.as_str())
        .map_err(|error| Failure::new(Exit::Usage, error))
}

pub(super) fn stream_name(text: &str) -> Result<Name, Failure> {
    let name = Name::parse(text).map_err(|error| Failure::new(Exit::Usage, error))?;
    match name.instance() {
        None => Ok(name),
        Some(_) => {
            let code = ErrorCode::InvalidArgument;
            let message = format!("`{name}` is not the name of a stream");
            Err(Failure::new(Exit::from(code), message).hint("write org/namespace/x, or x"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_line_is_one_record() {
        assert_eq!(lines(b"one\ntwo\n"), [b"one", b"two"]);
        assert_eq!(lines(b"one\ntwo"), [b"one", b"two"]);
        assert_eq!(lines(b"one\n\ntwo"), [&b"one"[..], b"", b"two"]);
    }
}
