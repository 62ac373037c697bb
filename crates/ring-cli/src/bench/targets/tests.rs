use super::*;
use crate::bench::example;

fn found<'a>(all: &'a [Target], id: &str) -> &'a Target {
    all.iter().find(|target| target.id == id).unwrap()
}

#[test]
fn each_is_judged_by_its_own_figures() {
    let all = targets(&example::report());
    for (id, verdict) in [
        ("flag_p50", Verdict::NotMet),
        ("launch", Verdict::Met),
        ("one_lane", Verdict::Met),
        ("eight_lanes", Verdict::NotMeasured),
        ("bandwidth", Verdict::NotMet),
        ("many", Verdict::Met),
        ("cpu_rate", Verdict::NotMet),
        ("messages", Verdict::NotMeasured),
        ("capacity", Verdict::Met),
    ] {
        let target = found(&all, id);
        assert_eq!(target.verdict(), verdict, "{target:?}");
    }
    let (ratio, figures) = found(&all, "launch").measured.clone().unwrap();
    assert!(
        (ratio - 0.2).abs() < 0.001 && figures.starts_with("2.000 / 10."),
        "{ratio}: {figures}"
    );
}

#[test]
fn a_bound_is_met_exactly_and_not_a_hair_beyond() {
    let of = |sense, ratio| {
        let measured = Ok((ratio, String::new()));
        Target { id: "x", what: "x", sense, bound: 0.65, measured }.verdict()
    };
    assert_eq!(of(Sense::AtMost, 0.65), Verdict::Met);
    assert_eq!(of(Sense::AtMost, 0.6501), Verdict::NotMet);
    assert_eq!(of(Sense::AtLeast, 0.65), Verdict::Met);
    assert_eq!(of(Sense::AtLeast, 0.6499), Verdict::NotMet);
    assert_eq!(of(Sense::AtLeast, f64::NAN), Verdict::NotMet);
    assert_eq!(of(Sense::AtMost, f64::NAN), Verdict::NotMet);
}

#[test]
fn the_best_of_the_others_counts() {
    let report = example::report();
    let rate = |name| best(report.sweep("cpu").filter(move |row| row.name == name)).unwrap();
    let (ratio, _) = found(&targets(&report), "cpu_rate").measured.clone().unwrap();
    assert_eq!(ratio, rate("echo") / rate("rtrb").max(rate("rtrb (chunks)")));
}

#[test]
fn growth_counts_only_as_far_as_it_was_asked_for() {
    let mut report = example::report();
    let mut row = report.growth[0].clone();
    row.messages = 1_000_000_000;
    row.resident_kib = [200, 200];
    report.growth.insert(1, row);
    let all = targets(&report);
    assert_eq!(found(&all, "messages").verdict(), Verdict::Met);
    assert_eq!(found(&all, "memory").verdict(), Verdict::NotMet);
}

#[test]
fn nothing_measured_is_nothing_met() {
    let mut report = example::report();
    (report.latency, report.throughput, report.growth) = (Vec::new(), Vec::new(), Vec::new());
    (report.copies, report.many) = (Vec::new(), None);
    let all = targets(&report);
    assert!(all.iter().all(|target| target.verdict() == Verdict::NotMeasured), "{all:#?}");
}
