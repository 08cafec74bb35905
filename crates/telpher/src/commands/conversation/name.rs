//! Names of conversations: parsing, their HTTP routes, and their short form.

use model::Name;

use console::{Exit, Failure};

/// Parses a conversation's name.
pub(super) fn conversation_name(text: &str) -> Result<Name, Failure> {
    let is_conversation = |name: &Name| name.instance().is_none();
    match Name::parse(text) {
        Ok(name) if is_conversation(&name) => Ok(name),
        Ok(name) => {
            let message = format!("`{name}` is not the name of a conversation");
            Err(Failure::new(Exit::Usage, message).hint("write org/namespace/x, or x"))
        }
        Err(error) => Err(Failure::new(Exit::Usage, error).hint("write org/namespace/x, or x")),
    }
}

/// Returns the path prefix of a conversation's HTTP routes.
pub(super) fn path_of(name: &Name) -> String {
    let (org, namespace, id) = (name.org(), name.namespace(), name.agent());
    format!("/v1/{org}/{namespace}/conversations/{id}")
}

/// Returns the shortest form of a name that can be typed.
pub(super) fn short(name: &Name) -> &str {
    let name = name.as_str();
    name.strip_prefix("default/default/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_the_default_namespace_are_shortened() {
        for (text, expected, path) in [
            ("c-1", "c-1", "/v1/default/default/conversations/c-1"),
            ("a/b/c", "a/b/c", "/v1/a/b/conversations/c"),
        ] {
            let name = conversation_name(text).unwrap();
            assert_eq!((short(&name), &path_of(&name)[..]), (expected, path));
        }
    }

    #[test]
    fn an_instance_name_is_refused() {
        let failure = conversation_name("a/b/c/d").unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert_eq!(failure.errors[0].hints, ["write org/namespace/x, or x"]);
    }
}
