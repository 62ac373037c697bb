//! PTX as functions of instructions, and which instruction may follow which.

use super::operand::{Names, Operand, Register, list, operand};
use std::collections::HashMap;

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instruction<'a> {
    /// Where it stands, counted from 1.
    pub line: usize,
    /// Its text, without label and predicate.
    pub text: &'a str,
    /// The predicate, and the value of it with which the instruction is carried out.
    pub guard: Option<(Register, bool)>,
    /// The opcode cut at dots.
    pub opcode: Vec<&'a str>,
    /// Its operands, in the order of the text.
    pub operands: Vec<Operand<'a>>,
    /// Indices of the instructions that may come next: behind a branch that is not taken comes the
    /// first of them.
    pub next: Vec<usize>,
}

impl<'a> Instruction<'a> {
    /// The opcode's first part.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.opcode[0]
    }

    /// Whether the opcode has `part`.
    #[must_use]
    pub fn has(&self, part: &str) -> bool {
        self.opcode.contains(&part)
    }

    /// Whether it is a load or store that may be of memory outside the block.
    #[must_use]
    pub fn is_access_outside(&self) -> bool {
        let inside = ["param", "local", "shared", "const"];
        matches!(self.name(), "ld" | "st" | "ldu") && !inside.iter().any(|space| self.has(space))
    }

    /// The registers that it writes.
    pub fn writes(&self) -> impl Iterator<Item = Register> + '_ {
        const NONE: [&str; 13] = [
            "st",
            "red",
            "bra",
            "brx",
            "bar",
            "barrier",
            "fence",
            "membar",
            "call",
            "ret",
            "exit",
            "trap",
            "nanosleep",
        ];
        let first = self.operands.first().filter(|_| !NONE.contains(&self.name()));
        let list = match first {
            Some(Operand::List(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        list.iter().filter_map(|operand| match operand {
            Operand::Register(register) => Some(*register),
            _ => None,
        })
    }
}

/// An entry point or a function.
#[derive(Debug, Clone)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether the host launches it.
    pub entry: bool,
    /// The line that names it.
    pub line: usize,
    /// The line of its last brace.
    pub end: usize,
    /// Its parameters' names, in order.
    pub parameters: Vec<&'a str>,
    /// Its instructions, in the order of the text.
    pub code: Vec<Instruction<'a>>,
    /// How many registers it has.
    pub registers: usize,
    labels: HashMap<&'a str, usize>,
    tables: HashMap<&'a str, Vec<&'a str>>,
}

/// The functions that `ptx`, which has [no comments](ring_ptx::without_comments), defines.
#[must_use]
pub fn functions(ptx: &str) -> Vec<Function<'_>> {
    let (mut found, mut endless) = (Vec::new(), Vec::new());
    let (mut start, mut line, mut at) = (0, 1, 0);
    let bytes = ptx.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'{' if !ptx[start..at].contains('=') => {
                let head = &ptx[start..at];
                let end = at + body(&ptx[at..]);
                let first = line - head.trim_start().matches('\n').count();
                if let Some(mut function) = heading(head, first) {
                    function.read(&ptx[at + 1..end], line);
                    found.push(function);
                }
                note_endless(head, &mut endless);
                line += ptx[at..end].matches('\n').count();
                (start, at) = (end + 1, end);
            }
            b';' => {
                note_endless(&ptx[start..at], &mut endless);
                start = at + 1;
            }
            b'\n' => {
                line += 1;
                // `.version`, `.target` and the like end with their line.
                if !ptx[start..at].contains(['(', '=', '[']) && !ptx[start..at].contains(".func") {
                    start = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    for function in &mut found {
        function.link(&endless);
    }
    found
}

/// Where the brace that `text` begins with is closed.
fn body(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn heading(head: &str, line: usize) -> Option<Function<'_>> {
    let signature = ring_ptx::signature(head)?;
    Some(Function {
        name: signature.name,
        entry: signature.entry,
        line,
        end: line,
        parameters: signature.parameters().collect(),
        code: Vec::new(),
        registers: 0,
        labels: HashMap::new(),
        tables: HashMap::new(),
    })
}

fn note_endless<'a>(head: &'a str, endless: &mut Vec<&'a str>) {
    if head.contains(".noreturn")
        && let Some(function) = ring_ptx::signature(head)
    {
        endless.push(function.name);
    }
}

impl<'a> Function<'a> {
    /// Reads a body that begins on `line`.
    fn read(&mut self, body: &'a str, mut line: usize) {
        let mut names = Names::new();
        let (mut start, mut inside) = (0, 0);
        for (at, c) in body.char_indices() {
            match c {
                '{' if !body[start..at].trim().is_empty() => inside += 1,
                '{' => {
                    names.open();
                    start = at + 1;
                }
                '}' if inside > 0 => inside -= 1,
                '}' => {
                    names.close();
                    start = at + 1;
                }
                ';' => {
                    let text = &body[start..at];
                    self.statement(
                        text,
                        line - text.trim_start().matches('\n').count(),
                        &mut names,
                    );
                    start = at + 1;
                }
                '\n' => {
                    line += 1;
                    // A label ends with its colon, and stands on a line of its own.
                    if let Some(label) = body[start..at].trim().strip_suffix(':') {
                        self.labels.insert(label, self.code.len());
                        start = at + 1;
                    }
                }
                _ => {}
            }
        }
        (self.registers, self.end) = (names.count(), line);
    }

