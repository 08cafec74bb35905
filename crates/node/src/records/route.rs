//! Routes of a connection to topics. The edge itself processes the requests on them.

use std::sync::Arc;

use model::ErrorCode;
use quota::Unit;
use routing::Ticket;

use crate::connection::Route;
use crate::durable::Durable;
use crate::ports::Failure;
use crate::quotas::Told;
use crate::topics::check_name;
use crate::turn::Turn;

/// The target of a route: a topic, or one of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRoute {
    /// The name of the topic.
    pub topic: Arc<str>,
    /// The partition, if the route leads to one.
    pub partition: Option<u32>,
}

impl Turn<'_> {
    /// Binds a route to a topic (`orders`) or to a partition (`orders/2`), like [`Turn::bind`].
    #[must_use]
    pub fn bind_topic(&mut self, route: u16, name: &str) -> bool {
        let index = usize::from(route).wrapping_sub(1);
        if index > self.local.routes.len() {
            return false;
        }
        let bound = match parse(name) {
            Ok(route) => Route::Topic(route),
            Err(reason) => Route::Invalid { reason },
        };
        self.put_route(index, bound);
        true
    }

    /// Returns the topic that a route is bound to, if it is.
    pub fn topic(&self, route: u16) -> Option<&TopicRoute> {
        match self.local.routes.get(usize::from(route).wrapping_sub(1)) {
            Some(Route::Topic(route)) => Some(route),
            _ => None,
        }
    }

    /// Charges the client for an append. Returns what must be on disk before the append is
    /// acknowledged; `None` if the append was denied and the client was sent the failure.
    pub fn charge_append(&mut self, tag: Ticket, bytes: u64) -> Option<Durable> {
        let charged = match self.admit(&[(Unit::APPENDED_BYTES, bytes)]) {
            Ok(Told::AtOnce) => None,
            Ok(Told::OnDisk) => self.local.answers.charged(),
            Err(throttled) => {
                self.fail(tag, throttled.as_failure());
                return None;
            }
        };
        match &self.inner.store {
            Some(store) => Some(Durable::new(&store.journal, [charged, None])),
            None => {
                let message = "this node has no storage, and so no topics";
                self.fail(tag, Failure::new(ErrorCode::Unsupported, message));
                None
            }
        }
    }
}

fn parse(name: &str) -> Result<TopicRoute, String> {
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
    Ok(TopicRoute {
        topic: topic.into(),
        partition,
    })
}
