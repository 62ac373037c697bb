//! Clients that zenoh's access control and TLS keep out, beside one that they let in.
#![allow(missing_docs)]

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Device, LaunchConfig, Runtime};
use ring_net::error::ConnectError;
use ring_net::network::{Endpoints, connect, listen};
use ring_net::{ClientConfig, RemoteChannel, Server, ServerConfig};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

/// No wait of a test takes as long, on however busy a machine.
const LONG: Duration = Duration::from_secs(60);

/// How long those wait who are not let in.
const SHORT: Duration = Duration::from_millis(500);

const NAME: &str = "guarded";

type Echoes = RemoteChannel<Echo>;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A configuration with more settings.
fn with(mut config: zenoh::Config, settings: &[(&str, &str)]) -> zenoh::Config {
    for (key, value) in settings {
        config.insert_json5(key, value).unwrap();
    }
    config
}

/// Serves an echo by that configuration, as long as `calls` takes.
fn while_served(config: zenoh::Config, calls: impl FnOnce() + Send) {
    let runtime = Runtime::open(Device::Cpu).unwrap();
    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let listener = listen(NAME, config).unwrap();
    let mut server =
        Server::new(kernel.take_channel(0).unwrap(), listener, ServerConfig::default());
    thread::scope(|scope| {
        let calls = scope.spawn(calls);
        server.run(|| calls.is_finished()).unwrap();
        calls.join().unwrap();
    });
    server.finish(LONG).unwrap();
}

fn open(config: zenoh::Config, wait: Duration) -> Result<Echoes, ConnectError> {
    RemoteChannel::open(connect(NAME, config).unwrap(), ClientConfig::default(), wait)
}

fn call(channel: &mut Echoes, seed: u64) {
    channel.send(EchoMessage::from_seed(seed), LONG).unwrap();
    assert_eq!(channel.recv(LONG).unwrap(), EchoMessage::from_seed(seed).answer());
}

/// Opens until it is told that it has no permission: before it is connected, it is told that.
fn is_not_permitted(config: impl Fn() -> zenoh::Config) -> String {
    let begun = std::time::Instant::now();
    loop {
        match open(config(), SHORT).expect_err("it is not let in") {
            ConnectError::NotPermitted { service, said } => {
                assert_eq!(service, NAME);
                return said;
            }
            other => assert!(begun.elapsed() < LONG, "{other}"),
        }
    }
}

#[test]
fn a_client_that_may_not_send_is_told_who_serves() {
    let endpoint = format!("tcp/127.0.0.1:{}", free_port());
    let config = || Endpoints::at(&endpoint).config().unwrap();
    let access = (
        "access_control",
        r#"{
            enabled: true, default_permission: "allow",
            rules: [{ id: "requests", permission: "deny", flows: ["ingress"],
                      messages: ["put"], key_exprs: ["ring/guarded/requests/*"] }],
            subjects: [{ id: "all" }],
            policies: [{ rules: ["requests"], subjects: ["all"] }],
        }"#,
    );
    let config = with(config(), &[access, ("id", "\"5e1f\"")]);
    while_served(config, || {
        let said = is_not_permitted(|| Endpoints::to(&endpoint).config().unwrap());
        assert!(said.contains("session 5e1f serves it"), "{said}");
    });
}

#[test]
fn who_is_connected_with_nobody_is_told_so() {
    let endpoint = format!("tcp/127.0.0.1:{}", free_port());
    let config = Endpoints::to(&endpoint).config().unwrap();
    let error = open(config, Duration::from_millis(20)).err().unwrap();
    let said = error.to_string();
    assert!(matches!(error, ConnectError::NoServer { .. }), "{said}");
    assert!(said.contains("connected with nobody"), "{said}");
}

