//! Groups refused modes and memories by reason.

use ring_host::{Memory, Mode, Refusal};

/// A memory, and modes in it.
type Modes = (Memory, Vec<String>);

/// Each reason with all that were refused for it, in words: "graph in mapped memory".
pub fn by_reason<R: PartialEq>(
    refused: impl IntoIterator<Item = (Mode, Memory, R)>,
) -> Vec<(String, R)> {
    let mut reasons: Vec<(Vec<Modes>, R)> = Vec::new();
    for (mode, memory, why) in refused {
        let found = reasons.iter().position(|(_, reason)| *reason == why);
        let at = found.unwrap_or_else(|| {
            reasons.push((Vec::new(), why));
            reasons.len() - 1
        });
        let memories = &mut reasons[at].0;
        match memories.iter_mut().find(|(other, _)| *other == memory) {
            Some((_, modes)) => modes.push(mode.to_string()),
            None => memories.push((memory, vec![mode.to_string()])),
        }
    }
    let named = |(memories, why): (Vec<Modes>, _)| {
        let names = memories.iter().map(|(memory, modes)| {
            let modes = listed(modes, "or");
            format!("{modes} in {memory} memory")
        });
        (names.collect::<Vec<_>>().join("; "), why)
    };
    reasons.into_iter().map(named).collect()
}

/// Refusals in one line.
pub fn each(refused: &[Refusal]) -> String {
    refused.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; ")
}

/// `a, b or c`.
pub fn listed(names: &[impl AsRef<str>], last_by: &str) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} {last_by} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_given_once() {
        use Memory::{Mapped, StagedSync};
        use Mode::{EventDriven, Graph, Persistent};
        let refused = [
            (Persistent, Mapped, "none"),
            (EventDriven, Mapped, "none"),
            (Persistent, StagedSync, "only one launch"),
            (Graph, Mapped, "none"),
            (Graph, StagedSync, "none"),
        ];
        let expected = [
            (
                "persistent, event-driven or graph in mapped memory; graph in staged-sync memory"
                    .to_owned(),
                "none",
            ),
            ("persistent in staged-sync memory".to_owned(), "only one launch"),
        ];
        assert_eq!(by_reason(refused), expected);
        assert_eq!(by_reason::<&str>([]), []);
        assert_eq!(listed(&["a", "b"], "and"), "a and b");
    }
}
