//! Views: samples as tables.

mod agents;
mod cluster;
mod mailboxes;
mod node;
mod quotas;
mod topics;

use crate::sample::{History, Question, Sample};
use crate::table::{Order, Row, Table};

pub(crate) use node::{problem, summary};

/// A view of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// The agents with their instances, mailboxes and denied takes.
    Agents,
    /// The topics.
    Topics,
    /// The consumer groups.
    Groups,
    /// The mailboxes with messages.
    Mailboxes,
    /// The limits, and the subjects of takes.
    Quotas,
    /// The counters and gauges of the node.
    Node,
    /// The members of the cluster.
    Cluster,
}

/// The details of one row of a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// The instances of an agent.
    Agent(String),
    /// The partitions of a topic.
    Topic(String),
    /// The partitions of a consumer group.
    Group(String),
    /// The messages of a mailbox.
    Mailbox(String),
    /// The limits of a subject.
    Subject(String),
}

impl View {
    /// Every view, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Agents,
        Self::Topics,
        Self::Groups,
        Self::Mailboxes,
        Self::Quotas,
        Self::Node,
        Self::Cluster,
    ];

    /// Returns the name, as the command line and JSON have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Topics => "topics",
            Self::Groups => "groups",
            Self::Mailboxes => "mailboxes",
            Self::Quotas => "quotas",
            Self::Node => "node",
            Self::Cluster => "cluster",
        }
    }

    /// Returns the view of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|view| view.name() == name)
    }

    /// Returns the head of its tab.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Topics => "Topics",
            Self::Groups => "Groups",
            Self::Mailboxes => "Mailboxes",
            Self::Quotas => "Quotas",
            Self::Node => "Node",
            Self::Cluster => "Cluster",
        }
    }

    /// Returns the questions whose answers the view needs.
    pub(crate) fn questions(self) -> Vec<Question> {
        match self {
            Self::Agents => vec![
                Question::Agents,
                Question::Connections,
                Question::Backlog,
                Question::Denied,
            ],
            Self::Topics => vec![Question::Topics, Question::Groups],
            Self::Groups => vec![Question::Groups],
            Self::Mailboxes => vec![Question::Backlog, Question::Agents],
            Self::Quotas => vec![Question::Denied, Question::Taken],
            Self::Node => Vec::new(),
            Self::Cluster => vec![Question::Cluster],
        }
    }

    /// Returns the table of the view.
    pub(crate) fn table(self, history: &History) -> Table {
        let table = match self {
            Self::Agents => agents::agents(history),
            Self::Topics => topics::topics(history),
            Self::Groups => topics::groups(history),
            Self::Mailboxes => mailboxes::mailboxes(history),
            Self::Quotas => quotas::quotas(history),
            Self::Node => node::node(history),
            Self::Cluster => cluster::cluster(history),
        };
        remarked(table, &self.questions(), history.now())
    }

    /// Returns the order of the rows before one is chosen.
    pub(crate) fn order(self) -> Order {
        let (column, is_descending) = match self {
            // By messages that wait.
            Self::Agents => (4, true),
            // By records per second.
            Self::Topics => (2, true),
            // By lag.
            Self::Groups => (4, true),
            // By messages.
            Self::Mailboxes => (1, true),
            // By denied takes per second.
            Self::Quotas => (4, true),
            Self::Node | Self::Cluster => (0, false),
        };
        Order {
            column,
            is_descending,
        }
    }

    /// Returns the details that a row has.
    pub(crate) fn detail(self, row: &Row) -> Option<Detail> {
        let key = row.key.clone();
        match self {
            Self::Agents => Some(Detail::Agent(key)),
            Self::Topics => Some(Detail::Topic(key)),
            Self::Groups => Some(Detail::Group(key)),
            Self::Mailboxes => Some(Detail::Mailbox(key)),
            Self::Quotas => quotas::subject(&key).map(Detail::Subject),
            Self::Node | Self::Cluster => None,
        }
    }

    /// True if the node has something to show in the view.
    pub(crate) fn is_present(self, sample: &Sample) -> bool {
        self != Self::Cluster || sample.metrics.sum("telpher_members").is_some()
    }
}

impl Detail {
    /// Returns the head.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Agent(key) => format!("instances of {}", agents::name(key)),
            Self::Topic(name) => format!("partitions of topic {name}"),
            Self::Group(name) => format!("partitions of group {name}"),
            Self::Mailbox(name) => format!("messages of {name}"),
            Self::Subject(name) => format!("limits of {name}"),
        }
    }

    /// Returns the questions whose answers the details need.
    pub(crate) fn questions(&self) -> Vec<Question> {
        match self {
            Self::Agent(_) => vec![Question::Agents, Question::Connections],
            Self::Topic(name) => vec![Question::Topic(name.clone()), Question::Groups],
            Self::Group(_) => vec![Question::Groups],
            Self::Mailbox(name) => vec![Question::Messages(name.clone())],
            Self::Subject(name) => vec![Question::Subject(name.clone())],
        }
    }

    /// Returns the table of the details.
    pub(crate) fn table(&self, history: &History) -> Table {
        let table = match self {
            Self::Agent(key) => agents::instances(history, key),
            Self::Topic(name) => topics::partitions(history, name),
            Self::Group(name) => topics::group_partitions(history, name),
            Self::Mailbox(name) => mailboxes::messages(history, name),
            Self::Subject(name) => quotas::limits(history, name),
        };
        remarked(table, &self.questions(), history.now())
    }

    /// Returns the order of the rows before one is chosen.
    pub(crate) fn order(&self) -> Order {
        let (column, is_descending) = match self {
            Self::Group(_) => (2, true),
            _ => (0, false),
        };
        Order {
            column,
            is_descending,
        }
    }
}

/// Adds a remark about questions without answers and about rows that are left out.
fn remarked(mut table: Table, questions: &[Question], sample: &Sample) -> Table {
    let mut remarks = Vec::new();
    for question in questions {
        if let Some(Err(reason)) = sample.answers.get(question) {
            remarks.push(reason.clone());
        }
    }
    let omitted: u64 = questions.iter().take(1).map(|it| sample.omitted(it)).sum();
    if omitted > 0 {
        remarks.push(format!("{omitted} more with smaller numbers"));
    }
    remarks.dedup();
    if !remarks.is_empty() {
        table.remark = Some(remarks.join("; "));
    }
    table
}

#[cfg(test)]
mod tests;
