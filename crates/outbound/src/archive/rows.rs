//! Converts messages to the columns of the table `messages`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conversation_service::feed::{EventContent, Row};
use conversations::Status;
use conversations::record::MessageView;

use tokio_postgres::types::ToSql;

/// Set of columns to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// All columns.
    Full,
    /// Without the columns that exist only for queries.
    Bare,
}

/// A message of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) row: &'a Row,
    pub(super) seq: u64,
    pub(super) record: &'a [u8],
}

/// Returns the messages of a batch.
pub(super) fn messages<'r>(rows: &'r [Row]) -> Vec<Message<'r>> {
    let message = |row: &'r Row| {
        let Row { happened, .. } = row;
        match happened {
            EventContent::Message { seq, record } => Some(Message {
                row,
                seq: *seq,
                record,
            }),
            EventContent::Retracted { .. } | EventContent::State(_) | EventContent::Erased => None,
        }
    };
    rows.iter().filter_map(message).collect()
}

/// Values of the insert statement, by column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    conversation: Vec<i64>,
    seq: Vec<i64>,
    event: Vec<i64>,
    at: Vec<SystemTime>,
    id: Vec<Option<&'a str>>,
    role: Vec<Option<&'a str>>,
    sender: Vec<Option<&'a str>>,
    status: Vec<Option<&'static str>>,
    tokens: Vec<Option<i64>>,
    is_estimated: Vec<Option<bool>>,
    parts: Vec<Option<&'a str>>,
    metadata: Vec<Option<&'a str>>,
    record: Vec<&'a [u8]>,
}

/// Insert statement for [`Columns::values`].
pub(super) const INSERT: &str = "
INSERT INTO telpher.messages (journal, partition, conversation, seq, event, at, id, role, sender,
    status, tokens, is_estimated, parts, metadata, record)
SELECT $1, $2, conversation, seq, event, at, id, role, sender, status, tokens, is_estimated,
    parts::jsonb, metadata::jsonb, record
FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::bigint[], $12::boolean[], $13::text[], $14::text[], $15::bytea[])
    AS new (conversation, seq, event, at, id, role, sender, status, tokens, is_estimated, parts,
        metadata, record)
ON CONFLICT (journal, conversation, seq) DO NOTHING";

impl<'a> Columns<'a> {
    pub(super) fn new(messages: &[Message<'a>], form: Form) -> Self {
        let mut columns = Self::default();
        for message in messages {
            columns.push(message, form);
        }
        columns
    }

    fn push(&mut self, message: &Message<'a>, form: Form) {
        self.conversation.push(message.row.conversation as i64);
        self.seq.push(message.seq as i64);
        self.event.push(message.row.event as i64);
        self.at.push(time(message.row.at_ms));
        self.record.push(message.record);
        // A record that cannot be decoded is stored without the other columns.
        let view = MessageView::decode(message.record).ok();
        let view = view.filter(|_| form == Form::Full);
        self.id.push(view.as_ref().map(|it| it.id));
        self.role.push(view.as_ref().map(|it| it.role));
        self.sender.push(view.as_ref().map(|it| it.from));
        self.status.push(view.as_ref().map(|it| as_text(it.status)));
        self.tokens.push(view.as_ref().map(|it| it.tokens.into()));
        self.is_estimated
            .push(view.as_ref().map(|it| it.is_estimated));
        let parts = view.as_ref().and_then(|it| jsonb(it.parts));
        self.parts.push(parts);
        let metadata = view.as_ref().and_then(|it| whole_jsonb(it.metadata));
        self.metadata.push(metadata);
    }

    /// Returns the parameters of [`INSERT`].
    pub(super) fn values<'v>(
        &'v self,
        journal: &'v i64,
        partition: &'v i64,
    ) -> [&'v (dyn ToSql + Sync); 15] {
        [
            journal,
            partition,
            &self.conversation,
            &self.seq,
            &self.event,
            &self.at,
            &self.id,
            &self.role,
            &self.sender,
            &self.status,
            &self.tokens,
            &self.is_estimated,
            &self.parts,
            &self.metadata,
            &self.record,
        ]
    }
}

pub(super) fn time(at_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at_ms)
}

fn as_text(status: Status) -> &'static str {
    match status {
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Aborted => "aborted",
        Status::Stopped => "stopped",
    }
}

/// Returns metadata for the column `metadata`; `None` for bytes that are not JSON, which older
/// nodes accepted. One such row would make PostgreSQL reject the whole batch.
fn whole_jsonb(bytes: &[u8]) -> Option<&str> {
    let text = jsonb(bytes)?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    Some(text)
}

/// Returns the text if jsonb is likely to accept it.
///
/// jsonb stores texts without escapes, so it rejects U+0000 and lone surrogates, which JSON may
/// escape (PostgreSQL documentation, *JSON Types*); text rejects zero bytes and invalid UTF-8.
/// Other errors are found by the database, at a higher cost.
pub(super) fn jsonb(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.is_empty() || bytes.contains(&0) {
        return None;
    }
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        at = escape + 2;
        match bytes.get(escape + 1)? {
            b'u' => {
                let first = code(text, escape)?;
                match first {
                    0 | 0xdc00..=0xdfff => return None,
                    0xd800..=0xdbff => {
                        let is_pair = text.get(escape + 6..escape + 8) == Some("\\u");
                        let second = code(text, escape + 6).filter(|_| is_pair)?;
                        if !(0xdc00..=0xdfff).contains(&second) {
                            return None;
                        }
                        at = escape + 12;
                    }
                    _ => at = escape + 6,
                }
            }
            byte if byte.is_ascii() => {}
            _ => return None,
        }
    }
    Some(text)
}

/// Returns the code unit of the `\u` escape at `escape`.
fn code(text: &str, escape: usize) -> Option<u16> {
    u16::from_str_radix(text.get(escape + 2..escape + 6)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_jsonb_rejects_is_detected() {
        for good in [
            r#"[{"type":"text","text":"Hi"}]"#,
            r#"{"a":"\\u0000"}"#,
            r#"{"a":"\ud83d\ude00 \u00e9 \" \n"}"#,
            "{\"a\":\"é\"}",
        ] {
            assert_eq!(jsonb(good.as_bytes()), Some(good));
        }
        for bad in [
            "",
            r#"{"a":"\u0000"}"#,
            r#"{"a":"\\\u0000"}"#,
            r#"{"a":"\ud83d"}"#,
            r#"{"a":"\ude00\ud83d"}"#,
            r#"{"a":"\ud83d\u0041"}"#,
            r#"{"a":"\u00"#,
            "{\"a\":\"\0\"}",
            "\\",
            "\\é",
        ] {
            assert_eq!(jsonb(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(jsonb(b"\xff"), None);
    }

    #[test]
    fn metadata_that_are_no_json_are_null() {
        assert_eq!(whole_jsonb(br#"{"a":1}"#), Some(r#"{"a":1}"#));
        assert_eq!(whole_jsonb(br#"{},"role":"system""#), None);
        assert_eq!(whole_jsonb(b"not json"), None);
    }
}
