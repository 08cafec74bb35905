//! Protocol violations: the violating peer gets an error, other peers are not affected.

use client::{Caller, Client, ConnectError, ErrorCode};
use wire::{Bind, Cast, Correlation, Credit, Flags, Header, Hello, Kind};

use crate::support::{Bare, WINDOW, bounded, echo, inproc, listen, tag, wait_until_idle};

/// Says whether the violating peer performs the handshake first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandshakeMode {
    Performed,
    Skipped,
}

/// Checks that a peer that sends these bytes gets `code` and is disconnected, while another is
/// served.
async fn check_fatal(handshake: HandshakeMode, bytes: &[u8], code: ErrorCode) {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let bystander = Caller::connect(listening.address()).await.unwrap();
        assert_eq!(bystander.call("echo", "before").await.unwrap(), "before");
        let mut culprit = match handshake {
            HandshakeMode::Performed => Bare::introduced(listening.address()).await,
            HandshakeMode::Skipped => Bare::connect(listening.address()).await,
        };
        culprit.raw(bytes).await;
        let mut told = culprit.next().await;
        if told.header.correlation != Correlation::NONE {
            // The call with the wrong reply gets its own error.
            assert_eq!(told.failure().code, code, "{told:?}");
            told = culprit.next().await;
        }
        assert_eq!(told.header.correlation, Correlation::NONE);
        assert_eq!(told.failure().code, code, "{told:?}");
        assert!(!told.failure().message.is_empty());
        assert!(culprit.try_next().await.is_none());
        assert_eq!(bystander.call("echo", "after").await.unwrap(), "after");
    })
    .await;
}

fn header(length: u32, kind: Kind, route: u16, slot: u32) -> Vec<u8> {
    let header = Header {
        length,
        kind,
        flags: Flags::NONE,
        route,
        correlation: tag(slot),
    };
    header.encode().to_vec()
}

#[tokio::test]
async fn garbage_instead_of_a_hello() {
    let http = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    check_fatal(HandshakeMode::Skipped, http, ErrorCode::Protocol).await;
    check_fatal(HandshakeMode::Skipped, &[0xff; 64], ErrorCode::Protocol).await;
    check_fatal(
        HandshakeMode::Skipped,
        &header(0, Kind::PING, 0, 0),
        ErrorCode::Protocol,
    )
    .await;
}

#[tokio::test]
async fn garbage_behind_the_hello() {
    check_fatal(
        HandshakeMode::Performed,
        &header(0, Kind(0x7f), 0, 0),
        ErrorCode::Protocol,
    )
    .await;
    check_fatal(
        HandshakeMode::Performed,
        &header(0, Kind::BIND, 1, 0),
        ErrorCode::Protocol,
    )
    .await;
    let mut short = header(3, Kind::CREDIT, 0, 0);
    short.extend([7; 3]);
    check_fatal(HandshakeMode::Performed, &short, ErrorCode::Protocol).await;
}

#[tokio::test]
async fn a_length_of_four_gigabytes() {
    let header = |kind| header(u32::MAX, kind, 1, 0);
    check_fatal(
        HandshakeMode::Performed,
        &header(Kind::REQUEST),
        ErrorCode::TooLarge,
    )
    .await;
    check_fatal(
        HandshakeMode::Performed,
        &header(Kind(0xff)),
        ErrorCode::TooLarge,
    )
    .await;
    check_fatal(
        HandshakeMode::Skipped,
        &header(Kind::HELLO),
        ErrorCode::Protocol,
    )
    .await;
}

#[tokio::test]
async fn an_unsupported_protocol_version_is_refused() {
    let hello = Hello {
        version_min: 7,
        version_max: 9,
        features: 0,
        window: WINDOW,
        token: "",
        name: "",
    };
    let mut bytes = Vec::new();
    hello.encode(&mut bytes);
    check_fatal(HandshakeMode::Skipped, &bytes, ErrorCode::Unsupported).await;
}