    fn statement(&mut self, text: &'a str, line: usize, names: &mut Names<'a>) {
        let mut text = text.trim();
        if let Some((label, rest)) = text.split_once(':')
            && !rest.starts_with(':')
            && label.chars().all(|c| c.is_alphanumeric() || "_$%".contains(c))
        {
            text = rest.trim_start();
            self.labels.insert(label, self.code.len());
            if let Some(targets) = text.strip_prefix(".branchtargets") {
                self.tables.insert(label, targets.split(',').map(str::trim).collect());
                return;
            }
        }
        if let Some(declared) = text.strip_prefix(".reg") {
            if !names.is_outermost() {
                let list = declared.trim_start();
                let list = list.split_once(char::is_whitespace).map_or("", |(_, list)| list);
                list.split(',').for_each(|name| names.declare(name.trim()));
            }
            return;
        }
        let mut guard = None;
        if let Some(rest) = text.strip_prefix('@') {
            let (name, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            text = rest.trim_start();
            let wanted = !name.starts_with('!');
            guard = Some((names.of(name.trim_start_matches('!')), wanted));
        }
        if text.is_empty() || text.starts_with('.') {
            return;
        }
        let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let operands = list(operands).map(|one| operand(one, names)).collect();
        let opcode = opcode.split('.').collect();
        self.code.push(Instruction { line, text, guard, opcode, operands, next: Vec::new() });
    }

    /// Finds what may follow each instruction; calls of `endless` functions do not return.
    fn link(&mut self, endless: &[&str]) {
        for at in 0..self.code.len() {
            let instruction = &self.code[at];
            let label = |name: &str| self.labels.get(name).copied();
            let named = |operand: &Operand<'a>| match operand {
                Operand::Name(name) => Some(*name),
                _ => None,
            };
            let mut names = instruction.operands.iter().filter_map(named);
            let (goes_on, to) = match instruction.name() {
                "bra" => (instruction.guard.is_some(), names.filter_map(label).collect()),
                "brx" => {
                    let table = names.find_map(|name| self.tables.get(name));
                    let to = table.into_iter().flatten().filter_map(|name| label(name)).collect();
                    (false, to)
                }
                "ret" | "exit" | "trap" => (instruction.guard.is_some(), Vec::new()),
                "call" => (!names.any(|name| endless.contains(&name)), Vec::new()),
                _ => (true, Vec::new()),
            };
            let following = (goes_on && at + 1 < self.code.len()).then_some(at + 1);
            self.code[at].next = following.into_iter().chain(to).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::operand::Operand;
    use super::functions;
    use ring_ptx::without_comments;

    const PTX: &str = "\
.version 8.4
.target sm_70
.shared .align 16 .b8 block[64];
.func gone
()
.noreturn;
.visible .entry first(
\t.param .u64 .ptr .align 1 first_param_0
)
{
\t.reg .b64 %rd<3>;
\t// a { comment
\tld.param.b64 \t%rd1, [first_param_0];
\t{ .reg .u64 %a; mov.u64 %a, block; cvta.shared.u64 %rd2, %a; }
\t{ .reg .u64 %a; mov.u64 %a, 7; }
$L__BB0_1:
\t@!%p1 bra \t$L__BB0_1;
\tst.relaxed.sys.b64 [%rd2+-8], {%rd1, 3};
\tcall.uni gone, ();
\tret;
}
.func (.param .b32 r) second(.param .b64 second_param_0, .param .b32 second_param_1)
{
\tret;
}
";

    #[test]
    fn functions_instructions_and_what_follows_are_found() {
        let ptx = without_comments(PTX);
        let found = functions(&ptx);
        let [first, second] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.name, first.entry, first.line), ("first", true, 7));
        assert_eq!((first.parameters.as_slice(), first.end), (["first_param_0"].as_slice(), 21));
        assert_eq!((second.name, second.entry, second.line), ("second", false, 22));
        assert_eq!(second.parameters, ["second_param_0", "second_param_1"]);
        let code = &first.code;
        let next: Vec<&[usize]> = code.iter().map(|one| one.next.as_slice()).collect();
        assert_eq!(next, [&[1][..], &[2], &[3], &[4], &[5, 4], &[6], &[], &[]]);
        assert_eq!((code[0].line, code[1].line, code[4].line), (13, 14, 17));
        assert!(code[4].guard.is_some_and(|(_, wanted)| !wanted));
        let Operand::Memory(_, offset) = &code[5].operands[0] else { panic!() };
        assert_eq!(*offset, -8);
        // Each pair of braces has its own `%a`.
        assert_ne!(code[1].writes().next(), code[3].writes().next());
        assert_eq!(code[1].operands[1], Operand::Name("block"));
    }
}
