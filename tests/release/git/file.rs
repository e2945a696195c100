//! Tests of git references to repositories in the file system, and of the rules that hold for all transports.

use super::repository::{FILE, FIRST, Repository, SECOND, git};
use super::{Place, kind, reference, refused};

#[test]
fn a_commit_is_read_once_and_then_from_the_cache_with_the_repository_gone() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let reader = place.git();
    let first = reference(repository.url(), &repository.first, FILE);
    let second = reference(repository.url(), &repository.second, FILE);
    assert_eq!(reader.read(&first).unwrap(), FIRST.as_bytes());
    assert_eq!(reader.read(&second).unwrap(), SECOND.as_bytes());

    std::fs::remove_dir_all(&repository.path).unwrap();
    assert_eq!(reader.read(&first).unwrap(), FIRST.as_bytes());
    // A new reader, as in another process, also uses the cache.
    assert_eq!(place.git().read(&second).unwrap(), SECOND.as_bytes());
    let other = reference(repository.url(), &repository.first, "bin/run.sh");
    assert_eq!(reader.read(&other).unwrap(), b"#!/bin/sh\n");
}

#[test]
fn every_path_that_is_no_file_has_its_own_error() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    for (path, expected) in [
        ("types/none.yaml", "no path"),
        ("none/web.yaml", "no path"),
        ("types/web.yaml/deeper", "no path"),
        ("Types/web.yaml", "no path"),
        ("types", "directory"),
        ("link.yaml", "symbolic link"),
        ("linked/web.yaml", "symbolic link"),
        ("module", "submodule"),
        ("module/file", "submodule"),
        ("large.bin", "too large"),
        ("lfs.yaml", "lfs pointer"),
    ] {
        let error = refused(
            &place.git(),
            &reference(repository.url(), &repository.first, path),
        );
        assert_eq!(kind(&error), expected, "{path}");
        assert!(!error.may_pass(), "{path}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let absent = "1234567812345678123456781234567812345678";
    let error = refused(&place.git(), &reference(repository.url(), absent, FILE));
    assert_eq!(kind(&error), "no commit");
    let tree = git(&repository.path, &["rev-parse", "main^{tree}"], b"");
    let error = refused(&place.git(), &reference(repository.url(), &tree, FILE));
    assert_eq!(kind(&error), "no commit");
    let nowhere = format!("{}-none", repository.url());
    let error = refused(&place.git(), &reference(nowhere, &repository.first, FILE));
    assert_eq!(kind(&error), "no repository");
    assert_eq!(place.leftovers(), [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn limits_hold_for_files_and_repositories() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let wanted = reference(repository.url(), &repository.first, FILE);
    let limited = |change: &dyn Fn(&mut bowline::resolve::git::Limits)| {
        let mut settings = place.settings();
        change(&mut settings.limits);
        bowline::resolve::git::Git::new(settings)
    };
    for reader in [
        limited(&|limits| limits.received_bytes = 100),
        limited(&|limits| limits.objects = 3),
        limited(&|limits| limits.object_bytes = 100),
    ] {
        assert_eq!(kind(&refused(&reader, &wanted)), "too large");
    }
    assert!(place.leftovers().is_empty());
    // The cache does not contain a file above the limit. A reader with a higher limit fetches the file.
    let large = reference(repository.url(), &repository.first, "large.bin");
    assert_eq!(kind(&refused(&place.git(), &large)), "too large");
    let reader = limited(&|limits| limits.file_bytes = 3_000_000);
    assert_eq!(reader.read(&large).unwrap().len(), 2_000_000);
    assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
}

#[test]
fn nothing_is_read_from_the_file_system_unless_allowed() {
    let place = Place::new();
    let repository = Repository::new(place.path("repo.git"));
    let mut settings = place.settings();
    settings.allowed.file = false;
    let reader = bowline::resolve::git::Git::new(settings);
    let error = refused(
        &reader,
        &reference(repository.url(), &repository.first, FILE),
    );
    assert_eq!(kind(&error), "address");
    assert!(!place.path("cache").exists());
}

#[test]
fn sha256_repositories_are_read_and_never_mixed_up() {
    let place = Place::new();
    let old = Repository::new(place.path("old.git"));
    let new = Repository::with_format(place.path("new.git"), "sha256");
    let reader = place.git();
    assert_eq!(new.first.len(), 64);
    let wanted = reference(new.url(), &new.first, FILE);
    assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
    std::fs::remove_dir_all(&new.path).unwrap();
    assert_eq!(reader.read(&wanted).unwrap(), FIRST.as_bytes());
    let error = refused(&reader, &reference(old.url(), &new.first, FILE));
    assert_eq!(kind(&error), "other hash");
}

#[test]
fn what_the_cache_holds_is_in_order_for_git_itself() {
    for format in ["sha1", "sha256"] {
        let place = Place::new();
        let repository = Repository::with_format(place.path("repo.git"), format);
        let mut settings = place.settings();
        settings.limits.file_bytes = 3_000_000;
        let reader = bowline::resolve::git::Git::new(settings);
        // The reader does not fetch the parent of the second commit.
        let wanted = reference(repository.url(), &repository.second, FILE);
        reader.read(&wanted).unwrap();
        let home = std::fs::read_dir(place.path("cache/repositories"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let entry = home.join(&repository.second);
        git(&entry, &["--git-dir=.", "fsck", "--full", "--strict"], b"");
        assert_eq!(
            git(
                &entry,
                &["--git-dir=.", "show", &format!("HEAD:{FILE}")],
                b""
            ),
            SECOND.trim()
        );
    }
}
