//! What the screen shows, and how it changes with each look at the page.

use super::rates::{self, OfChannel, Rates};
use super::sample::{ChannelId, Sample};
use super::watch::Look;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Intervals whose rates are kept.
pub const INTERVALS: usize = 30;

/// What the screen shows.
#[derive(Debug, Default)]
pub struct State {
    /// The address of the page.
    pub page: String,
    /// The time between two looks.
    pub every: Duration,
    /// The program that was run, if one was.
    pub program: Option<Program>,
    /// What the last good sample says.
    pub rates: Rates,
    /// Messages a second of each channel in the last intervals, the last of all at the end.
    pub history: BTreeMap<ChannelId, VecDeque<Option<f64>>>,
    /// How long ago the last good sample was; `None` before the first.
    pub age: Option<Duration>,
    /// Why the last look gave no sample.
    pub trouble: Option<String>,
    /// Samples are not shown.
    pub paused: bool,
    /// By what the channels stand in order.
    pub sort: Sort,
    /// In the other order.
    pub reverse: bool,
    /// The channel that was chosen; the first if it is not there.
    pub selected: Option<ChannelId>,
    /// It is shown alone.
    pub alone: bool,
    /// The keys are explained.
    pub help: bool,
    /// The last sample, also if it was not shown.
    last: Option<(Sample, Instant)>,
    /// When the sample that is shown was taken.
    shown: Option<Instant>,
}

/// A program that was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// The file that has its output.
    pub output: PathBuf,
    /// How it ended, if it did.
    pub end: Option<End>,
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Its exit status.
    pub status: String,
    /// The last lines of its output.
    pub lines: Vec<String>,
}

/// By what channels stand in order: by names, or by a figure, the greatest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Device, launch, name and number.
    #[default]
    Name,
    /// Messages a second.
    Messages,
    /// Bytes a second.
    Bytes,
    /// Requests that wait.
    Waiting,
    /// Responses that wait.
    Unread,
    /// Errors.
    Errors,
    /// Stalls a second.
    Stalls,
}

impl Sort {
    /// The next column.
    pub fn next(self) -> Sort {
        match self {
            Sort::Name => Sort::Messages,
            Sort::Messages => Sort::Bytes,
            Sort::Bytes => Sort::Waiting,
            Sort::Waiting => Sort::Unread,
            Sort::Unread => Sort::Errors,
            Sort::Errors => Sort::Stalls,
            Sort::Stalls => Sort::Name,
        }
    }

    fn compare(self, a: &OfChannel, b: &OfChannel) -> Ordering {
        let figure = |channel: &OfChannel| match self {
            Sort::Name => None,
            Sort::Messages => channel.messages,
            Sort::Bytes => channel.bytes,
            Sort::Waiting => channel.waiting,
            Sort::Unread => channel.unread,
            Sort::Errors => channel.errors,
            Sort::Stalls => channel.stalls,
        };
        let figure = |channel| figure(channel).unwrap_or(-1.0);
        figure(b).total_cmp(&figure(a)).then_with(|| a.id.cmp(&b.id))
    }
}

impl State {
    /// Before the first look.
    pub fn new(page: String, every: Duration, program: Option<Program>) -> State {
        State { page, every, program, ..State::default() }
    }

    /// Takes what came of a look.
    pub fn take(&mut self, look: Look) {
        let sample = match look.outcome {
            Ok(sample) => sample,
            Err(trouble) => return self.trouble = Some(trouble.to_string()),
        };
        self.trouble = None;
        if !self.paused {
            let before = self.last.as_ref();
            let before =
                before.map(|(sample, at)| (sample, look.at.saturating_duration_since(*at)));
            self.rates = rates::between(before, &sample);
            self.remember();
            self.shown = Some(look.at);
        }
        self.last = Some((sample, look.at));
    }

    /// What time it is.
    pub fn at(&mut self, now: Instant) {
        self.age = self.shown.map(|shown| now.saturating_duration_since(shown));
    }

