//! Threads for blocking disk reads, so that the threads of connections do not block.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::Mutex;
use platform::{Offload, Overloaded, Work};

/// Number of concurrent reads.
const THREADS: usize = 4;

/// Maximum number of waiting tasks.
const WAITING_MAX: usize = 1_024;

/// The reader threads. On drop they finish the waiting tasks and end.
pub(super) struct Readers {
    waiting: SyncSender<Work>,
}

impl Readers {
    /// Starts the threads.
    pub(super) fn start() -> io::Result<Self> {
        let (waiting, works) = sync_channel(WAITING_MAX);
        let works = Arc::new(Mutex::new(works));
        for index in 0..THREADS {
            let works = works.clone();
            std::thread::Builder::new()
                .name(format!("reader-{index}"))
                .spawn(move || serve(&works))?;
        }
        Ok(Self { waiting })
    }
}

impl Offload for Readers {
    fn offload(&self, work: Work) -> Result<(), Overloaded> {
        self.waiting.try_send(work).map_err(|_| Overloaded)
    }
}

fn serve(works: &Mutex<Receiver<Work>>) {
    loop {
        // The thread that waits for work holds the lock; the other threads wait for the lock.
        let work = works.lock().recv();
        match work {
            Ok(work) => work(),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_full_queue_refuses_work_and_accepted_work_is_done() {
        let readers = Readers::start().unwrap();
        let (gate, shut) = channel::<()>();
        let shut = Arc::new(Mutex::new(shut));
        let (done, all) = channel();
        let mut taken = 0;
        let refused = loop {
            let (shut, done) = (shut.clone(), done.clone());
            let work = move || {
                // Blocks until the gate is dropped.
                let _ = shut.lock().recv();
                done.send(()).unwrap();
            };
            match readers.offload(Box::new(work)) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(refused, Overloaded);
        assert!(
            (WAITING_MAX..=WAITING_MAX + THREADS).contains(&taken),
            "{taken}"
        );
        drop((gate, done));
        assert_eq!(all.iter().count(), taken);
    }
}
