use std::fmt::Write as _;

use super::*;
use crate::types::MessageState;

mod dead_letters;
mod properties;
mod rewritten_messages;

const LIMITS: Limits = Limits {
    messages_max: 4,
    bytes_max: 1000,
    in_flight_max: 3,
    deliveries_max: 4,
};

/// The stream of a script.
#[derive(Clone, Copy)]
enum StreamRecord<'a> {
    Write(NewMessage<'a>),
    Note(Note),
    Moved(NewMessage<'a>, u64, MessageState),
}

/// Runs a script on an empty mailbox and compares the transcript.
///
/// | line | does |
/// |---|---|
/// | `write OFFSET SENDER [EXPIRES]` | a write of 10 bytes that is durable |
/// | `ack OFFSET` · `lost OFFSET` · `refused OFFSET [AFTER]` | answers |
/// | `retry OFFSET` | revives a dead letter |
/// | `move RECORD` | rewrites the oldest message, at that offset |
/// | `show` | prints each message's state |
/// | `at TIME` | sets the time |
/// | `to NAME=ROOM…` | delivers to these subscribers |
/// | `expire` · `restart` | |
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut mailbox = Mailbox::new(LIMITS);
    let mut log: Vec<StreamRecord<'_>> = Vec::new();
    let mut now_ms = 0;
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index).map(|it| it.parse::<u64>().unwrap());
        match words[0] {
            "write" => {
                let written = NewMessage {
                    offset: number(1).unwrap(),
                    id: None,
                    sender: words[2],
                    size: 10,
                    expires_ms: number(3).unwrap_or(u64::MAX),
                };
                match mailbox.accept(None, 10, now_ms) {
                    Ok(_) => {
                        mailbox.written(written);
                        mailbox.durable(written.offset + 1);
                        log.push(StreamRecord::Write(written));
                    }
                    Err(refused) => writeln!(out, "refused: {refused}").unwrap(),
                }
            }
            "ack" => {
                if !mailbox.acknowledge(number(1).unwrap()) {
                    out.push_str("not there\n");
                }
            }
            "lost" => {
                assert!(mailbox.again(number(1).unwrap(), Again::Now, now_ms));
            }
            "refused" => {
                let again = match number(2) {
                    Some(pause_ms) => Again::After { pause_ms },
                    None => Again::Later,
                };
                assert!(mailbox.again(number(1).unwrap(), again, now_ms));
            }
            "retry" => {
                if !mailbox.revive(number(1).unwrap()) {
                    out.push_str("not there\n");
                }
            }
            "move" => {
                let straggler = mailbox.straggler(u64::MAX).unwrap();
                let record = number(1).unwrap();
                let written = log.iter().find_map(|kept| match kept {
                    StreamRecord::Write(written) if written.offset == straggler.offset => {
                        Some(*written)
                    }
                    _ => None,
                });
                mailbox.moved(straggler.offset, record);
                log.push(StreamRecord::Moved(
                    written.unwrap(),
                    record,
                    straggler.state,
                ));
                let oldest = mailbox.oldest();
                writeln!(out, "moved {}, oldest {oldest:?}", straggler.offset).unwrap();
            }
            "show" => {
                for message in mailbox.pending(0) {
                    let Pending {
                        offset,
                        record,
                        deliveries,
                        state,
                        ..
                    } = message;
                    writeln!(out, "{offset} at {record}: {deliveries}, {state:?}").unwrap();
                }
                writeln!(out, "{} dead", mailbox.dead()).unwrap();
            }
            "at" => now_ms = number(1).unwrap(),
            "to" => {
                let room = words[1..].iter().map(|word| {
                    let (name, room) = word.split_once('=').unwrap();
                    (name, room.parse::<u32>().unwrap())
                });
                hand_out(&mut mailbox, now_ms, room.collect(), &mut out);
            }
            "expire" => {
                mailbox.expire(now_ms);
                writeln!(out, "expired {}", mailbox.take_expired()).unwrap();
            }
            "restart" => {
                mailbox = Mailbox::new(LIMITS);
                for kept in &log {
                    match kept {
                        StreamRecord::Write(written) => mailbox.restore(*written),
                        StreamRecord::Note(note) => mailbox.restore_note(*note),
                        StreamRecord::Moved(written, record, state) => {
                            mailbox.restore_moved(*written, *record, *state);
                        }
                    }
                }
                mailbox.restored();
            }
            other => panic!("{other}?"),
        }
        log.extend(mailbox.take_notes().into_iter().map(StreamRecord::Note));
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&out), lines(expected), "{out}");
}

