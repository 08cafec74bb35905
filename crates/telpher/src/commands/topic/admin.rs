//! `telpher topic list`, `describe`, `create`, `alter` and `delete`.

use console::output::{self, table};
use console::{Environment, Exit, Failure};
use serde_json::{Map, Value, json};

use super::report::{pair, path_of, report};
use crate::commands::agents::{rows, text};
use crate::commands::conversation::http::{HttpError, HttpRequest, Node, parse, query};
use crate::commands::target::{NodeArgs, block_on};

/// Number of topics per request.
const PAGE: &str = "1000";

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Prefix of names to list
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Name of the topic
    topic: String,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Name of the topic: letters, digits and . _ -
    topic: String,

    /// Number of partitions [default: the node's topics.partitions]
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,

    /// Topic configuration with Kafka's keys: retention.ms, cleanup.policy, …
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AlterArgs {
    /// Name of the topic
    topic: String,

    /// New total number of partitions
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,

    /// Configuration to set
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,

    /// Configuration key to reset to its default
    #[arg(long, value_name = "KEY")]
    reset: Vec<String>,

    #[command(flatten)]
    node: NodeArgs,
}

pub(super) fn run_list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let topics = list(&node, &args.prefix).await;
        let topics = topics.map_err(|error| report(args.node.format, &args.prefix, error))?;
        let line = |topic: &Value| {
            let [name, partitions] = ["name", "partitions"].map(|key| text(&topic[key]));
            [name, partitions, configs(&topic["configs"])]
        };
        let lines: Vec<_> = topics.iter().map(line).collect();
        let human = table(["NAME", "PARTITIONS", "CONFIGURATION"], &lines);
        output::print(args.node.format, &json!({ "topics": topics }), &human)
    })
}

/// Reads the whole list, page by page.
async fn list(node: &Node, prefix: &str) -> Result<Vec<Value>, HttpError> {
    let (mut topics, mut after) = (Vec::new(), None);
    loop {
        let query = query(&[
            ("prefix", Some(prefix.to_owned())),
            ("limit", Some(PAGE.to_owned())),
            ("after", after),
        ]);
        let page = node
            .ask(&HttpRequest::get(format!("/v1/topics{query}")))
            .await?;
        let page = parse(&page)?;
        topics.extend_from_slice(rows(&page, "topics"));
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(topics),
        }
    }
}

pub(super) fn run_describe(args: &NameArgs, environment: &Environment) -> Result<(), Failure> {
    ask(
        &args.topic,
        Ok(HttpRequest::get(path_of(&args.topic))),
        &args.node,
        environment,
    )
}

pub(super) fn run_create(args: &CreateArgs, environment: &Environment) -> Result<(), Failure> {
    let mut new = Map::from_iter([
        ("name".to_owned(), json!(args.topic)),
        ("configs".to_owned(), json!(object(&args.config))),
    ]);
    if let Some(partitions) = args.partitions {
        new.insert("partitions".to_owned(), partitions.into());
    }
    let request = HttpRequest::new("POST", "/v1/topics").body(&new);
    ask(&args.topic, request, &args.node, environment)
}

pub(super) fn run_alter(args: &AlterArgs, environment: &Environment) -> Result<(), Failure> {
    let mut configs = object(&args.config);
    configs.extend(args.reset.iter().map(|key| (key.clone(), Value::Null)));
    if configs.is_empty() && args.partitions.is_none() {
        let failure = Failure::new(Exit::Usage, "no change was given");
        return Err(failure.hint("give --partitions N, --config KEY=VALUE or --reset KEY"));
    }
    let mut change = Map::from_iter([("configs".to_owned(), json!(configs))]);
    if let Some(partitions) = args.partitions {
        change.insert("partitions".to_owned(), partitions.into());
    }
    let request = HttpRequest::new("PATCH", path_of(&args.topic)).body(&change);
    ask(&args.topic, request, &args.node, environment)
}

pub(super) fn run_delete(args: &NameArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.node.target, environment).await?;
        let request = HttpRequest::new("DELETE", path_of(&args.topic));
        let answer = node.ask(&request).await;
        answer.map_err(|error| report(args.node.format, &args.topic, error))?;
        let deleted = json!({ "deleted": args.topic });
        output::print(
            args.node.format,
            &deleted,
            &format!("deleted {}\n", args.topic),
        )
    })
}

/// Sends a request whose answer is a topic, and prints the topic.
fn ask(
    topic: &str,
    request: Result<HttpRequest, HttpError>,
    node_args: &NodeArgs,
    environment: &Environment,
) -> Result<(), Failure> {
    let format = node_args.format;
    let request = request.map_err(|error| report(format, topic, error))?;
    block_on(async {
        let node = Node::connect(&node_args.target, environment).await?;
        let answer = node.ask(&request).await;
        let answer = answer.map_err(|error| report(format, topic, error))?;
        let shown = parse(&answer)?;
        output::print(format, &shown, &describe(&shown))
    })
}

fn object(pairs: &[(String, String)]) -> Map<String, Value> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| (key.clone(), json!(value)))
        .collect()
}

/// Formats a topic.
fn describe(topic: &Value) -> String {
    let [name, id, created_at] = ["name", "id", "created_at"].map(|key| text(&topic[key]));
    let configs = configs(&topic["configs"]);
    let line = |it: &Value| ["partition", "start", "end", "size"].map(|key| text(&it[key]));
    let lines: Vec<_> = rows(topic, "state").iter().map(line).collect();
    let partitions = table(["PARTITION", "START", "END", "BYTES"], &lines);
    format!("{name}\n  id {id}, created {created_at}\n  configuration: {configs}\n\n{partitions}")
}

/// Formats a topic's configuration on one line.
fn configs(configs: &Value) -> String {
    let configs = configs.as_object();
    let configs = configs.into_iter().flatten();
    let pairs: Vec<_> = configs
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    match pairs.is_empty() {
        true => "-".to_owned(),
        false => pairs.join(" "),
    }
}
