//! `telpher context`: named nodes for the commands.

use std::path::{Path, PathBuf};

use console::output::{self, Format, table};
use console::{Environment, Exit, Failure};
use serde_json::{Value, json};

use super::target::{Endpoint, block_on};
use crate::contexts::{self, Context, Contexts};

const EXAMPLES: &str = "\
Examples:
  telpher context add prod --url tls://telpher.example.com:7400 --token-command 'pass show telpher'
  telpher context use prod                       commands use it from now on
  telpher agents
  telpher agents --context staging               one command at another node
  TELPHER_CONTEXT=staging telpher mailbox list   the same, for a shell
  telpher context list                           marks the current context with *

A command takes the first that is given: --url or --context, TELPHER_URL, TELPHER_CONTEXT, the \
context that `use` selected, tcp://127.0.0.1:7400. The token and the authorities of a context are \
used at its own address only; --token and --tls-authorities replace them.

The file is telpher/contexts.toml in $XDG_CONFIG_HOME (~/.config by default). It has no tokens: a \
token is the first line of a file or of the output of a command, which is read when a command starts.";

/// Store addresses and credentials of nodes under names
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Add a context
    Add(AddArgs),
    /// Select the context of commands that name none
    Use(UseArgs),
    /// List the contexts
    List(ListArgs),
    /// Show a context
    Show(ShowArgs),
    /// Remove a context
    Remove(RemoveArgs),
}

const ADD: &str = "\
Examples:
  telpher context add local --url unix:///run/telpher/telpher.sock
  telpher context add prod --url tls://telpher.example.com:7400 --token-file ~/.telpher-token \\
                           --tls-authorities ca.pem --check --select
  telpher context add prod --url tls://telpher.example.com:7400 --replace \\
                           --token-command 'secret-tool lookup telpher prod'";

#[derive(Debug, clap::Args)]
#[command(after_help = ADD)]
pub(crate) struct AddArgs {
    /// Name of the context: letters, digits and . _ -
    name: String,

    /// Address of the node: tcp://HOST:PORT, tls://HOST:PORT or unix://PATH
    #[arg(long, value_name = "URL")]
    url: String,

    /// File whose first line is the bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "token_command")]
    token_file: Option<PathBuf>,

    /// Shell command whose first line of output is the bearer token
    #[arg(long, value_name = "COMMAND")]
    token_command: Option<String>,

    /// Certificates (PEM) to trust for tls://
    #[arg(long, value_name = "FILE")]
    tls_authorities: Option<PathBuf>,

    /// Replace an existing context of that name
    #[arg(long)]
    replace: bool,

    /// Select the context, as `telpher context use` does
    #[arg(long)]
    select: bool,

    /// Connect to the node first; the context is not added if that fails
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UseArgs {
    /// Name of the context
    #[arg(required_unless_present = "none", conflicts_with = "none")]
    name: Option<String>,

    /// Select no context: commands use the default address again
    #[arg(long)]
    none: bool,

    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Name of the context [default: the current one]
    name: Option<String>,

    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Name of the context
    name: String,

    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Add(args) => add(&args, environment),
        Command::Use(args) => select(&args, environment),
        Command::List(args) => list(&args, environment),
        Command::Show(args) => show(&args, environment),
        Command::Remove(args) => remove(&args, environment),
    }
}

fn add(args: &AddArgs, environment: &Environment) -> Result<(), Failure> {
    contexts::check_name(&args.name)?;
    let address = args.url.parse::<net::Address>();
    address.map_err(|error| {
        Failure::new(Exit::Usage, error).hint("for example --url tcp://127.0.0.1:7400")
    })?;
    let context = Context {
        url: args.url.clone(),
        token_file: args.token_file.as_deref().map(absolute).transpose()?,
        token_command: args.token_command.clone(),
        tls_authorities: args.tls_authorities.as_deref().map(absolute).transpose()?,
    };
    if args.check {
        check(&args.name, &context)?;
    }
    let replaced = Contexts::change(environment, |contexts| {
        if contexts.contexts.contains_key(&args.name) && !args.replace {
            let message = format!("the context `{}` exists", args.name);
            let failure = Failure::new(Exit::Failed, message);
            return Err(failure.hint("--replace replaces it"));
        }
        if args.select {
            contexts.selected = Some(args.name.clone());
        }
        let replaced = contexts.contexts.insert(args.name.clone(), context.clone());
        Ok(replaced.is_some())
    })?;
    let mut human = match replaced {
        true => format!("replaced the context {}\n", args.name),
        false => format!("added the context {}\n", args.name),
    };
    match args.select {
        true => human += "it is selected\n",
        false => human += &format!("`telpher context use {}` selects it\n", args.name),
    }
    let value = json!({
        "context": document(&args.name, &context, args.select),
        "checked": args.check,
        "replaced": replaced,
    });
    output::print(args.format, &value, &human)
}

