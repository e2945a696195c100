//! Access control of `bowline serve`: decides from the head of a request whether bowline answers it.
//!
//! Every process on this machine can connect to a loopback socket. Every web page can too, because the browser sends
//! its requests to 127.0.0.1. With a host name that resolves to this address (DNS rebinding), the page can even read
//! the answers. So requests with the headers of a browser, or with a wrong host name, are refused. Clients such as
//! kubectl never send these headers and always send the right host name.

use std::net::{IpAddr, SocketAddr};

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, header};
use sha2::{Digest, Sha256};

/// The answer to a request that the access control refuses.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code of the answer.
    pub code: StatusCode,
    /// The reason in the Status object of the answer.
    pub reason: &'static str,
    /// The message in the Status object of the answer.
    pub message: String,
}

/// The reason why `bowline serve` refuses to start.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unsafe {
    /// The address is no loopback address, and the user gave no token. So other machines could write to the store.
    #[error("other machines can reach {0}")]
    NotLoopback(SocketAddr),
    /// The token file is empty.
    #[error("the token file is empty")]
    EmptyToken,
    /// The token contains a character that is not allowed in an HTTP header.
    #[error("the token must be one line of visible ASCII characters")]
    BadToken,
}

/// Decides which requests bowline answers.
#[derive(Debug)]
pub struct Gate {
    listen: SocketAddr,
    /// The digest of the token; None if the user gave no token. Digests are compared, because this takes the same
    /// time for every wrong token.
    token: Option<[u8; 32]>,
}

