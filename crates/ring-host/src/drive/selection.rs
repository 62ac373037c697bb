//! Choosing mode and memory, from what was asked and what the probe found.

use crate::drive::mode::{Memory, Mode};
use crate::drive::report::{Choice, Refusal};
use crate::runtime::probe::{Lack, Probe};

/// What is asked for, by the caller or by the environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub mode: Mode,
    pub memory: Memory,
    /// Variables of the environment that say so, if any.
    pub by: &'static str,
}

/// A choice, and what may still change.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub choice: Choice,
    pub mode_is_free: bool,
    pub memory_is_free: bool,
    pub calls_block: bool,
    /// The kernel is the runtime's own, to find something out: it is not told of as the user's are.
    pub of_probe: bool,
}

impl Chosen {
    /// Exactly that, to find out whether it works.
    pub fn for_probe(mode: Mode, memory: Memory) -> Chosen {
        let choice = Choice { mode, memory, why: "probe".to_owned(), refused: Vec::new() };
        Chosen {
            choice,
            mode_is_free: false,
            memory_is_free: false,
            calls_block: false,
            of_probe: true,
        }
    }
}

/// What is known of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub probe: &'a Probe,
    /// Bytes of pinned memory, or why there are none.
    pub pinned: &'a Result<usize, String>,
    pub watchdog: bool,
    pub uses_payload: bool,
}

