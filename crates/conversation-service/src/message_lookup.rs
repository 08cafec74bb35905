//! Looks up a message by its id.

use model::Name;
use store::Reach;

use super::append::Failure;
use super::history_lookup::Attempt;
use super::view::check_alive;
use super::{ConversationError, Conversations, Pending};

impl Conversations {
    /// Returns the number of the message with an id; ready when the message is durable. It may read
    /// from the disk: do not call it on a thread that serves connections.
    ///
    /// A message that is still being streamed and a message that retention has removed are
    /// [`ConversationError::NoMessage`].
    pub fn seq_of(&self, name: &Name, id: &str) -> Result<Pending<u64>, ConversationError> {
        self.with_known(name.base(), |records| {
            self.with_existing(name, |_, room, _| {
                check_alive(room)?;
                let found = self.message_of(Reach::Memory, room, records, |engine, stored| {
                    engine.look_up(id, stored)
                });
                let outcome = match found {
                    Err(Failure::Missing(missing)) => return Ok(Attempt::Needs(missing)),
                    Err(Failure::AtOnce(refusal)) => return Err(refusal),
                    Err(Failure::Resting(refusal)) => Err(refusal),
                    Ok(Some(seq)) if !room.engine.state().retracted.contains(seq) => Ok(seq),
                    Ok(_) => Err(ConversationError::NoMessage { id: id.to_owned() }),
                };
                let pending = Pending::new(&self.store.journal, room.ticket, outcome);
                Ok(Attempt::Done(pending))
            })
        })
    }
}
