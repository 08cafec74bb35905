use std::fmt::Write as _;

use super::*;
use crate::ids::TopicId;

mod properties;

const BOUNDS: Bounds = Bounds {
    transactions_max: 3,
    participants_max: 4,
    timeout_ms_max: 1000,
};

/// Returns the partition of this number.
fn partition(index: u32) -> Participant {
    let topic = TopicId([1; 16]);
    Participant::Partition { topic, index }
}

/// Runs a script against a coordinator without transactions and compares the transcript.
///
/// | line | does |
/// |---|---|
/// | `init NAME [PRODUCER EPOCH]` | acquires the name, or continues as that producer |
/// | `add NAME PRODUCER EPOCH PARTITION…` · `group NAME PRODUCER EPOCH GROUP` | participants |
/// | `verify NAME PRODUCER EPOCH PARTITION` | |
/// | `commit NAME PRODUCER EPOCH` · `abort …` | the producer ends the transaction |
/// | `done NAME EPOCH` | its markers are durable |
/// | `at TIME` · `overdue` · `expired UNUSED` | |
/// | `show NAME` · `prepared` · `exhaust NAME` | |
#[track_caller]
fn check(script: &str, expected: &str) {
    let mut desk = Desk {
        coordinator: Coordinator::new(BOUNDS),
        log: Vec::new(),
        now_ms: 0,
        fresh: 100,
    };
    let mut out = String::new();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = desk.run(&words);
        if !answer.is_empty() {
            writeln!(out, "{line}: {answer}").unwrap();
        }
        assert_eq!(desk.restored(), desk.coordinator);
    }
    let expected: Vec<_> = expected.lines().map(str::trim).collect();
    let expected = expected.join("\n");
    assert_eq!(out.trim(), expected.trim());
}

/// A coordinator and its stream.
struct Desk {
    coordinator: Coordinator,
    log: Vec<Result<Vec<u8>, String>>,
    now_ms: i64,
    fresh: i64,
}

impl Desk {
    fn write(&mut self, transaction: Transaction) -> String {
        let mut bytes = Vec::new();
        transaction.encode(&mut bytes);
        self.log.push(Ok(bytes));
        let answer = describe_transaction(&transaction);
        self.coordinator.put(transaction);
        answer
    }

    fn restored(&self) -> Coordinator {
        let mut coordinator = Coordinator::new(self.coordinator.bounds);
        for record in &self.log {
            match record {
                Ok(bytes) => {
                    let transaction = Transaction::decode(bytes);
                    coordinator.put(transaction.expect("what was written is read"));
                }
                Err(name) => coordinator.remove(name),
            }
        }
        coordinator
    }

    fn run(&mut self, words: &[&str]) -> String {
        let number = |at: usize| words.get(at).map(|it| it.parse::<i64>().expect("a number"));
        let claim = || Claim {
            name: words[1],
            producer: ProducerId(number(2).expect("a producer")),
            epoch: number(3).expect("an epoch") as i16,
        };
        let step = match words[0] {
            "init" => {
                let expected = number(2).map(|producer| Expected {
                    producer: ProducerId(producer),
                    epoch: number(3).expect("an epoch") as i16,
                });
                return self.init(words[1], expected);
            }
            "add" => {
                let all = words[4..].iter();
                let all: Vec<_> = all
                    .map(|it| partition(it.parse().expect("a number")))
                    .collect();
                self.coordinator.add(&claim(), &all, self.now_ms)
            }
            "group" => {
                let group = [Participant::Group(words[4].to_owned())];
                self.coordinator.add(&claim(), &group, self.now_ms)
            }
            "commit" => self.coordinator.end(&claim(), Ending::Commit, self.now_ms),
            "abort" => self.coordinator.end(&claim(), Ending::Abort, self.now_ms),
            "verify" => {
                let index = number(4).expect("a partition") as u32;
                let verified = self.coordinator.verify(&claim(), &partition(index));
                return verified.map_or_else(|it| it.to_string(), |()| "yes".to_owned());
            }
            "at" => {
                self.now_ms = number(1).expect("a time");
                return String::new();
            }
            _ => return self.run_global_command(words),
        };
        match step {
            Ok(Step::Write(transaction)) => self.write(transaction),
            Ok(Step::Already) => "already".to_owned(),
            Err(denied) => denied.to_string(),
        }
    }

