//! Authentication by tokens for all listeners, in step with the data directory.
//!
//! Listeners look tokens up in an immutable index. A thread reads the token file, builds the next
//! index, and revokes the passes of tokens that were removed or changed. No listener waits for a
//! lock or a disk.

use std::sync::{Arc, Weak};
use std::time::Duration;

use access::Principal;
use access::tokens::{Index, Token, TokenStore, TokensError};
use arc_swap::ArcSwap;
use door::{Gate, Pass, Refused};
use parking_lot::Mutex;
use tokio::sync::watch;

/// Time between two reads of the tokens. A change is effective within a second.
const RELOAD_INTERVAL: Duration = Duration::from_millis(400);

/// The tokens of the data directory. A change is effective within a second. After the file was deleted
/// or damaged, new clients are refused, and connected clients stay. A file that cannot be read at the
/// moment changes nothing: the tokens of the last read stay valid.
pub(super) struct TokenGate {
    tokens: ArcSwap<TokenPasses>,
    /// Changed by one reader at a time.
    file: Mutex<TokenFile>,
    /// Counts changes of the tokens.
    changes: watch::Sender<u64>,
}

/// The file of the tokens.
struct TokenFile {
    store: TokenStore,
    /// True after a failed read, so that a failure is logged once.
    has_read_failed: bool,
}

/// The index of the tokens of the last read, with their passes.
struct TokenPasses {
    index: Index,
    /// The passes by the token's position in the index.
    passes: Vec<Pass>,
    /// The pass of clients without a token, if no token is required.
    open: Option<Pass>,
    /// The file was there and whole when it was last read.
    is_intact: bool,
}

impl TokenGate {
    /// Creates a gate with the tokens that `store` has read.
    pub(super) fn new(store: TokenStore) -> Self {
        let tokens = TokenPasses::new(&store, None);
        Self {
            tokens: ArcSwap::from_pointee(tokens),
            file: Mutex::new(TokenFile {
                store,
                has_read_failed: false,
            }),
            changes: watch::Sender::new(0),
        }
    }

    /// Reads the tokens a few times a second, on a thread that ends with the gate.
    pub(super) fn follow(self: &Arc<Self>) -> std::io::Result<()> {
        let gate = Arc::downgrade(self);
        let thread = std::thread::Builder::new().name("tokens".to_owned());
        thread.spawn(move || reload_for_ever(&gate)).map(drop)
    }

    /// Returns a receiver of the number of changes of the tokens.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// True if the token is valid, by the last read of the tokens.
    pub(super) fn knows(&self, token: &Token) -> bool {
        self.tokens.load().index.position(token).is_some()
    }

    /// Reads the tokens again.
    pub(super) fn reload(&self) {
        let mut file = self.file.lock();
        let TokenFile {
            store,
            has_read_failed,
        } = &mut *file;
        let outcome = store.reload();
        if let Err(TokensError::Disk(error)) = &outcome {
            if !std::mem::replace(has_read_failed, true) {
                tracing::error!(%error, "tokens cannot be read: those read before stay valid");
            }
            return;
        }
        if std::mem::take(has_read_failed) {
            tracing::info!("tokens are readable again");
        }
        let before = self.tokens.load();
        match &outcome {
            Ok(false) if before.is_intact => return,
            Ok(false) => tracing::info!("tokens are valid again"),
            Ok(true) => tracing::info!(tokens = store.list().len(), "tokens have changed"),
            Err(_) if !before.is_intact => return,
            Err(error) => tracing::error!(%error, "the tokens cannot be read; clients are refused"),
        }
        let mut next = TokenPasses::new(store, Some(&before));
        next.is_intact = outcome.is_ok();
        let next = Arc::new(next);
        self.tokens.store(next.clone());
        if let Ok(true) = outcome {
            // After the swap: every new pass is one of the new index.
            before.revoke_unless_in(&next.index);
            self.changes.send_modify(|count| *count += 1);
        }
    }
}

fn reload_for_ever(gate: &Weak<TokenGate>) {
    loop {
        std::thread::sleep(RELOAD_INTERVAL);
        match gate.upgrade() {
            Some(gate) => gate.reload(),
            None => return,
        }
    }
}

