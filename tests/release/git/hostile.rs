//! Hostile git references must cause no connection and no write, and no message may contain a secret.

use super::repository::{FILE, Repository};
use super::server::Server;
use super::{CANARY, Place, kind, reference, refused};

#[test]
fn hostile_references_reach_nobody() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let here = format!("127.0.0.1:{}", server.port);
    let local = repository.path.display().to_string();
    let touch = place.path("touched").display().to_string();
    let urls = [
        String::new(),
        format!("-oProxyCommand=touch {touch}"),
        format!("--upload-pack=touch {touch}"),
        format!("ext::sh -c touch% {touch}"),
        format!("ext::git-upload-pack {local}"),
        "fd::0".to_owned(),
        format!("http::http://{here}/repo.git"),
        format!("git://{here}/repo.git"),
        format!("ftp://{here}/repo.git"),
        format!("http+git://{here}/repo.git"),
        format!("ssh+git://{here}/repo.git"),
        format!("http://{CANARY}@{here}/repo.git"),
        format!("http://user:{CANARY}@{here}/repo.git"),
        format!("https://user:{CANARY}@example.com/repo.git"),
        format!("https://user:{CANARY}%40example.com/repo.git"),
        format!("https:/user:{CANARY}@example.com/repo.git"),
        format!("https:\\\\user:{CANARY}@example.com/repo.git"),
        format!("ssh://git:{CANARY}@example.com/repo.git"),
        format!("git:{CANARY}@example.com:repo.git"),
        format!("http://{here}/repo.git?token={CANARY}"),
        format!("http://{here}/repo.git#{CANARY}"),
        format!("git://user:{CANARY}@{here}/repo.git"),
        format!("user:{CANARY}@h://{here}/repo.git"),
        format!("http://{here}"),
        format!("http://{here}/"),
        format!("http://{here}/../repo.git"),
        format!("http://{here}/x/../repo.git"),
        format!("http://{here}/%2e%2e/repo.git"),
        format!("http://{here}//repo.git"),
        format!("http://{here}/repo.git%00"),
        format!("http://{here}/repo.git\r\nX-Evil: 1"),
        format!("http://{here}/repo.git\n"),
        format!("http://{here}/repo .git"),
        format!("http://{here}\\@example.com/repo.git"),
        format!("http://127.0.0.1:{}x/repo.git", server.port),
        format!("http://0.0.0.0:{}/repo.git", server.port),
        format!("http://[::ffff:7f00:1]:{}/repo.git", server.port),
        "http://example.com/repo.git".to_owned(),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "https://-oProxyCommand=x/repo.git".to_owned(),
        format!("ssh://-oProxyCommand=touch{touch}/repo.git"),
        "ssh://git@-oProxyCommand=x/repo.git".to_owned(),
        "ssh://-x@example.com/repo.git".to_owned(),
        "ssh://127.0.0.1/-repo.git".to_owned(),
        format!("ssh://127.0.0.1/repo.git';touch${{IFS}}{touch};'"),
        format!("ssh://127.0.0.1/$(touch {touch})"),
        "git@127.0.0.1:--help".to_owned(),
        "git@127.0.0.1:`id`".to_owned(),
        "127.0.0.1:repo.git".to_owned(),
        "../repo.git".to_owned(),
        "repos/repo.git".to_owned(),
        "./repos/repo.git".to_owned(),
        format!("{local}/../repo.git"),
        format!("file://127.0.0.1{local}"),
        format!("file:{local}x"),
        format!("/{local}"),
        "C:\\repo.git".to_owned(),
        "\u{1b}[2J\u{202e}https://example.com/repo.git".to_owned(),
        format!("https://example.com/{}", "a".repeat(5000)),
    ];
    assert!(urls.len() >= 55);
    let before = place.beside_the_cache();
    for url in urls {
        let error = refused(&place.git(), &reference(&url, &repository.first, FILE));
        assert_eq!(kind(&error), "address", "{url:?}");
        assert!(!error.may_pass());
    }
    let good = server.url("repo.git");
    for revision in [
        "",
        "main",
        "HEAD",
        "refs/heads/main",
        "-",
        "--all",
        "@",
        "main~1",
        "v1\0",
        "..",
        &repository.first[..39],
        &repository.first[..7],
        &repository.first.to_uppercase(),
        &format!("{} ", repository.first),
        &format!("{}\n", repository.first),
        &format!("{}^", repository.first),
        &format!("-{}", &repository.first[1..]),
        &"0".repeat(40),
        &"0".repeat(64),
        &"g".repeat(40),
    ] {
        let error = refused(&place.git(), &reference(&good, revision, FILE));
        assert_eq!(kind(&error), "revision", "{revision:?}");
    }
    for path in [
        "",
        "/",
        "/etc/passwd",
        "-types/web.yaml",
        "..",
        "../repo.git/config",
        "types/../types/web.yaml",
        "./types/web.yaml",
        "types//web.yaml",
        "types/web.yaml/",
        "types/.",
        ".git/config",
        "types/.Git/x",
        "types\\web.yaml",
        "types/web.yaml\0",
        "types/\u{1b}[31mweb.yaml",
        "types/web\n.yaml",
        "C:\\x",
        &"a/".repeat(3000),
    ] {
        let error = refused(&place.git(), &reference(&good, &repository.first, path));
        assert_eq!(kind(&error), "path", "{path:?}");
    }
    assert_eq!(server.count(), 0);
    assert_eq!(place.beside_the_cache(), before);
    assert!(!place.path("cache").exists());
}

#[test]
fn failures_of_every_kind_write_nothing_outside_the_cache() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let before = place.beside_the_cache();
    let absent = "1234567812345678123456781234567812345678";
    for (url, revision, path) in [
        (server.url("repo.git"), repository.first.as_str(), FILE),
        (server.url("repo.git"), absent, FILE),
        (server.url("none.git"), &repository.first, FILE),
        (server.url("repo.git"), &repository.first, "none"),
        (repository.url(), &repository.first, "linked/web.yaml"),
        (repository.url(), absent, FILE),
    ] {
        let _ = place.git().read(&reference(url, revision, path));
    }
    assert_eq!(place.beside_the_cache(), before);
    assert!(place.leftovers().is_empty());
}