    /// Keeps the rates of the channels that are there.
    fn remember(&mut self) {
        let mut before = std::mem::take(&mut self.history);
        for channel in &self.rates.channels {
            let mut kept = before.remove(&channel.id).unwrap_or_default();
            if kept.len() == INTERVALS {
                kept.pop_front();
            }
            kept.push_back(channel.messages);
            self.history.insert(channel.id.clone(), kept);
        }
    }

    /// The channels, in the order in which they are shown.
    pub fn ordered(&self) -> Vec<&OfChannel> {
        let mut channels: Vec<_> = self.rates.channels.iter().collect();
        channels.sort_by(|a, b| self.sort.compare(a, b));
        if self.reverse {
            channels.reverse();
        }
        channels
    }

    /// Where the channel that was chosen stands among those; the first if it is gone.
    pub fn position(&self, ordered: &[&OfChannel]) -> usize {
        let is_selected = |channel: &&OfChannel| Some(&channel.id) == self.selected.as_ref();
        ordered.iter().position(is_selected).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::trouble::Trouble;

    fn look(at: Instant, handled: [u64; 2]) -> Look {
        let line = |(channel, handled): (usize, &u64)| {
            format!("ring_requests_handled_total{{kernel=\"a\",channel=\"{channel}\"}} {handled}\n")
        };
        let page: String = handled.iter().enumerate().map(line).collect();
        Look { at, outcome: Sample::of(&page) }
    }

    fn rates(state: &State) -> Vec<Option<f64>> {
        state.rates.channels.iter().map(|channel| channel.messages).collect()
    }

    #[test]
    fn samples_become_rates_and_a_history() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut state = State::default();
        state.at(begin);
        assert_eq!(state.age, None);
        for k in 0..40 {
            state.take(look(begin + second * k as u32, [k * 10, k * k]));
        }
        assert_eq!(rates(&state), [Some(10.0), Some(77.0)]);
        state.at(begin + 41 * second);
        assert_eq!(state.age, Some(2 * second));
        let (_, last) = state.history.last_key_value().unwrap();
        assert_eq!((last.len(), last.back()), (INTERVALS, Some(&Some(77.0))));
        // A program that began anew.
        state.take(look(begin + 40 * second, [0, 2000]));
        assert_eq!(rates(&state), [None, Some(479.0)]);
    }

    #[test]
    fn trouble_is_told_until_there_is_a_sample() {
        let (begin, mut state) = (Instant::now(), State::default());
        state.take(look(begin, [0; 2]));
        state.take(Look { at: begin, outcome: Err(Trouble::Status(500)) });
        assert!(state.trouble.as_ref().unwrap().contains("500"));
        assert_eq!(state.rates.channels.len(), 2, "what was known stays");
        state.take(look(begin, [0; 2]));
        assert_eq!(state.trouble, None);
    }

    #[test]
    fn a_pause_keeps_what_is_shown_and_ends_with_the_last_interval() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let mut state = State::default();
        state.take(look(begin, [0, 0]));
        state.take(look(begin + second, [1, 2]));
        state.paused = true;
        state.take(look(begin + 2 * second, [100, 200]));
        assert_eq!(rates(&state), [Some(1.0), Some(2.0)]);
        state.at(begin + 3 * second);
        assert_eq!(state.age, Some(2 * second));
        state.paused = false;
        state.take(look(begin + 3 * second, [103, 204]));
        assert_eq!(rates(&state), [Some(3.0), Some(4.0)]);
    }

    #[test]
    fn channels_stand_by_a_figure_the_greatest_first() {
        let (begin, mut state) = (Instant::now(), State::default());
        state.take(look(begin, [0, 0]));
        state.take(look(begin + Duration::from_secs(1), [1, 2]));
        let order = |state: &State| {
            state.ordered().iter().map(|channel| channel.id.channel).collect::<Vec<_>>()
        };
        assert_eq!(order(&state), [0, 1]);
        state.sort = state.sort.next();
        assert_eq!(order(&state), [1, 0]);
        state.reverse = true;
        assert_eq!(order(&state), [0, 1]);
        let mut sort = Sort::Name;
        for _ in 0..7 {
            sort = sort.next();
        }
        assert_eq!(sort, Sort::Name);
    }
}
