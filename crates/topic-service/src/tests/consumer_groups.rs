use super::*;

/// A join without a member id.
pub(super) fn joining<'a>(group: &'a str, member: &'a str) -> Join<'a> {
    Join {
        group,
        member,
        instance: None,
        client_id: "client",
        client_host: "here",
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer",
        protocols: vec![Protocol {
            name: "range".into(),
            metadata: Arc::from(&b"topics"[..]),
        }],
        topics: None,
        random: 0,
        identity_first: false,
        may_skip_assignment: false,
    }
}

impl World {
    /// Joins the only member of a group, and returns its generation.
    pub(super) fn member(&mut self, group: &str) -> (Arc<str>, i32) {
        let joining = self.topics.join(joining(group, ""));
        self.pass_ms(200);
        let joined = self.acknowledged(joining).unwrap();
        let caller = caller(group, &joined.member, joined.generation);
        let assignments = [(&*joined.member, &b"all"[..])];
        let synced = self.topics.sync(&Synchronize {
            caller,
            protocol_type: None,
            protocol: None,
            assignments: &assignments,
        });
        assert_eq!(&*self.acknowledged(synced).unwrap().assignment, b"all");
        (joined.member, joined.generation)
    }

    pub(super) fn commit(&mut self, caller: Caller<'_>, offset: i64) -> Result<(), GroupError> {
        let committed = self.topics.commit(caller, &[mark(offset)], None);
        let mut each = self.acknowledged(committed)?;
        Ok(each.remove(0)?)
    }

    pub(super) fn committed(&mut self, group: &str) -> Option<i64> {
        let committed = self.topics.committed(group, Some(&[("t", 0)]));
        let committed = self.acknowledged(committed).unwrap().remove(0);
        committed.mark.map(|it| it.offset)
    }
}

pub(super) fn caller<'a>(group: &'a str, member: &'a str, generation: i32) -> Caller<'a> {
    Caller {
        group,
        member,
        instance: None,
        generation,
    }
}

fn mark(offset: i64) -> Mark<'static> {
    Mark {
        topic: "t",
        partition: 0,
        offset,
        leader_epoch: -1,
        metadata: "",
    }
}

/// Returns an answer that is ready at once.
fn ready_answer<T, E: From<NotDurable>>(mut pending: Pending<T, E>) -> Result<T, E> {
    match pending.poll_answer(Waker::noop()) {
        Poll::Ready(acknowledged) => acknowledged,
        Poll::Pending => panic!("it waits"),
    }
}

#[test]
fn group_resumes_after_a_restart_with_generation_and_offsets() {
    let mut world = World::new();
    let (member, generation) = world.member("g");
    world.commit(caller("g", &member, generation), 42).unwrap();
    let mut world = world.crash();
    assert_eq!(world.committed("g"), Some(42));
    let caller = caller("g", &member, generation);
    let heard = world.topics.heartbeat(caller);
    world.acknowledged(heard).unwrap();
    world.commit(caller, 43).unwrap();
    let described = world.topics.describe_group("g");
    let described = world.acknowledged(described).unwrap().unwrap();
    assert_eq!(described.state, GroupState::Stable);
    assert_eq!(&*described.members[0].assignment, b"all");
}

#[test]
fn group_answers_wait_until_the_group_state_is_durable() {
    let mut world = World::new();
    let (member, generation) = world.member("g");
    let caller = caller("g", &member, generation);
    let mut committed = world.topics.commit(caller, &[mark(1)], None);
    assert!(committed.poll_answer(Waker::noop()).is_pending());
    let mut read = world.topics.committed("g", None);
    assert!(read.poll_answer(Waker::noop()).is_pending());
    let mut heard = world.topics.heartbeat(caller);
    assert!(heard.poll_answer(Waker::noop()).is_pending());
    let mut all = world.topics.groups();
    assert!(all.poll_answer(Waker::noop()).is_pending());
    world.acknowledged(committed).unwrap();
    let all = world.acknowledged(all).unwrap();
    assert_eq!((all.len(), &*all[0].group), (1, "g"));
    assert_eq!(world.acknowledged(read).unwrap().len(), 1);
}

#[test]
fn silent_member_is_expelled_and_the_rest_start_a_new_generation() {
    let mut world = World::new();
    let (silent, generation) = world.member("g");
    let other = world.topics.join(joining("g", ""));
    world.pass_ms(500);
    // The silent member does not join again.
    world.pass_ms(11_000);
    let joined = world.acknowledged(other).unwrap();
    assert_eq!(
        (joined.generation, joined.members.len()),
        (generation + 1, 1)
    );
    let refused = world.commit(caller("g", &silent, generation), 1);
    assert!(matches!(
        refused,
        Err(GroupError::Refused(Refused::UnknownMember))
    ));
}

