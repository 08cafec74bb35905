//! `telpher token`: manages bearer tokens and the names that they may use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::Pattern;
use access::tokens::{AddError, ChangeError, ENTROPY_SIZE, Role, Token, TokenStore, entropy_of};
use console::output::{self, Format};
use console::{Environment, Exit, Failure, utc};
use platform::{LockError, RealDisk};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use serve::store_failure;

use crate::settings::DataArgs;

const EXAMPLES: &str = "\
Examples:
  telpher token add builder                      for the agent `default/default/builder`
  telpher token add pay --for 'acme/pay/*'       for all agents of a namespace
  telpher token add ops --role admin             for an administrator of the node
  TELPHER_TOKEN=$(telpher token add ci)          store the secret in a shell variable
  telpher token bind builder --for acme/search/crawler --for 'acme/test/*'
                                                 change the names of a token; its secret stays
  telpher token secret > FILE; telpher token add ci --secret-file FILE
                                                 a secret that a program hands out
  telpher token list --json
  telpher token revoke builder

A token is bound to patterns of names, `org/namespace/agent` with `*` for any part. Its bearer may \
connect, subscribe, take quota, manage mailboxes and delete only under these names; without --for \
only under `default/default/NAME`. An agent that connects without a name gets the name of the first \
pattern, with the token's name in place of `*` for the agent: `acme/pay/pay` above. Its operations are \
charged, halted and shown under its name. `--for '*/*/*'` allows every name except those of \
`telpher/`; administrators may use every name. Every bearer may send to every name, and read.

A running node applies changes within a second; it disconnects clients whose token was revoked or \
bound to other names. Once a token exists, every client needs one.";

/// Add, list, bind and revoke the bearer tokens of a node
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Add a token and print it; it cannot be shown again
    Add {
        /// Name of the token: letters, digits, `.`, `_` and `-`
        name: String,
        /// Role of the bearer
        #[arg(long, value_enum, default_value_t = RoleArg::Agent)]
        role: RoleArg,
        /// Names that the bearer may use, `*` for any part; may be repeated
        #[arg(long = "for", value_name = "PATTERN")]
        names: Vec<Pattern>,
        /// File with the secret, from `telpher token secret`; the same token again changes nothing
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Print a new secret for `add --secret-file`; nothing is stored
    Secret,
    /// Bind a token to other names; its secret stays valid
    Bind {
        /// Name of the token
        name: String,
        /// Names that the bearer may use from now on [default: default/default/NAME]
        #[arg(long = "for", value_name = "PATTERN")]
        names: Vec<Pattern>,
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
    /// List the tokens, without their secrets
    List {
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Revoke a token
    Revoke {
        /// Name of the token
        name: String,
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum RoleArg {
    /// May subscribe, send, call and use quotas
    Agent,
    /// May also administer the node
    Admin,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Agent => Self::Agent,
            RoleArg::Admin => Self::Admin,
        }
    }
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Add {
            name,
            role,
            names,
            secret_file,
            data,
            format,
        } => {
            let mut store = open(&data, environment)?;
            match secret_file {
                None => add(&mut store, &name, role.into(), &names, format),
                Some(file) => import(&mut store, &name, role.into(), &names, &file, format),
            }
        }
        Command::Secret => {
            let (secret, _) = Token::generate("", Role::Agent, None, 0, &entropy()?);
            output::print_text(&format!("{}\n", secret.reveal()))
        }
        Command::Bind {
            name,
            names,
            data,
            format,
        } => bind(&mut open(&data, environment)?, &name, &names, format),
        Command::List { data, format } => list(&open(&data, environment)?, format),
        Command::Revoke { name, data, format } => {
            revoke(&mut open(&data, environment)?, &name, format)
        }
    }
}

fn open(data: &DataArgs, environment: &Environment) -> Result<TokenStore, Failure> {
    let loaded = data.load(environment)?;
    TokenStore::open(Arc::new(RealDisk), &loaded.config.data.dir).map_err(store_failure)
}

fn add(
    store: &mut TokenStore,
    name: &str,
    role: Role,
    names: &[Pattern],
    format: Format,
) -> Result<(), Failure> {
    let now_s = utc::now_s();
    let secret = store
        .add(name, role, names, now_s, &entropy()?)
        .map_err(add_failure)?;
    let names = texts(name, Some(names));
    if !format.json {
        let allowed = match role {
            Role::Admin => "every name".to_owned(),
            Role::Agent => names.join(", "),
        };
        output::note(&format!(
            "token `{name}` ({role}, for {allowed}) added; its secret is shown only once:"
        ));
    }
    let value = json!({
        "name": name,
        "role": role.as_str(),
        "for": names,
        "created": utc::format(now_s),
        "token": secret.reveal(),
    });
    output::print(format, &value, &format!("{}\n", secret.reveal()))
}

/// Returns random bytes for a secret.
fn entropy() -> Result<[u8; ENTROPY_SIZE], Failure> {
    let mut entropy = [0; ENTROPY_SIZE];
    let filled = SystemRandom::new().fill(&mut entropy);
    filled.map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))?;
    Ok(entropy)
}

/// Adds a token whose secret is in a file, unless the same token exists: for a machine that is set up
/// by a program.
fn import(
    store: &mut TokenStore,
    name: &str,
    role: Role,
    names: &[Pattern],
    file: &Path,
    format: Format,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        let message = format!("cannot read {}: {error}", file.display());
        Failure::new(Exit::Failed, message)
    })?;
    let text = text.trim();
    let entropy = entropy_of(text).ok_or_else(|| {
        let message = format!("{} does not hold a token's secret", file.display());
        Failure::new(Exit::Usage, message).hint("make one: telpher token secret > FILE")
    })?;
    let is_same = |it: &Token| {
        let has_names = it.names.as_deref() == Some(names);
        it.name == name && it.role == role && has_names && it.has_secret(text)
    };
    let is_added = !store.list().iter().any(is_same);
    if is_added {
        let added = store.add(name, role, names, utc::now_s(), &entropy);
        added.map_err(add_failure)?;
    }
    let value = json!({
        "name": name,
        "role": role.as_str(),
        "for": texts(name, Some(names)),
        "added": is_added,
    });
    let text = match is_added {
        true => format!("token `{name}` ({role}) added\n"),
        false => format!("token `{name}` ({role}) exists already\n"),
    };
    output::print(format, &value, &text)
}

fn bind(
    store: &mut TokenStore,
    name: &str,
    names: &[Pattern],
    format: Format,
) -> Result<(), Failure> {
    store.bind(name, names).map_err(change_failure)?;
    let names = texts(name, Some(names));
    let value = json!({ "name": name, "for": names });
    let text = format!("token `{name}` is for {}\n", names.join(", "));
    output::print(format, &value, &text)
}

/// Returns the printed patterns of a token; `None` is a token of an earlier version.
fn texts(name: &str, patterns: Option<&[Pattern]>) -> Vec<String> {
    match patterns {
        None => vec!["*/*/*".to_owned()],
        Some([]) => vec![format!("default/default/{name}")],
        Some(patterns) => patterns.iter().map(ToString::to_string).collect(),
    }
}

fn list(store: &TokenStore, format: Format) -> Result<(), Failure> {
    let names = |token: &Token| texts(&token.name, token.names.as_deref());
    let value = store.list().iter().map(|token| {
        json!({
            "name": token.name,
            "role": token.role.as_str(),
            "for": names(token),
            "bound": token.names.is_some(),
            "created": utc::format(token.created_s),
        })
    });
    let value = json!({ "required": store.required(), "tokens": value.collect::<Vec<_>>() });
    if !format.json && store.list().is_empty() {
        output::note(match store.required() {
            true => "all tokens were revoked: no client can connect until one is added",
            false => "no tokens: every client that can reach a listener may use the node",
        });
        return Ok(());
    }
    let head = ["NAME", "ROLE", "CREATED", "FOR"].map(str::to_owned);
    let rows = store.list().iter().map(|token| {
        [
            token.name.clone(),
            token.role.to_string(),
            utc::format(token.created_s),
            names(token).join(" "),
        ]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    output::print(format, &value, &output::columns(&rows))
}

fn revoke(store: &mut TokenStore, name: &str, format: Format) -> Result<(), Failure> {
    store.revoke(name).map_err(change_failure)?;
    let value = json!({ "revoked": name, "tokens_left": store.list().len() });
    if !format.json && store.list().is_empty() {
        output::note("the last token was revoked: no client can connect until one is added");
    }
    output::print(format, &value, &format!("token `{name}` revoked\n"))
}

fn add_failure(error: AddError) -> Failure {
    match error {
        AddError::Name { .. } => Failure::new(Exit::Usage, &error).hint("try `builder-1`"),
        AddError::Exists { ref name } => Failure::new(Exit::Failed, &error).hint(format!(
            "`telpher token revoke {name}` first, or choose another name"
        )),
        AddError::Lock(error) => lock_failure(error),
        AddError::Tokens(error) => store_failure(error),
    }
}

fn change_failure(error: ChangeError) -> Failure {
    match error {
        ChangeError::Unknown { ref nearest, .. } => {
            let failure = Failure::new(Exit::NotFound, &error);
            match nearest {
                Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
                None => failure.hint("`telpher token list` lists the tokens"),
            }
        }
        ChangeError::Lock(error) => lock_failure(error),
        ChangeError::Tokens(error) => store_failure(error),
    }
}

fn lock_failure(error: LockError) -> Failure {
    match error {
        LockError::Held { .. } => Failure::new(Exit::Unavailable, error)
            .hint("another command is changing the tokens: try again"),
        LockError::Disk(_) => {
            Failure::new(Exit::Failed, error).hint("check that `--data` is a writable directory")
        }
    }
}
