//! Kafka users over HTTP: SCRAM passwords, for administrators.
//!
//! | method and path | purpose |
//! |---|---|
//! | `GET /v1/kafka/users` | list users |
//! | `PUT DELETE /v1/kafka/users/{user}` | set a user's password; remove a user |
//!
//! Passwords are salted and hashed for both mechanisms, and not stored.

use std::num::NonZeroU32;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Json;
use door::topics::Refused;
use http_api::Admin;
use http_api::Problem;
use http_api::ProblemDocument;
use http_api::Shared;
use http_api::body;
use http_api::within_write_limit;
use model::ErrorCode;
use ring::rand::{SecureRandom, SystemRandom};
use scram::{SALT_SIZE, credential};
use serde::{Deserialize, Serialize};
use topic_service::{Topics, UserChangeError};
use topics::{Hash, ITERATIONS_MIN, UserChange, UserError};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::place::of;

/// Largest request body, in bytes.
const BODY_SIZE_MAX: usize = 16 << 10;

/// Longest password, in bytes.
const PASSWORD_SIZE_MAX: usize = 1_024;

/// A user's password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UserPassword)]
pub(crate) struct PasswordDocument {
    /// Password of 1 to 1024 bytes; only its hashes are stored.
    password: String,
}

/// A user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserDocument {
    #[schema(example = "ann")]
    name: String,
    /// SCRAM mechanisms with which the user can log in.
    #[schema(example = json!(["SCRAM-SHA-256", "SCRAM-SHA-512"]))]
    mechanisms: Vec<&'static str>,
}

/// All users.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Users)]
pub(crate) struct UsersDocument {
    /// Users in the order of their names.
    users: Vec<UserDocument>,
}

/// Returns the routes of users.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(put, delete))
}

/// List the Kafka users.
#[utoipa::path(
    get, path = "/v1/kafka/users", tag = "kafka", operation_id = "list_kafka_users",
    responses(
        (status = 200, description = "Users in the order of their names", body = UsersDocument),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
    )
)]
async fn list(State(shared): State<Shared>, _: Admin) -> Result<Json<UsersDocument>, Problem> {
    let users = of(&shared)?.users();
    let users = users.iter().map(|user| UserDocument {
        name: user.name.clone(),
        mechanisms: user.credentials().map(|(hash, _)| hash.name()).collect(),
    });
    let users = users.collect();
    Ok(Json(UsersDocument { users }))
}

/// Create a user or replace its password. The answer is sent when the change is on disk.
#[utoipa::path(
    put, path = "/v1/kafka/users/{user}", tag = "kafka", operation_id = "put_kafka_user",
    params(("user" = String, Path, description = "Name of the user")),
    request_body = PasswordDocument,
    responses(
        (status = 204, description = "The password was set"),
        (status = 400, description = "The request is invalid", body = ProblemDocument),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
async fn put(
    State(shared): State<Shared>,
    _: Admin,
    Path(user): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let topics = of(&shared)?;
    let body = body::read_json(&headers, body, BODY_SIZE_MAX).await?;
    let PasswordDocument { password } = body::parse(&body)?;
    if !(1..=PASSWORD_SIZE_MAX).contains(&password.len()) {
        let detail = format!("must have 1 to {PASSWORD_SIZE_MAX} bytes");
        return Err(body::wrong_at("password", &detail));
    }
    let changes = hashed(password).await?;
    change(&topics, &user, &changes).await
}

/// Remove a user. The answer is sent when the change is on disk.
#[utoipa::path(
    delete, path = "/v1/kafka/users/{user}", tag = "kafka", operation_id = "delete_kafka_user",
    params(("user" = String, Path, description = "Name of the user")),
    responses(
        (status = 204, description = "The user was removed"),
        (status = 403, description = "An administrator's token is required", body = ProblemDocument),
        (status = 404, description = "There is no such user", body = ProblemDocument),
        (status = 503, description = "The write failed (disk full or failed), or its outcome is unknown", body = ProblemDocument),
    )
)]
async fn delete(
    State(shared): State<Shared>,
    _: Admin,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    change(&of(&shared)?, &user, &[UserChange::RemoveAll]).await
}

