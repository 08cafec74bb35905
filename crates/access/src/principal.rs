//! The principal: the proven identity of a client.

use std::fmt::Write as _;
use std::sync::Arc;

use model::Name;

use super::Pattern;
use super::pattern::is_system;
use crate::tokens::{Role, Token};
use model::SYSTEM_ORG;

/// The subject of clients without a name on a node that asks for no token.
const ANONYMOUS: &str = "default/default/anonymous";

/// The proven identity of a client: the name that is charged, halted and shown, and the names that
/// the client may use. Cheap to clone.
///
/// A client may claim a name when it connects. A claimed name that lies within the credential's
/// patterns becomes the principal's name; any other is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: Name,
    credential: Arc<Credential>,
}

#[derive(Debug, PartialEq, Eq)]
struct Credential {
    /// The credential as errors name it: "the token `pay`".
    title: String,
    /// The name of a client that claims none.
    name: Name,
    role: Role,
    scope: Scope,
    is_proven: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Scope {
    /// All names, those of the node itself, too.
    Node,
    /// All names but those of the node itself.
    Any,
    Within(Arc<[Pattern]>),
}

/// A principal may not use a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Forbidden {
    reason: String,
}

impl Principal {
    /// A client of a node that asks for no token: an administrator without a proven name.
    pub fn open() -> Self {
        Self::anonymous(Role::Admin)
    }

    /// A client without a proven name that may use every name.
    pub fn anonymous(role: Role) -> Self {
        Self::new("the client", name_of("anonymous"), role, Scope::Any, false)
    }

    /// A client that is let in without a token although the node asks for one: it may use no name.
    pub fn unknown() -> Self {
        let scope = Scope::Within(Arc::default());
        Self::new(
            "the client",
            name_of("anonymous"),
            Role::Agent,
            scope,
            false,
        )
    }

    /// A part of the node itself.
    pub fn node() -> Self {
        Self::new("the node", name_of("node"), Role::Admin, Scope::Node, true)
    }

    /// The bearer of a token.
    pub fn of_token(token: &Token) -> Self {
        let own = || name_of(&token.name);
        let (name, scope) = match &token.names {
            None => (own(), Scope::Any),
            Some(patterns) if patterns.is_empty() => {
                let name = own();
                let scope = Scope::Within([Pattern::exactly(&name)].into());
                (name, scope)
            }
            Some(patterns) => {
                let name = patterns[0].name_for(&token.name).unwrap_or_else(own);
                (name, Scope::Within(patterns.clone()))
            }
        };
        let title = format!("the token `{}`", token.name);
        Self::new(&title, name, token.role, scope, true)
    }

    /// A user that has proven its name by a password, a signed token or a certificate. A name that
    /// is not a Telpher name is shown as `default/default/anonymous` and may use no other.
    pub fn of_user(user: &str, role: Role) -> Self {
        let name = Name::parse(user)
            .ok()
            .filter(|name| name.org() != SYSTEM_ORG);
        let patterns = name.iter().map(Pattern::exactly).collect();
        let name = name.unwrap_or_else(|| name_of("anonymous"));
        let title = format!("the user `{user}`");
        Self::new(&title, name, role, Scope::Within(patterns), true)
    }

    fn new(title: &str, name: Name, role: Role, scope: Scope, is_proven: bool) -> Self {
        let credential = Credential {
            title: title.to_owned(),
            name: name.clone(),
            role,
            scope,
            is_proven,
        };
        Self {
            name,
            credential: Arc::new(credential),
        }
    }

    /// Returns the same client under a name that it claims; fails if it may not use the name.
    pub fn claim(&self, name: &Name) -> Result<Self, Forbidden> {
        self.check(name)?;
        Ok(Self {
            name: name.clone(),
            credential: self.credential.clone(),
        })
    }

    /// The name that is charged, halted and shown; with the instance, if the client claimed one.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// `org/namespace/agent`: the subject that is charged and halted.
    pub fn subject(&self) -> &str {
        self.name.base()
    }

    /// The credential's own name, which no claim changes. A halt of it stops the client, too.
    pub fn own_name(&self) -> &Name {
        &self.credential.name
    }

    /// The role that the credential grants.
    pub fn role(&self) -> Role {
        self.credential.role
    }

    /// Returns whether the client is an administrator.
    pub fn is_admin(&self) -> bool {
        self.credential.role == Role::Admin
    }

    /// Returns whether the client has shown a credential.
    pub fn is_proven(&self) -> bool {
        self.credential.is_proven
    }

    /// The patterns of the names that the client may use; `None` if it may use all but those of the
    /// node itself.
    pub fn patterns(&self) -> Option<&[Pattern]> {
        match &self.credential.scope {
            Scope::Within(patterns) if !self.is_admin() => Some(patterns),
            _ => None,
        }
    }

    /// Returns whether the client may speak, subscribe, take and delete under this name. An
    /// administrator may use every name but those of the node itself.
    pub fn may_use(&self, name: &Name) -> bool {
        self.may_use_subject(name.base())
    }

    /// Returns whether the client may use `org/namespace/agent`, given as text without an instance.
    pub fn may_use_subject(&self, base: &str) -> bool {
        match &self.credential.scope {
            Scope::Node => true,
            _ if is_system(base) => false,
            _ if self.is_admin() => true,
            Scope::Any => true,
            Scope::Within(patterns) => patterns.iter().any(|pattern| pattern.contains(base)),
        }
    }

    /// Checks [`may_use`](Self::may_use) and says why not.
    pub fn check(&self, name: &Name) -> Result<(), Forbidden> {
        self.check_subject(name.base())
    }

    /// Checks [`may_use_subject`](Self::may_use_subject) and says why not.
    pub fn check_subject(&self, base: &str) -> Result<(), Forbidden> {
        if self.may_use_subject(base) {
            return Ok(());
        }
        let Credential { title, scope, .. } = &*self.credential;
        let mut reason = String::new();
        // Writing to a string cannot fail.
        let _ = match scope {
            _ if is_system(base) => {
                write!(reason, "names of `{SYSTEM_ORG}/` belong to the node itself")
            }
            Scope::Within(patterns) if !patterns.is_empty() => {
                let names: Vec<_> = patterns.iter().map(ToString::to_string).collect();
                let names = names.join(", ");
                write!(
                    reason,
                    "{title} may not use the name `{base}` (allowed: {names})"
                )
            }
            _ => write!(reason, "{title} may not use the name `{base}`"),
        };
        Err(Forbidden { reason })
    }
}

fn name_of(agent: &str) -> Name {
    let name = Name::parse(&format!("default/default/{agent}"));
    // A token's name is a valid part of a name.
    name.unwrap_or_else(|_| Name::parse(ANONYMOUS).unwrap_or_else(|error| unreachable!("{error}")))
}
