//! Advice about what an opened device lacks.

use super::Advice;
use crate::doctor::facts::{Facts, Found, Seen};
use crate::doctor::sharing::Sharing;
use crate::reasons::listed;
use ring_host::RuntimeConfig;
use ring_host::probe::Lack;

/// Adds what to do about each thing that is missing. What follows from another is left out.
pub fn remedies(device: &Found, seen: &Seen, facts: &Facts, to_do: &mut Vec<Advice>) {
    to_do.extend(pinned(seen, facts));
    match seen.unknown() {
        Some(lack) => to_do.push(busy(lack)),
        None if seen.pinned.is_ok() => to_do.extend(answering(seen, facts)),
        None => {}
    }
    to_do.extend(facts.sharing.as_ref().and_then(shared));
    if device.watchdog {
        to_do.push(Advice::new(
            "watchdog",
            "a watchdog ends kernels that run for long",
            "use a GPU without a display, or keep the time budget under 2 s (it is 5 ms unless \
             chosen); kernels are launched when there are messages",
        ));
    }
    if !device.cooperative_launch {
        to_do.push(Advice::new(
            "cooperative_launch",
            "no cooperative launch",
            "do without: several channels are launched in the ordinary way, as Cooperative::Auto does",
        ));
    }
    let fails = |lack: &Lack| lack.is_certain(); // else `busy` reports it
    if let Err(why) = &seen.launch
        && fails(why)
    {
        to_do.push(Advice::new(
            "launch",
            format!("messages by launch failed ({why})"),
            "run nvidia-smi, and `ring validate` for more; --device cpu needs no GPU",
        ));
    }
    if seen.graph.as_ref().is_err_and(fails) {
        to_do.push(Advice::new(
            "graph",
            "no graphs",
            "do without: kernels are launched event-driven; a newer driver may have them",
        ));
    }
    if seen.choice.is_err() {
        to_do.push(match facts.forced.is_empty() {
            true => Advice::new("choice", "no way to run kernels", "use --device cpu"),
            false => Advice::new(
                "environment",
                "what the environment forces does not work here",
                "unset RING_MODE and RING_MEMORY, or force another way",
            ),
        });
    }
}

fn pinned(seen: &Seen, facts: &Facts) -> Option<Advice> {
    let wanted = RuntimeConfig::default().pinned_bytes;
    let missing = match &seen.pinned {
        Err(_) => "pinned memory was refused, so messages are copied".to_owned(),
        Ok(bytes) if *bytes < wanted => format!("only {bytes} of {wanted} bytes of pinned memory"),
        Ok(_) => return None,
    };
    let remedy = match facts.wsl.is_empty() {
        true => {
            "raise the limit of locked memory (`ulimit -l`), or choose smaller \
             RuntimeConfig::pinned_bytes; under WSL2 its quantity is limited in any case"
        }
        false => {
            "WSL2 limits its quantity: choose smaller RuntimeConfig::pinned_bytes, give WSL2 more memory \
             in .wslconfig, and raise `ulimit -l`"
        }
    };
    Some(Advice::new("pinned_memory", missing, remedy))
}

fn busy(lack: &Lack) -> Advice {
    Advice::new(
        "busy",
        format!("the machine was too busy to find out everything ({})", lack.cause()),
        "run `ring doctor` again when less runs beside it; a program finds out by itself, when it \
         opens the device anew or launches another kernel, and what it asks for by name is tried in \
         any case",
    )
}

/// What several processes on one GPU mean, if there may be several. MPS spares them the turns.
fn shared(sharing: &Sharing) -> Option<Advice> {
    let others = sharing.users.first().filter(|_| !sharing.mps());
    let missing = match (&sharing.trips, others) {
        (Ok(trips), _) if trips.in_turns() => format!(
            "{} of {} round trips took 1 ms or longer, up to {:.1} ms, as if another process took \
             turns on this GPU (or the host thread did not run)",
            trips.late,
            trips.count,
            trips.longest.as_secs_f64() * 1e3
        ),
        (_, Some(_)) => format!("{} may share this GPU", listed(&sharing.names(), "and")),
        _ => return None,
    };
    Some(Advice::new(
        "shared_gpu",
        missing,
        "processes with kernels on one GPU take turns of some 2.4 ms: the p50 of a round trip stays 2 \
         to 3 us, p99.9 is 2.4 ms, and half as many messages a second come through; launch all \
         kernels from one process, or run the processes under MPS (nvidia-cuda-mps-control -d)",
    ))
}

