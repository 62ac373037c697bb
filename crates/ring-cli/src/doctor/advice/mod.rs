//! Advice: what is missing, and what to do about it.

mod opening;
mod running;

use super::facts::Facts;
use ring_host::Mode;
use serde::Serialize;
use std::fmt;

/// One thing that is missing, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// A name for it that stays.
    pub id: &'static str,
    /// What is missing.
    pub missing: String,
    /// What to do.
    pub remedy: String,
}

impl Advice {
    fn new(id: &'static str, missing: impl Into<String>, remedy: impl Into<String>) -> Advice {
        Advice { id, missing: missing.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.missing, self.remedy)
    }
}

/// One for each thing that is missing; none if nothing is.
pub fn of(facts: &Facts) -> Vec<Advice> {
    let mut to_do: Vec<Advice> =
        facts.troubles.iter().map(|trouble| opening::remedy(trouble, facts)).collect();
    if let (Some(device), Some(seen)) = (&facts.device, &facts.seen) {
        running::remedies(device, seen, facts, &mut to_do);
    }
    to_do
}

/// The advice if nothing is missing.
pub fn nothing(facts: &Facts) -> String {
    match facts.seen.as_ref().map(|seen| &seen.choice) {
        Some(Ok(taken)) if taken.mode != Mode::Persistent => {
            let by = if facts.forced.is_empty() { "" } else { ", as the environment says" };
            format!("nothing: kernels run {} in {} memory{by}", taken.mode, taken.memory)
        }
        _ => "nothing: this machine runs persistent kernels".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::example;
    use ring_host::Memory;

    #[test]
    fn a_sound_gpu_lacks_nothing() {
        let facts = example::gpu();
        assert_eq!(of(&facts), []);
        assert_eq!(nothing(&facts), "nothing: this machine runs persistent kernels");
    }

    #[test]
    fn what_the_environment_says_lacks_nothing_either() {
        let mut facts = example::gpu();
        facts.forced = vec![("RING_MODE", "graph".to_owned())];
        let taken = facts.seen.as_mut().unwrap().choice.as_mut().unwrap();
        (taken.mode, taken.memory) = (Mode::Graph, Memory::Mapped);
        assert_eq!(of(&facts), []);
        let expected = "nothing: kernels run graph in mapped memory, as the environment says";
        assert_eq!(nothing(&facts), expected);
    }
}
