//! Draws what is shown: the page and its trouble, then kernels, links and channels, or a channel alone, or the keys.

use super::columns::{Column, fitting, left, line, right};
use super::rates::{OfChannel, OfKernel, OfLink, Times};
use super::sample::{KernelId, Memory};
use super::state::{End, INTERVALS, Program, Sort, State};
use super::{channel, figures, keys};
use crate::text;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// The least room for bars of the last intervals.
const LEAST_BARS: usize = 8;

/// What the columns mean, below the keys.
const MEANINGS: [(&str, &str); 9] = [
    ("run p50, run p99", "half, and 99%, of the handler's runs took no longer"),
    ("wait p50, wait p99", "the same of how long messages waited before; at most"),
    ("", "both in the last interval, as if even within each bucket"),
    ("msg/s, bytes/s", "messages handled; bytes of requests and of responses"),
    ("waiting, unread", "requests not yet taken; responses not yet received"),
    ("errors", "since the launch: messages refused, wrong indices"),
    ("stalls/s", "how often a sender, or who writes a link, found no room"),
    ("fullest", "of a link: how full the fullest of its rings is"),
    ("rate", "msg/s of the last 30 intervals, to the greatest of them"),
];

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let head = head(state, frame.area().width.into());
    let height = Constraint::Length(head.len() as u16);
    let [above, body, foot] =
        Layout::vertical([height, Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(head), above);
    let ordered = state.ordered();
    match ordered.get(state.position(&ordered)) {
        _ if state.help => frame.render_widget(Paragraph::new(help()), body),
        Some(chosen) if state.alone => channel::draw(frame, body, state, chosen),
        _ => tables(frame, body, state, &ordered),
    }
    frame.render_widget(Line::from(FOOT).dim(), foot);
}

const FOOT: &str = "? keys  s sort  r reverse  p pause  Enter channel  q quit";

/// What is looked at, how old it is, and what is wrong.
fn head(state: &State, width: usize) -> Vec<Line<'static>> {
    let age = match state.age {
        None => "no sample yet".to_owned(),
        Some(age) => format!("sampled {} s ago", age.as_secs()),
    };
    let paused = if state.paused { ", paused" } else { "" };
    let every = humantime::format_duration(state.every);
    let page = format!("{} every {every}, {age}{paused}", state.page);
    let mut lines = wrapped(&page, width, Style::new().bold());
    if let Some(program) = &state.program {
        lines.extend(of_program(program, width));
    }
    if let Some(trouble) = &state.trouble {
        lines.extend(wrapped(trouble, width, Style::new().fg(Color::Red)));
    }
    lines.push(Line::default());
    lines
}

fn of_program(program: &Program, width: usize) -> Vec<Line<'static>> {
    let Program { name, output, end } = program;
    let output = output.display();
    let Some(End { status, lines }) = end else {
        return wrapped(&format!("{name} runs; its output is in {output}"), width, Style::new());
    };
    let last = if lines.is_empty() { "" } else { ", which ends so:" };
    let ended = format!("{name} has ended, {status}; its output is in {output}{last}");
    let mut shown = wrapped(&ended, width, Style::new().fg(Color::Yellow));
    shown.extend(lines.iter().map(|line| Line::from(format!("  {line}"))));
    shown
}

/// Lines of a text, broken at spaces.
fn wrapped(text: &str, width: usize, style: Style) -> Vec<Line<'static>> {
    let text = text::wrapped_to(width, "", text);
    text.lines().map(|line| Line::from(line.to_owned()).style(style)).collect()
}

fn help() -> Vec<Line<'static>> {
    let line = |(what, does): (&str, &str)| Line::from(format!("  {what:<18}  {does}"));
    let keys = keys::NAMES.iter().map(|(key, does)| match key.len() > 18 {
        true => Line::from(format!("  {key}: {does}")),
        false => line((key, does)),
    });
    let meanings = MEANINGS.iter().map(|meaning| line(*meaning));
    let part = |heading: &'static str| [Line::from(heading).bold()];
    let keys = part("Keys").into_iter().chain(keys).chain([Line::default()]);
    keys.chain(part("Columns")).chain(meanings).collect()
}

