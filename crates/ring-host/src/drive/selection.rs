//! Choosing mode and memory, from what was asked and what the probe found.

use crate::device::probe::{Lack, Probe};
use crate::drive::report::{AskedBy, Evidence, Selection, Why};
use crate::error::{NoPinned, Obstacle, Refusal};
use crate::mode::{Memory, Mode};

/// What is asked for, by the caller or by the environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub mode: Mode,
    pub memory: Memory,
    /// Who asked; `Launch` also if nobody did.
    pub by: AskedBy,
}

/// A choice, and what may still change.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub selection: Selection,
    pub mode_is_free: bool,
    pub memory_is_free: bool,
    pub calls_block: bool,
    /// The kernel is the runtime's own, to find something out: it is logged less than the user's are.
    pub of_probe: bool,
}

impl Candidate {
    /// Exactly that, to find out whether it works.
    pub fn for_probe(mode: Mode, memory: Memory) -> Candidate {
        let why = Why { asked: AskedBy::Probe, found: Evidence::Nothing };
        let selection = Selection { mode, memory, why, refused: Vec::new() };
        Candidate {
            selection,
            mode_is_free: false,
            memory_is_free: false,
            calls_block: false,
            of_probe: true,
        }
    }
}

/// What of a kernel's memory decides where it can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Its payload or its state is copied.
    pub copies: bool,
    /// Its payload was asked for in mapped memory.
    pub mapped_payload: bool,
    /// Its handlers call the host.
    pub calls: bool,
    /// Its messages are noted in trace rings.
    pub trace: bool,
}

/// What is known of a device, and of the kernel for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub probe: &'a Probe,
    /// Bytes of pinned memory, or why there are none.
    pub pinned: &'a Result<usize, NoPinned>,
    pub watchdog: bool,
    pub needs: Needs,
}

