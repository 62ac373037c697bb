//! What [`ring_kernel!`](crate::ring_kernel) makes of the functions of the host that a kernel's handlers call.

/// The functions of the host that a kernel calls: a constant for each, and the messages of its calls.
#[doc(hidden)]
#[macro_export]
macro_rules! __calls {
    ($name:ident) => {};
    ($name:ident { $($(#[$doc:meta])* fn $f:ident($Q:ty) -> $R:ty;)+ }) => {
        $crate::__call_constants! { $name [0] $([$(#[$doc])* $f: $Q, $R])* }
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

/// A constant for each of those functions, by which it is called.
#[doc(hidden)]
#[macro_export]
macro_rules! __call_constants {
    ($name:ident [$n:expr]) => {};
    ($name:ident [$n:expr] [$(#[$doc:meta])* $f:ident: $Q:ty, $R:ty] $($rest:tt)*) => {
        impl $name {
            $(#[$doc])*
            #[allow(non_upper_case_globals)]
            pub const $f: $crate::HostFn<$name, $Q, $R> =
                $crate::HostFn::new($n, ::core::stringify!($f));
        }
        $crate::__call_constants! { $name [$n + 1] $($rest)* }
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
