//! `telpher conversation list` and `inbox`.

use console::output::{self, table};
use console::url::encode;
use console::{Environment, Exit, Failure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::http::{HttpError, HttpRequest, Node, print_answer, query};
use super::render;
use crate::commands::agents::{rows, text};
use crate::commands::target::{NodeArgs, block_on};

const LIST_EXAMPLES: &str = "\
Examples:
  telpher conversation list                            those of default/default, most recent first
  telpher conversation list --in acme/support --metadata user=alice --metadata tier=gold
  telpher conversation list --archived any --limit 1000";

const INBOX_EXAMPLES: &str = "\
Examples:
  telpher conversation inbox alice                     conversations in which alice takes part
  telpher conversation inbox alice --unread            only those with unread messages
  telpher conversation inbox alice --in acme/support";

/// The arguments of commands that read lists in pages.
#[derive(Debug, clap::Args)]
struct Paging {
    /// Namespace: org/namespace
    #[arg(
        long = "in",
        value_name = "NAMESPACE",
        default_value = "default/default"
    )]
    namespace: String,

    /// Archived conversations: false (exclude), true (only these) or any (include)
    #[arg(long, value_name = "WHICH", default_value = "false", default_missing_value = "true", num_args = 0..=1)]
    archived: String,

    /// Maximum number of conversations
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// Only conversations with this value in their metadata; if repeated, all must match
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = INBOX_EXAMPLES)]
pub(crate) struct InboxArgs {
    /// Participant: named in the settings, author of a message, or with a read mark
    participant: String,

    /// Only conversations with unread messages
    #[arg(long)]
    unread: bool,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    node: NodeArgs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Maximum number of entries in a page.
const PAGE: usize = 1_000;

/// A page of the node's answer, with the entries as raw JSON.
#[derive(Deserialize)]
struct Page {
    #[serde(alias = "conversations", alias = "lines")]
    entries: Vec<Box<RawValue>>,
    next: Option<String>,
}

pub(super) fn run(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    let filter = args.metadata.iter();
    let filter = filter.map(|(key, value)| (format!("metadata.{key}"), value.clone()));
    let request = ListRequest {
        path: "conversations".to_owned(),
        filter: filter.collect(),
        paging: &args.paging,
        node: &args.node,
    };
    #[derive(Serialize)]
    struct Document {
        conversations: Vec<Box<RawValue>>,
    }
    block_on(async {
        let conversations = request.entries(environment).await?;
        let document = document(&Document { conversations })?;
        print_answer(args.node.format, &document, |value| {
            let line = |it: &Value| {
                let keys = ["id", "head_seq", "active_at", "metadata"];
                keys.map(|key| render::brief(&it[key]))
            };
            let lines: Vec<_> = rows(value, "conversations").iter().map(line).collect();
            table(["ID", "HEAD", "ACTIVE", "METADATA"], &lines)
        })
    })
}

pub(super) fn run_inbox(args: &InboxArgs, environment: &Environment) -> Result<(), Failure> {
    let unread = args
        .unread
        .then(|| ("unread".to_owned(), "true".to_owned()));
    let request = ListRequest {
        path: format!("inbox/{}", encode(&args.participant)),
        filter: unread.into_iter().collect(),
        paging: &args.paging,
        node: &args.node,
    };
    #[derive(Serialize)]
    struct Document {
        lines: Vec<Box<RawValue>>,
    }
    block_on(async {
        let lines = request.entries(environment).await?;
        let document = document(&Document { lines })?;
        print_answer(args.node.format, &document, |value| {
            let line = |it: &Value| {
                let last = &it["last"];
                let who = [&last["from"], &last["role"]];
                let who = who.into_iter().find(|who| who.is_string());
                [
                    text(&it["id"]),
                    text(&it["unread"]),
                    text(&it["head_seq"]),
                    who.map_or_else(|| "-".to_owned(), text),
                    render::brief(&last["text"]),
                ]
            };
            let lines: Vec<_> = rows(value, "lines").iter().map(line).collect();
            table(["ID", "UNREAD", "HEAD", "LAST", "TEXT"], &lines)
        })
    })
}

fn document(value: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value).map_err(|error| Failure::new(Exit::Failed, error))
}

/// A request for a list that is answered in pages.
struct ListRequest<'a> {
    path: String,
    filter: Vec<(String, String)>,
    paging: &'a Paging,
    node: &'a NodeArgs,
}

impl ListRequest<'_> {
    /// Reads pages until the limit or the end is reached.
    async fn entries(&self, environment: &Environment) -> Result<Vec<Box<RawValue>>, Failure> {
        let node = Node::connect(&self.node.target, environment).await?;
        let (mut entries, mut after) = (Vec::new(), None);
        while entries.len() < self.paging.limit {
            let left = self.paging.limit - entries.len();
            let page = self.page(&node, left.min(PAGE), after).await;
            let page = page.map_err(|error| error.report(self.node.format, None))?;
            entries.extend(page.entries);
            after = page.next;
            if after.is_none() {
                return Ok(entries);
            }
        }
        output::note("there are more entries: --limit N shows more");
        Ok(entries)
    }

    async fn page(
        &self,
        node: &Node,
        limit: usize,
        after: Option<String>,
    ) -> Result<Page, HttpError> {
        let mut pairs: Vec<(&str, Option<String>)> = vec![
            ("archived", Some(self.paging.archived.clone())),
            ("limit", Some(limit.to_string())),
            ("after", after),
        ];
        let filter = self.filter.iter();
        pairs.extend(filter.map(|(key, value)| (&key[..], Some(value.clone()))));
        let path = format!(
            "/v1/{}/{}{}",
            self.paging.namespace,
            self.path,
            query(&pairs)
        );
        let answer = node.ask(&HttpRequest::get(path)).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            let message = format!("the node's answer is not a page: {error}");
            let failure = Failure::new(Exit::Failed, message);
            HttpError::Local(failure.hint("compare the versions of the command and the node"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metadata_filter_needs_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("=b").is_err());
        assert!(pair("a").is_err());
    }

    #[test]
    fn pages_of_both_kinds_are_parsed() {
        for text in [
            r#"{"conversations":[{"a":1.0}],"next":"x"}"#,
            r#"{"lines":[{"a":1.0}]}"#,
        ] {
            let page: Page = serde_json::from_str(text).unwrap();
            assert_eq!(page.entries[0].get(), r#"{"a":1.0}"#);
        }
    }
}
