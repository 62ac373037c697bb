//! Reading the machine's own apt sources: which mirror of Debian it uses, and with which key.

use std::path::Path;

/// Where a mirror lies and the key that signs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    /// The archive's address.
    pub uri: String,
    /// The key ring, where the source names one.
    pub signed_by: Option<String>,
}

/// Debian's own address and key ring: what serves where the machine's sources name no Debian mirror.
#[must_use]
pub fn fallback() -> Mirror {
    Mirror {
        uri: "http://deb.debian.org/debian".into(),
        signed_by: Some("/usr/share/keyrings/debian-archive-keyring.gpg".into()),
    }
}

/// The first mirror of Debian's main archive in the sources under `etc` (`/etc/apt`).
#[must_use]
pub fn mirror(etc: &Path) -> Option<Mirror> {
    let mut files = vec![etc.join("sources.list")];
    if let Ok(entries) = std::fs::read_dir(etc.join("sources.list.d")) {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    files.iter().find_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        match file.extension()?.to_str()? {
            "list" => one_line(&text),
            "sources" => deb822(&text),
            _ => None,
        }
    })
}

/// A mirror from the old format: `deb [signed-by=KEY] URI SUITE COMPONENT...`.
#[must_use]
pub fn one_line(text: &str) -> Option<Mirror> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("deb ")?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let signed_by = options.split_whitespace().find_map(|o| o.strip_prefix("signed-by="));
        debian(rest.split_whitespace().next()?, signed_by)
    })
}

/// A mirror from the new format: paragraphs of `Key: value`.
#[must_use]
pub fn deb822(text: &str) -> Option<Mirror> {
    text.split("\n\n").find_map(|paragraph| {
        let field = |name: &str| {
            paragraph
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        let enabled = field("Enabled").is_none_or(|value| value != "no");
        let uri = field("URIs")?.split_whitespace().next()?;
        if enabled { debian(uri, field("Signed-By")) } else { None }
    })
}

/// Debian's main archive is a folder named `debian` on every mirror.
fn debian(uri: &str, signed_by: Option<&str>) -> Option<Mirror> {
    let uri = uri.trim_end_matches('/');
    let signed_by = signed_by.filter(|key| key.starts_with('/')).map(String::from);
    uri.ends_with("/debian").then(|| Mirror { uri: uri.into(), signed_by })
}

#[cfg(test)]
mod tests {
    use super::{deb822, one_line};

    #[test]
    fn finds_the_main_archive_in_both_formats() {
        let old =
            "# comment\ndeb [arch=amd64 signed-by=/k.gpg] https://m.example/debian/ stable main\n";
        let found = one_line(old).unwrap();
        assert_eq!(found.uri, "https://m.example/debian");
        assert_eq!(found.signed_by.as_deref(), Some("/k.gpg"));

        let new = "Types: deb\nURIs: https://m.example/debian-security\nSuites: x\n\n\
                   Types: deb\nURIs: https://m.example/debian\nSuites: x\nSigned-By: /k.gpg\n";
        assert_eq!(deb822(new).unwrap(), found);
    }

    #[test]
    fn passes_over_other_archives_and_disabled_ones() {
        assert_eq!(one_line("deb http://m.example/ubuntu noble main\n"), None);
        assert_eq!(deb822("Enabled: no\nURIs: https://m.example/debian\n"), None);
    }
}
