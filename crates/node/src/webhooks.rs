//! Agents that are called when somebody writes.
//!
//! A conversation names its agent; what others write in it makes a call due, a little later
//! ([`conversations::delivery`] decides when). The calls themselves are made outside, by whoever
//! takes them from [`Webhooks::tend`] and says what became of them; the answer is an ordinary message
//! with an id that names the call, and the agent's read mark moves under the guard of that message. So
//! there is never an answer without its mark nor a mark without its answer, and a restart finds what
//! was not answered behind the marks, with the help of the views.
//!
//! Invariant: *the read mark of an agent moves only with an answer, or behind a dead letter that is
//! durable.*
//!
//! Locks: the agents are locked before conversations and the journal, never after. It does not know
//! HTTP or JSON.

mod agent;
mod call;
mod kept;
#[cfg(test)]
mod tests;
mod touched;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use conversations::delivery::{DeadLetter, Refused};
use journal::{Status, StreamId};
use model::{ErrorCode, Name};
use parking_lot::Mutex;

use agent::{Agent, Signal};
pub use call::{Call, Retry};
pub use conversations::delivery::{OnBusy, Options as Schedule};
pub use conversations::record::{WebhookSettings, WebhookTarget};
pub(crate) use touched::Touched;

use crate::conversations::{Change, Look, Pending, Refusal};
use crate::handle::{Handle, Inner};
use crate::ports::Caller;
use crate::store::{Kind, Store, refusal};
use crate::turn::SYSTEM_ORG;

/// What is taken on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Agents.
    pub agents_max: usize,
    /// Calls in flight, of all agents.
    pub calls_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            agents_max: 1_000,
            calls_max: 256,
        }
    }
}

/// Conversations that are looked at in one step.
const STEP: usize = 256;

/// Views that are not ready and conversations that cannot be read are asked again after this.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// What is not durable yet is looked at again after this.
const SYNC_PAUSE: Duration = Duration::from_millis(5);

/// The agents of a node.
pub(crate) struct Kept {
    options: Options,
    caller: Arc<dyn Caller>,
    agents: Mutex<BTreeMap<String, Agent>>,
    /// Where time began: in milliseconds since 1970-01-01 UTC, and on the clock that never steps.
    began: (u64, u64),
    is_loaded: OnceLock<()>,
}

/// See the module's documentation. What it does may read from disk: not for a thread that serves.
#[derive(Clone, Copy)]
pub struct Webhooks<'a> {
    inner: &'a Arc<Inner>,
    store: &'a Store,
    kept: &'a Kept,
}

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

/// An agent as it stands.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// `org/namespace/agent`.
    pub name: String,
    /// How it is reached.
    pub settings: Arc<WebhookSettings>,
    /// When it is called.
    pub schedule: Schedule,
    /// Conversations that wait for it or that it is called for.
    pub waiting: usize,
    /// Calls in flight.
    pub calling: u32,
    /// Dead letters.
    pub dead: usize,
}

/// What an agent was not able to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadView {
    /// `org/namespace/x`.
    pub conversation: String,
    /// What became of it.
    pub letter: DeadLetter,
}

impl Handle {
    /// Has agents called by that caller from now on. Only the first call counts.
    pub fn keep_webhooks(&self, options: Options, caller: Arc<dyn Caller>) {
        let Some(store) = &self.inner.store else {
            return;
        };
        let clock = &self.inner.ports.clock;
        let kept = Kept {
            options,
            caller,
            agents: Mutex::default(),
            began: (clock.unix_ms(), clock.now_ns()),
            is_loaded: OnceLock::new(),
        };
        if self.inner.webhooks.set(kept).is_ok() {
            store.touched.keep();
        }
    }

    /// The agents; `None` for a node that calls none.
    pub fn webhooks(&self) -> Option<Webhooks<'_>> {
        Some(Webhooks {
            inner: &self.inner,
            store: self.inner.store.as_ref()?,
            kept: self.inner.webhooks.get()?,
        })
    }
}

fn nothing() -> Refusal {
    Refusal::new(ErrorCode::Unsupported, "this node keeps nothing")
}

fn no_agent(name: &Name) -> Refusal {
    let message = format!("there is no agent `{}`", name.base());
    Refusal::new(ErrorCode::NotFound, message)
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Full { .. } => ErrorCode::Unavailable,
            Refused::Missing => ErrorCode::NotFound,
            Refused::Busy => ErrorCode::Busy,
        };
        Self::new(code, refused.to_string())
    }
}

