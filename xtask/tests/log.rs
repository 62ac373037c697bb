//! Fails when the events that `ring-host` and `ring-net` log and the tables of them in docs/operations.md are not the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::Workspace;

/// Where the tables are, up to the next heading of its level.
const SECTION: &str = "\n## The log\n";

const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

/// Level, message, and the names of the fields in their order.
type Event = (String, String, Vec<String>);

#[test]
fn the_log_is_as_its_tables_say() {
    let root = Workspace::locate().unwrap().root().to_owned();
    let mut logged = BTreeSet::new();
    for package in ["ring-host", "ring-net"] {
        read(&root.join("crates").join(package).join("src"), &mut logged);
    }
    let document = fs::read_to_string(root.join("docs/operations.md")).unwrap();
    let rows = rows(&document);
    let listed: BTreeSet<_> = rows.iter().cloned().collect();
    assert!(logged.len() > 40, "only {} events were found", logged.len());
    assert_eq!(rows.len(), listed.len(), "an event is listed twice");
    let unlisted: Vec<_> = logged.difference(&listed).collect();
    let unlogged: Vec<_> = listed.difference(&logged).collect();
    assert!(
        unlisted.is_empty() && unlogged.is_empty(),
        "logged and not listed: {unlisted:#?}; listed and not logged: {unlogged:#?}"
    );
}

#[test]
fn events_are_read_as_they_are_written() {
    let source = r#"
fn work() {
    // tracing::info!("in a comment");
    let _span = tracing::debug_span!("work").entered();
    tracing::info!("alone");
    tracing::warn!(
        kernel = K::NAME, %error, ?why, found.reopened, link = %format!("{}, {}", one, two[0]),
        "message, with a comma",
    );
}

#[cfg(test)]
mod tests {
    fn of_a_test() {
        tracing::error!("of a test");
    }
}

fn after() {
    tracing::trace!(waited = ?deadline.waited(), "behind the tests");
}
"#;
    let event = |level: &str, message: &str, fields: &[&str]| {
        (level.to_owned(), message.to_owned(), fields.iter().map(|&name| name.to_owned()).collect())
    };
    let fields = ["kernel", "error", "why", "found.reopened", "link"];
    let expected = [
        event("INFO", "alone", &[]),
        event("WARN", "message, with a comma", &fields),
        event("TRACE", "behind the tests", &["waited"]),
    ];
    assert_eq!(events(source, "a text"), expected);
}

/// Adds the events of a folder's sources.
fn read(folder: &Path, found: &mut BTreeSet<Event>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.extend(events(&text, &path.display().to_string()));
        }
    }
}

/// The events of a source, but for its tests; `place` names it.
fn events(text: &str, place: &str) -> Vec<Event> {
    let (mut code, mut in_tests) = (String::new(), false);
    for line in text.lines() {
        in_tests = (in_tests || line == "mod tests {") && line != "}";
        if !in_tests && !line.trim_start().starts_with("//") {
            code.extend([line, "\n"]);
        }
    }
    let mut found = Vec::new();
    for after in code.split("tracing::").skip(1) {
        let name = after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
        if name == "debug_span" {
            continue;
        }
        let level = name.to_uppercase();
        let arguments = after.strip_prefix(name).and_then(|rest| rest.strip_prefix("!("));
        let arguments = arguments.filter(|_| LEVELS.contains(&&*level));
        let arguments = arguments.unwrap_or_else(|| panic!("{place}: tracing::{name} is no event"));
        let mut arguments = arguments_of(arguments);
        let message = arguments.pop().unwrap_or_default();
        let message = message.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let message = message.unwrap_or_else(|| panic!("{place}: {name}! without a message"));
        assert!(!message.contains(['{', '\\', '`', '|']), "{place}: '{message}' is no plain text");
        let fields = arguments.iter().map(|argument| field(argument, place)).collect();
        found.push((level, message.to_owned(), fields));
    }
    found
}

/// The name of the field that an argument is.
fn field(argument: &str, place: &str) -> String {
    let name = argument.split_once(" = ").map_or(argument, |(name, _)| name);
    let name = name.trim_start_matches(['%', '?']);
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    assert!(!name.is_empty() && name.chars().all(is_name), "{place}: '{argument}' is no field");
    name.to_owned()
}

/// What lies between the commas, up to the parenthesis that closes a call.
fn arguments_of(text: &str) -> Vec<String> {
    let (mut arguments, mut depth, mut in_text) = (vec![String::new()], 0, false);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let last = arguments.last_mut().unwrap();
        match c {
            ')' if !in_text && depth == 0 => break,
            ',' if !in_text && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            '(' | '[' | '{' if !in_text => depth += 1,
            ')' | ']' | '}' if !in_text => depth -= 1,
            '"' => in_text = !in_text,
            _ => {}
        }
        last.push(c);
        if in_text && c == '\\' {
            last.extend(characters.next());
        }
    }
    let arguments = arguments.iter().map(|argument| argument.trim().to_owned());
    arguments.filter(|argument| !argument.is_empty()).collect()
}

/// The events of the tables. Those that a person is to act on say what they mean, and what to do.
fn rows(document: &str) -> Vec<Event> {
    let (_, section) = document.split_once(SECTION).expect("a section on the log");
    let section = section.split("\n## ").next().unwrap();
    let mut found = Vec::new();
    for line in section.lines() {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        if !LEVELS.contains(&cells[0]) {
            continue;
        }
        let explained = ["ERROR", "WARN", "INFO"].contains(&cells[0]);
        assert_eq!(cells.len(), if explained { 5 } else { 3 }, "{line}");
        assert!(cells[3..].iter().all(|cell| !cell.is_empty()), "not explained: {line}");
        let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let message: Vec<String> = quoted(cells[1]);
        let [message] = &message[..] else { panic!("no message: {line}") };
        found.push((cells[0].to_owned(), message.clone(), quoted(cells[2])));
    }
    found
}
