//! `ring top`: what the kernels of a program do, live in a terminal.
//!
//! [`watch`] reads the program's page of metrics again and again and [`sample`] its text; [`rates`] makes figures of two
//! samples, [`state`] keeps what is shown, [`keys`] changes that, and [`screen`] and [`channel`] draw it, with [`columns`] and
//! [`figures`]. [`child`] is a program that is run to be watched.

mod channel;
mod child;
mod columns;
mod figures;
mod keys;
mod rates;
mod sample;
mod screen;
mod state;
mod trouble;
mod watch;

use crate::args::{Page, Top};
use crate::failure::Failure;
use child::Child;
use keys::Next;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGINT, SIGTERM};
use state::{Program, State};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};
use watch::Watch;

/// The screen is drawn as often, and with each key.
const REFRESH: Duration = Duration::from_millis(100);

/// Shows the metrics of a page until the user has seen enough, and ends the program that it has run for that.
pub fn run(options: &Top, out: &mut impl Write) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::NoTerminal);
    }
    let asked = signals().map_err(Failure::Terminal)?;
    let mut child = match &options.program[..] {
        [] => None,
        [program, arguments @ ..] => Some(Child::start(program, arguments)?),
    };
    let page = child.as_ref().map_or(options.page.clone(), |child| Page::on_loopback(child.port));
    let watch = Watch::begin(&page, options.every).map_err(Failure::Terminal)?;
    let program = child.as_ref().map(of_child);
    let mut state = State::new(page.to_string(), options.every, program);
    let shown = Screen::open()
        .and_then(|mut screen| show(&mut screen, &mut state, &watch, &mut child, &asked));
    if let Some(Child { name, output, .. }) = &child {
        writeln!(out, "the output of {name} is in {}", output.display())?;
    }
    shown.map_err(Failure::Terminal)
}

/// Draws, and does what keys are for, until one or a signal ends it.
fn show(
    screen: &mut Screen,
    state: &mut State,
    watch: &Watch,
    child: &mut Option<Child>,
    asked: &AtomicBool,
) -> io::Result<()> {
    while !asked.load(Ordering::Relaxed) {
        state.at(Instant::now());
        screen.draw(|frame| screen::draw(frame, state))?;
        if event::poll(REFRESH)?
            && let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
            && keys::press(state, key) == Next::Quit
        {
            break;
        }
        match watch.looks.try_recv() {
            Ok(look) => state.take(look),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => {
                return Err(io::Error::other("the thread that reads the page has ended"));
            }
        }
        if let (Some(child), Some(Program { end: end @ None, .. })) =
            (&mut *child, &mut state.program)
        {
            *end = child.ended();
        }
    }
    Ok(())
}

fn of_child(child: &Child) -> Program {
    Program { name: child.name.clone(), output: child.output.clone(), end: None }
}

/// A signal that would end the program is to end it as a key does: with the terminal as it was.
fn signals() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&asked))?;
    }
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&asked))?;
    Ok(asked)
}

/// The terminal, which is as it was before when this is dropped, and when the program panics.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> io::Result<Screen> {
        let terminal = ratatui::try_init();
        if terminal.is_err() {
            ratatui::restore(); // of what it had begun
        }
        terminal.map(Screen)
    }

    fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

#[cfg(test)]
mod tests;
