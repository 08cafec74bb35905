//! Webhooks: agents that are called when a message is written to their conversations.
//!
//! A conversation names its agent. A message of another author makes a call due a little later
//! ([`conversations::delivery`] decides when). The caller takes calls from [`Webhooks::tend`],
//! makes them, and reports their outcomes. An answer is an ordinary message whose id identifies the
//! call, and the agent's read mark moves under the same guard. So there is never an answer without
//! its mark, or a mark without its answer. After a restart, unanswered messages are found after the
//! read marks, with the help of the views.
//!
//! Invariant: *an agent's read mark moves only with an answer, or to the end of a dead letter that
//! is durable.*
//!
//! Lock order: agents are locked before conversations and the journal. This crate does not know
//! HTTP or JSON.

mod agent;
mod call;
pub mod caller;
mod error;
mod streams;
mod tend;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conversations::delivery::{DeadLetter, DeliveryError};
use journal::StreamId;
use model::{Name, SYSTEM_ORG};
use parking_lot::Mutex;

use agent::Agent;
pub use call::{Call, Retry};
use conversation_service::Conversations;
pub use conversations::delivery::{OnBusy, Options as Schedule};
pub use conversations::record::{WebhookSettings, WebhookTarget};
pub use error::WebhookError;
use platform::{Pending, Platform};
use store::{Kind, Store};
pub use tend::Tended;
use views::Views;

use crate::caller::WebhookPolicy;

/// The limits of webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum number of agents.
    pub agents_max: usize,
    /// Maximum number of calls in flight, over all agents.
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

/// The webhooks as a part of a node.
pub struct WebhookParts {
    /// The limits of webhooks.
    pub options: Options,
    /// The check of the settings of agents.
    pub policy: Arc<dyn WebhookPolicy>,
}

/// The agents of a node.
struct Registry {
    options: Options,
    policy: Arc<dyn WebhookPolicy>,
    agents: Mutex<BTreeMap<String, Agent>>,
    /// The start: in milliseconds since 1970-01-01 UTC, and on the monotonic clock.
    began: (u64, u64),
    /// True once the agents were loaded. Set under the lock of `agents`.
    is_loaded: AtomicBool,
}

/// The webhooks of a node. Methods may read from disk: call them only on threads that may block.
/// Cheap to clone.
#[derive(Clone)]
pub struct Webhooks {
    platform: Arc<Platform>,
    store: Arc<Store>,
    conversations: Conversations,
    views: Option<Views>,
    registry: Arc<Registry>,
}

/// The state of an agent.
#[derive(Clone, Debug)]
pub struct AgentView {
    /// `org/namespace/agent`.
    pub name: String,
    /// Its address and the content of its calls.
    pub settings: Arc<WebhookSettings>,
    /// The timing of its calls.
    pub schedule: Schedule,
    /// Number of conversations with pending messages.
    pub waiting: usize,
    /// Number of calls in flight.
    pub calling: u32,
    /// Number of dead letters.
    pub dead: usize,
}

/// The state of all agents together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentTotals {
    /// Number of agents.
    pub agents: usize,
    /// Number of conversations with pending messages.
    pub waiting: usize,
    /// Number of calls in flight.
    pub calling: u32,
    /// Number of dead letters.
    pub dead: usize,
}

/// A dead letter of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadView {
    /// `org/namespace/x`.
    pub conversation: String,
    /// The messages and the last failure.
    pub letter: DeadLetter,
    /// The reason of the last failure; empty if the node was restarted since.
    pub reason: String,
}

impl Registry {
    fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::Acquire)
    }
}

fn no_agent(name: &Name) -> WebhookError {
    WebhookError::Unknown {
        name: name.base().to_owned(),
    }
}

impl Webhooks {
    /// Returns the webhooks of conversations. Agents are loaded by their first use. Unanswered
    /// messages from before the start are found in the views, if there are any.
    pub fn new(
        platform: Arc<Platform>,
        store: Arc<Store>,
        conversations: Conversations,
        views: Option<Views>,
        parts: WebhookParts,
    ) -> Self {
        conversations.agent_changes().keep();
        let clock = &platform.ports.clock;
        let registry = Registry {
            options: parts.options,
            policy: parts.policy,
            agents: Mutex::default(),
            began: (clock.unix_ms(), clock.now_ns()),
            is_loaded: AtomicBool::new(false),
        };
        Self {
            platform,
            store,
            conversations,
            views,
            registry: Arc::new(registry),
        }
    }

