//! The HTTP door: health, metrics and administration, for curl and browsers.

use super::HostPort;

options! {
    /// The HTTP door: health, metrics and administration, for curl and browsers.
    http, "HTTP door";

    /// Address to listen on; `none` shuts the door.
    "http.listen" => listen: Option<HostPort> = Some(HostPort::loopback(7401));
}
