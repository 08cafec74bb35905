//! Options of the archive of conversations in PostgreSQL.

use std::fmt;
use std::time::Duration;

use model::ByteSize;

use super::Value;

options! {
    /// The archive of conversations in PostgreSQL, written in the background. Appends do not wait
    /// for it, and PostgreSQL may be unreachable for as long as the node's disk has room.
    archive, "Archive";

    /// Address of the database, or `none`:
    /// postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE.
    /// `sslmode` is disable, prefer, require, verify-ca or verify-full.
    "archive.url" => url: Option<PostgresUrl> = None;

    /// Time between two writes of new events to the archive; many events are written sooner.
    "archive.interval" => interval: Duration = Duration::from_millis(300), from "1ms" to "1h";

    /// Time limit of one SQL statement.
    "archive.statement_timeout" => statement_timeout: Duration = Duration::from_secs(30),
        from "100ms" to "1h";

    /// Time limit of reads of messages that are only in the archive.
    "archive.read_timeout" => read_timeout: Duration = Duration::from_secs(5),
        from "100ms" to "1h";

    /// Number of archived messages per conversation that stay on the node's disk; `none` keeps all.
    "archive.keep_messages" => keep_messages: Option<u32> = None;

    /// Bytes of archived messages per conversation that stay on the node's disk; `none` keeps all.
    "archive.keep_size" => keep_size: Option<ByteSize> = None;

    /// Time for which archived messages stay on the node's disk; `none` keeps them.
    "archive.keep_age" => keep_age: Option<Duration> = None;
}

/// The address of a PostgreSQL database. It is printed without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// The text that is printed in place of a password.
const MASK: &str = "***";

impl PostgresUrl {
    /// The address with the password; it must not be printed.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl Value for PostgresUrl {
    const FORM: &'static str = "URL";

    fn parse(text: &str) -> Result<Self, String> {
        let schemes = ["postgres://", "postgresql://"];
        match schemes.iter().any(|scheme| text.starts_with(scheme)) {
            true => Ok(Self(text.to_owned())),
            false => Err("the address does not begin with postgres://".to_owned()),
        }
    }

    fn print(&self) -> String {
        mask(&self.0)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

/// Replaces the password, before the host or in the query, by [`MASK`].
fn mask(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    let (place, path) = match address.find('/') {
        Some(at) if !address[..at].is_empty() => address.split_at(at),
        _ => (address, ""),
    };
    let place = match place.rsplit_once('@') {
        Some((who, host)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{MASK}@{host}"),
            None => place.to_owned(),
        },
        None => place.to_owned(),
    };
    let mut masked = format!("{scheme}://{place}{path}");
    for (index, pair) in query.iter().flat_map(|query| query.split('&')).enumerate() {
        masked.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if name.contains("password") => {
                masked.push_str(&format!("{name}={MASK}"));
            }
            _ => masked.push_str(pair),
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://u:s3@h:5/d", "postgres://u:***@h:5/d"),
            ("postgres://u:s@3@h/d", "postgres://u:***@h/d"),
            (
                "postgresql://h/d?user=u&password=s3&sslmode=require",
                "postgresql://h/d?user=u&password=***&sslmode=require",
            ),
            (
                "postgres://%2Ftmp%2Fsocket/d",
                "postgres://%2Ftmp%2Fsocket/d",
            ),
        ] {
            let url = PostgresUrl::parse(url).unwrap();
            assert_eq!(url.print(), shown);
            assert!(!format!("{url:?}").contains("s3"));
        }
        let error = PostgresUrl::parse("mysql://u:s3@h/d").unwrap_err();
        assert!(!error.contains("s3"), "{error}");
    }
}
