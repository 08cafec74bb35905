use std::fmt::Write as _;

use super::*;
use crate::record::AgentState;

mod properties;

const OPTIONS: Options = Options {
    debounce_ms: 10,
    max_wait_ms: 25,
    on_busy: OnBusy::Queue,
    attempts_max: 3,
    pause_ms: 100,
    pause_ms_max: 150,
    calls_max: 2,
    pending_max: 3,
    dead_max: 1,
};

/// Runs a script against an agent and compares the transcript. Time begins at 1,000.
///
/// | line | does |
/// |---|---|
/// | `at MS` | the time from now on, 1,000 before that |
/// | `say CONVERSATION SEQ` | a message |
/// | `poll` | the next action |
/// | `ok CONVERSATION` · `fail CONVERSATION [never \| AFTER]` · `later CONVERSATION MS` | of the newest call |
/// | `revive CONVERSATION` · `discard CONVERSATION` · `forget CONVERSATION` | |
/// | `restart` | reads it back |
/// | `state` | the pending messages, and the dead letters |
#[track_caller]
fn check(options: Options, script: &str, expected: &str) {
    let mut agent = Deliveries::new(options);
    let mut calls: HashMap<u64, u64> = HashMap::new();
    let mut snapshot = Vec::new();
    agent.snapshot(b"url".to_vec()).encode(&mut snapshot);
    let mut changes: Vec<Vec<u8>> = Vec::new();
    let mut said = Vec::new();
    let mut now_ms = 1000;
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        let call = |conversation| calls.get(&conversation).copied().unwrap_or(0);
        let change = match words[0] {
            "at" => {
                now_ms = 1000 + number(1);
                None
            }
            "say" => {
                said.push((number(1), number(2)));
                match agent.message(number(1), number(2), now_ms) {
                    Ok(None) => None,
                    Ok(Some(InterruptedCall { change, .. })) => {
                        writeln!(out, "end {}", words[1]).unwrap();
                        Some(change)
                    }
                    Err(refused) => {
                        writeln!(out, "{refused}").unwrap();
                        None
                    }
                }
            }
            "poll" => {
                poll(&mut agent, &mut calls, now_ms, &mut out);
                None
            }
            "ok" => {
                let change = agent.answered(number(1), call(number(1)));
                if change.is_none() {
                    out.push_str("nobody waits\n");
                }
                change
            }
            "fail" => {
                let again = match words.get(2) {
                    None => RetryAdvice::Later,
                    Some(&"never") => RetryAdvice::Never,
                    Some(_) => RetryAdvice::After {
                        pause_ms: number(2),
                    },
                };
                let failure = Failure { status: 500, again };
                agent.failed(number(1), call(number(1)), failure, now_ms, u32::MAX)
            }
            "later" => {
                agent.accepted(number(1), call(number(1)), 1000 + number(2));
                None
            }
            "revive" | "discard" => {
                let result = match words[0] {
                    "revive" => agent.revive(number(1), now_ms),
                    _ => agent.discard(number(1)),
                };
                if let Err(refused) = &result {
                    writeln!(out, "{refused}").unwrap();
                }
                result.ok()
            }
            "forget" => {
                let (ended, change) = agent.forget(number(1));
                if ended.is_some() {
                    writeln!(out, "end {}", words[1]).unwrap();
                }
                Some(change)
            }
            "restart" => {
                let state = AgentState::decode(&snapshot).unwrap();
                assert_eq!((&state.settings[..], state.options), (&b"url"[..], options));
                agent = Deliveries::load(&state, now_ms);
                for change in &changes {
                    agent.restore(&Change::decode(change).unwrap(), now_ms);
                }
                for (conversation, seq) in &said {
                    agent.message(*conversation, *seq, now_ms).unwrap();
                }
                calls.clear();
                snapshot.clear();
                agent.snapshot(b"url".to_vec()).encode(&mut snapshot);
                changes.clear();
                said.clear();
                None
            }
            "state" => {
                for (conversation, entry) in &agent.entries {
                    let PendingMessages {
                        from_seq, to_seq, ..
                    } = entry;
                    writeln!(out, "{conversation}: {from_seq}-{to_seq}").unwrap();
                }
                for (conversation, letter) in agent.dead() {
                    let DeadLetter {
                        from_seq,
                        to_seq,
                        attempts,
                        ..
                    } = letter;
                    writeln!(
                        out,
                        "dead {conversation}: {from_seq}-{to_seq} after {attempts}"
                    )
                    .unwrap();
                }
                None
            }
            other => panic!("{other}?"),
        };
        if let Some(change) = change {
            let mut bytes = Vec::new();
            change.encode(&mut bytes);
            changes.push(bytes);
        }
    }
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(str::trim).filter(|it| !it.is_empty());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&out), lines(expected), "{out}");
}

