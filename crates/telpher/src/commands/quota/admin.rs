//! Changes of limits: by an administrator, for a reason, on disk when they are told.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::tell;
use crate::commands::conversation::ask::{Node, Question, Trouble, encode, parse, query};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::Environment;

/// Bytes of limits that are read from a file.
const FILE_SIZE_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// Name of the limit
    limit: String,

    /// For whom: as many parts as the limit's pattern has
    prefix: String,

    /// What there is at most, instead
    #[arg(long, value_name = "COUNT", required_unless_present_any = ["refill", "grant"])]
    capacity: Option<u64>,

    /// What comes back, instead: 50/s, 40000/min (or /m), 5/90s, 100/d
    #[arg(long, value_name = "RATE")]
    refill: Option<String>,

    /// Given once, now, beyond what there is
    #[arg(long, value_name = "COUNT")]
    grant: Option<u64>,

    /// For how long; for good unless it is said
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<String>,

    /// Why: it is remembered
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UnsetArgs {
    /// Name of the limit
    limit: String,

    /// For whom
    prefix: String,

    /// Why: it is remembered
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResetArgs {
    /// Whose own buckets: org/namespace/agent; with --limit, the prefix of one bucket
    subject: String,

    /// Only the bucket of that limit
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,

    /// Why: it is remembered
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FactorArgs {
    /// Name of the limit
    limit: String,

    /// A number like 0.5, or a ratio like 1/3; 1 is the limit itself
    factor: String,

    /// For how long; for good unless it is said
    #[arg(long = "for", value_name = "DURATION")]
    lasting: Option<String>,

    /// Why: it is remembered
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HaltArgs {
    /// org, org/namespace or org/namespace/agent
    prefix: String,

    /// Why: it is remembered
    #[arg(long)]
    reason: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PoliciesArgs {
    /// Replace the limits by those of this file, or of `-`: JSON as it is printed without this
    #[arg(long, value_name = "FILE", requires = "reason")]
    set: Option<String>,

    /// Only if the limits are of that version; that of the file if it has one
    #[arg(long, value_name = "VERSION", requires = "set")]
    expect: Option<u64>,

    /// Why: it is remembered
    #[arg(long, requires = "set")]
    reason: Option<String>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(super) fn run_set(args: &SetArgs, environment: &Environment) -> Result<(), Failure> {
    let document = document(&[
        ("limit", Some(json!(args.limit))),
        ("prefix", Some(json!(args.prefix))),
        ("capacity", args.capacity.map(|capacity| json!(capacity))),
        ("refill", args.refill.as_ref().map(|refill| json!(refill))),
        ("grant", args.grant.map(|grant| json!(grant))),
        ("for", args.lasting.as_ref().map(|lasting| json!(lasting))),
        ("reason", Some(json!(args.reason))),
    ]);
    let question = Question::new("PUT", "/v1/overrides").body(&document);
    change(&args.target, args.format, environment, question)
}

pub(super) fn run_unset(args: &UnsetArgs, environment: &Environment) -> Result<(), Failure> {
    let which = query(&[
        ("limit", Some(args.limit.clone())),
        ("prefix", Some(args.prefix.clone())),
        ("reason", Some(args.reason.clone())),
    ]);
    let question = Question::new("DELETE", format!("/v1/overrides{which}"));
    change(&args.target, args.format, environment, Ok(question))
}

pub(super) fn run_reset(args: &ResetArgs, environment: &Environment) -> Result<(), Failure> {
    let document = match &args.limit {
        None => json!({ "subject": args.subject, "reason": args.reason }),
        Some(limit) => json!({ "limit": limit, "prefix": args.subject, "reason": args.reason }),
    };
    let question = Question::new("POST", "/v1/reset").body(&document);
    change(&args.target, args.format, environment, question)
}

pub(super) fn run_factor(args: &FactorArgs, environment: &Environment) -> Result<(), Failure> {
    let document = document(&[
        ("factor", Some(json!(args.factor))),
        ("for", args.lasting.as_ref().map(|lasting| json!(lasting))),
        ("reason", Some(json!(args.reason))),
    ]);
    let path = format!("/v1/factors/{}", encode(&args.limit));
    let question = Question::new("PUT", path).body(&document);
    change(&args.target, args.format, environment, question)
}

pub(super) fn run_halt(
    verb: &str,
    args: &HaltArgs,
    environment: &Environment,
) -> Result<(), Failure> {
    let document = json!({ "prefix": args.prefix, "reason": args.reason });
    let question = Question::new("POST", format!("/v1/{verb}")).body(&document);
    change(&args.target, args.format, environment, question)
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
    let limits = without_what_is_shown(limits);
    let document = json!({ "limits": limits, "reason": args.reason });
    let question = Question::new("PUT", "/v1/policies").body(&document);
    let question = question.map(|question| match version {
        Some(version) => question.header("if-match", format!("\"{version}\"")),
        None => question,
    });
    change(&args.target, args.format, environment, question)
}

/// Limits are shown with the factor that stands now: that is nobody's to write.
fn without_what_is_shown(mut limits: Value) -> Value {
    for limit in limits.as_array_mut().into_iter().flatten() {
        if let Some(members) = limit.as_object_mut() {
            members.remove("factor_now");
        }
    }
    limits
}

/// JSON for people too: it is what `--set` takes.
fn show_policies(args: &PoliciesArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let answer = node.ask(&Question::get("/v1/policies")).await;
        let answer = answer.map_err(|trouble| tell(args.format, trouble))?;
        output::print_text(&format!("{:#}\n", parse(&answer)?))
    })
}

/// Asks for a change, and says of which version the limits are then.
fn change(
    target: &Target,
    format: Format,
    environment: &Environment,
    question: Result<Question, Trouble>,
) -> Result<(), Failure> {
    let question = question.map_err(|trouble| tell(format, trouble))?;
    block_on(async {
        let node = Node::connect(target, environment).await?;
        let answer = node.ask(&question).await;
        let answer = parse(&answer.map_err(|trouble| tell(format, trouble))?)?;
        let version = &answer["version"];
        let human = match answer["here_alone"] == json!(true) {
            true => format!(
                "done, at this node and at none that shares its buckets; the limits are of version \
                 {version}\n"
            ),
            false => format!("done; the limits are of version {version}\n"),
        };
        output::print(format, &answer, &human)
    })
}

/// The members that are there.
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
    read.map_err(|error| Failure::new(Exit::Usage, format!("`{file}` cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{file}` is not JSON: {error}"))
            .hint("`telpher quota policies` prints limits as they are written")
    })
}
