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
mod tend;
#[cfg(test)]
mod tests;
mod touched;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use conversations::delivery::{DeadLetter, Refused};
use journal::StreamId;
use model::{ErrorCode, Name};
use parking_lot::Mutex;

use agent::Agent;
pub use call::{Call, Retry};
pub use conversations::delivery::{OnBusy, Options as Schedule};
pub use conversations::record::{WebhookSettings, WebhookTarget};
pub use tend::Tended;
pub(crate) use touched::Touched;

use crate::conversations::{Pending, Refusal};
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

/// How all agents stand together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Agents.
    pub agents: usize,
    /// Conversations that wait for one or that one is called for.
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
    /// Why the last call failed; empty if that was before the node was started.
    pub reason: String,
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

    /// How all of them stand; `None` before they are known. Nothing is read for it.
    pub fn standing(&self) -> Option<Standing> {
        self.kept.is_loaded.get()?;
        let agents = self.kept.agents.lock();
        Some(Standing {
            agents: agents.len(),
            waiting: agents.values().map(|it| it.deliveries.len()).sum(),
            calling: agents.values().map(|it| it.deliveries.calling()).sum(),
            dead: agents.values().map(|it| it.deliveries.dead().len()).sum(),
        })
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
                let (_, name, _) = self.store.named(StreamId(conversation))?;
                Some(DeadView {
                    conversation: name,
                    letter: *letter,
                    reason: agent.reason(conversation).to_owned(),
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
}

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
