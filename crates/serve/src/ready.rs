//! Prints the addresses of a node to the standard output when it is ready.

use std::path::Path;

use config::Config;
use console::{Failure, output};
use serde_json::json;

use super::listeners::Addresses;
use crate::address::flag_for;

/// The reader of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A person.
    Person,
    /// A person who runs `telpher serve --dev` and gets commands to try.
    Newcomer,
    /// A program: one line of JSON.
    Program,
}

/// Prints the addresses of the node, which serves clients from now on.
pub(super) fn announce(
    addresses: &Addresses,
    config: &Config,
    audience: Audience,
) -> Result<(), Failure> {
    let urls = Urls::of(addresses);
    let data = config.data.dir.display().to_string();
    output::print_text(&match audience {
        Audience::Program => format!("{}\n", urls.json(&data)),
        Audience::Person => urls.human(&data),
        Audience::Newcomer => format!("{}{}", urls.human(&data), urls.to_try()),
    })
}

struct Urls {
    native: Option<String>,
    socket: Option<String>,
    http: Option<String>,
    kafka: Option<String>,
    slim: Option<String>,
    slim_socket: Option<String>,
    limiter: Option<String>,
}

impl Urls {
    fn of(addresses: &Addresses) -> Self {
        let (tcp, http) = if addresses.encrypted {
            ("tls", "https")
        } else {
            ("tcp", "http")
        };
        Self {
            native: addresses.native.map(|address| format!("{tcp}://{address}")),
            socket: addresses.socket.as_deref().map(unix),
            http: addresses.http.map(|address| format!("{http}://{address}")),
            // Kafka clients take addresses without a scheme; TLS is configured separately.
            kafka: addresses.kafka.map(|address| address.to_string()),
            slim: addresses.slim.map(|address| format!("{http}://{address}")),
            slim_socket: addresses.slim_socket.as_deref().map(unix),
            limiter: addresses
                .limiter
                .map(|address| format!("{http}://{address}")),
        }
    }

    fn json(&self, data: &str) -> serde_json::Value {
        json!({
            "ready": true,
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "native": self.native,
            "socket": self.socket,
            "http": self.http,
            "console": self.console(),
            "kafka": self.kafka,
            "slim": self.slim,
            "slim_socket": self.slim_socket,
            "limiter": self.limiter,
            "data": data,
        })
    }

    /// Returns the address of the console, which the HTTP listener serves.
    fn console(&self) -> Option<String> {
        Some(format!("{}/ui/", self.http.as_ref()?))
    }

    fn human(&self, data: &str) -> String {
        let mut text = format!("telpher {} is ready\n", env!("CARGO_PKG_VERSION"));
        let lines = [
            ("native", &self.native),
            ("socket", &self.socket),
            ("http", &self.http),
            ("console", &self.console()),
            ("kafka", &self.kafka),
            ("slim", &self.slim),
            ("slim", &self.slim_socket),
            ("limiter", &self.limiter),
        ];
        for (door, url) in lines {
            if let Some(url) = url {
                text.push_str(&format!("  {door:<7} {url}\n"));
            }
        }
        text.push_str(&format!("  data    {data}\n"));
        text
    }

    /// Returns three commands to try.
    fn to_try(&self) -> String {
        let url = self.native.as_ref().or(self.socket.as_ref());
        let flag = url.map_or(String::new(), |url| flag_for(url));
        let console = self.console().map_or(String::new(), |console| {
            format!("\nOpen the console in a browser: {console}\n")
        });
        format!(
            "{console}\nTry these commands, the first one in another terminal:\n  \
             telpher listen acme/demo/echo --echo{flag}\n  \
             telpher request acme/demo/echo hello{flag}\n  \
             telpher agents{flag}\n\
             \nCtrl-C ends the node and removes its data.\n"
        )
    }
}

fn unix(path: &Path) -> String {
    format!("unix://{}", path.display())
}
