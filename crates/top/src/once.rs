//! The tables of views as text and as JSON.

use std::collections::BTreeSet;
use std::time::Duration;

use console::{Failure, utc};
use serde_json::{Map, Value, json};

use crate::ask::Node;
use crate::sample::History;
use crate::views::View;

/// The tables of views.
#[derive(Clone, Debug)]
pub struct Output {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: Value,
}

/// Takes two samples an interval apart, and returns the tables of the views that the node has.
pub(crate) async fn sample(
    node: &Node,
    views: &[View],
    interval: Duration,
) -> Result<Output, Failure> {
    let mut history = History::default();
    for pause in [Duration::ZERO, interval] {
        tokio::time::sleep(pause).await;
        let questions = views
            .iter()
            .filter(|view| view.is_present(history.now()))
            .flat_map(|view| view.questions());
        let questions = BTreeSet::from_iter(questions);
        history.add(node.sample(questions.into_iter().collect()).await?);
    }
    Ok(output(&history, views))
}

fn output(history: &History, views: &[View]) -> Output {
    let now = history.now();
    let (mut text, mut json, mut remarks) = (String::new(), Map::new(), Map::new());
    json.insert("at".to_owned(), json!(utc::format(now.unix_s)));
    let interval_s = history.interval_s();
    json.insert("interval_s".to_owned(), json!(interval_s));
    for view in views.iter().filter(|view| view.is_present(now)) {
        let mut table = view.table(history);
        table.sort(view.order());
        json.insert(view.name().to_owned(), table.json());
        if views.len() > 1 {
            text += &format!("{}:\n", view.title());
        }
        text += &table.lines();
        if let Some(remark) = table.remark {
            text += &format!("({})\n", console::output::one_line(&remark));
            remarks.insert(view.name().to_owned(), json!(remark));
        }
        if views.len() > 1 {
            text.push('\n');
        }
    }
    json.insert("remarks".to_owned(), Value::Object(remarks));
    Output {
        text,
        json: Value::Object(json),
    }
}
