//! Mutants of the journal.

use super::mutant::{Edit, Mutant, Subject};

static JOURNAL: Subject = Subject {
    folder: "journal",
    proofs: &["--package", "telpher-journal", "--test", "proof"],
};

static UNITS: Subject = Subject {
    folder: "journal",
    proofs: &["--package", "telpher-journal", "--lib"],
};

const CRASH: &str = "crash::acknowledged_records_survive_a_crash";
const FAULTS: &str = "faults::line_makes_no_disk_call_after_its_first_failure";
const DAMAGE: &str = "damage::a_flipped_bit_is_named_and_never_served";

const FOLLOWER: &str = "replication::a_follower_has_the_streams_of_its_leader_after_crashes";
const OFFSET_GAP: &str = "replication::decided_block_with_a_gap_in_offsets_is_refused";

const FAILED_SYNC: &str = "faults::recovery_syncs_bytes_of_a_failed_sync_before_it_serves_them";
const ERASED: &str = "erasure::erased_bytes_are_nowhere_when_no_erase_is_pending";
const ERASED_SHARED: &str = "erasure::erase_waits_until_a_segment_shared_by_shards_is_removed";
const ERASED_EARLIER: &str =
    "erasure::erase_leaves_no_bytes_of_an_earlier_segment_in_a_retained_one";

