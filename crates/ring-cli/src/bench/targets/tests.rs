use super::*;
use crate::bench::example;
use crate::bench::report::{Rounds, Stop};
use crate::bench::stats::Rates;

fn found<'a>(all: &'a [Target], id: &str) -> &'a Target {
    all.iter().find(|target| target.id == id).unwrap()
}

#[test]
fn each_is_judged_by_its_own_figures() {
    let all = targets(&example::report());
    for (id, verdict) in [
        ("flag_p50", Verdict::NotMet),
        ("launch", Verdict::Met),
        ("one_channel", Verdict::Met),
        ("eight_channels", Verdict::NeedsGpu),
        ("bandwidth", Verdict::NotMet),
        ("many", Verdict::Met),
        ("cpu_rate", Verdict::NotMet),
        ("messages", Verdict::NotMeasured),
        ("capacity", Verdict::WithinNoise),
        ("load_1", Verdict::NeedsGpu),
        ("scope_block", Verdict::NeedsGpu),
        ("graph_more", Verdict::NeedsGpu),
        ("peers_way", Verdict::NeedsGpu),
        ("compute_page_rank", Verdict::NeedsGpu),
    ] {
        let target = found(&all, id);
        assert_eq!(target.verdict(), verdict, "{target:?}");
    }
    let ratio = found(&all, "launch").measured.clone().unwrap();
    let same = (ratio.value - 0.2).abs() < 0.001;
    assert!(same && ratio.figures.starts_with("2.000 / 10."), "{ratio:?}");
}

fn verdict_of(sense: Sense, value: f64, spread: Option<[f64; 2]>) -> Verdict {
    let measured = Ok(Ratio { value, figures: String::new(), spread });
    Target { id: "x", what: "x", sense, bound: 0.65, measured, needs_gpu: false }.verdict()
}

#[test]
fn a_bound_that_single_runs_lie_on_both_sides_of_is_within_noise() {
    for sense in [Sense::AtMost, Sense::AtLeast] {
        for value in [0.6, 0.64, 0.66, 0.7] {
            assert_eq!(verdict_of(sense, value, Some([0.6, 0.7])), Verdict::WithinNoise);
        }
        let (low, high) = match sense {
            Sense::AtMost => (Verdict::Met, Verdict::NotMet),
            Sense::AtLeast => (Verdict::NotMet, Verdict::Met),
        };
        assert_eq!(verdict_of(sense, 0.62, Some([0.6, 0.64])), low);
        assert_eq!(verdict_of(sense, 0.68, Some([0.66, 0.7])), high);
    }
}

#[test]
fn a_bound_is_met_exactly_and_not_a_hair_beyond() {
    let of = |sense, value| verdict_of(sense, value, None);
    assert_eq!(of(Sense::AtMost, 0.65), Verdict::Met);
    assert_eq!(of(Sense::AtMost, 0.6501), Verdict::NotMet);
    assert_eq!(of(Sense::AtLeast, 0.65), Verdict::Met);
    assert_eq!(of(Sense::AtLeast, 0.6499), Verdict::NotMet);
    assert_eq!(of(Sense::AtLeast, f64::NAN), Verdict::NotMet);
    assert_eq!(of(Sense::AtMost, f64::NAN), Verdict::NotMet);
}

/// Verdicts on those targets of which the names for programs begin like that. The report is of a GPU that the bounds are for; of another
/// one nothing is judged.
fn verdicts_of_an_h200(report: &mut Report, begin: &str) -> Vec<(&'static str, Verdict)> {
    let verdicts = |report: &Report| -> Vec<_> {
        let all = targets(report).into_iter().filter(|target| target.id.starts_with(begin));
        all.map(|target| (target.id, target.verdict())).collect()
    };
    report.machine.device.compute_capability = (8, 0);
    let other = verdicts(report);
    assert!(!other.is_empty(), "{begin}");
    assert!(other.iter().all(|(_, verdict)| *verdict == Verdict::NotMeasured), "{other:?}");
    report.machine.device.compute_capability = (9, 0);
    verdicts(report)
}

