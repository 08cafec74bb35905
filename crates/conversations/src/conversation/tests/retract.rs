//! Retractions of the newest messages.

use super::*;

fn newest(count: u64) -> RetractExtent {
    RetractExtent::Newest(count)
}

fn range(first: u64, last: u64) -> SeqRange {
    SeqRange { first, last }
}

/// A conversation with these messages, whose ids are their texts.
fn world(ids: &[&str]) -> World {
    let mut world = World::new();
    let batch: Vec<_> = ids.iter().map(|id| message(Some(id), id)).collect();
    world.append(None, &batch).unwrap();
    world
}

fn ranges(world: &World) -> Vec<SeqRange> {
    world.conversation.state().retracted.ranges().to_vec()
}

#[test]
fn retraction_takes_the_next_number_and_hides_the_newest_messages() {
    let mut world = world(&["a", "b", "c"]);
    assert_eq!(world.retract("r-1", 3, newest(2)), Ok(Some((4, 2))));
    assert_eq!(world.conversation.head(), 4);
    assert_eq!(ranges(&world), [range(2, 4)]);
    world.append(Some(4), &[message(Some("d"), "d")]).unwrap();
    assert_eq!(world.retract("r-2", 5, newest(1)), Ok(Some((6, 5))));
    // Adjoining ranges are one.
    assert_eq!(ranges(&world), [range(2, 6)]);
    world.append(None, &[message(Some("e"), "e")]).unwrap();
    world.restart();
    assert_eq!(world.retract("r-3", 7, newest(2)), Ok(Some((8, 1))));
    assert_eq!(ranges(&world), [range(1, 8)]);
    assert_eq!(world.retract("r-4", 8, newest(1)), Ok(None));
    assert_eq!(world.conversation.head(), 8);
}

#[test]
fn messages_after_a_number_are_retracted() {
    let mut world = world(&["a", "b", "c"]);
    let after = RetractExtent::After;
    assert_eq!(world.retract("r-1", 3, after(3)), Ok(None));
    assert_eq!(world.retract("r-1", 3, after(2)), Ok(Some((4, 3))));
    assert_eq!(world.retract("r-2", 4, after(2)), Ok(None));
    assert_eq!(world.retract("r-2", 4, after(0)), Ok(Some((5, 1))));
}

#[test]
fn only_the_writer_that_knows_the_newest_number_retracts() {
    let mut world = world(&["a", "b"]);
    let mismatch = |head, expected| Err(Refusal::SeqMismatch { head, expected });
    assert_eq!(world.retract("r-1", 1, newest(1)), mismatch(2, 1));
    assert_eq!(world.retract("r-1", 2, newest(1)), Ok(Some((3, 2))));
    // A writer that does not know of the retraction is refused, too.
    assert_eq!(world.retract("r-2", 2, newest(1)), mismatch(3, 2));
    let appended = world.append(Some(2), &[message(None, "c")]);
    assert_eq!(appended.map(|_| None), mismatch(3, 2));
}

#[test]
fn repeated_retraction_is_answered_like_the_first_one() {
    let mut world = world(&["a", "b"]);
    assert_eq!(world.retract("r-1", 2, newest(1)), Ok(Some((3, 2))));
    world.append(None, &[message(None, "c")]).unwrap();
    world.restart();
    assert_eq!(world.retract("r-1", 2, newest(1)), Ok(Some((3, 2))));
    assert_eq!(world.conversation.head(), 4);
    let reused = Err(Refusal::IdReused { index: 0, seq: 3 });
    assert_eq!(world.retract("r-1", 4, newest(1)), reused);
    assert_eq!(
        world.retract("a", 4, newest(1)),
        Err(Refusal::IdReused { index: 0, seq: 1 })
    );
    let appended = world.append(None, &[message(Some("r-1"), "c")]);
    assert_eq!(appended.map(|_| None), reused);
    assert_eq!(world.retract("", 4, newest(1)), Err(Refusal::Id));
}

