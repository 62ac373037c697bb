//! Graphs: kernels that send messages to each other on the device, declared, checked, launched and commanded as one.

mod builder;
mod handle;
mod kernel;
mod launched;
mod links;
mod plan;
mod receiver;
mod recovery;
mod snapshot;
pub(crate) mod trace;

pub use builder::{GraphBuilder, Node, PortReader, Route};
pub use handle::Graph;
pub use kernel::GraphNode;
pub use links::{LinkInfo, LinkPath, LinkTraffic};
pub use receiver::PortReceiver;
pub use recovery::GraphRestart;
pub use snapshot::{FeedLoss, GraphSnapshot};
pub use trace::GraphTrace;
pub use trace::events::{GraphEvent, HandledMessages, RingMessages, TracedNode, TracedRing};
