use crate::support::{Place, eventually, mode};

#[test]
fn a_token_lives_from_add_to_revoke() {
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
        listed.expect(0).stderr.contains("no token is left"),
        "{}",
        listed.stderr
    );
}

#[test]
fn a_token_command_that_fails_says_how_to_go_on() {
    let place = Place::new();
    place.run("token add builder").expect(0);
    place
        .run("token add builder")
        .expect(1)
        .tells("a token `builder` already", "revoke");
    place
        .run("token add a/b")
        .expect(2)
        .tells("`a/b` is not a token's name", "builder-1");
    place.run("token add x --role king").expect(2);
    place
        .run("token revoke bulider")
        .expect(3)
        .tells("no token `bulider`", "`builder`");
    place
        .write("file", "")
        .run("token add x --data file")
        .expect(1)
        .tells("file", "--data");
}

#[test]
fn damaged_tokens_let_nobody_in() {
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
            .tells("cannot be understood", "backup");
    }
    let ended = place.run("serve --native-listen 127.0.0.1:0 --http-listen 127.0.0.1:0");
    ended.expect(1).tells("cannot be understood", "backup");
}

#[test]
fn a_running_node_follows_its_tokens() {
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
