//! `telpher conversation tail`: the newest messages, and new ones with `--follow`.
//!
//! New messages arrive as events, each with the position after it. After a lost connection the
//! command continues at the last position, even within a streamed answer.

use std::time::Duration;

use console::output::{self, Format, one_line};
use console::{Environment, Exit, Failure, Signals};
use model::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::events::{Event, Reader};
use super::http::{HttpError, HttpRequest, Node, Problem, parse};
use super::name::{conversation_name, path_of};
use super::render;
use crate::commands::target::{NodeArgs, block_on};

const EXAMPLES: &str = "\
Examples:
  telpher conversation tail support-42             print the newest 10 messages
  telpher conversation tail support-42 --follow    also new messages and streamed answers
  telpher conversation tail support-42 -n 0 -f --json
                                                   only new events, one JSON line each
  telpher conversation tail support-42 --from 42:7.17 --follow
                                                   continue after a position that --json printed";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// Number of newest messages to print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    last: u64,

    /// Wait for new messages and print them
    #[arg(short, long)]
    follow: bool,

    /// Start after this position: a message's number, or a position that --json printed
    #[arg(long, value_name = "POSITION", conflicts_with = "last")]
    from: Option<String>,

    /// End after this number of messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    #[command(flatten)]
    node: NodeArgs,
}

/// Pause before the connection is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let node = Node::connect(&args.node.target, environment).await?;
        let mut tail = Tail {
            node: &node,
            path: format!("{}/messages", path_of(&name)),
            screen: Screen::new(args.node.format),
            left: args.count.unwrap_or(u64::MAX),
            ends_at_head: !args.follow,
        };
        tokio::select! {
            shown = tail.run(args) => {
                shown.map_err(|error| error.report(args.node.format, Some(&name)))
            }
            () = signals.next() => Ok(()),
        }
    })
}

/// A page with the messages as raw JSON.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    head_seq: u64,
}

struct Tail<'a> {
    node: &'a Node,
    path: String,
    screen: Screen,
    /// Number of messages still to print.
    left: u64,
    /// True without `--follow`: the command ends at the newest message.
    ends_at_head: bool,
}

impl Tail<'_> {
    async fn run(&mut self, args: &Args) -> Result<(), HttpError> {
        let mut position = match &args.from {
            Some(position) => position.clone(),
            None => self.newest(args.last).await?,
        };
        if self.left == 0 || (args.from.is_none() && self.ends_at_head) {
            return Ok(());
        }
        loop {
            match self.follow(&mut position).await {
                Err(HttpError::Call(error)) if is_transient(error.code) => self.wait().await?,
                ended => return ended,
            }
        }
    }

    /// Prints the newest messages and returns the position after them.
    async fn newest(&mut self, last: u64) -> Result<String, HttpError> {
        // A page has at least one message; with `-n 0` it is only used for its position.
        let request = HttpRequest::get(format!("{}?last={}", self.path, last.max(1)));
        let page = self.node.ask(&request).await?;
        let page: Page<'_> = serde_json::from_slice(&page).map_err(|error| {
            let message = format!("the node's answer is not a page: {error}");
            Failure::new(Exit::Failed, message)
                .hint("compare the versions of the command and the node")
        })?;
        let wanted = usize::try_from(last.min(self.left)).unwrap_or(usize::MAX);
        for data in page.messages.iter().take(wanted) {
            let message = parse(data.get().as_bytes())?;
            self.message(&message["seq"].to_string(), &message, data.get())?;
        }
        Ok(page.head_seq.to_string())
    }

    fn message(&mut self, position: &str, message: &Value, data: &str) -> Result<(), Failure> {
        self.left -= 1;
        self.screen.message(position, message, data)
    }

    /// Prints the events after the position until the requested number of messages is reached.
    async fn follow(&mut self, position: &mut String) -> Result<(), HttpError> {
        let request = HttpRequest::get(&self.path)
            .header("accept", "text/event-stream")
            .header("last-event-id", &position);
        let mut pieces = self.node.open(&request).await?;
        let mut reader = Reader::default();
        while let Some(piece) = pieces.next().await? {
            for event in reader.feed(&piece) {
                if self.event(&event)? {
                    return Ok(());
                }
                *position = event.id;
            }
        }
        let code = ErrorCode::Unavailable;
        Err(HttpError::Call(client::CallError::new(
            code,
            "the node ended the stream",
        )))
    }

    /// Handles an event; true if the command is done.
    fn event(&mut self, event: &Event) -> Result<bool, HttpError> {
        let data = parse(event.data.as_bytes())?;
        match &event.kind[..] {
            "message" => self.message(&event.id, &data, &event.data)?,
            "head" if self.ends_at_head => return Ok(true),
            "error" => return Err(HttpError::Refused(Problem::of(data))),
            kind => self.screen.other(kind, &event.id, &data, &event.data)?,
        }
        Ok(self.left == 0)
    }

    /// Waits until the client is connected again.
    async fn wait(&mut self) -> Result<(), Failure> {
        self.screen.end_line()?;
        output::note("connection lost; waiting for the node");
        tokio::time::sleep(PAUSE).await;
        self.node.wait_for_connection().await;
        Ok(())
    }
}

