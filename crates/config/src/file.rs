//! Reads the TOML file into assignments and mistakes, each with its line and column.

use std::collections::BTreeSet;
use std::path::Path;

use quota::Limit;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::load::Assignment;
use super::{Mistake, Origin, SECTIONS, find, specs};

/// The name of the tables that are not options.
const LIMITS: &str = "limit";

/// Reads every assignment of the file; anything else is added to `mistakes`. The order of the
/// assignments is irrelevant, because TOML has no key twice.
pub(super) fn read(path: &Path, text: &str, mistakes: &mut Vec<Mistake>) -> Read {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut broken_lines = BTreeSet::new();
    for error in errors {
        let start = error.span().map_or(0, |span| span.start);
        let origin = place(path, text, start);
        if broken_lines.insert(line(&origin)) {
            mistakes.push(Mistake::new(origin, one_line(error.message())));
        }
    }
    let mut reader = Reader {
        path,
        text,
        mistakes: Vec::new(),
        found: Vec::new(),
        limits: Vec::new(),
    };
    reader.table("", table.get_ref());
    // A broken line is parsed by guessing, so only its first error is reported.
    reader
        .mistakes
        .retain(|mistake| !broken_lines.contains(&line(&mistake.origin)));
    reader
        .found
        .retain(|assignment| !broken_lines.contains(&line(&assignment.origin)));
    mistakes.extend(reader.mistakes);
    Read {
        assignments: reader.found,
        limits: reader.limits,
    }
}

fn line(origin: &Origin) -> usize {
    match origin {
        Origin::File { line, .. } => *line,
        Origin::Default | Origin::Variable(_) | Origin::Flag(_) => 0,
    }
}

/// The content of a configuration file.
pub(super) struct Read {
    pub(super) assignments: Vec<Assignment>,
    pub(super) limits: Vec<Limit>,
}

pub(super) struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    pub(super) mistakes: Vec<Mistake>,
    found: Vec<Assignment>,
    pub(super) limits: Vec<Limit>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key = match prefix {
                "" => name.get_ref().to_string(),
                _ => format!("{prefix}.{}", name.get_ref()),
            };
            let start = name.span().start;
            match (find(&key), value.get_ref()) {
                (None, limits) if key == LIMITS => self.limits(start, limits),
                (Some(spec), _) => match scalar(value) {
                    Some(text) => {
                        let origin = place(self.path, self.text, start);
                        self.found.push(Assignment { spec, text, origin });
                    }
                    None => self.mistake(start, not_scalar(&key, value.get_ref(), spec.form)),
                },
                (None, DeValue::Table(inner)) if is_table(&key) => self.table(&key, inner),
                (None, value) => self.unknown(&key, matches!(value, DeValue::Table(_)), start),
            }
        }
    }

    fn unknown(&mut self, key: &str, is_table: bool, start: usize) {
        let origin = place(self.path, self.text, start);
        let mistake = match is_table {
            true => Mistake::new(origin, format!("unknown table `[{key}]`")),
            false => Mistake::new(origin, format!("unknown option `{key}`")),
        };
        self.mistakes.push(match nearest(key, is_table) {
            Some(nearest) => mistake.hint(format!("did you mean `{nearest}`?")),
            None => mistake.hint("`telpher config init` prints every option"),
        });
    }

    pub(super) fn mistake(&mut self, start: usize, message: String) {
        let mistake = self.mistake_at(start, message);
        self.mistakes.push(mistake);
    }

    pub(super) fn mistake_at(&self, start: usize, message: String) -> Mistake {
        Mistake::new(place(self.path, self.text, start), message)
    }
}

/// Returns the valid key that is most similar to `key`, or the one with the same last part in
/// another table.
fn nearest(key: &str, is_table: bool) -> Option<&'static str> {
    if is_table {
        return model::nearest(key, tables());
    }
    let leaf = key.rsplit('.').next().unwrap_or(key);
    let exact = || {
        specs()
            .find(|spec| spec.leaf() == leaf)
            .map(|spec| spec.key)
    };
    model::nearest(key, specs().map(|spec| spec.key)).or_else(exact)
}

fn tables() -> impl Iterator<Item = &'static str> {
    SECTIONS
        .iter()
        .filter_map(|section| section.specs.first()?.table())
}

fn is_table(key: &str) -> bool {
    tables().any(|table| table == key)
}

pub(super) fn scalar(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(
            match i128::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => number.to_string(),
                Err(_) => number.to_string(),
            },
        ),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

fn not_scalar(key: &str, value: &DeValue<'_>, form: &str) -> String {
    let found = match value {
        DeValue::Table(_) => "a table",
        DeValue::Array(_) => "a list",
        DeValue::Datetime(_) => "a date",
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => {
            "a value"
        }
    };
    format!("`{key}` must be one {form}, not {found}")
}

/// The line and column of a byte offset.
fn place(path: &Path, text: &str, start: usize) -> Origin {
    let before = text.get(..start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Origin::File {
        path: path.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

fn one_line(message: &str) -> String {
    message
        .lines()
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(", ")
}
