//! `GET /v1/usage`: what subjects have spent, by day and limit.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use http_api::time::{date_of_day, parse_date};
use http_api::{Client, Problem, ProblemDocument, Shared, off_thread, query};
use quota::{Pattern, Unit};
use quota_service::{UsageBy, UsageCursor, UsageQuery, UsageRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Default number of days of a period.
const DAYS: u32 = 30;

/// Default number of rows of a page.
const ROWS: usize = 1_000;

/// Maximum number of rows of a page.
const ROWS_MAX: usize = 10_000;

/// The selection of usage.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// First day (UTC); default 29 days before `to`. Usage is kept for 90 days.
    #[param(example = "2026-11-01")]
    from: Option<String>,
    /// Last day (UTC), which is included; default today.
    #[param(example = "2026-11-30")]
    to: Option<String>,
    /// Name of a limit; default all limits.
    limit: Option<String>,
    /// Pattern of subjects: `org`, `org/namespace` or `org/namespace/agent`, with `*` for any part;
    /// default all subjects.
    #[param(example = "acme/*/*")]
    subject: Option<String>,
    /// A row per `day`, limit and subject; or per limit and `subject`, or per `limit`, summed over
    /// the period.
    #[serde(default)]
    #[param(inline)]
    by: By,
    /// `next` of the previous page.
    after: Option<String>,
    /// Most rows, 1 to 10000; default 1000.
    #[param(minimum = 1, maximum = 10000)]
    count: Option<usize>,
}

/// Grouping of rows.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = UsageBy)]
pub(crate) enum By {
    #[default]
    Day,
    Subject,
    Limit,
}

/// A page of usage.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageDocument {
    /// First day of the period (UTC).
    from: String,
    /// Last day of the period (UTC).
    to: String,
    /// Grouping of rows: `day`, `subject` or `limit`.
    #[schema(value_type = String, example = "day")]
    by: By,
    /// Rows in the order of day, limit, unit and subject.
    rows: Vec<RowDocument>,
    /// True if `quota.usage_rows_max` was reached on a day of the period: the usage of further
    /// subjects is in rows whose `subject` is null, which only tokens for all names see.
    other_subjects: bool,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Usage of limits.
#[derive(Serialize, ToSchema)]
#[schema(as = UsageRow)]
pub(crate) struct RowDocument {
    /// Day (UTC); absent unless rows are by day.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-11-28")]
    day: Option<String>,
    /// Name of the limit.
    limit: String,
    /// Unit of `amount`.
    #[schema(example = "usd_micros")]
    unit: String,
    /// `org/namespace/agent`; null for other subjects; absent if rows are by limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "acme/research/bot")]
    subject: Option<Option<String>>,
    /// Amount that was spent, in the unit of the limit.
    amount: u64,
    /// Number of admitted takes. A hold counts when it ends, unless it is cancelled.
    takes: u64,
}

