//! Schema of the archive and its migrations.
//!
//! Migrations are applied in order, each once, under a lock shared by all nodes. A published
//! migration is never changed.

use super::failure::Failure;
use super::session::Session;

/// Migrations; the first creates version 1.
const MIGRATIONS: [&str; 1] = [include_str!("schema/1.sql")];

/// Key of the advisory lock: `telpher` in ASCII.
const LOCK: i64 = 0x0074_656c_7068_6572;

/// Migrates the tables to the current version; fails if they are newer.
pub(super) async fn migrate(session: &Session) -> Result<(), Failure> {
    if version(session).await? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    session.run("BEGIN").await?;
    session
        .execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK])
        .await?;
    let known = match version(session).await? {
        Some(version) => version,
        None => {
            session.run(FIRST).await?;
            0
        }
    };
    if known > MIGRATIONS.len() {
        return Err(Failure::NewerSchema {
            version: known,
            known: MIGRATIONS.len(),
        });
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(known) {
        session.run(migration).await?;
        let version = index as i32 + 1;
        let applied = "INSERT INTO telpher.migrations (version) VALUES ($1)";
        session.execute(applied, &[&version]).await?;
        tracing::info!(version, "the schema of the archive was migrated");
    }
    session.run("COMMIT").await
}

const FIRST: &str = "
CREATE SCHEMA IF NOT EXISTS telpher;
CREATE TABLE telpher.migrations (
    version int PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);";

/// Returns the version of the tables; `None` if there are none.
async fn version(session: &Session) -> Result<Option<usize>, Failure> {
    let is_there = "SELECT to_regclass('telpher.migrations') IS NOT NULL";
    let rows = session.query(is_there, &[]).await?;
    let is_there = rows.first().map(|row| row.try_get(0)).transpose()?;
    if is_there != Some(true) {
        return Ok(None);
    }
    let newest = "SELECT coalesce(max(version), 0) FROM telpher.migrations";
    let rows = session.query(newest, &[]).await?;
    let version: Option<i32> = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(Some(version.unwrap_or(0).max(0) as usize))
}
