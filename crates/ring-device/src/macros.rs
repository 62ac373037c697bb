//! [`ring_kernel!`](crate::ring_kernel): a kernel from a handler.

/// Makes a ring kernel of a handler function: the type by which the host launches it, its [`Kernel`] and
/// handler traits, and for a GPU the entry point of the PTX. The CPU device needs nothing more.
///
/// ```
/// ring_device::ring_kernel! {
///     /// Squares a number.
///     pub struct Square;
///
///     fn handle(request: &u64) -> u64 {
///         request.wrapping_mul(*request)
///     }
/// }
/// # use ring_device::Kernel;
/// assert_eq!(Square::NAME, "Square");
/// ```
///
/// The signature says what the kernel is:
///
/// | `fn handle(...)` | who runs it | trait |
/// |---|---|---|
/// | `request: &Q) -> R` | a thread, many messages at once | [`ThreadHandler`] |
/// | `ctx: &ThreadContext, request: &Q) -> R` | the same, with telemetry and payload | [`ThreadHandler`] |
/// | `state: &mut S, request: &Q) -> R` | a thread, message after message, with a state | [`InOrderHandler`] |
/// | `ctx: &ThreadContext, state: &mut S, request: &Q) -> R` | the same | [`InOrderHandler`] |
/// | `ctx: &WarpContext, request: &Q, response: &Output<R>)` | a warp for each message | [`WarpHandler`] |
/// | `ctx: &BlockContext, request: &Q, response: &Output<R>)` | the whole block for each message | [`BlockHandler`] |
///
/// These emit messages to ports, and answer nothing. Such kernels are launched as those of a graph:
///
/// | `fn handle(...)` | who runs it | trait |
/// |---|---|---|
/// | `request: &Q, out: &mut Ports)` | a thread, many messages at once | [`EmitHandler`] |
/// | `state: &mut S, request: &Q, out: &mut Ports)` | a thread, message after message, with a state | [`EmitInOrderHandler`] |
/// | `state: &mut S, request: &Q)` | the same, emits nothing | [`EmitInOrderHandler`] |
/// | `ctx: &WarpContext, request: &Q, out: &mut Ports)` | a warp for each message | [`EmitWarpHandler`] |
///
/// The first three may have `ctx: &ThreadContext` first.
///
/// `Q`, `R` and `S` are plain bytes ([`bytemuck::Pod`]): derive it. Names of contexts and of [`Output`]
/// are written as in the table; they need not be imported.
///
/// Options, in this order, each may be left out:
///
/// ```
/// # use ring_device::{Kernel, bytemuck};
/// #[repr(C)]
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// pub struct Counts {
///     seen: u64,
///     most: u64,
/// }
///
/// ring_device::ring_kernel! {
///     /// Counts what it sees, and answers with the most so far.
///     pub struct Most {
///         name: "most",          // in reports and errors; the type's name if left out
///         entry: "acme_most",    // the symbol in the PTX; "ring_" and the type's name if left out
///         entry_if: feature = "module", // the entry is there only where this cfg holds
///         threads: 64,           // of a channel's block on a GPU, unless the launch says otherwise
///         slot_bytes: 16,        // does not compile if a message is larger
///         uses_payload: false,   // see Kernel::USES_PAYLOAD
///     }
///
///     fn handle(state: &mut Counts, request: &u64) -> u64 {
///         state.seen += 1;
///         state.most = state.most.max(*request);
///         state.most
///     }
/// }
/// assert_eq!((Most::NAME, Most::ENTRY, Most::THREADS), ("most", "acme_most", 64));
/// ```
///
/// The **ports** of a kernel that emits messages are an option behind `slot_bytes`: a name and a type each, the most messages that a handler
/// emits there for one request, and, if a link may choose among channels by it, a key:
///
/// ```
/// ring_device::ring_kernel! {
///     /// Splits a number into its two halves, and tells of those that are zero.
///     pub struct Split {
///         ports: {
///             /// Both halves.
///             HALVES: [u32; 2] by |half| *half,
///             /// Numbers with a half that is zero.
///             ZEROS: [u64; 1],
///         },
///     }
///
///     fn handle(request: &u64, out: &mut Ports) {
///         let halves = [*request as u32, (*request >> 32) as u32];
///         for half in halves {
///             out.emit(Split::HALVES, half);
///         }
///         if halves.contains(&0) {
///             out.emit(Split::ZEROS, *request);
///         }
///     }
/// }
/// # use ring_device::WithPorts;
/// assert_eq!(Split::PORTS[Split::ZEROS.index()].name, "ZEROS");
/// ```
///
/// Kernels of a crate that other crates of kernels depend on become entries of their modules too, unless `entry_if`
/// names a feature that is on only where the crate is compiled as a module of its own.
///
/// A handler that panics ends its channel, and the kernel answers no more (`DeviceFault::HandlerPanicked`).
/// Index with `get`, and use wrapping or checked arithmetic where a message decides.
///
/// [`Kernel`]: crate::Kernel
/// [`ThreadHandler`]: crate::ThreadHandler
/// [`InOrderHandler`]: crate::InOrderHandler
/// [`WarpHandler`]: crate::WarpHandler
/// [`BlockHandler`]: crate::BlockHandler
/// [`Output`]: crate::Output
/// [`EmitHandler`]: crate::EmitHandler
/// [`EmitInOrderHandler`]: crate::EmitInOrderHandler
/// [`EmitWarpHandler`]: crate::EmitWarpHandler
/// [`bytemuck::Pod`]: crate::bytemuck::Pod
#[macro_export]
macro_rules! ring_kernel {
    ($(#[$doc:meta])* $vis:vis struct $name:ident; $($handler:tt)*) => {
        $crate::ring_kernel! { $(#[$doc])* $vis struct $name {} $($handler)* }
    };
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $(name: $label:expr,)?
        $(entry: $entry:literal,)?
        $(entry_if: $cfg:meta,)?
        $(threads: $threads:expr,)?
        $(slot_bytes: $slot:expr,)?
        $(ports: { $($ports:tt)* } $(,)?)?
        $(uses_payload: $payload:expr $(,)?)?
    } $($handler:tt)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        $crate::__handler! {
            $name
            [
                [
                    const NAME: &'static ::core::primitive::str =
                        $crate::__or!([$($label)?] ::core::stringify!($name));
                    const ENTRY: &'static ::core::primitive::str =
                        $crate::__or!([$($entry)?] ::core::concat!("ring_", ::core::stringify!($name)));
                    const USES_PAYLOAD: ::core::primitive::bool = $crate::__or!([$($payload)?] false);
                    const THREADS: ::core::primitive::u32 =
                        $crate::__or!([$($threads)?] $crate::kernel::DEFAULT_THREADS);
                ]
                [
                    const _: () = $crate::kernel::check::<$name>();

                    $(#[cfg($cfg)])?
                    $crate::__entry!(
                        $name,
                        $crate::__or!([$($entry)?] ::core::concat!("ring_", ::core::stringify!($name)))
                    );
                ]
                [$($slot)?]
                [$({ $($ports)* })?]
            ]
            $($handler)*
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "ring_kernel! takes `struct Name;` or `struct Name { name: .., entry: .., entry_if: .., \
             threads: .., slot_bytes: .., ports: { .. }, uses_payload: .., }` (these options, in this order, each with a comma), \
             and behind it one `fn handle(..)`"
        );
    };
}

/// The first of what is in brackets, or else the rest.
#[doc(hidden)]
#[macro_export]
macro_rules! __or {
    ([] $default:expr) => {
        $default
    };
    ([$given:expr] $default:expr) => {
        $given
    };
}

/// The traits of a kernel, by the signature of its handler. In brackets is what [`__kernel`] takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __handler {
    ($name:ident $given:tt
        fn handle($s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $s: &mut $S, $q: &$Q) -> $R $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
    ) => {
        $crate::__state!($name, $S);
        $crate::__kernel! { $name $given $Q, $R, InOrder }
        impl $crate::InOrderHandler for $name {
            type State = $S;
            #[inline(always)]
            fn handle($c: &$crate::ThreadContext<'_>, $s: &mut $S, $q: &$Q) -> $R $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
    ) => {
        $crate::__kernel! { $name $given $Q, $R, Thread }
        impl $crate::ThreadHandler for $name {
            #[inline(always)]
            fn handle($c: &$crate::ThreadContext<'_>, $q: &$Q) -> $R $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &WarpContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
    ) => {
        $crate::__kernel! { $name $given $Q, $R, Warp }
        impl $crate::WarpHandler for $name {
            #[inline(always)]
            fn handle($c: &$crate::WarpContext<'_>, $q: &$Q, $o: &$crate::Output<$R>) $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &BlockContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
    ) => {
        $crate::__kernel! { $name $given $Q, $R, Block }
        impl $crate::BlockHandler for $name {
            #[inline(always)]
            fn handle($c: &$crate::BlockContext<'_>, $q: &$Q, $o: &$crate::Output<$R>) $body
        }
    };
    ($name:ident $given:tt
        fn handle($s:tt: &mut $S:ty, $q:tt: &$Q:ty $(, $o:tt: &mut Ports)? $(,)?) $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $s: &mut $S, $q: &$Q $(, $o: &mut Ports)?) $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?) $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle($c: &ThreadContext, $s: &mut $S, $q: &$Q, _: &mut Ports) $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $s:tt: &mut $S:ty, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?)
        $body:block
    ) => {
        $crate::__state!($name, $S);
        $crate::__ports! { $name $given $Q, EmitInOrder }
        impl $crate::EmitInOrderHandler for $name {
            type State = $S;
            #[inline(always)]
            fn handle(
                $c: &$crate::ThreadContext<'_>,
                $s: &mut $S,
                $q: &$Q,
                $o: &mut $crate::Ports<'_, $name>,
            ) $body
        }
    };
    ($name:ident $given:tt
        fn handle($q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?) $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $q: &$Q, $o: &mut Ports) $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?) $body:block
    ) => {
        $crate::__ports! { $name $given $Q, Emit }
        impl $crate::EmitHandler for $name {
            #[inline(always)]
            fn handle(
                $c: &$crate::ThreadContext<'_>,
                $q: &$Q,
                $o: &mut $crate::Ports<'_, $name>,
            ) $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &WarpContext, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?) $body:block
    ) => {
        $crate::__ports! { $name $given $Q, EmitWarp }
        impl $crate::EmitWarpHandler for $name {
            #[inline(always)]
            fn handle(
                $c: &$crate::WarpContext<'_>,
                $q: &$Q,
                $o: &mut $crate::Ports<'_, $name>,
            ) $body
        }
    };
    ($name:ident $given:tt
        fn handle($q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $q: &$Q) -> $R $body
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "this is not the signature of a handler; it is one of\n  \
             fn handle(request: &Q) -> R\n  \
             fn handle(ctx: &ThreadContext, request: &Q) -> R\n  \
             fn handle(state: &mut S, request: &Q) -> R\n  \
             fn handle(ctx: &ThreadContext, state: &mut S, request: &Q) -> R\n  \
             fn handle(ctx: &WarpContext, request: &Q, response: &Output<R>)\n  \
             fn handle(ctx: &BlockContext, request: &Q, response: &Output<R>)\n  \
             fn handle(request: &Q, out: &mut Ports), with a context or a state before as above\n  \
             fn handle(state: &mut S, request: &Q)\n  \
             fn handle(ctx: &WarpContext, request: &Q, out: &mut Ports)"
        );
    };
}

/// The trait that all kernels have, and what is checked of it and of its messages; nothing more is said
/// where the handler's signature is wrong.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernel {
    ($name:ident [[$($consts:tt)*] [$($checks:tt)*] $slot:tt [{ $($ports:tt)* }]] $Q:ty, $R:ty, $scope:ident) => {
        ::core::compile_error!(
            "a kernel with `ports` answers nothing: its handler takes `out: &mut Ports` and returns nothing"
        );
    };
    ($name:ident [[$($consts:tt)*] [$($checks:tt)*] $slot:tt []] $Q:ty, $R:ty, $scope:ident) => {
        $crate::__messages!($name, $Q, $R, $slot);
        impl $crate::Kernel for $name {
            $($consts)*
            type Request = $Q;
            type Response = $R;
            type Scope = $crate::$scope;
        }
        $($checks)*
    };
}

/// A kernel with ports: its traits, and a constant for each port.
#[doc(hidden)]
#[macro_export]
macro_rules! __ports {
    ($name:ident [$consts:tt $checks:tt $slot:tt []] $Q:ty, $scope:ident) => {
        $crate::__ports! { $name [$consts $checks $slot [{}]] $Q, $scope }
    };
    ($name:ident [
        [$($consts:tt)*] [$($checks:tt)*] $slot:tt
        [{ $($(#[$doc:meta])* $port:ident: [$M:ty; $most:expr] $(by $key:expr)?),* $(,)? }]
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

/// The entry point, where the target is a GPU.
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident, $symbol:expr) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "ptx-kernel" fn entry(control: *const $crate::ControlBlock) {
                // SAFETY: `ring-host` launches it with the address of a control block that it made for
                // this kernel.
                unsafe { $crate::enter::<$name>(control) }
            }
        };
    };
}

/// The entry point, where Rust-CUDA compiles.
#[cfg(all(target_arch = "nvptx64", feature = "rust-cuda"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident, $symbol:expr) => {
        const _: () = {
            // `#[kernel]` adds `no_mangle`, which this name overrides.
            #[allow(unused_attributes)]
            #[$crate::cuda_std::kernel]
            #[unsafe(export_name = $symbol)]
            unsafe fn entry(control: *const $crate::ControlBlock) {
                // SAFETY: `ring-host` launches it with the address of a control block that it made for
                // this kernel.
                unsafe { $crate::enter::<$name>(control) }
            }
        };
    };
}

/// On a CPU the kernel's type is all that the host needs.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident, $symbol:expr) => {};
}
