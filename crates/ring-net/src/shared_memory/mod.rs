//! The engine for processes of one host, which runs Linux: frames go through shared memory, by iceoryx2.
//!
//! A server [listens](listen) under a name, and clients [connect] to that name. A frame is written by its sender into shared
//! memory, and read there by its receiver: nothing copies it in between, and no system call is made for it.
//!
//! # Services
//!
//! In iceoryx2 a name is two kinds of publish/subscribe services, of frames that are aligned to 64 bytes:
//!
//! - `ring/<name>/requests`: each client has a publisher, and the server the only subscriber. So a name has one server.
//! - `ring/<name>/answers/<client id>`: the client is the only subscriber, and the server has the only publisher, from the first frame
//!   that it sends to that client until it [forgets](Listener::forget) it.
//!
//! Whoever comes first creates the service of the requests, and its [`Config`] says for how many clients, and how many frames.
//!
//! A server goes through its clients in an order that does not change, and takes all frames of one before it looks at the next. So a
//! client that sends without a pause holds up those after it.
//!
//! # Memory
//!
//! A publisher has a segment of shared memory for [`Config::frames`] frames and two more, each of [`Config::frame_bytes`] and 64 bytes
//! of header. By default that is 1.0 MiB. A client takes two of them, one for each way: 2.1 MiB, and 265 MiB for 128 clients; of frames
//! of [`MAX_FRAME_BYTES`] it takes 8.3 MiB. The system gives a page of a segment only when a frame is first written there, and memory
//! that was last given back is taken first: a client of which few and short frames wait takes some 30 KiB.
//!
//! # Time
//!
//! To connect and to listen takes about a millisecond, and 0.1 ms more for each process and end that this user has open already, as
//! each is looked at whether it lives. The first frame to a client takes 0.3 ms, in which its segment is made. A server that finds no
//! frame has looked for 45 ns if it has room for one client, for 0.1 µs if for 128, and for 0.6 µs if 100 of those are connected.
//!
//! # Processes that end, and that are killed
//!
//! What a process had open is closed when its end is dropped. What a killed process had open stays in shared memory until another
//! process of the same user listens or connects, under any name: that removes it. So a killed server does not keep its name, and a
//! killed client does not keep its place. Until then frames to a killed process are taken until its buffer is full.
//!
//! A client stays connected when its server ends: its frames are not sent (`false`), until another server listens under that name.
//!
//! # Who finds whom
//!
//! The processes of one user that see the same `/dev/shm`: iceoryx2 keeps its files there in `ring-<number of the user>`, and the names of
//! its shared memory begin so too. A client of another user than the server is told so
//! ([`NotPermitted`](crate::error::ConnectError::NotPermitted)). Programs that use iceoryx2 by themselves keep theirs in another directory, and see nothing of it.

mod served;

use crate::transport::{
    ClientId, Connection, EngineError, Fill, Listener, MAX_FRAME_BYTES, Silence,
};
use iceoryx2::node::NodeCreationFailure;
use iceoryx2::port::LoanError;
use iceoryx2::port::publisher::{Publisher, PublisherCreateError};
use iceoryx2::port::subscriber::{Subscriber, SubscriberCreateError};
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::{
    Alignment, AllocationStrategy, BackpressureStrategy, FileName, Node, NodeBuilder, NodeName,
    Path, SemanticString, ServiceName, SignalHandlingMode, ipc_threadsafe,
};
use iceoryx2::service::builder::publish_subscribe::{
    Builder, PublishSubscribeCreateError, PublishSubscribeOpenError,
    PublishSubscribeOpenOrCreateError,
};
use iceoryx2::service::port_factory::{PortFactory as _, publish_subscribe::PortFactory};
use served::Mark;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Most bytes of a name: with it the longest name of a service fits into the 255 bytes that iceoryx2 allows.
pub const MAX_NAME_BYTES: usize = 200;

/// Most [`Config::frames`].
pub const MAX_FRAMES: usize = 4096;

/// Most [`Config::clients`].
pub const MAX_CLIENTS: usize = 4096;

/// What a frame is made of: 64 bytes at a time, aligned to as many, as cache lines are.
///
/// A slice of bytes could be aligned so too, but iceoryx2 0.10 takes 64 times the memory for it: it pads each element of a slice.
type Line = [u8; ALIGNMENT];

