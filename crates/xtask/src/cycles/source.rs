//! `Module`: the names and paths of one module, read from the tokens of its file.
//!
//! Tokens are read without a grammar: comments and strings are not part of them, the bodies of
//! macros are.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path as written: `crate`, `self` and `super` are segments.
pub(super) type SourcePath = Vec<String>;

/// Declarations and references of one module, without those under `#[cfg(test)]`.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Children in files of their own.
    pub(super) files: Vec<String>,
    /// Children in braces.
    pub(super) inline: Vec<(String, Module)>,
    /// Items that are defined here.
    pub(super) items: BTreeSet<String>,
    /// Macros by example, which are visible in the whole crate at most.
    pub(super) macros: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Paths of at least two segments outside of imports.
    pub(super) paths: BTreeSet<SourcePath>,
    /// Words of the code outside of imports.
    pub(super) words: BTreeSet<String>,
}

/// A name of a `use` declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: SourcePath,
    /// The name here; `*` for all names of a module.
    pub(super) name: String,
    /// True for `pub use` with any visibility.
    pub(super) is_reexport: bool,
}

/// Keywords in front of the name of an item.
const ITEMS: [&str; 8] = [
    "const", "enum", "fn", "static", "struct", "trait", "type", "union",
];

/// Reads a file.
pub(super) fn read(source: &str) -> Result<Module, proc_macro2::LexError> {
    let mut module = Module::default();
    module.read(source.parse()?, true);
    Ok(module)
}

impl Module {
    /// Reads tokens; `is_top` outside of the bodies of items.
    fn read(&mut self, tokens: TokenStream, is_top: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Group(group) => {
                    self.read(group.stream(), false);
                    at + 1
                }
                TokenTree::Ident(_) => self.read_word(&tokens, at, is_top),
                TokenTree::Punct(mark) if mark.as_char() == '#' => self.read_attribute(&tokens, at),
                TokenTree::Punct(mark) if mark.as_char() == '\'' => at + 2,
                _ => at + 1,
            };
        }
    }

    /// Reads an attribute; skips the item behind `#[cfg(test)]`. Returns the next position.
    fn read_attribute(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let is_inner = is_mark(tokens.get(at + 1), '!');
        let body = at + 1 + usize::from(is_inner);
        let Some(TokenTree::Group(group)) = tokens.get(body) else {
            return at + 1;
        };
        if is_test_only(&group.stream()) {
            return end_of_item(tokens, body + 1);
        }
        self.read(group.stream(), false);
        body + 1
    }

    /// Reads a declaration or a path that begins with a word. Returns the next position.
    fn read_word(&mut self, tokens: &[TokenTree], at: usize, is_top: bool) -> usize {
        let name = word(tokens.get(at + 1));
        match (word(tokens.get(at)).unwrap_or_default().as_str(), name) {
            ("mod", Some(name)) => match tokens.get(at + 2) {
                Some(TokenTree::Group(body)) => {
                    let mut child = Module::default();
                    child.read(body.stream(), true);
                    self.inline.push((name, child));
                    at + 3
                }
                _ => {
                    self.files.push(name);
                    at + 3
                }
            },
            ("use", _) if !is_mark(tokens.get(at + 1), '<') => {
                let length = tokens[at..].iter().take_while(|it| !is_mark(Some(it), ';'));
                let end = at + length.count();
                let is_reexport = is_public(&tokens[..at]);
                self.import(&tokens[at + 1..end], &[], is_reexport);
                end + 1
            }
            ("macro_rules", _) => {
                self.macros.extend(word(tokens.get(at + 2)));
                at + 3
            }
            (keyword, Some(name)) if is_top && ITEMS.contains(&keyword) => {
                if !ITEMS.contains(&name.as_str()) {
                    self.items.insert(name);
                }
                at + 1
            }
            _ => self.read_path(tokens, at),
        }
    }

    /// Reads `a::b::c`; a field, a method and the continuation of a type are only words.
    fn read_path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let is_start = at == 0 || !is_mark(tokens.get(at - 1), '.') && !is_separator(tokens, at);
        let mut path: SourcePath = word(tokens.get(at)).into_iter().collect();
        let mut next = at + 1;
        while is_mark(tokens.get(next), ':') && is_mark(tokens.get(next + 1), ':') {
            let Some(segment) = word(tokens.get(next + 2)) else {
                break;
            };
            path.push(segment);
            next += 3;
        }
        if is_start {
            self.words.insert(path[0].clone());
            if path.len() > 1 {
                self.paths.insert(path);
            }
        }
        next
    }

    /// Adds the names of a tree of imports below `prefix`.
    fn import(&mut self, tree: &[TokenTree], prefix: &[String], is_reexport: bool) {
        let branches = tree.split(|token| is_mark(Some(token), ','));
        for branch in branches.filter(|branch| !branch.is_empty()) {
            let mut path = prefix.to_vec();
            let mut name = None;
            let mut tokens = branch.iter();
            while let Some(token) = tokens.next() {
                match token {
                    TokenTree::Group(group) => {
                        let inner: Vec<_> = group.stream().into_iter().collect();
                        self.import(&inner, &path, is_reexport);
                        name = Some(String::new());
                    }
                    TokenTree::Ident(it) if it == "as" => name = word(tokens.next()),
                    TokenTree::Ident(it) => path.push(it.to_string()),
                    TokenTree::Punct(mark) if mark.as_char() == '*' => name = Some("*".to_owned()),
                    _ => {}
                }
            }
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
            if !name.is_empty() {
                self.imports.push(Import {
                    path,
                    name,
                    is_reexport,
                });
            }
        }
    }
}

fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn is_mark(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(mark)) if mark.as_char() == wanted)
}

/// True if `::` is in front of the position.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_mark(tokens.get(at - 1), ':') && is_mark(tokens.get(at - 2), ':')
}

/// True if tokens end with `pub` or `pub(…)`.
fn is_public(tokens: &[TokenTree]) -> bool {
    let visibility = match tokens {
        [.., token, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            Some(token)
        }
        _ => tokens.last(),
    };
    word(visibility).is_some_and(|it| it == "pub")
}

/// True for the content of `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test_only(attribute: &TokenStream) -> bool {
    let text: String = attribute
        .to_string()
        .split_whitespace()
        .collect::<Vec<_>>()
        .concat();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The position behind the item, statement or field at `at`.
fn end_of_item(tokens: &[TokenTree], at: usize) -> usize {
    let is_item = word(tokens.get(at)).is_some_and(|it| {
        ITEMS.contains(&it.as_str())
            || ["async", "impl", "mod", "pub", "unsafe", "use"].contains(&it.as_str())
    });
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => is_mark(Some(token), ';') || !is_item && is_mark(Some(token), ','),
    };
    match tokens[at..].iter().position(is_end) {
        Some(length) => at + length + 1,
        None => tokens.len(),
    }
}
