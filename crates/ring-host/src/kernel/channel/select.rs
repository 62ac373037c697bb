//! Waiting for the first of several receivers.

use crate::deadline::{Deadline, Patience, wait};
use std::convert::Infallible;

/// What [`Select`] waits for: the receiving half of a channel, or of a port. Nothing else is one.
pub trait Incoming: Ready {}

/// How a receiver is waited for beside others.
pub trait Ready {
    /// Whether a `try_recv` would find something, or would say why nothing comes any more, as far as the host knows. If not, what
    /// drives the kernel makes a step.
    fn is_ready(&mut self) -> bool;

    /// How the time between looks is passed.
    fn patience(&self) -> Patience;
}

/// Waits until one of several receivers has something, of any kernels; each gets its turn.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, Select, kernels::{Echo, EchoMessage}};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// # let launch = LaunchConfig::default().channels(2);
/// # let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(launch)?;
/// # kernel.activate(second)?;
/// let (mut sender, mut first) = kernel.take_channel(0)?.into_split();
/// let (mut other_sender, mut other) = kernel.take_channel(1)?.into_split();
/// sender.send(EchoMessage::from_seed(0), second)?;
/// other_sender.send(EchoMessage::from_seed(1), second)?;
/// let (mut select, mut answers) = (Select::new(), 0);
/// while answers < 2 {
///     let answer = match select.ready(&mut [&mut first, &mut other], second) {
///         Some(0) => first.try_recv(),
///         Some(_) => other.try_recv(),
///         None => panic!("no answer within a second"),
///     };
///     answers += u32::from(answer.is_ok());
/// }
/// # kernel.terminate(second)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Where the next look begins.
    next: usize,
}

impl Select {
    /// One that looks at the first receiver first.
    pub fn new() -> Select {
        Select::default()
    }

    /// The index of a receiver that has something, or can say why nothing comes any more; none if the deadline has passed, or if
    /// there are no receivers. Now and then a `try_recv` still finds nothing, since an answer may need a moment more than is seen here;
    /// then it is waited for again. The looks begin behind the receiver that was found last.
    pub fn ready(
        &mut self,
        receivers: &mut [&mut dyn Incoming],
        deadline: impl Into<Deadline>,
    ) -> Option<usize> {
        let count = receivers.len();
        let yields = receivers.iter().any(|it| matches!(it.patience(), Patience::Yield));
        let patience = if yields || count == 0 { Patience::Yield } else { Patience::Spin };
        let look = || {
            let mut turns = (0..count).map(|turn| (self.next + turn) % count);
            Ok::<_, Infallible>(turns.find(|index| receivers[*index].is_ready()))
        };
        let Ok(found) = wait(deadline.into(), patience, look, || Ok(()));
        if let Some(found) = found {
            self.next = (found + 1) % count;
        }
        found
    }
}