/// In bytes.
const ALIGNMENT: usize = 64;

/// The header of a frame: how many bytes of its lines are the frame.
type Length = u64;

/// How many more processes than its own may have a service open: killed ones that have not been removed, and ones that are refused.
const SPARE_NODES: usize = 16;

/// How many publishers that are gone a subscriber still takes frames from; more would make each look for a frame slower.
const EXPIRED: usize = 8;

/// How long opening a service waits for others that create or remove the same one.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long it sleeps between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// Where the system shows shared memory.
const MEMORY: &str = "/dev/shm";

/// How long it may take to create shared memory or a file.
const UNFINISHED: Duration = Duration::from_millis(250);

/// After how long without a change a part of a node is left over, and not about to be completed or removed.
const SETTLED: Duration = Duration::from_secs(10);

/// How long is waited for another process that removes what a killed process left, for each killed process.
const CLEANUP: Duration = Duration::from_millis(500);

// The thread-safe kind, as the other kind cannot be sent to another thread.
type Engine = ipc_threadsafe::Service;
type FrameBuilder = Builder<[Line], Length, Engine>;
type FramePublisher = Publisher<Engine, [Line], Length>;
type FrameSubscriber = Subscriber<Engine, [Line], Length>;
type FrameService = PortFactory<Engine, [Line], Length>;

/// What a name's services have room for. Give it alike in every process of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most bytes of a frame that this end sends, from 1 to [`MAX_FRAME_BYTES`]. A longer one is an error.
    pub frame_bytes: usize,
    /// How many frames wait to be received, for each client and way, from 1 to [`MAX_FRAMES`].
    pub frames: usize,
    /// How many clients may be connected to a server at the same time, from 1 to [`MAX_CLIENTS`].
    pub clients: usize,
}

impl Default for Config {
    /// 64 frames of up to 16 KiB, for 128 clients.
    fn default() -> Config {
        Config { frame_bytes: 16 * 1024, frames: 64, clients: 128 }
    }
}

impl Config {
    fn check(&self) -> Result<(), Failure> {
        let all = [
            ("frame_bytes", self.frame_bytes, MAX_FRAME_BYTES),
            ("frames", self.frames, MAX_FRAMES),
            ("clients", self.clients, MAX_CLIENTS),
        ];
        match all.into_iter().find(|(_, value, most)| !(1..=*most).contains(value)) {
            Some((field, value, most)) => Err(Failure::Config { field, value, most }),
            None => Ok(()),
        }
    }
}

/// A client could not connect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The name cannot be a service's.
    #[error("{}", said_of_name(name))]
    InvalidName {
        /// That name.
        name: String,
    },
    /// A number of the [`Config`] is out of its limits.
    #[error("Config::{field} is {value}, but must be from 1 to {most}")]
    InvalidConfig {
        /// Which number.
        field: &'static str,
        /// What it is.
        value: usize,
        /// The most that it may be.
        most: usize,
    },
    /// As many clients are connected as the service has places for.
    #[error(
        "service {name:?} has as many clients as it has places for, {clients}: end one of them, or give every process of it a greater Config::clients"
    )]
    TooManyClients {
        /// The service's name.
        name: String,
        /// How many places it has.
        clients: usize,
    },
    /// Another client of this name has the same id.
    #[error("service {name:?} has a client {client:?} already: draw another id")]
    ClientExists {
        /// The service's name.
        name: String,
        /// The id.
        client: ClientId,
    },
    /// This process may not use the shared memory of its user: something of another user is in its place.
    #[error(
        "no permission to open service {name:?}: {said}; run its processes as one user, which may write to /dev/shm"
    )]
    NoPermission {
        /// The service's name.
        name: String,
        /// What stands in the way.
        said: String,
    },
    /// Another failure of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// A server could not listen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// The name cannot be a service's.
    #[error("{}", said_of_name(name))]
    InvalidName {
        /// That name.
        name: String,
    },
    /// A number of the [`Config`] is out of its limits.
    #[error("Config::{field} is {value}, but must be from 1 to {most}")]
    InvalidConfig {
        /// Which number.
        field: &'static str,
        /// What it is.
        value: usize,
        /// The most that it may be.
        most: usize,
    },
    /// Another server, which lives, listens under that name.
    #[error("service {name:?} is served already: end that server first, or take another name")]
    AlreadyServed {
        /// The service's name.
        name: String,
    },
    /// Clients that came first have created the service with less room than this server needs.
    #[error(
        "service {name:?} was created before, for fewer than {clients} clients or {frames} frames: give every process of it the same Config, and end those that have it open"
    )]
    Smaller {
        /// The service's name.
        name: String,
        /// How many clients this server wants.
        clients: usize,
        /// How many frames this server wants.
        frames: usize,
    },
    /// This process may not use the shared memory of its user: something of another user is in its place.
    #[error(
        "no permission to open service {name:?}: {said}; run its processes as one user, which may write to /dev/shm"
    )]
    NoPermission {
        /// The service's name.
        name: String,
        /// What stands in the way.
        said: String,
    },
    /// Another failure of the engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

