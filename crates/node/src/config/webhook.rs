//! Agents that are called when somebody writes.

use std::path::PathBuf;

use super::Value;

options! {
    /// Agents that the node calls when somebody writes in a conversation of theirs.
    webhook, "Webhooks";

    /// Where agents may be called, with commas in between: `[SCHEME://]HOST[:PORT]`, where HOST may
    /// begin with `*.` or be `*`. A node whose doors only this machine reaches calls agents on it in
    /// any case.
    "webhook.allow" => allow: Hosts = Hosts::default();

    /// File with the certificates of authorities that are trusted when an agent is called by https, as
    /// PEM.
    "webhook.authorities" => authorities: PathBuf = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");

    /// Agents.
    "webhook.agents_max" => agents_max: u32 = 1_000, from "1" to "10000";

    /// Calls in flight, of all agents.
    "webhook.calls_max" => calls_max: u32 = 256, from "1" to "10000";
}

/// Patterns with commas in between.
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
