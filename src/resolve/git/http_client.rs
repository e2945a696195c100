//! The https transport for gix, with a client that stops at the deadline and the byte limit of the fetch.
//!
//! The client follows redirects only within the origin, the server in the address. It looks for credentials only if
//! this server requests them, and sends them only to this server.

use std::cell::RefCell;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use gix::error::ErrorExt;
use gix_transport::client::blocking_io::http::{GetResponse, Http, PostBodyDataKind, PostResponse};
use ureq::http::{StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig};

use super::Settings;
use super::address::{self, Origin};
use super::budget::Budget;
use super::credentials;
use super::error::Cause;

/// The largest number of redirects that one request may follow.
const REDIRECTS: usize = 3;

type Answer = ureq::http::Response<ureq::Body>;

/// The http client of one fetch.
pub(super) struct Client<'a> {
    settings: &'a Settings,
    origin: &'a Origin,
    path: &'a str,
    sender: Sender<'a>,
    redirected: Option<String>,
}

impl<'a> Client<'a> {
    pub fn new(
        settings: &'a Settings,
        origin: &'a Origin,
        path: &'a str,
        budget: &'a Budget,
    ) -> Result<Self, Cause> {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(proxy(settings, origin)?)
            .tls_config(TlsConfig::builder().root_certs(roots(settings)?).build())
            .build();
        Ok(Self {
            settings,
            origin,
            path,
            sender: Sender {
                agent: config.into(),
                authorization: None,
                budget,
            },
            redirected: None,
        })
    }

    /// Sends a request for a URL, which ends with `tail`. Follows redirects within the origin, and sends credentials
    /// if the server requests them.
    fn ask(&mut self, url: &str, tail: &str, headers: &[String]) -> io::Result<Answer> {
        let budget = self.sender.budget;
        let mut url = url.to_owned();
        let mut redirects = 0;
        loop {
            let answer = self.sender.send(&url, headers, None)?;
            if answer.status().is_redirection() && redirects < REDIRECTS {
                redirects += 1;
                url = self.follow(&answer)?;
                // After a redirect, the next requests use the new URL without `tail` as their base.
                self.redirected = url.strip_suffix(tail).map(ToOwned::to_owned);
                if self.redirected.is_none() {
                    return Err(budget.stop(Cause::Redirect {
                        to: address::shown(&url),
                    }));
                }
            } else if answer.status() == StatusCode::UNAUTHORIZED
                && self.sender.authorization.is_none()
            {
                let found = credentials::find(self.settings, self.origin, self.path, budget);
                match found.map_err(|cause| budget.stop(cause))? {
                    Some(authorization) => self.sender.authorization = Some(authorization),
                    None => return self.sender.check(answer),
                }
            } else {
                return self.sender.check(answer);
            }
        }
    }

    /// Returns the URL to which an answer redirects. Fails if the URL is not on the same origin.
    fn follow(&self, answer: &Answer) -> io::Result<String> {
        let to = answer
            .headers()
            .get(header::LOCATION)
            .and_then(|location| location.to_str().ok())
            .unwrap_or_default();
        let home = self.origin.url();
        let path = match to.strip_prefix(&home) {
            Some(path) => path,
            None => to,
        };
        if path.starts_with('/') && !path.starts_with("//") {
            return Ok(format!("{home}{path}"));
        }
        let budget = self.sender.budget;
        Err(budget.stop(Cause::Redirect {
            to: budget.repeat(&address::shown(to)),
        }))
    }
}

fn roots(settings: &Settings) -> Result<RootCerts, Cause> {
    let Some(path) = &settings.authorities else {
        return Ok(RootCerts::PlatformVerifier);
    };
    let unusable = |why: String| Cause::Unreachable {
        why: format!(
            "the certificates in {} cannot be read ({why})",
            path.display()
        ),
    };
    let pem = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(&pem) {
        if let PemItem::Certificate(certificate) =
            item.map_err(|error| unusable(error.to_string()))?
        {
            certificates.push(certificate);
        }
    }
    Ok(RootCerts::Specific(Arc::new(certificates)))
}

