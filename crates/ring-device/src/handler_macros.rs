//! What [`ring_kernel!`](crate::ring_kernel) makes of several handlers: one, which chooses among them by the request's tag.

/// Goes through the handlers one by one. In brackets behind what [`__kernel`](crate::__kernel) takes: which threads run them, the
/// type of the state if one of them takes it, and the handlers that were gone through.
#[doc(hidden)]
#[macro_export]
macro_rules! __handlers {
    ($name:ident $given:tt [$(Thread)?] $state:tt $done:tt
        $(#[$doc:meta])* fn $f:ident($s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Thread] $state $done
            $(#[$doc])* fn $f(_: &ThreadContext, $s: &mut $S, $q: &$Q) -> $R $body
        $($rest)* }
    };
    ($name:ident $given:tt [$(Thread)?] [$($_S:ty)?] [$($done:tt)*]
        $(#[$doc:meta])* fn $f:ident($c:tt: &ThreadContext, $s:tt: &mut $S:ty, $q:tt: &$Q:ty $(,)?)
        -> $R:ty $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Thread] [$S] [$($done)* {
            [$(#[$doc])*] $f: $Q, $R;
            in_order [$c: &$crate::ThreadContext<'_>, $s: &mut $S, $q: &$Q] -> $R $body
        }] $($rest)* }
    };
    ($name:ident $given:tt [$(Thread)?] $state:tt [$($done:tt)*]
        $(#[$doc:meta])* fn $f:ident($c:tt: &ThreadContext, $q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Thread] $state [$($done)* {
            [$(#[$doc])*] $f: $Q, $R; at_once [$c: &$crate::ThreadContext<'_>, $q: &$Q] -> $R $body
        }] $($rest)* }
    };
    ($name:ident $given:tt [$(Warp)?] $state:tt [$($done:tt)*]
        $(#[$doc:meta])* fn $f:ident($c:tt: &WarpContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Warp] $state [$($done)* {
            [$(#[$doc])*] $f: $Q, $R;
            into [$c: &$crate::WarpContext<'_>, $q: &$Q, $o: &$crate::Output<$R>] -> () $body
        }] $($rest)* }
    };
    ($name:ident $given:tt [$(Block)?] $state:tt [$($done:tt)*]
        $(#[$doc:meta])* fn $f:ident($c:tt: &BlockContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Block] $state [$($done)* {
            [$(#[$doc])*] $f: $Q, $R;
            into [$c: &$crate::BlockContext<'_>, $q: &$Q, $o: &$crate::Output<$R>] -> () $body
        }] $($rest)* }
    };
    ($name:ident $given:tt [$(Grid)?] $state:tt [$($done:tt)*]
        $(#[$doc:meta])* fn $f:ident($c:tt: &GridContext, $q:tt: &$Q:ty, $o:tt: &Output<$R:ty> $(,)?) $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Grid] $state [$($done)* {
            [$(#[$doc])*] $f: $Q, $R;
            into [$c: &$crate::GridContext<'_>, $q: &$Q, $o: &$crate::Output<$R>] -> () $body
        }] $($rest)* }
    };
    ($name:ident $given:tt [$(Thread)?] $state:tt $done:tt
        $(#[$doc:meta])* fn $f:ident($q:tt: &$Q:ty $(,)?) -> $R:ty $body:block
        $($rest:tt)*
    ) => {
        $crate::__handlers! { $name $given [Thread] $state $done
            $(#[$doc])* fn $f(_: &ThreadContext, $q: &$Q) -> $R $body
        $($rest)* }
    };
    ($name:ident $given:tt [$threads:ident] $state:tt [$({
        [$(#[$doc:meta])*] $f:ident: $Q:ty, $R:ty; $how:ident [$($parameters:tt)*] -> $returns:ty $body:block
    })+]) => {
        $crate::__constants! { $name Handler [0] $([$(#[$doc])* $f: $Q, $R])* }
        $(
            $crate::__message!($Q);
            $crate::__message!($R);
        )*
        $crate::__choose! {
            $name $given $threads $state
            ($crate::__tagged!($($Q),*)) ($crate::__tagged!($($R),*))
            [$($f $how)*]
            {$(
                #[inline(always)]
                fn $f($($parameters)*) -> $returns $body
            )*}
        }
    };
    ($name:ident $given:tt $threads:tt $state:tt $done:tt $($other:tt)*) => {
        ::core::compile_error!(
            "this is not the signature of one of several handlers; each is one of\n  \
             fn name(request: &Q) -> R\n  \
             fn name(ctx: &ThreadContext, request: &Q) -> R\n  \
             fn name(state: &mut S, request: &Q) -> R\n  \
             fn name(ctx: &ThreadContext, state: &mut S, request: &Q) -> R\n\
             in any order, or all are\n  \
             fn name(ctx: &WarpContext, request: &Q, response: &Output<R>)\n\
             or so with BlockContext, or with GridContext: all handlers of a kernel are run by the same threads"
        );
    };
}

/// A constant for each handler, or for each function of the host, by which it is asked: of that type, which has both.
#[doc(hidden)]
#[macro_export]
macro_rules! __constants {
    ($name:ident $type:ident [$n:expr]) => {};
    ($name:ident $type:ident [$n:expr] [$(#[$doc:meta])* $f:ident: $Q:ty, $R:ty] $($rest:tt)*) => {
        impl $name {
            $(#[$doc])*
            #[allow(non_upper_case_globals)]
            pub const $f: $crate::$type<$name, $Q, $R> =
                $crate::$type::new($n, ::core::stringify!($f));
        }
        $crate::__constants! { $name $type [$n + 1] $($rest)* }
    };
}

/// The message that has room for each of those, and says which it is.
#[doc(hidden)]
#[macro_export]
macro_rules! __tagged {
    ($($T:ty),*) => {
        $crate::__room_for!(Tagged: $($T),*)
    };
}

/// The type of that name with room for each of those messages.
#[doc(hidden)]
#[macro_export]
macro_rules! __room_for {
    ($room:ident: $($T:ty),*) => {
        $crate::handlers::$room<
            <$crate::handlers::Align<{ $crate::handlers::word_bytes(&[$(::core::mem::align_of::<$T>()),*]) }>
                as $crate::handlers::HasWord>::Word,
            { $crate::handlers::words(
                &[$(::core::mem::size_of::<$T>()),*],
                &[$(::core::mem::align_of::<$T>()),*],
            ) },
        >
    };
}

/// The handler that chooses among those, which are functions inside it.
#[doc(hidden)]
#[macro_export]
macro_rules! __choose {
    ($name:ident $given:tt Thread [] ($Q:ty) ($R:ty) $handlers:tt $functions:tt) => {
        $crate::__handler! { $name $given
            fn handle(context: &ThreadContext, request: &$Q) -> $R {
                $crate::__by_tag!($name $R, $handlers $functions context, (), request)
            }
        }
    };
    ($name:ident $given:tt Thread [$S:ty] ($Q:ty) ($R:ty) $handlers:tt $functions:tt) => {
        $crate::__handler! { $name $given
            fn handle(context: &ThreadContext, state: &mut $S, request: &$Q) -> $R {
                $crate::__by_tag!($name $R, $handlers $functions context, state, request)
            }
        }
    };
    ($name:ident $given:tt Warp $state:tt $($rest:tt)*) => {
        $crate::__choose! { @into $name $given WarpContext $($rest)* }
    };
    ($name:ident $given:tt Block $state:tt $($rest:tt)*) => {
        $crate::__choose! { @into $name $given BlockContext $($rest)* }
    };
    ($name:ident $given:tt Grid $state:tt $($rest:tt)*) => {
        $crate::__choose! { @into $name $given GridContext $($rest)* }
    };
    (@into $name:ident $given:tt $context:ident ($Q:ty) ($R:ty) [$($f:ident into)*] {$($functions:item)*}) => {
        $crate::__handler! { $name $given
            fn handle(context: &$context, request: &$Q, response: &Output<$R>) {
                $($functions)*
                let tag = $crate::handlers::HasTag::tag(request);
                $(
                    if tag == $name::$f.tag() as ::core::primitive::u64 {
                        let body = $crate::handlers::HasTag::body(request);
                        return $f(context, body, &response.of_handler($name::$f.tag()));
                    }
                )*
                response.of_nobody();
            }
        }
    };
}

/// The answer of that handler of a thread whose tag the request has.
#[doc(hidden)]
#[macro_export]
macro_rules! __by_tag {
    ($name:ident $R:ty, [$($f:ident $how:ident)*] {$($functions:item)*}
        $context:ident, $state:tt, $request:ident
    ) => {{
        $($functions)*
        let in_registers = $request.in_registers();
        let request = in_registers.as_ref().unwrap_or($request);
        let tag = $crate::handlers::HasTag::tag(request);
        $(
            if tag == $name::$f.tag() as ::core::primitive::u64 {
                let body = $crate::handlers::HasTag::body(request);
                let answer = $crate::__call!($f $how $context, $state, body);
                return $crate::handlers::HasTag::of($name::$f.tag(), answer);
            }
        )*
        <$R as $crate::handlers::HasTag>::of_nobody()
    }};
}

/// Calls a handler with what it takes.
#[doc(hidden)]
#[macro_export]
macro_rules! __call {
    ($f:ident at_once $context:ident, $state:tt, $body:ident) => {
        $f($context, $body)
    };
    ($f:ident in_order $context:ident, $state:tt, $body:ident) => {
        $f($context, $state, $body)
    };
}
