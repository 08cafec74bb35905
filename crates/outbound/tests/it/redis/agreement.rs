//! The script on the server and the engine make the same decisions in every state.

use outbound::redis::script::{Call, Script, decision};
use proptest::prelude::*;
use proptest::sample::select;
use quota::{
    Bucket, Decision, Durability, Every, Factor, Hold, Kind, Limit, Mode, Pattern, Plan, Policies,
    Rules, Seed, Settled, Subject, Table, Unit, Unreachable, When, Zone, decide, look, reset,
    settle,
};
use quota_service::quota_store::{RemoteCell, RemoteCellState, RemoteDecision, RemoteTake, Verb};

use super::server::{SECOND, Server};

const SUBJECT: &str = "o/n/a";
const BEGIN_NS: u64 = 1_790_000_000 * SECOND;

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Back(u64),
    Take(u64),
    /// Settles the last take with this cost.
    Settle(u64),
    Reset,
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let amount = || {
        select(vec![
            1,
            2,
            5,
            100,
            12_345,
            999_999_999_999_999,
            quota::AMOUNT_MAX,
        ])
    };
    let period = select(vec![1, 7, SECOND, 90 * SECOND, quota::PERIOD_NS_MAX]);
    let every = select(Every::WORDS.map(|(_, every)| every).to_vec());
    prop_oneof![
        3 => (amount(), amount(), period).prop_map(|(capacity, amount, period_ns)| {
            Kind::Bucket(Bucket { capacity, amount, period_ns })
        }),
        1 => (amount(), every, -40_000..40_000).prop_map(|(amount, every, offset_s)| {
            Kind::Budget { amount, every, zone: Zone::Fixed(offset_s) }
        }),
        1 => amount().prop_map(|capacity| Kind::Slots { capacity }),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let count = || {
        prop_oneof![
            1..10_u64,
            select(vec![100, 12_000, 1 << 40, quota::AMOUNT_MAX])
        ]
    };
    let lasting = || {
        prop_oneof![
            0..1_000_u64,
            0..5 * SECOND,
            0..100 * 86_400 * SECOND,
            Just(3_000_000 * 86_400),
        ]
    };
    prop_oneof![
        4 => lasting().prop_map(Step::Pass),
        1 => lasting().prop_map(Step::Back),
        6 => count().prop_map(Step::Take),
        2 => select(vec![1, 7, 100, 12_000, 1 << 40]).prop_map(Step::Settle),
        1 => Just(Step::Reset),
    ]
}

/// The engine with its limits.
struct Engine {
    rules: Rules,
    tables: Vec<Table>,
    plan: Plan,
}

impl Engine {
    fn new(limits: &[(Kind, Mode)]) -> Self {
        let patterns = ["*", "*/*", "*/*/*"];
        let limits = limits
            .iter()
            .zip(0_usize..)
            .map(|(&(kind, mode), place)| Limit {
                name: format!("limit-{place}").into(),
                pattern: Pattern::parse(patterns[place % 3]).unwrap(),
                unit: Unit::TOKENS,
                kind,
                mode,
                durability: Durability::Async,
                factor: Factor::ONE,
                weight: 1,
                warn: Vec::new(),
                on_unreachable: Unreachable::Degrade,
            });
        let policies = Policies::default().next(limits.collect()).unwrap();
        Self {
            rules: Rules::new(Seed(7), 1).with_policies(policies, 0),
            tables: vec![Table::new(Seed(7), 1_000)],
            plan: Plan::default(),
        }
    }

    fn take(&mut self, count: u64, now_ns: u64) -> Decision {
        let subject = Subject::parse(SUBJECT).unwrap();
        let planned = self
            .rules
            .plan(&mut self.plan, &subject, &[(Unit::TOKENS, count)]);
        planned.unwrap();
        let tables = &mut self.tables.iter_mut().collect::<Vec<_>>();
        decide(&self.rules, &mut self.plan, &subject, tables, now_ns)
    }

    fn hold(&self) -> Hold {
        Hold {
            subject: SUBJECT.into(),
            principal: "".into(),
            charges: self.plan.charges(&self.rules),
            deadline_ns: u64::MAX,
        }
    }

    fn settle(&mut self, hold: &Hold, count: u64, now_ns: u64) {
        let subject = Subject::parse(SUBJECT).unwrap();
        let costs = [(Unit::TOKENS, count)];
        let settled = Settled::Cost(&costs);
        self.rules
            .plan_settle(&mut self.plan, &subject, hold, settled);
        let tables = &mut self.tables.iter_mut().collect::<Vec<_>>();
        let tables = &mut tables[..self.plan.tables().len()];
        settle(&self.rules, &mut self.plan, &subject, hold, tables, now_ns).unwrap();
    }

