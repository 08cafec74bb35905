//! Connections are closed when their user or password changes.

use std::num::NonZeroU32;

use kafka::alter_user_scram_credentials::{self as alter, Deletion};
use kafka::{ErrorCode, Secret, sasl_authenticate, sasl_handshake};
use scram::credential;
use topics::{Credential, Hash, UserChange};

use crate::{Bench, Client};

fn stored_credential(hash: Hash, password: &str) -> Credential {
    let iterations = NonZeroU32::new(4_096).unwrap();
    credential(hash, password, b"salt", iterations)
}

impl Bench {
    /// Changes a user, and does not wait for the disk: it counts at once.
    fn change(&self, name: &str, change: UserChange) {
        let topics = self.node.topics().unwrap();
        drop(topics.change_user(name, &[change]));
    }

    fn set_password(&self, name: &str, password: &str) {
        let stored_credential = stored_credential(Hash::Sha512, password);
        self.change(name, UserChange::Set(Hash::Sha512, stored_credential));
    }

    /// Connects, authenticates with PLAIN, and returns the client and the error code.
    async fn authenticate(&self, name: &str, password: &str) -> (Client, ErrorCode) {
        let mut client = self.connect();
        let mechanism = "PLAIN".to_owned();
        client.ask(1, &sasl_handshake::Request { mechanism }).await;
        let said = format!("\0{name}\0{password}");
        let auth_bytes = Secret(said.into_bytes().into());
        let request = sasl_authenticate::Request { auth_bytes };
        let told = client.ask(2, &request).await.error_code;
        (client, told)
    }

    async fn authenticated(&self, name: &str, password: &str) -> Client {
        let (mut client, told) = self.authenticate(name, password).await;
        assert_eq!(told, ErrorCode::None);
        assert_eq!(
            self.node.counters().get(platform::Counter::Unauthenticated),
            0
        );
        assert_served(&mut client).await;
        client
    }
}

async fn assert_served(client: &mut Client) {
    let request = kafka::metadata::Request::default();
    client.ask(4, &request).await;
}

#[tokio::test]
async fn deleting_a_user_closes_only_its_connections() {
    let bench = Bench::with_stored_users();
    bench.set_password("ann", "secret");
    bench.set_password("bob", "secret");
    let (mut ann, mut again) = (
        bench.authenticated("ann", "secret").await,
        bench.authenticated("ann", "secret").await,
    );
    let mut bob = bench.authenticated("bob", "secret").await;
    bench.change("ann", UserChange::RemoveAll);
    assert!(ann.is_closed().await && again.is_closed().await);
    assert_served(&mut bob).await;
    let (_, told) = bench.authenticate("ann", "secret").await;
    assert_eq!(told, ErrorCode::SaslAuthenticationFailed);
}

#[tokio::test]
async fn a_password_change_closes_only_connections_of_the_same_mechanism() {
    let bench = Bench::with_stored_users();
    bench.set_password("ann", "secret");
    let mut ann = bench.authenticated("ann", "secret").await;
    let other = stored_credential(Hash::Sha256, "secret");
    bench.change("ann", UserChange::Set(Hash::Sha256, other));
    assert_served(&mut ann).await;
    bench.change("ann", UserChange::Remove(Hash::Sha256));
    assert_served(&mut ann).await;
    bench.set_password("ann", "another");
    assert!(ann.is_closed().await);
    bench
        .authenticate("ann", "another")
        .await
        .0
        .flush_requests()
        .await;
}

#[tokio::test]
async fn removing_a_user_closes_a_connection_with_a_waiting_fetch() {
    let mut bench = Bench::with_stored_users();
    let _topic = bench.with_topic("t").await;
    bench.set_password("ann", "secret");
    let mut ann = bench.authenticated("ann", "secret").await;
    let waits = crate::client::fetch("t", 0, 60_000);
    ann.send(12, &waits).await;
    bench.change("ann", UserChange::RemoveAll);
    assert!(ann.is_closed().await);
}

#[tokio::test]
async fn user_that_deletes_itself_gets_the_answer_and_is_disconnected() {
    let mut bench = Bench::with_stored_users();
    bench.set_password("ann", "secret");
    let (mut ann, mut again) = (
        bench.authenticated("ann", "secret").await,
        bench.authenticated("ann", "secret").await,
    );
    let request = alter::Request {
        deletions: vec![Deletion {
            name: "ann".to_owned(),
            mechanism: 2,
        }],
        ..alter::Request::default()
    };
    ann.send(0, &request).await;
    bench.connect().flush_requests().await;
    bench.sync();
    let (_, told) = ann.receive::<alter::Request>(0).await;
    assert_eq!(told.results[0].error_code, ErrorCode::None);
    assert!(ann.is_closed().await && again.is_closed().await);
}
