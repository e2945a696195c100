//! Opens the file: settings, table layout, and the two threads of an open store.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, RwLock, Weak};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use tokio::sync::{Semaphore, watch};

use super::compact::Bounds;
use super::damage::Damage;
use super::{Inner, News, OPEN, Revision, Store, read, waiting, write};

/// The SQLite application id (`bowl`), so that a foreign SQLite file is not taken for a store.
pub(super) const APPLICATION: i32 = 0x626f_776c;
const LAYOUT: i32 = 1;
const READERS: usize = 4;
/// How often the store checks for commits of other processes; a check takes microseconds.
const TAIL: Duration = Duration::from_millis(50);

/// The reason why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder of the file cannot be created.
    #[error("cannot create the folder of {path}: {cause}")]
    Folder {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        cause: std::io::Error,
    },
    /// The file is on a network file system.
    #[error(
        "{path} is on a network file system ({kind}), whose locks SQLite cannot trust; choose a local file"
    )]
    Network {
        /// The file.
        path: PathBuf,
        /// The file system.
        kind: &'static str,
    },
    /// The path is a directory.
    #[error("{0} is a folder; name a file in it")]
    IsFolder(PathBuf),
    /// The path is a device, a pipe or a socket.
    #[error("{0} is not a regular file; name a file with --embedded=FILE")]
    NotAFile(PathBuf),
    /// The disk has no space for the changes of the store.
    #[error(
        "cannot write {path}: {cause}; nothing is lost: free space on its disk, or raise the limit for the size of a file (ulimit -f)"
    )]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        cause: rusqlite::Error,
    },
    /// Another program wrote the file.
    #[error("{0} is not a store of the embedded API")]
    Foreign(PathBuf),
    /// The file is a store, and its content cannot be read.
    #[error(
        "{path} {damage}; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// The store does not exist, and a read-only target does not create it.
    #[error("there is no store {0}, and this command creates none")]
    Absent(PathBuf),
    /// The file cannot be read without writing a file next to it.
    #[error(
        "cannot read {path}: its newest changes are still in {path}-wal, and nothing can be written beside it; make the folder writable, or copy the file and its -wal file elsewhere"
    )]
    Unfolded {
        /// The file.
        path: PathBuf,
    },
    /// A later version of this crate wrote the file.
    #[error("{path} has layout {found}, and this program knows {known}: use a newer version")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The layout version of the file.
        found: i32,
        /// The newest layout version that this program knows.
        known: i32,
    },
    /// Another process holds the lock of the file for longer than this program waits.
    #[error("{path} is locked: another process is writing to it")]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// SQLite returned an error.
    #[error("cannot open {path}: {cause}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        cause: rusqlite::Error,
    },
    /// The initial objects of the store could not be written.
    #[error("cannot set up {path}: {message}")]
    SetUp {
        /// The file.
        path: PathBuf,
        /// The error message.
        message: String,
    },
}

impl Store {
    /// Opens or creates the file. A second call for the same file shares the connections of the first call.
    pub fn open(path: &Path) -> Result<Store, OpenError> {
        let path = absolute(path)?;
        let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
        let open = open.get_or_insert_with(HashMap::new);
        if let Some(inner) = open.get(&path).and_then(Weak::upgrade) {
            return Ok(Store(inner));
        }
        open.retain(|_, inner| inner.strong_count() > 0);
        let inner = start(&path)?;
        open.insert(path, Arc::downgrade(&inner));
        Ok(Store(inner))
    }

    /// Opens an existing file without ever writing to it. If this process already has the store open for
    /// writing, the connections are shared; otherwise writes fail with
    /// [`StoreError::Closed`](super::StoreError::Closed).
    pub fn open_readonly(path: &Path) -> Result<Store, OpenError> {
        if !path.exists() {
            return Err(OpenError::Absent(path.to_owned()));
        }
        let path = absolute(path)?;
        let open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
        let shared = open.as_ref().and_then(|open| open.get(&path)?.upgrade());
        match shared {
            Some(inner) => Ok(Store(inner)),
            None => start_readonly(&path).map(Store),
        }
    }
}

