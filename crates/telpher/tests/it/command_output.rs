use crate::support::Place;

#[test]
fn an_unknown_command_or_flag_is_a_usage_error() {
    let place = Place::new();
    for line in [
        "",
        "frobnicate",
        "serve --no-such-flag",
        "token",
        "completions tcsh",
    ] {
        let ended = place.run(line);
        ended.expect(2);
        assert_eq!(ended.stdout, "", "{line}");
        assert!(!ended.stderr.is_empty(), "{line}");
    }
    assert!(
        place
            .run("serve --native-lissten x")
            .stderr
            .contains("--native-listen")
    );
}

#[test]
fn help_is_printed_to_the_standard_output() {
    let place = Place::new();
    let ended = place.run("--help");
    assert!(
        ended.expect(0).stdout.contains("telpher serve --dev"),
        "{}",
        ended.stdout
    );
    assert!(
        place
            .run("help serve")
            .expect(0)
            .stdout
            .contains("TELPHER_NATIVE_LISTEN")
    );
}

#[test]
fn the_version_is_printed_for_people_and_programs() {
    let place = Place::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        place.run("--version").expect(0).stdout,
        format!("telpher {version}\n")
    );
    assert!(
        place
            .run("version")
            .expect(0)
            .stdout
            .starts_with(&format!("telpher {version} ("))
    );
    assert_eq!(
        place.run("version --json").expect(0).json()["version"],
        version
    );
}

#[test]
fn explain_lists_every_code_and_suggests_similar_ones() {
    let place = Place::new();
    let all = place.run("explain --json").expect(0).json();
    assert_eq!(all.as_array().unwrap().len(), model::ErrorCode::ALL.len());
    assert_eq!(
        place.run("explain").expect(0).stdout.lines().count(),
        model::ErrorCode::ALL.len()
    );
    let one = place.run("explain unconfirmed --json").expect(0).json();
    assert_eq!(
        (one["retry"].as_str(), one["executed"].as_str()),
        (Some("may_duplicate"), Some("unknown"))
    );
    assert!(
        place
            .run("explain 9")
            .expect(0)
            .stdout
            .starts_with("unconfirmed (9)\n")
    );
    place
        .run("explain unconfrimed")
        .expect(3)
        .shows_error("`unconfrimed`", "`unconfirmed`");
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Place::new()
        .command(["explain"])
        .stdout(writer)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn every_shell_gets_completions() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = place.run(&format!("completions {shell}"));
        assert!(ended.expect(0).stdout.contains("native-listen"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let place = Place::new();
    assert!(place.run("man").expect(0).stdout.contains(".SH NAME"));
    place.run("man --dir man1").expect(0);
    for page in [
        "telpher.1",
        "telpher-serve.1",
        "telpher-config-show.1",
        "telpher-token-add.1",
    ] {
        assert!(place.path("man1").join(page).is_file(), "{page}");
    }
    place
        .write("file", "")
        .run("man --dir file")
        .expect(1)
        .shows_error("cannot write", "writable");
}

#[test]
fn errors_have_no_colours_without_a_terminal() {
    let ended = Place::new().run("explain nonsense");
    assert!(!ended.expect(3).stderr.contains('\x1b'), "{}", ended.stderr);
}
