use std::time::Instant;

use crate::support::{Place, eventually};

#[test]
fn the_demo_shows_every_exchange_and_ends_by_itself() {
    let temporary = tempfile::tempdir().unwrap();
    let place = Place::new().with_variable("TMPDIR", temporary.path().to_str().unwrap());
    let start = Instant::now();
    let ended = place.run("demo");
    println!("the demo took {:?}", start.elapsed());
    let text = &ended.expect(0).stdout;
    assert_eq!(ended.stderr, "");
    assert!(!text.contains('\x1b'), "colours where nobody looks");
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    let expected = [
        ("node listens on tcp://127.0.0.1:", 2),
        ("planner → researcher look_up", 5),
        ("calculator → planner 42", 1),
        ("calculator → planner handler_error: division by zero", 1),
        ("writer → planner a line in the air", 1),
        ("writer → planner nobody carries", 1),
        ("eve received: tea is ready", 1),
        ("node → planner delivered to 3, dropped by 0", 1),
        ("node → planner on disk, message 0 for archive, after ", 1),
        ("node → planner on disk, message 0 for attic, after ", 1),
        ("archive received: minutes of the meeting", 1),
        ("attic received: an old hat", 1),
        ("node → planner on disk, number 1 of tea-time, after ", 1),
        ("node → writer on disk, number 2 of tea-time, after ", 1),
        ("eve receives: 2 writer: the one that is left", 1),
        (
            "node → planner stored already as number 3; not appended again",
            1,
        ),
        ("node → writer conflict: ", 1),
        ("tea-time 1 planner: which tea do we drink?", 1),
        ("tea-time 3 planner: two cups, then", 1),
        ("node → planner no_responder: ", 1),
        (
            "writer → planner unknown_method: no handler `haikoo`; did you mean `haiku`?",
            1,
        ),
        ("node → planner unconfirmed: ", 3),
        ("planner 2000 round trips of 16 bytes through the node", 1),
        ("Try next:", 1),
    ];
    for (start, times) in expected {
        assert_eq!(count(start), times, "{start}:\n{text}");
    }
    for researcher in ["ada", "bob"] {
        let answers = count(&format!("{researcher} → planner "));
        assert!(answers >= 2, "{researcher} answered {answers}:\n{text}");
    }
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

/// A demo that serves the console: its agents are found over HTTP until Ctrl-C.
#[test]
fn demo_with_console_shows_its_agents_until_interrupted() {
    let temporary = tempfile::tempdir().unwrap();
    let place = Place::new().with_variable("TMPDIR", temporary.path().to_str().unwrap());
    let mut demo = place.start(["demo", "--ui", "--json"]);
    let console = loop {
        let line: serde_json::Value = serde_json::from_str(&demo.line()).unwrap();
        let text = line["text"].as_str().unwrap_or_default().to_owned();
        if let Some(url) = text.strip_prefix("open the console in a browser: ") {
            break url.to_owned();
        }
    };
    let base = console.strip_suffix("/ui/").unwrap().to_owned();
    let get = |path: &str| place.shell(&format!("curl -s -f '{base}{path}'")).stdout;
    assert!(get("/ui/").contains("<script"), "{}", get("/ui/"));
    let json =
        |path: &str| serde_json::from_str::<serde_json::Value>(&get(path)).unwrap_or_default();
    eventually("the agents are at work", || {
        let agents = json("/v1/agents?prefix=acme/desk/");
        let agents = agents["agents"].as_array().unwrap();
        let is_at_work = |name: &str| {
            agents.iter().any(|agent| {
                agent["name"] == format!("acme/desk/{name}")
                    && agent["instances"][0]["delivered"].as_u64() > Some(1)
            })
        };
        ["researcher", "calculator", "writer"]
            .into_iter()
            .all(is_at_work)
    });
    let description = json("/v1/acme/desk/agents/researcher/description");
    assert_eq!(description["methods"][0]["name"], "look_up");
    eventually("a take is denied", || {
        json("/v1/top?by=denied")["rows"][0]["name"] == "acme/desk/planner"
    });
    eventually("the conversation goes on", || {
        json("/v1/acme/desk/conversations/tea-time")["head_seq"].as_u64() > Some(4)
    });
    demo.signal(rustix::process::Signal::INT);
    demo.end().expect(0);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}

#[test]
fn the_demo_prints_json_lines_for_programs() {
    let ended = Place::new().run("demo --json");
    let lines: Vec<serde_json::Value> = ended
        .expect(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let scenes = lines.iter().filter(|line| line["scene"].is_string());
    assert!(scenes.count() >= 8, "{lines:#?}");
    let sum = serde_json::json!({"from": "calculator", "to": "planner", "text": "42"});
    assert!(lines.contains(&sum), "{lines:#?}");
}
