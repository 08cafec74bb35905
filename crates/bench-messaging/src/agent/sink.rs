//! Final count of the receivers, and the messages lost.

use std::time::Duration;

use bench::measurement::Sink;
use bench::workload::child::{Actor, ChildError};

/// Time without an arrival after which missing messages count as lost.
const QUIET: Duration = Duration::from_millis(200);

/// Pause between two queries.
const PAUSE: Duration = Duration::from_millis(2);

/// Returns the receivers' count when it reaches `expected` or stops growing.
pub(super) fn final_count(receiver: &mut Actor, expected: u64) -> Result<Sink, ChildError> {
    let mut seen = 0;
    let mut quiet = Duration::ZERO;
    loop {
        receiver.write_line("count")?;
        let sink: Sink = receiver.json()?;
        if sink.received >= expected || quiet >= QUIET {
            return Ok(sink.with_lost(expected));
        }
        quiet = match sink.received > seen {
            true => Duration::ZERO,
            false => quiet + PAUSE,
        };
        seen = sink.received;
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use bench::workload::child::Pin;

    fn receiver(counts: &str) -> Actor {
        let script = format!(
            r#"set -- {counts}
            while read _; do
                echo "{{\"received\":$1,\"errors\":{{}}}}"
                [ $# = 1 ] || shift
            done"#
        );
        Actor::start(Path::new("/bin/sh"), ["-c", &script], Pin::Nowhere).unwrap()
    }

    #[test]
    fn a_count_is_final_when_it_is_complete() {
        let sink = final_count(&mut receiver("1 5 10"), 10).unwrap();
        assert_eq!((sink.received, sink.errors.len()), (10, 0));
    }

    #[test]
    fn messages_that_never_arrive_are_lost() {
        let sink = final_count(&mut receiver("1 7 7"), 10).unwrap();
        assert_eq!((sink.received, sink.errors.get("lost")), (7, Some(&3)));
    }
}
