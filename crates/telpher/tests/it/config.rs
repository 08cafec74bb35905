use crate::support::Place;

#[test]
fn the_file_that_init_prints_is_accepted() {
    let place = Place::new();
    let template = place.run("config init");
    place.write("telpher.toml", &template.expect(0).stdout);
    place.run("config check").expect(0);
    assert_eq!(
        place.run("config show").stdout,
        Place::new().run("config show").stdout
    );
}

#[test]
fn telpher_toml_in_the_working_directory_is_read() {
    let place = Place::new();
    place.write("telpher.toml", "[http]\nlisten = '127.0.0.1:1234'\n");
    let shown = place.run("config show --origin");
    assert!(
        shown.stdout.contains("# telpher.toml:2:1"),
        "{}",
        shown.stdout
    );
    let json = place.run("config show --json").json();
    let listen = json
        .as_array()
        .unwrap()
        .iter()
        .find(|option| option["key"] == "http.listen");
    assert_eq!(listen.unwrap()["value"], "127.0.0.1:1234");
}

#[test]
fn the_origin_of_values_of_every_layer_is_shown() {
    let place = Place::new()
        .with_variable("TELPHER_CONFIG", "mine.toml")
        .with_variable("TELPHER_NATIVE_CALLS_MAX", "7");
    place.write("mine.toml", "[native]\ncalls_max = 5\nkeepalive = '1m'\n");
    let json = place
        .run("config show --json --http-listen none --insecure")
        .json();
    let option = |key: &str| {
        let options = json.as_array().unwrap();
        let option = options.iter().find(|option| option["key"] == key).unwrap();
        format!("{} {}", option["value"], option["origin"])
    };
    assert_eq!(option("native.calls_max"), "7 \"TELPHER_NATIVE_CALLS_MAX\"");
    assert_eq!(option("native.keepalive"), "\"1m\" \"mine.toml:3:1\"");
    assert_eq!(option("http.listen"), "\"none\" \"--http-listen\"");
    assert_eq!(option("insecure"), "true \"--insecure\"");
    assert_eq!(option("data"), "\"./telpher-data\" \"default\"");
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let place = Place::new().with_variable("TELPHER_HTTP_LISTN", "127.0.0.1:1");
    place.write("telpher.toml", "[native]\nlissten = '127.0.0.1:1'\n");
    for command in ["serve", "config check", "config show"] {
        let ended = place.run(&format!("{command} --native-calls-max many"));
        ended
            .expect(2)
            .shows_error(
                "telpher.toml:2:1: unknown option `native.lissten`",
                "`native.listen`",
            )
            .shows_error(
                "TELPHER_HTTP_LISTN: no option reads this",
                "`TELPHER_HTTP_LISTEN`",
            )
            .shows_error(
                "--native-calls-max: `native.calls_max`: `many` is not a whole number",
                "",
            );
        assert_eq!(
            ended
                .stderr
                .lines()
                .filter(|line| line.starts_with("error: "))
                .count(),
            3
        );
        assert_eq!(ended.stdout, "");
    }
    assert!(!place.path("telpher-data").exists());
}

#[test]
fn a_named_file_must_exist() {
    let place = Place::new();
    place
        .run("config check --config nowhere.toml")
        .expect(2)
        .shows_error("nowhere.toml", "config init");
    place
        .run("serve --config nowhere.toml")
        .expect(2)
        .shows_error("nowhere.toml", "config init");
}

#[test]
fn config_check_finds_the_errors_that_serve_finds() {
    let place = Place::new();
    place
        .run("config check --native-listen 0.0.0.0:7400")
        .expect(2)
        .shows_error("other machines can reach 0.0.0.0:7400", "--insecure");
    place
        .run("config check --native-listen 0.0.0.0:7400 --insecure")
        .expect(0);
    place
        .write("chain.pem", "no certificate")
        .write("key.pem", "no key");
    place
        .run("config check --tls-certificate chain.pem --tls-key key.pem")
        .expect(2)
        .shows_error("chain.pem", "PEM");
    place
        .run("config check --tls-key key.pem")
        .expect(2)
        .shows_error("`tls.key` is set", "set both");
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let place = Place::new().with_variable("TELPHER_SERVICE_HOST", "10.0.0.1");
    let ended = place.run("config check --json");
    assert_eq!(ended.expect(0).json()["ok"], true);
    assert!(
        ended.stderr.starts_with("warning: TELPHER_SERVICE_HOST"),
        "{}",
        ended.stderr
    );
}