/// A kernel's name, and its number among the launches.
pub fn name(id: &KernelId) -> String {
    match id.launch {
        Some(launch) => format!("{} #{launch}", id.kernel),
        None => id.kernel.clone(),
    }
}

fn tables(frame: &mut Frame<'_>, area: Rect, state: &State, ordered: &[&OfChannel]) {
    if state.rates.kernels.is_empty() {
        if state.age.is_some() {
            frame.render_widget(Line::from("The page has no kernels: none is launched."), area);
        }
        return;
    }
    let kernels = kernels(state, area);
    let links = links(state, area);
    let [of_kernels, of_links] = [&kernels, &links].map(|of| Constraint::Length(of.len() as u16));
    let space = Constraint::Length(1);
    let [above, between, _, below] =
        Layout::vertical([of_kernels, of_links, space, Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(kernels), above);
    frame.render_widget(Paragraph::new(links), between);
    let channels = channels(state, ordered, below);
    frame.render_widget(Paragraph::new(channels), below);
}

fn columns_of_kernels() -> [Column<OfKernel>; 10] {
    fn quantile(times: &Times, part: f64) -> String {
        figures::time(times.quantile(part))
    }
    [
        left("kernel", 14, |kernel| name(&kernel.id)),
        left("device", 7, |kernel| kernel.id.device.clone()),
        left("state", 10, |kernel| or_none(&kernel.now.state)),
        right("run p50", 8, |kernel| quantile(&kernel.handler, 0.5)),
        right("run p99", 8, |kernel| quantile(&kernel.handler, 0.99)),
        right("wait p50", 8, |kernel| quantile(&kernel.queueing, 0.5)),
        right("wait p99", 8, |kernel| quantile(&kernel.queueing, 0.99)),
        right("launches", 8, |kernel| figures::count(kernel.now.launches)),
        right("memory", 8, |kernel| figures::bytes(kernel.now.pinned)),
        left("mode", 12, |kernel| or_none(&kernel.now.mode)),
    ]
}

fn columns_of_links() -> [Column<OfLink>; 9] {
    [
        left("link from", 14, |link| name(&link.id.kernel)),
        left("device", 7, |link| link.id.kernel.device.clone()),
        left("port", 12, |link| link.id.port.clone()),
        left("to", 12, |link| link.id.to.clone()),
        right("msg/s", 7, |link| figures::count(link.messages)),
        right("bytes/s", 8, |link| figures::bytes(link.bytes)),
        right("waiting", 8, |link| figures::count(link.waiting)),
        right("fullest", 7, |link| figures::percent(link.fullest)),
        right("stalls/s", 9, |link| figures::count(link.stalls)),
    ]
}

fn columns_of_channels() -> [Column<OfChannel>; 10] {
    [
        left("kernel", 14, |channel| name(&channel.id.kernel)),
        left("device", 7, |channel| channel.id.kernel.device.clone()),
        right("ch", 4, |channel| channel.id.channel.to_string()),
        left("state", 8, |channel| or_none(&channel.state)),
        right("msg/s", 7, |channel| figures::count(channel.messages)),
        right("bytes/s", 8, |channel| figures::bytes(channel.bytes)),
        right("waiting", 8, |channel| figures::count(channel.waiting)),
        right("unread", 7, |channel| figures::count(channel.unread)),
        right("errors", 7, |channel| figures::count(channel.errors)),
        right("stalls/s", 9, |channel| figures::count(channel.stalls)),
    ]
}

/// The heading of the column by which channels stand in order.
fn heading(sort: Sort) -> &'static str {
    match sort {
        Sort::Name => "kernel",
        Sort::Messages => "msg/s",
        Sort::Bytes => "bytes/s",
        Sort::Waiting => "waiting",
        Sort::Unread => "unread",
        Sort::Errors => "errors",
        Sort::Stalls => "stalls/s",
    }
}

