//! Takes that are decided while somebody looks at them: those that wait for their limits, and those
//! that a store is asked about.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use node::quotas::{Attempt, Desk, Durable, Parked, Taken};
use tokio::time::Instant;

use crate::http::reply::Reply;

/// An answer that is known later, and what must be on disk before it is told.
pub(in crate::http) type Later = Pin<Box<dyn Future<Output = (Reply, Vec<Durable>)> + Send>>;

/// Waits until a take is decided. Whoever goes away meanwhile takes nothing that was not taken yet.
pub(super) async fn decided(parked: Parked, desk: &mut Desk) -> Taken {
    let mut taken = None;
    all_decided(vec![((), parked)], desk, |(), _, it| taken = Some(it)).await;
    match taken {
        Some(taken) => taken,
        None => unreachable!("every one is told"),
    }
}

/// Waits until all of them are decided; each is told of when it is.
pub(super) async fn all_decided<P: Copy>(
    mut parked: Vec<(P, Parked)>,
    desk: &mut Desk,
    mut each: impl FnMut(P, &Desk, Taken),
) {
    let mut again = Box::pin(tokio::time::sleep(Duration::ZERO));
    poll_fn(|cx| {
        loop {
            let mut pause: Option<Duration> = None;
            parked.retain_mut(|(place, parked)| match parked.poll(desk, cx.waker()) {
                Attempt::Done(taken) => {
                    each(*place, desk, taken);
                    false
                }
                Attempt::Wait(lasting) => {
                    pause = Some(pause.map_or(lasting, |known| known.min(lasting)));
                    true
                }
            });
            let Some(pause) = pause else {
                return Poll::Ready(());
            };
            again.as_mut().reset(Instant::now() + pause);
            if again.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}
