//! Random histories against a model: which id said what, under which number.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// Ids and texts; id 0 is made by the node.
    Append {
        expect: Option<u64>,
        batch: Vec<(u8, u8)>,
    },
    /// That many messages nobody cares about.
    Fill {
        count: u16,
    },
    /// All but so many are not kept any more.
    Trim {
        kept: u64,
    },
    /// All but so many have to be asked for.
    Cold {
        at_hand: u64,
    },
    Forget,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let message = (0..30u8, 0..3u8);
    prop_oneof![
        6 => (prop::option::of(0..8u64), prop::collection::vec(message, 1..6))
            .prop_map(|(expect, batch)| Step::Append { expect, batch }),
        1 => (1..900u16).prop_map(|count| Step::Fill { count }),
        1 => (0..2000u64).prop_map(|kept| Step::Trim { kept }),
        1 => (0..50u64).prop_map(|at_hand| Step::Cold { at_hand }),
        1 => Just(Step::Forget),
        1 => Just(Step::Restart),
    ]
}

/// Which id has which number and said what.
type Known = BTreeMap<u8, (u64, u8)>;

/// What a bystander expects of a batch: numbers, and whether each is new.
fn expected(known: &Known, head: u64, batch: &[(u8, u8)]) -> Option<(Vec<Place>, Known)> {
    let mut known = known.clone();
    let mut next = head;
    let mut places = Vec::new();
    for (id, text) in batch {
        match known.get(id) {
            Some((seq, said)) if *id != 0 => {
                if said != text {
                    return None;
                }
                places.push(Place::Known(*seq));
            }
            _ => {
                next += 1;
                known.insert(*id, (next, *text));
                places.push(Place::New(next));
            }
        }
    }
    Some((places, known))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_number_is_given_once_and_an_id_says_one_thing(
        steps in prop::collection::vec(step(), 0..40)
    ) {
        let mut world = World::new();
        let mut known = Known::new();
        for step in steps {
            let head = world.conversation.head();
            match step {
                Step::Append { expect, batch } => {
                    let texts = ["a", "b", "c"];
                    let ids: Vec<_> = batch.iter().map(|(id, _)| format!("m{id}")).collect();
                    let messages: Vec<_> = batch.iter().zip(&ids).map(|((id, text), name)| {
                        message((*id != 0).then_some(name), texts[usize::from(*text)])
                    }).collect();
                    let expect = expect.map(|it| head.saturating_sub(it));
                    let result = world.append(expect, &messages);
                    let Some((places, after)) = expected(&known, head, &batch) else {
                        let is_reused = matches!(
                            result,
                            Err(Refusal::IdReused { .. } | Refusal::IdRepeated { .. })
                        );
                        prop_assert!(is_reused, "{:?}", result);
                        continue;
                    };
                    let is_new = places.iter().any(|it| matches!(it, Place::New(_)));
                    match expect {
                        Some(expected) if is_new && expected != head => {
                            prop_assert_eq!(result, Err(Refusal::SeqMismatch { head, expected }));
                        }
                        _ => {
                            prop_assert_eq!(result.map(|it| it.places), Ok(places));
                            known = after;
                        }
                    }
                }
                Step::Fill { count } => {
                    let batch = vec![message(None, "x"); usize::from(count)];
                    prop_assert!(world.append(Some(head), &batch).is_ok());
                }
                Step::Trim { kept } => {
                    let start = (head + 1).saturating_sub(kept);
                    world.conversation.trimmed(start);
                    known.retain(|_, (seq, _)| *seq >= start);
                }
                Step::Cold { at_hand } => world.at_hand = (head + 1).saturating_sub(at_hand),
                Step::Forget => world.conversation.forget_older_ids(),
                Step::Restart => world.restart(),
            }
            prop_assert_eq!(world.conversation.head(), world.messages.len() as u64);
        }
    }
}
