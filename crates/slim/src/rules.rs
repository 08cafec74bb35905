//! Authorization rules for names: subscribing and sending.
//!
//! A rule covers a name or a prefix of names. The most specific rule that covers a name decides;
//! without one the action is allowed. Names are compared by their hashes, which also decide
//! routing; their texts are ignored.

use std::collections::HashMap;

use crate::name::{Prefix, hash};

/// Action that a rule controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Subscribe to a name.
    Subscribe,
    /// Send to a name.
    Send,
}

/// Principals that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Every client.
    Anybody,
    /// Clients authenticated under one of these names; an empty list allows none.
    Only(Vec<String>),
}

/// One to three hashed components of a name.
type Scope = [Option<u64>; 3];

/// Set of authorization rules.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    by_scope: HashMap<(Act, Scope), Who>,
}

impl Rules {
    /// Adds a rule for names with these first components; components after the third are ignored.
    /// Replaces a rule for the same components.
    pub fn add<'a>(&mut self, act: Act, begin: impl IntoIterator<Item = &'a str>, who: Who) {
        let mut scope = [None; 3];
        for (slot, component) in scope.iter_mut().zip(begin) {
            *slot = Some(hash(component));
        }
        self.by_scope.insert((act, scope), who);
    }

    /// True if the client authenticated as `name` (empty for none) may perform the action.
    pub fn allow(&self, act: Act, agent: &Prefix, name: &str) -> bool {
        if self.by_scope.is_empty() {
            return true;
        }
        let [org, namespace, agent] = agent.map(Some);
        let scopes = [
            [org, namespace, agent],
            [org, namespace, None],
            [org, None, None],
        ];
        let mut covering = scopes
            .iter()
            .filter_map(|scope| self.by_scope.get(&(act, *scope)));
        match covering.next() {
            None | Some(Who::Anybody) => true,
            Some(Who::Only(names)) => !name.is_empty() && names.iter().any(|it| it == name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    fn agent(texts: [&str; 3]) -> Prefix {
        Name::new(texts, Some(1)).encoded.prefix
    }

    fn only(names: &[&str]) -> Who {
        Who::Only(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn without_rules_every_action_is_allowed() {
        let rules = Rules::default();
        assert!(rules.allow(Act::Subscribe, &agent(["a", "b", "c"]), ""));
    }

    #[test]
    fn the_longest_matching_rule_of_an_action_decides() {
        let mut rules = Rules::default();
        rules.add(Act::Subscribe, ["acme"], only(&["ops"]));
        rules.add(Act::Subscribe, ["acme", "pay"], only(&["billing"]));
        rules.add(Act::Subscribe, ["acme", "pay", "public"], Who::Anybody);
        rules.add(Act::Send, ["acme", "pay"], only(&[]));
        let may = |texts, name| rules.allow(Act::Subscribe, &agent(texts), name);
        assert!(may(["acme", "web", "x"], "ops"));
        assert!(!may(["acme", "web", "x"], "billing"));
        assert!(!may(["acme", "pay", "x"], "ops"));
        assert!(may(["acme", "pay", "x"], "billing"));
        assert!(may(["acme", "pay", "public"], ""));
        assert!(may(["other", "pay", "x"], ""));
        assert!(!may(["acme", "web", "x"], ""));
        assert!(!rules.allow(Act::Send, &agent(["acme", "pay", "public"]), "ops"));
        assert!(rules.allow(Act::Send, &agent(["acme", "web", "x"]), ""));
    }
}
