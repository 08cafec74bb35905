//! Limits on what a client does at the doors, whatever it says of its costs.
//!
//! The subject of a charge is the client's [`Principal`]: the name that it has proven. All clients
//! that have proven none and claim none share `default/default/anonymous`. Nothing of what was denied
//! is done.
//!
//! What a `sync` limit counts is told when the take is on disk: the answer waits with those of the
//! connection that wait for the disk anyway, and a call, which others answer, is [held](call) until
//! then. A message that nobody answers waits for nothing.

mod call;

use std::sync::{Arc, Weak};

use model::ErrorCode;
use parking_lot::Mutex;
use quota::{Cost, Hold, Settled, Subject, Unit};

use super::Quotas;
use super::desk::Desk;
use super::outcome::{Outcome, Take};
use super::take::Turn as Whose;
use crate::access::Principal;
use crate::durable::Durable;
use crate::handle::Inner;
use crate::ports::Failure;
use crate::turn::Turn;

/// What doors count.
pub(super) const COUNTED: [Unit; 3] = [Unit::SENDS, Unit::REQUESTS_IN_FLIGHT, Unit::APPENDED_BYTES];

/// A client is over a limit.
#[derive(Clone, Debug)]
pub struct Throttled {
    code: ErrorCode,
    retry_after_ms: u32,
    message: String,
}

impl Throttled {
    /// What went wrong.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// After how many milliseconds it passes; 0 for nobody knows.
    pub fn retry_after_ms(&self) -> u32 {
        self.retry_after_ms
    }

    /// For people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// As the client is told.
    pub(crate) fn as_failure(&self) -> Failure<'_> {
        Failure {
            retry_after_ms: self.retry_after_ms,
            ..Failure::new(self.code, &self.message)
        }
    }
}

pub(crate) use call::HeldCall;

/// When something that was charged may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// At once.
    AtOnce,
    /// When it is on disk that it was charged: with the next answer that waits.
    OnDisk,
}

/// A call that is counted until this is dropped.
pub(crate) struct InFlight {
    node: Weak<Inner>,
    hold: Hold,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(inner) = self.node.upgrade() {
            Quotas { inner: &inner }.give_back(&self.hold);
        }
    }
}

/// Who is charged for what a client does.
pub(crate) struct Charged {
    principal: String,
    /// Its own: nobody else waits for it.
    desk: Mutex<Desk>,
}

impl Charged {
    /// Under the principal's name.
    pub(crate) fn new(principal: &Principal) -> Self {
        Self {
            principal: principal.subject().to_owned(),
            desk: Mutex::default(),
        }
    }
}

impl Turn<'_> {
    /// Whether the client may do what costs that. Without a limit on any of it, one atomic says so.
    pub(crate) fn admit(&mut self, costs: &[Cost]) -> Result<Told, Throttled> {
        let is_counted =
            self.inner.quotas.is_at_doors() && costs.iter().any(|(_, count)| *count > 0);
        if !is_counted {
            return Ok(Told::AtOnce);
        }
        // What a `sync` limit locks comes before the table.
        self.table = None;
        let Charged { principal, desk } = &self.peer.charged;
        let quotas = Quotas { inner: self.inner };
        let durable = quotas.admit_at_door(&mut desk.lock(), principal, costs)?;
        Ok(self.rest_on(durable))
    }

    /// The same for a call, which is counted until it has ended.
    pub(crate) fn admit_call(&mut self) -> Result<(Option<Arc<InFlight>>, Told), Throttled> {
        if !self.inner.quotas.is_at_doors() {
            return Ok((None, Told::AtOnce));
        }
        self.table = None;
        let costs = [(Unit::SENDS, 1), (Unit::REQUESTS_IN_FLIGHT, 1)];
        let quotas = Quotas { inner: self.inner };
        let Charged { principal, desk } = &self.peer.charged;
        let mut desk = desk.lock();
        let durable = quotas.admit_at_door(&mut desk, principal, &costs)?;
        let hold = charged(&desk, principal);
        drop(desk);
        let in_flight = (!hold.charges.is_empty()).then(|| {
            let node = Arc::downgrade(self.inner);
            Arc::new(InFlight { node, hold })
        });
        Ok((in_flight, self.rest_on(durable)))
    }

    /// What waits from now on waits for that, too.
    fn rest_on(&mut self, durable: Option<Durable>) -> Told {
        let block = durable.and_then(|durable| durable.tickets()[0]);
        match block {
            None => Told::AtOnce,
            Some(block) => {
                self.local.answers.rest_on(block);
                Told::OnDisk
            }
        }
    }
}

