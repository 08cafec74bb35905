use std::fmt::Write as _;

use super::*;
use crate::message::{NewMessage, PartFact, PartKind, Status, Stub};
use crate::record::Links;
use crate::retracted::SeqRange;

mod properties;

/// A message to examine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ScriptedMessage {
    role: &'static str,
    tokens: u32,
    facts: Vec<PartFact>,
}

/// The messages as stored.
fn records(scripted: &[ScriptedMessage]) -> Vec<Vec<u8>> {
    let mut links = Links::default();
    let mut records = Vec::new();
    for (seq, message) in (1..).zip(scripted) {
        let new = NewMessage {
            id: None,
            role: message.role,
            from: "",
            tokens: Some(message.tokens),
            facts: &message.facts,
            parts: b"",
            metadata: b"",
        };
        let mut record = Vec::new();
        new.encode("x", Status::Complete, links, &mut record);
        records.push(record);
        links.tokens_before += u64::from(message.tokens);
        if matches!(message.role, "system" | "developer") {
            links.instruction = seq;
        }
    }
    records
}

/// Returns the window of the messages, and the number of examined messages.
fn window(
    policy: &Policy,
    records: &[Vec<u8>],
    start: u64,
    summary: Option<SummaryFact>,
) -> (Result<Cut, WindowError>, usize) {
    window_without(&Retracted::default(), policy, records, start, summary)
}

/// Like [`window`], without retracted messages.
fn window_without(
    retracted: &Retracted,
    policy: &Policy,
    records: &[Vec<u8>],
    start: u64,
    summary: Option<SummaryFact>,
) -> (Result<Cut, WindowError>, usize) {
    let head = records.len() as u64;
    let newest = records.last().map(|it| MessageView::decode(it).unwrap());
    let instruction = newest.map_or(0, |newest| match newest.role {
        "system" | "developer" => head,
        _ => newest.links.instruction,
    });
    let bounds = Bounds {
        start,
        head,
        instruction,
        summary,
        messages_max: 10_000,
    };
    let mut window = match Window::new(policy, bounds) {
        Ok(window) => window.without(retracted),
        Err(error) => return (Err(error), 0),
    };
    let mut looked = 0;
    while let Some(seq) = window.wants() {
        assert!((start..=head).contains(&seq) && !retracted.contains(seq));
        let view = MessageView::decode(&records[seq as usize - 1]).unwrap();
        window.look(seq, &view);
        looked += 1;
    }
    (window.cut(), looked)
}

/// Parses a part: `KIND[=CALL][*SIZE]`, by default of 1,000 bytes, with a stub of 64 bytes.
fn fact(text: &str) -> PartFact {
    let (text, size) = text.split_once('*').unwrap_or((text, "1000"));
    let (kind, call) = text.split_once('=').unwrap_or((text, "0"));
    let size = size.parse().unwrap();
    PartFact {
        kind: match kind {
            "text" => PartKind::Text,
            "think" => PartKind::Reasoning,
            "call" => PartKind::ToolCall,
            "result" => PartKind::ToolResult,
            "pair" => PartKind::ToolPair,
            other => panic!("{other}?"),
        },
        size,
        call: call.parse().unwrap(),
        stub: Stub::new(size as usize, 63),
    }
}

fn scripted(line: &str) -> ScriptedMessage {
    let mut words = line.split_whitespace();
    ScriptedMessage {
        role: match words.next().unwrap() {
            "user" => "user",
            "bot" => "assistant",
            "tool" => "tool",
            "system" => "system",
            other => panic!("{other}?"),
        },
        tokens: words.next().unwrap().parse().unwrap(),
        facts: words.map(fact).collect(),
    }
}

/// Builds a window of messages (a line `ROLE TOKENS PART…` each) and compares the result: the
/// messages with their omitted (`-`) and replaced (`~`) parts, and the tokens. A line `start SEQ`
/// `retracted FIRST LAST` or `summary SEQ TOKENS` comes before the messages.
#[track_caller]
fn check(policy: &Policy, script: &str, expected: &str) {
    let (mut start, mut summary, mut all) = (1, None, Vec::new());
    let mut retracted = Retracted::default();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["start", seq] => start = seq.parse().unwrap(),
            ["retracted", first, last] => {
                let (first, last) = (first.parse().unwrap(), last.parse().unwrap());
                retracted = retracted.with(SeqRange { first, last }, 0);
            }
            ["summary", seq, tokens] => {
                summary = Some(SummaryFact {
                    through_seq: seq.parse().unwrap(),
                    tokens: tokens.parse().unwrap(),
                    is_estimated: false,
                });
            }
            _ => all.push(scripted(line)),
        }
    }
    assert_eq!(policy.check(), Ok(()));
    let (cut, _) = window_without(&retracted, policy, &records(&all), start, summary);
    assert_eq!(transcript(&cut), expected);
}

