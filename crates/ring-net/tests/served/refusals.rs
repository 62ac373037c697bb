//! Clients that are refused, and what they are told.

#[cfg(all(feature = "iceoryx2", target_os = "linux"))]
mod shared_memory {
    use crate::kernel::{Counting, LONG, Request, is_late, launch, serve};
    use ring_host::kernels::Echo;
    use ring_net::error::{ConnectError, ServiceError, TrySendError};
    use ring_net::shared_memory::{Config, connect, listen};
    use ring_net::{ClientConfig, Refusal, RemoteChannel, Server, ServerConfig};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::time::Duration;

    fn open<K: ring_host::Kernel>(
        name: &str,
        wait: Duration,
    ) -> Result<RemoteChannel<K>, ConnectError> {
        RemoteChannel::open(
            connect(name, &Config::default()).unwrap(),
            ClientConfig::default(),
            wait,
        )
    }

    #[test]
    fn a_service_that_nobody_serves_is_told_within_the_deadline() {
        let name = format!("nobody-{}", std::process::id());
        let error = open::<Counting>(&name, Duration::from_millis(50)).err().unwrap();
        assert!(
            matches!(&error, ConnectError::NoServer { service, .. } if *service == name),
            "{error}"
        );
    }

    /// What a process of another user calls, and nothing else.
    const CALLS_AS_ANOTHER: &str = "RING_NET_CALLS_AS_ANOTHER";

    #[test]
    fn another_user() {
        if let Ok(name) = std::env::var(CALLS_AS_ANOTHER) {
            let error = open::<Counting>(&name, Duration::from_millis(20)).err().unwrap();
            assert!(matches!(error, ConnectError::NotPermitted { .. }), "{error}");
            println!("told: {error}");
        }
    }

    #[test]
    fn a_client_of_another_user_is_told_whose_the_service_is() {
        const NOBODY: u32 = 65534;
        if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
            return eprintln!("not tested: only root starts processes of other users");
        }
        let name = format!("mine/{}", std::process::id());
        let _listener = listen(&name, &Config::default()).unwrap();
        // Where that user can start it.
        let program = std::env::temp_dir().join(format!("ring-net-nobody-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let output = Command::new(&program)
            .args(["--exact", "refusals::shared_memory::another_user", "--nocapture"])
            .env(CALLS_AS_ANOTHER, &name)
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY)
            .output();
        std::fs::remove_file(&program).unwrap();
        let output = match output {
            // In a container that lacks the capability, or has its temporary files where others may not read.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return eprintln!("not tested: no process of another user can be started: {error}");
            }
            output => output.unwrap(),
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let all = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{all}");
        let told = format!("told: service {name}: no permission: user 0 serves it");
        assert!(said.contains(&told), "{all}");
    }

    #[test]
    fn another_kernel_is_refused_and_both_are_named() {
        let name = format!("other-{}", std::process::id());
        let (_runtime, mut kernel) = launch();
        let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
        std::thread::scope(|scope| {
            let client = scope.spawn(|| open::<Echo>(&name, LONG).err().unwrap());
            server.run(|| client.is_finished()).unwrap();
            let said = client.join().unwrap().to_string();
            for part in ["kernel counting", "kernel echo", "of 24 bytes", "of 64 bytes", &name] {
                assert!(said.contains(part), "{part}: {said}");
            }
        });
        assert_eq!(server.counts().refused, 1);
    }

