//! Draws a channel alone, with how long the handlers of its kernel ran and its messages waited.

use super::rates::{OfChannel, Times};
use super::state::{INTERVALS, State};
use super::{figures, screen};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Characters of a bar at most.
const WIDEST: usize = 40;

/// Characters of a line beside its bar.
const BESIDE: usize = 22;

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, channel: &OfChannel) {
    let figures = of_channel(state, channel);
    let height = Constraint::Length(figures.len() as u16);
    let [above, below] = Layout::vertical([height, Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(figures), above);
    let Some(kernel) = state.rates.kernels.iter().find(|of| of.id == channel.id.kernel) else {
        return;
    };
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(below);
    let [left, right]: [Rect; 2] = halves;
    for (area, what, times) in
        [(left, "Handlers ran", &kernel.handler), (right, "Messages waited", &kernel.queueing)]
    {
        frame.render_widget(Paragraph::new(of_times(what, times, area.width as usize)), area);
    }
}

fn of_channel(state: &State, channel: &OfChannel) -> Vec<Line<'static>> {
    let (id, state_of) = (&channel.id, channel.state.as_deref().unwrap_or("-"));
    let of =
        format!("{} on {}, channel {}", screen::name(&id.kernel), id.kernel.device, id.channel);
    let count = figures::count;
    vec![
        Line::from(format!("{of}: {state_of}")).bold(),
        Line::from(format!(
            "  msg/s {}  bytes/s {}  waiting {}  unread {}  errors {}  stalls/s {}",
            count(channel.messages),
            figures::bytes(channel.bytes),
            count(channel.waiting),
            count(channel.unread),
            count(channel.errors),
            count(channel.stalls),
        )),
        Line::from(format!("  rate {}", screen::spark(state, channel, INTERVALS))),
        Line::default(),
        Line::from("Of the whole kernel, in the last interval:"),
    ]
}

/// A histogram as bars, from the first bucket that has any to the last.
fn of_times(what: &str, times: &Times, width: usize) -> Vec<Line<'static>> {
    if times.count() == 0.0 {
        return vec![Line::from(format!("{what}: none")).bold()];
    }
    let [p50, p99] = [0.5, 0.99].map(|part| figures::time(times.quantile(part)));
    let mut lines = vec![Line::from(format!("{what}: p50 {p50}, p99 {p99}")).bold()];
    let has_any = |(_, count): &(f64, f64)| *count > 0.0;
    let first = times.buckets.iter().position(has_any).unwrap_or(0);
    let last = times.buckets.iter().rposition(has_any).map_or(0, |last| last + 1);
    let greatest = times.buckets.iter().map(|(_, count)| *count).fold(0.0, f64::max);
    let room = width.saturating_sub(BESIDE).min(WIDEST);
    for (end, count) in &times.buckets[first..last] {
        let end = if end.is_finite() { figures::time(Some(*end)) } else { "more".to_owned() };
        let (bar, count) = (figures::bar(count / greatest, room), figures::count(Some(*count)));
        lines.push(Line::from(format!("  to {end:>8} {count:>6} {bar}")));
    }
    lines
}