#[tokio::test]
async fn one_way_messages_beyond_the_credit_end_the_connection() {
    let mut bytes = Vec::new();
    let bind = Bind {
        route: 1,
        cast: Cast::Any,
        method: "never",
        name: "",
    };
    bind.encode(&mut bytes);
    for _ in 0..100 {
        bytes.extend(header(0, Kind::SEND, 1, 0));
    }
    bounded(async {
        let server = client::Server::new().window(64, model::ByteSize::mebibytes(16));
        let server = server.handle("never", |_: client::Request| {
            std::future::pending::<Result<&str, _>>()
        });
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let mut culprit = Bare::introduced(listening.address()).await;
        culprit.raw(&bytes).await;
        let told = culprit.next().await;
        assert_eq!(told.failure().code, ErrorCode::Protocol);
        assert!(told.failure().message.contains("credit"), "{told:?}");
        assert!(culprit.try_next().await.is_none());
    })
    .await;
}

#[tokio::test]
async fn an_incomplete_frame_does_not_delay_other_connections() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let mut culprits = Vec::new();
        for length in [1, 9, 15] {
            let mut culprit = Bare::introduced(listening.address()).await;
            culprit
                .raw(&header(1000, Kind::REQUEST, 1, 0)[..length])
                .await;
            culprits.push(culprit);
        }
        let mut halfway = Bare::introduced(listening.address()).await;
        halfway.raw(&header(1 << 20, Kind::REQUEST, 1, 0)).await;
        halfway.raw(&[7; 1000]).await;
        let mut rude = Bare::connect(listening.address()).await;
        rude.raw(b"TL").await;
        let caller = Caller::connect(listening.address()).await.unwrap();
        for _ in 0..100 {
            assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        }
        drop((culprits, halfway, rude));
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
    })
    .await;
}

#[tokio::test]
async fn frames_that_arrive_byte_by_byte_are_decoded() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        let mut bytes = Vec::new();
        let bind = Bind {
            route: 1,
            cast: Cast::Any,
            method: "echo",
            name: "",
        };
        bind.encode(&mut bytes);
        wire::Payload::body(b"piecemeal").encode(Kind::REQUEST, Flags::NONE, 1, tag(0), &mut bytes);
        for byte in bytes {
            client.raw(&[byte]).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(client.next().await.body(), b"piecemeal");
    })
    .await;
}

#[tokio::test]
async fn a_frame_of_an_unknown_skippable_kind_is_ignored() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.raw(&header(4, Kind(0xff), 0, 0)).await;
        client.raw(b"what").await;
        client.bind(1, "echo").await;
        client.request(1, 0, b"still here").await;
        assert_eq!(client.next().await.body(), b"still here");
    })
    .await;
}

#[tokio::test]
async fn unbound_routes_are_errors_when_used() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.request(7, 0, b"x").await;
        let answer = client.next().await;
        assert_eq!(answer.header.correlation, tag(0));
        assert_eq!(answer.failure().code, ErrorCode::InvalidArgument);
        // Unsolicited frames are ignored.
        client.frame(|out| wire::encode_cancel(tag(9), out)).await;
        let credit = Credit {
            messages: 5,
            bytes: 0,
        };
        client.frame(|out| credit.encode(tag(9), out)).await;
        client
            .frame(|out| credit.encode(Correlation::NONE, out))
            .await;
        client.reply(tag(9), b"an answer to nothing").await;
        client.bind(1, "echo").await;
        client.request(1, 1, b"x").await;
        assert_eq!(client.next().await.body(), b"x");
    })
    .await;
}

