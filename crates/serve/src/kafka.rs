//! Creates the Kafka listener from the configuration.

use std::sync::Arc;

use config::Config;
use door::Gate;
use door_kafka::{BrokerAddress, Door, Options};
use node::Node;

/// Creates the listener of a node's topics; `None` for a node without topics.
pub(super) fn open(node: &Node, gate: Arc<dyn Gate>, config: &Config) -> Option<Door> {
    let topics = node.topics()?;
    let users = Arc::new(topics.clone());
    let options = options(config);
    Some(Door::new(node.clone(), topics, gate, users, options))
}

/// Returns the options of the listener.
pub(super) fn options(config: &Config) -> Options {
    let kafka = &config.kafka;
    Options {
        frame_size_max: kafka.frame_size_max.as_usize(),
        idle_timeout: kafka.idle_timeout,
        handshake_timeout: kafka.handshake_timeout,
        advertised: kafka.advertised.as_ref().map(|it| BrokerAddress {
            host: it.host.clone(),
            port: it.port,
        }),
        log_dir: config.data.dir.display().to_string(),
        is_tls: config.tls.files().is_some(),
    }
}
