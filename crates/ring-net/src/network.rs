//! The engine between hosts: frames over [zenoh](https://zenoh.io), by TCP unless the configuration names other links.
//!
//! A service of the name `n` has these keys:
//!
//! | key | who publishes | who subscribes |
//! | --- | --- | --- |
//! | `ring/n/requests/<client>` | that client | the server, by `ring/n/requests/*` |
//! | `ring/n/answers/<client>` | the server | that client |
//! | `ring/n/server/<session>` | (a liveliness token of the server) | who asks which services there are |
//!
//! `<client>` is a [`ClientId`] in 32 hexadecimal digits, `<session>` the identity of the server's zenoh session.
//!
//! A frame that does not fit into the queues of a link is dropped by the sender, so that a slow client never holds up the server;
//! one that comes while [`QUEUE_FRAMES`] others wait to be received is dropped by the receiver. A link's queue has room for 16 batches
//! of 64 KiB. Small frames that are sent faster than the link takes them share a batch; of long ones, 16 of a burst may be on their way.
//!
//! [`Endpoints`] makes a configuration that listens on loopback only. It has neither encryption nor access control: whoever reaches
//! the endpoint can call the service, and can subscribe to the answers of others. Between hosts, add TLS and `access_control` to that
//! [`zenoh::Config`], or hand over one [from a file](zenoh::Config::from_file) after [`carry_frames`]. Where a server denies by
//! default, a client needs `put` and `declare_subscriber` on the keys above, and `liveliness_token` and `liveliness_query` on the last one, of both flows;
//! `tests/permission.rs` has a configuration where the name in a client's certificate decides. TLS, endpoints `tls/HOST:PORT`, is the feature `tls`.
//!
//! A session of the mode `peer`, as [`Endpoints`] has it, reaches those it is connected with, but nobody behind them: neither a router
//! nor another peer passes frames on between two peers. Where a router stands between clients and server, both take the mode `client`:
//! `config.insert_json5("mode", "\"client\"")`. Such a session does not open while the router cannot be reached.

use crate::transport::{
    ClientId, Connection, EngineError, Fill, Listener, MAX_FRAME_BYTES, Silence,
};
use crossbeam_queue::ArrayQueue;
use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fmt,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
/// The engine itself, of which configurations are.
pub use zenoh;

use zenoh::{
    Session, Wait,
    bytes::ZBytes,
    key_expr::KeyExpr,
    liveliness::LivelinessToken,
    pubsub::{Publisher, Subscriber},
    qos::{CongestionControl, Priority},
    sample::{Sample, SampleKind},
};

/// How many frames may wait to be received, unless [`connect_with_queue`] or [`listen_with_queue`] was told otherwise.
/// What comes beyond them is dropped. Full of the longest frames they take 64 MiB.
pub const QUEUE_FRAMES: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Most bytes of a service's name.
pub const MAX_NAME_BYTES: usize = 255;

/// How long [`listen`] and [`services`] wait for those who know which services there are.
const LIVELINESS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a client that has had no answer waits for them.
const ASKING: Duration = Duration::from_millis(200);

/// How long [`listen`] waits for word of another server that started at the same time, if it is connected with anybody.
const SETTLING: Duration = Duration::from_millis(100);

/// How long a client that is connected, and heard by no server, keeps its session at first: as long as zenoh takes to give up a host that was lost.
const UNHEARD: Duration = Duration::from_secs(10);

/// Frames have a queue of their own on each link, which comes before those of other data.
const PRIORITY: Priority = Priority::RealTime;

