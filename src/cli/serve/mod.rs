//! `bowline serve`: makes the API of the target available on a socket, for kubectl and other clients.
//!
//! The socket accepts HTTP/1.1 and, with prior knowledge, HTTP/2, but no TLS. The embedded API answers the requests.
//! This module has the limits of the socket, and a stop that ends watches.

pub mod gate;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use futures::{FutureExt, StreamExt};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, BodyStream, Full, LengthLimitError, Limited, StreamBody};
use hyper::body::Incoming;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube_embedded::{Body, Embedded};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::socket::{self, PATIENCE};
use crate::text;
use gate::{Gate, Refusal, Unsafe};

/// The largest body of a request in bytes. A Kubernetes API server has the same limit.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The arguments of `serve`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The address to listen on; port 0 chooses a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8001")]
    listen: SocketAddr,
    /// Refuse requests without the token in this file; required if the address of --listen is not loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Answers requests until SIGINT or SIGTERM.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut impl Write,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    if options.context.is_some() || options.kubeconfig.is_some() {
        return Err(
            Error::new(Exit::Usage, "serve needs the embedded store, not a cluster")
                .with_hint("serve a cluster: kubectl proxy"),
        );
    }
    if options.repo.is_some() {
        return Err(Error::new(
            Exit::Usage,
            "serve needs the embedded store, not a repository",
        ));
    }
    if options.readonly {
        return Err(Error::new(Exit::Usage, "serve does not support --readonly"));
    }
    let token = match &arguments.token_file {
        Some(file) => Some(std::fs::read_to_string(file).map_err(|error| {
            Error::new(
                Exit::Usage,
                format!("token file {}: {error}", file.display()),
            )
        })?),
        None => None,
    };
    // Check the address and the token first, so that a mistake is reported before the store is opened.
    Gate::new(arguments.listen, token.as_deref())?;
    let (api, file) = connect::embedded(options, environment).await?;
    let listener = socket::bind(arguments.listen).await?;
    let address = listener.local_addr()?;
    let gate = Gate::new(address, token.as_deref())?;
    let stop = socket::stop_signal()?;

    writeln!(out, "listening on http://{address}")?;
    out.flush()?;
    let attempt = match &arguments.token_file {
        None => format!(
            "kubectl --kubeconfig=/dev/null --server=http://{address} get releasepins.openchoreo.dev -A"
        ),
        // kubectl sends no credentials without TLS, so the example command uses curl.
        Some(file) => format!(
            "curl -H \"Authorization: Bearer $(cat {})\" http://{address}/version",
            text::quoted(&file.to_string_lossy())
        ),
    };
    let store = text::line(&file.to_string_lossy()).into_owned();
    say(format!("serving embedded store {store}; try:\n{attempt}"));
    if !address.ip().to_canonical().is_loopback() {
        say(
            "warning: bowline sends tokens and data unencrypted; put a TLS proxy in front of it"
                .to_owned(),
        );
    }
    serve(listener, api, gate, stop).await;
    Ok(())
}

impl From<Unsafe> for Error {
    fn from(error: Unsafe) -> Error {
        let hint = match error {
            Unsafe::NotLoopback(_) => "listen on 127.0.0.1, or use --token-file FILE",
            Unsafe::EmptyToken | Unsafe::BadToken => {
                "openssl rand -hex 32 > FILE makes a good token"
            }
        };
        Error::new(Exit::Usage, error.to_string()).with_hint(hint)
    }
}

/// Answers requests until `stop` completes, and then lets running requests finish.
pub async fn serve(
    listener: TcpListener,
    api: Embedded,
    gate: Gate,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(false);
    let service = Answering {
        api,
        gate: Arc::new(gate),
        stopped,
    };
    let stop = stop.map(|()| {
        let _ = stopping.send(true);
    });
    let answer = move |request| service.clone().answer(request);
    socket::serve(listener, stop, answer).await;
}

type Answer = Response<Body>;

#[derive(Clone)]
struct Answering {
    api: Embedded,
    gate: Arc<Gate>,
    stopped: watch::Receiver<bool>,
}

impl Answering {
    async fn answer(self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        if let Err(refusal) = self.gate.admit(&head) {
            return refuse(refusal);
        }
        let body = match read(body).await {
            Ok(body) => body,
            Err(refusal) => return refuse(refusal),
        };
        let mut stopped = self.stopped.clone();
        let response = self.api.call(Request::from_parts(head, body)).await;
        response.map(|body| {
            if body.size_hint().exact().is_some() {
                return body.boxed_unsync();
            }
            // A watch never ends by itself, so the stop ends it here. Clients handle this like a timeout of the
            // server.
            let stopping = async move {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            StreamBody::new(BodyStream::new(body).take_until(stopping.boxed())).boxed_unsync()
        })
    }
}

async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = || Refusal {
        code: StatusCode::PAYLOAD_TOO_LARGE,
        reason: "RequestEntityTooLarge",
        message: format!("Request entity too large: limit is {BODY_LIMIT}"),
    };
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(PATIENCE, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => Err(Refusal {
            code: StatusCode::BAD_REQUEST,
            reason: "BadRequest",
            message: format!("cannot read the body: {error}"),
        }),
        Err(_elapsed) => Err(Refusal {
            code: StatusCode::REQUEST_TIMEOUT,
            reason: "Timeout",
            message: format!("the body was not sent within {PATIENCE:?}"),
        }),
    }
}

fn refuse(refusal: Refusal) -> Answer {
    let status = Status {
        status: Some("Failure".to_owned()),
        code: Some(refusal.code.as_u16().into()),
        reason: Some(refusal.reason.to_owned()),
        message: Some(refusal.message),
        ..Status::default()
    };
    let body = serde_json::to_vec(&status).unwrap_or_default();
    let mut response = Response::new(
        Full::from(body)
            .map_err(|never| match never {})
            .boxed_unsync(),
    );
    *response.status_mut() = refusal.code;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}
