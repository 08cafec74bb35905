//! Mutants of what several nodes replicate: consensus, and the services that are open while a node leads.

use super::mutant::{Edit, Mutant, Subject};

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

pub(super) static MUTANTS: [Mutant; 16] = [
    Mutant {
        name: "committed-by-own-sync",
        subject: &WORLDS,
        harm: "acks=all is answered after the leader's sync, and the record is lost with the leader",
        edits: &[Edit {
            file: "raft/log.rs",
            text: "            last = Some(log_id);",
            replacement: "            self.journal.commit(self.shard, block.index);\n            last = Some(log_id);",
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
                replacement: "        tokio::time::sleep(POLL).await;\n",
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
        proof: "leaders::follower_that_does_not_hear_the_leader_deposes_no_leader",
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
            file: "raft/votes.rs",
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
    Mutant {
        name: "old-copy-admitted",
        subject: &WORLDS,
        harm: "a member that comes back older votes again in a term, and loses what it acknowledged",
        edits: &[
            Edit {
                file: "link/admission.rs",
                text: "theirs.record.check(peer.life, &theirs.statement)",
                replacement: "Record::default().check(peer.life, &theirs.statement)",
            },
            Edit {
                file: "link/admission.rs",
                text: "own.record.check(self.own.life, &own.statement)",
                replacement: "Record::default().check(self.own.life, &own.statement)",
            },
        ],
        proof: "copies::old_copy_is_kept_out_by_name_and_the_others_go_on",
    },
    Mutant {
        name: "reports-not-read",
        subject: &WORLDS,
        harm: "a member that restarts does not recognise an old copy of another one",
        edits: &[Edit {
            file: "link/reports.rs",
            text: "Some(bytes) => decode_file(cluster, id, &bytes.into())?,",
            replacement: "Some(bytes) => decode_file(cluster, id, &bytes.into()).map(|_| BTreeMap::new())?,",
        }],
        proof: "copies::old_copy_and_a_node_that_is_behind_elect_no_leader",
    },
    Mutant {
        name: "old-id-after-a-wipe",
        subject: &WORLDS,
        harm: "a wiped node answers for the id that it had, and forgets its votes and blocks",
        edits: &[
            Edit {
                file: "link/hello.rs",
                text: "} else if self.to != own.id {",
                replacement: "} else if self.to == 0 {",
            },
            Edit {
                file: "link/handshake.rs",
                text: "let is_meant = answer.from.id == to || is_joining;",
                replacement: "let is_meant = answer.from.id == to || is_joining || to != 0;",
            },
        ],
        proof: "copies::wiped_node_does_not_answer_for_its_old_id",
    },
    Mutant {
        name: "wrong-clock-leads",
        subject: &WORLDS,
        harm: "a leader whose clock is ahead expires records too early",
        edits: &[Edit {
            file: "clock.rs",
            text: "Some(median) if is_apart(&median, 0) => Verdict::Off {",
            replacement: "Some(median) if is_apart(&median, 0) && own == 0 => Verdict::Off {",
        }],
        proof: "clocks::lower_clock_leads_while_the_third_member_is_down",
    },
];
