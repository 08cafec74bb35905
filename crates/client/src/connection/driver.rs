//! `Driver`: the task of a client, which keeps a connection and reconnects after a loss.
//!
//! When a connection is lost, its calls in flight fail and its subscriptions are repeated on the
//! next one. Calls that were not sent wait for the next connection within their deadlines; the
//! driver checks those while there is no connection.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use model::ErrorCode;
use net::Address;
use tokio::time::{Instant, sleep_until};
use wire::Role;

use crate::ConnectError;
use crate::connection::engine::{End, Engine, Event};
use crate::connection::handshake::{self, EstablishedConnection};
use crate::connection::intake::{CallingSide, GoawayNotice};
use crate::connection::port::Port;
use crate::events::ConnectionState;
use crate::retry::full_jitter;
use crate::server::{Resolver, Responder};
use crate::state::completions::Completions;
use crate::state::core::{Core, Life};

/// The task of a client.
struct Driver {
    core: Arc<Core>,
    address: Address,
    /// Role of the peer; a later connection must have the same.
    role: Role,
    pauses: Pauses,
    /// Connection attempts since a connection lasted for `pause_max`.
    attempt: u32,
    /// Consecutive refusals of the token.
    refusals: u32,
    opened: Instant,
}

/// Consecutive refusals after which the token counts as revoked. A single refusal may come from a
/// node that is still starting.
const REFUSALS_MAX: u32 = 2;

/// Ends the client's state when the task ends, even when its runtime is dropped.
struct ShutdownGuard {
    core: Arc<Core>,
    code: ErrorCode,
    reason: String,
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.core.shut(self.code, &self.reason);
    }
}

impl Driver {
    fn new(core: Arc<Core>, address: Address, role: Role) -> Self {
        let pauses = Pauses::new(&core);
        Self {
            core,
            address,
            role,
            pauses,
            attempt: 0,
            refusals: 0,
            opened: Instant::now(),
        }
    }

    /// Runs until the client is closed or its token is refused.
    async fn run(mut self, first: Engine) {
        let mut shut = ShutdownGuard {
            core: self.core.clone(),
            code: ErrorCode::Unavailable,
            reason: "the client was closed".to_owned(),
        };
        let mut engine = first;
        loop {
            let goaway_address = match engine.run().await {
                Event::End(end) => {
                    close(&self.core, engine, end).await;
                    None
                }
                Event::Goaway(notice) => self.drain_in_background(engine, notice),
            };
            match self.reconnect(goaway_address).await {
                Some(established) => {
                    self.opened = Instant::now();
                    engine = self.open(established);
                }
                None => break,
            }
        }
        if self.refusals == REFUSALS_MAX {
            shut.code = ErrorCode::Unauthenticated;
            shut.reason = self.core.state.lock().down.clone();
        }
    }

    fn open(&self, established: EstablishedConnection) -> Engine {
        let EstablishedConnection {
            source,
            writer,
            peer,
        } = established;
        let options = &self.core.options;
        let responder = Responder::new(
            Resolver::Names(self.core.clone()),
            Arc::new(Port::new(&options.window)),
            options.window,
            options.requests_size_max,
            peer.window.frame_size_max,
        );
        let calling_side = CallingSide {
            core: self.core.clone(),
            link: self.core.open_link(peer),
        };
        let limit = options.window.frame_size_max;
        let keepalive_ms = options.window.keepalive_ms;
        Engine::new(
            source,
            writer,
            responder,
            Some(calling_side),
            limit,
            keepalive_ms,
        )
    }

    /// Drains the old connection in a task of its own. Returns the address in the GOAWAY.
    fn drain_in_background(&self, mut engine: Engine, notice: GoawayNotice) -> Option<Address> {
        let GoawayNotice {
            reason,
            drain_ms,
            address,
        } = notice;
        if let Some(link) = engine.link() {
            self.core.retire_link(link, &reason);
        }
        engine.begin_drain(Duration::from_millis(drain_ms.into()) + DRAIN_GRACE);
        let core = self.core.clone();
        tokio::spawn(async move {
            loop {
                match engine.run().await {
                    Event::End(end) => return close(&core, engine, end).await,
                    Event::Goaway(_) => {}
                }
            }
        });
        address.parse().ok()
    }

