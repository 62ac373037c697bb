//! Mistakes in `ring_kernel!` that do not compile, and what the compiler says of them.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
