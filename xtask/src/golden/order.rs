//! Where fences stand in a ring kernel.
//!
//! Each [rule](super::rules) names two accesses and a fence: no way through the function leads from the one
//! to the other without it. So a rule does not care how often the compiler has copied a piece of code, nor
//! where it has put it, and more fences than needed are no violation.

use super::Violation;
use super::code::{Function, Instruction};
use super::place::Access;
use super::rules::{NEEDED, RULES, VIEWS};
use super::ways::Ways;
use ring_ptx::Statement;
use std::collections::BTreeSet;

/// Who a fence orders accesses for; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the GPU.
    Device,
    /// They, and the host.
    System,
}

/// What a way may lead past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A load or a store.
    Access(Access),
    /// A fence that every thread which comes there carries out.
    Fence(Scope),
    /// A barrier of the block: behind it a thread acts on what others have told it.
    Barrier,
    /// A barrier of the warp.
    WarpBarrier,
}

/// Whether an event is one that a rule is about.
pub type Is = fn(Event) -> bool;

/// No way leads from `from` to `to` but past a fence of `scope`, if there is one, or past `until`.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    why: &'static str,
    scope: Option<Scope>,
    from: Is,
    to: Is,
    until: Is,
    only: Is,
    past: &'static [(Is, Is)],
    set: Is,
}

impl Rule {
    /// Between two events stands a fence of system scope.
    #[must_use]
    pub const fn system(why: &'static str, from: Is, to: Is) -> Self {
        Rule { scope: Some(Scope::System), ..Self::without_fence(why, from, to) }
    }

    /// Between two events stands a fence of the GPU's scope at least.
    #[must_use]
    pub const fn device(why: &'static str, from: Is, to: Is) -> Self {
        Rule { scope: Some(Scope::Device), ..Self::without_fence(why, from, to) }
    }

    /// Between two events stands a fence of the block's scope at least.
    #[must_use]
    pub const fn block(why: &'static str, from: Is, to: Is) -> Self {
        Rule { scope: Some(Scope::Block), ..Self::without_fence(why, from, to) }
    }

    /// No way leads from one event to the other, whatever fences it passes: only `until` ends it.
    #[must_use]
    pub const fn without_fence(why: &'static str, from: Is, to: Is) -> Self {
        let (never, always): (Is, Is) = (|_| false, |_| true);
        Rule { why, scope: None, from, to, until: never, only: always, past: &[], set: never }
    }

    /// It ends at such an event, too.
    #[must_use]
    pub const fn until(self, until: Is) -> Self {
        Rule { until, ..self }
    }

    /// It is about ways that lead past these events, in this order; each with what ends the way to it.
    #[must_use]
    pub const fn past(self, past: &'static [(Is, Is)]) -> Self {
        Rule { past, ..self }
    }

    /// On the ways that it is about, the words that such events read are not zero: a branch taken where one is leads
    /// nowhere.
    #[must_use]
    pub const fn where_set(self, set: Is) -> Self {
        Rule { set, ..self }
    }

    /// It is for functions in which there is such an event.
    #[must_use]
    pub const fn only(self, only: Is) -> Self {
        Rule { only, ..self }
    }
}

