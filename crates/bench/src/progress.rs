//! Progress display of a running suite, on standard error.
//!
//! The live lines are data and always printed. A terminal also shows a panel (runs done, time left,
//! last figures). Other outputs get a plain progress line at every tenth of the runs. `--quiet`
//! prints only the live lines.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use meter::clock;

/// Kind of progress display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    /// A panel below the live lines.
    Panel,
    /// A line at every tenth of the runs.
    Plain,
    /// Live lines only.
    Quiet,
}

impl Show {
    /// Returns the display that fits standard error.
    #[must_use]
    pub fn fitting(quiet: bool) -> Self {
        match (quiet, io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Panel,
            (false, false) => Self::Plain,
        }
    }
}

/// The progress of a suite.
pub struct Progress {
    out: Box<dyn Write + Send>,
    panel: Option<ProgressBar>,
    plain: bool,
    total: u32,
    done: u32,
    started_ns: u64,
}

impl Progress {
    /// Makes a display of `total` runs on standard error.
    #[must_use]
    pub fn new(total: u32, show: Show) -> Self {
        let mut progress = Self::to(Box::new(io::stderr()), total, show == Show::Plain);
        if show == Show::Panel {
            let panel = ProgressBar::with_draw_target(
                Some(u64::from(total)),
                ProgressDrawTarget::stderr_with_hz(8),
            );
            panel.set_style(style());
            panel.enable_steady_tick(Duration::from_millis(250));
            progress.panel = Some(panel);
        }
        progress
    }

    /// Makes a display that writes plain text to `out`. Without `plain` it writes only the live
    /// lines.
    #[must_use]
    pub fn to(out: Box<dyn Write + Send>, total: u32, plain: bool) -> Self {
        Self {
            out,
            panel: None,
            plain,
            total,
            done: 0,
            started_ns: clock::now_ns(),
        }
    }

    /// Prints a live line. Progress must not fail a run, so a closed standard error is ignored.
    pub fn line(&mut self, text: &str) {
        let out = &mut self.out;
        let mut print = || drop(writeln!(out, "{text}").and_then(|()| out.flush()));
        match &self.panel {
            Some(panel) => panel.suspend(print),
            None => print(),
        }
    }

    /// Shows the running case and its repeat in the panel.
    pub fn now(&mut self, words: &str) {
        if let Some(panel) = &self.panel {
            panel.set_prefix(words.to_owned());
        }
    }

    /// Adds runs to the expected total, as a sweep finds them.
    pub fn expect(&mut self, more: u32) {
        self.total += more;
        if let Some(panel) = &self.panel {
            panel.inc_length(u64::from(more));
        }
    }

    /// Counts a run as done; `figures` are its figures in a few words.
    pub fn done(&mut self, figures: &str) {
        self.done += 1;
        self.total = self.total.max(self.done);
        if let Some(panel) = &self.panel {
            panel.set_length(u64::from(self.total));
            panel.set_message(figures.to_owned());
            panel.inc(1);
        }
        let tenths = |done: u32| u64::from(done) * 10 / u64::from(self.total);
        if self.plain && tenths(self.done) > tenths(self.done - 1) {
            let elapsed_s = (clock::now_ns() - self.started_ns) as f64 / 1e9;
            let text = remaining(self.done, self.total, elapsed_s, figures);
            self.line(&text);
        }
    }

    /// Clears the panel.
    pub fn finish(&mut self) {
        if let Some(panel) = self.panel.take() {
            panel.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn remaining(done: u32, total: u32, elapsed_s: f64, figures: &str) -> String {
    let left_s = elapsed_s / f64::from(done) * f64::from(total - done);
    let left = match left_s {
        s if s < 0.5 => "done".to_owned(),
        s if s < 90.0 => format!("about {s:.0} s left"),
        s => format!("about {:.0} min left", s / 60.0),
    };
    format!("progress: {done} of {total} runs, {left}, last {figures}")
}

/// ```text
/// ━━━━━━━━━━╸                    12/75 runs  about 1m left
/// request-reply · 1 client · 16 B · repeat 13    101/s  p99 1.10 ms
/// ```
fn style() -> ProgressStyle {
    ProgressStyle::with_template(
        "{bar:30.cyan/dim} {pos}/{len} runs  {eta} left\n{spinner:.cyan} {prefix}  {msg:.dim}",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar())
    .progress_chars("━╸ ")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    #[test]
    fn plain_progress_prints_ten_lines() {
        let page = Page::default();
        let mut progress = Progress::to(Box::new(page.clone()), 25, true);
        (0..25).for_each(|_| progress.done("101/s"));
        let text = page.text();
        assert_eq!(text.lines().count(), 10, "{text}");
        assert!(text.starts_with("progress: 3 of 25 runs, "), "{text}");
        assert!(
            text.ends_with("progress: 25 of 25 runs, done, last 101/s\n"),
            "{text}"
        );
    }

    #[test]
    fn quiet_progress_leaves_the_live_lines() {
        let page = Page::default();
        let mut progress = Progress::to(Box::new(page.clone()), 2, false);
        progress.line("BENCHMARK_RESULT mode=write");
        progress.done("1/s");
        progress.done("1/s");
        assert_eq!(page.text(), "BENCHMARK_RESULT mode=write\n");
    }

    #[test]
    fn more_runs_than_announced_are_shown() {
        let page = Page::default();
        let mut progress = Progress::to(Box::new(page.clone()), 0, true);
        progress.done("1/s");
        progress.expect(1);
        progress.done("1/s");
        assert_eq!(page.text().lines().count(), 2);
    }

    #[test]
    fn the_time_left_is_extrapolated_from_completed_runs() {
        let words = |done, elapsed_s| remaining(done, 10, elapsed_s, "x");
        assert_eq!(
            words(5, 10.0),
            "progress: 5 of 10 runs, about 10 s left, last x"
        );
        assert_eq!(
            words(1, 60.0),
            "progress: 1 of 10 runs, about 9 min left, last x"
        );
    }

    #[test]
    fn the_panels_template_is_accepted() {
        assert!(ProgressStyle::with_template("{bar:30.cyan/dim} {pos}/{len} {eta}").is_ok());
        let panel = ProgressBar::with_draw_target(Some(3), ProgressDrawTarget::hidden());
        panel.set_style(style());
        panel.inc(1);
        assert_eq!(panel.position(), 1);
    }
}
