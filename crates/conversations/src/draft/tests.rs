use proptest::prelude::*;

use super::*;

const OPEN: DraftOpen<'static> = DraftOpen {
    conversation: 1,
    opened_ms: 2,
    id: "a",
    role: "assistant",
    from: "",
    metadata: b"",
};

fn texts(draft: &Draft, from: u32) -> Vec<(u32, &[u8])> {
    draft.chunks(from).collect()
}

#[test]
fn draft_chunks_are_visible_only_after_its_opening_is_durable() {
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
fn an_oversized_or_multiline_chunk_changes_nothing() {
    let mut draft = Draft::new(6);
    assert_eq!(draft.push(b"abc"), Ok(0));
    assert_eq!(draft.push(b"d\n"), Err(Refused::Size { max: 6 }));
    assert_eq!(draft.push(b"\n"), Err(Refused::LineFeed));
    assert_eq!(draft.push(b"d"), Ok(1));
    assert_eq!(draft.push(b""), Err(Refused::Size { max: 6 }));
    assert_eq!(draft.lines(), b"abc\nd\n");
}

#[test]
fn a_stopped_draft_that_is_lost_has_status_stopped() {
    let mut draft = Draft::new(6);
    assert_eq!(lost_status(&draft), Status::Interrupted);
    assert!(draft.stop());
    assert!(!draft.stop());
    assert_eq!(lost_status(&draft), Status::Stopped);
}

#[test]
fn draft_log_is_trimmed_only_before_the_oldest_open_draft() {
    let mut log = Log::default();
    assert_eq!(log.to_cut(5), Cut::Trim(5));
    log.opened(5);
    log.opened(8);
    assert_eq!(log.to_cut(9), Cut::Trim(5));
    assert!(log.closed(5));
    assert!(!log.closed(5));
    assert_eq!(log.to_cut(12), Cut::Trim(8));
    assert!(!log.is_empty());
    assert!(log.closed(8));
    assert_eq!(log.to_cut(12), Cut::Trim(12));
    assert!(log.is_empty());
}

#[test]
fn draft_log_is_erased_once_earlier_drafts_are_closed_or_carried() {
    let mut log = Log::default();
    log.opened(5);
    log.opened(6);
    log.erase(9);
    log.opened(10);
    assert!(log.is_in_the_way(5) && log.is_in_the_way(6));
    assert!(!log.is_in_the_way(10) && !log.is_in_the_way(7));
    log.carried(5, 11);
    assert!(!log.is_in_the_way(5));
    assert_eq!(log.to_cut(12), Cut::Trim(6));
    assert!(log.closed(6));
    assert_eq!(log.to_cut(12), Cut::Erase(10));
    log.cut(Cut::Erase(10));
    assert!(!log.is_erasing());
    assert_eq!(log.to_cut(12), Cut::Trim(10));
    assert!(log.closed(10));
    assert_eq!(log.to_cut(12), Cut::Trim(11));
}

#[test]
fn chunks_with_gaps_are_malformed() {
    let mut recovery = Recovery::new(100);
    let mut bytes = Vec::new();
    OPEN.encode(&mut bytes);
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

#[test]
fn a_draft_carried_before_its_opening_is_malformed() {
    let mut recovery = Recovery::new(100);
    let carried = |draft| {
        let mut bytes = Vec::new();
        DraftCarried { draft, open: OPEN }.encode(&mut bytes);
        bytes
    };
    for number in [4, 5] {
        let record = carried(number);
        assert!(recovery.record(4, DRAFT_CARRIED, &record).is_err());
    }
    recovery.record(4, DRAFT_CARRIED, &carried(3)).unwrap();
    let numbers: Vec<_> = recovery.finish().map(|lost| lost.number).collect();
    assert_eq!(numbers, [3]);
}

#[derive(Clone, Debug)]
enum Step {
    Open,
    Push {
        which: usize,
        text: String,
    },
    /// The received chunks of all drafts or of one are logged.
    Flush {
        which: Option<usize>,
    },
    Close {
        which: usize,
    },
    /// A conversation is erased.
    Erase,
    /// A draft that holds up the erasure is carried.
    Carry,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Open),
        6 => (any::<usize>(), "[a-z]{0,4}").prop_map(|(which, text)| Step::Push { which, text }),
        2 => prop::option::of(any::<usize>()).prop_map(|which| Step::Flush { which }),
        1 => any::<usize>().prop_map(|which| Step::Close { which }),
        1 => Just(Step::Erase),
        2 => Just(Step::Carry),
    ]
}

proptest! {
    #[test]
    fn open_drafts_are_recovered_from_a_trimmed_log(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let mut records: Vec<(u8, Vec<u8>)> = Vec::new();
        let mut open: Vec<(u64, Draft, u32)> = Vec::new();
        let mut log = Log::default();
        let mut from = 0;
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
                    log.opened(offset);
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
                Step::Erase => {
                    records.push((DRAFT_ERASE, Vec::new()));
                    log.erase(offset);
                }
                Step::Carry => {
                    let in_the_way = |(number, ..): &&mut (u64, Draft, u32)| log.is_in_the_way(*number);
                    if let Some((number, draft, logged)) = open.iter_mut().find(in_the_way) {
                        let mut bytes = Vec::new();
                        let id = format!("d{number}");
                        let open = DraftOpen {
                            conversation: 3,
                            opened_ms: 4,
                            id: &id,
                            role: "assistant",
                            from: "bot",
                            metadata: b"{}",
                        };
                        DraftCarried { draft: *number, open }.encode(&mut bytes);
                        records.push((DRAFT_CARRIED, bytes));
                        let mut bytes = Vec::new();
                        draft.all(*number).encode(&mut bytes);
                        records.push((DRAFT_CHUNKS, bytes));
                        log.carried(*number, offset);
                        *logged = draft.len();
                        draft.logged(*logged);
                    }
                }
            }
            let cut = log.to_cut(records.len() as u64);
            let (Cut::Trim(before) | Cut::Erase(before)) = cut;
            log.cut(cut);
            prop_assert!(before >= from);
            from = before;
            prop_assert!(!open.is_empty() || !log.is_erasing());
        }
        let mut recovery = Recovery::new(1000);
        for (offset, (tag, bytes)) in records.iter().enumerate().skip(from as usize) {
            prop_assert_eq!(recovery.record(offset as u64, *tag, bytes), Ok(()));
        }
        prop_assert_eq!(recovery.erased().is_some(), log.is_erasing());
        let lost: Vec<_> = recovery.finish().collect();
        prop_assert_eq!(lost.len(), open.len());
        for (lost, (number, mut draft, logged)) in lost.into_iter().zip(open) {
            prop_assert_eq!((lost.number, lost.id), (number, format!("d{number}")));
            prop_assert!(lost.begin >= from);
            draft.show();
            let mut found = lost.draft;
            found.show();
            let before: Vec<_> = draft.chunks(0).take(logged as usize).collect();
            prop_assert_eq!(found.chunks(0).collect::<Vec<_>>(), before);
        }
    }
}