/// All that could serve, best first, and why the others do not. What may not serve after all comes last.
pub(crate) fn choices(asked: Asked, facts: Facts<'_>) -> (Vec<Chosen>, Vec<Refusal>) {
    let (mut serve, mut may_serve, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (mode, memory) in order(facts.probe) {
        let wanted = (asked.mode == Mode::Auto || asked.mode == mode)
            && (asked.memory == Memory::Auto || asked.memory == memory);
        if !wanted {
            continue;
        }
        match judge((mode, memory), asked, facts) {
            Err(why) => refused.push(Refusal { mode, memory, why }),
            Ok(doubt) => {
                let why = why(asked, mode, facts.probe, doubt.as_deref());
                let choice = Choice { mode, memory, why, refused: refused.clone() };
                let all = if doubt.is_none() { &mut serve } else { &mut may_serve };
                all.push(Chosen {
                    choice,
                    mode_is_free: asked.mode == Mode::Auto,
                    memory_is_free: asked.memory == Memory::Auto,
                    calls_block: calls_block(facts.probe),
                    of_probe: false,
                });
            }
        }
    }
    serve.append(&mut may_serve);
    (serve, refused)
}

/// Modes and memories, best first. Launches through the cheaper way come first.
fn order(probe: &Probe) -> [(Mode, Memory); 9] {
    use Memory::{Mapped, StagedAsync, StagedSync};
    use Mode::{EventDriven, Graph, Persistent};
    let graph_is_cheaper = match (&probe.graph, &probe.launch) {
        (Ok(graph), Ok(launch)) => *graph < *launch * 19 / 20,
        _ => false,
    };
    let (first, second) =
        if graph_is_cheaper { (Graph, EventDriven) } else { (EventDriven, Graph) };
    [
        (Persistent, Mapped),
        (first, Mapped),
        (second, Mapped),
        (Persistent, StagedAsync),
        (first, StagedAsync),
        (second, StagedAsync),
        (first, StagedSync),
        (second, StagedSync),
        (Persistent, StagedSync),
    ]
}

/// Whether driver calls are known to wait for a resident kernel.
fn calls_block(probe: &Probe) -> bool {
    probe.resident.is_ok() && probe.beside.as_ref().is_err_and(Lack::is_certain)
}

/// Whether it serves, and what about it is not certain; or why not, and what to do. What a busy moment kept
/// from being found out does not refuse what was asked for by name: it is tried.
fn judge(
    (mode, memory): (Mode, Memory),
    asked: Asked,
    facts: Facts<'_>,
) -> Result<Option<String>, String> {
    let probe = facts.probe;
    let (by_mode, by_name) = (asked.mode == mode, asked.mode == mode || asked.memory == memory);
    let mut doubt = None;
    let mut lacks = |what: &str, lack: &Lack, asked_for: bool| match asked_for && !lack.is_certain()
    {
        true => {
            doubt.get_or_insert_with(|| format!("{what}: {lack}"));
            Ok(())
        }
        false => Err(format!("{what}: {lack}")),
    };
    if let (Memory::Mapped | Memory::StagedAsync, Err(why)) = (memory, facts.pinned) {
        return Err(format!("there is no pinned memory: {why}"));
    }
    if let (Memory::Mapped, Err(lack)) = (memory, &probe.mapped) {
        lacks("mapped memory does not work", lack, by_name)?;
    }
    if let (Memory::StagedAsync, Err(lack)) = (memory, &probe.beside) {
        lacks("copies do not come back beside a resident kernel", lack, by_name)?;
    }
    match mode {
        Mode::Persistent if memory == Memory::StagedSync => {
            return Err(
                "staged-sync memory is copied between launches, and a persistent kernel has only one"
                    .to_owned(),
            );
        }
        Mode::Persistent if facts.watchdog => {
            return Err("the device's watchdog ends kernels that run for long".to_owned());
        }
        Mode::Persistent => {
            if let Err(lack) = &probe.resident {
                lacks("a resident kernel did not answer", lack, by_mode)?;
            }
            match &probe.beside {
                Err(lack) if asked.mode == Mode::Auto => lacks(
                    "calls block beside a resident kernel, so another could not be launched",
                    lack,
                    by_mode,
                )?,
                Err(lack) if facts.uses_payload => lacks(
                    "this kernel's payload is copied beside it, but calls block",
                    lack,
                    by_mode,
                )?,
                _ => {}
            }
        }
        Mode::Graph => {
            if let Err(lack) = &probe.graph {
                lacks("no graph could be launched", lack, by_mode)?;
            }
        }
        _ => {}
    }
    Ok(doubt)
}

fn why(asked: Asked, mode: Mode, probe: &Probe, doubt: Option<&str>) -> String {
    let found = match (mode, &probe.resident) {
        (Mode::Persistent, Ok(answers)) => {
            format!("a resident kernel answered in {:.1?}", answers.median)
        }
        (Mode::Graph, _) => match (&probe.graph, &probe.launch) {
            (Ok(graph), Ok(launch)) => {
                format!("a message by graph took {graph:.1?}, by launch {launch:.1?}")
            }
            _ => "graphs can be launched".to_owned(),
        },
        _ => match &probe.launch {
            Ok(launch) => format!("a message by launch took {launch:.1?}"),
            Err(why) => format!("launches were not timed: {why}"),
        },
    };
    let found = doubt.map_or(found, |doubt| format!("it is tried although {doubt}"));
    match (asked.by, asked.mode == Mode::Auto && asked.memory == Memory::Auto) {
        ("", true) => format!("the best that works; {found}"),
        ("", false) => format!("asked for; {found}"),
        (by, _) => format!("forced by {by}; {found}"),
    }
}

/// The refusals as one line.
pub(crate) fn listed(refused: &[Refusal]) -> String {
    let lines: Vec<String> = refused.iter().map(Refusal::to_string).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::probe::Answers;
    use std::time::Duration;

    const US: Duration = Duration::from_micros(1);

    fn healthy() -> Probe {
        let resident = Ok(Answers { count: 9, median: 2 * US });
        let (mapped, beside) = (Ok(()), Ok(7 * US));
        Probe { mapped, resident, beside, launch: Ok(9 * US), graph: Ok(8 * US), took: US }
    }

    fn first(
        asked: (Mode, Memory),
        probe: &Probe,
        pinned: bool,
        watchdog: bool,
    ) -> Result<(Mode, Memory), String> {
        let pinned = if pinned { Ok(1 << 25) } else { Err("refused (801)".to_owned()) };
        let asked = Asked { mode: asked.0, memory: asked.1, by: "" };
        let facts = Facts { probe, pinned: &pinned, watchdog, uses_payload: true };
        let (serve, refused) = choices(asked, facts);
        let first = serve.first().map(|chosen| (chosen.choice.mode, chosen.choice.memory));
        first.ok_or_else(|| listed(&refused))
    }

    fn no() -> Lack {
        Lack::No("x".to_owned())
    }

    fn busy() -> Lack {
        Lack::Unknown("message 3 took another launch".to_owned())
    }

    const AUTO: (Mode, Memory) = (Mode::Auto, Memory::Auto);

    #[test]
    fn the_best_that_works_is_taken() {
        let probe = healthy();
        assert_eq!(first(AUTO, &probe, true, false), Ok((Mode::Persistent, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, true, true), Ok((Mode::Graph, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, false, false), Ok((Mode::Graph, Memory::StagedSync)));
        let blind = Probe { resident: Err(no()), beside: Err(no()), ..healthy() };
        assert_eq!(first(AUTO, &blind, true, false), Ok((Mode::Graph, Memory::Mapped)));
        let blocks = Probe { beside: Err(no()), graph: Ok(9 * US), ..healthy() };
        assert_eq!(first(AUTO, &blocks, true, false), Ok((Mode::EventDriven, Memory::Mapped)));
        let unmapped = Probe { mapped: Err(no()), ..healthy() };
        let staged = Ok((Mode::Persistent, Memory::StagedAsync));
        assert_eq!(first(AUTO, &unmapped, true, false), staged);
        let nothing = Probe { mapped: Err(no()), ..blind };
        assert_eq!(first(AUTO, &nothing, true, false), Ok((Mode::Graph, Memory::StagedSync)));
    }

    #[test]
    fn what_is_forced_is_taken_or_refused_with_the_reason() {
        let probe = healthy();
        for (mode, memory) in order(&probe) {
            let taken = first((mode, memory), &probe, true, false);
            match (mode, memory) {
                (Mode::Persistent, Memory::StagedSync) => {
                    assert!(taken.unwrap_err().contains("between launches"));
                }
                both => assert_eq!(taken, Ok(both)),
            }
        }
        let refused = first((Mode::Auto, Memory::Mapped), &probe, false, false).unwrap_err();
        assert!(refused.contains("refused (801)"), "{refused}");
        let watched = first((Mode::Persistent, Memory::Auto), &probe, true, true).unwrap_err();
        assert!(watched.contains("watchdog"), "{watched}");
        let after = Lack::No("after 50 ms".to_owned());
        let blocks = Probe { beside: Err(after), ..probe };
        let refused = first((Mode::Auto, Memory::StagedAsync), &blocks, true, false).unwrap_err();
        assert!(refused.contains("after 50 ms"), "{refused}");
    }

    #[test]
    fn what_a_busy_moment_hid_is_tried_if_it_was_asked_for() {
        use {Memory::*, Mode::*};
        let unsure = Probe { resident: Err(busy()), beside: Err(busy()), ..healthy() };
        assert!(!unsure.is_certain() && healthy().is_certain());
        let first = |asked, probe: &Probe| first(asked, probe, true, false);
        assert_eq!(first(AUTO, &unsure), Ok((Graph, Memory::Mapped)), "nobody asked for more");
        for memory in [Memory::Auto, Mapped, StagedAsync] {
            let taken = if memory == Memory::Auto { Mapped } else { memory };
            assert_eq!(first((Persistent, memory), &unsure), Ok((Persistent, taken)));
        }
        assert_eq!(first((Mode::Auto, StagedAsync), &unsure), Ok((Graph, StagedAsync)));
        // What is certain comes first, and what is certain not to work is refused.
        let half = Probe { mapped: Err(busy()), ..healthy() };
        assert_eq!(first((EventDriven, Memory::Auto), &half), Ok((EventDriven, StagedAsync)));
        assert_eq!(first((EventDriven, Mapped), &half), Ok((EventDriven, Mapped)));
        let blind = Probe { resident: Err(no()), beside: Err(no()), ..healthy() };
        assert!(first((Persistent, Mapped), &blind).is_err());
        // Why it may not work is told.
        let asked = Asked { mode: Persistent, memory: Memory::Auto, by: "RING_MODE" };
        let pinned = Ok(1 << 25);
        let facts = Facts { probe: &unsure, pinned: &pinned, watchdog: false, uses_payload: true };
        let (serve, _) = choices(asked, facts);
        let why = &serve[0].choice.why;
        for part in ["forced by RING_MODE", "tried although", "too busy", "took another launch"] {
            assert!(why.contains(part), "'{why}' lacks '{part}'");
        }
        assert!(!serve[0].calls_block, "that is not known");
    }
}
