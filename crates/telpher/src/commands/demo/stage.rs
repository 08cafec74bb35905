//! Output of the demo: titles of scenes, and lines with a speaker and a listener.

use std::io::IsTerminal;
use std::time::Duration;

use console::output::{BOLD, CYAN, DIM, Format, Style, print_text};
use console::{Exit, Failure};
use model::Name;
use serde_json::json;

use crate::commands::target::agent_name;

/// Pause after a line at a terminal.
const BREATH: Duration = Duration::from_millis(100);

/// Columns of a speaker's and a listener's name.
const FROM_WIDTH: usize = 11;
const TO_WIDTH: usize = 11;

/// Prints the demo. At a terminal it pauses after each line and uses colours; with `--json` each line
/// is a JSON object.
pub(super) struct Stage {
    format: Format,
    style: Style,
    is_watched: bool,
}

impl Stage {
    pub(super) fn new(format: Format, style: Style) -> Self {
        let is_watched = std::io::stdout().is_terminal() && !format.json;
        Self {
            format,
            style,
            is_watched,
        }
    }

    /// Prints the title of the demo.
    pub(super) fn title(&self, title: &str) -> Result<(), Failure> {
        let text = format!("{}\n\n", self.style.paint(BOLD, title));
        self.print(&json!({"title": title}), &text)
    }

    /// Prints the title of the next scene.
    pub(super) async fn scene(&self, title: &str) -> Result<(), Failure> {
        self.breathe(2).await;
        let text = format!("\n{}\n", self.style.paint(BOLD, title));
        self.print(&json!({"scene": title}), &text)?;
        self.breathe(1).await;
        Ok(())
    }

    /// Prints what one agent says to another.
    pub(super) async fn says(&self, from: &str, to: &str, what: &str) -> Result<(), Failure> {
        let arrow = self.style.paint(DIM, "→");
        let speaker = self.style.paint(CYAN, &format!("{from:>FROM_WIDTH$}"));
        let text = format!("{speaker} {arrow} {to:<TO_WIDTH$}  {what}\n");
        self.print(&json!({"from": from, "to": to, "text": what}), &text)?;
        self.breathe(1).await;
        Ok(())
    }

    /// Prints a remark of an agent or of the node to the reader.
    pub(super) async fn remarks(&self, who: &str, what: &str) -> Result<(), Failure> {
        let speaker = self.style.paint(CYAN, &format!("{who:>FROM_WIDTH$}"));
        let blank = "";
        let text = format!("{speaker}   {blank:<TO_WIDTH$}  {what}\n");
        self.print(&json!({"from": who, "text": what.trim()}), &text)?;
        self.breathe(1).await;
        Ok(())
    }

    /// Prints the commands to try next. Programs get none.
    pub(super) fn next_steps(&self, text: &str) -> Result<(), Failure> {
        match self.format.json {
            true => Ok(()),
            false => print_text(text),
        }
    }

    fn print(&self, line: &serde_json::Value, text: &str) -> Result<(), Failure> {
        match self.format.json {
            true => print_text(&format!("{line}\n")),
            false => print_text(text),
        }
    }

    async fn breathe(&self, times: u32) {
        if self.is_watched {
            tokio::time::sleep(BREATH * times).await;
        }
    }
}

/// A short time as people read it.
pub(super) fn short(duration: Duration) -> String {
    let micros = duration.as_secs_f64() * 1e6;
    match micros {
        ..1000.0 => format!("{micros:.0} µs"),
        1000.0..10_000.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

/// Returns the name of an agent of the demo.
pub(super) fn demo_name(agent: &str) -> Result<Name, Failure> {
    agent_name(&format!("acme/desk/{agent}"))
}

/// Converts an unexpected outcome to a failure of the demo.
pub(super) fn broken(what: impl std::fmt::Display) -> Failure {
    let what = what.to_string();
    let what = what.lines().next().unwrap_or_default();
    Failure::new(Exit::Failed, format!("the demo failed: {what}"))
        .hint("this is a defect: please report it with the lines above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_times_have_two_or_three_digits() {
        let shown = [35, 999, 1_500, 25_400].map(|micros| short(Duration::from_micros(micros)));
        assert_eq!(shown, ["35 µs", "999 µs", "1.5 ms", "25 ms"]);
    }
}
