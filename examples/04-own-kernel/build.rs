//! With the feature `gpu`: compiles the kernels to PTX.

fn main() {
    #[cfg(feature = "gpu")]
    if let Err(error) = ring_builder::Builder::new("kernels").build() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
