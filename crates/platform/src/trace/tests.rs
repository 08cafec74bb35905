use super::*;
use crate::clock::{Clock, Entropy};

/// A clock whose wall clock has steps of a millisecond.
#[derive(Default)]
struct StepClock(AtomicU64);

const EPOCH_MS: u64 = 1_700_000_000_000;

impl Clock for StepClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        EPOCH_MS + self.now_ns() / 1_000_000
    }
}

#[derive(Default)]
struct CountingEntropy(AtomicU64);

impl Entropy for CountingEntropy {
    fn next_u64(&self) -> u64 {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        // The golden ratio spreads the numbers evenly.
        count.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

fn tracer(sampled_ppm: u32, queue_max: usize) -> (Arc<Tracer>, Arc<StepClock>) {
    let clock = Arc::new(StepClock::default());
    let ports = Ports {
        clock: clock.clone(),
        entropy: Arc::new(CountingEntropy::default()),
    };
    let options = TracerOptions {
        sampled_ppm,
        queue_max,
    };
    (Arc::new(Tracer::new(ports, options)), clock)
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn traceparent_is_parsed_and_written() {
    let parsed = TraceContext::parse(PARENT.as_bytes()).unwrap();
    assert_eq!(parsed.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!(parsed.span_id, 0x00f0_67aa_0ba9_02b7);
    assert!(parsed.is_sampled);
    assert_eq!(parsed.to_string(), PARENT);
    let later = format!("01{}-more", &PARENT[2..]);
    assert_eq!(TraceContext::parse(later.as_bytes()), Some(parsed));
    let unsampled = TraceContext::parse(PARENT.replace("-01", "-00").as_bytes());
    assert!(!unsampled.unwrap().is_sampled);
}

#[test]
fn invalid_traceparent_is_ignored() {
    for text in [
        "",
        "00",
        "00-1-2-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-+1",
    ] {
        assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(TraceContext::parse(b"\xff"), None);
}

#[test]
fn span_continues_the_trace_of_its_parent() {
    let (tracer, clock) = tracer(0, 10);
    let parent = TraceContext::parse(PARENT.as_bytes());
    let mut span = tracer
        .begin(parent, SpanKind::Server, || "GET /x".to_owned())
        .unwrap();
    span.set_number("http.response.status_code", 200);
    let context = span.context();
    clock.0.store(1_500, Ordering::Relaxed);
    drop(span);
    let spans = tracer.take(10);
    let [span] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(span.context, context);
    assert_eq!(span.context.trace_id, parent.unwrap().trace_id);
    assert_eq!(span.parent, Some(parent.unwrap().span_id));
    assert_eq!(span.begin_unix_ns, EPOCH_MS * 1_000_000);
    assert_eq!(span.end_unix_ns, EPOCH_MS * 1_000_000 + 1_500);
    let status = AttributeValue::Number(200);
    assert_eq!(span.attributes, [("http.response.status_code", status)]);
}

#[test]
fn traces_are_sampled_by_their_ratio_and_their_parent() {
    let begin = |tracer: &Arc<Tracer>, parent| {
        let span = tracer.begin(parent, SpanKind::Server, String::new);
        span.is_some()
    };
    let (none, _) = tracer(0, 10);
    assert!(!begin(&none, None));
    let (all, _) = tracer(1_000_000, 10);
    assert!(begin(&all, None));
    let unsampled = PARENT.replace("-01", "-00");
    assert!(!begin(&all, TraceContext::parse(unsampled.as_bytes())));
    let (some, _) = tracer(100_000, 1_000);
    let sampled = (0..1_000).filter(|_| begin(&some, None)).count();
    assert!((50..=200).contains(&sampled), "{sampled}");
}

#[test]
fn full_queue_drops_and_counts_spans() {
    let (tracer, _) = tracer(1_000_000, 2);
    for _ in 0..5 {
        drop(tracer.begin(None, SpanKind::Server, String::new));
    }
    let counts = tracer.counts();
    assert_eq!((counts.waiting, counts.dropped), (2, 3));
    assert_eq!(tracer.take(1).len(), 1);
    assert_eq!(tracer.take(9).len(), 1);
    assert_eq!(tracer.counts().waiting, 0);
}
