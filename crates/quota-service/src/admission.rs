//! Limits on client operations at listeners, independent of the costs that clients declare.
//!
//! The subject of a charge is the client's [`Principal`]: its proven name. All clients without a
//! proven or claimed name share `default/default/anonymous`. A denied operation is not carried out
//! at all.
//!
//! A charge by a `sync` limit is durable later: the operation must not be answered before that.

use std::sync::{Arc, Weak};
use std::time::Duration;

use access::Principal;
use model::ErrorCode;
use parking_lot::Mutex;
use platform::Durable;
use quota::{Cost, Halt, Hold, LimitState, Mode, Refused, Rules, Settled, Subject, Unit};

use super::desk::Desk;
use super::outcome::{Outcome, Take, Turn};
use crate::service::{QuotaService, Quotas};

/// The units that listeners count.
pub(super) const COUNTED: [Unit; 3] = [Unit::SENDS, Unit::REQUESTS_IN_FLIGHT, Unit::APPENDED_BYTES];

/// A refusal because the client is over a limit or halted.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Throttled {
    code: ErrorCode,
    retry_after_ms: u32,
    message: String,
    /// True if the credit refills by itself.
    comes_back: bool,
}

impl Throttled {
    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// Returns the time until a retry can pass, in milliseconds; 0 if unknown.
    pub fn retry_after_ms(&self) -> u32 {
        self.retry_after_ms
    }

    /// Returns the message for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The halt that stops a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{prefix}` is halted: {reason}")]
pub struct HaltNotice {
    /// The name or prefix that is halted.
    pub prefix: String,
    /// The reason that the administrator gave.
    pub reason: String,
}

/// A call in flight, counted until this is dropped.
pub struct InFlight {
    service: Weak<QuotaService>,
    hold: Hold,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(service) = self.service.upgrade() {
            service.quotas().give_back(&self.hold);
        }
    }
}

/// The subject that a client's operations are charged to.
pub struct Charged {
    principal: Principal,
    /// The client's own desk, so there is no contention.
    desk: Mutex<Desk>,
}

impl Charged {
    /// Charges the principal's name.
    pub fn new(principal: &Principal) -> Self {
        Self {
            principal: principal.clone(),
            desk: Mutex::default(),
        }
    }

    /// Returns the principal.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Checks whether the client may perform an operation with these costs, and charges it. Returns
    /// what must be on disk before the operation is answered. Locks cells, so it must not be called
    /// under a lock that is taken after those.
    pub fn admit(&self, quotas: Quotas<'_>, costs: &[Cost]) -> Result<Option<Durable>, Throttled> {
        quotas.admit_at_door(&mut self.desk.lock(), &self.principal, costs)
    }

    /// Like [`Charged::admit`], for a call, which is counted as in flight until the returned guard
    /// is dropped.
    pub fn admit_call(
        &self,
        quotas: Quotas<'_>,
    ) -> Result<(Option<Arc<InFlight>>, Option<Durable>), Throttled> {
        let costs = [(Unit::SENDS, 1), (Unit::REQUESTS_IN_FLIGHT, 1)];
        let mut desk = self.desk.lock();
        let charge = quotas.admit_at_door(&mut desk, &self.principal, &costs)?;
        let hold = charged(&desk, self.principal.subject());
        drop(desk);
        let in_flight = (!hold.charges.is_empty()).then(|| {
            let service = Arc::downgrade(quotas.service);
            Arc::new(InFlight { service, hold })
        });
        Ok((in_flight, charge))
    }

    /// Charges an operation that the client performs. If a limit has too little left but refills by
    /// itself, the operation is charged anyway and the client must pause. Fails if the client is
    /// halted, or if the spent credit does not refill. Without a limit on any of the costs, this
    /// costs one atomic read.
    pub fn charge(&self, quotas: Quotas<'_>, costs: &[Cost]) -> Result<ChargeReceipt, Throttled> {
        if !quotas.is_at_doors() {
            return Ok(ChargeReceipt::default());
        }
        let mut desk = self.desk.lock();
        match quotas.admit_at_door(&mut desk, &self.principal, costs) {
            Ok(durable) => Ok(ChargeReceipt {
                pause: Duration::ZERO,
                durable,
            }),
            Err(throttled) if throttled.comes_back => {
                quotas.charge_over(&mut desk, self.principal.subject(), costs)
            }
            Err(throttled) => Err(throttled),
        }
    }
}