fn poll(agent: &mut Deliveries, calls: &mut HashMap<u64, u64>, now_ms: u64, out: &mut String) {
    while let Some(decision) = agent.poll(now_ms) {
        match decision {
            Decision::Call(call) => {
                calls.insert(call.conversation, call.number);
                let Call {
                    conversation,
                    from_seq,
                    to_seq,
                    attempt,
                    interrupts,
                    ..
                } = call;
                write!(out, "call {conversation}: {from_seq}-{to_seq}").unwrap();
                writeln!(out, " attempt {attempt} interrupts {interrupts}").unwrap();
            }
            Decision::Overdue { conversation, .. } => {
                writeln!(out, "overdue {conversation}").unwrap();
            }
        }
    }
    match agent.next_ms() {
        Some(next_ms) => writeln!(out, "until {}", next_ms.saturating_sub(1000)).unwrap(),
        None => out.push_str("idle\n"),
    }
}

#[test]
fn a_call_waits_for_silence_but_not_for_ever() {
    check(
        OPTIONS,
        "say 7 1
         poll
         at 9
         say 7 2
         at 18
         say 7 3
         poll
         at 24
         say 7 4
         poll
         at 25
         poll
         ok 7
         poll",
        "until 10
         until 25
         until 25
         call 7: 1-4 attempt 1 interrupts 0
         idle
         idle",
    );
}

#[test]
fn messages_during_a_call_wait_for_the_next_call() {
    check(
        OPTIONS,
        "say 7 1
         at 10
         poll
         say 7 3
         at 12
         say 7 4
         at 50
         poll
         ok 7
         poll
         ok 7
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         idle
         idle
         call 7: 2-4 attempt 1 interrupts 0
         idle
         idle",
    );
}

#[test]
fn newer_messages_interrupt_a_call_at_most_three_times() {
    let options = Options {
        on_busy: OnBusy::Interrupt,
        ..OPTIONS
    };
    check(
        options,
        "say 7 1
         at 10
         poll
         say 7 2
         ok 7
         at 20
         poll
         say 7 3
         at 30
         poll
         say 7 4
         at 40
         poll
         say 7 5
         poll
         ok 7
         at 50
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         idle
         end 7
         nobody waits
         call 7: 1-2 attempt 1 interrupts 1
         idle
         end 7
         call 7: 1-3 attempt 1 interrupts 2
         idle
         end 7
         call 7: 1-4 attempt 1 interrupts 3
         idle
         idle
         call 7: 5-5 attempt 1 interrupts 0
         idle",
    );
}

#[test]
fn on_busy_reject_refuses_messages_during_a_call() {
    let options = Options {
        on_busy: OnBusy::Reject,
        ..OPTIONS
    };
    let mut agent = Deliveries::new(options);
    assert_eq!(agent.message(7, 1, 0), Ok(None));
    assert!(!agent.refuses(7));
    assert!(matches!(agent.poll(10), Some(Decision::Call(_))));
    assert!(agent.refuses(7) && !agent.refuses(8));
    // A message that was accepted already is not lost.
    assert_eq!(agent.message(7, 2, 11), Ok(None));
    assert!(agent.answered(7, 1).is_some());
    assert!(!agent.refuses(7));
    assert_eq!(agent.next_ms(), Some(21));
    agent.set_options(OPTIONS);
    assert!(matches!(agent.poll(21), Some(Decision::Call(_))));
    assert!(!agent.refuses(7));
}

#[test]
fn a_failed_call_is_retried_and_then_a_dead_letter() {
    check(
        OPTIONS,
        "say 7 1
         at 10
         poll
         fail 7
         poll
         say 7 2
         at 110
         poll
         fail 7 40
         poll
         at 260
         poll
         say 7 4
         fail 7
         state
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         idle
         until 110
         call 7: 1-2 attempt 2 interrupts 0
         idle
         until 260
         call 7: 1-2 attempt 3 interrupts 0
         idle
         7: 3-4
         dead 7: 1-2 after 3
         until 270",
    );
}

