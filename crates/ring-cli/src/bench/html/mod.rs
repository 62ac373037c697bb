//! The report as one page with plots that needs nothing but itself.

mod plots;
mod svg;
mod table;

use super::report::Report;
use super::tables;

/// The style sheet.
const STYLE: &str = include_str!("style.css");

/// Text that may stand in an element or an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The page.
pub fn page(report: &Report) -> String {
    let device = escaped(&report.machine.device.name);
    let interrupted = report
        .interrupted
        .as_ref()
        .map_or_else(String::new, |during| format!("; interrupted during: {}", escaped(during)));
    let [latency, load, calls, throughput, scopes, graphs, peers, compute, ways, many, growth] =
        tables::parts(report);
    let parts = [
        table::wrong(report),
        table::part(&tables::targets(report), ""),
        table::part(&latency, &plots::latency(report)),
        table::part(&load, &plots::load(report)),
        table::part(&calls, ""),
        table::part(&throughput, &plots::throughput(report)),
        table::part(&scopes, &plots::scopes(report)),
        table::part(&graphs, &plots::graphs(report)),
        table::part(&peers, ""),
        table::part(&compute, ""),
        table::part(&ways, ""),
        table::part(&many, &plots::many(report)),
        table::part(&growth, &plots::growth(report)),
        table::machine(report),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>ring bench: \
         {device}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header><h1>ring \
         bench</h1><p>{device}, {}{interrupted}</p></header>\n<main>\n{}</main>\n</body>\n</html>\n",
        super::machine::date(report.machine.at),
        parts.concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;

    #[test]
    fn everything_embedded_is_escaped() {
        assert_eq!(
            escaped("<a href='x'>&\"</a>"),
            "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;"
        );
        let mut report = example::report();
        let wrong = Stop::Wrong("<script>alert(1)</script>".to_owned());
        report.throughput[3].rate = Err(wrong.clone());
        report.ways[0].times = Err(wrong);
        let page = page(&report);
        for bad in ["<script", "</script>", "<processor>", "<there &", "<here>"] {
            assert!(!page.contains(bad), "{bad}");
        }
        for good in ["&lt;script&gt;alert(1)", "A &amp; B &lt;processor&gt; &quot;x&quot;"] {
            assert!(page.contains(good), "{good}");
        }
    }

    #[test]
    fn the_page_needs_nothing_else_and_its_elements_are_closed() {
        let page = page(&example::report());
        for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        for name in ["section", "table", "tr", "td", "th", "svg", "g", "figure", "p", "text", "div"]
        {
            let opened = page.matches(&format!("<{name}>")).count()
                + page.matches(&format!("<{name} ")).count();
            assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
            assert!(opened > 0, "{name}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "a figure is none");
    }

    #[test]
    fn each_figure_says_what_it_is_where_there_is_no_room_for_columns() {
        let page = page(&example::report());
        assert!(page.contains("@media (max-width: 640px)"));
        for label in ["asked", "p50", "p99.9", "depth", "slots", "M/s", "GB/s", "from rest"] {
            assert!(page.contains(&format!("<td data-label=\"{label}\"")), "{label}");
        }
        // The first of a row needs none, and is all that has none but for headings that are empty.
        let tables =
            page.split("<table").skip(1).map(|part| part.split("</table>").next().unwrap());
        for table in tables.filter(|table| !table.starts_with(" class=\"facts\"")) {
            for line in
                table.lines().filter(|line| line.starts_with("<tr class") && !line.contains("<th"))
            {
                let (all, labelled) =
                    (line.matches("<td").count(), line.matches("<td data-").count());
                assert!(all - labelled <= 2, "{line}");
            }
        }
    }

    #[test]
    fn latency_is_drawn_against_messages_in_flight_and_against_the_rate_offered() {
        let page = page(&example::report());
        for part in [
            "<h2>Latency under load</h2>",
            "aria-label=\"Against messages in flight\"",
            "aria-label=\"Against the rate at which messages are due\"",
            "<b>ring, one by one, p50</b>",
            "<b>ring, batches, p99</b>",
            "<b>head and tail, one by one, p50</b>",
            "<b>ring, from when it is due, p50</b>",
            "<b>the clock alone, p99</b>",
            ">10k</text>",
            ">50M</text>",
            "ring, batches, p50: 20.02 us at 1024",
            "<td data-label=\"late p99\"",
        ] {
            assert!(page.contains(part), "'{part}' is not in the page");
        }
        assert!(!page.contains("<b>head and tail, batches"), "a line without points");
    }

    #[test]
    fn round_trips_and_rates_are_drawn_against_size() {
        let page = page(&example::report());
        for part in [
            "<h2>Scopes and sizes</h2>",
            "aria-label=\"Round trips against size\"",
            "<b>echo by a warp, p99</b>",
            "echo by a warp, p50: 2.70 us at 1024",
            "aria-label=\"Bytes each way against size\"",
            "8 channels: 46.08 at 1024",
        ] {
            assert!(page.contains(part), "'{part}' is not in the page");
        }
    }

    #[test]
    fn chains_and_links_are_drawn() {
        let page = page(&example::report());
        for part in [
            "<h2>Graphs</h2>",
            "aria-label=\"Round trips against kernels\"",
            "a chain, p50: 4.30 us at 5",
            "aria-label=\"Messages against links\"",
            "<b>beside each other, 4,096 slots</b>",
            "beside each other, 16,384 slots: 3300 at 8",
            "from one channel of times_8, by key: 290 at 64",
        ] {
            assert!(page.contains(part), "'{part}' is not in the page");
        }
    }

    #[test]
    fn whole_computations_are_tables() {
        let page = page(&example::report());
        for part in [
            "<h2>Whole computations</h2>",
            "<h3>Whole computations, million contributions a second</h3>",
            "page_rank_rmat &lt;there &amp; back&gt;",
            "32 senders, 64 aggregators and 16 checkers",
        ] {
            assert!(page.contains(part), "'{part}' is not in the page");
        }
    }

    #[test]
    fn nothing_measured_is_a_page_too() {
        let mut report = example::report();
        (report.latency, report.throughput) = (Vec::new(), Vec::new());
        (report.on_device, report.copies) = (Vec::new(), Vec::new());
        (report.ways, report.growth, report.many) = (Vec::new(), Vec::new(), None);
        (report.load, report.scopes, report.graphs) = (None, Vec::new(), Vec::new());
        (report.compute, report.calls) = (Vec::new(), Vec::new());
        let page = page(&report);
        assert!(page.contains("<h2>Machine</h2>") && !page.contains("<h2>Latency</h2>"));
    }
}
