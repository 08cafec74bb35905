//! The blocking client.

use std::time::Duration;

use client::blocking::{Client, Spin};
use client::{Attachment, ConnectError, ErrorCode, ListeningServer, Sent, Server};
use model::ByteSize;

use crate::support::{Bare, Gate, Node, WINDOW, bounded, echo, name};

/// Runs blocking code on another thread, while the server runs on this one.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    bounded(tokio::task::spawn_blocking(run)).await.unwrap()
}

/// The echo server, directly and behind a node, over TCP and a Unix socket.
struct EchoServers {
    addresses: Vec<String>,
    _running: (Vec<ListeningServer>, Vec<Node>, Vec<Attachment>),
    _dir: tempfile::TempDir,
}

impl EchoServers {
    async fn of(server: &Server) -> Self {
        let dir = tempfile::TempDir::new().unwrap();
        let unix = |name: &str| format!("unix://{}", dir.path().join(name).display());
        let (mut listening, mut nodes, mut attached) = (Vec::new(), Vec::new(), Vec::new());
        let mut addresses = Vec::new();
        for address in ["tcp://127.0.0.1:0".to_owned(), unix("server")] {
            listening.push(server.listen(&address).await.unwrap());
            addresses.push(listening.last().unwrap().address().to_owned());
        }
        for address in ["tcp://127.0.0.1:0".to_owned(), unix("node")] {
            let node = Node::start(&address).await;
            attached.push(server.attach(&node.client().await, &name()).await.unwrap());
            addresses.push(node.address_of(&name()));
            nodes.push(node);
        }
        Self {
            addresses,
            _running: (listening, nodes, attached),
            _dir: dir,
        }
    }
}

#[tokio::test]
async fn calls_are_answered_one_after_the_other_and_in_a_pipelined_batch() {
    let places = EchoServers::of(&echo()).await;
    for address in places.addresses.clone() {
        for spin in [Spin::Auto, Spin::Off] {
            let address = address.clone();
            blocking(move || {
                eprintln!("at {address}");
                let mut client = Client::builder().spin(spin).connect(&address).unwrap();
                for number in 0..50 {
                    let body = number.to_string();
                    assert_eq!(client.call("echo", &body).unwrap(), body);
                }
                let mut seen = Vec::new();
                client
                    .call_with("echo", b"here", |reply| seen.extend_from_slice(reply))
                    .unwrap();
                assert_eq!(seen, b"here");
                let outcomes = client.call_batch("echo", (0..5000).map(|n| n.to_string()));
                assert_eq!(outcomes.len(), 5000);
                for (number, outcome) in outcomes.into_iter().enumerate() {
                    assert_eq!(outcome.unwrap(), number.to_string());
                }
                let large: Vec<_> = (0..20_u8).map(|byte| vec![byte; 300 << 10]).collect();
                let outcomes = client.call_batch("echo", &large);
                for (outcome, body) in outcomes.into_iter().zip(&large) {
                    assert!(outcome.unwrap() == body);
                }
                assert!(client.call_batch("echo", Vec::<&str>::new()).is_empty());
            })
            .await;
        }
    }
}

#[tokio::test]
async fn an_unknown_method_is_answered_at_once_with_the_nearest_name() {
    let places = EchoServers::of(&echo()).await;
    for address in places.addresses.clone() {
        blocking(move || {
            let mut client = Client::connect(&address).unwrap();
            let error = client.call("ehco", "x").unwrap_err();
            assert_eq!(error.code, ErrorCode::UnknownMethod);
            assert!(error.message.contains("did you mean `echo`?"), "{error}");
            let outcomes = client.call_batch("ehco", ["x", "y"]);
            assert!(outcomes.iter().all(|outcome| outcome.is_err()));
            assert_eq!(client.call("echo", "after").unwrap(), "after");
        })
        .await;
    }
}

#[tokio::test]
async fn a_deadline_ends_the_call_and_its_handler_and_nothing_else() {
    let gate = Gate::new();
    let places = EchoServers::of(&gate.on(echo())).await;
    for (round, address) in places.addresses.clone().into_iter().enumerate() {
        blocking(move || {
            let time = Duration::from_millis(50);
            let mut client = Client::builder().deadline(time).connect(&address).unwrap();
            let error = client.call("wait", "x").unwrap_err();
            assert_eq!(error.code, ErrorCode::DeadlineExceeded);
            assert_ne!(error.sent, Sent::No);
            drop(client);
            let mut client = Client::connect(&address).unwrap();
            assert_eq!(client.call("echo", "after").unwrap(), "after");
        })
        .await;
        bounded(gate.left.reaches(round + 1)).await;
    }
}