#[test]
fn latency_under_load_is_judged_on_the_gpu_that_the_bounds_are_for() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let verdicts = verdicts_of_an_h200(&mut report, "load_");
    let expected = [
        ("load_1", Verdict::WithinNoise), // 1.85 in the middle, and runs on both sides of 1.97
        ("load_32", Verdict::NotMet),
        ("load_rate_32", Verdict::WithinNoise),
        ("load_64", Verdict::Met),
        ("load_256", Verdict::Met),
        ("load_1024", Verdict::NotMet),
        ("load_due_5m", Verdict::WithinNoise),
        ("load_due_10m", Verdict::Met),
        ("load_tail", Verdict::Met),
        ("load_channels", Verdict::Met),
    ];
    assert_eq!(verdicts, expected);
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap();
    assert!(of("load_32").figures.ends_with("us, 32 in flight"), "{:?}", of("load_32"));
    // p50 3.0, p99 4.0 and the clock alone 1.0: 4.0 / (3.0 + 3.0).
    assert!((of("load_tail").value - 2.0 / 3.0).abs() < 0.01, "{:?}", of("load_tail"));
    assert!((of("load_channels").value - 1.1).abs() < 0.01, "{:?}", of("load_channels"));
    // A noisy machine is allowed its own noise.
    let load = report.load.as_mut().unwrap();
    load.open[0].clock = load.closed.pop().unwrap().figures;
    let tail = found(&targets(&report), "load_tail").measured.clone().unwrap();
    assert!(tail.value < 2.0 / 3.0 + 0.01 && !tail.figures.ends_with("0.01 M/s due"), "{tail:?}");
}

#[test]
fn a_row_under_load_that_stopped_is_not_passed_over() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    report.machine.device.compute_capability = (9, 0);
    let load = report.load.as_mut().unwrap();
    load.closed[3].figures = Err(Stop::Refused("no room".to_owned()));
    load.channels.retain(|row| row.channels != 8);
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap_err();
    assert_eq!(of("load_32"), "8 in flight: no room");
    assert_eq!(of("load_channels"), "ours was not measured");
}

#[test]
fn scopes_and_sizes_are_judged_on_the_gpu_that_the_bounds_are_for() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let verdicts = verdicts_of_an_h200(&mut report, "scope_");
    let expected = [
        ("scope_block", Verdict::Met),
        ("scope_block_rate", Verdict::NotMet),
        ("scope_order", Verdict::WithinNoise), // 2.6, and runs on both sides of it
        ("scope_order_rate", Verdict::Met),
        ("scope_add", Verdict::NotMet),
        ("scope_add_payload", Verdict::Met),
        ("scope_bytes_1", Verdict::Met),
        ("scope_bytes_8", Verdict::WithinNoise), // 40.96
    ];
    assert_eq!(verdicts, expected);
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap();
    assert!(of("scope_add").figures.contains("add_25"), "the slower: {:?}", of("scope_add"));
    let least = of("scope_bytes_1");
    assert!((least.value - 15.36).abs() < 0.01, "256 bytes, not 64: {least:?}");
    assert_eq!(least.figures, "15.360 GB/s each way, echo_256");
}

#[test]
fn calls_are_judged_by_the_worst_of_many_threads() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let verdicts = verdicts_of_an_h200(&mut report, "calls_");
    let expected = [
        ("calls_one", Verdict::Met),
        ("calls_tickets", Verdict::Met),
        ("calls_waiting", Verdict::Met),
        ("calls_tail", Verdict::NotMet),
    ];
    assert_eq!(verdicts, expected);
    let of = |report: &Report, id| found(&targets(report), id).measured.clone();
    let beyond = of(&report, "calls_one").unwrap();
    assert!((beyond.value - 0.05).abs() < 0.002, "{beyond:?}");
    let waiting = of(&report, "calls_waiting").unwrap();
    assert_eq!(
        waiting.figures, "8.000 M/s, calls, 64 threads, 16 channels",
        "more than one channel"
    );
    let tail = of(&report, "calls_tail").unwrap();
    assert!(tail.figures.ends_with(" us, 16 channels") && tail.value > 3.0, "{tail:?}");
    // Beside one thread of a kernel with as many channels.
    report.calls.retain(|row| (row.threads, row.channels) != (1, 16));
    assert_eq!(of(&report, "calls_tail").unwrap_err(), "the section calls was not measured");
}

#[test]
fn a_scope_or_size_that_stopped_is_not_passed_over() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    report.machine.device.compute_capability = (9, 0);
    report.scopes.retain(|row| row.id != "add_10");
    let wide = |row: &&mut Throughput| row.name == "echo_4096" && row.shape.channels == 8;
    let row = report.throughput.iter_mut().find(wide).unwrap();
    row.rate = Err(Stop::Refused("no room".to_owned()));
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap_err();
    assert_eq!(of("scope_add"), "the section scopes was not measured");
    assert_eq!(of("scope_bytes_8"), "echo_4096: no room");
}

