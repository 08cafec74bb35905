//! Creates the Kafka listener from the configuration.

use std::sync::Arc;

use edge::Gate;
use edge::kafka::{Door, Options, Place};
use node::Node;
use node::config::Config;

use crate::failure::{Exit, Failure};

/// Opens the topics and creates their listener; `None` for a node without a journal.
pub(super) fn open(
    node: &Node,
    gate: Arc<dyn Gate>,
    config: &Config,
) -> Result<Option<Door>, Failure> {
    let opened = node.open_topics(config.topics.to_node());
    opened.map_err(|error| Failure::new(Exit::Failed, error))?;
    let Some(topics) = node.topics() else {
        return Ok(None);
    };
    topics.show_conversations(Arc::new(edge::http::EventJson));
    let users = Arc::new(topics.clone());
    let door = Door::new(node.clone(), topics, gate, users, options(config));
    Ok(Some(door))
}

fn options(config: &Config) -> Options {
    let kafka = &config.kafka;
    Options {
        frame_size_max: kafka.frame_size_max.as_usize(),
        idle_timeout: kafka.idle_timeout,
        handshake_timeout: kafka.handshake_timeout,
        advertised: kafka.advertised.as_ref().map(|it| Place {
            host: it.host.clone(),
            port: it.port,
        }),
        log_dir: config.data.dir.display().to_string(),
        is_tls: config.tls.files().is_some(),
    }
}
