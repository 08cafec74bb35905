//! `telpher conversation tail`: the newest messages, and those that come.
//!
//! What comes is a stream of events, each with the position behind it; after a lost connection it
//! goes on there, also within an answer.

use std::time::Duration;

use model::ErrorCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::ask::{Node, Problem, Question, Trouble, parse};
use super::events::{Event, Reader};
use super::{conversation_name, path_of, render};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format, one_line};
use crate::serve::Signals;
use crate::settings::Environment;

const EXAMPLES: &str = "\
Examples:
  telpher conversation tail support-42             the newest 10 messages
  telpher conversation tail support-42 --follow    and those that come; answers while they are written
  telpher conversation tail support-42 -n 0 -f --json
                                                   what comes, an event a line, for a program
  telpher conversation tail support-42 --from 42:7.17 --follow
                                                   behind a position, as --json prints it";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of the conversation: org/namespace/x, or x
    conversation: String,

    /// The newest messages, that many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    last: u64,

    /// Wait for what comes
    #[arg(short, long)]
    follow: bool,

    /// Everything behind this position instead: a message's number, or what --json printed
    #[arg(long, value_name = "POSITION", conflicts_with = "last")]
    from: Option<String>,

    /// End after this many messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

/// Between attempts to go on.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    let name = conversation_name(&args.conversation)?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let node = Node::connect(&args.target, environment).await?;
        let mut tail = Tail {
            node: &node,
            path: format!("{}/messages", path_of(&name)),
            screen: Screen::new(args.format),
            left: args.count.unwrap_or(u64::MAX),
            ends_at_head: !args.follow,
        };
        tokio::select! {
            shown = tail.run(args) => {
                shown.map_err(|trouble| trouble.tell(args.format, Some(&name)))
            }
            () = signals.next() => Ok(()),
        }
    })
}

/// A page, with each message as it is.
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
    /// Messages that are still wanted.
    left: u64,
    /// Whether what is there is enough.
    ends_at_head: bool,
}

impl Tail<'_> {
    async fn run(&mut self, args: &Args) -> Result<(), Trouble> {
        let mut position = match &args.from {
            Some(position) => position.clone(),
            None => self.newest(args.last).await?,
        };
        if self.left == 0 || (args.from.is_none() && self.ends_at_head) {
            return Ok(());
        }
        loop {
            match self.follow(&mut position).await {
                Err(Trouble::Call(error)) if is_passing(error.code) => self.wait().await?,
                ended => return ended,
            }
        }
    }

    /// Shows the newest messages; where what follows begins.
    async fn newest(&mut self, last: u64) -> Result<String, Trouble> {
        // An empty page is none: of one message everything but its number is passed over.
        let question = Question::get(format!("{}?last={}", self.path, last.max(1)));
        let page = self.node.ask(&question).await?;
        let page: Page<'_> = serde_json::from_slice(&page).map_err(|error| {
            let message = format!("the node's answer is not a page: {error}");
            Failure::new(Exit::Failed, message).hint("compare the versions of the two sides")
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

    /// Shows what comes behind the position, until nothing more is wanted.
    async fn follow(&mut self, position: &mut String) -> Result<(), Trouble> {
        let question = Question::get(&self.path)
            .header("accept", "text/event-stream")
            .header("last-event-id", &position);
        let mut pieces = self.node.open(&question).await?;
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
        Err(Trouble::Call(client::CallError::new(
            code,
            "the node ended the stream",
        )))
    }

    /// Whether nothing more is wanted.
    fn event(&mut self, event: &Event) -> Result<bool, Trouble> {
        let data = parse(event.data.as_bytes())?;
        match &event.kind[..] {
            "message" => self.message(&event.id, &data, &event.data)?,
            "head" if self.ends_at_head => return Ok(true),
            "error" => return Err(Trouble::Refused(Problem::of(data))),
            kind => self.screen.other(kind, &event.id, &data, &event.data)?,
        }
        Ok(self.left == 0)
    }

    /// Waits for a node to go on with.
    async fn wait(&mut self) -> Result<(), Failure> {
        self.screen.end_line()?;
        output::note("the connection is lost; it goes on when there is a node again");
        tokio::time::sleep(PAUSE).await;
        self.node.wait_for_connection().await;
        Ok(())
    }
}

/// Whether it may be another time.
fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Unconfirmed
            | ErrorCode::Unavailable
            | ErrorCode::NoResponder
            | ErrorCode::Cancelled
    )
}

/// What is printed, and how far an answer that is being written is on it.
#[derive(Debug)]
struct Screen {
    format: Format,
    /// Whose text stands on the last line, and all of it.
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

    /// An event that is no message.
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
                output::print_text(&format!("~ {}: is asked to stop\n", one_line(id)))
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

    /// Ends the line on which a text stands.
    fn end_line(&mut self) -> Result<(), Failure> {
        match self.running.take() {
            Some(_) => output::print_text("\n"),
            None => Ok(()),
        }
    }

    /// An event for programs, with its data as they are.
    fn line(&self, kind: &str, position: &str, data: &str) -> Result<(), Failure> {
        let (kind, position) = (json!(kind), json!(position));
        let data = data.replace('\n', " ");
        output::print_text(&format!(
            "{{\"event\":{kind},\"position\":{position},\"data\":{data}}}\n"
        ))
    }
}