fn said_of_name(name: &str) -> String {
    format!(
        "{name:?} cannot be the name of a service: it has {} bytes, and must have from 1 to {MAX_NAME_BYTES}, all of them ASCII letters, digits, or one of -_./",
        name.len()
    )
}

fn check_name(name: &str) -> Result<(), Failure> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    if (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed) {
        Ok(())
    } else {
        Err(Failure::Name)
    }
}

/// Why an end could not be opened, before it is known whose it is.
enum Failure {
    Name,
    Config { field: &'static str, value: usize, most: usize },
    NoPermission { said: String },
    Full { places: usize },
    Taken,
    Smaller,
    Engine(EngineError),
}

impl Failure {
    fn for_client(self, name: &str, client: ClientId) -> ConnectError {
        let name = name.to_owned();
        match self {
            Failure::Name => ConnectError::InvalidName { name },
            Failure::Config { field, value, most } => {
                ConnectError::InvalidConfig { field, value, most }
            }
            Failure::NoPermission { said } => ConnectError::NoPermission { name, said },
            Failure::Full { places } => ConnectError::TooManyClients { name, clients: places },
            Failure::Taken => ConnectError::ClientExists { name, client },
            Failure::Smaller => {
                failed("opening a service", "it has less room than is needed").into()
            }
            Failure::Engine(error) => error.into(),
        }
    }

