//! Which scopes keep a state.

use super::emit_in_order::{EmitInOrder, EmitInOrderHandler};
use super::in_order::{InOrder, InOrderHandler};
use crate::kernel::{Kernel, Scope};
use bytemuck::Pod;

/// A scope whose channels keep a state.
#[diagnostic::on_unimplemented(
    message = "kernel `{K}` keeps no state",
    label = "a scope without a state",
    note = "a handler that takes `state: &mut S` has one"
)]
pub trait HasState<K: Kernel>: Scope<K> {
    /// What a channel keeps.
    type State: Pod;
}

impl<K: InOrderHandler> HasState<K> for InOrder {
    type State = K::State;
}

impl<K: EmitInOrderHandler> HasState<K> for EmitInOrder {
    type State = K::State;
}
