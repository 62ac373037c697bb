//! The pictures of docs/inference.md: how long two networks take a request by each way to run them, and by when a request comes, drawn from
//! what the programs of examples/13-inference printed.

use std::fmt::Write;

use anyhow::{Context, ensure};

use super::svg::{self, line, text};
use crate::{Result, Workspace, workspace};

/// What they are drawn from.
pub const FIGURES: &str = "docs/results/2026-12-01-h200-driver-580.159.04-networks.txt";

/// The picture of how long requests take.
pub const TIMES: &str = "docs/pictures/networks.svg";

/// The picture of when requests come.
pub const PAUSES: &str = "docs/pictures/networks-by-pause.svg";

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 24.0;

/// What the axis of times begins and ends with, in microseconds. It is logarithmic.
const AXIS: [f64; 2] = [3.0, 3000.0];
const MARKS: [f64; 9] = [5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];

/// Height of a row, and of what is above the rows of a network.
const ROW: f64 = 22.0;
const HEAD: f64 = 40.0;

/// The greatest pause, in microseconds, and how many there are from none to that.
const LAST: f64 = 2.0;
const COUNT: usize = 21;

const OURS: &str = "#2f6fb2";
const RESIDENT: &str = "#4b8b3b";
const OTHERS: &str = "#b07a00";

/// Of all requests half, 99 of 100, and 999 of 1000 took no longer, and the longest time; in microseconds.
type Quantiles = [f64; 4];

/// A way to run a network: its name, its colour, and what it takes.
type Way = (&'static str, &'static str, Quantiles);

/// What was measured.
struct Figures<'a>(Vec<&'a str>);

impl<'a> Figures<'a> {
    /// The first line behind line `from` that begins so.
    fn find(&self, from: usize, begin: &str) -> Result<usize> {
        let behind = self.0.iter().skip(from).position(|line| line.starts_with(begin));
        behind.map(|n| from + n).with_context(|| format!("{FIGURES} has no line '{begin}'"))
    }

    /// What ring-inference says below that line.
    fn ours(&self, title: &str) -> Result<Quantiles> {
        let behind = self.0.get(self.find(0, title)? + 1);
        let line = behind.with_context(|| format!("{FIGURES} ends with '{title}'"))?;
        let of = |name: &str| -> Result<f64> {
            let found = line.split_once(name).and_then(|(_, rest)| number(rest));
            found.with_context(|| format!("{FIGURES}: '{line}' has no {name}"))
        };
        Ok([of("p50 ")?, of("p99 ")?, of("p99.9 ")?, of("max ")?])
    }

    /// The line of graphs.cu with the best way of that kind to run what the table `title` is about.
    fn best(&self, title: &str, kind: &str) -> Result<usize> {
        let begin = format!("{title}: best of its kind: ");
        let said = self.0[self.find(0, &format!("{begin}{kind}"))?];
        let name = said[begin.len()..].rsplit_once(": p50").map_or("", |(name, _)| name);
        self.find(self.find(0, &format!("{title}  "))?, &format!("{name}  "))
    }

    /// The four numbers behind the words of a line of a table.
    fn row(&self, line: usize) -> Result<Quantiles> {
        let words = self.0[line].rsplit("  ").filter_map(|word| word.trim().parse().ok());
        let mut numbers: Vec<f64> = words.collect();
        numbers.reverse();
        let first = numbers.get(..4).and_then(|four| four.try_into().ok());
        first.with_context(|| format!("{FIGURES}: '{}' has not four times", self.0[line]))
    }

