//! `cargo xtask picture`: the pictures of the documentation, drawn from committed results: here the README's, of latency against load, from
//! a report of `ring bench`.

pub mod networks;
mod svg;
pub mod trace;

use std::fmt::Write;

use anyhow::{Context, ensure};
use serde_json::Value;

use self::svg::{line, text};
use crate::{Result, Workspace, workspace};

/// The report that it is drawn from.
pub const REPORT: &str = "docs/results/2026-11-25-h200-driver-580.159.04-load-scopes.json";

/// The picture.
pub const PICTURE: &str = "docs/pictures/latency-against-load.svg";

/// Its size, and where the axes are.
const SIZE: [f64; 2] = [760.0, 400.0];
const LEFT: f64 = 64.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 52.0;

/// What the axes begin and end with: messages a second, and microseconds. Both are logarithmic.
const RATES: [f64; 2] = [1e5, 2e8];
const TIMES: [f64; 2] = [1.0, 200.0];

/// What was measured of one number of messages in flight.
#[derive(Debug, PartialEq)]
struct Point {
    /// Messages a second.
    rate: f64,
    /// Half of the messages took no longer, in microseconds.
    p50: f64,
    /// 99 of 100 took no longer.
    p99: f64,
}

/// Draws all into the clone.
///
/// # Errors
/// When a result is missing or has no such figures.
pub fn run(ws: &Workspace) -> Result {
    workspace::write(&ws.root().join(trace::PICTURE), &trace::of(ws)?)?;
    workspace::write(&ws.root().join(networks::TIMES), &networks::times(ws)?)?;
    workspace::write(&ws.root().join(networks::PAUSES), &networks::pauses(ws)?)?;
    workspace::write(&ws.root().join(PICTURE), &of(ws)?)
}

/// The picture that the report gives.
///
/// # Errors
/// When the report is missing or has no such figures.
pub fn of(ws: &Workspace) -> Result<String> {
    let report: Value = serde_json::from_str(&workspace::read(&ws.root().join(REPORT))?)?;
    let rows = report.pointer("/load/closed").and_then(Value::as_array);
    let rows = rows.with_context(|| format!("{REPORT} has no latency under load"))?;
    let of = |carrier: &str| -> Vec<Point> {
        rows.iter().filter(|row| row["carrier"] == carrier).filter_map(point).collect()
    };
    let [ring, launch, graph] = ["ring", "launch", "graph"].map(of);
    ensure!(
        ring.len() > 1 && launch.len() == 1 && graph.len() == 1,
        "{REPORT} has {} points of the ring, {} of launches and {} of graphs",
        ring.len(),
        launch.len(),
        graph.len()
    );
    let gpu = report.pointer("/machine/device").and_then(Value::as_str).unwrap_or("a GPU");
    let gpu = gpu.trim_start_matches("cuda: ");
    Ok(draw(gpu, &ring, &launch[0], &graph[0]))
}

/// A row of the report. What is launched for each message has no rate of its own: one message follows the other.
fn point(row: &Value) -> Option<Point> {
    let time = |figure: &str| row["figures"]["times"][figure].as_f64();
    let (p50, p99) = (time("p50")?, time("p99")?);
    let rate = row["figures"]["rate"]["median"].as_f64();
    Some(Point { rate: rate.unwrap_or(1e6 / p50), p50, p99 })
}

fn at_x(rate: f64) -> f64 {
    LEFT + (rate / RATES[0]).ln() / (RATES[1] / RATES[0]).ln() * (SIZE[0] - LEFT - RIGHT)
}

fn at_y(time: f64) -> f64 {
    SIZE[1]
        - BOTTOM
        - (time / TIMES[0]).ln() / (TIMES[1] / TIMES[0]).ln() * (SIZE[1] - TOP - BOTTOM)
}

