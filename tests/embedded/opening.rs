//! Files that cannot be a store: what is said, and that they are left alone.

use std::path::Path;

use super::*;

async fn refused(path: &Path) -> String {
    match Embedded::open(path, "ana").await {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn what_is_no_store_is_refused_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("text"),
        "not a database, but long enough to have a header of one\n".repeat(20),
    )
    .unwrap();
    std::fs::create_dir(at("folder")).unwrap();
    std::fs::write(at("file"), "").unwrap();
    let foreign = rusqlite::Connection::open(at("foreign")).unwrap();
    foreign
        .execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
        .unwrap();
    foreign.close().unwrap();
    let newer = rusqlite::Connection::open(at("newer")).unwrap();
    let pragmas =
        "PRAGMA application_id = 1651472236; PRAGMA user_version = 7; CREATE TABLE log (a)";
    newer.execute_batch(pragmas).unwrap();
    newer.close().unwrap();
    let before = |name: &str| std::fs::read(at(name)).unwrap();
    let (text, foreign, newer) = (before("text"), before("foreign"), before("newer"));

    let choose = "choose another file with --embedded=FILE";
    let cases = [
        (at("text"), vec!["is not a bowline store", choose]),
        (at("foreign"), vec!["is not a bowline store", choose]),
        (
            at("folder"),
            vec!["is a folder", "name a file in it with --embedded=FILE"],
        ),
        (at("newer"), vec!["has layout 7", "use a newer bowline"]),
        (at("file/below.db"), vec!["cannot open", choose]),
        // Not even root can create a file there.
        (
            "/proc/bowline.db".into(),
            vec!["cannot open /proc/bowline.db", "writable", choose],
        ),
        (
            "/proc/bowline/store.db".into(),
            vec!["cannot create the folder of", choose],
        ),
    ];
    for (path, parts) in cases {
        let said = refused(&path).await;
        for part in parts {
            assert!(said.contains(part), "{}: {said}", path.display());
        }
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
    let left = [("text", text), ("foreign", foreign), ("newer", newer)];
    for (name, bytes) in left {
        assert_eq!(before(name), bytes, "{name} was changed");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store.db");
    let embedded = open(&path).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&folder.path().join("new/store.db-wal")), 0o600);
    assert_eq!(mode(&folder.path().join("new")), 0o700);
    drop(embedded);
}

#[tokio::test]
async fn an_empty_file_becomes_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    std::fs::write(&path, "").unwrap();
    let (code, version) = send(&open(&path).await, "GET", "/version", &Value::Null).await;
    assert_eq!(code, 200, "{version}");
}