/// Where a session listens, and whom it connects to.
///
/// The default listens on a free port of loopback, connects to nobody and looks for nobody: name the other side's endpoint in
/// `connect`, or a port of one's own in `listen`, or an interface in `scouting`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Endpoints to listen on, as `tcp/127.0.0.1:7447`. A port of 0 stands for any free one, which only scouting makes known to others.
    /// Without any, the session can be found by nobody, but connects.
    pub listen: Vec<String>,
    /// Endpoints to connect to, as `tcp/127.0.0.1:7447`. While nobody listens there, and after a connection broke, they are tried
    /// again: after 100 ms at first and each second at last.
    pub connect: Vec<String>,
    /// The network interface, by name or address, on which to look for others by multicast, and to be found. `None` for not at all,
    /// `auto` for all but loopback.
    pub scouting: Option<String>,
}

impl Default for Endpoints {
    fn default() -> Self {
        Self { listen: vec!["tcp/127.0.0.1:0".into()], connect: Vec::new(), scouting: None }
    }
}

impl Endpoints {
    /// A session that listens on that endpoint only: a server's.
    #[must_use]
    pub fn at(endpoint: impl Into<String>) -> Self {
        Self { listen: vec![endpoint.into()], connect: Vec::new(), scouting: None }
    }

    /// A session that connects to that endpoint only, and listens nowhere: a client's.
    #[must_use]
    pub fn to(endpoint: impl Into<String>) -> Self {
        Self { listen: Vec::new(), connect: vec![endpoint.into()], scouting: None }
    }

    /// The configuration of a zenoh peer with these endpoints. Connections are tried again soon (`connect/retry`), others are not connected to
    /// only because a peer knows them (`scouting/gossip`), and links [carry frames](carry_frames).
    ///
    /// # Errors
    /// When zenoh refuses an endpoint.
    pub fn config(&self) -> Result<zenoh::Config, EngineError> {
        // Quoted as Rust quotes them: JSON quotes all that is legal in an endpoint likewise.
        let scouting = self.scouting.as_deref().unwrap_or("auto");
        let mut config = zenoh::Config::default();
        set(
            &mut config,
            &[
                ("mode", "\"peer\""),
                ("listen/endpoints", &format!("{:?}", self.listen)),
                ("connect/endpoints", &format!("{:?}", self.connect)),
                (
                    "connect/retry",
                    "{period_init_ms: 100, period_max_ms: 1000, period_increase_factor: 2}",
                ),
                ("scouting/multicast/enabled", &self.scouting.is_some().to_string()),
                ("scouting/multicast/interface", &format!("{scouting:?}")),
                ("scouting/gossip/enabled", "false"),
            ],
        )?;
        carry_frames(&mut config)?;
        Ok(config)
    }
}

/// Sets in a configuration of one's own how links carry frames:
///
/// - a link has room for as many batches of frames as zenoh allows, and a frame for which there is none is dropped at once
///   (`transport/link/tx/queue`);
/// - nothing much longer than a frame is put together from what comes (`transport/link/rx/max_message_size`).
///
/// # Errors
/// When zenoh refuses one of these settings.
pub fn carry_frames(config: &mut zenoh::Config) -> Result<(), EngineError> {
    set(
        config,
        &[
            ("transport/link/tx/queue/size/real_time", "16"),
            (
                "transport/link/tx/queue/congestion_control/drop",
                "{wait_before_drop: 0, max_wait_before_drop_fragments: 0}",
            ),
            // Of a frame and all that goes with it. What is longer is dropped before it is whole.
            ("transport/link/rx/max_message_size", &(2 * MAX_FRAME_BYTES).to_string()),
        ],
    )
}

fn set(config: &mut zenoh::Config, settings: &[(&str, &str)]) -> Result<(), EngineError> {
    for (key, value) in settings {
        config.insert_json5(key, value).map_err(|said| EngineError {
            engine: "zenoh",
            doing: "setting up its configuration",
            said: format!("{key} = {value}: {said}"),
        })?;
    }
    Ok(())
}

