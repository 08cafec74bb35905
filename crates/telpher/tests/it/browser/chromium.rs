//! A headless Chromium, and a web site for it on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{Node, Place};

/// Time limit of a page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Host names that the browser resolves to this machine, as an attacker's name server could.
const RESOLVE: &str = "--host-resolver-rules=MAP *.example 127.0.0.1";

/// A browser with one open page, ended on drop.
pub(super) struct Chromium {
    child: Child,
}

impl Chromium {
    fn command(place: &Place) -> Command {
        let profile = place.path(&format!("chromium-{}", fastrand::u64(..)));
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", RESOLVE])
            .arg(format!("--user-data-dir={}", profile.display()))
            .env("HOME", place.path("."))
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Opens a page. `cargo xtask setup` installs the browser.
    pub(super) fn open(place: &Place, url: &str) -> Self {
        let mut command = Self::command(place);
        // Without a debugging port the browser would end when the page is loaded.
        let command = command
            .args(["--remote-debugging-port=0", url])
            .stdout(Stdio::null());
        let child = command
            .spawn()
            .expect("chromium is needed: cargo xtask setup");
        Self { child }
    }

    /// Returns the document of the loaded page.
    pub(super) fn dump(place: &Place, url: &str) -> String {
        let mut command = Self::command(place);
        let output = command.args(["--dump-dom", url]).output();
        let output = output.expect("chromium is needed: cargo xtask setup");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A web site on a free port, with its pages and the reports of their scripts.
pub(super) struct Site {
    pub(super) port: u16,
    pages: Arc<Mutex<Vec<(String, String)>>>,
    reports: Receiver<Value>,
}

impl Site {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let pages: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let (sender, reports) = channel();
        let known = pages.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (known, sender) = (known.clone(), sender.clone());
                thread::spawn(move || serve(&stream.unwrap(), &known, &sender));
            }
        });
        Self {
            port,
            pages,
            reports,
        }
    }

    /// Adds a page with a script that makes requests to a node and reports the outcomes; returns
    /// its path.
    ///
    /// The script can use `node`, the address; `attempt(name, act)`, which notes the outcome of
    /// `act`; `socket(protocols, command)`, the first answer of a WebSocket; and `events(path,
    /// kind)`, the first event of an `EventSource`.
    pub(super) fn page(&self, name: &str, node: &Node, script: &str) -> String {
        let path = format!("/{name}");
        let page = PAGE
            .replace("ADDRESS", &json!(node.address("http")).to_string())
            .replace("SCRIPT", script);
        self.pages.lock().push((path.clone(), page));
        path
    }

    /// Returns the next report.
    #[track_caller]
    pub(super) fn report(&self) -> Value {
        self.reports
            .recv_timeout(PATIENCE)
            .expect("no report of a page")
    }
}

const PAGE: &str = r#"<!doctype html><title>test</title><script type="module">
const address = ADDRESS, node = "http://" + address, found = {};
const attempt = async (name, act) => {
    try { found[name] = await act(); } catch (error) { found[name] = error.name; }
};
const socket = (protocols, command) => new Promise(resolve => {
    const socket = new WebSocket("ws://" + address + "/v1/ws", protocols);
    socket.onopen = () => socket.send(JSON.stringify(command));
    socket.onmessage = event => { resolve(JSON.parse(event.data)); socket.close(); };
    socket.onclose = () => resolve("closed");
});
const events = (path, kind) => new Promise(resolve => {
    const source = new EventSource(node + path);
    source.addEventListener(kind, event => { resolve(event.data); source.close(); });
    source.onopen = () => { if (kind === "halted") { resolve("open"); source.close(); } };
    source.onerror = () => { resolve(source.readyState === EventSource.CLOSED ? "closed" : "ended"); source.close(); };
});
await attempt("script", async () => { SCRIPT
return "done"; });
if (found.script === "done") delete found.script;
await fetch("/report", {method: "POST", body: JSON.stringify(found)});
</script>"#;

fn serve(stream: &TcpStream, pages: &Mutex<Vec<(String, String)>>, reports: &Sender<Value>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !reader.read_line(&mut head).is_ok_and(|size| size > 0) {
            return;
        }
    }
    let mut words = head.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let page = pages
        .lock()
        .iter()
        .find(|(known, _)| known == path)
        .map(|(_, page)| page.clone());
    let lower = head.to_ascii_lowercase();
    let size = lower
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    if method == "POST" {
        let mut body = vec![0; size.map_or(0, |size| size.parse().unwrap_or(0))];
        if reader.read_exact(&mut body).is_ok() {
            let _ = reports.send(serde_json::from_slice(&body).unwrap());
        }
    }
    let status = if page.is_some() || method == "POST" {
        "200 OK"
    } else {
        "404 Not Found"
    };
    let page = page.unwrap_or_default();
    let mut stream = stream;
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
}
