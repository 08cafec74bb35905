//! `telpher cluster dev`: a cluster of processes on this machine.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use console::output::{self, Format};
use console::{Environment, Exit, Failure, Signals};
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep, timeout};

use crate::commands::agents::ask;
use crate::commands::target::{Target, block_on};

/// Time limit for the nodes to start and to get their votes.
const START_MAX: Duration = Duration::from_secs(120);

/// Time limit for a node to end.
const END_MAX: Duration = Duration::from_secs(20);

/// Pause between two looks at the nodes.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of nodes; an odd number, so that all get votes
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    nodes: u32,

    /// Directory of the nodes' data, which stays [default: a temporary directory that is removed]
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,

    #[command(flatten)]
    format: Format,
}

/// A node on free ports.
struct Node {
    /// Id that the cluster gave it; known once the node is a member.
    id: Option<u64>,
    data: PathBuf,
    link: String,
    native: String,
    http: String,
    kafka: String,
    process: Option<Child>,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> Result<(), Failure> {
    let temporary;
    let data = match &args.data {
        Some(data) => std::path::absolute(data).map_err(failed)?,
        None => {
            let created = tempfile::Builder::new()
                .prefix("telpher-cluster-")
                .tempdir();
            temporary = created.map_err(failed)?;
            temporary.path().to_owned()
        }
    };
    let program = std::env::current_exe().map_err(failed)?;
    let (mut nodes, reserved) = nodes(&data, args.nodes)?;
    let served = block_on(async {
        let mut signals = Signals::listen()?;
        if args.format.json {
            signals = signals.and_end_of_input();
        }
        tokio::select! {
            started = start(&program, &mut nodes, environment) => started?,
            () = signals.next() => return Ok(()),
        }
        let (json, text) = describe(&program, &nodes);
        // One line, for a program that goes on reading.
        output::print_text(&match args.format.json {
            true => format!("{json}\n"),
            false => text,
        })?;
        signals.next().await;
        Ok(())
    });
    end(&mut nodes);
    drop(reserved);
    served
}

/// Returns the nodes, and sockets that reserve their ports.
///
/// A socket that is bound and does not listen keeps the system from assigning the port to another
/// program, also while a node is started again; a node can still listen on it, since both allow the
/// reuse of addresses.
fn nodes(data: &Path, count: u32) -> Result<(Vec<Node>, Vec<TcpSocket>), Failure> {
    let mut reserved = Vec::new();
    let mut nodes = Vec::new();
    for number in 1..=count {
        let mut address = || {
            let socket = TcpSocket::new_v4().map_err(failed)?;
            socket.set_reuseaddr(true).map_err(failed)?;
            let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            socket.bind(any_port).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?.to_string();
            reserved.push(socket);
            Ok(address)
        };
        nodes.push(Node {
            id: None,
            data: data.join(format!("node-{number}")),
            link: address()?,
            native: address()?,
            http: address()?,
            kafka: address()?,
            process: None,
        });
    }
    Ok((nodes, reserved))
}

impl Node {
    /// Returns the options that the node is begun and started with.
    fn options(&self) -> Vec<String> {
        let options = [
            ("--data", self.data.display().to_string()),
            ("--cluster-listen", self.link.clone()),
            ("--native-listen", self.native.clone()),
            ("--native-socket", "none".to_owned()),
            ("--http-listen", self.http.clone()),
            ("--kafka-listen", self.kafka.clone()),
            ("--slim-listen", "none".to_owned()),
        ];
        let options = options.into_iter();
        options
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }

    /// Returns the arguments with which the node is started, also again.
    fn arguments(&self, first: &Node) -> Vec<String> {
        let mut arguments = vec!["serve".to_owned()];
        arguments.extend(self.options());
        if self.link != first.link {
            let key = first.data.join(serve::KEY_FILE);
            arguments.extend(["--join".to_owned(), first.link.clone()]);
            arguments.extend(["--cluster-key".to_owned(), key.display().to_string()]);
        }
        arguments
    }
}

/// Begins the cluster, unless there is data of an earlier run, and starts all nodes.
async fn start(
    program: &Path,
    nodes: &mut [Node],
    environment: &Environment,
) -> Result<(), Failure> {
    let (first, others) = nodes.split_first_mut().ok_or_else(|| failed("no nodes"))?;
    let mut init = Command::new(program);
    init.args(["cluster", "init"]).args(first.options());
    let begun = init.stdin(Stdio::null()).output().map_err(failed)?;
    if !begun.status.success() {
        let message = String::from_utf8_lossy(&begun.stderr).into_owned();
        let line = message.lines().next().unwrap_or_default().to_owned();
        return Err(failed(line).hint("choose an empty directory: --data PATH"));
    }
    first.process = Some(spawn(program, first.arguments(first), &first.data)?);
    wait(first, environment, |value| value["leader"].is_u64()).await?;
    for node in others.iter_mut() {
        node.process = Some(spawn(program, node.arguments(first), &node.data)?);
    }
    let count = others.len() + 1;
    let is_ready = |value: &Value| {
        let voters = members(value).filter(|it| it["role"] == "voter").count();
        members(value).count() == count && voters == count - usize::from(count % 2 == 0)
    };
    let status = wait(first, environment, is_ready).await?;
    // The nodes join in any order.
    for node in nodes {
        let member = members(&status).find(|it| it["link"] == node.link);
        node.id = member.and_then(|it| it["id"].as_u64());
    }
    Ok(())
}

/// Returns the members that a status lists.
fn members(status: &Value) -> impl Iterator<Item = &Value> {
    status["nodes"].as_array().into_iter().flatten()
}

/// Starts a node that writes its log into its data directory. It ends with this process, however that
/// ends: its standard input is a pipe that closes then.
fn spawn(program: &Path, arguments: Vec<String>, data: &Path) -> Result<Child, Failure> {
    std::fs::create_dir_all(data).map_err(failed)?;
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(data.with_extension("log"))
        .map_err(failed)?;
    let output = log.try_clone().map_err(failed)?;
    Command::new(program)
        .args(arguments)
        .arg("--end-with-stdin")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(log)
        .spawn()
        .map_err(failed)
}

/// Waits until the status that a node returns is as wanted, and returns it.
async fn wait(
    node: &Node,
    environment: &Environment,
    is_reached: impl Fn(&Value) -> bool,
) -> Result<Value, Failure> {
    let target = Target::at(&format!("tcp://{}", node.native));
    let deadline = Instant::now() + START_MAX;
    loop {
        let asked = async {
            let client = target.connect(environment).await?;
            ask(&client, Format { json: true }, "cluster", &()).await
        };
        if let Ok(Ok(value)) = timeout(Duration::from_secs(2), asked).await
            && is_reached(&value)
        {
            return Ok(value);
        }
        if Instant::now() > deadline {
            let log = node.data.with_extension("log");
            return Err(failed(format!("the nodes are not ready; {}", tail(&log))));
        }
        sleep(POLL).await;
    }
}

/// Returns the last line of a file, for an error.
fn tail(path: &Path) -> String {
    let read = || {
        let mut text = String::new();
        std::fs::File::open(path)?.read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    let last = read()
        .ok()
        .and_then(|it| it.lines().last().map(str::to_owned));
    format!("{}: {}", path.display(), last.unwrap_or_default())
}

fn describe(program: &Path, nodes: &[Node]) -> (Value, String) {
    let bootstrap: Vec<_> = nodes.iter().map(|it| it.kafka.clone()).collect();
    let bootstrap = bootstrap.join(",");
    let described = nodes.iter().map(|node| {
        let mut command = vec![program.display().to_string()];
        command.extend(node.arguments(&nodes[0]));
        json!({
            "id": node.id,
            "pid": node.process.as_ref().map(Child::id),
            "kafka": node.kafka,
            "http": node.http,
            "native": node.native,
            "link": node.link,
            "data": node.data.display().to_string(),
            "log": node.data.with_extension("log").display().to_string(),
            "command": command,
        })
    });
    let described: Vec<_> = described.collect();
    let mut text = format!("{} nodes are ready\n", nodes.len());
    for node in nodes {
        let pid = node.process.as_ref().map_or(0, Child::id);
        let id = node.id.map_or_else(|| "?".to_owned(), |it| it.to_string());
        text.push_str(&format!(
            "  node {id}  pid {pid}  kafka {}  http {}  native {}\n",
            node.kafka, node.http, node.native
        ));
    }
    let native = &nodes[0].native;
    text.push_str(&format!(
        "\nTry these commands in another terminal:\n  \
         telpher cluster status --url tcp://{native}\n  \
         echo hello | kcat -b {bootstrap} -t greetings -P\n  \
         kcat -b {bootstrap} -t greetings -C -o beginning -e\n  \
         kill -9 PID                      end a node; the others go on\n\
         \nCtrl-C ends all nodes.\n"
    ));
    let json = json!({ "nodes": described, "bootstrap": bootstrap });
    (json, text)
}

/// Ends all nodes that run: first by a signal, after some time by force.
fn end(nodes: &mut [Node]) {
    for node in nodes.iter() {
        if let Some(process) = &node.process
            && let Some(pid) = rustix::process::Pid::from_raw(process.id() as i32)
        {
            // A node that has ended already needs no signal.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }
    let mut left = END_MAX;
    for process in nodes.iter_mut().filter_map(|it| it.process.as_mut()) {
        while matches!(process.try_wait(), Ok(None)) && left > Duration::ZERO {
            std::thread::sleep(POLL);
            left = left.saturating_sub(POLL);
        }
        // Fails if the process has ended.
        let _ = process.kill();
        let _ = process.wait();
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("the cluster cannot start: {error}"))
}