    fn reset(&mut self, now_ns: u64) {
        let subject = Subject::parse(SUBJECT).unwrap();
        self.rules.plan_look(&mut self.plan, &subject);
        let tables = &mut self.tables.iter_mut().collect::<Vec<_>>();
        reset(&self.rules, &mut self.plan, &subject, tables, now_ns);
    }

    /// State of its cells in the format of the store, which has no marks.
    fn cell_states(&mut self, now_ns: u64) -> Vec<RemoteCellState> {
        let subject = Subject::parse(SUBJECT).unwrap();
        self.rules.plan_look(&mut self.plan, &subject);
        let tables = &mut self.tables.iter_mut().collect::<Vec<_>>();
        look(&self.rules, &mut self.plan, &subject, tables, now_ns);
        let states = self.plan.limit_states(&self.rules, now_ns);
        let states = states.map(|state| RemoteCellState {
            have: state.have.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
            is_short: false,
            mark: 0,
            reset_after_ns: state
                .reset_ns
                .map(|reset_ns| reset_ns.saturating_sub(now_ns)),
            touched_ns: state.touched_ns,
        });
        states.collect()
    }
}

/// The script on a server, for cells of its own.
struct Remote<'a> {
    connection: &'a mut redis::Connection,
    script: Script,
    cells: Vec<RemoteCell>,
}

impl Remote<'_> {
    fn ask(
        &mut self,
        verb: Verb,
        count: impl Fn(usize, &RemoteCell) -> (i64, Option<u64>),
        now_ns: u64,
    ) -> RemoteDecision {
        let cells = self.cells.iter().enumerate().map(|(place, cell)| {
            let (count, mark) = count(place, cell);
            RemoteCell {
                count,
                mark,
                ..cell.clone()
            }
        });
        let take = RemoteTake {
            verb,
            cells: cells.collect(),
        };
        let call = Call::take(&take, Some(now_ns));
        decision(
            self.script
                .with_source(&call)
                .query(self.connection)
                .unwrap(),
        )
        .unwrap()
    }

    fn cell_states(&mut self, now_ns: u64) -> Vec<RemoteCellState> {
        let mut looked = self.ask(Verb::Look, |_, _| (0, None), now_ns);
        looked.cells.iter_mut().for_each(|cell| cell.mark = 0);
        looked.cells
    }
}

fn agree(
    connection: &mut redis::Connection,
    limits: &[(Kind, Mode)],
    steps: &[Step],
) -> Result<(), TestCaseError> {
    redis::cmd("FLUSHALL").exec(connection).unwrap();
    let mut engine = Engine::new(limits);
    let cells = (0..limits.len()).map(|place| {
        let limit = engine.rules.limit(place);
        RemoteCell {
            key: format!("{{o}}/{}", limit.name),
            kind: limit.kind,
            count: 0,
            is_enforced: limit.mode == Mode::Enforce,
            mark: None,
            lasting_ns: 20_000 * 86_400 * SECOND,
        }
    });
    let mut remote = Remote {
        connection,
        script: Script::default(),
        cells: cells.collect(),
    };
    let (mut now_ns, mut last) = (BEGIN_NS, None);
    for step in steps {
        match *step {
            Step::Pass(ns) => now_ns += ns,
            Step::Back(ns) => now_ns = now_ns.saturating_sub(ns).max(BEGIN_NS / 2),
            Step::Take(count) => {
                let there = remote.ask(Verb::Take, |_, _| (count as i64, None), now_ns);
                let here = engine.take(count, now_ns);
                check(&there, &here, now_ns)?;
                if here == Decision::Admitted {
                    last = Some((engine.hold(), count, there));
                }
            }
            Step::Settle(truly) => {
                let Some((hold, reserved, taken)) = last.take() else {
                    continue;
                };
                let change = truly as i64 - reserved as i64;
                let count = |place: usize, cell: &RemoteCell| {
                    let RemoteCellState { is_short, mark, .. } = taken.cells[place];
                    match cell.kind {
                        // A shadow limit with too little credit is not debited.
                        Kind::Slots { .. } if is_short => (0, None),
                        Kind::Slots { .. } => (-(reserved as i64), Some(mark)),
                        _ if is_short => (truly as i64, None),
                        _ => (change, Some(mark)),
                    }
                };
                remote.ask(Verb::Force, count, now_ns);
                engine.settle(&hold, truly, now_ns);
            }
            Step::Reset => {
                remote.ask(Verb::Reset, |_, _| (0, None), now_ns);
                engine.reset(now_ns);
            }
        }
        let (there, here) = (remote.cell_states(now_ns), engine.cell_states(now_ns));
        prop_assert_eq!(there, here, "{:?}", step);
    }
    Ok(())
}

