//! How the demo looks: scenes, and lines of who says what to whom.

use std::io::IsTerminal;
use std::time::Duration;

use crate::failure::Failure;
use crate::output::{BOLD, CYAN, DIM, Style, print_text};

/// How long somebody who watches is given for a line.
const BREATH: Duration = Duration::from_millis(100);

/// Columns of a speaker's and a listener's name.
const FROM_WIDTH: usize = 11;
const TO_WIDTH: usize = 11;

/// Where the play is given. At a terminal it takes its time and has colours; elsewhere neither.
pub(super) struct Stage {
    style: Style,
    is_watched: bool,
}

impl Stage {
    pub(super) fn new(style: Style) -> Self {
        let is_watched = std::io::stdout().is_terminal();
        Self { style, is_watched }
    }

    /// What all of it is about.
    pub(super) fn title(&self, title: &str) -> Result<(), Failure> {
        print_text(&format!("{}\n\n", self.style.paint(BOLD, title)))
    }

    /// What comes next.
    pub(super) async fn scene(&self, title: &str) -> Result<(), Failure> {
        self.breathe(2).await;
        print_text(&format!("\n{}\n", self.style.paint(BOLD, title)))?;
        self.breathe(1).await;
        Ok(())
    }

    /// One agent says something to another.
    pub(super) async fn says(&self, from: &str, to: &str, what: &str) -> Result<(), Failure> {
        let arrow = self.style.paint(DIM, "→");
        let from = self.style.paint(CYAN, &format!("{from:>FROM_WIDTH$}"));
        print_text(&format!("{from} {arrow} {to:<TO_WIDTH$}  {what}\n"))?;
        self.breathe(1).await;
        Ok(())
    }

    /// Somebody remarks something to whoever watches.
    pub(super) async fn remarks(&self, who: &str, what: &str) -> Result<(), Failure> {
        let who = self.style.paint(CYAN, &format!("{who:>FROM_WIDTH$}"));
        let blank = "";
        print_text(&format!("{who}   {blank:<TO_WIDTH$}  {what}\n"))?;
        self.breathe(1).await;
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_two_or_three_figures() {
        let shown = [35, 999, 1_500, 25_400].map(|micros| short(Duration::from_micros(micros)));
        assert_eq!(shown, ["35 µs", "999 µs", "1.5 ms", "25 ms"]);
    }
}
