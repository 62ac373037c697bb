//! What a trace costs, beside the same kernel without one; and whether the times that it tells are in order.

use super::{SECONDS, TURNS, median_of_turns, print};
use ring_example_kernels::{Line, Traced};
use ring_host::{
    Error, KernelHandle, LaunchConfig, Runtime, Trace, TraceLosses, TryRecvError, TrySendError,
};
use ring_tests::kernels::of_examples;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Records of each ring: what is noted in some milliseconds at 10 million messages a second.
pub(super) const RECORDS: u32 = 1 << 17;
/// Messages of a turn.
const MESSAGES: u64 = 20_000;
/// Messages whose order is looked at.
const ORDERED: u64 = 1_000_000;
/// Messages that are sent at once, burst by burst, in the run that is printed.
const BURSTS: [u64; 5] = [1, 1, 2, 4, 16];
/// Between two readings of the trace.
const BETWEEN: Duration = Duration::from_millis(1);

/// All of it.
pub fn traces(host: &Runtime) -> Result<(), Error> {
    let launch = LaunchConfig::default().kernels(of_examples::<Traced>());
    host.prepare::<Traced>(&launch)?;
    let mut plain = host.launch::<Traced>(launch.clone())?;
    let mut traced = host.launch::<Traced>(launch.trace(RECORDS))?;
    plain.activate(SECONDS)?;
    traced.activate(SECONDS)?;
    let mut trace = traced.trace().expect("it was asked for");
    order(&mut traced, &mut trace)?;
    run(&mut traced, &mut trace)?;
    for at_once in [1, 8, 32] {
        let turn = |kernel: &mut KernelHandle<Traced>| closed(kernel, at_once);
        compare(
            &format!("{at_once} in flight, us a message"),
            (&mut plain, &mut traced),
            turn,
            &mut trace,
        )?;
    }
    let batches = |kernel: &mut KernelHandle<Traced>| in_batches(kernel, 256);
    compare("batches of 256, us a message", (&mut plain, &mut traced), batches, &mut trace)?;
    let turn = |kernel: &mut _| Ok(due(kernel)?.0);
    compare("1 M messages/s due, p50 us", (&mut plain, &mut traced), turn, &mut trace)?;
    let turn = |kernel: &mut _| Ok(due(kernel)?.1);
    compare("1 M messages/s due, us a message", (&mut plain, &mut traced), turn, &mut trace)?;
    traced.terminate(SECONDS)?;
    plain.terminate(SECONDS)?;
    Ok(())
}

fn line(i: u64) -> Line {
    std::array::from_fn(|k| i as u32 + k as u32)
}

/// A trace that is read meanwhile.
pub(super) trait Reads: Send {
    /// Reads it: how much it tells of.
    fn read(&mut self) -> u64;
    /// What was lost.
    fn lost(&self) -> TraceLosses;
}

impl Reads for Trace {
    fn read(&mut self) -> u64 {
        let mut told = 0;
        Trace::read(self, |_| told += 1);
        told
    }

    fn lost(&self) -> TraceLosses {
        self.losses()
    }
}

/// Turns without and with a trace, while it is read.
pub(super) fn compare<T>(
    what: &str,
    (plain, traced): (&mut T, &mut T),
    turn: impl Fn(&mut T) -> Result<f64, Error>,
    trace: &mut impl Reads,
) -> Result<(), Error> {
    let (mut without, mut with, mut more) = (Vec::new(), Vec::new(), Vec::new());
    let lost = trace.lost();
    let ends = AtomicBool::new(false);
    let mut told = 0u64;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Relaxed) {
                told += trace.read();
                std::thread::sleep(BETWEEN);
            }
        });
        let turns = (0..TURNS).try_for_each(|_| -> Result<(), Error> {
            let (alone, noted) = (turn(plain)?, turn(traced)?);
            without.push(alone);
            with.push(noted);
            more.push((noted / alone - 1.0) * 100.0);
            Ok(())
        });
        ends.store(true, Relaxed);
        turns
    })?;
    told += trace.read();
    for found in [&mut without, &mut with, &mut more] {
        found.sort_by(f64::total_cmp);
    }
    let [more, low, high] = median_of_turns(&more);
    println!(
        "{what}: without {:.3}, with {:.3}, turn by turn {more:+.2} % ({low:+.2} to {high:+.2} with 95 %); {told} told, lost before {lost:?}, after {:?}",
        median_of_turns(&without)[0],
        median_of_turns(&with)[0],
        trace.lost()
    );
    Ok(())
}

/// What sends numbered messages and receives them again.
pub(super) trait RoundTrip {
    /// Sends message `i`.
    fn send(&mut self, i: u64) -> Result<(), Error>;
    /// Receives message `i`.
    fn recv(&mut self, i: u64) -> Result<(), Error>;
    /// Sends up to `most` messages from `first` on; how many.
    fn send_some(&mut self, first: u64, most: usize) -> Result<usize, Error>;
    /// Receives up to `most`; how many.
    fn recv_some(&mut self, most: usize) -> Result<usize, Error>;
}

impl RoundTrip for KernelHandle<Traced> {
    fn send(&mut self, i: u64) -> Result<(), Error> {
        Ok(KernelHandle::send(self, line(i), SECONDS)?)
    }

    fn recv(&mut self, i: u64) -> Result<(), Error> {
        assert_eq!(KernelHandle::recv(self, SECONDS)?, line(i));
        Ok(())
    }

