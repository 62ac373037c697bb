//! What [`ring_kernel!`](crate::ring_kernel) makes of the functions of the host that a kernel's handlers call.

/// The functions of the host that a kernel calls: a constant for each, and the messages of its calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __calls {
    ($name:ident) => {};
    ($name:ident { $($(#[$doc:meta])* fn $f:ident($Q:ty) -> $R:ty;)+ }) => {
        $crate::__constants! { $name HostFn [0] $([$(#[$doc])* $f: $Q, $R])* }
        $(
            $crate::__message!($Q);
            $crate::__message!($R);
        )*
        impl $crate::CallsHost for $name {
            type Call = $crate::__tagged!($($Q),*);
            type Answer = $crate::__room_for!(Body: $($R),*);
        }
    };
    ($name:ident $other:tt) => {
        ::core::compile_error!(
            "`calls` takes functions of the host, each as `fn name(Request) -> Answer;`"
        );
    };
}

/// The shape of a kernel's call slots.
#[doc(hidden)]
#[macro_export]
macro_rules! __calls_const {
    ($name:ident) => {
        0
    };
    ($name:ident $calls:tt) => {
        $crate::calls::shape_of::<$name>()
    };
}
