//! The report as text.

use super::advice::Advice;
use super::facts::{Facts, Found, Library, Pair, Seen};
use super::sharing::Sharing;
use crate::reasons::{by_reason, each, listed};
use crate::text::{grouped, plural, wrapped};
use ring_host::platform::LIBRARY;
use ring_host::probe::Lack;
use std::fmt::Display;
use std::time::Duration;

/// Columns of what stands before the facts.
const LABEL: usize = 29;

/// The report.
pub fn report(facts: &Facts, to_do: &[Advice]) -> String {
    let mut page = Page::default();
    machine(&mut page, facts);
    library(&mut page, &facts.library);
    device(&mut page, facts);
    if let Some(seen) = &facts.seen {
        probe(&mut page, seen);
        facts.sharing.iter().for_each(|found| sharing(&mut page, found));
        choice(&mut page, seen);
    }
    peers(&mut page, facts);
    page.section("What to do");
    if to_do.is_empty() {
        page.item(&super::advice::nothing(facts));
    }
    to_do.iter().for_each(|advice| page.item(&advice.to_string()));
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn section(&mut self, heading: &str) {
        let space = if self.0.is_empty() { "" } else { "\n" };
        self.0 += &format!("{space}{heading}\n");
    }

    fn fact(&mut self, label: &str, fact: impl Display) {
        let label = format!("  {label}");
        self.0 += &wrapped(&format!("{label:<LABEL$}"), &fact.to_string());
        self.0.push('\n');
    }

    fn item(&mut self, text: &str) {
        self.0 += &wrapped("  - ", text);
        self.0.push('\n');
    }
}

fn machine(page: &mut Page, facts: &Facts) {
    page.section("Machine");
    page.fact("system", format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH));
    if facts.wsl.is_empty() {
        page.fact("WSL2", "no sign of it");
    }
    facts.wsl.iter().for_each(|sign| page.fact("sign of WSL2", sign));
    if facts.forced.is_empty() {
        page.fact("environment", "forces nothing");
    }
    for (variable, value) in &facts.forced {
        page.fact("environment", format!("{variable}={value}"));
    }
    if let Some(names) = &facts.emulated {
        page.fact("emulated", format!("{names} (what follows is not all true of the machine)"));
    }
}

fn library(page: &mut Page, library: &Library) {
    page.section(&format!("Driver library {LIBRARY}"));
    let own = if library.path.is_some() { "set; its folders come first" } else { "not set" };
    page.fact("LD_LIBRARY_PATH", own);
    for place in &library.places {
        let found = if place.found { "found in" } else { "not in" };
        page.fact(found, format!("{} ({})", place.folder.display(), place.why));
    }
    page.fact("other folders", "the dynamic linker may know more (/etc/ld.so.conf)");
    let loaded = match library.loaded {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not tried: built without the feature 'cuda'",
    };
    page.fact("loaded", loaded);
    if let Some(version) = &library.kernel_module {
        page.fact("kernel module", version);
    }
}

fn device(page: &mut Page, facts: &Facts) {
    page.section("Devices");
    let troubles: Vec<_> = facts.troubles.iter().map(ToString::to_string).collect();
    match &facts.gpus {
        Ok(count) => page.fact("GPUs", count),
        Err(why) => page.fact("GPUs", format!("none: {why}")),
    }
    page.fact("asked for", facts.asked);
    for trouble in troubles.iter().filter(|trouble| facts.gpus.as_ref().err() != Some(trouble)) {
        page.fact("not opened", trouble);
    }
    facts.device.iter().for_each(|device| attributes(page, device));
}

fn attributes(page: &mut Page, device: &Found) {
    page.fact("device", format!("{}: {}", device.kind, device.name));
    page.fact("why this one", &device.why);
    if let Some(version) = &device.cuda {
        page.fact("driver supports", format!("CUDA {version}"));
    }
    if let Some(version) = &device.compute_capability {
        page.fact("compute capability", version);
    }
    page.fact("multiprocessors", device.multiprocessors);
    page.fact("cooperative launch", yes(device.cooperative_launch));
    page.fact("maps host memory", yes(device.maps_host_memory));
    let managed = yes(device.concurrent_managed_access);
    page.fact("concurrent managed access", format!("{managed} (ring uses no managed memory)"));
    page.fact("copy engines", device.copy_engines);
    page.fact("watchdog", yes(device.watchdog));
}

fn probe(page: &mut Page, seen: &Seen) {
    page.section(&format!("Tried on it, in {:.1} ms", seen.took.as_secs_f64() * 1e3));
    page.fact("kernels loaded as", &seen.loaded);
    let bytes = |bytes: &usize| format!("{} bytes", grouped(*bytes as u64));
    page.fact("pinned memory", or_no(&seen.pinned, bytes));
    page.fact("pages of it", &seen.quick_pages);
    page.fact("kernels use it in place", found(&seen.mapped, |()| "yes".to_owned()));
    let answers = found(&seen.resident, |answers| {
        let count = plural(answers.count.into(), "answer");
        format!("{count}, {} there and back (median)", micros(&answers.median))
    });
    page.fact("resident kernel", answers);
    page.fact("copy beside it", found(&seen.beside, micros));
    page.fact("message by launch", found(&seen.launch, micros));
    page.fact("message by graph", found(&seen.graph, micros));
}

fn sharing(page: &mut Page, sharing: &Sharing) {
    let trips = or_no(&sharing.trips, |trips| {
        let (count, median) = (plural(trips.count, "round trip"), micros(&trips.median));
        let (late, longest) = (grouped(trips.late), micros(&trips.longest));
        format!("{count}: {median} (median), {longest} (longest), {late} of 1 ms or longer")
    });
    page.fact("watched a while", trips);
    match sharing.users.is_empty() {
        true => page.fact("other processes", "none is seen to have a GPU open"),
        false => {
            page.fact("other processes", format!("{}: a GPU open", listed(&sharing.names(), "and")))
        }
    }
}

