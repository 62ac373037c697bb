//! The rules for PTX, tested: the checked-in PTX is changed in every way that they are there to find, and
//! each change must be refused, with the function, the line and the rule.

use std::collections::BTreeSet;

use ring_device::BlockMemory;
use xtask::golden::{self, BLOCK, Violation, code};
use xtask::pins::{BENCH, BUILT_IN, EXAMPLES, MODULES, Module, WHOLE_DEVICE};
use xtask::{Workspace, workspace};

fn read(module: &Module) -> String {
    let ws = Workspace::locate().unwrap();
    workspace::read(&ws.ptx(module)).unwrap()
}

/// Violations that name a line.
fn violations(module: &Module, lines: &[String]) -> Vec<Violation> {
    let mut found = golden::check(module, &lines.join("\n"));
    found.retain(|violation| violation.line > 0);
    found
}

/// `line` with an opcode in place of another, which `new` makes; nothing where that is the same.
fn with_opcode(line: &str, new: impl Fn(&str) -> String) -> Option<String> {
    let is = |word: &&str| ["ld.", "st.", "fence."].iter().any(|name| word.starts_with(name));
    let opcode = line.split([' ', '\t']).find(is)?;
    let changed = line.replacen(opcode, &new(opcode), 1);
    (changed != line).then_some(changed)
}

/// An access without what makes it atomic.
fn weak(opcode: &str) -> String {
    ["relaxed", "acquire", "release"]
        .iter()
        .flat_map(|order| ["sys", "gpu"].map(|scope| format!(".{order}.{scope}")))
        .fold(opcode.to_owned(), |opcode, strong| opcode.replace(&strong, ""))
}

/// An access or a fence of another scope. Of what is named block-shared memory all scopes mean the block.
fn narrower(opcode: &str, scope: &str) -> String {
    if opcode.contains(".shared") {
        return opcode.to_owned();
    }
    opcode.replace(".sys", scope).replace(".gpu", scope)
}

/// A change of the line that it is given, if the line is of the kind that it is for.
type Change = fn(&str) -> Option<String>;

/// Changes that a rule for single instructions refuses, whatever stands around them.
const SINGLE: [(&str, Change); 11] = [
    ("weak", |line| with_opcode(line, weak)),
    ("volatile", |line| {
        with_opcode(line, |opcode| match weak(opcode) {
            weak if weak != opcode && !opcode.starts_with("fence") => {
                weak.replacen('.', ".volatile.", 1)
            }
            _ => opcode.to_owned(),
        })
    }),
    ("mmio", |line| with_opcode(line, |opcode| opcode.replace(".relaxed.", ".mmio.relaxed."))),
    (".cluster", |line| with_opcode(line, |opcode| narrower(opcode, ".cluster"))),
    (".gpu", |line| with_opcode(line, |opcode| narrower(opcode, ".gpu"))),
    (".cta", |line| {
        // Of fences each by itself, below.
        with_opcode(line, |opcode| match opcode.starts_with("fence") {
            true => opcode.to_owned(),
            false => narrower(opcode, ".cta"),
        })
    }),
    ("fence of .gpu", |line| {
        with_opcode(line, |opcode| opcode.replace("acq_rel.cta", "acq_rel.gpu"))
    }),
    ("no release", |line| with_opcode(line, |opcode| opcode.replace(".release.", ".relaxed."))),
    ("two elements", |line| with_opcode(line, |opcode| opcode.replace(".b128", ".v2.b64"))),
    ("half as wide", |line| with_opcode(line, |opcode| opcode.replace(".b128", ".b64"))),
    ("split", split),
];

/// Two accesses of 8 bytes in place of one of 16.
fn split(line: &str) -> Option<String> {
    let opcode = line.split([' ', '\t']).find(|word| word.ends_with(".global.b128"))?;
    let (half, address) = (opcode.replace(".b128", ".b64"), line.split(['[', ']']).nth(1)?);
    let [first, second] = [address.to_owned(), format!("{address}+8")].map(|at| {
        if half.starts_with("ld") {
            format!("{half} %half, [{at}];")
        } else {
            format!("{half} [{at}], %half;")
        }
    });
    Some(format!("{{ .reg .b64 %half; {first} {second} }}"))
}

/// Words of a response in the block's pool, which threads of a handler may share: the host never sees
/// them, and if no thread of the handler wrote a word that another writes they might be plain bytes.
fn is_output(line: &str) -> bool {
    line.trim_start().starts_with("st.relaxed.sys.shared.b32")
}

