//! `telpher top`: its tables, and its screen in a pseudo-terminal.

mod tmux;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{tcgetwinsize, tcsetwinsize};
use serde_json::{Value, json};

use crate::support::{Node, Place, Running, UNTIL_GO, eventually};

const LIMITS: &str = r#"
[[limit]]
name = "calls"
match = "*/*/*"
unit = "requests"
capacity = 100
refill = "1/h"
"#;

/// A node with an agent that answers a call slowly, a mailbox without an agent, a group that lags,
/// and a denied take.
struct Busy {
    node: Node,
    client: Place,
    _node_place: Place,
    _agent: Running,
    _call: Running,
}

impl Busy {
    fn new() -> Self {
        let place = Place::new();
        place.write("telpher.toml", LIMITS);
        let node = place.serve("");
        let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
        let agent = client.listen(["acme/demo/slow", "--exec", UNTIL_GO]);
        let call = client.start(["request", "acme/demo/slow", "hello"]);
        for body in ["1", "2", "3"] {
            client
                .run_words(["write", "acme/demo/idle", body])
                .expect(0);
        }
        let broker = node.url("kafka");
        let script = format!(
            "seq 10 | kcat -b {broker} -t jobs -p 0 -P && \
             kcat -b {broker} -G readers -c 4 -X auto.offset.reset=earliest jobs"
        );
        place.shell(&script).expect(0);
        client.run("quota take acme/demo/bot 99").expect(0);
        client.run("quota take acme/demo/bot 2").expect(7);
        Self {
            node,
            client,
            _node_place: place,
            _agent: agent,
            _call: call,
        }
    }

    /// Returns the JSON of all views.
    #[track_caller]
    fn views(&self) -> Value {
        let top = self.client.run("top --once --json --interval 250ms");
        top.expect(0).json()
    }
}

/// Returns the row of a view whose member has a value.
#[track_caller]
fn row(views: &Value, view: &str, member: &str, value: &str) -> Value {
    let rows = views[view].as_array().unwrap();
    let found = rows.iter().find(|row| row[member] == value);
    found
        .unwrap_or_else(|| panic!("no {member} {value}: {rows:#?}"))
        .clone()
}

