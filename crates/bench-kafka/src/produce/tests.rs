use super::super::fake::{FakeBroker, Fault, TOPIC};
use super::super::{Acks, KeyPattern, Packing, PayloadPattern, Work};
use super::*;
use bench::measurement::Measurement;

const PRODUCE: ProduceSpec = ProduceSpec {
    connections: 1,
    in_flight: 20,
    size: 100,
    rate: 0,
    messages: 2_000,
    acks: Acks::All,
    packing: Packing::None,
    linger_ns: 0,
    batch_size: 1_000,
    requests_max: 5,
    key: KeyPattern::Random,
    payload: PayloadPattern::Random,
};

/// Upper limit of a run, which ends with its number of messages.
const WINDOW_NS: u64 = 60_000_000_000;

/// Produces to a broker of three partitions with this fault, and reads back.
fn run(produce: &ProduceSpec, fault: Fault) -> (Measurement, Verification) {
    let fake = FakeBroker::start(3, fault);
    let spec = LoadSpec {
        address: fake.address,
        topic: TOPIC.to_owned(),
        tag: 7,
        work: Work::Produce(produce.clone()),
        warmup_ns: 0,
        window_ns: WINDOW_NS,
        verify: true,
    };
    let mut session = Session::open(&spec.address).unwrap();
    let layout = topic::layout(&mut session, &spec.topic).unwrap();
    let begin = topic::offsets(&layout, &spec.topic, OffsetKind::Next).unwrap();
    let mut load = Load::open(&spec, produce, &layout, &session).unwrap();
    let produced = load.produce(WINDOW_NS, produce.messages).unwrap();
    let measured = produced.tally.over(produced.window_ns);
    measured.check().unwrap();
    (measured, load.verify(&layout, begin).unwrap())
}

#[test]
fn every_message_is_acked_timed_and_found_at_its_offset() {
    let shapes = [
        PRODUCE,
        ProduceSpec {
            connections: 10,
            in_flight: 1,
            ..PRODUCE
        },
        ProduceSpec {
            linger_ns: 1_000_000,
            requests_max: 1,
            ..PRODUCE
        },
        ProduceSpec {
            packing: Packing::Zstd,
            acks: Acks::One,
            ..PRODUCE
        },
        ProduceSpec {
            acks: Acks::None,
            key: KeyPattern::Fixed,
            ..PRODUCE
        },
        ProduceSpec {
            rate: 100_000,
            ..PRODUCE
        },
    ];
    for shape in shapes {
        let (measured, verified) = run(&shape, Fault::None);
        assert_eq!(
            (measured.sent, measured.completed),
            (2_000, 2_000),
            "{shape:?}"
        );
        assert_eq!(measured.response.is_some(), shape.rate > 0);
        assert_eq!(
            (verified.acked, verified.found),
            (2_000, 2_000),
            "{shape:?}"
        );
        assert!(verified.is_clean(), "{shape:?}: {verified:?}");
    }
}

#[test]
fn lost_duplicated_moved_and_damaged_batches_are_detected() {
    let found = |fault| run(&PRODUCE, fault).1;
    assert!(found(Fault::Lose).lost > 0);
    let doubled = found(Fault::Double);
    assert!(doubled.duplicated > 0 && doubled.lost == 0, "{doubled:?}");
    let moved = found(Fault::Misplace);
    assert!(moved.moved > 0 && moved.lost == 0, "{moved:?}");
    let damaged = found(Fault::Damage);
    assert!(damaged.damaged > 0 && damaged.lost > 0, "{damaged:?}");
}

#[test]
fn acks_without_offset_and_rejections_are_failures() {
    for (fault, kind) in [
        (Fault::Negative, "negative-offset"),
        (Fault::Refuse, "not-leader-or-follower"),
    ] {
        let (measured, verified) = run(&PRODUCE, fault);
        let failed = measured.errors[kind];
        assert!(failed > 0, "{measured:?}");
        assert_eq!(measured.completed + failed, 2_000);
        assert_eq!(verified.acked, measured.completed);
        assert!(verified.is_clean(), "{verified:?}");
    }
}
