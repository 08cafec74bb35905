//! `telpher token`: who may connect.

use std::sync::Arc;

use node::ports::{LockError, RealDisk};
use node::tokens::{AddError, ENTROPY_SIZE, RevokeError, Role, TokenStore, TokensError};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::{DataArgs, Environment};
use crate::utc;

const EXAMPLES: &str = "\
Examples:
  telpher token add builder                      a token for an agent; shown once
  telpher token add ops --role admin             a token for whoever administers the node
  TELPHER_TOKEN=$(telpher token add builder)     straight into a shell's variable
  telpher token list --json
  telpher token revoke builder

A running node follows within a second. Once the first token was added, everybody needs one.";

/// Add, list and revoke the bearer tokens of a node
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Add a token and print it; it cannot be shown again
    Add {
        /// What to call it: letters, digits, `.`, `_` and `-`
        name: String,
        /// What its bearer may do
        #[arg(long, value_enum, default_value_t = RoleArg::Agent)]
        role: RoleArg,
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
    /// List the tokens: their names, never the secrets
    List {
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
    /// Revoke a token
    Revoke {
        /// Its name
        name: String,
        #[command(flatten)]
        data: DataArgs,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum RoleArg {
    /// Subscribe, send, call
    Agent,
    /// That, and administration
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
            data,
            format,
        } => add(&mut open(&data, environment)?, &name, role.into(), format),
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

fn add(store: &mut TokenStore, name: &str, role: Role, format: Format) -> Result<(), Failure> {
    let mut entropy = [0; ENTROPY_SIZE];
    SystemRandom::new()
        .fill(&mut entropy)
        .map_err(|_| Failure::new(Exit::Failed, "the system has no random bytes"))?;
    let now_s = utc::now_s();
    let secret = store
        .add(name, role, now_s, &entropy)
        .map_err(add_failure)?;
    if !format.json {
        output::note(&format!(
            "token `{name}` ({role}) added; this is the only time it is shown:"
        ));
    }
    let value = json!({
        "name": name,
        "role": role.as_str(),
        "created": utc::format(now_s),
        "token": secret.reveal(),
    });
    output::print(format, &value, &format!("{}\n", secret.reveal()))
}

fn list(store: &TokenStore, format: Format) -> Result<(), Failure> {
    let value = store.list().iter().map(|token| {
        json!({
            "name": token.name,
            "role": token.role.as_str(),
            "created": utc::format(token.created_s),
        })
    });
    let value = json!({ "required": store.required(), "tokens": value.collect::<Vec<_>>() });
    if !format.json && store.list().is_empty() {
        output::note(match store.required() {
            true => "no token is left: nobody can connect until one is added",
            false => "there are no tokens: whoever reaches a door may use it",
        });
        return Ok(());
    }
    let head = ["NAME", "ROLE", "CREATED"].map(str::to_owned);
    let rows = store.list().iter().map(|token| {
        [
            token.name.clone(),
            token.role.to_string(),
            utc::format(token.created_s),
        ]
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    output::print(format, &value, &output::columns(&rows))
}

fn revoke(store: &mut TokenStore, name: &str, format: Format) -> Result<(), Failure> {
    store.revoke(name).map_err(revoke_failure)?;
    let value = json!({ "revoked": name, "tokens_left": store.list().len() });
    if !format.json && store.list().is_empty() {
        output::note("no token is left: nobody can connect until one is added");
    }
    output::print(format, &value, &format!("token `{name}` revoked\n"))
}

/// Why the store cannot be used, for a person.
pub(crate) fn store_failure(error: TokensError) -> Failure {
    let failure = Failure::new(Exit::Failed, &error);
    match error {
        TokensError::Disk(_) => failure.hint("is `--data` the directory of a node?"),
        TokensError::Damaged { .. } | TokensError::Disappeared { .. } => failure.hint(
            "restore the file from a backup; or remove it, and nobody's token is valid any more",
        ),
    }
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

fn revoke_failure(error: RevokeError) -> Failure {
    match error {
        RevokeError::Unknown { ref nearest, .. } => {
            let failure = Failure::new(Exit::NotFound, &error);
            match nearest {
                Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
                None => failure.hint("`telpher token list` shows what there is"),
            }
        }
        RevokeError::Lock(error) => lock_failure(error),
        RevokeError::Tokens(error) => store_failure(error),
    }
}

fn lock_failure(error: LockError) -> Failure {
    match error {
        LockError::Held { .. } => Failure::new(Exit::Unavailable, error)
            .hint("another command changes the tokens at this moment: try again"),
        LockError::Disk(_) => {
            Failure::new(Exit::Failed, error).hint("is `--data` a directory that is writable?")
        }
    }
}
