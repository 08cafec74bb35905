//! Bad input to members of a cluster, and faults of them: every refusal says what to do, the cluster
//! goes on, and what it has acknowledged is there.

mod console;
mod damage;
mod followers;
mod input;
mod links;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kafka::metadata;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::kafka::client::Client;
use crate::support::{Ended, Place, Running, eventually};

/// The topic to which tests append numbers.
const TOPIC: &str = "numbers";

/// Appends acknowledged numbers to a stream while faults happen.
struct Writer {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<u64>, u64)>,
    acked: Arc<AtomicU64>,
}

impl Writer {
    /// Begins to append at these members in turn, one number after the other.
    fn start(cluster: &Cluster, nodes: &[usize]) -> Writer {
        let (is_over, acked) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let addresses = nodes
            .iter()
            .map(|it| cluster.address(*it, "http").to_owned());
        let addresses: Vec<_> = addresses.collect();
        let (over, count) = (is_over.clone(), acked.clone());
        let thread = thread::spawn(move || {
            let mut kept = Vec::new();
            let mut turns = addresses.iter().cycle();
            let mut address = turns.next().unwrap();
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                match append(address, number) {
                    true => {
                        kept.push(number);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    false => {
                        address = turns.next().unwrap();
                        thread::sleep(Duration::from_millis(20));
                    }
                }
                number += 1;
            }
            (kept, number)
        });
        Writer {
            is_over,
            thread,
            acked,
        }
    }

    /// Waits until more is acknowledged: the cluster serves.
    #[track_caller]
    fn wait_for_progress(&self) {
        let before = self.acked.load(Ordering::Relaxed);
        eventually("appends are acknowledged", || {
            self.acked.load(Ordering::Relaxed) > before + 1
        });
    }

    /// Ends, and checks at a member that all acknowledged numbers are there once and in order.
    #[track_caller]
    fn check(self, cluster: &Cluster, node: usize) {
        self.is_over.store(true, Ordering::Relaxed);
        let (acked, next) = self.thread.join().unwrap();
        let mut stored: Vec<u64> = Vec::new();
        while let Some(page) = page(cluster, node, stored.len()) {
            let values = page["records"].as_array().unwrap().iter();
            let before = stored.len();
            stored.extend(values.map(|it| it["value"].as_str().unwrap().parse::<u64>().unwrap()));
            if stored.len() == before {
                break;
            }
        }
        assert!(stored.is_sorted_by(|a, b| a < b), "doubled or reordered");
        assert!(
            stored.iter().all(|it| *it < next),
            "a number that was not written"
        );
        let lost: Vec<_> = acked
            .iter()
            .filter(|it| stored.binary_search(it).is_err())
            .collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        assert!(!acked.is_empty());
    }
}