impl Webhooks<'_> {
    /// Makes an agent, or has it reached and called otherwise from now on. What is told is whether
    /// it was made.
    pub fn put(
        &self,
        name: &Name,
        settings: WebhookSettings,
        schedule: Schedule,
    ) -> Result<Pending<bool>, Refusal> {
        let invalid = |message: String| Refusal::new(ErrorCode::InvalidArgument, message);
        if name.org() == SYSTEM_ORG || name.instance().is_some() {
            return Err(invalid(format!("`{name}` cannot be an agent's name here")));
        }
        self.kept.caller.check(&settings).map_err(invalid)?;
        self.load()?;
        let now_ms = self.inner.ports.clock.unix_ms();
        let mut agents = self.kept.agents.lock();
        let is_new = !agents.contains_key(name.base());
        let max = self.kept.options.agents_max;
        if is_new && agents.len() >= max {
            let message = format!("there are {max} agents, the limit");
            return Err(Refusal::new(ErrorCode::TooLarge, message));
        }
        let created = self.store.find_or_create(Kind::Agent, name.base(), now_ms);
        let at = created.map_err(|it| refusal(&self.store.journal, it))?;
        let settings = Arc::new(settings);
        let ticket = match agents.get_mut(name.base()) {
            Some(agent) => {
                let before = (agent.settings.clone(), *agent.options());
                agent.settings = settings;
                agent.deliveries.set_options(schedule);
                let written = agent.write_snapshot(self.store, at, now_ms);
                if written.is_err() {
                    agent.settings = before.0;
                    agent.deliveries.set_options(before.1);
                }
                written?
            }
            None => {
                let deliveries = conversations::delivery::Deliveries::new(schedule);
                let mut agent = Agent::new((*settings).clone(), deliveries);
                let ticket = agent.write_snapshot(self.store, at, now_ms)?;
                agents.insert(name.base().to_owned(), agent);
                ticket
            }
        };
        drop(agents);
        self.store.touched.wake();
        let tickets = [self.store.creation(at.stream), Some(ticket)];
        Ok(Pending::new(&self.store.journal, tickets, Ok(is_new)))
    }

    /// It is called no more, and nothing is kept of it.
    pub fn delete(&self, name: &Name) -> Result<Pending<()>, Refusal> {
        self.load()?;
        let now_ms = self.inner.ports.clock.unix_ms();
        let mut agents = self.kept.agents.lock();
        let agent = agents.get_mut(name.base()).ok_or_else(|| no_agent(name))?;
        let at = self.store.find(Kind::Agent, name.base());
        let at = at.ok_or_else(|| no_agent(name))?;
        let ticket = kept::erase(self.store, at, now_ms)?;
        agent.hang_up(&self.store.touched);
        agents.remove(name.base());
        let tickets = [None, Some(ticket)];
        Ok(Pending::new(&self.store.journal, tickets, Ok(())))
    }

    /// How an agent stands.
    pub fn get(&self, name: &Name) -> Result<AgentView, Refusal> {
        self.load()?;
        let agents = self.kept.agents.lock();
        let agent = agents.get(name.base()).ok_or_else(|| no_agent(name))?;
        Ok(view(name.base(), agent))
    }

    /// The agents of `org/namespace`.
    pub fn list(&self, namespace: &str) -> Result<Vec<AgentView>, Refusal> {
        self.load()?;
        let agents = self.kept.agents.lock();
        let prefix = format!("{namespace}/");
        let of_namespace = agents.iter().filter(|(name, _)| name.starts_with(&prefix));
        Ok(of_namespace
            .map(|(name, agent)| view(name, agent))
            .collect())
    }

    /// What an agent was not able to answer.
    pub fn dead(&self, name: &Name) -> Result<Vec<DeadView>, Refusal> {
        self.load()?;
        let agents = self.kept.agents.lock();
        let agent = agents.get(name.base()).ok_or_else(|| no_agent(name))?;
        let named = agent
            .deliveries
            .dead()
            .filter_map(|(conversation, letter)| {
                let (_, conversation, _) = self.store.named(StreamId(conversation))?;
                Some(DeadView {
                    conversation,
                    letter: *letter,
                })
            });
        Ok(named.collect())
    }

    /// What an agent was not able to answer of a conversation waits again.
    pub fn retry(&self, name: &Name, conversation: &Name) -> Result<(), Refusal> {
        let now_ms = self.now_ms();
        self.with_dead(name, conversation, |agent, number| {
            agent.revive(number, now_ms)
        })
    }

    /// What an agent was not able to answer of a conversation is not listed any more.
    pub fn discard(&self, name: &Name, conversation: &Name) -> Result<(), Refusal> {
        self.with_dead(name, conversation, Agent::discard)
    }

    fn with_dead(
        &self,
        name: &Name,
        conversation: &Name,
        then: impl FnOnce(&mut Agent, u64) -> Result<(), Refused>,
    ) -> Result<(), Refusal> {
        self.load()?;
        let mut agents = self.kept.agents.lock();
        let agent = agents.get_mut(name.base()).ok_or_else(|| no_agent(name))?;
        let found = self.store.find(Kind::Conversation, conversation.base());
        let at = found.ok_or_else(|| Refusal::from(Refused::Missing))?;
        then(agent, at.stream.0)?;
        drop(agents);
        self.store.touched.wake();
        Ok(())
    }

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

    /// Milliseconds since 1970-01-01 UTC, on a clock that does not step.
    fn now_ms(&self) -> u64 {
        let (began_ms, began_ns) = self.kept.began;
        let now_ns = self.inner.ports.clock.now_ns();
        began_ms + now_ns.saturating_sub(began_ns) / 1_000_000
    }

    /// Reads what is kept of the agents, once.
    fn load(&self) -> Result<(), Refusal> {
        if self.kept.is_loaded.get().is_some() {
            return Ok(());
        }
        let mut agents = self.kept.agents.lock();
        if self.kept.is_loaded.get().is_none() {
            *agents = kept::load(self.store, self.now_ms())?;
            // Under the lock: nobody else is here.
            let _ = self.kept.is_loaded.set(());
        }
        Ok(())
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
        counters.count(crate::counters::Counter::WebhookCalls);
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

fn view(name: &str, agent: &Agent) -> AgentView {
    AgentView {
        name: name.to_owned(),
        settings: agent.settings.clone(),
        schedule: *agent.options(),
        waiting: agent.deliveries.len(),
        calling: agent.deliveries.calling(),
        dead: agent.deliveries.dead().len(),
    }
}
