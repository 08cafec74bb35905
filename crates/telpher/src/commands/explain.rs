//! `telpher explain`: descriptions of the error codes.

use model::{ErrorCode, Executed, Retry};
use serde_json::{Value, json};

use console::output::{self, Format};
use console::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  telpher explain                  list every code
  telpher explain unconfirmed      explain a code by name
  telpher explain 9 --json         explain a code by number, as JSON";

/// Explain error codes: cause, whether the call was executed, whether to retry
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name or number of a code [default: all codes]
    code: Option<String>,

    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    match args.code {
        Some(text) => {
            let code = find(&text)?;
            output::print(args.format, &describe(code), &explain(code))
        }
        None => {
            let all: Vec<Value> = ErrorCode::ALL.into_iter().map(describe).collect();
            let rows = ErrorCode::ALL.map(|code| {
                [
                    code.as_u16().to_string(),
                    code.to_string(),
                    code.cause().to_owned(),
                ]
            });
            output::print(args.format, &Value::Array(all), &output::columns(&rows))
        }
    }
}

fn find(text: &str) -> Result<ErrorCode, Failure> {
    let by_number = || ErrorCode::from_u16(text.parse().ok()?);
    text.parse().ok().or_else(by_number).ok_or_else(|| {
        let failure = Failure::new(Exit::NotFound, format!("there is no error code `{text}`"));
        match model::nearest(text, ErrorCode::ALL.map(ErrorCode::as_str)) {
            Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
            None => failure.hint("`telpher explain` lists every code"),
        }
    })
}

fn explain(code: ErrorCode) -> String {
    let rows = [
        ["  cause", code.cause()],
        ["  raised by", code.raised_by()],
        ["  executed", executed(code)],
        ["  retry", retry(code)],
        ["  exit status", &(Exit::from(code) as u8).to_string()],
    ];
    let rows = rows.map(|row| row.map(str::to_owned));
    format!("{code} ({})\n{}", code.as_u16(), output::columns(&rows))
}

fn describe(code: ErrorCode) -> Value {
    let executed = match code.executed() {
        Executed::No => "no",
        Executed::Yes => "yes",
        Executed::Unknown => "unknown",
    };
    let retry = match code.retry() {
        Retry::Never => "never",
        Retry::Safe => "safe",
        Retry::MayDuplicate => "may_duplicate",
    };
    json!({
        "code": code.as_str(),
        "number": code.as_u16(),
        "cause": code.cause(),
        "raised_by": code.raised_by(),
        "executed": executed,
        "retry": retry,
        "exit_status": Exit::from(code) as u8,
    })
}

fn executed(code: ErrorCode) -> &'static str {
    match code.executed() {
        Executed::No => "no",
        Executed::Yes => "yes: the handler ran and returned this error",
        Executed::Unknown => "unknown",
    }
}

fn retry(code: ErrorCode) -> &'static str {
    match code.retry() {
        Retry::Never => "no: it would fail again",
        Retry::Safe => "yes, after a pause",
        Retry::MayDuplicate => "only if executing it twice is acceptable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_name_or_number() {
        assert_eq!(find("busy").unwrap(), ErrorCode::Busy);
        assert_eq!(find("3").unwrap(), ErrorCode::Busy);
        for text in ["", "0", "99", "-1", "bussy"] {
            assert_eq!(find(text).unwrap_err().exit, Exit::NotFound, "{text}");
        }
        let failure = find("bussy").unwrap_err();
        assert_eq!(failure.errors[0].hints, ["did you mean `busy`?"]);
    }
}
