//! A node as a member of a cluster.
//!
//! The consensus of all shards runs on a thread of its own ([`consensus`]). When this node leads all
//! shards, it opens its services on a view of the journal that is bound to these reigns, and accepts
//! clients; when one of the reigns ends, it drops them ([`member`]). While another member leads, the
//! listeners pass the bytes of their clients to it ([`front`], [`pipes`]), and the requests of Kafka's
//! clients ([`kafka`]). A member whose data is
//! damaged, missing or older than the others remember takes no part ([`damaged`]).
//!
//! Invariant: *services that were opened in a reign write in no other.*

mod consensus;
mod damaged;
mod front;
mod identity;
mod image;
mod init;
mod joining;
mod kafka;
mod leave;
mod member;
mod pipes;
mod report_file;
mod status;
mod watch;

pub(super) use damaged::{removal, run as run_damaged};
pub use identity::KEY_FILE;
pub(super) use identity::{Identity, identity};
pub use init::{Initialized, init};
pub(super) use joining::join;
pub use leave::{Departure, leave};
pub(super) use member::{Announcement, Start, run};
pub(super) use status::{Cluster, methods};