fn or_none(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| "-".to_owned())
}

/// The kernels, as many as a third of the screen holds, and the memory of runtimes.
fn kernels(state: &State, area: Rect) -> Vec<Line<'static>> {
    let columns = columns_of_kernels();
    let (columns, _) = fitting(&columns, (area.width as usize).saturating_sub(2));
    let heading = line(columns, |column| column.heading.to_owned());
    let mut lines = vec![Line::from(format!("  {heading}")).bold()];
    let (all, room) = (&state.rates.kernels, (area.height as usize / 3).max(1));
    lines.extend(rows(columns, all, room));
    let memory = |((device, memory), of): (&(String, String), &Memory)| {
        let [bytes, free] = [of.bytes, of.free].map(figures::bytes);
        format!("{memory} memory of {device}: {bytes}, {free} free")
    };
    let memories: Vec<_> = state.rates.memories.iter().map(memory).collect();
    if !memories.is_empty() {
        lines.push(Line::from(format!("  {}", memories.join("; "))).dim());
    }
    lines
}

/// The links, as many as a third of the screen holds, behind an empty line; nothing if there are none.
fn links(state: &State, area: Rect) -> Vec<Line<'static>> {
    let (all, room) = (&state.rates.links, (area.height as usize / 3).max(1));
    if all.is_empty() {
        return Vec::new();
    }
    let columns = columns_of_links();
    let (columns, _) = fitting(&columns, (area.width as usize).saturating_sub(2));
    let heading = line(columns, |column| column.heading.to_owned());
    let mut lines = vec![Line::default(), Line::from(format!("  {heading}")).bold()];
    lines.extend(rows(columns, all, room));
    lines
}

/// The rows of a table, as many as there is room for.
fn rows<T>(columns: &[Column<T>], all: &[T], room: usize) -> Vec<Line<'static>> {
    let row = |one| Line::from(format!("  {}", line(columns, |column| (column.cell)(one))));
    let mut rows: Vec<_> = all.iter().take(room).map(row).collect();
    if all.len() > room {
        rows.push(Line::from(format!("  and {} more", all.len() - room)).dim());
    }
    rows
}

/// The channels, of which that part is shown that has the chosen one.
fn channels(state: &State, ordered: &[&OfChannel], area: Rect) -> Vec<Line<'static>> {
    let columns = columns_of_channels();
    let (columns, beside) = fitting(&columns, (area.width as usize).saturating_sub(2));
    let bars = beside.saturating_sub(2).min(INTERVALS);
    let bars = if bars < LEAST_BARS { 0 } else { bars };
    let arrow = if state.reverse { '▲' } else { '▼' };
    let mut heading = line(columns, |column| match column.heading == heading(state.sort) {
        true => format!("{}{arrow}", column.heading),
        false => column.heading.to_owned(),
    });
    if bars > 0 {
        heading += "  rate";
    }
    let mut lines = vec![Line::from(format!("  {heading}")).bold()];
    let rows = (area.height as usize).saturating_sub(1).max(1);
    let chosen = state.position(ordered);
    for (k, channel) in ordered.iter().enumerate().skip(chosen / rows * rows).take(rows) {
        let cells = line(columns, |column| (column.cell)(channel));
        let rate =
            if bars > 0 { format!("  {}", spark(state, channel, bars)) } else { String::new() };
        let row = Line::from(format!("{} {cells}{rate}", if k == chosen { '>' } else { ' ' }));
        lines.push(if k == chosen { row.reversed() } else { row });
    }
    lines
}

/// The rates of the last intervals, as bars.
pub fn spark(state: &State, channel: &OfChannel, bars: usize) -> String {
    let Some(history) = state.history.get(&channel.id) else { return String::new() };
    figures::spark(history.iter().copied().skip(history.len().saturating_sub(bars)))
}
