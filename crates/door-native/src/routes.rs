//! The routes of a connection, by number.

use std::sync::Arc;

use conversation_service::ConversationRef;
use messaging::{Route, Turn};
use model::{ErrorCode, Name};
use store::Stream;
use topics::check_name;
use wire::{Bind, Cast};

use super::errors::ErrorAnswer;

/// The routes that a client bound. Route numbers are dense from 1.
pub(super) struct Routes {
    node: node::Node,
    /// The index is the route number minus one.
    bound: Vec<BoundRoute>,
}

/// The target of a route.
enum BoundRoute {
    /// A name to send messages and calls to.
    Name(Route),
    Stream(Stream),
    Conversation(ConversationRef),
    Topic(TopicRoute),
    /// The name was invalid; requests on the route fail with this reason.
    Invalid {
        reason: String,
    },
    /// A cluster does not serve such names; requests on the route fail with this reason.
    Unsupported {
        reason: String,
    },
}

/// A route to a topic, or to one of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicRoute {
    /// The name of the topic.
    pub(super) topic: Arc<str>,
    /// The partition, if the route leads to one.
    pub(super) partition: Option<u32>,
}

/// A route whose records are appended, read and followed.
pub(super) enum RecordRoute<'a> {
    Stream(&'a mut Stream),
    Conversation(&'a mut ConversationRef),
    Topic(&'a TopicRoute),
}

impl Routes {
    pub(super) fn new(node: node::Node) -> Self {
        Self {
            node,
            bound: Vec::new(),
        }
    }

    /// Binds a route. Returns false if the number skips others, which violates the protocol.
    #[must_use]
    pub(super) fn bind(&mut self, turn: &mut Turn<'_>, bind: &Bind<'_>) -> bool {
        let index = index(bind.route);
        if index > self.bound.len() {
            return false;
        }
        let target = match self.refused(bind) {
            Some(reason) => BoundRoute::Unsupported { reason },
            None => target(turn, bind).unwrap_or_else(|reason| BoundRoute::Invalid { reason }),
        };
        match self.bound.get_mut(index) {
            None => self.bound.push(target),
            Some(slot) => {
                if let BoundRoute::Name(route) = std::mem::replace(slot, target) {
                    turn.release(route);
                }
            }
        }
        true
    }

    /// Returns why a cluster does not serve a name. The node's own agents are served.
    fn refused(&self, bind: &Bind<'_>) -> Option<String> {
        match bind.cast {
            Cast::Any | Cast::All if !is_own(bind.name) => self
                .node
                .refused_on_cluster("messages to agents, calls and mailboxes"),
            Cast::Conversation => self.node.refused_on_cluster("conversations"),
            Cast::Any | Cast::All | Cast::Stream | Cast::Topic => None,
        }
    }

    fn get(&self, number: u16) -> Option<&BoundRoute> {
        self.bound.get(index(number))
    }

    /// Returns the route to a name.
    pub(super) fn name(&self, number: u16) -> Result<&Route, ErrorAnswer> {
        let (kind, target) = match self.get(number) {
            Some(BoundRoute::Name(route)) => return Ok(route),
            Some(BoundRoute::Stream(stream)) => ("stream", stream.name().to_string()),
            Some(BoundRoute::Conversation(it)) => ("conversation", it.name().to_string()),
            Some(BoundRoute::Topic(route)) => ("topic", route.topic.to_string()),
            Some(BoundRoute::Invalid { reason }) => return Err(ErrorAnswer::invalid(reason)),
            Some(BoundRoute::Unsupported { reason }) => return Err(unsupported(reason)),
            None => return Err(not_bound(number)),
        };
        let message = format!("the route is bound to a {kind}, `{target}`");
        Err(ErrorAnswer::invalid(message))
    }

    /// Returns the route to a stream, a conversation or a topic.
    pub(super) fn records(&mut self, number: u16) -> Result<RecordRoute<'_>, ErrorAnswer> {
        match self.bound.get_mut(index(number)) {
            Some(BoundRoute::Stream(stream)) => Ok(RecordRoute::Stream(stream)),
            Some(BoundRoute::Conversation(it)) => Ok(RecordRoute::Conversation(it)),
            Some(BoundRoute::Topic(topic)) => Ok(RecordRoute::Topic(topic)),
            Some(BoundRoute::Invalid { reason }) => Err(ErrorAnswer::invalid(reason.as_str())),
            Some(BoundRoute::Unsupported { reason }) => Err(unsupported(reason)),
            Some(BoundRoute::Name(_)) => {
                Err(ErrorAnswer::invalid("bind the route with cast `stream`"))
            }
            None => Err(not_bound(number)),
        }
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        let names = self.bound.drain(..).filter_map(|bound| match bound {
            BoundRoute::Name(route) => Some(route),
            _ => None,
        });
        self.node.messaging().release_routes(names);
    }
}

/// Returns the index of a route; that of number 0 is out of range.
fn index(number: u16) -> usize {
    usize::from(number).wrapping_sub(1)
}

/// Returns whether a name is that of one of the node's own agents.
pub(super) fn is_own(name: &str) -> bool {
    name.starts_with("telpher/system/")
}

pub(super) fn unsupported(reason: &str) -> ErrorAnswer {
    ErrorAnswer::new(ErrorCode::Unsupported, reason)
}

fn not_bound(number: u16) -> ErrorAnswer {
    ErrorAnswer::invalid(format!("route {number} is not bound"))
}

/// Returns the target of a BIND, or the reason why its name is invalid.
fn target(turn: &mut Turn<'_>, bind: &Bind<'_>) -> Result<BoundRoute, String> {
    let parsed = || Name::parse(bind.name).map_err(|error| error.to_string());
    let cast = match bind.cast {
        Cast::Any => messaging::Cast::Any,
        Cast::All => messaging::Cast::All,
        Cast::Stream => return Ok(BoundRoute::Stream(Stream::new(parsed()?)?)),
        Cast::Conversation => {
            return Ok(BoundRoute::Conversation(ConversationRef::new(parsed()?)));
        }
        Cast::Topic => return TopicRoute::parse(bind.name).map(BoundRoute::Topic),
    };
    let route = turn.bind(bind.route, parsed()?, cast, bind.method);
    Ok(BoundRoute::Name(route))
}

impl TopicRoute {
    /// Parses the name of a topic (`orders`) or of a partition (`orders/2`).
    fn parse(name: &str) -> Result<Self, String> {
        let (topic, partition) = match name.split_once('/') {
            None => (name, None),
            Some((topic, partition)) => match partition.parse() {
                Ok(partition) => (topic, Some(partition)),
                Err(_) => {
                    return Err(format!(
                        "`{name}`: the partition must be a number, as in `{topic}/0`"
                    ));
                }
            },
        };
        check_name(topic).map_err(|error| error.to_string())?;
        Ok(Self {
            topic: topic.into(),
            partition,
        })
    }
}
