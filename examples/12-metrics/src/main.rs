//! A kernel behind an HTTP service: each request of a browser is a message, and Prometheus scrapes what the kernel counts beside the
//! service's own counters.
//!
//! `cargo run --release -p example-metrics [device [address]]`, then in another terminal
//! `curl http://127.0.0.1:9464/echo/7` and `curl http://127.0.0.1:9464/metrics`. Ctrl-C ends it.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::metrics::Metrics;
use ring_host::{Client, LaunchConfig, Runtime};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(10);

/// On the loopback address: whoever reaches another one may call the kernel.
const ADDRESS: &str = "127.0.0.1:9464";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let device = args.next().as_deref().unwrap_or("auto").parse()?;
    let address = args.next().unwrap_or_else(|| ADDRESS.to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("http://{0}/echo/7 and http://{0}/metrics", listener.local_addr()?);
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    run(&Runtime::open(device)?, listener, interrupted).await
}

/// What the service's requests share.
struct Service {
    client: Client<Echo>,
    failed: Counter,
    registry: Registry,
}

/// Serves until `ends`, and terminates the kernel then.
async fn run(
    runtime: &Runtime,
    listener: TcpListener,
    ends: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Failure> {
    // The program's own metrics, with those of the runtime's kernels beside them.
    let (mut registry, failed) = (Registry::default(), Counter::default());
    registry.register("service_failed", "Requests that the kernel did not answer", failed.clone());
    registry.register_collector(Box::new(Metrics::of(runtime)));

    let mut kernel = runtime.launch::<Echo>(LaunchConfig::default())?;
    kernel.activate(LIMIT)?;
    let service = Arc::new(Service { client: kernel.client()?, failed, registry });
    let routes = Router::new()
        .route("/echo/{seed}", get(echo))
        .route("/metrics", get(metrics))
        .with_state(service);
    axum::serve(listener, routes).with_graceful_shutdown(ends).await?;

    let summary = kernel.terminate(LIMIT)?;
    println!("{}: {} messages answered", runtime.device().name, summary.processed);
    Ok(())
}

/// One message there and back.
async fn echo(State(service): State<Arc<Service>>, Path(seed): Path<u64>) -> (StatusCode, String) {
    let request = EchoMessage::from_seed(seed);
    let failure = match timeout(LIMIT, service.client.call_async(request)).await {
        Ok(Ok(answer)) => return (StatusCode::OK, format!("{answer:?}\n")),
        Ok(Err(error)) => error.to_string(),
        Err(late) => late.to_string(),
    };
    service.failed.inc();
    (StatusCode::SERVICE_UNAVAILABLE, failure)
}

/// All metrics, as text.
async fn metrics(
    State(service): State<Arc<Service>>,
) -> Result<([(header::HeaderName, &'static str); 1], String), StatusCode> {
    let mut page = String::new();
    text::encode(&mut page, &service.registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::oneshot;

    async fn page(address: std::net::SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn serves(runtime: &Runtime) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel();
        let asking = async move {
            for seed in 0..3 {
                let answer = page(address, &format!("/echo/{seed}")).await;
                let expected = format!("{:?}\n", EchoMessage::from_seed(seed).answer());
                assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with(&expected));
            }
            assert!(page(address, "/echo/seven").await.starts_with("HTTP/1.1 400"));
            let metrics = page(address, "/metrics").await;
            assert!(metrics.contains("\nservice_failed_total 0\n"), "{metrics}");
            let sent = |line: &&str| line.starts_with("ring_requests_sent_total{");
            let sent: Vec<_> = metrics.lines().filter(sent).collect();
            assert!(matches!(sent[..], [line] if line.ends_with(" 3")), "{sent:?}");
            end.send(()).unwrap();
        };
        let (served, ()) =
            tokio::join!(run(runtime, listener, async { ended.await.unwrap() }), asking);
        served.unwrap();
    }

    #[tokio::test]
    async fn on_every_device() {
        serves(&ring_tests::cpu()).await;
        if let Some(gpu) = ring_tests::gpu() {
            serves(&gpu).await;
        }
    }
}
