//! Options of the HTTP listener.

use std::time::Duration;

use door_http::{HostNames, Origins};
use http_api::Limits;

use super::units::count;
use super::{HostPort, Value};

options! {
    /// The HTTP listener: conversations, topics and quotas for HTTP clients and browsers, health,
    /// metrics and administration.
    http, "HTTP listener";

    /// Address to listen on; `none` disables the listener.
    "http.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7401));

    /// Host names by which clients address this node, separated by commas, for example the name of
    /// its container or service. `*.example.com` is every name below example.com. IP addresses,
    /// `localhost` and the names of the TLS certificate are always accepted, and every name is
    /// accepted while tokens are required.
    "http.hosts" => hosts: HostNames = HostNames::default();

    /// Origins of web pages that may use this node, separated by commas, such as
    /// `https://app.example.com` or `http://localhost:3000`. Requests from pages of any other
    /// origin are refused.
    "http.origins" => origins: Origins = Origins::default();

    /// Maximum number of open connections, without event streams and WebSockets. A further
    /// connection replaces an idle one, or is answered with 503 if none is idle.
    "http.connections_max" => connections_max: u32 = count(Limits::default().connections_max),
        from "1" to "1000000";

    /// Maximum number of open event streams and WebSockets; further ones are answered with 503.
    "http.streams_max" => streams_max: u32 = count(Limits::default().streams_max),
        from "1" to "1000000";

    /// Time for which a client may leave written data unread before its connection is closed.
    "http.write_timeout" => write_timeout: Duration = Limits::default().write_timeout,
        from "10ms" to "1h";
}

impl Value for HostNames {
    const FORM: &'static str = "NAME,...";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Value for Origins {
    const FORM: &'static str = "ORIGIN,...";

    fn parse(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }

    fn print(&self) -> String {
        self.to_string()
    }
}
