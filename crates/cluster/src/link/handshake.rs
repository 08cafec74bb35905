//! The handshake of a connection.

use std::io;
use std::time::Duration;

use net::{Source, Stream};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::timeout;

use super::Channel;
use super::admission::Outdated;
use super::hello::{HELLO_SIZE, Hello, Identity, NONCE_SIZE, Refusal};
use super::key::{Key, PROOF_SIZE, Side};
use super::records::OutdatedError;

/// Time limit of a handshake.
pub(super) const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Status of an accepted step.
const ACCEPTED: u8 = 0;

/// A connection that was not established.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The peer refused.
    #[error("the peer refused the connection: {0}")]
    Refused(#[source] Refusal),
    /// This node refused.
    #[error("refused the peer's connection: {0}")]
    Refusing(#[source] Refusal),
    /// The peer comes back with less than it has reported.
    #[error(
        "node {id} is not admitted, it has an old copy of its data or its disk has lost some: {error}"
    )]
    PeerOutdated {
        /// The peer.
        id: u64,
        /// The missing vote or block.
        error: OutdatedError,
    },
    /// This node comes back with less than it has reported.
    #[error(transparent)]
    Outdated(#[from] Outdated),
    /// The connection broke, or the peer did not answer in time.
    #[error("the handshake failed: {0}")]
    Io(#[from] io::Error),
}

/// The peer of an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeted {
    pub(super) peer: Identity,
    pub(super) channel: Channel,
}

/// Greets the listener, which must be the node `to`.
pub(super) async fn greet(
    stream: &mut Stream,
    own: Identity,
    to: u64,
    channel: Channel,
    key: &Key,
) -> Result<Greeted, HandshakeError> {
    let greeting = async {
        let hello = Hello {
            channel,
            from: own,
            to,
            nonce: nonce()?,
        };
        let sent = hello.encode();
        net::write_all(&*stream.sink, &sent).await?;
        read_status(stream).await?;
        let answered: [u8; HELLO_SIZE] = read(&mut *stream.source).await?;
        let proof: [u8; PROOF_SIZE] = read(&mut *stream.source).await?;
        let answer = Hello::decode(&answered).map_err(HandshakeError::Refusing)?;
        if !key.is_proof(&proof, Side::Listener, &sent, &answered) {
            return Err(HandshakeError::Refusing(Refusal::Key));
        }
        let is_joining = channel == Channel::Join;
        if answer.from.cluster != own.cluster && !is_joining {
            return Err(HandshakeError::Refusing(Refusal::Cluster));
        }
        let is_meant = answer.from.id == to || is_joining;
        if !is_meant || (answer.to, answer.channel) != (own.id, channel) {
            return Err(HandshakeError::Refusing(Refusal::Id));
        }
        let proof = key.prove(Side::Dialer, &sent, &answered);
        net::write_all(&*stream.sink, &proof).await?;
        read_status(stream).await?;
        Ok(Greeted {
            peer: answer.from,
            channel,
        })
    };
    timeout(HANDSHAKE_MAX, greeting).await.map_err(timed_out)?
}

/// Answers a dialer.
pub(super) async fn answer(
    stream: &mut Stream,
    own: Identity,
    key: &Key,
) -> Result<Greeted, HandshakeError> {
    let answering = async {
        let received: [u8; HELLO_SIZE] = read(&mut *stream.source).await?;
        let hello = Hello::decode(&received);
        let checked = hello.and_then(|hello| hello.check(own).map(|()| hello));
        let hello = match checked {
            Ok(hello) => hello,
            Err(refusal) => return refuse(stream, refusal).await,
        };
        let answer = Hello {
            channel: hello.channel,
            from: own,
            to: hello.from.id,
            nonce: nonce()?,
        };
        let sent = answer.encode();
        let proof = key.prove(Side::Listener, &received, &sent);
        let bytes = [&[ACCEPTED][..], &sent, &proof].concat();
        net::write_all(&*stream.sink, &bytes).await?;
        let proof: [u8; PROOF_SIZE] = read(&mut *stream.source).await?;
        if !key.is_proof(&proof, Side::Dialer, &received, &sent) {
            return refuse(stream, Refusal::Key).await;
        }
        net::write_all(&*stream.sink, &[ACCEPTED]).await?;
        Ok(Greeted {
            peer: hello.from,
            channel: hello.channel,
        })
    };
    timeout(HANDSHAKE_MAX, answering).await.map_err(timed_out)?
}

