//! Futures of takes that are decided later: waiting takes, and takes that need a request to the
//! shared store.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use quota_service::{Attempt, DecidedTake, Desk, WaitingTake};
use tokio::time::Instant;

/// Waits until a take is decided. If the client disconnects meanwhile, an undecided take is
/// withdrawn.
pub(super) async fn decided(parked: WaitingTake, desk: &mut Desk) -> DecidedTake {
    let mut taken = None;
    all_decided(vec![((), parked)], desk, |(), _, it| taken = Some(it)).await;
    match taken {
        Some(taken) => taken,
        None => unreachable!("`all_decided` calls back once for each take"),
    }
}

/// Waits until all takes are decided; calls `each` with every result as it arrives.
pub(super) async fn all_decided<P: Copy>(
    mut parked: Vec<(P, WaitingTake)>,
    desk: &mut Desk,
    mut each: impl FnMut(P, &Desk, DecidedTake),
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