    /// What requests took by the pause before them, as the first line behind line `from` that tells of it says.
    fn pauses(&self, from: usize) -> Result<Vec<f64>> {
        let line = self.0[self.find(from, "    p50 by the pause")?];
        let (_, list) = line.split_once("us: ").unwrap_or_default();
        let list = list.split(';').next().unwrap_or_default();
        let times: Vec<f64> = list.split(' ').filter_map(|time| time.parse().ok()).collect();
        ensure!(times.len() == COUNT, "{FIGURES}: '{line}' has {} times", times.len());
        Ok(times)
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    text.split([' ', ',']).next()?.parse().ok()
}

/// The picture of how long requests take.
///
/// # Errors
/// When the figures are missing or are not all there.
pub fn times(ws: &Workspace) -> Result<String> {
    let text = workspace::read(&ws.root().join(FIGURES))?;
    let figures = Figures(text.lines().collect());
    let by_best = |title: &str, kind| figures.row(figures.best(title, kind)?);
    let by_torch = |name: String| figures.row(figures.find(0, &format!("{name}  "))?);
    let others = |title: &str, torch: &str| -> Result<[Way; 5]> {
        Ok([
            ("graph, mapped memory", OTHERS, by_best(title, "mapped")?),
            ("CUDA graph", OTHERS, by_best(title, "graph")?),
            ("launches", OTHERS, by_best(title, "launches")?),
            ("PyTorch, CUDA graph", OTHERS, by_torch(format!("{torch}: graph"))?),
            ("PyTorch, eager", OTHERS, by_torch(format!("{torch}: eager"))?),
        ])
    };
    let alone = |title: &str, ours: &str, resident: &str| -> Result<Vec<Way>> {
        let ours = ("ring", OURS, figures.ours(ours)?);
        let resident = ("C++, resident", RESIDENT, by_best(resident, "resident")?);
        Ok([ours, resident].into_iter().chain(others(title, title)?).collect())
    };
    let many = "    1024 streams, 1 under way";
    let together = [("ring", OURS, figures.ours(many)?)].into_iter();
    let together = together.chain(others("LSTM, batch 1024, 16 sums", "LSTM, batch 1024")?);
    let networks = [
        (
            "Perceptron 64-256-256-16, one request at a time",
            alone("MLP, batch 1", "perceptron 64", "MLP, batch 1, resident")?,
        ),
        (
            "LSTM of 2 layers x 128, one stream, one step at a time",
            alone("LSTM, batch 1", "LSTM 2 x 128", "LSTM, batch 1, resident")?,
        ),
        ("The same, a step of 1024 streams at a time", together.collect()),
    ];
    Ok(draw_times(&networks))
}

/// The picture of when requests come.
///
/// # Errors
/// As of [`times`].
pub fn pauses(ws: &Workspace) -> Result<String> {
    let text = workspace::read(&ws.root().join(FIGURES))?;
    let figures = Figures(text.lines().collect());
    let ours = |title| figures.pauses(figures.find(0, title)?);
    let resident = |title| figures.pauses(figures.best(title, "resident")?);
    Ok(draw_pauses(&[
        ("perceptron", ours("perceptron 64")?, resident("MLP, batch 1, resident")?),
        ("LSTM, one stream", ours("LSTM 2 x 128")?, resident("LSTM, batch 1, resident")?),
    ]))
}

fn at(time: f64) -> f64 {
    LEFT + (time / AXIS[0]).ln() / (AXIS[1] / AXIS[0]).ln() * (WIDTH - LEFT - RIGHT)
}

fn draw_times(networks: &[(&str, Vec<Way>)]) -> String {
    let rows: usize = networks.iter().map(|(_, ways)| ways.len()).sum();
    let height = HEAD * networks.len() as f64 + ROW * rows as f64 + 60.0;
    let mut svg = svg::begin([WIDTH, height], "How long a request to a network takes");
    let bottom = height - 52.0;
    for time in MARKS {
        let x = at(time);
        let _ = writeln!(svg, "<path d=\"M{x:.1} 30V{bottom:.1}\" stroke=\"#e4e4e4\"/>");
        let unit = if time < 10.0 { " us" } else { "" };
        let name = format!("{time}{unit}");
        text(&mut svg, [x, bottom + 18.0], " text-anchor=\"middle\"", &name);
    }
    let mut y = 0.0;
    for (network, ways) in networks {
        text(&mut svg, [12.0, y + 24.0], " font-size=\"15\" font-weight=\"bold\"", network);
        y += HEAD;
        for (name, colour, [p50, p99, p999, max]) in ways {
            text(&mut svg, [LEFT - 10.0, y + 4.5], " text-anchor=\"end\"", name);
            let [a, b, c, d] = [*p50, *p99, *p999, *max].map(at);
            for (from, to, stroke) in [(a, b, 7.0), (b, c, 3.0), (c, d, 1.0)] {
                let _ = writeln!(
                    svg,
                    "<path d=\"M{from:.1} {y:.1}H{to:.1}\" stroke=\"{colour}\" stroke-width=\"{stroke}\"/>"
                );
            }
            let _ =
                writeln!(svg, "<circle cx=\"{a:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"{colour}\"/>");
            let more = format!(" text-anchor=\"end\" font-size=\"11\" fill=\"{colour}\"");
            text(&mut svg, [a - 8.0, y + 4.0], &more, &format!("{p50:.1}"));
            y += ROW;
        }
    }
    text(
        &mut svg,
        [12.0, height - 10.0],
        " fill=\"#555\"",
        "dot: half of the requests; thick line: up to 99 of 100; thinner: up to 999 of 1000; thinnest: the longest. One H200.",
    );
    svg + "</svg>\n"
}

/// Of each network what half of the requests took with ring, and with the least resident program.
fn draw_pauses(networks: &[(&str, Vec<f64>, Vec<f64>)]) -> String {
    const HEIGHT: f64 = 340.0;
    const TOP: f64 = 74.0;
    const BOTTOM: f64 = 54.0;
    let most = networks.iter().flat_map(|(_, ours, _)| ours).fold(1.0, |a: f64, b| a.max(*b));
    let y = |time: f64| HEIGHT - BOTTOM - time / most.ceil() * (HEIGHT - TOP - BOTTOM);
    let mut svg = svg::begin([WIDTH, HEIGHT], "How long a request takes by when it comes");
    let title = "Half of the requests took no longer, by the pause before each; one H200";
    text(&mut svg, [12.0, 24.0], " font-size=\"15\" font-weight=\"bold\"", title);
    let words = "microseconds, by the microseconds between an answer and the next request";
    text(&mut svg, [12.0, HEIGHT - 10.0], " fill=\"#555\"", words);
    let (panel, gap) = ((WIDTH - 110.0) / networks.len() as f64, 40.0);
    for (n, (network, ours, resident)) in networks.iter().enumerate() {
        let from = 40.0 + n as f64 * (panel + gap);
        let x = |pause: f64| from + pause / LAST * panel;
        text(&mut svg, [from, 56.0], " font-weight=\"bold\"", network);
        for time in (0..=most as u32).step_by(2).map(f64::from) {
            let (at, right) = (y(time), x(LAST));
            let _ = writeln!(svg, "<path d=\"M{from:.1} {at:.1}H{right:.1}\" stroke=\"#e4e4e4\"/>");
            text(&mut svg, [from - 8.0, at + 4.5], " text-anchor=\"end\"", &time.to_string());
        }
        for pause in [0.0, 0.5, 1.0, 1.5, 2.0] {
            let at = [x(pause), HEIGHT - BOTTOM + 20.0];
            text(&mut svg, at, " text-anchor=\"middle\"", &pause.to_string());
        }
        let ways = [("ring", OURS, ours, 150.0), ("C++, resident", RESIDENT, resident, 190.0)];
        for (name, colour, times, behind) in ways {
            text(&mut svg, [from + behind, 56.0], &format!(" fill=\"{colour}\""), name);
            let pause = |k: usize| LAST * k as f64 / (COUNT - 1) as f64;
            let points = times.iter().enumerate().map(|(k, time)| [x(pause(k)), y(*time)]);
            let path = line(points);
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>"
            );
        }
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::{Figures, PAUSES, TIMES, pauses, times};
    use crate::{Workspace, workspace};

    #[test]
    fn the_pictures_are_what_the_figures_give() {
        let ws = Workspace::locate().unwrap();
        for (picture, of) in [(TIMES, times(&ws)), (PAUSES, pauses(&ws))] {
            let drawn = workspace::read(&ws.root().join(picture)).unwrap();
            assert!(drawn == of.unwrap(), "try: cargo xtask picture, and check in the result");
        }
    }

    #[test]
    fn figures_are_found_by_what_stands_before_them() {
        let text = "\
net, by one
    p50 4.49 us, p99 6.3, p99.9 14.09, p99.99 22.09, max 82.46
A, batch 1         p50      p99    p99.9      max   inferences/s    off by
graph: 3 x 2     18.27    24.73    31.82   138.21          54367   1.2e-07
graph: 3         17.27    23.73    30.82   137.21          54367   1.2e-07
A, batch 1: best of its kind: graph: 3: p50 17.27 us, p99 23.73 us
graph: 3         99.27    99.73    99.82   999.21          54367   1.2e-07";
        let figures = Figures(text.lines().collect());
        assert_eq!(figures.ours("net").unwrap(), [4.49, 6.3, 14.09, 82.46]);
        let best = figures.best("A, batch 1", "graph").unwrap();
        assert_eq!(figures.row(best).unwrap(), [17.27, 23.73, 30.82, 137.21]);
        assert!(figures.best("B", "graph").is_err() && figures.ours("other").is_err());
        assert!(figures.row(0).is_err() && figures.pauses(0).is_err());
        let end = Figures(vec!["net, by one"]);
        assert!(end.ours("net").is_err());
    }
}
