//! The node of a client command: connecting to it, and failures of calls.

use std::path::PathBuf;

use client::{CallError, Client, ConnectError};
use model::{Name, Retry};
use serde_json::json;

use console::output::{self, Format};
use console::{Environment, Exit, Failure, call_failure};
use serve::address::URL_DEFAULT;

use crate::contexts::{self, Context, Contexts};

/// The node that a client command talks to.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Node")]
pub(crate) struct Target {
    /// Address of the node: tcp://HOST:PORT, tls://HOST:PORT or unix://PATH
    ///
    /// [default: tcp://127.0.0.1:7400] [env: TELPHER_URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// Context with the address and the credentials; see `telpher context` [env: TELPHER_CONTEXT]
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    context: Option<String>,

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

/// The address of a node, and the credentials of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The address.
    pub(crate) url: String,
    /// The bearer token.
    pub(crate) token: Option<String>,
    /// The file of trusted certificates.
    authorities: Option<PathBuf>,
    /// The name of the client.
    name: Option<String>,
    /// The context that the address comes from.
    context: Option<String>,
}

/// A context that a command uses.
struct ContextInUse {
    name: String,
    context: Context,
    /// True if an option names it, so that it takes precedence over variables.
    is_option: bool,
}

impl Target {
    /// The node at `url`, with credentials from the environment.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: Some(url.to_owned()),
            context: None,
            token: None,
            tls_authorities: None,
            name: None,
        }
    }

    /// Returns the address of the node and the credentials for it. Each is the first that is given:
    /// an option, a variable, the context, the default.
    ///
    /// A context is used for its own address only, so that its token is not sent to another node.
    pub(crate) fn resolve(&self, environment: &Environment) -> Result<Endpoint, Failure> {
        let used = self.context(environment)?;
        let first = used.as_ref().filter(|used| used.is_option);
        let token = match (&self.token, variable(environment, "TELPHER_TOKEN")) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(token)) if first.is_none() => Some(token),
            (None, variable) => {
                let token = used.as_ref().map(ContextInUse::token).transpose()?;
                token.flatten().or(variable)
            }
        };
        let authorities = |used: &ContextInUse| used.context.tls_authorities.clone();
        let authorities = (self.tls_authorities.clone())
            .or_else(|| first.and_then(authorities))
            .or_else(|| {
                environment
                    .get("TELPHER_TLS_AUTHORITIES")
                    .map(PathBuf::from)
            })
            .or_else(|| used.as_ref().and_then(authorities));
        // A context is in use only if the address is its own.
        let url = (self.url.clone())
            .or_else(|| used.as_ref().map(|used| used.context.url.clone()))
            .or_else(|| variable(environment, "TELPHER_URL"));
        Ok(Endpoint {
            url: url.unwrap_or_else(|| URL_DEFAULT.to_owned()),
            token,
            authorities,
            name: (self.name.clone()).or_else(|| variable(environment, "TELPHER_NAME")),
            context: used.map(|used| used.name),
        })
    }

    /// Returns the context that the address comes from, if it comes from one.
    fn context(&self, environment: &Environment) -> Result<Option<ContextInUse>, Failure> {
        let has_variable = environment.get("TELPHER_URL").is_some();
        if self.url.is_some() || (self.context.is_none() && has_variable) {
            return Ok(None);
        }
        let contexts = Contexts::read(environment)?;
        let named = self.context.clone();
        let named = named.or_else(|| variable(environment, contexts::VARIABLE));
        let Some(name) = named.or_else(|| contexts.selected.clone()) else {
            return Ok(None);
        };
        Ok(Some(ContextInUse {
            context: contexts.find(&name)?.clone(),
            name,
            is_option: self.context.is_some(),
        }))
    }

    /// Connects to the node.
    pub(crate) async fn connect(&self, environment: &Environment) -> Result<Client, Failure> {
        self.resolve(environment)?.connect().await
    }
}

impl ContextInUse {
    fn token(&self) -> Result<Option<String>, Failure> {
        self.context.token(&self.name)
    }
}

impl Endpoint {
    /// Returns the node of a context, with the credentials of the context only.
    pub(crate) fn of_context(name: &str, context: &Context) -> Result<Self, Failure> {
        Ok(Self {
            url: context.url.clone(),
            token: context.token(name)?,
            authorities: context.tls_authorities.clone(),
            name: None,
            context: None,
        })
    }

