//! Modes and memories in which kernels were run, each reported once.

use crate::reasons::{by_reason, listed};
use crate::text::wrapped;
use ring_host::{Fallback, Kernel, KernelHandle, Selection};

/// How a kernel was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    kernel: &'static str,
    choice: Selection,
    /// What failed while it ran, and what was done then.
    changes: Vec<Fallback>,
}

impl Way {
    /// How that kernel was run until now.
    pub fn of<K: Kernel>(kernel: &KernelHandle<K>) -> Way {
        let (choice, changes) = (kernel.selection().clone(), kernel.fallbacks().collect());
        Way { kernel: K::NAME, choice, changes }
    }

    fn is_like(&self, other: &Way) -> bool {
        (&self.choice, &self.changes) == (&other.choice, &other.changes)
    }

    fn in_words(&self, kernels: &[&str]) -> String {
        let Selection { mode, memory, why, refused } = &self.choice;
        let way = format!("{}: {mode} in {memory} memory; {why}", listed(kernels, "and"));
        let mut lines = vec![wrapped("ran     ", &way)];
        let refused = by_reason(refused.iter().map(|r| (r.mode, r.memory, &r.why)));
        let line = |(ways, why)| wrapped("        ", &format!("not {ways}: {why}"));
        lines.extend(refused.into_iter().map(line));
        let changed = |change| wrapped("        ", &format!("changed: {change}"));
        lines.extend(self.changes.iter().map(changed));
        lines.join("\n") + "\n"
    }
}

/// Ways in which kernels were run, each once.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    all: Vec<Way>,
    printed: usize,
}

impl Ways {
    /// Adds a way, unless a kernel was run so before.
    pub fn add(&mut self, way: Way) {
        if !self.all.contains(&way) {
            self.all.push(way);
        }
    }

    /// The ways that were added since the last call, in words; kernels that were run alike together.
    pub fn unprinted(&mut self) -> String {
        let printed = std::mem::replace(&mut self.printed, self.all.len());
        let alike = self.all[printed..].chunk_by(Way::is_like);
        let kernels = |ways: &[Way]| ways.iter().map(|way| way.kernel).collect::<Vec<_>>();
        alike.map(|ways| ways[0].in_words(&kernels(ways))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::error::{DriverError, DriverReason};
    use ring_host::probe::{Cause, Lack};
    use ring_host::{AskedBy, Evidence, Memory, Mode, Obstacle, Refusal, Why};
    use std::time::Duration;

    #[test]
    fn each_way_is_printed_once_with_all_that_led_to_it() {
        let us = Duration::from_micros;
        let refused = Refusal {
            mode: Mode::Persistent,
            memory: Memory::Mapped,
            why: Obstacle::NotResident(Lack::No(Cause::Blind { message: 3 })),
        };
        let choice = Selection {
            mode: Mode::Graph,
            memory: Memory::Mapped,
            why: Why {
                asked: AskedBy::Nobody,
                found: Evidence::Graph { graph: us(8), launch: us(9) },
            },
            refused: vec![refused],
        };
        let change = Fallback {
            from: (Mode::Graph, Memory::Mapped),
            to: (Mode::EventDriven, Memory::Mapped),
            why: DriverError {
                call: "launch",
                code: 400,
                reason: DriverReason::Words("invalid handle".into()),
            },
        };
        let way = Way { kernel: "echo", choice, changes: vec![change] };
        let mut ways = Ways::default();
        ways.add(way.clone());
        let text = ways.unprinted();
        assert!(text.lines().all(|line| line.chars().count() <= crate::text::WIDTH), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "ran echo: graph in mapped memory; the best that works; a message by graph",
            "not persistent in mapped memory: a resident kernel did not answer",
            "changed: graph in mapped memory, then event-driven in mapped: launch failed",
        ] {
            assert!(words.contains(part), "{text}");
        }
        ways.add(way.clone());
        assert_eq!(ways.unprinted(), "");
        ways.add(Way { kernel: "vector_add", ..way.clone() });
        ways.add(Way { kernel: "sum", ..way.clone() });
        assert!(ways.unprinted().starts_with("ran     vector_add and sum: "));
        ways.add(Way { changes: Vec::new(), ..way });
        assert!(!ways.unprinted().contains("changed"));
    }
}
