//! The report as one JSON object: keys in snake case, times in microseconds.

use super::advice::Advice;
use super::facts::{Facts, Found, Seen};
use super::sharing::Sharing;
use crate::reasons::each;
use ring_host::platform::LIBRARY;
use ring_host::probe::Lack;
use ring_host::{MEMORY_VARIABLE, MODE_VARIABLE};
use serde_json::{Value, json};
use std::time::Duration;

/// The report.
pub fn report(facts: &Facts, to_do: &[Advice]) -> Value {
    let library = &facts.library;
    let places = library.places.iter().map(|place| {
        json!({ "folder": place.folder.to_string_lossy(), "why": place.why, "found": place.found })
    });
    let forced = |name| facts.forced.iter().find(|(variable, _)| *variable == name);
    let texts = |texts: &[String]| json!(texts);
    json!({
        "opened": facts.opened(),
        "asked": { "device": facts.asked.to_string(), "emulate": facts.emulated },
        "machine": {
            "system": std::env::consts::OS,
            "architecture": std::env::consts::ARCH,
            "wsl_signs": texts(&facts.wsl.iter().map(ToString::to_string).collect::<Vec<_>>()),
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
        "errors": texts(&facts.troubles.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "device": facts.device.as_ref().map(device),
        "probe": facts.seen.as_ref().map(probe),
        "sharing": facts.sharing.as_ref().map(sharing),
        "choice": facts.seen.as_ref().map(choice),
        "ways": facts.seen.as_ref().map(ways),
        "to_do": to_do.iter().map(|a| {
            json!({ "id": a.id, "missing": a.missing, "remedy": a.remedy })
        }).collect::<Vec<_>>(),
    })
}

fn device(found: &Found) -> Value {
    json!({
        "kind": found.kind,
        "name": found.name,
        "why": found.why,
        "cuda_version": found.cuda.map(|(major, minor)| format!("{major}.{minor}")),
        "compute_capability":
            found.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
        "multiprocessors": found.multiprocessors,
        "cooperative_launch": found.cooperative_launch,
        "maps_host_memory": found.maps_host_memory,
        "concurrent_managed_access": found.concurrent_managed_access,
        "copy_engines": found.copy_engines,
        "watchdog": found.watchdog,
    })
}

fn probe(seen: &Seen) -> Value {
    let resident = seen.resident.as_ref();
    json!({
        "took_us": micros(&seen.took),
        "pinned": { "bytes": seen.pinned.as_ref().ok(), "error": text(seen.pinned.as_ref().err()) },
        "mapped": {
            "works": seen.mapped.is_ok(),
            "error": why(&seen.mapped),
            "certain": is_certain(&seen.mapped),
        },
        "resident": {
            "answers": resident.ok().map(|answers| answers.count),
            "median_us": resident.ok().map(|answers| micros(&answers.median)),
            "error": why(&seen.resident),
            "certain": is_certain(&seen.resident),
        },
        "copy_beside_resident": timed(&seen.beside),
        "message_by_launch": timed(&seen.launch),
        "message_by_graph": timed(&seen.graph),
    })
}

fn sharing(found: &Sharing) -> Value {
    let users = found.users.iter().map(|user| json!({ "pid": user.pid, "name": user.name }));
    let trips = found.trips.as_ref();
    json!({
        "other_processes": users.collect::<Vec<_>>(),
        "round_trips": {
            "count": trips.ok().map(|trips| trips.count),
            "median_us": trips.ok().map(|trips| micros(&trips.median)),
            "longest_us": trips.ok().map(|trips| micros(&trips.longest)),
            "of_1_ms_or_longer": trips.ok().map(|trips| trips.late),
            "error": trips.err(),
        },
    })
}

fn choice(seen: &Seen) -> Value {
    let taken = seen.choice.as_ref().ok();
    json!({
        "mode": taken.map(|taken| taken.mode.to_string()),
        "memory": taken.map(|taken| taken.memory.to_string()),
        "why": text(taken.map(|taken| &taken.why)),
        "error": seen.choice.as_ref().err().map(|refused| each(refused)),
    })
}

fn ways(seen: &Seen) -> Value {
    let way = |way: &super::facts::Way| {
        json!({
            "mode": way.mode.to_string(),
            "memory": way.memory.to_string(),
            "works": way.refused.is_none(),
            "refused": way.refused,
        })
    };
    seen.ways.iter().map(way).collect()
}

fn timed(fact: &Result<Duration, Lack>) -> Value {
    json!({
        "us": fact.as_ref().ok().map(micros),
        "error": why(fact),
        "certain": is_certain(fact),
    })
}

fn why<T>(fact: &Result<T, Lack>) -> Option<String> {
    text(fact.as_ref().err().map(Lack::cause))
}

fn text(fact: Option<&impl ToString>) -> Option<String> {
    fact.map(ToString::to_string)
}

/// Whether it was found out; else the machine was too busy to tell.
fn is_certain<T>(fact: &Result<T, Lack>) -> bool {
    fact.as_ref().err().is_none_or(Lack::is_certain)
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
            ("/probe/resident/answers", json!(9)),
            ("/probe/resident/median_us", json!(2.5)),
            ("/probe/copy_beside_resident/us", json!(12.0)),
            ("/probe/message_by_launch/us", json!(9.25)),
            ("/probe/message_by_graph/error", json!(null)),
            ("/probe/resident/certain", json!(true)),
            ("/probe/copy_beside_resident/certain", json!(true)),
            ("/probe/took_us", json!(1500.0)),
            ("/choice/mode", json!("persistent")),
            ("/choice/memory", json!("mapped")),
            ("/ways/0/works", json!(true)),
            ("/ways/1/refused", json!("copied between launches")),
            ("/to_do", json!([])),
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
