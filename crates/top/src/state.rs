//! The state of the screen: which view, in what order, and the effect of each key.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::sample::{History, Question, Sample};
use crate::table::{Order, Row, Table};
use crate::views::{Detail, View};

/// The possible times between two samples.
pub const INTERVALS: RangeInclusive<Duration> =
    RangeInclusive::new(Duration::from_millis(250), Duration::from_secs(60));

/// Number of rows of a page.
const PAGE: usize = 10;

/// The effect of a key that the screen cannot have by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing but a new picture.
    Draw,
    /// A sample at once, because other questions are needed.
    Sample,
    /// The end.
    Quit,
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct State {
    /// The address of the node.
    pub(crate) url: String,
    pub(crate) view: View,
    /// The details that are shown instead of the view.
    pub(crate) detail: Option<Detail>,
    pub(crate) history: History,
    /// The reason why the last sample is missing.
    pub(crate) failure: Option<String>,
    pub(crate) interval: Duration,
    pub(crate) is_paused: bool,
    pub(crate) shows_help: bool,
    /// Rows without this text are hidden.
    pub(crate) filter: String,
    /// True while the filter is typed.
    pub(crate) is_typing: bool,
    /// The key of the selected row; the first row without one.
    selected: Option<String>,
    /// The key of the row whose details are shown.
    opened: Option<String>,
    orders: BTreeMap<(View, Option<Detail>), Order>,
}

impl State {
    pub(crate) fn new(url: String, view: View, interval: Duration) -> Self {
        Self {
            url,
            view,
            detail: None,
            history: History::default(),
            failure: None,
            interval,
            is_paused: false,
            shows_help: false,
            filter: String::new(),
            is_typing: false,
            selected: None,
            opened: None,
            orders: BTreeMap::new(),
        }
    }

    /// Returns the questions whose answers the screen needs.
    pub(crate) fn questions(&self) -> Vec<Question> {
        match &self.detail {
            Some(detail) => detail.questions(),
            None => self.view.questions(),
        }
    }

    /// Shows a sample, or the reason why there is none.
    pub(crate) fn add(&mut self, sample: Result<Sample, String>) {
        match sample {
            Ok(sample) => {
                self.history.add(sample);
                self.failure = None;
            }
            Err(reason) => self.failure = Some(reason),
        }
    }

    /// Returns the views that the node has.
    pub(crate) fn views(&self) -> Vec<View> {
        let sample = self.history.now();
        let views = View::ALL.into_iter();
        views
            .filter(|view| view.is_present(sample) || *view == self.view)
            .collect()
    }

    /// Returns the order of the rows.
    pub(crate) fn order(&self) -> Order {
        let default = || match &self.detail {
            Some(detail) => detail.order(),
            None => self.view.order(),
        };
        let chosen = self.orders.get(&(self.view, self.detail.clone()));
        chosen.copied().unwrap_or_else(default)
    }

    /// Returns the rows that are shown, in their order.
    pub(crate) fn table(&self) -> Table {
        let mut table = match &self.detail {
            Some(detail) => detail.table(&self.history),
            None => self.view.table(&self.history),
        };
        table.filter(&self.filter);
        table.sort(self.order());
        table
    }

    /// Returns the index of the selected row.
    pub(crate) fn selected(&self, table: &Table) -> Option<usize> {
        let is_selected = |row: &Row| Some(&row.key) == self.selected.as_ref();
        let found = table.rows.iter().position(is_selected);
        found.or(if table.rows.is_empty() { None } else { Some(0) })
    }

    /// Applies a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Action {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Action::Draw;
        }
        if self.shows_help {
            self.shows_help = false;
            return match key.code {
                KeyCode::Char('q') => Action::Quit,
                _ => Action::Draw,
            };
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.sort_by(1),
            KeyCode::Char('S') => self.sort_by(-1),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Char('+' | '=') => self.set_interval(self.interval * 2),
            KeyCode::Char('-') => self.set_interval(self.interval / 2),
            KeyCode::Char('j') | KeyCode::Down => self.select(1),
            KeyCode::Char('k') | KeyCode::Up => self.select(-1),
            KeyCode::PageDown => self.select(PAGE as isize),
            KeyCode::PageUp => self.select(-(PAGE as isize)),
            KeyCode::Char('g') | KeyCode::Home => self.select(isize::MIN),
            KeyCode::Char('G') | KeyCode::End => self.select(isize::MAX),
            KeyCode::Char(digit @ '1'..='9') => return self.show_numbered(digit),
            KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => return self.show_next(1),
            KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => return self.show_next(-1),
            KeyCode::Enter => return self.open(),
            KeyCode::Esc | KeyCode::Backspace => return self.back(),
            _ => {}
        }
        Action::Draw
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
    }

    /// Selects the row that many rows below.
    fn select(&mut self, distance: isize) {
        let table = self.table();
        let Some(now) = self.selected(&table) else {
            return;
        };
        let last = table.rows.len() - 1;
        let next = now.saturating_add_signed(distance).min(last);
        self.selected = table.rows.get(next).map(|row| row.key.clone());
    }

    /// Sorts by the column that many columns to the right, with the largest numbers first.
    fn sort_by(&mut self, distance: isize) {
        let table = self.table();
        let count = table.columns.len() as isize;
        if count == 0 {
            return;
        }
        let column = (self.order().column as isize + distance).rem_euclid(count) as usize;
        self.set_order(Order {
            column,
            is_descending: table.is_numeric(column),
        });
    }

    fn reverse(&mut self) {
        let order = self.order();
        self.set_order(Order {
            is_descending: !order.is_descending,
            ..order
        });
    }

    fn set_order(&mut self, order: Order) {
        let key = (self.view, self.detail.clone());
        self.orders.insert(key, order);
    }

    fn set_interval(&mut self, interval: Duration) {
        self.interval = interval.clamp(*INTERVALS.start(), *INTERVALS.end());
    }

    fn show_numbered(&mut self, digit: char) -> Action {
        let number = digit.to_digit(10).unwrap_or(0) as usize;
        match self.views().get(number.wrapping_sub(1)) {
            Some(view) => self.show(*view),
            None => Action::Draw,
        }
    }

    fn show_next(&mut self, distance: isize) -> Action {
        let views = self.views();
        let now = views.iter().position(|view| *view == self.view);
        let now = now.unwrap_or(0) as isize;
        let next = (now + distance).rem_euclid(views.len() as isize) as usize;
        self.show(views[next])
    }

    fn show(&mut self, view: View) -> Action {
        self.view = view;
        self.detail = None;
        self.selected = None;
        self.filter.clear();
        Action::Sample
    }

    /// Shows the details of the selected row.
    fn open(&mut self) -> Action {
        let table = self.table();
        let row = self.selected(&table).and_then(|it| table.rows.get(it));
        let detail = match &self.detail {
            None => row.and_then(|row| self.view.detail(row)),
            Some(_) => None,
        };
        let (Some(detail), Some(row)) = (detail, row) else {
            return Action::Draw;
        };
        self.opened = Some(row.key.clone());
        self.selected = None;
        self.detail = Some(detail);
        self.filter.clear();
        Action::Sample
    }

    /// Goes back: from a filter to all rows, then from details to the view.
    fn back(&mut self) -> Action {
        if !self.filter.is_empty() {
            self.filter.clear();
            return Action::Draw;
        }
        match self.detail.take() {
            Some(_) => {
                self.selected = self.opened.take();
                Action::Sample
            }
            None => Action::Draw,
        }
    }
}

#[cfg(test)]
mod tests;
