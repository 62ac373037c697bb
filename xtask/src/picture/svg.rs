//! What the pictures are written with: SVG as text.

use std::fmt::Write;

/// A picture of that size with that title, white so far.
pub fn begin([width, height]: [f64; 2], title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\" fill=\"#222\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    )
}

/// Adds words at a place, `more` being what else the element is to have.
pub fn text(svg: &mut String, [x, y]: [f64; 2], more: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"{more}>{words}</text>");
}

/// A line through those places, as the `d` of a path.
pub fn line(points: impl Iterator<Item = [f64; 2]>) -> String {
    let mut path = String::new();
    for [x, y] in points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}
