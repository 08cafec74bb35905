//! Who is at the other end of a connection, and what the APIs need to know about it.

use std::sync::Arc;
use std::time::Duration;

use kafka::ErrorCode;
use node::access::Principal;
use node::topics::{Producing, Topics, User};
use node::{Connection, Counter, Facts, Refusal};

use super::errors::Failed;
use super::inbox::Trust;
use super::outlet::KafkaOutlet;
use super::sasl::{Exchange, Identity};
use super::{Door, Place};

/// See the module's documentation.
pub(super) struct Client {
    pub(super) door: Door,
    /// Where it is told to find the broker.
    pub(super) place: Place,
    remote: String,
    outlet: Arc<KafkaOutlet>,
    /// How far it is in saying who it is.
    pub(super) exchange: Exchange,
    /// Held for as long as it is connected, from when it was let in: so it is counted, shown, and sent
    /// away when it has to go.
    connection: Option<Connection>,
    /// As whom it came in, if as a user.
    user: Option<Arc<User>>,
    /// Its proven identity, once it is in.
    principal: Option<Principal>,
    /// What was appended and the line has not been told of.
    producing: Option<Producing>,
    /// How long the client is to be throttled.
    pub(super) throttle: Duration,
}

/// Comes when the node goes down: whoever waits for something need not wait any longer.
#[derive(Clone)]
pub(super) struct Departure(Arc<KafkaOutlet>);

impl Departure {
    pub(super) fn has_come(&self) -> bool {
        self.0.is_leaving()
    }
}

/// Why somebody is not let in though it has shown what lets it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unadmitted {
    /// See [`Refusal`].
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// It was another user, or none, when it was done.
    #[error("the user was changed while it said who it is")]
    Changed,
}

impl Client {
    /// Whoever has connected; let in at once where nobody has to say who it is.
    pub(super) fn new(
        door: &Door,
        place: Place,
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

    /// Lets it in.
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
        let connection = self.door.node.open(facts, |_| outlet)?;
        // Who is changed sends away whoever is connected by then; this one may have come in between.
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

    /// It has not shown what lets it in.
    pub(super) fn count_refusal(&self) {
        self.node().counters().count(Counter::Unauthenticated);
    }

    /// The connection, once the client is admitted.
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.connection.is_some()
    }

    /// The proven identity of the client, once it is admitted.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Whether the client is an administrator.
    pub(super) fn is_admin(&self) -> bool {
        self.principal().is_some_and(Principal::is_admin)
    }

    /// Whether the client may delete a topic, or change its configuration.
    pub(super) fn check_topic(&self, topic: &str) -> Result<(), Failed> {
        let unauthorized =
            |message: String| Failed::new(ErrorCode::TopicAuthorizationFailed, message);
        let principal = self.principal();
        let principal = principal.ok_or_else(|| unauthorized("not admitted".to_owned()))?;
        let checked = crate::topics::check(principal, topic);
        checked.map_err(|forbidden| unauthorized(forbidden.to_string()))
    }

    /// Whether it came in as that user.
    pub(super) fn is(&self, user: &str) -> bool {
        self.user.as_ref().is_some_and(|own| own.name == user)
    }

    /// Whether it has tried to come in, and is to go.
    pub(super) fn is_refused(&self) -> bool {
        !self.is_admitted() && self.exchange.is_over()
    }

    /// How large its frames may be.
    pub(super) fn trust(&self) -> Trust {
        match self.is_admitted() {
            true => Trust::Admitted {
                frame_size_max: self.door.options.frame_size_max,
            },
            false => Trust::Stranger,
        }
    }

    /// Where it is, for people.
    pub(super) fn remote(&self) -> &str {
        &self.remote
    }

    /// Where it is, as Kafka's tools show it: a slash and the address.
    pub(super) fn host(&self) -> String {
        let address = self.remote.rsplit_once(':').map_or("", |(host, _)| host);
        format!("/{}", address.trim_matches(['[', ']']))
    }

    pub(super) fn node(&self) -> &node::Handle {
        &self.door.node
    }

    pub(super) fn topics(&self) -> &Topics {
        &self.door.topics
    }

    pub(super) fn departure(&self) -> Departure {
        Departure(self.outlet.clone())
    }

    /// What appends in this round, so that one sync serves all of it.
    pub(super) fn producing(&mut self) -> &mut Producing {
        let topics = &self.door.topics;
        self.producing.get_or_insert_with(|| topics.producing())
    }

    pub(super) fn is_producing(&self) -> bool {
        self.producing.is_some()
    }

    /// Has the disk take what was appended.
    pub(super) fn end_round(&mut self) {
        self.producing = None;
    }
}
