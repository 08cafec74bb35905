//! `telpher conversation export` and `import`: a whole conversation as JSON lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use console::output::{self, Format};
use console::{Environment, Exit, Failure};
use serde_json::{Value, json};

use super::http::{HttpError, HttpRequest, Node, Problem, parse};
use super::name::{conversation_name, path_of};
use crate::commands::target::{NodeArgs, Target, block_on};

const EXPORT_EXAMPLES: &str = "\
Examples:
  telpher conversation export support-42 > support-42.jsonl
  telpher conversation export support-42 | telpher conversation import copy-of-42
  telpher conversation export support-42 | jq -r 'select(.seq) | .role + \": \" + .parts[0].text'

The first line has the settings of the conversation, every other line is a message, byte for byte as \
it was written. If the exit status is not 0, the export is incomplete.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  telpher conversation import support-42 support-42.jsonl
  telpher conversation import support-42 < support-42.jsonl

Messages keep their ids, so an interrupted import can be repeated. The settings of the first line are \
applied at the end.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArgs {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// File with the JSON lines [default: the standard input]
    file: Option<PathBuf>,

    #[command(flatten)]
    node: NodeArgs,
}

/// Approximate size of the lines that are sent in one request, in bytes.
const PIECE_SIZE: usize = 1 << 20;

pub(super) fn run_export(args: &ExportArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let exchange = async {
            let path = format!("{}/export", path_of(&name));
            let mut pieces = node.open(&HttpRequest::get(path)).await?;
            while let Some(piece) = pieces.next().await? {
                output::print_piece(&piece)?;
            }
            Ok::<_, HttpError>(())
        };
        let for_people = Format { json: false };
        let exchange = exchange.await;
        exchange.map_err(|error| error.report(for_people, Some(&name)))
    })
}

pub(super) fn run_import(args: &ImportArgs, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    let mut lines = Lines::open(args.file.as_deref())?;
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let path = format!("{}/import", path_of(&name));
        let mut done = ImportTotals::default();
        let exchange = async {
            let head = lines.head()?;
            while let Some((first, piece)) = lines.piece()? {
                done.add(&send(&node, &path, first, piece).await?);
            }
            // The settings may make the conversation read-only or set read marks, so they come
            // last.
            if let Some(head) = head {
                done.add(&send(&node, &path, 0, head).await?);
            }
            Ok::<_, HttpError>(())
        };
        let exchange = exchange.await;
        exchange.map_err(|error| error.report(args.node.format, Some(&name)))?;
        output::print(args.node.format, &done.document(), &done.human())
    })
}

/// Sends lines to the node; `first` is the number of lines of the file before them.
async fn send(node: &Node, path: &str, first: u64, lines: String) -> Result<Value, HttpError> {
    let answer = node.ask(&HttpRequest::new("POST", path).lines(lines)).await;
    let answer = answer.map_err(|error| located(error, first))?;
    Ok(parse(&answer)?)
}

/// Converts the line number within the piece, in the node's answer, to that within the file.
fn located(error: HttpError, first: u64) -> HttpError {
    match error {
        HttpError::Refused(mut problem) => {
            let Problem { detail, extra, .. } = &mut problem;
            if let Some(line) = extra.get("line").and_then(Value::as_u64) {
                let line = first + line;
                extra.insert("line".to_owned(), line.into());
                *detail = format!("line {line}: {detail}");
            }
            HttpError::Refused(problem)
        }
        other => other,
    }
}

/// Reads the lines of a file or of the standard input in pieces.
struct Lines {
    input: Box<dyn BufRead>,
    /// A line that was read ahead.
    ahead: String,
    /// Number of lines read so far.
    read: u64,
}