/// How the connections of a store use its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The connections read and write.
    Write,
    /// The connections read, and see the writes of other processes.
    Read,
    /// The connections read a file that no process changes, without locks and without creating files next to
    /// it.
    Frozen,
}

/// The visible state of a file. As long as it does not change, no process has written to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    /// Whether SQLite's `-wal` and `-shm` files exist, as they do while a process has the store open.
    open: bool,
    size: u64,
    modified: Option<std::time::SystemTime>,
}

impl Outside {
    pub(super) fn of(path: &Path) -> Self {
        let file = std::fs::metadata(path).ok();
        Self {
            open: ["-wal", "-shm"].iter().any(|it| beside(path, it).exists()),
            size: file.as_ref().map_or(0, std::fs::Metadata::len),
            modified: file.and_then(|file| file.modified().ok()),
        }
    }

    /// Returns the access for a reader that creates no files.
    pub(super) fn access(self) -> Access {
        match self.open {
            true => Access::Read,
            false => Access::Frozen,
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, OpenError> {
    let trouble = |cause| OpenError::Folder {
        path: path.to_owned(),
        cause,
    };
    let whole = std::path::absolute(path).map_err(trouble)?;
    let folder = whole.parent().unwrap_or(Path::new("/"));
    if !folder.exists() {
        make_private_folder(folder).map_err(trouble)?;
    }
    let folder = folder.canonicalize().map_err(trouble)?;
    let path = match whole.file_name() {
        Some(name) => folder.join(name),
        None => whole,
    };
    // Resolves a symbolic link: SQLite keeps its log next to the real file.
    let path = path.canonicalize().unwrap_or(path);
    refuse_network(&path, path.parent().unwrap_or(Path::new("/")))?;
    Ok(path)
}

#[cfg(unix)]
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
}

#[cfg(not(unix))]
fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

#[cfg(target_os = "linux")]
fn refuse_network(path: &Path, folder: &Path) -> Result<(), OpenError> {
    let Ok(stat) = rustix::fs::statfs(folder) else {
        return Ok(());
    };
    let kind = match stat.f_type as u32 {
        0x6969 => "nfs",
        0x517b | 0xfe53_4d42 => "smb",
        0xff53_4d42 => "cifs",
        0x5346_414f => "afs",
        0x00c3_6400 => "ceph",
        0x0102_1997 => "9p",
        _ => return Ok(()),
    };
    Err(OpenError::Network {
        path: path.to_owned(),
        kind,
    })
}

#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &Path, _: &Path) -> Result<(), OpenError> {
    Ok(())
}

pub(super) fn start(path: &Path) -> Result<Arc<Inner>, OpenError> {
    let failed = |cause| refused(path, cause);
    waiting::set_file(path);
    refuse_special(path)?;
    refuse_emptied(path)?;
    make_private_file(path);
    // The file is examined before any setting is made, because a setting would change a foreign file.
    let mut writer = bare(path, Access::Write).map_err(failed)?;
    examine(&writer, path)?;
    settle(&writer).map_err(failed)?;
    lay_out(&mut writer, path)?;
    let tail = connect(path, Access::Write).map_err(failed)?;
    let newest = newest(&tail).map_err(failed)?;
    let (jobs, inbox) = std::sync::mpsc::channel();
    let inner = inner(path, Access::Write, jobs, newest);
    let weak = Arc::downgrade(&inner);
    spawn(path, "store-writer", {
        let (weak, file) = (weak.clone(), path.to_owned());
        Box::new(move || {
            waiting::set_file(&file);
            write::run(weak, writer, inbox, newest);
        })
    })?;
    spawn(
        path,
        "store-tail",
        Box::new(move || follow(weak, tail, newest)),
    )?;
    Ok(inner)
}

/// Opens a store for reading: nothing writes and nothing is compacted.
pub(super) fn start_readonly(path: &Path) -> Result<Arc<Inner>, OpenError> {
    waiting::set_file(path);
    refuse_special(path)?;
    refuse_emptied(path)?;
    let outside = Outside::of(path);
    let (access, tail, is_store) = match examined(path, outside.access()) {
        Ok((tail, is_store)) => (outside.access(), tail, is_store),
        // Readers share files next to the store. If SQLite cannot create them, the file is read without
        // locks.
        Err(OpenError::Sqlite { cause, .. }) if wants_to_write(&cause) => {
            let log = std::fs::metadata(beside(path, "-wal"));
            if log.is_ok_and(|log| log.len() > 0) {
                let path = path.to_owned();
                return Err(OpenError::Unfolded { path });
            }
            let (tail, is_store) = examined(path, Access::Frozen)?;
            (Access::Frozen, tail, is_store)
        }
        Err(error) => return Err(error),
    };
    if !is_store {
        return Err(OpenError::Absent(path.to_owned()));
    }
    let newest = newest(&tail).map_err(|cause| refused(path, cause))?;
    // No thread receives jobs, so every write fails with StoreError::Closed.
    let (jobs, _) = std::sync::mpsc::channel();
    let inner = inner(path, access, jobs, newest);
    let weak = Arc::downgrade(&inner);
    let follows: Box<dyn FnOnce() + Send> = match access {
        Access::Frozen => Box::new(move || follow_frozen(weak, outside, newest)),
        Access::Read | Access::Write => Box::new(move || follow(weak, tail, newest)),
    };
    spawn(path, "store-tail", follows)?;
    Ok(inner)
}

/// Refuses a path that exists and is not a regular file: a pipe would block for ever.
fn refuse_special(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(OpenError::IsFolder(path.to_owned())),
        Ok(found) if !found.is_file() => Err(OpenError::NotAFile(path.to_owned())),
        _ => Ok(()),
    }
}

