//! The log lines that a test's thread wrote.
//!
//! One subscriber serves all tests of the program. A subscriber for each thread would not do:
//! whether a log statement is of interest is decided once for all threads, by the first that comes
//! to it, and a thread without a subscriber decides that it is not.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Records the log lines of all threads from now on, from level `INFO` on. Further calls change
/// nothing. Every test calls it before the first log statement runs.
pub(crate) fn record() {
    static RECORDED: Once = Once::new();
    RECORDED.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

/// Number of lines that this thread wrote and that contain `text`.
pub(crate) fn lines_with(text: &str) -> usize {
    LINES.with_borrow(|lines| lines.iter().filter(|line| line.contains(text)).count())
}

struct Recorder;

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        LINES.with_borrow_mut(|lines| lines.push(line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}
