//! Size limits of the client, of the server and of replies. The connection works afterwards.

use client::{Bytes, Caller, Client, ErrorCode, Sent, Server};
use model::ByteSize;
use wire::{Correlation, Flags, Kind};

use crate::support::{
    Bare, Node, WINDOW, bounded, echo, inproc, listen, name, tag, through_a_node,
};

fn inflating_server() -> Server {
    echo()
        .handle("blow up", |request: client::Request| async move {
            let size: usize = std::str::from_utf8(&request.body)?.parse()?;
            Ok(vec![7_u8; size])
        })
        .handle_stream("blow up", |request, items| async move {
            let size: usize = std::str::from_utf8(&request.body)?.parse()?;
            items.send("small").await?;
            items.send(vec![7_u8; size]).await
        })
}

#[tokio::test]
async fn a_body_above_the_servers_limit_is_refused_before_it_is_sent() {
    bounded(async {
        let server = echo().frame_size_max(ByteSize::bytes(1000));
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let caller = Caller::connect(listening.address()).await.unwrap();
        let large = [7; 1001];
        let error = caller.call("echo", large).await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::No));
        assert!(error.message.contains("1000") && error.message.contains("frame_size_max"));
        let error = caller.one_way("echo", large).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        let error = caller
            .stream("echo", large)
            .next()
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        let callbacks = caller.callbacks("echo", |_, _| panic!("was refused"));
        assert_eq!(
            callbacks.call(0, large).unwrap_err().code,
            ErrorCode::TooLarge
        );
        let outcomes = caller.call_batch("echo", [&large[..], b"x"]).await;
        assert_eq!(outcomes[0].as_ref().unwrap_err().code, ErrorCode::TooLarge);
        assert_eq!(outcomes[1].as_ref().unwrap(), "x");
        let metadata = client::Metadata::new().with("a", vec![0; 65_533]);
        let error = caller
            .call("echo", "x")
            .metadata(metadata)
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        assert_eq!(caller.call("echo", [7; 900]).await.unwrap().len(), 900);
        assert_eq!(caller.client().in_flight(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_server_names_its_limit_to_a_caller_that_ignores_it() {
    bounded(async {
        let server = echo().frame_size_max(ByteSize::bytes(1000));
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let mut client = Bare::introduced(listening.address()).await;
        client.bind(1, "echo").await;
        client.request(1, 0, &[7; 5000]).await;
        let refused = client.next().await;
        assert_eq!(refused.header.correlation, tag(0));
        assert_eq!(refused.failure().code, ErrorCode::TooLarge);
        assert!(refused.failure().message.contains("1000"), "{refused:?}");
        client.request(1, 1, &[7; 1000]).await;
        assert_eq!(client.next().await.body().len(), 1000);

        // More than 16 times the limit is not skipped; the connection ends.
        client.request(1, 2, &[7; 16_001]).await;
        let farewell = client.next().await;
        assert_eq!(farewell.failure().code, ErrorCode::TooLarge);
        assert!(farewell.failure().message.contains("1000"), "{farewell:?}");
        assert_eq!(farewell.header.correlation, Correlation::NONE);
        assert!(client.try_next().await.is_none());
        let caller = Caller::connect(listening.address()).await.unwrap();
        assert_eq!(caller.call("echo", "others").await.unwrap(), "others");
    })
    .await;
}

#[tokio::test]
async fn a_reply_above_the_callers_limit_is_an_error_of_its_own() {
    bounded(async {
        let listening = inflating_server()
            .listen("tcp://127.0.0.1:0")
            .await
            .unwrap();
        let builder = Client::builder().frame_size_max(ByteSize::bytes(1000));
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let mut items = caller.stream("blow up", "1001");
        assert_eq!(items.next().await.unwrap().unwrap(), "small");
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::Yes));
        assert!(error.message.contains("1000"), "{error}");
        assert!(items.next().await.is_none());

        let server =
            Server::new().handle("blow up", |_: client::Request| async { Ok(vec![7; 1001]) });
        let listening = server.listen("tcp://127.0.0.1:0").await.unwrap();
        let builder = Client::builder().frame_size_max(ByteSize::bytes(1000));
        let caller = builder.connect_caller(listening.address()).await.unwrap();
        let error = caller.call("blow up", "").await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::Yes));
        assert!(error.message.contains("1000"), "{error}");
        let error = caller.call("missing", "").await.unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownMethod);
    })
    .await;
}

