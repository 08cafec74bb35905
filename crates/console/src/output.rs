//! Output of commands: results on the standard output, as text or JSON; all else on the standard
//! error.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::{ErrorReport, Exit, Failure};

/// The format of a command's result.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Format {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints a result: `human`, or `json` if JSON is requested.
pub fn print(format: Format, json: &serde_json::Value, human: &str) -> Result<(), Failure> {
    match format.json {
        true => print_text(&format!("{json:#}\n")),
        false => print_text(human),
    }
}

/// Prints text unchanged. A closed pipe (`telpher explain | head -1`) is not a failure.
pub fn print_text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    finish(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// True once the command has printed to the standard output.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints a failure as JSON to the standard output. If the command has already printed there, its
/// own document describes the failure, and nothing is printed.
///
/// Shape: `{"error":{"code":"usage","message":"…","hints":["…"]}}`; with several errors, `errors`
/// lists all of them.
pub fn print_failure(failure: &Failure) {
    if HAS_PRINTED.load(Ordering::Relaxed) {
        return;
    }
    let document = |report: &ErrorReport| {
        json!({
            "code": failure.exit.name(),
            "message": report.message,
            "hints": report.hints,
        })
    };
    let mut value = json!({});
    if let Some(first) = failure.errors.first() {
        value["error"] = document(first);
    }
    if failure.errors.len() > 1 {
        value["errors"] = failure.errors.iter().map(document).collect();
    }
    // If this cannot be written, the exit status still reports the failure.
    let _ = print_text(&format!("{value:#}\n"));
}

fn finish(written: io::Result<()>) -> Result<(), Failure> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Failed,
            format!("cannot write the output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints a piece of a longer output unchanged.
pub fn print_piece(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    finish(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Prints bytes unchanged. On a terminal a line break follows, so that the prompt begins a new
/// line.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let line_end: &[u8] = match stdout.is_terminal() && !bytes.ends_with(b"\n") {
        true => b"\n",
        false => b"",
    };
    finish(
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.write_all(line_end))
            .and_then(|()| stdout.flush()),
    )
}

/// Prints a line that is not part of the result to the standard error.
pub fn note(text: &str) {
    // If the standard error is closed, the note is dropped.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a failure: `error:` lines, each followed by its `hint:` lines.
pub fn print_errors(failure: &Failure, style: Style) {
    for report in &failure.errors {
        note(&format!(
            "{} {}",
            style.paint(RED, "error:"),
            report.message
        ));
        for hint in &report.hints {
            note(&format!("{} {hint}", style.paint(CYAN, "hint:")));
        }
    }
}

const RED: &str = "1;31";
/// The code of bright cyan, for [`Style::paint`].
pub const CYAN: &str = "1;36";
/// The code of bold text.
pub const BOLD: &str = "1";
/// The code of dim text.
pub const DIM: &str = "2";

/// The style of an output: with or without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text without escape sequences.
    Plain,
    /// Text with colours.
    Coloured,
}

impl Style {
    /// Returns the style of the standard error: colours on a terminal, unless `NO_COLOR`
    /// (<https://no-color.org>) is set.
    pub fn of_stderr(no_color: bool) -> Self {
        Self::of(no_color, &io::stderr())
    }

    /// Returns the style of the standard output, by the same rule.
    pub fn of_stdout(no_color: bool) -> Self {
        Self::of(no_color, &io::stdout())
    }

    fn of(no_color: bool, output: &impl IsTerminal) -> Self {
        match !no_color && output.is_terminal() {
            true => Self::Coloured,
            false => Self::Plain,
        }
    }

    /// Returns the text with a code of [ECMA-48](https://ecma-international.org/publications-and-standards/standards/ecma-48/)
    /// (SGR) around it, or unchanged.
    pub fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// Formats rows of cells in aligned columns; the last column is not padded.
pub fn columns<const WIDTH: usize>(rows: &[[String; WIDTH]]) -> String {
    let widths: Vec<usize> = (0..WIDTH)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let line: String = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}  "))
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats rows under a head in aligned columns. Columns of numbers are aligned to the right.
pub fn table<const WIDTH: usize>(head: [&str; WIDTH], rows: &[[String; WIDTH]]) -> String {
    let is_number =
        |cell: &String| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    let mut all = vec![head.map(str::to_owned)];
    all.extend_from_slice(rows);
    for column in 0..WIDTH {
        if rows.is_empty() || !rows.iter().all(|row| is_number(&row[column])) {
            continue;
        }
        let widths = all.iter().map(|row| row[column].chars().count());
        let width = widths.max().unwrap_or(0);
        for row in &mut all {
            row[column] = format!("{:>width$}", row[column]);
        }
    }
    columns(&all)
}

/// Escapes control characters, so that the text is one line and cannot move a terminal's cursor.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_control() {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_columns_are_right_aligned() {
        let rows = [["a", "7", "-"], ["b", "1234567", "8"]].map(|row| row.map(str::to_owned));
        assert_eq!(
            table(["NAME", "COUNT", "REST"], &rows),
            "NAME    COUNT  REST\na           7  -\nb     1234567  8\n"
        );
        assert_eq!(table(["NAME"], &[]), "NAME\n");
    }

    #[test]
    fn one_line_escapes_control_characters() {
        assert_eq!(one_line("grüße"), "grüße");
        assert_eq!(one_line("a\nb\x1b[2J"), "a\\nb\\u{1b}[2J");
    }

    #[test]
    fn table_columns_are_aligned_without_trailing_blanks() {
        let rows = [["a", "long", "x"], ["longer", "b", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows), "a       long  x\nlonger  b\n");
    }

    #[test]
    fn a_plain_style_has_no_escapes() {
        assert_eq!(Style::Plain.paint(RED, "error:"), "error:");
        assert!(Style::Coloured.paint(RED, "error:").contains('\x1b'));
    }
}
