//! Draws the state of the screen.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Cell as Field, Clear, Paragraph, Row as GridRow, Table as Grid, TableState,
};

use crate::state::State;
use crate::table::{Cell, Level, Order, Table};
use crate::views::{problem, summary};

/// Narrowest first column.
const FIRST_WIDTH_MIN: usize = 12;

/// Blanks between columns.
const GAP: usize = 2;

const KEYS: &str = "? help  / filter  s sort  Enter details  Space pause  q quit";

const HELP: &str = "\
1-7, Tab, Left, Right   choose a view
Up, Down, PgUp, PgDn    select a row
Enter                   show the details of the row
Esc                     go back; end the filter
/                       show only rows with a text
s, S                    sort by the next or previous column
r                       reverse the order
Space                   pause and go on
+, -                    sample less often, or more often
q                       quit

Rates are the change between the newest two samples, per second.
Yellow rows need attention: messages that no instance takes,
dead letters, denied takes, groups without a consumer.

Commands with the same numbers and more: telpher agents, mailbox
list, topic describe, quota top, cluster status.
Any key closes this page.";

/// Draws the whole screen. `rows` has the first visible row.
pub(crate) fn draw(frame: &mut Frame<'_>, state: &State, rows: &mut TableState) {
    let [title, numbers, tabs, body, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(title_line(state), title);
    frame.render_widget(Line::raw(summary(&state.history)), numbers);
    frame.render_widget(tabs_line(state), tabs);
    let table = state.table();
    draw_table(frame, state, &table, body, rows);
    frame.render_widget(foot_line(state, &table), foot);
    if state.shows_help {
        frame.render_widget(Clear, body);
        frame.render_widget(Paragraph::new(HELP), body);
    }
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn title_line(state: &State) -> Line<'_> {
    let now = state.history.now();
    let mut spans = vec![Span::styled("telpher top", bold()), Span::raw("  ")];
    spans.push(Span::raw(state.url.as_str()));
    if now.unix_s > 0 {
        let time = console::utc::format(now.unix_s);
        // Of `2026-03-21T12:00:00Z`, the time of day.
        let time = time.get(11..19).unwrap_or_default().to_owned();
        spans.push(Span::raw(format!("  {time} UTC")));
    }
    spans.push(Span::raw(format!("  every {}", seconds(state.interval))));
    if state.is_paused {
        let paused = Style::new().add_modifier(Modifier::REVERSED);
        spans.push(Span::raw("  "));
        spans.push(Span::styled(" PAUSED ", paused));
    }
    Line::from(spans)
}

fn seconds(interval: Duration) -> String {
    format!("{} s", interval.as_secs_f64())
}

fn tabs_line(state: &State) -> Line<'_> {
    let mut spans = Vec::new();
    for (index, view) in state.views().into_iter().enumerate() {
        let style = match view == state.view {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        let tab = format!(" {} {} ", index + 1, view.title());
        spans.push(Span::styled(tab, style));
    }
    if let Some(detail) = &state.detail {
        let title = console::output::one_line(&detail.title());
        spans.push(Span::styled(format!("  {title}"), bold()));
    }
    Line::from(spans)
}

/// Returns the line at the bottom: the most urgent of a failure, a problem of the node, the filter,
/// a remark and the keys.
fn foot_line<'a>(state: &'a State, table: &Table) -> Line<'a> {
    let alarm = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    if state.is_typing {
        return Line::raw(format!("filter: {}_", state.filter));
    }
    if let Some(failure) = &state.failure {
        return Line::styled(format!("no new sample: {failure}"), alarm);
    }
    if let Some(problem) = problem(&state.history) {
        return Line::styled(problem, alarm);
    }
    if !state.filter.is_empty() {
        let count = table.rows.len();
        let filter = &state.filter;
        return Line::raw(format!("filter: {filter}  ({count} rows, Esc shows all)"));
    }
    match &table.remark {
        Some(remark) => Line::styled(remark.clone(), Style::new().fg(Color::Yellow)),
        None => Line::styled(KEYS, Style::new().add_modifier(Modifier::DIM)),
    }
}