#[test]
fn graphs_are_judged_on_the_gpu_that_the_bounds_are_for() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    report.machine.device.multiprocessors = 132;
    let verdicts = verdicts_of_an_h200(&mut report, "graph_");
    let expected = [
        ("graph_more", Verdict::NotMet),
        ("graph_by_host", Verdict::Met),
        ("graph_links_1", Verdict::WithinNoise), // 380, and runs on both sides of 400
        ("graph_links_8", Verdict::WithinNoise),
        ("graph_links_56", Verdict::NotMet),
        ("graph_by_key", Verdict::WithinNoise),
    ];
    assert_eq!(verdicts, expected);
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap();
    let more = of("graph_more");
    assert!((more.value - 0.5).abs() < 0.001, "{more:?}");
    assert_eq!(more.figures, "(4.303 - 2.301) / 4 us, five kernels and one");
    assert_eq!(of("graph_links_1").figures, "380.000 M/s, times_8", "of the default slots");
    assert_eq!(of("graph_by_key").figures, "290.000 M/s, times_8 to 64", "the slowest");
}

#[test]
fn a_graph_that_stopped_or_has_no_room_is_not_passed_over() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    report.machine.device.compute_capability = (9, 0);
    report.machine.device.multiprocessors = 114;
    report.throughput.retain(|row| row.shape.channels != 56);
    report.throughput.retain(|row| (row.sweep, row.shape.channels) != ("keys", 16));
    report.graphs[1].times = Err(Stop::Refused("no room".to_owned()));
    let all = targets(&report);
    let of = |id| found(&all, id).measured.clone().unwrap_err();
    assert_eq!(of("graph_more"), "graph_1 <there & back>: no room");
    assert_eq!(of("graph_links_56"), "56 links need 126 multiprocessors of 114");
    assert_eq!(of("graph_by_key"), "the section graphs was not measured");
}

#[test]
fn kernels_of_two_devices_are_judged_by_what_the_second_adds() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let verdicts = verdicts_of_an_h200(&mut report, "peers_");
    let expected = [
        ("peers_way", Verdict::WithinNoise),
        ("peers_host", Verdict::WithinNoise),
        ("peers_links_1", Verdict::Met),
        ("peers_links_8", Verdict::Met),
        ("peers_links_64", Verdict::WithinNoise),
        ("peers_barrier", Verdict::Met),
        ("peers_page_rank", Verdict::Met),
    ];
    assert_eq!(verdicts, expected);
    let of = |report: &Report, id| found(&targets(report), id).measured.clone();
    let way = of(&report, "peers_way").unwrap();
    assert!((way.value - 0.65).abs() < 0.01, "{}", way.value);
    assert!(way.figures.ends_with(" / 2 us, there and back behind a kernel"), "{}", way.figures);
    let barrier = of(&report, "peers_barrier").unwrap();
    assert!((barrier.value - 2.4).abs() < 0.01, "{}", barrier.value);
    let faster = of(&report, "peers_page_rank").unwrap();
    assert!((faster.value - 1.95).abs() < 0.01 && faster.figures == "8004 / 4100 us", "{faster:?}");
    report.peers.retain(|row| row.id != "peers_0");
    assert_eq!(of(&report, "peers_way").unwrap_err(), "the section peers was not measured");
}

#[test]
fn whole_computations_are_judged_on_the_gpu_that_the_bounds_are_for() {
    let mut report = example::report();
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let verdicts = verdicts_of_an_h200(&mut report, "compute_");
    assert_eq!(verdicts, [("compute_page_rank", Verdict::Met)]);
    let of = |report: &Report| found(&targets(report), "compute_page_rank").measured.clone();
    let met = of(&report).unwrap();
    assert_eq!(met.figures, "6000.000 M/s, PageRank, R-MAT 2^20");
    let row = report.throughput.last_mut().unwrap();
    row.rate = Err(Stop::Refused("no room".to_owned()));
    assert_eq!(of(&report).unwrap_err(), "PageRank, R-MAT 2^20: no room");
    // Over another graph there are other bounds.
    report.throughput.last_mut().unwrap().name = "PageRank, R-MAT 2^12";
    assert_eq!(of(&report).unwrap_err(), "the section compute was not measured");
}

#[test]
fn the_best_of_the_others_counts() {
    let report = example::report();
    let rate = |name| {
        let rows = report.sweep("cpu").filter(move |row| row.name == name);
        best(rows).and_then(Throughput::millions).unwrap()
    };
    let ratio = found(&targets(&report), "cpu_rate").measured.clone().unwrap();
    assert_eq!(ratio.value, rate("echo") / rate("rtrb").max(rate("rtrb (chunks)")));
}

#[test]
fn growth_counts_only_as_far_as_it_was_asked_for() {
    let mut report = example::report();
    let mut once = Rates::default();
    once.add(100e6);
    report.growth[0].rate = Ok(once);
    let mut row = report.growth[0].clone();
    row.messages = 1_000_000_000;
    (row.before_kib, row.after_kib) = (200, 200);
    report.growth.insert(1, row);
    let all = targets(&report);
    assert_eq!(found(&all, "messages").verdict(), Verdict::Met);
    assert_eq!(found(&all, "memory").verdict(), Verdict::NotMet);
}

