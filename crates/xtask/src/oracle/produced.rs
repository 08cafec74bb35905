//! Comparison of idempotent producers: duplicates, sequences and epochs.

use anyhow::Result;
use kafka::init_producer_id;
use recordbatch::{Producer, Template};

use super::records::{append, batch};
use super::script::Script;
use super::topics::{make, topic};

const TOPIC: &str = "produced";

/// Producer id and epoch on each broker.
type Ids = [(i64, i16); 2];

pub(super) fn compare(script: &mut Script) -> Result<()> {
    script.compare("topic for producers", 4, &make(vec![topic(TOPIC)]))?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    let Some(ids) = producers(script)? else {
        return Ok(());
    };
    let step = |script: &mut Script, name: &str, count, sequence, epoch: i16| {
        let requests = ids.map(|(id, own)| appended(id, own + epoch, sequence, count));
        script.compare_each(name, 9, [&requests[0], &requests[1]])
    };
    step(script, "the first batch", 2, 0, 0)?;
    step(script, "the first batch again", 2, 0, 0)?;
    step(script, "the second", 3, 2, 0)?;
    step(script, "the first batch after the second", 2, 0, 0)?;
    step(script, "one after a gap", 1, 9, 0)?;
    step(script, "half of the second", 1, 2, 0)?;
    for number in 0..5 {
        step(
            script,
            &format!("number {number} of five more"),
            1,
            5 + number,
            0,
        )?;
    }
    step(script, "the first batch after five more", 2, 0, 0)?;
    step(script, "the fifth batch from the end", 1, 5, 0)?;
    step(script, "next epoch, later sequence", 1, 5, 1)?;
    step(script, "next epoch", 1, 0, 1)?;
    step(script, "earlier epoch", 1, 10, 0)?;
    let unknown = [0, 1].map(|_| appended(987_654_321, 0, 0, 1));
    script.compare_each(
        "unknown producer, first sequence",
        9,
        [&unknown[0], &unknown[1]],
    )?;
    let unknown = [0, 1].map(|_| appended(987_654_322, 0, 5, 1));
    script.compare_each(
        "unknown producer, later sequence",
        9,
        [&unknown[0], &unknown[1]],
    )?;
    let requests = [0, 1].map(|_| appended(5, -1, 0, 1));
    script.compare_each("invalid epoch", 9, [&requests[0], &requests[1]])?;
    Ok(())
}

fn appended(id: i64, epoch: i16, sequence: i32, count: i64) -> kafka::produce::Request {
    let template = Template {
        producer: Some(Producer {
            id,
            epoch,
            sequence,
        }),
        ..Template::default()
    };
    append(TOPIC, 0, -1, batch(count, 1_000, &template))
}

fn producers(script: &mut Script) -> Result<Option<Ids>> {
    let request = init_producer_id::Request {
        transaction_timeout_ms: 60_000,
        ..init_producer_id::Request::default()
    };
    let answers = script.compare("without a transactional id", 4, &request)?;
    let [Some(theirs), Some(ours)] = answers else {
        return Ok(None);
    };
    Ok(Some(
        [theirs, ours].map(|one| (one.producer_id, one.producer_epoch)),
    ))
}
