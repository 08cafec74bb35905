//! The outcome of an append to a topic.

use door::topics::Refused;
use model::ErrorCode;
use topic_service::records::RecordResult;

/// Returns the partition and the offset of each record, if all were appended.
pub(super) fn placed(told: Vec<RecordResult>) -> Result<Vec<(u32, u64)>, Refused> {
    let Some(refused) = Refused::of_records(&told) else {
        let place = |told: RecordResult| Some((told.partition, told.offset.ok()?));
        return Ok(told.into_iter().filter_map(place).collect());
    };
    let there = told.iter().filter(|it| it.offset.is_ok()).count();
    match there {
        0 => Err(refused),
        // A retry may append those again.
        there => {
            let count = told.len();
            let message = format!(
                "{there} of {count} records were appended; {}",
                refused.message
            );
            Err(Refused::new(ErrorCode::Unconfirmed, message))
        }
    }
}
