use proptest::prelude::*;

use super::*;
use crate::admin::{Halt, Override};
use crate::calendar::Every;
use crate::cell::Cell;
use crate::dial::{Dial, Factor};
use crate::hold::{Charge, Hold, HoldId};
use crate::key::{Key, Seed};
use crate::limit::{Bucket, Durability, Kind, Limit, LimitId, Mode, Unreachable};
use crate::pattern::Pattern;
use crate::policies::Policies;
use crate::rules::Rules;
use crate::subject::Prefix;
use crate::table::Table;
use crate::unit::Unit;
use crate::zone::Zone;

const SECOND: u64 = 1_000_000_000;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn limit(kind: Kind) -> Limit {
    Limit {
        name: "tpm".into(),
        pattern: Pattern::parse("*/*/*").unwrap(),
        unit: Unit::TOKENS,
        kind,
        mode: Mode::Enforce,
        durability: Durability::Sync,
        factor: Factor::new(1, 2).unwrap(),
        weight: 3,
        warn: vec![800],
        on_unreachable: Unreachable::Deny,
    }
}

fn bucket(capacity: u64, amount: u64, period_ns: u64) -> Kind {
    Kind::Bucket(Bucket {
        capacity,
        amount,
        period_ns,
    })
}

fn cell_record() -> CellRecord<'static> {
    CellRecord {
        key: Key {
            limit: LimitId(7),
            prefix: Prefix {
                name: "a/b/c",
                run: "r",
            },
        },
        cell: Cell {
            amount: -5,
            at: 9,
            limit: LimitId(7),
            warned: 1,
            is_overridden: true,
            is_dirty: false,
        },
        kind: bucket(100, 10, SECOND),
    }
}

fn hold() -> Hold {
    Hold {
        subject: "a/b/c".into(),
        principal: "bo".into(),
        charges: [Charge {
            limit: LimitId(7),
            count: 3,
            period: 4,
            is_overflow: true,
        }]
        .into(),
        deadline_ns: 8,
    }
}

fn changes() -> [Change; 4] {
    [
        Change::Factor {
            limit: LimitId(7),
            dial: Dial::new(Factor::ONE, 0).turned(
                5,
                Factor::new(1, 3).unwrap(),
                Some((9, Factor::ONE)),
            ),
        },
        Change::Halt {
            prefix: "a/b".into(),
            halt: Some(Halt {
                since_ns: 6,
                by: "root".into(),
                reason: "loop".into(),
            }),
        },
        Change::Override {
            limit: LimitId(7),
            prefix: "a/b/c?r".into(),
            change: Some(Override {
                capacity: Some(200),
                refill: None,
                grant: 5,
                until_ns: 10,
                by: "root".into(),
                reason: "launch".into(),
            }),
        },
        Change::Override {
            limit: LimitId(7),
            prefix: "a/b/c?r".into(),
            change: None,
        },
    ]
}

