use proptest::prelude::*;

use super::*;
use crate::{NewMessage, PartFact, PartKind, Status};

proptest! {
    #[test]
    fn any_bytes_are_decoded_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = MessageView::decode(&bytes);
        let _ = crate::State::decode(&bytes);
        let _ = StateChange::decode(&bytes);
        let _ = EventRef::decode(&bytes);
        let _ = DraftOpen::decode(&bytes);
        let _ = DraftClose::decode(&bytes);
        if let Ok(chunks) = DraftChunks::decode(&bytes) {
            prop_assert!(chunks.iter().count() <= bytes.len());
        }
    }
}

#[test]
fn a_message_reads_back_what_it_was() {
    let facts = [
        PartFact {
            kind: PartKind::Text,
            size: 7,
            call: 0,
        },
        PartFact {
            kind: PartKind::ToolCall,
            size: 9,
            call: 77,
        },
    ];
    let new = NewMessage {
        id: Some("m-1"),
        role: "user",
        from: "alice",
        tokens: None,
        facts: &facts,
        parts: b"[1,2]",
        metadata: b"{}",
    };
    let mut bytes = Vec::new();
    new.encode("m-1", Status::Stopped, Links::default(), &mut bytes);
    let links = Links {
        event: 99,
        tokens_before: 7,
        instruction: 1,
    };
    set_links(&mut bytes, links);
    let view = MessageView::decode(&bytes).unwrap();
    assert_eq!(
        (view.links, view.tokens, view.is_estimated),
        (links, 2, true)
    );
    assert_eq!(view.facts.iter().collect::<Vec<_>>(), facts);
    assert!(view.is_retried_by(&new));
    let mut again = Vec::new();
    view.encode(&mut again);
    assert_eq!(again, bytes);
}
