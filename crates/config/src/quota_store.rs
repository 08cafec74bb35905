//! Options of the Redis in which several nodes share quotas.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Value;

options! {
    /// Quotas that several nodes share in a Redis or a Redis Cluster. Limits of the units `sends`,
    /// `appended_bytes` and `requests_in_flight` always apply to each node by itself.
    quota_store, "Shared quotas";

    /// Address of the store, or `none`: redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// for
    /// TLS; several servers of a cluster are separated by commas.
    "quota.store.redis" => redis: Option<RedisUrls> = None;

    /// PEM file with the certificates of the authorities to trust for rediss://; `none` trusts
    /// those of this machine.
    "quota.store.certificate" => certificate: Option<PathBuf> = None;

    /// Time limit of a request to the store. After it, `on_unreachable` of each limit decides the
    /// take.
    "quota.store.deadline" => deadline: Duration = Duration::from_millis(250),
        from "1ms" to "10s";

    /// Maximum number of requests that wait for an answer of the store.
    "quota.store.waiting_max" => waiting_max: u32 = 10_000, from "1" to "1000000";

    /// Number of nodes that share the quotas. It sets the size of leases, and the share (1/N) of
    /// the refill that each node grants while the store is unreachable.
    "quota.store.nodes" => nodes: u32 = 1, from "1" to "1000";
}

/// The addresses of a Redis, or of servers of a Redis Cluster. They are printed without passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrls(String);

/// The text that is printed in place of a password.
const MASK: &str = "***";

impl RedisUrls {
    /// The addresses with their passwords; they must not be printed.
    pub fn secrets(&self) -> Vec<String> {
        self.each().map(str::to_owned).collect()
    }

    fn each(&self) -> impl Iterator<Item = &str> {
        self.0.split(',').map(str::trim)
    }
}

impl Value for RedisUrls {
    const FORM: &'static str = "URL,...";

    fn parse(text: &str) -> Result<Self, String> {
        let urls = Self(text.to_owned());
        let is_redis = |url: &str| {
            ["redis://", "rediss://"]
                .iter()
                .any(|it| url.starts_with(it))
        };
        let are_all = urls.each().all(is_redis);
        match are_all {
            true => Ok(urls),
            false => Err("the address does not begin with redis:// or rediss://".to_owned()),
        }
    }

    fn print(&self) -> String {
        self.each().map(mask).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Debug for RedisUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}

fn mask(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    match rest.rsplit_once('@') {
        None => url.to_owned(),
        Some((who, place)) => {
            let user = who.split_once(':').map_or("", |(user, _)| user);
            format!("{scheme}://{user}:{MASK}@{place}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (urls, shown) in [
            ("redis://h:6379", "redis://h:6379"),
            ("redis://:s3@h/1", "redis://:***@h/1"),
            ("redis://s3@h", "redis://:***@h"),
            ("rediss://u:s@3@a, redis://b", "rediss://u:***@a,redis://b"),
        ] {
            let urls = RedisUrls::parse(urls).unwrap();
            assert_eq!(urls.print(), shown);
            assert!(!format!("{urls:?}").contains("s3"));
        }
        for wrong in ["", "http://u:s3@h", "redis://h,"] {
            let error = RedisUrls::parse(wrong).unwrap_err();
            assert!(!error.contains("s3"), "{error}");
        }
    }
}
