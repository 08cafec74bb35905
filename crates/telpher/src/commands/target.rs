//! The node of a client command: connecting to it, and failures of calls.

use std::path::PathBuf;

use client::{CallError, Client, ConnectError};
use model::{Name, Retry};
use serde_json::json;

use console::output::{self, Format};
use console::{Environment, Exit, Failure, call_failure};
use serve::address::URL_DEFAULT;

/// The node that a client command talks to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct Target {
    /// Address of the node: tcp://HOST:PORT, tls://HOST:PORT or unix://PATH
    ///
    /// [default: tcp://127.0.0.1:7400] [env: TELPHER_URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Bearer token, if the node requires one [env: TELPHER_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Certificates (PEM) to trust for tls:// [env: TELPHER_TLS_AUTHORITIES]
    #[arg(long, value_name = "FILE")]
    tls_authorities: Option<PathBuf>,

    /// Name of this client, which receivers see as the source [env: TELPHER_NAME]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// The node of a client command, and the format of its result.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct NodeArgs {
    #[command(flatten)]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) target: Target,
}

impl Target {
    /// The node at `url`, with credentials from the environment.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: Some(url.to_owned()),
            token: None,
            tls_authorities: None,
            name: None,
        }
    }

    /// Returns the address of the node.
    pub(crate) fn url(&self, environment: &Environment) -> String {
        given(&self.url, environment, "TELPHER_URL").unwrap_or_else(|| URL_DEFAULT.to_owned())
    }

    /// Returns the bearer token, if there is one.
    pub(crate) fn token(&self, environment: &Environment) -> Option<String> {
        given(&self.token, environment, "TELPHER_TOKEN")
    }

    /// Connects to the node.
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

/// Returns the flag's value, else the variable's.
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
                .hint("--tls-authorities FILE is the PEM file with the certificate to trust");
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
            failure.hint("`telpher serve --dev` starts a node; --url URL selects another one")
        }
        Exit::Denied => failure.hint("set the token with --token TOKEN or TELPHER_TOKEN"),
        _ => failure,
    }
}

/// Returns the message of an error without its hints.
fn brief(error: &ConnectError) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.starts_with("hint: "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Parses an agent's name.
pub(crate) fn agent_name(text: &str) -> Result<Name, Failure> {
    Name::parse(text).map_err(|error| {
        Failure::new(Exit::Usage, error)
            .hint("a name is agent, org/namespace/agent or org/namespace/agent/instance")
    })
}

/// Converts the error of a call to a failure; with `--json`, also prints it to the standard output.
pub(crate) fn report_call_failure(format: Format, name: &Name, error: &CallError) -> Failure {
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
    // A thread that still reads the standard input must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_is_a_usage_error_with_a_hint() {
        let error = "nonsense".parse::<net::Address>().unwrap_err();
        let failure = connect_failure(ConnectError::Address(error));
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints.len(), 1);
        assert!(!failure.errors[0].message.contains("hint"));
    }
}