fn draw(gpu: &str, ring: &[Point], launch: &Point, graph: &Point) -> String {
    let [width, height] = SIZE;
    let mut svg = svg::begin(SIZE, "Time of a message there and back against messages a second");
    let title =
        format!("64 bytes there and back, {gpu}: half of the messages; shaded, up to 99 of 100");
    text(&mut svg, [LEFT, 24.0], " font-size=\"15\" font-weight=\"bold\"", &title);
    for (time, name) in [
        (1.0, "1 us"),
        (2.0, "2"),
        (5.0, "5"),
        (10.0, "10"),
        (20.0, "20"),
        (50.0, "50"),
        (100.0, "100"),
        (200.0, "200"),
    ] {
        text(&mut svg, [LEFT - 8.0, at_y(time) + 4.5], " text-anchor=\"end\"", name);
    }
    for (rate, name) in
        [(1e5, "100,000"), (1e6, "1 million"), (1e7, "10 million"), (1e8, "100 million a second")]
    {
        text(&mut svg, [at_x(rate), height - BOTTOM + 20.0], " text-anchor=\"middle\"", name);
    }
    text(
        &mut svg,
        [LEFT, height - 10.0],
        " fill=\"#555\"",
        "one channel, 1 to 8192 messages in flight; the dots of launch and graph: one message after the other",
    );
    for time in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0] {
        let y = at_y(time);
        let _ =
            writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"#e4e4e4\"/>", width - RIGHT);
    }
    // Between half and 99 of 100 messages, there by the lower edge and back by the upper one.
    let there = ring.iter().map(|point| (point.rate, point.p50));
    let back = ring.iter().rev().map(|point| (point.rate, point.p99));
    let _ = writeln!(
        svg,
        "<path d=\"{}Z\" fill=\"#2f6fb2\" fill-opacity=\"0.15\"/>",
        path(there.clone().chain(back))
    );
    let _ = writeln!(
        svg,
        "<path d=\"{}\" fill=\"none\" stroke=\"#2f6fb2\" stroke-width=\"2.5\"/>",
        path(there.clone())
    );
    for (rate, time) in there {
        dot(&mut svg, rate, time, "#2f6fb2");
    }
    let last = &ring[ring.len() - 1];
    for (point, colour, name) in [
        (launch, "#c23b22", "a launch for each message"),
        (graph, "#b07a00", "a CUDA graph for each message"),
    ] {
        dot(&mut svg, point.rate, point.p50, colour);
        let (x, y) = (
            at_x(point.rate) + 10.0,
            at_y(point.p50) + if colour == "#c23b22" { -4.0 } else { 14.0 },
        );
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{name}: {:.1} us</text>",
            point.p50
        );
    }
    let first = &ring[0];
    for (x, y, anchor, words) in [
        (at_x(first.rate), at_y(first.p50) + 22.0, "start", format!("ring: {:.1} us", first.p50)),
        (
            at_x(last.rate) - 12.0,
            at_y(last.p50) + 5.0,
            "end",
            format!("ring: {:.0} million a second", last.rate / 1e6),
        ),
    ] {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#2f6fb2\">{words}</text>"
        );
    }
    svg + "</svg>\n"
}

fn dot(svg: &mut String, rate: f64, time: f64, colour: &str) {
    let _ = writeln!(
        svg,
        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>",
        at_x(rate),
        at_y(time)
    );
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    line(points.map(|(rate, time)| [at_x(rate), at_y(time)]))
}

#[cfg(test)]
mod tests {
    use super::{PICTURE, Point, of, point};
    use crate::{Workspace, workspace};
    use serde_json::json;

    #[test]
    fn the_picture_is_what_the_report_gives() {
        let ws = Workspace::locate().unwrap();
        let drawn = workspace::read(&ws.root().join(PICTURE)).unwrap();
        assert!(drawn == of(&ws).unwrap(), "try: cargo xtask picture, and check in the result");
    }

    #[test]
    fn a_row_without_a_rate_is_of_one_message_after_the_other() {
        let times = json!({"p50": 8.0, "p99": 10.0});
        let row = json!({"figures": {"rate": {"median": 2.0}, "times": times}});
        assert_eq!(point(&row), Some(Point { rate: 2.0, p50: 8.0, p99: 10.0 }));
        let row = json!({"figures": {"rate": null, "times": times}});
        assert_eq!(point(&row), Some(Point { rate: 125_000.0, p50: 8.0, p99: 10.0 }));
        assert_eq!(point(&json!({"figures": {}})), None);
    }
}
