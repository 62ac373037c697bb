//! Kernels whose threads exchange messages by the ends that ring-shared has, each with a memory scope as
//! its parameter: every access of a ring is of that scope, and fences stand where
//! [`MemoryScope`](ring_shared::atomics::MemoryScope) puts them.

use super::Violation;
use super::code::{Function, Instruction};
use super::operand::{Operand, Register};
use super::ways::Ways;
use ring_ptx::Statement;
use ring_shared::layout::{CreditLine, Doorbell};
use std::collections::{BTreeSet, HashMap};

/// The kernels, and the scope of their ends.
const KERNELS: [(&str, &str); 2] = [("bench_link_gpu", "gpu"), ("bench_link_system", "sys")];

/// The scope of the ends that the function of that name uses, if it is on the list.
#[must_use]
pub fn scope(name: &str) -> Option<&'static str> {
    KERNELS.iter().find(|(kernel, _)| *kernel == name).map(|(_, scope)| *scope)
}

/// What an access is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// What the host gave the kernel, and reads when it has ended.
    Parameter,
    /// An atom of a doorbell line with a message's bytes and its stamp.
    Stamp,
    /// The last atom of a doorbell line.
    Control,
    Credit,
    Slot,
}

/// Where a ring's parts are, from its beginning.
const CONTROL: i64 = 16 * ring_shared::ring::CONTROL as i64;
const CREDIT: i64 = size_of::<Doorbell>() as i64;
const SLOTS: i64 = CREDIT + size_of::<CreditLine>() as i64;

/// Accesses, each with its opcode, where `SCOPE` is that of the ends. There are no others, and all of these
/// must be there.
const ACCESSES: [(Place, &str); 11] = [
    (Place::Parameter, "ld.b64"),
    (Place::Parameter, "st.relaxed.sys.b64"),
    (Place::Parameter, "st.release.sys.b64"),
    (Place::Control, "ld.acquire.SCOPE.b128"),
    (Place::Control, "st.relaxed.SCOPE.b128"),
    (Place::Credit, "ld.acquire.SCOPE.b64"),
    (Place::Credit, "st.release.SCOPE.b64"),
    (Place::Stamp, "ld.relaxed.SCOPE.b128"),
    (Place::Stamp, "st.relaxed.SCOPE.b128"),
    (Place::Slot, "ld.relaxed.SCOPE.b128"),
    (Place::Slot, "st.relaxed.SCOPE.b128"),
];

/// The violations of a kernel whose ends have that scope.
#[must_use]
pub fn check(function: &Function<'_>, scope: &str) -> Vec<Violation> {
    let code = &function.code;
    let places = Places::of(function);
    let places: Vec<_> =
        code.iter().map(|one| one.is_access_outside().then(|| places.of_access(one))).collect();
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for (one, place) in code.iter().zip(&places) {
        let why = match place {
            Some(None) => Some("address that cannot be followed"),
            Some(Some(place)) => {
                let opcode = opcode(one);
                let is = |(of, listed): &(Place, &str)| {
                    of == place && listed.replace("SCOPE", scope) == opcode
                };
                let listed = ACCESSES.iter().position(is);
                seen.extend(listed);
                listed.is_none().then_some("access that an end of this scope does not make")
            }
            None => {
                (is_fence(one) && !reaches(one, scope)).then_some("fence narrower than the ends")
            }
        };
        found.extend(why.map(|why| Violation::of(one, why)));
    }
    let missing = ACCESSES.iter().enumerate().filter(|(k, _)| !seen.contains(k));
    for (_, (place, opcode)) in missing {
        let text = format!("{} of {place:?}", opcode.replace("SCOPE", scope));
        let head = Statement { line: function.line, text: function.name };
        found.push(Violation {
            text,
            ..Violation::at(&head, "access that the ends make is not there")
        });
    }
    found.extend(order(function, &places, scope));
    found
}

