//! Commits and expiry of offsets.

use super::*;

#[test]
fn a_commit_with_another_generation_is_refused() {
    check(
        "
         join a
         commit a#1 gen=1 t/0=1
         sync a#1 gen=1
         commit a#1 gen=1 t/0=2
         commit a#1 gen=0 t/0=3
         commit a#1 gen=2 t/0=3
         commit who gen=1 t/0=3
         commit nobody t/0=3
         commit a#1 t/0=3
         offsets
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         commit: the group rebalances
         sync a#1: nothing of consumer range
         commit: ok
         commit: the group is not in generation 0
         commit: the group is not in generation 2
         commit: the group does not know that member
         commit: the group does not know that member
         commit: the group is not in generation -1
         offsets: t/0=2
        ",
    );
}

#[test]
fn a_member_still_commits_while_the_others_join_again() {
    check(
        "
         join a
         sync a#1 gen=1
         join b
         commit a#1 gen=1 t/0=2
         join a as=a#1
         commit a#1 gen=1 t/0=3
         commit a#1 gen=2 t/0=4
         offsets
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         join a: a#1 in 2 of consumer range, a#1 leads a#1:m b#2:m
         join b: b#2 in 2 of consumer range, a#1 leads
         commit: the group is not in generation 1
         commit: the group rebalances
         offsets: t/0=2
        ",
    );
}

#[test]
fn commits_without_a_member_id_require_an_empty_group() {
    check(
        "
         commit nobody t/0=5 t/1=6
         offsets
         commit who gen=3 t/0=7
         list
         join a
         commit nobody t/0=7
         sync a#1 gen=1
         leave a#1
         commit nobody t/0=7
         commit a#1 gen=1 t/0=8
         offsets
        ",
        r##"
         commit: ok
         offsets: t/0=5 t/1=6
         commit: the group does not know that member
         list: g "" Empty
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         commit: the group does not know that member
         sync a#1: nothing of consumer range
         leave a#1: ok
         commit: ok
         commit: the group does not know that member
         offsets: t/0=7 t/1=6
        "##,
    );
}

#[test]
fn a_commit_with_a_generation_does_not_create_a_group() {
    check(
        "
         commit a#1 gen=1 t/0=1
         txn 7 a#1 gen=1 t/0=1
         list
        ",
        "
         commit: the group is not in generation 1
         txn: the group is not in generation 1
         list:
        ",
    );
}

#[test]
fn a_commit_may_lower_the_offset() {
    check(
        "
         commit nobody t/0=5
         commit nobody note=why t/0=2
         offsets
         restart
         offsets
        ",
        r##"
         commit: ok
         commit: ok
         offsets: t/0=2 "why"
         offsets: t/0=2 "why"
        "##,
    );
}

#[test]
fn offsets_of_topics_that_the_group_is_subscribed_to_are_not_deleted() {
    check(
        "
         forget t/0
         commit nobody t/0=1 u/0=2 u/1=3
         join a topics=t
         sync a#1 gen=1
         forget t/0 u/0 u/7
         offsets
         leave a#1
         forget t/0
         offsets
         kept
         restart
         offsets
        ",
        r##"
         forget: there is no such group
         commit: ok
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         forget t/0: the group is subscribed to that topic
         forget u/0: ok
         forget u/7: ok
         offsets: t/0=1 u/1=3
         leave a#1: ok
         forget: ok
         offsets: u/1=3
         kept: g [("t", 0, 1), ("u", 0, 2), ("u", 1, 3)]
         kept: g in 1 since 0: a#1
         kept: g forgets [("u", 0)]
         kept: g in 2 since 0:
         kept: g forgets [("t", 0)]
         offsets: u/1=3
        "##,
    );
}

#[test]
fn a_member_without_topics_counts_as_subscribed_to_all() {
    check(
        "
         commit nobody t/0=1
         join a
         sync a#1 gen=1
         forget t/0
        ",
        "
         commit: ok
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         forget t/0: the group is subscribed to that topic
        ",
    );
}

#[test]
fn offsets_of_a_non_consumer_group_with_members_are_not_deleted() {
    check(
        "
         commit nobody t/0=1
         join a type=connect with=eager:m
         forget t/0
        ",
        "
         commit: ok
         join a: a#1 in 1 of connect eager, a#1 leads a#1:m
         forget: the group has members
        ",
    );
}

