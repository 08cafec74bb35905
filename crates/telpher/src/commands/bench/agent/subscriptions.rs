//! `telpher bench agent --protocol slim --subscriptions`: memory per subscription.

use bench::workload::surroundings::OURS;
use checks::slim::{self, SubscriptionMemory};

use super::super::outcome::{check, failure};
use super::Args;
use console::Failure;

pub(super) fn run(args: &Args, count: u32) -> Result<(), Failure> {
    let surroundings = args.outcome.surroundings()?;
    let steps = args.outcome.steps();
    let found = slim::run(&surroundings, count, &args.connections, steps).map_err(failure)?;
    args.outcome.print(&found, &text(&found))?;
    check(
        &misses(&found),
        "every subscription must receive messages; see the log of the node",
    )
}

/// Returns the cases in which Telpher's node lost a subscription.
fn misses(found: &[SubscriptionMemory]) -> Vec<String> {
    let ours = found.iter().filter(|one| one.target == OURS);
    let missed = ours.filter(|one| one.acknowledged.min(one.reached) < one.subscriptions);
    let words = |one: &SubscriptionMemory| {
        format!(
            "of {} subscriptions over {} connections {} were acknowledged and {} reached",
            one.subscriptions, one.connections, one.acknowledged, one.reached
        )
    };
    missed.map(words).collect()
}

fn text(found: &[SubscriptionMemory]) -> String {
    let head = format!(
        "{:<8} {:>11} {:>13} {:>8} {:>8} {:>11} {:>10} {:>10} {:>10} {:>14} {:>16}\n",
        "node",
        "connections",
        "subscriptions",
        "reached",
        "seconds",
        "CPU us each",
        "empty MiB",
        "open MiB",
        "full MiB",
        "per connection",
        "per subscription"
    );
    found.iter().fold(head, |text, one| text + &row(one))
}

fn row(one: &SubscriptionMemory) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    format!(
        "{:<8} {:>11} {:>13} {:>8} {:>8.2} {:>11} {:>10.1} {:>10.1} {:>10.1} {:>12.0} B {:>14.0} B\n",
        one.target,
        one.connections,
        one.subscriptions,
        one.reached,
        one.seconds,
        one.cpu_us_each
            .map(|us| format!("{us:.1}"))
            .unwrap_or_default(),
        mib(one.empty_rss_bytes),
        mib(one.connected_rss_bytes),
        mib(one.full_rss_bytes),
        one.bytes_per_connection,
        one.bytes_per_subscription
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(target: &'static str, reached: u32) -> SubscriptionMemory {
        SubscriptionMemory {
            target,
            connections: 100,
            subscriptions: 10_000,
            acknowledged: 10_000,
            reached,
            full_rss_bytes: 30 << 20,
            cpu_us_each: Some(12.34),
            bytes_per_subscription: 512.4,
            ..SubscriptionMemory::default()
        }
    }

    #[test]
    fn subscription_row_shows_memory_per_subscription() {
        let row = row(&found("slim", 9_999));
        assert!(
            row.ends_with("30.0            0 B            512 B\n"),
            "{row}"
        );
        assert!(row.contains(" 12.3 "), "{row}");
    }

    #[test]
    fn only_lost_subscriptions_of_telpher_are_misses() {
        assert!(misses(&[found("telpher", 10_000), found("slim", 0)]).is_empty());
        let missed = misses(&[found("telpher", 9_999)]);
        assert!(missed[0].contains("9999 reached"), "{missed:?}");
    }
}
