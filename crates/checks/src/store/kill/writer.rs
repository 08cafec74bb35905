//! Writer of one conversation: appends batches, and sends a batch again after a restart.

use std::cell::Cell;
use std::rc::Rc;

use super::{KillReport, WriterShare};
use bench::workload::role::Failure;
use bench_storage::store::client::{AppendAck, AppendFailure, Client};

/// Sizes of the batches, used in turn.
const BATCHES: [u64; 4] = [1, 3, 1, 2];

/// Appends one batch after the other until the node is gone.
pub(super) async fn append_until(
    mut client: Client,
    share: Rc<WriterShare>,
    is_over: Rc<Cell<bool>>,
) {
    for count in BATCHES.into_iter().cycle() {
        if is_over.get() {
            return;
        }
        let (numbers, messages) = {
            let mut known = share.known.borrow_mut();
            let numbers = known.begin(count);
            let messages = known.messages(numbers.clone());
            (numbers, messages)
        };
        let outcome = client.append(&share.conversation, &messages).await;
        let mut known = share.known.borrow_mut();
        match outcome {
            Ok(acked) => known.acknowledged(numbers, acked),
            Err(AppendFailure::Unconfirmed(_)) => return,
            Err(AppendFailure::Refused(_)) => {
                known.refused += 1;
                known.under_way = None;
                return;
            }
        }
    }
}

/// Sends again the last acknowledged batch, which must get the same answer, and the batch in
/// flight, which must be present completely or not at all.
pub(super) async fn retry(
    client: &mut Client,
    share: &WriterShare,
    report: &mut KillReport,
) -> Result<(), Failure> {
    let last = share.known.borrow().last.clone();
    if let Some((numbers, first)) = last {
        let messages = share.known.borrow().messages(numbers);
        let again = client
            .append(&share.conversation, &messages)
            .await
            .map_err(AppendFailure::into_failure)?;
        report.retried += 1;
        report.answered_otherwise += u64::from(!is_the_same(first, again, messages.len() as u64));
    }
    let under_way = share.known.borrow().under_way.clone();
    if let Some(numbers) = under_way {
        let messages = share.known.borrow().messages(numbers.clone());
        let acked = client
            .append(&share.conversation, &messages)
            .await
            .map_err(AppendFailure::into_failure)?;
        report.retried += 1;
        report.unconfirmed += messages.len() as u64;
        report.kept_unconfirmed += acked.deduplicated;
        report.torn += u64::from(![0, messages.len() as u64].contains(&acked.deduplicated));
        share.known.borrow_mut().acknowledged(numbers, acked);
    }
    Ok(())
}

/// Returns true if a retry has the same sequence numbers and appended nothing.
fn is_the_same(first: AppendAck, again: AppendAck, count: u64) -> bool {
    (again.first_seq, again.last_seq) == (first.first_seq, first.last_seq)
        && again.deduplicated == count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_matches_only_with_equal_numbers_and_nothing_appended() {
        let first = AppendAck {
            first_seq: 4,
            last_seq: 5,
            deduplicated: 0,
        };
        let again = AppendAck {
            deduplicated: 2,
            ..first
        };
        assert!(is_the_same(first, again, 2));
        assert!(!is_the_same(first, first, 2));
        assert!(!is_the_same(
            first,
            AppendAck {
                first_seq: 6,
                last_seq: 7,
                ..again
            },
            2
        ));
    }
}
