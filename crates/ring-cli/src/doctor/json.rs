//! The report as one JSON object: keys in snake case, times in microseconds.

use super::advice::Advice;
use super::facts::{Facts, Pair, Seen};
use super::sharing::Sharing;
use crate::reasons::each;
use ring_host::platform::LIBRARY;
use ring_host::probe::{Lack, QuickPages};
use ring_host::{MEMORY_VARIABLE, MODE_VARIABLE};
use serde_json::{Value, json};
use std::time::Duration;

/// The report.
pub fn report(facts: &Facts, to_do: &[Advice]) -> Value {
    let (library, seen) = (&facts.library, facts.seen.as_ref());
    let places = library.places.iter().map(|place| {
        json!({ "folder": place.folder.to_string_lossy(), "why": place.why, "found": place.found })
    });
    let forced = |name| facts.forced.iter().find(|(variable, _)| *variable == name);
    let choice = seen.map(|seen| {
        let taken = seen.choice.as_ref();
        json!({
            "mode": taken.ok().map(|taken| taken.mode.to_string()),
            "memory": taken.ok().map(|taken| taken.memory.to_string()),
            "why": taken.ok().map(|taken| taken.why.to_string()),
            "error": taken.err().map(|refused| each(refused)),
        })
    });
    let way = |way: &super::facts::Way| {
        json!({
            "mode": way.mode.to_string(),
            "memory": way.memory.to_string(),
            "works": way.refused.is_none(),
            "refused": way.refused,
        })
    };
    json!({
        "opened": facts.opened(),
        "asked": { "device": facts.asked.to_string(), "emulate": facts.emulated },
        "machine": {
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "wsl_signs": facts.wsl.iter().map(ToString::to_string).collect::<Vec<_>>(),
        },
        "environment": {
            "ring_mode": forced(MODE_VARIABLE).map(|(_, value)| value),
            "ring_memory": forced(MEMORY_VARIABLE).map(|(_, value)| value),
        },
        "driver_library": {
            "file": LIBRARY,
            "ld_library_path": library.path,
            "places": places.collect::<Vec<_>>(),
            "loaded": library.loaded,
            "kernel_module": library.kernel_module,
        },
        "gpus": { "count": facts.gpus.as_ref().ok(), "error": facts.gpus.as_ref().err() },
        "errors": facts.troubles.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "device": facts.device,
        "probe": seen.map(probe),
        "sharing": facts.sharing.as_ref().map(sharing),
        "peers": { "pairs": facts.peers.as_ref().ok().map(|pairs| pairs.iter().map(pair).collect::<Vec<_>>()), "error": facts.peers.as_ref().err() },
        "choice": choice,
        "ways": seen.map(|seen| seen.ways.iter().map(way).collect::<Vec<_>>()),
        "to_do": to_do,
    })
}

fn probe(seen: &Seen) -> Value {
    let answers = seen.resident.as_ref().ok();
    let timed = |fact: &Result<Duration, Lack>| {
        found(json!({ "us": fact.as_ref().ok().map(micros) }), fact)
    };
    json!({
        "took_us": micros(&seen.took),
        "loaded": seen.loaded.to_string(),
        "pinned": { "bytes": seen.pinned.as_ref().ok(), "error": seen.pinned.as_ref().err().map(ToString::to_string) },
        "quick_pages": quick_pages(&seen.quick_pages),
        "mapped": found(json!({ "works": seen.mapped.is_ok() }), &seen.mapped),
        "resident": found(
            json!({
                "answers": answers.map(|answers| answers.count),
                "median_us": answers.map(|answers| micros(&answers.median)),
            }),
            &seen.resident,
        ),
        "copy_beside_resident": timed(&seen.beside),
        "message_by_launch": timed(&seen.launch),
        "message_by_graph": timed(&seen.graph),
    })
}

fn quick_pages(found: &QuickPages) -> Value {
    let (classes, used, took) = match found {
        QuickPages::Used { classes, bytes, took } => (Some(classes), Some(bytes), Some(took)),
        QuickPages::Alike { classes, took } => (Some(classes), None, Some(took)),
        _ => (None, None, None),
    };
    let class = |k: usize| {
        classes.map(|classes| json!({ "pages": classes.pages[k], "cycles": classes.cycles[k] }))
    };
    let error = match found {
        QuickPages::Unused(why) => Some(why.to_string()),
        _ => None,
    };
    json!({
        "used_bytes": used,
        "quick": class(0),
        "slow": class(1),
        "took_us": took.map(micros),
        "error": error,
    })
}

