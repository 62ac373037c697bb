//! Formats numbers and wraps text for a terminal.

use indicatif::HumanCount;

/// The width that output is laid out for.
pub const WIDTH: usize = 80;

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `1 channel`, `2 channels`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `first` and then `text`, broken at spaces to [`WIDTH`], later lines indented as deep as `first`.
pub fn wrapped(first: &str, text: &str) -> String {
    wrapped_to(WIDTH, first, text)
}

/// The same to another width.
pub fn wrapped_to(width: usize, first: &str, text: &str) -> String {
    let indent = first.chars().count();
    let (mut lines, mut line, mut column) = (String::new(), first.to_string(), indent);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            (line, column) = (" ".repeat(indent), indent);
        } else if column > indent {
            line.push(' ');
            column += 1;
        }
        line.push_str(word);
        column += length;
    }
    lines.push_str(line.trim_end());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (65536, "65,536"), (1_000_000, "1,000,000")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!(plural(1, "channel"), "1 channel");
        assert_eq!(plural(4096, "message"), "4,096 messages");
    }

    #[test]
    fn long_text_is_broken_at_spaces_and_indented() {
        let text = wrapped("why     ", &"eight456 ".repeat(20));
        assert!(text.lines().count() > 1);
        for line in text.lines() {
            assert!(line.len() <= WIDTH, "{} columns: {line}", line.len());
            assert_eq!(line.trim_end(), line);
        }
        assert!(text.lines().skip(1).all(|line| line.starts_with("        eight456")));
        assert_eq!(text.split_whitespace().count(), 21);
    }

    #[test]
    fn short_text_and_words_longer_than_the_line_stay_whole() {
        assert_eq!(wrapped("  ", "as it is"), "  as it is");
        assert_eq!(wrapped("why  ", ""), "why");
        let word = "x".repeat(100);
        assert_eq!(wrapped("", &word), word);
    }
}