impl TokenPasses {
    /// Builds the index; unchanged tokens keep their passes.
    fn new(store: &TokenStore, before: Option<&Self>) -> Self {
        let mut index = Index::new(store.list());
        if let Some(before) = before {
            index.learn(&before.index);
        }
        let pass = |token: &Token| {
            let same = before.and_then(|before| {
                let position = before.index.position(token)?;
                before.passes.get(position).cloned()
            });
            same.unwrap_or_else(|| Pass::of_token(Arc::new(token.clone())))
        };
        Self {
            passes: index.tokens().iter().map(pass).collect(),
            index,
            open: (!store.required()).then(|| Pass::new(Principal::open())),
            is_intact: true,
        }
    }

    fn revoke_unless_in(&self, index: &Index) {
        for (token, pass) in self.index.tokens().iter().zip(&self.passes) {
            if index.position(token).is_none() {
                pass.revoke();
            }
        }
    }
}

impl Gate for TokenGate {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        let tokens = self.tokens.load();
        if !tokens.is_intact {
            return Err(Refused::Broken);
        }
        if let Some(pass) = &tokens.open {
            return Ok(pass.clone());
        }
        if token.is_empty() {
            return Err(Refused::Missing);
        }
        let position = tokens.index.find(token).ok_or(Refused::Unknown)?;
        Ok(tokens.passes[position].clone())
    }
}

#[cfg(test)]
mod tests {
    use access::tokens::{ENTROPY_SIZE, FILE_NAME};
    use door::Role;
    use platform::{Disk, RealDisk};

    use super::*;

    #[test]
    fn the_gate_follows_the_token_file_and_refuses_when_unreadable() {
        let dir = tempfile::tempdir().unwrap();
        let open = || TokenStore::open(Arc::new(RealDisk), dir.path()).unwrap();
        let gate = TokenGate::new(open());
        let role = |token: &str| gate.admit(token).map(|pass| pass.role());
        assert_eq!(role(""), Ok(Role::Admin));

        let agent = open()
            .add("a", Role::Agent, &[], 0, &[1; ENTROPY_SIZE])
            .unwrap();
        let admin = open()
            .add("b", Role::Admin, &[], 0, &[2; ENTROPY_SIZE])
            .unwrap();
        assert_eq!(role(""), Ok(Role::Admin), "not yet read again");
        gate.reload();
        assert_eq!(role(""), Err(Refused::Missing));
        assert_eq!(role("tlp_x"), Err(Refused::Unknown));
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));
        assert_eq!(role(admin.reveal()), Ok(Role::Admin));

        let path = dir.path().join(FILE_NAME);
        let good = RealDisk.read(&path).unwrap().unwrap();
        RealDisk.write(&path, b"garbage").unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Err(Refused::Broken));
        RealDisk.write(&path, &good).unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));

        let held = gate.admit(agent.reveal()).unwrap();
        let kept = gate.admit(admin.reveal()).unwrap();
        let token = held.token().unwrap();
        let before = *gate.changes().borrow();
        open().revoke("a").unwrap();
        assert!(gate.knows(token), "not yet read again");
        gate.reload();
        assert_eq!(*gate.changes().borrow(), before + 1);
        assert!(!gate.knows(token) && held.is_revoked());
        assert!(!kept.is_revoked());
        RealDisk.write(&path, b"garbage").unwrap();
        gate.reload();
        assert_eq!(*gate.changes().borrow(), before + 1);
        assert!(!kept.is_revoked(), "clients that are in stay");
        RealDisk.write(&path, &good).unwrap();
        gate.reload();
        assert_eq!(*gate.changes().borrow(), before + 2);
        assert!(gate.knows(token) && !kept.is_revoked());
        assert!(!gate.admit(agent.reveal()).unwrap().is_revoked());

        // A read that fails says nothing about the tokens.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));
        assert_eq!(role("tlp_x"), Err(Refused::Unknown));
        std::fs::remove_dir(&path).unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Err(Refused::Broken), "it was deleted");
        RealDisk.write(&path, &good).unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));

        // A token whose rights change is revoked for clients that are in.
        let bound = gate.admit(agent.reveal()).unwrap();
        let names = ["acme/pay/*".parse().unwrap()];
        open().bind("a", &names).unwrap();
        gate.reload();
        assert!(bound.is_revoked());
        let pass = gate.admit(agent.reveal()).unwrap();
        assert_eq!(pass.principal().subject(), "acme/pay/a");

        open().revoke("a").unwrap();
        open().revoke("b").unwrap();
        gate.reload();
        assert_eq!(role(agent.reveal()), Err(Refused::Unknown));
        assert_eq!(role(""), Err(Refused::Missing));
    }
}
