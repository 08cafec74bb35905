//! The declaration of options, from which all layers and documents are derived.

use super::{Config, SECTIONS};

/// A component and its options.
#[derive(Debug)]
pub struct Section {
    /// The heading above the options in help: `Native listener`.
    pub title: &'static str,
    pub(super) doc: &'static str,
    /// The options, in the order of documentation.
    pub specs: &'static [Spec],
}

/// One option.
#[derive(Debug)]
pub struct Spec {
    /// The path in the TOML file, with dots: `native.frame_size_max`.
    pub key: &'static str,
    /// The placeholder of the value in help: `SIZE`.
    pub form: &'static str,
    /// True if TOML writes the value without quotes.
    pub bare: bool,
    pub(super) doc: &'static str,
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    pub(super) get: fn(&Config) -> String,
}

/// All options.
pub fn specs() -> impl Iterator<Item = &'static Spec> {
    SECTIONS.iter().flat_map(|section| section.specs)
}

/// The option with the key.
pub fn find(key: &str) -> Option<&'static Spec> {
    specs().find(|spec| spec.key == key)
}

impl Section {
    /// The description of the component.
    pub fn doc(&self) -> String {
        join_lines(self.doc)
    }
}

impl Spec {
    /// The description of the option.
    pub fn doc(&self) -> String {
        join_lines(self.doc)
    }

    /// The environment variable: `TELPHER_NATIVE_FRAME_SIZE_MAX`.
    pub fn variable(&self) -> String {
        format!("TELPHER_{}", self.key.replace('.', "_").to_uppercase())
    }

    /// The flag without the leading dashes: `native-frame-size-max`.
    pub fn flag(&self) -> String {
        self.key.replace(['.', '_'], "-")
    }

    /// The value as text, as every layer reads it.
    pub fn text(&self, config: &Config) -> String {
        (self.get)(config)
    }

    /// The value as TOML writes it.
    pub fn toml(&self, config: &Config) -> String {
        let text = self.text(config);
        if self.bare {
            text
        } else {
            toml::Value::String(text).to_string()
        }
    }

    /// The default as text.
    pub fn default_text(&self) -> String {
        self.text(&Config::default())
    }

    /// The key without its table: `frame_size_max`.
    pub fn leaf(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }

    /// The key's table in the TOML file: `native`; `None` for keys at the top.
    pub fn table(&self) -> Option<&'static str> {
        self.key.rsplit_once('.').map(|(table, _)| table)
    }
}

/// Joins the lines of a doc comment, each of which begins with a space.
fn join_lines(doc: &str) -> String {
    doc.lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}

/// Declares a component's `Options`, their defaults and their [`Spec`]s.
///
/// `"key" => field: Type = default;` with an optional range before the semicolon:
/// `, from LOW to HIGH` (both included).
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        $component:ident, $title:literal;
        $(
            $(#[doc = $doc:literal])+
            $key:literal => $field:ident: $kind:ty = $default:expr
                $(, from $low:literal to $high:literal)?;
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Options {
            $($(#[doc = $doc])+ pub $field: $kind,)+
        }

        impl Default for Options {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        pub(super) const SECTION: $crate::Section = $crate::Section {
            title: $title,
            doc: concat!($($about, "\n"),+),
            specs: &[$($crate::Spec {
                key: $key,
                form: <$kind as $crate::Value>::FORM,
                bare: <$kind as $crate::Value>::BARE,
                doc: concat!($($doc, "\n"),+),
                set: |config, text| {
                    let value = <$kind as $crate::Value>::parse(text)?;
                    $($crate::value::check_range::<$kind>(&value, $low, $high)?;)?
                    config.$component.$field = value;
                    Ok(())
                },
                get: |config| $crate::Value::print(&config.$component.$field),
            }),+],
        };
    };
}
