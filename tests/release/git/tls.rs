//! Tests of git references over https. The tests create the certificates.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bowline::resolve::git::Git;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::repository::{FILE, FIRST, Repository};
use super::server::{Connection, Server, backend, read_request};
use super::{Place, kind, reference, refused};

struct Tls(rustls::StreamOwned<rustls::ServerConnection, TcpStream>);

impl Read for Tls {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Connection for Tls {
    fn is_gone(&mut self, moment: Duration) -> bool {
        self.0.sock.is_gone(moment)
    }
}

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "openssl {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Starts an https server with a certificate for the host `name`. Returns the port of the server.
fn serve(place: &Place, name: &str) -> u16 {
    let directory = place.path(name);
    std::fs::create_dir_all(&directory).unwrap();
    let san = if name.starts_with(char::is_numeric) {
        format!("IP:{name}")
    } else {
        format!("DNS:{name}")
    };
    openssl(
        &directory,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=ca -days 2",
    );
    openssl(
        &directory,
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out csr.pem -subj /CN=server",
    );
    std::fs::write(
        directory.join("ext"),
        format!("subjectAltName={san}\nbasicConstraints=CA:FALSE\n"),
    )
    .unwrap();
    openssl(
        &directory,
        "x509 -req -in csr.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile ext",
    );
    let certificate = CertificateDer::from_pem_file(directory.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let root = place.path("repos");
    // Nobody stops this thread; it ends with the test program.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut connection = Tls(rustls::StreamOwned::new(session, stream.unwrap()));
            if let Some(request) = read_request(&mut connection) {
                backend(&root, &request, &mut connection);
                connection.0.conn.send_close_notify();
                let _ = connection.flush();
            }
        }
    });
    port
}

#[test]
fn https_is_read_where_the_certificate_is_trusted_and_fits() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let port = serve(&place, "127.0.0.1");
    let wanted = reference(
        format!("https://127.0.0.1:{port}/repo.git"),
        &repository.first,
        FILE,
    );
    // The reader refuses the certificate, because the system does not trust its issuer.
    assert_eq!(kind(&refused(&place.git(), &wanted)), "unreachable");
    let mut settings = place.settings();
    settings.authorities = Some(place.path("none.pem"));
    assert_eq!(
        kind(&refused(&Git::new(settings.clone()), &wanted)),
        "unreachable"
    );
    settings.authorities = Some(place.path("127.0.0.1/ca.pem"));
    assert_eq!(Git::new(settings).read(&wanted).unwrap(), FIRST.as_bytes());

    let port = serve(&place, "example.com");
    let wanted = reference(
        format!("https://127.0.0.1:{port}/repo.git"),
        &repository.first,
        FILE,
    );
    let mut settings = place.settings();
    settings.authorities = Some(place.path("example.com/ca.pem"));
    let error = refused(&Git::new(settings), &wanted);
    assert_eq!(kind(&error), "unreachable");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn a_plain_server_is_no_https_server() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let url = format!("https://127.0.0.1:{}/repo.git", server.port);
    let error = refused(&place.git(), &reference(url, &repository.first, FILE));
    assert_eq!(kind(&error), "unreachable");
    assert_eq!(
        server
            .requests
            .lock()
            .unwrap()
            .iter()
            .filter(|request| request.path.contains("repo"))
            .count(),
        0
    );
}
