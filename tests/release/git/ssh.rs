//! Tests of git references over ssh: with a real sshd, if one is installed, and with ssh programs that answer
//! wrongly.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bowline::resolve::git::Git;

use super::repository::{FILE, FIRST, Repository, SECOND};
use super::{Place, kind, reference, refused};

fn program(name: &str) -> Option<PathBuf> {
    [
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/usr/local/sbin",
        "/usr/local/bin",
    ]
    .iter()
    .map(|directory| Path::new(directory).join(name))
    .find(|path| path.exists())
}

fn skip(why: &str) {
    crate::cluster::missing::skip("the tests over ssh", why);
}

pub struct Sshd {
    process: Child,
    port: u16,
    user: String,
    pub client: PathBuf,
}

impl Sshd {
    /// Starts an sshd that accepts one key. If sshd, ssh or ssh-keygen is missing, prints the reason and
    /// returns None.
    pub fn start(place: &Place, more: &str) -> Option<Self> {
        let (Some(sshd), Some(_), Some(keygen)) =
            (program("sshd"), program("ssh"), program("ssh-keygen"))
        else {
            skip("there is no sshd, ssh or ssh-keygen here");
            return None;
        };
        let directory = place.path("ssh");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700)).unwrap();
        for key in ["host", "user", "stranger"] {
            let path = directory.join(key);
            let made = Command::new(&keygen)
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path)
                .status()
                .unwrap();
            assert!(made.success());
        }
        let user = Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap().trim().to_owned();
        if user == "root" {
            let _ = std::fs::create_dir_all("/run/sshd");
        }
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let at = directory.display();
        std::fs::copy(directory.join("user.pub"), directory.join("authorized")).unwrap();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             AuthorizedKeysFile {at}/authorized\n{more}\n"
        );
        std::fs::write(directory.join("sshd_config"), config).unwrap();
        let host = std::fs::read_to_string(directory.join("host.pub")).unwrap();
        std::fs::write(
            directory.join("known"),
            format!("[127.0.0.1]:{port} {host}"),
        )
        .unwrap();
        for (name, key, known) in [
            ("client", "user", "known"),
            ("stranger-client", "stranger", "known"),
            ("wary-client", "user", "none"),
        ] {
            let config = format!(
                "IdentityFile {at}/{key}\nIdentitiesOnly yes\nUserKnownHostsFile {at}/{known}\nGlobalKnownHostsFile none\n"
            );
            std::fs::write(directory.join(name), config).unwrap();
        }
        let log = std::fs::File::create(directory.join("log")).unwrap();
        let mut process = Command::new(sshd)
            .args(["-D", "-e", "-f"])
            .arg(directory.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if process.try_wait().unwrap().is_some() {
                let log = std::fs::read_to_string(directory.join("log")).unwrap();
                skip(&format!("sshd does not start: {log}"));
                return None;
            }
            std::thread::yield_now();
        }
        Some(Self {
            process,
            port,
            user,
            client: directory.join("client"),
        })
    }

    fn url(&self, repository: &Repository) -> String {
        self.url_of(&repository.path)
    }

    pub fn url_of(&self, path: &Path) -> String {
        format!(
            "ssh://{}@127.0.0.1:{}{}",
            self.user,
            self.port,
            path.display()
        )
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a git reader that runs a script instead of the program ssh.
fn with_ssh(place: &Place, script: &str) -> Git {
    let mut settings = place.settings();
    settings.ssh = vec![script_file(place, script).into()];
    settings.limits.deadline = std::time::Duration::from_secs(20);
    Git::new(settings)
}

fn script_file(place: &Place, script: &str) -> PathBuf {
    let calls = place.path("calls");
    let path = place.path(&format!("ssh-{}", script.len()));
    std::fs::write(
        &path,
        format!("#!/bin/sh\necho $$ >> {}\n{script}\n", calls.display()),
    )
    .unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn calls(place: &Place) -> Vec<String> {
    let calls = std::fs::read_to_string(place.path("calls")).unwrap_or_default();
    calls.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_commit_is_fetched_once_and_then_read_with_the_server_gone() {
    // The test runs with and without protocol version 2, which an sshd must allow explicitly.
    for more in ["AcceptEnv GIT_PROTOCOL", ""] {
        let place = Place::new();
        let repository = Repository::new(place.path("repo.git"));
        let Some(sshd) = Sshd::start(&place, more) else {
            return;
        };
        let reader = with_ssh(
            &place,
            &format!("exec ssh -F {} \"$@\"", sshd.client.display()),
        );
        let second = reference(sshd.url(&repository), &repository.second, FILE);
        assert_eq!(reader.read(&second).unwrap(), SECOND.as_bytes());
        assert_eq!(calls(&place).len(), 1);
        reader
            .read(&reference(
                sshd.url(&repository),
                &repository.second,
                "bin/run.sh",
            ))
            .unwrap();
        let first = reference(sshd.url(&repository), &repository.first, FILE);
        if more.is_empty() {
            // With protocol version 0, a server sends only the tips of branches.
            assert_eq!(kind(&refused(&reader, &first)), "no commit");
        } else {
            assert_eq!(reader.read(&first).unwrap(), FIRST.as_bytes());
        }
        assert_eq!(calls(&place).len(), 2);

        let absent = reference(
            sshd.url(&repository),
            "1234567812345678123456781234567812345678",
            FILE,
        );
        assert_eq!(kind(&refused(&reader, &absent)), "no commit");
        let nowhere = format!("{}-none", sshd.url(&repository));
        assert_eq!(
            kind(&refused(
                &reader,
                &reference(nowhere, &repository.second, FILE)
            )),
            "no repository"
        );
        let url = sshd.url(&repository);
        drop(sshd);
        assert_eq!(reader.read(&second).unwrap(), SECOND.as_bytes());
        let error = refused(
            &reader,
            &reference(url, &repository.second.replace('1', "2"), FILE),
        );
        assert_eq!(kind(&error), "unreachable");
        assert!(place.leftovers().is_empty());
    }
}

#[test]
fn strangers_and_unknown_hosts_are_refused_without_a_question() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let Some(sshd) = Sshd::start(&place, "AcceptEnv GIT_PROTOCOL") else {
        return;
    };
    let wanted = reference(sshd.url(&repository), &repository.first, FILE);
    for client in ["stranger-client", "wary-client"] {
        let config = sshd.client.with_file_name(client);
        let reader = with_ssh(&place, &format!("exec ssh -F {} \"$@\"", config.display()));
        assert_eq!(kind(&refused(&reader, &wanted)), "denied", "{client}");
    }
}

#[test]
fn an_ssh_that_hangs_or_floods_is_ended_with_all_that_it_started() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let wanted = reference("git@127.0.0.1:repo.git", &repository.first, FILE);
    let mut settings = place.settings();
    for (script, expected) in [
        ("sleep 1000 & echo $! >> CALLS; sleep 1000", "deadline"),
        ("exec cat /dev/zero >&2", "deadline"),
        ("setsid sleep 2 & exit 0", "deadline"),
        ("exec yes", "broken"),
        ("exit 3", "broken"),
        (
            "echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255",
            "unreachable",
        ),
        (
            "echo 'git@x: Permission denied (publickey).' >&2; exit 255",
            "denied",
        ),
        (
            "echo 'fatal: git upload-pack: not our ref 12' >&2; exit 128",
            "no commit",
        ),
        (
            "echo 'ERROR: Repository not found.' >&2; exit 1",
            "no repository",
        ),
    ] {
        let script = script.replace("CALLS", &place.path("calls").display().to_string());
        settings.ssh = vec![script_file(&place, &script).into()];
        settings.limits.deadline = std::time::Duration::from_millis(match expected {
            "deadline" => 500,
            _ => 20_000,
        });
        let error = refused(&Git::new(settings.clone()), &wanted);
        assert_eq!(kind(&error), expected, "{script}");
    }
    for process in calls(&place) {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // After the kill of the script, its child belongs to init and may still be a zombie (Z).
        assert!(
            state.is_empty() || state.contains(") Z "),
            "{process} lives on: {state}"
        );
    }
    settings.ssh = vec![place.path("no-ssh").into()];
    assert_eq!(
        kind(&refused(&Git::new(settings.clone()), &wanted)),
        "program"
    );
    settings.ssh = Vec::new();
    assert_eq!(kind(&refused(&Git::new(settings), &wanted)), "program");
}

#[test]
fn ssh_gets_no_question_no_shell_and_no_foreign_variable() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let seen = place.path("seen");
    let mut settings = place.settings();
    settings
        .environment
        .insert("GIT_SSH_COMMAND".into(), "evil".into());
    settings
        .environment
        .insert("SSH_ASKPASS".into(), "evil".into());
    settings
        .environment
        .insert("SSH_AUTH_SOCK".into(), "/agent".into());
    settings.ssh = vec![
        script_file(
            &place,
            &format!("{{ printf '%s\\n' \"$@\"; env; }} > {}", seen.display()),
        )
        .into(),
        "-4".into(),
    ];
    refused(
        &Git::new(settings),
        &reference(
            "ssh://git@example.com:22/team/repo.git",
            &repository.first,
            FILE,
        ),
    );
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("-4\n-o\nBatchMode=yes\n"), "{seen}");
    assert!(
        seen.contains("\n-p\n22\n--\ngit@example.com\ngit-upload-pack '/team/repo.git'\n"),
        "{seen}"
    );
    assert!(seen.contains("SSH_AUTH_SOCK=/agent\n"));
    assert!(seen.contains("GIT_PROTOCOL=version=2\n"));
    assert!(!seen.contains("evil"), "{seen}");
    assert!(!seen.contains("StrictHostKeyChecking"), "{seen}");
}
