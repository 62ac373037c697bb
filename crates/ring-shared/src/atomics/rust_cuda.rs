//! Atomics by Rust-CUDA. Its compiler makes read-modify-writes of core's loads and stores, which the bus
//! does not carry, and refuses core's fences; cuda_std has the instructions, at system scope.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::Ordering;
use cuda_std::atomic::mid;

macro_rules! atomic {
    ($name:ident, $word:ty, $load:ident, $store:ident) => {
        #[doc = concat!("A `", stringify!($word), "` that both sides of the bus load and store.")]
        #[repr(transparent)]
        pub struct $name(UnsafeCell<$word>);

        // SAFETY: shared references reach the word by atomic instructions only, but for `as_ptr`, whose
        // users say what they do with it.
        unsafe impl Sync for $name {}

        impl $name {
            /// One that holds `value`.
            pub const fn new(value: $word) -> Self {
                $name(UnsafeCell::new(value))
            }

            /// Where it is.
            #[inline(always)]
            pub const fn as_ptr(&self) -> *mut $word {
                self.0.get()
            }

            /// What it holds. Not with an order that releases.
            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $word {
                // SAFETY: our own word, aligned, alive as long as `self`.
                unsafe { mid::$load(self.as_ptr(), order) }
            }

            /// Makes it hold `value`. Not with an order that acquires.
            #[inline(always)]
            pub fn store(&self, value: $word, order: Ordering) {
                // SAFETY: our own word, aligned, alive as long as `self`.
                unsafe { mid::$store(self.as_ptr(), order, value) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.load(Ordering::Relaxed).fmt(f)
            }
        }
    };
}

atomic!(AtomicU32, u32, atomic_load_32_system, atomic_store_32_system);
atomic!(AtomicU64, u64, atomic_load_64_system, atomic_store_64_system);

/// Orders accesses at system scope.
#[inline(always)]
pub fn fence(order: Ordering) {
    mid::system_thread_fence(order);
}
