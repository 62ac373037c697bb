//! How the first warp judges a look that shows all rings: by votes of its lanes, and without a load as long as nothing has come.

use super::alone::Taken;
use super::known::Look;
use super::look::Watch;
use crate::block::Cooperate;
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::links::{Lane, NARROW};
use crate::memory::signals::Decision;

/// The votes of lanes that look at outputs.
const OUTPUTS: u32 = 0xffff_0000;
/// The votes of lanes that look at something where there is one input.
const ALONE: u32 = OUTPUTS | 0xff;
/// The votes by which a message has begun to come there, and no output is in its way.
const BEGUN: u32 = OUTPUTS | 1 << Lane::of_control(0);
const _: () = assert!(NARROW.0 == 2 && NARROW.1 == 16);

/// What a look of the first warp shows, by the votes of its lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing but what consumers have taken, which is noted.
    Nothing,
    /// All of an inline message, whose input is noted as the chosen one, and that all outputs are idle.
    Message,
    /// Something else.
    Other,
}

/// A look, and what lanes see.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub look: Look,
    /// Lanes that see their part of an inline message, or that their output is idle.
    whole: u32,
    /// Whether the calling lane sees nothing new.
    is_quiet: bool,
}

impl<K: Kernel> Channel<'_, K> {
    /// The first warp, where one look shows all rings: looks until there is something new that is to be judged, or until it is time
    /// to look at the host's command, or `once`; what the last look shows, or what is to do next. How far apart two looks are is how late a
    /// message is seen: in between is nothing that need not be. A message that is all there, at the input that had the last one, is
    /// taken as soon as it is seen, if it is handled [in registers](Self::IN_REGISTERS).
    #[inline(always)]
    pub(super) fn look_until_shown(
        &self,
        watch: &mut Watch<'_>,
        once: bool,
    ) -> Result<Seen, Decision> {
        // The votes of lanes that look neither at the input that had the last message nor at an output; and the vote by which
        // something of the other input is seen, which may be its turn.
        let others = !(OUTPUTS | 0xff << (8 * watch.input));
        let other = match watch.inputs {
            1 => 0,
            _ => 1 << Lane::of_control(watch.input ^ 1),
        };
        let in_registers = Self::IN_REGISTERS && watch.is_direct;
        loop {
            let this = self.optimization_barrier();
            this.note_look(watch);
            let look = this.begin_look(watch);
            let whole = this.ballot(watch.known.is_whole(look));
            let is_quiet = watch.known.is_quiet(look);
            // Both votes at once: the second does not wait for what the first says.
            let stirred = this.ballot(!is_quiet | watch.is_late());
            if in_registers && whole | others == u32::MAX && stirred & other == 0 {
                watch.known.consumed = watch.known.next; // of an input this means nothing
                let (decision, _) = this.take_alone(watch, look, Taken::InRegisters);
                if decision != Decision::Wait || watch.is_late() {
                    return Err(decision);
                }
                continue;
            }
            if stirred != 0 || once {
                return Ok(Seen { look, whole, is_quiet });
            }
        }
    }

    /// The first warp, where one look shows all rings: what it shows. Inputs with inline messages take turns.
    #[inline(always)]
    pub(super) fn judge(&self, watch: &mut Watch<'_>, seen: Seen) -> Shown {
        let Seen { look, whole, is_quiet } = seen;
        if watch.inputs == 1 && whole | !ALONE == u32::MAX {
            watch.known.consumed = watch.known.next; // of an input this means nothing
            return Shown::Message;
        }
        // A part of a message is there: the rest is on its way.
        if watch.inputs == 1 && whole & BEGUN == BEGUN {
            return Shown::Nothing;
        }
        let loud = self.ballot(!is_quiet);
        if loud == 0 {
            return Shown::Nothing;
        }
        let has = |input: u32| (whole >> (8 * input)) & 0xff == 0xff;
        let other = watch.input ^ 1;
        let (is_all_idle, is_turn) = (whole & OUTPUTS == OUTPUTS, has(other));
        let is_message = is_all_idle && (is_turn || has(watch.input));
        // In turn, or if nothing of the other input waits in slots.
        if is_message && (is_turn || loud >> Lane::of_control(other) & 1 == 0) {
            watch.input = if is_turn { other } else { watch.input };
            watch.known.consumed = watch.known.next; // of an input this means nothing
            return Shown::Message;
        }
        if loud & !OUTPUTS != 0 {
            return Shown::Other;
        }
        let mut fits = true;
        if loud >> self.lane() & 1 != 0 {
            // SAFETY: an output of this lane; only this warp touches its end.
            let sink = unsafe { &mut (*self.output(self.lane() % NARROW.1)).sink };
            fits = sink.note_credit(look.words[0]).is_ok();
            watch.known.consumed = sink.consumed();
        }
        if self.all(fits) { Shown::Nothing } else { Shown::Other }
    }
}