/// The control atom, which tells of slots and of what was taken, comes behind a fence. The atoms with a
/// message's bytes need none: a stamp proves its own atom, and an inbox acquires the control atom first.
fn order(function: &Function<'_>, places: &[Option<Option<Place>>], scope: &str) -> Vec<Violation> {
    let (ways, code) = (Ways::of(function), &function.code);
    let is = |at: usize, writes_: bool, of: &[Place]| {
        writes(&code[at]) == writes_
            && matches!(places[at], Some(Some(place)) if of.contains(&place))
    };
    let fence =
        |at: usize| is_fence(&code[at]) && code[at].guard.is_none() && reaches(&code[at], scope);
    let rules = [
        ("no fence between a slot and the tail that tells of it", true, &[Place::Slot][..]),
        (
            "no fence between what was read of one ring and the credit for it beside the tail of the other",
            false,
            &[Place::Control, Place::Stamp, Place::Slot],
        ),
    ];
    let mut found = Vec::new();
    for (why, writes, from) in rules {
        let from = (0..code.len()).filter(|at| is(*at, writes, from));
        let tells = |at: usize| is(at, true, &[Place::Control]);
        let reached: BTreeSet<usize> =
            from.flat_map(|from| ways.reached(from, tells, fence)).collect();
        found.extend(reached.into_iter().map(|at| Violation::of(&code[at], why)));
    }
    found
}

/// Constant parts of addresses.
struct Places<'a> {
    function: &'a Function<'a>,
    /// Where each register is written, if at one place.
    written: HashMap<Register, Option<usize>>,
}

impl<'a> Places<'a> {
    fn of(function: &'a Function<'a>) -> Self {
        let mut written = HashMap::new();
        for (at, one) in function.code.iter().enumerate() {
            for register in one.writes() {
                written.entry(register).and_modify(|at| *at = None).or_insert(Some(at));
            }
        }
        Places { function, written }
    }

    /// What a load or store is of.
    fn of_access(&self, one: &Instruction<'_>) -> Option<Place> {
        let address = one.operands.iter().find_map(|operand| match operand {
            Operand::Memory(base, offset) => Some((base, *offset)),
            _ => None,
        });
        let (base, offset) = address?;
        let (of_parameter, constant) = self.value(base)?;
        Some(match constant + offset {
            _ if of_parameter => Place::Parameter,
            CONTROL => Place::Control,
            CREDIT => Place::Credit,
            SLOTS => Place::Slot,
            at if (0..CONTROL).contains(&at) => Place::Stamp,
            _ => return None,
        })
    }

    /// Whether a value is the kernel's parameter and something, and the sum of the constants in it.
    fn value(&self, operand: &Operand<'_>) -> Option<(bool, i64)> {
        let register = match operand {
            Operand::Register(register) => *register,
            Operand::Number(n) => return Some((false, *n)),
            _ => return None,
        };
        let one = &self.function.code[(*self.written.get(&register)?)?];
        match (one.name(), one.operands.as_slice()) {
            ("add", [_, a, b]) => {
                let ((of_a, a), (of_b, b)) = (self.value(a)?, self.value(b)?);
                Some((of_a || of_b, a + b))
            }
            ("cvta" | "mov", [_, from @ Operand::Register(_)]) => self.value(from),
            ("ld", _) => Some((one.has("param"), 0)),
            // An index, which is below the number of rings or of slots.
            _ => Some((false, 0)),
        }
    }
}

fn writes(one: &Instruction<'_>) -> bool {
    one.name() == "st"
}

fn is_fence(one: &Instruction<'_>) -> bool {
    matches!(one.name(), "fence" | "membar")
}

/// Whether a fence orders for all threads of that scope, and for both sides of it.
fn reaches(fence: &Instruction<'_>, scope: &str) -> bool {
    (fence.has("acq_rel") || fence.has("sc")) && (fence.has("sys") || fence.has(scope))
}

/// The opcode without `.global`, and a type of 64 bits by one name.
fn opcode(one: &Instruction<'_>) -> String {
    let parts = one.opcode.iter().filter(|part| **part != "global");
    parts.map(|part| if *part == "u64" { "b64" } else { part }).collect::<Vec<_>>().join(".")
}
