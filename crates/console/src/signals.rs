//! Signals that end a process or reload its files.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::{Exit, Failure};

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalAction {
    /// The end of the process.
    End,
    /// A reload of files.
    Reload,
}

/// A receiver of SIGTERM and SIGINT, optionally also of SIGHUP and of the end of the standard
/// input.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP, if requested.
    hangup: Option<Signal>,
    /// Completes at the end of the standard input, if requested.
    input: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// Starts to receive SIGTERM and SIGINT, which no longer end the process by themselves.
    pub fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
            })
        };
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: None,
            input: None,
        })
    }

    /// Starts to receive SIGHUP, which no longer ends the process by itself.
    pub fn and_hangup(mut self) -> Result<Self, Failure> {
        let hangup = signal(SignalKind::hangup());
        let failed =
            |error| Failure::new(Exit::Failed, format!("cannot listen for SIGHUP: {error}"));
        self.hangup = Some(hangup.map_err(failed)?);
        Ok(self)
    }

    /// Waits for the next signal, including SIGHUP, and returns its action.
    pub async fn next_or_hangup(&mut self) -> SignalAction {
        // The receiver stays even if this future is dropped.
        let Self {
            terminate,
            interrupt,
            hangup,
            input,
        } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ended(terminate, interrupt, input) => SignalAction::End,
            () = hung_up => SignalAction::Reload,
        }
    }

    /// Treats the end of the standard input as a signal too, so that the process ends with the
    /// program that started it, however that program ends.
    pub fn and_end_of_input(mut self) -> Self {
        let (ended, end) = oneshot::channel();
        std::thread::spawn(move || {
            // An input that cannot be read counts as ended.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = ended.send(());
        });
        self.input = Some(end);
        self
    }

    /// Waits for the next signal other than SIGHUP. The end of the input counts once.
    pub async fn next(&mut self) {
        ended(&mut self.terminate, &mut self.interrupt, &mut self.input).await;
    }
}

/// Waits for a signal that ends the process.
async fn ended(
    terminate: &mut Signal,
    interrupt: &mut Signal,
    input: &mut Option<oneshot::Receiver<()>>,
) {
    let is_over = async {
        match &mut *input {
            Some(end) => drop(end.await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = is_over => *input = None,
    }
}
