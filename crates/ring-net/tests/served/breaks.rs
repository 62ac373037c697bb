//! Connections that break and servers that die while clients call, in one process: nothing is lost in silence, and nothing is handled twice.

use crate::cut::{Cut, End};
use crate::kernel::{Caller, Counting, LONG, launch, serve};
use ring_net::transport::{Connection, Listener};
use ring_net::{ClientConfig, RemoteChannel};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Numbers that look drawn at random.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % most
    }
}

/// What a test's clients have done, all together.
#[derive(Debug, Default)]
struct Done {
    breaks: AtomicU64,
    answered: AtomicU64,
    unknown: AtomicU64,
    is_over: AtomicBool,
}

/// So many clients send so many requests each over connections that are cut so often each, while servers are killed so often.
fn breaks<C: Connection + 'static, L: Listener + 'static>(
    connect: impl Fn() -> C + Sync,
    listen: impl Fn() -> L + Sync,
    [clients, all, cuts, kills]: [u64; 4],
) {
    let done = Done::default();
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut drawn = Drawn(99);
            for life in 0..=kills {
                let (_runtime, mut kernel) = launch();
                let cut = Cut::default();
                let mut server = serve(&mut kernel, End(listen(), cut.clone()));
                let begun = Instant::now();
                let lives = Duration::from_millis(20 + drawn.below(40));
                server
                    .run(|| done.is_over.load(SeqCst) || life < kills && begun.elapsed() > lives)
                    .unwrap();
                if done.is_over.load(SeqCst) {
                    return server.counts();
                }
                // As if it had been killed: it tells nobody.
                cut.set(true, true);
                drop(server);
                kernel.terminate(LONG).unwrap();
            }
            unreachable!("the last one lives until all is over");
        });
        let callers: Vec<_> = (0..clients)
            .map(|client| {
                let (connect, done) = (&connect, &done);
                scope.spawn(move || {
                    let cut = Cut::default();
                    let channel = RemoteChannel::<Counting>::open(
                        End(connect(), cut.clone()),
                        ClientConfig::default(),
                        LONG,
                    );
                    let mut caller = Caller::new(channel.unwrap(), client, all);
                    let mut drawn = Drawn(client + 1);
                    let (mut left, mut progress) = (cuts, (Instant::now(), 0));
                    while !caller.is_done() {
                        caller.step();
                        let answered = caller.answered + caller.unknown.len() as u64;
                        if answered != progress.1 {
                            progress = (Instant::now(), answered);
                        }
                        assert!(
                            progress.0.elapsed() < LONG,
                            "client {client} stands at {answered}"
                        );
                        // A cut for each part of its requests.
                        if left > 0 && answered >= all * (cuts - left) / cuts {
                            left -= 1;
                            done.breaks.fetch_add(1, SeqCst);
                            let ways = drawn.below(3);
                            cut.set(ways != 0, ways != 1);
                            for _ in 0..drawn.below(20) {
                                caller.step();
                            }
                            cut.set(false, false);
                        }
                        std::thread::yield_now();
                    }
                    done.answered.fetch_add(caller.answered, SeqCst);
                    done.unknown.fetch_add(caller.unknown.len() as u64, SeqCst);
                })
            })
            .collect();
        let ends: Vec<_> = callers.into_iter().map(|caller| caller.join()).collect();
        done.is_over.store(true, SeqCst);
        let counts = server.join().unwrap();
        for end in ends {
            end.unwrap();
        }
        assert_eq!(done.breaks.load(SeqCst), clients * cuts);
        let [answered, unknown] = [&done.answered, &done.unknown].map(|count| count.load(SeqCst));
        assert_eq!(answered + unknown, clients * all);
        if kills == 0 {
            assert_eq!((unknown, counts.requests), (0, clients * all), "{counts:?}");
        }
        assert!(
            unknown <= kills * clients * 64,
            "no more than a server's window, each time: {unknown}"
        );
        println!("{answered} answered, {unknown} unknown; the last server: {counts:?}");
    });
}

#[cfg(all(feature = "iceoryx2", target_os = "linux"))]
mod shared_memory {
    use super::breaks;
    use ring_net::shared_memory::{Config, connect, listen};

    fn run(name: &str, numbers: [u64; 4]) {
        let name = format!("breaks/{name}-{}", std::process::id());
        let connect = || connect(&name, &Config::default()).unwrap();
        breaks(connect, || listen(&name, &Config::default()).unwrap(), numbers);
    }

    #[test]
    fn connections_that_break_lose_nothing() {
        run("connections", [8, 125_000, 125, 0]);
    }

    #[test]
    fn of_servers_that_die_only_what_was_on_its_way_is_unknown() {
        run("servers", [4, 50_000, 20, 20]);
    }
}

#[cfg(feature = "zenoh")]
mod network {
    use super::breaks;
    use crate::kernel::{free_endpoint, served_again};
    use ring_net::network::{Endpoints, connect};

    fn run(name: &str, numbers: [u64; 4]) {
        let endpoint = free_endpoint();
        let connect = || connect(name, Endpoints::to(&endpoint).config().unwrap()).unwrap();
        breaks(connect, || served_again(name, &endpoint), numbers);
    }

    #[test]
    fn connections_that_break_lose_nothing() {
        run("connections", [4, 50_000, 50, 0]);
    }

    #[test]
    fn of_servers_that_die_only_what_was_on_its_way_is_unknown() {
        run("servers", [3, 20_000, 10, 5]);
    }
}