    fn for_server(self, name: &str, config: &Config) -> ListenError {
        let name = name.to_owned();
        match self {
            Failure::Name => ListenError::InvalidName { name },
            Failure::Config { field, value, most } => {
                ListenError::InvalidConfig { field, value, most }
            }
            Failure::NoPermission { said } => ListenError::NoPermission { name, said },
            Failure::Full { places } => {
                let said = format!(
                    "too many processes have it open for one that was created for {places} clients"
                );
                failed("opening the service of the requests", said).into()
            }
            Failure::Taken => ListenError::AlreadyServed { name },
            Failure::Smaller => {
                ListenError::Smaller { name, clients: config.clients, frames: config.frames }
            }
            Failure::Engine(error) => error.into(),
        }
    }
}

fn failed(doing: &'static str, said: impl fmt::Display) -> EngineError {
    EngineError { engine: "iceoryx2", doing, said: said.to_string() }
}

/// Connects to the server of that name, which need not be there yet.
///
/// It removes first what killed processes have left, and may take some milliseconds, the more the more processes use iceoryx2 on this
/// host. Nothing tells whether there is a server; frames are not sent (`false`) as long as there is none.
///
/// # Errors
/// If the name or the configuration is not allowed, the service has no place for another client, or iceoryx2 fails.
pub fn connect(name: &str, config: &Config) -> Result<SharedConnection, ConnectError> {
    connect_as(name, ClientId::random(), config)
}

/// The same as a client of that id, which nobody else may know or have.
///
/// # Errors
/// As for [`connect`], and if there is such a client.
pub fn connect_as(
    name: &str,
    client: ClientId,
    config: &Config,
) -> Result<SharedConnection, ConnectError> {
    let open = || {
        check_name(name)?;
        config.check()?;
        let node = node(config)?;
        let answers = subscribe_answers(&node, name, client, config)?;
        let service = open_or_create("opening the service of the requests", config, || {
            requests(&node, name)
        })?;
        let places = service.static_config().max_publishers();
        let requests = publish(&service, config).map_err(|error| match error {
            PublisherCreateError::ExceedsMaxSupportedPublishers => Failure::Full { places },
            other => Failure::Engine(failed("creating the publisher of the requests", other)),
        })?;
        Ok(SharedConnection {
            requests,
            answers,
            node,
            name: name.to_owned(),
            client,
            config: config.clone(),
        })
    };
    open().map_err(|failure: Failure| failure.for_client(name, client))
}

/// Listens under that name, as its only server.
///
/// It removes first what killed processes have left, and may take some milliseconds, the more the more processes use iceoryx2 on this
/// host.
///
/// # Errors
/// If the name or the configuration is not allowed, another server listens under that name, clients that came first have created the
/// service with less room, or iceoryx2 fails.
pub fn listen(name: &str, config: &Config) -> Result<SharedListener, ListenError> {
    let open = || {
        check_name(name)?;
        config.check()?;
        let node = node(config)?;
        let service = open_or_create("opening the service of the requests", config, || {
            Ok(requests(&node, name)?
                .max_publishers(config.clients)
                .subscriber_max_buffer_size(config.frames))
        })?;
        let requests = service.subscriber_builder().create().map_err(|error| match error {
            SubscriberCreateError::ExceedsMaxSupportedSubscribers => Failure::Taken,
            other => Failure::Engine(failed("creating the subscriber of the requests", other)),
        })?;
        let mark = Mark::set(name).inspect_err(
            |error| tracing::debug!(%error, "other users are not told that this one serves"),
        );
        Ok(SharedListener {
            requests,
            answers: HashMap::new(),
            _mark: mark.ok(),
            node,
            name: name.to_owned(),
            config: config.clone(),
        })
    };
    open().map_err(|failure: Failure| failure.for_server(name, config))
}

/// The number of the user as whom this process runs.
fn user() -> io::Result<u32> {
    Ok(fs::metadata("/proc/self")?.uid())
}

/// Where iceoryx2 keeps its files, and how the names of its shared memory begin.
///
/// They are in memory, as it syncs each file to the disk otherwise, which takes milliseconds; and each user has others, as nobody else
/// may write there.
fn places() -> Result<(Path, FileName), Failure> {
    let failed = |said: &dyn fmt::Display| {
        Failure::Engine(failed("finding the directory of this process's user", said))
    };
    let user = user().map_err(|error| failed(&error))?;
    let path = format!("{MEMORY}/ring-{user}");
    // iceoryx2 would only say that something is wrong.
    if let Ok(found) = fs::symlink_metadata(&path)
        && (found.uid() != user || !found.is_dir())
    {
        let said = format!("{path} is not a directory of user {user}, but of user {}", found.uid());
        return Err(Failure::NoPermission { said });
    }
    let path = Path::new(path.as_bytes()).map_err(|error| failed(&error))?;
    let prefix =
        FileName::new(format!("ring-{user}_").as_bytes()).map_err(|error| failed(&error))?;
    Ok((path, prefix))
}

/// Removes what a killed process had begun to create for a service: shared memory, and the file that describes the service.
///
/// iceoryx2 0.10 leaves a service alone of which the file is not finished, and waits for memory that has no size yet, without an end if
/// it runs as root. It finishes each at once, and then sets its mode: what is not finished after [`UNFINISHED`] is a killed process's.
fn remove_unfinished(directory: &str, prefix: &str) {
    let entries = |place: &str| fs::read_dir(place).into_iter().flatten().flatten();
    let ours = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix))
    };
    // Memory is not readable until it is finished, and a file is writable until then.
    let unfinished = |entry: &fs::DirEntry, bit: u32, until: u32| {
        entry
            .metadata()
            .is_ok_and(|found| found.is_file() && (found.len() == 0 || found.mode() & bit == until))
    };
    let all = || -> Vec<_> {
        let memory = entries(MEMORY).filter(|entry| ours(entry) && unfinished(entry, 0o400, 0));
        let services = entries(&format!("{directory}/services"))
            .filter(|entry| ours(entry) && unfinished(entry, 0o200, 0o200));
        let nodes = unfinished_nodes(&format!("{directory}/nodes"), prefix);
        memory.chain(services).map(|entry| entry.path()).chain(nodes).collect()
    };
    let begun = Instant::now();
    let mut unfinished = all();
    while !unfinished.is_empty() && begun.elapsed() < UNFINISHED {
        sleep(PAUSE);
        let still = all();
        unfinished.retain(|path| still.contains(path));
    }
    for path in unfinished {
        // Another process may have done so first.
        let removed = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)).is_ok();
        tracing::debug!(path = %path.display(), removed, "removed what a killed process had begun");
    }
}