#[test]
fn commit_of_a_wrong_generation_and_deleting_nonempty_group_are_refused() {
    let mut world = World::new();
    let (member, generation) = world.member("g");
    let refused = world.commit(caller("g", &member, generation + 1), 1);
    assert!(matches!(
        refused,
        Err(GroupError::Refused(Refused::IllegalGeneration { .. }))
    ));
    let deleted = world.topics.delete_group("g");
    let refused = world.acknowledged(deleted);
    assert!(matches!(
        refused,
        Err(GroupError::Refused(Refused::NonEmpty))
    ));
    let leaver = Leaver {
        member: &member,
        instance: None,
    };
    let left = world.topics.leave("g", &[leaver]);
    assert_eq!(world.acknowledged(left).unwrap(), [Ok(())]);
    let deleted = world.topics.delete_group("g");
    world.acknowledged(deleted).unwrap();
    let mut world = world.crash();
    let all = world.topics.groups();
    assert_eq!(world.acknowledged(all).unwrap(), []);
}

#[test]
fn commit_refused_as_busy_is_stored_once_the_queue_has_room() {
    let mut world = World::new();
    let topic = world.create("t", &[]);
    let (member, generation) = world.member("g");
    world.commit(caller("g", &member, generation), 1).unwrap();
    for size in [100_000, 1_000] {
        let value = "v".repeat(size);
        while world.append(&topic, &world.batch(&[&value])).is_ok() {}
    }
    let caller = caller("g", &member, generation);
    let metadata = "m".repeat(2_000);
    let large = Mark {
        metadata: &metadata,
        ..mark(2)
    };
    for _ in 0..3 {
        let refused = world.topics.commit(caller, &[large], None);
        assert_eq!(ready_answer(refused), Err(Storage::Busy.into()));
    }
    world.pass_ms(3_000);
    assert_eq!(world.committed("g"), Some(2));
    world.commit(caller, 3).unwrap();
    let mut world = world.crash();
    assert_eq!(world.committed("g"), Some(3));
}

#[test]
fn frequent_commits_leave_a_short_group_stream() {
    let mut world = World::new();
    let (member, generation) = world.member("g");
    let shards = world.topics.state.journal.shard_count();
    let size = |world: &World| {
        let journal = &world.topics.state.journal;
        let store = &world.store;
        let streams = (0..shards).map(|shard| {
            let at = store.find(store::Kind::Topics, &format!("groups/{shard}"));
            let at = at.unwrap();
            journal.bytes(at.shard, at.stream).unwrap()
        });
        streams.sum::<u64>()
    };
    let metadata = "m".repeat(4_000);
    for round in 0..600 {
        let marks = [Mark {
            metadata: &metadata,
            ..mark(round)
        }];
        let caller = caller("g", &member, generation);
        let committed = world.topics.commit(caller, &marks, None);
        world.acknowledged(committed).unwrap();
    }
    world.pass_ms(300);
    assert!(size(&world) < 1_100_000, "{}", size(&world));
    let mut world = world.crash();
    assert_eq!(world.committed("g"), Some(599));
    let heard = world.topics.heartbeat(caller("g", &member, generation));
    world.acknowledged(heard).unwrap();
}

#[test]
fn recreated_topic_has_no_committed_offsets() {
    let mut world = World::new();
    world.create("t", &[]);
    let simple = caller("g", "", -1);
    world.commit(simple, 5).unwrap();
    let deleted = world.topics.delete(TopicRef::Name("t"));
    world.acknowledged(deleted).unwrap();
    world.create("t", &[]);
    assert_eq!(world.committed("g"), None);
}

#[test]
fn group_whose_last_offsets_were_deleted_exists_until_the_next_check() {
    const CHECK_MS: u64 = 600_000;
    let mut world = World::new();
    // The first check is at the start.
    world.pass_ms(1_000);
    let (member, generation) = world.member("g");
    world.commit(caller("g", &member, generation), 7).unwrap();
    let leaver = Leaver {
        member: &member,
        instance: None,
    };
    let left = world.topics.leave("g", &[leaver]);
    assert_eq!(world.acknowledged(left).unwrap(), [Ok(())]);
    let deleted = world.topics.delete_offsets("g", &[("t", 0)]);
    world.acknowledged(deleted).unwrap().remove(0).unwrap();

    world.pass_ms(CHECK_MS / 2);
    let described = world.topics.describe_group("g");
    assert!(world.acknowledged(described).unwrap().is_some());
    world.pass_ms(CHECK_MS);
    let described = world.topics.describe_group("g");
    assert!(world.acknowledged(described).unwrap().is_none());
}
