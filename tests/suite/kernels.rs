//! Kernels in place of the built-in ones: those of `RuntimeConfig::kernels`, and those of the files that the tests
//! are run with.

use crate::faults::{CHILD, answers, gpu_alone, is_child, names, ptx};
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::image::{ImageError, Loaded, NoCubin};
use ring_host::kernels::{EchoMessage, VectorAdd};
use ring_host::{
    Device, DeviceKind, KernelFiles, Kernels, LaunchConfig, LaunchError, OpenError, Opened,
    Runtime, RuntimeConfig,
};
use ring_tests::kernels::{VARIABLE, config};
use ring_tests::{LONG, active, cpu, gpu, this_program};
use std::process::Output;
use std::sync::Mutex;

/// PTX with the entries of `echo` and of the layout probe, and no other; both only return.
fn few() -> String {
    let echo = String::from_utf8(ptx("", "\tret;")).unwrap();
    let entry = &echo[echo.find(".visible .entry").unwrap()..];
    format!("{echo}{}", entry.replace("ring_echo", KernelFiles::BUILT_IN_ENTRY))
}

fn with(text: String) -> RuntimeConfig {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new()); // to a sanitizer this is no leak
    let text = &*text.leak();
    KEPT.lock().unwrap().push(text);
    // SAFETY: the tests' PTX only returns, or is the one that they run anyway, or is refused.
    let kernels = unsafe { Kernels::new(text) };
    RuntimeConfig { kernels, ..config() }
}

/// That `VectorAdd` is refused, since the runtime's kernels have no entry for it.
fn lacks_vector_add(error: LaunchError) {
    let LaunchError::Image { kernel: "vector_add", source } = &error else { panic!("{error}") };
    assert!(matches!(source, ImageError::NoEntry { entry: "ring_vector_add", .. }), "{error}");
    names(&error, &["'ring_vector_add'", "it has: ring_echo, ring_layout_probe"]);
}

#[test]
fn a_launch_takes_those_of_its_runtime_or_its_own() {
    let host = Runtime::open_with(Device::Cpu, with(few())).unwrap();
    answers(&host);
    let launch = LaunchConfig::default();
    lacks_vector_add(host.launch::<VectorAdd>(launch.clone()).map(drop).unwrap_err());
    lacks_vector_add(host.prepare::<VectorAdd>(&launch).unwrap_err());
    host.launch::<VectorAdd>(launch.clone().kernels(Kernels::BUILT_IN)).unwrap();
    cpu().launch::<VectorAdd>(launch).unwrap();
}

#[test]
fn a_device_that_is_opened_anew_has_them_too() {
    let device = Quirks::of(Cpu::open()).reset_after(100);
    let mut host = Runtime::over(device, with(few())).unwrap();
    let mut kernel = active(&host, LaunchConfig::default().capacity(16));
    let request = EchoMessage::from_seed(0);
    while kernel.send(request, LONG).is_ok() && kernel.recv(LONG).is_ok() {}
    drop(kernel);
    assert!(host.recover(LONG).unwrap().reopened);
    answers(&host);
    lacks_vector_add(host.launch::<VectorAdd>(LaunchConfig::default()).map(drop).unwrap_err());
}

#[test]
fn what_cannot_stand_for_the_built_in_kernels_is_refused_when_a_device_is_opened() {
    let opened = |text: String| {
        let error = Runtime::open_with(Device::Cpu, with(text.clone())).map(drop).unwrap_err();
        let over = Runtime::over(Quirks::of(Cpu::open()), with(text)).map(drop);
        assert_eq!(over, Err(error.clone()));
        names(&error, &["RuntimeConfig::kernels"]);
        let OpenError::Kernels(source) = error else { panic!("{error}") };
        source
    };
    let abi = format!("= {};", ring_shared::ABI_VERSION);
    assert_eq!(opened(few().replace(&abi, "= 999;")), ImageError::Abi { found: 999 });
    assert_eq!(opened(few().replace("RING_ABI_VERSION", "ANOTHER")), ImageError::NoAbi);
    assert_eq!(opened(String::new()), ImageError::Empty);
    assert!(matches!(opened("rubbish".to_owned()), ImageError::NotPtx(_)));
    let error = opened(few().replace("ring_layout_probe", "ring_other"));
    assert!(matches!(error, ImageError::NoEntry { entry: "ring_layout_probe", .. }), "{error}");
}

#[test]
fn a_gpu_runs_them() {
    gpu_alone(here!("a_gpu_runs_them"), |_| {
        let same = format!("{}\n// another module\n", config().kernels.ptx());
        let host = Runtime::open_with(Device::Cuda(0), with(same)).unwrap();
        host.layout_on_device().unwrap();
        answers(&host);
        let host = Runtime::open_with(Device::Cuda(0), with(few())).unwrap();
        let error = host.launch::<VectorAdd>(LaunchConfig::default()).map(drop).unwrap_err();
        lacks_vector_add(error);
    });
}

