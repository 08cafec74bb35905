//! `GET /v1/history`: the last hour of the node in numbers.

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use http_api::{Problem, ProblemDocument, Shared, listed, query};
use model::ErrorCode;
use node::{History, Sample, Series};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns the route.
pub(super) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(history))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Range {
    /// Number of samples, the newest ones: 1 to 720; 720, those of one hour, if absent.
    last: Option<usize>,
}

/// The last hour of the node in numbers. All lists have the same length, the oldest sample first.
#[derive(Serialize, ToSchema)]
#[schema(as = History)]
struct HistoryDocument {
    /// Time between two samples in milliseconds.
    #[schema(example = 5000)]
    interval_ms: u64,
    /// End of the interval of each sample, in milliseconds since 1970-01-01 UTC.
    time_unix_ms: Vec<u64>,
    /// Values by the name of their series; `null` where there is none, such as a latency without a
    /// request.
    #[schema(value_type = Object)]
    series: Map<String, Value>,
    /// Failures answered per second, by error code. A code without a failure is absent.
    #[schema(value_type = Object)]
    failures: Map<String, Value>,
}

/// Get the last hour of the node in numbers: one sample every five seconds.
#[utoipa::path(get, path = "/v1/history", tag = "node", params(Range), responses(
    (status = 200, description = "The samples", body = HistoryDocument),
    (status = 400, description = "`last` is not 1 to 720", body = ProblemDocument)))]
async fn history(State(shared): State<Shared>, uri: Uri) -> Result<Response, Problem> {
    let Range { last } = query(&uri)?;
    let last = last.unwrap_or(History::SAMPLES_MAX);
    if !(1..=History::SAMPLES_MAX).contains(&last) {
        let max = History::SAMPLES_MAX;
        let detail = format!("`last` must be from 1 to {max}, not {last}");
        return Err(Problem::invalid(detail));
    }
    listed(move || Ok(document(&shared.node.history().newest(last)))).await
}

fn document(samples: &[Sample]) -> HistoryDocument {
    let series = Series::ALL.iter().map(|series| {
        let values = samples.iter().map(|sample| sample.value(*series));
        let values: Vec<_> = values.map(|value| value.map(rounded)).collect();
        (series.name().to_owned(), json!(values))
    });
    let failures = ErrorCode::ALL.iter().filter_map(|code| {
        let rates = samples.iter().map(|sample| sample.failures(*code));
        let rates: Vec<_> = rates.map(rounded).collect();
        let is_any = rates.iter().any(|rate| *rate > 0.0);
        is_any.then(|| (code.as_str().to_owned(), json!(rates)))
    });
    HistoryDocument {
        interval_ms: u64::try_from(History::INTERVAL.as_millis()).unwrap_or(u64::MAX),
        time_unix_ms: samples.iter().map(|sample| sample.unix_ms).collect(),
        series: series.collect(),
        failures: failures.collect(),
    }
}

/// Rounds to three decimals, so that a document of an hour stays short.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1e3).round() / 1e3
}
