//! Quotas on one connection: TAKE, SETTLE and PEEK frames to the node's quotas, and the answers.
//!
//! An answer that is known at once is encoded on the thread that decided it, and is sent together
//! with the other answers of the chunk. Takes that wait for a limit or for the shared store are
//! polled before the connection's task rests ([`Waits`]); then, like the others, their answers may
//! wait for the disk ([`Answers`]). A take allocates nothing: the desk, the costs and the answer are
//! reused. Invariant: *every request is answered once.*

mod answer;
mod frame;
mod waits;

use std::task::Context;
use std::time::Duration;

use access::Principal;
use messaging::Turn;
use model::ErrorCode;
use platform::Durable;
use quota::{Cost, HoldId, Settled, Subject, Unit};
use quota_service::{Desk, Requester, SettleOutcome, Take, TakeProgress, WaitingTake};
use routing::Ticket;
use wire::{Costs, Settle, TAKES_MAX, Takes};

use super::answers::{self, Answers};
use super::errors::ErrorAnswer;
use super::outlet::correlation;
use answer::Answer;
use frame::Frame;
use waits::{Parking, Waits};

/// The client, as the owner of holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Owner {
    /// The name of its token, if it has one.
    pub(super) principal: Option<String>,
    /// True if it may settle holds of other principals.
    pub(super) is_admin: bool,
    /// True if it supports hold ids of 128 bits.
    pub(super) has_long_holds: bool,
}

/// The quota requests of one connection; see the module's documentation.
pub(super) struct Quota {
    node: node::Node,
    owner: Owner,
    desk: Desk,
    costs: Vec<Cost>,
    answer: Answer,
    waits: Waits,
}

impl Quota {
    pub(super) fn new(node: node::Node, owner: Owner) -> Self {
        Self {
            node,
            owner,
            desk: Desk::new(),
            costs: Vec::new(),
            answer: Answer::default(),
            waits: Waits::default(),
        }
    }

    /// Decides takes; the answer is sent with the tag.
    pub(super) fn take(
        &mut self,
        turn: &Turn<'_>,
        answers: &mut Answers,
        tag: Ticket,
        takes: &Takes<'_>,
    ) {
        if let Err((code, message)) = check(takes) {
            return answers.fail(tag, ErrorAnswer::new(code, message));
        }
        self.answer.clear();
        let (mut durable, mut later) = (None, Vec::new());
        for take in takes.iter() {
            match self.decide(turn.principal(), &take) {
                // All of them are written to one shard of the journal, in order: the newest becomes
                // durable last.
                Decided::Now(newest) => durable = newest.or(durable),
                Decided::Later(parked) => later.push((self.answer.outcomes.len(), parked)),
            }
        }
        if later.is_empty() {
            return self.reply(answers, tag, durable);
        }
        let is_asking = takes.iter().all(|take| take.wait.is_none());
        self.park(answers, tag, durable, later, is_asking);
    }

    /// Decides one take and adds its outcome to the answer, unless the outcome is known later.
    fn decide(&mut self, principal: &Principal, take: &wire::Take<'_>) -> Decided {
        if take.hold_ms.is_some() && !self.owner.has_long_holds {
            let message = "this client does not support hold ids of 128 bits: update it";
            self.answer.put_refused(ErrorCode::Unsupported, message);
            return Decided::Now(None);
        }
        let owner = self.owner.principal.as_deref();
        let asked = match read_take(take, owner, &mut self.costs) {
            Ok(asked) => asked,
            Err(message) => {
                let code = ErrorCode::InvalidArgument;
                self.answer.put_refused(code, &message);
                return Decided::Now(None);
            }
        };
        if let Err(forbidden) = principal.check_subject(asked.subject.name()) {
            let message = forbidden.to_string();
            self.answer.put_refused(ErrorCode::Denied, &message);
            return Decided::Now(None);
        }
        let quotas = self.node.quotas();
        if let Some(halt) = quotas.halt_of_taker(principal) {
            self.answer
                .put_refused(ErrorCode::Denied, &halt.to_string());
            return Decided::Now(None);
        }
        if let Some(wait) = take.wait {
            let wait_max = Duration::from_millis(u64::from(wait.wait_ms));
            let parked = quotas.take_waiting(&asked, wait_max, wait.priority);
            return Decided::Later(parked);
        }
        match quotas.take(&mut self.desk, &asked) {
            TakeProgress::Asks(parked) => Decided::Later(parked),
            TakeProgress::Done(taken) => {
                self.answer.put(&self.desk, &taken);
                Decided::Now(taken.durable)
            }
        }
    }

    /// Answers now if everything is known, or else when it is.
    fn park(
        &mut self,
        answers: &mut Answers,
        tag: Ticket,
        durable: Option<Durable>,
        later: Vec<(usize, WaitingTake)>,
        is_asking: bool,
    ) {
        let frame = Frame::new(std::mem::take(&mut self.answer), durable, later);
        match self
            .waits
            .park(answers, tag, frame, is_asking, &mut self.desk)
        {
            Parking::Waits => {}
            Parking::Done(frame) => self.reply_frame(answers, tag, frame),
            Parking::Full => {
                self.answer.clear();
                let message = "too many waiting takes on this connection (limit 1024)";
                self.answer.put_refused(ErrorCode::Busy, message);
                self.reply(answers, tag, None);
            }
        }
    }

