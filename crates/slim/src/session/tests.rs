//! Two ends with a network between them that a test may break, and what real libraries sent.

mod clients;
mod pair;
mod refused;
mod reliable;
mod unreliable;
