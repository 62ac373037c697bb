//! Several handlers of a kernel: each is asked and answers by its own types.

use ring_device::bytemuck::Zeroable;
use ring_device::{Kernel, Tagged};

ring_device::ring_kernel! {
    /// An account.
    pub struct Account { name: "account", }

    /// Pays in; gives the balance.
    fn pay_in(balance: &mut u64, amount: &u64) -> u64 {
        *balance = balance.wrapping_add(*amount);
        *balance
    }

    /// Whether there is as much.
    fn covers(balance: &mut u64, amount: &u64) -> u32 {
        if *amount == 7 {
            return 9;
        }
        u32::from(*balance >= *amount)
    }

    /// The same number.
    fn same(ctx: &ThreadContext, number: &[u8; 3]) -> [u8; 3] {
        let _ = ctx;
        *number
    }
}

ring_device::ring_kernel! {
    struct ByWarp;

    fn twice(ctx: &WarpContext, request: &u32, response: &Output<u32>) {
        let _ = ctx;
        response.set(0, 0, 2 * request);
    }

    fn halves(_: &WarpContext, request: &u64, response: &Output<[u32; 2]>) {
        response.set(0, 0, *request as u32);
        response.set(0, 1, (*request >> 32) as u32);
    }
}

#[test]
fn requests_have_room_for_the_largest() {
    assert_eq!(size_of::<<Account as Kernel>::Request>(), 16);
    assert_eq!(size_of::<<ByWarp as Kernel>::Response>(), 12);
    let request = Account::covers.request(5);
    assert_eq!(Account::pay_in.answer(&Account::pay_in.request(4)), Some(4));
    assert_eq!(Account::covers.answer(&request), None.or(Some(5)));
    assert_eq!(Account::covers.answer(&Tagged::zeroed()), None);
    assert_eq!(format!("{:?}", Account::same), "account::same");
    let _ = ByWarp::twice.request(1);
    let _ = ByWarp::halves.request(1);
}