pub(super) static MUTANTS: [Mutant; 28] = [
    Mutant {
        name: "ack-before-sync",
        subject: &JOURNAL,
        harm: "an ack no longer means that the data is on disk",
        edits: &[Edit {
            file: "line.rs",
            text: "        self.sync_active()?;\n        self.publish();\n",
            replacement: "        self.publish();\n        self.sync_active()?;\n",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "acked-by-an-earlier-sync",
        subject: &JOURNAL,
        harm: "a block that was written during a sync is acked by it",
        edits: &[Edit {
            file: "line.rs",
            text: "        let ahead = std::mem::replace(&mut self.written, batch);\n",
            replacement: "        let during = std::mem::replace(&mut self.written, batch);\n        self.written.extend(during);\n        let ahead = Vec::new();\n",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "hint-of-an-earlier-sync",
        subject: &UNITS,
        harm: "blocks that were written during a sync are declared durable by it, so a torn one looks like lost data",
        edits: &[Edit {
            file: "line.rs",
            text: "self.note_sync(end);",
            replacement: "self.note_sync(self.end);",
        }],
        proof: "tests::overlapping::block_that_is_written_during_a_sync_is_acked_by_the_next",
    },
    Mutant {
        name: "no-sync-on-roll",
        subject: &JOURNAL,
        harm: "the end of a segment is acked with a sync of the next one",
        edits: &[Edit {
            file: "line.rs",
            text: "fn finish_segment(&mut self) -> io::Result<()> {\n        self.sync_active()",
            replacement: "fn finish_segment(&mut self) -> io::Result<()> {\n        self.buffer.flush(&*self.active.file)",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "crc-not-checked",
        subject: &JOURNAL,
        harm: "damaged bytes are served",
        edits: &[Edit {
            file: "block.rs",
            text: "block.len() == self.length as usize && u32_at(block, 4) == checksum(self.kind, block, seed)",
            replacement: "block.len() == self.length as usize && checksum(self.kind, block, seed) != 1",
        }],
        proof: DAMAGE,
    },
    Mutant {
        name: "hint-ignored",
        subject: &JOURNAL,
        harm: "damage of acked data is taken for a torn tail and cut off",
        edits: &[Edit {
            file: "recovery/replay.rs",
            text: "    hint > end\n",
            replacement: "    hint > end && false\n",
        }],
        proof: DAMAGE,
    },
    Mutant {
        name: "position-reused",
        subject: &JOURNAL,
        harm: "two blocks have had the same position in the log",
        edits: &[Edit {
            file: "open.rs",
            text: "Some(last) => (last.sequence + 1, last.limit(), recovered.end),",
            replacement: "Some(last) => (last.sequence + 1, last.base, recovered.end),",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "directory-not-synced",
        subject: &JOURNAL,
        harm: "a segment that holds acked data loses its name",
        edits: &[Edit {
            file: "segment.rs",
            text: "    disk.sync_dir(LINE_DIR)",
            replacement: "    disk.list(LINE_DIR).map(drop)",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "acked-by-a-neighbour",
        subject: &JOURNAL,
        harm: "a block is acked when another shard's is on disk",
        edits: &[Edit {
            file: "journal.rs",
            text: "self.shard(ticket.shard).publication.status(ticket, stage)",
            replacement: "self.shard(ShardId(0)).publication.status(ticket, stage)",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "acked-by-another-reign",
        subject: &JOURNAL,
        harm: "a void block is acked when another leader's block has its index",
        edits: &[Edit {
            file: "publication.rs",
            text: "reign == 0 || reign != ticket.reign.0",
            replacement: "reign == 0",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "cut-decides-no-ticket",
        subject: &JOURNAL,
        harm: "a block is acked by the one that replaced it after a cut",
        edits: &[Edit {
            file: "publication.rs",
            text: "ended.uncut = ended.uncut.min(last);",
            replacement: "ended.uncut = ended.uncut.max(last);",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "untaken-blocks-stay",
        subject: &JOURNAL,
        harm: "a block whose ticket is reported as moved is written later",
        edits: &[
            Edit {
                file: "shard/reigns.rs",
                text: "let dropped: Vec<_> = closed.chain(proposed).chain(building).collect();",
                replacement: "let dropped: Vec<_> = closed.take(0).chain(proposed.take(0)).chain(building.take(0)).collect();",
            },
            Edit {
                file: "shard/reigns.rs",
                text: "Some((self.end().index, bytes))",
                replacement: "Some((self.tail.last(), bytes))",
            },
        ],
        proof: CRASH,
    },
    Mutant {
        name: "taken-blocks-moved",
        subject: &JOURNAL,
        harm: "a block that may still be committed is reported as moved",
        edits: &[Edit {
            file: "shard/reigns.rs",
            text: "Some((self.end().index, bytes))",
            replacement: "Some((self.tail.last(), bytes))",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "offset-gap-accepted",
        subject: &JOURNAL,
        harm: "a follower takes a block although records before it are missing",
        edits: &[Edit {
            file: "shard/decided.rs",
            text: "if offset < *next || (offset > *next && !accepts(gap)) {",
            replacement: "if offset < *next || (offset > *next && false && !accepts(gap)) {",
        }],
        proof: OFFSET_GAP,
    },
    Mutant {
        name: "vote-before-sync",
        subject: &JOURNAL,
        harm: "a node that has voted votes again after a power failure",
        edits: &[Edit {
            file: "votes.rs",
            text: "        if number <= self.written.load(Ordering::SeqCst) {",
            replacement: "        if number > 0 {",
        }],
        proof: FOLLOWER,
    },
    Mutant {
        name: "follower-acks-before-sync",
        subject: &JOURNAL,
        harm: "a block is committed by a follower that does not have it on disk",
        edits: &[Edit {
            file: "journal.rs",
            text: "        self.shard(shard).publication.last(stage)\n",
            replacement: "        let _ = stage;\n        self.shard(shard).state.lock().end().index\n",
        }],
        proof: FOLLOWER,
    },
    Mutant {
        name: "sync-tried-again",
        subject: &JOURNAL,
        harm: "the second sync succeeds and proves nothing",
        edits: &[Edit {
            file: "line.rs",
            text: "        self.active.file.sync_data()?;\n",
            replacement: "        let synced = self.active.file.sync_data();\n        synced.or_else(|_| self.active.file.sync_data())?;\n",
        }],
        proof: FAULTS,
    },
    Mutant {
        name: "cache-trusted",
        subject: &JOURNAL,
        harm: "data that a failed sync left in memory is acked by the next start and lost at a power failure",
        edits: &[Edit {
            file: "recovery/files.rs",
            text: "        segment::write_at_once(&*segment.file, piece, offset)?;\n",
            replacement: "",
        }],
        proof: FAILED_SYNC,
    },
    Mutant {
        name: "erased-before-sealed",
        subject: &JOURNAL,
        harm: "an erase counts as done while the active segment holds the bytes",
        edits: &[Edit {
            file: "filing/round.rs",
            text: "            && filed >= until\n",
            replacement: "            && until >= Position(0)\n",
        }],
        proof: ERASED,
    },
    Mutant {
        name: "erased-before-counted",
        subject: &JOURNAL,
        harm: "an erase counts as done while unexamined extents hold the bytes",
        edits: &[Edit {
            file: "filing/round.rs",
            text: "            && census.has_counted(extents, generation)\n",
            replacement: "            && generation > 0\n",
        }],
        proof: ERASED,
    },
    Mutant {
        name: "retained-segment-recycled",
        subject: &JOURNAL,
        harm: "a segment is overwritten while extents refer to its records",
        edits: &[Edit {
            file: "filing/filer.rs",
            text: "            true => self.spares.part_with(&sealed.segment.file),\n",
            replacement: "            true => self.leftovers.push_back(Leftover::Segment(sealed)),\n",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "retained-segment-removed",
        subject: &JOURNAL,
        harm: "a start removes a segment while extents refer to its records",
        edits: &[Edit {
            file: "open.rs",
            text: "filed.iter().filter(|it| !retained.contains(it))",
            replacement: "filed.iter().filter(|it| !retained.contains(it) || **it > 0)",
        }],
        proof: CRASH,
    },
    Mutant {
        name: "erased-before-segment-removed",
        subject: &JOURNAL,
        harm: "an erase counts as done while the segment of a rewritten extent holds the bytes",
        edits: &[Edit {
            file: "filing/round.rs",
            text: "            && !SegmentUses::count(extents, census).has_broken_up()\n",
            replacement: "            && !(SegmentUses::count(extents, census).has_broken_up() && false)\n",
        }],
        proof: ERASED_SHARED,
    },
    Mutant {
        name: "old-bytes-retained",
        subject: &JOURNAL,
        harm: "a retained segment has bytes of an earlier use of its file, which are erased later",
        edits: &[Edit {
            file: "filing/job.rs",
            text: "let may_be_stale = placement.is_stale || sealed.is_inherited;",
            replacement: "let may_be_stale = placement.is_stale && sealed.is_inherited && false;",
        }],
        proof: ERASED_EARLIER,
    },
    Mutant {
        name: "located-unchecked",
        subject: &UNITS,
        harm: "a record is located in a page whose checksum was never compared",
        edits: &[Edit {
            file: "extent/located.rs",
            text: "self.extent.check_page(self.number, &bytes)?;",
            replacement: "",
        }],
        proof: "extent::tests::located::flipped_bit_is_an_error_when_a_record_is_located_from_the_device",
    },
    Mutant {
        name: "located-unread",
        subject: &UNITS,
        harm: "bytes that are not in the page cache are taken for zeros",
        edits: &[Edit {
            file: "extent/located.rs",
            text: "if cached.unwrap_or(false) {",
            replacement: "if cached.is_ok() {",
        }],
        proof: "extent::tests::located::locating_finds_what_reading_finds",
    },
    Mutant {
        name: "held-segment-recycled",
        subject: &UNITS,
        harm: "a segment is written again while records that were located in it are sent",
        edits: &[Edit {
            file: "filing/filer.rs",
            text: "let is_held = Arc::strong_count(file) > own;",
            replacement: "let is_held = Arc::strong_count(file) > own && own > 9;",
        }],
        proof: "tests::locating::located_records_stay_whole_when_their_segment_is_filed_and_others_are_written",
    },
    Mutant {
        name: "void-blocks-retained",
        subject: &UNITS,
        harm: "records that a later cut voids are filed, because the summary of their segment has them",
        edits: &[Edit {
            file: "filing/job.rs",
            text: "!is_void(summary, sealed.segment.header.first(), &sealed.cuts)",
            replacement: "!is_void(summary, sealed.segment.header.first(), &[])",
        }],
        proof: "filing::tests::in_place::later_cut_keeps_a_segment_with_a_summary_from_being_retained",
    },
];
