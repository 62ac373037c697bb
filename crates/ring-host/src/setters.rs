//! Methods that set something of a value and give the value back.

/// Defines public methods of a type: each line is a method's name, its arguments, and the fields that it sets.
macro_rules! setters {
    (of $t:ident; $($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*)
        => $($($field:ident).+ = $value:expr),+;)+) => {
        impl $t {
            $(
                $(#[$doc])*
                pub fn $name(mut self $(, $argument: $type)*) -> $t {
                    $(self.$($field).+ = $value;)+
                    self
                }
            )+
        }
    };
}
pub(crate) use setters;
