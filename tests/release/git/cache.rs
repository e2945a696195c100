//! Tests of the git cache with several threads and processes, with killed writers, and with damaged files.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use bowline::resolve::git::Git;

use super::repository::{FILE, FIRST, Repository, SECOND};
use super::server::{Connection, Server, backend};
use super::{Place, kind, reference, refused};

/// The role of a process that another test starts. The process reads a git reference through the cache.
#[test]
#[ignore = "a part that other tests start"]
fn read_in_another_process() {
    let value = |name: &str| std::env::var(name).unwrap();
    let place = Place::new();
    let mut settings = place.settings();
    settings.cache = value("BOWLINE_CACHE").into();
    let wanted = reference(
        value("BOWLINE_REPOSITORY"),
        &value("BOWLINE_REVISION"),
        FILE,
    );
    assert_eq!(Git::new(settings).read(&wanted).unwrap(), FIRST.as_bytes());
}

fn other_process(place: &Place, repository: &str, revision: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "git::cache::read_in_another_process",
            "--ignored",
        ])
        .env("BOWLINE_CACHE", place.path("cache"))
        .env("BOWLINE_REPOSITORY", repository)
        .env("BOWLINE_REVISION", revision)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn entry(place: &Place, revision: &str) -> PathBuf {
    let home = fs::read_dir(place.path("cache/repositories"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    home.join(revision)
}

#[test]
fn threads_that_want_the_same_fetch_it_once() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let wanted = reference(server.url("repo.git"), &repository.first, FILE);
    let reader = place.git();
    let together = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
            });
        }
    });
    assert_eq!(server.count(), 2);
}

#[test]
fn processes_that_want_the_same_fetch_it_once() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let server = Server::git(&place.path("repos"));
    let url = server.url("repo.git");
    let mut others: Vec<_> = (0..3)
        .map(|_| other_process(&place, &url, &repository.first))
        .collect();
    for other in &mut others {
        assert!(other.wait().unwrap().success());
    }
    assert_eq!(server.count(), 2);
}

#[test]
fn a_process_killed_in_the_middle_breaks_nothing() {
    let place = Place::new();
    let repository = Repository::new(place.path("repos/repo.git"));
    let root = place.path("repos");
    let hangs = Arc::new(AtomicBool::new(true));
    let (tell, told) = mpsc::channel();
    let (hanging, tell) = (hangs.clone(), Mutex::new(tell));
    let server = Server::start(move |request, connection| {
        if request.method == "POST" && hanging.load(Ordering::SeqCst) {
            let mut half = Half {
                left: 2000,
                inner: connection,
            };
            backend(&root, request, &mut half);
            tell.lock().unwrap().send(()).unwrap();
            while !connection.is_gone(Duration::from_millis(5)) {}
        } else {
            backend(&root, request, connection);
        }
    });
    let url = server.url("repo.git");
    let mut other = other_process(&place, &url, &repository.first);
    told.recv().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(!place.leftovers().is_empty(), "it was killed in the middle");

    hangs.store(false, Ordering::SeqCst);
    let wanted = reference(&url, &repository.first, FILE);
    assert_eq!(place.git().read(&wanted).unwrap(), FIRST.as_bytes());
    assert!(place.leftovers().is_empty());
}

/// A connection to a server that passes on only the first `left` bytes of an answer.
struct Half<'a> {
    left: usize,
    inner: &'a mut dyn Connection,
}

impl std::io::Write for Half<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let now = self.left.min(bytes.len());
        self.inner.write_all(&bytes[..now])?;
        self.left -= now;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl std::io::Read for Half<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.inner.read(bytes)
    }
}

impl Connection for Half<'_> {
    fn is_gone(&mut self, moment: Duration) -> bool {
        self.inner.is_gone(moment)
    }
}

