//! Descriptions of agents: what an agent does, and the methods that it answers.
//!
//! An instance describes its agent when it subscribes, and the description lasts as long as the
//! subscription. Instances of one agent mostly have the same description, so equal ones are stored
//! once.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Maximum size of a description, in bytes.
pub const SIZE_MAX: usize = 128 << 10;

/// Maximum number of methods of a description.
pub const METHODS_MAX: usize = 256;

/// Maximum size of all different descriptions of a node, in bytes.
const TOTAL_MAX: usize = 64 << 20;

/// A description of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Description {
    /// Version of the agent; empty for none.
    pub version: String,
    /// Purpose of the agent.
    pub text: String,
    /// The methods, in the order of the agent.
    pub methods: Vec<DescribedMethod>,
}

/// A method of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DescribedMethod {
    /// Name; empty for plain messages.
    pub name: String,
    /// True if it answers with items.
    pub is_streamed: bool,
    /// Purpose of the method.
    pub text: String,
    /// JSON Schema of the body of a request, as the agent wrote it; empty for none.
    pub input: String,
    /// JSON Schema of the answer or of one item, as the agent wrote it; empty for none.
    pub output: String,
}

/// The reason why a description is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// The description is too large.
    #[error("the description of the agent has {size} bytes (limit {SIZE_MAX})")]
    TooLarge {
        /// The size in bytes.
        size: usize,
    },
    /// The description has too many methods.
    #[error("the description of the agent has {count} methods (limit {METHODS_MAX})")]
    TooManyMethods {
        /// The number of methods.
        count: usize,
    },
    /// Two methods have the same name.
    #[error("the description of the agent has two methods `{name}`")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The node has no room.
    #[error("the descriptions of all agents of this node are too large (limit {TOTAL_MAX} bytes)")]
    NoRoom,
}

impl Description {
    /// Returns the size in bytes.
    fn size(&self) -> usize {
        let of_method = |method: &DescribedMethod| {
            let texts = [&method.name, &method.text, &method.input, &method.output];
            texts.iter().map(|text| text.len()).sum::<usize>()
        };
        let methods = self.methods.iter().map(of_method).sum::<usize>();
        self.version.len() + self.text.len() + methods
    }

    fn check(&self) -> Result<(), DescriptionError> {
        let size = self.size();
        if size > SIZE_MAX {
            return Err(DescriptionError::TooLarge { size });
        }
        let count = self.methods.len();
        if count > METHODS_MAX {
            return Err(DescriptionError::TooManyMethods { count });
        }
        let mut names = HashSet::new();
        match self.methods.iter().find(|it| !names.insert(&it.name)) {
            None => Ok(()),
            Some(method) => Err(DescriptionError::Duplicate {
                name: method.name.clone(),
            }),
        }
    }
}

/// The different descriptions of a node.
#[derive(Debug, Default)]
pub(crate) struct Descriptions(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    all: HashSet<Arc<Description>>,
    size: usize,
    /// Number of descriptions at which those that no subscription has are removed.
    sweep_at: usize,
}

/// Number of descriptions below which none is removed.
const SWEEP_MIN: usize = 64;

impl Descriptions {
    /// Stores a description, and returns it or an equal one.
    pub(crate) fn store(
        &self,
        description: Description,
    ) -> Result<Arc<Description>, DescriptionError> {
        description.check()?;
        let mut stored = self.0.lock();
        if let Some(known) = stored.all.get(&description) {
            return Ok(known.clone());
        }
        let size = description.size();
        if stored.all.len() >= stored.sweep_at.max(SWEEP_MIN) || stored.size + size > TOTAL_MAX {
            stored.sweep();
        }
        if stored.size + size > TOTAL_MAX {
            return Err(DescriptionError::NoRoom);
        }
        let description = Arc::new(description);
        stored.size += size;
        stored.all.insert(description.clone());
        Ok(description)
    }
}

impl Stored {
    /// Removes the descriptions that no subscription has.
    fn sweep(&mut self) {
        self.all.retain(|it| Arc::strong_count(it) > 1);
        self.size = self.all.iter().map(|it| it.size()).sum();
        self.sweep_at = 2 * self.all.len();
    }
}

/// Compares versions as Semantic Versioning does, and other texts in a similar way: parts between
/// dots are compared as numbers if both are, a pre-release comes before its release, what follows a
/// `+` does not count, and no version comes before any.
pub(crate) fn compare_versions(one: &str, other: &str) -> Ordering {
    if one.is_empty() || other.is_empty() {
        return other.is_empty().cmp(&one.is_empty());
    }
    let (one_core, one_pre) = parts(one);
    let (other_core, other_pre) = parts(other);
    compare_parts(one_core, other_core).then_with(|| match (one_pre, other_pre) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(one), Some(other)) => compare_parts(one, other),
    })
}

/// Returns the release and the pre-release of a version.
fn parts(version: &str) -> (&str, Option<&str>) {
    let version = version.split('+').next().unwrap_or_default();
    match version.split_once('-') {
        Some((core, pre)) => (core, Some(pre)),
        None => (version, None),
    }
}

fn compare_parts(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let (one, other) = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(other)) => (one, other),
        };
        let ordering = match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number_and_pre_release() {
        let ordered = [
            "",
            "0.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.10",
            "1.2",
            "10",
            "v2",
        ];
        for (index, one) in ordered.iter().enumerate() {
            for (other_index, other) in ordered.iter().enumerate() {
                let expected = index.cmp(&other_index);
                assert_eq!(compare_versions(one, other), expected, "{one} {other}");
            }
        }
        assert_eq!(compare_versions("1.0+a", "1.0+b"), Ordering::Equal);
    }

    fn description(text: &str) -> Description {
        Description {
            text: text.to_owned(),
            ..Description::default()
        }
    }

    #[test]
    fn equal_descriptions_are_stored_once_and_unused_ones_make_room() {
        let descriptions = Descriptions::default();
        let first = descriptions.store(description("x")).unwrap();
        assert!(Arc::ptr_eq(
            &first,
            &descriptions.store(description("x")).unwrap()
        ));
        let large = |index: usize| format!("{index:07}{}", "y".repeat(SIZE_MAX - 7));
        let count = TOTAL_MAX / SIZE_MAX - 1;
        let held: Vec<_> = (0..count)
            .map(|index| descriptions.store(description(&large(index))).unwrap())
            .collect();
        let next = description(&large(count));
        // One byte is that of the first.
        let refused = descriptions.store(next.clone()).unwrap_err();
        assert_eq!(refused, DescriptionError::NoRoom);
        drop(held);
        descriptions.store(next).unwrap();
        assert_eq!(descriptions.0.lock().all.len(), 2);
    }

    #[test]
    fn descriptions_above_a_limit_are_refused() {
        let descriptions = Descriptions::default();
        let refused = descriptions.store(description(&"x".repeat(SIZE_MAX + 1)));
        let size = SIZE_MAX + 1;
        assert_eq!(refused, Err(DescriptionError::TooLarge { size }));
        let methods = |count: usize, name: fn(usize) -> String| Description {
            methods: (0..count)
                .map(|index| DescribedMethod {
                    name: name(index),
                    ..DescribedMethod::default()
                })
                .collect(),
            ..Description::default()
        };
        let count = METHODS_MAX + 1;
        let refused = descriptions.store(methods(count, |index| index.to_string()));
        assert_eq!(refused, Err(DescriptionError::TooManyMethods { count }));
        let refused = descriptions.store(methods(2, |_| "add".to_owned()));
        let name = "add".to_owned();
        assert_eq!(refused, Err(DescriptionError::Duplicate { name }));
    }
}