fn transcript(cut: &Result<Cut, WindowError>) -> String {
    let cut = match cut {
        Ok(cut) => cut,
        Err(error) => return error.to_string(),
    };
    let mut out = String::new();
    if cut.has_summary {
        out.push_str("summary ");
    }
    for WindowMessage { seq, treated } in &cut.messages {
        write!(out, "{seq}").unwrap();
        for (part, treatment) in treated {
            let mark = match treatment {
                Treatment::Omit => '-',
                Treatment::Stub => '~',
            };
            write!(out, "{mark}{part}").unwrap();
        }
        out.push(' ');
    }
    write!(out, "= {}", cut.tokens).unwrap();
    out
}

/// A policy with steps of a fifth of the budget.
fn budget(budget: u32) -> Policy {
    Policy {
        budget,
        step_permille: 200,
        ..Policy::default()
    }
}

fn dropping(budget: u32, keep_tool_turns: u32, kinds: &[PartKind]) -> Policy {
    let none = Kinds::default();
    Policy {
        drop_first: kinds.iter().fold(none, |kinds, kind| kinds.with(*kind)),
        keep_tool_turns,
        ..self::budget(budget)
    }
}

#[test]
fn messages_that_fit_are_shown_unchanged() {
    check(&budget(100), "", "= 0");
    check(
        &budget(100),
        "user 30
         bot 30 think
         user 40",
        "1 2 3 = 100",
    );
}

#[test]
fn whole_turns_are_left_out() {
    check(
        &budget(100),
        "user 30
         bot 30
         user 30
         bot 30",
        "3 4 = 60",
    );
}

#[test]
fn window_start_advances_in_steps_when_the_budget_is_exceeded() {
    // A step is 20 tokens: the turns of 10 that begin at 0, 20, 40, … are marks.
    let windows: Vec<String> = (9..=14)
        .map(|count| {
            let scripted = vec![scripted("user 10"); count];
            transcript(&window(&budget(100), &records(&scripted), 1, None).0)
        })
        .collect();
    let expected = [
        "1 2 3 4 5 6 7 8 9 = 90",
        "1 2 3 4 5 6 7 8 9 10 = 100",
        "3 4 5 6 7 8 9 10 11 = 90",
        "3 4 5 6 7 8 9 10 11 12 = 100",
        "5 6 7 8 9 10 11 12 13 = 90",
        "5 6 7 8 9 10 11 12 13 14 = 100",
    ];
    assert_eq!(windows, expected);
}

#[test]
fn window_may_start_at_any_turn_longer_than_a_step() {
    check(
        &budget(100),
        "user 10\nuser 80\nuser 5\nuser 10",
        "2 3 4 = 95",
    );
}

#[test]
fn at_most_a_window_and_a_step_are_examined() {
    let records = records(&vec![scripted("user 10"); 5000]);
    let (_, looked) = window(&budget(100), &records, 1, None);
    assert!(looked <= 15, "{looked}");
}

#[test]
fn a_reserve_is_left_for_the_answer() {
    let policy = Policy {
        reserve: 50,
        ..budget(100)
    };
    check(&policy, "user 30\nbot 10\nuser 40", "3 = 40");
}

#[test]
fn an_oversized_turn_is_reported() {
    check(
        &budget(100),
        "user 10
         bot 10
         user 60
         bot 60",
        "messages 3 to 4 must stay together and cost 120 tokens (budget 100)",
    );
    check(&budget(0), "user 1", "a budget is needed");
}

#[test]
fn instructions_stay_in_the_window_at_any_age() {
    let old = "system 7
         user 50
         bot 10
         system 3
         bot 20
         user 50
         bot 20";
    check(&budget(100), old, "1 4 6 7 = 80");
    let policy = Policy {
        keep: Vec::new(),
        ..budget(100)
    };
    check(&policy, old, "6 7 = 70");
    check(&budget(100), &format!("start 3\n{old}"), "4 6 7 = 73");
    check(
        &budget(100),
        &format!("summary 5 15\n{old}"),
        "summary 1 4 6 7 = 95",
    );
}

