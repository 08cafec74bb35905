//! Connecting to an address over the transport that it names.

use std::io;
use std::sync::Arc;

use crate::address::Address;
use crate::inproc;
use crate::stream::Stream;
use crate::tcp::{connect_tcp, split_tcp};
use crate::tls::{client_config, split_tls_connected};
use crate::unix::{connect_unix, split_unix};

/// Connects to the address, over TLS for `tls://`.
///
/// `tls` is needed for `tls://` only; see [`client_config`].
pub async fn connect(
    address: &Address,
    tls: Option<Arc<rustls::ClientConfig>>,
) -> io::Result<Stream> {
    match address {
        Address::Tcp { host, port } => split_tcp(connect_tcp(host, *port).await?),
        Address::Unix { path } => split_unix(connect_unix(path).await?),
        Address::Inproc { name } => inproc::connect(name),
        Address::Tls { host, port } => {
            let config = match tls {
                Some(config) => config,
                None => client_config(None).map_err(io::Error::other)?,
            };
            split_tls_connected(connect_tcp(host, *port).await?, host, config).await
        }
    }
}