/// What is left of nodes whose process was killed while it created them, or while it removed them.
///
/// They block nothing, but whoever connects would look at each again: iceoryx2 0.10 removes only whole ones. A node is a directory and
/// three files that tell whether its process lives. What has changed in the last [`SETTLED`] is left alone.
fn unfinished_nodes(nodes: &str, prefix: &str) -> Vec<PathBuf> {
    let mut parts = HashMap::<String, Vec<PathBuf>>::new();
    for entry in fs::read_dir(nodes).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str() {
            let name = name.strip_prefix(prefix).unwrap_or(name);
            let node = name.split('.').next().unwrap_or(name);
            parts.entry(node.to_owned()).or_default().push(entry.path());
        }
    }
    let readable = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.mode() & 0o400 != 0);
    let settled = |path: &PathBuf| {
        let changed = fs::metadata(path).and_then(|found| found.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since > SETTLED))
    };
    parts.retain(|node, parts| {
        let details = PathBuf::from(format!("{nodes}/{node}/{prefix}node.details"));
        let whole = parts.len() == 4 && parts.iter().all(readable) && readable(&details);
        !whole && parts.iter().all(settled)
    });
    parts.into_values().flatten().collect()
}

/// What an end is to iceoryx2: others can tell by it whether its process lives.
fn node(config: &Config) -> Result<Node<Engine>, Failure> {
    // Not from a file of the directory that the process happens to be in, as then two processes might not find each other.
    let mut settings = iceoryx2::config::Config::default();
    let (path, prefix) = places()?;
    settings.global.set_root_path(&path);
    settings.global.prefix = prefix;
    remove_unfinished(&path.to_string(), &prefix.to_string());
    // It is done once, below.
    settings.global.node.cleanup_dead_nodes_on_creation = false;
    settings.global.node.cleanup_dead_nodes_on_destruction = false;
    settings.global.service.cleanup_dead_nodes_on_open = false;
    // What a service is created with. An end that only opens it does not insist on these.
    let defaults = &mut settings.defaults.publish_subscribe;
    defaults.max_publishers = config.clients;
    defaults.max_subscribers = 1;
    defaults.max_nodes = config.clients + 1 + SPARE_NODES;
    defaults.subscriber_max_buffer_size = config.frames;
    defaults.subscriber_max_borrowed_samples = 1;
    defaults.publisher_max_loaned_samples = 1;
    defaults.publisher_history_size = 0;
    defaults.subscriber_expired_connection_buffer = EXPIRED;

    let name =
        NodeName::new("ring").map_err(|error| Failure::Engine(failed("naming a node", error)))?;
    let node = NodeBuilder::new()
        .name(&name)
        .config(&settings)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<Engine>()
        .map_err(|error| match error {
            NodeCreationFailure::InsufficientPermissions => {
                Failure::NoPermission { said: error.to_string() }
            }
            other => Failure::Engine(failed("creating a node", other)),
        })?;
    let removed = node.blocking_cleanup_dead_nodes(CLEANUP);
    if removed.cleanups + removed.failed_cleanups != 0 {
        tracing::debug!(
            removed = removed.cleanups,
            kept = removed.failed_cleanups,
            "removed what killed processes left in shared memory"
        );
    }
    Ok(node)
}

/// The service by which clients send to their server.
fn requests(node: &Node<Engine>, name: &str) -> Result<FrameBuilder, Failure> {
    frames(node, &format!("ring/{name}/requests"))
}

/// The service by which a server sends to that client.
fn answers(node: &Node<Engine>, name: &str, client: ClientId) -> Result<FrameBuilder, Failure> {
    Ok(frames(node, &format!("ring/{name}/answers/{client}"))?
        .max_publishers(1)
        .max_nodes(2 + SPARE_NODES))
}

fn frames(node: &Node<Engine>, service: &str) -> Result<FrameBuilder, Failure> {
    let service = ServiceName::new(service).map_err(|_| Failure::Name)?;
    let Some(alignment) = Alignment::new(ALIGNMENT) else {
        return Err(Failure::Engine(failed(
            "aligning frames",
            format!("not to {ALIGNMENT} bytes"),
        )));
    };
    Ok(node
        .service_builder(&service)
        .publish_subscribe::<[Line]>()
        .user_header::<Length>()
        .payload_alignment(alignment)
        .enable_safe_overflow(false))
}