/// A name that no service can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("the name of a service is empty: give it at least one character")]
    Empty,
    /// It is longer than [`MAX_NAME_BYTES`].
    #[error(
        "the name of a service has {bytes} bytes, and {MAX_NAME_BYTES} at most are allowed: shorten it"
    )]
    TooLong {
        /// How long it is, in bytes.
        bytes: usize,
    },
    /// It has a character that means something else in zenoh's keys.
    #[error(
        "the name {name:?} of a service has a {character:?}: leave out /, *, $, ?, # and an @ at its start"
    )]
    Character {
        /// The name.
        name: String,
        /// The first such character.
        character: char,
    },
}

/// Why [`connect`] did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No service can have that name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Zenoh failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Why [`listen`] did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// No service can have that name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another server has the name.
    #[error(
        "the service {name:?} is served already, by the zenoh session {server}: stop that server, or take another name"
    )]
    AlreadyServed {
        /// The name.
        name: String,
        /// The identity of the other server's zenoh session.
        server: String,
    },
    /// Zenoh failed, as when an endpoint is taken.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// How many frames were dropped as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Frames for which there was no room in the queue.
    pub queue_full: u64,
    /// Frames longer than [`MAX_FRAME_BYTES`].
    pub too_long: u64,
}

/// Connects a client to the service of that name, which need not be there yet.
///
/// # Errors
/// When the name is refused, or zenoh fails.
pub fn connect(name: &str, config: zenoh::Config) -> Result<NetworkConnection, ConnectError> {
    connect_with_queue(name, config, QUEUE_FRAMES)
}

/// [`connect`], with room for that many frames that wait to be received.
///
/// # Errors
/// As [`connect`].
pub fn connect_with_queue(
    name: &str,
    config: zenoh::Config,
    frames: NonZeroUsize,
) -> Result<NetworkConnection, ConnectError> {
    connect_as(name, ClientId::random(), config, frames)
}

/// The same as a client of that id, which nobody else may know or have.
///
/// # Errors
/// As [`connect`].
pub fn connect_as(
    name: &str,
    client: ClientId,
    config: zenoh::Config,
    frames: NonZeroUsize,
) -> Result<NetworkConnection, ConnectError> {
    check(name)?;
    let session = open(config.clone())?;
    let counts = Arc::new(Counts::default());
    let ends = Ends::declare(&session, name, client, &counts, frames)?;
    Ok(NetworkConnection {
        ends,
        counts,
        frames,
        name: name.to_owned(),
        client,
        config,
        unheard: None,
        patience: UNHEARD,
        session,
    })
}

/// Serves the service of that name.
///
/// A server of the same name is found if this session is connected with it, by an endpoint to connect to or by scouting; or if both are of
/// the mode `client` and connected with the same router. If two servers start at the same time, both may be refused. After a server's
/// host was lost, it counts as serving until zenoh gives up the connection, which takes 10 s unless the configuration says otherwise;
/// that of a process that ended is given up at once.
///
/// # Errors
/// When the name is refused or served already, or zenoh fails.
pub fn listen(name: &str, config: zenoh::Config) -> Result<NetworkListener, ListenError> {
    listen_with_queue(name, config, QUEUE_FRAMES)
}

/// [`listen`], with room for that many frames that wait to be received.
///
/// # Errors
/// As [`listen`].
pub fn listen_with_queue(
    name: &str,
    config: zenoh::Config,
    frames: NonZeroUsize,
) -> Result<NetworkListener, ListenError> {
    check(name)?;
    let session = open(config)?;
    let me = session.zid().to_string();
    let refuse_if_served =
        || match served_by(&session, name, LIVELINESS_TIMEOUT)?.find(|server| *server != me) {
            Some(server) => Err(ListenError::AlreadyServed { name: name.to_owned(), server }),
            None => Ok(()),
        };
    refuse_if_served()?;
    let counts = Arc::new(Counts::default());
    let (subscriber, inbox) =
        subscribe(&session, format!("ring/{name}/requests/*"), &counts, frames)?;
    let token = session
        .liveliness()
        .declare_token(format!("ring/{name}/server/{me}"))
        .wait()
        .map_err(failed("declaring that the service is served"))?;
    // Another server may have come between. Then each hears of the other now.
    if is_connected(&session) {
        thread::sleep(SETTLING);
        refuse_if_served()?;
    }
    Ok(NetworkListener {
        clients: HashMap::new(),
        inbox,
        counts,
        name: name.to_owned(),
        _token: token,
        _subscriber: subscriber,
        session,
    })
}

