//! The HTTP endpoints of the controller process: liveness, readiness and metrics.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;

use crate::controllers::Context;
use crate::controllers::metrics::{self, Metrics};

/// The state of the controller process, which its endpoints report.
#[derive(Default)]
pub(super) struct State {
    pub(super) metrics: Arc<Metrics>,
    standing: RwLock<Standing>,
}

/// The role of the process among the controller processes of a target.
#[derive(Clone, Default)]
pub(super) enum Standing {
    #[default]
    Starting,
    /// Another process is the leader, so this process waits. Contains the name of the leader, if known.
    Waiting(Option<String>),
    /// This process is the leader and runs the controllers.
    Acting(Arc<Context>),
    /// This process cannot read the Lease, so its role is unknown. Contains the error.
    Unreachable(String),
}

impl Standing {
    /// Returns the text of the readiness endpoint: Ok if the process is ready, Err if it is not.
    fn is_ready(&self) -> Result<String, String> {
        match self {
            Self::Starting => Err("starting".to_owned()),
            Self::Waiting(None) => Ok("waiting: another process is the leader".to_owned()),
            Self::Waiting(Some(who)) => Ok(format!("waiting: {who} is the leader")),
            Self::Acting(context) if context.feed().world().is_live() => Ok("acting".to_owned()),
            Self::Acting(context) => {
                let absent = context.feed().world().absent_kinds();
                Err(match absent.is_empty() {
                    true => "the first lists are not complete".to_owned(),
                    false => format!(
                        "the cluster does not have the kinds {}; bowline install installs them",
                        absent.join(", ")
                    ),
                })
            }
            Self::Unreachable(why) => Err(format!("cannot get the lease: {why}")),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unreachable(one), Self::Unreachable(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

impl State {
    /// Sets the role of the process. Returns whether the role is another one than before.
    pub(super) fn stands(&self, standing: Standing) -> bool {
        let mut held = self
            .standing
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let news = !held.is_like(&standing);
        *held = standing;
        news
    }
}

pub(super) fn answer<B>(request: &Request<B>, state: &State) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return text(
            StatusCode::METHOD_NOT_ALLOWED,
            TEXT,
            "only GET\n".to_owned(),
        );
    }
    match request.uri().path() {
        // A process that can answer is alive, even if the target does not answer: a restart would not help.
        "/healthz" => text(StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => {
            let standing = state
                .standing
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            match standing.is_ready() {
                Ok(how) => text(StatusCode::OK, TEXT, format!("ok: {how}\n")),
                Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
            }
        }
        "/metrics" => text(StatusCode::OK, metrics::CONTENT_TYPE, state.metrics.text()),
        _ => {
            let known = "the paths are /healthz, /readyz and /metrics\n".to_owned();
            text(StatusCode::NOT_FOUND, TEXT, known)
        }
    }
}

fn text(code: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = code;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
