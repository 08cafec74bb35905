//! Judges tokens for every door, in step with the data directory.

use std::sync::Arc;

use edge::{Gate, Refused, Role};
use node::Clock;
use node::tokens::{self, TokenStore};
use parking_lot::Mutex;

/// The tokens are read again before somebody is judged, at most this often.
const RELOAD_INTERVAL_NS: u64 = 1_000_000_000;

/// The data directory's tokens. Nothing happens while nobody comes; a token that was added or
/// revoked counts within a second. When the tokens cannot be read, nobody comes in.
pub(super) struct TokenGate {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    store: TokenStore,
    readable: bool,
    read_ns: u64,
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
            }),
        }
    }
}

impl Gate for TokenGate {
    fn admit(&self, token: &str) -> Result<Role, Refused> {
        let now_ns = self.clock.now_ns();
        let mut state = self.state.lock();
        if now_ns.saturating_sub(state.read_ns) >= RELOAD_INTERVAL_NS {
            state.read_ns = now_ns;
            state.reload();
        }
        if !state.readable {
            return Err(Refused::Broken);
        }
        match (state.store.required(), token) {
            (false, _) => Ok(Role::Admin),
            (true, "") => Err(Refused::Missing),
            (true, token) => match state.store.verify(token).map(|token| token.role) {
                Some(tokens::Role::Admin) => Ok(Role::Admin),
                Some(tokens::Role::Agent) => Ok(Role::Agent),
                None => Err(Refused::Unknown),
            },
        }
    }
}

impl State {
    fn reload(&mut self) {
        let outcome = self.store.reload();
        match &outcome {
            Ok(true) => tracing::info!(tokens = self.store.list().len(), "tokens have changed"),
            Ok(false) if !self.readable => tracing::info!("tokens are readable again"),
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "nobody is let in"),
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
        let pass = || clock.0.fetch_add(RELOAD_INTERVAL_NS, Ordering::Relaxed);
        assert_eq!(gate.admit(""), Ok(Role::Admin));

        let agent = open()
            .add("a", tokens::Role::Agent, 0, &[1; ENTROPY_SIZE])
            .unwrap();
        let admin = open()
            .add("b", tokens::Role::Admin, 0, &[2; ENTROPY_SIZE])
            .unwrap();
        assert_eq!(gate.admit(""), Ok(Role::Admin), "not yet read again");
        pass();
        assert_eq!(gate.admit(""), Err(Refused::Missing));
        assert_eq!(gate.admit("tlp_x"), Err(Refused::Unknown));
        assert_eq!(gate.admit(agent.reveal()), Ok(Role::Agent));
        assert_eq!(gate.admit(admin.reveal()), Ok(Role::Admin));

        let path = dir.path().join(FILE_NAME);
        let good = RealDisk.read(&path).unwrap().unwrap();
        RealDisk.write(&path, b"garbage").unwrap();
        pass();
        assert_eq!(gate.admit(agent.reveal()), Err(Refused::Broken));
        RealDisk.write(&path, &good).unwrap();
        pass();
        assert_eq!(gate.admit(agent.reveal()), Ok(Role::Agent));

        open().revoke("a").unwrap();
        open().revoke("b").unwrap();
        pass();
        assert_eq!(gate.admit(agent.reveal()), Err(Refused::Unknown));
        assert_eq!(gate.admit(""), Err(Refused::Missing));
    }
}
