//! The examples of the README and of `docs/` run, and the tests that `docs/` names exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use client::{self as telpher_client, Caller, Client, Server};
use serde_json::Value;

use crate::support::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

// As in docs/rpc.md.
async fn greet(node: &str) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::new().handle("greet", |request: telpher_client::Request| async move {
        let name = std::str::from_utf8(&request.body)?;
        Ok(format!("hello, {name}"))
    });

    // Directly, without a node.
    let listening = server.listen("tcp://127.0.0.1:0").await?;
    let direct = Caller::connect(listening.address()).await?;
    assert_eq!(direct.call("greet", "Ada").await?, "hello, Ada");

    // By name, through a node such as "tcp://127.0.0.1:7400".
    let agent = Client::connect(node).await?;
    let _attached = server.attach(&agent, &"acme/demo/greeter".parse()?).await?;
    let routed = Caller::connect(&format!("{node}#acme/demo/greeter")).await?;
    assert_eq!(routed.call("greet", "Ada").await?, "hello, Ada");
    Ok(())
}

#[tokio::test]
async fn the_rust_example_of_the_rpc_page_compiles_and_runs() {
    let page = read("docs/rpc.md");
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    let here = read("crates/telpher/tests/it/documents.rs");
    assert!(
        here.contains(&format!("// As in docs/rpc.md.\n{code}")),
        "{code}"
    );

    let place = Place::new();
    let node = place.serve("");
    greet(node.url("native")).await.unwrap();
}

const GUIDE: &str = "docs/getting-started.md";

/// The part of a page below a heading of the second level.
fn section(page: &str, heading: &str) -> String {
    let text = read(page);
    let (_, rest) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let (section, _) = rest.split_once("\n## ").unwrap_or((rest, ""));
    section.to_owned()
}

/// The blocks of shell commands in a section.
fn scripts(section: &str) -> Vec<&str> {
    let blocks = section.split("```").skip(1).step_by(2);
    blocks
        .filter_map(|block| block.strip_prefix("sh\n"))
        .collect()
}

/// A line of shell that makes `telpher` the executable under test.
fn shell_head(native: &str) -> String {
    format!(
        "set -e\ntelpher() {{ {} \"$@\"; }}\nexport TELPHER_URL={native}\n",
        env!("CARGO_BIN_EXE_telpher"),
    )
}

#[test]
fn the_examples_of_the_readme_run() {
    let examples = section("README.md", "Examples");
    let scripts = scripts(&examples);
    let [listen, call, durable, http, conversation, kafka, budget] = &scripts[..] else {
        panic!("{scripts:?}")
    };
    let home = Place::new();
    let node = home.serve("");
    let here = |script: &str| {
        let script = script
            .replace("http://127.0.0.1:7401", node.url("http"))
            .replace("127.0.0.1:9092", node.url("kafka"));
        shell_head(node.url("native")) + &script
    };
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let listen = listen.trim().strip_prefix("telpher listen ").unwrap();
    let _agent = place.listen(words(listen));
    for (script, expected) in [
        (call, "HELLO"),
        (durable, "job 7"),
        (http, "HELLO OVER HTTP"),
        (http, "{\"answered\":1}"),
        (conversation, "\"head_seq\":1"),
        (kafka, "the first\n"),
        (budget, "admitted"),
    ] {
        let ended = home.shell(&here(script));
        let shown = &ended.expect(0).stdout;
        assert!(shown.contains(expected), "{expected:?} is not in {shown}");
    }
}

#[test]
fn the_messages_and_calls_of_the_guide_run() {
    let talk = section(GUIDE, "Messages and calls");
    let commands: Vec<_> = talk
        .lines()
        .filter_map(|line| line.strip_prefix("telpher "))
        .map(|line| line.split(" #").next().unwrap_or(line))
        .map(|line| words(line.trim()))
        .collect();
    let [listen, others @ ..] = &commands[..] else {
        panic!("{talk}")
    };
    assert_eq!(others.len(), 4);

    let home = Place::new();
    let node = home.serve("");
    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let _agent = place.listen(&listen[1..]);
    for command in others {
        let ended = place.run_words(command);
        ended.expect(0);
        if command[0] == "request" {
            assert_eq!(ended.stdout, "HELLO");
        }
    }
}

#[test]
fn the_durable_work_of_the_guide_runs() {
    let work = section(GUIDE, "Durable work");
    let scripts = scripts(&work);
    let [work] = &scripts[..] else {
        panic!("{scripts:?}")
    };
    let place = Place::new();
    let node = place.serve("");
    let ended = place.shell(&(shell_head(node.url("native")) + work));
    let shown = &ended.expect(0).stdout;
    for text in ["job 7", "job 7 is written"] {
        assert!(shown.contains(text), "{text:?} is not in {shown}");
    }
}

