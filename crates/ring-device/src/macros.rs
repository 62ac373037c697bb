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
/// | `ctx: &GridContext, request: &Q, response: &Output<R>)` | all blocks of a grid for each message | [`GridHandler`] |
///
/// These emit messages to ports, and answer nothing by themselves. Such kernels are launched as those of a graph:
///
/// | `fn handle(...)` | who runs it | trait |
/// |---|---|---|
/// | `request: &Q, out: &mut Ports)` | a thread, many messages at once | [`EmitHandler`] |
/// | `state: &mut S, request: &Q, out: &mut Ports)` | a thread, message after message, with a state | [`EmitInOrderHandler`] |
/// | `state: &mut S, request: &Q)` | the same, emits nothing | [`EmitInOrderHandler`] |
/// | `ctx: &WarpContext, request: &Q, out: &mut Ports)` | a warp for each message | [`EmitWarpHandler`] |
/// | `ctx: &BlockContext, request: &Q, out: &mut Ports)` | the whole block for each message | [`EmitBlockHandler`] |
///
/// The first three may have `ctx: &ThreadContext` first. All that take `out` may end in `-> R`: a [reply](#a-reply) beside the
/// ports.
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
///         traced: false,         // see Kernel::TRACED
///         // here `tick_every`, `calls`, `shared` and `ports` may stand: see below;
///         // and `first_block_answers` behind `shared`: see Kernel::FIRST_BLOCK_ANSWERS
///         uses_payload: false,   // see Kernel::USES_PAYLOAD
///         prefers_l1: false,     // see Kernel::PREFERS_L1; behind `uses_payload` only
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
/// # A reply
///
/// What such a handler returns is emitted to one port more, the last, whose name is `REPLY`: one message for each request, in the
/// order of the requests, behind what the handler has emitted. It is linked and read as any port; it has no key.
///
/// ```
/// ring_device::ring_kernel! {
///     /// Passes numbers on, and replies how many it has passed.
///     pub struct Counted {
///         ports: {
///             /// The numbers.
///             ON: [u64; 1],
///         },
///     }
///
///     fn handle(count: &mut u64, number: &u64, out: &mut Ports) -> u64 {
///         out.emit(Counted::ON, *number);
///         *count += 1;
///         *count
///     }
/// }
/// # use ring_device::WithPorts;
/// assert_eq!((Counted::PORTS.len(), Counted::REPLY.index()), (2, 1));
/// ```
///
/// # Several handlers
///
/// In place of one `fn handle` there may be several functions with names of their own, in the first seven forms of the table. Each is a
/// [`Handler`](crate::Handler), a constant of the kernel's type by which it is asked. Those of threads may be mixed, with or without the
/// state, of which there is one; those of warps, blocks and grids are all of one kind.
///
/// ```
/// ring_device::ring_kernel! {
///     /// Numbers that are added up.
///     pub struct Sum;
///
///     /// Adds a number.
///     fn add(sum: &mut u64, number: &u32) -> u64 {
///         *sum = sum.wrapping_add((*number).into());
///         *sum
///     }
///
///     /// How often a number is in the sum; none in zero.
///     fn times(sum: &mut u64, number: &u64) -> [u64; 2] {
///         [sum.checked_div(*number).unwrap_or(0), sum.checked_rem(*number).unwrap_or(*sum)]
///     }
/// }
/// assert_eq!(Sum::times.name(), "times");
/// ```
///
/// # Ticks
///
/// A handler with a state and without ports may have a `fn tick` beside it, which changes the state because time has passed: between two
/// messages, whether there are any or not, while the channel is active and on the device. It is called every millisecond, or as often as
/// `tick_every` says, behind `slot_bytes` and `traced`; some 20 us more may pass, and the time of a handler. What was missed is not made up for: what
/// matters of it is the time, [`ThreadContext::now`](crate::ThreadContext::now).
///
/// ```
/// use core::time::Duration;
///
/// ring_device::ring_kernel! {
///     /// How many messages came in the last whole hundred milliseconds.
///     pub struct Rate { tick_every: Duration::from_millis(100), }
///
///     fn handle(counts: &mut [u32; 2], _: &u32) -> u32 {
///         counts[0] += 1;
///         counts[1]
///     }
///
///     fn tick(counts: &mut [u32; 2]) {
///         *counts = [0, counts[0]];
///     }
/// }
/// # use ring_device::InOrderHandler;
/// assert_eq!(Rate::TICK_EVERY, Some(Duration::from_millis(100)));
/// ```
///
/// # Calls to the host
///
/// What handlers ask the host is declared behind that, a function each; `ctx.call` asks it, and waits for the answer, or as long as it
/// says. The handler's context is that of a thread, a warp or a block; there are no ports. The host takes the calls by
/// `KernelHandle::host_calls`, on a thread of its own. Such kernels are persistent, in mapped memory, and have 256 threads unless they say
/// otherwise. What is asked has at most 80 bytes, 72 where something in it is aligned to 8 bytes, and an answer at most 84.
///
/// ```
/// use core::time::Duration;
///
/// ring_device::ring_kernel! {
///     /// Changes money at the rate of now.
///     pub struct Exchange {
///         calls: {
///             /// The rate of a currency.
///             fn rate(u32) -> f32;
///         },
///     }
///
///     fn handle(ctx: &ThreadContext, currency: &u32) -> f32 {
///         ctx.call(Exchange::rate, *currency, Duration::from_micros(100)).unwrap_or(f32::NAN)
///     }
/// }
/// assert_eq!(Exchange::rate.name(), "rate");
/// ```
///
/// # Block-shared memory
///
/// What the threads of a block share among them, and keep from message to message, is declared behind that: a name, a type and a count
/// each. `ctx.shared` gives it: zero when a launch begins, and lost when it ends. Each channel's block has its own, each block of
/// a grid, and on the CPU device the thread that is all the block. There are at most [`MAX_SHARED_BYTES`](crate::MAX_SHARED_BYTES) of it.
///
/// ```
/// ring_device::ring_kernel! {
///     /// Answers each number with the one before.
///     pub struct Before {
///         shared: {
///             /// The last number.
///             LAST: [u32; 1],
///         },
///     }
///
///     fn handle(ctx: &BlockContext, number: &u32, response: &Output<u32>) {
///         let last = ctx.shared(Before::LAST);
///         if ctx.thread() == 0 {
///             response.set_all(last.get(0).unwrap_or(0));
///             last.set(0, *number);
///         }
///         ctx.sync(); // all threads see it, those of the next message too
///     }
/// }
/// assert_eq!(Before::LAST.len(), 1);
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
/// [`GridHandler`]: crate::GridHandler
/// [`Output`]: crate::Output
/// [`EmitHandler`]: crate::EmitHandler
/// [`EmitBlockHandler`]: crate::EmitBlockHandler
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
        $(traced: $traced:expr,)?
        $(tick_every: $every:expr,)?
        $(calls: $calls:tt $(,)?)?
        $(shared: $shared:tt $(,)?)?
        $(first_block_answers: $first:expr,)?
        $(ports: { $($ports:tt)* } $(,)?)?
        $(uses_payload: $payload:expr $(, prefers_l1: $l1:expr)? $(,)?)?
    } $($handler:tt)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $name;

        $crate::__calls!($name $($calls)?);
        $crate::__shared!($name $($shared)?);
        $crate::__tick! {
            $name
            [
                [
                    const NAME: &'static ::core::primitive::str =
                        $crate::__or!([$($label)?] ::core::stringify!($name));
                    const ENTRY: &'static ::core::primitive::str =
                        $crate::__or!([$($entry)?] ::core::concat!("ring_", ::core::stringify!($name)));
                    const USES_PAYLOAD: ::core::primitive::bool = $crate::__or!([$($payload)?] false);
                    const FIRST_BLOCK_ANSWERS: ::core::primitive::bool = $crate::__or!([$($first)?] false);
                    const PREFERS_L1: ::core::primitive::bool = $crate::__or!([$($($l1)?)?] false);
                    const THREADS: ::core::primitive::u32 =
                        $crate::__or!([$($threads)?] $crate::kernel::default_threads($crate::__calls_const!($name $($calls)?)));
                    const TRACED: ::core::primitive::bool = $crate::__or!([$($traced)?] false);
                    const SHARED_BYTES: ::core::primitive::usize = $crate::__shared_bytes!($name $($shared)?);
                    const CALLS: ::core::primitive::u64 = $crate::__calls_const!($name $($calls)?);
                    $crate::__on_cpu!($name);
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
            [$($every)?] [] [] $($handler)*
        }
    };
    ($($other:tt)*) => {
        ::core::compile_error!(
            "ring_kernel! takes `struct Name;` or `struct Name { name: .., entry: .., entry_if: .., \
             threads: .., slot_bytes: .., traced: .., tick_every: .., calls: { .. }, shared: { .. }, first_block_answers: .., ports: { .. }, uses_payload: .., prefers_l1: .., }` (these options, in this order, each with a comma), \
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

/// Takes `fn tick` out of the functions of a kernel, if there is one. In brackets behind what [`__handler`](crate::__handler) takes: how
/// often it ticks, if that is said, the tick, and the functions before it.
#[doc(hidden)]
#[macro_export]
macro_rules! __tick {
    ($name:ident $given:tt $every:tt [] [$($before:tt)*]
        $(#[$doc:meta])* fn tick($($parameters:tt)*) $(-> $R:ty)? $body:block $($rest:tt)*
    ) => {
        $crate::__tick! { $name $given $every [($($parameters)*) [$($R)?] $body] [$($before)*] $($rest)* }
    };
    ($name:ident $given:tt $every:tt $tick:tt []
        $(#[$doc:meta])+ fn handle($($parameters:tt)*) $(-> $R:ty)? $body:block $($rest:tt)*
    ) => {
        $crate::__tick! { $name $given $every $tick [] fn handle($($parameters)*) $(-> $R)? $body $($rest)* }
    };
    ($name:ident $given:tt $every:tt $tick:tt [$($before:tt)*]
        $(#[$doc:meta])* fn $f:ident($($parameters:tt)*) $(-> $R:ty)? $body:block $($rest:tt)*
    ) => {
        $crate::__tick! { $name $given $every $tick
            [$($before)* $(#[$doc])* fn $f($($parameters)*) $(-> $R)? $body] $($rest)* }
    };
    ($name:ident $given:tt [$every:expr] [] $before:tt $($rest:tt)*) => {
        ::core::compile_error!("`tick_every` says how often `fn tick(state: &mut S)` is called, which there is not");
    };
    ($name:ident [$($given:tt)*] $every:tt $tick:tt [$($before:tt)*] $($rest:tt)*) => {
        $crate::__handler! { $name [$($given)* [$every $tick]] $($before)* $($rest)* }
    };
}

/// The tick of a kernel whose state is an `S`, as what its handler's trait has of it.
#[doc(hidden)]
#[macro_export]
macro_rules! __tick_of {
    ([$consts:tt $checks:tt $slot:tt $ports:tt [$every:tt []]] $S:ty) => {};
    ([$consts:tt $checks:tt $slot:tt $ports:tt [$every:tt [($s:tt: &mut $T:ty $(,)?) [] $body:block]]] $S:ty) => {
        $crate::__tick_of! {
            [$consts $checks $slot $ports [$every [(_: &ThreadContext, $s: &mut $T) [] $body]]] $S
        }
    };
    ([$consts:tt $checks:tt $slot:tt $ports:tt [[$($every:expr)?]
        [($c:tt: &ThreadContext, $s:tt: &mut $T:ty $(,)?) [] $body:block]]] $S:ty
    ) => {
        const TICK_EVERY: ::core::option::Option<::core::time::Duration> = ::core::option::Option::Some(
            $crate::__or!([$($every)?] ::core::time::Duration::from_millis(1)),
        );
        #[inline(always)]
        fn tick($c: &$crate::ThreadContext<'_>, $s: &mut $T) $body
    };
    ($given:tt $S:ty) => {
        ::core::compile_error!(
            "this is not the signature of a tick; it is one of\n  \
             fn tick(state: &mut S)\n  \
             fn tick(ctx: &ThreadContext, state: &mut S)"
        );
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
            $crate::__tick_of! { $given $S }
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
        fn handle($c:tt: &GridContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
    ) => {
        $crate::__kernel! { $name $given $Q, $R, Grid }
        impl $crate::GridHandler for $name {
            #[inline(always)]
            fn handle($c: &$crate::GridContext<'_>, $q: &$Q, $o: &$crate::Output<$R>) $body
        }
    };
    ($name:ident $given:tt
        fn handle($s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?) $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $s: &mut $S, $q: &$Q, _: &mut Ports) $body
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
        fn handle($s:tt: &mut $S:ty, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?) $(-> $R:ty)? $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $s: &mut $S, $q: &$Q, $o: &mut Ports) $(-> $R)? $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $s:tt: &mut $S:ty, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?)
        $(-> $R:ty)? $body:block
    ) => {
        $crate::__state!($name, $S);
        $crate::__emits! {
            $name $given EmitInOrder EmitInOrderHandler [type State = $S;]
            [$c: &$crate::ThreadContext<'_>, $s: &mut $S,] $q: $Q, $o, [$($R)?] $body
        }
    };
    ($name:ident $given:tt
        fn handle($q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?) $(-> $R:ty)? $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $q: &$Q, $o: &mut Ports) $(-> $R)? $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &ThreadContext, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?)
        $(-> $R:ty)? $body:block
    ) => {
        $crate::__emits! {
            $name $given Emit EmitHandler []
            [$c: &$crate::ThreadContext<'_>,] $q: $Q, $o, [$($R)?] $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &WarpContext, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?)
        $(-> $R:ty)? $body:block
    ) => {
        $crate::__emits! {
            $name $given EmitWarp EmitWarpHandler []
            [$c: &$crate::WarpContext<'_>,] $q: $Q, $o, [$($R)?] $body
        }
    };
    ($name:ident $given:tt
        fn handle($c:tt: &BlockContext, $q:tt: &$Q:ty, $o:tt: &mut Ports $(,)?)
        $(-> $R:ty)? $body:block
    ) => {
        $crate::__emits! {
            $name $given EmitBlock EmitBlockHandler []
            [$c: &$crate::BlockContext<'_>,] $q: $Q, $o, [$($R)?] $body
        }
    };
    ($name:ident $given:tt
        fn handle($q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
    ) => {
        $crate::__handler! { $name $given
            fn handle(_: &ThreadContext, $q: &$Q) -> $R $body
        }
    };
    ($name:ident $given:tt $(#[$doc:meta])* fn handle $($other:tt)*) => {
        ::core::compile_error!(
            "this is not the signature of a handler; it is one of\n  \
             fn handle(request: &Q) -> R\n  \
             fn handle(ctx: &ThreadContext, request: &Q) -> R\n  \
             fn handle(state: &mut S, request: &Q) -> R\n  \
             fn handle(ctx: &ThreadContext, state: &mut S, request: &Q) -> R\n  \
             fn handle(ctx: &WarpContext, request: &Q, response: &Output<R>)\n  \
             fn handle(ctx: &BlockContext, request: &Q, response: &Output<R>)\n  \
             fn handle(ctx: &GridContext, request: &Q, response: &Output<R>)\n  \
             fn handle(request: &Q, out: &mut Ports), with a context or a state before as above\n  \
             fn handle(request: &Q, out: &mut Ports) -> R, likewise\n  \
             fn handle(state: &mut S, request: &Q)"
        );
    };
    ($name:ident $given:tt $($handlers:tt)*) => {
        $crate::__handlers! { $name $given [] [] [] $($handlers)* }
    };
}

/// The trait that all kernels have, and what is checked of it and of its messages; nothing more is said
/// where the handler's signature is wrong.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernel {
    ($name:ident [[$($consts:tt)*] [$($checks:tt)*] $slot:tt [{ $($ports:tt)* }] $tick:tt] $Q:ty, $R:ty, $scope:ident) => {
        ::core::compile_error!(
            "a kernel with `ports` emits its messages: its handler takes `out: &mut Ports` behind the request, and what it returns, \
             if anything, is emitted to the port `REPLY`"
        );
    };
    ($name:ident $given:tt $Q:ty, $R:ty, InOrder) => {
        $crate::__kernel! { @with_tick $name $given $Q, $R, InOrder }
    };
    ($name:ident [$consts:tt $checks:tt $slot:tt [] [$every:tt [$($tick:tt)+]]] $Q:ty, $R:ty, $scope:ident) => {
        ::core::compile_error!("`fn tick` changes a state, which a handler has that takes `state: &mut S` and has no ports");
        $crate::__kernel! { @with_tick $name [$consts $checks $slot [] []] $Q, $R, $scope }
    };
    ($name:ident $given:tt $Q:ty, $R:ty, $scope:ident) => {
        $crate::__kernel! { @with_tick $name $given $Q, $R, $scope }
    };
    (@with_tick $name:ident [[$($consts:tt)*] [$($checks:tt)*] $slot:tt [] $tick:tt] $Q:ty, $R:ty, $scope:ident) => {
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

/// On a CPU the host needs no symbol.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __entry {
    ($name:ident, $symbol:expr) => {};
}

/// What a CPU's thread runs. It is no instance of something generic, which each crate that launches the kernel would compile anew.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __on_cpu {
    ($name:ident) => {
        const ON_CPU: ::core::option::Option<$crate::kernel::OnCpu> = {
            #[inline(never)]
            unsafe fn on_cpu(
                block: &$crate::ThreadBlock<'_>,
                control: *const $crate::ControlBlock,
            ) {
                // SAFETY: the caller's promise, as for `run`.
                unsafe { $crate::run::<$name>(block, control) }
            }
            ::core::option::Option::Some(on_cpu)
        };
    };
}

/// On a GPU there is the [entry](__entry).
#[cfg(target_arch = "nvptx64")]
#[doc(hidden)]
#[macro_export]
macro_rules! __on_cpu {
    ($name:ident) => {};
}
