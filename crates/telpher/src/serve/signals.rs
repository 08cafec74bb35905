//! How a process is told to end.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::{Exit, Failure};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The end of the process.
    End,
    /// That files are read again.
    Reload,
}

/// SIGTERM and SIGINT, and where it is asked for the end of the standard input.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// SIGHUP, where it is asked for.
    hangup: Option<Signal>,
    /// Ends with the standard input.
    input: Option<oneshot::Receiver<()>>,
}

impl Signals {
    /// From here on a signal no longer ends the process by itself.
    pub(crate) fn listen() -> Result<Self, Failure> {
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

    /// From here on SIGHUP does not end the process either.
    pub(crate) fn and_hangup(mut self) -> Result<Self, Failure> {
        let hangup = signal(SignalKind::hangup());
        let failed =
            |error| Failure::new(Exit::Failed, format!("cannot listen for SIGHUP: {error}"));
        self.hangup = Some(hangup.map_err(failed)?);
        Ok(self)
    }

    /// Waits for one of them or for SIGHUP, and says which it is.
    pub(super) async fn next_or_hangup(&mut self) -> Wanted {
        let Some(mut hangup) = self.hangup.take() else {
            self.next().await;
            return Wanted::End;
        };
        let wanted = tokio::select! {
            biased;
            () = self.next() => Wanted::End,
            _ = hangup.recv() => Wanted::Reload,
        };
        self.hangup = Some(hangup);
        wanted
    }

    /// From here on the end of the standard input is a signal too: whoever started the process and
    /// ends, however that may be, takes it along.
    pub(crate) fn and_end_of_input(mut self) -> Self {
        let (ended, end) = oneshot::channel();
        std::thread::spawn(move || {
            // An input that cannot be read has ended as well.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            let _ = ended.send(());
        });
        self.input = Some(end);
        self
    }

    /// Waits for one of them. The input ends once.
    pub(crate) async fn next(&mut self) {
        let input = async {
            match &mut self.input {
                Some(end) => drop(end.await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = input => self.input = None,
        }
    }
}

/// Ends the process after `limit`, whatever it is doing then.
pub(super) fn end_process_after(limit: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        tracing::error!("the shutdown takes longer than `shutdown.limit`: ending now");
        std::process::exit(Exit::Timeout as i32);
    });
}
