//! Where quotas lie that several nodes share.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Value;

options! {
    /// Quotas that several nodes share, in a Redis or a Redis Cluster. What `sends`,
    /// `appended_bytes` and `requests_in_flight` count is each node's own in any case.
    quota_store, "Quotas in a store";

    /// Where it is: redis://USER:PASSWORD@HOST:PORT/DATABASE, or rediss:// with encryption; several
    /// servers of a cluster with commas in between.
    "quota.store.redis" => redis: Option<RedisUrls> = None;

    /// File with the certificates of who issued those of rediss://, as PEM; `none` for
    /// those whom this machine trusts.
    "quota.store.certificate" => certificate: Option<PathBuf> = None;

    /// How long an answer may take. Whoever takes meanwhile waits; then each limit's
    /// `on_unreachable` says what is given.
    "quota.store.deadline" => deadline: Duration = Duration::from_millis(250),
        from "1ms" to "10s";

    /// Questions that wait for their answers.
    "quota.store.waiting_max" => waiting_max: u32 = 10_000, from "1" to "1000000";

    /// Number of nodes that share the quotas: sets the size of leases, and each node's share (1/N)
    /// of the refill while the store cannot be reached.
    "quota.store.nodes" => nodes: u32 = 1, from "1" to "1000";
}

/// The addresses of a Redis, or of servers of a Redis Cluster. They are shown without passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrls(String);

/// What stands where a password does.
const MASK: &str = "***";

impl RedisUrls {
    /// Each of them, with its password: for nobody to see.
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
            false => Err("an address of a Redis begins with redis:// or rediss://".to_owned()),
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