    fn init(&mut self, name: &str, expected: Option<Expected>) -> String {
        let fresh = ProducerId(self.fresh);
        self.fresh += 1;
        let name = name.trim_matches('-');
        match self
            .coordinator
            .init(name, 500, expected, fresh, self.now_ms)
        {
            Ok(Init::Write(transaction)) => self.write(transaction),
            Ok(Init::Abort(transaction)) => format!("later, {}", self.write(transaction)),
            Ok(Init::Already(answer)) => format!("still {}.{}", answer.producer.0, answer.epoch),
            Err(denied) => denied.to_string(),
        }
    }

    /// Runs the commands that are not about one claim.
    fn run_global_command(&mut self, words: &[&str]) -> String {
        let number = |at: usize| words[at].parse::<i64>().expect("a number");
        match words[0] {
            "done" => {
                let epoch = number(2) as i16;
                match self.coordinator.complete(words[1], epoch, self.now_ms) {
                    Some(transaction) => self.write(transaction),
                    None => "not prepared".to_owned(),
                }
            }
            "overdue" => {
                let deadlines = self.coordinator.ongoing();
                let deadlines = deadlines.map(|it| it.started_ms + i64::from(it.timeout_ms));
                let next = deadlines.min();
                let age_ms = |it: &Transaction| self.now_ms - it.started_ms;
                let all: Vec<_> = self.coordinator.overdue(self.now_ms, age_ms).collect();
                let all: Vec<_> = all.into_iter().map(|it| self.write(it)).collect();
                format!("{} (next {next:?})", all.join(", "))
            }
            "expired" => {
                let all = self.coordinator.expired(self.now_ms, number(1));
                let all: Vec<_> = all.map(str::to_owned).collect();
                for name in &all {
                    self.coordinator.remove(name);
                    self.log.push(Err(name.clone()));
                }
                all.join(", ")
            }
            "exhaust" => {
                let mut all = self.coordinator.get(words[1]).into_iter().cloned();
                let mut transaction = all.next().expect("a transaction");
                transaction.epoch = i16::MAX - 1;
                self.write(transaction)
            }
            "prepared" => {
                let all = self.coordinator.prepared();
                let all: Vec<_> = all
                    .map(|(it, ending)| format!("{} {ending:?}", it.name))
                    .collect();
                all.join(", ")
            }
            "show" => self
                .coordinator
                .get(words[1])
                .map_or("gone".to_owned(), describe_transaction),
            other => panic!("{other} is no command"),
        }
    }
}

fn describe_transaction(transaction: &Transaction) -> String {
    let participants = transaction.participants.len();
    format!(
        "{} {}.{} with {participants}",
        transaction.state.as_str(),
        transaction.producer.0,
        transaction.epoch,
    )
}

#[test]
fn a_transaction_is_begun_and_committed_and_another_follows() {
    check(
        "init a
         add a 100 0 1 2
         add a 100 0 2
         add a 100 0 3
         group a 100 0 readers
         commit a 100 0
         prepared
         done a 0
         prepared
         commit a 100 0
         abort a 100 0
         add a 100 0 1
         abort a 100 0
         done a 0
         show a",
        "init a: Empty 100.0 with 0
         add a 100 0 1 2: Ongoing 100.0 with 2
         add a 100 0 2: already
         add a 100 0 3: Ongoing 100.0 with 3
         group a 100 0 readers: Ongoing 100.0 with 4
         commit a 100 0: PrepareCommit 100.0 with 4
         prepared: a Commit
         done a 0: CompleteCommit 100.0 with 0
         commit a 100 0: already
         abort a 100 0: the transaction is CompleteCommit
         add a 100 0 1: Ongoing 100.0 with 1
         abort a 100 0: PrepareAbort 100.0 with 1
         done a 0: CompleteAbort 100.0 with 0
         show a: CompleteAbort 100.0 with 0",
    );
}

