//! Weights that are replaced while requests run: whether each answer is by the weights that its request named, and how late it came.

use crate::mlp::{Weights, inputs};
use crate::{Done, KERNELS, LONG};
use ring_host::{BufferRef, Channel, FrozenBuffer, LaunchConfig, Runtime, TrySendError};
use ring_whole_device_kernels::{MLP_BUFFER_WORDS, Mlp, MlpAnswer, MlpRequest};
use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How far an answer may be off from what the weights give in double precision.
const MOST: f64 = 2e-6;

/// Inputs that requests have by turns.
const INPUTS: usize = 32;

/// Requests of a channel one after the other by the same part of the weights.
const IN_A_ROW: u64 = 64;

/// What is asked while weights are replaced.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Channels, each a block with weights of its own.
    pub channels: u32,
    /// Threads of the host that send and receive, each for some of the channels; as many as there are channels at most.
    pub senders: u32,
    /// Requests a second, of all of them: each is due at its time, however late the ones before are.
    pub rate: f64,
    /// How many requests.
    pub requests: u64,
    /// Whether weights are replaced meanwhile, again and again.
    pub replaces: bool,
    /// Bytes of all weights, as many perceptrons' as fit.
    pub bytes: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Replaced {
    /// How often all weights were replaced.
    pub replaced: u64,
    /// Answers that are not what the weights give that the request named.
    pub wrong: u64,
    /// How long each answer took from when its request was due, in nanoseconds, in rising order.
    pub times: Vec<u32>,
    /// The longest time from when one set of weights was asked for until it was named, in all of which requests ran.
    pub longest: Duration,
}

/// All weights of a moment, and which of both sets of a perceptron's weights they are made of.
struct Current {
    weights: FrozenBuffer<u32>,
    set: usize,
}

/// The weights that requests are to name, and how often they were replaced.
struct Board {
    current: Mutex<Arc<Current>>,
    replaced: AtomicU64,
}

impl Board {
    fn current(&self) -> MutexGuard<'_, Arc<Current>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two perceptrons' weights, and what they give.
struct Sets {
    words: [Vec<u32>; 2],
    answers: [Vec<Vec<f64>>; 2],
    x: Vec<[f32; 64]>,
}

impl Sets {
    /// Each as often as so many bytes hold it.
    fn new(bytes: usize) -> Sets {
        let sets = [Weights::made(), Weights::other()];
        let x: Vec<_> = (0..INPUTS).map(inputs).collect();
        let answers = sets.each_ref().map(|weights| {
            let rounded = weights.rounded();
            x.iter().map(|x| rounded.reference(x)).collect()
        });
        let times = (bytes / (4 * MLP_BUFFER_WORDS)).max(1);
        let words = sets.each_ref().map(|weights| weights.words().repeat(times));
        Sets { words, answers, x }
    }

    fn is_right(&self, asked: &Asked, answer: &MlpAnswer) -> bool {
        let expected = &self.answers[asked.set][asked.input];
        let mut both = answer.y.iter().zip(expected);
        answer.done == 1 && both.all(|(y, expected)| (f64::from(*y) - expected).abs() < MOST)
    }
}

/// A request that is not answered yet.
struct Asked {
    due: Instant,
    set: usize,
    input: usize,
}

/// Lets a load run on `host`.
///
/// # Errors
/// When the rate is no time between requests, there is no room for the weights or the channels, or a message is not answered in time.
pub fn run(host: &Runtime, load: Load) -> Done<Replaced> {
    let senders = load.senders.clamp(1, load.channels.max(1));
    let each = f64::from(senders) / load.rate;
    let Ok(each) = Duration::try_from_secs_f64(each) else {
        return Err(format!("{} requests a second; ask for some", load.rate).into());
    };
    let sets = Sets::new(load.bytes);
    let first = Arc::new(Current { weights: host.frozen_buffer(&sets.words[0], LONG)?, set: 0 });
    let board = Board { current: Mutex::new(first), replaced: AtomicU64::new(0) };
    let launch = LaunchConfig::default().kernels(KERNELS).channels(load.channels);
    let mut kernel = host.launch::<Mlp>(launch)?;
    kernel.activate(LONG)?;
    let mut of_senders: Vec<Vec<_>> = (0..senders).map(|_| Vec::new()).collect();
    for channel in 0..load.channels {
        let sender = (channel % senders) as usize;
        of_senders[sender].push((kernel.take_channel(channel)?, VecDeque::new()));
    }
    let (is_over, begin) = (AtomicBool::new(false), Instant::now() + Duration::from_millis(50));
    let result = thread::scope(|scope| {
        let (sets, board) = (&sets, &board);
        let replacing = load
            .replaces
            .then(|| scope.spawn(|| replace(host, sets, board, &is_over).map_err(told)));
        let one = |(sender, channels)| {
            let begin = begin + each.mul_f64(sender as f64 / f64::from(senders));
            let requests = load.requests / u64::from(senders);
            move || send(channels, (begin, each, requests), sets, board).map_err(told)
        };
        let senders = of_senders.into_iter().enumerate().map(|of| scope.spawn(one(of)));
        let senders: Vec<_> = senders.collect();
        let mut all = Replaced::default();
        let mut error = None;
        for sender in senders {
            match sender.join().map_err(|_| "a sender panicked".to_owned()).flatten() {
                Ok((wrong, times)) => {
                    all.wrong += wrong;
                    all.times.extend(times);
                }
                Err(why) => error = Some(why),
            }
        }
        is_over.store(true, Relaxed);
        let longest = replacing.map(|thread| {
            thread.join().map_err(|_| "who replaces weights panicked".to_owned()).flatten()
        });
        match (error, longest.transpose()) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(longest)) => Ok(Replaced { longest: longest.unwrap_or_default(), ..all }),
        }
    });
    let mut all = result?;
    all.replaced = board.replaced.load(Relaxed);
    all.times.sort_unstable();
    kernel.terminate(LONG)?;
    Ok(all)
}

