//! Which node a client command talks to, and what its failures look like.

use std::path::PathBuf;

use client::{CallError, Client, ConnectError};
use model::{ErrorCode, Name, Retry};
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::Environment;

/// Where a node listens when nobody says anything else.
pub(crate) const URL_DEFAULT: &str = "tcp://127.0.0.1:7400";

/// The node that a client command talks to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct Target {
    /// Where the node is: tcp://HOST:PORT, tls://HOST:PORT or unix://PATH
    ///
    /// [default: tcp://127.0.0.1:7400] [env: TELPHER_URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Bearer token, when the node asks for one [env: TELPHER_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Certificates (PEM) to trust behind tls:// [env: TELPHER_TLS_AUTHORITIES]
    #[arg(long, value_name = "FILE")]
    tls_authorities: Option<PathBuf>,

    /// Name to send under; whoever receives sees it as the source [env: TELPHER_NAME]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Target {
    /// The node at `url`, as whoever the environment says.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: Some(url.to_owned()),
            token: None,
            tls_authorities: None,
            name: None,
        }
    }

    /// Where the node is.
    pub(crate) fn url(&self, environment: &Environment) -> String {
        given(&self.url, environment, "TELPHER_URL").unwrap_or_else(|| URL_DEFAULT.to_owned())
    }

    /// The bearer token, if there is one.
    pub(crate) fn token(&self, environment: &Environment) -> Option<String> {
        given(&self.token, environment, "TELPHER_TOKEN")
    }

    /// Connects, or says why not.
    pub(crate) async fn connect(&self, environment: &Environment) -> Result<Client, Failure> {
        self.try_connect(environment).await.map_err(connect_failure)
    }

    async fn try_connect(&self, environment: &Environment) -> Result<Client, ConnectError> {
        let mut builder = Client::builder();
        if let Some(token) = self.token(environment) {
            builder = builder.token(token);
        }
        if let Some(name) = given(&self.name, environment, "TELPHER_NAME") {
            builder = builder.name(&name)?;
        }
        let variable = environment.get("TELPHER_TLS_AUTHORITIES");
        let authorities = self.tls_authorities.as_ref().map(|path| path.as_os_str());
        if let Some(path) = authorities.or(variable) {
            builder = builder.authorities(path);
        }
        builder.connect(&self.url(environment)).await
    }
}

/// The flag's value, else the variable's.
fn given(flag: &Option<String>, environment: &Environment, variable: &str) -> Option<String> {
    let variable = || Some(environment.get(variable)?.to_string_lossy().into_owned());
    flag.clone().or_else(variable)
}

fn connect_failure(error: ConnectError) -> Failure {
    let exit = match &error {
        ConnectError::Address(_)
        | ConnectError::Name(_)
        | ConnectError::Tls(_)
        | ConnectError::NameMissing { .. }
        | ConnectError::NameUnused { .. }
        | ConnectError::Unsupported { .. } => Exit::Usage,
        ConnectError::Io { cause, .. } if cause.kind() == std::io::ErrorKind::InvalidData => {
            return Failure::new(Exit::Denied, brief(&error))
                .hint("--tls-authorities FILE names the PEM file of the certificate to trust");
        }
        ConnectError::Io { .. } => Exit::Unavailable,
        ConnectError::Timeout { .. } => Exit::Timeout,
        ConnectError::Refused { code, .. } => Exit::from(*code),
        ConnectError::Protocol { .. } => Exit::Failed,
    };
    let text = error.to_string();
    let hints = text.lines().filter_map(|line| line.strip_prefix("hint: "));
    let failure = hints.fold(Failure::new(exit, brief(&error)), Failure::hint);
    match exit {
        Exit::Unavailable => {
            failure.hint("`telpher serve --dev` starts one; --url URL names another one")
        }
        Exit::Denied => failure.hint("--token TOKEN or TELPHER_TOKEN carries it"),
        _ => failure,
    }
}

/// What happened, without what to do about it.
fn brief(error: &ConnectError) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("hint: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// An agent's name as it was given.
pub(crate) fn agent_name(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| {
        Failure::new(Exit::Usage, error)
            .hint("a name is agent, org/namespace/agent or org/namespace/agent/instance")
    })
}

/// What a failed call looks like to a person.
pub(crate) fn call_failure(name: &Name, error: &CallError) -> Failure {
    let message = format!("{}: {}", error.code, error.message);
    let failure = Failure::new(Exit::from(error.code), message);
    match error.code {
        ErrorCode::NoResponder => failure
            .hint("`telpher agents` lists who is there")
            .hint(format!("`telpher listen {name} --echo` answers")),
        _ => failure.hint(error.hint()),
    }
}

/// The same, and for programs the outcome as JSON on the standard output.
pub(crate) fn tell_call_failure(format: Format, name: &Name, error: &CallError) -> Failure {
    let failure = call_failure(name, error);
    if !format.json {
        return failure;
    }
    let sent = match error.sent {
        client::Sent::Yes => "yes",
        client::Sent::No => "no",
        client::Sent::Unknown => "unknown",
    };
    let retry = match error.retry() {
        Retry::Never => "never",
        Retry::Safe => "safe",
        Retry::MayDuplicate => "may_duplicate",
    };
    let value = json!({
        "error": {
            "code": error.code.as_str(),
            "message": error.message,
            "sent": sent,
            "retry": retry,
            "retry_after_ms": error.retry_after.map(|pause| pause.as_millis() as u64),
        }
    });
    match output::print(format, &value, "") {
        Ok(()) => failure,
        Err(unprinted) => unprinted,
    }
}

/// Runs a client command on a runtime of its own.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot start the runtime: {error}"))
    })?;
    let outcome = runtime.block_on(command);
    // A thread that still reads the standard input must not keep the process.
    runtime.shutdown_background();
    outcome
}

/// How to name the node on a command line; nothing when it is where everybody looks.
pub(crate) fn flag_for(url: &str) -> String {
    match url {
        URL_DEFAULT => String::new(),
        url => format!(" --url {url}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_a_usage_error_with_its_hint() {
        let error = "nonsense".parse::<net::Address>().unwrap_err();
        let failure = connect_failure(ConnectError::Address(error));
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints.len(), 1);
        assert!(!failure.errors[0].message.contains("hint"));
    }

    #[test]
    fn the_usual_address_needs_no_flag() {
        assert_eq!(flag_for(URL_DEFAULT), "");
        assert_eq!(flag_for("unix:///x"), " --url unix:///x");
    }
}