/// These bytes are never regenerated: records once written must stay readable.
#[test]
fn quota_record_bytes_match_golden_bytes() {
    let mut cells = Vec::new();
    cell_record().encode(&mut cells);
    assert_eq!(
        hex(&cells),
        "070000000101fbffffffffffffffffffffffffffffff0900000000000000\
         0164000000000000000a0000000000000000ca9a3b000000000700612f622f633f72"
    );
    let mut bytes = Vec::new();
    encode_hold(HoldId(2 << 64 | 3), &hold(), &mut bytes);
    assert_eq!(
        hex(&bytes),
        "0300000000000000020000000000000008000000000000000500612f622f630200626f\
         0100070000000103000000000000000400000000000000"
    );
    assert_eq!(decode_hold(&bytes), Ok((HoldId(2 << 64 | 3), hold())));
    let mut bytes = Vec::new();
    encode_ended(HoldId(2 << 64 | 3), &mut bytes);
    assert_eq!(hex(&bytes), "03000000000000000200000000000000");
    let mut bytes = Vec::new();
    let taken = TakeRecord {
        until_ns: 1,
        hold: Some((HoldId(2), 5)),
        cost_digest: 6,
        id: "x",
    };
    taken.encode(&mut bytes);
    assert_eq!(
        hex(&bytes),
        "01000000000000000200000000000000000000000000000005000000000000000600000000000000010078"
    );
    assert_eq!(TakeRecord::decode(&bytes), Ok(taken));
    let golden = [
        "0700000005000000000000000500000000000000010000000300000009000000000000000100000001000000",
        "0300612f620106000000000000000400726f6f7404006c6f6f70",
        "070000000700612f622f633f720101c8000000000000000000000000000000000000000000000005000000\
         000000000a000000000000000400726f6f7406006c61756e6368",
        "070000000700612f622f633f7200",
    ];
    for (change, golden) in changes().into_iter().zip(golden) {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        assert_eq!(hex(&bytes), golden, "{change:?}");
        assert_eq!(Change::decode(change.tag(), &bytes), Ok(change));
    }
    let record = PoliciesRecord {
        policies: Policies::default()
            .next(vec![limit(bucket(4, 2, 60))])
            .unwrap(),
        since_ns: 5,
        digest: 6,
    };
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    assert_eq!(
        hex(&bytes),
        "010000000000000005000000000000000100000006000000000000000100\
         01000000030074706d05002a2f2a2f2a06746f6b656e73\
         0104000000000000000200000000000000\
         3c00000000000000010202030000000100000002000000012003"
    );
    let audit = Audit {
        at_ns: 1,
        version: 2,
        by: "root".into(),
        reason: "why".into(),
        what: "halt a".into(),
    };
    let mut bytes = Vec::new();
    audit.encode(&mut bytes);
    assert_eq!(
        hex(&bytes),
        "010000000000000002000000000000000400726f6f740300776879060068616c742061"
    );
    assert_eq!(Audit::decode(&bytes), Ok(audit));
    let head = UsageRecord {
        day: 20_000,
        limit: "tpm",
        unit: Unit::TOKENS,
    };
    let rows = ["a/b/c", ""].map(|subject| UsageRow {
        subject,
        amount: 1_000,
        takes: 3,
    });
    let mut bytes = Vec::new();
    head.encode(&mut bytes);
    rows.iter().for_each(|row| row.encode(&mut bytes));
    assert_eq!(
        hex(&bytes),
        "204e0000030074706d06746f6b656e73\
         0500612f622f63e80300000000000003000000000000000000e8030000000000000300000000000000"
    );
    assert_eq!(UsageRecord::decode(&bytes), Ok((head, rows.to_vec())));
}

