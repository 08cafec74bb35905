use super::*;

fn message<'a>(id: &'a str, parts: &'a [u8]) -> NewMessage<'a> {
    NewMessage {
        id: Some(id),
        role: "user",
        from: "",
        tokens: None,
        facts: &[],
        parts,
        metadata: b"",
    }
}

#[test]
fn a_retry_is_told_the_first_number() {
    let mut conversation = Conversation::load(State::default(), 0, 0);
    let none = |_| None::<Vec<u8>>;
    let first = message("a", b"1");
    let plan = conversation.decide(Some(0), &[first], none).unwrap();
    let places = vec![Place::New(1)];
    assert_eq!(plan, Decision::Append(Plan { places, head: 1 }));
    conversation.appended("a");
    let mut record = Vec::new();
    first.encode("a", crate::Status::Complete, 0, &mut record);
    let stored = |_| Some(record.clone());
    let places = vec![Place::Known(1)];
    let again = conversation.decide(Some(0), &[first], stored);
    assert_eq!(again, Ok(Decision::Append(Plan { places, head: 1 })));
    let other = message("a", b"2");
    let refused = conversation.decide(None, &[other], stored);
    assert_eq!(refused, Err(Refusal::IdReused { index: 0, seq: 1 }));
    let refused = conversation.decide(Some(0), &[message("b", b"1")], stored);
    assert_eq!(
        refused,
        Err(Refusal::SeqMismatch {
            head: 1,
            expected: 0
        })
    );
}
