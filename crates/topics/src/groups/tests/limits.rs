//! Requests above the limits.

use super::*;

#[test]
fn the_number_of_group_members_is_limited() {
    check(
        "
         join a
         join b
         join c
         join d
         join a as=a#1
         join d
         join b as=b#2
         join d
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: too many members in the group (limit 3)
         join d: too many members in the group (limit 3)
         join b: the group rebalances
         join d: too many members in the group (limit 3)
        ",
    );
}

#[test]
fn pending_members_count_against_the_group_size_limit() {
    check(
        "
         join a first
         join b first
         join c first
         join d first
        ",
        "
         join a: join as a#1
         join b: join as b#2
         join c: join as c#3
         join d: too many members in the group (limit 3)
        ",
    );
}

#[test]
fn a_static_member_rejoins_a_full_group() {
    check(
        "
         join a static=i
         join b
         join c
         join a as=i#1 static=i
         join b as=b#2
         sync i#1 gen=2 static=i
         sync b#2 gen=2
         join a static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         join b: b#2 in 2 of consumer range, i#1 leads
         join c: c#3 in 2 of consumer range, i#1 leads
         join a: i#1 in 2 of consumer range, i#1 leads b#2:m c#3:m i#1(i):m
         join b: b#2 in 2 of consumer range, i#1 leads
         sync i#1: nothing of consumer range
         sync b#2: nothing of consumer range
         join a: i#6 in 2 of consumer range, i#1 leads
        ",
    );
}

#[test]
fn the_number_of_groups_is_limited() {
    check(
        "
         join a group=one
         join a group=two
         join a group=three
         commit nobody group=four t/0=1
         list
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#2 in 1 of consumer range, a#2 leads a#2:m
         join a: too many consumer groups (limit 2)
         commit: too many consumer groups (limit 2)
         list: one "consumer" CompletingRebalance, two "consumer" CompletingRebalance
        "##,
    );
}

#[test]
fn a_session_timeout_outside_its_limits_is_refused() {
    check(
        "
         join a session=5999
         join a session=1800001
         list
        ",
        "
         join a: a session timeout of 5999 ms is not between 6000 and 1800000
         join a: a session timeout of 1800001 ms is not between 6000 and 1800000
         list:
        ",
    );
}

#[test]
fn a_group_name_must_have_1_to_64_bytes() {
    check(
        "
         join a group=
         join a group=0123456789012345678901234567890123456789012345678901234567890123456789
         list
        ",
        "
         join a: a group name needs 1 to 64 bytes
         join a: a group name needs 1 to 64 bytes
         list:
        ",
    );
}

#[test]
fn names_and_protocols_are_bounded() {
    check(
        "
         join 0123456789012345678901234567890123456789012345678901234567890123456789
         join a with=0123456789012345678901234567890123456789012345678901234567890123456789:m
         join a with=a:m,b:m,c:m,d:m
         commit nobody 0123456789012345678901234567890123456789012345678901234567890123456789/0=1
         list
        ",
        "
         join 0123456789012345678901234567890123456789012345678901234567890123456789: the longest name has size 70 (limit 64)
         join a: the longest name has size 70 (limit 64)
         join a: the list of protocols has size 4 (limit 3)
         commit 0123456789012345678901234567890123456789012345678901234567890123456789/0: the name of a topic has size 70 (limit 64)
         list:
        ",
    );
}

#[test]
fn committed_offsets_are_limited_and_existing_ones_may_be_updated() {
    check(
        "
         commit nobody t/0=1 t/1=1 t/2=1
         txn 7 nobody t/0=1
         commit nobody t/3=1 t/0=2
         txn 7 nobody t/0=3
         offsets
        ",
        "
         commit: ok
         txn: ok
         commit t/0: ok
         commit t/3: too many committed offsets in the group (limit 4)
         txn: ok
         offsets: t/0=2 (unstable) t/1=1 t/2=1
        ",
    );
}

#[test]
fn metadata_of_an_offset_is_bounded() {
    check(
        "
         commit nobody note=0123456789 t/0=1
         commit nobody note=0123456789x t/0=2
         offsets
        ",
        r##"
         commit: ok
         commit t/0: the metadata has 11 bytes (limit 10)
         offsets: t/0=1 "0123456789"
        "##,
    );
}

#[test]
fn a_member_id_may_exceed_the_client_id_by_its_suffix() {
    let client = "c".repeat(64);
    let stranger = "c".repeat(64 + 37 + 1);
    check(
        &format!(
            "
             join {client} first
             join {client} as={client}#1
             join {client} as={stranger}
            "
        ),
        &format!(
            "
             join {client}: join as {client}#1
             join {client}: {client}#1 in 1 of consumer range, {client}#1 leads {client}#1:m
             join {client}: the member's name has size 102 (limit 101)
            "
        ),
    );
}

#[test]
fn the_metadata_size_of_all_group_members_is_limited() {
    let long = "m".repeat(500);
    check(
        &format!(
            "
             join a with=range:{long}{long}
             join a with=range:{long}
             join b with=range:{long}
             join a as=a#2 with=range:{long}{long}
             sync a#2 gen=1
            "
        ),
        &format!(
            "
             join a: the data of the group's members has size 1048 (limit 1000)
             join a: a#2 in 1 of consumer range, a#2 leads a#2:{long}
             join b: the data of the group's members has size 1096 (limit 1000)
             join a: the data of the group's members has size 1048 (limit 1000)
             sync a#2: nothing of consumer range
            "
        ),
    );
}

#[test]
fn an_assignment_above_the_size_limit_is_refused_and_starts_a_rebalance() {
    let long = "x".repeat(950);
    check(
        &format!(
            "
             join a
             join b
             join a as=a#1
             sync b#2 gen=2
             sync a#1 gen=2 a#1=x b#2={long}
             beat a#1 gen=2
             join b as=b#2
             join a as=a#1
            "
        ),
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: the data and assignments of the group's members has size 1049 (limit 1000)
         sync b#2: the data and assignments of the group's members has size 1049 (limit 1000)
         beat a#1: the group rebalances
         join a: a#1 in 3 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 3 of consumer range, a#1 leads
        ",
    );
}
