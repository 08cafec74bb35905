//! Creation of items, and messages to them in a closed loop.
//!
//! Item 0, 1, … each get one message when they are created. The load visits them in a scattered
//! order, so that neighbours in memory or on disk are not visited together.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bench::growth::Dimension;
use bench::workload::node::Node;
use bench::workload::role::{self, Failure};
use client::quota::{Outcome, Quota, Take};
use client::topic::NewRecord;
use client::{Client, Name, NewMessage};
use meter::clock::now_ns;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::deadline::Deadline;
use super::groups::Groups;
use super::step::{StepError, node_error};

/// Messages in flight.
pub(super) const IN_FLIGHT: u32 = 128;

/// Connections of the load, except where connections are the items.
const CONNECTIONS: u64 = 16;

/// Conversations that the load of connections is appended to.
const SHARED_CONVERSATIONS: u64 = 64;

/// Size of a message in bytes.
pub(super) const SIZE: usize = 64;

/// Time limit of one message.
const PATIENCE: Duration = Duration::from_secs(30);

/// A step between visited items: a prime far from powers of ten.
const STRIDE: u64 = 7_368_787;

/// Number of messages, or the time to send them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    /// A message to every item, by ascending number.
    EachOnce,
    /// Messages to scattered items until the window is over.
    Window(Duration),
}

/// Sends messages to the items of a node.
pub(super) enum Driver {
    Native(NativeDriver),
    Groups(Groups),
}

impl Driver {
    /// Connects, and creates the items.
    pub(super) fn make(
        node: &Node,
        of: Dimension,
        items: u64,
        deadline: Deadline,
    ) -> Result<Self, StepError> {
        let mut driver = match of {
            Dimension::Groups => Self::Groups(Groups::open(node, items).map_err(failed)?),
            of => Self::Native(NativeDriver::open(node, of, items, deadline)?),
        };
        let made = driver.send(Amount::EachOnce, deadline)?;
        match made >= items {
            true => Ok(driver),
            false => Err(deadline.exceeded(&format!("creating them ({made} were created)"))),
        }
    }

    /// Sends messages. Returns the number of acknowledged ones; it is lower than the amount if the
    /// deadline has passed.
    pub(super) fn send(&mut self, amount: Amount, deadline: Deadline) -> Result<u64, StepError> {
        match self {
            Self::Native(driver) => driver.send(amount, deadline),
            Self::Groups(groups) => groups.send(amount, deadline).map_err(failed),
        }
    }
}

fn failed(failure: Failure) -> StepError {
    node_error(&failure.to_string()).into()
}

/// Order of the messages of one call of [`Driver::send`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Schedule {
    amount: Amount,
    items: u64,
    begin_ns: u64,
    deadline: Deadline,
}

impl Schedule {
    pub(super) fn new(amount: Amount, items: u64, deadline: Deadline) -> Self {
        Self {
            amount,
            items,
            begin_ns: now_ns(),
            deadline,
        }
    }

    /// Returns the item of message `index`; `None` at the end.
    pub(super) fn item(&self, index: u64) -> Option<u64> {
        if self.deadline.has_passed() {
            return None;
        }
        match self.amount {
            Amount::EachOnce => (index < self.items).then_some(index),
            Amount::Window(window) => {
                let is_open = now_ns() - self.begin_ns < window.as_nanos() as u64;
                is_open.then(|| index.wrapping_mul(STRIDE) % self.items)
            }
        }
    }
}

/// Sends messages over the native protocol.
pub(super) struct NativeDriver {
    runtime: Runtime,
    local: LocalSet,
    senders: Rc<Senders>,
    items: u64,
}

/// Connections, and how a message is sent over them.
struct Senders {
    of: Dimension,
    clients: Vec<Client>,
    quotas: Vec<Quota>,
}

impl NativeDriver {
    fn open(node: &Node, of: Dimension, items: u64, deadline: Deadline) -> Result<Self, StepError> {
        let unavailable = |error| bench::workload::error::WorkloadError::Directory(error);
        let runtime = role::runtime().map_err(unavailable)?;
        let local = LocalSet::new();
        let count = match of {
            Dimension::Connections => items,
            _ => CONNECTIONS,
        };
        let connecting = connect_all(node.native.clone(), count, deadline);
        let clients = local.block_on(&runtime, connecting).map_err(failed)?;
        if (clients.len() as u64) < count {
            let opened = clients.len();
            return Err(deadline.exceeded(&format!("connecting ({opened} were connected)")));
        }
        let quotas = clients.iter().map(Client::quota).collect();
        Ok(Self {
            runtime,
            local,
            senders: Rc::new(Senders {
                of,
                clients,
                quotas,
            }),
            items,
        })
    }

