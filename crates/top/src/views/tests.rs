use serde_json::json;

use super::*;
use crate::testing::{history, sample};

/// Returns the text of a view in its default order.
fn lines(view: View) -> String {
    let mut table = view.table(&history());
    table.sort(view.order());
    table.lines()
}

/// Returns the text of details in their default order.
fn detail_lines(detail: &Detail) -> String {
    let mut table = detail.table(&history());
    table.sort(detail.order());
    table.lines()
}

#[test]
fn tables_of_views_match_snapshots() {
    for view in View::ALL {
        insta::assert_snapshot!(view.name(), lines(view));
    }
}

#[test]
fn tables_of_details_match_snapshots() {
    let worker = "acme/demo/worker";
    for (name, detail) in [
        ("instances", Detail::Agent(format!("{worker} native"))),
        ("partitions", Detail::Topic("orders".to_owned())),
        ("group_partitions", Detail::Group("billing".to_owned())),
        ("messages", Detail::Mailbox(worker.to_owned())),
        ("limits", Detail::Subject(worker.to_owned())),
    ] {
        insta::assert_snapshot!(name, detail_lines(&detail));
    }
}

#[test]
fn an_agent_has_the_calls_and_the_mailbox_of_all_its_instances() {
    let rows = View::Agents.table(&history()).json();
    let row = |name: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter()
            .find(|row| row["agent"] == name)
            .unwrap()
            .clone()
    };
    let worker = row("acme/demo/worker");
    assert_eq!(worker["instances"], 2);
    assert_eq!(worker["in_flight"], 3);
    assert_eq!(worker["delivered_per_second"], 10.0);
    assert_eq!(
        (&worker["waiting"], &worker["denied"]),
        (&json!(4), &json!(6))
    );
    let idle = row("acme/demo/idle");
    assert_eq!(
        (&idle["instances"], &idle["waiting"]),
        (&json!(0), &json!(9))
    );
    assert_eq!(rows.as_array().unwrap().len(), 3, "without the node's own");
}

#[test]
fn the_first_sample_has_no_rates() {
    let mut history = History::default();
    history.add(sample(1_000, 0));
    for view in [View::Agents, View::Topics, View::Mailboxes, View::Quotas] {
        let rows = view.table(&history).json();
        for row in rows.as_array().unwrap() {
            let rates = row.as_object().unwrap().iter();
            let known: Vec<_> = rates
                .filter(|(key, value)| key.ends_with("_per_second") && !value.is_null())
                .collect();
            assert!(known.is_empty(), "{known:?}");
        }
    }
}

#[test]
fn missing_answers_and_omitted_rows_are_remarks() {
    let mut late = sample(3_000, 1);
    let refusal = "denied: no".to_owned();
    late.answers.insert(Question::Denied, Err(refusal));
    let mut history = History::default();
    history.add(late);
    assert_eq!(View::Quotas.table(&history).remark.unwrap(), "denied: no");
    let remark = View::Topics.table(&history).remark;
    assert_eq!(remark.unwrap(), "5 more with smaller numbers");
    assert_eq!(View::Groups.table(&history).remark, None);
}

#[test]
fn details_are_about_one_agent() {
    let table = View::Quotas.table(&history());
    let details = table.rows.iter().filter_map(|row| View::Quotas.detail(row));
    let details: Vec<_> = details.collect();
    assert_eq!(details, [Detail::Subject("acme/demo/worker".to_owned())]);
    assert_eq!(View::Node.detail(&table.rows[0]), None);
}

#[test]
fn a_journal_that_does_not_serve_is_a_problem() {
    assert_eq!(problem(&history()), None);
    let mut failed = sample(3_000, 1);
    failed.metrics = crate::metrics::Metrics::parse(
        "telpher_journal_state{state=\"disk_full\"} 1\n\
         telpher_journal_problem{state=\"disk_full\",reason=\"no space left\"} 1\n",
    );
    let mut history = History::default();
    history.add(failed);
    let problem = problem(&history).unwrap();
    assert_eq!(problem, "journal disk_full: no space left");
}
