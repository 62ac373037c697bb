//! Files and output of other programs: manifests, Cargo.lock, what ptxas says; and foreign text on its way into a
//! page or a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_cli::text::{WIDTH, wrapped};
use xtask::manifest::Manifest;
use xtask::{assemble, lock};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    manifest(&text);
    cargo(&text);
    programs(&text);
    shown(&text);
});

/// A manifest that can be read is written and read again as it is.
fn manifest(text: &str) {
    // A file's line ends are made `\n` when it is read.
    if let Ok(manifest) = Manifest::parse(&text.replace('\r', "")) {
        assert_eq!(Manifest::parse(&manifest.text()).expect("a manifest"), manifest);
    }
}

fn cargo(text: &str) {
    if let (Ok(one), Ok(all)) = (lock::closure(text, &["a"]), lock::closure(text, &["a", "b"])) {
        assert!(all.is_sorted(), "{all:?}");
        assert!(one.iter().all(|line| all.contains(line)));
    }
}

fn programs(text: &str) {
    let mut names: Vec<String> =
        assemble::parse(text).into_iter().map(|usage| usage.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "a kernel twice");
}

/// Nothing of the text is lost, and none of it is taken for markup.
fn shown(text: &str) {
    let safe = ring_cli::escaped(text);
    assert!(!safe.contains(['<', '>', '"', '\'']), "{safe}");
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    let back = entities.iter().fold(safe, |text, (entity, sign)| text.replace(entity, sign));
    assert_eq!(back, text);
    let page = wrapped("  label  ", text);
    assert!(page.split_whitespace().skip(1).eq(text.split_whitespace()), "{page}");
    for line in page.lines() {
        let one = line.split_whitespace().count() <= 2;
        assert!(one || line.chars().count() <= WIDTH, "{line}");
    }
}
