//! A plot with axes, drawn as SVG. Colours are the style sheet's.

use super::escaped;

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 42.0;

/// Colours of the style sheet.
const COLOURS: usize = 8;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// A line with a dot at each point.
    Dotted,
    /// A line.
    Line,
    /// Filled down to the axis.
    Area,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Whose.
    pub name: String,
    /// How.
    pub draw: Draw,
    /// x as the plot's ticks count it, y, and the label of the point.
    pub points: Vec<(f64, f64, String)>,
    /// Least and most at each point, or nothing.
    pub spread: Vec<(f64, f64)>,
}

impl Series {
    /// Points without spread.
    pub fn new(name: String, draw: Draw, points: Vec<(f64, f64, String)>) -> Series {
        Series { name, draw, points, spread: Vec::new() }
    }
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What x is.
    pub x: &'static str,
    /// What y is.
    pub y: &'static str,
    /// Where x is marked, and how.
    pub ticks: Vec<(f64, String)>,
    /// Whether y grows by factors; else it begins at 0.
    pub log: bool,
    /// The series, in the order of the colours.
    pub series: Vec<Series>,
}

/// Round numbers up to `most`, 0 among them; some five.
fn round_numbers(most: f64) -> Vec<f64> {
    let rough = (most / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|k| k * power >= rough);
    let step = step.unwrap_or(10.0) * power;
    (0..=(most / step).ceil() as u32).map(|k| f64::from(k) * step).collect()
}

/// 1, 2, 5, 10 and so on around `least..=most`.
fn factors(least: f64, most: f64) -> Vec<f64> {
    let (from, to) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let all = (from..=to).flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(k)));
    let all: Vec<f64> = all.collect();
    let first = all.iter().rposition(|v| *v <= least).unwrap_or(0);
    let last = all.iter().position(|v| *v >= most).unwrap_or(all.len() - 1);
    all[first..=last.max(first)].to_vec()
}

/// A number as short as it can be.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{}M", value / 1e6),
        v if v >= 1e4 => format!("{}k", value / 1e3),
        _ => format!("{}", (value * 1000.0).round() / 1000.0),
    }
}

impl Plot {
    fn values(&self) -> impl Iterator<Item = f64> {
        let point = self.series.iter().flat_map(|series| series.points.iter().map(|p| p.1));
        let spread = self.series.iter().flat_map(|series| series.spread.iter().map(|s| s.1));
        point.chain(spread).filter(|y| y.is_finite() && (!self.log || *y > 0.0))
    }

    /// The figure with its legend; nothing if there are no points.
    pub fn figure(&self) -> String {
        let most = self.values().max_by(f64::total_cmp);
        let least = self.values().min_by(f64::total_cmp);
        let (Some(least), Some(most)) = (least, most) else { return String::new() };
        let xs = self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
        let xs = xs.chain(self.ticks.iter().map(|tick| tick.0));
        let (x0, x1) = xs.fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(x), b.max(x)));
        let marks = if self.log { factors(least, most) } else { round_numbers(most) };
        let (y0, y1) = (marks[0], marks[marks.len() - 1]);
        let across = (x1 - x0).max(1e-9);
        let at_x = |x: f64| LEFT + (x - x0) / across * (WIDTH - LEFT - RIGHT);
        let part = |y: f64| match self.log {
            true => (y.max(y0) / y0).ln() / (y1 / y0).ln().max(1e-9),
            false => y / y1.max(1e-9),
        };
        let at_y = |y: f64| HEIGHT - BOTTOM - part(y) * (HEIGHT - TOP - BOTTOM);
        let mut body = String::new();
        for mark in &marks {
            let y = at_y(*mark);
            body += &line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            body += &text((LEFT - 6.0, y + 4.0), "end", &short(*mark));
        }
        let bottom = HEIGHT - BOTTOM;
        for (x, label) in &self.ticks {
            let x = at_x(*x);
            body += &line("axis", (x, bottom), (x, bottom + 4.0));
            body += &text((x, bottom + 17.0), "middle", label);
        }
        body += &text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 6.0), "middle", self.x);
        let (middle, y) = ((TOP + bottom) / 2.0, escaped(self.y));
        body += &format!(
            "<text transform=\"translate(13 {middle}) rotate(-90)\" text-anchor=\"middle\">{y}</text>\n"
        );
        for (k, series) in self.series.iter().enumerate() {
            body += &drawn(series, k % COLOURS, bottom, &at_x, &at_y);
        }
        self.framed(&body)
    }

    fn framed(&self, body: &str) -> String {
        let title = escaped(&self.title);
        let named = |(k, series): (usize, &Series)| {
            format!("<span class=\"c{}\"><b>{}</b></span>", k % COLOURS, escaped(&series.name))
        };
        let legend: String = self.series.iter().enumerate().map(named).collect();
        format!(
            "<figure><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\" aria-label=\"{title}\">\n{body}</svg>\n<div \
             class=\"legend\">{legend}</div></figure>\n"
        )
    }
}

fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>\n"
    )
}

fn text((x, y): (f64, f64), anchor: &str, text: &str) -> String {
    let text = escaped(text);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>\n")
}

fn drawn(
    series: &Series,
    colour: usize,
    bottom: f64,
    at_x: &impl Fn(f64) -> f64,
    at_y: &impl Fn(f64) -> f64,
) -> String {
    let mut body = format!("<g class=\"c{colour}\">\n");
    let name = escaped(&series.name);
    let place = |(x, y, _): &(f64, f64, String)| format!("{:.1},{:.1}", at_x(*x), at_y(*y));
    let points = series.points.iter().map(place).collect::<Vec<_>>().join(" ");
    match (series.draw, series.points.first().zip(series.points.last())) {
        (Draw::Area, Some((first, last))) => {
            let (a, b) = (at_x(first.0), at_x(last.0));
            body += &format!(
                "<polygon class=\"area\" points=\"{a:.1},{bottom} {points} {b:.1},{bottom}\">\
                 <title>{name}</title></polygon>\n"
            );
        }
        (Draw::Area, None) => {}
        _ => {
            body += &format!(
                "<polyline class=\"line\" points=\"{points}\"><title>{name}</title></polyline>\n"
            );
        }
    }
    for ((x, ..), (least, most)) in series.points.iter().zip(&series.spread) {
        let x = at_x(*x);
        body += &line("whisker", (x, at_y(*least)), (x, at_y(*most)));
    }
    if series.draw == Draw::Dotted {
        for (x, y, said) in &series.points {
            let (x, y) = (at_x(*x), at_y(*y));
            let said = escaped(said);
            body += &format!(
                "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{said}</title></circle>\n"
            );
        }
    }
    body + "</g>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_hold_all_values() {
        assert_eq!(round_numbers(130.0), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(round_numbers(0.9).last(), Some(&1.0));
        assert_eq!(factors(1.7, 30.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(factors(1.0, 1.0), [1.0]);
        assert_eq!(
            (short(0.5), short(65_536.0), short(5e6)),
            ("0.5".into(), "65.536k".into(), "5M".into())
        );
    }

    #[test]
    fn points_are_inside_and_an_empty_plot_is_nothing() {
        let series = |points| Series {
            name: "a & b".to_owned(),
            draw: Draw::Dotted,
            points,
            spread: vec![(1.0, 3.0)],
        };
        let plot = |series| Plot {
            title: "t".to_owned(),
            x: "x",
            y: "y",
            ticks: vec![(0.0, "1".to_owned()), (3.0, "8".to_owned())],
            log: false,
            series,
        };
        let point = |x: f64, y: f64| (x, y, format!("{y}"));
        let text = plot(vec![series(vec![point(0.0, 2.0), point(3.0, 2.5)])]).figure();
        assert!(text.contains("a &amp; b") && text.matches("<circle").count() == 2, "{text}");
        assert!(text.contains(&format!("cx=\"{LEFT:.1}\"")), "{text}");
        assert_eq!(plot(Vec::new()).figure(), "");
    }
}
