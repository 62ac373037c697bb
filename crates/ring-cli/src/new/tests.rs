use super::{Name, Source, template, write::write};
use std::fs;
use std::path::{Path, PathBuf};

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ring-new-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn files(name: &str, source: &Source) -> Vec<(&'static str, String)> {
    template::files(&name.parse::<Name>().unwrap(), source, true)
}

/// `examples/04-own-kernel` is what a user gets, so that one of the two can be read and tested.
#[test]
fn the_example_is_the_template_filled_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let example = root.join("examples/04-own-kernel");
    let anew = std::env::var_os("RING_WRITE_EXAMPLE").is_some();
    for (file, text) in files("squares", &Source::Folder("..".into())) {
        if anew {
            fs::write(example.join(file), &text).unwrap();
        }
        let there = fs::read_to_string(example.join(file)).unwrap_or_default();
        assert_eq!(
            there.replace("\r\n", "\n"),
            text,
            "examples/04-own-kernel/{file} is not as crates/ring-cli/template has it; to write it anew: \
             this test, with RING_WRITE_EXAMPLE=1 in its environment"
        );
    }
}

#[test]
fn nothing_is_left_to_fill_in() {
    for (file, text) in files("x", &Source::Version("1.0.0".to_owned())) {
        assert!(!text.contains("{{"), "{file}: {text}");
    }
}

#[test]
fn what_the_user_wrote_is_not_filled_in() {
    let files =
        files("x", &Source::Git("https://host/{{nightly}}{{name}}{{ring-host}}".to_owned()));
    for name in ["Cargo.toml", "kernels/Cargo.toml"] {
        let (_, text) = files.iter().find(|(file, _)| *file == name).unwrap();
        assert!(text.contains("git = \"https://host/{{nightly}}{{name}}{{ring-host}}\""), "{text}");
    }
}

/// `ring_host` has a module `kernels`, and a program names both.
#[test]
fn the_crate_of_the_kernels_is_named_after_the_project() {
    let files = files("my-app", &Source::Git("https://host/ring".to_owned()));
    let text = |name: &str| &files.iter().find(|(file, _)| *file == name).unwrap().1;
    assert!(text("kernels/Cargo.toml").contains("name = \"my-app-kernels\""));
    assert!(text("Cargo.toml").contains("my-app-kernels = { path = \"kernels\" }"));
    assert!(text("src/main.rs").contains("use my_app_kernels::Square;"));
}

#[test]
fn the_kernels_are_short_and_safe() {
    let files = files("x", &Source::Git("https://host/ring".to_owned()));
    let (_, kernels) = files.iter().find(|(file, _)| *file == "kernels/src/lib.rs").unwrap();
    let code = kernels.lines().filter(|line| !line.is_empty() && !line.contains("//"));
    assert!(code.count() <= 10, "{kernels}");
    assert!(files.iter().all(|(_, text)| !text.contains("unsafe")));
}

#[test]
fn a_folder_with_something_in_it_stays_as_it_is() {
    let root = scratch("exists");
    let folder = root.join("x");
    fs::create_dir(&folder).unwrap();
    write(&folder, &[("a/b", "1".to_owned())]).unwrap(); // empty: taken
    let said = write(&folder, &[("a/c", "2".to_owned())]).unwrap_err().message();
    assert!(said.contains("exists") && said.contains("another name"), "{said}");
    assert_eq!(fs::read_to_string(folder.join("a/b")).unwrap(), "1");
    assert!(!folder.join("a/c").exists());
    fs::write(root.join("file"), "").unwrap();
    assert!(write(&root.join("file"), &[]).unwrap_err().message().contains("exists"));
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn what_fails_half_way_leaves_nothing() {
    let root = scratch("half");
    let folder = root.join("x");
    let files = [("a", "1".to_owned()), ("a/b", "a file is no folder".to_owned())];
    let said = write(&folder, &files).unwrap_err().message();
    assert!(said.contains("cannot write") && said.contains("x/a"), "{said}");
    assert!(!said.contains(".x.new"), "{said}");
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "nothing is left");
    let said = write(&root.join("none/x"), &files).unwrap_err().message();
    assert!(said.contains("cannot write") && said.contains("none"), "{said}");
    fs::remove_dir_all(root).unwrap();
}