#[test]
fn requests_are_retriable_while_a_transaction_is_being_ended() {
    check(
        "init a
         add a 100 0 1
         commit a 100 0
         commit a 100 0
         abort a 100 0
         add a 100 0 2
         verify a 100 0 1
         init a
         init a 100 0
         done a 1
         done a 0",
        "init a: Empty 100.0 with 0
         add a 100 0 1: Ongoing 100.0 with 1
         commit a 100 0: PrepareCommit 100.0 with 1
         commit a 100 0: the previous transaction is still being ended
         abort a 100 0: the transaction is PrepareCommit
         add a 100 0 2: the previous transaction is still being ended
         verify a 100 0 1: the previous transaction is still being ended
         init a: the previous transaction is still being ended
         init a 100 0: the previous transaction is still being ended
         done a 1: not prepared
         done a 0: CompleteCommit 100.0 with 0",
    );
}

#[test]
fn init_with_a_transactional_id_fences_the_previous_producer() {
    check(
        "init a
         add a 100 0 1
         init a
         add a 100 0 2
         commit a 100 0
         init a
         done a 1
         init a
         add a 100 1 1
         add a 100 2 1",
        "init a: Empty 100.0 with 0
         add a 100 0 1: Ongoing 100.0 with 1
         init a: later, PrepareAbort 100.1 with 1
         add a 100 0 2: a newer producer uses the transactional id
         commit a 100 0: a newer producer uses the transactional id
         init a: the previous transaction is still being ended
         done a 1: CompleteAbort 100.1 with 0
         init a: Empty 100.2 with 0
         add a 100 1 1: a newer producer uses the transactional id
         add a 100 2 1: Ongoing 100.2 with 1",
    );
}

#[test]
fn a_repeated_init_with_the_same_epoch_bumps_it_once() {
    check(
        "init a
         init a 100 0
         init a 100 0
         init a
         init a 100 0
         init a 100 1
         init a 101 2",
        "init a: Empty 100.0 with 0
         init a 100 0: Empty 100.1 with 0
         init a 100 0: still 100.1
         init a: Empty 100.2 with 0
         init a 100 0: a newer producer uses the transactional id
         init a 100 1: a newer producer uses the transactional id
         init a 101 2: a newer producer uses the transactional id",
    );
}

#[test]
fn a_zombie_does_not_abort_the_transaction_of_its_successor() {
    check(
        "init a
         init a
         add a 100 1 1
         init a 100 0
         show a",
        "init a: Empty 100.0 with 0
         init a: Empty 100.1 with 0
         add a 100 1 1: Ongoing 100.1 with 1
         init a 100 0: a newer producer uses the transactional id
         show a: Ongoing 100.1 with 1",
    );
}

#[test]
fn a_retried_init_of_a_fenced_producer_is_refused() {
    check(
        "init a
         init a 100 0
         add a 100 1 1
         init a
         done a 2
         init a 100 0
         init a 100 1",
        "init a: Empty 100.0 with 0
         init a 100 0: Empty 100.1 with 0
         add a 100 1 1: Ongoing 100.1 with 1
         init a: later, PrepareAbort 100.2 with 1
         done a 2: CompleteAbort 100.2 with 0
         init a 100 0: a newer producer uses the transactional id
         init a 100 1: a newer producer uses the transactional id",
    );
}