/// The names of the services that are served now, in order, as far as the sessions know that this one connects to.
///
/// # Errors
/// When zenoh fails.
pub fn services(config: zenoh::Config) -> Result<Vec<String>, EngineError> {
    let session = open(config)?;
    let keys = alive(&session, "ring/*/server/*", LIVELINESS_TIMEOUT)?;
    let names: BTreeSet<_> = keys.iter().filter_map(|key| chunk(key, 1)).collect();
    Ok(names.into_iter().collect())
}

/// A client's end.
///
/// It reconnects by itself to the endpoints of its configuration, and so reaches a server that was started again. Where its session stays
/// connected for ten seconds and no server hears it, it opens another one, and waits twice as long the next time: a server's session that is closed while
/// a client connects can keep that client until the server's process ends (zenoh 1.10), and others may serve meanwhile. Dropping it ends its zenoh session.
pub struct NetworkConnection {
    ends: Ends,
    counts: Arc<Counts>,
    frames: NonZeroUsize,
    name: String,
    client: ClientId,
    config: zenoh::Config,
    /// When no server heard it for the first time, of those in a row.
    unheard: Option<Instant>,
    /// How long it goes on so with its session.
    patience: Duration,
    session: Session,
}

impl NetworkConnection {
    /// How many frames were dropped as they came, since it connected.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.counts.now()
    }

    /// No server hears it: after a while that opens another session, if this one is connected.
    #[cold]
    fn go_unheard(&mut self) -> Result<(), EngineError> {
        let waited = self.unheard.get_or_insert_with(Instant::now).elapsed();
        if waited < self.patience {
            return Ok(());
        }
        self.unheard = None;
        if !self.session.is_closed() && !is_connected(&self.session) {
            return Ok(()); // nobody is there, which zenoh goes on trying by itself
        }
        self.patience *= 2;
        tracing::warn!(service = self.name, ?waited, "no server hears it: opens another session");
        // Before the next one is opened, which may listen at the same endpoint.
        self.session.close().wait().map_err(failed("closing a session"))?;
        self.session = open(self.config.clone())?;
        self.rename(self.client)
    }
}

impl fmt::Debug for NetworkConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkConnection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Bytes of frames to or from a client that are on their way at a time: a link drops some of longer bursts. Its queue has room for 16 batches of 64 KiB.
const BYTES_ON_THEIR_WAY: usize = 4 * MAX_FRAME_BYTES;

impl Connection for NetworkConnection {
    fn service(&self) -> &str {
        &self.name
    }

    fn bytes_on_their_way(&self) -> usize {
        BYTES_ON_THEIR_WAY
    }

    fn client(&self) -> ClientId {
        self.client
    }

    fn frame_bytes(&self) -> usize {
        MAX_FRAME_BYTES
    }

    /// `false` if no server is known now. `true` does not say that the frame arrives: zenoh does not tell when it drops one.
    fn send(&mut self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        if self.ends.outlet.send(len, fill)? {
            (self.unheard, self.patience) = (None, UNHEARD);
            return Ok(true);
        }
        self.go_unheard()?;
        Ok(false)
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        Ok(receive(&self.ends.inbox, read))
    }

    /// Frames to the former client that have come but were not received yet are dropped.
    fn rename(&mut self, client: ClientId) -> Result<(), EngineError> {
        self.ends = Ends::declare(&self.session, &self.name, client, &self.counts, self.frames)?;
        self.client = client;
        Ok(())
    }