/// Refuses an empty file with a log next to it: SQLite would take it for a new store and delete the log.
fn refuse_emptied(path: &Path) -> Result<(), OpenError> {
    let size = |path: &Path| std::fs::metadata(path).map(|file| file.len()).ok();
    let logged = size(&beside(path, "-wal")).is_some_and(|size| size > 0);
    match size(path) == Some(0) && logged {
        true => Err(OpenError::Damaged {
            path: path.to_owned(),
            damage: Damage::emptied(),
        }),
        false => Ok(()),
    }
}

/// Opens a connection, and returns whether the file is a store of this layout.
fn examined(path: &Path, access: Access) -> Result<(Connection, bool), OpenError> {
    let connection = connect(path, access).map_err(|cause| refused(path, cause))?;
    let is_store = examine(&connection, path)?;
    Ok((connection, is_store))
}

/// Returns whether SQLite could not create or change a file next to the store.
fn wants_to_write(cause: &rusqlite::Error) -> bool {
    matches!(
        cause.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn inner(
    path: &Path,
    access: Access,
    jobs: std::sync::mpsc::Sender<write::Job>,
    newest: Revision,
) -> Arc<Inner> {
    Arc::new(Inner {
        path: path.to_owned(),
        access: Mutex::new((access, Outside::of(path))),
        jobs,
        idle: Mutex::new(Vec::new()),
        readers: Arc::new(Semaphore::new(READERS)),
        head: watch::Sender::new(newest),
        touched: RwLock::new(HashMap::new()),
        forgotten: AtomicU64::new(0),
        bounds: Bounds::default(),
    })
}

fn spawn(path: &Path, name: &str, run: Box<dyn FnOnce() + Send>) -> Result<(), OpenError> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(run);
    spawned.map(drop).map_err(|cause| OpenError::Folder {
        path: path.to_owned(),
        cause,
    })
}

/// Returns the error for a failure of SQLite: damaged content, or another cause.
fn refused(path: &Path, cause: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match Damage::of(&path, &cause) {
        Some(damage) => OpenError::Damaged { path, damage },
        None if is_no_space(&cause) => OpenError::NoSpace { path, cause },
        None if is_locked(&cause) => OpenError::Locked { path },
        None => OpenError::Sqlite { path, cause },
    }
}

/// Returns whether another process holds the lock of the file.
fn is_locked(cause: &rusqlite::Error) -> bool {
    matches!(
        cause.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Returns whether a write failed because the disk is full or a file is too large. SQLite reports a limit for
/// the size of a file as a disk error.
pub(super) fn is_no_space(cause: &rusqlite::Error) -> bool {
    let code = cause.sqlite_error().map(|error| error.extended_code);
    let writes = [
        ffi::SQLITE_FULL,
        ffi::SQLITE_IOERR_WRITE,
        ffi::SQLITE_IOERR_TRUNCATE,
        ffi::SQLITE_IOERR_SHMSIZE,
    ];
    code.is_some_and(|code| writes.contains(&code))
}

/// Creates the file for its owner only, because it contains secrets.
fn make_private_file(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    // For an existing file, or one that cannot be created, SQLite reports the error.
    drop(options.open(path));
}

/// Opens another connection, with the settings for durability and sharing.
pub(super) fn connect(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let connection = bare(path, access)?;
    match access {
        Access::Write => settle(&connection)?,
        Access::Read | Access::Frozen => {
            connection.pragma_update(None, "temp_store", "MEMORY")?;
        }
    }
    Ok(connection)
}

fn bare(path: &Path, access: Access) -> rusqlite::Result<Connection> {
    let flags = match access {
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Frozen => OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    };
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = match access {
        Access::Write | Access::Read => Connection::open_with_flags(path, flags)?,
        Access::Frozen => Connection::open_with_flags(frozen(path), flags)?,
    };
    connection.busy_handler(Some(waiting::wait_for_lock))?;
    connection.set_prepared_statement_cache_capacity(32);
    // SQLite plans each statement once, and not again for each bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Returns the URI of a file that no process changes; special characters are escaped.
fn frozen(path: &Path) -> String {
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address += &format!("%{byte:02x}"),
        }
    }
    address + "?immutable=1"
}

fn settle(connection: &Connection) -> rusqlite::Result<()> {
    // This setting must come before the first table.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    use_wal(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Turns on the write-ahead log. SQLite does not wait for the lock when two processes turn it on at the same
/// time, so this function waits.
fn use_wal(connection: &Connection) -> rusqlite::Result<()> {
    let begun = std::time::Instant::now();
    let mut tries = 0_i32;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!("no write-ahead log is possible here, only {mode}");
                let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
                return Err(rusqlite::Error::SqliteFailure(code, Some(why)));
            }
            Err(cause)
                if cause.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < waiting::BUSY =>
            {
                waiting::wait_for_lock(tries);
                tries = tries.saturating_add(1);
            }
            Err(cause) => return Err(cause),
        }
    }
}

