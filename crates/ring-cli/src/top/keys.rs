//! What a key does.

use super::state::State;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Rows that PageUp and PageDown go.
const PAGE: isize = 10;

/// The keys, as the screen names them.
pub const NAMES: [(&str, &str); 7] = [
    ("Up, Down, PageUp, PageDown, Home, End", "choose a channel"),
    ("Enter", "that channel alone, its kernel's times as bars; Esc: back"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("p", "pause, and go on"),
    ("?", "these lines, and the table again"),
    ("q, Esc, Ctrl-C", "quit"),
];

/// Whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It does.
    Stay,
    /// It ends.
    Quit,
}

/// Does what that key is for.
pub fn press(state: &mut State, key: KeyEvent) -> Next {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Next::Quit } else { Next::Stay };
    }
    match key.code {
        KeyCode::Char('q') => return Next::Quit,
        KeyCode::Esc if state.help => state.help = false,
        KeyCode::Esc if state.alone => state.alone = false,
        KeyCode::Esc => return Next::Quit,
        KeyCode::Char('s') => state.sort = state.sort.next(),
        KeyCode::Char('r') => state.reverse = !state.reverse,
        KeyCode::Char('p') => state.paused = !state.paused,
        KeyCode::Char('?') => state.help = !state.help,
        KeyCode::Enter => state.alone = !state.rates.channels.is_empty(),
        KeyCode::Up => go(state, -1),
        KeyCode::Down => go(state, 1),
        KeyCode::PageUp => go(state, -PAGE),
        KeyCode::PageDown => go(state, PAGE),
        KeyCode::Home => go(state, isize::MIN),
        KeyCode::End => go(state, isize::MAX),
        _ => {}
    }
    Next::Stay
}

/// Chooses the channel so many rows below, or the last.
fn go(state: &mut State, rows: isize) {
    let ordered = state.ordered();
    let last = ordered.len().saturating_sub(1);
    let row = state.position(&ordered).saturating_add_signed(rows).min(last);
    state.selected = ordered.get(row).map(|channel| channel.id.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::rates::OfChannel;
    use crate::top::sample::{ChannelId, KernelId};
    use crate::top::state::Sort;

    fn state(channels: u64) -> State {
        let id = |channel| ChannelId { kernel: KernelId::default(), channel };
        let channel = |channel| OfChannel { id: id(channel), ..OfChannel::default() };
        let mut state = State::default();
        state.rates.channels = (0..channels).map(channel).collect();
        state
    }

    fn press_all(state: &mut State, keys: &[KeyCode]) -> Next {
        keys.iter().fold(Next::Stay, |_, key| press(state, (*key).into()))
    }

    #[test]
    fn channels_are_chosen() {
        let mut state = state(25);
        for (keys, channel) in [
            (&[KeyCode::Down][..], 1),
            (&[KeyCode::Down, KeyCode::Down, KeyCode::Up], 2),
            (&[KeyCode::PageDown], 12),
            (&[KeyCode::PageDown, KeyCode::PageDown], 24),
            (&[KeyCode::Down], 24),
            (&[KeyCode::PageUp], 14),
            (&[KeyCode::Home], 0),
            (&[KeyCode::Up], 0),
            (&[KeyCode::End], 24),
        ] {
            assert_eq!(press_all(&mut state, keys), Next::Stay);
            assert_eq!(state.selected.as_ref().unwrap().channel, channel, "{keys:?}");
        }
        // One that is gone: it begins with the first.
        state.rates.channels.truncate(3);
        press_all(&mut state, &[KeyCode::Down]);
        assert_eq!(state.selected.as_ref().unwrap().channel, 1);
    }

    #[test]
    fn a_channel_that_was_chosen_stays_so_in_another_order() {
        let mut state = state(3);
        press_all(&mut state, &[KeyCode::Down, KeyCode::Down, KeyCode::Char('r')]);
        assert_eq!(state.selected.as_ref().unwrap().channel, 2);
        assert_eq!(state.position(&state.ordered()), 0);
    }

    #[test]
    fn without_channels_no_key_chooses_any() {
        let mut state = state(0);
        press_all(&mut state, &[KeyCode::End, KeyCode::Up, KeyCode::PageDown, KeyCode::Enter]);
        assert_eq!((state.selected.as_ref(), state.alone), (None, false));
    }

    #[test]
    fn letters_sort_reverse_pause_and_explain() {
        let mut state = state(1);
        press_all(&mut state, &[KeyCode::Char('s'), KeyCode::Char('r'), KeyCode::Char('p')]);
        assert_eq!((state.sort, state.reverse, state.paused), (Sort::Messages, true, true));
        press_all(&mut state, &[KeyCode::Char('r'), KeyCode::Char('p'), KeyCode::Char('?')]);
        assert_eq!((state.reverse, state.paused, state.help), (false, false, true));
        press_all(&mut state, &[KeyCode::Char('?'), KeyCode::Char('x'), KeyCode::Tab]);
        assert!(!state.help);
    }

    #[test]
    fn escape_goes_back_and_then_out() {
        let mut state = state(1);
        press_all(&mut state, &[KeyCode::Enter, KeyCode::Char('?')]);
        assert!(state.alone && state.help);
        assert_eq!(press_all(&mut state, &[KeyCode::Esc]), Next::Stay);
        assert!(state.alone && !state.help);
        assert_eq!(press_all(&mut state, &[KeyCode::Esc]), Next::Stay);
        assert!(!state.alone);
        assert_eq!(press_all(&mut state, &[KeyCode::Esc]), Next::Quit);
    }

    #[test]
    fn three_keys_quit() {
        let mut state = state(1);
        assert_eq!(press(&mut state, KeyCode::Char('q').into()), Next::Quit);
        assert_eq!(press(&mut state, KeyCode::Esc.into()), Next::Quit);
        let control = |key| KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL);
        assert_eq!(press(&mut state, control('c')), Next::Quit);
        assert_eq!(press(&mut state, control('s')), Next::Stay);
        assert_eq!(state.sort, Sort::Name);
    }
}
