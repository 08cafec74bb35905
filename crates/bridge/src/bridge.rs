//! [`Bridge`]: the task of a bridge, which handles the events of both sides.

use std::time::Duration;

use client::{Client, Envelope, Events};
use console::output::{self, Format};
use console::{ConnectionNotes, Exit, Failure};
use model::{ErrorCode, Name};
use serde_json::json;
use slim::session::{Endpoint, Identity, Limits};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::inward::{Answered, Inward};
use super::line::{Event, Line};
use super::node::SlimNode;
use super::options::{Options, fill, parts};
use super::outward::Outward;
use super::sessions::{Happened, Sessions};

/// Time between two checks of deadlines.
const TICK: Duration = Duration::from_millis(50);

/// Maximum silence of a peer. Peers send heartbeats every 10 s.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Time limit of open requests, and of the notices to peers, at the end.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// A bridge between an agent and SLIM applications. It works while [`Bridge::run`] is polled.
pub struct Bridge {
    format: Format,
    agent: Name,
    slim_name: Name,
    to: Option<Name>,
    client: Client,
    events: Events,
    notes: ConnectionNotes,
    line: Line,
    is_subscribed: bool,
    sessions: Sessions,
    side: Side,
    ticks: Interval,
}

/// The direction of requests.
enum Side {
    Inward(Inward),
    Outward(Box<Outward>),
}

/// An event of the native side.
enum Native {
    Answered(Answered),
    Asked(Envelope),
    Ended(ErrorCode),
}

impl Side {
    async fn next(&mut self) -> Native {
        match self {
            Self::Inward(inward) => Native::Answered(inward.next().await),
            Self::Outward(outward) => match outward.next().await {
                Ok(envelope) => Native::Asked(envelope),
                Err(code) => Native::Ended(code),
            },
        }
    }

    fn is_idle(&self) -> bool {
        match self {
            Self::Inward(inward) => inward.is_idle(),
            Self::Outward(outward) => outward.is_idle(),
        }
    }
}

