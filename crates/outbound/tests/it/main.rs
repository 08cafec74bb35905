//! The archive with a real PostgreSQL, and quotas in a real Redis; each test starts its own server.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "what goes wrong in a test ends it, and a test that hangs ends by the real clock"
)]

mod node;
mod outages;
mod postgres;
mod redis;
mod tls;

use conversation_service::Side;
use conversation_service::feed::ArchivedRetention;
use model::ErrorCode;

use crate::node::{Home, Node, options};
use crate::postgres::{Postgres, eventually};

/// Messages in the archive: number of rows, of different ones, lowest and highest sequence number.
const MESSAGES: &str = "SELECT count(*), count(DISTINCT (conversation, seq)), min(seq), max(seq)
    FROM telpher.messages";

#[test]
fn every_message_is_archived_once_and_can_be_queried() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    for name in ["acme/chat/a", "acme/chat/b", "acme/other/c"] {
        node.append_many(name, 500);
    }
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "1500|1500|1|500");
    let names = "SELECT string_agg(name, ' ' ORDER BY name) FROM telpher.conversations";
    assert_eq!(postgres.sql(names), "acme/chat/a acme/chat/b acme/other/c");
    let found = "SELECT count(*) FROM telpher.messages
        WHERE parts @> '[{\"text\":\"Hi\"}]' AND metadata->>'k' = '1' AND sender = 'alice'
        AND role = 'user' AND status = 'complete' AND at > now() - interval '1 hour'";
    assert_eq!(postgres.sql(found), "1500");
    let view = node.archive();
    assert_eq!((view.messages, view.refused, view.error), (1500, 0, None));
}

#[test]
fn archiving_resumes_at_its_mark_and_a_lost_mark_duplicates_no_rows() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 300);
    node.settle(&postgres);
    drop(node);
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 100);
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "400|400|1|400");
    assert_eq!(node.archive().messages, 100, "no message is written again");
    // As if the rows were committed and the mark was not.
    postgres.sql("UPDATE telpher.marks SET next = 0, proof = NULL");
    node.append_many("acme/chat/a", 1);
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "401|401|1|401");
    assert_eq!(node.archive().messages, 101);
}

#[test]
fn messages_that_postgresql_refuses_are_set_aside_without_blocking_others() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/first", 1);
    node.settle(&postgres);
    postgres.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN IF new.seq = 4 THEN RAISE EXCEPTION ''not four''; END IF; RETURN new; END';
         CREATE TRIGGER refuse BEFORE INSERT ON telpher.messages
            FOR EACH ROW EXECUTE FUNCTION refuse()",
    );
    let huge = format!(r#"[{{"type":"text","text":"{}"}}]"#, "x".repeat(1_000_000));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let parts = [
        r#"[{"type":"text","text":"a\u0000b"}]"#,
        "not JSON, with a \0 in it",
        &huge,
        r#"["refused by a trigger"]"#,
        &deep,
        r#"{"number":1e200000}"#,
        r#"["\ud83d alone"]"#,
        r#"["good"]"#,
    ];
    node.append_parts("acme/chat/a", &parts);
    node.append_many("acme/chat/b", 3);
    node.settle(&postgres);
    assert_eq!(postgres.sql("SELECT count(*) FROM telpher.messages"), "11");
    let refused = "SELECT seq, reason LIKE '%not four%', octet_length(record) > 0
        FROM telpher.refused";
    assert_eq!(postgres.sql(refused), "4|t|t");
    assert_eq!(node.archive().refused, 1);
    let queryable = "SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM telpher.messages
        JOIN telpher.conversations USING (journal, conversation)
        WHERE name = 'acme/chat/a' AND parts IS NOT NULL";
    assert_eq!(postgres.sql(queryable), "3 8");
    // The messages read back have the same bytes.
    drop(node);
    let keep = ArchivedRetention {
        messages: Some(1),
        ..ArchivedRetention::default()
    };
    let node = Node::start(
        &home,
        outbound::archive::Options {
            keep,
            ..options(postgres.url())
        },
    );
    node.append_many("acme/chat/a", 1);
    eventually("all but the newest are trimmed", || {
        node.archive().trimmed >= 8
    });
    let read = node.read("acme/chat/a", Side::After(0), 8).unwrap();
    let wanted = (1..).zip(parts.map(|it| it.as_bytes().to_vec()));
    assert_eq!(read, wanted.collect::<Vec<_>>());
}