#[test]
fn who_is_connected_with_others_only_is_told_so() {
    let endpoint = format!("tcp/127.0.0.1:{}", free_port());
    let _other = listen("other", Endpoints::at(&endpoint).config().unwrap()).unwrap();
    let begun = std::time::Instant::now();
    loop {
        let config = Endpoints::to(&endpoint).config().unwrap();
        let said = open(config, SHORT).err().unwrap().to_string();
        if said.contains("knows nobody who serves it") {
            return;
        }
        assert!(begun.elapsed() < LONG, "{said}");
    }
}

// Where certificates can be made: see this crate's Cargo.toml.
#[cfg(all(feature = "tls", target_os = "linux", target_arch = "x86_64"))]
mod tls {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Certificates of one authority, in files.
    struct Authority {
        directory: PathBuf,
        issuer: Issuer<'static, KeyPair>,
    }

    impl Authority {
        fn new(name: &str) -> Authority {
            let directory =
                std::env::temp_dir().join(format!("ring-net-{name}-{}", std::process::id()));
            fs::create_dir(&directory).unwrap();
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            fs::write(directory.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
            Authority { directory, issuer: Issuer::new(params, key) }
        }

        /// The settings of who has a certificate of that name, to listen or to connect.
        fn settings(&self, name: &str, does: &str) -> String {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, name);
            let certificate = params.signed_by(&key, &self.issuer).unwrap();
            let file = |kind: &str, text: String| {
                let path = self.directory.join(format!("{name}-{kind}.pem"));
                fs::write(&path, text).unwrap();
                path
            };
            let key = file("key", key.serialize_pem());
            let certificate = file("certificate", certificate.pem());
            self.tls(&format!(
                "enable_mtls: true, {does}_private_key: {key:?}, {does}_certificate: {certificate:?}"
            ))
        }

        fn tls(&self, more: &str) -> String {
            let root: &Path = &self.directory.join("ca.pem");
            format!("{{ root_ca_certificate: {root:?}, {more} }}")
        }
    }

    impl Drop for Authority {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    #[test]
    fn who_has_a_certificate_that_is_allowed_calls_and_nobody_else() {
        let authority = Authority::new("tls");
        let port = free_port();
        // A server's name is in its certificate.
        let endpoint = format!("tls/localhost:{port}");
        let tls = "transport/link/tls";
        let access = r#"{
            enabled: true, default_permission: "deny",
            rules: [
                { id: "all", permission: "allow", key_exprs: ["ring/guarded/**"],
                  messages: ["put", "declare_subscriber", "liveliness_token", "liveliness_query"] },
                { id: "sees", permission: "allow", key_exprs: ["ring/guarded/server/*"],
                  messages: ["liveliness_token", "liveliness_query"] },
            ],
            subjects: [
                { id: "alice", cert_common_names: ["alice"] },
                { id: "mallory", cert_common_names: ["mallory"] },
            ],
            policies: [
                { rules: ["all"], subjects: ["alice"] },
                { rules: ["sees"], subjects: ["mallory"] },
            ],
        }"#;
        let server = with(
            Endpoints::at(format!("tls/127.0.0.1:{port}")).config().unwrap(),
            &[(tls, &authority.settings("server", "listen")), ("access_control", access)],
        );
        let to =
            |settings: &str| with(Endpoints::to(&endpoint).config().unwrap(), &[(tls, settings)]);
        while_served(server, || {
            let alice = authority.settings("alice", "connect");
            let mut channel = open(to(&alice), LONG).unwrap();
            call(&mut channel, 1);
            let mallory = authority.settings("mallory", "connect");
            let said = is_not_permitted(|| to(&mallory));
            assert!(said.contains("access_control"), "{said}");
            call(&mut channel, 2);
            // Neither without a certificate, nor by one of another authority, nor without TLS.
            let other = Authority::new("stranger");
            let stranger = other.settings("alice", "connect");
            let plain = Endpoints::to(format!("tcp/127.0.0.1:{port}")).config().unwrap();
            for config in [to(&authority.tls("")), to(&stranger), plain] {
                let said = open(config, SHORT).err().unwrap().to_string();
                assert!(said.contains("connected with nobody"), "{said}");
                call(&mut channel, 3);
            }
        });
    }
}
