//! Reporting to a peer.

use std::io;
use std::sync::Arc;

use journal::ShardId;

use super::Channel;
use super::frame::Operation;
use super::message;
use super::peers::Peers;
use super::records::put_statement;

impl Peers {
    /// Reports to a member at its address what this node has on disk. Returns the member's time when
    /// it answered, in milliseconds since 1970.
    pub(crate) async fn report(self: &Arc<Self>, to: u64, address: &str) -> io::Result<u64> {
        let link = self.link(to, address, Channel::Pulse);
        let caller = link.connection().await.call()?;
        let statement = self.admission.statement();
        caller.send(Operation::Report, ShardId(0), 0, |out| {
            put_statement(out, &statement);
        });
        let answer = std::future::poll_fn(|cx| caller.answers.poll(cx)).await;
        let (_, body) = answer.ok_or(io::ErrorKind::ConnectionReset)?;
        message::get_report_answer(body)
    }
}
