//! The state that all handlers share.

use std::sync::Arc;

use node::Node;

use crate::connections::Connections;

/// State shared by all handlers.
#[derive(Clone)]
pub struct Shared {
    /// The node that is served.
    pub node: Node,
    /// The listener's connections, whose limits apply to WebSockets, too.
    pub connections: Arc<Connections>,
}