/// What an error says: the error of a thread goes to another one.
fn told(error: Box<dyn std::error::Error>) -> String {
    error.to_string()
}

/// Makes the weights of the other set and names them, until it is over; the longest that this took. Those from before are dropped here and not by
/// who sends, when nobody names them any more.
fn replace(host: &Runtime, sets: &Sets, board: &Board, is_over: &AtomicBool) -> Done<Duration> {
    let (mut longest, mut before) = (Duration::ZERO, Vec::new());
    while !is_over.load(Relaxed) {
        let (begun, set) = (Instant::now(), 1 - board.current().set);
        let weights = host.frozen_buffer(&sets.words[set], LONG)?;
        before.push(mem::replace(&mut *board.current(), Arc::new(Current { weights, set })));
        before.retain(|current| Arc::strong_count(current) > 1);
        board.replaced.fetch_add(1, Relaxed);
        longest = longest.max(begun.elapsed());
    }
    Ok(longest)
}

/// A channel, and what it was asked and has not answered.
type Open = (Channel<Mlp>, VecDeque<Asked>);

/// Sends so many requests, each when it is due, to the channels by turns; how many answers were wrong, and how long each took.
fn send(
    mut channels: Vec<Open>,
    (begin, each, requests): (Instant, Duration, u64),
    sets: &Sets,
    board: &Board,
) -> Done<(u64, Vec<u32>)> {
    let (mut wrong, mut times) = (0, Vec::with_capacity(requests as usize));
    let mut version = board.replaced.load(Relaxed);
    let mut current = Arc::clone(&board.current());
    let (mut sent, turns) = (0, channels.len() as u64);
    let mut patience = Instant::now() + LONG;
    while (times.len() as u64) < requests {
        let due = begin + each.mul_f64(sent as f64);
        if sent < requests && Instant::now() >= due {
            let replaced = board.replaced.load(Relaxed);
            if replaced != version {
                (version, current) = (replaced, Arc::clone(&board.current()));
            }
            let (channel, open) = &mut channels[(sent % turns) as usize];
            let (turn, input) = (sent / turns, sent as usize % INPUTS);
            let weights = part(current.weights.reference(), turn / IN_A_ROW + sent % turns);
            match channel.try_send(MlpRequest { x: sets.x[input], weights }) {
                Ok(()) => {
                    open.push_back(Asked { due, set: current.set, input });
                    sent += 1;
                }
                Err(TrySendError::Full(_)) => {}
                Err(error) => return Err(error.to_string().into()),
            }
        }
        let before = times.len();
        for (channel, open) in &mut channels {
            while !open.is_empty()
                && let Ok(answer) = channel.try_recv()
            {
                let Some(asked) = open.pop_front() else { break };
                wrong += u64::from(!sets.is_right(&asked, &answer));
                times.push(u32::try_from(asked.due.elapsed().as_nanos()).unwrap_or(u32::MAX));
            }
        }
        if times.len() > before {
            patience = Instant::now() + LONG;
        } else if Instant::now() > patience {
            return Err(format!("{} of {requests} requests were answered", times.len()).into());
        }
    }
    Ok((wrong, times))
}

/// The weights of one of the perceptrons that are there.
fn part(all: BufferRef<u32>, which: u64) -> BufferRef<u32> {
    let at = MLP_BUFFER_WORDS * (which as usize % (all.len() / MLP_BUFFER_WORDS));
    all.slice(at..at + MLP_BUFFER_WORDS).unwrap_or(all)
}
