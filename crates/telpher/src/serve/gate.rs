//! Judges tokens for every door, in step with the data directory.

use std::sync::Arc;

use edge::{Gate, Pass, Refused, Role};
use node::Clock;
use node::tokens::{self, Token, TokenStore};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The tokens are read again before somebody is judged, at most this often.
const RELOAD_INTERVAL_NS: u64 = 1_000_000_000;

/// The data directory's tokens. A token that was added or revoked counts within a second. When the
/// tokens cannot be read, nobody comes in, and who is in stays.
pub(super) struct TokenGate {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Somebody showed a token that is valid.
    admitted: Notify,
}

struct State {
    store: TokenStore,
    readable: bool,
    read_ns: u64,
    /// Counts changes of the tokens.
    changes: u64,
}

impl TokenGate {
    /// A gate that knows the tokens as `store` has just read them.
    pub(super) fn new(store: TokenStore, clock: Arc<dyn Clock>) -> Self {
        let read_ns = clock.now_ns();
        Self {
            clock,
            state: Mutex::new(State {
                store,
                readable: true,
                read_ns,
                changes: 0,
            }),
            admitted: Notify::new(),
        }
    }

    /// Waits until somebody has shown a valid token since last time.
    pub(super) async fn admission(&self) {
        self.admitted.notified().await;
    }

    /// Reads the tokens and says how often they have changed.
    pub(super) fn refresh(&self) -> u64 {
        let now_ns = self.clock.now_ns();
        let mut state = self.state.lock();
        state.reload(now_ns);
        state.changes
    }

    /// Whether the token is still valid, as the tokens were last read.
    pub(super) fn knows(&self, token: &Token) -> bool {
        self.state.lock().store.knows(token)
    }
}

impl Gate for TokenGate {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        let now_ns = self.clock.now_ns();
        let mut state = self.state.lock();
        if now_ns.saturating_sub(state.read_ns) >= RELOAD_INTERVAL_NS {
            state.reload(now_ns);
        }
        if !state.readable {
            return Err(Refused::Broken);
        }
        if !state.store.required() {
            return Ok(Pass {
                role: Role::Admin,
                token: None,
            });
        }
        if token.is_empty() {
            return Err(Refused::Missing);
        }
        let token = state.store.verify(token).ok_or(Refused::Unknown)?;
        let role = match token.role {
            tokens::Role::Admin => Role::Admin,
            tokens::Role::Agent => Role::Agent,
        };
        let token = Some(Arc::new(token.clone()));
        self.admitted.notify_one();
        Ok(Pass { role, token })
    }
}

impl State {
    fn reload(&mut self, now_ns: u64) {
        self.read_ns = now_ns;
        let outcome = self.store.reload();
        self.changes += u64::from(matches!(outcome, Ok(true)));
        match &outcome {
            Ok(true) => tracing::info!(tokens = self.store.list().len(), "tokens have changed"),
            Ok(false) if !self.readable => tracing::info!("tokens are readable again"),
            Ok(false) => {}
            Err(error) if self.readable => tracing::error!(%error, "nobody is let in"),
            Err(_) => {}
        }
        self.readable = outcome.is_ok();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use node::ports::{Disk, RealDisk};
    use node::tokens::{ENTROPY_SIZE, FILE_NAME};

    use super::*;

    #[derive(Default)]
    struct TestClock(AtomicU64);

    impl Clock for TestClock {
        fn now_ns(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn unix_ms(&self) -> u64 {
            0
        }
    }

    #[test]
    fn the_gate_follows_the_data_directory_and_shuts_when_it_cannot() {
        let dir = tempfile::tempdir().unwrap();
        let open = || TokenStore::open(Arc::new(RealDisk), dir.path()).unwrap();
        let clock = Arc::new(TestClock::default());
        let gate = TokenGate::new(open(), clock.clone());
        let role = |token: &str| gate.admit(token).map(|pass| pass.role);
        let pass = || clock.0.fetch_add(RELOAD_INTERVAL_NS, Ordering::Relaxed);
        assert_eq!(role(""), Ok(Role::Admin));

        let agent = open()
            .add("a", tokens::Role::Agent, 0, &[1; ENTROPY_SIZE])
            .unwrap();
        let admin = open()
            .add("b", tokens::Role::Admin, 0, &[2; ENTROPY_SIZE])
            .unwrap();
        assert_eq!(role(""), Ok(Role::Admin), "not yet read again");
        pass();
        assert_eq!(role(""), Err(Refused::Missing));
        assert_eq!(role("tlp_x"), Err(Refused::Unknown));
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));
        assert_eq!(role(admin.reveal()), Ok(Role::Admin));

        let path = dir.path().join(FILE_NAME);
        let good = RealDisk.read(&path).unwrap().unwrap();
        RealDisk.write(&path, b"garbage").unwrap();
        pass();
        assert_eq!(role(agent.reveal()), Err(Refused::Broken));
        RealDisk.write(&path, &good).unwrap();
        pass();
        assert_eq!(role(agent.reveal()), Ok(Role::Agent));

        let held = gate.admit(agent.reveal()).unwrap().token.unwrap();
        let before = gate.refresh();
        open().revoke("a").unwrap();
        assert!(gate.knows(&held), "not yet read again");
        assert_eq!(gate.refresh(), before + 1);
        assert!(!gate.knows(&held));
        RealDisk.write(&path, b"garbage").unwrap();
        assert_eq!(gate.refresh(), before + 1);
        RealDisk.write(&path, &good).unwrap();
        assert_eq!(gate.refresh(), before + 2);
        assert!(gate.knows(&held));

        open().revoke("a").unwrap();
        open().revoke("b").unwrap();
        pass();
        assert_eq!(role(agent.reveal()), Err(Refused::Unknown));
        assert_eq!(role(""), Err(Refused::Missing));
    }
}