#[test]
fn trimmed_messages_are_read_from_the_archive_in_complete_pages() {
    let mut postgres = Postgres::started();
    let home = Home::new();
    let keep = ArchivedRetention {
        messages: Some(10),
        ..ArchivedRetention::default()
    };
    let node = Node::start(
        &home,
        outbound::archive::Options {
            keep,
            ..options(postgres.url())
        },
    );
    node.append_many("acme/chat/a", 100);
    eventually("it is trimmed", || node.archive().trimmed == 90);
    let seqs = |side, limit| {
        let read = node.read("acme/chat/a", side, limit)?;
        Ok::<Vec<u64>, ErrorCode>(read.into_iter().map(|(seq, _)| seq).collect())
    };
    assert_eq!(seqs(Side::After(0), 1_000), Ok((1..=100).collect()));
    assert_eq!(seqs(Side::Last, 40), Ok((61..=100).collect()));
    assert_eq!(seqs(Side::Before(93), 5), Ok((88..=92).collect()));
    assert!(node.archive().read_back > 0);
    postgres.crash();
    let away = Err(ErrorCode::Unavailable);
    assert_eq!(seqs(Side::After(85), 10), away);
    assert_eq!(seqs(Side::Last, 11), away);
    assert_eq!(seqs(Side::Last, 10), Ok((91..=100).collect()));
    postgres.start();
    eventually("it is read again", || {
        seqs(Side::After(85), 10) == Ok((86..=95).collect())
    });
}

#[test]
fn an_erase_reaches_the_archive_after_an_outage() {
    let mut postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 50);
    node.append_many("acme/chat/b", 1);
    node.settle(&postgres);
    postgres.crash();
    node.erase("acme/chat/a");
    drop(node);
    let node = Node::archived(&home, &postgres);
    eventually("it is known to be away", || node.archive().error.is_some());
    postgres.start();
    node.settle(&postgres);
    assert_eq!(postgres.sql(MESSAGES), "1|1|1|1");
    let erased = "SELECT name, lifecycle, metadata IS NULL, erased_at IS NOT NULL
        FROM telpher.conversations WHERE name = 'acme/chat/a'";
    assert_eq!(postgres.sql(erased), "acme/chat/a|erased|t|t");
    assert_eq!(node.archive().erased, 1);
}

#[test]
fn a_clear_deletes_the_messages_in_the_archive() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 50);
    node.settle(&postgres);
    node.clear("acme/chat/a");
    node.append_many("acme/chat/a", 1);
    node.settle(&postgres);
    let rows = "SELECT min(seq), max(seq), count(*) FROM telpher.messages";
    assert_eq!(postgres.sql(rows), "51|51|1");
}

#[test]
fn a_retraction_deletes_the_messages_in_the_archive() {
    let postgres = Postgres::started();
    let home = Home::new();
    let node = Node::archived(&home, &postgres);
    node.append_many("acme/chat/a", 50);
    node.settle(&postgres);
    node.retract("acme/chat/a", 50, 20);
    node.append_many("acme/chat/a", 2);
    node.settle(&postgres);
    let rows = "SELECT min(seq), max(seq), count(*) FROM telpher.messages";
    assert_eq!(postgres.sql(rows), "1|53|32");
    node.append_many("acme/chat/a", 3);
    node.retract("acme/chat/a", 56, 33);
    node.settle(&postgres);
    assert_eq!(postgres.sql(rows), "1|2|2");
}