#[test]
fn id_of_a_retracted_message_is_refused_until_a_clear() {
    let mut world = world(&["a", "b"]);
    world.retract("r-1", 2, newest(1)).unwrap();
    for _ in 0..2 {
        let appended = world.append(None, &[message(Some("a"), "a"), message(Some("b"), "b")]);
        assert_eq!(appended, Err(Refusal::IdRetracted { index: 1, seq: 2 }));
        world.restart();
    }
    world.change(None, &Change::Clear { expect: None }).unwrap();
    assert_eq!(ranges(&world), []);
    let appended = world.append(None, &[message(Some("b"), "b")]).unwrap();
    assert_eq!(*appended.places, [MessageSeq::New(4)]);
}

#[test]
fn summary_and_instruction_go_with_the_messages_that_they_depend_on() {
    let mut world = world(&["a"]);
    let system = |id| NewMessage {
        role: "system",
        ..message(Some(id), id)
    };
    let batch = [
        system("s-1"),
        message(None, "b"),
        system("s-2"),
        system("s-3"),
    ];
    world.append(None, &batch).unwrap();
    let summary = |through_seq| Summary {
        through_seq,
        tokens: 1,
        is_estimated: false,
        message: b"s".to_vec(),
    };
    let summarize = |through_seq| Change::Summarize(Some(summary(through_seq)));
    world.change(None, &summarize(3)).unwrap();
    // The instructions before the retraction must be read.
    world.at_hand = 100;
    world.retract("r-1", 5, newest(2)).unwrap();
    assert_eq!(world.conversation.links(0).instruction, 2);
    assert_eq!(world.conversation.state().summary, Some(summary(3)));
    world.restart();
    assert_eq!(world.conversation.links(0).instruction, 2);
    world.retract("r-2", 6, newest(1)).unwrap();
    assert_eq!(world.conversation.state().summary, None);
    world.retract("r-3", 7, newest(1)).unwrap();
    assert_eq!(world.conversation.links(0).instruction, 0);
}

#[test]
fn reader_knows_a_retraction_once_it_sees_its_number() {
    let mut world = world(&["a", "b", "c"]);
    world.retract("r-1", 3, newest(1)).unwrap();
    world.retract("r-2", 4, newest(1)).unwrap();
    let mut seen = |head| world.conversation.retracted_at(head).ranges().to_vec();
    assert_eq!(seen(3), []);
    assert_eq!(seen(4), [range(3, 4)]);
    assert_eq!(seen(5), [range(2, 5)]);
    assert_eq!(seen(9), [range(2, 5)]);
}

#[test]
fn archived_conversation_and_open_draft_are_respected() {
    let mut world = world(&["a"]);
    world.conversation.draft_opened("d-1");
    assert_eq!(
        world.retract("d-1", 1, newest(1)),
        Err(Refusal::IdStreamed { index: 0 })
    );
    world.retract("r-1", 1, newest(1)).unwrap();
    let draft = message(Some("d-1"), "d");
    let decided = world.conversation.decide_draft(&draft, |_| None::<Vec<u8>>);
    assert!(matches!(decided, Ok(Decision::Append(plan)) if *plan.places == [MessageSeq::New(3)]));
    let archive = Change::Put {
        metadata: None,
        settings: None,
        is_archived: Some(true),
    };
    world.change(None, &archive).unwrap();
    assert_eq!(world.retract("r-2", 2, newest(1)), Err(Refusal::Archived));
    assert_eq!(world.retract("r-1", 1, newest(1)), Ok(Some((2, 1))));
}

#[test]
fn number_of_separate_ranges_is_limited() {
    let mut world = World::new();
    let round = |world: &mut World| {
        let both = [message(None, "kept"), message(None, "retracted")];
        let plan = world.append(None, &both).unwrap();
        world.retract(&format!("r-{}", plan.head), plan.head, newest(1))
    };
    let max = crate::retracted::RANGES_MAX;
    for _ in 0..max {
        round(&mut world).unwrap();
    }
    assert_eq!(round(&mut world), Err(Refusal::Retractions { max }));
    let head = world.conversation.head();
    // What adjoins a range is retracted.
    assert!(world.retract("all", head, newest(2)).is_ok());
    world.restart();
}
