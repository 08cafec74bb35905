//! DescribeUserScramCredentials: lists users; only for administrators.

use kafka::ErrorCode;
use kafka::describe_user_scram_credentials::{
    CredentialInfo, Request, Response, UserName, UserResponse,
};
use topics::User;

use super::changes::{Once, once};
use super::scram_users::{NOT_ADMIN, TWICE, UNKNOWN};
use crate::client::Client;

pub(crate) fn answer(client: &Client, request: Request) -> Response {
    if !client.is_admin() {
        return Response {
            error_code: ErrorCode::ClusterAuthorizationFailed,
            error_message: Some(NOT_ADMIN.to_owned()),
            ..Response::default()
        };
    }
    let topics = client.topics();
    let results = match request.users.filter(|it| !it.is_empty()) {
        None => topics.users().iter().map(|user| described(user)).collect(),
        Some(asked) => {
            let each = once(asked, |it| &it.name).into_iter();
            let each = each.map(|asked| match asked {
                Once::One(UserName { name }) => match topics.user(&name) {
                    Some(user) => described(&user),
                    None => refused(name, ErrorCode::ResourceNotFound, UNKNOWN),
                },
                Once::Many(UserName { name }) => refused(name, ErrorCode::DuplicateResource, TWICE),
            });
            each.collect()
        }
    };
    Response {
        results,
        ..Response::default()
    }
}

fn refused(user: String, error_code: ErrorCode, message: &str) -> UserResponse {
    UserResponse {
        user,
        error_code,
        error_message: Some(message.to_owned()),
        ..UserResponse::default()
    }
}

fn described(user: &User) -> UserResponse {
    let infos = user.credentials().map(|(hash, kept)| CredentialInfo {
        mechanism: hash as i8,
        iterations: i32::try_from(kept.iterations).unwrap_or(i32::MAX),
    });
    UserResponse {
        user: user.name.clone(),
        credential_infos: infos.collect(),
        ..UserResponse::default()
    }
}