async fn refuse(stream: &mut Stream, refusal: Refusal) -> Result<Greeted, HandshakeError> {
    net::write_all(&*stream.sink, &[refusal as u8]).await?;
    stream.sink.finish();
    Err(HandshakeError::Refusing(refusal))
}

async fn read_status(stream: &mut Stream) -> Result<(), HandshakeError> {
    let [status] = read(&mut *stream.source).await?;
    match Refusal::from_number(status) {
        _ if status == ACCEPTED => Ok(()),
        Some(refusal) => Err(HandshakeError::Refused(refusal)),
        None => Err(HandshakeError::Refusing(Refusal::Malformed)),
    }
}

pub(super) async fn read<const SIZE: usize>(source: &mut dyn Source) -> io::Result<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    net::read_exact(source, &mut bytes).await?;
    Ok(bytes)
}

fn nonce() -> io::Result<[u8; NONCE_SIZE]> {
    let mut nonce = [0; NONCE_SIZE];
    let filled = SystemRandom::new().fill(&mut nonce);
    filled.map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(nonce)
}

pub(super) fn timed_out(_: tokio::time::error::Elapsed) -> HandshakeError {
    HandshakeError::Io(io::ErrorKind::TimedOut.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: Identity = Identity {
        cluster: 7,
        id: 2,
        life: 5,
    };

    fn dialer(cluster: u64, id: u64) -> Identity {
        Identity {
            cluster,
            id,
            life: 3,
        }
    }

    fn key(byte: u8) -> Key {
        Key::new(&[byte; 32]).unwrap()
    }

    type Outcome = Result<Greeted, HandshakeError>;

    async fn shake(own: Identity, to: u64, keys: [Key; 2]) -> (Outcome, Outcome) {
        let (mut near, mut far) = net::inproc::pair("handshake");
        tokio::join!(
            greet(&mut near, own, to, Channel::Log, &keys[0]),
            answer(&mut far, LISTENER, &keys[1]),
        )
    }

    #[tokio::test]
    async fn both_sides_learn_who_the_peer_is() {
        let (dialed, answered) = shake(dialer(7, 1), 2, [key(1), key(1)]).await;
        let channel = Channel::Log;
        let peer = LISTENER;
        assert_eq!(dialed.unwrap(), Greeted { peer, channel });
        let peer = dialer(7, 1);
        assert_eq!(answered.unwrap(), Greeted { peer, channel });
    }

    #[tokio::test]
    async fn wrong_cluster_id_or_direction_is_refused_by_name() {
        let cases = [
            (dialer(8, 1), 2, Refusal::Cluster),
            (dialer(7, 1), 3, Refusal::Id),
            (dialer(7, 2), 2, Refusal::SameId),
            (dialer(7, 3), 2, Refusal::Direction),
        ];
        for (own, to, expected) in cases {
            let (dialed, answered) = shake(own, to, [key(1), key(1)]).await;
            assert!(matches!(dialed, Err(HandshakeError::Refused(it)) if it == expected));
            assert!(matches!(answered, Err(HandshakeError::Refusing(it)) if it == expected));
        }
    }

    #[tokio::test]
    async fn node_with_another_key_is_refused() {
        let (dialed, answered) = shake(dialer(7, 1), 2, [key(1), key(9)]).await;
        assert!(matches!(
            dialed,
            Err(HandshakeError::Refusing(Refusal::Key))
        ));
        assert!(matches!(answered, Err(HandshakeError::Io(_))));
    }

    #[tokio::test]
    async fn dialer_that_cannot_prove_the_key_is_refused() {
        let (near, mut far) = net::inproc::pair("unproven");
        let hello = Hello {
            channel: Channel::Pulse,
            from: dialer(7, 1),
            to: 2,
            nonce: [0; NONCE_SIZE],
        };
        near.sink.try_write(&hello.encode()).unwrap();
        near.sink.try_write(&[0; PROOF_SIZE]).unwrap();
        let answered = answer(&mut far, LISTENER, &key(1)).await;
        let is_refused = matches!(answered, Err(HandshakeError::Refusing(Refusal::Key)));
        assert!(is_refused, "{answered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn silent_dialer_is_disconnected() {
        let (_near, mut far) = net::inproc::pair("silent");
        let answered = answer(&mut far, LISTENER, &key(1)).await;
        assert!(matches!(answered, Err(HandshakeError::Io(_))));
    }

    #[test]
    fn short_key_is_refused() {
        assert_eq!(
            Key::new(&[1; 31]).unwrap_err(),
            super::super::KeyError { size: 31 }
        );
    }
}
