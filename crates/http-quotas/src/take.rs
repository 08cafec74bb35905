//! `POST /v1/take`: one take, or several in one request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use access::Principal;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use door::Pass;
use http_api::body::{self, wrong_at};
use http_api::reply::{JSON, Reply};
use http_api::{
    Client, FastRequest, Later, Problem, ProblemDocument, Shared, Verdict, check_halt,
    check_subject, requester,
};
use json::Text;
use model::duration;
use platform::Durable;
use quota::{Cost, Subject, Unit};
use quota_service::{Desk, Take, TakeProgress, WaitingTake};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use super::{answer, asks};

/// Path of takes.
pub const PATH: &str = "/v1/take";

/// Most takes in one request.
const TAKES_MAX: usize = 1_024;
/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 1 << 20;
/// Most units of one take.
const COSTS_MAX: usize = 16;
/// Longest time that a take may wait.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A take.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Take)]
pub(crate) struct TakeDocument<'a> {
    /// The subject: `org/namespace/agent`, optionally followed by `?run=…`.
    #[serde(borrow)]
    #[schema(value_type = String, example = "acme/research/agent-42")]
    subject: Text<'a>,
    /// Number of requests, or an amount for each unit; default 1 request.
    #[serde(default)]
    #[schema(schema_with = cost_schema, required = false)]
    cost: Costs,
    /// The run, if the subject does not name one.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    run: Option<Text<'a>>,
    /// Reserve the cost for at most this time, until it is settled; at most `quota.hold_max`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "90s")]
    hold: Option<Text<'a>>,
    /// Longest time to wait for credit; at most 10 minutes.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, example = "2s")]
    wait: Option<Text<'a>>,
    /// Priority among waiting takes; higher values go first.
    #[serde(default)]
    priority: u8,
    /// Idempotency id. Another take of the subject with this id takes nothing and gets the first
    /// one's answer.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>)]
    id: Option<Text<'a>>,
}

/// Returns the schema of a cost: a number of requests, or an amount for each unit.
pub(super) fn cost_schema() -> Schema {
    let count = || {
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(0))
    };
    let units = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(count()))
        .examples([serde_json::json!({"requests": 1, "tokens": 1800})]);
    Schema::OneOf(OneOfBuilder::new().item(count()).item(units).build())
}

/// One take, or an array of takes.
#[derive(ToSchema)]
#[schema(as = Takes)]
#[serde(untagged)]
#[expect(dead_code, reason = "it documents what `Takes` reads")]
pub(crate) enum TakesDocument<'a> {
    One(TakeDocument<'a>),
    Many(Vec<TakeDocument<'a>>),
}

/// The cost of a take by unit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Costs(pub(super) Vec<Cost>);

impl Default for Costs {
    fn default() -> Self {
        Self(vec![(Unit::REQUESTS, 1)])
    }
}

impl<'de> Deserialize<'de> for Costs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CostsVisitor)
    }
}

struct CostsVisitor;

impl<'de> Visitor<'de> for CostsVisitor {
    type Value = Costs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0, or an object with one for each unit")
    }

    fn visit_u64<E>(self, count: u64) -> Result<Costs, E> {
        Ok(Costs(vec![(Unit::REQUESTS, count)]))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Costs, A::Error> {
        let mut costs = Vec::new();
        while let Some(Text(unit)) = map.next_key::<Text<'de>>()? {
            let count = map.next_value::<u64>().map_err(|error| {
                serde::de::Error::custom(format!("`{unit}`: {}", body::explain(&error.to_string())))
            })?;
            if costs.len() == COSTS_MAX {
                let message = format!("a take may have at most {COSTS_MAX} units");
                return Err(serde::de::Error::custom(message));
            }
            let unit = Unit::parse(&unit).map_err(serde::de::Error::custom)?;
            if costs.iter().any(|(known, _)| *known == unit) {
                return Err(serde::de::Error::custom(format!("duplicate unit `{unit}`")));
            }
            costs.push((unit, count));
        }
        Ok(Costs(costs))
    }
}