/// What was found, with why there is nothing, and whether that is certain: else the machine was too busy to
/// tell.
fn found<T>(mut what: Value, fact: &Result<T, Lack>) -> Value {
    let lack = fact.as_ref().err();
    what["error"] = json!(lack.map(|lack| lack.cause().to_string()));
    what["certain"] = json!(lack.is_none_or(Lack::is_certain));
    what
}

fn pair(Pair { from, to, lacks }: &Pair) -> Value {
    json!({ "from": from, "to": to, "reaches": lacks.is_none(), "error": lacks })
}

fn sharing(found: &Sharing) -> Value {
    let trips = found.trips.as_ref();
    json!({
        "other_processes": found.users,
        "round_trips": {
            "count": trips.ok().map(|trips| trips.count),
            "median_us": trips.ok().map(|trips| micros(&trips.median)),
            "longest_us": trips.ok().map(|trips| micros(&trips.longest)),
            "of_1_ms_or_longer": trips.ok().map(|trips| trips.late),
            "error": trips.err(),
        },
    })
}

fn micros(time: &Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{advice, example};

    fn parsed(facts: &Facts) -> Value {
        let text = format!("{:#}", report(facts, &advice::of(facts)));
        serde_json::from_str(&text).expect("what is written can be read")
    }

    #[test]
    fn all_keys_are_there_and_stay() {
        let value = parsed(&example::gpu());
        let keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "asked",
            "choice",
            "device",
            "driver_library",
            "environment",
            "errors",
            "gpus",
            "machine",
            "opened",
            "peers",
            "probe",
            "sharing",
            "to_do",
            "ways",
        ];
        assert_eq!(keys, expected);
        for (pointer, expected) in [
            ("/opened", json!(true)),
            ("/asked/device", json!("auto")),
            ("/asked/emulate", json!(null)),
            ("/machine/wsl_signs", json!([])),
            ("/environment/ring_mode", json!(null)),
            ("/driver_library/file", json!("libcuda.so.1")),
            ("/driver_library/loaded", json!(true)),
            ("/driver_library/places/0/found", json!(true)),
            ("/gpus/count", json!(1)),
            ("/device/name", json!("NVIDIA H200")),
            ("/device/cuda_version", json!("12.8")),
            ("/device/compute_capability", json!("9.0")),
            ("/device/watchdog", json!(false)),
            ("/probe/pinned/bytes", json!(67_108_864)),
            ("/probe/quick_pages/used_bytes", json!(null)),
            ("/probe/quick_pages/quick", json!(null)),
            ("/probe/quick_pages/took_us", json!(null)),
            ("/probe/resident/answers", json!(9)),
            ("/probe/resident/median_us", json!(2.5)),
            ("/probe/copy_beside_resident/us", json!(12.0)),
            ("/probe/message_by_launch/us", json!(9.25)),
            ("/probe/message_by_graph/error", json!(null)),
            ("/probe/resident/certain", json!(true)),
            ("/probe/copy_beside_resident/certain", json!(true)),
            ("/probe/took_us", json!(1500.0)),
            ("/probe/loaded", json!("the cubin for sm_90")),
            ("/choice/mode", json!("persistent")),
            ("/choice/memory", json!("mapped")),
            ("/ways/0/works", json!(true)),
            ("/ways/1/refused", json!("copied between launches")),
            ("/to_do", json!([])),
            ("/peers", json!({ "pairs": [], "error": null })),
            ("/sharing/other_processes", json!([])),
            ("/sharing/round_trips/longest_us", json!(30.0)),
            ("/sharing/round_trips/of_1_ms_or_longer", json!(0)),
            ("/sharing/round_trips/error", json!(null)),
        ] {
            assert_eq!(value.pointer(pointer), Some(&expected), "{pointer}");
        }
    }

    #[test]
    fn what_is_missing_is_null_with_its_error() {
        let mut facts = example::without_driver();
        let value = parsed(&facts);
        assert_eq!(value["gpus"]["count"], Value::Null);
        assert!(value["gpus"]["error"].as_str().unwrap().contains("no NVIDIA driver"));
        assert_eq!(value["to_do"][0]["id"], "driver");
        assert_eq!(value["device"]["compute_capability"], Value::Null);
        (facts.device, facts.seen) = (None, None);
        let value = parsed(&facts);
        assert_eq!(value["opened"], false);
        for key in ["device", "probe", "choice", "ways"] {
            assert_eq!(value[key], Value::Null, "{key}");
        }
    }
}
