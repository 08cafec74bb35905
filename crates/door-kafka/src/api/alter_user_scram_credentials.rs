//! AlterUserScramCredentials: changes users' credentials; only for administrators.
//!
//! Each user is changed completely or not at all, and answered when that is durable.

use std::collections::BTreeMap;

use kafka::ErrorCode;
use kafka::alter_user_scram_credentials::{Deletion, Request, Response, Upsertion, UserResponse};
use platform::Pending;
use scram::credential_of_salted;
use topic_service::{Farewell, Topics, UserChangeError};
use topics::{Hash, UserChange, UserError};

use super::scram_users::{NOT_ADMIN, hash};
use crate::client::Client;
use crate::deadline::Deadline;
use crate::errors::Failed;
use crate::reply::{Answer, Tag};

/// The requested changes of one user.
type RequestedChanges = Result<Vec<(Hash, UserChange)>, Failed>;

/// A change in progress, or its error. A user that changes itself is answered before it is
/// disconnected.
type Changing = Result<(Pending<(), UserChangeError>, Option<Farewell>), Failed>;

pub(crate) fn answer(client: &Client, tag: Tag, request: Request) -> Answer {
    let changing: Vec<_> = by_user(client.topics(), request)
        .into_iter()
        .map(|(user, asked)| {
            let changing = begin(client, &user, asked);
            (user, changing)
        })
        .collect();
    let deadline = Deadline::usual();
    tag.later(async move {
        let (mut results, mut farewells) = (Vec::with_capacity(changing.len()), Vec::new());
        for (user, changing) in changing {
            let outcome = match changing {
                Ok((pending, farewell)) => {
                    farewells.extend(farewell);
                    deadline.outcome(pending).await
                }
                Err(failed) => Err(failed),
            };
            results.push(result(user, outcome.err()));
        }
        Response {
            results,
            ..Response::default()
        }
    })
}

fn by_user(topics: &Topics, request: Request) -> BTreeMap<String, RequestedChanges> {
    let mut users = BTreeMap::new();
    for it in request.deletions {
        let asked = deletion(topics, &it);
        add(&mut users, it.name, asked);
    }
    for it in request.upsertions {
        let asked = upsertion(&it);
        add(&mut users, it.name, asked);
    }
    users
}

fn add(
    users: &mut BTreeMap<String, RequestedChanges>,
    name: String,
    asked: Result<(Hash, UserChange), Failed>,
) {
    let all = users.entry(name).or_insert_with(|| Ok(Vec::new()));
    let Ok(changes) = all else {
        return;
    };
    match asked {
        Ok((hash, _)) if changes.iter().any(|(other, _)| *other == hash) => {
            let message = "a credential may be changed only once in a request";
            *all = Err(Failed::new(ErrorCode::DuplicateResource, message));
        }
        Ok(change) => changes.push(change),
        Err(failed) => *all = Err(failed),
    }
}

/// A missing credential is reported before any other error of the user, as in Kafka.
fn deletion(topics: &Topics, asked: &Deletion) -> Result<(Hash, UserChange), Failed> {
    let hash = hash(asked.mechanism)?;
    let user = topics.user(&asked.name);
    match user.is_some_and(|user| user.credential(hash).is_some()) {
        true => Ok((hash, UserChange::Remove(hash))),
        false if asked.name.is_empty() => Err(UserChangeError::from(UserError::Name).into()),
        false => Err(UserChangeError::from(UserError::Unknown).into()),
    }
}

fn upsertion(asked: &Upsertion) -> Result<(Hash, UserChange), Failed> {
    let hash = hash(asked.mechanism)?;
    let salted = &asked.salted_password.0;
    if salted.len() != hash.size() {
        let message = format!("a salted password has {} bytes", hash.size());
        return Err(Failed::new(ErrorCode::UnacceptableCredential, message));
    }
    let iterations = u32::try_from(asked.iterations).unwrap_or(0);
    let credential = credential_of_salted(hash, salted, &asked.salt.0, iterations);
    Ok((hash, UserChange::Set(hash, credential)))
}

fn begin(client: &Client, user: &str, asked: RequestedChanges) -> Changing {
    if !client.is_admin() {
        return Err(Failed::new(
            ErrorCode::ClusterAuthorizationFailed,
            NOT_ADMIN,
        ));
    }
    let changes: Vec<_> = asked?.into_iter().map(|(_, change)| change).collect();
    let (pending, farewell) = client.topics().change_user_from_within(user, &changes);
    Ok((pending, farewell.filter(|_| client.is(user))))
}

fn result(user: String, failed: Option<Failed>) -> UserResponse {
    UserResponse {
        user,
        error_code: failed.as_ref().map_or(ErrorCode::None, |it| it.code),
        error_message: failed.map(|it| it.message),
    }
}