    /// Returns the next connection; `None` when the client is closed or its token is refused.
    async fn reconnect(
        &mut self,
        goaway_address: Option<Address>,
    ) -> Option<EstablishedConnection> {
        let core = self.core.clone();
        let mut first_choice = goaway_address;
        // A peer that accepts connections and drops them at once also gets growing pauses.
        if self.opened.elapsed() > core.options.pause_max {
            self.attempt = 0;
        }
        loop {
            // The address in a GOAWAY is tried at once; the old address gets a pause.
            let pause = match &first_choice {
                Some(_) => Duration::ZERO,
                None => self.pauses.next(self.attempt),
            };
            let reason = core.state.lock().down.clone();
            let attempt = self.attempt;
            core.events
                .send_replace(ConnectionState::Reconnecting { attempt, reason });
            let wake_at = Instant::now() + pause;
            while_down(&core, sleep_until(wake_at)).await?;
            self.attempt += 1;
            let address = first_choice.take().unwrap_or_else(|| self.address.clone());
            let connecting = handshake::connect(&core.options, &address);
            match while_down(&core, connecting).await? {
                Ok(established) if established.peer.role == self.role => {
                    self.refusals = 0;
                    return Some(established);
                }
                Ok(_) => self.set_down_reason(format!(
                    "{address} has changed its role between node and RPC server"
                )),
                Err(error) => {
                    self.set_down_reason(error.brief());
                    self.refusals = match is_refused_token(&error) {
                        true => self.refusals + 1,
                        false => 0,
                    };
                    if self.refusals == REFUSALS_MAX {
                        return None;
                    }
                }
            }
        }
    }

    fn set_down_reason(&self, reason: String) {
        self.core.state.lock().down = reason;
    }
}

/// Time added to the announced drain time of a peer, which closes the connection itself.
const DRAIN_GRACE: Duration = Duration::from_secs(1);

fn is_refused_token(error: &ConnectError) -> bool {
    matches!(
        error,
        ConnectError::Refused {
            code: ErrorCode::Unauthenticated | ErrorCode::Denied,
            ..
        }
    )
}

async fn close(core: &Core, engine: Engine, end: End) {
    if let Some(link) = engine.link() {
        core.lose_link(link, end.is_last_unwritten, &end.reason);
    }
    match end.violation {
        Some((code, message)) => {
            tokio::spawn(async move { engine.close_with_error(code, &message).await });
        }
        None if end.is_finished => engine.close_gracefully().await,
        None => {}
    }
}

/// Runs `future` while there is no connection and checks the deadlines of waiting callers. Returns
/// `None` when the client is closed.
async fn while_down<T>(core: &Core, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut alarm = pin!(sleep_until(Instant::now()));
    let mut armed = None;
    poll_fn(|cx| {
        let deadline = {
            let mut completions = Completions::default();
            let mut state = core.state.lock();
            if state.life != Life::Open {
                return Poll::Ready(None);
            }
            state.driver = Some(cx.waker().clone());
            if state.queue_deadline_min().is_some() {
                state.sweep_queues(Instant::now(), &mut completions);
            }
            let deadline = state.queue_deadline_min();
            drop(state);
            completions.finish(&[]);
            deadline
        };
        if let Some(deadline) = deadline {
            if armed != Some(deadline) {
                alarm.as_mut().reset(deadline);
                armed = Some(deadline);
            }
            if alarm.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Pauses between connection attempts: exponential backoff with full jitter, which spreads the
/// clients of a lost node (AWS Architecture Blog, "Exponential Backoff And Jitter").
struct Pauses {
    random: fastrand::Rng,
    min: Duration,
    max: Duration,
}

impl Pauses {
    fn new(core: &Core) -> Self {
        let random = match core.options.seed {
            Some(seed) => fastrand::Rng::with_seed(seed),
            None => fastrand::Rng::new(),
        };
        Self {
            random,
            min: core.options.pause_min,
            max: core.options.pause_max,
        }
    }

    fn next(&mut self, attempt: u32) -> Duration {
        full_jitter(&mut self.random, self.min, self.max, attempt)
    }
}

/// Connects for the first time and starts the task. Errors go to the caller; only later connections
/// are retried.
pub(crate) async fn start(core: Arc<Core>, address: Address) -> Result<Role, ConnectError> {
    let established = handshake::connect(&core.options, &address).await?;
    let role = established.peer.role;
    let driver = Driver::new(core, address, role);
    let engine = driver.open(established);
    tokio::spawn(driver.run(engine));
    Ok(role)
}