/// Salts and hashes a password for every mechanism, off the threads that serve connections.
async fn hashed(password: String) -> Result<[UserChange; Hash::ALL.len()], Problem> {
    let hashing = http_api::off_thread(move || {
        Ok(Hash::ALL.map(|hash| {
            let credential = credential(hash, &password, &salt(), ITERATIONS);
            UserChange::Set(hash, credential)
        }))
    });
    hashing.await
}

const ITERATIONS: NonZeroU32 = NonZeroU32::new(ITERATIONS_MIN).expect("4,096 is not 0");

/// Returns a random salt.
fn salt() -> [u8; SALT_SIZE] {
    let mut salt = [0; SALT_SIZE];
    let filled = SystemRandom::new().fill(&mut salt);
    filled.expect("the system has random bytes from its start");
    salt
}

async fn change(
    topics: &Topics,
    user: &str,
    changes: &[UserChange],
) -> Result<StatusCode, Problem> {
    let pending = topics.change_user(user, changes);
    within_write_limit(async { pending.await.map_err(refused) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn refused(error: UserChangeError) -> Problem {
    let code = match &error {
        UserChangeError::User(user) => match user {
            UserError::Name | UserError::Iterations { .. } | UserError::Sizes => {
                ErrorCode::InvalidArgument
            }
            UserError::Unknown => ErrorCode::NotFound,
            UserError::Room => ErrorCode::Denied,
        },
        UserChangeError::Storage(storage) => return Refused::from(storage.clone()).into(),
        UserChangeError::NotDurable(error) => return Refused::from(*error).into(),
    };
    Problem::of(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use journal::Journal;
    use journal::disk::SimulatedDisk;
    use node::{Node, Parts, StorageParts};
    use platform::{Clock, Entropy, Ports};

    use super::*;

    struct Still;

    impl Clock for Still {
        fn now_ns(&self) -> u64 {
            1
        }

        fn unix_ms(&self) -> u64 {
            1
        }
    }

    impl Entropy for Still {
        fn next_u64(&self) -> u64 {
            7
        }
    }

    #[test]
    fn passwords_are_hashed_on_the_blocking_thread_pool() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, gate) = std::sync::mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || gate.recv());
            let mut hashing = tokio::spawn(hashed("secret".to_owned()));
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(!hashing.is_finished(), "the only thread for it is busy");
            release.send(()).unwrap();
            busy.await.unwrap().unwrap();
            let changes = (&mut hashing).await.unwrap().unwrap();
            assert_eq!(changes.len(), 2);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_change_that_is_never_synced_is_unconfirmed() {
        let disk = Arc::new(SimulatedDisk::new(1));
        // The write-ahead log of this journal is never stepped.
        let opened = Journal::open_stepped(disk, &journal::Options::default()).unwrap();
        let ports = Ports {
            clock: Arc::new(Still),
            entropy: Arc::new(Still),
        };
        let storage = StorageParts::new(Arc::new(opened.journal));
        let node = Node::open(Parts::with_storage(ports, storage)).unwrap();
        let topics = node.topics().unwrap();
        let kept = credential(Hash::Sha256, "secret", b"salt", ITERATIONS);
        let changes = [UserChange::Set(Hash::Sha256, kept)];
        let problem = change(&topics, "ann", &changes).await.unwrap_err();
        assert_eq!(problem.code, ErrorCode::Unconfirmed);
        assert!(
            problem.detail.contains("may or may not take effect"),
            "{problem:?}"
        );
        let problem = change(&topics, "bob", &[UserChange::RemoveAll]).await;
        assert_eq!(problem.unwrap_err().code, ErrorCode::NotFound);
    }
}