fn draw_table(
    frame: &mut Frame<'_>,
    state: &State,
    table: &Table,
    area: Rect,
    rows: &mut TableState,
) {
    if table.rows.is_empty() {
        let text = match (state.history.now().unix_s, state.filter.is_empty()) {
            (0, _) => "waiting for the first sample",
            (_, true) => "nothing here",
            (_, false) => "no row has this text",
        };
        frame.render_widget(Line::raw(text), area);
        return;
    }
    let texts: Vec<Vec<String>> = (table.rows.iter())
        .map(|row| row.cells.iter().map(Cell::show).collect())
        .collect();
    let order = state.order();
    let heads: Vec<String> = (0..table.columns.len())
        .map(|index| head(table, index, order))
        .collect();
    let width = |index: usize| {
        let cells = texts.iter().map(|row| Line::raw(&row[index]).width());
        cells.fold(Line::raw(&heads[index]).width(), usize::max)
    };
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    let ranks: Vec<_> = table.columns.iter().map(|it| it.rank).collect();
    let visible = fit(&widths, &ranks, usize::from(area.width));
    let field = |text: &str, index: usize| {
        let line = Line::raw(text.to_owned());
        Field::from(match table.is_numeric(index) {
            true => line.right_aligned(),
            false => line.left_aligned(),
        })
    };
    let lines = texts.iter().zip(&table.rows).map(|(texts, row)| {
        let fields = visible
            .iter()
            .map(|(index, _)| field(&texts[*index], *index));
        GridRow::new(fields).style(match row.level {
            Level::Normal => Style::new(),
            Level::Warning => Style::new().fg(Color::Yellow),
        })
    });
    let header = visible
        .iter()
        .map(|(index, _)| field(&heads[*index], *index));
    let constraints = visible
        .iter()
        .map(|(_, width)| Constraint::Length(u16::try_from(*width).unwrap_or(u16::MAX)));
    let grid = Grid::new(lines.collect::<Vec<_>>(), constraints)
        .header(GridRow::new(header).style(bold()))
        .column_spacing(GAP as u16)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    rows.select(state.selected(table));
    frame.render_stateful_widget(grid, area, rows);
}

/// Returns the head of a column, with a mark if the rows are sorted by it.
fn head(table: &Table, index: usize, order: Order) -> String {
    let title = table.columns[index].title;
    match (order.column == index, order.is_descending) {
        (false, _) => title.to_owned(),
        (true, true) => format!("{title}↓"),
        (true, false) => format!("{title}↑"),
    }
}

/// Chooses the columns that fit, and the width of each. The first column stays and gets narrower;
/// of the others, those with the highest rank are left out first.
fn fit(widths: &[usize], ranks: &[u8], available: usize) -> Vec<(usize, usize)> {
    let Some(first) = widths.first() else {
        return Vec::new();
    };
    let first_min = (*first).min(FIRST_WIDTH_MIN).min(available);
    let mut visible: Vec<usize> = (0..widths.len()).collect();
    let others = |visible: &[usize]| {
        let widths = visible.iter().skip(1).map(|index| widths[*index] + GAP);
        widths.sum::<usize>()
    };
    while visible.len() > 1 && first_min + others(&visible) > available {
        let last = (1..visible.len()).max_by_key(|at| (ranks[visible[*at]], *at));
        match last {
            Some(at) => visible.remove(at),
            None => break,
        };
    }
    let left = available.saturating_sub(others(&visible));
    let width = |index: usize| match index {
        0 => (*first).min(left),
        index => widths[index],
    };
    visible
        .iter()
        .map(|index| (*index, width(*index)))
        .collect()
}

#[cfg(test)]
mod tests;
