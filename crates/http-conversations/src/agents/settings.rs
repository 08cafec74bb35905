//! Agent settings in requests.

use conversation_service::Policy;
use http_api::Problem;
use http_api::body::{self, wrong_at};
use model::Name;
use serde::Deserialize;
use utoipa::ToSchema;
use webhooks::{OnBusy, Schedule, WebhookSettings, WebhookTarget};

use crate::policy::PolicyDocument;

/// Most headers sent with a call.
const HEADERS_MAX: usize = 32;

/// Longest text of the settings, in bytes.
const TEXT_MAX: usize = 8 << 10;

/// Longest configurable wait: a day.
const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1_000;

/// Default budget, in tokens, of the window sent to an agent.
const BUDGET: u32 = 8_000;

/// Settings of an agent. Absent fields keep their values.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentSettings)]
pub(crate) struct AgentSettings {
    /// URL to call; `webhook.allow` must permit it. If absent or empty, the agent is called by its
    /// name with the RPC method `conversation`.
    #[schema(example = "https://bots.example.com/support")]
    url: Option<String>,
    /// Secret that signs calls (Standard Webhooks): `whsec_` and 24 to 64 bytes in Base64. Empty
    /// for unsigned calls.
    secret: Option<String>,
    /// Longest wait for the beginning of an answer, and for each further piece.
    #[schema(example = 30000)]
    timeout_ms: Option<u64>,
    /// Longest wait for an answer that was promised with status 202.
    #[schema(example = 600000)]
    answer_ms: Option<u64>,
    /// The agent is called after this time without a new message.
    #[schema(example = 200)]
    debounce_ms: Option<u64>,
    /// The agent is called at the latest this long after the first message.
    #[schema(example = 2000)]
    max_wait_ms: Option<u64>,
    /// Effect of a message while the agent answers: `queue` (the default), `interrupt` or `reject`.
    on_busy: Option<String>,
    /// Most calls for the same messages before they become a dead letter.
    #[schema(example = 10)]
    attempts_max: Option<u32>,
    /// Pause after the first failed call; it doubles with each further failure.
    #[schema(example = 1000)]
    pause_ms: Option<u64>,
    /// Most calls in flight.
    #[schema(example = 64)]
    calls_max: Option<u32>,
    /// Headers sent with each call.
    headers: Option<std::collections::BTreeMap<String, String>>,
    /// Policy of the window sent to the agent; default budget 8000 tokens.
    context: Option<PolicyDocument>,
}

pub(super) const BUSY: [(&str, OnBusy); 3] = [
    ("queue", OnBusy::Queue),
    ("interrupt", OnBusy::Interrupt),
    ("reject", OnBusy::Reject),
];

impl AgentSettings {
    pub(super) fn schedule(&self, before: Schedule) -> Result<Schedule, Problem> {
        let on_busy = match &self.on_busy {
            None => before.on_busy,
            Some(word) => {
                let found = BUSY.iter().find(|(it, _)| it == word);
                let words = BUSY.iter().map(|(it, _)| *it);
                let unknown = || wrong_at("on_busy", &body::unknown("way", word, words));
                found.map(|(_, it)| *it).ok_or_else(unknown)?
            }
        };
        let schedule = Schedule {
            debounce_ms: self.debounce_ms.unwrap_or(before.debounce_ms),
            max_wait_ms: self.max_wait_ms.unwrap_or(before.max_wait_ms),
            on_busy,
            attempts_max: self.attempts_max.unwrap_or(before.attempts_max),
            pause_ms: self.pause_ms.unwrap_or(before.pause_ms),
            calls_max: self.calls_max.unwrap_or(before.calls_max),
            ..before
        };
        for (path, ms, least) in [
            ("debounce_ms", schedule.debounce_ms, 0),
            ("max_wait_ms", schedule.max_wait_ms, 0),
            ("pause_ms", schedule.pause_ms, 1),
        ] {
            check_ms(path, ms, least)?;
        }
        if schedule.attempts_max == 0 || schedule.calls_max == 0 {
            let detail = "`attempts_max` and `calls_max` must be at least 1";
            return Err(Problem::invalid(detail));
        }
        Ok(schedule)
    }

    pub(super) fn settings(
        self,
        name: &Name,
        before: Option<&WebhookSettings>,
    ) -> Result<WebhookSettings, Problem> {
        let by_name = || WebhookTarget::Name(name.base().to_owned());
        let url = self.url.map(|url| match url.as_str() {
            "" => by_name(),
            _ => WebhookTarget::Url(url),
        });
        let target = url.or_else(|| before.map(|it| it.target.clone()));
        let headers = self.headers.map(|it| it.into_iter().collect::<Vec<_>>());
        let headers = headers.or_else(|| before.map(|it| it.headers.clone()));
        let secret = self.secret.or_else(|| before.map(|it| it.secret.clone()));
        let context = match &self.context {
            None => before.map_or_else(|| Some(policy()), |it| it.context.clone()),
            Some(document) => {
                let known = before.and_then(|it| it.context.clone());
                let policy = document.applied_to(known.unwrap_or_else(policy));
                Some(policy.map_err(|reason| wrong_at("context", &reason))?)
            }
        };
        let known_ms = before.map_or((30_000, 600_000), |it| (it.timeout_ms, it.answer_ms));
        let settings = WebhookSettings {
            target: target.unwrap_or_else(by_name),
            secret: secret.unwrap_or_default(),
            timeout_ms: self.timeout_ms.unwrap_or(known_ms.0),
            answer_ms: self.answer_ms.unwrap_or(known_ms.1),
            headers: headers.unwrap_or_default(),
            context,
        };
        check_ms("timeout_ms", settings.timeout_ms, 1)?;
        check_ms("answer_ms", settings.answer_ms, 1)?;
        check_sizes(&settings)?;
        Ok(settings)
    }
}

fn policy() -> Policy {
    Policy {
        budget: BUDGET,
        ..Policy::default()
    }
}

fn check_ms(path: &str, ms: u64, least: u64) -> Result<(), Problem> {
    match (least..=WAIT_MS_MAX).contains(&ms) {
        true => Ok(()),
        false => Err(wrong_at(
            path,
            &format!("must be from {least} to {WAIT_MS_MAX}, not {ms}"),
        )),
    }
}

fn check_sizes(settings: &WebhookSettings) -> Result<(), Problem> {
    if settings.headers.len() > HEADERS_MAX {
        return Err(wrong_at(
            "headers",
            &format!("at most {HEADERS_MAX} headers are allowed"),
        ));
    }
    let target = match &settings.target {
        WebhookTarget::Url(it) | WebhookTarget::Name(it) => it,
    };
    let headers = settings
        .headers
        .iter()
        .flat_map(|(name, value)| [name, value]);
    let mut texts = [target, &settings.secret].into_iter().chain(headers);
    match texts.all(|text| text.len() <= TEXT_MAX) {
        true => Ok(()),
        false => Err(Problem::invalid(format!(
            "a setting is longer than {TEXT_MAX} bytes"
        ))),
    }
}