#[test]
fn every_changed_access_is_refused() {
    for module in MODULES {
        let ptx = read(module);
        let kernels_of_rings = ring_kernels(&ptx);
        for (what, change) in SINGLE {
            let mut changed = BTreeSet::new();
            let lines = ptx.lines().enumerate().map(|(at, line)| {
                let new = change(line).filter(|_| kernels_of_rings.contains(&(at + 1)));
                let new = new.filter(|_| !(what == "weak" && is_output(line)));
                changed.extend(new.as_ref().map(|_| at + 1));
                new.unwrap_or_else(|| line.to_owned())
            });
            let lines: Vec<String> = lines.collect();
            assert!(!changed.is_empty(), "{}: {what}: nothing to change", module.ptx);
            let found: BTreeSet<usize> =
                violations(module, &lines).iter().map(|violation| violation.line).collect();
            let missed: Vec<String> =
                changed.difference(&found).map(|at| format!("{at}: {}", lines[at - 1])).collect();
            assert!(
                missed.is_empty(),
                "{}: {what}: not refused:\n{}",
                module.ptx,
                missed.join("\n")
            );
        }
    }
}

/// The lines, counted from 1, of functions that name the block's memory or are called with it.
fn ring_kernels(ptx: &str) -> BTreeSet<usize> {
    let text = ring_ptx::without_comments(ptx);
    let lines: Vec<&str> = text.lines().collect();
    let functions = code::functions(&text);
    let of_ring = functions.iter().filter(|one| {
        // The rules of kernels with ports and of grids have tests of their own.
        !one.entry
            || !has_own_tests(one.name)
                && lines[one.line - 1..one.end]
                    .iter()
                    .any(|line| BLOCK.iter().any(|name| line.contains(name)))
    });
    of_ring.flat_map(|one| one.line..=one.end).collect()
}

#[test]
fn every_changed_access_of_a_kernel_without_a_ring_is_refused() {
    let mut refused = 0;
    for module in MODULES {
        let rings = ring_kernels(&read(module));
        for piece in pieces(module).iter().filter(|piece| !rings.contains(&piece.line)) {
            for at in piece.own..piece.lines.len() {
                for (what, change) in SINGLE {
                    let Some(new) = change(&piece.lines[at]) else { continue };
                    let mut lines = piece.lines.clone();
                    lines[at] = new;
                    let found = violations(module, &lines);
                    let told = found.iter().any(|one| one.function.as_ref() == Some(&piece.name));
                    assert!(told, "{}: {what}: {}", piece.name, piece.lines[at].trim());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 50, "only {refused} changes were tried");
}

#[test]
fn other_names_types_and_more_fences_are_not_refused() {
    for module in MODULES {
        let mut ptx = read(module).replace("%rd", "%wide").replace("%r", "%n").replace("%p", "%is");
        for kind in ["ld", "st"] {
            for access in [".relaxed.sys", ".acquire.sys", ".release.sys", ""] {
                for space in [".global", ""] {
                    let opcode = format!("{kind}{access}{space}");
                    ptx = ptx.replace(&format!("\t{opcode}.b64"), &format!("\t{opcode}.u64"));
                }
            }
        }
        let twice = |scope: &str, ptx: String| {
            let fence = format!("fence.acq_rel.{scope};");
            ptx.replace(&fence, &format!("{fence} {fence}"))
        };
        let ptx = twice("cta", twice("sys", ptx)).replace("\tbar.", "\tfence.sc.sys; bar.");
        assert_eq!(golden::check(module, &ptx), [], "{}", module.ptx);
    }
}

/// A function by itself, with what it needs to be read: the lines of the module before its functions,
/// and for one that is called its callers.
struct Piece {
    name: String,
    /// The module's line that names it, counted from 1.
    line: usize,
    lines: Vec<String>,
    /// Where its own lines begin.
    own: usize,
}

fn pieces(module: &Module) -> Vec<Piece> {
    let ptx = read(module);
    let (text, lines) = (ring_ptx::without_comments(&ptx), ptx.lines().collect::<Vec<&str>>());
    let functions = code::functions(&text);
    for entry in module.entries {
        assert!(functions.iter().any(|one| one.entry && one.name == *entry), "{entry} is not read");
    }
    let head = functions.iter().map(|one| one.line).min().unwrap() - 1;
    let of = |one: &code::Function<'_>| one.line - 1..one.end;
    let piece = |one: &code::Function<'_>| {
        let callers = functions.iter().filter(|other| other.name != one.name && !one.entry);
        let mut kept = lines[..head].to_vec();
        // One entry point is enough for what all of them leave in the block's memory.
        let first = callers.clone().find(|other| other.entry);
        callers
            .filter(|other| !other.entry)
            .chain(first)
            .for_each(|other| kept.extend(&lines[of(other)]));
        let own = kept.len();
        kept.extend(&lines[of(one)]);
        Piece {
            name: one.name.to_owned(),
            line: one.line,
            lines: kept.into_iter().map(str::to_owned).collect(),
            own,
        }
    };
    // The rules of kernels with ports and of grids have tests of their own.
    functions.iter().filter(|one| !one.entry || !has_own_tests(one.name)).map(piece).collect()
}

/// Whether an entry point is a kernel with ports, or of scope `Grid`.
fn has_own_tests(entry: &str) -> bool {
    golden::ports::is_listed(entry) || golden::grids::is_listed(entry)
}

/// What a fence, or a look that acquires, may become.
fn weaker(lines: &[String], at: usize) -> Vec<(&'static str, Vec<(usize, String)>)> {
    let line = lines[at].trim();
    if line.contains("ld.acquire.") {
        let relaxed = lines[at].replace("ld.acquire.", "ld.relaxed.");
        return vec![("relaxed", vec![(at, relaxed)])];
    }
    if !line.starts_with("fence.acq_rel.") {
        return Vec::new();
    }
    let mut found = vec![("deleted", vec![(at, String::new())])];
    if !line.contains(".cta") {
        found.push((".cta", vec![(at, "fence.acq_rel.cta;".to_owned())]));
    }
    if let Some(store) =
        lines[at..].iter().position(|line| is_store(line)).map(|behind| at + behind)
    {
        let behind = format!("{} {line}", lines[store]);
        found.push(("moved behind the next store", vec![(at, String::new()), (store, behind)]));
    }
    found
}

fn is_store(line: &str) -> bool {
    line.trim_start().starts_with("st.") || line.contains("; st.")
}

/// A change of a fence that was not refused.
struct Tried<'a> {
    function: &'a str,
    what: &'a str,
    fence: &'a str,
    /// The instruction behind the fence.
    next: &'a str,
    /// The next store behind it.
    store: &'a str,
}

impl Tried<'_> {
    fn stores(&self, at: usize) -> bool {
        self.store.contains(&format!("+{at}]"))
    }

    fn moved(&self) -> bool {
        self.what.starts_with("moved")
    }
}

