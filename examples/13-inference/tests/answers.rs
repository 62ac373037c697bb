//! What the networks answer is what they should, on every device, for many streams and with weights that are replaced.

use ring_host::{BufferRef, DeviceKind, KernelHandle, LaunchConfig, Runtime};
use ring_inference::replacing::{self, Load, Replaced};
use ring_inference::tensors::made;
use ring_inference::{LONG, lstm, mlp};
use ring_tests::kernels::{of_whole_device, on_each_device_of_whole_device as on_each_device};
use ring_whole_device_kernels::{
    LSTM_BUFFER, LSTM_STATE, Lstm, LstmAnswer, LstmBatch, LstmRequest, MLP_BUFFER_WORDS, Mlp,
    MlpAnswer, MlpRequest,
};

/// No answer is farther off.
const MOST: f64 = 2e-6;

fn perceptron(host: &Runtime, threads: u32) -> KernelHandle<Mlp> {
    let launch = LaunchConfig::default().kernels(of_whole_device::<Mlp>()).threads(threads);
    let mut kernel = host.launch(launch.channels(2)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn ask(kernel: &mut KernelHandle<Mlp>, channel: u32, request: MlpRequest) -> MlpAnswer {
    let channel = kernel.channel(channel).unwrap();
    channel.send(request, LONG).unwrap();
    channel.recv(LONG).unwrap()
}

#[track_caller]
fn is_near(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let off = (f64::from(*found) - expected).abs();
        assert!(off < MOST, "{found} where {expected} is right");
    }
}

#[test]
fn a_perceptron_answers_by_the_weights_that_a_request_names() {
    on_each_device(|host| {
        let both = [mlp::Weights::made(), mlp::Weights::other()];
        let buffers = both.each_ref().map(|weights| weights.buffer(host).unwrap());
        for threads in [32, 256, 512] {
            let mut kernel = perceptron(host, threads);
            for request in 0..12 {
                // Three requests by the same weights, and then by the others; channels by turns.
                let (which, x) = (request / 3 % 2, mlp::inputs(request));
                let asked = MlpRequest { x, weights: buffers[which].reference() };
                let answer = ask(&mut kernel, request as u32 % 2, asked);
                assert_eq!(answer.done, 1);
                is_near(&answer.y, &both[which].rounded().reference(&x));
            }
            // Those that are no whole weights are refused, and the ones before are still there.
            let short = buffers[0].reference().slice(1..MLP_BUFFER_WORDS).unwrap();
            for weights in [short, BufferRef::from_parts(0, 0, 0, MLP_BUFFER_WORDS as u32)] {
                let refused = ask(&mut kernel, 0, MlpRequest { x: mlp::inputs(0), weights });
                assert_eq!(refused, MlpAnswer { y: [0.0; 16], done: 0, unused: [0; 3] });
            }
            let x = mlp::inputs(5);
            let again = MlpRequest { x, weights: buffers[1].reference() };
            is_near(&ask(&mut kernel, 0, again).y, &both[1].rounded().reference(&x));
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn weights_that_are_not_frozen_are_refused() {
    on_each_device(|host| {
        let words = mlp::Weights::made().words();
        let buffer = host.buffer(words.len()).unwrap();
        buffer.upload(0, &words, LONG).unwrap();
        let mut kernel = perceptron(host, 64);
        let asked = MlpRequest { x: mlp::inputs(0), weights: buffer.reference() };
        assert_eq!(ask(&mut kernel, 0, asked).done, 0);
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn no_answer_is_by_weights_that_its_request_did_not_name() {
    on_each_device(|host| {
        let load = Load {
            channels: 2,
            senders: 1,
            rate: 1e5,
            requests: 3000,
            replaces: true,
            bytes: 3 * 4 * MLP_BUFFER_WORDS,
        };
        let Replaced { replaced, wrong, times, .. } = replacing::run(host, load).unwrap();
        assert_eq!((wrong, times.len()), (0, 3000), "replaced {replaced} times");
        for rate in [0.0, -1.0, f64::NAN] {
            assert!(replacing::run(host, Load { rate, ..load }).is_err(), "{rate}");
        }
    });
}

#[test]
fn a_plain_function_gives_the_same() {
    let (weights, words) = (mlp::Weights::made().rounded(), mlp::Weights::made().words());
    for request in 0..10 {
        let x = mlp::inputs(request);
        is_near(&mlp::plain(&words, &x), &weights.reference(&x));
    }
}

#[test]
fn an_lstm_keeps_the_state_of_each_stream() {
    on_each_device(|host| {
        let is_gpu = host.device().kind == DeviceKind::Cuda;
        let both = [lstm::Weights::made(), lstm::Weights::other()];
        let buffers = both.each_ref().map(|weights| weights.buffer(host).unwrap());
        let all: &[u32] = if is_gpu { &[65, 129, 100] } else { &[1] };
        for blocks in all.iter().copied() {
            let launch = LaunchConfig::default().kernels(of_whole_device::<Lstm>());
            let mut kernel: KernelHandle<Lstm> = host.launch(launch.blocks(blocks)).unwrap();
            kernel.activate(LONG).unwrap();
            let states = lstm::states(host, 3).unwrap();
            let mut references = [(); 3].map(|()| lstm::Reference::default());
            let mut ask = |step: usize, stream: usize, weights: BufferRef<f32>| -> LstmAnswer {
                let asked = LstmRequest {
                    x: lstm::features(step, stream),
                    weights,
                    state: states.reference(),
                    stream: stream as u32,
                };
                kernel.send(asked, LONG).unwrap();
                kernel.recv(LONG).unwrap()
            };
            for n in 0..8 {
                for (stream, reference) in references.iter_mut().enumerate() {
                    let which = n / 5;
                    let answer = ask(n, stream, buffers[which].reference());
                    assert_eq!(answer.done, 1, "{blocks} blocks");
                    let x = lstm::features(n, stream);
                    is_near(&answer.y, &reference.step(&both[which], &x));
                }
            }
            // Weights of another length are refused, and the stream stays where it was.
            let short = buffers[0].reference().slice(4..LSTM_BUFFER).unwrap();
            assert_eq!(ask(8, 0, short), LstmAnswer { y: [0.0; 16], done: 0 });
            let x = lstm::features(8, 0);
            let next = ask(8, 0, buffers[1].reference());
            is_near(&next.y, &references[0].step(&both[1], &x));
            let of_nobody = ask(0, 3, buffers[0].reference());
            assert!(of_nobody.done == 0 && of_nobody.y.iter().all(|y| y.is_nan()), "{of_nobody:?}");
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn a_grid_of_too_few_blocks_refuses_what_it_cannot_hold() {
    on_each_device(|host| {
        let blocks = if host.device().kind == DeviceKind::Cuda { 64 } else { 2 };
        let weights = lstm::Weights::made().buffer(host).unwrap();
        let states = lstm::states(host, 1).unwrap();
        let launch = LaunchConfig::default().kernels(of_whole_device::<Lstm>()).blocks(blocks);
        let mut kernel: KernelHandle<Lstm> = host.launch(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let asked = LstmRequest {
            x: lstm::features(0, 0),
            weights: weights.reference(),
            state: states.reference(),
            stream: 0,
        };
        kernel.send(asked, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap().done, 0);
        assert_eq!(states.len(), LSTM_STATE);
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn streams_take_their_steps_together() {
    on_each_device(|host| {
        let is_gpu = host.device().kind == DeviceKind::Cuda;
        let both = [lstm::Weights::made(), lstm::Weights::other()];
        let buffers = both.each_ref().map(|weights| weights.buffer(host).unwrap());
        // Three teams, and blocks of none; as many as the device has.
        let all: &[u32] = if is_gpu { &[24, 29, 128] } else { &[3] };
        for blocks in all.iter().copied() {
            const STREAMS: usize = 150;
            let launch = LaunchConfig::default().kernels(of_whole_device::<LstmBatch>());
            let mut batches =
                lstm::Batches::launch(host, launch.blocks(blocks), (STREAMS, 140)).unwrap();
            let mut references = vec![(0, lstm::Reference::default()); STREAMS];
            let mut outputs = Vec::new();
            // Fewer than a team has at a time, as many, one more; and streams in any order.
            for (n, steps) in [1, 9, 64, 65, 140, 3].into_iter().enumerate() {
                let streams: Vec<u32> = (0..steps).map(|k| (k * 7 + n as u32) % 150).collect();
                let inputs: Vec<_> = streams
                    .iter()
                    .map(|stream| lstm::features(references[*stream as usize].0, *stream as usize))
                    .collect();
                let which = n / 4;
                batches.send(buffers[which].reference(), &streams, &inputs).unwrap();
                batches.recv(&mut outputs).unwrap();
                assert_eq!(outputs.len(), steps as usize, "{blocks} blocks");
                for ((stream, x), y) in streams.iter().zip(&inputs).zip(&outputs) {
                    let (step, reference) = &mut references[*stream as usize];
                    is_near(y, &reference.step(&both[which], x));
                    *step += 1;
                }
            }
            batches.terminate().unwrap();
        }
    });
}

#[test]
fn a_batch_that_is_refused_takes_no_step() {
    on_each_device(|host| {
        let is_gpu = host.device().kind == DeviceKind::Cuda;
        let weights = lstm::Weights::made();
        let buffer = weights.buffer(host).unwrap();
        let launch = || LaunchConfig::default().kernels(of_whole_device::<LstmBatch>());
        let blocks = if is_gpu { 16 } else { 2 };
        let mut batches = lstm::Batches::launch(host, launch().blocks(blocks), (80, 80)).unwrap();
        let (mut outputs, mut references) = (Vec::new(), vec![lstm::Reference::default(); 80]);
        let all: Vec<u32> = (0..80).collect();
        let features = |step| all.iter().map(|k| lstm::features(step, *k as usize)).collect();
        let [first, second]: [Vec<[f32; 32]>; 2] = [0, 1].map(features);
        let steps =
            |references: &mut [lstm::Reference], inputs: &[[f32; 32]], found: &[[f32; 16]]| {
                for ((reference, x), y) in references.iter_mut().zip(inputs).zip(found) {
                    is_near(y, &reference.step(&weights, x));
                }
            };
        batches.send(buffer.reference(), &all, &first).unwrap();
        batches.recv(&mut outputs).unwrap();
        steps(&mut references, &first, &outputs);
        // Streams that are not there, the last of them in the last batch of a team; and weights that are no whole ones.
        let mut others = all.clone();
        others[79] = 80;
        let short = buffer.reference().slice(4..LSTM_BUFFER).unwrap();
        let nowhere = BufferRef::from_parts(0, 0, 0, LSTM_BUFFER as u32);
        for (weights, streams) in [(buffer.reference(), &others), (short, &all), (nowhere, &all)] {
            batches.send(weights, streams, &second).unwrap();
            let why = batches.recv(&mut outputs).unwrap_err().to_string();
            assert!(why.starts_with("the batch was refused"), "{why}");
        }
        // Two batches under way, and no more.
        assert!(batches.recv(&mut outputs).is_err());
        batches.send(buffer.reference(), &all, &second).unwrap();
        batches.send(buffer.reference(), &all[..1], &first[..1]).unwrap();
        assert!(batches.send(buffer.reference(), &all, &second).is_err());
        batches.recv(&mut outputs).unwrap();
        steps(&mut references, &second, &outputs);
        batches.recv(&mut outputs).unwrap();
        steps(&mut references, &first[..1], &outputs);
        for (streams, inputs) in [(&all[..2], &first[..1]), (&[0; 81], &[[0.0; 32]; 81])] {
            let why = batches.send(buffer.reference(), streams, inputs).unwrap_err().to_string();
            assert!(why.ends_with("and at most 80"), "{why}");
        }
        batches.terminate().unwrap();
        // Blocks of no whole team take none, and of one 64.
        let (few, limit) = if is_gpu { (15, 64) } else { (1, 64) };
        for most in [limit, limit + 1] {
            let launched = lstm::Batches::launch(host, launch().blocks(few), (1, most));
            assert_eq!(launched.is_ok(), most == limit, "{most}");
            if let Ok(batches) = launched {
                batches.terminate().unwrap();
            }
        }
    });
}

#[test]
fn numbers_that_are_made_are_those_of_other_programs() {
    // As `baselines/graphs.cu` and `baselines/torch_graphs.py` have them.
    let of = |whole: f32| whole / 16_777_216.0 - 0.5;
    assert_eq!(made(0, 2, 1.0), [of(14819496.0), of(9505325.0)]);
    assert!(made(5, 1000, 2.0).iter().all(|x| (-1.0..1.0).contains(x)));
}
