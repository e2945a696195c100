//! Tests of making git references from files in clean work trees.

use std::fs;
use std::path::PathBuf;

use bowline::resolve::git::{WorkTreeError, work_tree};

use super::repository::{FILE, Repository, SECOND, git};
use super::{CANARY, Place, reference};

fn clone(place: &Place) -> (Repository, PathBuf) {
    let repository = Repository::new(place.path("repo.git"));
    // This commit makes .gitattributes empty, so that a checkout needs no filter program.
    repository.commit(&[("100644", ".gitattributes", b"")]);
    let clone = place.path("clone");
    git(
        place.directory.path(),
        &["clone", "-q", "repo.git", "clone"],
        b"",
    );
    (repository, clone)
}

#[test]
fn a_clean_file_has_a_reference_that_resolves_to_it() {
    let place = Place::new();
    let (repository, clone) = clone(&place);
    let found = work_tree(&clone.join(FILE)).unwrap();
    let head = git(&clone, &["rev-parse", "HEAD"], b"");
    assert_eq!(found, reference(repository.url(), &head, FILE));
    assert_eq!(place.git().read(&found).unwrap(), SECOND.as_bytes());

    for (remote, expected) in [
        (
            "git@github.com:team/repo.git",
            "git@github.com:team/repo.git",
        ),
        (
            "https://github.com/team/repo",
            "https://github.com/team/repo",
        ),
        (
            &format!("https://ana:{CANARY}@github.com/team/repo"),
            "https://github.com/team/repo",
        ),
    ] {
        git(&clone, &["remote", "set-url", "origin", remote], b"");
        assert_eq!(work_tree(&clone.join(FILE)).unwrap().repository, expected);
    }
}

#[test]
fn what_others_could_not_resolve_has_none() {
    let place = Place::new();
    let (_, clone) = clone(&place);
    let file = clone.join(FILE);
    let message = |file: &std::path::Path| {
        let error = work_tree(file).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(CANARY));
        println!("{error}");
        error
    };
    fs::write(clone.join("new.yaml"), "x").unwrap();
    assert!(matches!(
        message(&clone.join("new.yaml")),
        WorkTreeError::Untracked { .. }
    ));
    // A work tree with an untracked file is clean. One with a changed or missing tracked file is not.
    assert!(work_tree(&file).is_ok());
    fs::write(clone.join("bin/run.sh"), "#!/bin/bash\n").unwrap();
    assert!(
        matches!(message(&file), WorkTreeError::Changed { changed } if changed == "bin/run.sh")
    );
    fs::remove_file(clone.join("bin/run.sh")).unwrap();
    assert!(matches!(message(&file), WorkTreeError::Changed { .. }));
    git(&clone, &["checkout", "-q", "."], b"");
    fs::write(&file, "kind: Other\n").unwrap();
    assert!(matches!(message(&file), WorkTreeError::Changed { .. }));
    git(&clone, &["add", FILE], b"");
    assert!(matches!(message(&file), WorkTreeError::Changed { .. }));
    git(&clone, &["rm", "-q", "--cached", "large.bin"], b"");
    assert!(matches!(message(&file), WorkTreeError::Changed { .. }));
    git(&clone, &["add", "large.bin"], b"");
    git(&clone, &["commit", "-q", "-m", "work"], b"");
    assert!(matches!(message(&file), WorkTreeError::NotPushed { .. }));
    git(&clone, &["push", "-q"], b"");
    assert!(work_tree(&file).is_ok());
    for remote in [
        "../repo.git",
        "git://example.com/r",
        "ext::sh -c true",
        &format!("ssh://a:{CANARY}@example.com/r"),
    ] {
        git(&clone, &["remote", "set-url", "origin", remote], b"");
        assert!(
            matches!(
                message(&file),
                WorkTreeError::Address { .. } | WorkTreeError::Unreadable { .. }
            ),
            "{remote}"
        );
    }
    git(&clone, &["remote", "remove", "origin"], b"");
    assert!(matches!(message(&file), WorkTreeError::NoRemote { .. }));

    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    git(&empty, &["init", "-q"], b"");
    fs::write(empty.join("a.yaml"), "x").unwrap();
    assert!(matches!(
        message(&empty.join("a.yaml")),
        WorkTreeError::NoCommit { .. }
    ));
    assert!(matches!(
        message(&empty.join(".git/config")),
        WorkTreeError::NoWorkTree { .. } | WorkTreeError::Path(_)
    ));
    fs::write(place.path("outside.yaml"), "x").unwrap();
    assert!(matches!(
        message(&place.path("outside.yaml")),
        WorkTreeError::NoWorkTree { .. }
    ));
    assert!(matches!(
        message(&place.path("nothing.yaml")),
        WorkTreeError::NoWorkTree { .. }
    ));
}

#[test]
fn a_repositorys_configuration_starts_nothing() {
    let place = Place::new();
    let (_, clone) = clone(&place);
    let touched = place.path("touched");
    let evil = format!("touch {}", touched.display());
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "core.sshCommand",
        "credential.helper",
        "core.hooksPath",
    ] {
        git(&clone, &["config", key, &evil], b"");
    }
    fs::write(clone.join(".git/info/attributes"), "* filter=evil\n").unwrap();
    let found = work_tree(&clone.join(FILE)).unwrap();
    place.git().read(&found).unwrap();
    assert!(!touched.exists());
}
