//! `telpher bridge slim` between agents and applications on the original `slim-bindings` of PyPI.

use std::io::{PipeWriter, Write};
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::slim_python::python;
use crate::support::{Ended, Node, Place, Running, UNTIL_GO, eventually, free_port};
use crate::tls::write_certificates;

const SECRET: &str = "a-secret-of-at-least-32-characters!!";

/// A node, with a directory for the bridge and the applications.
struct Scene {
    node: Node,
    home: Place,
    place: Place,
}

impl Scene {
    fn new() -> Self {
        Self::with("")
    }

    fn with(flags: &str) -> Self {
        Self::at(Place::new(), flags)
    }

    /// Starts a node with TLS, whose authority is trusted.
    fn with_tls(flags: &str) -> Self {
        let home = Place::new();
        write_certificates(&home, "authority.pem");
        let flags = format!("--tls-certificate chain.pem --tls-key key.pem {flags}");
        let mut scene = Self::at(home, &flags);
        let authority = scene.certificate("authority.pem");
        scene.place = scene
            .place
            .with_variable("TELPHER_TLS_AUTHORITIES", &authority);
        scene
    }

    fn at(home: Place, flags: &str) -> Self {
        let node = home.serve(flags);
        let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
        place.write("secret", &format!("{SECRET}\n"));
        Self { node, home, place }
    }

    /// Returns the path of a file of the node's TLS.
    fn certificate(&self, file: &str) -> String {
        self.home.path(file).display().to_string()
    }

    fn slim(&self) -> &str {
        self.node.url("slim")
    }

    /// Starts a bridge and waits until it is ready.
    fn bridge(&self, words: &[&str]) -> Running {
        let slim = ["bridge", "slim", "org/ns/agent", "--slim", self.slim()];
        let secret = ["--secret-file", "secret"];
        let all = slim.iter().chain(&secret).chain(words);
        let mut bridge = self.place.start(all);
        bridge.wait_for_note("bridging ");
        bridge
    }

    /// Starts a bridge that forwards requests of agents to the application.
    fn outward(&self, words: &[&str]) -> Running {
        let to = ["--to", "org/ns/app", "--as", "org/ns/bridge"];
        self.bridge(&[&to, words].concat())
    }

    fn application(&self, acts: &[&str]) -> Application {
        Application::start(self.slim(), &json!({}), acts)
    }

    fn run(&self, acts: &[&str]) -> Ended {
        let ended = self.application(acts).process.end();
        ended.expect(0);
        ended
    }
}

/// A SLIM application in a process, which runs actions by name.
struct Application {
    process: Running,
    input: PipeWriter,
}

impl Application {
    /// `shown` has its credentials and trusted certificates.
    fn start(url: &str, shown: &serde_json::Value, acts: &[&str]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bridge/applications.py");
        let (reader, input) = std::io::pipe().unwrap();
        let mut command = Command::new(python());
        command.arg(script).arg(url).args(acts).stdin(reader);
        command.env("CLIENT", shown.to_string());
        Self {
            process: Running::spawn(&mut command),
            input,
        }
    }
}

