//! Dead letters, in scripts.

use super::check;

/// Four deliveries that are refused.
const REFUSED: &str = "
    to a=1
    refused 0 0
    to a=1
    refused 0 0
    to a=1
    refused 0 0
    to a=1
    refused 0 0
    to a=9";

const DELIVERED: &str = "
    0 to a, 1
    0 to a, 2
    0 to a, 3
    0 to a, 4";

#[track_caller]
fn check_refused(script: &str, expected: &str) {
    check(
        &format!("write 0 s\n{REFUSED}\n{script}"),
        &format!("{DELIVERED}\n{expected}"),
    );
}

#[test]
fn unacknowledged_message_becomes_a_dead_letter_after_its_last_delivery() {
    check_refused(
        "show
         ack 0
         show",
        "0 at 0: 4, Dead(Refused)
         1 dead
         0 dead",
    );
}

#[test]
fn dead_letter_has_the_result_of_its_last_delivery() {
    check(
        "write 0 s
         to a=1
         lost 0
         to a=1
         lost 0
         to a=1
         refused 0 0
         to a=1
         lost 0
         show",
        "0 to a, 1
         0 to a, 2
         0 to a, 3
         0 to a, 4
         0 at 0: 4, Dead(Unanswered)
         1 dead",
    );
}

#[test]
fn dead_letter_does_not_block_its_sender() {
    check_refused(
        "write 1 s
         to b=9",
        "1 to b, 1",
    );
}

#[test]
fn a_dead_letter_counts_against_the_limits_until_it_expires() {
    check(
        &format!(
            "write 0 s 500
             {REFUSED}
             write 1 s
             write 2 s
             write 3 s
             write 4 s
             at 500
             write 4 s"
        ),
        &format!(
            "{DELIVERED}
             refused: the mailbox is full: 4 unacknowledged messages (limit mailbox.messages_max)"
        ),
    );
}

#[test]
fn a_retried_dead_letter_gets_its_full_attempts_and_a_continued_count() {
    check_refused(
        "retry 0
         retry 0
         to b=1
         lost 0
         to b=1
         lost 0
         to b=1
         lost 0
         to b=1
         lost 0
         show",
        "not there
         0 to b, 5
         0 to b, 6
         0 to b, 7
         0 to b, 8
         0 at 0: 8, Dead(Unanswered)
         1 dead",
    );
}

#[test]
fn dead_and_revived_letters_survive_a_restart() {
    check_refused(
        "restart
         to a=9
         show
         retry 0
         restart
         show
         to a=1
         restart
         to a=9",
        "0 at 0: 4, Dead(Refused)
         1 dead
         0 at 0: 4, Waiting
         0 dead
         0 to a, 5
         0 to a, 6",
    );
}

#[test]
fn a_last_delivery_cut_off_by_a_restart_counts_as_unanswered() {
    check(
        "write 0 s
         to a=1
         restart
         to a=1
         restart
         to a=1
         restart
         to a=1
         restart
         to a=9
         show",
        "0 to a, 1
         0 to a, 2
         0 to a, 3
         0 to a, 4
         0 at 0: 4, Dead(Unanswered)
         1 dead",
    );
}
