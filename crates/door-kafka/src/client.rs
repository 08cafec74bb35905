//! The client of a connection: its identity, and the context that the APIs need.

use std::sync::Arc;
use std::time::Duration;

use access::Principal;
use door::{leave_to_pass, take_from_pass};
use kafka::{ErrorCode, Request, RequestHeader};
use messaging::{Connection, Facts, Outlet, Refusal};
use platform::{Counter, Span};
use tokio::sync::Semaphore;
use topic_service::{Producing, Topics};
use topics::User;

use super::errors::Failed;
use super::inbox::Trust;
use super::listener::{BrokerAddress, Door};
use super::outlet::KafkaOutlet;
use super::sasl::{Exchange, Identity};
use super::spans;

/// The client of a connection.
pub(super) struct Client {
    pub(super) door: Door,
    /// The address at which the client is told to find the broker.
    pub(super) place: BrokerAddress,
    remote: String,
    outlet: Arc<KafkaOutlet>,
    /// The state of its authentication.
    pub(super) exchange: Exchange,
    /// The connection, from the admission on: the node counts it, lists it, and closes it when
    /// necessary.
    connection: Option<Connection>,
    /// The user, if it authenticated as one.
    user: Option<Arc<User>>,
    /// Its authenticated identity, once it is admitted.
    principal: Option<Principal>,
    /// Appends of which the write-ahead log was not notified yet; possibly also those of other
    /// connections of the thread's pass.
    producing: Option<Box<Producing>>,
    /// The time for which the client is to be throttled.
    pub(super) throttle: Duration,
    /// The span of the request that was dispatched last, if it is traced.
    span: Option<Box<Span>>,
}

/// Signals that the node shuts down, so that waiting requests can end.
#[derive(Clone)]
pub(super) struct Departure(Arc<KafkaOutlet>);

impl Departure {
    pub(super) fn has_come(&self) -> bool {
        self.0.is_leaving()
    }
}

/// The reason why an authenticated client is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unadmitted {
    /// The node has reached a limit, or shuts down.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The user was changed or removed during the authentication.
    #[error("the user was changed during the authentication")]
    Changed,
}

impl Client {
    /// Creates the client of a new connection. It is admitted at once where no authentication is
    /// required.
    pub(super) fn new(
        door: &Door,
        place: BrokerAddress,
        remote: String,
        outlet: Arc<KafkaOutlet>,
    ) -> Result<Self, Unadmitted> {
        let mut client = Self {
            door: door.clone(),
            place,
            remote,
            outlet,
            exchange: Exchange::default(),
            connection: None,
            user: None,
            principal: None,
            producing: None,
            throttle: Duration::ZERO,
            span: None,
        };
        if !door.asks_who_it_is()
            && let Ok(pass) = door.gate.admit("")
        {
            client.admit(Identity {
                name: None,
                principal: pass.principal().clone(),
                token: pass.token().cloned(),
                user: None,
            })?;
        }
        Ok(client)
    }

    /// Admits the client.
    pub(super) fn admit(&mut self, identity: Identity) -> Result<(), Unadmitted> {
        let Identity {
            name,
            principal,
            token,
            user,
        } = identity;
        let facts = Facts {
            name,
            principal: principal.clone(),
            remote: self.remote.clone(),
            door: "kafka",
            token,
            user: user.clone(),
            trusted: false,
            calls_max: 0,
            credit_messages: 0,
            credit_bytes: 0,
        };
        let outlet = self.outlet.clone();
        let connection = self
            .door
            .node
            .messaging()
            .connect(facts, |_| Outlet::Client(outlet))?;
        // Changing a user disconnects its open connections. This one may have logged in during the
        // change, so check again.
        let users = &self.door.users;
        let is_changed = |user: &Arc<User>| !user.is_still(users.find(&user.name).as_deref());
        if user.as_ref().is_some_and(is_changed) {
            return Err(Unadmitted::Changed);
        }
        self.connection = Some(connection);
        self.user = user;
        self.principal = Some(principal);
        Ok(())
    }

    /// Counts a failed authentication.
    pub(super) fn count_refusal(&self) {
        self.node().counters().count(Counter::Unauthenticated);
    }

    /// Returns the connection, once the client is admitted.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns the authenticated identity, once the client is admitted.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Returns whether the client is an administrator.
    pub(super) fn is_admin(&self) -> bool {
        self.principal().is_some_and(Principal::is_admin)
    }

    /// Checks that the client may delete a topic, or change its configuration.
    pub(super) fn check_topic(&self, topic: &str) -> Result<(), Failed> {
        let unauthorized =
            |message: String| Failed::new(ErrorCode::TopicAuthorizationFailed, message);
        let principal = self.principal();
        let principal = principal.ok_or_else(|| unauthorized("not admitted".to_owned()))?;
        let checked = door::topics::check(principal, topic);
        checked.map_err(|forbidden| unauthorized(forbidden.to_string()))
    }

    /// Returns whether it authenticated as this user.
    pub(super) fn is(&self, user: &str) -> bool {
        self.user.as_ref().is_some_and(|own| own.name == user)
    }

    /// Returns whether its authentication has failed, so that the connection has to be closed.
    pub(super) fn is_refused(&self) -> bool {
        !self.is_admitted() && self.exchange.is_over()
    }

    /// Returns how large its frames may be.
    pub(super) fn trust(&self) -> Trust {
        match self.is_admitted() {
            true => Trust::Admitted {
                frame_size_max: self.door.options.frame_size_max,
            },
            false => Trust::Stranger,
        }
    }

    /// Returns its address, for logs.
    pub(super) fn remote(&self) -> &str {
        &self.remote
    }

    /// Returns its address as Kafka's tools show it: a slash and the address.
    pub(super) fn host(&self) -> String {
        let address = self.remote.rsplit_once(':').map_or("", |(host, _)| host);
        format!("/{}", address.trim_matches(['[', ']']))
    }

    pub(super) fn node(&self) -> &node::Node {
        &self.door.node
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.door.topics
    }

    pub(super) fn departure(&self) -> Departure {
        Departure(self.outlet.clone())
    }

    /// Begins the span of a request, on a node that exports spans.
    pub(super) fn begin_span(&mut self, header: &RequestHeader<'_>, request: &Request) {
        if let Some(tracer) = self.door.node.tracer() {
            self.span = spans::begin(tracer, header, request);
        }
    }

    /// Takes the span of the request that was dispatched last.
    pub(super) fn take_span(&mut self) -> Option<Box<Span>> {
        self.span.take()
    }

    /// Returns the guard of this round's appends, so that one sync serves all of them, and the permits
    /// for decompression. The guard is the one that other connections of the thread's pass have used,
    /// if there is one.
    pub(super) fn producing_parts(&mut self) -> (&mut Producing, &Arc<Semaphore>) {
        let topics = &self.door.topics;
        let producing = self.producing.get_or_insert_with(|| {
            let shared = take_from_pass(|other: &Producing| other.is_of(topics));
            shared.unwrap_or_else(|| Box::new(topics.producing()))
        });
        (producing, &self.door.unpackings)
    }

    /// Leaves the round's appends to the end of the thread's pass. Returns false if the thread has none.
    pub(super) fn leave_round_to_pass(&mut self) -> bool {
        leave_to_pass(&mut self.producing)
    }

    /// Ends the round: the write-ahead log is notified of the appends.
    pub(super) fn end_round(&mut self) {
        self.producing = None;
    }
}
