use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::ports::{Disk, LockError, RealDisk};

fn open(dir: &Path) -> Result<TokenStore, TokensError> {
    TokenStore::open(Arc::new(RealDisk), dir)
}

fn entropy(seed: u8) -> [u8; ENTROPY_SIZE] {
    [seed; ENTROPY_SIZE]
}

#[test]
fn a_token_is_recognised_after_a_restart_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    assert!(!store.required());
    let ci = store
        .add("ci", Role::Agent, 1_760_000_000, &entropy(1))
        .unwrap();
    let ops = store
        .add("ops", Role::Admin, 1_760_000_001, &entropy(2))
        .unwrap();

    let mut store = open(dir.path()).unwrap();
    assert!(store.required());
    assert_eq!(store.list().len(), 2);
    let token = store.verify(ci.reveal()).unwrap().clone();
    assert_eq!(
        (token.name.as_str(), token.role, token.created_s),
        ("ci", Role::Agent, 1_760_000_000)
    );
    assert_eq!(store.verify(ops.reveal()).unwrap().role, Role::Admin);
    assert!(store.verify("").is_none());
    assert!(store.verify("tlp_").is_none());

    store.revoke("ci").unwrap();
    assert!(store.verify(ci.reveal()).is_none());
    assert!(!store.knows(&token));
    assert!(open(dir.path()).unwrap().verify(ops.reveal()).is_some());
}

#[test]
fn the_secret_is_not_in_the_file_and_the_file_is_its_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let secret = open(dir.path())
        .unwrap()
        .add("ci", Role::Agent, 0, &entropy(1))
        .unwrap();
    let path = dir.path().join(FILE_NAME);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("ci") && !text.contains(secret.reveal()),
        "{text}"
    );
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_name_is_unique_and_plain() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store.add("ci", Role::Agent, 0, &entropy(1)).unwrap();
    assert!(matches!(
        store.add("ci", Role::Agent, 0, &entropy(2)),
        Err(AddError::Exists { .. })
    ));
    for name in ["", "two words", "a/b", "ü", &"x".repeat(65)] {
        assert!(matches!(
            store.add(name, Role::Agent, 0, &entropy(3)),
            Err(AddError::Name { .. })
        ));
    }
    assert_eq!(store.list().len(), 1);
}

#[test]
fn revoking_a_name_that_is_not_there_tells_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store.add("builder", Role::Agent, 0, &entropy(1)).unwrap();
    match store.revoke("bulider") {
        Err(RevokeError::Unknown { nearest, .. }) => {
            assert_eq!(nearest.as_deref(), Some("builder"))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn authentication_stays_on_when_the_last_token_goes() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store.add("ci", Role::Agent, 0, &entropy(1)).unwrap();
    store.revoke("ci").unwrap();
    assert!(store.required());
    assert!(open(dir.path()).unwrap().required());
}

#[test]
fn a_damaged_file_is_an_error_and_never_no_tokens() {
    let row = "name = 'a'\nrole = 'agent'\ncreated = 0\n";
    let salt = format!("salt = '{}'\n", "00".repeat(16));
    let hash = format!("hash = '{}'\n", "00".repeat(32));
    let token = format!("[[token]]\n{row}{salt}{hash}");
    let cases = [
        (String::new(), "version"),
        ("version = ".to_owned(), ""),
        ("version = 2".to_owned(), "version is 2"),
        ("version = 1\nowner = 'me'".to_owned(), "owner"),
        (format!("version = 1\n[[token]]\n{row}"), "salt"),
        (
            format!("version = 1\n[[token]]\n{row}salt = '00'\n{hash}"),
            "not hex",
        ),
        (
            format!("version = 1\n{}", token.replace("agent", "king")),
            "king",
        ),
        (format!("version = 1\n{token}{token}"), "twice"),
    ];
    for (text, expected) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        RealDisk.write(&path, text.as_bytes()).unwrap();
        let Err(error) = open(dir.path()) else {
            panic!("accepted: {text}")
        };
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
    }
    let dir = tempfile::tempdir().unwrap();
    RealDisk
        .write(&dir.path().join(FILE_NAME), &[0xff, 0xfe])
        .unwrap();
    assert!(matches!(open(dir.path()), Err(TokensError::Damaged { .. })));
}

#[test]
fn a_reload_follows_the_file_and_keeps_the_tokens_when_it_cannot() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    let mut node = open(dir.path()).unwrap();
    assert!(!node.reload().unwrap());

    let secret = store.add("ci", Role::Agent, 0, &entropy(1)).unwrap();
    assert!(node.verify(secret.reveal()).is_none());
    assert!(node.reload().unwrap());
    assert!(node.verify(secret.reveal()).is_some());
    assert!(!node.reload().unwrap());

    let path = dir.path().join(FILE_NAME);
    RealDisk.write(&path, b"garbage").unwrap();
    assert!(matches!(node.reload(), Err(TokensError::Damaged { .. })));
    RealDisk.remove(&path).unwrap();
    assert!(matches!(
        node.reload(),
        Err(TokensError::Disappeared { .. })
    ));
    assert!(node.required() && node.verify(secret.reveal()).is_some());
}

#[test]
fn two_processes_do_not_lose_each_others_change() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = open(dir.path()).unwrap();
    let mut second = open(dir.path()).unwrap();
    first.add("one", Role::Agent, 0, &entropy(1)).unwrap();
    second.add("two", Role::Agent, 0, &entropy(2)).unwrap();
    assert_eq!(open(dir.path()).unwrap().list().len(), 2);

    let _held = RealDisk.lock(&dir.path().join("tokens.lock")).unwrap();
    let refused = first.add("three", Role::Agent, 0, &entropy(3));
    assert!(matches!(
        refused,
        Err(AddError::Lock(LockError::Held { .. }))
    ));
}