/// Whether a change breaks nothing.
type Harmless = fn(&Tried<'_>) -> bool;

/// Changes of fences that break nothing, and why.
const HARMLESS: [(&str, Harmless); 9] = [
    (
        "await_room: the loads that the fence follows are ld.acquire.sys, each with a fence of the block's \
         behind it where others go by it, and a barrier follows",
        |tried| tried.next.starts_with("st.") && tried.stores(BlockMemory::DECISION),
    ),
    (
        "act_on: the fence is for the credit. It may stand behind the tail, which others read behind a barrier",
        |tried| {
            tried.fence.contains(".cta") && tried.moved() && tried.stores(BlockMemory::INBOX_TAIL)
        },
    ),
    (
        "Outbox::push_inline: behind the first atom of the message, whose stamp proves it, the fence still \
         stands before the control atom, which the inbox acquires first",
        |tried| {
            tried.function.starts_with("bench_link_")
                && tried.moved()
                && tried.store.contains("b128")
        },
    ),
    (
        "Outbox::commit: behind the first atom of a line that is scrubbed, whose stamp says nothing new, the fence still stands \
         before the control atom, which does",
        |tried| {
            !tried.function.starts_with("bench_link_")
                && tried.fence.contains(".sys")
                && tried.moved()
                && tried.store.contains("b128")
        },
    ),
    (
        "other_poller_answers: whoever heard it there writes into a slot only after `has_room`, which fences, \
         or a barrier. Where the branches on thread 0 do not hang on one predicate the rules cannot tell, and want the fence",
        |tried| tried.fence.contains(".cta") && tried.stores(BlockMemory::IDLE_SINCE),
    ),
    ("panicked: behind the last fence the thread ends, without another access", |tried| {
        tried.next == "ret;"
    }),
    (
        "FragileInOrder: its handler never touches the state that the fence behind a command is for",
        |tried| tried.function == "ring_FragileInOrder" && tried.fence.contains(".sys"),
    ),
    (
        "Count: its handler reaches elements of buffers only by read-modify-writes of the GPU's scope, which no L1 cache answers: what a \
         view acquires it does not need",
        |tried| tried.function == "ring_Count" && tried.fence.contains(".gpu"),
    ),
    (
        "Mlp: its handler only reads buffers, so that in front of an inline answer there is nothing that a fence lets the host see",
        |tried| {
            tried.function == "ring_Mlp"
                && tried.fence.contains(".sys")
                && tried.store.contains("b128")
        },
    ),
];

#[test]
fn every_weaker_fence_or_look_is_refused() {
    let mut used = [0; HARMLESS.len()];
    // Kernels with ports and grids, of which the last module is made, have tests of their own.
    for (module, least) in [(&BUILT_IN, 40), (&EXAMPLES, 40), (&BENCH, 40), (&WHOLE_DEVICE, 1)] {
        let (mut refused, mut missed) = (0, Vec::new());
        for piece in pieces(module) {
            let lines = &piece.lines;
            assert_eq!(violations(module, lines), [], "{} by itself", piece.name);
            for at in piece.own..lines.len() {
                for (what, change) in weaker(lines, at) {
                    let mut changed = lines.clone();
                    change.into_iter().for_each(|(at, line)| changed[at] = line);
                    let found = violations(module, &changed);
                    let mut behind = lines[at + 1..].iter().map(|line| line.trim());
                    let next = behind.find(|line| !line.is_empty() && !line.starts_with("//"));
                    let tried = Tried {
                        function: &piece.name,
                        what,
                        fence: lines[at].trim(),
                        next: next.unwrap_or_default(),
                        store: lines[at..]
                            .iter()
                            .find(|line| is_store(line))
                            .map_or("", |line| line),
                    };
                    if found.iter().any(|one| one.function.as_ref() == Some(&piece.name)) {
                        refused += 1;
                    } else if let Some(k) = HARMLESS.iter().position(|(_, is)| is(&tried)) {
                        used[k] += 1;
                    } else {
                        let number = at + 1 - piece.own;
                        let line = lines[at].trim();
                        missed.push(format!("{}, line {number}: {line}: {what}", piece.name));
                    }
                }
            }
        }
        assert!(missed.is_empty(), "{}: not refused:\n{}", module.ptx, missed.join("\n"));
        assert!(refused > least, "{}: only {refused} changes were tried", module.ptx);
        println!("{}: {refused} changes refused", module.ptx);
    }
    println!("harmless: {used:?}");
    for ((why, _), used) in HARMLESS.iter().zip(used) {
        assert!(used > 0, "no change is harmless because of {why}");
    }
}

#[test]
fn the_two_changes_that_were_not_seen_are_refused_in_every_function() {
    for module in MODULES {
        let ptx = read(module);
        let text = ring_ptx::without_comments(&ptx);
        let functions = code::functions(&text);
        for (from, to) in [
            ("fence.acq_rel.sys", "fence.acq_rel.cta"),
            (".relaxed.sys.global.b128", ".global.b128"),
            (".acquire.sys.global.b128", ".global.b128"),
        ] {
            let found = golden::check(module, &ptx.replace(from, to));
            for one in &functions {
                let mut own = text.lines().skip(one.line - 1).take(one.end - one.line);
                let told = found.iter().any(|v| v.function.as_deref() == Some(one.name));
                assert_eq!(told, own.any(|line| line.contains(from)), "{from} in {}", one.name);
            }
        }
    }
}

/// Elements of buffers are read by weak accesses in kernels that are listed for their frozen buffers, and nowhere else.
#[test]
fn a_weak_read_of_an_element_is_refused_but_in_readers_of_frozen_buffers() {
    const RULE: &str = "access of a buffer that is not on the list";
    let refused = |module: &Module, from: &str, to: &str| {
        let found = golden::check(module, &read(module).replace(from, to));
        found.into_iter().filter(|violation| violation.why == RULE).count()
    };
    for kernel in ["ring_Mlp", "ring_Lstm", "ring_LstmBatch"] {
        assert_eq!(refused(&WHOLE_DEVICE, kernel, kernel), 0);
        assert!(refused(&WHOLE_DEVICE, kernel, "ring_Other") > 1, "{kernel}");
    }
    let element = "ld.relaxed.cta.global.b32";
    assert_eq!(refused(&EXAMPLES, element, element), 0);
    assert!(refused(&EXAMPLES, element, "ld.global.b32") > 1);
}

#[test]
fn a_violation_names_line_function_and_rule() {
    let ptx = read(&BUILT_IN);
    let at = ptx.lines().position(|line| line.contains("st.release.sys")).unwrap();
    let found = golden::check(&BUILT_IN, &ptx.replacen("st.release.sys", "st.relaxed.sys", 1));
    let said: Vec<String> = found.iter().map(ToString::to_string).collect();
    let begins = format!(
        "kernels.ptx:{}: ring_echo: access of an acknowledgement that is not on the list: st.relaxed.sys",
        at + 1
    );
    assert!(said.iter().any(|line| line.starts_with(&begins)), "{said:?}");
}
