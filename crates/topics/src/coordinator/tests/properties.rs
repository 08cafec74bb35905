//! Producers that acquire each other's names, continue after errors, and exceed timeouts.

use proptest::prelude::*;

use super::*;

const PRODUCERS: usize = 3;

#[derive(Clone, Debug)]
enum Action {
    /// Acquires the name.
    Init(usize),
    /// Continues with its present id and epoch.
    Bump(usize),
    Add(usize, u32),
    End(usize, bool),
    /// The markers are durable.
    Done,
    Pass(i64),
}

fn action() -> impl Strategy<Value = Action> {
    let producer = || 0..PRODUCERS;
    prop_oneof![
        2 => producer().prop_map(Action::Init),
        1 => producer().prop_map(Action::Bump),
        4 => (producer(), 0..3_u32).prop_map(|(it, index)| Action::Add(it, index)),
        3 => (producer(), any::<bool>()).prop_map(|(it, commits)| Action::End(it, commits)),
        4 => Just(Action::Done),
        2 => (0..300_i64).prop_map(Action::Pass),
    ]
}

const NAME: &str = "a";

#[derive(Default)]
struct Model {
    /// The identity that each producer believes to have.
    held: [Option<Answer>; PRODUCERS],
    /// The promised end of the transaction, while it is prepared.
    promised: Option<Ending>,
    newest: Option<Answer>,
}

fn write(desk: &mut Desk, model: &mut Model, transaction: Transaction) {
    let answer = Answer {
        producer: transaction.producer,
        epoch: transaction.epoch,
    };
    let newest = model.newest.replace(answer);
    let rises = newest.is_none_or(|it| (it.producer, it.epoch) <= (answer.producer, answer.epoch));
    assert!(rises, "{newest:?} then {answer:?}");
    if let Some(promised) = model.promised {
        let kept = match promised {
            Ending::Commit => State::CompleteCommit,
            Ending::Abort => State::CompleteAbort,
        };
        assert_eq!(
            transaction.state, kept,
            "a prepared transaction ends as it was prepared"
        );
    }
    model.promised = transaction.state.ending();
    desk.write(transaction);
}

fn run(desk: &mut Desk, model: &mut Model, action: &Action) {
    let claim = |who: usize, held: &[Option<Answer>]| {
        held[who].map(|it| Claim {
            name: NAME,
            producer: it.producer,
            epoch: it.epoch,
        })
    };
    match *action {
        Action::Init(who) | Action::Bump(who) => {
            let is_bump = matches!(action, Action::Bump(_));
            let expected = model.held[who].filter(|_| is_bump).map(|it| Expected {
                producer: it.producer,
                epoch: it.epoch,
            });
            let fresh = ProducerId(desk.fresh);
            desk.fresh += 1;
            match desk
                .coordinator
                .init(NAME, 500, expected, fresh, desk.now_ms)
            {
                Ok(Init::Write(transaction)) => {
                    let (producer, epoch) = (transaction.producer, transaction.epoch);
                    let answer = Answer { producer, epoch };
                    assert!(!model.held.contains(&Some(answer)), "two have {answer:?}");
                    model.held[who] = Some(answer);
                    write(desk, model, transaction);
                }
                Ok(Init::Abort(transaction)) => write(desk, model, transaction),
                Ok(Init::Already(answer)) => {
                    let others = (0..PRODUCERS).filter(|it| *it != who);
                    let mut others = others.map(|it| model.held[it]);
                    assert!(!others.any(|it| it == Some(answer)), "two have {answer:?}");
                    model.held[who] = Some(answer);
                }
                Err(_) => {}
            }
        }
        Action::Add(who, index) => {
            let Some(claim) = claim(who, &model.held) else {
                return;
            };
            let added = desk
                .coordinator
                .add(&claim, &[partition(index)], desk.now_ms);
            if let Ok(Step::Write(transaction)) = added {
                assert_eq!(model.held[who], model.newest, "a fenced producer goes on");
                write(desk, model, transaction);
            }
        }
        Action::End(who, commits) => {
            let Some(claim) = claim(who, &model.held) else {
                return;
            };
            let ending = if commits {
                Ending::Commit
            } else {
                Ending::Abort
            };
            if let Ok(step) = desk.coordinator.end(&claim, ending, desk.now_ms) {
                assert_eq!(model.held[who], model.newest, "a fenced producer ends");
                if let Step::Write(transaction) = step {
                    write(desk, model, transaction);
                }
            }
        }
        Action::Done => {
            let transaction = desk.coordinator.get(NAME).map_or(0, |it| it.epoch);
            if let Some(it) = desk.coordinator.complete(NAME, transaction, desk.now_ms) {
                write(desk, model, it);
            }
        }
        Action::Pass(ms) => {
            desk.now_ms += ms;
            let now_ms = desk.now_ms;
            let age_ms = |it: &Transaction| now_ms - it.started_ms;
            let overdue: Vec<_> = desk.coordinator.overdue(now_ms, age_ms).collect();
            for transaction in overdue {
                write(desk, model, transaction);
            }
            let mut ongoing = desk.coordinator.ongoing();
            assert!(ongoing.all(|it| age_ms(it) < i64::from(it.timeout_ms)));
        }
    }
}

proptest! {
    #[test]
    fn only_one_producer_is_admitted_and_every_prepared_end_survives(
        all in prop::collection::vec(action(), 1..120),
    ) {
        let mut desk = Desk {
            coordinator: Coordinator::new(BOUNDS),
            log: Vec::new(),
            now_ms: 0,
            fresh: 100,
        };
        let mut model = Model::default();
        for it in &all {
            run(&mut desk, &mut model, it);
            prop_assert_eq!(desk.restored(), desk.coordinator.clone());
        }
    }
}