/// Returns the time until a bucket's debt is repaid, if it has debt and its limit denies: the
/// debt's share of the time until the bucket is full.
fn until_paid(state: &LimitState<'_>, now_ns: u64) -> Option<Duration> {
    let debt = u128::try_from(-state.have).ok().filter(|debt| *debt > 0)?;
    if state.limit.mode != Mode::Enforce {
        return None;
    }
    let until_full_ns = u128::from(state.reset_ns?.saturating_sub(now_ns));
    let missing = debt + u128::from(state.capacity);
    let pause_ns = until_full_ns.saturating_mul(debt).div_ceil(missing);
    Some(Duration::from_nanos(
        u64::try_from(pause_ns).unwrap_or(u64::MAX),
    ))
}

/// Returns the halt of the principal's own name, if it acts under another one.
fn own_halt<'r>(rules: &'r Rules, principal: &Principal) -> Option<(&'r str, &'r Halt)> {
    let own = principal.own_name().base();
    let is_other = principal.is_proven() && own != principal.subject();
    let found = is_other.then(|| rules.halts().get_key_value(own)).flatten();
    found.map(|(name, halt)| (&**name, halt))
}

impl HaltNotice {
    fn of((prefix, halt): (&str, &Halt)) -> Self {
        Self {
            prefix: prefix.to_owned(),
            reason: halt.reason.to_string(),
        }
    }
}

/// Returns what the desk's last take was charged, as a hold.
fn charged(desk: &Desk, principal: &str) -> Hold {
    let rules = desk.rules.as_ref();
    Hold {
        subject: principal.into(),
        principal: Box::default(),
        charges: rules.map_or_else(Box::default, |rules| desk.plan.charges(rules)),
        deadline_ns: u64::MAX,
    }
}

/// A charge that was made, possibly beyond the limit.
#[derive(Debug, Default)]
pub struct ChargeReceipt {
    /// Time for which the client must pause, until the excess has refilled.
    pub pause: Duration,
    /// The durability of the charge.
    pub durable: Option<Durable>,
}