impl Gate {
    /// Creates the access control for an address. If `token` is None, the address must be a loopback address.
    pub fn new(listen: SocketAddr, token: Option<&str>) -> Result<Gate, Unsafe> {
        let token = match token.map(str::trim) {
            None if !listen.ip().to_canonical().is_loopback() => {
                return Err(Unsafe::NotLoopback(listen));
            }
            None => None,
            Some("") => return Err(Unsafe::EmptyToken),
            Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(Unsafe::BadToken);
            }
            Some(token) => Some(digest(token.as_bytes())),
        };
        Ok(Gate { listen, token })
    }

    /// Returns an error with the answer if bowline must refuse the request.
    pub fn admit(&self, head: &Parts) -> Result<(), Refusal> {
        if let Some(name) = [header::ORIGIN.as_str(), "sec-fetch-site"]
            .into_iter()
            .find(|name| head.headers.contains_key(*name))
        {
            return Err(forbidden(format!(
                "bowline refuses requests from browsers ({name})"
            )));
        }
        match &self.token {
            // A client with the token is trusted, so its host name need not be checked.
            Some(token) => bearer(&head.headers)
                .is_some_and(|sent| same(&digest(sent), token))
                .then_some(())
                .ok_or_else(|| Refusal {
                    code: StatusCode::UNAUTHORIZED,
                    reason: "Unauthorized",
                    message: "Unauthorized".to_owned(),
                }),
            None => self.admit_host(head),
        }
    }

    fn admit_host(&self, head: &Parts) -> Result<(), Refusal> {
        let named: Vec<Option<Authority>> = head
            .headers
            .get_all(header::HOST)
            .iter()
            .map(|value| Authority::try_from(value.as_bytes()).ok())
            .chain(head.uri.authority().cloned().map(Some))
            .collect();
        let ours = |host: &Option<Authority>| host.as_ref().is_some_and(|host| self.is_ours(host));
        if named.is_empty() || !named.iter().all(ours) {
            return Err(forbidden(
                "the Host header names another machine; use the address that bowline listens on"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    fn is_ours(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => {
                let address = address.to_canonical();
                address.is_loopback() || address == self.listen.ip().to_canonical()
            }
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }
}

fn forbidden(message: String) -> Refusal {
    Refusal {
        code: StatusCode::FORBIDDEN,
        reason: "Forbidden",
        message,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter()
        .zip(other)
        .fold(0, |differ, (a, b)| differ | (a ^ b))
        == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: &str = "127.0.0.1:8001";

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request = headers
            .iter()
            .fold(http::Request::get(uri), |request, (name, value)| {
                request.header(*name, *value)
            });
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_loopback_needs_no_token() {
        let gate = |address: &str, token| Gate::new(address.parse().unwrap(), token).map(|_| ());
        assert_eq!(gate("127.0.0.1:0", None), Ok(()));
        assert_eq!(gate("127.8.9.1:80", None), Ok(()));
        assert_eq!(gate("[::1]:0", None), Ok(()));
        for open in [
            "0.0.0.0:80",
            "[::]:80",
            "192.168.1.2:80",
            "[fe80::1]:80",
            "[::ffff:10.0.0.1]:1",
        ] {
            let address = open.parse().unwrap();
            assert_eq!(
                gate(open, None),
                Err(Unsafe::NotLoopback(address)),
                "{open}"
            );
            assert_eq!(gate(open, Some("s3cret")), Ok(()), "{open}");
        }
        assert_eq!(gate("0.0.0.0:80", Some(" \n")), Err(Unsafe::EmptyToken));
        assert_eq!(gate("127.0.0.1:80", Some("")), Err(Unsafe::EmptyToken));
        assert_eq!(
            gate("127.0.0.1:80", Some("two\nlines")),
            Err(Unsafe::BadToken)
        );
    }

    #[test]
    fn browsers_and_foreign_hosts_are_refused() {
        let gate = Gate::new(LOOPBACK.parse().unwrap(), None).unwrap();
        let passes: &[&[(&str, &str)]] = &[
            &[("host", "127.0.0.1:8001")],
            &[("host", "localhost:8001")],
            &[("host", "LOCALHOST")],
            &[("host", "[::1]:8001")],
            &[("host", "127.0.0.1:9999")],
            &[("host", "[::ffff:127.0.0.1]")],
        ];
        for headers in passes {
            assert_eq!(gate.admit(&head("/api", headers)), Ok(()), "{headers:?}");
        }
        let refused: &[&[(&str, &str)]] = &[
            &[],
            &[("host", "")],
            &[("host", "evil.example:8001")],
            &[("host", "localhost.evil.example")],
            &[("host", "127.0.0.1.evil.example")],
            &[("host", "localhost@evil.example")],
            &[("host", "evil@localhost")],
            &[("host", "10.0.0.7:8001")],
            &[("host", "0.0.0.0:8001")],
            &[("host", "localhost"), ("host", "evil.example")],
            &[("host", "localhost"), ("origin", "https://evil.example")],
            &[("host", "localhost"), ("origin", "null")],
            &[("host", "localhost"), ("sec-fetch-site", "cross-site")],
            &[("host", "localhost"), ("sec-fetch-site", "none")],
        ];
        for headers in refused {
            let refusal = gate.admit(&head("/api", headers)).unwrap_err();
            assert_eq!(refusal.code, StatusCode::FORBIDDEN, "{headers:?}");
        }
        // In HTTP/2, the host name is in the URI and not in a header.
        assert_eq!(gate.admit(&head("http://localhost:8001/api", &[])), Ok(()));
        assert!(gate.admit(&head("http://evil.example/api", &[])).is_err());
        assert!(
            gate.admit(&head("http://evil.example/api", &[("host", "localhost")]))
                .is_err()
        );
    }

    #[test]
    fn with_a_token_only_the_token_counts() {
        let gate = Gate::new("0.0.0.0:8001".parse().unwrap(), Some("s3cret\n")).unwrap();
        for (authorization, passes) in [
            ("Bearer s3cret", true),
            ("bearer s3cret", true),
            ("Bearer  s3cret ", true),
            ("Bearer s3cre", false),
            ("Bearer s3cret2", false),
            ("Bearer ", false),
            ("Bearer", false),
            ("Basic s3cret", false),
            ("", false),
        ] {
            let request = head(
                "/api",
                &[("host", "laptop.lan"), ("authorization", authorization)],
            );
            assert_eq!(gate.admit(&request).is_ok(), passes, "{authorization:?}");
        }
        let refusal = gate.admit(&head("/api", &[])).unwrap_err();
        assert_eq!(refusal.code, StatusCode::UNAUTHORIZED);
        let browser = [
            ("authorization", "Bearer s3cret"),
            ("origin", "https://evil.example"),
        ];
        assert!(gate.admit(&head("/api", &browser)).is_err());
    }
}
