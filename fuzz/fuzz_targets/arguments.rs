//! The command line of `ring`, arguments parted by NUL, and every name that is read anywhere: devices, modes,
//! memories, quirks, architectures, packages, sources. What is taken is written as it was read, and a
//! project that would be written from it has a Cargo.toml that says just that.
#![no_main]

use clap::{CommandFactory, FromArgMatches};
use libfuzzer_sys::fuzz_target;
use ring_builder::Arch;
use ring_cli::args::{Arguments, Command};
use ring_cli::new::{Folder, Name, Source, files};
use ring_host::device::cpu::Cpu;
use ring_host::device::{Driver, Quirks};
use ring_host::{Device, Memory, Mode};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt::{Debug, Display};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

thread_local! {
    /// Made once: that takes longer than to parse.
    static DEFINITION: RefCell<clap::Command> = RefCell::new(Arguments::command());
}

fuzz_target!(|bytes: &[u8]| {
    let words = bytes.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let words = [OsStr::new("ring")].into_iter().chain(words);
    let found = DEFINITION.with_borrow_mut(|definition| definition.try_get_matches_from_mut(words));
    match found.and_then(|mut found| Arguments::from_arg_matches_mut(&mut found)) {
        Ok(arguments) => taken(arguments.command),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        names(text);
    }
});

fn taken(command: Command) {
    match command {
        Command::Validate(options) => {
            let launch = options.kernel.launch();
            assert!(!format!("{launch:?}").is_empty());
            as_read(options.device);
            as_read(options.kernel.mode);
            as_read(options.kernel.memory);
            as_read(options.kernel.time_budget);
            as_read(options.kernel.idle_budget);
            options.emulate.into_iter().for_each(as_read);
        }
        Command::Doctor(options) => options.emulate.into_iter().for_each(as_read),
        Command::New(options) => {
            let source = options.ring.unwrap_or(Source::Version("1.0.0".to_owned()));
            project(options.folder.name(), &source);
        }
        Command::Init(options) => {
            let source = options.ring.unwrap_or(Source::Version("1.0.0".to_owned()));
            project(&"own".parse().expect("a name"), &source);
        }
        _ => {}
    }
}

fn as_read<T: FromStr + Display + Debug + PartialEq>(value: T) {
    assert_eq!(value.to_string().parse().ok(), Some(value));
}

fn names(text: &str) {
    if let Ok(device) = text.parse::<Device>() {
        as_read(device);
    }
    if let Ok(mode) = text.parse::<Mode>() {
        assert_eq!(mode.to_string(), text);
    }
    if let Ok(memory) = text.parse::<Memory>() {
        assert_eq!(memory.to_string(), text);
    }
    if let Ok(arch) = text.parse::<Arch>() {
        as_read_arch(arch);
    }
    match Quirks::named(Cpu::open(), text) {
        Ok(quirks) => assert!(!quirks.info().name.is_empty()),
        Err(unknown) => assert!(text.contains(&unknown.name), "{unknown}"),
    }
    let source = text.parse::<Source>().unwrap_or_else(|never| match never {});
    project(&"own".parse().expect("a name"), &source);
    if let Ok(folder) = text.parse::<Folder>() {
        let name = folder.path().file_name().and_then(OsStr::to_str);
        assert_eq!(name, Some(folder.name().as_str()));
        project(folder.name(), &source);
    }
}

fn as_read_arch(arch: Arch) {
    assert_eq!(arch.to_string().parse::<Arch>().ok(), Some(arch));
    let (major, minor) = arch.ptx_version();
    assert_eq!(arch.feature(), format!("+ptx{major}{minor}"));
}

/// What cargo would read of a new project is what was asked for.
fn project(name: &Name, source: &Source) {
    for alone in [true, false] {
        let files = files(name, source, alone);
        let read = |wanted: &str| -> toml::Table {
            let (_, text) = files.iter().find(|(file, _)| *file == wanted).expect("a Cargo.toml");
            text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        let toml = read("Cargo.toml");
        assert_eq!(toml["package"]["name"].as_str(), Some(name.as_str()));
        assert_eq!(toml.get("workspace").is_some(), alone, "{toml:?}");
        assert_eq!(toml.len(), if alone { 5 } else { 4 }, "{toml:?}");
        let (kernels, dependencies) =
            (name.kernels(), toml["dependencies"].as_table().expect("a table"));
        assert_eq!(dependencies.len(), 2, "{toml:?}");
        assert_eq!(dependencies[&kernels]["path"].as_str(), Some("kernels"));
        taken_from(source, &dependencies["ring-host"], "..", "ring-host");
        let builder = &toml["build-dependencies"]["ring-builder"];
        assert_eq!(builder["optional"].as_bool(), Some(true), "{toml:?}");
        let toml = read("kernels/Cargo.toml");
        assert_eq!(toml["package"]["name"].as_str(), Some(kernels.as_str()));
        assert_eq!(toml["dependencies"].as_table().map(|table| table.len()), Some(2), "{toml:?}");
        taken_from(source, &toml["dependencies"]["ring-device"], "../..", "ring-device");
    }
}

fn taken_from(source: &Source, ring: &toml::Value, up: &str, name: &str) {
    match source {
        Source::Version(version) => assert_eq!(ring.as_str(), Some(version.as_str())),
        Source::Git(url) => assert_eq!(ring["git"].as_str(), Some(url.as_str())),
        Source::Folder(clone) => {
            let path = Path::new(up).join(clone).join("crates").join(name);
            assert_eq!(ring["path"].as_str().map(Path::new), Some(path.as_path()));
        }
    }
}