/// The first thing that kernels lack to stay and answer.
fn answering(seen: &Seen, facts: &Facts) -> Option<Advice> {
    let normal = match facts.wsl.is_empty() {
        true => "this is known of WSL2 and of Windows; native Linux has it",
        false => "under WSL2 this is normal, and native Linux has it",
    };
    if seen.mapped.is_err() {
        return Some(Advice::new(
            "mapped_memory",
            "kernels do not see pinned memory in place, so messages are copied",
            format!("nothing to repair: {normal}"),
        ));
    }
    if seen.resident.is_err() {
        return Some(Advice::new(
            "resident_kernel",
            "a kernel that stays does not see what the host writes",
            format!("do without: kernels are launched when there are messages; {normal}"),
        ));
    }
    seen.beside.as_ref().err().map(|_| {
        Advice::new(
            "calls_block",
            "the driver's calls wait for a kernel that stays",
            format!(
                "keep kernels with payload event-driven, as mode auto does; prepare and launch all \
                 others before the first one stays; {normal}"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{advice, example};
    use ring_host::error::NoPinned;
    use ring_host::platform::WslSign;
    use ring_host::probe::Cause;

    const NO: fn() -> Lack = || Lack::No(Cause::NotMapped);

    fn ids(facts: &Facts) -> Vec<&'static str> {
        advice::of(facts).iter().map(|advice| advice.id).collect()
    }

    fn changed(change: impl FnOnce(&mut Seen)) -> Facts {
        let mut facts = example::gpu();
        change(facts.seen.as_mut().unwrap());
        facts
    }

    #[test]
    fn what_is_missing_is_shown_and_not_what_follows_from_it() {
        let no_pinned = |seen: &mut Seen| {
            seen.pinned = Err(NoPinned::NotAsked);
            (seen.mapped, seen.resident, seen.beside) = (Err(NO()), Err(NO()), Err(NO()));
        };
        assert_eq!(ids(&changed(no_pinned)), ["pinned_memory"]);
        assert_eq!(ids(&changed(|seen| seen.pinned = Ok(1 << 21))), ["pinned_memory"]);
        let unmapped = |seen: &mut Seen| {
            (seen.mapped, seen.resident, seen.beside) = (Err(NO()), Err(NO()), Err(NO()));
        };
        assert_eq!(ids(&changed(unmapped)), ["mapped_memory"]);
        let blind = |seen: &mut Seen| (seen.resident, seen.beside) = (Err(NO()), Err(NO()));
        assert_eq!(ids(&changed(blind)), ["resident_kernel"]);
        assert_eq!(ids(&changed(|seen| seen.beside = Err(NO()))), ["calls_block"]);
        assert_eq!(ids(&changed(|seen| seen.graph = Err(NO()))), ["graph"]);
        assert_eq!(ids(&changed(|seen| seen.launch = Err(NO()))), ["launch"]);
        assert_eq!(ids(&changed(|seen| seen.choice = Err(Vec::new()))), ["choice"]);
    }

    #[test]
    fn what_a_busy_machine_hid_is_no_lack() {
        const BUSY: fn() -> Lack = || Lack::Unknown(Cause::LeftEarly { message: 3 });
        let hidden = |seen: &mut Seen| (seen.resident, seen.beside) = (Err(BUSY()), Err(BUSY()));
        assert_eq!(ids(&changed(hidden)), ["busy"]);
        assert_eq!(ids(&changed(|seen| seen.graph = Err(BUSY()))), ["busy"]);
        assert_eq!(ids(&changed(|seen| seen.launch = Err(BUSY()))), ["busy"]);
        let text = advice::of(&changed(hidden))[0].to_string();
        assert!(text.contains("too busy") && text.contains("it left before"), "{text}");
    }

    #[test]
    fn a_gpu_that_others_use_is_shown_with_what_helps() {
        use crate::doctor::sharing::User;
        let shared = |late, names: &[&str]| {
            let mut facts = example::gpu();
            let sharing = facts.sharing.as_mut().unwrap();
            sharing.trips.as_mut().unwrap().late = late;
            let user = |name: &&str| User { pid: 7, name: (*name).to_owned() };
            sharing.users = names.iter().map(user).collect();
            advice::of(&facts).first().map(|advice| (advice.id, advice.to_string()))
        };
        assert_eq!(shared(4, &[]), None, "the host thread may not have run for a moment");
        assert_eq!(shared(0, &["nvidia-cuda-mps", "python"]), None, "no turns under MPS");
        for (late, names, part) in [
            (9, &[][..], "9 of 20000 round trips took 1 ms or longer"),
            (9, &["nvidia-cuda-mps"], "9 of 20000 round trips"),
            (0, &["python"], "python (process 7) may share this GPU"),
        ] {
            let (id, text) = shared(late, names).unwrap();
            assert_eq!(id, "shared_gpu");
            for part in [part, "turns of some 2.4 ms", "p99.9 is 2.4 ms", "one process", "MPS"] {
                assert!(text.contains(part), "'{part}' is not in: {text}");
            }
        }
    }

    #[test]
    fn what_the_device_is_not_made_for_is_shown() {
        let mut facts = example::gpu();
        let device = facts.device.as_mut().unwrap();
        (device.watchdog, device.cooperative_launch) = (true, false);
        let to_do = advice::of(&facts);
        assert_eq!(ids(&facts), ["watchdog", "cooperative_launch"]);
        assert!(to_do[0].to_string().contains("under 2 s"), "{to_do:?}");
    }

    #[test]
    fn remedies_fit_the_machine() {
        let mut facts = changed(|seen| seen.pinned = Err(NoPinned::NotAsked));
        let linux = advice::of(&facts)[0].to_string();
        assert!(
            linux.contains("ulimit -l") && linux.contains("RuntimeConfig::pinned_bytes"),
            "{linux}"
        );
        facts.wsl = vec![WslSign::Kernel];
        let wsl = advice::of(&facts)[0].to_string();
        assert!(wsl.contains("WSL2 limits its quantity"), "{wsl}");
        let mut forced = changed(|seen| seen.choice = Err(Vec::new()));
        forced.forced = vec![("RING_MODE", "persistent".to_owned())];
        assert!(advice::of(&forced)[0].to_string().contains("unset RING_MODE"));
    }
}
