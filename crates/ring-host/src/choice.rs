//! Choosing mode and memory, from what was asked and what the probe found.

use crate::mode::{Memory, Mode};
use crate::probe::Probe;
use crate::report::{Choice, Refusal};

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
}

impl Chosen {
    /// Exactly that, to find out whether it works.
    pub fn for_probe(mode: Mode, memory: Memory) -> Chosen {
        let choice = Choice { mode, memory, why: "probe".to_owned(), refused: Vec::new() };
        Chosen { choice, mode_is_free: false, memory_is_free: false, calls_block: false }
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

/// All that could serve, best first, and why the others do not.
pub(crate) fn choices(asked: Asked, facts: Facts<'_>) -> (Vec<Chosen>, Vec<Refusal>) {
    let (mut serve, mut refused) = (Vec::new(), Vec::new());
    for (mode, memory) in order(facts.probe) {
        let wanted = (asked.mode == Mode::Auto || asked.mode == mode)
            && (asked.memory == Memory::Auto || asked.memory == memory);
        if !wanted {
            continue;
        }
        match judge((mode, memory), asked, facts) {
            Err(why) => refused.push(Refusal { mode, memory, why }),
            Ok(()) => {
                let why = why(asked, mode, facts.probe);
                let choice = Choice { mode, memory, why, refused: refused.clone() };
                serve.push(Chosen {
                    choice,
                    mode_is_free: asked.mode == Mode::Auto,
                    memory_is_free: asked.memory == Memory::Auto,
                    calls_block: calls_block(facts.probe),
                });
            }
        }
    }
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

/// Whether driver calls wait for a resident kernel.
fn calls_block(probe: &Probe) -> bool {
    probe.resident.is_ok() && probe.beside.is_err()
}

/// Whether it serves; or why not, and what to do.
fn judge((mode, memory): (Mode, Memory), asked: Asked, facts: Facts<'_>) -> Result<(), String> {
    let probe = facts.probe;
    let because = |what: &str, why: &str| Err(format!("{what}: {why}"));
    match (memory, facts.pinned, &probe.mapped) {
        (Memory::Mapped | Memory::StagedAsync, Err(why), _) => {
            return because("there is no pinned memory", why);
        }
        (Memory::Mapped, _, Err(why)) => return because("mapped memory does not work", why),
        _ => {}
    }
    if let (Memory::StagedAsync, Err(why)) = (memory, &probe.beside) {
        return because("copies do not come back beside a resident kernel", why);
    }
    match mode {
        Mode::Persistent if memory == Memory::StagedSync => Err(
            "staged-sync memory is copied between launches, and a persistent kernel has only one"
                .to_owned(),
        ),
        Mode::Persistent if facts.watchdog => {
            Err("the device's watchdog ends kernels that run for long".to_owned())
        }
        Mode::Persistent => match (&probe.resident, &probe.beside) {
            (Err(why), _) => because("a resident kernel did not answer", why),
            (Ok(_), Err(why)) if asked.mode == Mode::Auto => because(
                "calls block beside a resident kernel, so another could not be launched",
                why,
            ),
            (Ok(_), Err(why)) if facts.uses_payload => {
                because("this kernel's payload is copied beside it, but calls block", why)
            }
            _ => Ok(()),
        },
        Mode::Graph => match &probe.graph {
            Err(why) => because("no graph could be launched", why),
            Ok(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

fn why(asked: Asked, mode: Mode, probe: &Probe) -> String {
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
    use crate::probe::Answers;
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

    const AUTO: (Mode, Memory) = (Mode::Auto, Memory::Auto);

    #[test]
    fn the_best_that_works_is_taken() {
        let probe = healthy();
        assert_eq!(first(AUTO, &probe, true, false), Ok((Mode::Persistent, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, true, true), Ok((Mode::Graph, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, false, false), Ok((Mode::Graph, Memory::StagedSync)));
        let blind = Probe { resident: Err("x".into()), beside: Err("x".into()), ..healthy() };
        assert_eq!(first(AUTO, &blind, true, false), Ok((Mode::Graph, Memory::Mapped)));
        let blocks = Probe { beside: Err("x".into()), graph: Ok(9 * US), ..healthy() };
        assert_eq!(first(AUTO, &blocks, true, false), Ok((Mode::EventDriven, Memory::Mapped)));
        let unmapped = Probe { mapped: Err("x".into()), ..healthy() };
        let staged = Ok((Mode::Persistent, Memory::StagedAsync));
        assert_eq!(first(AUTO, &unmapped, true, false), staged);
        let nothing = Probe { mapped: Err("x".into()), ..blind };
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
        let blocks = Probe { beside: Err("after 50 ms".into()), ..probe };
        let refused = first((Mode::Auto, Memory::StagedAsync), &blocks, true, false).unwrap_err();
        assert!(refused.contains("after 50 ms"), "{refused}");
    }
}
