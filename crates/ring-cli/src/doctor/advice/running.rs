//! Remedies for what an opened device does not do.

use super::Advice;
use crate::doctor::facts::{Facts, Found, Seen};
use ring_host::Options;

/// Adds what to do about each thing that is missing. What follows from another is left out.
pub fn remedies(device: &Found, seen: &Seen, facts: &Facts, to_do: &mut Vec<Advice>) {
    to_do.extend(pinned(seen, facts));
    if seen.pinned.is_ok() {
        to_do.extend(answering(seen, facts));
    }
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
            "do without: several lanes are launched in the ordinary way, as Cooperative::Auto does",
        ));
    }
    if let Err(why) = &seen.launch {
        to_do.push(Advice::new(
            "launch",
            format!("messages by launch failed ({why})"),
            "run nvidia-smi, and `ring validate` for more; --device cpu needs no GPU",
        ));
    }
    if seen.graph.is_err() {
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
    let wanted = Options::default().pinned_bytes;
    let missing = match &seen.pinned {
        Err(_) => "pinned memory was refused, so messages are copied".to_owned(),
        Ok(bytes) if *bytes < wanted => format!("only {bytes} of {wanted} bytes of pinned memory"),
        Ok(_) => return None,
    };
    let remedy = match facts.wsl.is_empty() {
        true => {
            "raise the limit of locked memory (`ulimit -l`), or choose smaller \
             Options::pinned_bytes; under WSL2 its quantity is limited in any case"
        }
        false => {
            "WSL2 limits its quantity: choose smaller Options::pinned_bytes, give WSL2 more memory \
             in .wslconfig, and raise `ulimit -l`"
        }
    };
    Some(Advice::new("pinned_memory", missing, remedy))
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
    use ring_host::platform::WslSign;

    const NO: fn() -> String = || "refused (801)".to_owned();

    fn ids(facts: &Facts) -> Vec<&'static str> {
        advice::of(facts).iter().map(|advice| advice.id).collect()
    }

    fn changed(change: impl FnOnce(&mut Seen)) -> Facts {
        let mut facts = example::gpu();
        change(facts.seen.as_mut().unwrap());
        facts
    }

    #[test]
    fn what_is_missing_is_told_and_not_what_follows_from_it() {
        let no_pinned = |seen: &mut Seen| {
            seen.pinned = Err(NO());
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
        assert_eq!(ids(&changed(|seen| seen.choice = Err(NO()))), ["choice"]);
    }

    #[test]
    fn what_the_device_is_not_made_for_is_told() {
        let mut facts = example::gpu();
        let device = facts.device.as_mut().unwrap();
        (device.watchdog, device.cooperative_launch) = (true, false);
        let to_do = advice::of(&facts);
        assert_eq!(ids(&facts), ["watchdog", "cooperative_launch"]);
        assert!(to_do[0].to_string().contains("under 2 s"), "{to_do:?}");
    }

    #[test]
    fn remedies_fit_the_machine() {
        let mut facts = changed(|seen| seen.pinned = Err(NO()));
        let linux = advice::of(&facts)[0].to_string();
        assert!(linux.contains("ulimit -l") && linux.contains("Options::pinned_bytes"), "{linux}");
        facts.wsl = vec![WslSign::Kernel];
        let wsl = advice::of(&facts)[0].to_string();
        assert!(wsl.contains("WSL2 limits its quantity"), "{wsl}");
        let mut forced = changed(|seen| seen.choice = Err(NO()));
        forced.forced = vec![("RING_MODE", "persistent".to_owned())];
        assert!(advice::of(&forced)[0].to_string().contains("unset RING_MODE"));
    }
}
