//! The report for programs. Times are in microseconds, rates in messages a second.

use super::report::{Found, Report, Shape, Stop, Throughput};
use super::stats::{CURVE, Rates, Times};
use super::targets::{Sense, targets};
use serde_json::{Map, Value, json};

/// All of it.
pub fn report(report: &Report) -> Value {
    let machine: Map<String, Value> = report
        .machine
        .facts()
        .into_iter()
        .map(|(key, fact)| (key.to_owned(), fact.into()))
        .collect();
    let settings = &report.settings;
    let skipped = report.skipped.iter();
    let wrong = report.wrong();
    json!({
        "machine": machine,
        "at": report.machine.at,
        "device": crate::host::kind(&report.machine.device),
        "took_s": report.took,
        "interrupted": report.interrupted,
        "settings": {
            "quick": settings.quick,
            "samples": settings.samples,
            "warm_up": settings.warm_up,
            "rounds": settings.rounds,
            "repeats": settings.repeats,
            "run_ms": settings.run.as_millis() as u64,
        },
        "sections": report.sections.iter().map(ToString::to_string).collect::<Value>(),
        "skipped": skipped.map(|(section, why)| json!({
            "section": section.to_string(), "why": why,
        })).collect::<Value>(),
        "targets": targets(report).iter().map(|target| json!({
            "id": target.id,
            "what": target.what,
            "sense": match target.sense { Sense::AtMost => "at_most", Sense::AtLeast => "at_least" },
            "bound": target.bound,
            "measured": target.measured.as_ref().ok().map(|ratio| ratio.value),
            "spread": target.measured.as_ref().ok().and_then(|ratio| ratio.spread),
            "from": target.measured.as_ref().ok().map(|ratio| &ratio.figures),
            "why_not": target.measured.as_ref().err(),
            "verdict": target.verdict().word().to_lowercase(),
        })).collect::<Value>(),
        "latency": report.latency.iter().map(|row| json!({
            "id": row.id,
            "name": row.name,
            "device": row.device,
            "times": found(&row.times, times),
            "p50_of_rounds_us": row.rounds.iter().map(|round| round.p50).collect::<Vec<_>>(),
            "p99_of_rounds_us": row.rounds.iter().map(|round| round.p99).collect::<Vec<_>>(),
        })).collect::<Value>(),
        "on_device": report.on_device.iter().map(|row| json!({
            "name": row.name,
            "us": found(&row.us, |us| json!(us)),
        })).collect::<Value>(),
        "throughput": report.throughput.iter().map(throughput).collect::<Value>(),
        "copies": report.copies.iter().map(|row| json!({
            "name": row.name,
            "bytes": row.bytes,
            "bytes_a_second": found(&row.rate, rates),
        })).collect::<Value>(),
        "modes": report.ways.iter().map(|way| json!({
            "mode": way.mode.to_string(),
            "memory": way.memory.to_string(),
            "times": found(&way.times, times),
            "from_rest": way.at_rest.as_ref().map(|at_rest| found(at_rest, times)),
            "rate": found(&way.rate, rates),
            "launches": way.launches,
        })).collect::<Value>(),
        "many": report.many.as_ref().map(|many| json!({
            "hosts": many.hosts,
            "alone": found(&many.alone, times),
            "each": found(&many.each, |each| each.iter().map(times).collect()),
        })),
        "growth": report.growth.iter().map(|row| json!({
            "messages": row.messages,
            "capacity": row.capacity,
            "rate": found(&row.rate, rates),
            "resident_kib_before": row.resident_kib[0],
            "resident_kib_after": row.resident_kib[1],
        })).collect::<Value>(),
        "wrong": wrong.iter().map(|(what, why)| json!({ "what": what, "why": why }))
            .collect::<Value>(),
    })
}

fn found<T>(found: &Found<T>, show: impl Fn(&T) -> Value) -> Value {
    match found {
        Ok(value) => show(value),
        Err(Stop::Refused(why)) => json!({ "refused": why }),
        Err(Stop::Wrong(why)) => json!({ "wrong": why }),
        Err(Stop::Interrupted) => json!({ "interrupted": true }),
    }
}

fn times(times: &Times) -> Value {
    json!({
        "count": times.count(),
        "min": times.percentile(0.0),
        "p50": times.percentile(50.0),
        "p90": times.percentile(90.0),
        "p99": times.percentile(99.0),
        "p99_9": times.percentile(99.9),
        "max": times.percentile(100.0),
        "curve": CURVE.iter().map(|percent| json!([percent, times.percentile(*percent)])).collect::<Value>(),
    })
}

fn rates(rates: &Rates) -> Value {
    json!({
        "median": rates.median(),
        "min": rates.min(),
        "max": rates.max(),
        "samples": rates.samples(),
    })
}

fn throughput(row: &Throughput) -> Value {
    let Shape { channels, bytes, answer_bytes, threads, batch, depth, capacity } = &row.shape;
    json!({
        "sweep": row.sweep,
        "name": row.name,
        "device": row.device,
        "channels": channels,
        "bytes": bytes,
        "answer_bytes": answer_bytes,
        "threads": threads,
        "batch": batch,
        "depth": depth,
        "capacity": capacity,
        "rate": found(&row.rate, rates),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;

    #[test]
    fn all_keys_are_there_and_stay() {
        let text = format!("{:#}", report(&example::report()));
        let value: Value = serde_json::from_str(&text).expect("what is written can be read");
        let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "at",
            "copies",
            "device",
            "growth",
            "interrupted",
            "latency",
            "machine",
            "many",
            "modes",
            "on_device",
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
    fn what_went_wrong_is_told_with_what_was_measured() {
        let mut example = example::report();
        example.throughput[0].rate = Err(Stop::Wrong("an answer is wrong".to_owned()));
        let value = report(&example);
        assert_eq!(value["wrong"][0]["why"], "an answer is wrong");
        assert_eq!(value["throughput"][0]["rate"]["wrong"], "an answer is wrong");
    }
}
