//! `Session`: a database connection with a time limit for every operation.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::address::Address;
use super::failure::Failure;

/// Time added to the statement timeout before a silent server counts as lost.
const GRACE: Duration = Duration::from_secs(1);

pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A database connection. Dropping it closes the connection and rolls back.
pub(super) struct Session {
    client: Client,
    driver: JoinHandle<()>,
    limit: Duration,
}

impl Session {
    /// Connects; `limit` is the time limit of each statement.
    pub(super) async fn connect(address: &Address, limit: Duration) -> Result<Self, Failure> {
        let connecting = address.config.connect(address.tls.clone());
        let (client, connection) = bounded(limit, connecting).await?;
        let driver = tokio::spawn(async move {
            // The client gets the error too.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the archive ended");
            }
        });
        let session = Self {
            client,
            driver,
            limit,
        };
        let limit_ms = limit.as_millis();
        let settings = format!(
            "SET statement_timeout = {limit_ms}; SET lock_timeout = {limit_ms};
             SET idle_in_transaction_session_timeout = {limit_ms};
             SET synchronous_commit = on; SET client_min_messages = warning"
        );
        session.run(&settings).await?;
        Ok(session)
    }

    /// Runs statements without parameters.
    pub(super) async fn run(&self, statements: &str) -> Result<(), Failure> {
        bounded(self.limit, self.client.batch_execute(statements)).await
    }

    /// Runs a statement and returns the number of affected rows.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        bounded(self.limit, self.client.execute(sql, values)).await
    }

    /// Runs a query and returns its rows.
    pub(super) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        bounded(self.limit, self.client.query(sql, values)).await
    }
}

async fn bounded<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    let limit = limit + GRACE;
    match tokio::time::timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Failure::Timeout {
            seconds: limit.as_secs(),
        }),
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
