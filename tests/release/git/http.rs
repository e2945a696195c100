//! Tests of git references over http: fetches, credentials, redirects. The server runs `git http-backend`.

use std::time::Duration;

use bowline::resolve::git::Git;

use super::repository::{FILE, FIRST, Repository, SECOND, git};
use super::server::{Server, answer, backend};
use super::{CANARY, Place, kind, reference, refused};

#[test]
fn a_commit_is_fetched_once_and_then_read_with_the_server_gone() {
    for format in ["sha1", "sha256"] {
        let place = Place::new();
        let repository = Repository::with_format(place.path("repos/repo.git"), format);
        let server = Server::git(&place.path("repos"));
        let url = server.url("repo.git");
        let reader = place.git();
        let first = reference(&url, &repository.first, FILE);
        assert_eq!(reader.read(&first).unwrap(), FIRST.as_bytes());
        // The reader sends one handshake and one fetch per commit, however many files it reads.
        assert_eq!(server.count(), 2);
        reader.read(&first).unwrap();
        reader
            .read(&reference(&url, &repository.first, "bin/run.sh"))
            .unwrap();
        refused(&reader, &reference(&url, &repository.first, "none.yaml"));
        assert_eq!(server.count(), 2);
        let second = reference(&url, &repository.second, FILE);
        assert_eq!(reader.read(&second).unwrap(), SECOND.as_bytes());
        assert_eq!(server.count(), 4);
        drop(server);
        assert_eq!(place.git().read(&first).unwrap(), FIRST.as_bytes());
        assert_eq!(place.git().read(&second).unwrap(), SECOND.as_bytes());
        let absent = repository.first.replace(|_| true, "a");
        let error = refused(&place.git(), &reference(&url, &absent, FILE));
        assert_eq!(kind(&error), "unreachable");
        assert!(error.may_pass());
    }
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let absent = "1234567812345678123456781234567812345678";
    let error = refused(
        &place.git(),
        &reference(server.url("repo.git"), absent, FILE),
    );
    assert_eq!(kind(&error), "no commit");
    let error = refused(
        &place.git(),
        &reference(server.url("none.git"), &repository.first, FILE),
    );
    assert_eq!(kind(&error), "no repository");
    let long = format!("{}{}", repository.first, "0".repeat(24));
    let error = refused(
        &place.git(),
        &reference(server.url("repo.git"), &long, FILE),
    );
    assert_eq!(kind(&error), "other hash");
    let error = refused(
        &place.git(),
        &reference(server.url("repo.git"), &repository.first, "types"),
    );
    assert_eq!(kind(&error), "directory");
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_commit_that_no_branch_has_is_fetched_by_its_id() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    git(
        &repository.path,
        &["update-ref", "refs/heads/main", &repository.first],
        b"",
    );
    let server = Server::git(&place.path("repos"));
    let wanted = reference(server.url("repo.git"), &repository.second, FILE);
    assert_eq!(place.git().read(&wanted).unwrap(), SECOND.as_bytes());
}

#[test]
fn large_files_are_left_out_where_the_server_can() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    git(
        &repository.path,
        &["config", "uploadpack.allowFilter", "true"],
        b"",
    );
    let server = Server::git(&place.path("repos"));
    let url = server.url("repo.git");
    let mut settings = place.settings();
    // Unpacked, the large file alone exceeds this limit.
    settings.limits.object_bytes = 1_000_000;
    let reader = Git::new(settings);
    assert_eq!(
        reader
            .read(&reference(&url, &repository.first, FILE))
            .unwrap(),
        FIRST.as_bytes()
    );
    let error = refused(&reader, &reference(&url, &repository.first, "large.bin"));
    assert_eq!(kind(&error), "too large");
    assert_eq!(server.count(), 2);
}

#[test]
fn a_repository_over_the_limits_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let wanted = reference(server.url("repo.git"), &repository.first, FILE);
    for change in [
        |limits: &mut bowline::resolve::git::Limits| limits.received_bytes = 1000,
        |limits: &mut bowline::resolve::git::Limits| limits.objects = 3,
        |limits: &mut bowline::resolve::git::Limits| limits.object_bytes = 1_000_000,
    ] {
        let mut settings = place.settings();
        change(&mut settings.limits);
        assert_eq!(kind(&refused(&Git::new(settings), &wanted)), "too large");
    }
    assert!(place.leftovers().is_empty());
    assert_eq!(place.git().read(&wanted).unwrap(), FIRST.as_bytes());
}