/// Opens a service, or creates it if there is none. It tries again while others create or remove it, for [`PATIENCE`].
fn open_or_create(
    doing: &'static str,
    config: &Config,
    builder: impl Fn() -> Result<FrameBuilder, Failure>,
) -> Result<FrameService, Failure> {
    use PublishSubscribeCreateError as Create;
    use PublishSubscribeOpenError as Open;
    use PublishSubscribeOpenOrCreateError as Either;

    let begun = Instant::now();
    loop {
        let error = match builder()?.open_or_create() {
            Ok(service) => return Ok(service),
            Err(error) => error,
        };
        match error {
            Either::PublishSubscribeOpenError(Open::InsufficientPermissions)
            | Either::PublishSubscribeCreateError(Create::InsufficientPermissions) => {
                return Err(Failure::NoPermission { said: error.to_string() });
            }
            Either::PublishSubscribeOpenError(Open::ExceedsMaxNumberOfNodes) => {
                return Err(Failure::Full { places: config.clients });
            }
            Either::PublishSubscribeOpenError(
                Open::DoesNotSupportRequestedAmountOfPublishers
                | Open::DoesNotSupportRequestedMinBufferSize,
            ) => return Err(Failure::Smaller),
            Either::SystemInFlux
            | Either::PublishSubscribeOpenError(
                Open::DoesNotExist
                | Open::IsMarkedForDestruction
                | Open::HangsInCreation
                | Open::Interrupt
                | Open::ServiceInCorruptedState,
            )
            | Either::PublishSubscribeCreateError(
                Create::AlreadyExists
                | Create::IsBeingCreatedByAnotherInstance
                | Create::HangsInCreation
                | Create::Interrupt
                | Create::ServiceInCorruptedState,
            ) if begun.elapsed() < PATIENCE => sleep(PAUSE),
            other => return Err(Failure::Engine(failed(doing, other))),
        }
    }
}

fn subscribe_answers(
    node: &Node<Engine>,
    name: &str,
    client: ClientId,
    config: &Config,
) -> Result<FrameSubscriber, Failure> {
    let service = open_or_create("creating the service of the answers", config, || {
        Ok(answers(node, name, client)?.subscriber_max_buffer_size(config.frames))
    })?;
    service.subscriber_builder().create().map_err(|error| match error {
        SubscriberCreateError::ExceedsMaxSupportedSubscribers => Failure::Taken,
        other => Failure::Engine(failed("creating the subscriber of the answers", other)),
    })
}

fn publish(
    service: &FrameService,
    config: &Config,
) -> Result<FramePublisher, PublisherCreateError> {
    service
        .publisher_builder()
        .initial_max_slice_len(config.frame_bytes.div_ceil(ALIGNMENT))
        .allocation_strategy(AllocationStrategy::Static)
        .backpressure_strategy(BackpressureStrategy::DiscardData)
        .max_loaned_samples(1)
        .create()
}

/// Whether a frame of that length is one.
fn check_length(len: usize, config: &Config) -> Result<(), EngineError> {
    let most = config.frame_bytes;
    if len <= most {
        return Ok(());
    }
    let said = format!(
        "it has {len} bytes, but Config::frame_bytes is {most}: raise that, up to {MAX_FRAME_BYTES}, or send less"
    );
    Err(failed("sending a frame", said))
}

/// Writes a frame into shared memory, and gives it to the subscriber. `false` if there is none, or it has no room.
fn send(publisher: &FramePublisher, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
    // Its bytes are zeros: `fill` may read what it gets, and an older frame is none of its business.
    let mut sample = match publisher.loan_slice_uninit(len.div_ceil(ALIGNMENT)) {
        Ok(sample) => sample.write_from_fn(|_| [0; ALIGNMENT]),
        Err(LoanError::OutOfMemory) => {
            // They may all be with a subscriber that is gone.
            publisher
                .update_connections()
                .map_err(|error| failed("connecting to the other end", error))?;
            return Ok(false);
        }
        Err(error) => return Err(failed("taking memory for a frame", error)),
    };
    *sample.user_header_mut() = len as Length;
    fill(&mut sample.payload_mut().as_flattened_mut()[..len]);
    match sample.send() {
        Ok(receivers) => Ok(receivers != 0),
        Err(error) => Err(failed("sending a frame", error)),
    }
}

