//! SCRAM (RFC 5802, RFC 7677): credentials computed from passwords, and the server's side of an
//! exchange. Kafka's mechanisms are those of KIP-84.
//!
//! The crate does not know Kafka's messages or HTTP, and has no storage.
//!
//! Invariant: *a credential does not reveal its password, and the answer to a wrong password does
//! not reveal whether the user exists.*

mod credential;
mod exchange;

pub use credential::{SALT_SIZE, credential, credential_of_salted, has_password, waste};
pub use exchange::{Challenge, Failed, Proven};
