//! Tables and their catch-up, on generated conversations.

mod crash;
mod history;
mod model;
mod node;