#[test]
fn an_agent_may_request_the_pause_before_a_retry() {
    check(
        OPTIONS,
        "say 7 1
         at 10
         poll
         fail 7 5000
         poll
         at 5010
         poll
         fail 7 never
         state
         say 7 2
         at 6000
         poll
         fail 7 never
         state",
        "call 7: 1-1 attempt 1 interrupts 0
         idle
         until 5010
         call 7: 1-1 attempt 2 interrupts 0
         idle
         dead 7: 1-1 after 2
         call 7: 2-2 attempt 1 interrupts 0
         idle
         dead 7: 1-2 after 1",
    );
}

#[test]
fn a_revived_dead_letter_is_pending_again() {
    check(
        OPTIONS,
        "revive 7
         say 7 1
         at 10
         poll
         fail 7 never
         say 7 2
         revive 7
         state
         poll
         revive 7
         fail 7 never
         say 7 3
         at 50
         poll
         revive 7
         discard 7
         state
         discard 7",
        "the conversation has no dead letter
         call 7: 1-1 attempt 1 interrupts 0
         idle
         7: 1-2
         call 7: 1-2 attempt 1 interrupts 0
         idle
         the conversation has no dead letter
         call 7: 3-3 attempt 1 interrupts 0
         idle
         a call for the conversation is in flight
         7: 3-3
         the conversation has no dead letter",
    );
}

#[test]
fn calls_are_retried_when_the_dead_letter_list_is_full() {
    check(
        OPTIONS,
        "say 7 1
         say 8 1
         at 10
         poll
         fail 7 never
         fail 8 never
         state
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         8: 1-1
         dead 7: 1-1 after 1
         until 160",
    );
}

#[test]
fn calls_in_flight_and_pending_conversations_are_limited() {
    check(
        OPTIONS,
        "say 7 1
         say 8 1
         say 9 1
         say 5 1
         at 10
         poll
         ok 8
         poll
         say 5 1",
        "too many conversations wait for the agent (limit 3)
         call 7: 1-1 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         call 9: 1-1 attempt 1 interrupts 0
         idle",
    );
}

#[test]
fn a_promised_answer_is_awaited_until_its_deadline() {
    check(
        OPTIONS,
        "say 7 1
         say 8 1
         at 10
         poll
         later 7 500
         later 8 500
         later 8 600
         poll
         ok 7
         at 550
         poll
         at 600
         poll
         fail 8
         ok 8
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         until 500
         until 600
         overdue 8
         idle
         nobody waits
         until 700",
    );
}

#[test]
fn unanswered_messages_are_called_for_again_after_a_restart() {
    check(
        OPTIONS,
        "say 7 1
         say 8 1
         at 10
         poll
         say 7 2
         ok 7
         restart
         state
         poll
         at 20
         poll
         fail 8
         restart
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         7: 2-2
         8: 1-1
         until 20
         call 7: 2-2 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         call 7: 2-2 attempt 1 interrupts 0
         call 8: 1-1 attempt 2 interrupts 0
         idle",
    );
}

#[test]
fn dead_letters_survive_a_restart() {
    check(
        OPTIONS,
        "say 7 1
         at 10
         poll
         say 7 2
         fail 7 never
         restart
         state
         revive 7
         restart
         state
         at 60
         poll
         fail 7 never
         discard 7
         restart
         state",
        "call 7: 1-1 attempt 1 interrupts 0
         idle
         7: 2-2
         dead 7: 1-1 after 1
         7: 1-2
         call 7: 1-2 attempt 1 interrupts 0
         idle",
    );
}

#[test]
fn a_removed_conversation_is_forgotten() {
    check(
        OPTIONS,
        "say 7 1
         say 8 1
         at 10
         poll
         fail 8 never
         forget 7
         forget 8
         forget 9
         ok 7
         state
         restart
         state
         poll",
        "call 7: 1-1 attempt 1 interrupts 0
         call 8: 1-1 attempt 1 interrupts 0
         idle
         end 7
         nobody waits
         idle",
    );
}

#[test]
fn retry_pause_is_randomized_between_half_and_all_of_it() {
    let agent = Deliveries::new(OPTIONS);
    let pause = |attempts, jitter| agent.pause_ms(attempts, RetryAdvice::Later, jitter);
    assert_eq!((pause(1, 0), pause(1, u32::MAX)), (50, 100));
    assert_eq!((pause(2, 0), pause(2, u32::MAX)), (75, 150));
    assert_eq!((pause(99, 0), pause(99, u32::MAX)), (75, 150));
    let asked = RetryAdvice::After { pause_ms: u64::MAX };
    assert_eq!(agent.pause_ms(1, asked, 0), RETRY_AFTER_MS_MAX);
}
