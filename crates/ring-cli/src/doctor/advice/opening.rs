//! Advice about why a device was not opened.

use super::Advice;
use crate::doctor::facts::Facts;
use ring_host::OpenError;
use ring_host::error::Requirement;
use ring_host::platform::{LIBRARY, WSL_LIBRARIES};

/// What to do about it.
pub fn remedy(trouble: &OpenError, facts: &Facts) -> Advice {
    match trouble {
        OpenError::NoDriver => no_driver(facts),
        OpenError::NotBuilt => Advice::new(
            "not_built",
            "no support for GPUs in this program",
            "build it with the feature 'cuda' of ring-host",
        ),
        OpenError::NoDevice => Advice::new(
            "no_device",
            "the driver finds no GPU",
            "run nvidia-smi; check that you may read and write /dev/nvidia*, and that \
             CUDA_VISIBLE_DEVICES does not hide it; a container must be started with --gpus all",
        ),
        OpenError::OutOfRange { index, count } => Advice::new(
            "out_of_range",
            format!("there is no GPU {index}"),
            match count {
                0 | 1 => "choose --device cuda:0".to_owned(),
                _ => format!("choose --device cuda:0 to cuda:{}", count - 1),
            },
        ),
        OpenError::Unsuitable { device, lacks: Requirement::Driver } => Advice::new(
            "driver_too_old",
            format!("the driver of {device} is too old"),
            match facts.wsl.is_empty() {
                true => "install the NVIDIA driver 550 or newer",
                false => "install a driver of 550 or newer on Windows, and nothing inside WSL2",
            },
        ),
        OpenError::Unsuitable { device, lacks } => Advice::new(
            "unsuitable",
            format!("{device} cannot run ring kernels"),
            format!("{lacks}; use another GPU, or --device cpu"),
        ),
        OpenError::Arena { bytes, .. } => Advice::new(
            "arena",
            format!("{bytes} bytes of the device's memory"),
            "nvidia-smi shows who holds it; or choose smaller RuntimeConfig::device_bytes",
        ),
        OpenError::Environment { variable, .. } => Advice::new(
            "environment",
            format!("{variable} has a value without meaning"),
            "unset it, or give it one of the names above",
        ),
        OpenError::Kernels(_) => Advice::new(
            "image",
            "the driver does not take the built-in kernels",
            "install the NVIDIA driver 550 or newer, or use the device cpu",
        ),
        _ => Advice::new(
            "driver_call",
            "the driver does not work",
            "run nvidia-smi; if that fails too, restart the machine (a driver that was updated \
             needs it) or install the driver again",
        ),
    }
}

fn no_driver(facts: &Facts) -> Advice {
    if let Some(place) = facts.library.places.iter().find(|place| place.found) {
        let folder = place.folder.display();
        return Advice::new(
            "driver",
            format!("{LIBRARY} is in {folder}, but could not be loaded"),
            format!(
                "set LD_LIBRARY_PATH={folder} (this program must be of the same architecture); if \
                 that changes nothing, install the driver again"
            ),
        );
    }
    match facts.wsl.is_empty() {
        true => Advice::new(
            "driver",
            "no NVIDIA driver",
            "install the NVIDIA driver 550 or newer (a container must be started with --gpus all); \
             without a GPU there is nothing to do: devices auto and cpu run kernels on CPU threads",
        ),
        false => Advice::new(
            "driver",
            "no NVIDIA driver under WSL2",
            format!(
                "install the NVIDIA driver on Windows, not inside WSL2; then {WSL_LIBRARIES} must \
                 hold {LIBRARY}: set LD_LIBRARY_PATH={WSL_LIBRARIES} if it does"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{advice, example};
    use ring_host::Mode;
    use ring_host::error::{DriverError, DriverReason};
    use ring_host::platform::WslSign;

    fn with(trouble: OpenError, change: impl FnOnce(&mut Facts)) -> Advice {
        let mut facts = example::without_driver();
        facts.troubles = vec![trouble];
        change(&mut facts);
        let mut to_do = advice::of(&facts);
        assert_eq!(to_do.len(), 1, "{to_do:?}");
        to_do.remove(0)
    }

    fn says(advice: &Advice, id: &str, parts: &[&str]) {
        assert_eq!(advice.id, id);
        let text = advice.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains('\n') && !text.contains("  "), "{text}");
    }

    #[test]
    fn a_driver_that_is_not_there() {
        says(&with(OpenError::NoDriver, |_| ()), "driver", &["550", "--gpus all"]);
        let wsl = with(OpenError::NoDriver, |facts| facts.wsl = vec![WslSign::Gpu]);
        says(&wsl, "driver", &["on Windows", "/usr/lib/wsl/lib", "LD_LIBRARY_PATH"]);
        let broken = with(OpenError::NoDriver, |facts| facts.library.places[0].found = true);
        says(&broken, "driver", &["could not be loaded", "LD_LIBRARY_PATH=/usr/lib/x86_64"]);
    }

    #[test]
    fn a_device_that_is_not_there() {
        says(&with(OpenError::NoDevice, |_| ()), "no_device", &["nvidia-smi", "--gpus", "/dev/"]);
        let out_of_range = OpenError::OutOfRange { index: 9, count: 4 };
        says(&with(out_of_range, |_| ()), "out_of_range", &["no GPU 9", "cuda:0 to cuda:3"]);
        says(&with(OpenError::NotBuilt, |_| ()), "not_built", &["'cuda'"]);
    }

    #[test]
    fn a_device_that_cannot() {
        let unsuitable = |lacks| OpenError::Unsuitable { device: "GTX 970".to_owned(), lacks };
        let old = || unsuitable(Requirement::Driver);
        says(&with(old(), |_| ()), "driver_too_old", &["GTX 970", "550"]);
        let wsl = with(old(), |facts| facts.wsl = vec![WslSign::Kernel]);
        says(&wsl, "driver_too_old", &["on Windows"]);
        let weak = with(unsuitable(Requirement::ComputeCapability), |_| ());
        says(&weak, "unsuitable", &["7.0", "another GPU"]);
    }

    #[test]
    fn a_runtime_that_could_not_be_had() {
        let source = DriverError { call: "cuMemAlloc", code: 2, reason: DriverReason::NoAddress };
        let arena = OpenError::Arena { bytes: 7, source: source.clone() };
        says(&with(arena, |_| ()), "arena", &["7 bytes", "RuntimeConfig::device_bytes"]);
        says(&with(OpenError::Driver(source), |_| ()), "driver_call", &["nvidia-smi", "restart"]);
        let source = "resident".parse::<Mode>().unwrap_err();
        let environment = OpenError::Environment { variable: "RING_MODE", source };
        says(&with(environment, |_| ()), "environment", &["RING_MODE", "unset"]);
    }
}