impl Bridge {
    /// Connects to the SLIM node, and subscribes to the agent's name if agents call.
    pub async fn start(
        options: Options,
        identity: Identity,
        client: Client,
        node: SlimNode,
    ) -> Result<Self, Failure> {
        let line = Line::open(node).await?;
        let sessions_max = options.sessions_max;
        let limits = Limits {
            sessions_max,
            asked_max: if options.to.is_some() {
                0
            } else {
                sessions_max
            },
            silence_ns_max: SILENCE_MAX.as_nanos() as u64,
        };
        let mut seed = [0; 8];
        fill(&mut seed)?;
        let seed = u64::from_le_bytes(seed);
        let endpoint = Endpoint::new(parts(&options.slim_name), identity, seed, limits);
        let side = match options.to.clone() {
            None => Side::Inward(Inward::new(&client, &options)?),
            Some(to) => Side::Outward(Box::new(Outward::new(&client, to, &options).await?)),
        };
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            format: options.format,
            agent: options.agent,
            slim_name: options.slim_name,
            to: options.to,
            events: client.events(),
            client,
            notes: ConnectionNotes::default(),
            line,
            is_subscribed: false,
            sessions: Sessions::new(endpoint),
            side,
            ticks,
        })
    }

    /// Works until a failure that cannot be repaired.
    pub async fn run(&mut self) -> Result<(), Failure> {
        loop {
            self.step().await?;
        }
    }

    /// Finishes open requests, and notifies peers.
    pub async fn finish(&mut self) {
        match &mut self.side {
            Side::Inward(inward) => inward.finish(),
            Side::Outward(outward) => outward.finish(),
        }
        let finishing = async {
            while !self.side.is_idle() {
                self.step().await?;
            }
            self.sessions.close_all();
            while self.sessions.count() > 0 && self.sessions.is_up() {
                self.step().await?;
            }
            Ok::<_, Failure>(())
        };
        // Requests that are still open after that are dropped.
        let _ = timeout(FINISH_TIMEOUT, finishing).await;
        self.client.close().await;
    }

    /// Prints the totals of the requests and messages that were bridged.
    pub fn print_totals(&self) -> Result<(), Failure> {
        let tally = &self.sessions.tally;
        print_event(self.format, &tally.document(), &tally.sentence())
    }

    async fn step(&mut self) -> Result<(), Failure> {
        tokio::select! {
            event = self.line.next() => self.slim(event)?,
            native = self.side.next() => self.native(native)?,
            Some(state) = self.events.next() => self.notes.print(&state),
            _ = self.ticks.tick() => self.tick(),
        }
        while let Some(happened) = self.sessions.next() {
            self.happened(happened)?;
        }
        Ok(())
    }

    fn slim(&mut self, event: Option<Event>) -> Result<(), Failure> {
        match event {
            Some(Event::Up(link, writes)) => self.sessions.up(link, writes),
            Some(Event::Message(message)) => self.sessions.receive(&message),
            Some(Event::Down(reason)) => {
                let event = json!({"event": "disconnected", "reason": reason.to_string()});
                let text = format!("connection to the SLIM node lost ({reason}): trying again");
                print_event(self.format, &event, &text)?;
                self.sessions.down();
            }
            None => {
                return Err(Failure::new(
                    Exit::Failed,
                    "the line to the SLIM node ended",
                ));
            }
        }
        Ok(())
    }

    fn native(&mut self, native: Native) -> Result<(), Failure> {
        match (native, &mut self.side) {
            (Native::Answered(answered), Side::Inward(inward)) => {
                inward.answer(answered, &mut self.sessions);
            }
            (Native::Asked(envelope), Side::Outward(outward)) => {
                outward.ask(envelope, &mut self.sessions);
            }
            (Native::Ended(code), _) => {
                let message = format!("the subscription to {} ended: {code}", self.agent);
                return Err(Failure::new(Exit::from(code), message)
                    .hint(format!("`telpher explain {code}` says more")));
            }
            (Native::Answered(_), Side::Outward(_)) | (Native::Asked(_), Side::Inward(_)) => {}
        }
        Ok(())
    }

    fn tick(&mut self) {
        self.sessions.tick();
        if let Side::Outward(outward) = &mut self.side {
            outward.tick(&mut self.sessions);
        }
    }

    fn happened(&mut self, happened: Happened) -> Result<(), Failure> {
        let sessions = &mut self.sessions;
        match (happened, &mut self.side) {
            (Happened::Subscribed(outcome), _) => return self.subscribed(outcome),
            (Happened::Opened(session, peer), Side::Inward(inward)) => inward.opened(session, peer),
            (Happened::Opened(session, peer), Side::Outward(outward)) => {
                outward.opened(session, peer, sessions);
            }
            (Happened::Alive(session), Side::Outward(outward)) => outward.alive(session, sessions),
            (Happened::Alive(_), Side::Inward(_)) => {}
            (Happened::Said(session, message), Side::Inward(inward)) => {
                inward.said(session, message, sessions);
            }
            (Happened::Said(session, message), Side::Outward(outward)) => {
                outward.said(session, message, sessions);
            }
            (Happened::Over(session, _), Side::Inward(inward)) => inward.over(session),
            (Happened::Over(session, ending), Side::Outward(outward)) => {
                outward.over(session, ending, sessions);
            }
        }
        Ok(())
    }

    fn subscribed(&mut self, outcome: Result<(), String>) -> Result<(), Failure> {
        if let Err(reason) = outcome {
            let name = &self.slim_name;
            let message = format!("the SLIM node does not let us be {name}: {reason}");
            return Err(Failure::new(Exit::Denied, message).hint(
                "--as ORG/NAMESPACE/APP names another one; rules are the node's `slim.rules`",
            ));
        }
        let is_again = std::mem::replace(&mut self.is_subscribed, true);
        let agent = self.agent.to_string();
        let (event, text) = match (is_again, &self.to) {
            (true, _) => (
                json!({"event": "reconnected"}),
                "connected to the SLIM node again".to_owned(),
            ),
            (false, None) => {
                let name = self.sessions.name();
                (
                    json!({"event": "bridging", "slim": name.to_string(), "agent": agent}),
                    format!("bridging {name} to the agent {agent}"),
                )
            }
            (false, Some(to)) => (
                json!({"event": "bridging", "agent": agent, "slim": to.to_string()}),
                format!("bridging {agent} to the SLIM application {to}"),
            ),
        };
        print_event(self.format, &event, &text)
    }
}

/// Prints an event of the bridge: for people on the standard error, as JSON on a line of the standard
/// output.
fn print_event(format: Format, event: &serde_json::Value, text: &str) -> Result<(), Failure> {
    match format.json {
        true => output::print_text(&format!("{event}\n")),
        false => {
            output::note(text);
            Ok(())
        }
    }
}