#[test]
fn the_quotas_of_the_guide_run() {
    let quotas = section(GUIDE, "Quotas");
    let scripts = scripts(&quotas);
    let [quotas] = &scripts[..] else {
        panic!("{scripts:?}")
    };
    let place = Place::new();
    let node = place.serve("");
    let quotas = quotas.replace("http://127.0.0.1:7401", node.url("http"));
    let ended = place.shell(&(shell_head(node.url("native")) + &quotas));
    let shown = &ended.expect(0).stdout;
    assert!(shown.contains("\"name\":\"team\""), "{shown}");
}

#[test]
fn the_conversation_commands_of_the_guide_work_as_written() {
    let remember = section(GUIDE, "Conversations");
    let blocks = scripts(&remember);
    let [say, watch, answer, commands] = &blocks[..] else {
        panic!("{remember}")
    };
    let home = Place::new();
    let node = home.serve("");
    let here = |block: &str| block.replace("127.0.0.1:7401", node.address("http"));
    let (say, answer) = (here(say), here(answer));
    let curls = [&say[..], &answer].concat();
    let (chat, _) = say.split_once('\n').unwrap();
    let printed = home.shell(&say);
    let said: Vec<_> = documents(&printed.expect(0).stdout);
    assert_eq!(said.len(), 3, "{curls}");
    assert_eq!(
        (&said[0]["first_seq"], &said[0]["deduplicated"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&said[1]["first_seq"], &said[1]["deduplicated"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&said[2]["status"], &said[2]["head_seq"]),
        (&412.into(), &1.into())
    );

    let mut watch = home.start_shell(&format!("exec {}", here(watch)));
    let printed = home.shell(&format!("{chat}\n{answer}"));
    let said = documents(&printed.expect(0).stdout);
    assert_eq!(
        (&said[0]["seq"], &said[0]["status"]),
        (&2.into(), &"complete".into())
    );
    assert_eq!(said[1]["messages"].as_array().unwrap().len(), 2);
    assert_eq!(said[2]["metadata"]["user"], "alice");
    assert_eq!(said[3]["conversations"][0]["id"], "support-42");
    let mut seen = String::new();
    while !(seen.contains("event: head") && seen.contains("\"id\":\"a-1\"")) {
        let line = watch.line();
        assert!(!line.is_empty(), "{seen}");
        seen.push_str(&line);
    }

    let place = Place::new().with_variable("TELPHER_URL", node.url("native"));
    let lines = here(commands);
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let command = line.split(" #").next().unwrap();
        let ended = place.run_words(words(command.strip_prefix("telpher ").unwrap()));
        ended.expect(0);
        assert!(!ended.stdout.is_empty(), "{line}");
    }
}

/// Parses a sequence of JSON documents.
#[track_caller]
fn documents(text: &str) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let documents =
        documents.map(|document| document.unwrap_or_else(|error| panic!("{error}: {text}")));
    documents.collect()
}

/// Splits a line of shell with single quotes into words.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_test_that_a_page_names_exists() {
    let (mut sources, mut pages) = (String::new(), String::new());
    collect(&root().join("crates"), "rs", &mut sources);
    collect(&root().join("docs"), "md", &mut pages);
    let quoted = pages
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let named: BTreeSet<_> = quoted.filter(is_test).collect();
    assert!(named.len() > 500, "{named:?}");
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !sources.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// Test names have four words or more. Metrics have a prefix.
fn is_test(text: &&str) -> bool {
    let is_word =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    text.chars().all(is_word)
        && !text.starts_with("telpher_")
        && !text.starts_with("process_")
        && (text.matches('_').count() >= 3
            || *text == "garbage_bytes"
            || *text == "an_unknown_version")
}

/// Appends the text of every file with the extension below `dir`.
fn collect(dir: &Path, extension: &str, text: &mut String) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, extension, text);
        } else if path.extension().is_some_and(|of_path| of_path == extension) {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Topics with kcat, Python (if its client is installed), curl and the command line.
#[test]
fn the_topics_of_the_guide_are_shared_by_all_clients() {
    let stream = section(GUIDE, "Topics");
    let place = Place::new();
    let node = place.serve("");
    let block = |language: &str, number: usize| {
        let block = stream.split(&format!("```{language}\n")).nth(number);
        let (code, _) = block.unwrap().split_once("```").unwrap();
        code.replace("127.0.0.1:9092", node.url("kafka"))
            .replace("http://127.0.0.1:7401", node.url("http"))
    };
    let head = shell_head(node.url("native"));
    let consumed = place.shell(&format!("{head}{}", block("sh", 1)));
    assert!(consumed.expect(0).stdout.contains("the first\n"));
    let has_client = place.shell("python3 -c 'import confluent_kafka'").code() == 0;
    if has_client {
        place.write("produce.py", &block("python", 1));
        place.shell("python3 produce.py").expect(0);
    }
    let consumed = place.shell(&format!("{head}{}", block("sh", 2)));
    let shown = &consumed.expect(0).stdout;
    for text in ["the first\n", " 7: the second\n", " 7: {\"step\":3}\n"] {
        assert!(shown.contains(text), "{text:?} is not in {shown}");
    }
    assert_eq!(shown.contains("from Python\n"), has_client);
    node.stop().expect(0);
}
