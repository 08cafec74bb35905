use model::ErrorCode;

use crate::native::agent::Agent;
use crate::support::{Place, eventually, mode};

#[test]
fn a_token_is_added_listed_and_revoked() {
    let place = Place::new();
    assert_eq!(
        place.run("token list --json").expect(0).json()["required"],
        false
    );

    let added = place.run("token add builder");
    let secret = added.expect(0).stdout.trim().to_owned();
    assert!(secret.starts_with("tlp_") && secret.len() == 47, "{secret}");
    assert_eq!(mode(&place.path("telpher-data/tokens.toml")), 0o600);
    assert_eq!(mode(&place.path("telpher-data")), 0o700);
    let file = std::fs::read_to_string(place.path("telpher-data/tokens.toml")).unwrap();
    assert!(!file.contains(&secret[4..]), "{file}");

    let added = place
        .run("token add ops --role admin --json")
        .expect(0)
        .json();
    assert_eq!(
        (added["name"].as_str(), added["role"].as_str()),
        (Some("ops"), Some("admin"))
    );
    let listed = place.run("token list --json").expect(0).json();
    assert_eq!(listed["required"], true);
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 2);
    assert_eq!(listed["tokens"][0]["name"], "builder");
    let listed = place.run("token list");
    assert!(listed.stdout.starts_with("NAME"), "{}", listed.stdout);
    assert!(!listed.stdout.contains(&secret), "{}", listed.stdout);

    place.run("token revoke builder").expect(0);
    let revoked = place.run("token revoke ops --json").expect(0).json();
    assert_eq!(revoked["tokens_left"], 0);
    let listed = place.run("token list");
    assert!(
        listed.expect(0).stderr.contains("all tokens were revoked"),
        "{}",
        listed.stderr
    );
}

#[test]
fn a_token_with_a_given_secret_is_added_once() {
    let place = Place::new();
    let secret = place.run("token secret").expect(0).stdout.clone();
    assert!(!place.path("telpher-data").exists(), "nothing is stored");
    place.write("secret", &secret);
    let line = "token add ops --role admin --secret-file secret --json";
    assert_eq!(place.run(line).expect(0).json()["added"], true);
    assert_eq!(place.run(line).expect(0).json()["added"], false);
    let listed = place.run("token list --json").expect(0).json();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
    let node = place.serve("");
    assert_eq!(node.get("/v1/agents", None).0, 401);
    assert_eq!(node.get("/v1/agents", Some(secret.trim())).0, 200);
    place
        .run("token add ops --secret-file secret")
        .expect(1)
        .shows_error("a token `ops` already", "revoke");
    place.write("secret", "tlp_short");
    place
        .run("token add ci --secret-file secret")
        .expect(2)
        .shows_error("does not hold a token's secret", "telpher token secret");
}

#[test]
fn a_failed_token_command_has_a_hint() {
    let place = Place::new();
    place.run("token add builder").expect(0);
    place
        .run("token add builder")
        .expect(1)
        .shows_error("a token `builder` already", "revoke");
    place
        .run("token add a/b")
        .expect(2)
        .shows_error("`a/b` is not a token's name", "builder-1");
    place.run("token add x --role king").expect(2);
    place
        .run("token revoke bulider")
        .expect(3)
        .shows_error("no token `bulider`", "`builder`");
    place
        .write("file", "")
        .run("token add x --data file")
        .expect(1)
        .shows_error("file", "--data");
}

#[test]
fn a_damaged_token_file_admits_no_client() {
    let place = Place::new();
    place.run("token add builder").expect(0);
    place.write(
        "telpher-data/tokens.toml",
        "version = 1\n[[token]]\nname = 'builder'\n",
    );
    for command in [
        "token list",
        "token add x",
        "token revoke builder",
        "config check",
    ] {
        place
            .run(command)
            .expect(1)
            .shows_error("cannot be understood", "backup");
    }
    let ended = place.run("serve --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0");
    ended
        .expect(1)
        .shows_error("cannot be understood", "backup");
}

#[test]
fn a_running_node_applies_changes_of_tokens() {
    let place = Place::new();
    let node = place.serve("");
    let status = |token: Option<&str>| node.get("/v1/agents", token).0;
    assert_eq!(status(None), 200);

    let secret = place.run("token add builder").stdout.trim().to_owned();
    eventually("a token is required", || status(None) == 401);
    assert_eq!(status(Some(&secret)), 200);
    assert_eq!(status(Some("tlp_wrong")), 401);

    place.run("token revoke builder").expect(0);
    eventually("the token is refused", || status(Some(&secret)) == 401);
    node.stop().expect(0);
}

#[test]
fn revoking_a_token_disconnects_only_its_clients() {
    let place = Place::new();
    let node = place.serve("");
    let mut early = Agent::connect(&node);
    early.hello("", "");
    let add = |name: &str| {
        let added = place.run(&format!("token add {name} --for test/revoked/*"));
        added.expect(0).stdout.trim().to_owned()
    };
    let (doomed, kept) = (add("doomed"), add("kept"));
    // Until the node has read the first token, a client without a token is accepted, and has none
    // that could be revoked.
    eventually("tokens are asked for", || {
        node.get("/v1/agents", None).0 == 401
    });
    eventually("the tokens are known", || {
        node.get("/v1/agents", Some(&kept)).0 == 200
    });
    let listen = |token: &str, name: &str| {
        let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
        place.with_variable("TELPHER_TOKEN", token).listen([name])
    };
    let mut ends = listen(&doomed, "test/revoked/ends");
    let mut stays = listen(&kept, "test/revoked/stays");
    let mut told = Agent::connect(&node);
    told.hello("", &doomed);
    told.subscribe("test/revoked/told");

    place.run("token revoke doomed").expect(0);
    let frame = told.next().unwrap();
    let failure = frame.failure();
    assert_eq!(failure.code, ErrorCode::Unauthenticated);
    assert_eq!(failure.message, "the token `doomed` was revoked or changed");
    assert!(told.next().is_none());
    ends.wait_for_note(
        "connection lost (unauthenticated: the token `doomed` was revoked or changed)",
    );

    let sends = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let sends = sends.with_variable("TELPHER_TOKEN", &kept);
    sends.run("send test/revoked/stays hi").expect(0);
    assert!(stays.line().ends_with(": hi\n"));
    sends.run("send test/revoked/ends hi").expect(3);
    early.subscribe("test/revoked/early");
    sends.run("send test/revoked/early hi").expect(0);
    let ended = ends.end();
    assert_eq!(ended.status.code(), Some(6), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("error: the subscription ended: unauthenticated")
    );
}
