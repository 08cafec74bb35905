//! `telpher topic list`, `describe`, `create`, `alter` and `delete`.

use serde_json::{Map, Value, json};

use super::{pair, path_of, tell};
use crate::commands::agents::{rows, text};
use crate::commands::conversation::ask::{Node, Question, Trouble, parse, query};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format, table};
use crate::settings::Environment;

/// Topics that are asked for at a time.
const PAGE: &str = "1000";

#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Only names that begin with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NameArgs {
    /// Name of the topic
    topic: String,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Name of the topic: letters, digits and . _ -
    topic: String,

    /// How many partitions it has; as many as the node's options say if this is not said
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,

    /// A value of its configuration, as Kafka calls it: retention.ms, cleanup.policy, …
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AlterArgs {
    /// Name of the topic
    topic: String,

    /// How many partitions it has from now on, in all
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,

    /// A value to set
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    config: Vec<(String, String)>,

    /// A value that is to be the default again
    #[arg(long, value_name = "KEY")]
    reset: Vec<String>,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

pub(super) fn run_list(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let topics = list(&node, &args.prefix).await;
        let topics = topics.map_err(|trouble| tell(args.format, &args.prefix, trouble))?;
        let line = |topic: &Value| {
            let [name, partitions] = ["name", "partitions"].map(|key| text(&topic[key]));
            [name, partitions, configs(&topic["configs"])]
        };
        let lines: Vec<_> = topics.iter().map(line).collect();
        let human = table(["NAME", "PARTITIONS", "CONFIGURATION"], &lines);
        output::print(args.format, &json!({ "topics": topics }), &human)
    })
}

/// All of them, page after page.
async fn list(node: &Node, prefix: &str) -> Result<Vec<Value>, Trouble> {
    let (mut topics, mut after) = (Vec::new(), None);
    loop {
        let query = query(&[
            ("prefix", Some(prefix.to_owned())),
            ("limit", Some(PAGE.to_owned())),
            ("after", after),
        ]);
        let page = node
            .ask(&Question::get(format!("/v1/topics{query}")))
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
        Ok(Question::get(path_of(&args.topic))),
        args.format,
        &args.target,
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
    let question = Question::new("POST", "/v1/topics").body(&new);
    ask(
        &args.topic,
        question,
        args.format,
        &args.target,
        environment,
    )
}

pub(super) fn run_alter(args: &AlterArgs, environment: &Environment) -> Result<(), Failure> {
    let mut configs = object(&args.config);
    configs.extend(args.reset.iter().map(|key| (key.clone(), Value::Null)));
    if configs.is_empty() && args.partitions.is_none() {
        let failure = Failure::new(Exit::Usage, "nothing is to change");
        return Err(failure.hint("--partitions N, --config KEY=VALUE or --reset KEY says what"));
    }
    let mut change = Map::from_iter([("configs".to_owned(), json!(configs))]);
    if let Some(partitions) = args.partitions {
        change.insert("partitions".to_owned(), partitions.into());
    }
    let question = Question::new("PATCH", path_of(&args.topic)).body(&change);
    ask(
        &args.topic,
        question,
        args.format,
        &args.target,
        environment,
    )
}

pub(super) fn run_delete(args: &NameArgs, environment: &Environment) -> Result<(), Failure> {
    block_on(async {
        let node = Node::connect(&args.target, environment).await?;
        let question = Question::new("DELETE", path_of(&args.topic));
        let answer = node.ask(&question).await;
        answer.map_err(|trouble| tell(args.format, &args.topic, trouble))?;
        let deleted = json!({ "deleted": args.topic });
        output::print(args.format, &deleted, &format!("deleted {}\n", args.topic))
    })
}

/// Asks what is answered with a topic, and shows it.
fn ask(
    topic: &str,
    question: Result<Question, Trouble>,
    format: Format,
    target: &Target,
    environment: &Environment,
) -> Result<(), Failure> {
    let question = question.map_err(|trouble| tell(format, topic, trouble))?;
    block_on(async {
        let node = Node::connect(target, environment).await?;
        let answer = node.ask(&question).await;
        let answer = answer.map_err(|trouble| tell(format, topic, trouble))?;
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

/// A topic for people.
fn describe(topic: &Value) -> String {
    let [name, id, created_at] = ["name", "id", "created_at"].map(|key| text(&topic[key]));
    let configs = configs(&topic["configs"]);
    let line = |it: &Value| ["partition", "start", "end", "size"].map(|key| text(&it[key]));
    let lines: Vec<_> = rows(topic, "state").iter().map(line).collect();
    let partitions = table(["PARTITION", "START", "END", "BYTES"], &lines);
    format!("{name}\n  id {id}, made {created_at}\n  configuration: {configs}\n\n{partitions}")
}

/// What is configured, on one line.
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