#[test]
fn exhausted_epochs_give_the_producer_a_new_id() {
    check(
        "init a
         exhaust a
         add a 100 32766 1
         init a
         done a 32767
         init a
         exhaust a
         init a 102 32766
         init a 102 32766
         init a 102 5",
        "init a: Empty 100.0 with 0
         exhaust a: Empty 100.32766 with 0
         add a 100 32766 1: Ongoing 100.32766 with 1
         init a: later, PrepareAbort 100.32767 with 1
         done a 32767: CompleteAbort 100.32767 with 0
         init a: Empty 102.0 with 0
         exhaust a: Empty 102.32766 with 0
         init a 102 32766: Empty 103.0 with 0
         init a 102 32766: still 103.0
         init a 102 5: a newer producer uses the transactional id",
    );
}

#[test]
fn a_timed_out_transaction_is_aborted_with_a_bumped_epoch() {
    check(
        "init a
         init b
         at 100
         add a 100 0 1
         at 300
         add a 100 0 2
         add b 101 0 1
         at 599
         overdue
         at 600
         overdue
         commit a 100 0
         done a 1
         overdue",
        "init a: Empty 100.0 with 0
         init b: Empty 101.0 with 0
         add a 100 0 1: Ongoing 100.0 with 1
         add a 100 0 2: Ongoing 100.0 with 2
         add b 101 0 1: Ongoing 101.0 with 1
         overdue:  (next Some(600))
         overdue: PrepareAbort 100.1 with 2 (next Some(600))
         commit a 100 0: a newer producer uses the transactional id
         done a 1: CompleteAbort 100.1 with 0
         overdue:  (next Some(800))",
    );
}

#[test]
fn a_partition_outside_the_transaction_fails_verification() {
    check(
        "init a
         verify a 100 0 1
         add a 100 0 1
         verify a 100 0 1
         verify a 100 0 2
         verify a 100 1 1
         verify a 99 0 1
         verify b 100 0 1",
        "init a: Empty 100.0 with 0
         verify a 100 0 1: the transaction is Empty
         add a 100 0 1: Ongoing 100.0 with 1
         verify a 100 0 1: yes
         verify a 100 0 2: the transaction is Ongoing
         verify a 100 1 1: a newer producer uses the transactional id
         verify a 99 0 1: the transactional id is unknown, or belongs to another producer id
         verify b 100 0 1: the transactional id is unknown, or belongs to another producer id",
    );
}

#[test]
fn transactional_ids_and_participants_are_limited_and_idle_ids_expire() {
    check(
        "init -
         commit a 100 0
         init a
         init b
         init c
         init d
         add a 101 0 1 2 3 4 5
         add a 101 0 1
         commit a 101 0
         at 1000
         expired 1000
         init d
         show a
         show b",
        "init -: the transactional id is empty
         commit a 100 0: the transactional id is unknown, or belongs to another producer id
         init a: Empty 101.0 with 0
         init b: Empty 102.0 with 0
         init c: Empty 103.0 with 0
         init d: too many transactional ids (limit 3)
         add a 101 0 1 2 3 4 5: too many participants in a transaction (limit 4)
         add a 101 0 1: Ongoing 101.0 with 1
         commit a 101 0: PrepareCommit 101.0 with 1
         expired 1000: b, c
         init d: Empty 105.0 with 0
         show a: PrepareCommit 101.0 with 1
         show b: gone",
    );
}

#[test]
fn an_end_without_a_transaction_is_refused() {
    check(
        "init a
         commit a 100 0
         abort a 100 0",
        "init a: Empty 100.0 with 0
         commit a 100 0: the transaction is Empty
         abort a 100 0: the transaction is Empty",
    );
}

#[test]
fn a_transaction_timeout_outside_its_limits_is_refused() {
    let coordinator = Coordinator::new(BOUNDS);
    for timeout_ms in [0, -1, 1001] {
        let refused = coordinator.init("a", timeout_ms, None, ProducerId(1), 0);
        let max = 1000;
        assert_eq!(refused, Err(Denied::Timeout { timeout_ms, max }));
    }
    assert!(coordinator.init("a", 1000, None, ProducerId(1), 0).is_ok());
}
