//! The tables and how they catch up, on conversations that were made up.

mod crash;
mod history;
mod model;
mod node;
