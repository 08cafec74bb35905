//! `telpher top` in a window of tmux, whose content is read as a user sees it.

use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::Signal;

use super::{Busy, row};
use crate::support::{Place, eventually, free_port};

/// A window with one program, on a tmux server of its own.
struct Window {
    socket: PathBuf,
    place: Place,
}

impl Window {
    /// Opens a window in which `telpher top` runs with these words after variables of the
    /// environment. The window stays when it ends.
    fn open(variables: &str, words: &str) -> Self {
        let place = Place::new();
        let program = env!("CARGO_BIN_EXE_telpher");
        let line = format!(
            "env {variables} TERM=screen-256color {program} top --interval 250ms {words}; \
             echo ended with $?; read line"
        );
        let window = Self {
            socket: place.path("tmux"),
            place,
        };
        let opened = window.tmux(&["new-session", "-d", "-x", "110", "-y", "24", &line]);
        assert!(opened.status.success(), "{opened:?}");
        window
    }

    fn tmux(&self, words: &[&str]) -> Output {
        Command::new("tmux")
            .arg("-u")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .args(words)
            .current_dir(self.place.path(""))
            .env("SHELL", "/bin/sh")
            .env_remove("TMUX")
            .output()
            .unwrap()
    }

    /// Returns the text of the window.
    fn content(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8(shown.stdout).unwrap()
    }