    /// Connects to the node.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.try_connect().await.map_err(|error| {
            let failure = connect_failure(error);
            match &self.context {
                Some(name) => failure.hint(format!(
                    "the address {} is that of the context `{name}`: `telpher context show {name}`",
                    self.url
                )),
                None => failure,
            }
        })
    }

    async fn try_connect(&self) -> Result<Client, ConnectError> {
        let mut builder = Client::builder();
        if let Some(token) = &self.token {
            builder = builder.token(token.clone());
        }
        if let Some(name) = &self.name {
            builder = builder.name(name)?;
        }
        if let Some(path) = &self.authorities {
            builder = builder.authorities(path);
        }
        builder.connect(&self.url).await
    }
}

/// Returns the variable's value, if it is set and not empty.
fn variable(environment: &Environment, name: &str) -> Option<String> {
    Some(environment.get(name)?.to_string_lossy().into_owned())
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

    /// A user with two contexts, of which `prod` is selected.
    struct User(tempfile::TempDir);

    impl User {
        fn new() -> Self {
            let user = Self(tempfile::tempdir().unwrap());
            let context = |name: &str| Context {
                url: format!("tcp://{name}:7400"),
                token_command: Some(format!("echo {name}-token")),
                tls_authorities: Some(PathBuf::from(format!("/{name}.pem"))),
                ..Context::default()
            };
            let changed = Contexts::change(&user.environment(&[]), |contexts| {
                for name in ["prod", "staging"] {
                    contexts.contexts.insert(name.to_owned(), context(name));
                }
                contexts.selected = Some("prod".to_owned());
                Ok(())
            });
            changed.unwrap();
            user
        }

        fn environment(&self, variables: &[(&str, &str)]) -> Environment {
            let config = ("XDG_CONFIG_HOME".into(), self.0.path().into());
            let variables = variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            variables.chain([config]).collect()
        }

        /// Returns the address, the token and the authorities of a target.
        fn resolve(&self, target: &Target, variables: &[(&str, &str)]) -> [String; 3] {
            let endpoint = target.resolve(&self.environment(variables)).unwrap();
            let authorities = endpoint.authorities.unwrap_or_default();
            [
                endpoint.url,
                endpoint.token.unwrap_or_default(),
                authorities.display().to_string(),
            ]
        }
    }

    fn target(url: Option<&str>, context: Option<&str>, token: Option<&str>) -> Target {
        Target {
            url: url.map(str::to_owned),
            context: context.map(str::to_owned),
            token: token.map(str::to_owned),
            tls_authorities: None,
            name: None,
        }
    }

    #[test]
    fn the_node_is_that_of_the_first_source() {
        let user = User::new();
        let (none, url) = (target(None, None, None), ("TELPHER_URL", "tcp://v:1"));
        let (context, token) = (("TELPHER_CONTEXT", "staging"), ("TELPHER_TOKEN", "v"));
        let prod = ["tcp://prod:7400", "prod-token", "/prod.pem"];
        let staging = ["tcp://staging:7400", "staging-token", "/staging.pem"];
        assert_eq!(user.resolve(&none, &[]), prod);
        assert_eq!(user.resolve(&none, &[context]), staging);
        assert_eq!(user.resolve(&none, &[context, url]), ["tcp://v:1", "", ""]);
        let named = target(None, Some("staging"), None);
        assert_eq!(user.resolve(&named, &[url, token]), staging);
        let given = target(Some("tcp://o:1"), None, None);
        assert_eq!(user.resolve(&given, &[context]), ["tcp://o:1", "", ""]);
        assert_eq!(user.resolve(&given, &[url, token])[..2], ["tcp://o:1", "v"]);
    }

    #[test]
    fn the_token_is_that_of_the_first_source() {
        let user = User::new();
        let variable = [("TELPHER_TOKEN", "v"), ("TELPHER_TLS_AUTHORITIES", "/v")];
        let none = target(None, None, None);
        let resolved = user.resolve(&none, &variable);
        assert_eq!(resolved, ["tcp://prod:7400", "v", "/v"]);
        let named = target(None, Some("staging"), Some("o"));
        let resolved = user.resolve(&named, &variable);
        assert_eq!(resolved, ["tcp://staging:7400", "o", "/staging.pem"]);
    }

    #[test]
    fn a_user_without_contexts_uses_the_default_address() {
        let environment = Environment::from_iter([]);
        let endpoint = target(None, None, None).resolve(&environment).unwrap();
        assert_eq!((endpoint.url.as_str(), endpoint.token), (URL_DEFAULT, None));
        let failure = target(None, Some("prod"), None).resolve(&environment);
        assert_eq!(failure.unwrap_err().exit, Exit::NotFound);
    }

    #[test]
    fn an_invalid_address_is_a_usage_error_with_a_hint() {
        let error = "nonsense".parse::<net::Address>().unwrap_err();
        let failure = connect_failure(ConnectError::Address(error));
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints.len(), 1);
        assert!(!failure.errors[0].message.contains("hint"));
    }
}
