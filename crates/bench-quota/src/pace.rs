//! Pacing of a load: which caller sends what and when, from the time only, without clock or socket.

use super::agents::{Agents, Names};
use super::counts::LatencyStart;
use super::{Pace, Reuse};
use bench::pacing::Schedule;

/// Pacer of all callers of a load.
#[derive(Debug)]
pub(super) struct Pacer {
    kind: Kind,
    agents: Agents,
    /// Time at which the counted window opens, and at which no new request begins.
    open_ns: u64,
    end_ns: u64,
}

#[derive(Debug)]
enum Kind {
    Users {
        users: Vec<User>,
        steps: usize,
        think_ns: u64,
    },
    Count {
        left: u64,
    },
    Closed,
    Scheduled {
        schedule: Schedule,
        begin_ns: u64,
        next: u64,
    },
}

/// State of a virtual user.
#[derive(Debug, Clone, Copy, Default)]
struct User {
    step: usize,
    /// Agent of its requests until it thinks.
    agent: u32,
}

/// Next action of a free caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Send a request.
    Send(NextRequest),
    /// Think until this time.
    Sleep(u64),
    /// Wait for [`Pacer::due_ns`].
    Idle,
    /// Finished.
    Done,
}

/// A request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextRequest {
    pub(super) template: usize,
    /// Agent, if the pace determines it; otherwise the next agent.
    pub(super) agent: Option<u32>,
    /// Intended send time, on a schedule.
    pub(super) intended_ns: Option<u64>,
    pub(super) is_counted: bool,
}

impl Pacer {
    /// Makes a pacer that begins now. `None` for a schedule without a rate.
    pub(super) fn new(pace: &Pace, names: &Names, begin_ns: u64) -> Option<Self> {
        let (kind, warmup_ns, window_ns) = match pace {
            Pace::Users {
                vus,
                steps,
                think_ns,
                window_ns,
            } => {
                let kind = Kind::Users {
                    users: vec![User::default(); *vus as usize],
                    steps: steps.len(),
                    think_ns: *think_ns,
                };
                (kind, 0, *window_ns)
            }
            Pace::Count { requests, .. } => (Kind::Count { left: *requests }, 0, u64::MAX / 2),
            Pace::Closed {
                warmup_ns,
                window_ns,
                ..
            } => (Kind::Closed, *warmup_ns, *window_ns),
            Pace::Scheduled {
                rate,
                warmup_ns,
                window_ns,
                ..
            } => {
                let kind = Kind::Scheduled {
                    schedule: Schedule::new(*rate, 1, 0)?,
                    begin_ns,
                    next: 0,
                };
                (kind, *warmup_ns, *window_ns)
            }
        };
        Some(Self {
            kind,
            agents: Agents::of(names),
            open_ns: begin_ns + warmup_ns,
            end_ns: begin_ns + warmup_ns + window_ns,
        })
    }

    /// Returns the time at which the window opens.
    pub(super) fn open_ns(&self) -> u64 {
        self.open_ns
    }

    /// Returns the agent of the next take.
    pub(super) fn agent(&mut self) -> u32 {
        self.agents.next()
    }

    /// Returns the action of caller `caller`, which is free at `now_ns`.
    pub(super) fn next(&mut self, caller: usize, now_ns: u64) -> NextAction {
        let (open_ns, end_ns) = (self.open_ns, self.end_ns);
        let going = NextRequest {
            template: 0,
            agent: None,
            intended_ns: None,
            is_counted: now_ns >= open_ns,
        };
        match &mut self.kind {
            Kind::Users {
                users,
                steps,
                think_ns,
            } => {
                let user = &mut users[caller];
                if user.step == *steps {
                    user.step = 0;
                    return NextAction::Sleep(now_ns + *think_ns);
                }
                if user.step == 0 {
                    if now_ns >= end_ns {
                        return NextAction::Done;
                    }
                    user.agent = self.agents.next();
                }
                user.step += 1;
                NextAction::Send(NextRequest {
                    template: user.step - 1,
                    agent: Some(user.agent),
                    ..going
                })
            }
            Kind::Count { left: 0 } => NextAction::Done,
            Kind::Count { left } => {
                *left -= 1;
                NextAction::Send(going)
            }
            Kind::Closed if now_ns >= end_ns => NextAction::Done,
            Kind::Closed => NextAction::Send(going),
            Kind::Scheduled {
                schedule,
                begin_ns,
                next,
            } => {
                let intended_ns = *begin_ns + schedule.intended_ns(*next);
                if intended_ns >= end_ns {
                    return NextAction::Done;
                }
                if intended_ns > now_ns {
                    return NextAction::Idle;
                }
                *next += 1;
                NextAction::Send(NextRequest {
                    intended_ns: Some(intended_ns),
                    is_counted: intended_ns >= open_ns,
                    ..going
                })
            }
        }
    }