fn hand_out<'a>(
    mailbox: &mut Mailbox<&'a str>,
    now_ms: u64,
    mut room: Vec<(&'a str, u32)>,
    out: &mut String,
) {
    mailbox.hand_out(now_ms, |offer| {
        let mut candidates = room.iter_mut().filter(|(_, room)| *room > 0);
        let found = match offer.place {
            Eligibility::Any => candidates.next(),
            Eligibility::Only(only) => match candidates.find(|(name, _)| name == only) {
                None => return Answer::Full,
                found => found,
            },
            Eligibility::Other(other) => {
                let last = candidates.next();
                match last {
                    Some((name, _)) if name == other => candidates.next().or(last),
                    last => last,
                }
            }
        };
        let Some((name, room)) = found else {
            return Answer::NoSubscriber;
        };
        *room -= 1;
        let Offer {
            offset, delivery, ..
        } = offer;
        writeln!(out, "{offset} to {name}, {delivery}").unwrap();
        Answer::Handed(name)
    });
}

#[test]
fn acknowledged_message_is_not_delivered_again() {
    check(
        "write 0 s
         to a=9
         ack 0
         to a=9
         ack 0",
        "0 to a, 1
         not there",
    );
}

#[test]
fn messages_of_a_sender_go_to_one_subscriber_until_acknowledged() {
    check(
        "write 0 s
         write 1 s
         write 2 s
         to a=1 b=9
         to a=1 b=9
         ack 0
         to a=0 b=9
         ack 1
         to a=0 b=9",
        "0 to a, 1
         1 to a, 1
         2 to b, 1",
    );
}

#[test]
fn senders_take_turns_and_do_not_wait_for_each_other() {
    check(
        "write 0 s
         write 1 s
         write 2 t
         to a=1 b=1
         to a=0 b=1",
        "0 to a, 1
         2 to b, 1",
    );
}

#[test]
fn unanswered_message_is_redelivered_at_once_to_another_subscriber() {
    check(
        "write 0 s
         to a=1 b=9
         lost 0
         to a=9 b=9
         lost 0
         to b=9",
        "0 to a, 1
         0 to b, 2
         0 to b, 3",
    );
}

#[test]
fn refused_message_backs_off_and_does_not_block_later_ones() {
    check(
        "write 0 s
         write 1 s
         to a=1
         refused 0
         to a=9
         ack 1
         at 999
         to a=9
         at 1000
         to a=9
         refused 0
         at 2999
         to a=9
         at 3000
         to a=9
         refused 0 50
         at 3050
         to a=9",
        "0 to a, 1
         1 to a, 1
         0 to a, 2
         0 to a, 3
         0 to a, 4",
    );
}

#[test]
fn deliveries_in_flight_are_limited() {
    check(
        "write 0 s
         write 1 s
         write 2 t
         write 3 t
         to a=9
         ack 1
         to a=9",
        "0 to a, 1
         2 to a, 1
         1 to a, 1
         3 to a, 1",
    );
}

#[test]
fn full_mailbox_refuses_writes_until_messages_expire() {
    check(
        "write 0 s 100
         write 1 s
         write 2 s
         write 3 s
         write 4 s
         at 100
         write 4 s
         to a=9",
        "refused: the mailbox is full: 4 unacknowledged messages (limit mailbox.messages_max)
         1 to a, 1
         2 to a, 1
         3 to a, 1",
    );
}

