//! Groups after a restart.

use super::*;

#[test]
fn members_survive_a_restart_in_their_generation_with_fresh_session_timeouts() {
    check(
        "
         join a session=6000
         join b session=6000
         join a as=a#1 session=6000
         sync a#1 gen=2 a#1=x b#2=y
         sync b#2 gen=2
         at 5000
         restart
         describe
         beat a#1 gen=2
         commit a#1 gen=2 t/0=1
         sync b#2 gen=2
         at 10999
         beat a#1 gen=2
         at 11000
         beat a#1 gen=2
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         sync a#1: x of consumer range
         sync b#2: y of consumer range
         describe: Stable "consumer" "range"
         a#1 - a@host m x
         b#2 - b@host m y
         beat a#1: ok
         commit: ok
         sync b#2: y of consumer range
         beat a#1: ok
         beat a#1: the group rebalances
        "##,
    );
}

#[test]
fn an_incomplete_rebalance_is_undone_by_a_restart() {
    check(
        "
         join a
         sync a#1 gen=1 a#1=x
         join b
         join a as=a#1
         restart
         list
         sync a#1 gen=2 a#1=y b#2=z
         sync b#2 gen=2
         beat a#1 gen=1
         join b as=b#2
         join a as=a#1
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: x of consumer range
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         list: g "consumer" Stable
         sync a#1: the group is not in generation 2
         sync b#2: the group does not know that member
         beat a#1: ok
         join b: the group does not know that member
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m
        "##,
    );
}

#[test]
fn pending_member_ids_do_not_survive_a_restart() {
    check(
        "
         join a first
         join b
         restart
         list
         join a as=a#1 first
        ",
        "
         join a: join as a#1
         list:
         join a: the group does not know that member
        ",
    );
}

#[test]
fn a_static_member_retains_its_assignment_after_a_restart() {
    check(
        "
         join a static=i topics=t
         sync i#1 gen=1 static=i i#1=x
         restart
         join a static=i topics=t skip
         beat i#1 gen=1 static=i
        ",
        "
         join a: i#1 in 1 of consumer range, i#1 leads i#1(i):m
         sync i#1: x of consumer range
         join a: i#2 in 1 of consumer range, i#2 leads i#2(i):m, assigned already
         beat i#1: another member uses this group.instance.id
        ",
    );
}

#[test]
fn offsets_of_a_deleted_group_do_not_return_after_a_restart() {
    check(
        "
         commit nobody t/0=1
         delete
         commit nobody t/1=2
         restart
         offsets
        ",
        "
         commit: ok
         delete: ok
         commit: ok
         offsets: t/1=2
        ",
    );
}

#[test]
fn an_empty_group_keeps_its_generation() {
    check(
        "
         join a
         sync a#1 gen=1
         leave a#1
         restart
         join b
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         leave a#1: ok
         join b: b#2 in 3 of consumer range, b#2 leads b#2:m
        ",
    );
}