#[test]
fn oversized_instructions_are_an_error() {
    check(
        &budget(10),
        "system 8\nuser 1\nsystem 8\nuser 1",
        "the summary and the instructions cost 16 tokens (budget 10)",
    );
    check(
        &budget(10),
        "summary 1 11\nuser 1\nuser 1",
        "the summary and the instructions cost 11 tokens (budget 10)",
    );
}

#[test]
fn a_summary_replaces_the_messages_before_it() {
    check(
        &budget(100),
        "summary 2 5\nuser 10\nbot 10\nuser 10\nbot 10",
        "summary 3 4 = 25",
    );
    check(&budget(100), "summary 2 5\nuser 10\nbot 10", "summary = 5");
}

#[test]
fn a_result_is_never_shown_without_its_call() {
    // A message of a user that approves the call stands between call and result.
    let script = "user 40
         bot 10 call=1
         user 10
         tool 10 result=1
         bot 10";
    check(&budget(100), script, "1 2 3 4 5 = 80");
    // The window begins after the call, so the result is left out.
    check(&budget(50), script, "3 5 = 20");
}

#[test]
fn tool_result_is_omitted_if_its_call_is_outside_the_examined_messages() {
    check(
        &budget(50),
        "user 10
         bot 5 call=1
         user 40
         user 90
         user 10
         tool 10 result=1
         user 10
         bot 10",
        "5 7 8 = 30",
    );
    check(
        &budget(50),
        "user 10
         bot 5 call=1
         user 40
         user 90
         user 10
         tool 10 result=1
         bot 10",
        "5 7 = 20",
    );
}

#[test]
fn last_n_window_shows_the_whole_newest_turn() {
    let policy = Policy {
        strategy: Strategy::LastN { count: 2 },
        ..budget(0)
    };
    check(
        &policy,
        "user 1
         user 1
         bot 1 call=1
         user 1
         bot 1
         tool 1 result=1
         bot 1",
        "4 5 7 = 3",
    );
}

#[test]
fn several_calls_of_a_message_are_answered_together() {
    check(
        &budget(100),
        "user 40
         user 10
         bot 10 text call=1 call=2
         tool 10 result=2
         user 10
         tool 10 result=1
         user 20",
        "2 3 4 5 6 7 = 70",
    );
}

#[test]
fn unpaired_calls_and_results_are_left_out() {
    check(
        &budget(100),
        "user 10
         bot 10 text call=1
         tool 5 result=2
         bot 10 pair=3",
        "1 2-1 4 = 26",
    );
    // The call is summarized.
    check(
        &budget(100),
        "summary 2 3
         user 10
         bot 10 call=1
         tool 10 result=1 text
         user 10",
        "summary 3-0 4 = 19",
    );
}

#[test]
fn a_call_without_an_id_is_left_out() {
    check(
        &budget(100),
        "user 10
         bot 10 text call
         tool 10 result
         user 10",
        "1 2-1 4 = 26",
    );
}

#[test]
fn an_id_of_a_call_may_be_used_again() {
    check(
        &budget(1000),
        "user 1
         bot 1 call=1
         tool 1 result=1
         bot 1 call=1
         bot 1 call=1
         tool 1 result=1",
        "1 2 3 5 6 = 5",
    );
}

#[test]
fn old_outputs_become_stubs_before_a_turn_is_left_out() {
    let kinds = [PartKind::ToolResult, PartKind::Reasoning];
    let turn = "user 10
         bot 20 think call=1
         tool 100 result=1
         bot 10
         ";
    check(
        &dropping(1000, 1, &kinds),
        &turn.repeat(3),
        "1 2 3 4 5 6 7 8 9 10 11 12 = 420",
    );
    // A turn of 140 tokens has 48 with stubs.
    check(
        &dropping(400, 1, &kinds),
        &turn.repeat(3),
        "1 2-0 3~0 4 5 6-0 7~0 8 9 10 11 12 = 236",
    );
    check(
        &dropping(400, 2, &kinds),
        &turn.repeat(3),
        "1 2-0 3~0 4 5 6 7 8 9 10 11 12 = 328",
    );
    check(
        &dropping(200, 1, &kinds),
        &turn.repeat(3),
        "5 6-0 7~0 8 9 10 11 12 = 188",
    );
}