#[test]
fn memory_is_compared_with_what_there_was_before_the_first_row() {
    let mut report = example::report();
    let mut last = report.growth[0].clone();
    last.messages = 1_000_000_000;
    (report.growth[0].before_kib, report.growth[0].after_kib) = (100, 200);
    (last.before_kib, last.after_kib) = (200, 200);
    report.growth.insert(1, last);
    assert_eq!(found(&targets(&report), "memory").verdict(), Verdict::NotMet);
}

#[test]
fn only_rings_made_of_the_same_numbers_are_compared() {
    let mut report = example::report();
    let of = |report: &Report| found(&targets(report), "one_channel").measured.clone();
    let known = of(&report).unwrap();
    let theirs = report.throughput.iter_mut().filter(|row| row.name == "head/tail");
    let theirs: Vec<_> = theirs.collect();
    assert_eq!(theirs.len(), 2);
    for row in theirs {
        row.shape.capacity /= 4;
    }
    assert_eq!(of(&report).unwrap_err(), "it needs a GPU", "of a machine without one");
    report.throughput[2].shape.capacity *= 4;
    let ratio = of(&report).unwrap();
    assert!(ratio.value > known.value, "the slower is the only one of the same size: {ratio:?}");
    assert!(
        ratio.figures.contains("both 16,384 slots, 4,096 in flight, batches of 512"),
        "{ratio:?}"
    );
}

#[test]
fn rings_with_head_and_tail_have_the_threads_that_suit_them() {
    let mut report = example::report();
    let known = found(&targets(&report), "one_channel").measured.clone().unwrap();
    let ours = best(report.sweep("head_tail").filter(|row| row.whose == Whose::Ours)).unwrap();
    let mut rates = Rates::default();
    rates.add(ours.millions().unwrap() * 1e6);
    let mut row = report.throughput.iter().find(|row| row.name == "head/tail").unwrap().clone();
    row.shape.threads *= 2;
    row.rate = Ok(rates);
    report.throughput.push(row);
    let ratio = found(&targets(&report), "one_channel").measured.clone().unwrap();
    assert!(known.value > 1.0 && ratio.value == 1.0, "{ratio:?}");
    assert!(ratio.figures.contains("ours 512 threads a block, theirs 1024"), "{ratio:?}");
}

#[test]
fn nothing_measured_is_nothing_met() {
    let mut report = example::report();
    (report.latency, report.throughput, report.growth) = (Vec::new(), Vec::new(), Vec::new());
    (report.copies, report.many, report.load) = (Vec::new(), None, None);
    (report.scopes, report.graphs, report.calls) = (Vec::new(), Vec::new(), Vec::new());
    report.peers = Vec::new();
    report.compute = Vec::new();
    let all = targets(&report);
    let of = |verdict| all.iter().filter(|target| target.verdict() == verdict).count();
    assert_eq!((of(Verdict::NeedsGpu), of(Verdict::NotMeasured)), (44, all.len() - 44), "{all:#?}");
    report.machine.device.kind = ring_host::DeviceKind::Cuda;
    let all = targets(&report);
    assert!(all.iter().all(|target| target.verdict() == Verdict::NotMeasured), "{all:#?}");
}

#[test]
fn what_the_runs_leave_open_is_within_noise() {
    let mut report = example::report();
    let mut runs = |name, runs: [f64; 3]| {
        let mut rows = report.throughput.iter_mut();
        let row = rows.find(|row| row.sweep == "cpu" && row.name == name).unwrap();
        let mut rates = Rates::default();
        runs.into_iter().for_each(|rate| rates.add(rate * 1e6));
        row.rate = Ok(rates);
    };
    runs("echo", [20.0, 26.0, 24.0]);
    runs("rtrb (chunks)", [25.0, 24.0, 25.0]);
    let all = targets(&report);
    let target = found(&all, "cpu_rate");
    assert_eq!(target.verdict(), Verdict::WithinNoise);
    assert_eq!(target.from(), "24.000 / 25.000 M/s; runs gave 0.800 to 1.083");
    // Each round of round trips is a run.
    let row = report.latency.iter_mut().find(|row| (row.device, row.id) == ("cpu", "ring"));
    let us = vec![0.28, 0.29, 0.32];
    row.unwrap().rounds = Rounds { p50: us.clone(), p99: us };
    assert_eq!(found(&targets(&report), "cpu_trip").verdict(), Verdict::WithinNoise);
    // One ring after the other: any run over any.
    let all = targets(&report);
    let spread = found(&all, "capacity").measured.as_ref().unwrap().spread.unwrap();
    assert!(spread[0] < 0.85 && spread[1] > 1.1, "{spread:?}");
}
