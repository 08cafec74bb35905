//! `--compat-limiter`: a listener with the API and the variables of a rate limiter on Express and
//! Redis.

use std::net::IpAddr;

use config::HostPort;
use http_quotas::COMPAT_LIMIT;
use quota::Limit;
use quota_service::LimitConfig;
use tokio::net::TcpListener;

use console::{Environment, Exit, Failure};

/// The settings of the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompatLimiter {
    port: u16,
    capacity: u64,
    /// The refill rate: `10/1s`.
    refill: String,
    /// Proxies whose X-Forwarded-For header is trusted.
    pub(super) proxies: Vec<IpAddr>,
}

impl CompatLimiter {
    /// Reads `PORT`, `TOKEN_BUCKET_CAPACITY` and `TOKEN_BUCKET_RATE`.
    pub fn read(environment: &Environment, proxies: Vec<IpAddr>) -> Result<Self, Failure> {
        let text = |name: &str, default: &str| match environment.get(name) {
            Some(value) => value.to_string_lossy().into_owned(),
            None => default.to_owned(),
        };
        let wrong = |name: &str, value: &str, hint: &str| {
            let message = format!("`{name}`: `{value}` is not a valid value");
            Failure::new(Exit::Usage, message).hint(format!("for example {name}={hint}"))
        };
        let port = text("PORT", "3000");
        let port = port.parse().map_err(|_| wrong("PORT", &port, "3000"))?;
        let name = "TOKEN_BUCKET_CAPACITY";
        let capacity = text(name, "100");
        let capacity = capacity
            .parse()
            .map_err(|_| wrong(name, &capacity, "100"))?;
        let name = "TOKEN_BUCKET_RATE";
        let rate = text(name, "10");
        let refill = refill(&rate).ok_or_else(|| wrong(name, &rate, "10, tokens per second"))?;
        Ok(Self {
            port,
            capacity,
            refill,
            proxies,
        })
    }

    /// Adds the limit of the listener, unless a limit with its name exists.
    pub(super) fn add_limit(&self, limits: &mut Vec<Limit>) -> Result<(), Failure> {
        if limits.iter().any(|limit| *limit.name == *COMPAT_LIMIT) {
            return Ok(());
        }
        let written = LimitConfig {
            name: COMPAT_LIMIT.to_owned(),
            pattern: "default/default/*".to_owned(),
            unit: "requests".to_owned(),
            capacity: Some(self.capacity),
            refill: Some(self.refill.clone()),
            ..LimitConfig::default()
        };
        let limit = written.read();
        limits.push(limit.map_err(|wrong| Failure::new(Exit::Usage, wrong.join("; ")))?);
        Ok(())
    }

    /// Binds the port on the host of the HTTP listener.
    pub(super) async fn bind(&self, http: Option<&HostPort>) -> Result<TcpListener, Failure> {
        let mut listen = http.cloned().unwrap_or_else(|| HostPort::loopback(0));
        listen.port = self.port;
        net::listen_tcp(&listen.to_string()).await.map_err(|error| {
            let message = format!("`PORT`: cannot listen on {listen}: {error}");
            Failure::new(Exit::Unavailable, message)
                .hint("choose another port; PORT=0 uses any free port")
        })
    }
}

/// Converts tokens per second, with up to six decimal places, to a rate of whole numbers.
fn refill(rate: &str) -> Option<String> {
    let (whole, part) = rate.split_once('.').unwrap_or((rate, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let amount: u64 = format!("{whole}{part}").parse().ok()?;
    Some(format!("{amount}/{}s", 10_u64.pow(part.len() as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_rate_becomes_an_exact_refill() {
        assert_eq!(refill("10").as_deref(), Some("10/1s"));
        assert_eq!(refill("0").as_deref(), Some("0/1s"));
        assert_eq!(refill("0.25").as_deref(), Some("25/100s"));
        for rate in ["", "-1", "1e3", "x", ".5", "1.0000001"] {
            assert_eq!(refill(rate), None, "{rate}");
        }
    }
}
