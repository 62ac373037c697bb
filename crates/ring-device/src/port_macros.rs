//! What [`ring_kernel!`](crate::ring_kernel) makes of a kernel with ports.

/// A kernel with ports and its handler: the scope, the handler's trait and what that has besides, parameters before the
/// request, the request, `out`, and in brackets the type of what the handler returns, if it does.
#[doc(hidden)]
#[macro_export]
macro_rules! __emits {
    ($name:ident $given:tt $scope:ident $trait:ident [$($item:item)*]
        [$($p:tt: $P:ty,)*] $q:tt: $Q:ty, $o:tt, [] $body:block
    ) => {
        $crate::__ports! { $name $given $Q, $scope }
        impl $crate::$trait for $name {
            $($item)*
            #[inline(always)]
            fn handle($($p: $P,)* $q: &$Q, $o: &mut $crate::Ports<'_, $name>) $body
        }
    };
    ($name:ident $given:tt $scope:ident $trait:ident [$($item:item)*]
        [$($p:tt: $P:ty,)*] $q:tt: $Q:ty, $o:tt, [$R:ty] $body:block
    ) => {
        $crate::__ports! { $name $given $Q, $scope, $R }
        impl $crate::$trait for $name {
            $($item)*
            #[inline(always)]
            #[allow(unused_braces, clippy::redundant_closure_call)] // the body may return
            fn handle($($p: $P,)* $q: &$Q, out: &mut $crate::Ports<'_, $name>) {
                let reply = {
                    let $o = &mut *out;
                    (|| -> $R { $body })()
                };
                out.emit($name::REPLY, reply);
            }
        }
    };
}

/// A kernel with ports: its traits, and a constant for each port. Behind the scope may stand the type of a reply, for which there is
/// one port more.
#[doc(hidden)]
#[macro_export]
macro_rules! __ports {
    ($name:ident [$consts:tt $checks:tt $slot:tt $ports:tt [$every:tt [$($tick:tt)+]]] $($rest:tt)*) => {
        $crate::__kernel! { $name [$consts $checks $slot [] [$every [$($tick)+]]] (), (), Emit }
    };
    ($name:ident [$consts:tt $checks:tt $slot:tt [] $tick:tt] $Q:ty, $scope:ident) => {
        $crate::__ports! { $name [$consts $checks $slot [{}] $tick] $Q, $scope }
    };
    ($name:ident [$consts:tt $checks:tt $slot:tt [] $tick:tt] $Q:ty, $scope:ident, $R:ty) => {
        $crate::__ports! { $name [$consts $checks $slot [{}] $tick] $Q, $scope, $R }
    };
    ($name:ident [
        $consts:tt $checks:tt $slot:tt
        [{ $($(#[$doc:meta])* $port:ident: [$M:ty; $most:expr] $(by $key:expr)?),* $(,)? }]
        $tick:tt
    ] $Q:ty, $scope:ident, $R:ty) => {
        $crate::__ports! { $name [$consts $checks $slot [{
            $($(#[$doc])* $port: [$M; $most] $(by $key)?,)*
            /// What the handler returns for each request.
            REPLY: [$R; 1],
        }] $tick] $Q, $scope }
    };
    ($name:ident [
        [$($consts:tt)*] [$($checks:tt)*] $slot:tt
        [{ $($(#[$doc:meta])* $port:ident: [$M:ty; $most:expr] $(by $key:expr)?),* $(,)? }]
        $tick:tt
    ] $Q:ty, $scope:ident) => {
        $crate::__messages!($name, $Q, $Q, $slot);
        impl $crate::Kernel for $name {
            $($consts)*
            type Request = $Q;
            /// There are no answers: the least that a ring may hold.
            type Response = ::core::primitive::u32;
            type Scope = $crate::$scope;
        }
        $crate::__port! { $name [0] $([$(#[$doc])* $port: $M])* }
        const _: () = {
            #[allow(unused_variables, unused_mut)]
            impl $crate::WithPorts for $name {
                const PORTS: &'static [$crate::ports::PortShape] = &[$(
                    $crate::ports::PortShape::of::<$M>(
                        ::core::stringify!($port),
                        $most,
                        $crate::__or!([$({ let _: fn(&$M) -> ::core::primitive::u32 = $key; true })?] false),
                    )
                ),*];

                #[inline(always)]
                unsafe fn key(
                    port: ::core::primitive::usize,
                    message: *const ::core::primitive::u8,
                ) -> ::core::primitive::u32 {
                    $($(
                        if port == $name::$port.index() {
                            let key: fn(&$M) -> ::core::primitive::u32 = $key;
                            // SAFETY: the caller's promise: it is an aligned message of that port.
                            return key(unsafe { &*message.cast::<$M>() });
                        }
                    )?)*
                    0
                }
            }
            $crate::ports::check::<$name>();
        };
        $($checks)*
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "`ports` takes `NAME: [Message; most]` or `NAME: [Message; most] by |message| key`, separated by commas; \
             `most` is how many messages a handler emits there at most for one request"
        );
    };
}

/// The constants of a kernel's ports, one after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! __port {
    ($name:ident [$n:expr]) => {};
    ($name:ident [$n:expr] [$(#[$doc:meta])* $port:ident: $M:ty] $($rest:tt)*) => {
        impl $name {
            $(#[$doc])*
            pub const $port: $crate::Port<$name, { $n }> = $crate::Port::NEW;
        }
        impl $crate::HasPort<{ $n }> for $name {
            type Message = $M;
        }
        $crate::__port! { $name [$n + 1] $($rest)* }
    };
}