    fn send_some(&mut self, first: u64, most: usize) -> Result<usize, Error> {
        Ok(self.try_send_each(most, |k| line(first + k as u64))?)
    }

    fn recv_some(&mut self, most: usize) -> Result<usize, Error> {
        Ok(self.try_recv_each(most, |_| {})?)
    }
}

/// Microseconds a message, with so many in flight.
pub(super) fn closed(way: &mut impl RoundTrip, at_once: u64) -> Result<f64, Error> {
    let begun = Instant::now();
    (0..at_once).try_for_each(|i| way.send(i))?;
    for i in 0..MESSAGES {
        way.recv(i)?;
        if i + at_once < MESSAGES {
            way.send(i + at_once)?;
        }
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / MESSAGES as f64)
}

/// Microseconds a message, sent and received by batches.
pub(super) fn in_batches(way: &mut impl RoundTrip, most: usize) -> Result<f64, Error> {
    let (begun, n) = (Instant::now(), 20 * MESSAGES);
    let (mut sent, mut received) = (0u64, 0u64);
    while received < n {
        let left = most.min((n - sent) as usize);
        if left > 0 && sent - received < 8 * most as u64 {
            sent += way.send_some(sent, left)? as u64;
        }
        received += way.recv_some(most)? as u64;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / n as f64)
}

/// A message is due each microsecond: the median of how long after that its answer is there, and microseconds a message.
fn due(kernel: &mut KernelHandle<Traced>) -> Result<(f64, f64), Error> {
    let mut times = Vec::with_capacity(MESSAGES as usize);
    let (begun, mut sent) = (Instant::now(), 0u64);
    while (times.len() as u64) < MESSAGES {
        let now = begun.elapsed();
        if sent < MESSAGES && now >= Duration::from_micros(sent) {
            match kernel.try_send(line(sent)) {
                Ok(()) => sent += 1,
                Err(TrySendError::Full(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match kernel.channel(0)?.try_recv() {
            Ok(_) => times.push(
                (begun.elapsed() - Duration::from_micros(times.len() as u64)).as_secs_f64() * 1e6,
            ),
            Err(TryRecvError::Empty) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let rate = begun.elapsed().as_secs_f64() * 1e6 / MESSAGES as f64;
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], rate))
}

/// The times of some messages that are sent in bursts, each when the one before is answered: what the picture in the documentation is
/// drawn from.
fn run(kernel: &mut KernelHandle<Traced>, trace: &mut Trace) -> Result<(), Error> {
    let mut exchange = |at_once: u64| -> Result<(), Error> {
        (0..at_once).try_for_each(|i| kernel.send(line(i), SECONDS))?;
        (0..at_once).try_for_each(|i| kernel.recv(SECONDS).map(|got| assert_eq!(got, line(i))))?;
        Ok(())
    };
    // What was not called for a while is called again first.
    (0..1000).try_for_each(|_| exchange(16))?;
    trace.read(|_| ());
    BURSTS.into_iter().try_for_each(&mut exchange)?;
    let mut messages = Vec::new();
    let end = Instant::now() + Duration::from_secs(1);
    while messages.len() < BURSTS.iter().sum::<u64>() as usize && Instant::now() < end {
        trace.read(|message| {
            if let (Some(accepted), Some(device)) = (message.accepted, message.device) {
                messages.push([accepted, device.began, device.ended, message.received]);
            }
        });
    }
    let first = messages.first().map_or(0, |times| times[0]);
    println!("a run of {} messages, ns: accepted, began, ended, received", messages.len());
    for times in messages {
        let [accepted, began, ended, received] = times.map(|time| time - first);
        println!("run {accepted} {began} {ended} {received}");
    }
    Ok(())
}

/// Looks at the times of many messages, one in flight.
fn order(kernel: &mut KernelHandle<Traced>, trace: &mut Trace) -> Result<(), Error> {
    let (mut told, mut disordered, mut errors, mut ways) =
        (0u64, 0u64, Vec::new(), [const { Vec::new() }; 3]);
    for i in 0..ORDERED {
        kernel.send(line(i), SECONDS)?;
        assert_eq!(kernel.recv(SECONDS)?, line(i));
        if i % 10_000 == 9_999 {
            let end = Instant::now() + Duration::from_secs(1);
            while told <= i && Instant::now() < end {
                trace.read(|message| {
                    told += 1;
                    let (Some(accepted), Some(device)) = (message.accepted, message.device) else {
                        return;
                    };
                    let times = [accepted, device.began, device.ended, message.received];
                    disordered += u64::from(!times.is_sorted());
                    errors.push(device.error as f64 / 1000.0);
                    for (way, two) in ways.iter_mut().zip(times.windows(2)) {
                        way.push((two[1] - two[0]) as f64 / 1000.0);
                    }
                });
            }
        }
    }
    println!(
        "{ORDERED} messages one by one: {told} told, {disordered} of them with times out of order, {:?}, the clock began anew {} times",
        trace.losses(),
        trace.clock_resets()
    );
    errors.sort_by(f64::total_cmp);
    print("  the error that is told", &errors);
    for (what, way) in
        ["accepted to began", "began to ended", "ended to received"].iter().zip(&mut ways)
    {
        way.sort_by(f64::total_cmp);
        print(&format!("  {what}"), way);
    }
    Ok(())
}