    fn silence(&mut self) -> Silence {
        if !is_connected(&self.session) {
            return Silence::NotConnected(
                "its zenoh session is connected with nobody: does the server listen at that endpoint, and do both sides' TLS and users let them connect?".into(),
            );
        }
        match served_by(&self.session, &self.name, ASKING).ok().and_then(|mut by| by.next()) {
            Some(server) => Silence::NotPermitted(format!(
                "the zenoh session {server} serves it, and gets nothing from this client, or this client nothing from it: see access_control in zenoh's configurations"
            )),
            None => Silence::NotConnected(
                "its zenoh session is connected, but knows nobody who serves it: is it served there by that name, and may this client see it (access_control)?".into(),
            ),
        }
    }
}

/// A server's end. Dropping it ends its zenoh session.
pub struct NetworkListener {
    clients: HashMap<ClientId, Outlet>,
    inbox: Arc<ArrayQueue<ZBytes>>,
    counts: Arc<Counts>,
    name: String,
    _token: LivelinessToken,
    _subscriber: Subscriber<()>,
    session: Session,
}

impl NetworkListener {
    /// How many frames were dropped as they came, since it listens.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.counts.now()
    }
}

impl fmt::Debug for NetworkListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NetworkListener")
            .field("name", &self.name)
            .field("clients", &self.clients.len())
            .finish_non_exhaustive()
    }
}

impl Listener for NetworkListener {
    fn service(&self) -> &str {
        &self.name
    }

    fn frame_bytes(&self) -> usize {
        MAX_FRAME_BYTES
    }

    fn bytes_on_their_way(&self) -> usize {
        BYTES_ON_THEIR_WAY
    }

    /// `false` if no such client is known now. `true` does not say that the frame arrives: zenoh does not tell when it drops one.
    fn send(&mut self, to: ClientId, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        let outlet = match self.clients.entry(to) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                new.insert(Outlet::declare(&self.session, answers(&self.name, to))?)
            }
        };
        outlet.send(len, fill)
    }

    fn receive(&mut self, read: &mut dyn FnMut(&[u8])) -> Result<bool, EngineError> {
        Ok(receive(&self.inbox, read))
    }

    fn forget(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }
}

/// A client's two ends under one identity.
struct Ends {
    outlet: Outlet,
    inbox: Arc<ArrayQueue<ZBytes>>,
    _subscriber: Subscriber<()>,
}

impl Ends {
    fn declare(
        session: &Session,
        name: &str,
        client: ClientId,
        counts: &Arc<Counts>,
        frames: NonZeroUsize,
    ) -> Result<Self, EngineError> {
        // The subscriber comes first: the server is to know of it before it gets a request.
        let (subscriber, inbox) = subscribe(session, answers(name, client), counts, frames)?;
        let outlet = Outlet::declare(session, format!("ring/{name}/requests/{client}"))?;
        Ok(Self { outlet, inbox, _subscriber: subscriber })
    }
}

/// Where frames are sent.
struct Outlet {
    publisher: Publisher<'static>,
    /// Whether somebody subscribes to them.
    heard: Arc<AtomicBool>,
}

impl Outlet {
    fn declare(session: &Session, key: String) -> Result<Self, EngineError> {
        let doing = "declaring a publisher";
        let publisher = session
            .declare_publisher(KeyExpr::try_from(key).map_err(failed(doing))?)
            .congestion_control(CongestionControl::Drop)
            .priority(PRIORITY)
            // Alone in its batch (express), a frame would come no sooner, and a burst of more than 16 would not find room.
            .express(false)
            .wait()
            .map_err(failed(doing))?;
        let heard = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&heard);
        publisher
            .matching_listener()
            .callback(move |status| told.store(status.matching(), Relaxed))
            .background()
            .wait()
            .map_err(failed("asking whether somebody subscribes"))?;
        Ok(Self { publisher, heard })
    }

    fn send(&self, len: usize, fill: Fill<'_>) -> Result<bool, EngineError> {
        if len > MAX_FRAME_BYTES {
            return Err(failed("sending a frame")(format!(
                "the frame has {len} bytes, and {MAX_FRAME_BYTES} at most are allowed"
            )));
        }
        if !self.heard.load(Relaxed) {
            return Ok(false);
        }
        let mut frame = vec![0; len];
        fill(&mut frame);
        self.publisher.put(frame).wait().map_err(failed("sending a frame"))?;
        Ok(true)
    }
}

