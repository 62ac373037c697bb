//! The report for programs. Times are in microseconds, rates in messages a second.

use super::report::{Report, Wrong};
use super::stats::{CURVE, Rates, Times};
use super::targets::{Target, targets};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is written: the report, and what follows from it.
#[derive(Serialize)]
struct Written<'a> {
    machine: BTreeMap<&'a str, &'a str>,
    at: u64,
    device: &'static str,
    targets: Vec<Target>,
    wrong: Vec<Wrong>,
    #[serde(flatten)]
    report: &'a Report,
}

/// All of it.
pub fn report(report: &Report) -> Value {
    let written = Written {
        machine: report.machine.facts.iter().map(|(name, fact)| (*name, fact.as_str())).collect(),
        at: report.machine.at,
        device: crate::host::kind(&report.machine.device),
        targets: targets(report),
        wrong: report.wrong(),
        report,
    };
    serde_json::to_value(written).expect("all keys are texts")
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let at = |percent| self.percentile(percent);
        let figures = json!({
            "count": self.count(),
            "min": at(0.0),
            "p50": at(50.0),
            "p90": at(90.0),
            "p99": at(99.0),
            "p99_9": at(99.9),
            "max": at(100.0),
            "curve": CURVE.map(|percent| (percent, at(percent))),
        });
        figures.serialize(to)
    }
}

impl Serialize for Rates {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (median, min, max) = (self.median(), self.min(), self.max());
        json!({ "median": median, "min": min, "max": max, "samples": self.samples() }).serialize(to)
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ratio = self.measured.as_ref().ok();
        let figures = json!({
            "id": self.id,
            "what": self.what,
            "sense": self.sense,
            "bound": self.bound,
            "measured": ratio.map(|ratio| ratio.value),
            "spread": ratio.and_then(|ratio| ratio.spread),
            "from": ratio.map(|ratio| &ratio.figures),
            "why_not": self.measured.as_ref().err(),
            "verdict": self.verdict().word().to_lowercase(),
        });
        figures.serialize(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;

    #[test]
    fn all_keys_are_there_and_stay() {
        let text = format!("{:#}", report(&example::report()));
        let value: Value = serde_json::from_str(&text).expect("what is written can be read");
        let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "at",
            "calls",
            "compute",
            "copies",
            "device",
            "graphs",
            "growth",
            "interrupted",
            "latency",
            "load",
            "machine",
            "many",
            "modes",
            "on_device",
            "peers",
            "scopes",
            "sections",
            "settings",
            "skipped",
            "targets",
            "throughput",
            "took_s",
            "wrong",
        ];
        assert_eq!(keys, expected);
        for (pointer, expected) in [
            ("/latency/0/id", json!("ring")),
            ("/latency/0/times/count", json!(1000)),
            ("/latency/0/times/min", json!(2.0)),
            ("/latency/0/times/p50", json!(2.0)),
            ("/load/device", json!("cuda")),
            ("/load/closed/0/carrier", json!("ring")),
            ("/load/closed/0/in_flight", json!(1)),
            ("/load/closed/0/figures/times/count", json!(3000)),
            ("/load/channels/0/figures/rate/samples/0", json!(0.9 * 1e6)),
            ("/load/closed/9/carrier", json!("head_tail")),
            ("/load/open/0/saturated", json!(false)),
            ("/load/open/4/saturated", json!(true)),
            ("/load/open/4/offered", json!(50_000_000)),
            ("/load/channels/2/threads", json!(8)),
            ("/calls/0/how", json!("own")),
            ("/calls/5/how", json!({ "tickets": 32 })),
            ("/calls/4/threads", json!(64)),
            ("/calls/4/figures/rate/median", json!(8e6)),
            ("/scopes/3/id", json!("sum_64")),
            ("/scopes/3/times/count", json!(1000)),
            ("/graphs/4/id", json!("graph_5")),
            ("/throughput/13/sweep", json!("scopes")),
            ("/throughput/25/sweep", json!("links")),
            ("/throughput/25/capacity", json!(16384)),
            ("/compute/2/id", json!("page_rank_links")),
            ("/compute/2/times/count", json!(1000)),
            ("/peers/3/id", json!("peers_010")),
            ("/throughput/38/sweep", json!("across")),
            ("/throughput/39/sweep", json!("contributions")),
            ("/throughput/39/rate/median", json!(6000e6)),
            ("/throughput/0/rate/median", json!(130e6)),
            ("/throughput/12/rate/refused", json!("no more than 512 threads")),
            ("/modes/1/times/refused", json!("graphs fail <here>")),
            ("/modes/0/from_rest", json!(null)),
            ("/targets/0/id", json!("flag_p50")),
            ("/targets/0/verdict", json!("not met")),
            ("/targets/0/sense", json!("at_most")),
            ("/wrong", json!([])),
            ("/interrupted", json!(null)),
        ] {
            assert_eq!(value.pointer(pointer), Some(&expected), "{pointer}");
        }
    }

    #[test]
    fn what_went_wrong_is_reported_with_what_was_measured() {
        let mut example = example::report();
        example.throughput[0].rate = Err(Stop::Wrong("an answer is wrong".to_owned()));
        let value = report(&example);
        assert_eq!(value["wrong"][0]["why"], "an answer is wrong");
        assert_eq!(value["throughput"][0]["rate"]["wrong"], "an answer is wrong");
    }
}