/// Returns whether the file is a store of this layout (true) or still empty (false).
///
/// It uses one statement: between two statements, another process could create the tables.
fn examine(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let failed = |cause: rusqlite::Error| {
        let code = cause.sqlite_error_code();
        match refused(path, cause) {
            OpenError::Sqlite { path, .. } if code == Some(ErrorCode::NotADatabase) => {
                OpenError::Foreign(path)
            }
            error => error,
        }
    };
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let look = || -> rusqlite::Result<(i64, i32, i32)> {
        connection.execute_batch("SAVEPOINT look")?;
        let count = "SELECT count(*) FROM sqlite_schema";
        let tables = connection.query_row(count, [], |row| row.get(0))?;
        let found = (tables, pragma("application_id")?, pragma("user_version")?);
        connection.execute_batch("RELEASE look")?;
        Ok(found)
    };
    match look().map_err(failed)? {
        (_, APPLICATION, LAYOUT) => Ok(true),
        (_, APPLICATION, found) => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: LAYOUT,
        }),
        (0, 0, 0) => Ok(false),
        _ => Err(OpenError::Foreign(path.to_owned())),
    }
}

fn lay_out(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |cause| refused(path, cause);
    if examine(connection, path)? {
        return Ok(());
    }
    // Two processes may create the file at the same time: the lock decides, and the second process checks
    // again.
    let transaction = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    if examine(&transaction, path)? {
        return Ok(());
    }
    transaction.execute_batch(TABLES).map_err(failed)?;
    transaction
        .pragma_update(None, "application_id", APPLICATION)
        .and_then(|()| transaction.pragma_update(None, "user_version", LAYOUT))
        .and_then(|()| transaction.commit())
        .map_err(failed)
}

