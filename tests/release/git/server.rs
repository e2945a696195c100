//! A small http server on loopback. Serves git repositories through `git http-backend`, or answers wrongly as
//! a test needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;

/// A request that the http server received.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The function that answers a request of a client. Afterwards the server closes the connection.
pub type Behaviour = dyn Fn(&Request, &mut dyn Connection) + Send + Sync;

pub trait Connection: Read + Write {
    /// Waits up to `moment` for the client to close the connection. Returns whether the client has closed it.
    fn is_gone(&mut self, moment: Duration) -> bool;
}

impl Connection for TcpStream {
    fn is_gone(&mut self, moment: Duration) -> bool {
        self.set_read_timeout(Some(moment)).unwrap();
        match self.read(&mut [0]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => !matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ),
        }
    }
}

pub struct Server {
    pub port: u16,
    pub requests: Arc<Mutex<Vec<Request>>>,
    ended: Arc<AtomicBool>,
}

impl Server {
    pub fn start(
        behaviour: impl Fn(&Request, &mut dyn Connection) + Send + Sync + 'static,
    ) -> Self {
        Self::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour)
    }

    fn start_on(
        listener: TcpListener,
        behaviour: impl Fn(&Request, &mut dyn Connection) + Send + Sync + 'static,
    ) -> Self {
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let ended = Arc::new(AtomicBool::new(false));
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        let (seen, over) = (requests.clone(), ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                let (mut stream, behaviour, seen) =
                    (stream.unwrap(), behaviour.clone(), seen.clone());
                std::thread::spawn(move || {
                    if let Some(request) = read_request(&mut stream) {
                        seen.lock().unwrap().push(request.clone());
                        behaviour(&request, &mut stream);
                    }
                });
            }
        });
        Self {
            port,
            requests,
            ended,
        }
    }

    /// Starts a server for the repositories in a directory. It runs `git http-backend`.
    pub fn git(root: &Path) -> Self {
        let root = root.to_owned();
        Self::start(move |request, connection| backend(&root, request, connection))
    }

    /// Like [`Server::git`], but clients must send these credentials.
    pub fn with_password(root: &Path, credentials: &str) -> Self {
        let root = root.to_owned();
        let wanted = format!(
            "Basic {}",
            base64::engine::general_purpose::STANDARD.encode(credentials)
        );
        Self::start(move |request, connection| {
            if request.header("authorization") == Some(&wanted) {
                backend(&root, request, connection);
            } else {
                // The answer repeats the received credentials, as a real server might.
                let echo = format!("wrong: {:?}", request.header("authorization"));
                answer(
                    connection,
                    "401 Unauthorized",
                    &[("WWW-Authenticate", "Basic realm=\"git\"")],
                    echo.as_bytes(),
                );
            }
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // This connection wakes the thread of the listener, which then sees the flag and ends.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        while TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
            std::thread::yield_now();
        }
    }
}

pub fn answer(
    connection: &mut dyn Connection,
    status: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The error is ignored, because a client may close the connection early.
    let _ = connection.write_all(format!("{head}\r\n").as_bytes());
    let _ = connection.write_all(body);
}

pub fn read_request(stream: &mut impl Read) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Vec::new(),
    };
    let length = request
        .header("content-length")
        .and_then(|length| length.parse().ok())
        .unwrap_or(0);
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn http_backend() -> PathBuf {
    let output = Command::new("git").arg("--exec-path").output().unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).join("git-http-backend")
}

/// Answers a request with what `git http-backend` returns for it.
pub fn backend(root: &Path, request: &Request, connection: &mut dyn Connection) {
    let mut child = Command::new(http_backend())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", root)
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", &request.query)
        .env(
            "CONTENT_TYPE",
            request.header("content-type").unwrap_or_default(),
        )
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .env(
            "HTTP_CONTENT_ENCODING",
            request.header("content-encoding").unwrap_or_default(),
        )
        .env(
            "GIT_PROTOCOL",
            request.header("git-protocol").unwrap_or_default(),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let body = request.body.clone();
    let feed = std::thread::spawn(move || drop(input.write_all(&body)));
    let output = child.wait_with_output().unwrap().stdout;
    feed.join().unwrap();
    let end = output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(output[..end].to_vec()).unwrap();
    let mut status = "200 OK".to_owned();
    let mut headers = Vec::new();
    for line in head.lines() {
        let (name, value) = line.split_once(':').unwrap();
        if name == "Status" {
            status = value.trim().to_owned();
        } else {
            headers.push((name, value.trim()));
        }
    }
    answer(connection, &status, &headers, &output[end + 4..]);
}
