//! Figures as the screen shows them: three digits and a unit.

const DECIMAL: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")];
const TIMES: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];

/// What is not known.
const NONE: &str = "-";

/// The heights of a bar of one character.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The widths of a bar's last character.
const WIDTHS: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// A number: `7`, `0.50`, `12.3k`.
pub fn count(number: Option<f64>) -> String {
    match number {
        None => NONE.to_owned(),
        Some(number) if number < 1000.0 && number.fract() == 0.0 => format!("{number}"),
        Some(number) => {
            let (digits, unit) = scaled(number, &DECIMAL);
            format!("{digits}{unit}")
        }
    }
}

/// A number of bytes: `12.3 kB`.
pub fn bytes(number: Option<f64>) -> String {
    match number {
        None => NONE.to_owned(),
        Some(number) if number < 1000.0 => format!("{number:.0} B"),
        Some(number) => {
            let (digits, unit) = scaled(number, &DECIMAL);
            format!("{digits} {unit}B")
        }
    }
}

/// A part of one, in hundredths.
pub fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("{:.0}%", 100.0 * part))
}

/// A time: `850 ns`, `1.20 us`.
pub fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => NONE.to_owned(),
        Some(0.0) => "0 s".to_owned(),
        Some(seconds) => {
            let (digits, unit) = scaled(seconds, &TIMES);
            format!("{digits} {unit}")
        }
    }
}

/// In the largest unit of which there is one, or in the smallest.
fn scaled(number: f64, units: &[(f64, &'static str)]) -> (String, &'static str) {
    // What is shown as 1000 of a unit is 1 of the next.
    let is_enough = |(size, _): &&(f64, &str)| number / size >= 0.9995;
    let (size, unit) = units.iter().find(is_enough).or(units.last()).expect("there are units");
    let value = number / size;
    let places = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    (format!("{value:.places$}"), unit)
}

/// Numbers as bars of one character each, the greatest the highest; a space for what is not known.
pub fn spark(numbers: impl Iterator<Item = Option<f64>> + Clone) -> String {
    let greatest = numbers.clone().flatten().fold(0.0, f64::max);
    let bar = |number: Option<f64>| {
        number.map_or(' ', |number| {
            let part = if greatest > 0.0 { number / greatest } else { 0.0 };
            HEIGHTS[((part * 7.0).round() as usize).min(7)]
        })
    };
    numbers.map(bar).collect()
}

/// A bar as wide as that part, from 0 to 1, of `width` characters. What is more than nothing is seen.
pub fn bar(part: f64, width: usize) -> String {
    let eighths = (part.clamp(0.0, 1.0) * width as f64 * 8.0).ceil() as usize;
    format!("{}{}", "█".repeat(eighths / 8), WIDTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (number, shown) in [
            (0.0, "0"),
            (7.0, "7"),
            (0.5, "0.50"),
            (12.34, "12.3"),
            (999.4, "999"),
            (999.9, "1.00k"),
            (1234.0, "1.23k"),
            (99_960.0, "100k"),
            (999_700.0, "1.00M"),
            (45_600_000.0, "45.6M"),
            (2e9, "2.00G"),
            (5e15, "5000T"),
        ] {
            assert_eq!(count(Some(number)), shown);
        }
        for (number, shown) in [(0.0, "0 B"), (999.0, "999 B"), (67_108_864.0, "67.1 MB")] {
            assert_eq!(bytes(Some(number)), shown);
        }
        for (seconds, shown) in [
            (0.0, "0 s"),
            (1e-10, "0.10 ns"),
            (8.5e-7, "850 ns"),
            (1.2e-6, "1.20 us"),
            (3.4e-3, "3.40 ms"),
            (90.0, "90.0 s"),
        ] {
            assert_eq!(time(Some(seconds)), shown);
        }
        assert_eq!([count(None), bytes(None), time(None)], ["-"; 3]);
    }

    #[test]
    fn bars_are_as_high_as_their_part_of_the_greatest() {
        let numbers = [Some(0.0), None, Some(4.0), Some(8.0)];
        assert_eq!(spark(numbers.into_iter()), "▁ ▅█");
        assert_eq!(spark([Some(0.0); 2].into_iter()), "▁▁");
        assert_eq!(spark([].into_iter()), "");
    }

    #[test]
    fn bars_are_as_wide_as_their_part() {
        for (part, shown) in
            [(0.0, ""), (0.001, "▏"), (0.5, "██"), (0.53, "██▏"), (1.0, "████"), (9.0, "████")]
        {
            assert_eq!(bar(part, 4), shown);
        }
        assert_eq!(bar(f64::NAN, 4), "");
    }
}
