//! A kernel that one process serves and others call, as a user does.
#![cfg(target_os = "linux")]

mod common;

use common::{LIMIT, Ran, read, ring, start, wait};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Serves with those options, does something meanwhile, and ends it by Ctrl-C.
fn served(options: &str, meanwhile: impl FnOnce()) -> Ran {
    let begun = Instant::now();
    let mut child = start(Path::new("."), options, &[]);
    let err = read(child.stderr.take());
    let mut out = BufReader::new(child.stdout.take().expect("the pipe was asked for"));
    let mut said = String::new();
    out.read_line(&mut said).expect("what is printed is UTF-8");
    assert!(
        said.starts_with("serving"),
        "{said}{}",
        if said.is_empty() { err.join().unwrap() } else { said.clone() }
    );
    meanwhile();
    let kill = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(kill.expect("sh can be run").success());
    while out.read_line(&mut said).expect("what is printed is UTF-8") > 0 {}
    let status = wait(&mut child, begun, LIMIT, options);
    let err = err.join().expect("the output can be read");
    let ran = Ran { status, out: said, err, time: begun.elapsed() };
    println!("`ring {options}` ended within {:?}", ran.time);
    ran
}

#[test]
fn a_kernel_is_called_by_processes_of_the_host() {
    let name = format!("cli-{}", std::process::id());
    let ran = served(&format!("serve --device cpu --name {name}"), || {
        let call = format!("call --name {name} --count 2000");
        let said =
            ["2,000 of 2,000 requests answered, 0 wrong, 0 unknown", "there and back, us: p50"];
        ring(&call).ends(0).says(&said);
        ring(&format!("{call} --depth 64")).ends(0).says(&["64 under way at a time"]);
        // Nobody else gets its name.
        let other = ring(&format!("serve --device cpu --name {name}")).ends(1);
        other.complains(&["cannot serve", &name, "is served already"]);
    });
    ran.ends(0)
        .says(&[&format!("serving echo as {name} on"), "2 clients, 4,000 requests, 4,000 answers"]);
}

#[test]
fn who_calls_what_nobody_serves_is_told_so() {
    let ran = ring("call --name nobody-serves-this --timeout 0.2").ends(1);
    ran.complains(&["cannot call nobody-serves-this", "no server answered within", "`ring serve`"]);
    let ran = ring("call --name a\u{fc}b --timeout 0.2").ends(1);
    ran.complains(&["cannot be the name of a service"]);
}

#[test]
fn a_server_ends_by_itself_when_it_is_told_to() {
    let name = format!("cli-for-{}", std::process::id());
    let ran = ring(&format!("serve --device cpu --name {name} --for 0.2")).ends(0);
    ran.says(&["0 clients, 0 requests, 0 answers"]);
}

#[cfg(not(feature = "network"))]
#[test]
fn a_command_without_the_network_says_how_to_get_it() {
    for options in
        ["serve --listen tcp/127.0.0.1:0", "call --connect tcp/127.0.0.1:1", "call --zenoh a.json5"]
    {
        ring(options).ends(1).complains(&["was built without the network", "--features network"]);
    }
}

#[cfg(feature = "network")]
fn free_endpoint() -> String {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("tcp/{}", socket.local_addr().unwrap())
}

#[cfg(feature = "network")]
#[test]
fn a_kernel_is_called_at_an_endpoint() {
    let endpoint = free_endpoint();
    let ran = served(&format!("serve --device cpu --name far --listen {endpoint}"), || {
        let call = format!("call --name far --connect {endpoint} --count 500");
        ring(&call).ends(0).says(&["500 of 500 requests answered, 0 wrong, 0 unknown"]);
    });
    ran.ends(0).says(&[&format!("at {endpoint}"), "1 clients, 500 requests, 500 answers"]);
}

#[cfg(feature = "network")]
#[test]
fn a_file_configures_zenoh() {
    let endpoint = free_endpoint();
    let directory = std::env::temp_dir();
    let file = |name: &str, text: String| {
        let path = directory.join(format!("ring-{}-{name}.json5", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    };
    let of = |does: &str| {
        let settings = format!(
            "{{ mode: 'peer', {does}: {{ endpoints: ['{endpoint}'] }}, scouting: {{ multicast: {{ enabled: false }} }} }}"
        );
        file(does, settings)
    };
    let (listen, connect) = (of("listen"), of("connect"));
    let serve = format!("serve --device cpu --name by-file --zenoh {}", listen.display());
    let ran = served(&serve, || {
        let call = format!("call --name by-file --zenoh {} --count 500", connect.display());
        ring(&call).ends(0).says(&["500 of 500 requests answered, 0 wrong, 0 unknown"]);
    });
    ran.ends(0).says(&[&format!("as {} says", listen.display()), "1 clients, 500 requests"]);
    let broken = file("broken", "{ mode: ".to_owned());
    let ran = ring(&format!("call --zenoh {}", broken.display())).ends(1);
    ran.complains(&["cannot call echo", &broken.display().to_string()]);
    for path in [listen, connect, broken] {
        std::fs::remove_file(path).unwrap();
    }
}
