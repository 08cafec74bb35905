//! A node that archives conversations in a PostgreSQL that the test starts.

use client::{Client, NewMessage};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Node, Place, eventually};

#[expect(dead_code, reason = "the tests beside it use all of it")]
#[path = "../../../outbound/tests/it/postgres.rs"]
mod postgres;

use postgres::Postgres;

const CONVERSATIONS: usize = 8;
const BATCH: usize = 200;
const BATCHES: usize = 500;

/// The node is killed during each of these phases.
const KILLED: [usize; 4] = [90, 91, 260, 433];

fn serve(place: &Place, postgres: &Postgres, flags: &str) -> Node {
    let url = postgres.url();
    place.serve(&format!(
        "--data data --archive-url {url} --archive-interval 10ms {flags}"
    ))
}

/// Returns a batch, which is the same every time.
fn batch(number: usize) -> (String, Vec<NewMessage>) {
    let messages = (0..BATCH).map(|index| NewMessage {
        id: format!("{number}.{index}"),
        ..NewMessage::new(
            "user",
            format!(r#"[{{"type":"text","text":"{number} {index}"}}]"#),
        )
    });
    (
        format!("acme/kill/c{}", number % CONVERSATIONS),
        messages.collect(),
    )
}

#[test]
fn messages_are_archived_once_across_kill9() {
    let place = Place::new();
    let postgres = Postgres::started();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let mut kills = KILLED.to_vec();
    let mut next = 0;
    let node = loop {
        let node = serve(&place, &postgres, "");
        next = runtime.block_on(append(&node, next, &mut kills));
        if next == BATCHES {
            break node;
        }
        node.end();
    };
    assert!(kills.is_empty(), "it was not killed");
    let total = (BATCH * BATCHES).to_string();
    let count = "SELECT count(*) FROM telpher.messages";
    eventually("all are archived", || {
        postgres.try_sql(count).as_ref() == Ok(&total)
    });
    eventually("nothing is missing", || {
        node.metric("telpher_archive_lag_events") == 0
    });
    let different = "SELECT count(DISTINCT (conversation, seq)), count(DISTINCT id), max(seq)
        FROM telpher.messages";
    let seqs = BATCH * BATCHES.div_ceil(CONVERSATIONS);
    assert_eq!(postgres.sql(different), format!("{total}|{total}|{seqs}"));
    let refused = "SELECT count(*) FROM telpher.refused";
    assert_eq!(postgres.sql(refused), "0");
    node.stop().expect(0);
}

/// Appends batches from `first` on until all are appended or the node is killed; returns the next
/// one.
async fn append(node: &Node, from: usize, kills: &mut Vec<usize>) -> usize {
    let client = Client::connect(node.url("native")).await.unwrap();
    for number in from..BATCHES {
        let (name, messages) = batch(number);
        let conversation = client.conversation(&name).unwrap();
        let appending = conversation.append(&messages);
        if kills.first() != Some(&number) {
            appending.await.unwrap();
            continue;
        }
        kills.remove(0);
        let (appended, ()) = tokio::join!(appending, async { node.signal(Signal::KILL) });
        // The outcome is unknown, so the batch is appended again with the same ids.
        return number + usize::from(appended.is_ok());
    }
    BATCHES
}

#[test]
fn a_page_from_the_archive_is_a_503_during_an_outage() {
    let place = Place::new();
    let mut postgres = Postgres::started();
    let node = serve(&place, &postgres, "--archive-keep-messages 10");
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().unwrap();
    let conversation = runtime.block_on(async {
        let client = Client::connect(node.url("native")).await.unwrap();
        let conversation = client.conversation("default/default/x").unwrap();
        let message =
            |number| NewMessage::new("user", format!(r#"[{{"type":"text","text":"{number}"}}]"#));
        let messages: Vec<_> = (1..=100).map(message).collect();
        conversation.append(&messages).await.unwrap();
        conversation
    });
    eventually("it is trimmed", || {
        node.metric("telpher_archive_trimmed_total") == 90
    });
    // The native protocol reads from the archive too.
    runtime.block_on(async {
        let page = conversation.read(85).await.unwrap();
        let read: Vec<_> = page.messages.iter().map(|it| it.seq).collect();
        assert_eq!((page.start, read), (1, (86..=90).collect()));
        let mut followed = conversation.follow(0);
        for seq in 1..=100 {
            assert_eq!(followed.next().await.unwrap().unwrap().seq, seq);
        }
    });
    for (name, value) in [
        ("telpher_archive_connected", 1),
        ("telpher_archive_messages_total", 100),
        ("telpher_archive_refused_total", 0),
        ("telpher_archive_erased_total", 0),
        ("telpher_archive_errors_total", 0),
        ("telpher_archive_read_back_total", 95),
    ] {
        assert_eq!(node.metric(name), value, "{name}");
    }
    assert!(node.metric("telpher_archive_batches_total") > 0);
    let page = |query: &str| {
        let (status, body) = node.get(&format!("/v1/conversations/x/messages?{query}"), None);
        let body: Value = serde_json::from_str(&body).unwrap();
        let seqs = body["messages"].as_array().map(|messages| {
            let seqs = messages.iter().map(|message| message["seq"].as_u64());
            seqs.map(Option::unwrap).collect::<Vec<_>>()
        });
        (status, seqs.unwrap_or_default(), body)
    };
    let (status, seqs, body) = page("after=0&limit=1000");
    assert_eq!((status, seqs), (200, (1..=100).collect()), "{body}");
    let (_, context) = node.get("/v1/conversations/x/context?budget=100000", None);
    assert!(context.contains(r#""from_seq":1,"#), "{context}");
    postgres.crash();
    for query in ["after=85&limit=10", "last=11", "before=50"] {
        let (status, _, body) = page(query);
        assert_eq!(
            (status, &body["code"]),
            (503, &"unavailable".into()),
            "{body}"
        );
    }
    let (status, seqs, _) = page("last=10");
    assert_eq!((status, seqs), (200, (91..=100).collect()));
    eventually("the failure is visible", || {
        let (_, metrics) = node.get("/metrics", None);
        metrics.contains("telpher_archive_error{reason=")
    });
    postgres.start();
    eventually("it is whole again", || page("last=11").1.len() == 11);
    node.stop().expect(0);
}

#[test]
fn an_invalid_url_is_reported_without_its_password() {
    let place = Place::new();
    let url = "postgres://u:s3cret@h/d?sslmode=maybe";
    let ended = place.run(&format!("serve --data data --archive-url {url}"));
    assert_ne!(ended.code(), 0);
    assert!(ended.stderr.contains("sslmode=maybe"), "{}", ended.stderr);
    let shown = place.run(&format!("config show --archive-url {url}"));
    let shown = &shown.expect(0).stdout;
    assert!(shown.contains("postgres://u:***@h/d"), "{shown}");
    assert!(!format!("{}{shown}", ended.stderr).contains("s3cret"));
}
