//! Just enough TOML to read what a Cargo.toml says of a package.

/// The lines of TOML's table `[name]`, without comments of their own, blank lines and outer spaces.
#[must_use]
pub fn section<'a>(toml: &'a str, name: &str) -> Vec<&'a str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in toml.lines().map(str::trim) {
        if let Some(header) = header(line) {
            inside = header == name;
        } else if inside && !line.is_empty() && !line.starts_with('#') {
            lines.push(line);
        }
    }
    lines
}

/// The names of the tables of a TOML text, in order.
#[must_use]
pub fn sections(toml: &str) -> Vec<&str> {
    toml.lines().map(str::trim).filter_map(header).collect()
}

/// The name in a `[name]` line, which a comment may follow.
fn header(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('[')?.rsplit_once(']')?;
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with('#')).then_some(name)
}

/// The key of a `key = value` line, less what follows a dot (`name.workspace = true`).
#[must_use]
pub fn key(line: &str) -> &str {
    let key = line.split('=').next().unwrap_or_default().trim();
    key.split('.').next().unwrap_or_default().trim_matches('"')
}

/// The text between the first pair of quotes.
#[must_use]
pub fn quoted(line: &str) -> Option<&str> {
    line.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::{key, quoted, section, sections};

    const TOML: &str = "[a]\nx = 1\n\n# note\n[target.'cfg(target_arch = \"nvptx64\")'.dependencies]\ny.workspace = true\n";

    #[test]
    fn a_section_ends_at_the_next_header() {
        assert_eq!(section(TOML, "a"), ["x = 1"]);
        assert_eq!(sections(TOML).len(), 2);
        assert_eq!(key(section(TOML, sections(TOML)[1])[0]), "y");
    }

    #[test]
    fn a_comment_behind_a_header_does_not_hide_it() {
        assert_eq!(section("[a] # first\nx = 1\n", "a"), ["x = 1"]);
        assert_eq!(section("[a]\nx = [\n\"y\",\n]\n", "a").len(), 3);
    }

    #[test]
    fn the_first_quoted_text() {
        assert_eq!(quoted("name = \"a-b\" # \"c\""), Some("a-b"));
        assert_eq!(quoted("name = 1"), None);
    }
}
