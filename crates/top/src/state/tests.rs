use super::*;
use crate::testing::{history, sample};

fn state(view: View) -> State {
    let mut state = State::new(
        "tcp://127.0.0.1:7400".to_owned(),
        view,
        Duration::from_secs(2),
    );
    state.history = history();
    state
}

fn press(state: &mut State, codes: impl IntoIterator<Item = KeyCode>) -> Action {
    let mut action = Action::Draw;
    for code in codes {
        action = state.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
    action
}

fn letters(text: &str) -> impl Iterator<Item = KeyCode> {
    text.chars().map(KeyCode::Char)
}

fn keys(state: &State) -> Vec<String> {
    let table = state.table();
    table.rows.into_iter().map(|row| row.key).collect()
}

#[test]
fn views_are_chosen_by_number_and_by_tab() {
    let mut state = state(View::Agents);
    assert_eq!(press(&mut state, letters("4")), Action::Sample);
    assert_eq!(state.view, View::Mailboxes);
    assert_eq!(state.questions(), View::Mailboxes.questions());
    press(&mut state, [KeyCode::Tab]);
    assert_eq!(state.view, View::Quotas);
    press(&mut state, [KeyCode::BackTab, KeyCode::Left]);
    assert_eq!(state.view, View::Groups);
    // A node alone has no cluster.
    assert_eq!(press(&mut state, letters("7")), Action::Draw);
    assert_eq!(state.view, View::Groups);
    press(&mut state, letters("1h"));
    assert_eq!(state.view, View::Node, "the last view is before the first");
}

#[test]
fn rows_are_sorted_by_the_next_column_and_reversed() {
    let mut state = state(View::Agents);
    let (idle, worker, gone) = (
        "acme/demo/idle native",
        "acme/demo/worker native",
        "acme/demo/gone native",
    );
    assert_eq!(keys(&state), [idle, worker, gone], "most messages first");
    press(&mut state, letters("r"));
    assert_eq!(keys(&state), [gone, worker, idle]);
    press(&mut state, letters("SSSS"));
    assert_eq!(state.order().column, 0);
    assert!(!state.order().is_descending, "names from the first on");
    assert_eq!(keys(&state), [gone, idle, worker]);
    press(&mut state, letters("S"));
    assert_eq!(state.order().column, state.table().columns.len() - 1);
    press(&mut state, letters("5"));
    assert_eq!(state.order(), View::Quotas.order(), "an order per view");
}

#[test]
fn a_filter_is_typed_and_removed() {
    let mut state = state(View::Agents);
    press(&mut state, letters("/idxq"));
    assert!(state.is_typing, "q is a letter of the filter");
    press(&mut state, [KeyCode::Backspace, KeyCode::Backspace]);
    assert_eq!(state.filter, "id");
    press(&mut state, [KeyCode::Enter]);
    assert!(!state.is_typing);
    assert_eq!(keys(&state), ["acme/demo/idle native"]);
    assert_eq!(press(&mut state, [KeyCode::Esc]), Action::Draw);
    assert_eq!(keys(&state).len(), 3);
    press(&mut state, letters("/x"));
    press(&mut state, [KeyCode::Esc]);
    assert_eq!((state.is_typing, state.filter.as_str()), (false, ""));
}

#[test]
fn the_selection_follows_its_row_to_the_details_and_back() {
    let mut state = state(View::Agents);
    press(&mut state, [KeyCode::Down]);
    let selected = |state: &State| state.selected(&state.table());
    assert_eq!(selected(&state), Some(1));
    press(&mut state, letters("r"));
    press(&mut state, [KeyCode::Home, KeyCode::Down]);
    assert_eq!(selected(&state), Some(1));
    assert_eq!(press(&mut state, [KeyCode::Enter]), Action::Sample);
    let worker = Detail::Agent("acme/demo/worker native".to_owned());
    assert_eq!(state.detail, Some(worker.clone()));
    assert_eq!(state.questions(), worker.questions());
    assert_eq!(keys(&state).len(), 2, "two instances");
    assert_eq!(press(&mut state, [KeyCode::Enter]), Action::Draw);
    press(&mut state, [KeyCode::Down]);
    assert_eq!(press(&mut state, [KeyCode::Esc]), Action::Sample);
    assert_eq!((state.detail.as_ref(), selected(&state)), (None, Some(1)));
    assert_eq!(press(&mut state, [KeyCode::Esc]), Action::Draw);
}

#[test]
fn the_selection_stays_within_the_rows() {
    let mut state = state(View::Agents);
    let selected = |state: &State| state.selected(&state.table());
    for (code, row) in [
        (KeyCode::Up, 0),
        (KeyCode::PageDown, 2),
        (KeyCode::Down, 2),
        (KeyCode::PageUp, 0),
        (KeyCode::End, 2),
        (KeyCode::Home, 0),
    ] {
        press(&mut state, [code]);
        assert_eq!(selected(&state), Some(row), "{code}");
    }
    press(&mut state, letters("/no such agent"));
    press(&mut state, [KeyCode::Enter, KeyCode::Down, KeyCode::Enter]);
    assert_eq!((selected(&state), state.detail), (None, None));
}

#[test]
fn q_and_control_c_quit() {
    for view in View::ALL {
        assert_eq!(press(&mut state(view), letters("q")), Action::Quit);
    }
    let mut state = state(View::Agents);
    press(&mut state, letters("/"));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(state.press(control_c), Action::Quit, "also in the filter");
    press(&mut state, [KeyCode::Esc]);
    press(&mut state, letters("?"));
    assert!(state.shows_help);
    assert_eq!(press(&mut state, letters("x")), Action::Draw);
    assert!(!state.shows_help);
}

#[test]
fn the_interval_stays_within_its_limits() {
    let mut state = state(View::Agents);
    press(&mut state, letters("---------"));
    assert_eq!(state.interval, *INTERVALS.start());
    press(&mut state, letters("+++++++++"));
    assert_eq!(state.interval, *INTERVALS.end());
    press(&mut state, letters(" "));
    assert!(state.is_paused);
}

#[test]
fn a_failed_sample_keeps_the_last_one() {
    let mut state = state(View::Agents);
    state.add(Err("connection lost".to_owned()));
    assert_eq!(state.failure.as_deref(), Some("connection lost"));
    assert_eq!(keys(&state).len(), 3);
    state.add(Ok(sample(5_000, 1)));
    assert_eq!(state.failure, None);
}
