//! Routes of a connection that lead to topics. What is asked on them the door looks after itself.

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

/// What a route leads to: a topic, or one of its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRoute {
    /// What clients call the topic.
    pub topic: Arc<str>,
    /// The partition, if it is one.
    pub partition: Option<u32>,
}

impl Turn<'_> {
    /// Binds a route to a topic (`orders`) or to a partition (`orders/2`), in the same way.
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

    /// What a route is bound to, if that is a topic.
    pub fn topic(&self, route: u16) -> Option<&TopicRoute> {
        match self.local.routes.get(usize::from(route).wrapping_sub(1)) {
            Some(Route::Topic(route)) => Some(route),
            _ => None,
        }
    }

    /// Charges the client for what it appends; answers what must be on disk before that is told, or
    /// nothing if it may not append, which it has been told.
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
                let message = "this node keeps nothing: it has no topics";
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
                    "`{name}`: a partition is a number, as in `{topic}/0`"
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