#[test]
fn expired_message_is_not_delivered() {
    check(
        "write 0 s 100
         write 1 s 200
         write 2 t 100
         to a=1
         refused 0
         at 150
         to a=9
         expire
         at 200
         lost 1
         to a=9
         expire",
        "0 to a, 1
         1 to a, 1
         expired 2
         expired 1",
    );
}

#[test]
fn leased_messages_are_redelivered_after_a_restart_with_a_higher_count() {
    check(
        "write 0 s
         write 1 s
         write 2 s
         to a=2
         ack 0
         restart
         to b=9",
        "0 to a, 1
         1 to a, 1
         1 to b, 2
         2 to b, 1",
    );
}

#[test]
fn message_is_not_delivered_before_it_is_durable() {
    let mut mailbox = Mailbox::new(LIMITS);
    for offset in 5..7 {
        mailbox.written(NewMessage {
            offset,
            id: None,
            sender: "s",
            size: 1,
            expires_ms: u64::MAX,
        });
    }
    let mut out = String::new();
    hand_out(&mut mailbox, 0, vec![("a", 9)], &mut out);
    assert_eq!(out, "");
    mailbox.durable(6);
    hand_out(&mut mailbox, 0, vec![("a", 9)], &mut out);
    assert_eq!(out, "5 to a, 1\n");
    assert!(mailbox.is_unsynced());
    let states: Vec<_> = mailbox.pending(0).map(|message| message.state).collect();
    assert_eq!(states, [State::Unanswered, State::Unsynced]);
}

#[test]
fn retry_finds_its_original_even_in_a_full_mailbox() {
    let mut mailbox = Mailbox::<&str>::new(Limits {
        messages_max: 1,
        ..LIMITS
    });
    let id = Some(WriteId([7; 16]));
    let write = |offset, id| NewMessage {
        offset,
        id,
        sender: "s",
        size: 10,
        expires_ms: u64::MAX,
    };
    assert_eq!(mailbox.accept(id, 10, 0), Ok(Accepted::New));
    mailbox.written(write(3, id));
    mailbox.durable(4);
    mailbox.acknowledge(3);
    mailbox.written(write(4, None));
    assert_eq!(
        mailbox.accept(id, 10, 0),
        Ok(Accepted::Duplicate { offset: 3 })
    );
    let refused = mailbox.accept(None, 10, 0);
    assert_eq!(refused, Err(Refused::Messages { messages: 1 }));
}

#[test]
fn mailbox_bytes_are_limited() {
    let mut mailbox = Mailbox::<&str>::new(LIMITS);
    let refused = mailbox.accept(None, 1001, 0);
    let bytes = Refused::Bytes {
        size: 1001,
        bytes: 0,
        bytes_max: 1000,
    };
    assert_eq!(refused, Err(bytes));
    assert_eq!(mailbox.accept(None, 1000, 0), Ok(Accepted::New));
}

#[test]
fn purge_removes_all_and_late_answers_change_nothing() {
    let mut mailbox = Mailbox::new(LIMITS);
    for offset in 0..3 {
        mailbox.written(NewMessage {
            offset,
            id: None,
            sender: "s",
            size: 10,
            expires_ms: u64::MAX,
        });
    }
    mailbox.durable(3);
    hand_out(&mut mailbox, 0, vec![("a", 1)], &mut String::new());
    assert_eq!(mailbox.purge(|state| state != State::Waiting), 1);
    assert!(!mailbox.acknowledge(0));
    assert!(!mailbox.again(0, Again::Now, 0));
    assert_eq!(mailbox.purge(|_| true), 2);
    assert_eq!(
        (mailbox.len(), mailbox.bytes(), mailbox.in_flight()),
        (0, 0, 0)
    );
    assert_eq!(mailbox.oldest(), None);
}