/// True for errors that a later attempt may not have.
fn is_transient(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Unconfirmed
            | ErrorCode::Unavailable
            | ErrorCode::NoResponder
            | ErrorCode::Cancelled
    )
}

/// The output, with the state of the streamed answer on its last line.
#[derive(Debug)]
struct Screen {
    format: Format,
    /// The id of the streamed answer on the last line, and its text so far.
    running: Option<(String, String)>,
}

impl Screen {
    fn new(format: Format) -> Self {
        Self {
            format,
            running: None,
        }
    }

    fn message(&mut self, position: &str, message: &Value, data: &str) -> Result<(), Failure> {
        if self.format.json {
            return self.line("message", position, data);
        }
        let running = self.running.take();
        let id = message["id"].as_str().unwrap_or_default();
        if running.is_some() {
            output::print_text("\n")?;
        }
        match running {
            Some((running, shown)) if running == id && shown == render::plain(message) => {
                let head = render::head(message);
                output::print_text(&format!("{head}: ({}, as above)\n", one_line(id)))
            }
            _ => output::print_text(&render::message(message)),
        }
    }

    /// Prints an event that is not a message.
    fn other(
        &mut self,
        kind: &str,
        position: &str,
        data: &Value,
        text: &str,
    ) -> Result<(), Failure> {
        if self.format.json {
            return self.line(kind, position, text);
        }
        match kind {
            "delta" => self.delta(data),
            "stop" => {
                self.end_line()?;
                let id = data["mid"].as_str().unwrap_or_default();
                output::print_text(&format!("~ {}: stop requested\n", one_line(id)))
            }
            "cleared" => {
                self.end_line()?;
                let seq = &data["cleared_seq"];
                output::print_text(&format!("~ messages up to {seq} were cleared\n"))
            }
            "retracted" => {
                self.end_line()?;
                let (first, last) = (&data["first_seq"], &data["last_seq"]);
                output::print_text(&format!("~ numbers {first} to {last} were retracted\n"))
            }
            _ => Ok(()),
        }
    }

    fn delta(&mut self, data: &Value) -> Result<(), Failure> {
        let (id, chunk) = (data["mid"].as_str().unwrap_or_default(), &data["chunk"]);
        if self
            .running
            .as_ref()
            .is_none_or(|(running, _)| running != id)
        {
            self.end_line()?;
            output::print_text(&format!("~ {}: ", one_line(id)))?;
            self.running = Some((id.to_owned(), String::new()));
        }
        if chunk["type"] != "text-delta" {
            return Ok(());
        }
        let delta = chunk["delta"].as_str().unwrap_or_default();
        if let Some((_, shown)) = &mut self.running {
            shown.push_str(delta);
        }
        output::print_text(&render::lines(delta))
    }

    /// Ends the line of a streamed answer.
    fn end_line(&mut self) -> Result<(), Failure> {
        match self.running.take() {
            Some(_) => output::print_text("\n"),
            None => Ok(()),
        }
    }

    /// Prints an event as a JSON line, with its data unchanged.
    fn line(&self, kind: &str, position: &str, data: &str) -> Result<(), Failure> {
        let (kind, position) = (json!(kind), json!(position));
        let data = data.replace('\n', " ");
        output::print_text(&format!(
            "{{\"event\":{kind},\"position\":{position},\"data\":{data}}}\n"
        ))
    }
}