    /// Ends a hold.
    pub(super) fn settle(&mut self, answers: &mut Answers, tag: Ticket, settle: &Settle<'_>) {
        let settled = match settle.costs {
            None => Settled::Cancelled,
            Some(costs) => match read_costs(costs, &mut self.costs) {
                Ok(()) => Settled::Cost(&self.costs),
                Err(message) => {
                    return answers.fail(tag, ErrorAnswer::invalid(message));
                }
            },
        };
        let hold = HoldId(settle.hold);
        let requester = Requester {
            principal: self.owner.principal.as_deref(),
            is_admin: self.owner.is_admin,
        };
        let quotas = self.node.quotas();
        let settling = quotas.settle(&mut self.desk, hold, settled, requester);
        if settling.outcome == SettleOutcome::Denied {
            let error = ErrorAnswer::new(ErrorCode::Denied, door::FOREIGN_HOLD);
            return answers.fail(tag, error);
        }
        if let Some(reason) = settling.failed {
            let error = ErrorAnswer::new(ErrorCode::Unconfirmed, reason);
            return answers.fail(tag, error.after_sending());
        }
        self.answer.clear();
        let at = correlation(tag);
        let is_settled = settling.outcome == SettleOutcome::Settled;
        wire::encode_settled(is_settled, at, &mut self.answer.frame);
        self.send(answers, tag, settling.durable);
    }

    /// Answers the state of a subject's limits.
    pub(super) fn peek(&mut self, answers: &mut Answers, tag: Ticket, subject: &str) {
        match Subject::parse(subject) {
            Err(error) => {
                answers.fail(tag, ErrorAnswer::invalid(error.to_string()));
            }
            Ok(subject) => {
                self.answer.clear();
                match self.node.quotas().peek(&mut self.desk, &subject) {
                    Some(parked) => self.park(answers, tag, None, vec![(0, parked)], true),
                    None => {
                        self.answer.put_limit_states(&self.desk);
                        self.reply(answers, tag, None);
                    }
                }
            }
        }
    }

    /// Cancels the waiting request of this tag; returns false if there is none.
    pub(super) fn cancel(&mut self, answers: &mut Answers, tag: Ticket) -> bool {
        let was_parked = self.waits.cancel(answers, tag);
        if was_parked {
            let error = ErrorAnswer::new(ErrorCode::Cancelled, "cancelled by the caller");
            answers.fail(tag, error);
        }
        was_parked
    }

    /// Returns whether no take waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty()
    }

    /// Answers takes that are decided; the task is woken when there may be more.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, answers: &mut Answers) {
        while let Some((tag, frame)) = self.waits.poll(answers, cx, &mut self.desk) {
            self.reply_frame(answers, tag, frame);
        }
    }

    fn reply(&mut self, answers: &mut Answers, tag: Ticket, durable: Option<Durable>) {
        self.answer.finish(correlation(tag));
        self.send(answers, tag, durable);
    }

    fn reply_frame(&mut self, answers: &mut Answers, tag: Ticket, mut frame: Frame) {
        frame.finish(correlation(tag));
        self.answer = frame.answer;
        self.send(answers, tag, frame.durable);
    }

    /// Sends the finished frame, now or when the records that it depends on are durable.
    fn send(&mut self, answers: &mut Answers, tag: Ticket, durable: Option<Durable>) {
        let frame = &self.answer.frame;
        match durable {
            Some(durable) => {
                let answer = answers::Answer::Frame(frame.as_slice().into());
                answers.push(tag, Some(durable), answer, frame.len());
            }
            None => answers.send(|out| out.extend_from_slice(frame)),
        }
    }
}

/// The outcome of one take of a frame.
enum Decided {
    /// The outcome is in the answer, to be sent when this is durable.
    Now(Option<Durable>),
    /// The outcome is known when this has finished.
    Later(WaitingTake),
}

fn check(takes: &Takes<'_>) -> Result<(), (ErrorCode, &'static str)> {
    match takes.count {
        0 => Err((ErrorCode::InvalidArgument, "a TAKE needs at least one take")),
        1 => Ok(()),
        2..=TAKES_MAX if takes.iter().any(|take| take.wait.is_some()) => {
            let message = "a take that waits must be the only one in its frame";
            Err((ErrorCode::InvalidArgument, message))
        }
        2..=TAKES_MAX => Ok(()),
        _ => Err((ErrorCode::TooLarge, "too many takes in a TAKE (limit 1024)")),
    }
}

fn read_take<'a>(
    take: &wire::Take<'a>,
    principal: Option<&'a str>,
    costs: &'a mut Vec<Cost>,
) -> Result<Take<'a>, String> {
    read_costs(take.costs, costs)?;
    Ok(Take {
        subject: Subject::parse(take.subject).map_err(|error| error.to_string())?,
        costs,
        hold: take.hold_ms.map(|ms| Duration::from_millis(u64::from(ms))),
        id: take.id,
        principal,
    })
}

fn read_costs(from: Costs<'_>, costs: &mut Vec<Cost>) -> Result<(), String> {
    costs.clear();
    for (unit, count) in from.iter() {
        let unit = Unit::parse(unit).map_err(|error| error.to_string())?;
        costs.push((unit, count));
    }
    Ok(())
}