/// `meta` comes before `rest`, and both come last, so that a reader of metadata or of keys never reads the
/// overflow pages of a large body.
const TABLES: &str = "
CREATE TABLE log (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    resource  TEXT    NOT NULL,
    namespace TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    event     INTEGER NOT NULL,
    deleting  INTEGER NOT NULL,
    previous  INTEGER NOT NULL,
    size      INTEGER NOT NULL,
    meta      BLOB    NOT NULL,
    rest      BLOB    NOT NULL
);
CREATE INDEX newest ON log (resource, namespace, name, id, event);
CREATE TABLE owned (
    owner     TEXT NOT NULL,
    resource  TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (owner, resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE alive (uid TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE follow_up (
    what      TEXT NOT NULL,
    subject   TEXT NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (what, subject)
) WITHOUT ROWID;
CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO state VALUES ('compacted', 0), ('live', 0), ('dead', 0), ('installed', 0);
-- Revision 1 is taken, so that a list of an empty store has a revision to watch from.
INSERT INTO sqlite_sequence VALUES ('log', 1);
";

/// Returns the newest revision ever assigned, including deletions and compacted rows.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<Revision> {
    connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'log'")?
        .query_row([], |row| row.get(0))
}

/// Watches for commits of other processes until the store is closed.
fn follow(store: Weak<Inner>, connection: Connection, mut seen: Revision) {
    let version = || {
        connection
            .pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))
            .ok()
    };
    // The first check always reads: another process may have written since the file was opened.
    let mut last = None;
    loop {
        std::thread::park_timeout(TAIL);
        let Some(store) = store.upgrade() else { return };
        let now = version();
        if now == last && now.is_some() {
            continue;
        }
        match news(&connection, seen) {
            Ok(news) => {
                last = now;
                seen = news.newest;
                store.publish(news);
            }
            Err(cause) => tracing::warn!(%cause, "cannot look for changes of other processes"),
        }
    }
}

/// Checks a file that is read without locks for commits of other processes. Once another process opens the
/// file, it is read with locks.
fn follow_frozen(store: Weak<Inner>, mut known: Outside, mut seen: Revision) {
    loop {
        std::thread::park_timeout(TAIL);
        let Some(inner) = store.upgrade() else { return };
        let now = Outside::of(&inner.path);
        if now == known {
            continue;
        }
        let connection = connect(&inner.path, now.access());
        let found = connection.and_then(|connection| Ok((news(&connection, seen)?, connection)));
        match found {
            Ok((news, connection)) => {
                known = now;
                seen = news.newest;
                inner.publish(news);
                if now.access() == Access::Read {
                    drop(inner);
                    return follow(store, connection, seen);
                }
            }
            Err(cause) => tracing::warn!(%cause, "cannot look for changes of other processes"),
        }
    }
}

/// Reads the changes after a revision.
fn news(connection: &Connection, seen: Revision) -> rusqlite::Result<News> {
    // One read transaction, so that the newest revision and the rows agree.
    let transaction = connection.unchecked_transaction()?;
    news_within(&transaction, seen)
}

/// Reads the changes after a revision, in the caller's transaction.
pub(super) fn news_within(connection: &Connection, seen: Revision) -> rusqlite::Result<News> {
    let newest = newest(connection)?;
    if newest <= seen {
        return Ok(News {
            newest,
            ..News::default()
        });
    }
    let compacted = read::state(connection, "compacted")?;
    let mut statement = connection
        .prepare_cached("SELECT resource, max(id) FROM log WHERE id > ?1 GROUP BY resource")?;
    let changed = statement
        .query_map([seen], |row| {
            Ok((row.get::<_, String>(0)?.into(), row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    Ok(News {
        changed,
        forgotten: if compacted > seen { compacted } else { 0 },
        newest,
    })
}
