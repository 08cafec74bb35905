//! Groups with committed offsets and without connected consumers.

use std::thread;

use kafka::{ErrorCode, offset_commit, offset_fetch};

use bench::workload::role::Failure;
use bench_kafka::session::{Session, error_name};

/// Number of connections over which offsets are committed and read.
const CONNECTIONS: u32 = 8;

/// Partitions with an offset per group.
const EACH: u32 = 10;

/// Returns the number of offsets of each group.
pub(super) fn of_each(partitions: u32) -> u32 {
    EACH.min(partitions)
}

/// Returns the partitions and offsets of a group: neighbouring partitions, a different range for
/// each group.
fn of(group: u32, partitions: u32) -> impl Iterator<Item = (i32, i64)> {
    let all = i64::from(partitions.max(1));
    (0..of_each(partitions)).map(move |number| {
        let partition = i64::from(group) * i64::from(EACH) + i64::from(number);
        let offset = 1_000 * i64::from(group) + i64::from(number);
        ((partition % all) as i32, offset)
    })
}

fn name(group: u32) -> String {
    format!("telpher-bench-idle-{group}")
}

/// Commits the offsets of all groups.
pub(super) fn commit(
    address: &str,
    topic: &str,
    groups: u32,
    partitions: u32,
) -> Result<(), Failure> {
    share(address, groups, |session, group| {
        let partition = |(partition_index, committed_offset)| offset_commit::Partition {
            partition_index,
            committed_offset,
            committed_metadata: Some(String::new()),
            ..offset_commit::Partition::default()
        };
        let request = offset_commit::Request {
            group_id: name(group),
            topics: vec![offset_commit::Topic {
                name: topic.to_owned(),
                partitions: of(group, partitions).map(partition).collect(),
            }],
            ..offset_commit::Request::default()
        };
        let answer = session.ask(&request)?;
        let mut codes = answer.topics.iter().flat_map(|topic| &topic.partitions);
        match codes.find(|one| one.error_code.is_error()) {
            Some(one) => Err(format!(
                "the broker rejects an offset: {}",
                error_name(one.error_code)
            )
            .into()),
            None => Ok((1, 0)),
        }
    })
    .map(drop)
}

/// Fetches the offsets of all groups. Returns their number, and how many differ from the committed
/// ones.
pub(super) fn read_back(
    address: &str,
    topic: &str,
    groups: u32,
    partitions: u32,
) -> Result<(u64, u64), Failure> {
    share(address, groups, |session, group| {
        let request = offset_fetch::Request {
            groups: vec![offset_fetch::Group {
                group_id: name(group),
                topics: Some(vec![offset_fetch::Topic {
                    name: topic.to_owned(),
                    partition_indexes: of(group, partitions).map(|(index, _)| index).collect(),
                }]),
                ..offset_fetch::Group::default()
            }],
            ..offset_fetch::Request::default()
        };
        let answer = session.ask(&request)?;
        let topics = answer.groups.iter().flat_map(|group| &group.topics);
        let found: Vec<_> = topics.flat_map(|topic| &topic.partitions).collect();
        let is_there = |(partition, offset): &(i32, i64)| {
            found.iter().any(|one| {
                let committed = (one.partition_index, one.committed_offset);
                one.error_code == ErrorCode::None && committed == (*partition, *offset)
            })
        };
        let there = of(group, partitions).filter(is_there).count() as u64;
        let all = u64::from(of_each(partitions));
        Ok((all, all - there))
    })
}

/// Runs `each` for every group over several connections, and returns the sums of its results.
fn share(
    address: &str,
    groups: u32,
    each: impl Fn(&mut Session, u32) -> Result<(u64, u64), Failure> + Sync,
) -> Result<(u64, u64), Failure> {
    let some = |connection: u32| -> Result<(u64, u64), Failure> {
        let mut session = Session::open(address)?;
        let mut sums = (0, 0);
        for group in (connection..groups).step_by(CONNECTIONS as usize) {
            let (first, second) = each(&mut session, group)?;
            sums = (sums.0 + first, sums.1 + second);
        }
        Ok(sums)
    };
    thread::scope(|scope| {
        let some = &some;
        let threads: Vec<_> = (0..CONNECTIONS.min(groups))
            .map(|connection| scope.spawn(move || some(connection)))
            .collect();
        let mut sums = (0, 0);
        for thread in threads {
            let (first, second) = thread
                .join()
                .map_err(|_| "a connection's thread panicked")??;
            sums = (sums.0 + first, sums.1 + second);
        }
        Ok(sums)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_groups_have_offsets_of_different_partitions() {
        let of = |group, partitions| of(group, partitions).collect::<Vec<_>>();
        assert_eq!(of(0, 1_000)[..2], [(0, 0), (1, 1)]);
        assert_eq!(of(7, 1_000)[0], (70, 7_000));
        assert_eq!(of(3, 2), [(0, 3_000), (1, 3_001)]);
        for group in 0..50 {
            let mut partitions: Vec<_> = of(group, 24).iter().map(|(index, _)| *index).collect();
            partitions.sort_unstable();
            partitions.dedup();
            assert_eq!(partitions.len(), 10);
        }
    }
}