#[test]
fn top_prints_the_numbers_of_every_view_as_json() {
    let busy = Busy::new();
    let slow = |views: &Value| row(views, "agents", "agent", "acme/demo/slow");
    eventually("the call is in flight", || {
        slow(&busy.views())["in_flight"] == 1
    });
    let views = busy.views();
    let slow = slow(&views);
    assert_eq!(
        (&slow["instances"], &slow["waiting"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(slow["delivered_per_second"], 0.0);
    let idle = row(&views, "agents", "agent", "acme/demo/idle");
    assert_eq!(
        (&idle["instances"], &idle["waiting"]),
        (&json!(0), &json!(3))
    );
    let idle = row(&views, "mailboxes", "mailbox", "acme/demo/idle");
    assert_eq!((&idle["waiting"], &idle["dead"]), (&json!(3), &json!(0)));
    assert!(idle["oldest_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(idle["growth_per_second"], 0.0);
    let jobs = row(&views, "topics", "topic", "jobs");
    assert_eq!((&jobs["records"], &jobs["lag"]), (&json!(10), &json!(6)));
    assert!(jobs["bytes"].as_u64().unwrap() > 0);
    let readers = row(&views, "groups", "group", "readers");
    assert_eq!(
        (&readers["lag"], &readers["topics"]),
        (&json!(6), &json!(1))
    );
    let bot = row(&views, "quotas", "subject", "acme/demo/bot");
    let calls = row(&views, "quotas", "subject", "*");
    assert_eq!(
        (&calls["limit"], &calls["denied"]),
        (&json!("calls"), &json!(1))
    );
    assert_eq!(bot["denied"], 1);
    let writes = row(&views, "node", "number", "writes");
    assert_eq!(
        (&writes["value"], &writes["per_second"]),
        (&json!(3), &json!(0.0))
    );
    let state = row(&views, "node", "number", "journal state");
    assert_eq!(state["value"], "serving");
    assert_eq!(views.get("cluster"), None, "a node alone");
    assert_eq!(views["remarks"], json!({}));
    assert!(views["interval_s"].as_f64().unwrap() >= 0.25);

    let table = busy.client.run("top mailboxes --once --interval 250ms");
    let table = &table.expect(0).stdout;
    assert!(table.starts_with("MAILBOX "), "{table}");
    assert!(table.contains("acme/demo/idle"), "{table}");
    // Without a terminal it prints once.
    let all = busy.client.run("top --interval 250ms");
    assert!(
        all.expect(0).stdout.starts_with("Agents:\n"),
        "{}",
        all.stdout
    );
}

#[test]
fn top_refuses_unknown_views_and_intervals() {
    let place = Place::new();
    place
        .run("top everything")
        .expect(2)
        .shows_error("the views are agents, topics", "telpher top --help");
    for interval in ["0s", "1h"] {
        place
            .run(&format!("top --interval {interval}"))
            .expect(2)
            .shows_error("from 250ms to 60s", "telpher top --help");
    }
    place
        .run("top --once --url tcp://127.0.0.1:1")
        .expect(4)
        .shows_error("", "telpher serve --dev");
}

/// `telpher top` in a pseudo-terminal, between two prints of the terminal's modes.
struct Screen {
    child: Child,
    output: Arc<Mutex<String>>,
}

impl Screen {
    fn open(place: &Place, node: &Node) -> Self {
        let program = env!("CARGO_BIN_EXE_telpher");
        let url = node.url("native");
        let line = format!(
            "stty rows 24 cols 100; echo modes=$(stty -g); echo tty=$(tty); \
             sh -c 'echo pid=$$; exec {program} top --interval 250ms --url {url}'; \
             echo status=$?; echo modes=$(stty -g)"
        );
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .current_dir(place.path(""))
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = Arc::new(Mutex::new(String::new()));
        let (seen, mut stdout) = (output.clone(), child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(size @ 1..) = stdout.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..size]);
                seen.lock().unwrap().push_str(&text);
            }
        });
        Self { child, output }
    }

    /// Returns the output after the first `from` bytes.
    fn since(&self, from: usize) -> String {
        let output = self.output.lock().unwrap();
        output.get(from..).unwrap_or_default().to_owned()
    }

    /// Waits until the output after `from` contains a text, and returns its present length.
    #[track_caller]
    fn wait_for(&self, text: &str, from: usize) -> usize {
        eventually(text, || self.since(from).contains(text));
        self.output.lock().unwrap().len()
    }

    /// Presses keys, and waits for a text that is drawn then.
    #[track_caller]
    fn press(&mut self, keys: &str, text: &str) {
        let from = self.output.lock().unwrap().len();
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
        self.wait_for(text, from);
    }

    /// Returns the command that gives the terminal another size.
    fn resize(&self, rows: u16, columns: u16) -> String {
        let tty = self.values("tty").remove(0);
        format!("stty -F {tty} rows {rows} cols {columns}")
    }

    fn signal(&self, signal: Signal) {
        let pid = self.values("pid").remove(0).parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Returns the values of `name=VALUE` lines.
    fn values(&self, name: &str) -> Vec<String> {
        let start = format!("{name}=");
        let output = self.since(0);
        let values = output.split(&start).skip(1);
        values
            .map(|value| value.split(['\r', '\n']).next().unwrap().to_owned())
            .collect()
    }

    /// Checks that the command has ended, and has left the terminal as it was.
    #[track_caller]
    fn check_restored(mut self) {
        self.wait_for("status=", 0);
        eventually("the modes are printed again", || {
            self.values("modes").len() == 2 && self.since(0).ends_with('\n')
        });
        assert_eq!(self.values("status"), ["0"]);
        let modes = self.values("modes");
        assert_eq!(modes[0], modes[1]);
        let output = self.since(0);
        let (entered, left) = (output.find("\x1b[?1049h"), output.rfind("\x1b[?1049l"));
        assert!(entered.unwrap() < left.unwrap(), "the first screen is back");
        let (hidden, shown) = (output.rfind("\x1b[?25l"), output.rfind("\x1b[?25h"));
        assert!(hidden.unwrap() < shown.unwrap(), "the cursor is back");
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn top_shows_views_on_a_terminal_and_restores_it() {
    let busy = Busy::new();
    let mut screen = Screen::open(&busy.client, &busy.node);
    screen.wait_for("acme/demo/idle", 0);
    screen.press("4", "MAILBOX");
    screen.press("\r", "OFFSET");
    screen.press("\x1b", "MAILBOX");
    screen.press("2", "jobs");
    screen.press("5", "acme/demo/bot");
    screen.press("/", "filter:");
    screen.press("calls\r", "rows,");
    screen.press("?", "closes");
    screen.press("x", "SUBJECT");
    screen.press(" ", "PAUSED");
    let from = screen.output.lock().unwrap().len();
    busy.client.shell(&screen.resize(10, 40)).expect(0);
    screen.wait_for("\x1b[2J", from);
    screen.press("1", "AGENT");
    screen.press("q", "\x1b[?1049l");
    screen.check_restored();
}

/// The two reach the program within microseconds, in both orders over the rounds.
#[test]
fn top_takes_a_key_that_is_pressed_during_a_change_of_size() {
    let place = Place::new();
    let node = place.serve("--dev");
    let mut screen = Screen::open(&place, &node);
    screen.wait_for("Agents", 0);
    // Without samples nothing but an event draws the screen.
    screen.press(" ", "PAUSED");
    let tty = File::options()
        .read(true)
        .custom_flags(OFlags::NOCTTY.bits().cast_signed())
        .open(screen.values("tty").remove(0))
        .unwrap();
    for round in 0..300 {
        let mut size = tcgetwinsize(&tty).unwrap();
        size.ws_row = 20 + round % 2;
        tcsetwinsize(&tty, size).unwrap();
        let (view, text) = [("6", "VALUE"), ("2", "nothing")][usize::from(round % 2)];
        screen.press(view, text);
    }
    screen.press("q", "\x1b[?1049l");
    screen.check_restored();
}

#[test]
fn top_restores_the_terminal_at_a_signal() {
    let place = Place::new();
    let node = place.serve("--dev");
    let screen = Screen::open(&place, &node);
    screen.wait_for("Agents", 0);
    screen.signal(Signal::TERM);
    screen.check_restored();
}

#[test]
fn top_says_that_the_node_is_lost_and_comes_back() {
    let place = Place::new();
    let port = crate::support::free_port();
    let address = format!("127.0.0.1:{port}");
    let node = place.serve_at(&address, "");
    let mut screen = Screen::open(&place, &node);
    let from = screen.wait_for("Agents", 0);
    node.signal(Signal::KILL);
    node.end();
    let from = screen.wait_for("sample:", from);
    let node = place.serve_at(&address, "");
    screen.wait_for("help", from);
    screen.press("q", "\x1b[?1049l");
    screen.check_restored();
    node.stop().expect(0);
}
