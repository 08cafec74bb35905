//! The routes of a listener.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;

use crate::fast_path::FastPath;

/// The routes of an HTTP listener.
#[derive(Clone)]
pub struct Routes {
    /// The router of all requests.
    pub router: Router,
    /// Frequent requests that are answered before they reach the router.
    pub fast_path: Arc<dyn FastPath>,
}

/// The IP address of the client's socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);