#[test]
fn the_newest_turn_and_small_parts_are_not_replaced() {
    check(
        &dropping(100, 0, &[PartKind::ToolPair]),
        "user 10
         bot 80 pair=1*100 pair=1*1000
         user 10
         bot 50 pair=2",
        "1 2~1 3 4 = 94",
    );
}

#[test]
fn stubs_never_bring_back_a_turn_that_was_left_out() {
    let policy = dropping(200, 1, &[PartKind::ToolResult]);
    let turn = |size: u32| format!("user 10\nbot 5 call=1\ntool {size} result=1\nbot 5\n");
    let script: String = [50, 150, 20, 20].map(turn).concat();
    let scripted: Vec<_> = script.lines().map(scripted).collect();
    let records = records(&scripted);
    let begins = (1..=scripted.len()).map(|head| {
        let (cut, _) = window(&policy, &records[..head], 1, None);
        cut.unwrap().from_seq
    });
    // With a stub for its output the first turn would fit again from message 9 on.
    let begins: Vec<_> = begins.collect();
    assert_eq!(begins, [1, 1, 1, 1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]);
}

#[test]
fn an_oversized_turn_is_shown_with_stubs_later() {
    let policy = dropping(200, 0, &[PartKind::ToolResult]);
    let turn = "user 10\nbot 10 call=1\ntool 500 result=1\nbot 10\n";
    check(
        &policy,
        turn,
        "messages 1 to 4 must stay together and cost 530 tokens (budget 200)",
    );
    check(&policy, &format!("{turn}user 10"), "1 2 3~0 4 5 = 57");
}

#[test]
fn an_agents_windows_keep_their_prefix_with_stubs() {
    // 120 turns of an agent, a quarter of which have a large output, in windows of 6,000 tokens.
    let mut rng = pseudorandom(7);
    let mut all = Vec::new();
    for _ in 0..120 {
        let size = match rng() % 4 {
            0 => 800 + rng() % 1_700,
            _ => 20 + rng() % 60,
        };
        let text = format!("{} {}", 20 + rng() % 80, 20 + rng() % 60);
        let (asked, answered) = text.split_once(' ').unwrap();
        all.push(scripted(&format!("user {asked}")));
        all.push(scripted("bot 30 call=1"));
        all.push(scripted(&format!("tool {size} result=1*{}", size * 4)));
        all.push(scripted(&format!("bot {answered}")));
    }
    let records = records(&all);
    let count = |policy: &Policy| {
        let (mut changes, mut backwards) = (0, 0);
        let mut before: Option<Cut> = None;
        for head in (4..=all.len()).step_by(4) {
            let cut = window(policy, &records[..head], 1, None).0.unwrap();
            if let Some(before) = before {
                changes += u32::from(!cut.messages.starts_with(&before.messages));
                backwards += u32::from(cut.from_seq < before.from_seq);
            }
            before = Some(cut);
        }
        (changes, backwards)
    };
    let plain = count(&Policy {
        step_permille: 250,
        ..budget(6_000)
    });
    let dropping = count(&Policy {
        step_permille: 250,
        ..dropping(6_000, 3, &[PartKind::ToolResult])
    });
    assert_eq!((plain.1, dropping.1), (0, 0));
    assert!(dropping.0 <= plain.0 + 5, "{dropping:?} and {plain:?}");
}

/// Returns pseudo-random numbers (an LCG of Knuth's).
fn pseudorandom(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as u32
    }
}

#[test]
fn the_last_messages_are_taken_in_whole_turns() {
    let policy = Policy {
        strategy: Strategy::LastN { count: 4 },
        step_permille: 0,
        ..budget(0)
    };
    let script = "system 1
         user 1
         bot 1
         bot 1
         user 1
         bot 1";
    check(&policy, script, "1 5 6 = 3");
    check(&policy, &format!("{script}\nuser 1"), "1 5 6 7 = 4");
    let policy = Policy {
        strategy: Strategy::LastN { count: 1 },
        ..policy
    };
    check(&policy, script, "1 5 6 = 3");
    let policy = Policy {
        budget: 2,
        ..policy
    };
    check(
        &policy,
        script,
        "messages 5 to 6 must stay together and cost 3 tokens (budget 2)",
    );
}

