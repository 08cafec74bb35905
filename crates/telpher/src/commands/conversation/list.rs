//! `telpher conversation list` and `inbox`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ask::{Node, Question, Trouble, encode, query};
use super::{print_answer, render};
use crate::commands::agents::{rows, text};
use crate::commands::target::{Target, block_on};
use crate::failure::{Exit, Failure};
use crate::output::{self, Format, table};
use crate::settings::Environment;

const LIST_EXAMPLES: &str = "\
Examples:
  telpher conversation list                            of default/default, the newest activity first
  telpher conversation list --in acme/support --metadata user=alice --metadata tier=gold
  telpher conversation list --archived any --limit 1000";

const INBOX_EXAMPLES: &str = "\
Examples:
  telpher conversation inbox alice                     what alice takes part in
  telpher conversation inbox alice --unread            where she has something to read
  telpher conversation inbox alice --in acme/support";

/// A page that is asked for.
#[derive(Debug, clap::Args)]
struct Paging {
    /// The namespace: org/namespace
    #[arg(
        long = "in",
        value_name = "NAMESPACE",
        default_value = "default/default"
    )]
    namespace: String,

    /// Archived ones too: false, true (those and no others) or any
    #[arg(long, value_name = "WHICH", default_value = "false", default_missing_value = "true", num_args = 0..=1)]
    archived: String,

    /// Conversations, at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Debug, clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArgs {
    /// Those whose metadata has this value under this key; several must all hold
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
#[command(after_help = INBOX_EXAMPLES)]
pub(crate) struct InboxArgs {
    /// The participant: whoever is named in settings, wrote a message or has a read mark
    who: String,

    /// Those with something unread, and no others
    #[arg(long)]
    unread: bool,

    #[command(flatten)]
    paging: Paging,

    #[command(flatten)]
    format: Format,

    #[command(flatten)]
    target: Target,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let pair = pair.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "write KEY=VALUE".to_owned())
}

/// Entries of a page, at most.
const PAGE: usize = 1_000;

/// A page as the node answers it, with each entry as it is.
#[derive(Deserialize)]
struct Page {
    #[serde(alias = "conversations", alias = "lines")]
    entries: Vec<Box<RawValue>>,
    next: Option<String>,
}

pub(super) fn run(args: &ListArgs, environment: &Environment) -> Result<(), Failure> {
    let filter = args.metadata.iter();
    let filter = filter.map(|(key, value)| (format!("metadata.{key}"), value.clone()));
    let asked = Asked {
        what: "conversations".to_owned(),
        filter: filter.collect(),
        paging: &args.paging,
        format: args.format,
    };
    #[derive(Serialize)]
    struct Document {
        conversations: Vec<Box<RawValue>>,
    }
    block_on(async {
        let conversations = asked.entries(&args.target, environment).await?;
        let document = document(&Document { conversations })?;
        print_answer(args.format, &document, |value| {
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
    let asked = Asked {
        what: format!("inbox/{}", encode(&args.who)),
        filter: unread.into_iter().collect(),
        paging: &args.paging,
        format: args.format,
    };
    #[derive(Serialize)]
    struct Document {
        lines: Vec<Box<RawValue>>,
    }
    block_on(async {
        let lines = asked.entries(&args.target, environment).await?;
        let document = document(&Document { lines })?;
        print_answer(args.format, &document, |value| {
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

/// Whatever comes in pages.
struct Asked<'a> {
    what: String,
    filter: Vec<(String, String)>,
    paging: &'a Paging,
    format: Format,
}

impl Asked<'_> {
    /// Page after page, as many entries as are wanted.
    async fn entries(
        &self,
        target: &Target,
        environment: &Environment,
    ) -> Result<Vec<Box<RawValue>>, Failure> {
        let node = Node::connect(target, environment).await?;
        let (mut entries, mut after) = (Vec::new(), None);
        while entries.len() < self.paging.limit {
            let left = self.paging.limit - entries.len();
            let page = self.page(&node, left.min(PAGE), after).await;
            let page = page.map_err(|trouble| trouble.tell(self.format, None))?;
            entries.extend(page.entries);
            after = page.next;
            if after.is_none() {
                return Ok(entries);
            }
        }
        output::note("there are more: --limit N shows more of them");
        Ok(entries)
    }

    async fn page(
        &self,
        node: &Node,
        limit: usize,
        after: Option<String>,
    ) -> Result<Page, Trouble> {
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
            self.what,
            query(&pairs)
        );
        let answer = node.ask(&Question::get(path)).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            let message = format!("the node's answer is not a page: {error}");
            let failure = Failure::new(Exit::Failed, message);
            Trouble::Told(failure.hint("compare the versions of the two sides"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_key() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("=b").is_err());
        assert!(pair("a").is_err());
    }

    #[test]
    fn a_page_is_one_of_either_kind() {
        for text in [
            r#"{"conversations":[{"a":1.0}],"next":"x"}"#,
            r#"{"lines":[{"a":1.0}]}"#,
        ] {
            let page: Page = serde_json::from_str(text).unwrap();
            assert_eq!(page.entries[0].get(), r#"{"a":1.0}"#);
        }
    }
}
