//! Users that authenticate with a password.

use super::*;

fn credential(hash: Hash, byte: u8) -> Credential {
    Credential {
        salt: vec![byte; 16],
        iterations: 4_096,
        stored_key: vec![byte; hash.size()],
        server_key: vec![byte; hash.size()],
    }
}

fn set(hash: Hash, byte: u8) -> UserChange {
    UserChange::Set(hash, credential(hash, byte))
}

impl World {
    fn change_user(&mut self, name: &str, change: UserChange) -> Result<(), UserChangeError> {
        let changed = self.topics.change_user(name, &[change]);
        self.acknowledged(changed)
    }
}

#[test]
fn users_survive_a_restart_as_last_acknowledged() {
    let mut world = World::new();
    assert!(!world.topics.has_users());
    world.change_user("ann", set(Hash::Sha256, 1)).unwrap();
    world.change_user("ann", set(Hash::Sha512, 2)).unwrap();
    world.change_user("bob", set(Hash::Sha256, 3)).unwrap();
    world.change_user("bob", UserChange::RemoveAll).unwrap();
    let unknown = world.change_user("bob", UserChange::RemoveAll);
    assert_eq!(unknown, Err(UserChangeError::User(UserError::Unknown)));
    // The change was not acknowledged.
    let lost = world
        .topics
        .change_user("ann", &[UserChange::Remove(Hash::Sha256)]);
    drop(lost);
    let world = world.crash();
    assert!(world.topics.has_users());
    let ann = world.topics.user("ann").unwrap();
    for (hash, byte) in [(Hash::Sha256, 1), (Hash::Sha512, 2)] {
        assert_eq!(ann.credential(hash), Some(&credential(hash, byte)));
    }
    assert_eq!(world.topics.users(), [ann]);
}

#[test]
fn frequent_user_changes_leave_a_short_stream() {
    let mut world = World::new();
    for round in 0..2_500 {
        let change = set(Hash::Sha256, (round % 251) as u8);
        let changed = world.topics.change_user("ann", &[change]);
        if round % 100 == 0 {
            world.acknowledged(changed).unwrap();
        }
    }
    world.sync();
    let kept = world
        .topics
        .state
        .users
        .lock()
        .stream(&world.topics.state.journal);
    assert!(kept.next_durable - kept.start < 1_100, "{kept:?}");
    let world = world.crash();
    let ann = world.topics.user("ann").unwrap();
    let newest = credential(Hash::Sha256, (2_499 % 251) as u8);
    assert_eq!(ann.credential(Hash::Sha256), Some(&newest));
}
