//! Mutants of replication.

use super::mutant::{Edit, Mutant, Subject};

static CLUSTER: Subject = Subject {
    folder: "cluster",
    proofs: &["--package", "telpher-cluster", "--test", "it"],
};

pub(super) static MUTANTS: [Mutant; 4] = [
    Mutant {
        name: "old-copy-admitted",
        subject: &CLUSTER,
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
        subject: &CLUSTER,
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
        subject: &CLUSTER,
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
        subject: &CLUSTER,
        harm: "a leader whose clock is ahead expires records too early",
        edits: &[Edit {
            file: "clock.rs",
            text: "Some(median) if is_apart(&median, 0) => Verdict::Off {",
            replacement: "Some(median) if is_apart(&median, 0) && own == 0 => Verdict::Off {",
        }],
        proof: "clocks::lower_clock_leads_while_the_third_member_is_down",
    },
];
