//! Properties of windows over random conversations, message by message.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::Strategy as Take;
use super::*;

/// A turn whose calls are answered in any order, not at all, or much later.
fn turn() -> impl Strategy<Value = Vec<ScriptedMessage>> {
    let size = prop_oneof![0..50u32, 200..3000u32];
    let call = (1..6u64, size, any::<bool>());
    let calls = prop::collection::vec(call, 0..4);
    (1..30u32, prop::collection::vec((calls, 0..60u32), 0..3)).prop_map(|(asked, answers)| {
        let mut turn = vec![ScriptedMessage {
            role: "user",
            tokens: asked,
            facts: Vec::new(),
        }];
        for (calls, tokens) in answers {
            let mut facts = vec![fact("text*100"), fact("think*400")];
            let mut seen = BTreeSet::new();
            let calls: Vec<_> = calls.into_iter().filter(|it| seen.insert(it.0)).collect();
            facts.extend(calls.iter().map(|(call, size, _)| PartFact {
                kind: PartKind::ToolCall,
                size: *size,
                call: *call,
                stub: Stub::new(*size as usize, *size as usize / 9),
            }));
            turn.push(ScriptedMessage {
                role: "assistant",
                tokens,
                facts,
            });
            for (call, size, is_reversed) in calls {
                let result = ScriptedMessage {
                    role: "tool",
                    tokens: tokens.min(5) + size / 40,
                    facts: vec![PartFact {
                        kind: PartKind::ToolResult,
                        size,
                        call,
                        stub: Stub::new(size as usize, 50),
                    }],
                };
                match is_reversed {
                    true => turn.insert(turn.len().min(3), result),
                    false => turn.push(result),
                }
            }
        }
        turn
    })
}

/// A turn whose calls are answered in the right place.
fn valid_turns() -> impl Strategy<Value = Vec<ScriptedMessage>> {
    prop::collection::vec(turn(), 1..25).prop_map(|turns| {
        let mut calls = BTreeSet::new();
        let mut all: Vec<ScriptedMessage> = turns.into_iter().flatten().collect();
        let mut next = 100;
        for scripted in &mut all {
            for fact in &mut scripted.facts {
                // A part without a counterpart becomes a text.
                match fact.kind {
                    PartKind::ToolCall => {
                        next += 1;
                        fact.call = next;
                        fact.kind = PartKind::ToolPair;
                    }
                    PartKind::ToolResult => fact.kind = PartKind::Data,
                    _ => {}
                }
                calls.insert(fact.call);
            }
        }
        all
    })
}

/// An arbitrary turn: with late, missing or repeated results, and reused ids.
fn arbitrary_turns() -> impl Strategy<Value = Vec<ScriptedMessage>> {
    let extra = (any::<prop::sample::Index>(), 1..6u64, any::<bool>());
    let turns = prop::collection::vec(turn(), 1..20);
    (turns, prop::collection::vec(extra, 0..6)).prop_map(|(turns, extras)| {
        let mut all: Vec<ScriptedMessage> = turns.into_iter().flatten().collect();
        for (at, call, is_call) in extras {
            let index = at.index(all.len());
            let kind = match is_call {
                true => PartKind::ToolCall,
                false => PartKind::ToolResult,
            };
            let size = 300;
            let stub = Stub::new(size as usize, 100);
            all[index].facts.push(PartFact {
                kind,
                size,
                call,
                stub,
            });
        }
        for (index, scripted) in all.iter_mut().enumerate() {
            if index % 17 == 3 {
                scripted.role = "system";
            }
        }
        all
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let strategy = prop_oneof![
        6 => Just(Take::Budget),
        1 => (0..30u32).prop_map(|count| Take::LastN { count }),
        1 => (0..30u32).prop_map(|count| Take::SkipParts { count }),
        1 => Just(Take::Manual),
    ];
    let keep = prop_oneof![Just(vec![]), Just(vec!["system".to_owned()])];
    let numbers = (20..2000u32, 0..20u32, 0..=500u16, 0..5u32, 0..512u16);
    (strategy, keep, numbers).prop_map(
        |(strategy, keep, (budget, reserve, step_permille, keep_tool_turns, kinds))| Policy {
            strategy,
            budget,
            reserve: reserve.min(budget - 1),
            keep,
            drop_first: Kinds::from_bits(kinds).unwrap(),
            keep_tool_turns,
            step_permille,
        },
    )
}

fn starts_turn(scripted: &ScriptedMessage) -> bool {
    scripted.role == "user"
}

/// Returns the parts shown, in the messages from the window's beginning on.
fn shown_parts<'a>(
    cut: &'a Cut,
    scripted: &'a [ScriptedMessage],
) -> impl Iterator<Item = (u64, PartFact)> + 'a {
    cut.messages.iter().flat_map(move |message| {
        let facts = scripted[message.seq as usize - 1].facts.iter().enumerate();
        facts.filter_map(move |(index, fact)| {
            let omit = (index as u16, Treatment::Omit);
            (!message.treated.contains(&omit)).then_some((message.seq, *fact))
        })
    })
}