/// All that could serve, best first, and why the others do not. What may not serve after all comes last.
pub(crate) fn candidates(asked: Asked, facts: Facts<'_>) -> (Vec<Candidate>, Vec<Refusal>) {
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
                let why = why(asked, mode, facts.probe, doubt);
                let is_doubtful = matches!(why.found, Evidence::Doubt(_));
                let selection = Selection { mode, memory, why, refused: refused.clone() };
                let all = if is_doubtful { &mut may_serve } else { &mut serve };
                all.push(Candidate {
                    selection,
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
    probe.resident.is_ok() && probe.concurrent_copy.as_ref().is_err_and(Lack::is_certain)
}

/// Whether it serves, and what about it is not certain; or why not, and what to do. What a busy moment kept
/// from being found out does not refuse what was asked for by name: it is tried.
fn judge(
    (mode, memory): (Mode, Memory),
    asked: Asked,
    facts: Facts<'_>,
) -> Result<Option<Obstacle>, Obstacle> {
    let probe = facts.probe;
    let (by_mode, by_name) = (asked.mode == mode, asked.mode == mode || asked.memory == memory);
    let mut doubt = None;
    let mut lacks = |what: fn(Lack) -> Obstacle, lack: &Lack, asked_for: bool| {
        let obstacle = what(lack.clone());
        match asked_for && !lack.is_certain() {
            true => {
                doubt.get_or_insert(obstacle);
                Ok(())
            }
            false => Err(obstacle),
        }
    };
    if let (Memory::Mapped | Memory::StagedAsync, Err(why)) = (memory, facts.pinned) {
        return Err(Obstacle::NoPinned(why.clone()));
    }
    if facts.needs.calls && (mode, memory) != (Mode::Persistent, Memory::Mapped) {
        return Err(Obstacle::CallsHost);
    }
    if memory != Memory::Mapped && facts.needs.trace {
        return Err(Obstacle::TraceNotMapped);
    }
    if memory != Memory::Mapped && facts.needs.mapped_payload {
        return Err(Obstacle::PayloadNotMapped);
    }
    if let (Memory::Mapped, Err(lack)) = (memory, &probe.mapped) {
        lacks(Obstacle::NotMapped, lack, by_name)?;
    }
    if let (Memory::StagedAsync, Err(lack)) = (memory, &probe.concurrent_copy) {
        lacks(Obstacle::CopiesWait, lack, by_name)?;
    }
    match mode {
        Mode::Persistent if memory == Memory::StagedSync => {
            return Err(Obstacle::OneLaunch);
        }
        Mode::Persistent if facts.watchdog => {
            return Err(Obstacle::Watchdog);
        }
        Mode::Persistent => {
            if let Err(lack) = &probe.resident {
                lacks(Obstacle::NotResident, lack, by_mode)?;
            }
            match &probe.concurrent_copy {
                Err(lack) if asked.mode == Mode::Auto => {
                    lacks(Obstacle::LaunchesWait, lack, by_mode)?;
                }
                Err(lack) if facts.needs.copies => lacks(Obstacle::PayloadWaits, lack, by_mode)?,
                _ => {}
            }
        }
        Mode::Graph => {
            if let Err(lack) = &probe.graph {
                lacks(Obstacle::NoGraph, lack, by_mode)?;
            }
        }
        _ => {}
    }
    Ok(doubt)
}

fn why(asked: Asked, mode: Mode, probe: &Probe, doubt: Option<Obstacle>) -> Why {
    let found = match (mode, &probe.resident, &probe.launch) {
        (Mode::Persistent, Ok(answers), _) => Evidence::Resident(answers.median),
        (Mode::Graph, _, launch) => match (&probe.graph, launch) {
            (Ok(graph), Ok(launch)) => Evidence::Graph { graph: *graph, launch: *launch },
            _ => Evidence::Graphs,
        },
        (_, _, Ok(launch)) => Evidence::Launch(*launch),
        (_, _, Err(lack)) => Evidence::NotTimed(lack.clone()),
    };
    let found = doubt.map_or(found, Evidence::Doubt);
    let anything = asked.mode == Mode::Auto && asked.memory == Memory::Auto;
    let asked = match asked.by {
        AskedBy::Launch if anything => AskedBy::Nobody,
        by => by,
    };
    Why { asked, found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::probe::{Answers, Cause};
    use std::time::Duration;

    const US: Duration = Duration::from_micros(1);

    fn healthy() -> Probe {
        let resident = Ok(Answers { count: 9, median: 2 * US });
        let (mapped, concurrent_copy) = (Ok(()), Ok(7 * US));
        Probe { mapped, resident, concurrent_copy, launch: Ok(9 * US), graph: Ok(8 * US), took: US }
    }

    fn first(
        asked: (Mode, Memory),
        probe: &Probe,
        pinned: bool,
        watchdog: bool,
    ) -> Result<(Mode, Memory), Vec<Obstacle>> {
        let pinned = if pinned { Ok(1 << 25) } else { Err(NoPinned::NotAsked) };
        let asked = Asked { mode: asked.0, memory: asked.1, by: AskedBy::Launch };
        let facts = Facts { probe, pinned: &pinned, watchdog, needs: COPIES };
        let (serve, refused) = candidates(asked, facts);
        let first = serve.first().map(|chosen| (chosen.selection.mode, chosen.selection.memory));
        first.ok_or_else(|| refused.into_iter().map(|refusal| refusal.why).collect())
    }

    fn no() -> Lack {
        Lack::No(Cause::NotMapped)
    }

    fn busy() -> Lack {
        Lack::Unknown(Cause::LeftEarly { message: 3 })
    }

    const COPIES: Needs = Needs { copies: true, mapped_payload: false, calls: false, trace: false };

    const AUTO: (Mode, Memory) = (Mode::Auto, Memory::Auto);

    #[test]
    fn the_best_that_works_is_taken() {
        let probe = healthy();
        assert_eq!(first(AUTO, &probe, true, false), Ok((Mode::Persistent, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, true, true), Ok((Mode::Graph, Memory::Mapped)));
        assert_eq!(first(AUTO, &probe, false, false), Ok((Mode::Graph, Memory::StagedSync)));
        let blind = Probe { resident: Err(no()), concurrent_copy: Err(no()), ..healthy() };
        assert_eq!(first(AUTO, &blind, true, false), Ok((Mode::Graph, Memory::Mapped)));
        let blocks = Probe { concurrent_copy: Err(no()), graph: Ok(9 * US), ..healthy() };
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
                    assert_eq!(taken, Err(vec![Obstacle::OneLaunch]));
                }
                both => assert_eq!(taken, Ok(both)),
            }
        }
        let refused = first((Mode::Auto, Memory::Mapped), &probe, false, false);
        assert_eq!(refused, Err(vec![Obstacle::NoPinned(NoPinned::NotAsked); 3]));
        let watched = first((Mode::Persistent, Memory::Auto), &probe, true, true);
        let (watchdog, one) = (Obstacle::Watchdog, Obstacle::OneLaunch);
        assert_eq!(watched, Err(vec![watchdog.clone(), watchdog, one]));
        let after = Lack::No(Cause::CallWaited { took: 50_000 * US });
        let blocks = Probe { concurrent_copy: Err(after.clone()), ..probe };
        let refused = first((Mode::Auto, Memory::StagedAsync), &blocks, true, false);
        assert_eq!(refused, Err(vec![Obstacle::CopiesWait(after); 3]));
    }

    /// Where copies wait for a kernel that stays, one serves whose payload is not copied.
    #[test]
    fn a_mapped_payload_needs_mapped_memory_and_no_copies() {
        let after = Lack::No(Cause::CallWaited { took: 50_000 * US });
        let blocks = Probe { concurrent_copy: Err(after.clone()), ..healthy() };
        let pinned = Ok(1 << 25);
        let found = |mode, memory, needs| {
            let asked = Asked { mode, memory, by: AskedBy::Launch };
            let facts = Facts { probe: &blocks, pinned: &pinned, watchdog: false, needs };
            let (serve, refused) = candidates(asked, facts);
            let serve: Vec<_> = serve.iter().map(|chosen| chosen.selection.memory).collect();
            (serve, refused.into_iter().map(|refusal| refusal.why).collect::<Vec<_>>())
        };
        let mapped = Needs { copies: false, mapped_payload: true, calls: false, trace: false };
        let (serve, refused) = found(Mode::Persistent, Memory::Auto, mapped);
        assert_eq!(serve, [Memory::Mapped]);
        assert_eq!(refused, [Obstacle::PayloadNotMapped, Obstacle::PayloadNotMapped]);
        let (serve, refused) = found(Mode::Persistent, Memory::Mapped, COPIES);
        assert_eq!((serve, refused), (vec![], vec![Obstacle::PayloadWaits(after)]));
        let (serve, refused) = found(Mode::EventDriven, Memory::StagedSync, mapped);
        assert_eq!((serve, refused), (vec![], vec![Obstacle::PayloadNotMapped]));
    }

    #[test]
    fn what_a_busy_moment_hid_is_tried_if_it_was_asked_for() {
        use {Memory::*, Mode::*};
        let unsure = Probe { resident: Err(busy()), concurrent_copy: Err(busy()), ..healthy() };
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
        let blind = Probe { resident: Err(no()), concurrent_copy: Err(no()), ..healthy() };
        assert!(first((Persistent, Mapped), &blind).is_err());
        // Why it may not work is told.
        let forced = AskedBy::Environment { mode: true, memory: false };
        let asked = Asked { mode: Persistent, memory: Memory::Auto, by: forced };
        let pinned = Ok(1 << 25);
        let facts = Facts { probe: &unsure, pinned: &pinned, watchdog: false, needs: COPIES };
        let (serve, _) = candidates(asked, facts);
        let why = &serve[0].selection.why;
        let found = Evidence::Doubt(Obstacle::NotResident(busy()));
        assert_eq!(*why, Why { asked: forced, found });
        assert_eq!(
            why.to_string(),
            "forced by RING_MODE; it is tried although a resident kernel did not answer: not certain, \
             the machine was too busy to tell: it left before host and kernel got their turn: message 3 \
             took another launch"
        );
        assert!(!serve[0].calls_block, "that is not known");
    }
}