#[derive(Default)]
struct Counts {
    queue_full: AtomicU64,
    too_long: AtomicU64,
}

impl Counts {
    fn now(&self) -> Dropped {
        Dropped { queue_full: self.queue_full.load(Relaxed), too_long: self.too_long.load(Relaxed) }
    }
}

fn answers(name: &str, client: ClientId) -> String {
    format!("ring/{name}/answers/{client}")
}

fn check(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    // A chunk that begins with @ is not matched by *.
    let at = name.chars().next().filter(|first| *first == '@');
    match at.or_else(|| name.chars().find(|c| "/*$?#".contains(*c))) {
        Some(character) => Err(NameError::Character { name: name.to_owned(), character }),
        None => Ok(()),
    }
}

fn open(config: zenoh::Config) -> Result<Session, EngineError> {
    zenoh::open(config).wait().map_err(failed("opening a session"))
}

fn failed<E: ToString>(doing: &'static str) -> impl FnOnce(E) -> EngineError {
    move |error| EngineError { engine: "zenoh", doing, said: error.to_string() }
}

/// Whether it is connected with another one.
fn is_connected(session: &Session) -> bool {
    let info = session.info();
    info.peers_zid().wait().chain(info.routers_zid().wait()).next().is_some()
}

/// The identities of the sessions that serve that name.
fn served_by(
    session: &Session,
    name: &str,
    within: Duration,
) -> Result<impl Iterator<Item = String>, EngineError> {
    let keys = alive(session, &format!("ring/{name}/server/*"), within)?;
    Ok(keys.into_iter().filter_map(|key| chunk(&key, 3)))
}

/// The keys of the liveliness tokens that match.
fn alive(session: &Session, keys: &str, within: Duration) -> Result<Vec<String>, EngineError> {
    let doing = "asking which services there are";
    let replies = session.liveliness().get(keys).timeout(within).wait().map_err(failed(doing))?;
    // It ends when all have replied, or at the timeout.
    Ok(std::iter::from_fn(|| replies.recv().ok())
        .filter_map(|reply| reply.into_result().ok())
        .map(|sample| sample.key_expr().as_str().to_owned())
        .collect())
}

fn chunk(key: &str, index: usize) -> Option<String> {
    key.split('/').nth(index).map(str::to_owned)
}

/// Subscribes to a key: the frames that come wait in the queue.
fn subscribe(
    session: &Session,
    key: String,
    counts: &Arc<Counts>,
    frames: NonZeroUsize,
) -> Result<(Subscriber<()>, Arc<ArrayQueue<ZBytes>>), EngineError> {
    let inbox = Arc::new(ArrayQueue::new(frames.get()));
    let (into, counts) = (Arc::clone(&inbox), Arc::clone(counts));
    let subscriber = session
        .declare_subscriber(key)
        .callback(move |sample: Sample| {
            if sample.kind() != SampleKind::Put {
                return;
            }
            let frame = sample.payload();
            if frame.len() > MAX_FRAME_BYTES {
                counts.too_long.fetch_add(1, Relaxed);
            } else if into.push(frame.clone()).is_err() {
                counts.queue_full.fetch_add(1, Relaxed);
            }
        })
        .wait()
        .map_err(failed("subscribing"))?;
    Ok((subscriber, inbox))
}

fn receive(inbox: &ArrayQueue<ZBytes>, read: &mut dyn FnMut(&[u8])) -> bool {
    let Some(frame) = inbox.pop() else { return false };
    // Copied only if it came in pieces.
    read(&frame.to_bytes());
    true
}