fn proxy(settings: &Settings, origin: &Origin) -> Result<Option<ureq::Proxy>, Cause> {
    match &settings.proxy {
        Some(proxy) if origin.secure && !goes_around(settings.no_proxy.as_deref(), origin) => {
            ureq::Proxy::new(proxy)
                .map(Some)
                .map_err(|_| Cause::Unreachable {
                    why: "the address of the proxy is not valid".to_owned(),
                })
        }
        _ => Ok(None),
    }
}

/// Returns whether a `NO_PROXY` list contains the origin's host: by its name, by its domain, with its port, or by
/// `*`.
fn goes_around(list: Option<&str>, origin: &Origin) -> bool {
    let port = origin.port.unwrap_or(443).to_string();
    let names = list.unwrap_or_default().split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).any(|name| {
        let (name, fits) = match name.rsplit_once(':') {
            Some((name, wanted)) if wanted.bytes().all(|digit| digit.is_ascii_digit()) => {
                (name, wanted == port)
            }
            _ => (name, true),
        };
        let name = name
            .trim_start_matches("*.")
            .trim_start_matches('.')
            .to_ascii_lowercase();
        let host = origin.host.to_ascii_lowercase();
        let below = host
            .strip_suffix(&name)
            .is_some_and(|rest| rest.ends_with('.'));
        fits && (name == "*" || host == name || below)
    })
}

impl<'a> Http for Client<'a> {
    type Headers = BufReader<Part<'a>>;
    type ResponseBody = BufReader<Part<'a>>;
    type PostBody = Upload;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Self::Headers, Self::ResponseBody>> {
        let tail = url.strip_prefix(base_url).unwrap_or_default();
        let answer = self
            .ask(url, tail, &owned(headers))
            .map_err(|error| error.raise())?;
        let (headers, body) = parts(Exchange::Answered(answered(answer)), self.sender.budget);
        Ok(GetResponse { headers, body })
    }

    fn post(
        &mut self,
        url: &str,
        _: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Self::Headers, Self::ResponseBody, Self::PostBody>> {
        let post_body = Upload::default();
        let exchange = Exchange::Waiting {
            sender: self.sender.clone(),
            url: url.to_owned(),
            headers: owned(headers),
            upload: post_body.clone(),
        };
        let (headers, body) = parts(exchange, self.sender.budget);
        Ok(PostResponse {
            post_body,
            headers,
            body,
        })
    }

    fn configure(&mut self, _: &dyn std::any::Any) -> gix::Result {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected.clone()
    }
}

fn owned(headers: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    headers
        .into_iter()
        .map(|header| header.as_ref().to_owned())
        .collect()
}

/// Sends the requests of one fetch within its limits.
#[derive(Clone)]
struct Sender<'a> {
    agent: ureq::Agent,
    authorization: Option<String>,
    budget: &'a Budget,
}

impl Sender<'_> {
    fn send(&self, url: &str, headers: &[String], body: Option<Vec<u8>>) -> io::Result<Answer> {
        let mut request = ureq::http::Request::builder().uri(url);
        for line in headers {
            if let Some((name, value)) = line.split_once(':') {
                request = request.header(name.trim(), value.trim());
            }
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let unwritable = |_| io::Error::other("the request cannot be written");
        let left = Some(self.budget.remaining()?);
        let answer = match body {
            Some(body) => {
                let request = request.method("POST").body(body).map_err(unwritable)?;
                let request = self
                    .agent
                    .configure_request(request)
                    .timeout_global(left)
                    .build();
                self.agent.run(request)
            }
            None => {
                let request = request.body(()).map_err(unwritable)?;
                let request = self
                    .agent
                    .configure_request(request)
                    .timeout_global(left)
                    .build();
                self.agent.run(request)
            }
        };
        answer.map_err(|error| match error {
            ureq::Error::Timeout(_) => self.budget.stop_late(),
            ureq::Error::Io(error) => self.budget.stop(Cause::Unreachable {
                why: self.budget.repeat(&error.to_string()),
            }),
            error => self.budget.stop(Cause::Unreachable {
                why: self.budget.repeat(&error.to_string()),
            }),
        })
    }

    /// Returns a successful answer. For any other status, stops the fetch and returns the error.
    fn check(&self, answer: Answer) -> io::Result<Answer> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let why = format!("HTTP status {}", status.as_u16());
        Err(self.budget.stop(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Cause::Denied { why },
            StatusCode::NOT_FOUND | StatusCode::GONE => Cause::NoRepository { why },
            _ => Cause::Server { why },
        }))
    }
}