/// Records of older versions stay readable.
#[test]
fn holds_of_64_bits_are_read() {
    let hold_bytes = unhex(
        "020000000000000008000000000000000500612f622f63010007000000010300000000000000\
         0400000000000000",
    );
    let without_principal = Hold {
        principal: "".into(),
        ..hold()
    };
    assert_eq!(
        decode_short_hold(&hold_bytes),
        Ok((HoldId(2), without_principal))
    );
    let ended = unhex("02000000000000000300000000000000");
    let ended: Result<Vec<_>, _> = decode_short_ended(&ended).collect();
    assert_eq!(ended, Ok(vec![HoldId(2), HoldId(3)]));
    let taken = TakeRecord {
        until_ns: 1,
        hold: Some((HoldId(2), 1)),
        cost_digest: 0,
        id: "x",
    };
    assert_eq!(
        TakeRecord::decode_short(&unhex("01000000000000000200000000000000010078")),
        Ok(taken)
    );
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    let digit = |digit: char| digit.to_digit(16).unwrap() as u8;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

#[test]
fn limits_of_every_kind_round_trip() {
    let kinds = [
        bucket(4, 2, 60),
        Kind::Slots { capacity: 8 },
        Kind::Budget {
            amount: 5,
            every: Every::Month,
            zone: Zone::Fixed(-19_800),
        },
        Kind::Budget {
            amount: 5,
            every: Every::Day,
            zone: Zone::parse("Europe/Berlin").unwrap(),
        },
    ];
    for kind in kinds {
        let policies = Policies::default().next(vec![limit(kind)]).unwrap();
        let record = PoliciesRecord {
            policies,
            since_ns: 1,
            digest: 2,
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let back = PoliciesRecord::decode(&bytes).unwrap();
        assert_eq!(back.policies.limits(), record.policies.limits());
        for length in 0..bytes.len() {
            assert!(
                PoliciesRecord::decode(&bytes[..length]).is_err(),
                "{length}"
            );
        }
    }
}

#[test]
fn changes_round_trip() {
    let policies = Policies::default()
        .next(vec![limit(bucket(4, 2, 60))])
        .unwrap();
    let rules = Rules::new(Seed(1), 4).with_policies(policies, 0);
    let factor = Factor::new(2, 3).unwrap();
    let rules = rules.with_factor("tpm", factor, Some(50), 10).unwrap();
    let mut back = Rules::new(Seed(1), 4);
    back.restore_policies((**rules.policies()).clone());
    for change in rules.changes() {
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        back.apply(Change::decode(change.tag(), &bytes).unwrap());
    }
    for now in [0, 10, 49, 50, 51, 1_000] {
        assert_eq!(rules.dial(0).own_ns(now), back.dial(0).own_ns(now));
    }
}

fn restored(kind: Kind, cell: Cell, rules: &Rules, since_ns: u64, now_ns: u64) -> i128 {
    let key = Key {
        limit: LimitId(1),
        prefix: Prefix {
            name: "a/b/c",
            run: "",
        },
    };
    let record = CellRecord { key, cell, kind };
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let mut table = Table::new(Seed(1), 10);
    for record in decode_cells(&bytes) {
        record.unwrap().restore(rules, since_ns, &mut table, now_ns);
    }
    let mut have = None;
    table.walk(0, 10, |key, cell| have = rules.balance(key, cell, now_ns));
    have.unwrap().0
}

#[test]
fn a_cell_restored_under_another_limit_is_converted() {
    let mut plain = limit(bucket(50, 5, 2 * SECOND));
    (plain.factor, plain.weight) = (Factor::ONE, 1);
    let policies = Policies::default().next(vec![plain]).unwrap();
    let rules = Rules::new(Seed(1), 4).with_policies(policies, 0);
    let (old, dial) = (bucket(100, 10, SECOND), *rules.dial(0));
    let mut cell = Cell::full(LimitId(1), &old, &dial, 0);
    cell.debit(&old, 90);
    // Three seconds of refill by the old limit, then two by the new one, from its beginning.
    let have = restored(old, cell, &rules, 3 * SECOND, 3 * SECOND);
    assert_eq!(have, 10 + 30 - 50);
    // A cell of the current limit: the time at rest counts.
    let new = bucket(50, 5, 2 * SECOND);
    let mut cell = Cell::full(LimitId(1), &new, &dial, 0);
    cell.debit(&new, 50);
    assert_eq!(restored(new, cell, &rules, 0, 4 * SECOND), 10);
    // A clock that was stepped back while the node was down adds no refill and blocks no takes.
    cell.at = 100 * SECOND;
    assert_eq!(restored(new, cell, &rules, 0, SECOND), 0);
}

proptest! {
    #[test]
    fn any_bytes_decode_to_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_cells(&bytes).collect::<Vec<_>>();
        let _ = decode_hold(&bytes);
        let _ = decode_ended(&bytes).collect::<Vec<_>>();
        let _ = decode_short_hold(&bytes);
        let _ = decode_short_ended(&bytes).collect::<Vec<_>>();
        let _ = TakeRecord::decode_short(&bytes);
        let _ = TakeRecord::decode(&bytes);
        let _ = PoliciesRecord::decode(&bytes);
        let _ = Audit::decode(&bytes);
        let _ = UsageRecord::decode(&bytes);
        for tag in 0..6 {
            let _ = Change::decode(tag, &bytes);
        }
    }
}