/// The parsed takes of a request.
enum Takes<'a> {
    One(Box<Ready<'a>>),
    Many(Vec<Ready<'a>>),
}

/// A parsed and validated take.
struct Ready<'a> {
    name: Cow<'a, str>,
    run: Cow<'a, str>,
    costs: Vec<Cost>,
    hold: Option<Duration>,
    wait: Duration,
    priority: u8,
    id: Option<Cow<'a, str>>,
}

/// The name of the token that takes and will own the hold.
type Owner<'a> = Option<&'a str>;

impl<'a> TakeDocument<'a> {
    fn ready(self) -> Result<Ready<'a>, Problem> {
        let (name, run) = match (split(self.subject.0), self.run) {
            ((_, Some(_)), Some(_)) => {
                return Err(wrong_at("run", "the subject already names a run"));
            }
            ((name, run), None) => (name, run.unwrap_or_default()),
            ((name, None), Some(Text(run))) => (name, run),
        };
        let lasting = |field: &str, text: Option<Text<'_>>| match text {
            None => Ok(None),
            Some(Text(text)) => match duration::parse(&text) {
                Ok(lasting) => Ok(Some(lasting)),
                Err(error) => Err(wrong_at(field, &error.to_string())),
            },
        };
        let ready = Ready {
            name,
            run,
            costs: self.cost.0,
            hold: lasting("hold", self.hold)?,
            wait: lasting("wait", self.wait)?.unwrap_or_default(),
            priority: self.priority,
            id: self.id.map(|Text(id)| id),
        };
        if ready.wait > WAIT_MAX {
            return Err(wrong_at("wait", "a take may wait at most 10m"));
        }
        // All takes of a request are validated before any is decided.
        match Subject::new(&ready.name, &ready.run) {
            Ok(_) => Ok(ready),
            Err(error) => Err(wrong_at("subject", &error.to_string())),
        }
    }
}

fn split(subject: Cow<'_, str>) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
    let Some(at) = subject.find("?run=") else {
        return (subject, None);
    };
    let run = at + "?run=".len();
    match subject {
        Cow::Borrowed(text) => (
            Cow::Borrowed(&text[..at]),
            Some(Cow::Borrowed(&text[run..])),
        ),
        Cow::Owned(text) => (
            Cow::Owned(text[..at].to_owned()),
            Some(Cow::Owned(text[run..].to_owned())),
        ),
    }
}

impl<'a> Takes<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Problem> {
        if body.trim_ascii_start().first() != Some(&b'[') {
            let document: TakeDocument<'_> = body::parse(body)?;
            return Ok(Self::One(Box::new(document.ready()?)));
        }
        let documents: Vec<TakeDocument<'_>> = body::parse_array(body)?;
        if documents.is_empty() || documents.len() > TAKES_MAX {
            let detail = format!(
                "a request must have 1 to {TAKES_MAX} takes, not {}",
                documents.len()
            );
            return Err(Problem::invalid(detail));
        }
        let ready = documents.into_iter().enumerate().map(|(index, document)| {
            let ready = document.ready().map_err(|problem| at(problem, index))?;
            match ready.wait.is_zero() {
                true => Ok(ready),
                false => Err(at(wrong_at("wait", "only a single take can wait"), index)),
            }
        });
        Ok(Self::Many(ready.collect::<Result<_, _>>()?))
    }
}

fn at(problem: Problem, index: usize) -> Problem {
    let detail = format!("take {index}: {}", problem.detail);
    Problem { detail, ..problem }.with("index", index)
}

impl Takes<'_> {
    /// Returns an error for all takes if the principal is halted or may not use one of the
    /// subjects.
    fn check(&self, node: &node::Node, principal: &Principal) -> Result<(), Problem> {
        check_halt(node, principal)?;
        let takes: &[Ready<'_>] = match self {
            Self::One(one) => std::slice::from_ref(&**one),
            Self::Many(many) => many,
        };
        let mut subjects = takes.iter().filter_map(|ready| ready.take(None));
        subjects.try_for_each(|take| check_subject(principal, take.subject.name()))
    }
}

