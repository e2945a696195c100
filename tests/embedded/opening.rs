//! Opens files that are not valid stores. Checks the error messages, and that the files stay unchanged.

use std::path::Path;

use serde_json::json;

use super::*;

async fn refused(path: &Path) -> String {
    match Embedded::open(path, "ana", bowline::api::store_setup()).await {
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

    let cases = [
        (at("text"), vec!["is not a store of the embedded API"]),
        (at("foreign"), vec!["is not a store of the embedded API"]),
        (at("folder"), vec!["is a folder", "name a file in it"]),
        (at("newer"), vec!["has layout 7", "use a newer version"]),
        (at("file/below.db"), vec!["cannot open"]),
        // Even root cannot create a file in /proc.
        (
            "/proc/bowline.db".into(),
            vec!["cannot open /proc/bowline.db"],
        ),
        (
            "/proc/bowline/store.db".into(),
            vec!["cannot create the folder of"],
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
async fn a_pipe_and_a_device_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for path in [pipe.as_path(), Path::new("/dev/null")] {
        let reading = match Embedded::open_readonly(path, "ana").await {
            Ok(_) => panic!("{} was opened", path.display()),
            Err(error) => error.to_string(),
        };
        for said in [refused(path).await, reading] {
            let words = format!("{} is not a regular file", path.display());
            assert!(said.contains(&words), "{said}");
        }
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_called_corrupt() {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (damage, opens) in [
        // The row of a CRD contains a byte that is not text, and a text that is not a JSON object.
        (
            "UPDATE log SET rest = x'7bff7d' WHERE resource LIKE '%customresourcedefinitions'",
            false,
        ),
        (
            "UPDATE log SET rest = x'7b7b' WHERE resource LIKE '%customresourcedefinitions'",
            false,
        ),
        // The row of a namespace is damaged in the same ways.
        (
            "UPDATE log SET rest = x'7bff7d' WHERE resource = '/namespaces'",
            true,
        ),
        (
            "UPDATE log SET meta = 7 WHERE resource = '/namespaces'",
            true,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        stored(&path).await;
        let connection = rusqlite::Connection::open(&path).unwrap();
        assert!(connection.execute(damage, []).unwrap() > 0, "{damage}");
        connection.close().unwrap();
        let said = match Embedded::open(&path, "ana", bowline::api::store_setup()).await {
            Err(error) => error.to_string(),
            Ok(store) => {
                let namespaces = "/api/v1/namespaces";
                let (code, answer) = send(&store, "GET", namespaces, &Value::Null).await;
                assert_eq!(code, 500, "{damage}: {answer}");
                let (code, _) = send(&store, "GET", definitions, &Value::Null).await;
                assert!(opens && code == 200, "{damage}");
                answer["message"].to_string()
            }
        };
        assert!(said.contains("is corrupt; restore it"), "{damage}: {said}");
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

/// Creates and closes a store. Returns the bytes of its file.
async fn stored(path: &Path) -> Vec<u8> {
    drop(open(path).await);
    let log = path.with_extension("db-wal");
    // The threads of the store close the file only after the store is dropped. The last connection that
    // closes removes the -wal file.
    loop {
        let connection = rusqlite::Connection::open(path).unwrap();
        let folded = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = connection.query_row(folded, [], |row| row.get(0)).unwrap();
        connection.close().unwrap();
        if busy == 0 && !log.exists() {
            break;
        }
        std::thread::yield_now();
    }
    std::fs::read(path).unwrap()
}

#[tokio::test]
async fn a_damaged_store_is_called_truncated_or_corrupt_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = stored(&folder.path().join("whole.db")).await;
    let half = bytes.len() / 2 / 4096 * 4096;
    let mut corrupt = bytes.clone();
    // Damages the root page of the table that lists all tables.
    corrupt[100..4096].fill(0xff);
    for (name, damaged, parts) in [
        (
            "half.db",
            &bytes[..half],
            ["is truncated: it has", "backup"],
        ),
        (
            "stub.db",
            &bytes[..300],
            ["is truncated: it has 300 of", "move it away"],
        ),
        (
            "corrupt.db",
            &corrupt,
            ["is corrupt", "restore it from a backup"],
        ),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, damaged).unwrap();
        let said = refused(&path).await;
        for part in parts {
            assert!(said.contains(part), "{name}: {said}");
        }
        assert!(!said.contains("writable"), "{name}: {said}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "{name} was changed");
    }
}

#[tokio::test]
async fn corruption_that_a_read_meets_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut bytes = stored(&path).await;
    // Damages the last pages, but not the header, the list of tables and the other pages that SQLite reads
    // when it opens the file.
    let last = bytes.len() - 4096 * 8;
    bytes[last..].fill(0xff);
    std::fs::write(&path, &bytes).unwrap();
    let said = match Embedded::open(&path, "ana", bowline::api::store_setup()).await {
        Err(error) => error.to_string(),
        Ok(store) => {
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let (code, answer) = send(&store, "GET", definitions, &Value::Null).await;
            assert_eq!(code, 500, "{answer}");
            answer["message"].to_string()
        }
    };
    assert!(said.contains("is corrupt; restore it"), "{said}");
}

#[tokio::test]
async fn reading_a_store_creates_none_and_changes_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/store.db");
    let readonly =
        |path: std::path::PathBuf| async move { Embedded::open_readonly(&path, "ana").await };
    let said = readonly(path.clone()).await.err().unwrap().to_string();
    assert!(said.contains("this command creates none"), "{said}");
    assert!(!folder.path().join("new").exists());
    std::fs::create_dir(folder.path().join("new")).unwrap();
    std::fs::write(&path, "").unwrap();
    let said = readonly(path.clone()).await.err().unwrap().to_string();
    assert!(said.contains("there is no store"), "{said}");
    assert_eq!(std::fs::read(&path).unwrap(), b"");

    let bytes = stored(&path).await;
    let store = readonly(path.clone()).await.unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, _) = send(&store, "GET", definitions, &Value::Null).await;
    assert_eq!(code, 200);
    let namespace = json!({"metadata": {"name": "new"}});
    let (code, answer) = send(&store, "POST", "/api/v1/namespaces", &namespace).await;
    assert!(code >= 400, "{answer}");
    let listed = listing(&folder.path().join("new"));
    assert_eq!(listed, ["store.db"], "while it is read");
    drop(store);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    assert_eq!(listing(&folder.path().join("new")), ["store.db"]);
}

/// Returns the names of the files in a directory, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = found
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_reader_of_a_closed_store_sees_what_is_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    stored(&path).await;
    let reader = Embedded::open_readonly(&path, "ana").await.unwrap();
    let (code, _) = send(&reader, "GET", "/api/v1/namespaces/new", &Value::Null).await;
    assert_eq!(code, 404);
    let writer = open(&path).await;
    let namespace = json!({"metadata": {"name": "new"}});
    let (code, answer) = send(&writer, "POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{answer}");
    let (code, answer) = send(&reader, "GET", "/api/v1/namespaces/new", &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn an_empty_file_with_a_log_beside_it_is_truncated_and_not_a_new_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let log = folder.path().join("store.db-wal");
    std::fs::write(&path, "").unwrap();
    std::fs::write(&log, "newest changes").unwrap();
    for said in [
        refused(&path).await,
        match Embedded::open_readonly(&path, "ana").await {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it was opened"),
        },
    ] {
        assert!(said.contains("is truncated: it has 0 of"), "{said}");
    }
    assert_eq!(std::fs::read(&log).unwrap(), b"newest changes");
}

#[tokio::test]
async fn a_store_in_a_folder_that_takes_no_files_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = stored(&folder.path().join("store.db")).await;
    let path = folder.path().join("a store?.db");
    std::fs::write(&path, bytes).unwrap();
    // A directory has the name of the -shm file, so SQLite cannot create the file, even as root.
    let shared = folder.path().join("a store?.db-shm");
    std::fs::create_dir(shared).unwrap();
    let store = Embedded::open_readonly(&path, "ana").await.unwrap();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, _) = send(&store, "GET", definitions, &Value::Null).await;
    assert_eq!(code, 200);
    drop(store);

    // A read-only store also shows changes that are only in the -wal file.
    let live = open(&folder.path().join("live.db")).await;
    let namespace = json!({"metadata": {"name": "newest"}});
    let (code, answer) = send(&live, "POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{answer}");
    for ending in ["", "-wal"] {
        let from = folder.path().join(format!("live.db{ending}"));
        std::fs::copy(from, folder.path().join(format!("copy.db{ending}"))).unwrap();
    }
    std::fs::create_dir(folder.path().join("copy.db-shm")).unwrap();
    let copy = folder.path().join("copy.db");
    match Embedded::open_readonly(&copy, "ana").await {
        Ok(store) => {
            let path = "/api/v1/namespaces/newest";
            let (code, answer) = send(&store, "GET", path, &Value::Null).await;
            assert_eq!(code, 200, "{answer}");
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("newest changes are still in"), "{said}");
        }
    }
}
