//! Mutants of conversations, webhooks and the directory of streams.

use super::mutant::{Edit, Mutant, Subject};

static CONVERSATIONS: Subject = Subject {
    folder: "conversation-service",
    proofs: &["--package", "telpher-conversation-service", "--lib"],
};

static WEBHOOKS: Subject = Subject {
    folder: "webhooks",
    proofs: &["--package", "telpher-webhooks", "--lib"],
};

static STORE: Subject = Subject {
    folder: "store",
    proofs: &["--package", "telpher-store", "--lib"],
};

pub(super) static MUTANTS: [Mutant; 10] = [
    Mutant {
        name: "conflict-of-what-is-not-durable",
        subject: &CONVERSATIONS,
        harm: "a writer gets a conflict with a message that the next power failure loses",
        edits: &[Edit {
            file: "append.rs",
            text: "                (ticket, Err(refusal))",
            replacement: "                (None, Err(refusal))",
        }],
        proof: "tests::messages::head_conflict_is_reported_once_that_head_is_durable",
    },
    Mutant {
        name: "duplicate-before-its-original",
        subject: &CONVERSATIONS,
        harm: "a retry is acknowledged while its original may still be lost",
        edits: &[Edit {
            file: "append.rs",
            text: "            Ok(appended) => (ticket, Ok(appended)),",
            replacement: "            Ok(appended) if appended.deduplicated == appended.seqs().len() => {\n                (None, Ok(appended))\n            }\n            Ok(appended) => (ticket, Ok(appended)),",
        }],
        proof: "tests::messages::retried_append_gets_the_original_answer_once_durable",
    },
    Mutant {
        name: "number-used-twice",
        subject: &CONVERSATIONS,
        harm: "a message is acknowledged under a number that another one had before the start",
        edits: &[
            Edit {
                file: "load.rs",
                text: "Conversation::load(state, first, next, newest.as_ref())",
                replacement: "Conversation::load(state, 0, next - first, newest.as_ref())",
            },
            Edit {
                file: "write.rs",
                text: "guard.append(stream, Some(offset), record::MESSAGE, record)",
                replacement: "guard.append(stream, None, record::MESSAGE, record)",
            },
        ],
        proof: "tests::faults::sequence_numbers_of_trimmed_messages_are_not_reused_after_restart",
    },
    Mutant {
        name: "draft-in-the-way-of-an-erase",
        subject: &CONVERSATIONS,
        harm: "streamed data of an erased conversation stays on disk as long as others stream",
        edits: &[Edit {
            file: "draft_log.rs",
            text: "now_ns.saturating_sub(since_ns) >= CARRY_AFTER_NS",
            replacement: "now_ns.saturating_sub(since_ns) > u64::MAX - CARRY_AFTER_NS",
        }],
        proof: "tests::erasure::erased_data_leaves_the_disk_while_other_drafts_are_open",
    },
    Mutant {
        name: "retraction-before-it-is-durable",
        subject: &CONVERSATIONS,
        harm: "a reader misses messages that are there again after the next power failure",
        edits: &[Edit {
            file: "read.rs",
            text: "retracted: room.engine.retracted_at(head),",
            replacement: "retracted: room.engine.state().retracted.clone(),",
        }],
        proof: "tests::retract::retraction_is_shown_once_it_is_durable",
    },
    Mutant {
        name: "clear-before-it-is-durable",
        subject: &CONVERSATIONS,
        harm: "a watcher is told of a clear that the next power failure undoes",
        edits: &[Edit {
            file: "watch.rs",
            text: "            if matches!(room.ticket.map(notify), None | Some(Status::Durable)) {",
            replacement: "            if room.ticket.map(notify).is_none_or(|_| true) {",
        }],
        proof: "tests::erasure::watchers_are_told_of_a_clear_once_it_is_durable",
    },
    Mutant {
        name: "mark-before-the-answer",
        subject: &WEBHOOKS,
        harm: "a message counts as answered when its agent is called, and a crash leaves it without an answer",
        edits: &[Edit {
            file: "tend.rs",
            text: "        let (_, name, _) = self.store.named(StreamId(conversation))?;",
            replacement: "        let _ = self.pass_over(&agent, conversation, call.to_seq);\n        let (_, name, _) = self.store.named(StreamId(conversation))?;",
        }],
        proof: "tests::read_mark_moves_with_the_durable_answer_across_crashes",
    },
    Mutant {
        name: "old-names-trimmed-before-the-copy",
        subject: &STORE,
        harm: "a power failure during the upgrade of a data directory loses the names of its streams",
        edits: &[Edit {
            file: "directory/upgrade.rs",
            text: "        wait(ticket)?;\n        entries = &entries[appended..];",
            replacement: "        entries = &entries[appended..];",
        }],
        proof: "directory::upgrade::tests::upgrade_is_completed_after_a_crash_at_any_disk_call",
    },
    Mutant {
        name: "number-of-another-shard",
        subject: &STORE,
        harm: "two streams have the same number, so a position of one is taken for one of the other",
        edits: &[Edit {
            file: "directory/table.rs",
            text: "        StreamId(lowest + missing)",
            replacement: "        StreamId(lowest + missing * 0)",
        }],
        proof: "directory::table::tests::any_order_of_creations_gives_unique_numbers",
    },
    Mutant {
        name: "names-of-an-earlier-reign",
        subject: &STORE,
        harm: "a leader finds streams that were cut, and cannot create any",
        edits: &[Edit {
            file: "directory/table.rs",
            text: "        let is_longer = entries.begins_with(known);",
            replacement: "        let is_longer = entries.begins_with(known);\n        if !is_longer {\n            return;\n        }",
        }],
        proof: "store::tests::names_that_were_cut_are_forgotten_when_a_reign_begins",
    },
];
