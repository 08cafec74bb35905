//! Several clients, a shell that loses unsynced records, and any order of events.

mod shell;

use proptest::prelude::*;

use super::*;
use shell::Shell;

const CLIENTS: usize = 4;

#[derive(Clone, Debug)]
enum Event {
    /// A client does the next usual step.
    Act {
        client: usize,
    },
    /// A client commits, in its generation or in an earlier one.
    Commit {
        client: usize,
        partition: u32,
        ago: i32,
    },
    /// A commit in a transaction.
    CommitInTransaction {
        client: usize,
        partition: u32,
        producer: ProducerId,
    },
    End {
        producer: ProducerId,
        committed: bool,
    },
    /// A commit of a client that is not a member.
    CommitAsNobody {
        partition: u32,
    },
    Leave {
        client: usize,
    },
    /// A client is killed, and is started again at its next step.
    Kill {
        client: usize,
    },
    /// A client loses its connection: it does not get its answer, and may ask again.
    Disconnect {
        client: usize,
    },
    Elapse {
        ms: u64,
    },
    /// All clients continue without faults for a while.
    Settle,
    /// All records are durable, and the answers that wait for them are sent.
    Flush,
    /// The node is killed and restarted.
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    let client = || 0..CLIENTS;
    let partition = || 0..2_u32;
    let producer = || (1..3_i64).prop_map(ProducerId);
    prop_oneof![
        20 => client().prop_map(|client| Event::Act { client }),
        3 => (client(), partition(), 0..2_i32).prop_map(|(client, partition, ago)| Event::Commit {
            client,
            partition,
            ago,
        }),
        2 => (client(), partition(), producer()).prop_map(|(client, partition, producer)| {
            Event::CommitInTransaction { client, partition, producer }
        }),
        3 => (producer(), any::<bool>())
            .prop_map(|(producer, committed)| Event::End { producer, committed }),
        1 => partition().prop_map(|partition| Event::CommitAsNobody { partition }),
        1 => client().prop_map(|client| Event::Leave { client }),
        1 => client().prop_map(|client| Event::Kill { client }),
        3 => client().prop_map(|client| Event::Disconnect { client }),
        1 => Just(Event::Settle),
        3 => (0..2_000_u64).prop_map(|ms| Event::Elapse { ms }),
        1 => (0..20_000_u64).prop_map(|ms| Event::Elapse { ms }),
        10 => Just(Event::Flush),
        1 => Just(Event::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_keep_the_invariants_and_clients_converge_on_one_generation(
        events in proptest::collection::vec(event(), 1..150),
    ) {
        let mut shell = Shell::new();
        for event in &events {
            shell.run(event);
        }
        shell.check_records();
        for _ in 0..60 {
            for client in 0..CLIENTS {
                shell.run(&Event::Act { client });
            }
            shell.run(&Event::Flush);
            shell.run(&Event::Elapse { ms: 1_000 });
        }
        let described = shell.groups.describe("g").expect("there are members");
        prop_assert_eq!(described.state, State::Stable);
        prop_assert_eq!(described.members.len(), CLIENTS);
        for client in &shell.clients {
            prop_assert!(client.has_assignment, "{:?}", client);
            prop_assert_eq!(client.generation, shell.generation);
        }
    }
}
