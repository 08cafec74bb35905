//! The terminal: events of the keyboard, samples in their interval, and signals.

use std::pin::Pin;

use console::{Exit, Failure, Signals};
use crossterm::event::{self, Event, KeyEventKind};
use ratatui::widgets::TableState;
use ratatui::{DefaultTerminal, restore, try_init};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::ask::Node;
use crate::draw::draw;
use crate::sample::Sample;
use crate::state::{Action, State};

type Sampling = Pin<Box<dyn Future<Output = Result<Sample, Failure>>>>;

/// A terminal in raw mode with a screen of its own, which is restored on drop. A panic restores it
/// too, before its message is printed.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> Result<Self, Failure> {
        match try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                restore();
                let message = format!("cannot use the terminal: {error}");
                Err(Failure::new(Exit::Failed, message)
                    .hint("`telpher top --once` prints one table"))
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Shows the state until a key or a signal ends it.
pub(crate) async fn run(node: &Node, mut state: State) -> Result<(), Failure> {
    let mut signals = Signals::listen()?.and_hangup()?;
    let mut screen = Screen::open()?;
    let mut events = events();
    let mut rows = TableState::default();
    let mut sampling: Option<Sampling> = Some(sample(node, &state));
    let mut next = Instant::now();
    loop {
        let drawn = screen.0.draw(|frame| draw(frame, &state, &mut rows));
        drawn.map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("cannot draw on the terminal: {error}"),
            )
        })?;
        tokio::select! {
            biased;
            _ = signals.next_or_hangup() => return Ok(()),
            event = events.recv() => match event {
                None => return Ok(()),
                Some(event) => match apply(&mut state, &event) {
                    Action::Quit => return Ok(()),
                    Action::Sample => {
                        // A sample with other questions is of no use.
                        rows = TableState::default();
                        sampling = Some(sample(node, &state));
                    }
                    Action::Draw => {}
                },
            },
            outcome = finish(&mut sampling) => {
                sampling = None;
                next = Instant::now() + state.interval;
                state.add(outcome.map_err(|failure| failure.to_string()));
            }
            () = tokio::time::sleep_until(next), if sampling.is_none() && !state.is_paused => {
                sampling = Some(sample(node, &state));
            }
        }
    }
}

/// Begins a sample for the present view.
fn sample(node: &Node, state: &State) -> Sampling {
    let (node, questions) = (node.clone(), state.questions());
    Box::pin(async move { node.sample(questions).await })
}

/// Waits for the sample, if one is being taken.
async fn finish(sampling: &mut Option<Sampling>) -> Result<Sample, Failure> {
    match sampling {
        Some(sampling) => sampling.await,
        None => std::future::pending().await,
    }
}

fn apply(state: &mut State, event: &Event) -> Action {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => state.press(*key),
        // A new size needs a new picture, as any other event.
        _ => Action::Draw,
    }
}

/// Reads events on a thread of its own, until the terminal ends.
fn events() -> mpsc::UnboundedReceiver<Event> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    receiver
}
