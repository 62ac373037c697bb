//! What keeps a kernel answering: modes and how one is chosen, launches that follow each other, copies
//! between the host's memory and the device's, and what becomes of a kernel that does not leave.

pub(crate) mod gate;
pub(crate) mod lease;
pub(crate) mod mode;
pub(crate) mod orphans;
pub(crate) mod report;
pub(crate) mod scheduler;
pub(crate) mod selection;
pub(crate) mod staging;