    /// Returns the lines of the table below its head.
    fn rows(&self) -> Vec<String> {
        let content = self.content();
        let lines = content.lines().skip(4).take(19);
        let lines = lines.map(str::trim_end).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// Returns the first words of the rows.
    fn names(&self) -> Vec<String> {
        let first = |row: String| row.split_whitespace().next().unwrap_or("").to_owned();
        self.rows().into_iter().map(first).collect()
    }

    #[track_caller]
    fn wait_for(&self, text: &str) {
        eventually(&format!("`{text}` in\n{}", self.content()), || {
            self.content().contains(text)
        });
    }

    /// Waits for a row that begins with these words.
    #[track_caller]
    fn wait_for_row(&self, words: &[&str]) {
        let is_shown = |row: &String| {
            let mut seen = row.split_whitespace();
            words.iter().all(|word| seen.next() == Some(word))
        };
        let what = format!("a row of {words:?} in\n{}", self.content());
        eventually(&what, || self.rows().iter().any(is_shown));
    }

    /// Presses keys by their names in tmux.
    fn press(&self, keys: &[&str]) {
        let words = [&["send-keys"][..], keys].concat();
        assert!(self.tmux(&words).status.success());
    }

    /// Types a filter, and ends it with Enter.
    fn filter(&self, text: &str) {
        self.press(&["/"]);
        self.wait_for("filter:");
        assert!(self.tmux(&["send-keys", "-l", text]).status.success());
        self.wait_for(&format!("filter: {text}"));
        self.press(&["Enter"]);
    }

    #[track_caller]
    fn quit(self) {
        self.press(&["q"]);
        self.wait_for("ended with 0");
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn top_in_tmux_shows_every_view_and_its_details() {
    let busy = Busy::new();
    let window = Window::open("", &format!("--url {}", busy.node.url("native")));
    window.wait_for_row(&["acme/demo/idle", "0"]);
    window.filter("slow");
    eventually("one row is left", || window.names() == ["acme/demo/slow"]);
    window.press(&["Enter"]);
    window.wait_for("instances of acme/demo/slow");
    eventually("its one instance", || window.rows().len() == 1);
    window.press(&["Escape"]);
    window.wait_for_row(&["acme/demo/idle"]);
    window.press(&["2"]);
    window.wait_for_row(&["jobs"]);
    window.press(&["Enter"]);
    window.wait_for("partitions of topic jobs");
    window.wait_for_row(&["0"]);
    window.press(&["3"]);
    window.wait_for_row(&["readers", "Empty"]);
    window.press(&["Enter"]);
    window.wait_for("partitions of group readers");
    window.wait_for_row(&["jobs", "0", "6"]);
    window.press(&["4"]);
    window.wait_for_row(&["acme/demo/idle", "3"]);
    window.press(&["Enter"]);
    window.wait_for("messages of acme/demo/idle");
    eventually("its three messages", || window.names() == ["0", "1", "2"]);
    window.press(&["5"]);
    window.wait_for_row(&["acme/demo/bot"]);
    window.filter("bot");
    window.press(&["Enter"]);
    window.wait_for("limits of acme/demo/bot");
    window.wait_for_row(&["calls", "1.0", "100"]);
    window.press(&["6"]);
    window.wait_for_row(&["journal", "state", "serving"]);
    window.press(&["Tab"]);
    window.wait_for_row(&["acme/demo/idle"]);
    window.press(&["?"]);
    window.wait_for("Any key closes this page.");
    window.press(&["x"]);
    window.wait_for_row(&["acme/demo/idle"]);
    window.quit();
}

#[test]
fn top_in_tmux_sorts_reverses_and_pauses() {
    let busy = Busy::new();
    let window = Window::open("", &format!("mailboxes --url {}", busy.node.url("native")));
    window.wait_for_row(&["acme/demo/idle", "3"]);
    for body in ["one", "two"] {
        let written = busy.client.run_words(["write", "acme/demo/other", body]);
        written.expect(0);
    }
    let names = |expected: [&str; 2]| {
        let what = format!("{expected:?} in\n{}", window.content());
        eventually(&what, || window.names() == expected);
    };
    window.wait_for("WAITING↓");
    names(["acme/demo/idle", "acme/demo/other"]);
    window.press(&["r"]);
    window.wait_for("WAITING↑");
    names(["acme/demo/other", "acme/demo/idle"]);
    window.press(&["S"]);
    window.wait_for("MAILBOX↑");
    names(["acme/demo/idle", "acme/demo/other"]);
    window.press(&["r"]);
    names(["acme/demo/other", "acme/demo/idle"]);

    window.press(&["Space"]);
    window.wait_for("PAUSED");
    let paused = window.content();
    busy.client
        .run_words(["write", "acme/demo/idle", "4"])
        .expect(0);
    // Another process takes two samples meanwhile.
    let views = busy.views();
    assert_eq!(
        row(&views, "mailboxes", "mailbox", "acme/demo/idle")["waiting"],
        4
    );
    assert_eq!(window.content(), paused);
    window.press(&["Space"]);
    window.wait_for_row(&["acme/demo/idle", "4"]);
    window.quit();
}

#[test]
fn top_in_tmux_uses_a_token_and_returns_with_the_node() {
    let home = Place::new();
    let added = home.run("token add ops --role admin");
    let token = added.expect(0).stdout.trim().to_owned();
    let address = format!("127.0.0.1:{}", free_port());
    let node = home.serve_at(&address, "");
    let client = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let refused = client.run("top --once");
    assert_ne!(refused.code(), 0, "{}", refused.stdout);
    let client = client.with_variable("TELPHER_TOKEN", &token);
    let _agent = client.listen(["acme/demo/echo", "--echo"]);
    let views = client.run("top --once --json --interval 250ms");
    let views = views.expect(0).json();
    assert_eq!(
        row(&views, "agents", "agent", "acme/demo/echo")["instances"],
        1
    );

    let variables = format!("TELPHER_TOKEN={token} TELPHER_URL={}", node.url("native"));
    let window = Window::open(&variables, "");
    window.wait_for_row(&["acme/demo/echo", "1"]);
    node.signal(Signal::KILL);
    node.end();
    window.wait_for("no new sample:");
    window.wait_for_row(&["acme/demo/echo", "1"]);
    let node = home.serve_at(&address, "");
    eventually("the node is back", || {
        let content = window.content();
        content.contains("? help") && content.contains("acme/demo/echo")
    });
    window.quit();
    node.stop().expect(0);
}
