//! Options of `ring top`.

use clap::Args;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use ureq::http::Uri;

/// Between two looks at the page.
const EVERY: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);

/// Options of `ring top`.
#[derive(Clone, Debug, Args)]
pub struct Top {
    /// Page of metrics
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9464/metrics")]
    #[arg(conflicts_with = "program")]
    pub page: Page,

    /// Time between two looks at it: 500ms, 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = every)]
    pub every: Duration,

    /// Run this and watch it; it serves on RING_METRICS_PORT
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

/// The address of a page of metrics, by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page(String);

impl Page {
    /// That of a program that serves on a port of this machine.
    pub fn on_loopback(port: u16) -> Page {
        Page(format!("http://127.0.0.1:{port}/metrics"))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Page {
    type Err = String;

    fn from_str(text: &str) -> Result<Page, String> {
        let wanted = "give one such as http://127.0.0.1:9464/metrics";
        let uri: Uri = text.parse().map_err(|error| format!("{error}; {wanted}"))?;
        match (uri.scheme_str(), uri.authority()) {
            (Some("http"), Some(_)) if matches!(uri.path(), "" | "/") && uri.query().is_none() => {
                Ok(Page(format!("{}/metrics", text.trim_end_matches('/'))))
            }
            (Some("http"), Some(_)) => Ok(Page(text.to_owned())),
            (Some("https"), _) => {
                Err("https is not spoken here, only http: watch the page where it is served, \
                     or through a tunnel"
                    .to_owned())
            }
            _ => Err(format!("not the address of a page by http; {wanted}")),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn every(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if EVERY.contains(&time) => Ok(time),
        Ok(_) => Err("not from 100ms to 1h".to_owned()),
        Err(error) => Err(format!("{error}; give a time from 100ms to 1h, such as 500ms or 2s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    fn top(options: &[&str]) -> Result<Top, clap::Error> {
        parsed(options)
    }

    #[test]
    fn every_option_is_read() {
        let options = top(&[]).unwrap();
        assert_eq!(options.page, Page::on_loopback(9464));
        assert_eq!((options.every, options.program), (Duration::from_secs(1), vec![]));
        let options = top(&["--page", "http://[::1]:80/m", "--every", "250ms"]).unwrap();
        assert_eq!((options.page.as_str(), options.every.as_millis()), ("http://[::1]:80/m", 250));
        let options = top(&["--every", "2s", "--", "program", "--page", "x"]).unwrap();
        assert_eq!(options.program, ["program", "--page", "x"]);
    }

    #[test]
    fn an_address_without_a_page_is_of_its_metrics() {
        for text in ["http://a:1", "http://a:1/"] {
            assert_eq!(text.parse::<Page>().unwrap().to_string(), "http://a:1/metrics");
        }
    }

    #[test]
    fn a_wrong_value_has_status_2_and_says_what_is_wanted() {
        for (options, says) in [
            (["--page", "https://a/metrics"], "only http"),
            (["--page", "ftp://a/metrics"], "127.0.0.1:9464"),
            (["--page", "127.0.0.1:9464"], "127.0.0.1:9464"),
            (["--page", ""], "127.0.0.1:9464"),
            (["--every", "0s"], "100ms to 1h"),
            (["--every", "2h"], "100ms to 1h"),
            (["--every", "soon"], "100ms to 1h"),
        ] {
            let error = top(&options).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{options:?}");
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(top(&["--page", "http://a", "--", "b"]).unwrap_err().exit_code(), 2);
    }
}
