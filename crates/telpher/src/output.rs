//! What a command prints: data to the standard output, for people or as JSON; everything else to
//! the standard error.

use std::io::{self, IsTerminal, Write};

use crate::failure::{Exit, Failure};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Format {
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

/// Prints a result: `human` for people, the value for programs.
pub(crate) fn print(format: Format, json: &serde_json::Value, human: &str) -> Result<(), Failure> {
    match format.json {
        true => print_text(&format!("{json:#}\n")),
        false => print_text(human),
    }
}

/// Prints text as it is. Nobody reading it any more (`telpher explain | head -1`) is no failure.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Failed,
            format!("cannot write the output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Tells a person something that is not the result.
pub(crate) fn note(text: &str) {
    // Whoever closed the standard error does not want to be told.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Tells why the command failed: `error:` lines, each followed by its `hint:` lines.
pub(crate) fn tell(failure: &Failure, style: Style) {
    for told in &failure.errors {
        note(&format!("{} {}", style.paint(RED, "error:"), told.message));
        for hint in &told.hints {
            note(&format!("{} {hint}", style.paint(CYAN, "hint:")));
        }
    }
}

const RED: &str = "1;31";
const CYAN: &str = "1;36";

/// Whether the standard error gets colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Coloured,
}

impl Style {
    /// Colours are for terminals, and not when `NO_COLOR` (<https://no-color.org>) is set.
    pub(crate) fn of_stderr(no_color: bool) -> Self {
        match !no_color && io::stderr().is_terminal() {
            true => Self::Coloured,
            false => Self::Plain,
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// Rows of cells, as wide as they need; the last column runs free.
pub(crate) fn columns<const WIDTH: usize>(rows: &[[String; WIDTH]]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_end_without_blanks() {
        let rows = [["a", "long", "x"], ["longer", "b", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(columns(&rows), "a       long  x\nlonger  b\n");
    }

    #[test]
    fn a_plain_style_has_no_escapes() {
        assert_eq!(Style::Plain.paint(RED, "error:"), "error:");
        assert!(Style::Coloured.paint(RED, "error:").contains('\x1b'));
    }
}