#[tokio::test]
async fn a_server_refuses_subscriptions_as_unsupported() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        let subscribe = wire::Subscribe {
            options: 0,
            name: "a/b/c",
            description: None,
        };
        client.frame(|out| subscribe.encode(tag(0), out)).await;
        assert_eq!(client.next().await.failure().code, ErrorCode::Unsupported);

        let client = Client::connect(listening.address()).await.unwrap();
        let name = crate::support::name();
        let error = client.subscribe(&name).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        let error = client.send(&name, Cast::Any, "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        let error = client.request(&name, "x").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert_eq!(client.direct().call("echo", "x").await.unwrap(), "x");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn caller_that_sends_no_hello_in_time_is_disconnected() {
    bounded(async {
        let listening = echo().listen(&inproc()).await.unwrap();
        let mut stranger = Bare::connect(listening.address()).await;
        let told = stranger.next().await;
        assert_eq!(told.failure().code, ErrorCode::Protocol);
        assert!(stranger.try_next().await.is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_peer_of_a_server_is_pinged_and_then_disconnected() {
    bounded(async {
        let keepalive = std::time::Duration::from_secs(4);
        let listening = echo().keepalive(keepalive).listen(&inproc()).await.unwrap();
        let mut silent = Bare::introduced(listening.address()).await;
        assert_eq!(silent.next().await.header.kind, Kind::PING);
        while let Some(frame) = silent.try_next().await {
            assert_eq!(frame.header.kind, Kind::PING);
        }

        let address = inproc();
        let listener = listen(&address);
        let builder = Client::builder().keepalive(keepalive);
        let (caller, mut server) = tokio::join!(
            async { builder.connect_caller(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let error = caller.call("x", "x").deadline(None).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unconfirmed);
        let mut kinds = Vec::new();
        while let Some(frame) = server.try_next().await {
            kinds.push(frame.header.kind);
        }
        assert!(kinds.contains(&Kind::PING), "{kinds:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_violates_the_protocol_is_disconnected() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let (caller, mut server) = tokio::join!(
            async { Caller::connect(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let nonsense = async {
            server.next().await;
            server.raw(&header(0, Kind(0x7f), 0, 0)).await;
            let told = server.next().await;
            assert_eq!(told.failure().code, ErrorCode::Protocol);
            assert!(server.try_next().await.is_none());
        };
        let (outcome, ()) = tokio::join!(caller.call("x", "x"), nonsense);
        assert_eq!(outcome.unwrap_err().code, ErrorCode::Unconfirmed);
        // The next connection works.
        let again = async {
            let mut server = Bare::accept(&listener, WINDOW).await;
            let request = server.next().await;
            server.reply(request.header.correlation, b"well").await;
            wait_until_idle().await;
            server
        };
        let (outcome, _server) = tokio::join!(caller.call("x", "x"), again);
        assert_eq!(outcome.unwrap(), "well");
    })
    .await;
}

#[tokio::test]
async fn a_peer_without_the_protocol_is_a_protocol_error() {
    bounded(async {
        let other = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("tcp://{}", other.local_addr().unwrap());
        let answer = async {
            let mut stream = other.accept().await.unwrap().0;
            let answer = b"SSH-2.0-OpenSSH_9.6 and a few words more\r\n";
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer)
                .await
                .unwrap();
            stream
        };
        let (outcome, _stream) = tokio::join!(Caller::connect(&address), answer);
        let error = outcome.unwrap_err();
        assert!(matches!(error, ConnectError::Protocol { .. }), "{error:?}");
        assert!(error.to_string().contains("\nhint: "));

        drop(other);
        let error = Caller::connect(&address).await.unwrap_err();
        assert!(matches!(error, ConnectError::Io { .. }), "{error:?}");
        let error = Caller::connect("tcp//nowhere").await.unwrap_err();
        assert!(matches!(error, ConnectError::Address(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn an_agent_name_in_the_address_must_match_the_server_kind() {
    bounded(async {
        let listening = echo().listen("tcp://127.0.0.1:0").await.unwrap();
        let with_name = format!("{}#a/b/c", listening.address());
        let error = Caller::connect(&with_name).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::NameUnused { .. }),
            "{error:?}"
        );
        let node = crate::support::Node::start("tcp://127.0.0.1:0").await;
        let error = Caller::connect(node.address()).await.unwrap_err();
        assert!(
            matches!(error, ConnectError::NameMissing { .. }),
            "{error:?}"
        );
        let invalid = format!("{}#no/name", node.address());
        let error = Caller::connect(&invalid).await.unwrap_err();
        assert!(matches!(error, ConnectError::Name(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_client_without_the_right_token_is_refused() {
    bounded(async {
        let server = echo().admit(|token| token == "open sesame");
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        for token in ["", "open barley"] {
            let builder = Client::builder().token(token);
            let error = builder
                .connect_caller(listening.address())
                .await
                .unwrap_err();
            let ConnectError::Refused { code, .. } = error else {
                panic!("{error:?}");
            };
            assert_eq!(code, ErrorCode::Unauthenticated);
        }
        let builder = Client::builder().token("open sesame");
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
    })
    .await;
}