impl Quotas<'_> {
    /// Charges more than the available credit; the excess becomes debt.
    fn charge_over(
        self,
        desk: &mut Desk,
        principal: &str,
        costs: &[Cost],
    ) -> Result<ChargeReceipt, Throttled> {
        // The subject was made from a valid name.
        let Ok(subject) = Subject::new(principal, "") else {
            return Ok(ChargeReceipt::default());
        };
        let hold = Hold {
            subject: principal.into(),
            principal: Box::default(),
            charges: Box::default(),
            deadline_ns: u64::MAX,
        };
        let take = Take {
            subject,
            costs,
            hold: None,
            id: None,
            principal: None,
        };
        let now_ns = self.now_ns();
        let rules = self.state().rules.read();
        desk.begin(&rules, now_ns);
        rules.plan_settle(&mut desk.plan, &subject, &hold, Settled::Cost(costs));
        let durable = loop {
            let mut locked = self.lock(&desk.plan);
            match quota::settle(&rules, &mut desk.plan, &subject, &hold, &mut locked, now_ns) {
                Ok(()) => {
                    if let Some(locked) = locked.first_mut() {
                        let costs = desk.plan.costs(&rules);
                        self.count_costs(&rules, &subject, costs, &mut locked.0, now_ns);
                    }
                    break self.append_take(&rules, desk, &take, None);
                }
                Err(step) => {
                    drop(locked);
                    desk.plan.overflow(&rules, step);
                }
            }
        };
        self.need_sweep();
        let durable = durable.map_err(|reason| Throttled {
            code: ErrorCode::Unavailable,
            retry_after_ms: 0,
            message: reason,
            comes_back: false,
        })?;
        let pause = desk.limit_states().filter_map(|it| until_paid(&it, now_ns));
        Ok(ChargeReceipt {
            pause: pause.max().unwrap_or_default(),
            durable,
        })
    }

    /// Returns the halt that stops a principal: of its name, of a prefix of it, or of its
    /// credential's own name under any name. For operations that are not counted. Without a limit
    /// or a halt it costs one atomic read.
    pub fn halt_of(self, principal: &Principal) -> Option<HaltNotice> {
        if !self.is_at_doors() {
            return None;
        }
        let subject = Subject::new(principal.subject(), "").ok()?;
        let rules = self.state().rules.read();
        let halted = rules.halted(&subject);
        halted
            .or_else(|| own_halt(&rules, principal))
            .map(HaltNotice::of)
    }

    /// Returns the halt that stops all takes of a client, regardless of their subject. An
    /// unauthenticated client is stopped by halts of the subject only.
    pub fn halt_of_taker(self, principal: &Principal) -> Option<HaltNotice> {
        match principal.is_proven() {
            true => self.halt_of(principal),
            false => None,
        }
    }

    /// Checks whether a client without a connection of its own may perform an operation with these
    /// costs, and charges it; returns the durability that the answer waits for. Without a limit on
    /// any of them, this costs one atomic read.
    pub fn admit_principal(
        self,
        principal: &Principal,
        costs: &[Cost],
    ) -> Result<Option<Durable>, Throttled> {
        match self.is_at_doors() {
            false => Ok(None),
            true => self.admit_at_door(&mut Desk::new(), principal, costs),
        }
    }

    fn admit_at_door(
        self,
        desk: &mut Desk,
        principal: &Principal,
        costs: &[Cost],
    ) -> Result<Option<Durable>, Throttled> {
        // The subject was made from a valid name.
        let Ok(subject) = Subject::new(principal.subject(), "") else {
            return Ok(None);
        };
        let take = Take {
            subject,
            costs,
            hold: None,
            id: None,
            principal: None,
        };
        let now_ns = self.current_ns();
        let rules = self.state().rules.read();
        if let Some(halt) = own_halt(&rules, principal) {
            return Err(Throttled {
                code: ErrorCode::Denied,
                retry_after_ms: 0,
                message: HaltNotice::of(halt).to_string(),
                comes_back: false,
            });
        }
        let taken = self.take_by(&rules, desk, &take, Turn::AtDoor, now_ns);
        let comes_back = match &taken.outcome {
            Outcome::Denied(denial) => !denial.is_exhausted(),
            Outcome::Refused(Refused::AboveCapacity { limit, .. }) => rules.refills(*limit),
            _ => false,
        };
        let (code, retry_after_ns, message) = match taken.outcome {
            Outcome::Admitted { .. } => return Ok(taken.durable),
            Outcome::Denied(denial) => {
                let retry_after_ns = denial.retry_after_ns.unwrap_or(0);
                let principal = principal.subject();
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
        // Rounded up, so that a retry is never too early.
        let retry_after_ms = retry_after_ns.div_ceil(1_000_000);
        Err(Throttled {
            code,
            retry_after_ms: u32::try_from(retry_after_ms).unwrap_or(u32::MAX),
            message,
            comes_back,
        })
    }

    /// Frees the slots of a hold; other charges stay.
    fn give_back(self, hold: &Hold) {
        let Ok(subject) = Subject::new(&hold.subject, "") else {
            return;
        };
        let (now_ns, mut desk) = (self.now_ns(), Desk::new());
        let rules = self.state().rules.read();
        rules.plan_settle(&mut desk.plan, &subject, hold, Settled::Expired);
        let mut locked = self.lock(&desk.plan);
        // This cannot fail for lack of room: the cell of a slot in use exists.
        let _ = quota::settle(&rules, &mut desk.plan, &subject, hold, &mut locked, now_ns);
        drop((locked, rules));
        self.wake_waiting();
    }
}
