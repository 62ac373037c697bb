//! A + B = C, the suite of `ring validate`: 10 elements, 25 (all that fit a message), 100 (in the payload
//! arena), and around those.

use ring_host::kernels::{INLINE_ELEMENTS, VectorAdd, VectorAddRequest, status};
use ring_host::{KernelHandle, LaunchConfig, Runtime};
use ring_tests::{LONG, on_each_device};

fn active(runtime: &Runtime) -> KernelHandle<VectorAdd> {
    let mut kernel = runtime.launch::<VectorAdd>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

#[test]
fn sums_are_right() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime);
        for len in [1, 2, 10, 24, 25, 26, 100, 1000, 5461] {
            let a: Vec<f32> = (0..len).map(|i| i as f32 * 0.5 - len as f32).collect();
            let b: Vec<f32> = (0..len).map(|i| (i * i % 977) as f32).collect();
            let mut c = vec![f32::NAN; len];
            kernel.add(&a, &b, &mut c, LONG).unwrap();
            for i in 0..len {
                assert_eq!(c[i], a[i] + b[i], "element {i} of {len} on {}", runtime.device().name);
            }
        }
        kernel.terminate(LONG).unwrap();
    });
}

/// Vectors that fill their arena, or nearly: whether the three lie at multiples of 32 bytes or not, nothing but the sum's own
/// elements comes back.
#[test]
fn sums_are_right_in_arenas_that_are_full() {
    on_each_device(|runtime| {
        for (len, more) in
            [26, 27, 32, 99, 100].iter().flat_map(|len| [0, 40, 96].map(|m| (*len, m)))
        {
            let launch = LaunchConfig::default().payload_bytes(12 * len + more);
            let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
            kernel.activate(LONG).unwrap();
            kernel.write_payload(0, &vec![f32::NAN; 3 * len], LONG).unwrap();
            for round in 0..2 {
                let a: Vec<f32> = (0..len).map(|i| (i * round) as f32).collect();
                let b: Vec<f32> = (0..len).map(|i| 0.5 - i as f32).collect();
                let mut c = vec![f32::NAN; len];
                kernel.add(&a, &b, &mut c, LONG).unwrap();
                let right = a.iter().zip(&b).map(|(a, b)| a + b);
                assert!(c.iter().copied().eq(right), "{len} elements and {more} bytes: {c:?}");
            }
            kernel.terminate(LONG).unwrap();
        }
    });
}

/// What a host should never send is refused by the device, and the next request is answered.
#[test]
fn impossible_requests_are_refused() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime);
        let arena = kernel.payload_bytes() as u64;
        let mut refused = |request: VectorAddRequest, expected| {
            kernel.send(request, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap().status, expected, "{request:?}");
        };
        let inline = VectorAddRequest::inline(&[1.0], &[2.0]).unwrap();
        refused(VectorAddRequest { len: 0, ..inline }, status::BAD_LENGTH);
        let too_long = INLINE_ELEMENTS as u32 + 1;
        refused(VectorAddRequest { len: too_long, ..inline }, status::BAD_LENGTH);
        refused(VectorAddRequest { len: u32::MAX, ..inline }, status::BAD_LENGTH);
        refused(VectorAddRequest::in_payload(1, arena - 8), status::BAD_PAYLOAD);
        refused(VectorAddRequest::in_payload(1, 2), status::BAD_PAYLOAD);
        refused(VectorAddRequest::in_payload(1, u64::MAX - 3), status::BAD_PAYLOAD);
        refused(VectorAddRequest::in_payload(u32::MAX, 0), status::BAD_PAYLOAD);
        refused(inline, status::INLINE);
    });
}

#[test]
fn payload_survives_the_copies() {
    on_each_device(|runtime| {
        let launch = LaunchConfig::default().payload_bytes(1 << 20);
        let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
        let words: Vec<u32> = (0..1 << 18).map(|i: u32| i.wrapping_mul(2654435761)).collect();
        kernel.write_payload(0, &words, LONG).unwrap();
        let mut back = vec![0u32; words.len() - 5];
        kernel.read_payload(20, &mut back, LONG).unwrap();
        assert_eq!(back, words[5..]);
    });
}

/// An answer that came too late for its own call is not taken for the next one's.
#[test]
fn late_answers_do_not_shift_the_sums() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime);
        for i in 0..50 {
            let (a, b, mut c) = ([i as f32; 10], [0.5; 10], [0.0; 10]);
            // As if these calls had given up before their answers came.
            for late in 0..i % 4 {
                let request = VectorAddRequest::inline(&[late as f32], &[0.25]).unwrap();
                kernel.send(request, LONG).unwrap();
            }
            kernel.add(&a, &b, &mut c, LONG).unwrap();
            assert_eq!(c, [i as f32 + 0.5; 10]);
        }
    });
}

#[test]
fn a_block_may_not_write_beyond_its_response() {
    let runtime = ring_tests::cpu();
    let mut kernel = runtime.launch::<ring_tests::Stray>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    assert_eq!(kernel.try_send_batch(&[1u32, 2, 3]).unwrap(), 3);
    for request in 1..=3 {
        assert_eq!(kernel.recv(LONG).unwrap(), [request; 4]);
    }
}
