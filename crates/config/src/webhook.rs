//! Options of webhooks.

use std::path::PathBuf;

use webhooks::Options as Webhooks;

use super::Value;
use super::units::count;

options! {
    /// Webhooks: agents that the node calls over HTTP when a message is written in one of their
    /// conversations.
    webhook, "Webhooks";

    /// Hosts that the node may call, separated by commas: `[SCHEME://]HOST[:PORT]`, where HOST may
    /// begin with `*.` or be `*`. This machine is always allowed while all listeners are on
    /// loopback addresses.
    "webhook.allow" => allow: Hosts = Hosts::default();

    /// PEM file with the certificates of the authorities to trust for calls over https.
    "webhook.authorities" => authorities: PathBuf = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");

    /// Maximum number of webhook agents.
    "webhook.agents_max" => agents_max: u32 = count(Webhooks::default().agents_max), from "1" to "10000";

    /// Maximum number of calls in flight, over all agents.
    "webhook.calls_max" => calls_max: u32 = count(Webhooks::default().calls_max), from "1" to "10000";
}

/// Host patterns, separated by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(pub String);

impl Value for Hosts {
    const FORM: &'static str = "HOST,...";

    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}