/// What the desk's last take took.
fn charged(desk: &Desk, principal: &str) -> Hold {
    let rules = desk.rules.as_ref();
    Hold {
        subject: principal.into(),
        charges: rules.map_or_else(Box::default, |rules| desk.plan.charges(rules)),
        deadline_ns: u64::MAX,
    }
}

impl Quotas<'_> {
    /// Whether a client without a connection of its own may do what costs that; and what must be on
    /// disk before that is told. Without a limit on any of it, one atomic says so.
    pub fn admit_principal(
        self,
        principal: &Principal,
        costs: &[Cost],
    ) -> Result<Option<Durable>, Throttled> {
        match self.state().is_at_doors() {
            false => Ok(None),
            true => self.admit_at_door(&mut Desk::new(), principal.subject(), costs),
        }
    }

    fn admit_at_door(
        self,
        desk: &mut Desk,
        principal: &str,
        costs: &[Cost],
    ) -> Result<Option<Durable>, Throttled> {
        // It was made from a name.
        let Ok(subject) = Subject::new(principal, "") else {
            return Ok(None);
        };
        let take = Take {
            subject,
            costs,
            hold: None,
            id: None,
        };
        let now_ns = self.now_ns();
        let rules = self.state().rules.read();
        let taken = self.take_by(&rules, desk, &take, Whose::AtDoor, now_ns);
        let (code, retry_after_ns, message) = match taken.outcome {
            Outcome::Admitted { .. } => return Ok(taken.durable),
            Outcome::Denied(denial) => {
                let retry_after_ns = denial.retry_after_ns.unwrap_or(0);
                let message = format!("`{principal}` is over limit `{}`", denial.limit.name);
                (ErrorCode::Throttled, retry_after_ns, message)
            }
            Outcome::Halted { prefix, reason } => {
                let message = format!("`{prefix}` is halted: {reason}");
                (ErrorCode::Denied, 0, message)
            }
            Outcome::Refused(refused) => (ErrorCode::TooLarge, 0, refused.to_string()),
            Outcome::Unavailable { reason } => (ErrorCode::Unavailable, 0, reason),
            Outcome::Unconfirmed { reason } => (ErrorCode::Unconfirmed, 0, reason),
        };
        // Never early: what is left of a millisecond is waited for, too.
        let retry_after_ms = retry_after_ns.div_ceil(1_000_000);
        Err(Throttled {
            code,
            retry_after_ms: u32::try_from(retry_after_ms).unwrap_or(u32::MAX),
            message,
        })
    }

    /// Slots are free again; what else was taken stays taken.
    fn give_back(self, hold: &Hold) {
        let Ok(subject) = Subject::new(&hold.subject, "") else {
            return;
        };
        let (now_ns, mut desk) = (self.now_ns(), Desk::new());
        let rules = self.state().rules.read();
        rules.plan_settle(&mut desk.plan, &subject, hold, Settled::Expired);
        let mut locked = self.lock(&desk.plan);
        // There is room: a cell of slots that are in use is there.
        let _ = quota::settle(&rules, &mut desk.plan, &subject, hold, &mut locked, now_ns);
        drop((locked, rules));
        self.wake_waiting();
    }
}