#[test]
fn leftovers_of_every_kind_are_cleared_away() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let wanted = reference(repository.url(), &repository.first, FILE);
    place.git().read(&wanted).unwrap();
    let published = entry(&place, &repository.first);
    let part = published.with_extension("part");
    // A writer was killed before it renamed its directory: the directory is complete, but has a temporary
    // name.
    fs::rename(&published, &part).unwrap();
    assert_eq!(place.git().read(&wanted).unwrap(), FIRST.as_bytes());
    // A writer was killed earlier: its temporary directory is incomplete.
    fs::remove_dir_all(&published).unwrap();
    fs::create_dir_all(part.join("objects/pack")).unwrap();
    fs::write(part.join("received.pack"), "PACK").unwrap();
    fs::write(part.join("shallow.lock"), "").unwrap();
    assert_eq!(place.git().read(&wanted).unwrap(), FIRST.as_bytes());
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_damaged_commit_is_fetched_again_and_never_served() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let wanted = reference(repository.url(), &repository.first, FILE);
    place.git().read(&wanted).unwrap();
    let packs = entry(&place, &repository.first).join("objects/pack");
    let file = |extension: &str| {
        let mut files = fs::read_dir(&packs)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        files
            .find(|path| path.extension().is_some_and(|found| found == extension))
            .unwrap()
    };
    type Damage<'a> = &'a dyn Fn(&std::path::Path);
    let flip: Damage<'_> = &|path| {
        let mut bytes = fs::read(path).unwrap();
        let from = bytes.len() / 3;
        bytes[from..].iter_mut().for_each(|byte| *byte ^= 0x55);
        fs::remove_file(path).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let empty: Damage<'_> = &|path| fs::write(path, "").unwrap();
    let gone: Damage<'_> = &|path| fs::remove_file(path).unwrap();
    for extension in ["pack", "idx"] {
        for damage in [flip, empty, gone] {
            damage(&file(extension));
            assert_eq!(
                place.git().read(&wanted).unwrap(),
                FIRST.as_bytes(),
                "{extension}"
            );
        }
    }
    // If the repository is gone, a read of damaged content fails.
    fs::remove_dir_all(&repository.path).unwrap();
    flip(&file("pack"));
    assert_eq!(kind(&refused(&place.git(), &wanted)), "no repository");
}

#[test]
fn waiting_for_another_fetch_ends_at_the_deadline_too() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let wanted = reference(repository.url(), &repository.first, FILE);
    place.git().read(&wanted).unwrap();
    let lock = fs::read_dir(place.path("cache/locks"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let held = fs::File::options().write(true).open(lock).unwrap();
    held.lock().unwrap();
    // The read of a cached commit needs no lock.
    assert_eq!(place.impatient().read(&wanted).unwrap(), FIRST.as_bytes());
    let other = reference(repository.url(), &repository.second, FILE);
    assert_eq!(kind(&refused(&place.impatient(), &other)), "deadline");
    drop(held);
    assert_eq!(place.git().read(&other).unwrap(), SECOND.as_bytes());
}

#[test]
fn the_cache_keeps_what_was_read_last() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let commits: Vec<_> = (0u8..4)
        .map(|n| repository.commit(&[("100644", "large.bin", &[n; 10]), ("100644", FILE, &[n])]))
        .collect();
    place
        .git()
        .read(&reference(repository.url(), &commits[0], FILE))
        .unwrap();
    let size: u64 = walk(&entry(&place, &commits[0]));
    let mut settings = place.settings();
    settings.limits.cache_bytes = size * 5 / 2;
    let reader = Git::new(settings);
    let age = |commit: &str, seconds: u64| {
        let file = fs::File::options()
            .write(true)
            .open(entry(&place, commit).join("used"))
            .unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    };
    reader
        .read(&reference(repository.url(), &commits[1], FILE))
        .unwrap();
    age(&commits[0], 20);
    age(&commits[1], 10);
    reader
        .read(&reference(repository.url(), &commits[2], FILE))
        .unwrap();
    let kept = || {
        commits
            .iter()
            .map(|commit| entry(&place, commit).exists())
            .collect::<Vec<_>>()
    };
    assert_eq!(kept(), [true, false, true, false]);
    // A read marks the commit as recently used, so the cleanup keeps it.
    age(&commits[0], 30);
    age(&commits[2], 40);
    reader
        .read(&reference(repository.url(), &commits[0], FILE))
        .unwrap();
    reader
        .read(&reference(repository.url(), &commits[3], FILE))
        .unwrap();
    assert_eq!(kept(), [true, false, false, true]);
}

fn walk(directory: &std::path::Path) -> u64 {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            if entry.path().is_dir() {
                walk(&entry.path())
            } else {
                entry.metadata().unwrap().len()
            }
        })
        .sum()
}

#[test]
fn a_cache_that_cannot_be_written_is_said() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    fs::write(place.path("cache"), "a file").unwrap();
    let error = refused(
        &place.git(),
        &reference(repository.url(), &repository.first, FILE),
    );
    assert_eq!(kind(&error), "cache");
}
