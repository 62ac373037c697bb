use super::*;
use crate::bench::load::fake::{FakeClock, FakePipe};
use crate::interrupt::Interrupt;

const WAY: u64 = 2_000;

/// The clocks here are not real ones: a thread that yielded would let real time pass, of which the watch allows 5 s.
fn watch() -> Watch {
    Watch::new(u32::MAX, Interrupt::never())
}

fn schedule(rate: u64) -> Schedule {
    Schedule::new(rate, Duration::from_millis(10), u64::MAX)
}

fn us(round: &Round, percent: f64) -> f64 {
    round.times.percentile(percent).unwrap()
}

#[test]
fn messages_that_are_sent_when_they_are_due_take_the_way_there_and_back() {
    let clock = FakeClock::new();
    let mut pipe = FakePipe::new(&clock, WAY);
    let round = on_time(&mut pipe, &schedule(100_000), &clock, &mut watch()).unwrap();
    assert_eq!((round.times.count(), pipe.in_flight()), (1_000, 0));
    assert!(us(&round, 0.0) >= 2.0 && us(&round, 100.0) < 2.2, "{round:?}");
    let rate = round.rate.unwrap();
    assert!((rate / 100_000.0 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_stall_counts_for_every_message_that_was_due_meanwhile() {
    let clock = FakeClock::new();
    let mut pipe = FakePipe::new(&clock, WAY).stall(10_000, 1_000_000);
    let round = on_time(&mut pipe, &schedule(1_000_000), &clock, &mut watch()).unwrap();
    // A message is due each microsecond: a thousand in the stall, which wait 500 us on average.
    assert_eq!(round.times.count(), 10_000);
    let long = round.times.between(&[500.0, 2_000.0])[0];
    assert!((490..=510).contains(&long), "{long}");
    assert!((1_000.0..1_010.0).contains(&us(&round, 100.0)), "{}", us(&round, 100.0));
    assert!(us(&round, 50.0) < 3.0, "the others were on time: {}", us(&round, 50.0));
}

#[test]
fn a_rate_that_is_not_reached_ends_and_hides_no_message() {
    let clock = FakeClock::new();
    // A tenth of what is due can be answered; so much is sent that it all waits.
    let mut pipe = FakePipe::new(&clock, WAY).apart(1_000);
    let schedule = schedule(10_000_000);
    let round = on_time(&mut pipe, &schedule, &clock, &mut watch()).unwrap();
    assert_eq!((round.times.count(), pipe.in_flight()), (schedule.messages(), 0));
    let rate = round.rate.unwrap();
    assert!((rate / 1e6 - 1.0).abs() < 0.01, "{rate}");
    assert!(us(&round, 50.0) > 40_000.0, "they wait for those before: {}", us(&round, 50.0));
}

/// Takes one message in 100 us, and answers at once.
struct Narrow(FakePipe, FakeClock, u64);

impl Pipe for Narrow {
    fn send(&mut self, _: usize) -> Result<usize, String> {
        if self.1.now() < self.2 {
            return Ok(0);
        }
        self.2 += 100_000;
        self.0.send(1)
    }

    fn receive(&mut self, most: usize) -> Result<usize, String> {
        self.0.receive(most)
    }
}

#[test]
fn what_could_not_be_sent_counts_with_the_time_that_it_waited() {
    let clock = FakeClock::new();
    let mut pipe = Narrow(FakePipe::new(&clock, WAY), clock.clone(), 0);
    pipe.2 = clock.now();
    let schedule = schedule(1_000_000);
    let round = on_time(&mut pipe, &schedule, &clock, &mut watch()).unwrap();
    // It ends after 30 ms with some 300 of 10,000 messages sent.
    assert_eq!(round.times.count(), schedule.messages());
    assert!((20_000.0..30_000.0).contains(&us(&round, 50.0)), "{}", us(&round, 50.0));
    assert!(us(&round, 100.0) < 31_000.0, "{}", us(&round, 100.0));
}

#[test]
fn the_clock_alone_is_late_by_the_time_between_two_readings() {
    let round = seen(&schedule(1_000_000), &FakeClock::new(), || false);
    assert_eq!(round.times.count(), 10_000);
    assert!(us(&round, 100.0) <= 0.011, "{}", us(&round, 100.0));
}

#[test]
fn a_run_on_the_cpu_device_ends_with_every_message_counted() {
    crate::bench::example::with(Interrupt::never(), |context| {
        let schedule = Schedule::new(10_000, Duration::from_millis(5), MOST);
        let round = once(context, 10_000, &schedule).unwrap();
        assert_eq!(round.times.count(), schedule.messages());
    });
}
