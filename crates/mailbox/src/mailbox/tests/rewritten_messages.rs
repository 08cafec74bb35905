//! Rewritten messages, in scripts and by size.

use super::*;
use crate::span::Span;

#[test]
fn a_moved_message_retains_its_offset_count_and_order() {
    check(
        "write 0 s
         write 1 s
         write 2 s
         to a=1
         refused 0 5
         move 7
         move 8
         restart
         to a=1
         show
         to a=1",
        "0 to a, 1
         moved 0, oldest Some(1)
         moved 1, oldest Some(2)
         0 to a, 2
         0 at 7: 2, Unanswered
         1 at 8: 0, Waiting
         2 at 2: 0, Waiting
         0 dead
         1 to a, 1",
    );
}

#[test]
fn oldest_message_is_determined_by_its_newest_record() {
    check(
        "write 0 s
         write 1 s
         move 4
         write 5 s
         move 6
         move 7
         ack 1
         show
         move 8",
        "moved 0, oldest Some(1)
         moved 1, oldest Some(4)
         moved 0, oldest Some(5)
         0 at 7: 0, Waiting
         5 at 5: 0, Waiting
         0 dead
         moved 5, oldest Some(7)",
    );
}

#[test]
fn rewritten_dead_letter_is_still_dead() {
    check(
        "write 0 s
         to a=1
         lost 0
         to a=1
         lost 0
         to a=1
         lost 0
         to a=1
         lost 0
         move 5
         restart
         show
         retry 0
         move 9
         restart
         to a=1",
        "0 to a, 1
         0 to a, 2
         0 to a, 3
         0 to a, 4
         moved 0, oldest Some(5)
         0 at 5: 4, Dead(Unanswered)
         1 dead
         moved 0, oldest Some(9)
         0 to a, 5",
    );
}

/// One message in a hundred is never acknowledged. The stream stays in proportion to the live
/// messages, and the rewritten bytes in proportion to the written ones.
#[test]
fn a_message_that_is_never_acknowledged_does_not_retain_later_ones() {
    const SIZE: u64 = 10_000;
    let limits = Limits {
        messages_max: 1_000,
        bytes_max: u64::MAX,
        ..LIMITS
    };
    let (mut mailbox, mut span) = (Mailbox::<u8>::new(limits), Span::new(0));
    let (mut next, mut moved_count) = (0, 0);
    for number in 0..20_000 {
        let written = NewMessage {
            offset: next,
            id: None,
            sender: "s",
            size: SIZE as u32,
            expires_ms: u64::MAX,
        };
        mailbox.written(written);
        span.push(next, SIZE as usize);
        next += 1;
        mailbox.durable(next);
        if number % 100 != 0 {
            assert!(mailbox.acknowledge(written.offset));
        }
        if let Some(oldest) = mailbox.oldest() {
            span.cut(oldest);
        }
        while let Some(straggler) = mailbox.straggler(span.held()) {
            mailbox.moved(straggler.offset, next);
            span.push(next, SIZE as usize);
            next += 1;
            moved_count += 1;
            span.cut(mailbox.oldest().unwrap());
        }
        let bound = 2 * mailbox.bytes() + (2 << 20);
        assert!(
            span.held() < bound,
            "{} of {bound} after {number}",
            span.held()
        );
    }
    assert_eq!(mailbox.len(), 200);
    assert!(moved_count < 20_000, "{moved_count} were written once more");
    assert!(moved_count > 200, "{moved_count} were written once more");
}
