//! SASL authentication.

use std::sync::Arc;

use access::Principal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use door::{Gate, Open, Pass, Refused, Role};
use door_kafka::NoUsers;
use kafka::{ErrorCode, Secret, sasl_authenticate, sasl_handshake};
use ring::{digest, hmac, pbkdf2};

use crate::{Bench, Client, SingleUser};

/// Admits clients with the token `open`.
struct OpenToken;

impl Gate for OpenToken {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        match token {
            "open" => Ok(Pass::new(Principal::anonymous(Role::Agent))),
            "" => Err(Refused::Missing),
            _ => Err(Refused::Unknown),
        }
    }
}

pub(crate) async fn choose(client: &mut Client, mechanism: &str) -> sasl_handshake::Response {
    let mechanism = mechanism.to_owned();
    client.ask(1, &sasl_handshake::Request { mechanism }).await
}

pub(crate) async fn send_sasl(client: &mut Client, message: &[u8]) -> sasl_authenticate::Response {
    let auth_bytes = Secret(message.to_vec().into());
    client
        .ask(2, &sasl_authenticate::Request { auth_bytes })
        .await
}

async fn is_served(client: &mut Client) -> bool {
    client.send(4, &kafka::metadata::Request::default()).await;
    client.frame().await.is_some()
}

#[tokio::test]
async fn unauthenticated_clients_are_only_served_api_versions() {
    let bench = Bench::with(Arc::new(Open), Arc::new(SingleUser::new("ann", "secret")));
    let mut client = bench.connect();
    client.flush_requests().await;
    assert!(!is_served(&mut client).await);
}

#[tokio::test]
async fn user_authenticates_with_the_right_password() {
    let bench = Bench::with(Arc::new(Open), Arc::new(SingleUser::new("ann", "secret")));
    let mut client = bench.connect();
    let chosen = choose(&mut client, "PLAIN").await;
    assert_eq!(chosen.error_code, ErrorCode::None);
    assert_eq!(
        chosen.mechanisms,
        ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    );
    let told = send_sasl(&mut client, b"\0ann\0secret").await;
    assert_eq!(told.error_code, ErrorCode::None);
    assert!(is_served(&mut client).await);
}

