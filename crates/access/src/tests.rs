use model::Name;

use super::{Pattern, PatternError, Principal};
use crate::tokens::{ENTROPY_SIZE, Role, Token};

fn token(name: &str, role: Role, names: Option<&[&str]>) -> Token {
    let parse = |text: &&str| Pattern::parse(text).unwrap();
    let names = names.map(|names| names.iter().map(parse).collect());
    Token::generate(name, role, names, 0, &[1; ENTROPY_SIZE]).1
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

#[test]
fn principals_use_the_names_that_their_credential_allows() {
    use Role::{Admin, Agent};
    let of = |role, names: Option<&[&str]>| Principal::of_token(&token("pay", role, names));
    let cases = [
        // A token without patterns has its own name only.
        (of(Agent, Some(&[])), "default/default/pay", true),
        (of(Agent, Some(&[])), "default/default/pay/i-1", true),
        (of(Agent, Some(&[])), "default/default/other", false),
        (of(Agent, Some(&[])), "acme/pay/one", false),
        // Patterns: whole parts, several of them.
        (of(Agent, Some(&["acme/pay/*"])), "acme/pay/one", true),
        (of(Agent, Some(&["acme/pay/*"])), "acme/pay/one/i-7", true),
        (of(Agent, Some(&["acme/pay/*"])), "acme/payroll/one", false),
        (
            of(Agent, Some(&["acme/pay/*"])),
            "default/default/pay",
            false,
        ),
        (of(Agent, Some(&["acme/*/bot"])), "acme/x/bot", true),
        (of(Agent, Some(&["acme/*/bot"])), "acme/x/bots", false),
        (of(Agent, Some(&["a/b/c", "d/*/*"])), "d/e/f", true),
        (of(Agent, Some(&["bot"])), "default/default/bot", true),
        // Free naming, but not the node's own names.
        (of(Agent, Some(&["*/*/*"])), "acme/pay/one", true),
        (of(Agent, Some(&["*/*/*"])), "telpher/system/node", false),
        // Tokens of earlier versions.
        (of(Agent, None), "acme/pay/one", true),
        (of(Agent, None), "telpher/system/node", false),
        // Administrators.
        (of(Admin, Some(&[])), "acme/pay/one", true),
        (of(Admin, Some(&[])), "telpher/system/node", false),
        // A node without tokens, users, and the node itself.
        (Principal::open(), "acme/pay/one", true),
        (Principal::open(), "telpher/system/node", false),
        (Principal::unknown(), "default/default/anonymous", false),
        (
            Principal::of_user("ann", Agent),
            "default/default/ann",
            true,
        ),
        (
            Principal::of_user("ann", Agent),
            "default/default/bob",
            false,
        ),
        (Principal::of_user("acme/x/ann", Agent), "acme/x/ann", true),
        (
            Principal::of_user("telpher/x/ann", Agent),
            "telpher/x/ann",
            false,
        ),
        (Principal::node(), "telpher/system/node", true),
    ];
    for (principal, text, expected) in cases {
        let claimed = name(text);
        assert_eq!(
            principal.may_use(&claimed),
            expected,
            "{principal:?} {text}"
        );
        match principal.claim(&claimed) {
            Ok(named) if expected => {
                assert_eq!(named.name(), &claimed);
                assert_eq!(named.own_name(), principal.name());
            }
            Err(_) if !expected => {}
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_principal_without_a_claim_has_its_credentials_name() {
    let of = |names: Option<&[&str]>| Principal::of_token(&token("pay", Role::Agent, names));
    let cases = [
        (of(None), "default/default/pay"),
        (of(Some(&[])), "default/default/pay"),
        (of(Some(&["acme/pay/*"])), "acme/pay/pay"),
        (of(Some(&["acme/*/*"])), "acme/default/pay"),
        (of(Some(&["acme/x/bot", "b/c/*"])), "acme/x/bot"),
        (of(Some(&["*/*/*"])), "default/default/pay"),
        (Principal::open(), "default/default/anonymous"),
        (
            Principal::of_user("ann", Role::Agent),
            "default/default/ann",
        ),
        (
            Principal::of_user("not a name", Role::Agent),
            "default/default/anonymous",
        ),
    ];
    for (principal, expected) in cases {
        assert_eq!(principal.subject(), expected);
    }
}

#[test]
fn refused_claim_error_names_token_name_and_allowed_patterns() {
    let principal = Principal::of_token(&token("pay", Role::Agent, Some(&["acme/pay/*"])));
    let refused = principal.claim(&name("acme/x/one")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the token `pay` may not use the name `acme/x/one` (allowed: acme/pay/*)"
    );
    let refused = principal.claim(&name("telpher/system/node")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "names of `telpher/` belong to the node itself"
    );
}

#[test]
fn invalid_name_patterns_are_refused() {
    assert!(matches!(
        Pattern::parse("a/b"),
        Err(PatternError::Parts { count: 2, .. })
    ));
    assert!(matches!(
        Pattern::parse("a/b/c/d"),
        Err(PatternError::Parts { count: 4, .. })
    ));
    for text in ["", "a//c", "a/b/c*", "a b", "*/ä/*"] {
        assert!(
            matches!(Pattern::parse(text), Err(PatternError::Part { .. })),
            "{text}"
        );
    }
    assert!(matches!(
        Pattern::parse("telpher/*/*"),
        Err(PatternError::System { .. })
    ));
    assert_eq!(
        Pattern::parse("*").unwrap().to_string(),
        "default/default/*"
    );
    assert!(Pattern::parse("*/*/*").unwrap().is_any());
    assert!(!Pattern::parse("*/*/x").unwrap().is_any());
}