#[tokio::test]
async fn limits_hold_on_both_sides_of_a_node() {
    bounded(async {
        let node = Node::start("tcp://127.0.0.1:0").await;
        let size = ByteSize::bytes(1000);
        let server = Server::new().handle("size", |request: client::Request| async move {
            let size: usize = match request.body.len() {
                2 => 2000,
                length => length,
            };
            Ok(Bytes::from(vec![7; size]))
        });
        let small = Client::builder()
            .frame_size_max(size)
            .connect(node.address())
            .await
            .unwrap();
        let _attached = server.attach(&small, &name()).await.unwrap();
        let caller = Caller::connect(&node.address_of(&name())).await.unwrap();
        let error = caller.call("size", [7; 1001]).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::TooLarge);
        assert!(error.message.contains("1000"), "{error}");
        assert_eq!(caller.call("size", [7; 900]).await.unwrap().len(), 900);
        assert_eq!(caller.call("size", [7; 2]).await.unwrap().len(), 2000);

        let builder = Client::builder().frame_size_max(size);
        let caller = builder
            .connect_caller(&node.address_of(&name()))
            .await
            .unwrap();
        let error = caller.call("size", [7; 2]).await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::Yes));
        assert_eq!(caller.call("size", [7; 900]).await.unwrap().len(), 900);
    })
    .await;
}

#[tokio::test]
async fn the_nodes_limit_is_the_callers_limit() {
    bounded(async {
        let options = door_native::Options {
            frame_size_max: 1000,
            ..door_native::Options::default()
        };
        let node = Node::start_with("tcp://127.0.0.1:0", options, None).await;
        let (_attached, caller) = through_a_node(&node, &echo()).await;
        let error = caller.call("echo", [7; 1001]).await.unwrap_err();
        assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::No));
        assert_eq!(caller.call("echo", [7; 900]).await.unwrap().len(), 900);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_callers_limit_fails_that_call_only() {
    bounded(async {
        let address = inproc();
        let listener = listen(&address);
        let builder = Client::builder().frame_size_max(ByteSize::bytes(1000));
        let (caller, mut server) = tokio::join!(
            async { builder.connect_caller(&address).await.unwrap() },
            Bare::accept(&listener, WINDOW),
        );
        let answers = async {
            for body in [&[7; 5000][..], b"fine"] {
                let request = server.next().await;
                let to = request.header.correlation;
                server.message(Kind::REPLY, Flags::NONE, 0, to, body).await;
            }
        };
        let calls = async {
            let error = caller.call("x", "x").await.unwrap_err();
            assert_eq!((error.code, error.sent), (ErrorCode::TooLarge, Sent::Yes));
            assert!(error.message.contains("limit of 1000"), "{error}");
            assert_eq!(caller.call("x", "x").await.unwrap(), "fine");
        };
        tokio::join!(answers, calls);
    })
    .await;
}

#[tokio::test]
async fn large_bodies_arrive_complete() {
    bounded(crate::support::over_every_transport(
        &echo(),
        async |caller: Caller| {
            // More than any socket or pipe can hold.
            let body: Vec<u8> = (0..5 << 20).map(|index| (index % 251) as u8).collect();
            let (one, two) = tokio::join!(caller.call("echo", &body), caller.call("echo", &body));
            assert!(one.unwrap() == body && two.unwrap() == body);
        },
    ))
    .await;
}
