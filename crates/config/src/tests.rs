use std::collections::BTreeSet;
use std::path::Path;

use super::*;

fn try_load(
    file: &str,
    variables: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> Result<Loaded, Mistakes> {
    load(
        Some((Path::new("telpher.toml"), file)),
        variables
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
        flags
            .iter()
            .map(|(key, value)| (find(key).unwrap(), (*value).to_owned())),
    )
}

/// Loads the layers and returns the warnings and the options that are set, with their origins; or
/// all mistakes with their hints.
fn check(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    let mut lines = Vec::new();
    let mut tell = |mistakes: &[Mistake]| {
        for mistake in mistakes {
            lines.push(mistake.to_string());
            lines.extend(mistake.hints.iter().map(|hint| format!("  hint: {hint}")));
        }
    };
    match try_load(file, variables, flags) {
        Err(mistakes) => tell(&mistakes.0),
        Ok(loaded) => {
            tell(&loaded.warnings);
            for spec in specs().filter(|spec| loaded.origin(spec) != Origin::Default) {
                let origin = loaded.origin(spec);
                lines.push(format!(
                    "{} = {}  # {origin}",
                    spec.key,
                    spec.toml(&loaded.config)
                ));
            }
        }
    }
    lines.join("\n")
}

#[test]
fn default_config_is_valid_and_listens_on_loopback() {
    assert_eq!(check("", &[], &[]), "");
    let config = load(None, [], []).unwrap().config;
    assert_eq!(config, Config::default());
    assert_eq!(config.native.listen.unwrap().to_string(), "127.0.0.1:7400");
    assert_eq!(config.http.listen.unwrap().to_string(), "127.0.0.1:7401");
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let file = "data = 'file'\n[native]\nlisten = '127.0.0.1:1'\ncalls_max = 7\nkeepalive = '1m'\n";
    let variables = [
        ("TELPHER_NATIVE_LISTEN", "127.0.0.1:2"),
        ("TELPHER_NATIVE_CALLS_MAX", "8"),
    ];
    insta::assert_snapshot!(check(file, &variables, &[("native.listen", "127.0.0.1:3")]), @r#"
    data = "file"  # telpher.toml:1:1
    native.listen = "127.0.0.1:3"  # --native-listen
    native.calls_max = 8  # TELPHER_NATIVE_CALLS_MAX
    native.keepalive = "1m"  # telpher.toml:5:1
    "#);
}

#[test]
fn every_kind_of_value_is_read() {
    let file = "
        insecure = true
        native = { socket = 'none', frame_size_max = '16MiB', credit_bytes = 0x100000 }
        [http]
        listen = 'none'
        [tls]
        certificate = 'chain.pem'
        key = 'key.pem'
        [log]
        format = 'json'
        level = 'warn,edge=debug'
        [runtime]
        workers = 2
        [shutdown]
        drain = '500ms'
    ";
    insta::assert_snapshot!(check(file, &[], &[]), @r#"
    insecure = true  # telpher.toml:2:9
    native.socket = "none"  # telpher.toml:3:20
    native.frame_size_max = "16MiB"  # telpher.toml:3:37
    native.credit_bytes = "1MiB"  # telpher.toml:3:63
    http.listen = "none"  # telpher.toml:5:9
    tls.certificate = "chain.pem"  # telpher.toml:7:9
    tls.key = "key.pem"  # telpher.toml:8:9
    log.format = "json"  # telpher.toml:10:9
    log.level = "warn,edge=debug"  # telpher.toml:11:9
    runtime.workers = 2  # telpher.toml:13:9
    shutdown.drain = "500ms"  # telpher.toml:15:9
    "#);
}

#[test]
fn config_errors_of_all_layers_are_reported_at_once() {
    let file = "\
dtaa = 'x'
listen = '127.0.0.1:1'
zzz = 1

[native]
frame_size_max = '8 parsecs'
calls_max = -1
credit_messages = [1]
keepalive = 15
conections_max = 1

[htpp]
listen = '127.0.0.1:1'

[http]
listen = '7401'

[log]
format = 'xml'
level = 'loud'
";
    let variables = [
        ("TELPHER_NATIVE_LISTN", "127.0.0.1:1"),
        ("TELPHER_INSECURE", "maybe"),
        ("HOME", "/root"),
    ];
    let flags = [
        ("native.calls_max", "0"),
        ("native.handshake_timeout", "1h"),
    ];
    insta::assert_snapshot!(check(file, &variables, &flags));
}

#[test]
fn toml_syntax_error_is_reported_with_its_line_and_other_errors() {
    let file = "[native]\nlisten = \"127.0.0.1:1\nkeepalive = 1\ncalls_max == 2\n";
    insta::assert_snapshot!(check(file, &[("TELPHER_NATIVE_KEEPALIVE", "soon")], &[]));
}

#[test]
fn duplicate_config_key_is_an_error() {
    let found = check(
        "[http]\nlisten = '127.0.0.1:1'\nlisten = '127.0.0.1:2'\n",
        &[],
        &[],
    );
    assert_eq!(found, "telpher.toml:3:1: duplicate key");
}

#[test]
fn config_error_columns_count_characters() {
    let found = check("native = { socket = '/tmp/ü', calls_mx = 1 }", &[], &[]);
    assert!(
        found.starts_with("telpher.toml:1:31: unknown option `native.calls_mx`"),
        "{found}"
    );
}

#[test]
fn unknown_variable_is_a_warning_and_empty_one_is_unset() {
    let variables = [("TELPHER_SERVICE_HOST", "10.0.0.1"), ("TELPHER_DATA", "")];
    let variables: Vec<_> = variables
        .into_iter()
        .chain(RESERVED_VARIABLES.map(|name| (name, "x")))
        .collect();
    insta::assert_snapshot!(
        check("", &variables, &[]),
        @"TELPHER_SERVICE_HOST: no option reads this variable"
    );
}

#[test]
fn incompatible_options_are_refused() {
    let long = "x".repeat(100);
    type Flags<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Flags<'_>, &str); 6] = [
        (
            "[tls]\nkey = 'k'",
            &[],
            "telpher.toml:2:1: `tls.key` is set and `tls.certificate` is not",
        ),
        (
            "",
            &[("tls.certificate", "c")],
            "--tls-certificate: `tls.certificate` is set and `tls.key`",
        ),
        (
            "",
            &[("shutdown.drain", "11s")],
            "--shutdown-drain: `shutdown.drain` is longer than",
        ),
        (
            "",
            &[("data", &long)],
            "default: `native.socket`: the path has 113 bytes",
        ),
        (
            "",
            &[("native.listen", "none"), ("native.socket", "none")],
            "no client can connect",
        ),
        ("", &[("data", "")], "--data: `data`: the path is empty"),
    ];
    for (file, flags, expected) in cases {
        let found = check(file, &[], flags);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn option_ranges_include_their_bounds() {
    let within = |text| try_load("", &[], &[("native.frame_size_max", text)]).is_ok();
    assert!(within("1KiB") && within("1GiB"));
    assert!(!within("1023B") && !within("1073741825"));
}

#[test]
fn public_listener_needs_tls_and_a_token_or_insecure() {
    let check = |flags: &[(&str, &str)], tokens| match check_exposure(
        &try_load("", &[], flags).unwrap(),
        tokens,
    ) {
        Ok(()) => "allowed".to_owned(),
        Err(Mistakes(mistakes)) => mistakes
            .iter()
            .flat_map(|mistake| {
                let hints = mistake.hints.iter().map(|hint| format!("  hint: {hint}"));
                std::iter::once(mistake.to_string()).chain(hints)
            })
            .collect::<Vec<_>>()
            .join("\n"),
    };
    let open = [
        ("native.listen", "0.0.0.0:7400"),
        ("http.listen", "[::]:7401"),
    ];
    let tls = [
        ("tls.certificate", "c"),
        ("tls.key", "k"),
        ("http.listen", "example.org:1"),
    ];
    let insecure = [("native.listen", "0.0.0.0:1"), ("insecure", "true")];
    assert_eq!(check(&[], 0), "allowed");
    assert_eq!(check(&insecure, 0), "allowed");
    assert_eq!(check(&tls, 1), "allowed");
    insta::assert_snapshot!(check(&open, 0), @r"
    --native-listen: `native.listen`: other machines can reach 0.0.0.0:7400, and there is neither TLS nor a token
    --http-listen: `http.listen`: other machines can reach [::]:7401, and there is neither TLS nor a token
      hint: encrypt: --tls-certificate chain.pem --tls-key key.pem
      hint: authenticate: telpher token add NAME --data ./telpher-data
      hint: or allow every client that can reach the listener: --insecure
    ");
    assert!(check(&open, 1).contains("there is no TLS\n"));
    assert!(check(&tls, 0).contains("there is no token\n"));
}

#[test]
fn the_template_shows_every_default() {
    let template = template();
    assert_eq!(
        try_load(&template, &[], &[]).unwrap().config,
        Config::default()
    );
    let set: String = template
        .lines()
        .map(|line| {
            line.strip_prefix("# ")
                .filter(|line| line.contains(" = "))
                .unwrap_or(line)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let loaded = try_load(&set, &[], &[]).unwrap();
    assert_eq!(loaded.config, Config::default());
    for spec in specs() {
        assert!(
            matches!(loaded.origin(spec), Origin::File { .. }),
            "{}",
            spec.key
        );
    }
    insta::assert_snapshot!(template);
}

#[test]
fn option_names_are_unique_and_defaults_parse_back() {
    let variables: BTreeSet<_> = specs().map(Spec::variable).collect();
    let flags: BTreeSet<_> = specs().map(Spec::flag).collect();
    assert_eq!(
        (variables.len(), flags.len()),
        (specs().count(), specs().count())
    );
    for spec in specs() {
        assert!(
            !spec.doc().is_empty() && spec.doc().ends_with('.'),
            "{}",
            spec.key
        );
        let flags = [(spec.key, &*spec.default_text())];
        assert_eq!(
            try_load("", &[], &flags).unwrap().config,
            Config::default(),
            "{}",
            spec.key
        );
    }
    assert_eq!(
        find("native.frame_size_max").unwrap().flag(),
        "native-frame-size-max"
    );
    assert_eq!(find("data").unwrap().variable(), "TELPHER_DATA");
    for section in SECTIONS {
        let tables: BTreeSet<_> = section.specs.iter().map(Spec::table).collect();
        assert_eq!(tables.len(), 1, "{}", section.title);
    }
}

proptest::proptest! {
    #[test]
    fn config_parser_never_panics(text in ".{0,80}", key in "[a-z_.]{0,12}") {
                // Any text gives a configuration or at least one mistake.
        for file in [text.clone(), format!("{key} = {text}"), format!("[native]\nlisten = {text}")] {
            if let Err(Mistakes(mistakes)) = try_load(&file, &[], &[]) {
                proptest::prop_assert!(!mistakes.is_empty());
            }
        }
    }
}

#[test]
fn limits_are_read_from_tables_of_the_file() {
    let file = "
        [[limit]]
        name = 'agent'
        match = '*/*/*'
        unit = 'requests'
        capacity = 100
        refill = '10/s'
        factor = 0.5
        warn = [0.8, 1.0]

        [[limit]]
        name = 'team'
        match = 'acme/*'
        unit = 'usd_micros'
        budget = 50_000_000
        every = 'day'
        tz = '+02:00'
        durability = 'sync'
    ";
    let limits = try_load(file, &[], &[]).unwrap().config.limits;
    let names: Vec<_> = limits.iter().map(|limit| &*limit.name).collect();
    assert_eq!(names, ["agent", "team"]);
    assert_eq!(limits[0].warn, [800, 1_000]);
    assert_eq!(limits[0].factor.parts(), (1, 2));
    assert_eq!(limits[1].kind.capacity(), 50_000_000);
}

#[test]
fn all_errors_of_all_limits_are_reported_at_once() {
    let file = "\
[[limit]]
name = 'agent'
match = '*/*/*'
unit = 'requests'
capcity = 100
refill = '10/s'

[[limit]]
name = 'b'
match = 'a//b'
unit = 'requests'
capacity = 1
every = 'day'

[[limit]]
name = 'c'
match = '*'
unit = 'tokens'
capacity = -1

[[limit]]
name = 'd'
match = '*'
unit = 'tokens'
capacity = 1

[[limit]]
name = 'd'
match = '*'
unit = 'tokens'
capacity = 1
weight = 0
";
    insta::assert_snapshot!(check(file, &[], &[]));
}