#[test]
fn deleting_a_topic_deletes_its_offsets_in_every_group() {
    check(
        "
         commit nobody group=g t/0=1 u/0=1
         commit nobody group=h t/1=1
         txn 7 nobody group=g t/5=1
         drop t
         end 7 committed
         offsets
         offsets group=h
         kept
         restart
         list
        ",
        r##"
         commit: ok
         commit: ok
         txn: ok
         offsets: u/0=1
         offsets: none
         kept: g [("t", 0, 1), ("u", 0, 1)]
         kept: h [("t", 1, 1)]
         kept: g [("t", 5, 1)] of 7
         kept: g forgets [("t", 0), ("t", 5)]
         kept: h forgets [("t", 1)]
         list: g "" Empty, h "" Empty
        "##,
    );
}

#[test]
fn a_group_without_offsets_exists_until_it_expires_or_is_deleted() {
    check(
        "
         commit nobody t/0=1
         forget t/0
         list
         restart
         list
         commit nobody group=h t/0=1
         forget group=h t/0
         delete group=h
         list
         expire
         list
         kept
         restart
         list
        ",
        r##"
         commit: ok
         forget: ok
         list: g "" Empty
         list: g "" Empty
         commit: ok
         forget: ok
         delete: ok
         list: g "" Empty
         list:
         kept: g [("t", 0, 1)]
         kept: g forgets [("t", 0)]
         kept: h [("t", 0, 1)]
         kept: h forgets [("t", 0)]
         kept: h is gone
         kept: g is gone
         list:
        "##,
    );
}

#[test]
fn offsets_of_a_group_expire_some_time_after_its_last_member_left() {
    check(
        "
         join a
         sync a#1 gen=1
         commit a#1 gen=1 t/0=1
         at 10
         leave a#1
         at 20
         commit nobody u/0=1
         at 1000009
         expire
         offsets
         at 1000010
         expire
         offsets
         at 1000020
         expire
         list
         kept
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         leave a#1: ok
         commit: ok
         offsets: t/0=1 u/0=1
         offsets: u/0=1
         list:
         kept: g in 1 since 0: a#1
         kept: g [("t", 0, 1)]
         kept: g in 2 since 10:
         kept: g [("u", 0, 1)]
         kept: g forgets [("t", 0)]
         kept: g forgets [("u", 0)]
         kept: g is gone
        "##,
    );
}

#[test]
fn offsets_without_members_expire_after_their_commit() {
    check(
        "
         commit nobody t/0=1
         at 10
         commit nobody u/0=1
         at 1000000
         expire
         offsets
         at 1000010
         expire
         list
        ",
        "
         commit: ok
         commit: ok
         offsets: u/0=1
         list:
        ",
    );
}

#[test]
fn an_offset_expires_at_the_time_in_its_commit() {
    check(
        "
         commit nobody until=50 t/0=1
         at 49
         expire
         offsets
         at 50
         expire
         list
        ",
        "
         commit: ok
         offsets: t/0=1
         list:
        ",
    );
}

#[test]
fn offsets_of_unsubscribed_topics_expire_in_a_group_with_members() {
    check(
        "
         join a topics=t session=1800000
         sync a#1 gen=1
         commit a#1 gen=1 t/0=1 u/0=1
         at 1000000
         expire
         offsets
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         offsets: t/0=1
        ",
    );
}

#[test]
fn no_offset_expires_during_a_rebalance_or_with_unknown_subscriptions() {
    check(
        "
         join a session=1800000
         sync a#1 gen=1
         commit a#1 gen=1 t/0=1
         at 1000000
         expire
         join b session=1800000
         expire
         offsets
        ",
        "
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         commit: ok
         offsets: t/0=1
        ",
    );
}

#[test]
fn a_group_without_members_and_offsets_is_removed() {
    check(
        "
         join a
         sync a#1 gen=1
         leave a#1
         list
         expire
         list
         kept
         restart
        ",
        r##"
         join a: a#1 in 1 of consumer range, a#1 leads a#1:m
         sync a#1: nothing of consumer range
         leave a#1: ok
         list: g "consumer" Empty
         list:
         kept: g in 1 since 0: a#1
         kept: g in 2 since 0:
         kept: g is gone
        "##,
    );
}