/// Ends a bridge and returns its totals.
#[track_caller]
fn tally(bridge: Running) -> String {
    let ended = bridge.stop();
    let said = &ended.expect(0).stderr;
    let line = said.lines().find(|line| line.starts_with("requests: "));
    line.unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn a_bridge_prints_json_events_and_its_totals() {
    let scene = Scene::new();
    let _agent = scene.place.listen(["org/ns/agent", "--echo", "--quiet"]);
    let mut bridge = scene.place.start([
        "bridge",
        "slim",
        "org/ns/agent",
        "--slim",
        scene.slim(),
        "--secret-file",
        "secret",
        "--json",
    ]);
    let ready: serde_json::Value = serde_json::from_str(&bridge.line()).unwrap();
    assert_eq!(ready["event"], "bridging");
    assert_eq!(ready["agent"], "org/ns/agent");
    scene.run(&["at-once"]);
    let ended = bridge.stop();
    let last = ended.expect(0).stdout.lines().last().unwrap();
    let totals: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(totals["event"], "ended");
    assert!(
        totals["requests"]["answered"].as_u64().unwrap() > 0,
        "{totals}"
    );
    assert_eq!(totals["requests"]["failed"], 0);
}

#[test]
fn slim_applications_call_an_agent_in_reliable_and_unreliable_sessions() {
    let scene = Scene::new();
    let _agent = scene.place.listen(["org/ns/agent", "--echo", "--quiet"]);
    let bridge = scene.bridge(&[]);
    scene.run(&["ask", "ask-reliable", "at-once"]);
    let said = tally(bridge);
    assert!(
        said.starts_with("requests: 330 answered, 0 failed, 0 "),
        "{said}"
    );
    assert!(said.contains("not acted upon: 0"), "{said}");
    for counter in ["slim_malformed_messages", "slim_bad_macs", "dropped"] {
        assert_eq!(scene.node.metric(&format!("telpher_{counter}_total")), 0);
    }
}

#[test]
fn a_failed_request_becomes_a_slim_error() {
    let scene = Scene::new();
    let bridge = scene.bridge(&[]);
    let said = scene.run(&["error"]).stderr;
    assert!(said.contains("error no_responder 7 "), "{said}");
    let agent = scene.place.listen(["org/ns/agent", "--exec", "exit 3"]);
    let said = scene.run(&["error"]).stderr;
    assert!(
        said.contains("error handler_error 7 the command ended"),
        "{said}"
    );
    let told = agent.stop().stdout;
    assert!(told.contains(" (sums): question"), "{told}");
    let said = tally(bridge);
    assert!(
        said.starts_with("requests: 0 answered, 2 failed, 0 "),
        "{said}"
    );
}

#[test]
fn a_request_has_a_deadline() {
    let scene = Scene::new();
    let _agent = scene.place.listen(["org/ns/agent", "--exec", UNTIL_GO]);
    let bridge = scene.bridge(&["--deadline", "300ms"]);
    let said = scene.run(&["error"]).stderr;
    assert!(said.contains("error deadline_exceeded 7 "), "{said}");
    let said = tally(bridge);
    assert!(
        said.starts_with("requests: 0 answered, 1 failed, 0 "),
        "{said}"
    );
}

#[test]
fn a_one_way_message_gets_no_answer() {
    for flags in [&[][..], &["--one-way"]] {
        let scene = Scene::new();
        let mut agent = scene.place.listen(["org/ns/agent", "--json"]);
        let bridge = scene.bridge(flags);
        scene.run(&["one-way"]);
        let told: serde_json::Value = serde_json::from_str(&agent.line()).unwrap();
        assert_eq!(told["kind"], "message");
        assert_eq!(told["body"], "take this");
        assert_eq!(told["metadata"]["colour"], "red");
        let source = told["metadata"]["slim-source"].as_str().unwrap();
        assert!(source.starts_with("org/ns/caller"), "{source}");
        let told: serde_json::Value = serde_json::from_str(&agent.line()).unwrap();
        assert_eq!(told["body"], "and this");
        let kind = if flags.is_empty() {
            "request"
        } else {
            "message"
        };
        assert_eq!(told["kind"], kind);
        let said = tally(bridge);
        assert!(said.contains("one way: "), "{said}");
        assert!(said.contains(", 0 lost"), "{said}");
    }
}

#[test]
fn invalid_invitations_are_refused_in_the_libraries_form() {
    let scene = Scene::new();
    let mut bridge = scene.bridge(&[]);
    let said = scene.run(&["refused"]).stderr;
    assert!(said.contains("refused at once"), "{said}");
    bridge.wait_for_note("not acted upon: sessions with MLS are not supported");
    scene.run(&["stranger"]);
    bridge.wait_for_note("not acted upon: the identity was made with another secret");
}

#[test]
fn a_vanished_application_does_not_affect_others() {
    let scene = Scene::new();
    let exec =
        format!("read word; if [ \"$word\" = wait ]; then {UNTIL_GO}; fi; printf %s \"$word\"");
    let mut agent = scene.place.listen(["org/ns/agent", "--exec", &exec]);
    let bridge = scene.bridge(&[]);
    let mut vanishing = scene.application(&["vanishes"]);
    vanishing.process.wait_for_note("asked");
    assert!(agent.line().ends_with(": wait\n"));
    vanishing.process.signal(Signal::KILL);
    vanishing.process.end();
    scene.run(&["ask"]);
    std::fs::File::create(scene.place.path("go")).unwrap();
    tally(bridge);
}

#[test]
fn applications_are_notified_of_the_end_of_a_session() {
    let scene = Scene::new();
    let _agent = scene.place.listen(["org/ns/agent", "--echo", "--quiet"]);
    let bridge = scene.bridge(&[]);
    let mut application = scene.application(&["ended"]);
    application.process.wait_for_note("in session");
    tally(bridge);
    application.process.wait_for_note("told: ");
    application.process.end().expect(0);
}

#[test]
fn a_session_survives_a_kill_of_the_node() {
    let home = Place::new();
    let slim = format!("127.0.0.1:{}", free_port());
    let native = format!("127.0.0.1:{}", free_port());
    let flags = format!("--slim-listen {slim}");
    let node = home.serve_at(&native, &flags);
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    place.write("secret", SECRET);
    let mut scene = Scene { node, home, place };
    let _agent = scene.place.listen(["org/ns/agent", "--echo", "--quiet"]);
    let mut bridge = scene.bridge(&[]);
    let mut application = scene.application(&["across"]);
    application.process.wait_for_note("heard before");
    let held = scene.node.metric("telpher_subscriptions");
    // An application that connects at the moment of the node's end gives up for good.
    application.process.signal(Signal::STOP);
    scene.node.signal(Signal::KILL);
    assert_eq!(scene.node.end().status.code(), None);
    scene.node = scene.home.serve_at(&native, &flags);
    application.process.signal(Signal::CONT);
    bridge.wait_for_note("connected to the SLIM node again");
    eventually("everybody comes back", || {
        scene.node.metric("telpher_subscriptions") == held
    });
    application.input.write_all(b"\n").unwrap();
    application.process.end().expect(0);
    tally(bridge);
}

#[test]
fn agents_call_a_slim_application_in_reliable_and_unreliable_sessions() {
    let scene = Scene::new();
    let mut application = scene.application(&["echo"]);
    application.process.wait_for_note("listening");
    for flags in [&[][..], &["--reliable"]] {
        let bridge = scene.outward(flags);
        let asking: Vec<_> = (0..4)
            .map(|number| {
                let word = format!("word-{number}");
                (scene.place.start(["request", "org/ns/agent", &word]), word)
            })
            .collect();
        for (asking, word) in asking {
            assert_eq!(asking.end().expect(0).stdout, format!("echo:{word}"));
        }
        for word in ["one", "two", "three"] {
            let answer = scene.place.run(&format!("request org/ns/agent {word}"));
            assert_eq!(answer.expect(0).stdout, format!("echo:{word}"));
        }
        scene.place.run("ping org/ns/agent --count 1").expect(0);
        let said = tally(bridge);
        assert!(
            said.starts_with("requests: 7 answered, 0 failed, 0 "),
            "{said}"
        );
        assert!(said.contains("not acted upon: 0"), "{said}");
    }
}

#[test]
fn agents_get_errors_of_applications() {
    let scene = Scene::new();
    let bridge = scene.outward(&["--reliable"]);
    scene
        .place
        .run("request org/ns/agent hello")
        .expect(3)
        .shows_error("no_responder: no SLIM application with that name", "");
    let mut application = scene.application(&["echo"]);
    application.process.wait_for_note("listening");
    scene
        .place
        .run("request org/ns/agent no")
        .expect(6)
        .shows_error("denied: not today", "");
    let silent = ["request", "org/ns/agent", "be silent", "--deadline", "1s"];
    let ended = scene.place.run_words(silent);
    ended.expect(5);
    application.process.wait_for_note("silent");
    scene
        .place
        .run("request org/ns/agent leave")
        .expect(1)
        .shows_error("unconfirmed: the application ended the session", "");
    let answer = scene.place.run("request org/ns/agent again");
    assert_eq!(answer.expect(0).stdout, "echo:again");
    let note = "send org/ns/agent note --method jot --name org/ns/me";
    scene.place.run(note).expect(0);
    application.process.wait_for_note("noted org/ns/me jot");
    let said = tally(bridge);
    assert!(said.starts_with("requests: 1 answered, "), "{said}");
    assert!(said.contains("one way: 1 passed on, 0 lost"), "{said}");
}

#[test]
fn a_restarted_slim_application_gets_requests_again() {
    let scene = Scene::new();
    let _bridge = scene.outward(&[]);
    let ask = |word: &str| {
        let words = ["request", "org/ns/agent", word, "--deadline", "5s"];
        scene.place.run_words(words)
    };
    let mut application = scene.application(&["echo"]);
    application.process.wait_for_note("listening");
    assert_eq!(ask("first").expect(0).stdout, "echo:first");
    application.process.signal(Signal::KILL);
    application.process.end();
    // The session is with an instance that is gone, and there is no other instance.
    ask("nobody").expect(3).shows_error("no_responder", "");
    let mut application = scene.application(&["echo"]);
    application.process.wait_for_note("listening");
    assert_eq!(ask("second").expect(0).stdout, "echo:second");
}

#[test]
fn the_first_request_after_a_restart_of_the_application_is_answered() {
    let scene = Scene::new();
    for flags in [&[][..], &["--reliable"]] {
        let mut application = scene.application(&["echo"]);
        application.process.wait_for_note("listening");
        let bridge = scene.outward(flags);
        // Many idle sessions, all with the instance that ends.
        let words = ["request", "org/ns/agent", "word", "--deadline", "20s"];
        let asking: Vec<_> = (0..8).map(|_| scene.place.start(words)).collect();
        for asking in asking {
            asking.end().expect(0);
        }
        application.process.signal(Signal::KILL);
        application.process.end();
        let mut application = scene.application(&["echo"]);
        application.process.wait_for_note("listening");
        for word in ["first", "second"] {
            let words = ["request", "org/ns/agent", word, "--deadline", "20s"];
            let answer = scene.place.run_words(words);
            assert_eq!(answer.expect(0).stdout, format!("echo:{word}"));
        }
        let said = tally(bridge);
        assert!(
            said.starts_with("requests: 10 answered, 0 failed, 0 "),
            "{said}"
        );
        application.process.signal(Signal::KILL);
        application.process.end();
    }
}

#[test]
fn invalid_arguments_fail_at_once() {
    let scene = Scene::new();
    scene.place.write("short", "short");
    let slim = format!("--slim {}", scene.slim());
    for (flags, code, error, hint) in [
        ("--secret-file nowhere", 2, "nowhere", "--secret-file"),
        ("--secret-file short", 2, "at least 32", "--secret-file"),
        (
            "--secret-file secret --slim ftp://x:1",
            2,
            "is not the address",
            "http://",
        ),
        (
            "--secret-file secret --slim http://x",
            2,
            "is not the address",
            "http://",
        ),
        (
            "--secret-file secret --as a/b/c/d",
            2,
            "has an instance",
            "org/namespace/app",
        ),
        (
            "--secret-file secret --slim http://127.0.0.1:1",
            4,
            "cannot reach",
            "telpher serve",
        ),
        (
            "--secret-file secret --slim unix:///nowhere/slim.sock",
            4,
            "cannot reach",
            "telpher serve",
        ),
        (
            "--secret-file secret --slim https://127.0.0.1:1 --slim-authorities secret",
            2,
            "no certificate in it",
            "--slim-authorities",
        ),
        (
            "--secret-file secret --slim https://127.0.0.1:1 --slim-certificate secret --slim-key secret",
            2,
            "no certificate in it",
            "--slim-certificate",
        ),
    ] {
        let slim = if flags.contains("--slim") { "" } else { &slim };
        let ended = scene
            .place
            .run(&format!("bridge slim org/ns/agent {flags} {slim}"));
        ended.expect(code).shows_error(error, hint);
    }
}

#[test]
fn a_bridge_sends_a_token_to_a_node_that_requires_one() {
    let home = Place::new();
    let token = home
        .run("token add bridge --for */*/*")
        .expect(0)
        .stdout
        .trim()
        .to_owned();
    let node = home.serve("");
    let url = node.url("native").to_owned();
    let place = Place::new().with_variable("TELPHER_URL", &url);
    place.write("secret", SECRET);
    let words = ["bridge", "slim", "org/ns/agent", "--secret-file", "secret"];
    let slim = ["--slim", node.url("slim"), "--token", &token];
    let words = [&words[..], &slim].concat();
    let ended = place.run_words(&words);
    ended
        .expect(6)
        .shows_error("unauthenticated", "--slim-token");
    let mut bridge = place.start([&words[..], &["--slim-token", &token]].concat());
    bridge.wait_for_note("bridging ");
    tally(bridge);
}

/// Makes a request in each direction, through bridges with these flags.
fn ask_both_ways(scene: &Scene, url: &str, shown: &serde_json::Value, words: &[&str]) {
    let start = |words: &[&str]| {
        let mut bridge = scene.place.start([&bridging(url), words].concat());
        bridge.wait_for_note("bridging ");
        bridge
    };
    let agent = scene.place.listen(["org/ns/agent", "--echo", "--quiet"]);
    let bridge = start(words);
    let asking = Application::start(url, shown, &["ask"]);
    asking.process.end().expect(0);
    assert!(tally(bridge).starts_with("requests: 55 answered, 0 failed, 0 "));
    agent.stop().expect(0);
    let mut application = Application::start(url, shown, &["echo"]);
    application.process.wait_for_note("listening");
    let to = ["--to", "org/ns/app", "--as", "org/ns/bridge", "--reliable"];
    let bridge = start(&[&to, words].concat());
    let answer = scene.place.run("request org/ns/agent hello");
    assert_eq!(answer.expect(0).stdout, "echo:hello");
    assert!(tally(bridge).starts_with("requests: 1 answered, 0 failed, 0 "));
}

/// The words that start a bridge to the node at `url`.
fn bridging(url: &str) -> [&str; 7] {
    let name = "org/ns/agent";
    [
        "bridge",
        "slim",
        name,
        "--secret-file",
        "secret",
        "--slim",
        url,
    ]
}

#[test]
fn bridge_trusts_a_tls_node_only_by_its_authority() {
    let scene = Scene::with_tls("");
    let url = scene.slim();
    assert!(url.starts_with("https://"), "{url}");
    let authority = scene.certificate("authority.pem");
    let trusting = ["--slim-authorities", &authority];
    let shown = json!({ "authorities": authority });
    ask_both_ways(&scene, url, &shown, &trusting);
    // No authority is trusted by default, and another authority does not help.
    let others = Place::new();
    write_certificates(&others, "other.pem");
    let other = others.path("other.pem").display().to_string();
    for words in [&[][..], &["--slim-authorities", &other]] {
        let ended = scene.place.run_words([&bridging(url), words].concat());
        ended
            .expect(6)
            .shows_error("certificate", "--slim-authorities");
    }
    // Plain text is refused.
    let plain = url.replacen("https", "http", 1);
    let ended = scene.place.run_words(bridging(&plain));
    ended
        .expect(4)
        .shows_error("cannot reach the SLIM node", "telpher serve");
}

#[test]
fn a_bridge_sends_a_client_certificate_if_required() {
    let scene = Scene::with_tls("--slim-client-authorities authority.pem");
    let authority = scene.certificate("authority.pem");
    let (chain, key) = (scene.certificate("chain.pem"), scene.certificate("key.pem"));
    let trusting = ["--slim-authorities", &authority];
    let showing = ["--slim-certificate", &chain, "--slim-key", &key];
    let url = scene.slim();
    let ended = scene
        .place
        .run_words([&bridging(url)[..], &trusting].concat());
    ended.expect(6).shows_error(
        "closed the connection after the TLS handshake",
        "--slim-certificate",
    );
    let shown = json!({ "authorities": authority, "certificate": chain, "key": key });
    ask_both_ways(
        &scene,
        url,
        &shown,
        &[trusting.as_slice(), &showing].concat(),
    );
}

#[test]
fn a_bridge_works_over_a_unix_socket() {
    let home = Place::new();
    let path = home.path("slim.sock").display().to_string();
    let scene = Scene::at(home, &format!("--slim-socket {path}"));
    let url = scene.node.url("slim_socket");
    assert_eq!(url, format!("unix://{path}"));
    ask_both_ways(&scene, url, &json!({}), &[]);
}
