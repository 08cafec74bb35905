use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::testing::history;
use crate::views::{Detail, View};

fn state(view: View) -> State {
    let url = "tcp://127.0.0.1:7400".to_owned();
    let mut state = State::new(url, view, Duration::from_secs(2));
    state.history = history();
    state
}

/// Draws a screen of that size.
fn screen(state: &State, width: u16, height: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let mut rows = TableState::default();
    let drawn = terminal.draw(|frame| draw(frame, state, &mut rows));
    drawn.unwrap();
    terminal.backend().clone()
}

#[test]
fn screens_of_views_match_snapshots() {
    for view in [View::Agents, View::Topics, View::Quotas, View::Node] {
        insta::assert_snapshot!(view.name(), screen(&state(view), 100, 14));
    }
}

#[test]
fn narrow_screens_leave_out_columns() {
    insta::assert_snapshot!("narrow", screen(&state(View::Agents), 40, 10));
}

#[test]
fn details_filters_and_failures_are_shown() {
    let mut state = state(View::Mailboxes);
    state.detail = Some(Detail::Mailbox("acme/demo/worker".to_owned()));
    insta::assert_snapshot!("detail", screen(&state, 100, 8));
    state.detail = None;
    state.filter = "no such".to_owned();
    state.is_paused = true;
    insta::assert_snapshot!("filtered", screen(&state, 80, 8));
    state.failure = Some("the connection to the node is lost; reconnecting".to_owned());
    insta::assert_snapshot!("failed", screen(&state, 80, 8));
}

#[test]
fn help_covers_the_table() {
    let mut state = state(View::Agents);
    state.shows_help = true;
    insta::assert_snapshot!("help", screen(&state, 80, 24));
}

#[test]
fn any_size_can_be_drawn() {
    let mut waiting = state(View::Agents);
    waiting.history = Default::default();
    for (width, height) in [(1, 1), (3, 2), (12, 5), (20, 4), (300, 100)] {
        for view in View::ALL {
            screen(&state(view), width, height);
        }
        screen(&waiting, width, height);
    }
}

#[test]
fn columns_of_high_rank_are_left_out_first() {
    let (widths, ranks) = ([30, 5, 8, 6], [0, 1, 3, 2]);
    let fit = |available| fit(&widths, &ranks, available);
    assert_eq!(fit(100), [(0, 30), (1, 5), (2, 8), (3, 6)]);
    assert_eq!(fit(37), [(0, 12), (1, 5), (2, 8), (3, 6)]);
    assert_eq!(fit(36), [(0, 21), (1, 5), (3, 6)]);
    assert_eq!(fit(20), [(0, 13), (1, 5)]);
    assert_eq!(fit(5), [(0, 5)]);
    assert!(super::fit(&[], &[], 5).is_empty());
}
