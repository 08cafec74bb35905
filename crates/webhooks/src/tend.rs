//! The periodic work of webhooks: processes changed conversations, writes changes, and selects the
//! calls to make.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use conversation_service::{AgentTurn, Change, ConversationError};
use conversations::record::WebhookSettings;
use journal::{Status, StreamId};
use model::{ErrorCode, Name};
use platform::Counter;
use store::Kind;

use super::agent::{Agent, CancelSignal};
use super::{Call, Webhooks};
use crate::error::WebhookError;

/// Maximum number of conversations processed per step.
const STEP: usize = 256;

/// Pause before retrying views that are not ready and conversations that cannot be read.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// Pause before looking again at data that is not durable yet.
const SYNC_PAUSE: Duration = Duration::from_millis(5);

/// Conversations that must be looked at again.
#[derive(Default)]
struct Revisits {
    /// Conversations with data that is not durable yet.
    partial: Vec<u64>,
    /// Conversations that could not be read.
    failed: Vec<u64>,
}

/// The work for the caller.
#[derive(Debug)]
pub struct Tended {
    /// Calls to make now.
    pub calls: Vec<Call>,
    /// The time until [`Webhooks::tend`] must be called again if nothing changes; `None` for never.
    pub again_in: Option<Duration>,
}

impl Webhooks {
    /// Becomes ready once there is work.
    pub fn poll_changed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.conversations.agent_changes().poll_changed(cx)
    }

    /// Processes changed conversations, writes changes, and returns the calls to make. The shell
    /// calls it when [`Webhooks::poll_changed`] is ready and after [`Tended::again_in`].
    pub fn tend(&self) -> Result<Tended, WebhookError> {
        self.load()?;
        let mut again_in = self.scan();
        let (taken, is_more) = self.conversations.agent_changes().take(STEP);
        let mut pause = |pause: Duration| {
            again_in = Some(again_in.map_or(pause, |it| it.min(pause)));
        };
        if is_more {
            pause(Duration::ZERO);
        }
        let Revisits { partial, failed } = self.look_at(&taken);
        for (conversations, after) in [(partial, SYNC_PAUSE), (failed, FAILURE_PAUSE)] {
            if !conversations.is_empty() {
                self.conversations.agent_changes().put_back(&conversations);
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

    /// Looks for unanswered messages after the read marks of agents that were not scanned yet.
    fn scan(&self) -> Option<Duration> {
        let is_wanted = |agent: &Agent| {
            let room = agent.options().pending_max as usize / 2;
            !agent.is_scanned && agent.deliveries.len() <= room
        };
        let wanted: Vec<_> = {
            let agents = self.registry.agents.lock();
            let wanted = agents.iter().filter(|(_, agent)| is_wanted(agent));
            let wanted = wanted.map(|(name, agent)| (name.clone(), agent.options().pending_max));
            wanted.collect()
        };
        if wanted.is_empty() {
            return None;
        }
        let views = self.views.as_ref()?;
        for (name, count) in wanted {
            let (namespace, agent) = name.rsplit_once('/').unwrap_or_default();
            // Later changes are reported by `AgentChanges`.
            let Ok(due) = views.due(namespace, agent, count as usize) else {
                return Some(FAILURE_PAUSE);
            };
            let found = due
                .iter()
                .filter_map(|due| self.store.find(Kind::Conversation, &due.name));
            let found: Vec<_> = found.map(|at| at.stream.0).collect();
            if let Some(agent) = self.registry.agents.lock().get_mut(&name) {
                agent.is_scanned = true;
            }
            self.conversations.agent_changes().put_back(&found);
        }
        None
    }

    /// Passes unanswered messages of conversations to their agents.
    fn look_at(&self, conversations: &[u64]) -> Revisits {
        let mut revisits = Revisits::default();
        for conversation in conversations {
            match self.look(*conversation) {
                // The read may succeed later.
                Err(_) => revisits.failed.push(*conversation),
                Ok(None) => {}
                Ok(Some(look)) => {
                    let now_ms = self.now_ms();
                    let mut agents = self.registry.agents.lock();
                    let Some(agent) = agents.get_mut(&look.agent).filter(|_| look.is_open) else {
                        continue;
                    };
                    if agent.feed(
                        *conversation,
                        &look,
                        now_ms,
                        self.conversations.agent_changes(),
                    ) {
                        revisits.partial.push(*conversation);
                    }
                }
            }
        }
        revisits
    }

    fn look(&self, conversation: u64) -> Result<Option<AgentTurn>, ConversationError> {
        self.conversations.look(StreamId(conversation), &|agent| {
            let agents = self.registry.agents.lock();
            agents.get(agent).map_or(0, |it| it.floor(conversation))
        })
    }

    /// Writes pending changes. Returns false if some are not durable yet.
    fn keep(&self) -> Result<bool, WebhookError> {
        let unix_ms = self.platform.unix_ms();
        let mut buried = Vec::new();
        let mut is_done = true;
        {
            let mut agents = self.registry.agents.lock();
            for (name, agent) in agents.iter_mut() {
                if agent.unwritten.is_empty() && agent.burying.is_empty() {
                    continue;
                }
                let Some(at) = self.store.find(Kind::Agent, name) else {
                    continue;
                };
                agent.write_changes(&self.store, name, at, unix_ms)?;
                let all = std::mem::take(&mut agent.burying);
                for (ticket, conversation, seq) in all {
                    match self.store.journal.status(ticket) {
                        Status::Durable => buried.push((name.clone(), conversation, seq)),
                        Status::Pending => agent.burying.push((ticket, conversation, seq)),
                        // The state is restored from the journal later.
                        Status::Failed | Status::Cut | Status::Moved => {}
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

    /// Moves an agent's read mark to the end of a durable dead letter.
    fn pass_over(&self, agent: &str, conversation: u64, seq: u64) -> Result<(), WebhookError> {
        let who = agent.rsplit('/').next().unwrap_or_default();
        let change = Change::Cursor {
            who: who.to_owned(),
            seq,
        };
        let named = self.store.named(StreamId(conversation));
        let name = named.and_then(|(_, name, _)| Name::parse(&name).ok());
        let Some(name) = name else {
            return Ok(());
        };
        match self.conversations.change(&name, None, &change) {
            // The result is not awaited: until the mark is durable, the dead letter has the same
            // effect.
            Ok(_) => Ok(()),
            Err(refusal) if matches!(refusal.code(), ErrorCode::NotFound | ErrorCode::Gone) => {
                Ok(())
            }
            Err(refusal) => Err(refusal.into()),
        }
    }

    /// Returns the calls to make now.
    fn calls(&self) -> Vec<Call> {
        let now_ms = self.now_ms();
        let mut found = Vec::new();
        {
            let mut agents = self.registry.agents.lock();
            let in_flight = agents.values().map(|it| it.deliveries.calling() as usize);
            let mut room = self
                .registry
                .options
                .calls_max
                .saturating_sub(in_flight.sum());
            let mut is_any = true;
            // One call per agent and round, so that no agent takes all the room.
            while room > 0 && is_any {
                is_any = false;
                for (name, agent) in agents.iter_mut() {
                    if room > 0
                        && let Some(call) = agent.poll(now_ms, self.conversations.agent_changes())
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

    /// Returns the call, unless its conversation no longer needs it.
    fn check(&self, found: SelectedCall) -> Option<Call> {
        let (agent, settings, call, signal) = found;
        let (conversation, number) = (call.conversation, call.number);
        let look = self.look(conversation);
        {
            let mut agents = self.registry.agents.lock();
            let known = agents.get_mut(&agent)?;
            match look {
                Ok(Some(look)) if look.agent == agent && look.is_open => {
                    if look.read >= call.to_seq && !known.is_revived(conversation) {
                        known.answered(conversation, number, self.conversations.agent_changes());
                        return None;
                    }
                }
                Ok(_) => {
                    known.forget(conversation, self.conversations.agent_changes());
                    return None;
                }
                // The call reads the conversation again.
                Err(_) => {}
            }
        }
        let (_, name, _) = self.store.named(StreamId(conversation))?;
        let counters = &self.platform.counters;
        counters.count(Counter::WebhookCalls);
        Some(Call {
            webhooks: self.clone(),
            agent,
            settings,
            conversation: Name::parse(&name).ok()?,
            call,
            signal,
            is_over: false,
        })
    }

    fn next_ms(&self) -> Option<u64> {
        let agents = self.registry.agents.lock();
        let in_flight = agents.values().map(|it| it.deliveries.calling() as usize);
        if in_flight.sum::<usize>() >= self.registry.options.calls_max {
            // The end of a call makes room.
            return None;
        }
        agents
            .values()
            .filter_map(|it| it.deliveries.next_ms())
            .min()
    }
}

type SelectedCall = (
    String,
    Arc<WebhookSettings>,
    conversations::delivery::Call,
    Arc<CancelSignal>,
);