#[tokio::test]
async fn a_late_reply_does_not_complete_the_next_call() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let serve = async {
        let stream = net::split_tcp(listener.accept().await.unwrap().0).unwrap();
        let mut server = Bare::welcome(stream, wire::Role::Server, WINDOW).await;
        let first = server.next().await.header.correlation;
        assert_eq!(server.next().await.header.kind, wire::Kind::CANCEL);
        let second = server.next().await.header.correlation;
        server.reply(first, b"the first answer").await;
        server.reply(second, b"the second answer").await;
        server
    };
    let call = blocking(move || {
        let mut client = Client::builder()
            .deadline(Duration::from_secs(1))
            .connect(&address)
            .unwrap();
        let error = client.call("x", "first").unwrap_err();
        assert_eq!(error.code, ErrorCode::DeadlineExceeded);
        assert_eq!(client.call("x", "second").unwrap(), "the second answer");
    });
    let ((), _server) = tokio::join!(call, bounded(serve));
}

#[tokio::test]
async fn a_server_failure_leaves_calls_unconfirmed_and_the_client_reconnects() {
    let gate = Gate::new();
    let server = gate.on(echo());
    let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
    let address = listening.address().to_owned();
    let (died, has_died) = std::sync::mpsc::channel();
    let calling = {
        let address = address.clone();
        blocking(move || {
            let mut client = Client::connect(&address).unwrap();
            for outcome in client.call_batch("wait", ["a", "b", "c"]) {
                let error = outcome.unwrap_err();
                assert_eq!(
                    (error.code, error.sent),
                    (ErrorCode::Unconfirmed, Sent::Unknown)
                );
            }
            has_died.recv().unwrap();
            assert_eq!(client.call("echo", "again").unwrap(), "again");
        })
    };
    let die_and_return = async {
        gate.entered.reaches(3).await;
        drop(listening);
        let listening = loop {
            match server.listen(&address).await {
                Ok(listening) => break listening,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        died.send(()).unwrap();
        listening
    };
    let ((), _listening) = tokio::join!(calling, bounded(die_and_return));
}

#[tokio::test]
async fn the_blocking_client_has_the_errors_and_limits_of_the_async_one() {
    let server = echo()
        .frame_size_max(ByteSize::bytes(1000))
        .handle("much", |_: client::Request| async { Ok(vec![7; 600]) })
        .handle("refuse", |_: client::Request| async {
            Err::<&str, _>(client::Fault::new("no").with_details("why"))
        });
    let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
    let address = listening.address().to_owned();
    blocking(move || {
        let builder = Client::builder().frame_size_max(ByteSize::bytes(500));
        let mut client = builder.connect(&address).unwrap();
        let error = client.call("echo", [7; 1001]).unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::No));
        let error = client.call("much", "").unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::Yes));
        let error = client.call("refuse", "").unwrap_err();
        assert_eq!(
            (error.code, &error.details[..]),
            (ErrorCode::HandlerError, &b"why"[..])
        );
        assert_eq!(client.call("echo", [7; 400]).unwrap().len(), 400);
        let named = format!("{address}#a/b/c");
        let error = Client::connect(&named).unwrap_err();
        assert!(
            matches!(error, ConnectError::NameUnused { .. }),
            "{error:?}"
        );
        let error = Client::connect("inproc://x").unwrap_err();
        assert!(
            matches!(error, ConnectError::Unsupported { .. }),
            "{error:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_call_to_a_name_without_a_subscriber_fails_at_once() {
    let node = Node::start("tcp://127.0.0.1:0").await;
    let address = node.address_of(&name());
    blocking(move || {
        let mut client = Client::connect(&address).unwrap();
        let error = client.call("echo", "x").unwrap_err();
        assert_eq!(error.code, ErrorCode::NoResponder);
    })
    .await;
}

#[tokio::test]
async fn a_server_with_tokens_refuses_clients_without_one() {
    let server = echo().admit(|token| token == "open sesame");
    let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
    let address = listening.address().to_owned();
    blocking(move || {
        let error = Client::connect(&address).unwrap_err();
        assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
        let mut client = Client::builder()
            .token("open sesame")
            .connect(&address)
            .unwrap();
        assert_eq!(client.call("echo", "x").unwrap(), "x");
    })
    .await;
}
