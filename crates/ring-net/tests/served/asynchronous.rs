//! A channel as `Stream` and `Sink`.

use crate::kernel::{Counting, LONG, Request, launch, serve};
use futures_executor::block_on;
use futures_util::{SinkExt, StreamExt};
use ring_net::asynchronous::AnswerError;
use ring_net::shared_memory::{Config, connect, listen};
use ring_net::{ClientConfig, RemoteChannel};
use std::time::Duration;

const ALL: u64 = 5_000;

#[test]
fn requests_go_into_a_sink_and_answers_come_out_of_a_stream() {
    let name = format!("async-{}", std::process::id());
    let (_runtime, mut kernel) = launch();
    let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connection = connect(&name, &Config::default()).unwrap();
            // A task that has waited for a moment is woken by a thread.
            let config = ClientConfig::default().look_for(Duration::from_micros(50));
            let channel = RemoteChannel::<Counting>::open(connection, config, LONG).unwrap();
            let (mut requests, mut answers) = channel.into_async().split();
            let sending = async {
                for number in 0..ALL {
                    requests.send(Request { client: 9, number }).await.unwrap();
                }
                requests.close().await.unwrap();
            };
            let receiving = async {
                for number in 0..ALL {
                    let answer = answers.next().await.unwrap().unwrap();
                    assert_eq!((answer.number, answer.handled), (number, number + 1));
                }
            };
            block_on(async { futures_util::join!(sending, receiving) });
            requests.reunite(answers).unwrap()
        });
        server.run(|| client.is_finished()).unwrap();
        let mut channel = client.join().unwrap();
        // A server that dies is told in the stream, which goes on with the next one.
        block_on(channel.send(Request { client: 9, number: ALL })).unwrap();
        drop(server);
        kernel.terminate(LONG).unwrap();
        let (_runtime, mut kernel) = launch();
        let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
        let client = scope.spawn(move || {
            block_on(async {
                channel.send(Request { client: 9, number: ALL + 1 }).await.unwrap();
                // The server ended before it had read the first one, and said so; or it had read it.
                match channel.next().await.unwrap() {
                    Ok(answer) => assert_eq!(answer.number, ALL),
                    Err(AnswerError::Unknown(unknown)) => assert_eq!(unknown.number, ALL),
                    Err(error) => panic!("{error}"),
                }
                assert_eq!(channel.next().await.unwrap().unwrap().number, ALL + 1);
            });
        });
        server.run(|| client.is_finished()).unwrap();
        client.join().unwrap();
    });
}
