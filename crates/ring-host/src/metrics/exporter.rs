//! A server of metrics by HTTP, on a thread of its own.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

/// The page that has the metrics.
const PAGE: &str = "/metrics";

/// The text format of OpenMetrics, which is given to who accepts it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The variable that names a port; `ring top` sets it for a program that it runs.
const PORT: &str = "RING_METRICS_PORT";

/// Connections at a time; more wait to be accepted.
const CONNECTIONS: usize = 16;

/// Bytes of a request's line and headers at most.
const MOST_READ: usize = 16 * 1024;

/// How long a connection may take, from its request to the end of the answer.
const CONNECTION: Duration = Duration::from_secs(10);

/// After accepting has failed, for want of file descriptors say.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the metrics of a registry at `/metrics`, in the text format of OpenMetrics or of Prometheus as the request accepts, on a thread
/// of its own. Dropping it ends the server and closes its port.
///
/// It answers each connection once, 16 at a time, reads 16 KiB of a request at most and no body, and gives a connection 10 s. There is
/// neither encryption nor a password: on any but the loopback address, whoever reaches the port reads the metrics.
///
/// ```
/// # use ring_host::{Device, Runtime, metrics::{Exporter, Metrics}};
/// let runtime = Runtime::open(Device::Cpu)?;
/// let exporter = Exporter::on_loopback(0, Metrics::of(&runtime).into_registry())?; // 0: any port
/// println!("http://{}/metrics", exporter.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Exporter {
    address: SocketAddr,
    ends: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

/// Why metrics are not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExporterError {
    /// It cannot be listened on that address: its port is in use, or is not the user's to take.
    #[error("cannot listen on {address}: {source}; choose another port, or 0 for any")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The variable of the environment that names the port names none.
    #[error(
        "RING_METRICS_PORT is '{value}', which is no port; give a number from 1 to 65535, or unset it"
    )]
    Port {
        /// What it is set to.
        value: String,
    },
    /// The system gave no thread, or what a thread needs to wait for connections.
    #[error("no server of metrics: {0}")]
    Thread(#[source] std::io::Error),
}

impl Exporter {
    /// Serves on `127.0.0.1` and that port; 0 for any that is free.
    ///
    /// # Errors
    /// When the port is in use or not the user's to take, or there is no thread.
    pub fn on_loopback(port: u16, registry: Registry) -> Result<Exporter, ExporterError> {
        Exporter::on((Ipv4Addr::LOCALHOST, port).into(), registry)
    }

    /// Serves on `127.0.0.1` and the port that `RING_METRICS_PORT` names, where that variable of the environment is set, as
    /// `ring top -- PROGRAM` sets it for the program that it runs. Where it is not set nothing is served.
    ///
    /// ```
    /// # use ring_host::{Device, Runtime, metrics::{Exporter, Metrics}};
    /// let runtime = Runtime::open(Device::Cpu)?;
    /// let _exporter = Exporter::asked_for(Metrics::of(&runtime).into_registry())?; // until it is dropped
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the variable names no port, and as for [`on_loopback`](Self::on_loopback).
    pub fn asked_for(registry: Registry) -> Result<Option<Exporter>, ExporterError> {
        let port = std::env::var_os(PORT).map(|value| port_of(&value)).transpose()?;
        port.map(|port| Exporter::on_loopback(port, registry)).transpose()
    }

    /// Serves on that address: of others than the loopback ones, to whoever reaches it.
    ///
    /// # Errors
    /// As for [`on_loopback`](Self::on_loopback).
    pub fn on(address: SocketAddr, registry: Registry) -> Result<Exporter, ExporterError> {
        let listen = |source| ExporterError::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (ends, (tell, told)) = (Arc::new(Notify::new()), std::sync::mpsc::channel());
        let ending = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("ring-exporter".to_owned());
        let thread = thread.spawn(move || match begin(listener, registry) {
            Ok(waiting) => {
                let _ = tell.send(Ok(()));
                waiting.block_on(ending.notified());
            }
            Err(error) => drop(tell.send(Err(error))),
        });
        let thread = Some(thread.map_err(ExporterError::Thread)?);
        let ended = |_| Err(std::io::Error::other("its thread has ended"));
        told.recv().unwrap_or_else(ended).map_err(ExporterError::Thread)?;
        tracing::info!(%address, "metrics are served");
        Ok(Exporter { address, ends, thread })
    }

    /// The address that it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ends.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn port_of(value: &OsStr) -> Result<u16, ExporterError> {
    let port = value.to_str().and_then(|text| text.parse().ok()).filter(|port| *port != 0);
    port.ok_or_else(|| ExporterError::Port { value: value.to_string_lossy().into_owned() })
}

/// Begins to accept connections, as long as what they are waited for by is there and run.
fn begin(listener: TcpListener, registry: Registry) -> std::io::Result<tokio::runtime::Runtime> {
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = waiting.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    waiting.spawn(accept(listener, Arc::new(registry)));
    Ok(waiting)
}

/// Accepts connections, until what it runs on ends.
async fn accept(listener: tokio::net::TcpListener, registry: Arc<Registry>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(one) = Arc::clone(&free).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let registry = Arc::clone(&registry);
                tokio::spawn(async move {
                    let _one = one;
                    // Who breaks it off, or is too slow, gets no answer.
                    let _ = tokio::time::timeout(CONNECTION, serve(stream, &registry)).await;
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no connection for metrics");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, registry: &Registry) -> hyper::Result<()> {
    let answer = |request| std::future::ready(Ok::<_, Infallible>(answer(&request, registry)));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION)
        .max_buf_size(MOST_READ)
        .keep_alive(false)
        .half_close(true) // who has sent its request may say that it sends no more
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await
}

fn answer(request: &Request<Incoming>, registry: &Registry) -> Response<Full<Bytes>> {
    if request.uri().path() != PAGE {
        return plain(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let accepts = |accepted: &HeaderValue| {
        accepted.to_str().is_ok_and(|accepted| accepted.contains("application/openmetrics-text"))
    };
    let mut page = String::new();
    let (written, kind) = if request.headers().get_all(ACCEPT).iter().any(accepts) {
        (text::encode(&mut page, registry), OPEN_METRICS)
    } else {
        (prometheus_text::encode(&mut page, registry), prometheus_text::CONTENT_TYPE)
    };
    match written {
        Ok(()) => of_kind(StatusCode::OK, kind, page),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a metric could not be written\n"),
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    of_kind(status, "text/plain; charset=utf-8", text)
}

fn of_kind(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_as_it_is_named() {
        for (value, port) in [("1", 1), ("9464", 9464), ("65535", 65535)] {
            assert_eq!(port_of(value.as_ref()).unwrap(), port);
        }
    }

    #[test]
    fn what_names_no_port_is_told() {
        for value in ["", "0", "65536", "-1", "9464 ", "127.0.0.1:9464", "metrics"] {
            let error = port_of(value.as_ref()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("RING_METRICS_PORT is '{value}', ")), "{error}");
            assert!(error.ends_with("from 1 to 65535, or unset it"), "{error}");
        }
    }
}