fn check(there: &RemoteDecision, here: &Decision, now_ns: u64) -> Result<(), TestCaseError> {
    match here {
        Decision::Admitted => prop_assert_eq!(there.denied_by, None),
        Decision::Denied(denied) => {
            prop_assert_eq!(there.denied_by, Some(denied.index), "{:?}", here);
            let retry_after_ns = match denied.when {
                When::At(at_ns) | When::Period(at_ns) => Some(at_ns.saturating_sub(now_ns)),
                When::Release | When::Never => None,
            };
            prop_assert_eq!(there.retry_after_ns, retry_after_ns, "{:?}", here);
        }
        Decision::Refused(_) => {
            prop_assert!(there.denied_by.is_some(), "{:?}", here);
            prop_assert_eq!(there.retry_after_ns, None, "{:?}", here);
        }
        other => prop_assert!(false, "{:?}", other),
    }
    Ok(())
}

#[test]
fn the_redis_function_decides_like_the_engine() {
    let server = Server::started_with(&["--appendonly", "no"]);
    let client = redis::Client::open(server.url()).unwrap();
    let connection = std::cell::RefCell::new(client.get_connection().unwrap());
    let mode = prop_oneof![5 => Just(Mode::Enforce), 1 => Just(Mode::Shadow)];
    let limits = proptest::collection::vec((any_kind(), mode), 1..5);
    let steps = proptest::collection::vec(any_step(), 1..40);
    let config = ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let ran = runner.run(&(limits, steps), |(limits, steps)| {
        agree(&mut connection.borrow_mut(), &limits, &steps)
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
    // The unreturned amount stays in the period in which it was taken.
    let minute = Kind::Budget {
        amount: 2,
        every: Every::Minute,
        zone: Zone::UTC,
    };
    let late = [
        Step::Take(2),
        Step::Pass(40 * SECOND),
        Step::Settle(1),
        Step::Back(1),
    ];
    let agreed = agree(
        &mut connection.borrow_mut(),
        &[(minute, Mode::Enforce)],
        &late,
    );
    agreed.unwrap();
}

#[test]
fn nodes_with_different_limits_admit_at_most_the_larger_one() {
    let server = Server::started_with(&["--appendonly", "no"]);
    let client = redis::Client::open(server.url()).unwrap();
    let connection = std::cell::RefCell::new(client.get_connection().unwrap());
    let step = (any::<bool>(), 0..2 * SECOND, 1..20_i64);
    let steps = proptest::collection::vec(step, 1..40);
    let limits = (1..50_u64, 0..20_u64, 0..=100_u64, 0..=100_u64, 1..4_u64);
    let config = ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let ran = runner.run(&(limits, steps), |(limits, steps)| {
        let (capacity, amount, capacity_share, amount_share, periods) = limits;
        let bucket = |capacity, amount, period_ns| {
            Kind::Bucket(Bucket {
                capacity,
                amount,
                period_ns,
            })
        };
        let less = bucket(
            capacity * capacity_share / 100,
            amount * periods * amount_share / 100,
            periods * SECOND,
        );
        let kinds = [bucket(capacity, amount, SECOND), less];
        interleave(&mut connection.borrow_mut(), kinds, &steps, |elapsed_ns| {
            capacity * SECOND + elapsed_ns * amount
        })
    });
    if let Err(error) = ran {
        panic!("{error}");
    }
}

/// Over every interval two nodes together are admitted at most the capacity plus the refill, in
/// billionths.
fn interleave(
    connection: &mut redis::Connection,
    kinds: [Kind; 2],
    steps: &[(bool, u64, i64)],
    most: impl Fn(u64) -> u64,
) -> Result<(), TestCaseError> {
    redis::cmd("FLUSHALL").exec(connection).unwrap();
    let script = Script::default();
    let (mut now_ns, mut admitted) = (BEGIN_NS, Vec::new());
    for (is_less, wait_ns, count) in steps {
        now_ns += wait_ns;
        let cell = RemoteCell {
            key: "{o}/shared".to_owned(),
            kind: kinds[usize::from(*is_less)],
            count: *count,
            is_enforced: true,
            mark: None,
            lasting_ns: 0,
        };
        let (verb, cells) = (Verb::Take, vec![cell]);
        let call = Call::take(&RemoteTake { verb, cells }, Some(now_ns));
        let decided = decision(script.with_source(&call).query(connection).unwrap()).unwrap();
        if decided.denied_by.is_none() {
            admitted.push((now_ns, *count as u64));
        }
    }
    for first in 0..admitted.len() {
        let mut sum = 0;
        for (at_ns, count) in &admitted[first..] {
            sum += count * SECOND;
            prop_assert!(sum <= most(at_ns - admitted[first].0), "{admitted:?}");
        }
    }
    Ok(())
}
