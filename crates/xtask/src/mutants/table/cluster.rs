//! Mutants of what several nodes replicate: consensus, and the services that are open while a node leads.

use super::{Edit, Mutant, Subject};

static WORLDS: Subject = Subject {
    folder: "cluster",
    proofs: &["--package", "telpher-cluster", "--test", "it"],
};

static ADAPTER: Subject = Subject {
    folder: "cluster",
    proofs: &["--package", "telpher-cluster", "--lib"],
};

static JOURNAL: Subject = Subject {
    folder: "journal",
    proofs: &["--package", "telpher-journal", "--lib"],
};

static TOPICS: Subject = Subject {
    folder: "topic-service",
    proofs: &["--package", "telpher-topic-service", "--lib"],
};

const CRASHES: &str = "raft::tests::crashes::log_is_whole_after_a_crash_between_any_two_disk_calls";

pub(super) static MUTANTS: [Mutant; 12] = [
    Mutant {
        name: "committed-by-own-sync",
        subject: &WORLDS,
        harm: "acks=all is answered after the leader's sync, and the record is lost with the leader",
        edits: &[Edit {
            file: "raft/log.rs",
            text: "            last = Some(block.index);",
            replacement: "            self.journal.commit(self.shard, block.index);\n            last = Some(block.index);",
        }],
        proof: "agreement::leader_without_followers_acks_nothing",
    },
    Mutant {
        name: "next-block-after-a-refusal",
        subject: &WORLDS,
        harm: "a block is taken although the one that was decided before it was refused",
        edits: &[Edit {
            file: "proposer.rs",
            text: "offered = offered.filter(|block| !has_taken(log, block.index));",
            replacement: "offered = offered.filter(|block| {\n            !has_taken(log, block.index) && log.refused.load(Ordering::Relaxed) == 0\n        });",
        }],
        proof: "leaders::blocks_that_are_refused_after_a_lease_are_taken_in_their_order",
    },
    Mutant {
        name: "services-of-a-reign-that-goes-on",
        subject: &WORLDS,
        harm: "services are opened without what earlier ones have decided in the same reign",
        edits: &[
            Edit {
                file: "leadership.rs",
                text: "        self.node.renew(&self.led).await;\n",
                replacement: "",
            },
            Edit {
                file: "leadership.rs",
                text: ".all(|(new, old)| new != old)",
                replacement: ".all(|(new, old)| new != old || new == old)",
            },
        ],
        proof: "leaders::services_that_are_opened_again_in_one_term_see_all_that_was_decided",
    },
    Mutant {
        name: "leader-restored",
        subject: &WORLDS,
        harm: "a leader that is back within its lease opens services without the newest records",
        edits: &[Edit {
            file: "node.rs",
            text: "enable_leader_restore: Some(false),",
            replacement: "enable_leader_restore: Some(true),",
        }],
        proof: "leaders::leader_that_is_back_within_its_lease_has_all_it_decided",
    },
    Mutant {
        name: "pre-vote-granted",
        subject: &WORLDS,
        harm: "a follower that does not hear the leader deposes it, although the others do",
        edits: &[Edit {
            file: "link/serve.rs",
            text: "                    vote_answer(raft.pre_vote(request).await.ok()?)",
            replacement: "                    let mut answer = raft.pre_vote(request).await.ok()?;\n                    answer.vote_granted = true;\n                    vote_answer(answer)",
        }],
        proof: "leaders::follower_that_does_not_hear_the_leader_deposes_nobody",
    },
    Mutant {
        name: "another-id-at-the-address",
        subject: &WORLDS,
        harm: "an empty node at the address of a member counts as a disk that has its records",
        edits: &[
            Edit {
                file: "link/hello.rs",
                text: "} else if self.to != own.id {",
                replacement: "} else if self.to != own.id && self.to == 0 {",
            },
            Edit {
                file: "link/handshake.rs",
                text: "if !is_meant || (answer.to",
                replacement: "if (!is_meant && to == 0) || (answer.to",
            },
        ],
        proof: "members::empty_node_at_the_address_of_a_member_counts_for_nothing",
    },
    Mutant {
        name: "voted-before-its-sync",
        subject: &ADAPTER,
        harm: "a node votes twice in a term, before and after a power failure",
        edits: &[Edit {
            file: "raft/store.rs",
            text: "    match decided(|waker| journal.notify_vote(ticket, waker)).await {\n        Status::Durable => Ok(()),",
            replacement: "    match decided(|waker| { let _ = journal.notify_vote(ticket, waker); Status::Durable }).await {\n        Status::Durable => Ok(()),",
        }],
        proof: CRASHES,
    },
    Mutant {
        name: "flushed-before-its-sync",
        subject: &ADAPTER,
        harm: "a follower acknowledges a block that a power failure takes from it",
        edits: &[Edit {
            file: "raft/flushes.rs",
            text: "            if status == Status::Pending {\n                break;\n            }\n",
            replacement: "            let status = match status {\n                Status::Pending => Status::Durable,\n                status => status,\n            };\n",
        }],
        proof: CRASHES,
    },
    Mutant {
        name: "uncommitted-shown",
        subject: &JOURNAL,
        harm: "a consumer reads a record that another leader's record replaces",
        edits: &[Edit {
            file: "read.rs",
            text: "if run.index > state.committed() || !is_wanted {",
            replacement: "if !is_wanted {",
        }],
        proof: "tests::reading::cut_voids_uncommitted_blocks_and_their_indexes_are_reused",
    },
    Mutant {
        name: "engine-of-an-ended-reign",
        subject: &JOURNAL,
        harm: "services write what they decided without the records of the leaders in between",
        edits: &[Edit {
            file: "guard.rs",
            text: "Some(reign) if self.reign.is_none_or(|it| it == reign) => Ok(()),",
            replacement: "Some(reign) if self.reign.is_none_or(|it| it <= reign) => Ok(()),",
        }],
        proof: "tests::log::view_appends_in_its_reigns_only",
    },
    Mutant {
        name: "group-answer-before-commit",
        subject: &TOPICS,
        harm: "an acknowledged offset of a group is lost with the leader",
        edits: &[Edit {
            file: "groups/requests.rs",
            text: "Pending::decided_after(self.state.durable(ticket), answer),",
            replacement: "Pending::decided_after(self.state.durable(ticket.filter(|_| false)), answer),",
        }],
        proof: "tests::consumer_groups::group_answers_wait_until_the_group_state_is_durable",
    },
    Mutant {
        name: "producer-id-before-commit",
        subject: &TOPICS,
        harm: "two producers get one id, and the records of one count as repeated",
        edits: &[Edit {
            file: "transactions.rs",
            text: "            answer => Pending::decided_after(self.state.durable(coordinating.last), answer),\n        }\n    }\n\n    fn init(",
            replacement: "            answer => Pending::known(answer),\n        }\n    }\n\n    fn init(",
        }],
        proof: "tests::transactional_writes::producer_id_is_answered_once_its_reservation_is_durable",
    },
];