    /// Creates an agent or changes its settings. The result is true if it was created.
    pub fn put(
        &self,
        name: &Name,
        settings: WebhookSettings,
        schedule: Schedule,
    ) -> Result<Pending<bool, WebhookError>, WebhookError> {
        if name.org() == SYSTEM_ORG || name.instance().is_some() {
            return Err(WebhookError::Name { name: name.clone() });
        }
        let checked = self.registry.policy.check(&settings);
        checked.map_err(|reason| WebhookError::Settings { reason })?;
        self.load()?;
        let now_ms = self.platform.unix_ms();
        let mut agents = self.registry.agents.lock();
        let is_new = !agents.contains_key(name.base());
        let max = self.registry.options.agents_max;
        if is_new && agents.len() >= max {
            return Err(WebhookError::TooMany { limit: max });
        }
        let settings = Arc::new(settings);
        let ticket = match agents.get_mut(name.base()) {
            Some(agent) => {
                let before = (agent.settings.clone(), *agent.options());
                agent.settings = settings;
                agent.deliveries.set_options(schedule);
                let written = agent.write_snapshot(&self.store, name.base(), now_ms);
                if written.is_err() {
                    agent.settings = before.0;
                    agent.deliveries.set_options(before.1);
                }
                written?
            }
            None => {
                let deliveries = conversations::delivery::Deliveries::new(schedule);
                let mut agent = Agent::new((*settings).clone(), deliveries);
                let ticket = agent.write_snapshot(&self.store, name.base(), now_ms)?;
                agents.insert(name.base().to_owned(), agent);
                ticket
            }
        };
        drop(agents);
        self.conversations.agent_changes().wake();
        Ok(Pending::new(&self.store.journal, Some(ticket), Ok(is_new)))
    }

    /// Deletes an agent and its settings.
    pub fn delete(&self, name: &Name) -> Result<Pending<(), WebhookError>, WebhookError> {
        self.load()?;
        let now_ms = self.platform.unix_ms();
        let mut agents = self.registry.agents.lock();
        let agent = agents.get_mut(name.base()).ok_or_else(|| no_agent(name))?;
        let at = self.store.find(Kind::Agent, name.base());
        let at = at.ok_or_else(|| no_agent(name))?;
        let ticket = streams::erase(&self.store, at, now_ms)?;
        agent.end_all_calls(self.conversations.agent_changes());
        agents.remove(name.base());
        Ok(Pending::new(&self.store.journal, Some(ticket), Ok(())))
    }

    /// Returns the state of an agent.
    pub fn get(&self, name: &Name) -> Result<AgentView, WebhookError> {
        self.load()?;
        let agents = self.registry.agents.lock();
        let agent = agents.get(name.base()).ok_or_else(|| no_agent(name))?;
        Ok(view(name.base(), agent))
    }

    /// Returns the agents of `org/namespace`.
    pub fn list(&self, namespace: &str) -> Result<Vec<AgentView>, WebhookError> {
        self.load()?;
        let agents = self.registry.agents.lock();
        let prefix = format!("{namespace}/");
        let of_namespace = agents.iter().filter(|(name, _)| name.starts_with(&prefix));
        Ok(of_namespace
            .map(|(name, agent)| view(name, agent))
            .collect())
    }

    /// Returns the state of all agents together; `None` before they are loaded. Reads nothing from
    /// disk.
    pub fn totals(&self) -> Option<AgentTotals> {
        if !self.registry.is_loaded() {
            return None;
        }
        let agents = self.registry.agents.lock();
        Some(AgentTotals {
            agents: agents.len(),
            waiting: agents.values().map(|it| it.deliveries.len()).sum(),
            calling: agents.values().map(|it| it.deliveries.calling()).sum(),
            dead: agents.values().map(|it| it.deliveries.dead().len()).sum(),
        })
    }

    /// Returns the dead letters of an agent.
    pub fn dead(&self, name: &Name) -> Result<Vec<DeadView>, WebhookError> {
        self.load()?;
        let agents = self.registry.agents.lock();
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

    /// Makes the messages of a dead letter pending again.
    pub fn retry(&self, name: &Name, conversation: &Name) -> Result<(), WebhookError> {
        let now_ms = self.now_ms();
        self.with_dead(name, conversation, |agent, number| {
            agent.revive(number, now_ms)
        })
    }

    /// Removes a dead letter.
    pub fn discard(&self, name: &Name, conversation: &Name) -> Result<(), WebhookError> {
        self.with_dead(name, conversation, Agent::discard)
    }

    fn with_dead(
        &self,
        name: &Name,
        conversation: &Name,
        then: impl FnOnce(&mut Agent, u64) -> Result<(), DeliveryError>,
    ) -> Result<(), WebhookError> {
        self.load()?;
        let mut agents = self.registry.agents.lock();
        let agent = agents.get_mut(name.base()).ok_or_else(|| no_agent(name))?;
        let found = self.store.find(Kind::Conversation, conversation.base());
        let at = found.ok_or(DeliveryError::Missing)?;
        then(agent, at.stream.0)?;
        drop(agents);
        self.conversations.agent_changes().wake();
        Ok(())
    }

    /// Returns the time in milliseconds since 1970-01-01 UTC, on a clock that does not step.
    fn now_ms(&self) -> u64 {
        let (began_ms, began_ns) = self.registry.began;
        let now_ns = self.platform.now_ns();
        began_ms + now_ns.saturating_sub(began_ns) / 1_000_000
    }

    /// Loads the agents from the journal, once.
    fn load(&self) -> Result<(), WebhookError> {
        if self.registry.is_loaded() {
            return Ok(());
        }
        let mut agents = self.registry.agents.lock();
        if !self.registry.is_loaded() {
            *agents = streams::load(&self.store, self.now_ms())?;
            self.registry.is_loaded.store(true, Ordering::Release);
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
