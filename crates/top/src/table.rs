//! Tables: rows of typed cells, their order, their filter, and their forms as text and JSON.

use std::cmp::Ordering;

use console::output::one_line;
use serde_json::{Map, Value, json};

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Nothing is known.
    Empty,
    /// A text.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A number that may be negative or has a fraction: events per second, percent.
    Number(f64),
    /// A size in bytes.
    Bytes(u64),
    /// A duration, in milliseconds.
    Millis(f64),
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// The head.
    pub(crate) title: &'static str,
    /// The key in JSON.
    pub(crate) key: &'static str,
    /// The rank among the columns if not all fit on the screen: those with the highest are left
    /// out first.
    pub(crate) rank: u8,
}

/// A column with its head, its key in JSON and its rank.
pub(crate) const fn column(title: &'static str, key: &'static str, rank: u8) -> Column {
    Column { title, key, rank }
}

/// The importance of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Level {
    /// Nothing is wrong.
    #[default]
    Normal,
    /// Something needs attention.
    Warning,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The identity of the row: the selection follows it.
    pub(crate) key: String,
    pub(crate) cells: Vec<Cell>,
    pub(crate) level: Level,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Row>,
    /// A remark about the rows: how many are left out.
    pub(crate) remark: Option<String>,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// Index of the column.
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
}

impl Level {
    /// Returns the level of a row that needs attention, or not.
    pub(crate) fn warning_if(is_warning: bool) -> Self {
        match is_warning {
            true => Self::Warning,
            false => Self::Normal,
        }
    }
}

impl Cell {
    /// A text without control characters.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(one_line(text.as_ref()))
    }

    /// A number if there is one.
    pub(crate) fn number(number: Option<f64>) -> Self {
        number.map_or(Self::Empty, Self::Number)
    }

    /// A count if there is one.
    pub(crate) fn count(count: Option<u64>) -> Self {
        count.map_or(Self::Empty, Self::Count)
    }

    /// True for cells that are aligned to the right.
    pub(crate) fn is_numeric(&self) -> bool {
        !matches!(self, Self::Empty | Self::Text(_))
    }

    /// Returns the text for people.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Empty => "-".to_owned(),
            Self::Text(text) => text.clone(),
            Self::Count(count) => count.to_string(),
            Self::Number(number) if number.abs() >= 1000.0 => format!("{number:.0}"),
            Self::Number(number) => format!("{number:.1}"),
            Self::Bytes(bytes) => show_bytes(*bytes),
            Self::Millis(millis) => show_millis(*millis),
        }
    }

    /// Returns the value for programs.
    fn json(&self) -> Value {
        match self {
            Self::Empty => Value::Null,
            Self::Text(text) => json!(text),
            Self::Count(count) | Self::Bytes(count) => json!(count),
            Self::Number(number) | Self::Millis(number) => json!((number * 1e3).round() / 1e3),
        }
    }

    fn as_number(&self) -> Option<f64> {
        match self {
            Self::Empty | Self::Text(_) => None,
            Self::Count(count) | Self::Bytes(count) => Some(*count as f64),
            Self::Number(number) | Self::Millis(number) => Some(*number),
        }
    }

    /// Compares cells of a column: numbers before texts, and empty cells last in any order.
    fn compare(&self, other: &Self, is_descending: bool) -> Ordering {
        let direct = |order: Ordering| match is_descending {
            true => order.reverse(),
            false => order,
        };
        match (self, other) {
            (Self::Empty, Self::Empty) => Ordering::Equal,
            (Self::Empty, _) => Ordering::Greater,
            (_, Self::Empty) => Ordering::Less,
            (Self::Text(one), Self::Text(other)) => direct(one.cmp(other)),
            _ => match (self.as_number(), other.as_number()) {
                (Some(one), Some(other)) => direct(one.total_cmp(&other)),
                (one, other) => other.is_some().cmp(&one.is_some()),
            },
        }
    }
}

fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        unit => format!("{value:.1} {unit}"),
    }
}