    #[test]
    fn more_clients_than_a_server_takes_are_refused_and_the_others_go_on() {
        let name = format!("many-{}", std::process::id());
        let (_runtime, mut kernel) = launch();
        let listener = listen(&name, &Config::default()).unwrap();
        let config = ServerConfig::default().clients(2).window(4);
        let mut server = Server::new(kernel.take_channel(0).unwrap(), listener, config);
        std::thread::scope(|scope| {
            let clients = scope.spawn(|| {
                let mut first = open::<Counting>(&name, LONG).unwrap();
                let second = open::<Counting>(&name, LONG).unwrap();
                match open::<Counting>(&name, LONG).err().unwrap() {
                    ConnectError::Service(ServiceError::Refused { refusal, .. }) => {
                        assert_eq!(refusal, Refusal::TooManyClients);
                    }
                    other => panic!("{other}"),
                }
                drop(second);
                let mut third = open::<Counting>(&name, LONG).unwrap();
                for channel in [&mut first, &mut third] {
                    channel.send(Request { client: 1, number: 7 }, LONG).unwrap();
                    assert_eq!(channel.recv(LONG).unwrap().number, 7);
                }
                // No more under way than the server allows.
                assert_eq!(first.capacity(), 4);
                let requests = [Request { client: 2, number: 1 }; 9];
                assert_eq!(first.try_send_batch(&requests).unwrap(), 4);
                let full = first.try_send(requests[0]);
                assert!(matches!(full, Err(TrySendError::Full(request)) if request == requests[0]));
                for _ in 0..4 {
                    first.recv(LONG).unwrap();
                }
                let late = first.recv(Duration::from_millis(1)).unwrap_err();
                assert!(is_late(&late), "{late}");
            });
            server.run(|| clients.is_finished()).unwrap();
            clients.join().unwrap();
        });
    }

    #[test]
    fn requests_wait_while_a_kernel_is_not_active_and_a_finished_server_gives_its_channel_back() {
        let name = format!("waits-{}", std::process::id());
        let (_runtime, mut kernel) = launch();
        kernel.deactivate(LONG).unwrap();
        let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                let mut channel = open::<Counting>(&name, LONG).unwrap();
                channel.send(Request { client: 3, number: 0 }, LONG).unwrap();
                assert!(is_late(&channel.recv(Duration::from_millis(20)).unwrap_err()));
                channel
            });
            server.run(|| client.is_finished()).unwrap();
            let mut channel = client.join().unwrap();
            while server.poll().unwrap() {}
            kernel.activate(LONG).unwrap();
            server.finish(LONG).unwrap();
            assert_eq!(channel.recv(LONG).unwrap().handled, 1);
            // Nobody takes what comes now; it is not unknown, as the server has told that it ends.
            channel.send(Request { client: 3, number: 1 }, LONG).unwrap();
            let late = channel.recv(Duration::from_millis(20)).unwrap_err().to_string();
            assert!(late.contains("it was asked to"), "{late}");
            let (_runtime, mut kernel) = launch();
            let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
            let client = scope.spawn(move || channel.recv(LONG).unwrap());
            server.run(|| client.is_finished()).unwrap();
            assert_eq!(client.join().unwrap().number, 1);
        });
    }

    #[test]
    fn clients_of_a_terminated_kernel_are_told() {
        let name = format!("ends-{}", std::process::id());
        let (_runtime, mut kernel) = launch();
        let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
        std::thread::scope(|scope| {
            let client = scope.spawn(|| open::<Counting>(&name, LONG).unwrap());
            server.run(|| client.is_finished()).unwrap();
            let mut channel = client.join().unwrap();
            kernel.terminate(LONG).unwrap();
            let error = server.run(|| false).unwrap_err().to_string();
            assert!(error.contains("terminated"), "{error}");
            drop(server);
            let late = channel.recv(Duration::from_millis(20)).unwrap_err().to_string();
            assert!(late.contains("was terminated while it was served"), "{late}");
        });
    }

    #[test]
    fn two_threads_have_a_half_of_a_channel_each() {
        let name = format!("halves-{}", std::process::id());
        let (_runtime, mut kernel) = launch();
        let mut server = serve(&mut kernel, listen(&name, &Config::default()).unwrap());
        std::thread::scope(|scope| {
            let clients = scope.spawn(|| {
                let (mut sender, mut receiver) =
                    open::<Counting>(&name, LONG).unwrap().into_split();
                let all = 20_000;
                std::thread::scope(|scope| {
                    // There is room for 64, so that it waits for the other half again and again.
                    scope.spawn(move || {
                        for number in 0..all {
                            sender.send(Request { client: 4, number }, LONG).unwrap();
                        }
                    });
                    for number in 0..all {
                        let answer = receiver.recv(LONG).unwrap();
                        assert_eq!((answer.number, answer.handled), (number, number + 1));
                    }
                });
                assert_eq!(receiver.unanswered(), 0);
                assert!(is_late(&receiver.recv(Duration::from_millis(1)).unwrap_err()));
            });
            server.run(|| clients.is_finished()).unwrap();
            clients.join().unwrap();
        });
    }
}
