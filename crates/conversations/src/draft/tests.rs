use proptest::prelude::*;

use super::*;

fn texts(draft: &Draft, from: u32) -> Vec<(u32, &[u8])> {
    draft.chunks(from).collect()
}

#[test]
fn nothing_is_shown_before_the_opening_is_durable() {
    let mut draft = Draft::new(100);
    assert_eq!(draft.push(b"a"), Ok(0));
    assert_eq!(texts(&draft, 0), []);
    draft.show();
    assert_eq!(draft.push(b""), Ok(1));
    assert_eq!(draft.push(b"bc"), Ok(2));
    assert_eq!(texts(&draft, 0), [(0, &b"a"[..]), (1, b""), (2, b"bc")]);
    assert_eq!(texts(&draft, 2), [(2, &b"bc"[..])]);
    assert_eq!(texts(&draft, 3), []);
    assert_eq!(texts(&draft, u32::MAX), []);
}

#[test]
fn what_is_too_much_or_two_lines_changes_nothing() {
    let mut draft = Draft::new(6);
    assert_eq!(draft.push(b"abc"), Ok(0));
    assert_eq!(draft.push(b"d\n"), Err(Refused::Size { max: 6 }));
    assert_eq!(draft.push(b"\n"), Err(Refused::LineFeed));
    assert_eq!(draft.push(b"d"), Ok(1));
    assert_eq!(draft.push(b""), Err(Refused::Size { max: 6 }));
    assert_eq!(draft.lines(), b"abc\nd\n");
}

#[test]
fn a_draft_is_stopped_once_and_says_so_when_it_is_lost() {
    let mut draft = Draft::new(6);
    assert_eq!(lost_status(&draft), Status::Interrupted);
    assert!(draft.stop());
    assert!(!draft.stop());
    assert_eq!(lost_status(&draft), Status::Stopped);
}

#[test]
fn a_log_is_needed_from_its_oldest_open_draft_on() {
    let mut log = Log::default();
    assert_eq!(log.trim_before(5), 5);
    log.opened(5, 70);
    log.opened(8, 71);
    assert_eq!(log.trim_before(9), 5);
    assert!(log.closed(5));
    assert!(!log.closed(5));
    assert_eq!(log.trim_before(12), 8);
    assert_eq!(log.iter().collect::<Vec<_>>(), [(8, 71)]);
    assert!(log.closed(8));
    assert_eq!(log.trim_before(12), 12);
}

#[test]
fn chunks_that_do_not_follow_are_damage() {
    let mut recovery = Recovery::new(100);
    let mut bytes = Vec::new();
    DraftOpen {
        conversation: 1,
        opened_ms: 2,
        id: "a",
        role: "assistant",
        from: "",
        metadata: b"",
    }
    .encode(&mut bytes);
    recovery.record(0, DRAFT_OPEN, &bytes).unwrap();
    let chunks = |first, lines| {
        let mut bytes = Vec::new();
        let draft = 0;
        DraftChunks {
            draft,
            first,
            lines,
        }
        .encode(&mut bytes);
        bytes
    };
    let record = chunks(0, b"x\n");
    recovery.record(1, DRAFT_CHUNKS, &record).unwrap();
    assert!(recovery.record(2, DRAFT_CHUNKS, &record).is_err());
    assert!(recovery.record(2, 9, &record).is_err());
    assert_eq!(recovery.finish().count(), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Open,
    Push {
        which: usize,
        text: String,
    },
    /// What has come is logged, of all drafts or of one.
    Flush {
        which: Option<usize>,
    },
    Close {
        which: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Open),
        6 => (any::<usize>(), "[a-z]{0,4}").prop_map(|(which, text)| Step::Push { which, text }),
        2 => prop::option::of(any::<usize>()).prop_map(|which| Step::Flush { which }),
        1 => any::<usize>().prop_map(|which| Step::Close { which }),
    ]
}

proptest! {
    #[test]
    fn what_was_logged_of_an_open_draft_is_found_again_and_the_log_may_be_trimmed_before_it(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let mut records: Vec<(u8, Vec<u8>)> = Vec::new();
        let mut open: Vec<(u64, Draft, u32)> = Vec::new();
        let mut log = Log::default();
        for step in steps {
            let offset = records.len() as u64;
            let count = open.len().max(1);
            let nth = |which: usize| which % count;
            match step {
                Step::Open => {
                    let mut bytes = Vec::new();
                    let id = format!("d{offset}");
                    DraftOpen {
                        conversation: 3,
                        opened_ms: 4,
                        id: &id,
                        role: "assistant",
                        from: "bot",
                        metadata: b"{}",
                    }
                    .encode(&mut bytes);
                    records.push((DRAFT_OPEN, bytes));
                    log.opened(offset, 3);
                    open.push((offset, Draft::new(1000), 0));
                }
                Step::Push { which, text } => {
                    if let Some((_, draft, _)) = open.get_mut(nth(which)) {
                        prop_assert_eq!(draft.push(text.as_bytes()), Ok(draft.len() - 1));
                    }
                }
                Step::Flush { which } => {
                    for (index, (number, draft, logged)) in open.iter_mut().enumerate() {
                        if which.is_some_and(|which| nth(which) != index) {
                            continue;
                        }
                        if let Some(chunks) = draft.unlogged(*number) {
                            let mut bytes = Vec::new();
                            chunks.encode(&mut bytes);
                            records.push((DRAFT_CHUNKS, bytes));
                        }
                        *logged = draft.len();
                        draft.logged(*logged);
                        prop_assert_eq!(draft.unlogged(*number), None);
                    }
                }
                Step::Close { which } => {
                    if !open.is_empty() {
                        let (draft, _, _) = open.remove(nth(which));
                        let close = DraftClose { draft, status: Status::Complete, seq: 1 };
                        records.push((DRAFT_CLOSE, close.encode().to_vec()));
                        prop_assert!(log.closed(draft));
                    }
                }
            }
        }
        let mut recovery = Recovery::new(1000);
        let from = log.trim_before(records.len() as u64);
        for (offset, (tag, bytes)) in records.iter().enumerate().skip(from as usize) {
            prop_assert_eq!(recovery.record(offset as u64, *tag, bytes), Ok(()));
        }
        let lost: Vec<_> = recovery.finish().collect();
        prop_assert_eq!(lost.len(), open.len());
        for (lost, (number, mut draft, logged)) in lost.into_iter().zip(open) {
            prop_assert_eq!((lost.number, lost.id), (number, format!("d{number}")));
            draft.show();
            let mut found = lost.draft;
            found.show();
            let before: Vec<_> = draft.chunks(0).take(logged as usize).collect();
            prop_assert_eq!(found.chunks(0).collect::<Vec<_>>(), before);
        }
    }
}
