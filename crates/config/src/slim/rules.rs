//! Access rules of the SLIM listener: which clients may subscribe to a name or send to it.

use std::fmt;

use crate::value::{NONE, Value};

/// The operation that a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Subscribing to a name.
    Subscribe,
    /// Sending to a name.
    Send,
}

/// A rule, as it is written: `subscribe acme/pay billing,ops`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The operation that the rule allows.
    pub act: Act,
    /// The first one to three components of the names that the rule covers.
    pub begin: Vec<String>,
    /// The clients that the rule allows; `None` is every client.
    pub who: Option<Vec<String>>,
}

/// The list of rules; it may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(pub Vec<Rule>);

/// The word for every client.
const ANYBODY: &str = "*";

/// The word for no client.
const NOBODY: &str = "nobody";

impl Value for Rules {
    const FORM: &'static str = "RULES";

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == NONE {
            return Ok(Self::default());
        }
        let lines = text.split([';', '\n']).map(str::trim);
        let rules: Result<Vec<_>, _> = lines.filter(|line| !line.is_empty()).map(rule).collect();
        let rules = rules?;
        for (index, rule) in rules.iter().enumerate() {
            let is_same = |other: &Rule| (other.act, &other.begin) == (rule.act, &rule.begin);
            if rules[..index].iter().any(is_same) {
                return Err(format!("`{rule}` is the second rule for these names"));
            }
        }
        Ok(Self(rules))
    }

    fn print(&self) -> String {
        match self.0.is_empty() {
            true => NONE.to_owned(),
            false => {
                let rules: Vec<_> = self.0.iter().map(Rule::to_string).collect();
                rules.join("; ")
            }
        }
    }
}

fn rule(line: &str) -> Result<Rule, String> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [act, begin, who] = words[..] else {
        return Err(format!(
            "`{line}` is not a rule: write `subscribe acme/pay billing,ops`"
        ));
    };
    let act = match act {
        "subscribe" => Act::Subscribe,
        "send" => Act::Send,
        _ => {
            return Err(format!(
                "`{line}` begins with `{act}`, which is neither `subscribe` nor `send`"
            ));
        }
    };
    let begin: Vec<_> = begin.split('/').map(str::to_owned).collect();
    if begin.len() > 3 || begin.iter().any(String::is_empty) {
        return Err(format!(
            "`{line}`: write one to three parts of a name, like `org/namespace/agent`"
        ));
    }
    let who = match who {
        ANYBODY => None,
        NOBODY => Some(Vec::new()),
        names => Some(names.split(',').map(str::to_owned).collect()),
    };
    if who.iter().flatten().any(String::is_empty) {
        return Err(format!("`{line}`: the list of clients has an empty name"));
    }
    Ok(Rule { act, begin, who })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let act = match self.act {
            Act::Subscribe => "subscribe",
            Act::Send => "send",
        };
        let who = match &self.who {
            None => ANYBODY.to_owned(),
            Some(names) if names.is_empty() => NOBODY.to_owned(),
            Some(names) => names.join(","),
        };
        write!(f, "{act} {} {who}", self.begin.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_access_rules_parse_back() {
        let text = "subscribe acme/pay billing,ops; send acme/pay/public *; send acme nobody";
        let rules = Rules::parse(text).unwrap();
        assert_eq!(rules.0.len(), 3);
        assert_eq!(rules.print(), text);
        let lines =
            "\n subscribe  acme/pay billing,ops\nsend acme/pay/public *\n send acme nobody\n";
        assert_eq!(Rules::parse(lines).unwrap(), rules);
        assert_eq!(Rules::parse(NONE).unwrap().print(), NONE);
    }

    #[test]
    fn invalid_access_rules_are_refused_with_the_reason() {
        for (text, word) in [
            ("subscribe acme", "is not a rule"),
            ("listen acme *", "neither"),
            ("send a/b/c/d *", "one to three parts"),
            ("send a//c *", "one to three parts"),
            ("send acme a,,b", "empty name"),
            ("send acme a; send acme b", "the second rule"),
        ] {
            let reason = Rules::parse(text).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
    }
}