/// Checks that every call is shown with a result before its id is reused, and every result with a
/// call.
fn unpaired_call(cut: &Cut, scripted: &[ScriptedMessage]) -> Option<String> {
    let mut calls: Vec<(u64, bool)> = Vec::new();
    for (seq, fact) in shown_parts(cut, scripted) {
        let known = calls.iter().rposition(|(call, _)| *call == fact.call);
        match fact.kind {
            PartKind::ToolCall => {
                if let Some((_, false)) = known.map(|it| calls[it]) {
                    return Some(format!("the call before {seq} has no result"));
                }
                calls.push((fact.call, false));
            }
            PartKind::ToolResult => match known {
                Some(known) => calls[known].1 = true,
                None => return Some(format!("the result in {seq} has no call")),
            },
            _ => {}
        }
    }
    let open = calls.iter().find(|(_, is_answered)| !is_answered);
    open.map(|(call, _)| format!("call {call} has no result"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn window_fits_its_budget_with_whole_turns_and_paired_calls(
        scripted in arbitrary_turns(),
        policy in policy(),
        start in 1..10u64,
        summary in prop::option::of((0..20u64, 0..30u32)),
    ) {
        prop_assert_eq!(policy.check(), Ok(()));
        let all = records(&scripted);
        for head in start..=scripted.len() as u64 {
            let records = &all[..head as usize];
            let summary = summary.map(|(through_seq, tokens)| SummaryFact {
                through_seq: through_seq.min(head),
                tokens,
                is_estimated: true,
            });
            let (cut, _) = window(&policy, records, start, summary);
            prop_assert_eq!(&cut, &window(&policy, records, start, summary).0);
            let limit = u64::from(policy.budget - policy.reserve);
            let cut = match cut {
                Ok(cut) => cut,
                Err(WindowError::OverBudget { from_seq, to_seq, tokens, .. }) => {
                    prop_assert!(tokens > limit && from_seq <= to_seq && to_seq == head);
                    continue;
                }
                Err(WindowError::FixedOverBudget { tokens, .. }) => {
                    prop_assert!(tokens > limit);
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            prop_assert!(cut.tokens <= limit, "{} of {}", cut.tokens, limit);
            prop_assert_eq!(unpaired_call(&cut, &scripted), None);
            let floor = summary.map_or(0, |it| it.through_seq + 1).max(start);
            let is_whole = cut.from_seq == floor
                || cut.from_seq == head + 1
                || starts_turn(&scripted[cut.from_seq as usize - 1]);
            prop_assert!(is_whole, "{:?}", cut);
            let seqs: Vec<u64> = cut.messages.iter().map(|it| it.seq).collect();
            prop_assert!(seqs.is_sorted_by(|a, b| a < b));
            for seq in &seqs {
                let is_instruction = scripted[*seq as usize - 1].role == "system";
                prop_assert!((start..=head).contains(seq));
                prop_assert!(*seq >= cut.from_seq || is_instruction);
            }
            // Messages that are not shown have no showable part, and every instruction is shown.
            for seq in start..=head {
                let message = &scripted[seq as usize - 1];
                let is_shown = seqs.contains(&seq);
                if message.role == "system" && !policy.keep.is_empty() {
                    prop_assert!(is_shown || !message.facts.is_empty(), "{} is missing", seq);
                } else if seq >= cut.from_seq && !is_shown {
                    prop_assert!(!message.facts.is_empty(), "{} is missing", seq);
                }
            }
            let plain = cut.messages.iter().all(|it| it.treated.is_empty());
            if plain {
                let tokens = seqs.iter().map(|seq| u64::from(scripted[*seq as usize - 1].tokens));
                let fixed = summary.map_or(0, |it| u64::from(it.tokens));
                prop_assert_eq!(cut.tokens, tokens.sum::<u64>() + fixed);
            }
        }
    }

    #[test]
    fn window_start_moves_only_when_the_budget_is_exceeded(
        scripted in valid_turns(),
        budget in 100..3000u32,
        step_permille in 10..=500u16,
        strategy in prop_oneof![
            Just(Take::Budget),
            (8..40u32).prop_map(|count| Take::LastN { count }),
        ],
    ) {
        let policy = Policy { strategy, budget, step_permille, ..Policy::default() };
        let all = records(&scripted);
        let mut before: Option<Cut> = None;
        let step = u64::from(budget) * u64::from(step_permille) / 1000;
        let turns = scripted.chunk_by(|_, next| !starts_turn(next));
        let turn_max = turns.map(|it| it.iter().map(|it| u64::from(it.tokens)).sum::<u64>()).max();
        for head in 1..=scripted.len() {
            let Ok(cut) = window(&policy, &all[..head], 1, None).0 else {
                before = None;
                continue;
            };
            let added = u64::from(scripted[head - 1].tokens);
            if let Some(before) = &before {
                let is_over = before.tokens + added > u64::from(budget);
                let is_long = match strategy {
                    Take::LastN { count } => before.messages.len() as u64 >= u64::from(count),
                    _ => false,
                };
                let is_same = cut.from_seq == before.from_seq;
                prop_assert!(is_same || is_over || is_long, "{:?} {:?}", before, cut);
                if is_same {
                    prop_assert_eq!(&cut.messages[..before.messages.len()], &before.messages[..]);
                }
            }
            // The window must not achieve that by showing almost nothing.
            if cut.from_seq > 1 && strategy == Take::Budget {
                let least = u64::from(budget).saturating_sub(2 * step + turn_max.unwrap());
                prop_assert!(cut.tokens >= least, "{} of {}", cut.tokens, budget);
            }
            before = Some(cut);
        }
    }

    #[test]
    fn with_stubs_a_prefix_changes_a_few_times_for_each_step(
        scripted in valid_turns(),
        budget in 300..3000u32,
        step_permille in 50..=400u16,
        keep_tool_turns in 0..4u32,
    ) {
        let policy = Policy {
            step_permille,
            ..dropping(budget, keep_tool_turns, &[PartKind::ToolPair, PartKind::Data, PartKind::Reasoning])
        };
        let all = records(&scripted);
        let step = (u64::from(budget) * u64::from(step_permille) / 1000).max(1);
        let mut before: Option<Cut> = None;
        let mut changes = 0;
        for head in 1..=scripted.len() {
            let Ok(cut) = window(&policy, &all[..head], 1, None).0 else {
                before = None;
                continue;
            };
            if let Some(before) = before {
                changes += u64::from(!cut.messages.starts_with(&before.messages));
            }
            before = Some(cut);
        }
        let tokens: u64 = scripted.iter().map(|it| u64::from(it.tokens)).sum();
        prop_assert!(changes <= 4 * (tokens / step + 1), "{} in {}/{}", changes, tokens, step);
    }

    #[test]
    fn a_window_never_begins_earlier_while_its_conversation_grows(
        scripted in arbitrary_turns(),
        policy in policy(),
    ) {
        let all = records(&scripted);
        let mut before = 0;
        for head in 1..=scripted.len() {
            if let Ok(cut) = window(&policy, &all[..head], 1, None).0 {
                prop_assert!(cut.from_seq >= before, "{} after {}", cut.from_seq, before);
                before = cut.from_seq;
            }
        }
    }

    #[test]
    fn the_number_of_examined_messages_does_not_change_the_window(
        scripted in valid_turns(),
        policy in policy(),
    ) {
        // Marks depend on nearby messages only.
        let all = records(&scripted);
        let (cut, looked) = window(&policy, &all, 1, None);
        let Ok(cut) = cut else { return Ok(()) };
        let first = scripted.len() - looked.min(scripted.len()) + 1;
        prop_assert!(cut.from_seq >= first as u64);
        let mut again = all.clone();
        for record in &mut again[..first - 1] {
            *record = vec![0xff; 3];
        }
        let (other, _) = window(&policy, &again, 1, None);
        prop_assert_eq!(other, Ok(cut));
    }
}