#[test]
fn skipping_a_result_also_skips_its_call() {
    let policy = Policy {
        strategy: Strategy::SkipParts { count: 0 },
        ..dropping(0, 3, &[PartKind::ToolResult, PartKind::Reasoning])
    };
    check(
        &policy,
        "user 10
         bot 20 think call=1
         tool 100 result=1
         bot 10 think text",
        "1 4-0 = 16",
    );
    let policy = Policy {
        strategy: Strategy::SkipParts { count: 1 },
        ..policy
    };
    check(&policy, "user 10\nuser 10\nuser 5", "3 = 5");
}

#[test]
fn manual_window_has_all_messages_after_the_summary_or_fails() {
    let policy = Policy {
        strategy: Strategy::Manual,
        ..budget(0)
    };
    check(
        &policy,
        "summary 1 5\nuser 10\nuser 10 call=1\nuser 20",
        "summary 3 = 25",
    );
    let policy = Policy {
        budget: 30,
        ..policy
    };
    check(
        &policy,
        "user 10\nuser 10\nuser 20",
        "messages 1 to 3 must stay together and cost 40 tokens (budget 30)",
    );
}

#[test]
fn retracted_messages_are_left_out() {
    let policies = [
        budget(100),
        Policy {
            strategy: Strategy::Manual,
            ..budget(100)
        },
        Policy {
            strategy: Strategy::LastN { count: 9 },
            ..budget(0)
        },
    ];
    for policy in &policies {
        let check = |retracted: &str, expected| {
            let messages = "user 20\nbot 30\nuser 20\nbot 30\nuser 20";
            check(policy, &format!("{retracted}\n{messages}"), expected);
        };
        check("retracted 4 5", "1 2 3 = 70");
        check("retracted 3 4", "1 2 5 = 70");
        check("retracted 1 2", "3 4 5 = 70");
        check("retracted 1 2\nretracted 4 5", "3 = 20");
        check("retracted 1 5", "= 0");
        check("start 3\nretracted 2 3", "4 5 = 50");
        check("summary 1 5\nretracted 2 5", "summary = 5");
    }
}

#[test]
fn call_whose_result_was_retracted_is_left_out_until_it_is_answered() {
    let asked = "user 20\nbot 30 text call=7";
    check(
        &budget(1000),
        &format!("{asked}\ntool 30 result=7"),
        "1 2 3 = 80",
    );
    let retracted = format!("retracted 3 4\n{asked}\ntool 30 result=7\nuser 1");
    let (cut, _) = {
        let all: Vec<_> = retracted.lines().skip(1).map(scripted).collect();
        let retracted = Retracted::default().with(SeqRange { first: 3, last: 4 }, 0);
        window_without(&retracted, &budget(1000), &records(&all), 1, None)
    };
    assert!(
        transcript(&cut).starts_with("1 2-1 = "),
        "{}",
        transcript(&cut)
    );
    check(
        &budget(1000),
        &format!("{retracted}\ntool 30 result=7"),
        "1 2 5 = 80",
    );
}

#[test]
fn the_number_of_examined_messages_is_limited() {
    let scripted = vec![scripted("user 0"); 50];
    let records = records(&scripted);
    let policies = [
        budget(100),
        Policy {
            strategy: Strategy::Manual,
            ..budget(0)
        },
    ];
    for policy in policies {
        let bounds = Bounds {
            start: 1,
            head: 50,
            instruction: 0,
            summary: None,
            messages_max: 20,
        };
        let mut window = Window::new(&policy, bounds).unwrap();
        let mut looked = 0;
        while let Some(seq) = window.wants() {
            window.look(
                seq,
                &MessageView::decode(&records[seq as usize - 1]).unwrap(),
            );
            looked += 1;
        }
        assert_eq!(looked, 20);
        let is_manual = policy.strategy == Strategy::Manual;
        let cut = window.cut();
        assert_eq!(cut == Err(WindowError::TooLong { max: 20 }), is_manual);
    }
}

#[test]
fn invalid_policies_are_refused() {
    let keep = vec!["user".to_owned()];
    let policy = Policy { keep, ..budget(9) };
    assert_eq!(policy.check(), Err(PolicyProblem::Keep));
    let policy = Policy {
        step_permille: 501,
        ..budget(9)
    };
    assert_eq!(policy.check(), Err(PolicyProblem::Step));
    let policy = Policy {
        reserve: 9,
        ..budget(9)
    };
    let none = PolicyProblem::Reserve {
        reserve: 9,
        budget: 9,
    };
    assert_eq!(policy.check(), Err(none));
}