    fn send(&self, amount: Amount, deadline: Deadline) -> Result<u64, StepError> {
        let schedule = Schedule::new(amount, self.items, deadline);
        let (next, done) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let work = async {
            let mut tasks = Vec::new();
            for _ in 0..IN_FLIGHT {
                let (senders, next, done) = (self.senders.clone(), next.clone(), done.clone());
                tasks.push(tokio::task::spawn_local(async move {
                    while let Some(item) = schedule.item(next.get()) {
                        let index = next.replace(next.get() + 1);
                        senders.send(index, item).await?;
                        done.set(done.get() + 1);
                    }
                    Ok::<_, Failure>(())
                }));
            }
            for task in tasks {
                task.await??;
            }
            Ok::<_, Failure>(())
        };
        self.local.block_on(&self.runtime, work).map_err(failed)?;
        Ok(done.get())
    }
}

/// Opens `count` connections, some at a time. Returns fewer if the deadline has passed.
async fn connect_all(
    address: String,
    count: u64,
    deadline: Deadline,
) -> Result<Vec<Client>, Failure> {
    let left = Rc::new(Cell::new(count));
    let mut tasks = Vec::new();
    for _ in 0..u64::from(IN_FLIGHT).min(count) {
        let (left, address) = (left.clone(), address.clone());
        tasks.push(tokio::task::spawn_local(async move {
            let mut clients = Vec::new();
            while left.get() > 0 && !deadline.has_passed() {
                left.set(left.get() - 1);
                let builder = Client::builder().deadline(PATIENCE);
                clients.push(builder.connect(&address).await?);
            }
            Ok::<_, Failure>(clients)
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }
    Ok(all)
}

impl Senders {
    /// Sends message `index` to an item, and waits for its acknowledgement.
    async fn send(&self, index: u64, item: u64) -> Result<(), Failure> {
        let connection = match self.of {
            Dimension::Connections => item,
            _ => index % CONNECTIONS,
        } as usize;
        let client = &self.clients[connection];
        match self.of {
            Dimension::Topics => {
                let record = NewRecord::new([b'x'; SIZE]);
                client.topic(&topic(item)).append(&[record]).await?;
            }
            Dimension::Mailboxes => {
                let name = Name::parse(&format!("growth/mailboxes/{item}"))?;
                client.write(&name, [b'x'; SIZE]).await?;
            }
            Dimension::Conversations => append(client, item).await?,
            Dimension::Connections => append(client, index % SHARED_CONVERSATIONS).await?,
            Dimension::Buckets => {
                let subject = format!("default/default/growth-{item}");
                let take = Take::of(subject).cost("requests", 1);
                match self.quotas[connection].take(&take).await? {
                    Outcome::Admitted(_) => {}
                    Outcome::Denied(_) => return Err("the node denies a take".into()),
                }
            }
            Dimension::Groups | Dimension::Log => {
                return Err("not a native dimension".into());
            }
        }
        Ok(())
    }
}

async fn append(client: &Client, conversation: u64) -> Result<(), Failure> {
    let conversation = client.conversation(&format!("growth-{conversation}"))?;
    let text = "x".repeat(SIZE);
    let message = NewMessage::new("user", format!(r#"[{{"type":"text","text":"{text}"}}]"#));
    conversation.append(&[message]).await?;
    Ok(())
}

fn topic(item: u64) -> String {
    format!("growth-{item}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn load_visits_every_item_and_creation_each_once() {
        let deadline = Deadline::after(Duration::from_secs(60));
        let items = |amount, count, items| {
            let schedule = Schedule::new(amount, items, deadline);
            (0..count)
                .filter_map(|index| schedule.item(index))
                .collect::<Vec<_>>()
        };
        assert_eq!(items(Amount::EachOnce, 9, 3), [0, 1, 2]);
        for count in [1, 10, 1_000, 100_000] {
            let window = Amount::Window(Duration::from_secs(60));
            let visited: BTreeSet<_> = items(window, count, count).into_iter().collect();
            assert_eq!(visited.len() as u64, count);
        }
        assert!(items(Amount::Window(Duration::ZERO), 9, 3).is_empty());
        let passed = Deadline::after(Duration::ZERO);
        assert_eq!(Schedule::new(Amount::EachOnce, 3, passed).item(0), None);
    }
}
