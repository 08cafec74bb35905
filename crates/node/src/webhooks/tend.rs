//! Looking after agents: what has happened, what is to be kept of it, and whom to call.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use conversations::record::WebhookSettings;
use journal::{Status, StreamId};
use model::{ErrorCode, Name};

use super::agent::{Agent, Signal};
use super::{Call, Webhooks, nothing};
use crate::conversations::{Change, Look, Refusal};
use crate::counters::Counter;
use crate::handle::Handle;
use crate::store::Kind;

/// Conversations that are looked at in one step.
const STEP: usize = 256;

/// Views that are not ready and conversations that cannot be read are asked again after this.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// What is not durable yet is looked at again after this.
const SYNC_PAUSE: Duration = Duration::from_millis(5);

/// Conversations that have to be looked at again.
#[derive(Default)]
struct Again {
    /// Something of them is not durable yet.
    partial: Vec<u64>,
    /// They could not be read.
    failed: Vec<u64>,
}

/// What is to be done.
#[derive(Debug)]
pub struct Tended {
    /// Calls to be made now.
    pub calls: Vec<Call>,
    /// When there is something to do even if nothing happens; `None` for never.
    pub again_in: Option<Duration>,
}

impl Webhooks<'_> {
    /// Ready when there is something to tend to.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.store.touched.poll_changed(cx)
    }

    /// Looks at what has happened, keeps what has to be kept, and says which calls are to be made.
    /// The shell calls it when something has changed, and when it was told to.
    pub fn tend(&self) -> Result<Tended, Refusal> {
        self.load()?;
        let mut again_in = self.scan();
        let (taken, is_more) = self.store.touched.take(STEP);
        let mut pause = |pause: Duration| {
            again_in = Some(again_in.map_or(pause, |it| it.min(pause)));
        };
        if is_more {
            pause(Duration::ZERO);
        }
        let Again { partial, failed } = self.look_at(&taken);
        for (conversations, after) in [(partial, SYNC_PAUSE), (failed, FAILURE_PAUSE)] {
            if !conversations.is_empty() {
                self.store.touched.put_back(&conversations);
                pause(after);
            }
        }
        if !self.keep()? {
            pause(SYNC_PAUSE);
        }
        let calls = self.calls();
        if let Some(next_ms) = self.next_ms() {
            pause(Duration::from_millis(next_ms.saturating_sub(self.now_ms())));
        }
        Ok(Tended { calls, again_in })
    }

    /// Finds what is behind the read marks of agents for which nobody has looked yet.
    fn scan(&self) -> Option<Duration> {
        let is_wanted = |agent: &Agent| {
            let room = agent.options().pending_max as usize / 2;
            !agent.is_scanned && agent.deliveries.len() <= room
        };
        let wanted: Vec<_> = {
            let agents = self.kept.agents.lock();
            let wanted = agents.iter().filter(|(_, agent)| is_wanted(agent));
            let wanted = wanted.map(|(name, agent)| (name.clone(), agent.options().pending_max));
            wanted.collect()
        };
        if wanted.is_empty() {
            return None;
        }
        let node = Handle {
            inner: self.inner.clone(),
        };
        let views = node.views()?;
        for (name, count) in wanted {
            let (namespace, agent) = name.rsplit_once('/').unwrap_or_default();
            // What happens from now on is touched.
            let Ok(due) = views.due(namespace, agent, count as usize) else {
                return Some(FAILURE_PAUSE);
            };
            let found = due
                .iter()
                .filter_map(|due| self.store.find(Kind::Conversation, &due.name));
            let found: Vec<_> = found.map(|at| at.stream.0).collect();
            if let Some(agent) = self.kept.agents.lock().get_mut(&name) {
                agent.is_scanned = true;
            }
            self.store.touched.put_back(&found);
        }
        None
    }

    /// Tells the agents of conversations what they have not answered.
    fn look_at(&self, conversations: &[u64]) -> Again {
        let mut again = Again::default();
        for conversation in conversations {
            match self.look(*conversation) {
                // What cannot be read now may be later.
                Err(_) => again.failed.push(*conversation),
                Ok(None) => {}
                Ok(Some(look)) => {
                    let now_ms = self.now_ms();
                    let mut agents = self.kept.agents.lock();
                    let Some(agent) = agents.get_mut(&look.agent).filter(|_| look.is_open) else {
                        continue;
                    };
                    if agent.feed(*conversation, &look, now_ms, &self.store.touched) {
                        again.partial.push(*conversation);
                    }
                }
            }
        }
        again
    }

    fn look(&self, conversation: u64) -> Result<Option<Look>, Refusal> {
        let node = Handle {
            inner: self.inner.clone(),
        };
        let conversations = node.conversations().ok_or_else(nothing)?;
        conversations.look(StreamId(conversation), &|agent| {
            let agents = self.kept.agents.lock();
            agents.get(agent).map_or(0, |it| it.floor(conversation))
        })
    }

    /// Writes what has to be kept. False if something is left to be looked after.
    fn keep(&self) -> Result<bool, Refusal> {
        let unix_ms = self.inner.ports.clock.unix_ms();
        let mut buried = Vec::new();
        let mut is_done = true;
        {
            let mut agents = self.kept.agents.lock();
            for (name, agent) in agents.iter_mut() {
                if agent.unwritten.is_empty() && agent.burying.is_empty() {
                    continue;
                }
                let Some(at) = self.store.find(Kind::Agent, name) else {
                    continue;
                };
                agent.write_changes(self.store, at, unix_ms)?;
                let all = std::mem::take(&mut agent.burying);
                for (ticket, conversation, seq) in all {
                    match self.store.journal.status(ticket) {
                        Status::Durable => buried.push((name.clone(), conversation, seq)),
                        Status::Pending => agent.burying.push((ticket, conversation, seq)),
                        // The journal has failed: a restart knows.
                        Status::Failed => {}
                    }
                }
                is_done &= agent.burying.is_empty();
            }
        }
        for (name, conversation, seq) in buried {
            self.pass_over(&name, conversation, seq)?;
        }
        Ok(is_done)
    }

    /// Moves the read mark of an agent behind a dead letter that is durable.
    fn pass_over(&self, agent: &str, conversation: u64, seq: u64) -> Result<(), Refusal> {
        let who = agent.rsplit('/').next().unwrap_or_default();
        let change = Change::Cursor {
            who: who.to_owned(),
            seq,
        };
        let node = Handle {
            inner: self.inner.clone(),
        };
        let conversations = node.conversations().ok_or_else(nothing)?;
        let named = self.store.named(StreamId(conversation));
        let name = named.and_then(|(_, name, _)| Name::parse(&name).ok());
        let Some(name) = name else {
            return Ok(());
        };
        match conversations.change(&name, None, &change) {
            // Nobody waits for it: until it is durable the letter itself says so.
            Ok(_) => Ok(()),
            Err(refusal) if matches!(refusal.code, ErrorCode::NotFound | ErrorCode::Gone) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Calls that are to be made now.
    fn calls(&self) -> Vec<Call> {
        let now_ms = self.now_ms();
        let mut found = Vec::new();
        {
            let mut agents = self.kept.agents.lock();
            let in_flight = agents.values().map(|it| it.deliveries.calling() as usize);
            let mut room = self.kept.options.calls_max.saturating_sub(in_flight.sum());
            let mut is_any = true;
            // In turns: no agent takes all the room.
            while room > 0 && is_any {
                is_any = false;
                for (name, agent) in agents.iter_mut() {
                    if room > 0
                        && let Some(call) = agent.poll(now_ms, &self.store.touched)
                        && let Some(flight) = agent.flights.get(&call.conversation)
                    {
                        let (settings, signal) = (agent.settings.clone(), flight.signal.clone());
                        found.push((name.clone(), settings, call, signal));
                        room -= 1;
                        is_any = true;
                    }
                }
            }
        }
        let checked = found.into_iter().filter_map(|it| self.check(it));
        checked.collect()
    }

    /// A call, unless its conversation wants it no more.
    fn check(&self, found: Found) -> Option<Call> {
        let (agent, settings, call, signal) = found;
        let (conversation, number) = (call.conversation, call.number);
        let look = self.look(conversation);
        {
            let mut agents = self.kept.agents.lock();
            let known = agents.get_mut(&agent)?;
            match look {
                Ok(Some(look)) if look.agent == agent && look.is_open => {
                    if look.read >= call.to_seq && !known.is_revived(conversation) {
                        known.answered(conversation, number, &self.store.touched);
                        return None;
                    }
                }
                Ok(_) => {
                    known.forget(conversation, &self.store.touched);
                    return None;
                }
                // It is known when it is called.
                Err(_) => {}
            }
        }
        let (_, name, _) = self.store.named(StreamId(conversation))?;
        let counters = &self.inner.counters;
        counters.count(Counter::WebhookCalls);
        Some(Call {
            inner: self.inner.clone(),
            agent,
            settings,
            conversation: Name::parse(&name).ok()?,
            call,
            signal,
            is_over: false,
        })
    }

    fn next_ms(&self) -> Option<u64> {
        let agents = self.kept.agents.lock();
        let in_flight = agents.values().map(|it| it.deliveries.calling() as usize);
        if in_flight.sum::<usize>() >= self.kept.options.calls_max {
            // Whatever ends makes room.
            return None;
        }
        agents
            .values()
            .filter_map(|it| it.deliveries.next_ms())
            .min()
    }
}

type Found = (
    String,
    Arc<WebhookSettings>,
    conversations::delivery::Call,
    Arc<Signal>,
);