fn receive(subscriber: &FrameSubscriber, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
    loop {
        let sample = match subscriber.receive() {
            Ok(Some(sample)) => sample,
            Ok(None) => return Ok(false),
            Err(error) => return Err(failed("receiving a frame", error)),
        };
        let (lines, len) = (sample.payload().as_flattened(), *sample.user_header());
        match usize::try_from(len).ok().and_then(|len| lines.get(..len)) {
            Some(frame) => {
                read(frame);
                return Ok(true);
            }
            None => {
                tracing::warn!(len, room = lines.len(), "left out a frame longer than its memory")
            }
        }
    }
}

/// A client's end: see [`connect`].
///
/// [`fill`](Fill) gets zeros, and may have been called for a frame that is not sent.
pub struct SharedConnection {
    requests: FramePublisher,
    answers: FrameSubscriber,
    node: Node<Engine>,
    name: String,
    client: ClientId,
    config: Config,
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, config) = (&self.name, &self.config);
        f.debug_struct("SharedConnection").field("name", name).field("config", config).finish()
    }
}

impl Connection for SharedConnection {
    fn service(&self) -> &str {
        &self.name
    }

    fn client(&self) -> ClientId {
        self.client
    }

    fn frame_bytes(&self) -> usize {
        self.config.frame_bytes
    }

    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        check_length(len, &self.config)?;
        send(&self.requests, len, fill)
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        receive(&self.answers, read)
    }

    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        let answers = subscribe_answers(&self.node, &self.name, client, &self.config);
        self.answers = answers.map_err(|failure| match failure.for_client(&self.name, client) {
            ConnectError::Engine(error) => error,
            other => failed("creating the service of the answers", other),
        })?;
        self.client = client;
        Ok(())
    }

    fn silence(&mut self) -> Silence {
        match served::by_another_user(&self.name) {
            Some(user) => Silence::NotPermitted(format!(
                "user {user} serves it, for processes of that user only: run as that user, or have it served over the network"
            )),
            None => Silence::Unexplained,
        }
    }
}

/// A server's end: see [`listen`].
///
/// [`fill`](Fill) gets zeros, and may have been called for a frame that is not sent.
pub struct SharedListener {
    requests: FrameSubscriber,
    answers: HashMap<ClientId, FramePublisher>,
    _mark: Option<Mark>,
    node: Node<Engine>,
    name: String,
    config: Config,
}

impl fmt::Debug for SharedListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, config) = (&self.name, &self.config);
        f.debug_struct("SharedListener")
            .field("name", name)
            .field("config", config)
            .field("clients", &self.answers.len())
            .finish()
    }
}

/// A publisher to that client, if it is there.
fn reach(
    node: &Node<Engine>,
    name: &str,
    client: ClientId,
    config: &Config,
) -> Option<FramePublisher> {
    let gone =
        |error: &dyn fmt::Display| tracing::debug!(?client, %error, "a client is not reached");
    let service = match answers(node, name, client).ok()?.open() {
        Ok(service) => service,
        Err(error) => {
            gone(&error);
            return None;
        }
    };
    publish(&service, config).inspect_err(|error| gone(error)).ok()
}

impl Listener for SharedListener {
    fn service(&self) -> &str {
        &self.name
    }

    fn frame_bytes(&self) -> usize {
        self.config.frame_bytes
    }

    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        check_length(len, &self.config)?;
        let publisher = match self.answers.entry(to) {
            Entry::Occupied(publisher) => publisher,
            Entry::Vacant(place) => match reach(&self.node, &self.name, to, &self.config) {
                Some(publisher) => place.insert_entry(publisher),
                None => return Ok(false),
            },
        };
        send(publisher.get(), len, fill).or_else(|error| {
            // It concerns this client only, and the next frame to it is tried anew.
            tracing::warn!(client = ?to, %error, "a client is not reached any more");
            publisher.remove();
            Ok(false)
        })
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        receive(&self.requests, read)
    }

    fn forget(&mut self, client: ClientId) {
        self.answers.remove(&client);
    }
}