impl Ready<'_> {
    fn take<'t>(&'t self, owner: Owner<'t>) -> Option<Take<'t>> {
        Some(Take {
            subject: Subject::new(&self.name, &self.run).ok()?,
            costs: &self.costs,
            hold: self.hold,
            id: self.id.as_deref(),
            principal: owner,
        })
    }
}

/// Answers `POST /v1/take` on the fast path, unless a take may have to wait.
pub fn answer_take(
    node: &node::Node,
    pass: &Pass,
    desk: &mut Desk,
    request: &FastRequest<'_>,
    reply: &mut Reply,
) -> Verdict<'static> {
    let (principal, owner) = (pass.principal(), requester(pass).principal);
    if !request
        .content_type
        .eq_ignore_ascii_case("application/json")
    {
        return Verdict::NotHere;
    }
    match Takes::read(request.body) {
        Err(problem) => {
            reply.problem(&problem);
            Verdict::Answered
        }
        Ok(Takes::One(one)) if !one.wait.is_zero() => Verdict::NotHere,
        Ok(takes) if takes.check(node, principal).is_err() => Verdict::NotHere,
        Ok(takes) => match decide(node, desk, &takes, owner, reply) {
            Ok(durables) if durables.is_empty() => Verdict::Answered,
            Ok(durables) => Verdict::When(durables),
            Err(later) => Verdict::Later(later),
        },
    }
}

/// Decides takes that do not wait for credit. Returns the writes that must be durable before the
/// answer, or a future reply if the shared store has to be asked.
fn decide(
    node: &node::Node,
    desk: &mut Desk,
    takes: &Takes<'_>,
    owner: Owner<'_>,
    reply: &mut Reply,
) -> Result<Vec<Durable>, Later> {
    match takes {
        Takes::One(one) => {
            // The subject was validated when it was read.
            let Some(take) = one.take(owner) else {
                return Ok(Vec::new());
            };
            match node.quotas().take(desk, &take) {
                TakeProgress::Asks(parked) => Err(Box::pin(answer_one(parked))),
                TakeProgress::Done(taken) => {
                    answer::push_reply(reply, desk, &taken);
                    Ok(taken.durable.into_iter().collect())
                }
            }
        }
        Takes::Many(many) => decide_many(node, desk, many, owner, reply),
    }
}

