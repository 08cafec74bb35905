//! `telpher cluster`: several nodes that hold the same topics and streams.

mod dev;

use console::output::{self, Format, table};
use console::{Environment, Failure};
use serde_json::{Value, json};

use super::agents::ask;
use super::target::{NodeArgs, block_on};
use crate::settings::ConfigArgs;

const EXAMPLES: &str = "\
A cluster serves topics and streams. One member leads: it serves all clients, and the others pass \
theirs to it. What a client is told to be durable is on the disks of more than half of the voters.

Examples:
  telpher cluster dev --nodes 3            three processes on this machine, for experiments

On three machines; every member needs the key of the first one:
  telpher cluster init --cluster-listen node-1:7402 --kafka-listen node-1:9092 --insecure
  telpher serve --cluster-listen node-1:7402 --kafka-listen node-1:9092 --insecure
  telpher serve --join node-1:7402 --cluster-key cluster.key --cluster-listen node-2:7402 \\
                --kafka-listen node-2:9092 --insecure
  telpher cluster status

A new member gets no vote until it has caught up, and until the number of voters is odd with it. The \
last member can go on without a cluster: telpher cluster leave";

/// Run several nodes that hold the same topics and streams
#[derive(Debug, clap::Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Command {
    /// Make a stopped node the first member of a new cluster
    Init(InitArgs),
    /// List the members and their state
    Status(StatusArgs),
    /// Print the command that adds a member
    Add(AddArgs),
    /// Remove a member for good
    Remove(RemoveArgs),
    /// Make the stopped last member a node alone, with its data
    Leave(LeaveArgs),
    /// Run a cluster on this machine, for experiments
    Dev(dev::Args),
}

#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LeaveArgs {
    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    config: ConfigArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Id of the member; no other node will ever get it
    id: u64,

    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Init(args) => init(&args, environment),
        Command::Status(args) => status(&args, environment),
        Command::Add(args) => add(&args, environment),
        Command::Remove(args) => remove(&args, environment),
        Command::Leave(args) => leave(&args, environment),
        Command::Dev(args) => dev::run(&args, environment),
    }
}

fn init(args: &InitArgs, environment: &Environment) -> Result<(), Failure> {
    let loaded = args.config.load(environment)?;
    let begun = serve::init_cluster(&loaded)?;
    let key = begun.key_file.display();
    let data = loaded.config.data.dir.display();
    let json = json!({
        "cluster": format!("{:016x}", begun.cluster),
        "id": begun.id,
        "key_file": key.to_string(),
        "link": begun.link,
        "data": data.to_string(),
    });
    let text = format!(
        "cluster {:016x} begins with this node, which is its member {}\n\n\
         Start it:\n  telpher serve --data {data}\n\n\
         Copy {key} to each other machine, and join there with an empty data directory:\n  \
         telpher serve --join {} --cluster-key cluster.key --cluster-listen HOST:7402\n",
        begun.cluster, begun.id, begun.link
    );
    output::print(args.format, &json, &text)
}

fn status(args: &StatusArgs, environment: &Environment) -> Result<(), Failure> {
    let node = &args.node;
    block_on(async {
        let client = node.target.connect(environment).await?;
        let value = ask(&client, node.format, "cluster", &()).await?;
        output::print(node.format, &value, &status_table(&value))
    })
}

fn status_table(value: &Value) -> String {
    let text = |it: &Value| match it {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let nodes = value["nodes"].as_array().map(Vec::as_slice);
    let rows = nodes.unwrap_or_default().iter().map(|node| {
        let is_leader = node["id"] == value["leader"];
        [
            text(&node["id"]),
            text(&node["name"]),
            match (is_leader, &node["kept_out"]) {
                (true, _) => "leader".to_owned(),
                (false, Value::String(_)) => "kept out".to_owned(),
                (false, _) => text(&node["role"]),
            },
            match node["in_sync"].as_bool() {
                Some(true) => "yes".to_owned(),
                _ => "no".to_owned(),
            },
            text(&node["behind_blocks"]),
            text(&node["link"]),
            text(&node["kafka"]),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let head = ["ID", "NAME", "ROLE", "IN SYNC", "BEHIND", "LINK", "KAFKA"];
    format!(
        "cluster {}\n{}",
        text(&value["cluster"]),
        table(head, &rows)
    )
}

/// Prints what to run on the machine of a new member. It joins by itself: no node is added from
/// outside.
fn add(args: &AddArgs, environment: &Environment) -> Result<(), Failure> {
    let node = &args.node;
    block_on(async {
        let client = node.target.connect(environment).await?;
        let value = ask(&client, node.format, "cluster", &()).await?;
        let members = value["nodes"].as_array().into_iter().flatten();
        let leader = members.clone().find(|it| it["id"] == value["leader"]);
        let link = leader.or_else(|| value["nodes"].get(0));
        let link = link.and_then(|it| it["link"].as_str()).unwrap_or_default();
        let command = format!(
            "telpher serve --data DIR --join {link} --cluster-key cluster.key \
             --cluster-listen HOST:7402 --kafka-listen HOST:9092"
        );
        let json = json!({ "join": link, "command": command });
        let text = format!(
            "Copy the key of the cluster (`cluster.key` in the data directory of any member) to the \
             new machine, and run there, with an empty directory and its own addresses:\n\n  \
             {command}\n\n\
             It gets a vote when it has caught up, and when the number of voters is odd with it: \
             telpher cluster status\n"
        );
        output::print(node.format, &json, &text)
    })
}

fn leave(args: &LeaveArgs, environment: &Environment) -> Result<(), Failure> {
    let loaded = args.config.load(environment)?;
    let left = serve::leave_cluster(&loaded)?;
    let data = loaded.config.data.dir.display();
    let json = json!({
        "cluster": format!("{:016x}", left.cluster),
        "id": left.id,
        "data": data.to_string(),
    });
    let text = format!(
        "this node has left the cluster {:016x} and keeps its data\n\n\
         Start it alone:\n  telpher serve --data {data}\n",
        left.cluster
    );
    output::print(args.format, &json, &text)
}

fn remove(args: &RemoveArgs, environment: &Environment) -> Result<(), Failure> {
    let node = &args.node;
    block_on(async {
        let client = node.target.connect(environment).await?;
        let request = json!({ "id": args.id });
        let asked = ask(&client, node.format, "cluster_remove", &request).await;
        let hint = "`telpher cluster status` lists the members and their state";
        let value = asked.map_err(|failure| failure.hint(hint))?;
        let text = format!("member {} is removed\n", args.id);
        output::print(node.format, &value, &text)
    })
}