#[tokio::test]
async fn a_wrong_password_is_an_authentication_error_and_closes_the_connection() {
    for message in [
        "\0ann\0wrong",
        "\0bob\0secret",
        "\0ann",
        "bob\0ann\0secret",
        "",
    ] {
        let bench = Bench::with(Arc::new(Open), Arc::new(SingleUser::new("ann", "secret")));
        let mut client = bench.connect();
        choose(&mut client, "PLAIN").await;
        let told = send_sasl(&mut client, message.as_bytes()).await;
        let code = told.error_code;
        assert_eq!(code, ErrorCode::SaslAuthenticationFailed, "{message:?}");
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn a_password_is_checked_while_other_clients_are_served() {
    // So many rounds take far longer than a request does.
    let slow = SingleUser::with_rounds("ann", "secret", 100_000);
    let bench = Bench::with(Arc::new(Open), Arc::new(slow));
    let (mut client, mut other) = (bench.connect(), bench.connect());
    choose(&mut client, "PLAIN").await;
    other.flush_requests().await;
    let login = async {
        let told = send_sasl(&mut client, b"\0ann\0secret").await;
        assert_eq!(told.error_code, ErrorCode::None);
        "login"
    };
    // The task is polled behind the login, which has been sent by then.
    let request = async {
        tokio::task::yield_now().await;
        other.flush_requests().await;
        "request"
    };
    tokio::pin!(login, request);
    let first = tokio::select! {
        biased;
        done = &mut login => done,
        done = &mut request => done,
    };
    assert_eq!(first, "request");
    login.await;
}

#[tokio::test]
async fn a_token_is_accepted_as_a_plain_password() {
    let bench = Bench::with(Arc::new(OpenToken), Arc::new(NoUsers));
    let mut client = bench.connect();
    assert_eq!(choose(&mut client, "PLAIN").await.mechanisms, ["PLAIN"]);
    assert_eq!(
        send_sasl(&mut client, b"\0token\0open").await.error_code,
        ErrorCode::None
    );
    assert!(is_served(&mut client).await);
    let mut client = bench.connect();
    choose(&mut client, "PLAIN").await;
    let told = send_sasl(&mut client, b"\0token\0shut").await;
    assert_eq!(told.error_code, ErrorCode::SaslAuthenticationFailed);
}

#[tokio::test]
async fn unsupported_sasl_mechanisms_are_refused() {
    let bench = Bench::with(Arc::new(OpenToken), Arc::new(NoUsers));
    for mechanism in ["GSSAPI", "SCRAM-SHA-256"] {
        let chosen = choose(&mut bench.connect(), mechanism).await;
        assert_eq!(chosen.error_code, ErrorCode::UnsupportedSaslMechanism);
        assert_eq!(chosen.mechanisms, ["PLAIN"]);
    }
    let told = send_sasl(&mut bench.connect(), b"\0a\0open").await;
    assert_eq!(told.error_code, ErrorCode::IllegalSaslState);
}

/// The client's side of RFC 5802 with SHA-256.
async fn authenticate_with_scram(
    client: &mut Client,
    password: &str,
) -> sasl_authenticate::Response {
    choose(client, "SCRAM-SHA-256").await;
    let bare = "n=ann,r=abc";
    let challenge = send_sasl(client, format!("n,,{bare}").as_bytes()).await;
    let challenge = String::from_utf8(challenge.auth_bytes.0.to_vec()).unwrap();
    let field = |name: &str| {
        let mut fields = challenge.split(',');
        fields.find_map(|it| it.strip_prefix(name)).unwrap()
    };
    let salt = STANDARD.decode(field("s=")).unwrap();
    let iterations = field("i=").parse().unwrap();
    let mut salted = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(
        algorithm,
        iterations,
        &salt,
        password.as_bytes(),
        &mut salted,
    );
    let sign = |key: &[u8], bytes: &[u8]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::sign(&key, bytes).as_ref().to_vec()
    };
    let key = sign(&salted, b"Client Key");
    let stored = digest::digest(&digest::SHA256, &key);
    let unproven = format!("c=biws,r={}", field("r="));
    let message = format!("{bare},{challenge},{unproven}");
    let signature = sign(stored.as_ref(), message.as_bytes());
    let proof: Vec<u8> = key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
    let last = format!("{unproven},p={}", STANDARD.encode(proof));
    let told = send_sasl(client, last.as_bytes()).await;
    let server = sign(&sign(&salted, b"Server Key"), message.as_bytes());
    let expected = format!("v={}", STANDARD.encode(server));
    if told.error_code == ErrorCode::None {
        assert_eq!(told.auth_bytes.0, expected, "the broker proves itself too");
    }
    told
}

#[tokio::test]
async fn scram_authenticates_the_right_password_and_refuses_a_wrong_one() {
    let bench = Bench::with(Arc::new(Open), Arc::new(SingleUser::new("ann", "secret")));
    let mut client = bench.connect();
    let told = authenticate_with_scram(&mut client, "secret").await;
    assert_eq!(told.error_code, ErrorCode::None);
    assert!(is_served(&mut client).await);
    let mut client = bench.connect();
    let told = authenticate_with_scram(&mut client, "guess").await;
    assert_eq!(told.error_code, ErrorCode::SaslAuthenticationFailed);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_version_0_sasl_handshake_is_refused() {
    let bench = Bench::with(Arc::new(Open), Arc::new(SingleUser::new("ann", "secret")));
    let mut client = bench.connect();
    let mechanism = "SCRAM-SHA-256".to_owned();
    let request = sasl_handshake::Request { mechanism };
    let refused = client.ask(0, &request).await;
    assert_eq!(refused.error_code, ErrorCode::UnsupportedVersion);
    let told = authenticate_with_scram(&mut client, "secret").await;
    assert_eq!(told.error_code, ErrorCode::None);
}
