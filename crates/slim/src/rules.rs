//! Who may subscribe to which names, and who may send to them.
//!
//! A rule is about a name or the beginning of one. What the longest covering rule says of an act
//! counts; where none covers a name, anybody may. Names are compared by their numbers, which is what
//! messages are routed by: the texts beside them say nothing.

use std::collections::HashMap;

use crate::name::{Prefix, hash};

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// To get what is sent to a name.
    Subscribe,
    /// To send to it.
    Send,
}

/// Whom a rule lets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Anybody.
    Anybody,
    /// Those of these names; none of them is nobody.
    Only(Vec<String>),
}

/// One to three components of a name, hashed.
type Scope = [Option<u64>; 3];

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    by_scope: HashMap<(Act, Scope), Who>,
}

impl Rules {
    /// Adds a rule about names that begin with these components; of more than three nothing is
    /// covered by those behind. One about the same names is replaced.
    pub fn add<'a>(&mut self, act: Act, begin: impl IntoIterator<Item = &'a str>, who: Who) {
        let mut scope = [None; 3];
        for (slot, component) in scope.iter_mut().zip(begin) {
            *slot = Some(hash(component));
        }
        self.by_scope.insert((act, scope), who);
    }

    /// Whether somebody of that name, empty for none, may do that.
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
    fn without_rules_anybody_may_do_anything() {
        let rules = Rules::default();
        assert!(rules.allow(Act::Subscribe, &agent(["a", "b", "c"]), ""));
    }

    #[test]
    fn the_longest_rule_that_covers_a_name_decides_about_its_act_alone() {
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