impl Lines {
    fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let input: Box<dyn BufRead> = match path {
            None => Box::new(BufReader::new(io::stdin())),
            Some(path) if path == Path::new("-") => Box::new(BufReader::new(io::stdin())),
            Some(path) => Box::new(BufReader::new(File::open(path).map_err(|error| {
                let message = format!("cannot open `{}`: {error}", path.display());
                Failure::new(Exit::NotFound, message).hint("`-` is the standard input")
            })?)),
        };
        Ok(Self::of(input))
    }

    fn of(input: Box<dyn BufRead>) -> Self {
        Self {
            input,
            ahead: String::new(),
            read: 0,
        }
    }

    /// Reads the first line; returns it if it has the settings of the conversation.
    fn head(&mut self) -> Result<Option<String>, Failure> {
        let mut line = String::new();
        self.line(&mut line)?;
        let document = serde_json::from_str::<Value>(&line);
        if document.is_ok_and(|document| document.get("conversation").is_some()) {
            return Ok(Some(line));
        }
        self.ahead = line;
        Ok(None)
    }

    /// Appends the next line to `text`; false at the end of the input.
    fn line(&mut self, text: &mut String) -> Result<bool, Failure> {
        match self.input.read_line(text) {
            Ok(0) => Ok(false),
            Ok(_) => {
                self.read += 1;
                Ok(true)
            }
            Err(error) => {
                let message = format!("cannot read line {}: {error}", self.read + 1);
                let failure = Failure::new(Exit::Failed, message);
                Err(failure.hint("`telpher conversation export` writes such lines"))
            }
        }
    }

    /// Returns the number of lines before, and the next lines; `None` at the end.
    fn piece(&mut self) -> Result<Option<(u64, String)>, Failure> {
        let mut piece = std::mem::take(&mut self.ahead);
        let first = self.read - u64::from(!piece.is_empty());
        while piece.len() < PIECE_SIZE && self.line(&mut piece)? {}
        Ok((self.read > first).then_some((first, piece)))
    }
}

/// Totals of an import.
#[derive(Debug, Default)]
struct ImportTotals {
    appended: u64,
    deduplicated: u64,
    head_seq: u64,
}

impl ImportTotals {
    fn add(&mut self, answer: &Value) {
        let number = |member: &str| answer[member].as_u64().unwrap_or(0);
        self.appended += number("appended");
        self.deduplicated += number("deduplicated");
        self.head_seq = self.head_seq.max(number("head_seq"));
    }

    fn document(&self) -> Value {
        json!({
            "appended": self.appended, "deduplicated": self.deduplicated, "head_seq": self.head_seq,
        })
    }

    fn human(&self) -> String {
        let Self {
            appended,
            deduplicated,
            head_seq,
        } = self;
        match deduplicated {
            0 => format!("{appended} appended; the newest message is {head_seq}\n"),
            _ => format!(
                "{appended} appended, {deduplicated} skipped because they exist; the newest \
                 message is {head_seq}\n"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_in_pieces_and_counted() {
        let line = format!("{}\n", "x".repeat(PIECE_SIZE / 2));
        let text = format!("{line}{line}{line}last");
        let mut lines = Lines::of(Box::new(io::Cursor::new(text.into_bytes())));
        assert!(lines.head().unwrap().is_none());
        let (first, piece) = lines.piece().unwrap().unwrap();
        assert_eq!((first, piece.lines().count()), (0, 2));
        let (first, piece) = lines.piece().unwrap().unwrap();
        assert_eq!((first, piece.lines().last()), (2, Some("last")));
        assert!(lines.piece().unwrap().is_none());
    }

    #[test]
    fn the_settings_line_is_returned_separately() {
        let text = "{\"conversation\":{}}\n{\"role\":\"user\"}\n";
        let mut lines = Lines::of(Box::new(io::Cursor::new(text)));
        assert_eq!(lines.head().unwrap().unwrap(), "{\"conversation\":{}}\n");
        let (first, piece) = lines.piece().unwrap().unwrap();
        assert_eq!((first, &piece[..]), (1, "{\"role\":\"user\"}\n"));
        assert!(lines.piece().unwrap().is_none());
        let mut nothing = Lines::of(Box::new(io::empty()));
        assert!(nothing.head().unwrap().is_none());
        assert!(nothing.piece().unwrap().is_none());
    }

    #[test]
    fn line_numbers_of_a_piece_become_those_of_the_file() {
        let document = json!({ "code": "invalid_argument", "detail": "no", "line": 3 });
        let error = located(HttpError::Refused(Problem::of(document)), 10);
        let HttpError::Refused(problem) = error else {
            panic!("{error:?}")
        };
        assert_eq!(
            (&problem.detail[..], &problem.extra["line"]),
            ("line 13: no", &13.into())
        );
    }
}
