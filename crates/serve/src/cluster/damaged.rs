//! A member whose data is damaged, missing or an old copy. It takes no part in the consensus, so it votes for
//! nothing, and it serves no clients. `/readyz` says why.

use std::sync::Arc;

use config::Config;
use console::{Exit, Failure, Signals};
use door_http::MemberPages;
use tokio::task::JoinSet;

use crate::gate::TokenGate;
use crate::listeners::bind_tcp;

/// Connections at most.
const CLIENTS_MAX: usize = 1_000;

/// Returns the failure of a member that can only be removed.
pub(crate) fn removal(id: u64, message: String) -> Failure {
    Failure::new(Exit::Failed, message)
        .hint(format!(
            "remove it at another member: telpher cluster remove {id}"
        ))
        .hint("then join with an empty data directory: telpher serve --data PATH --join HOST:PORT")
}

/// Answers probes until a signal ends the process. Returns the failure, and at once if there is no
/// HTTP listener without TLS.
pub(crate) async fn run(
    config: &Config,
    gate: Arc<TokenGate>,
    failure: Failure,
    signals: &mut Signals,
) -> Failure {
    if config.tls.files().is_some() {
        return failure;
    }
    let listener = match bind_tcp("http.listen", config.http.listen.as_ref()).await {
        Ok(Some(listener)) => listener,
        Ok(None) => return failure,
        Err(unavailable) => return unavailable,
    };
    tracing::error!(error = %failure, "this member takes no part in the cluster");
    let reason = failure.to_string();
    let pages = MemberPages {
        membership: None,
        storage: None,
        gate,
        unready: Arc::new(move || Some(reason.clone())),
    };
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // A client above the limit is disconnected.
                if let Ok((socket, _)) = accepted && clients.len() < CLIENTS_MAX {
                    let pages = pages.clone();
                    clients.spawn(async move { pages.serve(socket).await });
                }
            }
            Some(_) = clients.join_next() => {}
            () = signals.next() => return failure,
        }
    }
}