    /// Returns when idle callers must call again: for the next request of the schedule, or to learn
    /// that there is none.
    pub(super) fn due_ns(&self) -> u64 {
        match &self.kind {
            Kind::Scheduled {
                schedule,
                begin_ns,
                next,
            } => *begin_ns + schedule.intended_ns(*next),
            Kind::Users { .. } | Kind::Count { .. } | Kind::Closed => self.end_ns,
        }
    }
}

impl Pace {
    /// Returns the number of connections, or of users with one each.
    pub(super) fn callers(&self) -> usize {
        match *self {
            Self::Users { vus, .. } => vus as usize,
            Self::Count { connections, .. }
            | Self::Closed { connections, .. }
            | Self::Scheduled { connections, .. } => connections as usize,
        }
    }

    /// Returns the maximum number of requests in flight on a connection.
    pub(super) fn depth(&self) -> usize {
        match *self {
            Self::Users { .. } | Self::Scheduled { .. } => 1,
            Self::Count { pipeline, .. } | Self::Closed { pipeline, .. } => pipeline as usize,
        }
    }

    /// Returns the reuse of connections.
    pub(super) fn reuse(&self) -> Reuse {
        match *self {
            Self::Count { reuse, .. } => reuse,
            _ => Reuse::Kept,
        }
    }

    /// Returns true if each request's time is split into phases, as Apache Bench does.
    pub(super) fn has_phases(&self) -> bool {
        matches!(self, Self::Count { pipeline: 1, .. })
    }

    /// Returns whether requests have an intended send time.
    pub(super) fn timed(&self) -> LatencyStart {
        match self {
            Self::Scheduled { .. } => LatencyStart::FromIntention,
            _ => LatencyStart::FromSend,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use crate::agents::Order;

    fn pacer(pace: &Pace) -> Pacer {
        let names = Names {
            prefix: String::new(),
            count: 10,
            order: Order::InTurn,
        };
        Pacer::new(pace, &names, 1_000).unwrap()
    }

    fn template(next: NextAction) -> usize {
        match next {
            NextAction::Send(going) => going.template,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_user_sends_its_steps_then_thinks_and_finishes_its_iteration() {
        let mut pacer = pacer(&Pace::Users {
            vus: 2,
            steps: vec![Step::Health, Step::Request],
            think_ns: 500,
            window_ns: 2_000,
        });
        assert_eq!(template(pacer.next(0, 1_000)), 0);
        assert_eq!(template(pacer.next(1, 1_000)), 0);
        let NextAction::Send(second) = pacer.next(0, 1_100) else {
            panic!("it asks again");
        };
        assert_eq!((second.template, second.agent), (1, Some(0)));
        assert_eq!(pacer.next(0, 1_200), NextAction::Sleep(1_700));
        assert_eq!(template(pacer.next(0, 1_700)), 0);
        // After the end, a started iteration is completed and no new one begins.
        assert_eq!(template(pacer.next(0, 3_100)), 1);
        assert_eq!(pacer.next(0, 3_200), NextAction::Sleep(3_700));
        assert_eq!(pacer.next(0, 3_700), NextAction::Done);
    }

    #[test]
    fn a_number_of_requests_is_shared_by_free_callers() {
        let mut pacer = pacer(&Pace::Count {
            connections: 2,
            pipeline: 1,
            requests: 3,
            reuse: Reuse::Kept,
        });
        for caller in [0, 0, 1] {
            assert!(matches!(pacer.next(caller, 1_000), NextAction::Send(_)));
        }
        assert_eq!(pacer.next(1, 1_000), NextAction::Done);
    }

    #[test]
    fn a_closed_loop_counts_nothing_before_its_window() {
        let mut pacer = pacer(&Pace::Closed {
            connections: 1,
            pipeline: 1,
            warmup_ns: 100,
            window_ns: 1_000,
        });
        let mut counted = |now_ns| match pacer.next(0, now_ns) {
            NextAction::Send(going) => Some(going.is_counted),
            _ => None,
        };
        assert_eq!(counted(1_099), Some(false));
        assert_eq!(counted(1_100), Some(true));
        assert_eq!(counted(2_100), None);
    }

    #[test]
    fn a_schedule_keeps_its_times_if_callers_are_late() {
        let mut pacer = pacer(&Pace::Scheduled {
            connections: 1,
            rate: 1_000_000,
            warmup_ns: 1_000,
            window_ns: 2_000,
        });
        let mut intended = |now_ns| match pacer.next(0, now_ns) {
            NextAction::Send(going) => (going.intended_ns, going.is_counted),
            other => panic!("{other:?}"),
        };
        assert_eq!(intended(1_000), (Some(1_000), false));
        assert_eq!(intended(3_500), (Some(2_000), true));
        assert_eq!(intended(3_500), (Some(3_000), true));
        assert_eq!(pacer.next(0, 3_500), NextAction::Done);
    }
}