/// Appends a number to the topic over HTTP; returns whether it is acknowledged.
fn append(address: &str, number: u64) -> bool {
    let body = format!("[{{\"value\":\"{number}\",\"partition\":0}}]");
    let head = format!(
        "POST /v1/topics/{TOPIC}/records HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    ask(address, &(head + &body)).is_some_and(|(status, _)| status == 200)
}

/// Returns a page of the topic's records; `None` at its end.
fn page(cluster: &Cluster, node: usize, from: usize) -> Option<Value> {
    let path = format!("/v1/topics/{TOPIC}/partitions/0/records?from={from}&limit=10000");
    let mut page = None;
    eventually("a page is read", || {
        let (status, body) = cluster.get(node, &path);
        page = (status == 200).then(|| serde_json::from_str::<Value>(&body).unwrap());
        page.is_some()
    });
    page.filter(|it| !it["records"].as_array().unwrap().is_empty())
}

/// Sends a request over HTTP; returns the status and the body, if there is an answer.
fn ask(address: &str, request: &str) -> Option<(u16, String)> {
    let asked = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    let text = asked().ok()?;
    let status = text.get(9..12)?.parse().ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    Some((status, body.to_owned()))
}

/// Three nodes that were started by `telpher cluster dev`.
pub(crate) struct Cluster {
    pub(crate) place: Place,
    /// The processes that were started again.
    again: Vec<Child>,
    pids: Vec<i32>,
    pub(crate) nodes: Vec<Value>,
    first: Running,
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        Cluster::start_in(Place::new())
    }

    /// Starts the nodes with the environment of a place.
    fn start_in(place: Place) -> Cluster {
        let words = ["cluster", "dev", "--nodes", "3", "--data", "nodes"];
        let mut command = place.command(words.into_iter().chain(["--json"]));
        // It runs until the end of its input.
        let mut first = Running::spawn(command.stdin(Stdio::piped()));
        // The nodes of many tests start at the same time.
        let line = (0..3).map(|_| first.line()).find(|line| !line.is_empty());
        let line = line.unwrap_or_default();
        let Ok(started) = serde_json::from_str::<Value>(&line) else {
            let ended = first.end();
            panic!("not started: {line}{}{}", ended.stdout, ended.stderr);
        };
        let nodes = started["nodes"].as_array().unwrap().clone();
        let pids = nodes.iter().map(|it| it["pid"].as_i64().unwrap() as i32);
        Cluster {
            place,
            again: Vec::new(),
            pids: pids.collect(),
            nodes,
            first,
        }
    }

    fn id(&self, node: usize) -> u64 {
        self.nodes[node]["id"].as_u64().unwrap()
    }

    pub(crate) fn data(&self, node: usize) -> PathBuf {
        self.nodes[node]["data"].as_str().unwrap().into()
    }

    /// Runs a command line at a node.
    fn run_at(&self, node: usize, line: &str) -> Ended {
        let url = self.address(node, "native");
        self.place.run(&format!("{line} --url tcp://{url}"))
    }

    /// Returns the state of the cluster as a member sees it; `None` if it does not answer.
    fn status(&self, node: usize) -> Option<Value> {
        let ended = self.run_at(node, "cluster status --json");
        (ended.code() == 0).then(|| ended.json())
    }

    /// Waits until a member is a voter and has everything, as the leader sees it.
    fn wait_until_in_sync(&self, node: usize, is_in_sync: bool) {
        let leader = self.leader();
        eventually("the state of the member is as expected", || {
            let status = self.status(leader).unwrap_or_default();
            let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
            let mut found = nodes.iter().filter(|it| it["id"] == self.id(node));
            found.any(|it| it["role"] == "voter" && it["in_sync"] == is_in_sync)
        });
    }

    pub(crate) fn address(&self, node: usize, door: &str) -> &str {
        self.nodes[node][door].as_str().unwrap()
    }

    /// Connects to a node as soon as it serves, directly or through the leader.
    pub(crate) fn connect(&self, node: usize) -> Client {
        let mut connected = None;
        eventually("a node serves", || {
            connected = self.try_connect(node);
            connected.is_some()
        });
        connected.unwrap()
    }

    pub(crate) fn try_connect(&self, node: usize) -> Option<Client> {
        let mut client = Client::connect_to(self.address(node, "kafka")).ok()?;
        client.ask(9, &metadata::Request::default()).ok()?;
        Some(client)
    }

    /// Returns the place of the node that leads, as a client of any node is told.
    pub(crate) fn leader(&self) -> usize {
        let mut leader = None;
        eventually("a node leads", || {
            let mut clients = (0..self.nodes.len()).filter_map(|it| self.try_connect(it));
            let told = clients.find_map(|mut client| {
                let request = metadata::Request::default();
                let response = client.ask(9, &request).ok()?;
                let is_leader = |it: &Value| it["id"] == response.controller_id;
                self.nodes.iter().position(is_leader)
            });
            leader = told;
            leader.is_some()
        });
        leader.unwrap()
    }

    /// Returns the status and the body of a page; 0 if the node does not answer.
    pub(crate) fn get(&self, node: usize, path: &str) -> (u16, String) {
        let address = self.address(node, "http");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        ask(address, &request).unwrap_or_default()
    }

    pub(crate) fn kill(&self, node: usize) {
        self.signal(node, Signal::KILL);
    }

    /// Kills a node and waits until its process has ended.
    pub(crate) fn kill_and_wait(&self, node: usize) {
        self.kill(node);
        eventually("a killed node has ended", || {
            TcpStream::connect(self.address(node, "http")).is_err()
        });
    }

    fn signal(&self, node: usize, signal: Signal) {
        let pid = Pid::from_raw(self.pids[node]).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Returns the command that starts a node again.
    fn command(&self, node: usize) -> Command {
        let words = self.nodes[node]["command"].as_array().unwrap();
        let words: Vec<_> = words.iter().map(|it| it.as_str().unwrap()).collect();
        let mut command = self.place.command::<&str>([]);
        assert_eq!(command.get_program(), words[0]);
        command.args(&words[1..]);
        command
    }

    /// Starts a killed node again.
    pub(crate) fn restart(&mut self, node: usize) {
        let mut command = self.command(node);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        self.pids[node] = child.id() as i32;
        self.again.push(child);
    }
}

/// Copies a directory with everything below it.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_directory(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in 0..self.pids.len() {
            // One that has ended cannot be continued.
            let pid = Pid::from_raw(self.pids[node]);
            let _ = pid.map(|pid| kill_process(pid, Signal::CONT));
        }
        for child in &mut self.again {
            // It may have been killed already.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.first.signal(Signal::TERM);
    }
}
