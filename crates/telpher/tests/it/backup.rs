//! `telpher backup` of a node under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use client::Client;
use rustix::process::Signal;

use crate::support::{Node, Place, eventually};

/// Appends to `acme/demo/log` until it is stopped or the node is gone; the record at each offset is
/// the offset as text.
struct Writer {
    acked: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

fn number(offset: u64) -> Vec<u8> {
    offset.to_le_bytes().repeat(100)
}

impl Writer {
    fn start(url: &str) -> Self {
        let (acked, is_over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (url, count, over) = (url.to_owned(), acked.clone(), is_over.clone());
        let write = async move {
            let client = Client::connect(&url).await.unwrap();
            let stream = client.stream("acme/demo/log").unwrap();
            while !over.load(Ordering::SeqCst) {
                let next = count.load(Ordering::SeqCst);
                match stream.append_expecting(next, &[number(next)]).await {
                    Ok(appended) => count.store(appended.next, Ordering::SeqCst),
                    Err(_) => return,
                }
            }
        };
        Self {
            acked,
            is_over,
            thread: Some(thread::spawn(move || runtime().block_on(write))),
        }
    }

    fn acked(&self) -> u64 {
        self.acked.load(Ordering::SeqCst)
    }
}

#[test]
fn backup_into_a_missing_directory_names_it() {
    let place = Place::new();
    let node = place.serve("");
    let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
    client
        .run("backup /missing/x")
        .expect(2)
        .shows_error("the directory /missing does not exist", "/backups/monday");
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Checks every record and returns their number.
fn read_back(node: &Node) -> u64 {
    runtime().block_on(async {
        let client = Client::connect(node.url("native")).await.unwrap();
        let stream = client.stream("acme/demo/log").unwrap();
        let mut next = 0;
        loop {
            let read = stream.read(next).await.unwrap();
            if read.records.is_empty() {
                return next;
            }
            for record in read.records {
                assert_eq!((record.offset, &record.body[..]), (next, &number(next)[..]));
                next += 1;
            }
        }
    })
}

#[test]
fn a_backup_holds_all_records_acked_before_it_despite_kill9() {
    let place = Place::new();
    let node = place.serve("");
    let writer = Writer::start(node.url("native"));
    eventually("something is acknowledged", || writer.acked() > 200);
    let before = writer.acked();
    let url = node.url("native").to_owned();
    let made = place.run(&format!("backup copy --json --url {url}"));
    let made = made.expect(0).json();
    assert!(made["bytes"].as_u64().unwrap() > 0, "{made:#}");
    eventually("the node goes on", || writer.acked() > before + 50);
    node.signal(Signal::KILL);
    drop(node);
    drop(writer);

    let found = place.run("inspect copy --json").expect(0).json();
    assert_eq!(found["whole"], true, "{found:#}");
    let restored = place.serve("--data copy");
    let kept = read_back(&restored);
    assert!(kept >= before, "{kept} of {before}");
    // The restored node continues at the end of the backup.
    runtime().block_on(async {
        let client = Client::connect(restored.url("native")).await.unwrap();
        let stream = client.stream("acme/demo/log").unwrap();
        let appended = stream
            .append_expecting(kept, &[number(kept)])
            .await
            .unwrap();
        assert_eq!(appended.first, kept);
    });
    assert_eq!(read_back(&restored), kept + 1);
    restored.stop().expect(0);
}

#[test]
fn a_backup_needs_a_new_directory_and_an_administrator() {
    let place = Place::new();
    let node = place.serve("");
    let url = node.url("native").to_owned();
    std::fs::create_dir(place.path("there")).unwrap();
    let ended = place.run(&format!("backup there --url {url}"));
    ended.expect(2).shows_error("exists already", "");
    let admin = place
        .run("token add ops --role admin --json")
        .expect(0)
        .json();
    let agent = place.run("token add builder --json").expect(0).json();
    let backup = |token: &serde_json::Value, dir: &str| {
        let token = token["token"].as_str().unwrap().to_owned();
        place.run(&format!("backup {dir} --url {url} --token {token}"))
    };
    // The node reads the token within a second.
    let mut tries = 0;
    eventually("the agent is refused", || {
        tries += 1;
        backup(&agent, &format!("early-{tries}")).code() == 6
    });
    backup(&agent, "refused").expect(6);
    backup(&admin, "made").expect(0);
    assert!(!place.path("refused").exists() && place.path("made/tokens.toml").is_file());
}
