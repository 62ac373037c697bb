//! The picture of a traced run in docs/operations.md, drawn from the times that `measure traces` printed.

use std::fmt::Write;

use anyhow::{Context, ensure};

use super::svg;
use crate::{Result, Workspace, workspace};

/// What it is drawn from: the lines that begin with `run`.
pub const TIMES: &str = "docs/results/2026-11-29-h200-driver-580.159.04-traces.txt";

/// The picture.
pub const PICTURE: &str = "docs/pictures/trace.svg";

/// Its size, and where the time axis begins and ends.
const SIZE: [f64; 2] = [760.0, 300.0];
const LEFT: f64 = 118.0;
const RIGHT: f64 = 20.0;

/// Where the host sends, the device handles, and the host receives.
const ROWS: [f64; 3] = [70.0, 150.0, 230.0];

/// Nanoseconds of a message: accepted, began, ended, received.
type Times = [f64; 4];

/// The picture that the times give.
///
/// # Errors
/// When the file is missing or has no such times.
pub fn of(ws: &Workspace) -> Result<String> {
    let text = workspace::read(&ws.root().join(TIMES))?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("run "));
    let messages: Vec<Times> = lines.map(times).collect::<Result<_>>()?;
    ensure!(messages.len() > 1, "{TIMES} has the times of {} messages", messages.len());
    Ok(draw(&messages))
}

fn times(line: &str) -> Result<Times> {
    let numbers: Vec<f64> = line
        .split(' ')
        .map(|number| number.parse().with_context(|| format!("{TIMES}: {line}")))
        .collect::<Result<_>>()?;
    let times: Times =
        numbers.try_into().ok().with_context(|| format!("{TIMES}: {line} is not four times"))?;
    ensure!(times.is_sorted(), "{TIMES}: {line} is not in order");
    Ok(times)
}

fn draw(messages: &[Times]) -> String {
    let [width, _] = SIZE;
    let last = messages.iter().map(|times| times[3]).fold(1.0, f64::max);
    let at = |time: f64| LEFT + time / last * (width - LEFT - RIGHT);
    let count = messages.len();
    let title = format!("When each of {count} messages was sent, handled and received");
    let mut svg = svg::begin(SIZE, &title);
    let _ = writeln!(
        svg,
        "<text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{count} messages, NVIDIA H200: bursts, each when the one \
         before is answered</text>"
    );
    for (y, name) in ROWS.into_iter().zip(["host sends", "device handles", "host receives"]) {
        let _ = writeln!(svg, "<text x=\"12\" y=\"{:.1}\">{name}</text>", y + 4.5);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#ccc\"/>", width - RIGHT);
    }
    let step = [1e3, 2e3, 5e3, 1e4, 2e4, 5e4].into_iter().find(|step| last / step < 9.0);
    let step = step.unwrap_or(last);
    for k in 0..=(last / step) as u32 {
        let (time, y) = (f64::from(k) * step, ROWS[2]);
        let (x, name) = (at(time), time / 1e3);
        let unit = if k == 0 { " us" } else { "" };
        let _ = writeln!(svg, "<path d=\"M{x:.1} {:.1}v6\" stroke=\"#888\"/>", y + 14.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}{unit}</text>",
            y + 36.0
        );
    }
    let [sends, handles, receives] = ROWS;
    for [accepted, began, ended, received] in messages {
        let [a, b, e, r] = [accepted, began, ended, received].map(|time| at(*time));
        let way = |svg: &mut String, from: [f64; 2], to: [f64; 2], colour: &str| {
            let ([x, y], [to_x, to_y]) = (from, to);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\" stroke=\"{colour}\"/>"
            );
        };
        way(&mut svg, [a, sends], [b, handles], "#2f6fb2");
        way(&mut svg, [e, handles], [r, receives], "#c23b22");
        for (x, y) in [(a, sends), (b, handles), (r, receives)] {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>");
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::{PICTURE, of, times};
    use crate::{Workspace, workspace};

    #[test]
    fn the_picture_is_what_the_times_give() {
        let ws = Workspace::locate().unwrap();
        let drawn = workspace::read(&ws.root().join(PICTURE)).unwrap();
        assert!(drawn == of(&ws).unwrap(), "try: cargo xtask picture, and check in the result");
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        assert_eq!(times("0 1411 1412 2855").unwrap(), [0.0, 1411.0, 1412.0, 2855.0]);
        for line in ["", "0 1 2", "0 1 2 3 4", "0 1 2 soon", "0 3 2 4"] {
            assert!(times(line).is_err(), "{line}");
        }
    }
}
