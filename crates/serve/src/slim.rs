//! Creates the SLIM listener from the configuration.

use std::sync::Arc;

use config::{Config, slim};
use console::{Exit, Failure};
use door::Gate;
use door_slim::{Act, Door, Exchange, Jwt, Options, Rules, Who};
use net::ServerIdentity;
use node::Node;
use rustls::ServerConfig;

use crate::failures::tls_failure;

/// The ALPN protocols: gRPC needs the first, WebSockets the second.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Creates the SLIM protocol of a node, with the exchange that is one of the node's parts.
pub(super) fn open(
    node: &Node,
    gate: Arc<dyn Gate>,
    exchange: Arc<Exchange>,
    config: &Config,
) -> Result<Door, Failure> {
    Ok(Door::new(node.clone(), gate, exchange, options(config)?))
}

/// Checks the configuration of the SLIM listener.
pub fn check(config: &Config, identity: Option<&Arc<ServerIdentity>>) -> Result<(), Failure> {
    tls(config, identity)?;
    options(config).map(drop)
}

fn options(config: &Config) -> Result<Options, Failure> {
    let slim = &config.slim;
    Ok(Options {
        // The configuration limits it to 1 GiB.
        message_size_max: u32::try_from(slim.message_size_max.as_u64()).unwrap_or(u32::MAX),
        queue_size_max: slim.queue_size_max.as_usize(),
        subscriptions_max: slim.subscriptions_per_connection_max as usize,
        negotiation_timeout: slim.negotiation_timeout,
        keepalive: slim.keepalive,
        jwt: jwt(slim)?.map(Arc::new),
        rules: rules(&slim.rules),
    })
}

fn jwt(slim: &slim::Options) -> Result<Option<Jwt>, Failure> {
    let Some(path) = &slim.jwt_key else {
        return Ok(None);
    };
    let failed = |reason: &dyn std::fmt::Display| {
        let message = format!("`slim.jwt_key`: {}: {reason}", path.display());
        Failure::new(Exit::Usage, message)
            .hint("set a file with a public key (PEM) or with a secret: --slim-jwt-key PATH")
    };
    let key = std::fs::read(path).map_err(|error| failed(&error))?;
    let (issuer, audience) = (slim.jwt_issuer.as_deref(), slim.jwt_audience.as_deref());
    let jwt = Jwt::new(&key, issuer, audience).map_err(|error| failed(&error))?;
    Ok(Some(jwt))
}

fn rules(written: &slim::Rules) -> Rules {
    let mut rules = Rules::default();
    for rule in &written.0 {
        let act = match rule.act {
            slim::Act::Subscribe => Act::Subscribe,
            slim::Act::Send => Act::Send,
        };
        let who = match &rule.who {
            None => Who::Anybody,
            Some(names) => Who::Only(names.clone()),
        };
        rules.add(act, rule.begin.iter().map(String::as_str), who);
    }
    rules
}

/// Returns the TLS configuration of the SLIM listener; `None` without TLS.
pub(super) fn tls(
    config: &Config,
    identity: Option<&Arc<ServerIdentity>>,
) -> Result<Option<Arc<ServerConfig>>, Failure> {
    let Some(identity) = identity else {
        return Ok(None);
    };
    let authorities = config.slim.client_authorities.as_deref();
    let mut tls = identity.server_config(authorities).map_err(tls_failure)?;
    Arc::make_mut(&mut tls).alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
    Ok(Some(tls))
}