/// The built-in kernels are loaded as the cubin for the device, if there is one, and the same text as PTX.
#[test]
fn a_gpu_runs_the_cubin_for_it_and_the_ptx() {
    gpu_alone(here!("a_gpu_runs_the_cubin_for_it_and_the_ptx"), |host| {
        let (major, minor) = host.device().compute_capability;
        let built_in = Runtime::open_with(Device::Cuda(0), RuntimeConfig::default()).unwrap();
        match &built_in.report().loaded {
            Loaded::Cubin(of) => assert!(of.major == major && of.minor <= minor, "{of}"),
            Loaded::Ptx(NoCubin::NotShipped(_)) => println!("{}", built_in.report().loaded),
            other => panic!("{other}"),
        }
        let of_text = || with(Kernels::BUILT_IN.ptx().to_owned());
        let as_ptx = Runtime::open_with(Device::Cuda(0), of_text()).unwrap();
        assert_eq!(as_ptx.report().loaded, Loaded::Ptx(NoCubin::NotBuiltIn));
        for host in [&built_in, &as_ptx] {
            host.layout_on_device().unwrap();
            answers(host);
        }
    });
}

/// Beside a resident kernel nothing is loaded: there PTX is served by the cubin of the same text.
#[test]
fn what_a_gpu_has_loaded_serves_the_same_text() {
    gpu_alone(here!("what_a_gpu_has_loaded_serves_the_same_text"), |host| {
        let kernel = active(&host, LaunchConfig::default().capacity(16));
        let same = with(config().kernels.ptx().to_owned());
        let beside = Runtime::open_with(Device::Cuda(0), same).unwrap();
        assert_eq!(beside.report().loaded, host.report().loaded);
        drop(kernel);
    });
}

/// A GPU that does not take the kernels is one that cannot be used.
#[test]
fn a_gpu_that_refuses_them_is_not_chosen() {
    gpu_alone(here!("a_gpu_that_refuses_them_is_not_chosen"), |host| {
        let refused = || with(few().replace("\tret;", "\tnot_an_instruction 7;\n\tret;"));
        let error = Runtime::open_with(Device::Cuda(0), refused()).map(drop).unwrap_err();
        assert!(matches!(&error, OpenError::Kernels(ImageError::Refused { .. })), "{error}");
        let other = Runtime::open_with(Device::Auto, refused()).unwrap();
        assert_eq!(other.device().kind, DeviceKind::Cpu);
        assert_eq!(*other.why(), Opened::NoGpu(error));
        answers(&host);
        // Beside a resident kernel nothing is loaded; what is loaded serves.
        let kernel = active(&host, LaunchConfig::default().capacity(16));
        Runtime::open_with(Device::Cuda(0), config()).unwrap();
        let error = Runtime::open_with(Device::Cuda(0), with(few())).map(drop).unwrap_err();
        assert_eq!(error, OpenError::Kernels(ImageError::Busy { resident: 1 }));
        drop(kernel);
    });
}

/// This program again, asked to run one test that looks for a GPU, with that value of the variable.
fn run_with(value: &std::ffi::OsStr) -> Output {
    let name = "kernels::the_files_are_said_before_a_gpu_is_opened";
    let mut child = this_program();
    child.args([name, "--exact", "--test-threads=1"]).env(CHILD, name).env(VARIABLE, value);
    child.output().unwrap()
}

#[test]
fn the_files_are_said_before_a_gpu_is_opened() {
    if is_child() {
        drop(gpu());
        return;
    }
    let folder = std::env::temp_dir();
    let file = |name: &str, text: String| {
        let path = folder.join(format!("ring-tests-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    };
    let (one, two) = (file("one.ptx", few()), file("two.ptx", Kernels::BUILT_IN.ptx().to_owned()));
    let said = |paths: &[&std::path::Path]| {
        let output = run_with(&std::env::join_paths(paths).unwrap());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (two_shown, one_shown) = (two.display().to_string(), one.display().to_string());
    let (status, words) = said(&[&two, &one]);
    assert_eq!(status, Some(0), "{words}");
    assert_eq!(words.matches(VARIABLE).count(), 1, "once: {words}");
    names(&words, &[&format!("{two_shown}, {one_shown}")]);
    for (text, parts) in [("rubbish", ["not PTX"]), (&few().replace("ring_", ""), ["RING_ABI"])] {
        let bad = file("bad.ptx", text.replace("RING_ABI_VERSION", "X"));
        let (status, words) = said(&[&two, &bad]);
        std::fs::remove_file(&bad).unwrap();
        assert_eq!(status, Some(1), "{words}");
        names(&words, &[VARIABLE, &bad.display().to_string()]);
        names(&words, &parts);
    }
    let (status, words) = said(&[&folder.join("no-such.ptx"), &one]);
    assert_eq!(status, Some(1), "{words}");
    names(&words, &[VARIABLE, "cannot read", "no-such.ptx"]);
    for path in [one, two] {
        std::fs::remove_file(path).unwrap();
    }
}