/// The rules that `function`, which has a block's memory, breaks.
#[must_use]
pub fn check(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Violation> {
    let events = events(function, accesses);
    let mut found = broken(function, &events, &RULES);
    let is = |at: usize, is: Is| events[at].is_some_and(is);
    if function.entry {
        let missing =
            NEEDED.iter().filter(|(_, needed)| !(0..events.len()).any(|at| is(at, *needed)));
        found.extend(missing.map(|(what, _)| {
            let line = Statement { line: function.line, text: what };
            Violation::at(&line, "not found in a ring kernel")
        }));
    }
    found
}

/// The rule for views of buffers, if a `function` breaks it to which the others do not apply.
#[must_use]
pub fn check_views(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Violation> {
    broken(function, &events(function, accesses), &[VIEWS])
}

/// What happens at each instruction.
fn events(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Option<Event>> {
    function.code.iter().zip(accesses).map(|(one, access)| event(one, *access)).collect()
}

/// Those of the `rules` that `function` breaks, in which that happens.
fn broken(function: &Function<'_>, events: &[Option<Event>], rules: &[Rule]) -> Vec<Violation> {
    let is = |at: usize, is: Is| events[at].is_some_and(is);
    let ways = Ways::of(function);
    let mut found = Vec::new();
    for rule in rules.iter().filter(|rule| (0..events.len()).any(|at| is(at, rule.only))) {
        let fence = |at: usize| {
            let scope = |of| rule.scope.is_some_and(|scope| of >= scope);
            matches!(events[at], Some(Event::Fence(of)) if scope(of))
        };
        let set = ways.where_not_zero(|at| is(at, rule.set));
        let mut reached: BTreeSet<usize> =
            (0..events.len()).filter(|at| is(*at, rule.from)).collect();
        for (to, until) in rule.past.iter().chain(&[(rule.to, rule.until)]) {
            let ends = |at: usize| fence(at) || is(at, *until);
            reached = reached
                .into_iter()
                .flat_map(|from| ways.reached_where(&set, from, |at| is(at, *to), ends))
                .collect();
        }
        found.extend(reached.into_iter().map(|at| Violation::of(&function.code[at], rule.why)));
    }
    found
}

fn event(instruction: &Instruction<'_>, access: Option<Access>) -> Option<Event> {
    if let Some(access) = access {
        return Some(Event::Access(access));
    }
    let fence = || {
        let scope = match () {
            () if instruction.has("sys") => Scope::System,
            () if instruction.has("gpu") || instruction.has("gl") => Scope::Device,
            () => Scope::Block,
        };
        instruction.guard.is_none().then_some(Event::Fence(scope))
    };
    match instruction.name() {
        "fence" if instruction.has("acq_rel") || instruction.has("sc") => fence(),
        "membar" => fence(),
        "bar" | "barrier" if instruction.has("warp") => Some(Event::WarpBarrier),
        "bar" | "barrier" if instruction.has("sync") => Some(Event::Barrier),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use crate::pins::BUILT_IN;
    use ring_device::BlockMemory;
    use ring_shared::layout::{ChannelBlock, ControlBlock};
    use std::mem::{offset_of, size_of};

    /// The rules about order that a kernel with that body breaks. In it `%memory` is the block's memory,
    /// `%channel` the channel's block, `%look` an atom of the doorbell that depends on the thread, `%payload`
    /// and `%answers` what the host left there.
    fn broken(body: &str) -> Vec<String> {
        let (memory, control, channel) =
            (size_of::<BlockMemory>(), size_of::<ControlBlock>(), size_of::<ChannelBlock>());
        let (bell, credit) =
            (offset_of!(ChannelBlock, request_bell), offset_of!(ChannelBlock, response_credit));
        let (payload, answers) = (BlockMemory::PAYLOAD, BlockMemory::RESPONSE_SLOTS);
        let ptx = format!(
            ".shared .align 16 .b8 ring_block[{memory}];
            .visible .entry k(.param .u64 k_param_0)
            {{
            ld.param.b64 %control, [k_param_0];
            {{ .reg .u64 %a; mov.u64 %a, ring_block; cvta.shared.u64 %memory, %a; }}
            mov.u32 %block, %ctaid.x;
            mul.wide.u32 %blocks, %block, {channel};
            add.s64 %first, %control, {control};
            add.s64 %channel, %first, %blocks;
            mov.u32 %thread, %tid.x;
            mul.wide.u32 %atom, %thread, 16;
            add.s64 %bell, %channel, {bell};
            add.s64 %look, %bell, %atom;
            add.s64 %line, %channel, {response};
            add.s64 %inline, %line, %atom;
            add.s64 %credit, %channel, {credit};
            ld.relaxed.sys.b64 %payload, [%memory+{payload}];
            ld.relaxed.sys.b64 %slots, [%memory+{answers}];
            shl.b64 %behind, %thread, 4;
            add.s64 %answers, %slots, %behind;
            {body}
            ret;
            }}",
            response = offset_of!(ChannelBlock, response_bell),
        );
        let found = check(&BUILT_IN, &ptx).into_iter();
        let said: Vec<_> = found.map(|one| one.to_string()).collect();
        assert!(!said.iter().any(|one| one.contains("not on the list")), "{said:?}");
        assert!(!said.iter().any(|one| one.contains("cannot be followed")), "{said:?}");
        said.into_iter().filter(|one| one.contains(": no ")).collect()
    }

    const LOOK: &str = "ld.relaxed.sys.global.b128 %a, [%look];";
    const FENCE: &str = "fence.acq_rel.sys;";

    #[test]
    fn a_payload_is_read_behind_a_fence_and_told_of_behind_another() {
        let read = "ld.relaxed.sys.b32 %w, [%payload+8];";
        let answer =
            "st.relaxed.sys.b32 [%payload+8], %w; FENCE st.relaxed.sys.b128 [%inline], %a;";
        let (fenced, not) = (answer.replace("FENCE", FENCE), answer.replace("FENCE", ""));
        assert_eq!(broken(&format!("{LOOK} {FENCE} {read} {fenced}")), [""; 0]);
        let said = broken(&format!("{LOOK} {read} {fenced}"));
        assert!(
            matches!(said.as_slice(), [one] if one.contains("reading the payload")),
            "{said:?}"
        );
        let said = broken(&format!("{LOOK} {FENCE} {read} {not}"));
        assert!(
            matches!(said.as_slice(), [one] if one.contains("writes to the payload")),
            "{said:?}"
        );
        // A narrower fence is none, and one that some threads pass over is none.
        for none in ["fence.acq_rel.cta;", "@%p1 fence.acq_rel.sys;"] {
            assert_eq!(broken(&format!("{LOOK} {none} {read} {fenced}")).len(), 1, "{none}");
        }
    }

    #[test]
    fn no_fence_is_needed_where_the_payload_was_not_used() {
        let used = BlockMemory::USES_PAYLOAD;
        let way = |tell: &str, on: &str, asked: usize| {
            format!(
                "ld.relaxed.sys.b64 %wake, [%memory+{wake}];
                {tell}
                st.relaxed.sys.b32 [%payload+8], %w;
                bar.sync 0;
                ld.relaxed.sys.b64 %used, [%memory+{asked}];
                setp.eq.b64 %p1, %used, 0;
                @{on} bra $L1;
                {FENCE}
                $L1:
                st.relaxed.sys.b128 [%inline], %a;",
                wake = BlockMemory::WAKE,
            )
        };
        let tell = format!("st.relaxed.sys.b64 [%memory+{used}], 1;");
        assert_eq!(broken(&way(&tell, "%p1", used)), [""; 0]);
        for (on, asked) in [("!%p1", used), ("%p1", BlockMemory::STAGED)] {
            let said = broken(&way(&tell, on, asked));
            let one = matches!(said.as_slice(), [one] if one.contains("writes to the payload"));
            assert!(one, "{on} {asked}: {said:?}");
        }
        let said = broken(&way("", "%p1", used));
        assert!(matches!(said.as_slice(), [one] if one.contains("no word to")), "{said:?}");
    }

    #[test]
    fn a_message_that_came_in_the_line_is_fenced_by_who_looked_or_by_who_reads_the_payload() {
        let way = |first: &str, second: &str| {
            format!(
                "{LOOK} {first} st.relaxed.sys.b64 [%memory+{staged}], 1; bar.sync 0;
                setp.eq.b32 %p1, %thread, 2;
                @!%p1 bra $L1;
                ld.relaxed.sys.b64 %s, [%memory+{staged}];
                $L1:
                @!%p1 bra $L2;
                {second}
                $L2:
                ld.relaxed.sys.b32 %w, [%payload];",
                staged = BlockMemory::STAGED,
            )
        };
        assert_eq!(broken(&way(FENCE, "")), [""; 0]);
        assert_eq!(broken(&way("", FENCE)), [""; 0]);
        let said = broken(&way("", ""));
        assert!(matches!(said.as_slice(), [one] if one.contains("came in the line")), "{said:?}");
    }

    #[test]
    fn a_thread_that_went_one_way_goes_it_again_on_the_same_predicate() {
        let way = |other: &str| {
            format!(
                "setp.eq.b32 %p1, %thread, 0; setp.eq.b32 %p2, %thread, 1;
                @!%p1 bra $L1;
                ld.acquire.sys.b64 %c, [%credit];
                $L1:
                @!{other} bra $L2;
                {FENCE}
                $L2:
                st.relaxed.sys.b64 [%memory+{told}], %c;",
                told = BlockMemory::CONSUMED,
            )
        };
        assert_eq!(broken(&way("%p1")), [""; 0]);
        let said = broken(&way("%p2"));
        assert!(matches!(said.as_slice(), [one] if one.contains("telling the block")), "{said:?}");
        // Not if it may have changed meanwhile.
        let changed = way("%p1").replace("$L1:", "$L1:\nsetp.eq.b32 %p1, %c, 7;");
        assert_eq!(broken(&changed).len(), 1);
    }

    #[test]
    fn thread_0_is_in_warp_0() {
        let obey = |of: &str| {
            format!(
                "ld.b32 %x, [%memory+{command}];
                setp.gt.u32 %p1, %thread, 31; setp.ne.b32 %p2, {of}, 0;
                @%p1 bra $L1;
                {FENCE}
                $L1:
                @%p2 bra $L2;
                st.relaxed.sys.b64 [%memory+{obeyed}], 1;
                $L2:
                ld.b64 %s, [%state];",
                command = BlockMemory::COMMAND,
                obeyed = BlockMemory::ACKNOWLEDGED,
            )
            .replace("ld.b32", "ld.relaxed.sys.b32")
        };
        let state = format!("ld.relaxed.sys.b64 %state, [%memory+{}];", BlockMemory::STATE);
        assert_eq!(broken(&format!("{state} {}", obey("%thread"))), [""; 0]);
        // What another register holds says nothing.
        let said = broken(&format!("{state} {}", obey("%x")));
        assert!(matches!(said.as_slice(), [one] if one.contains("a state")), "{said:?}");
    }

    #[test]
    fn a_fence_somewhere_else_does_not_help() {
        let tail = BlockMemory::INBOX_TAIL;
        let tell = format!("st.relaxed.sys.b64 [%memory+{tail}], %n;");
        assert_eq!(broken(&format!("{LOOK} {FENCE} {tell}")), [""; 0]);
        assert_eq!(broken(&format!("{FENCE} {LOOK} {tell}")).len(), 1);
        assert_eq!(broken(&format!("{LOOK} {tell} {FENCE}")).len(), 1);
        // Around a loop, too.
        let around = format!("{FENCE}\n$L1:\n{tell} {LOOK} @%p1 bra $L1;");
        assert_eq!(broken(&around).len(), 1);
        assert_eq!(broken(&around.replace("@%p1", &format!("{FENCE} @%p1"))), [""; 0]);
        // Behind a barrier a thread tells what others have looked at.
        assert_eq!(broken(&format!("{LOOK} bar.sync 0; {tell}")), [""; 0]);
    }
}
