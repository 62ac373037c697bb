//! A driver that is newer than the bindings: its codes are reported as the numbers that they are.

use crate::faults::{in_child, is_child};
use ring_host::{Device, OpenError, Runtime};
use std::path::PathBuf;
use std::process::Command;

/// A driver's library whose first call returns a code that no bindings know.
const LIBRARY: &str = r#"
#[no_mangle]
pub extern "C" fn cuInit(_flags: u32) -> i32 { 4711 }
#[no_mangle]
pub extern "C" fn cuGetErrorString(_code: i32, words: *mut *const u8) -> i32 {
    unsafe { *words = core::ptr::null() };
    1
}
"#;

/// Compiles a driver's library, and gives the folder that is made for it; `None` where there is no compiler.
pub(crate) fn library(name: &str, source_text: &str) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("ring-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("driver.rs");
    std::fs::write(&source, source_text).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(rustc);
    compile.args(["--edition", "2021", "--crate-type", "cdylib", "-C", "panic=abort", "-o"]);
    let done = compile.arg(folder.join("libcuda.so")).arg(&source).output();
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: no rustc to compile a driver's library with");
            None
        }
        done => {
            let done = done.unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(folder)
        }
    }
}

#[test]
fn a_code_that_is_not_known_is_reported_as_it_is() {
    let test = concat!(module_path!(), "::a_code_that_is_not_known_is_reported_as_it_is");
    let compiled = || library("driver", LIBRARY);
    let Some(folder) = is_child().then(PathBuf::new).or_else(compiled) else { return };
    in_child(test, &[("LD_LIBRARY_PATH", folder.to_str().unwrap())], || {
        let Err(OpenError::Driver(error)) = Runtime::open(Device::Cuda(0)) else {
            panic!("a driver that does not work was opened");
        };
        assert_eq!((error.call, error.code), ("cuInit", 4711));
        assert!(error.to_string().contains("4711"), "{error}");
    });
    if !is_child() {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