fn show_millis(millis: f64) -> String {
    let seconds = (millis / 1e3) as u64;
    match seconds {
        0 if millis < 10.0 => format!("{millis:.2} ms"),
        0 => format!("{millis:.0} ms"),
        1..60 => format!("{:.1} s", millis / 1e3),
        60..3_600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {:02} m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

impl Table {
    /// Returns an empty table.
    pub(crate) fn new(columns: &'static [Column]) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, key: impl Into<String>, cells: Vec<Cell>, level: Level) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(Row {
            key: key.into(),
            cells,
            level,
        });
    }

    /// Sorts the rows. Equal ones are in the order of their keys.
    pub(crate) fn sort(&mut self, order: Order) {
        let Order {
            column,
            is_descending,
        } = order;
        self.rows.sort_by(|one, other| {
            let compared = match (one.cells.get(column), other.cells.get(column)) {
                (Some(first), Some(second)) => first.compare(second, is_descending),
                _ => Ordering::Equal,
            };
            compared.then_with(|| one.key.cmp(&other.key))
        });
    }

    /// Keeps the rows that have a text which contains the filter, in upper or lower case.
    pub(crate) fn filter(&mut self, filter: &str) {
        if filter.is_empty() {
            return;
        }
        let filter = filter.to_lowercase();
        self.rows.retain(|row| {
            let mut texts = row.cells.iter().filter_map(|cell| match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            });
            texts.any(|text| text.to_lowercase().contains(&filter))
        });
    }

    /// Returns the rows as an array of objects.
    pub(crate) fn json(&self) -> Value {
        let object = |row: &Row| {
            let pairs = self.columns.iter().zip(&row.cells);
            let pairs = pairs.map(|(column, cell)| (column.key.to_owned(), cell.json()));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        self.rows.iter().map(object).collect()
    }

    /// Returns the table as lines of aligned columns under a head.
    pub(crate) fn lines(&self) -> String {
        let titles = self.columns.iter().map(|it| it.title.to_owned());
        let mut all: Vec<Vec<String>> = vec![titles.collect()];
        let cells = |row: &Row| row.cells.iter().map(Cell::show).collect();
        all.extend(self.rows.iter().map(cells));
        let form = |index: usize| {
            let widths = all.iter().map(|row| row[index].chars().count());
            (widths.max().unwrap_or(0), self.is_numeric(index))
        };
        let forms: Vec<_> = (0..self.columns.len()).map(form).collect();
        let mut text = String::new();
        for row in &all {
            let mut line = String::new();
            for (cell, (width, is_numeric)) in row.iter().zip(&forms) {
                match is_numeric {
                    true => line.push_str(&format!("{cell:>width$}  ")),
                    false => line.push_str(&format!("{cell:width$}  ")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// True if the column has numbers and no texts.
    pub(crate) fn is_numeric(&self, index: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.cells.get(index));
        let has_text = cells.clone().any(|cell| matches!(cell, Cell::Text(_)));
        !has_text && cells.any(Cell::is_numeric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[column("NAME", "name", 0), column("COUNT", "count", 1)];

    fn table(rows: &[(&str, Cell)]) -> Table {
        let mut table = Table::new(COLUMNS);
        for (name, cell) in rows {
            table.push(
                *name,
                vec![Cell::text(name), cell.clone()],
                Level::default(),
            );
        }
        table
    }

    fn keys(table: &Table) -> Vec<&str> {
        table.rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn rows_are_sorted_by_any_column_with_empty_cells_last() {
        let mut table = table(&[
            ("b", Cell::Count(9)),
            ("d", Cell::Empty),
            ("c", Cell::Count(10)),
            ("a", Cell::Count(9)),
        ]);
        let mut sorted = |column, is_descending| {
            table.sort(Order {
                column,
                is_descending,
            });
            keys(&table).join("")
        };
        assert_eq!(sorted(1, true), "cabd");
        assert_eq!(sorted(1, false), "abcd");
        assert_eq!(sorted(0, true), "dcba");
        assert_eq!(sorted(7, true), "abcd", "a column that does not exist");
    }

    #[test]
    fn a_filter_finds_parts_of_texts_in_any_case() {
        let mut found = table(&[("acme/Sum", Cell::Empty), ("acme/log", Cell::Count(5))]);
        found.filter("SUM");
        assert_eq!(keys(&found), ["acme/Sum"]);
        let mut all = table(&[("a", Cell::Empty)]);
        all.filter("");
        assert_eq!(keys(&all), ["a"]);
        all.filter("5");
        assert!(all.rows.is_empty(), "numbers are not searched");
    }

    #[test]
    fn cells_have_units_for_people_and_none_for_programs() {
        for (cell, text, value) in [
            (Cell::Empty, "-", json!(null)),
            (Cell::text("a\x1b[2J"), "a\\u{1b}[2J", json!("a\\u{1b}[2J")),
            (Cell::Count(1_234_567), "1234567", json!(1_234_567)),
            (Cell::Number(0.123_45), "0.1", json!(0.123)),
            (Cell::Number(-12_345.6), "-12346", json!(-12_345.6)),
            (Cell::Bytes(1_000), "1000 B", json!(1_000)),
            (Cell::Bytes(1_536), "1.5 KiB", json!(1_536)),
            (Cell::Bytes(3 << 30), "3.0 GiB", json!(3_u64 << 30)),
            (Cell::Millis(0.25), "0.25 ms", json!(0.25)),
            (Cell::Millis(61_000.0), "1 m 01 s", json!(61_000.0)),
            (Cell::Millis(90_000_000.0), "1 d 01 h", json!(90_000_000.0)),
        ] {
            assert_eq!((cell.show().as_str(), cell.json()), (text, value));
        }
    }

    #[test]
    fn tables_are_lines_and_objects() {
        let table = table(&[("a", Cell::Count(7)), ("long", Cell::Count(100))]);
        assert_eq!(table.lines(), "NAME  COUNT\na         7\nlong    100\n");
        assert_eq!(
            table.json(),
            json!([{ "name": "a", "count": 7 }, { "name": "long", "count": 100 }])
        );
    }
}