/// The body of a request. Its bytes are collected here, because the request is sent when the answer is first read.
#[derive(Clone, Default)]
pub(super) struct Upload(Rc<RefCell<Vec<u8>>>);

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Exchange<'a> {
    Waiting {
        sender: Sender<'a>,
        url: String,
        headers: Vec<String>,
        upload: Upload,
    },
    Answered(Answered),
    Failed,
}

struct Answered {
    headers: Cursor<Vec<u8>>,
    body: ureq::BodyReader<'static>,
}

fn answered(answer: Answer) -> Answered {
    let mut headers = Vec::new();
    for (name, value) in answer.headers() {
        headers.extend_from_slice(name.as_str().as_bytes());
        headers.extend_from_slice(b": ");
        headers.extend_from_slice(value.as_bytes());
        headers.push(b'\n');
    }
    Answered {
        headers: Cursor::new(headers),
        body: answer.into_body().into_reader(),
    }
}

impl Exchange<'_> {
    fn answer(&mut self) -> io::Result<&mut Answered> {
        if let Exchange::Waiting { .. } = self
            && let Exchange::Waiting {
                sender,
                url,
                headers,
                upload,
            } = std::mem::replace(self, Exchange::Failed)
        {
            let answer = sender.send(&url, &headers, Some(upload.0.take()))?;
            *self = Exchange::Answered(answered(sender.check(answer)?));
        }
        match self {
            Exchange::Answered(answered) => Ok(answered),
            _ => Err(io::Error::other("an earlier request of this fetch failed")),
        }
    }
}

/// A reader for the head or the body of the server's answer.
pub(super) struct Part<'a> {
    exchange: Rc<RefCell<Exchange<'a>>>,
    budget: &'a Budget,
    head: bool,
}

fn parts<'a>(
    exchange: Exchange<'a>,
    budget: &'a Budget,
) -> (BufReader<Part<'a>>, BufReader<Part<'a>>) {
    let exchange = Rc::new(RefCell::new(exchange));
    let part = |head| Part {
        exchange: exchange.clone(),
        budget,
        head,
    };
    (BufReader::new(part(true)), BufReader::new(part(false)))
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut exchange = self.exchange.borrow_mut();
        let answered = exchange.answer()?;
        if self.head {
            return answered.headers.read(buffer);
        }
        self.budget.remaining()?;
        let read = answered.body.read(buffer).map_err(|error| {
            let late = error.kind() == io::ErrorKind::TimedOut
                || error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref())
                    .is_some_and(|inner| matches!(inner, ureq::Error::Timeout(_)));
            if late {
                return self.budget.stop_late();
            }
            let why = self.budget.repeat(&error.to_string());
            self.budget.stop(Cause::Unreachable { why })
        })?;
        self.budget.receive(read)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_hosts_go_around_the_proxy() {
        let origin = |host: &str, port| Origin {
            secure: true,
            host: host.to_owned(),
            port,
        };
        for (list, host, port, expected) in [
            ("", "git.example.com", None, false),
            ("git.example.com", "git.example.com", None, true),
            ("example.com", "git.example.com", None, true),
            (".example.com", "git.Example.com", None, true),
            ("*.example.com", "git.example.com", None, true),
            ("example.com", "badexample.com", None, false),
            ("other.com, example.com", "example.com", None, true),
            ("example.com:8443", "example.com", Some(8443), true),
            ("example.com:8443", "example.com", None, false),
            ("example.com:443", "example.com", None, true),
            ("*", "anything", None, true),
        ] {
            let found = goes_around(Some(list), &origin(host, port));
            assert_eq!(found, expected, "{list} {host}");
        }
        assert!(!goes_around(None, &origin("example.com", None)));
    }
}
