use futures::TryStreamExt;
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::socket::{GRACE, HEAD_LIMIT};

struct Served {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

async fn served(token: Option<&str>) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let api = crate::fixture::store::open(&directory.path().join("bowline.db"), "ana").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gate = Gate::new(address, token).unwrap();
    let (stop, stopped) = oneshot::channel();
    let stopped = stopped.map(|_| ());
    Served {
        address,
        stop,
        server: tokio::spawn(serve(listener, api, gate, stopped)),
        _directory: directory,
    }
}

impl Served {
    /// Sends a request as raw bytes, and returns all that the server sends until it closes the connection.
    async fn raw(&self, head: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = head.replace('\n', "\r\n") + "\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // The write may fail, because the server may answer and close the connection before it has read the whole
        // body.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn client(&self) -> kube::Client {
        let config = kube::Config::new(format!("http://{}", self.address).parse().unwrap());
        kube::Client::try_from(config).unwrap()
    }
}

/// Parses a raw answer. Returns the status code, and the Status object in the body.
fn status(answer: &str) -> (u16, Value) {
    let code = answer
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (code, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
    )
    .unwrap()
}

#[tokio::test]
async fn a_client_reads_writes_and_watches_over_the_socket() {
    let served = served(None).await;
    let api: Api<ConfigMap> = Api::default_namespaced(served.client());
    api.create(&PostParams::default(), &map("flags"))
        .await
        .unwrap();
    let list = api.list(&ListParams::default()).await.unwrap();
    assert!(
        list.iter()
            .any(|map| map.metadata.name.as_deref() == Some("flags"))
    );
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = std::pin::pin!(watch);
    loop {
        match watch.try_next().await.unwrap() {
            Some(kube::core::WatchEvent::Added(map))
                if map.metadata.name.as_deref() == Some("flags") =>
            {
                break;
            }
            Some(_) => {}
            None => panic!("the watch ended before its first event"),
        }
    }
}

#[tokio::test]
async fn a_stop_ends_watches_cleanly_and_takes_no_more() {
    let served = served(None).await;
    let api: Api<ConfigMap> = Api::default_namespaced(served.client());
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    let rest = tokio::spawn(async move { watch.try_collect::<Vec<_>>().await });
    served.stop.send(()).unwrap();
    let started = std::time::Instant::now();
    served.server.await.unwrap();
    assert!(started.elapsed() < GRACE, "watches were cut, not ended");
    rest.await.unwrap().unwrap();
    assert!(TcpStream::connect(served.address).await.is_err());
}

#[tokio::test]
async fn what_a_browser_sends_is_refused_as_a_status() {
    let served = served(None).await;
    for head in [
        "GET /version HTTP/1.1\nHost: evil.example\nConnection: close",
        "GET /version HTTP/1.1\nHost: localhost\nOrigin: https://evil.example\nConnection: close",
        "GET /version HTTP/1.1\nHost: localhost\nSec-Fetch-Site: cross-site\nConnection: close",
        "GET /version HTTP/1.0",
    ] {
        let (code, body) = status(&served.raw(head, b"").await);
        assert_eq!(code, 403, "{head}");
        assert_eq!(body["kind"], "Status", "{head}");
        assert_eq!(body["reason"], "Forbidden", "{head}");
    }
    let answer = served
        .raw(
            "GET /version HTTP/1.1\nHost: localhost\nConnection: close",
            b"",
        )
        .await;
    assert_eq!(status(&answer).0, 200, "{answer}");
}

#[tokio::test]
async fn with_a_token_nobody_else_is_served() {
    let served = served(Some("s3cret")).await;
    let get = "GET /version HTTP/1.1\nHost: localhost\nConnection: close";
    let (code, body) = status(&served.raw(get, b"").await);
    assert_eq!(code, 401);
    assert_eq!(
        body,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
               "message": "Unauthorized", "reason": "Unauthorized", "code": 401})
    );
    let wrong = format!("{get}\nAuthorization: Bearer s3cret2");
    assert_eq!(status(&served.raw(&wrong, b"").await).0, 401);
    let right = format!("{get}\nAuthorization: Bearer s3cret");
    assert_eq!(status(&served.raw(&right, b"").await).0, 200);
}

#[tokio::test]
async fn heads_and_bodies_have_limits() {
    let served = served(None).await;
    let post = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\nHost: localhost\nConnection: close\nContent-Type: application/json";
    let announced = format!("{post}\nContent-Length: {}", BODY_LIMIT + 1);
    let (code, body) = status(&served.raw(&announced, b"").await);
    assert_eq!(
        (code, &body["reason"]),
        (413, &json!("RequestEntityTooLarge"))
    );

    let mut chunked = format!("{:x}\r\n", BODY_LIMIT + 1).into_bytes();
    chunked.resize(chunked.len() + BODY_LIMIT + 1, b' ');
    chunked.extend(b"\r\n0\r\n\r\n");
    let answer = served
        .raw(&format!("{post}\nTransfer-Encoding: chunked"), &chunked)
        .await;
    assert!(answer.is_empty() || status(&answer).0 == 413, "{answer}");

    let long = "x".repeat(usize::from(HEAD_LIMIT) + 1);
    let answer = served
        .raw(
            &format!("GET /version HTTP/1.1\nHost: localhost\nX-Long: {long}"),
            b"",
        )
        .await;
    assert!(
        answer.is_empty() || [400, 431].contains(&status(&answer).0),
        "{answer}"
    );
    let many: String = (0..200).map(|number| format!("\nX-{number}: 1")).collect();
    let answer = served
        .raw(
            &format!("GET /version HTTP/1.1\nHost: localhost{many}"),
            b"",
        )
        .await;
    assert_eq!(status(&answer).0, 431, "{answer}");

    // After the refused request, the server still answers other requests.
    let answer = served
        .raw(
            "GET /version HTTP/1.1\nHost: localhost\nConnection: close",
            b"",
        )
        .await;
    assert_eq!(status(&answer).0, 200);
}

#[tokio::test]
async fn garbage_does_not_stop_the_server() {
    let served = served(None).await;
    for garbage in [
        "\0\0\0\0",
        "GET",
        "PRI * HTTP/2.0",
        "GET /%zz%00/../.. HTTP/1.1\nHost: localhost\nConnection: close",
    ] {
        served.raw(garbage, b"\xff\xfe\x00garbage\r\n\r\n").await;
    }
    let answer = served
        .raw(
            "GET /version HTTP/1.1\nHost: localhost\nConnection: close",
            b"",
        )
        .await;
    assert_eq!(status(&answer).0, 200);
}

#[tokio::test]
async fn many_connections_are_served_at_once() {
    let served = served(None).await;
    let open: Vec<_> =
        futures::future::join_all((0..200).map(|_| TcpStream::connect(served.address))).await;
    let get = "GET /version HTTP/1.1\nHost: localhost\nConnection: close";
    let answers = futures::future::join_all((0..200).map(|_| served.raw(get, b""))).await;
    assert!(answers.iter().all(|answer| status(answer).0 == 200));
    assert!(open.iter().all(Result::is_ok));
}

#[tokio::test]
async fn http2_with_prior_knowledge_works() {
    let served = served(None).await;
    let stream = TcpStream::connect(served.address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    for (host, code) in [
        (served.address.to_string(), 200),
        ("evil.example".to_owned(), 403),
    ] {
        let request = Request::get(format!("http://{host}/version"))
            .body(Full::<Bytes>::default())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status().as_u16(), code, "{host}");
    }
}