fn decide_many(
    node: &node::Node,
    desk: &mut Desk,
    many: &[Ready<'_>],
    owner: Owner<'_>,
    reply: &mut Reply,
) -> Result<Vec<Durable>, Later> {
    let (mut durables, mut asked) = (Vec::new(), Vec::new());
    reply.clear(StatusCode::OK, JSON);
    let out = &mut reply.body;
    let takes = many.iter().filter_map(|ready| ready.take(owner));
    node.quotas().take_batch(desk, takes, |desk, begun| {
        out.push(if out.is_empty() { b'[' } else { b',' });
        match begun {
            TakeProgress::Asks(parked) => asked.push((out.len(), parked)),
            TakeProgress::Done(taken) => {
                answer::push(out, desk, &taken);
                durables.extend(taken.durable);
            }
        }
    });
    out.push(b']');
    match asked.is_empty() {
        true => Ok(durables),
        false => Err(Box::pin(answer_many(std::mem::take(out), asked, durables))),
    }
}

/// Answers a take when it is decided.
async fn answer_one(parked: WaitingTake) -> (Reply, Vec<Durable>) {
    let (mut desk, mut reply) = (Desk::new(), Reply::default());
    let taken = asks::decided(parked, &mut desk).await;
    answer::push_reply(&mut reply, &desk, &taken);
    (reply, taken.durable.into_iter().collect())
}

/// Inserts the answers of late takes into `known`, at their positions, when all are decided.
async fn answer_many(
    known: Vec<u8>,
    asked: Vec<(usize, WaitingTake)>,
    mut durables: Vec<Durable>,
) -> (Reply, Vec<Durable>) {
    let (mut desk, mut filled) = (Desk::new(), BTreeMap::new());
    asks::all_decided(asked, &mut desk, |at, desk, taken| {
        let mut filling = Vec::new();
        answer::push(&mut filling, desk, &taken);
        filled.insert(at, filling);
        durables.extend(taken.durable);
    })
    .await;
    let mut reply = Reply::default();
    reply.clear(StatusCode::OK, JSON);
    let mut from = 0;
    for (at, filling) in filled {
        reply.body.extend_from_slice(&known[from..at]);
        reply.body.extend_from_slice(&filling);
        from = at;
    }
    reply.body.extend_from_slice(&known[from..]);
    (reply, durables)
}

/// Take credit if every limit admits it.
///
/// An array of takes is answered by an array with one answer for each take; each denied one has its
/// `status`.
#[utoipa::path(
    post, path = "/v1/take", tag = "quotas", operation_id = "take",
    request_body = TakesDocument<'static>,
    responses(
        (status = 200, description = "Every limit admitted the take; or an array with one answer for each take", body = serde_json::Value),
        (status = 400, description = "The take is invalid, or can never pass", body = ProblemDocument),
        (status = 403, description = "A budget that does not refill is spent, the subject is halted, or the token may not use the subject", body = ProblemDocument),
        (status = 409, description = "The id was used before with another cost", body = ProblemDocument),
        (status = 429, description = "A limit denied the take; it would pass later", body = ProblemDocument),
        (status = 503, description = "The take could not be decided, or its write is not confirmed", body = ProblemDocument),
    )
)]
pub(super) async fn take(
    State(shared): State<Shared>,
    client: Client,
    headers: HeaderMap,
    body: Body,
) -> Result<impl IntoResponse, Problem> {
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let owner = client.requester().principal;
    let (mut desk, mut reply) = (Desk::new(), Reply::default());
    let takes = Takes::read(&body)?;
    takes.check(&shared.node, client.principal())?;
    let decided = match &takes {
        Takes::One(one) if !one.wait.is_zero() => Err(wait(&shared.node, one, owner)?),
        takes => decide(&shared.node, &mut desk, takes, owner, &mut reply),
    };
    let durables = match decided {
        Ok(durables) => durables,
        Err(later) => {
            let durables;
            (reply, durables) = later.await;
            durables
        }
    };
    for durable in durables {
        durable.await.map_err(super::errors::not_durable)?;
    }
    Ok(reply)
}

/// Starts a take that waits for credit.
fn wait(node: &node::Node, one: &Ready<'_>, owner: Owner<'_>) -> Result<Later, Problem> {
    let take = one.take(owner);
    let take = take.ok_or_else(|| wrong_at("subject", "invalid subject"))?;
    let parked = node.quotas().take_waiting(&take, one.wait, one.priority);
    Ok(Box::pin(answer_one(parked)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(json: &str) -> Result<Vec<Cost>, String> {
        let read: Result<Costs, _> = serde_json::from_str(json);
        read.map(|costs| costs.0).map_err(|error| error.to_string())
    }

    #[test]
    fn cost_is_a_number_or_an_object_by_unit() {
        assert_eq!(costs("3"), Ok(vec![(Unit::REQUESTS, 3)]));
        let both = costs(r#"{"requests":1,"tokens":1800}"#);
        assert_eq!(both, Ok(vec![(Unit::REQUESTS, 1), (Unit::TOKENS, 1800)]));
        for json in [
            "-1",
            "1.5",
            "1e3",
            "\"1\"",
            "null",
            "[1]",
            r#"{"tokens":-1}"#,
            r#"{"Tokens":1}"#,
            r#"{"tokens":1,"tokens":1}"#,
            "99999999999999999999",
        ] {
            assert!(costs(json).is_err(), "{json}");
        }
        let wrong = costs(r#"{"tokens":"1"}"#).unwrap_err();
        assert!(
            wrong.starts_with(
                "`tokens`: invalid type: string \"1\", expected a whole number from 0"
            ),
            "{wrong}"
        );
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64),
        ) {
            let _ = Takes::read(&bytes);
        }
    }
}
