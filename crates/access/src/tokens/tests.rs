use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use platform::{Disk, LockError, RealDisk};

use super::*;

fn open(dir: &Path) -> Result<TokenStore, TokensError> {
    TokenStore::open(Arc::new(RealDisk), dir)
}

fn verify<'a>(index: &'a Index, text: &str) -> Option<&'a Token> {
    index.find(text).map(|position| &index.tokens()[position])
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
        .add("ci", Role::Agent, &[], 1_760_000_000, &entropy(1))
        .unwrap();
    let ops = store
        .add("ops", Role::Admin, &[], 1_760_000_001, &entropy(2))
        .unwrap();

    let mut store = open(dir.path()).unwrap();
    assert!(store.required());
    assert_eq!(store.list().len(), 2);
    let index = Index::new(store.list());
    let token = verify(&index, ci.reveal()).unwrap();
    assert_eq!(
        (token.name.as_str(), token.role, token.created_s),
        ("ci", Role::Agent, 1_760_000_000)
    );
    assert_eq!(verify(&index, ops.reveal()).unwrap().role, Role::Admin);
    assert!(verify(&index, "").is_none());
    assert!(verify(&index, "tlp_").is_none());
    assert_eq!(index.position(token), Some(0));

    store.revoke("ci").unwrap();
    let index = Index::new(store.list());
    assert!(verify(&index, ci.reveal()).is_none());
    assert_eq!(index.position(token), None);
    let index = Index::new(open(dir.path()).unwrap().list());
    assert!(verify(&index, ops.reveal()).is_some());
}

#[test]
fn token_file_has_no_secrets_and_mode_0600() {
    let dir = tempfile::tempdir().unwrap();
    let secret = open(dir.path())
        .unwrap()
        .add("ci", Role::Agent, &[], 0, &entropy(1))
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
fn duplicate_or_invalid_token_names_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store.add("ci", Role::Agent, &[], 0, &entropy(1)).unwrap();
    assert!(matches!(
        store.add("ci", Role::Agent, &[], 0, &entropy(2)),
        Err(AddError::Exists { .. })
    ));
    for name in ["", "two words", "a/b", "ü", &"x".repeat(65)] {
        assert!(matches!(
            store.add(name, Role::Agent, &[], 0, &entropy(3)),
            Err(AddError::Name { .. })
        ));
    }
    assert_eq!(store.list().len(), 1);
}

#[test]
fn revoking_an_unknown_token_suggests_the_nearest_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store
        .add("builder", Role::Agent, &[], 0, &entropy(1))
        .unwrap();
    match store.revoke("bulider") {
        Err(ChangeError::Unknown { nearest, .. }) => {
            assert_eq!(nearest.as_deref(), Some("builder"))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn authentication_stays_required_after_the_last_token_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    store.add("ci", Role::Agent, &[], 0, &entropy(1)).unwrap();
    store.revoke("ci").unwrap();
    assert!(store.required());
    assert!(open(dir.path()).unwrap().required());
}

#[test]
fn damaged_token_file_is_an_error() {
    let row = "name = 'a'\nrole = 'agent'\ncreated = 0\n";
    let salt = format!("salt = '{}'\n", "00".repeat(16));
    let hash = format!("hash = '{}'\n", "00".repeat(32));
    let token = format!("[[token]]\n{row}{salt}{hash}");
    let cases = [
        (String::new(), "version"),
        ("version = ".to_owned(), ""),
        ("version = 3".to_owned(), "version is 3"),
        ("version = 1\nowner = 'me'".to_owned(), "owner"),
        (format!("version = 1\n[[token]]\n{row}"), "neither"),
        (
            format!("version = 1\n[[token]]\n{row}salt = '00'\n{hash}"),
            "neither",
        ),
        (
            format!("version = 2\n{token}sha256 = '{}'\n", "00".repeat(32)),
            "neither",
        ),
        (
            format!("version = 2\n{token}for = ['a/b']\n"),
            "`for` of `a`",
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
fn failed_token_reload_keeps_the_previous_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path()).unwrap();
    let mut node = open(dir.path()).unwrap();
    assert!(!node.reload().unwrap());

    let secret = store.add("ci", Role::Agent, &[], 0, &entropy(1)).unwrap();
    assert!(verify(&Index::new(node.list()), secret.reveal()).is_none());
    assert!(node.reload().unwrap());
    assert!(verify(&Index::new(node.list()), secret.reveal()).is_some());
    assert!(!node.reload().unwrap());

    let path = dir.path().join(FILE_NAME);
    RealDisk.write(&path, b"garbage").unwrap();
    assert!(matches!(node.reload(), Err(TokensError::Damaged { .. })));
    RealDisk.remove(&path).unwrap();
    assert!(matches!(
        node.reload(),
        Err(TokensError::Disappeared { .. })
    ));
    assert!(node.required() && verify(&Index::new(node.list()), secret.reveal()).is_some());
}

#[test]
fn concurrent_processes_keep_each_others_token_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = open(dir.path()).unwrap();
    let mut second = open(dir.path()).unwrap();
    first.add("one", Role::Agent, &[], 0, &entropy(1)).unwrap();
    second.add("two", Role::Agent, &[], 0, &entropy(2)).unwrap();
    assert_eq!(open(dir.path()).unwrap().list().len(), 2);

    let _held = RealDisk.lock(&dir.path().join("tokens.lock")).unwrap();
    let refused = first.add("three", Role::Agent, &[], 0, &entropy(3));
    assert!(matches!(
        refused,
        Err(AddError::Lock(LockError::Held { .. }))
    ));
}

/// The file as version 0.1.0 wrote it, for the text of [`EARLIER`].
const EARLIER_FILE: &str = include_str!("fixtures/version_1.toml");
const EARLIER: &str = "tlp_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

#[test]
fn version_1_token_is_accepted_for_any_name_until_bound() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    RealDisk.write(&path, EARLIER_FILE.as_bytes()).unwrap();
    let mut store = open(dir.path()).unwrap();
    let index = Index::new(store.list());
    let wrong = format!("{}X", &EARLIER[..46]);
    for _ in 0..2 {
        assert_eq!(verify(&index, EARLIER).unwrap().name, "builder");
        assert!(verify(&index, &wrong).is_none());
    }
    assert!(index.tokens()[0].is_free());

    // The token is unchanged after others are added, and can be bound without a new secret.
    let new = store.add("new", Role::Agent, &[], 0, &entropy(4)).unwrap();
    let mut later = Index::new(open(dir.path()).unwrap().list());
    later.learn(&index);
    assert_eq!(verify(&later, EARLIER).unwrap().names, None);
    assert_eq!(
        verify(&later, new.reveal()).unwrap().names.as_deref(),
        Some(&[][..])
    );
    let names = [Pattern::parse("acme/pay/*").unwrap()];
    store.bind("builder", &names).unwrap();
    let bound = Index::new(open(dir.path()).unwrap().list());
    let token = verify(&bound, EARLIER).unwrap();
    assert_eq!(token.names.as_deref(), Some(&names[..]));
    assert!(!token.is_free());
    assert!(matches!(
        store.bind("bilder", &names),
        Err(ChangeError::Unknown {
            nearest: Some(_),
            ..
        })
    ));
}
