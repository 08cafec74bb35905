//! Beginning and end of a stream: negotiation, limits, keepalive and shutdown.

use std::sync::Arc;
use std::time::Duration;

use access::Principal;
use door::{Gate, Pass, Refused, Role};
use door_slim::Options;
use http::Request;
use messaging::Limits;
use platform::Counter;
use slim::{ConnectionKind, Negotiation};
use tokio::time::timeout;

use crate::agent::{call, request, status};
use crate::{Agent, Bench, PATIENCE, until};

const ASKED: Negotiation<'static> = Negotiation {
    link_id: "a link",
    version: "3.4.6",
    is_reply: false,
    public_key: &[9; 32],
    kind: ConnectionKind::Edge,
    node_id: "client",
    deployment: "",
    kem: None,
};

#[tokio::test]
async fn an_invalid_link_negotiation_ends_the_stream_with_invalid_argument() {
    let bench = Bench::new().await;
    let bad: [&[u8]; 5] = [
        b"no message",
        &slim::Ack {
            subscription_id: 1,
            error: None,
        }
        .encode(),
        &Negotiation {
            public_key: &[1; 31],
            ..ASKED
        }
        .encode(),
        &Negotiation {
            is_reply: true,
            ..ASKED
        }
        .encode(),
        &Negotiation {
            link_id: "",
            ..ASKED
        }
        .encode(),
    ];
    for (count, first) in (1..).zip(bad) {
        let mut agent = Agent::open(&bench).await;
        agent.send(first);
        // INVALID_ARGUMENT
        assert_eq!(agent.end().await, "3");
        bench.counted(Counter::ProtocolErrors, count).await;
    }
    let mut agent = Agent::open(&bench).await;
    agent.send(&ASKED.encode());
    agent.next().await;
}