/// Nothing where there are not several GPUs.
fn peers(page: &mut Page, facts: &Facts) {
    let pairs = match &facts.peers {
        Ok(pairs) if pairs.is_empty() => return,
        pairs => pairs,
    };
    page.section("Kernels of one GPU in the memory of another");
    match pairs {
        Err(why) => page.fact("not known", why),
        Ok(pairs) => {
            for Pair { from, to, lacks } in pairs {
                let found = match lacks {
                    None => "yes: links between the two lie in their memory".to_owned(),
                    Some(why) => format!("no: {why}; links go by pinned memory"),
                };
                page.fact(&format!("cuda:{from} in cuda:{to}"), found);
            }
        }
    }
}

fn choice(page: &mut Page, seen: &Seen) {
    page.section("What happens (kernels with payload, mode and memory auto)");
    match &seen.choice {
        Ok(taken) => {
            let text = format!("{} in {} memory; {}", taken.mode, taken.memory, taken.why);
            page.fact("kernels run", text);
        }
        Err(refused) => page.fact("no kernel runs", each(refused)),
    }
    for way in seen.ways.iter().filter(|way| way.refused.is_none()) {
        page.fact("works", format!("{} in {} memory", way.mode, way.memory));
    }
    let refused = seen.ways.iter();
    let refused = refused.filter_map(|way| Some((way.mode, way.memory, way.refused.as_deref()?)));
    for (ways, why) in by_reason(refused) {
        page.fact("refused", format!("{ways}: {why}"));
    }
}

fn found<T>(fact: &Result<T, Lack>, show: impl Fn(&T) -> String) -> String {
    match fact {
        Ok(found) => show(found),
        Err(Lack::No(why)) => format!("no: {why}"),
        Err(Lack::Unknown(why)) => format!("not known, the machine was too busy to tell: {why}"),
    }
}

fn or_no<T>(fact: &Result<T, impl Display>, show: impl Fn(&T) -> String) -> String {
    fact.as_ref().map_or_else(|why| format!("no: {why}"), show)
}

fn micros(time: &Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

fn yes(fact: bool) -> &'static str {
    if fact { "yes" } else { "no" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{advice, example};
    use crate::text::WIDTH;
    use ring_host::probe::Cause;

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_sound_gpu_is_shown_in_full() {
        let facts = example::gpu();
        let text = report(&facts, &advice::of(&facts));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words = words(&text);
        for part in [
            "WSL2 no sign of it",
            "environment forces nothing",
            "found in /usr/lib/x86_64-linux-gnu (usual on Linux)",
            "not in /usr/lib/wsl/lib (the Windows driver under WSL2)",
            "loaded yes",
            "GPUs 1",
            "device cuda: NVIDIA H200",
            "driver supports CUDA 12.8",
            "compute capability 9.0",
            "watchdog no",
            "kernels loaded as the cubin for sm_90",
            "pinned memory 67,108,864 bytes",
            "pages of it all are used alike: 1 kernels are resident,",
            "resident kernel 9 answers, 2.5 us there and back",
            "copy beside it 12.0 us",
            "20,000 round trips: 2.0 us (median), 30.0 us (longest), 0 of 1 ms or longer",
            "other processes none is seen to have a GPU open",
            "kernels run persistent in mapped memory; the best that works",
            "refused persistent in staged-sync memory: copied between launches",
            "What to do - nothing: this machine runs persistent kernels",
        ] {
            assert!(words.contains(part), "'{part}' is not in:\n{text}");
        }
    }

    #[test]
    fn of_several_gpus_it_is_shown_which_reach_the_memory_of_which() {
        let mut facts = example::gpu();
        assert!(!report(&facts, &[]).contains("memory of another"));
        let no = Some("the driver says that the two GPUs are no peers".to_owned());
        let pair = |from, to, lacks| Pair { from, to, lacks };
        facts.peers = Ok(vec![pair(0, 1, None), pair(1, 0, no)]);
        let text = report(&facts, &[]);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let shown = words(&text);
        for part in [
            "cuda:0 in cuda:1 yes: links between the two lie in their memory",
            "cuda:1 in cuda:0 no: the driver says that the two GPUs are no peers; links go by pinned memory",
        ] {
            assert!(shown.contains(part), "'{part}' is not in:\n{text}");
        }
        facts.peers = Err("device 1, which is cuda:1: lost".to_owned());
        assert!(words(&report(&facts, &[])).contains("not known device 1, which is cuda:1: lost"));
    }

    #[test]
    fn what_a_busy_machine_hid_is_not_shown_as_missing() {
        let mut facts = example::gpu();
        let seen = facts.seen.as_mut().unwrap();
        seen.resident = Err(Lack::Unknown(Cause::LeftEarly { message: 3 }));
        let words = words(&report(&facts, &advice::of(&facts)));
        let part =
            "resident kernel not known, the machine was too busy to tell: it left before host";
        assert!(words.contains(part), "{words}");
        assert!(words.contains("run `ring doctor` again"), "{words}");
    }

    #[test]
    fn what_is_missing_is_shown_with_its_reason() {
        let facts = example::without_driver();
        let text = report(&facts, &advice::of(&facts));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words = words(&text);
        for part in ["loaded no", "GPUs none: no NVIDIA driver found", "device cpu: CPU threads"] {
            assert!(words.contains(part), "'{part}' is not in:\n{text}");
        }
        assert!(!words.contains("nothing: this machine"), "{text}");
    }
}