#[test]
fn a_token_is_given_to_its_host_alone() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::with_password(&place.path("repos"), &format!("x-access-token:{CANARY}"));
    let wanted = reference(server.url("repo.git"), &repository.first, FILE);
    assert_eq!(kind(&refused(&place.git(), &wanted)), "denied");

    let tokens = place.path("tokens");
    std::fs::create_dir(&tokens).unwrap();
    let file = tokens.join(format!("127.0.0.1_{}", server.port));
    let mut settings = place.settings();
    settings.tokens = Some(tokens.clone());
    let reader = Git::new(settings);
    // The reader does not use the token of another host.
    std::fs::write(tokens.join("127.0.0.1"), CANARY).unwrap();
    std::fs::write(tokens.join("localhost"), CANARY).unwrap();
    assert_eq!(kind(&refused(&reader, &wanted)), "denied");
    std::fs::write(&file, "two\nlines").unwrap();
    assert_eq!(kind(&refused(&reader, &wanted)), "token");
    std::fs::write(&file, format!("{CANARY}-wrong")).unwrap();
    assert_eq!(kind(&refused(&reader, &wanted)), "denied");
    std::fs::write(&file, format!("somebody:{CANARY}")).unwrap();
    assert_eq!(kind(&refused(&reader, &wanted)), "denied");
    std::fs::write(&file, format!("{CANARY}\n")).unwrap();
    assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
    // The cache does not contain the token.
    let kept = std::process::Command::new("grep")
        .args(["-r", CANARY])
        .arg(place.path("cache"))
        .status()
        .unwrap();
    assert!(!kept.success());
}

#[test]
fn helpers_of_the_users_git_are_asked() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::with_password(&place.path("repos"), &format!("ana:{CANARY}"));
    let wanted = reference(server.url("repo.git"), &repository.first, FILE);
    let home = place.path("home");
    std::fs::create_dir(&home).unwrap();
    let mut settings = place.settings();
    settings.credential_helpers = true;
    settings
        .environment
        .insert("HOME".into(), home.clone().into());
    settings.limits.deadline = Duration::from_secs(20);
    let configure = |helper: &str| {
        git(
            &home,
            &["config", "--global", "credential.helper", helper],
            b"",
        );
    };
    // Without a credential helper, git fails and does not ask on a terminal.
    assert_eq!(
        kind(&refused(&Git::new(settings.clone()), &wanted)),
        "denied"
    );
    configure("!echo username=ana; echo password=wrong; :");
    assert_eq!(
        kind(&refused(&Git::new(settings.clone()), &wanted)),
        "denied"
    );
    let answers =
        format!("!f() {{ test \"$1\" = get && echo username=ana && echo password={CANARY}; }}; f");
    configure(&answers);
    assert_eq!(
        Git::new(settings.clone()).read(&wanted).unwrap(),
        FIRST.as_bytes()
    );

    // At the deadline, the reader kills a credential helper that hangs, and also its child process.
    configure("!sleep 1000 & sleep 1000");
    settings.cache = place.path("other-cache");
    settings.limits.deadline = Duration::from_millis(500);
    assert_eq!(
        kind(&refused(&Git::new(settings.clone()), &wanted)),
        "deadline"
    );
    settings.git = place.path("no-git");
    assert_eq!(kind(&refused(&Git::new(settings), &wanted)), "program");
}

#[test]
fn redirects_stay_with_the_host_and_so_do_credentials() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let root = place.path("repos");
    let thief = Server::start(|_, connection| answer(connection, "200 OK", &[], b"thanks"));
    let elsewhere = thief.url("repo.git/info/refs?service=git-upload-pack");
    let tokens = place.path("tokens");
    std::fs::create_dir(&tokens).unwrap();
    let mut settings = place.settings();
    settings.tokens = Some(tokens.clone());
    let reader = Git::new(settings);

    let server = Server::start(move |request, connection| {
        let moved = |path: &str| format!("{path}?{}", request.query);
        match request.path.as_str() {
            "/away/info/refs" => answer(connection, "302 Found", &[("Location", &elsewhere)], b""),
            "/late/info/refs" if request.header("authorization").is_none() => {
                answer(
                    connection,
                    "401 Unauthorized",
                    &[("WWW-Authenticate", "Basic")],
                    b"",
                );
            }
            "/late/info/refs" => answer(connection, "302 Found", &[("Location", &elsewhere)], b""),
            "/old/info/refs" => {
                answer(
                    connection,
                    "301 Moved Permanently",
                    &[("Location", &moved("/repo.git/info/refs"))],
                    b"",
                );
            }
            "/loop/info/refs" => {
                answer(
                    connection,
                    "301 Moved Permanently",
                    &[("Location", &moved("/loop/info/refs"))],
                    b"",
                );
            }
            "/odd/info/refs" => answer(
                connection,
                "301 Moved Permanently",
                &[("Location", "/repo.git")],
                b"",
            ),
            "/file/info/refs" => answer(
                connection,
                "302 Found",
                &[("Location", "file:///etc/passwd")],
                b"",
            ),
            "/none/info/refs" => answer(connection, "302 Found", &[], b""),
            "/slashes/info/refs" => answer(
                connection,
                "302 Found",
                &[("Location", "//example.com/r")],
                b"",
            ),
            _ => backend(&root, request, connection),
        }
    });
    std::fs::write(tokens.join(format!("127.0.0.1_{}", server.port)), CANARY).unwrap();
    std::fs::write(tokens.join(format!("127.0.0.1_{}", thief.port)), CANARY).unwrap();
    for path in ["away", "late", "odd", "file", "none", "slashes"] {
        let error = refused(
            &reader,
            &reference(server.url(path), &repository.first, FILE),
        );
        assert_eq!(kind(&error), "redirect", "{path}");
    }
    let error = refused(
        &reader,
        &reference(server.url("loop"), &repository.first, FILE),
    );
    assert_eq!(kind(&error), "server");
    assert_eq!(thief.count(), 0);
    let wanted = reference(server.url("old"), &repository.first, FILE);
    assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
}
