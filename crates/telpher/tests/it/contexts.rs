//! `telpher context`: named nodes with their credentials.

use crate::support::{Node, Place, mode};

/// A user with an empty configuration directory.
struct User {
    home: Place,
}

impl User {
    fn new() -> Self {
        let home = Place::new();
        let config = home.path("config").display().to_string();
        Self {
            home: home.with_variable("XDG_CONFIG_HOME", &config),
        }
    }

    /// Returns the file of the contexts.
    fn file(&self) -> String {
        std::fs::read_to_string(self.home.path("config/telpher/contexts.toml")).unwrap()
    }
}

/// Starts a node that requires a token, and returns it with the token of an administrator.
fn node_with_token(place: &Place) -> (Node, String) {
    let added = place.run("token add ops --role admin");
    let token = added.expect(0).stdout.trim().to_owned();
    (place.serve(""), token)
}

#[test]
fn a_context_selects_the_node_and_its_token() {
    let place = Place::new();
    let (node, token) = node_with_token(&place);
    let other = Place::new();
    let other_node = other.serve("--dev");
    let user = User::new();
    user.home.write("token", &format!("{token}\n"));
    let run = |line: &str| user.home.run(line);
    let url = node.url("native");
    let add = format!("context add prod --url {url} --token-file token --check --select");
    let added = run(&add);
    assert_eq!(
        added.expect(0).stdout,
        "added the context prod\nit is selected\n"
    );
    assert!(!user.file().contains(&token), "{}", user.file());
    assert_eq!(mode(&user.home.path("config/telpher/contexts.toml")), 0o600);

    run("agents").expect(0);
    run("backup copy").expect(0);
    let view = run("top node --once --json --interval 250ms");
    assert!(view.expect(0).json()["node"].is_array());
    let other_url = other_node.url("native");
    run(&format!("context add dev --url {other_url}")).expect(0);
    run("write acme/demo/idle hello --context dev").expect(0);
    assert_eq!(other_node.metric("telpher_writes_total"), 1);
    let clash = run(&format!("agents --context prod --url {other_url}"));
    clash.expect(2).shows_error("cannot be used with", "");

    // The command has the token; another command of that name would fail.
    let command = "cat $HOME/token";
    let home = user.home.path("").display().to_string();
    let mut words = vec!["context", "add", "prod", "--replace", "--check"];
    words.extend(["--url", url, "--token-command", command]);
    let mut replace = user.home.command(&words);
    let replaced = crate::support::Running::spawn(replace.env("HOME", &home)).end();
    assert!(replaced.expect(0).stdout.starts_with("replaced"));
    let mut agents = user.home.command(["agents"]);
    let agents = crate::support::Running::spawn(agents.env("HOME", &home)).end();
    agents.expect(0);
    run("agents").expect(2).shows_error(
        "the token command of the context `prod` failed",
        "--replace",
    );
}

#[test]
fn contexts_are_listed_shown_used_and_removed() {
    let user = User::new();
    let run = |line: &str| user.home.run(line);
    assert_eq!(run("context list").expect(0).stdout, "  NAME  URL  TOKEN\n");
    run("context add a --url tcp://127.0.0.1:1").expect(0);
    run("context add b --url unix:///run/x --token-command true").expect(0);
    run("context show")
        .expect(3)
        .shows_error("no context is selected", "telpher context use NAME");
    run("context use b").expect(0);
    let marked = |ended: &crate::support::Ended| {
        let contexts = ended.json()["contexts"].as_array().unwrap().clone();
        let marked = contexts.iter().filter(|it| it["current"] == true);
        marked.map(|it| it["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(marked(run("context list --json").expect(0)), ["b"]);
    let list = run("context list");
    assert!(list.expect(0).stdout.contains("\n*  b"), "{}", list.stdout);
    let mut list = user.home.command(["context", "list", "--json"]);
    let list = crate::support::Running::spawn(list.env("TELPHER_CONTEXT", "a")).end();
    assert_eq!(marked(list.expect(0)), ["a"], "the variable comes first");
    let shown = run("context show --json").expect(0).json();
    assert_eq!(shown["token_command"], "true");
    assert_eq!(shown["url"], "unix:///run/x");
    run("context remove b").expect(0);
    let none = Vec::<serde_json::Value>::new();
    assert_eq!(marked(run("context list --json").expect(0)), none);
    run("context use a").expect(0);
    run("context use --none").expect(0);
    assert_eq!(marked(run("context list --json").expect(0)), none);
}

#[test]
fn mistakes_about_contexts_have_hints() {
    let place = Place::new();
    let (node, _) = node_with_token(&place);
    let user = User::new();
    let run = |line: &str| user.home.run(line);
    let url = node.url("native");
    run(&format!("context add prod --url {url} --check"))
        .expect(6)
        .shows_error("", "--token TOKEN");
    run("context show prod")
        .expect(3)
        .shows_error("there is no context `prod`", "telpher context add prod");
    run(&format!("context add prod --url {url}")).expect(0);
    run("agents --context prod")
        .expect(6)
        .shows_error("", "telpher context show prod");
    run(&format!("context add prod --url {url}"))
        .expect(1)
        .shows_error("the context `prod` exists", "--replace");
    run("agents --context prd")
        .expect(3)
        .shows_error("there is no context `prd`", "did you mean `prod`?");
    run("context use prd").expect(3);
    run("context add x --url nonsense")
        .expect(2)
        .shows_error("`nonsense`", "tcp://127.0.0.1:7400");
    run("context add a/b --url tcp://127.0.0.1:1")
        .expect(2)
        .shows_error("`a/b` is not a name of a context", "letters, digits");
    run("context add x --url tcp://127.0.0.1:1 --token-file nowhere")
        .expect(2)
        .shows_error("nowhere", "create the file first");
    user.home.write("token", "");
    run("context add empty --url tcp://127.0.0.1:1 --token-file token").expect(0);
    run("agents --context empty")
        .expect(2)
        .shows_error("does not begin with a line that is a token", "--replace");
    std::fs::remove_file(user.home.path("token")).unwrap();
    run("agents --context empty")
        .expect(2)
        .shows_error("cannot read the token file", "--token TOKEN");
    user.home
        .write("config/telpher/contexts.toml", "contexts = 7\n");
    run("agents")
        .expect(2)
        .shows_error("cannot read the contexts in", "--url URL");
    run("context list").expect(2);
}
