//! How the first warp judges a look that shows all rings: by two votes, and without a load as long as nothing has come.

use super::look::{Look, Watch};
use crate::block::Cooperate;
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::links::{Lane, NARROW};

/// The votes of lanes that look at outputs.
const OUTPUTS: u32 = 0xffff_0000;
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

impl<K: Kernel> Channel<'_, K> {
    /// The first warp, where one look shows all rings: what it shows. Inputs with inline messages take turns.
    #[inline(always)]
    pub(super) fn judge(&self, watch: &mut Watch<'_>, look: Look) -> Shown {
        let whole = self.ballot(watch.known.is_whole(look.words));
        let has = |input: u32| (whole >> (8 * input)) & 0xff == 0xff;
        let other = watch.input ^ 1;
        let (is_all_idle, is_turn) = (whole & OUTPUTS == OUTPUTS, has(other));
        let is_message = is_all_idle && (is_turn || has(watch.input));
        // In turn, or if nothing of the other input waits in slots.
        let loud = match is_message && (is_turn || watch.inputs == 1) {
            true => 0,
            false => self.ballot(!watch.known.is_quiet(look.words)),
        };
        if is_message && loud >> Lane::of_control(other) & 1 == 0 {
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
