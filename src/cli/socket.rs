//! The HTTP sockets of `bowline serve` and `bowline controller`: their limits, and a stop that lets running requests
//! finish.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::BoxError;

use super::error::{Error, Exit};

/// The largest head (request line and headers) of a request in bytes.
pub const HEAD_LIMIT: u16 = u16::MAX;
/// The largest number of open connections. Further connections have to wait.
const CONNECTIONS: usize = 1024;
/// How long a client may take to send its request before the connection is closed.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How long running requests may continue after the socket is stopped.
pub const GRACE: Duration = Duration::from_secs(5);

pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|error| {
        Error::new(Exit::Failed, format!("cannot listen on {address}: {error}"))
            .with_hint("choose a free port: --listen 127.0.0.1:0")
    })
}

/// Returns a future that completes at SIGINT or SIGTERM.
#[cfg(unix)]
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + Sync + use<>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Returns a future that completes when the user interrupts bowline.
#[cfg(not(unix))]
pub fn stop_signal() -> std::io::Result<impl Future<Output = ()> + Send + Sync + use<>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}

/// Answers requests on a socket until `stop` completes, and then lets running requests finish.
pub async fn serve<A, F, B>(listener: TcpListener, stop: impl Future<Output = ()>, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = async {
            let seat = seats.clone().acquire_owned().await;
            (listener.accept().await, seat)
        };
        let (stream, seat) = tokio::select! {
            () = &mut stop => break,
            (accepted, seat) = accepted => match accepted {
                Ok((stream, _)) => (stream, seat),
                Err(error) => {
                    // Usually the process has no free file descriptor. It gets one when another connection ends, so
                    // try again after a pause.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (answer, watcher) = (answer.clone(), connections.watcher());
        tokio::spawn(async move {
            let _seat = seat;
            attend(stream, answer, watcher).await;
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
}

async fn attend<A, F, B>(stream: TcpStream, answer: A, watcher: Watcher)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_headers(100)
        .max_buf_size(HEAD_LIMIT.into());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(250)
        .max_header_list_size(HEAD_LIMIT.into())
        .keep_alive_interval(PATIENCE);
    let service = hyper::service::service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error, "a connection failed");
    }
}
