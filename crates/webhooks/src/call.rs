//! A webhook call: its parameters, and the methods that report its outcome.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use conversation_service::{
    AgentChanges, ContextRead, ConversationError, Pending, answered_by, delivery_id,
};
use conversations::Status;
use conversations::delivery::{self, Failure, RetryAdvice};
use conversations::record::WebhookSettings;
use journal::StreamId;
use model::Name;
use platform::Counter;

use super::Webhooks;
use super::agent::{CancelSignal, FailedCall, FailureOutcome};

/// A webhook call. Dropping it without reporting an outcome counts as a failure.
pub struct Call {
    pub(super) webhooks: Webhooks,
    /// `org/namespace/agent`.
    pub(super) agent: String,
    pub(super) settings: Arc<WebhookSettings>,
    pub(super) conversation: Name,
    pub(super) call: delivery::Call,
    pub(super) signal: Arc<CancelSignal>,
    pub(super) is_over: bool,
}

impl Call {
    /// Returns the agent's name as the author of messages.
    pub fn author(&self) -> &str {
        self.agent.rsplit('/').next().unwrap_or_default()
    }

    /// Returns `org/namespace/agent`.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the settings of the agent.
    pub fn settings(&self) -> &WebhookSettings {
        &self.settings
    }

    /// Returns the conversation to answer.
    pub fn conversation(&self) -> &Name {
        &self.conversation
    }

    /// Returns the first unanswered message.
    pub fn from_seq(&self) -> u64 {
        self.call.from_seq
    }

    /// Returns the last unanswered message.
    pub fn to_seq(&self) -> u64 {
        self.call.to_seq
    }

    /// Returns the number of the attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.call.attempt
    }

    /// Returns the id of the answer message, which is the same in each attempt.
    pub fn id(&self) -> String {
        let conversation = StreamId(self.call.conversation);
        delivery_id(conversation, self.author(), self.from_seq(), self.to_seq())
    }

    /// Returns the id of the answer message if `parts` partial answers of lost calls exist.
    pub fn answer_id(&self, parts: u32) -> String {
        match parts {
            0 => self.id(),
            parts => format!("{}.{}", self.id(), parts + 1),
        }
    }

    /// Returns a closure that reads the context window for the call. It may wait for the disk.
    pub fn context(
        &self,
    ) -> impl FnOnce() -> Result<Pending<ContextRead>, ConversationError> + Send + use<> {
        let settings = self.settings.clone();
        let conversations = self.webhooks.conversations.clone();
        let conversation = self.conversation.clone();
        move || conversations.context(&conversation, settings.context.as_ref())
    }

    /// Returns a closure that reads whether a message is a complete answer, and not the part of an
    /// interrupted one. It may wait for the disk.
    pub fn is_answer(
        &self,
        seq: u64,
    ) -> impl FnOnce() -> Result<bool, ConversationError> + Send + use<> {
        let conversation = self.conversation.clone();
        let conversations = self.webhooks.conversations.clone();
        move || {
            let status = conversations.status_of(&conversation, seq)?;
            Ok(matches!(status, Some(Status::Complete | Status::Aborted)))
        }
    }

    /// Returns whether an id is that of an answer to this call.
    pub fn is_own_id(&self, id: &str) -> bool {
        let conversation = StreamId(self.call.conversation);
        answered_by(id, conversation, self.author()) == Some(self.to_seq())
    }

    /// Becomes ready once the call was given up: end it.
    pub fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.signal.poll_ended(cx)
    }

    /// Reports that the answer was appended.
    pub fn answered(mut self) {
        self.is_over = true;
        self.webhooks
            .platform
            .counters
            .count(Counter::WebhookAnswers);
        self.settle(|agent, agent_changes, call, _| {
            agent.answered(call.conversation, call.number, agent_changes);
        });
    }

    /// Reports that the agent will answer later, by a message of its own.
    pub fn later(mut self) {
        self.is_over = true;
        let within_ms = self.settings.answer_ms;
        self.settle(|agent, agent_changes, call, now_ms| {
            let until_ms = now_ms.saturating_add(within_ms);
            agent.accepted(call.conversation, call.number, until_ms, agent_changes);
        });
    }

    /// Reports a failure: the HTTP status (0 for none), whether to retry, and the reason.
    pub fn failed(mut self, status: u16, again: Retry, reason: &str) {
        self.is_over = true;
        self.fail(status, again, reason);
    }

    fn fail(&self, status: u16, again: Retry, reason: &str) {
        let counters = &self.webhooks.platform.counters;
        let failure = Failure {
            status,
            again: match again {
                Retry::Never => RetryAdvice::Never,
                Retry::Later => RetryAdvice::Later,
                Retry::After(pause) => RetryAdvice::After {
                    pause_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                },
            },
        };
        let failed = FailedCall {
            failure,
            reason,
            jitter: self.webhooks.platform.ports.entropy.next_u64() as u32,
        };
        self.settle(|agent, agent_changes, call, now_ms| {
            let (conversation, number) = (call.conversation, call.number);
            match agent.failed(conversation, number, failed, now_ms, agent_changes) {
                FailureOutcome::Ignored => {}
                FailureOutcome::Retried => counters.count(Counter::WebhookFailures),
                FailureOutcome::DeadLetter => {
                    counters.count(Counter::WebhookFailures);
                    counters.count(Counter::WebhookDead);
                }
            }
        });
    }

    fn settle(
        &self,
        then: impl FnOnce(&mut super::agent::Agent, &AgentChanges, &delivery::Call, u64),
    ) {
        let webhooks = &self.webhooks;
        let now_ms = webhooks.now_ms();
        let agent_changes = webhooks.conversations.agent_changes();
        if let Some(agent) = webhooks.registry.agents.lock().get_mut(&self.agent) {
            then(agent, agent_changes, &self.call, now_ms);
        }
        agent_changes.touch(StreamId(self.call.conversation));
        agent_changes.wake();
    }
}

/// The retry policy of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// No retry: the messages become a dead letter.
    Never,
    /// After the growing pause.
    Later,
    /// After this pause, or the growing one if that is longer.
    After(Duration),
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            self.fail(0, Retry::Later, "the call was dropped");
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Call({} for {})", self.agent, self.conversation)
    }
}
