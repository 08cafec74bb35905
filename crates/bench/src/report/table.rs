//! A table that renders as Markdown, terminal text or HTML.

use comfy_table::{CellAlignment, LineStyle, TableStyle};

use crate::format::ABSENT;
use crate::format::escape;

/// A table of text cells. A `None` cell shows as `n/a`; a cell may have a second line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    heads: Vec<String>,
    /// Number of text columns at the left; the remaining columns are numbers and are right-aligned.
    words: usize,
    rows: Vec<Vec<Option<String>>>,
}

impl Table {
    /// Makes a table with these column heads. The first `words` columns hold text.
    #[must_use]
    pub fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>, words: usize) -> Self {
        Self {
            heads: heads.into_iter().map(Into::into).collect(),
            words,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When the number of cells differs from the number of heads.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Option<String>>) {
        let cells: Vec<_> = cells.into_iter().collect();
        assert_eq!(
            cells.len(),
            self.heads.len(),
            "a row has a cell for every head"
        );
        self.rows.push(cells);
    }

    /// Returns the table without the columns in which every cell is empty.
    #[must_use]
    pub fn without_empty_columns(self) -> Self {
        let keep: Vec<bool> = (0..self.heads.len())
            .map(|column| self.rows.iter().any(|row| row[column].is_some()))
            .collect();
        let words = keep[..self.words.min(keep.len())]
            .iter()
            .filter(|keep| **keep)
            .count();
        let kept = |column: &usize| keep[*column];
        let row = |row: Vec<Option<String>>| {
            row.into_iter()
                .enumerate()
                .filter(|(column, _)| kept(column))
                .map(|(_, cell)| cell)
        };
        Self {
            heads: (0..keep.len())
                .filter(kept)
                .map(|column| self.heads[column].clone())
                .collect(),
            words,
            rows: self
                .rows
                .into_iter()
                .map(|cells| row(cells).collect())
                .collect(),
        }
    }

    /// Returns true if the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders Markdown with the alignment marks of the reports we reproduce, ending with a line
    /// break.
    #[must_use]
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let heads: Vec<_> = self
            .heads
            .iter()
            .map(|head| head.replace('\n', BREAK))
            .collect();
        let mut text = line(heads.iter().map(String::as_str).collect());
        text += &line(vec![":---"; self.heads.len()]);
        for row in &self.rows {
            let cells: Vec<_> = row
                .iter()
                .map(|cell| cell.as_deref().unwrap_or(ABSENT).replace('\n', BREAK))
                .collect();
            text += &line(cells.iter().map(String::as_str).collect());
        }
        text
    }

    /// Renders the table for a terminal, without colours.
    #[must_use]
    pub fn terminal(&self) -> String {
        let mut table = comfy_table::Table::new();
        let rule = LineStyle::none().fill('─').junction('─');
        table
            .load_style(TableStyle::new().header_separator(rule))
            .set_header(&self.heads);
        for row in &self.rows {
            table.add_row(row.iter().map(one_line));
        }
        for column in table.column_iter_mut().skip(self.words) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }

    /// Renders an HTML table inside a box that scrolls sideways.
    #[must_use]
    pub(crate) fn html(&self) -> String {
        let class = |column| {
            if column < self.words {
                ""
            } else {
                " class=\"number\""
            }
        };
        let mut text = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for (column, head) in self.heads.iter().enumerate() {
            text += &format!("<th{}>{}</th>", class(column), html_cell(head));
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in &self.rows {
            text += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let cell = cell.as_deref().map_or(HTML_ABSENT.to_owned(), html_cell);
                text += &format!("<td{}>{cell}</td>", class(column));
            }
            text += "</tr>\n";
        }
        text + "</tbody>\n</table></div>\n"
    }
}

/// Line break between the two lines of a Markdown cell.
const BREAK: &str = "<br>";

const HTML_ABSENT: &str = "<span class=\"absent\">n/a</span>";

/// Renders a cell. Its second line, the detail of the first, appears smaller below it.
fn html_cell(cell: &str) -> String {
    match cell.split_once('\n') {
        Some((first, second)) => format!("{}<small>{}</small>", escape(first), escape(second)),
        None => escape(cell),
    }
}

fn one_line(cell: &Option<String>) -> String {
    cell.as_deref().unwrap_or(ABSENT).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["Target", "Rate", "Depth"], 1);
        table.row([Some("a<b".into()), Some("1.00".into()), None]);
        table.row([Some("c".into()), None, None]);
        table
    }

    #[test]
    fn markdown_tables_show_n_a_for_absent_values() {
        let expected = "| Target | Rate | Depth |\n| :--- | :--- | :--- |\n| a<b | 1.00 | n/a |\n| c | n/a | n/a |\n";
        assert_eq!(table().markdown(), expected);
    }

    #[test]
    fn a_column_without_a_figure_can_be_left_out() {
        let text = table().without_empty_columns().markdown();
        assert!(text.starts_with("| Target | Rate |\n"), "{text}");
        assert!(text.contains("| c | n/a |"), "{text}");
    }

    #[test]
    fn html_is_escaped() {
        let text = table().html();
        assert_eq!(html_cell("1/s\n[0 – 2]"), "1/s<small>[0 – 2]</small>");
        assert!(
            text.contains("<td>a&lt;b</td><td class=\"number\">1.00</td>"),
            "{text}"
        );
    }

    #[test]
    fn numbers_are_right_aligned_in_a_terminal() {
        insta::assert_snapshot!(table().terminal(), @r"
         Target   Rate   Depth
        ───────────────────────
         a<b      1.00     n/a
         c         n/a     n/a
        ");
    }
}
