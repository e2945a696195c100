//! Checks the answers of a server: their size, and whether they come from a Kubernetes API server.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use super::deadline::is_endless;

/// The largest size of an answer that ends, in bytes.
const WHOLE: usize = 256 << 20;
/// The largest size of one line of an endless answer, in bytes. A watch is such an answer, with one event per line.
const LINE: usize = 32 << 20;
/// The field `kind` as JSON text. Every Kubernetes object has this field.
const KIND: &[u8] = b"\"kind\"";

/// The reason why bowline rejects the answer of a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadAnswer {
    /// The answer, or one line of an endless answer, exceeds its size limit.
    #[error(
        "{server} answered {request} with more than {} {part}, the limit of bowline",
        crate::text::bytes(*limit as u64)
    )]
    TooLong {
        server: String,
        request: String,
        part: &'static str,
        limit: usize,
    },
    /// The answer does not come from a Kubernetes API server, but for example from a web server.
    #[error(
        "{server} does not answer like a Kubernetes API server: {request} returned {what}; check the server in the kubeconfig"
    )]
    Foreign {
        server: String,
        request: String,
        what: String,
    },
}

/// A request as error messages show it, with the requirements for its answer.
pub(super) struct Asked {
    server: String,
    request: String,
    is_endless: bool,
    /// Whether the answer must be a Kubernetes object, so that it must have the field `kind`.
    is_object: bool,
}

impl Asked {
    /// Returns the description of a request for error messages, and the requirements for its answer.
    pub(super) fn of(server: &str, request: &Request<Body>) -> Self {
        let path = request.uri().path();
        let is_endless = is_endless(request);
        let is_api = path.starts_with("/api/") || path.starts_with("/apis/");
        let is_text = path.ends_with("/log") || path.contains("/proxy");
        Self {
            server: server.to_owned(),
            request: format!("{} {path}", request.method()),
            is_endless,
            is_object: is_api && !is_text && !is_endless && request.method() != http::Method::HEAD,
        }
    }

