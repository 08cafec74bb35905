//! Serves the connections of a listener.

use std::sync::Arc;

use crate::accept::Arrived;
use crate::client::Client;
use crate::listener::{BrokerAddress, Door, Options};
use crate::outlet::KafkaOutlet;
use crate::session::Session;

impl Door {
    /// Serves one connection to its end.
    pub async fn serve(&self, arrived: Arrived) {
        let Arrived { stream, local } = arrived;
        let outlet = Arc::new(KafkaOutlet::new(stream.sink.clone()));
        let place = self.options.advertised.clone();
        let place = place.unwrap_or_else(|| BrokerAddress::from(local));
        let client = match Client::new(self, place, stream.peer, outlet.clone()) {
            Ok(client) => client,
            Err(refusal) => {
                tracing::info!(%refusal, "kafka connection refused");
                return outlet.outbox.finish();
            }
        };
        let Options {
            handshake_timeout,
            idle_timeout,
            ..
        } = *self.options;
        let source = stream.source;
        // Boxed, so that an idle connection holds little memory.
        let session = Session::new(source, outlet, client, handshake_timeout, idle_timeout);
        Box::pin(session.run()).await;
    }
}
