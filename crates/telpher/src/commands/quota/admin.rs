//! Commands that change limits. A change needs an administrator and a reason, and is on disk when
//! the command returns.

use std::io::Read;

use console::url::encode;
use console::{Environment, Exit, Failure, output};
use serde_json::{Map, Value, json};

use super::report::report;
use crate::commands::conversation::http::{HttpError, HttpRequest, Node, parse, query};
use crate::commands::target::{NodeArgs, block_on};

/// Maximum bytes of a file with limits.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// Arguments of every change: its reason, the node, and the format of the result.
#[derive(Debug, clap::Args)]
pub(crate) struct ChangeArgs {
    /// Reason, stored in the audit log
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// Name of the limit
    limit: String,

    /// Prefix, with as many parts as the limit's pattern
    prefix: String,

    /// Capacity in place of the limit's
    #[arg(long, value_name = "COUNT", required_unless_present_any = ["refill", "grant"])]
    capacity: Option<u64>,

    /// Refill in place of the limit's: 50/s, 40000/min (or /m), 5/90s, 100/d
    #[arg(long, value_name = "RATE")]
    refill: Option<String>,

    /// Amount to add once, now
    #[arg(long, value_name = "COUNT")]
    grant: Option<u64>,

    /// Duration of the change; permanent if not given
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UnsetArgs {
    /// Name of the limit
    limit: String,

    /// Prefix of the override
    prefix: String,

    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResetArgs {
    /// Subject whose own buckets are reset: org/namespace/agent; with --limit, the prefix of one
    /// bucket
    subject: String,

    /// Reset only the bucket of this limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FactorArgs {
    /// Name of the limit
    limit: String,

    /// Factor: a number like 0.5 or a ratio like 1/3; 1 restores the limit
    factor: String,

    /// Duration of the change; permanent if not given
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<String>,

    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HaltArgs {
    /// Prefix: org, org/namespace or org/namespace/agent
    prefix: String,

    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PoliciesArgs {
    /// Replace the limits by those in this JSON file (`-` is the standard input)
    #[arg(long, value_name = "FILE", requires = "reason")]
    set: Option<String>,

    /// Replace only if the limits have this version [default: the version in the file]
    #[arg(long, value_name = "VERSION", requires = "set")]
    expect: Option<u64>,

    /// Reason, stored in the audit log
    #[arg(long, requires = "set")]
    reason: Option<String>,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run_set(args: &SetArgs, environment: &Environment) -> Result<(), Failure> {
    let document = document(&[
        ("limit", Some(json!(args.limit))),
        ("prefix", Some(json!(args.prefix))),
        ("capacity", args.capacity.map(|capacity| json!(capacity))),
        ("refill", args.refill.as_ref().map(|refill| json!(refill))),
        ("grant", args.grant.map(|grant| json!(grant))),
        ("for", args.lasting.as_ref().map(|lasting| json!(lasting))),
        ("reason", Some(json!(args.change.reason))),
    ]);
    let request = HttpRequest::new("PUT", "/v1/overrides").body(&document);
    send(&args.change.node, environment, request)
}

pub(super) fn run_unset(args: &UnsetArgs, environment: &Environment) -> Result<(), Failure> {
    let which = query(&[
        ("limit", Some(args.limit.clone())),
        ("prefix", Some(args.prefix.clone())),
        ("reason", Some(args.change.reason.clone())),
    ]);
    let request = HttpRequest::new("DELETE", format!("/v1/overrides{which}"));
    send(&args.change.node, environment, Ok(request))
}

pub(super) fn run_reset(args: &ResetArgs, environment: &Environment) -> Result<(), Failure> {
    let document = match &args.limit {
        None => json!({ "subject": args.subject, "reason": args.change.reason }),
        Some(limit) => {
            json!({ "limit": limit, "prefix": args.subject, "reason": args.change.reason })
        }
    };
    let request = HttpRequest::new("POST", "/v1/reset").body(&document);
    send(&args.change.node, environment, request)
}

pub(super) fn run_factor(args: &FactorArgs, environment: &Environment) -> Result<(), Failure> {
    let document = document(&[
        ("factor", Some(json!(args.factor))),
        ("for", args.lasting.as_ref().map(|lasting| json!(lasting))),
        ("reason", Some(json!(args.change.reason))),
    ]);
    let path = format!("/v1/factors/{}", encode(&args.limit));
    let request = HttpRequest::new("PUT", path).body(&document);
    send(&args.change.node, environment, request)
}

pub(super) fn run_halt(
    verb: &str,
    args: &HaltArgs,
    environment: &Environment,
) -> Result<(), Failure> {
    let document = json!({ "prefix": args.prefix, "reason": args.change.reason });
    let request = HttpRequest::new("POST", format!("/v1/{verb}")).body(&document);
    send(&args.change.node, environment, request)
}

pub(super) fn run_policies(args: &PoliciesArgs, environment: &Environment) -> Result<(), Failure> {
    let Some(file) = &args.set else {
        return show_policies(args, environment);
    };
    let written = read(file)?;
    let version = args.expect.or_else(|| written["version"].as_u64());
    let limits = match written {
        Value::Object(mut members) => members.remove("limits").unwrap_or_default(),
        limits => limits,
    };
    let limits = without_read_only_members(limits);
    let document = json!({ "limits": limits, "reason": args.reason });
    let request = HttpRequest::new("PUT", "/v1/policies").body(&document);
    let request = request.map(|request| match version {
        Some(version) => request.header("if-match", format!("\"{version}\"")),
        None => request,
    });
    send(&args.node, environment, request)
}

/// Removes the current factor of each limit, which is printed but cannot be set.
fn without_read_only_members(mut limits: Value) -> Value {
    for limit in limits.as_array_mut().into_iter().flatten() {
        if let Some(members) = limit.as_object_mut() {
            members.remove("factor_now");
        }
    }
    limits
}

/// Prints the limits, always as JSON, the form that `--set` takes.
fn show_policies(args: &PoliciesArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let answer = node.ask(&HttpRequest::get("/v1/policies")).await;
        let answer = answer.map_err(|error| report(args.node.format, error))?;
        output::print_text(&format!("{:#}\n", parse(&answer)?))
    })
}

/// Requests a change and prints the new version of the limits.
fn send(
    node_args: &NodeArgs,
    environment: &Environment,
    request: Result<HttpRequest, HttpError>,
) -> Result<(), Failure> {
    let format = node_args.format;
    let request = request.map_err(|error| report(format, error))?;
    block_on(async {
        let node = Node::connect(&node_args.target, environment).await?;
        let answer = node.ask(&request).await;
        let answer = parse(&answer.map_err(|error| report(format, error))?)?;
        let version = &answer["version"];
        let human = match answer["here_alone"] == json!(true) {
            true => format!(
                "done on this node, not on the nodes that share its buckets; the limits have \
                 version {version}\n"
            ),
            false => format!("done; the limits have version {version}\n"),
        };
        output::print(format, &answer, &human)
    })
}

/// Returns a document of the members that are set.
fn document(members: &[(&str, Option<Value>)]) -> Value {
    let there = members
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
    Value::Object(there.collect::<Map<_, _>>())
}

fn read(file: &str) -> Result<Value, Failure> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin()
            .take(FILE_SIZE_MAX)
            .read_to_string(&mut text),
        path => std::fs::File::open(path)
            .and_then(|file| file.take(FILE_SIZE_MAX).read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{file}`: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{file}` is not JSON: {error}"))
            .hint("`telpher quota policies` prints limits in this form")
    })
}
