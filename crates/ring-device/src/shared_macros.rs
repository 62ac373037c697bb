//! What [`ring_kernel!`](crate::ring_kernel) makes of the block-shared memory that a kernel declares.

/// The memory that a kernel declares: its bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! __shared_bytes {
    ($name:ident) => {
        0
    };
    ($name:ident { $($(#[$doc:meta])* $part:ident: [$T:ty; $count:expr]),* $(,)? }) => {
        0 $(+ $crate::Shared::<$name, $T>::new(0, $count).end())*
    };
    ($name:ident $other:tt) => {
        0
    };
}

/// The same: a constant for each part.
#[doc(hidden)]
#[macro_export]
macro_rules! __shared {
    ($name:ident) => {};
    ($name:ident { $($(#[$doc:meta])* $part:ident: [$T:ty; $count:expr]),* $(,)? }) => {
        $crate::__shared! { @part $name [0] $([$(#[$doc])* $part: $T, $count])* }
    };
    (@part $name:ident [$at:expr]) => {};
    (@part $name:ident [$at:expr] [$(#[$doc:meta])* $part:ident: $T:ty, $count:expr] $($rest:tt)*) => {
        impl $name {
            $(#[$doc])*
            pub const $part: $crate::Shared<$name, $T> = $crate::Shared::new($at, $count);
        }
        $crate::__shared! { @part $name [$name::$part.end()] $($rest)* }
    };
    ($name:ident $other:tt) => {
        ::core::compile_error!(
            "`shared` takes `NAME: [Element; count]`, separated by commas; an element is a u32, i32, f32, u64, i64 or f64"
        );
    };
}