/// Returns the path of an existing file from the root, because commands run in any directory.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(path).map_err(|error| {
        let message = format!("cannot find the file {}: {error}", path.display());
        Failure::new(Exit::Usage, message).hint("create the file first")
    })
}

/// Connects to the node of a context.
fn check(name: &str, context: &Context) -> Result<(), Failure> {
    let endpoint = Endpoint::of_context(name, context)?;
    block_on(async { endpoint.connect().await.map(drop) })
}

fn select(args: &UseArgs, environment: &Environment) -> Result<(), Failure> {
    Contexts::change(environment, |contexts| {
        if let Some(name) = &args.name {
            contexts.find(name)?;
        }
        contexts.selected.clone_from(&args.name);
        Ok(())
    })?;
    let human = match &args.name {
        Some(name) => format!("commands use the context {name}\n"),
        None => "commands use no context\n".to_owned(),
    };
    warn_of_variables(environment);
    output::print(args.format, &json!({ "selected": args.name }), &human)
}

/// Prints a note about each variable that takes precedence over the selected context.
fn warn_of_variables(environment: &Environment) {
    for variable in ["TELPHER_URL", contexts::VARIABLE] {
        if environment.get(variable).is_some() {
            output::note(&format!(
                "note: {variable} is set and takes precedence over the selected context"
            ));
        }
    }
}

/// Returns the context of commands that name none.
fn current(contexts: &Contexts, environment: &Environment) -> Option<String> {
    let variable = environment.get(contexts::VARIABLE);
    let variable = variable.map(|name| name.to_string_lossy().into_owned());
    variable.or_else(|| contexts.selected.clone())
}

fn list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    let contexts = Contexts::read(environment)?;
    let current = current(&contexts, environment);
    let is_current = |name: &String| current.as_ref() == Some(name);
    let documents = contexts.contexts.iter();
    let documents: Vec<_> = documents
        .map(|(name, context)| document(name, context, is_current(name)))
        .collect();
    let rows = contexts.contexts.iter().map(|(name, context)| {
        let mark = if is_current(name) { "*" } else { "" };
        [
            mark.to_owned(),
            name.clone(),
            context.url.clone(),
            context.token_source().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if environment.get("TELPHER_URL").is_some() {
        output::note("note: TELPHER_URL is set and takes precedence over contexts");
    }
    if rows.is_empty() && !args.format.json {
        output::note("there are no contexts; `telpher context add NAME --url URL` adds one");
    }
    let human = table(["", "NAME", "URL", "TOKEN"], &rows);
    output::print(args.format, &json!({ "contexts": documents }), &human)
}

fn show(args: &ShowArgs, environment: &Environment) -> Result<(), Failure> {
    let contexts = Contexts::read(environment)?;
    let current = current(&contexts, environment);
    let name = args.name.clone().or(current.clone()).ok_or_else(|| {
        Failure::new(Exit::NotFound, "no context is selected")
            .hint("`telpher context use NAME` selects one; `telpher context list` lists them")
    })?;
    let context = contexts.find(&name)?;
    let is_current = current.as_ref() == Some(&name);
    let value = document(&name, context, is_current);
    let authorities = context.tls_authorities.as_ref();
    let lines = [
        ["name".to_owned(), name],
        ["url".to_owned(), context.url.clone()],
        [
            "token".to_owned(),
            context.token_source().unwrap_or_else(|| "none".to_owned()),
        ],
        [
            "authorities".to_owned(),
            authorities.map_or("none".to_owned(), |path| path.display().to_string()),
        ],
        [
            "current".to_owned(),
            if is_current { "yes" } else { "no" }.to_owned(),
        ],
    ];
    output::print(args.format, &value, &output::columns(&lines))
}

fn remove(args: &RemoveArgs, environment: &Environment) -> Result<(), Failure> {
    let name = &args.name;
    let was_selected = Contexts::change(environment, |contexts| {
        contexts.find(name)?;
        contexts.contexts.remove(name);
        let was_selected = contexts.selected.as_ref() == Some(name);
        if was_selected {
            contexts.selected = None;
        }
        Ok(was_selected)
    })?;
    let mut human = format!("removed the context {name}\n");
    if was_selected {
        human += "it was selected: commands use no context now\n";
    }
    let value = json!({ "removed": name, "was_selected": was_selected });
    output::print(args.format, &value, &human)
}

fn document(name: &str, context: &Context, is_current: bool) -> Value {
    json!({
        "name": name,
        "url": context.url,
        "token_file": context.token_file,
        "token_command": context.token_command,
        "tls_authorities": context.tls_authorities,
        "current": is_current,
    })
}