/// List what subjects have spent, by day and limit. A token sees the subjects that it may use.
#[utoipa::path(
    get, path = "/v1/usage", tag = "quotas", operation_id = "usage",
    params(UsageParams),
    responses(
        (status = 200, description = "A page of rows", body = UsageDocument),
        (status = 400, description = "A day, the pattern or the position is invalid", body = ProblemDocument),
    )
)]
pub(super) async fn usage(
    State(shared): State<Shared>,
    client: Client,
    uri: Uri,
) -> Result<Json<UsageDocument>, Problem> {
    let params: UsageParams = query(&uri)?;
    let today = shared.node.quotas().today();
    let to = params.to.as_deref().map(|to| day("to", to)).transpose()?;
    let to = to.unwrap_or(today);
    let from = params.from.as_deref().map(|from| day("from", from));
    let from = from.transpose()?.unwrap_or(to.saturating_sub(DAYS - 1));
    if from > to {
        let detail = format!(
            "`from` ({}) is after `to` ({})",
            date_of_day(from),
            date_of_day(to)
        );
        return Err(Problem::invalid(detail));
    }
    let count = params.count.unwrap_or(ROWS);
    if !(1..=ROWS_MAX).contains(&count) {
        let detail = format!("`count` is {count}: use 1 to {ROWS_MAX}");
        return Err(Problem::invalid(detail));
    }
    let subject = params.subject.as_deref().map(pattern).transpose()?;
    let after = params.after.as_deref().map(position).transpose()?;
    let by = params.by;
    // Every row of the period is read.
    let page = off_thread(move || {
        let principal = client.principal();
        let is_visible: &(dyn Fn(&str) -> bool + Sync) =
            &|name: &str| principal.may_use_subject(name);
        let query = UsageQuery {
            from,
            to,
            limit: params.limit.as_deref(),
            subject: subject.as_ref(),
            by: match by {
                By::Day => UsageBy::Day,
                By::Subject => UsageBy::Subject,
                By::Limit => UsageBy::Limit,
            },
            after,
            count,
            // Without patterns, the client may use all names.
            is_visible: principal.patterns().map(|_| is_visible),
        };
        Ok(shared.node.quotas().usage(&query))
    });
    let page = page.await?;
    let last = page.rows.last().filter(|_| page.is_more);
    Ok(Json(UsageDocument {
        from: date_of_day(from),
        to: date_of_day(to),
        by,
        next: last.map(|row| position_text(&row.at)),
        rows: page.rows.into_iter().map(|row| document(row, by)).collect(),
        other_subjects: page.has_other_subjects,
    }))
}

fn document(row: UsageRow, by: By) -> RowDocument {
    let UsageCursor {
        day,
        limit,
        unit,
        subject,
    } = row.at;
    RowDocument {
        day: matches!(by, By::Day).then(|| date_of_day(day)),
        limit: limit.as_ref().to_owned(),
        unit: unit.as_str().to_owned(),
        subject: match by {
            By::Limit => None,
            By::Day | By::Subject => Some((!subject.is_empty()).then(|| (*subject).to_owned())),
        },
        amount: row.amount,
        takes: row.takes,
    }
}

fn day(name: &str, text: &str) -> Result<u32, Problem> {
    let detail = || format!("`{name}` is `{text}`: use a day like 2026-11-30");
    parse_date(text).ok_or_else(|| Problem::invalid(detail()))
}

fn pattern(text: &str) -> Result<Pattern, Problem> {
    match Pattern::parse(text) {
        Ok(pattern) if !pattern.is_per_run() => Ok(pattern),
        Ok(_) => Err(Problem::invalid(
            "`subject` has a run: usage of runs counts as that of their agent",
        )),
        Err(error) => Err(Problem::invalid(format!("`subject`: {error}"))),
    }
}

/// Formats a position in the order of rows. Names of limits have no semicolon.
fn position_text(at: &UsageCursor) -> String {
    let UsageCursor {
        day,
        limit,
        unit,
        subject,
    } = at;
    format!("{day};{limit};{unit};{subject}")
}

fn position(text: &str) -> Result<UsageCursor, Problem> {
    let parts: Vec<&str> = text.splitn(4, ';').collect();
    let at = match parts[..] {
        [day, limit, unit, subject] => {
            day.parse()
                .ok()
                .zip(Unit::parse(unit).ok())
                .map(|(day, unit)| UsageCursor {
                    day,
                    limit: limit.into(),
                    unit,
                    subject: subject.into(),
                })
        }
        _ => None,
    };
    let detail = "`after` is no position: use `next` of the previous page";
    at.ok_or_else(|| Problem::invalid(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_back_from_its_text() {
        for subject in ["", "acme/x/a", "acme/x/a;b"] {
            let at = UsageCursor {
                day: 20_000,
                limit: "tpm".into(),
                unit: Unit::TOKENS,
                subject: subject.into(),
            };
            assert_eq!(position(&position_text(&at)).unwrap(), at);
        }
        for text in ["", "1;tpm;tokens", "x;tpm;tokens;", "1;tpm;To Kens;"] {
            assert!(position(text).is_err(), "{text}");
        }
    }
}
