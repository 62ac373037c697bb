//! What the kernels are asked, and what they must answer.

use crate::dice::Dice;
use crate::example;
use ring_example_kernels::{Book, BookState, FragileWarp, Order, TICKS};
use ring_host::kernels::{
    Echo, EchoMessage, INLINE_ELEMENTS, VectorAdd, VectorAddRequest, VectorAddResponse, status,
};
use ring_host::{Kernel, KernelHandle, LaunchConfig};
use ring_tests::{LONG, mixed};

/// A kernel under load: request `key` and its answer, by a model of what the channel keeps.
pub trait Load {
    type Kernel: Kernel;
    type Model: Clone + Send;
    /// How the kernel is launched.
    fn launch(launch: LaunchConfig) -> LaunchConfig;
    /// What a channel keeps at first.
    fn model() -> Self::Model;
    fn request(key: u64) -> <Self::Kernel as Kernel>::Request;
    /// Whether that is the answer.
    fn answers(
        model: &mut Self::Model,
        request: &<Self::Kernel as Kernel>::Request,
        response: &<Self::Kernel as Kernel>::Response,
    ) -> bool;
    /// Checks what the channel keeps once the kernel has ended.
    fn check(_: &mut KernelHandle<Self::Kernel>, _channel: u32, _: &Self::Model) {}
}

/// 64 bytes, a thread each.
pub struct Echoes;

impl Load for Echoes {
    type Kernel = Echo;
    type Model = ();

    fn launch(launch: LaunchConfig) -> LaunchConfig {
        launch
    }

    fn model() {}

    fn request(key: u64) -> EchoMessage {
        EchoMessage::from_seed(key)
    }

    fn answers(_: &mut (), request: &EchoMessage, response: &EchoMessage) -> bool {
        *response == request.answer()
    }
}

/// Vectors of random lengths in 216 bytes, a block each; some that are too long, and are refused.
pub struct Add;

impl Load for Add {
    type Kernel = VectorAdd;
    type Model = ();

    fn launch(launch: LaunchConfig) -> LaunchConfig {
        launch.threads(128)
    }

    fn model() {}

    fn request(key: u64) -> VectorAddRequest {
        let mut dice = Dice(key);
        let len = dice.below(INLINE_ELEMENTS as u64 + 3) as usize;
        let element = |k: usize| (mixed(key ^ k as u64) % 4096) as f32;
        let mut request = VectorAddRequest::in_payload(len as u32, 0);
        request.in_payload = 0;
        for k in 0..len.min(INLINE_ELEMENTS) {
            (request.a[k], request.b[k]) = (element(2 * k), element(2 * k + 1));
        }
        request
    }

    fn answers(_: &mut (), request: &VectorAddRequest, response: &VectorAddResponse) -> bool {
        let len = request.len as usize;
        if !(1..=INLINE_ELEMENTS).contains(&len) {
            return response.status == status::BAD_LENGTH;
        }
        let sum = |k: usize| response.c[k] == request.a[k] + request.b[k];
        response.status == status::INLINE && response.len == request.len && (0..len).all(sum)
    }
}

/// 8 bytes, a warp each.
pub struct Squares;

impl Load for Squares {
    type Kernel = FragileWarp;
    type Model = ();

    fn launch(launch: LaunchConfig) -> LaunchConfig {
        example::<Self::Kernel>(launch)
    }

    fn model() {}

    fn request(key: u64) -> u64 {
        mixed(key) | 1 << 40 // never the one that it cannot bear
    }

    fn answers(_: &mut (), request: &u64, response: &u64) -> bool {
        *response == request.wrapping_mul(*request)
    }
}

/// Orders of 16 bytes, one after the other, against a book that stays.
pub struct Books;

impl Load for Books {
    type Kernel = Book;
    type Model = Box<BookState>;

    fn launch(launch: LaunchConfig) -> LaunchConfig {
        example::<Self::Kernel>(launch)
    }

    fn model() -> Box<BookState> {
        Box::new(bytemuck::Zeroable::zeroed())
    }

    fn request(key: u64) -> Order {
        let mut dice = Dice(key);
        let (side, price) = (dice.below(2) as u32, dice.below(TICKS as u64) as u32);
        Order { side, price, quantity: 1 + dice.below(100) as u32, reserved: 0 }
    }

    fn answers(
        model: &mut Box<BookState>,
        request: &Order,
        response: &ring_example_kernels::Fill,
    ) -> bool {
        *response == model.take(request)
    }

    fn check(kernel: &mut KernelHandle<Book>, channel: u32, model: &Box<BookState>) {
        let found = kernel.read_state(channel, LONG).unwrap();
        assert!(
            found == **model,
            "the book of channel {channel} is not what its orders make of it"
        );
    }
}
