//! Listening addresses, and the errors of listening.

use client::{Caller, Client, ConnectError, ListenError};

use crate::support::{bounded, echo, inproc};

fn check_hint(error: &(impl std::error::Error + ?Sized), part: &str) {
    let text = error.to_string();
    let (_, hint) = text.split_once("\nhint: ").unwrap();
    assert!(text.contains(part) && hint.len() > 10, "{text}");
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    bounded(async {
        let dir = tempfile::TempDir::new().unwrap();
        let unix = format!("unix://{}", dir.path().join("socket").display());
        for address in ["tcp://127.0.0.1:0".to_owned(), unix, inproc()] {
            let listening = echo().listen(&address).await.unwrap();
            let error = echo().listen(listening.address()).await.unwrap_err();
            assert!(matches!(error, ListenError::Io { .. }), "{error:?}");
            check_hint(&error, listening.address());
            let caller = Caller::connect(listening.address()).await.unwrap();
            assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        }
    })
    .await;
}

#[tokio::test]
async fn an_invalid_listen_address_is_refused_with_a_hint() {
    bounded(async {
        let error = echo().listen("somewhere").await.unwrap_err();
        assert!(matches!(error, ListenError::Address(_)), "{error:?}");
        check_hint(&error, "somewhere");
        let error = echo().listen("tls://127.0.0.1:0").await.unwrap_err();
        check_hint(&error, "certificate");
        let missing = echo().tls("/nonexistent/certificate.pem", "/nonexistent/key.pem");
        let error = missing.listen("tls://127.0.0.1:0").await.unwrap_err();
        assert!(matches!(error, ListenError::Tls(_)), "{error:?}");
        check_hint(&error, "/nonexistent/certificate.pem");
        let error = echo()
            .listen("unix:///nonexistent/dir/socket")
            .await
            .unwrap_err();
        check_hint(&error, "/nonexistent/dir/socket");
    })
    .await;
}

#[tokio::test]
async fn a_socket_file_is_removed_with_its_server() {
    bounded(async {
        let dir = tempfile::TempDir::new().unwrap();
        let path = dir.path().join("socket");
        let address = format!("unix://{}", path.display());
        for _ in 0..3 {
            let listening = echo().listen(&address).await.unwrap();
            let caller = Caller::connect(&address).await.unwrap();
            assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
            drop(listening);
            while path.exists() {
                tokio::task::yield_now().await;
            }
            let error = Caller::connect(&address).await.unwrap_err();
            check_hint(&error, &address);
        }
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_refused() {
    bounded(async {
        let (made, other) = (
            crate::support::Certificate::make(),
            crate::support::Certificate::make(),
        );
        let server = echo().tls(made.certificate(), made.key());
        let listening = server.listen("tls://localhost:0").await.unwrap();
        for builder in [Client::builder(), other.trusted()] {
            let error = builder
                .connect_caller(listening.address())
                .await
                .unwrap_err();
            assert!(matches!(error, ConnectError::Io { .. }), "{error:?}");
            check_hint(&error, "certificate");
        }
        // A plain client cannot connect to a TLS server, nor a TLS client to a plain server.
        let plain = listening.address().replace("tls://", "tcp://");
        let error = Caller::connect(&plain).await.unwrap_err();
        check_hint(&error, &plain);
        let caller = made
            .trusted()
            .connect_caller(listening.address())
            .await
            .unwrap();
        assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        let error = Client::builder()
            .authorities("/nonexistent.pem")
            .connect(&plain)
            .await;
        assert!(matches!(error, Err(ConnectError::Tls(_))), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn one_server_listens_at_several_addresses_and_serves_streams() {
    bounded(async {
        let server = echo();
        let mut listening = Vec::new();
        for address in [
            "tcp://127.0.0.1:0".to_owned(),
            inproc(),
            "tcp://[::1]:0".to_owned(),
        ] {
            listening.push(server.listen(&address).await.unwrap());
        }
        for place in &listening {
            let caller = Caller::connect(place.address()).await.unwrap();
            assert_eq!(caller.call("echo", "x").await.unwrap(), "x");
        }
        let builder = Client::builder().connector(move |_| {
            let (near, far) = net::inproc::pair("tunnel");
            let server = server.clone();
            tokio::spawn(async move { server.serve_stream(far).await });
            Box::pin(std::future::ready(Ok(near)))
        });
        let caller = builder.connect_caller("tcp://nowhere:1").await.unwrap();
        assert_eq!(caller.call("echo", "tunnel").await.unwrap(), "tunnel");
    })
    .await;
}