#[tokio::test]
async fn a_client_that_does_not_negotiate_in_time_is_closed() {
    let negotiation_timeout = Duration::from_millis(50);
    let options = Options {
        negotiation_timeout,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let agent = Agent::open(&bench).await;
    // DEADLINE_EXCEEDED
    assert_eq!(agent.end().await, "4");
    until("the connection to end", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn an_idle_client_that_answers_pings_stays_connected() {
    let keepalive = Duration::from_millis(20);
    let negotiation_timeout = keepalive;
    let options = Options {
        keepalive,
        negotiation_timeout,
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let mut agent = Agent::linked(&bench, "a", 1).await;
    tokio::time::sleep(10 * keepalive).await;
    assert_eq!(agent.subscribe(agent.name()).await, None);
    assert_eq!(bench.count(Counter::Silent), 0);
}

#[tokio::test]
async fn other_methods_and_other_protocols_are_answered() {
    let bench = Bench::new().await;
    let other = Request::post("http://127.0.0.1/other.Service/Method");
    let other = other
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (response, _send) = call(&bench, other).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    // UNIMPLEMENTED
    assert_eq!(status(response.headers()), "12");
    let page = Request::get("http://127.0.0.1/").body(()).unwrap();
    let (response, _send) = call(&bench, page).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    assert_eq!(response.status(), 415);
}

/// Wants one token, and says nothing of whose it is.
pub(crate) struct Password;

impl Gate for Password {
    fn admit(&self, token: &str) -> Result<Pass, Refused> {
        match token {
            "" => Err(Refused::Missing),
            "secret" => Ok(Pass::new(Principal::anonymous(Role::Agent))),
            _ => Err(Refused::Unknown),
        }
    }
}

#[tokio::test]
async fn a_stream_without_a_valid_token_is_unauthenticated() {
    let bench = Bench::with(Options::default(), Limits::default(), Arc::new(Password)).await;
    for (shown, answered) in [
        (None, "16"),
        (Some("Bearer wrong"), "16"),
        (Some("Bearer secret"), ""),
    ] {
        let mut asked = request();
        if let Some(shown) = shown {
            asked = asked.header("authorization", shown);
        }
        let (response, _send) = call(&bench, asked.body(()).unwrap()).await;
        let response = timeout(PATIENCE, response).await.unwrap().unwrap();
        let refused = response.headers().get("grpc-status");
        assert_eq!(
            refused.map_or("", |value| value.to_str().unwrap()),
            answered,
            "{shown:?}"
        );
    }
    assert_eq!(bench.count(Counter::Unauthenticated), 2);
}

#[tokio::test]
async fn connections_and_subscriptions_have_limits() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let options = Options {
        subscriptions_max: 1,
        ..Options::default()
    };
    let bench = Bench::with(options, limits, Arc::new(door::Open)).await;
    let mut agent = Agent::subscribed(&bench, "a", 1).await;
    let refused = agent
        .subscribe(slim::Name::new(["org", "ns", "b"], None))
        .await
        .unwrap();
    assert!(
        refused.contains("the limit of 1 subscriptions"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_stream_to_a_full_node_begins_when_a_connection_ends() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let bench = Bench::with(Options::default(), limits, Arc::new(door::Open)).await;
    let first = Agent::subscribed(&bench, "a", 1).await;
    let (mut response, send) = call(&bench, request().body(()).unwrap()).await;
    bench.counted(Counter::Refused, 1).await;
    // Any answer now would be the end of an application for good.
    assert!(
        timeout(Duration::from_millis(300), &mut response)
            .await
            .is_err()
    );
    drop(first);
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    Agent::of(response, send).negotiated("b", 2).await;
    assert_eq!(bench.count(Counter::Refused), 1);
}

#[tokio::test]
async fn a_waiting_stream_to_a_full_node_can_be_cancelled() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let bench = Bench::with(Options::default(), limits, Arc::new(door::Open)).await;
    let first = Agent::subscribed(&bench, "a", 1).await;
    let (response, mut send) = call(&bench, request().body(()).unwrap()).await;
    bench.counted(Counter::Refused, 1).await;
    send.send_reset(h2::Reason::CANCEL);
    drop((response, send, first));
    until("all to have gone", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
    Agent::linked(&bench, "b", 2).await;
}

#[tokio::test]
async fn a_stream_opened_during_shutdown_is_linked_and_then_closed() {
    let bench = Bench::new().await;
    let late = Agent::open(&bench).await;
    bench.node.messaging().drain(1000);
    // This one had begun, and had not negotiated.
    let late = late.negotiated("late", 1).await;
    assert_eq!(late.end().await, "14");
    // This one begins now.
    let later = Agent::open(&bench).await.negotiated("later", 2).await;
    assert_eq!(later.end().await, "14");
    until("the connections to end", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}

#[tokio::test]
async fn a_stream_without_negotiation_ends_during_shutdown() {
    let options = Options {
        negotiation_timeout: Duration::from_millis(50),
        ..Options::default()
    };
    let bench = Bench::with_options(options).await;
    let silent = Agent::open(&bench).await;
    bench.node.messaging().drain(1000);
    assert_eq!(silent.end().await, "14");
    let mut other = Agent::open(&bench).await;
    other.send(b"no negotiation");
    assert_eq!(other.end().await, "14");
}

#[tokio::test]
async fn only_a_slim_1_application_is_refused_when_it_reconnects() {
    let bench = Bench::new().await;
    let request_of = |software: &str| request().header("user-agent", software).body(()).unwrap();
    let old = Negotiation {
        version: "1.4.0",
        public_key: &[],
        ..ASKED
    };
    let (response, send) = call(&bench, request_of("tonic/old")).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    let mut agent = Agent::of(response, send);
    agent.send(&old.encode());
    // FAILED_PRECONDITION
    assert_eq!(agent.end().await, "9");
    // Others are not taken for it.
    let (response, send) = call(&bench, request_of("tonic/new")).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    Agent::of(response, send).negotiated("new", 1).await;
    // It comes back at once, and stops when its stream does not begin.
    let (response, _send) = call(&bench, request_of("tonic/old")).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    assert_eq!(status(response.headers()), "9");
    let said = response.headers()["grpc-message"].to_str().unwrap();
    assert!(said.contains("slim-bindings 2.0 to 3.3"), "{said}");
    // It is expected once.
    let (response, send) = call(&bench, request_of("tonic/old")).await;
    let response = timeout(PATIENCE, response).await.unwrap().unwrap();
    Agent::of(response, send).negotiated("another", 2).await;
}

#[tokio::test]
async fn a_shutdown_ends_streams_as_unavailable() {
    let bench = Bench::new().await;
    let agent = Agent::subscribed(&bench, "a", 1).await;
    bench.node.messaging().drain(1000);
    assert_eq!(agent.end().await, "14");
    until("the connection to end", || {
        bench.node.messaging().connection_count() == 0
    })
    .await;
}
