//! Converts usage errors of the parser to [`Failure`]s with hints.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use console::{Exit, Failure};

/// Maximum number of edits between a mistyped word and the suggested one.
const EDITS_MAX: usize = 2;

/// Converts an error of the parser to a failure. `arguments` are those after the program's name;
/// `root` is the whole command line.
pub(super) fn failure(error: &clap::Error, arguments: &[OsString], root: clap::Command) -> Failure {
    let text = error.render().to_string();
    let mut message = Vec::new();
    let mut hints = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(tip) = line.strip_prefix("tip: ") {
            hints.push(tip.to_owned());
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            hints.push(format!("usage: {usage}"));
        } else if !line.starts_with("For more information") {
            message.push(line.strip_prefix("error: ").unwrap_or(line));
        }
    }
    let message = plain(&message.join(" "));
    let command = Path::of(arguments, root);
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
    {
        hints = vec![command.suggest(typed)];
    }
    hints.push(format!("see `{} --help`", command.name));
    hints
        .into_iter()
        .fold(Failure::new(Exit::Usage, message), Failure::hint)
}

/// Replaces the error texts of the standard library's number parsers in the parser's message.
fn plain(message: &str) -> String {
    let mut plain = message.to_owned();
    for (found, instead) in [
        (
            "invalid digit found in string",
            "a whole number is expected",
        ),
        (
            "cannot parse integer from empty string",
            "a whole number is expected",
        ),
        (
            "number too large to fit in target type",
            "the number is too large",
        ),
        ("invalid float literal", "a number is expected"),
    ] {
        plain = plain.replace(found, instead);
    }
    plain
}

/// The innermost command in the arguments.
struct Path {
    name: String,
    subcommands: Vec<String>,
}

impl Path {
    fn of(arguments: &[OsString], mut command: clap::Command) -> Self {
        command.build();
        let mut name = command.get_name().to_owned();
        let mut at = &command;
        for argument in arguments {
            let Some(inner) = argument.to_str().and_then(|it| at.find_subcommand(it)) else {
                break;
            };
            name = format!("{name} {}", inner.get_name());
            at = inner;
        }
        let subcommands = at
            .get_subcommands()
            .filter(|it| !it.is_hide_set() && it.get_name() != "help");
        Self {
            name,
            subcommands: subcommands.map(|it| it.get_name().to_owned()).collect(),
        }
    }

    /// Returns a hint with the most similar subcommand, or with all subcommands.
    fn suggest(&self, typed: &str) -> String {
        match similar(typed, self.subcommands.iter().map(String::as_str)) {
            Some(known) => format!("did you mean `{} {known}`?", self.name),
            None => format!("the commands are {}", self.subcommands.join(", ")),
        }
    }
}

/// Returns the known word that is most similar to a mistyped one; `None` if none is similar.
pub(crate) fn similar<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let edits = known.map(|word| (strsim::damerau_levenshtein(typed, word), word));
    let nearest = edits.min_by_key(|(edits, _)| *edits);
    nearest
        .filter(|(edits, _)| *edits <= EDITS_MAX)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, message: &str, hint: &str) {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let all = [OsString::from("telpher")].into_iter();
        let error = super::super::command()
            .try_get_matches_from(all.chain(arguments.clone()))
            .unwrap_err();
        let failure = failure(&error, &arguments, super::super::command());
        let found = &failure.errors[0];
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(found.message, message);
        assert_eq!(found.hints[0], hint, "{:?}", found.hints);
    }

    #[test]
    fn a_mistyped_subcommand_suggests_the_nearest_one() {
        check(
            "bench rcp",
            "unrecognized subcommand 'rcp'",
            "did you mean `telpher bench rpc`?",
        );
        check(
            "config frobnicate",
            "unrecognized subcommand 'frobnicate'",
            "the commands are init, show, check",
        );
    }

    #[test]
    fn a_non_numeric_value_is_named_in_the_error() {
        check(
            "mailbox peek a/b/c --limit x",
            "invalid value 'x' for '--limit <N>': a whole number is expected",
            "see `telpher mailbox peek --help`",
        );
    }

    #[test]
    fn a_missing_argument_shows_the_usage() {
        check(
            "request",
            "the following required arguments were not provided: <AGENT>",
            "usage: telpher request <AGENT> [BODY]",
        );
    }
}
