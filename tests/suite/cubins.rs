//! What a driver is given of the built-in kernels, and what is done when it does not take a cubin: by a driver's
//! library that is made up.

use crate::driver::library;
use crate::faults::{in_child, is_child};
use ring_host::Device;
use ring_host::Kernels;
use ring_host::device;
use ring_host::image::{Image, Loaded, NoCubin};
use std::path::PathBuf;

/// Which of the cases a child is to try.
const CASE: &str = "RING_TEST_CUBIN_CASE";

/// As much of a driver as it takes to open a device and to load code. The environment says the compute capability,
/// and at which call a cubin is refused.
const LIBRARY: &str = r#"
#![allow(non_snake_case)]
use std::ffi::{CStr, c_char, c_void};
type At<T> = *mut T;
fn told(name: &str) -> String { std::env::var(name).unwrap_or_default() }
fn capability(which: usize) -> i32 {
    told("RING_FAKE_CAPABILITY").split('.').nth(which).unwrap().parse().unwrap()
}
macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*) $body:expr;)*) => {$(
        #[no_mangle]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 { $(let _ = $argument;)* $body }
    )*};
}
const CUBIN: usize = 0xc0b17;
const PTX: usize = 0x97c;
calls! {
    cuInit(flags: u32) 0;
    cuGetErrorString(code: i32, words: At<*const u8>) { *words = std::ptr::null(); 1 };
    cuDriverGetVersion(version: At<i32>) { *version = 12090; 0 };
    cuDeviceGetCount(count: At<i32>) { *count = 1; 0 };
    cuDeviceGet(device: At<i32>, ordinal: i32) { *device = ordinal; 0 };
    cuDeviceGetName(name: At<u8>, len: i32, device: i32) { *name = 0; 0 };
    cuDeviceGetAttribute(value: At<i32>, which: i32, device: i32) {
        *value = match which { 75 => capability(0), 76 => capability(1), _ => 1024 };
        0
    };
    cuDevicePrimaryCtxRetain(context: At<usize>, device: i32) { *context = 0x1000; 0 };
    cuCtxGetId(context: usize, id: At<u64>) { *id = 1; 0 };
    cuCtxPushCurrent_v2(context: usize) 0;
    cuCtxPopCurrent_v2(context: At<usize>) { *context = 0x1000; 0 };
    cuCtxGetStreamPriorityRange(least: At<i32>, greatest: At<i32>) { *least = 0; *greatest = -1; 0 };
    cuStreamCreateWithPriority(stream: At<usize>, flags: u32, priority: i32) { *stream = 0x2000; 0 };
    cuModuleLoadDataEx(
        module: At<usize>, image: *const c_void, count: u32, options: *const c_void, values: *const c_void
    ) {
        let is_cubin = *image.cast::<[u8; 4]>() == *b"\x7fELF";
        match (is_cubin, &*told("RING_FAKE_REFUSES")) {
            (true, "any") => panic!("a cubin was given"),
            (true, "load") => return 209,
            _ => *module = if is_cubin { CUBIN } else { PTX },
        }
        assert!(is_cubin || CStr::from_ptr(image.cast::<c_char>()).to_str().unwrap().contains(".version"));
        0
    };
    cuModuleGetFunction(function: At<usize>, module: usize, name: *const c_char) {
        *function = module;
        if module == CUBIN && told("RING_FAKE_REFUSES") == "function" { 500 } else { 0 }
    };
    cuFuncLoad(function: usize) {
        if function == CUBIN && told("RING_FAKE_REFUSES") == "code" { 200 } else { 0 }
    };
    cuFuncGetAttribute(value: At<i32>, attribute: i32, function: usize) { *value = 0; 0 };
    cuFuncSetAttribute(function: usize, attribute: i32, value: i32) 0;
    cuFuncGetParamInfo(function: usize, index: usize, offset: At<usize>, size: At<usize>) {
        *size = if function == CUBIN && told("RING_FAKE_REFUSES") == "signature" { 4 } else { 8 };
        if index == 0 { 0 } else { 1 }
    };
}
"#;

/// Compute capability, what refuses a cubin, and what is then loaded, in words that contain these.
const CASES: [(&str, &str, &[&str]); 8] = [
    ("9.0", "nothing", &["the cubin for sm_90"]),
    ("9.1", "nothing", &["the cubin for sm_90"]),
    ("9.0", "load", &["PTX", "the cubin for sm_90 was refused", "cuModuleLoadDataEx", "209"]),
    ("9.0", "function", &["PTX", "the cubin for sm_90 was refused", "cuModuleGetFunction", "500"]),
    ("9.0", "code", &["PTX", "the cubin for sm_90 was refused", "cuFuncLoad", "200"]),
    ("9.0", "signature", &["PTX", "the cubin for sm_90 was refused", "one parameter of 8 bytes"]),
    ("7.5", "any", &["PTX", "no cubin is shipped for sm_75"]),
    ("8.9", "any", &["PTX", "no cubin is shipped for sm_89"]),
];

#[test]
fn a_cubin_that_is_not_taken_is_replaced_by_the_ptx() {
    let compiled = || library("cubins", LIBRARY);
    let Some(folder) = is_child().then(PathBuf::new).or_else(compiled) else { return };
    for (case, (capability, refuses, _)) in CASES.iter().enumerate() {
        let case = &*case.to_string();
        let environment = [
            ("LD_LIBRARY_PATH", folder.to_str().unwrap()),
            ("RING_FAKE_CAPABILITY", capability),
            ("RING_FAKE_REFUSES", refuses),
            (CASE, case),
        ];
        in_child(here!("a_cubin_that_is_not_taken_is_replaced_by_the_ptx"), &environment, || {
            let case: usize = std::env::var(CASE).unwrap().parse().unwrap();
            is_loaded(&CASES[case]);
        });
        if is_child() {
            return;
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

fn is_loaded((capability, refuses, parts): &(&str, &str, &[&str])) {
    let image = Image::built_in();
    let (driver, _) = device::open(Device::Cuda(0), &image).unwrap();
    let loaded = driver.load_all(&image).unwrap();
    let words = loaded.to_string();
    assert!(parts.iter().all(|part| words.contains(part)), "{capability}, {refuses}: {words}");
    assert_eq!(driver.load_all(&image).unwrap(), loaded, "it is not loaded again");
    // The same text as PTX of somebody's own has no cubin.
    let own = Image::new(Kernels::BUILT_IN.ptx().as_bytes()).unwrap();
    assert_eq!(driver.load_all(&own).unwrap(), Loaded::Ptx(NoCubin::NotBuiltIn));
}