    /// Checks the status and the media type of an answer. Returns the answer with a body that is checked while the
    /// caller reads it.
    pub(super) fn check<B>(self, answer: Response<B>) -> Result<Response<Checked<B>>, BadAnswer> {
        let status = answer.status();
        let media = answer.headers().get(header::CONTENT_TYPE);
        let media = media.and_then(|media| media.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let is_page = media.starts_with("text/html");
        let what = match () {
            () if status.is_redirection() => Some(format!("a redirection ({status})")),
            () if is_page && (status.is_success() || status == http::StatusCode::NOT_FOUND) => {
                Some("a web page".to_owned())
            }
            () if self.is_object
                && status.is_success()
                && !media.is_empty()
                && !media.contains("json") =>
            {
                Some(format!("the media type {media:?}"))
            }
            () => None,
        };
        if let Some(what) = what {
            return Err(self.foreign(what));
        }
        let wants_kind = self.is_object && status.is_success();
        Ok(answer.map(|body| Checked {
            inner: Box::pin(body),
            asked: self,
            count: 0,
            wants_kind,
            last: Vec::new(),
        }))
    }

    fn foreign(&self, what: String) -> BadAnswer {
        BadAnswer::Foreign {
            server: self.server.clone(),
            request: self.request.clone(),
            what,
        }
    }
}

/// The body of an answer. Reading it fails if it becomes too long, or if it ends without a required field `kind`.
pub(super) struct Checked<B> {
    inner: Pin<Box<B>>,
    asked: Asked,
    /// The number of bytes that were read: of the current line if the answer is endless, otherwise of the whole
    /// answer.
    count: usize,
    wants_kind: bool,
    /// The last bytes of the previous piece of the body, because the field `kind` can begin in one piece and end in
    /// the next.
    last: Vec<u8>,
}

impl<B> Checked<B> {
    /// Checks the next piece of the body. Fails if the body or the current line becomes too long.
    fn take(&mut self, piece: &[u8]) -> Result<(), BadAnswer> {
        let (limit, part) = match self.asked.is_endless {
            true => (LINE, "in one line"),
            false => (WHOLE, "in all"),
        };
        if self.asked.is_endless {
            // A piece can contain several lines. The first of them continues the last line of the previous piece.
            let mut lines = piece.split(|byte| *byte == b'\n');
            let first = lines.next().map_or(0, <[u8]>::len);
            let longest = lines.clone().map(<[u8]>::len).max().unwrap_or_default();
            let begun = self.count + first;
            self.count = lines.next_back().map_or(begun, <[u8]>::len);
            if begun.max(longest) > limit {
                self.count = limit + 1;
            }
        } else {
            self.count += piece.len();
        }
        if self.count > limit {
            return Err(BadAnswer::TooLong {
                server: self.asked.server.clone(),
                request: self.asked.request.clone(),
                part,
                limit,
            });
        }
        if self.wants_kind {
            let has = |bytes: &[u8]| bytes.windows(KIND.len()).any(|found| found == KIND);
            let begin = piece.get(..KIND.len()).unwrap_or(piece);
            self.last.extend(begin);
            self.wants_kind = !has(&self.last) && !has(piece);
            if let Some(end) = piece.len().checked_sub(KIND.len()) {
                self.last = piece.get(end..).unwrap_or_default().to_vec();
            }
            let surplus = self.last.len().saturating_sub(KIND.len());
            self.last.drain(..surplus);
        }
        Ok(())
    }
}

impl<B> HttpBody for Checked<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.inner.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                let piece = frame.data_ref().cloned().unwrap_or_default();
                Poll::Ready(Some(match self.take(&piece) {
                    Ok(()) => Ok(frame),
                    Err(error) => Err(error.into()),
                }))
            }
            Poll::Ready(None) if self.wants_kind => {
                self.wants_kind = false;
                let what = "no object with a kind".to_owned();
                Poll::Ready(Some(Err(self.asked.foreign(what).into())))
            }
            Poll::Ready(frame) => Poll::Ready(frame.map(|frame| frame.map_err(Into::into))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        !self.wants_kind && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn asked(address: &str) -> Asked {
        let request = Request::get(address).body(Body::empty()).unwrap();
        Asked::of("http://127.0.0.1:1", &request)
    }

    async fn read(address: &str, pieces: Vec<Bytes>) -> Result<usize, String> {
        let frames = pieces.into_iter();
        let frames = frames.map(|piece| Ok::<_, BoxError>(Frame::data(piece)));
        let body = StreamBody::new(futures::stream::iter(frames).boxed());
        let answer = asked(address).check(Response::new(body));
        let body = answer.map_err(|error| error.to_string())?.into_body();
        let read = body.collect().await.map_err(|error| error.to_string())?;
        Ok(read.to_bytes().len())
    }

    const LIST: &str = "/apis/openchoreo.dev/v1alpha1/releases";

    #[tokio::test]
    async fn an_answer_and_a_line_of_a_watch_have_a_limit() {
        let mega = Bytes::from(vec![b'x'; 1 << 20]);
        let line = Bytes::from_static(b"x\n");
        let too_long = vec![mega.clone(); 257];
        let error = read("/version", too_long.clone()).await.unwrap_err();
        assert_eq!(
            error,
            "http://127.0.0.1:1 answered GET /version with more than 256 MB in all, the limit of bowline"
        );
        let watch = format!("{LIST}?watch=true");
        let error = read(&watch, too_long).await.unwrap_err();
        assert!(error.contains("more than 32 MB in one line"), "{error}");
        // The watch exceeds the limit for whole answers, but this limit is not for watches: each line is short
        // enough.
        let lines: Vec<Bytes> = [mega, line].into_iter().cycle().take(2 * 40).collect();
        assert!(read(&watch, lines).await.is_ok());
    }

    #[tokio::test]
    async fn an_answer_without_a_kind_is_not_one_of_the_api() {
        let text = |pieces: &[&'static str]| {
            let pieces = pieces.iter();
            pieces.map(|it| Bytes::from_static(it.as_bytes())).collect()
        };
        for pieces in [&["{}"][..], &[], &["<html>", "</html>"], &["\"kin", "g\""]] {
            let error = read(LIST, text(pieces)).await.unwrap_err();
            let words = "http://127.0.0.1:1 does not answer like a Kubernetes API server";
            assert!(error.starts_with(words), "{error}");
        }
        for pieces in [
            &[r#"{"apiVersion":"v1","kind":"List"}"#][..],
            &[r#"{"apiVersion":"v1","ki"#, r#"nd":"List"}"#],
            &["{", "\"", "k", "i", "n", "d", "\"", ":1}"],
        ] {
            assert!(read(LIST, text(pieces)).await.is_ok(), "{pieces:?}");
        }
        assert!(read("/version", text(&["{}"])).await.is_ok());
    }

    #[test]
    fn a_web_page_and_a_redirection_are_not_answers_of_the_api() {
        for (status, media, is_good) in [
            (200, "application/json", true),
            (200, "application/json;g=apidiscovery.k8s.io", true),
            (200, "text/html; charset=utf-8", false),
            (200, "text/plain", false),
            (302, "application/json", false),
            (404, "text/plain; charset=utf-8", true),
            (404, "text/html", false),
            (403, "application/json", true),
            // A proxy in front of the server sends this web page if the server is down, so it is no foreign answer.
            (503, "text/html", true),
        ] {
            let answer = Response::builder()
                .status(status)
                .header(header::CONTENT_TYPE, media)
                .body(Body::empty());
            let checked = asked(LIST).check(answer.unwrap());
            assert_eq!(checked.is_ok(), is_good, "{status} {media}");
        }
    }
}
