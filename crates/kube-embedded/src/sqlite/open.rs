//! Opens a store file: applies SQLite's settings, creates the tables, and starts the two threads of a store.

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

/// The SQLite application id of stores (`bowl`), which distinguishes a store from other SQLite files.
pub(super) const APPLICATION: i32 = 0x626f_776c;
const LAYOUT: i32 = 1;
const READERS: usize = 4;
/// How often the store checks for commits of other processes. A check takes microseconds.
const TAIL: Duration = Duration::from_millis(50);

/// The reason why a store file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder of the store file cannot be created.
    #[error("cannot create the folder of {path}: {cause}")]
    Folder {
        /// The path of the store file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The store file is on a network file system, whose locks are not reliable.
    #[error(
        "{path} is on a network file system ({kind}), whose locks SQLite cannot trust; choose a local file"
    )]
    Network {
        /// The path of the store file.
        path: PathBuf,
        /// The type of the network file system, such as NFS.
        kind: &'static str,
    },
    /// The path of the store is a directory. Contains the path.
    #[error("{0} is a folder; name a file in it")]
    IsFolder(PathBuf),
    /// The path of the store is a device, a pipe or a socket. Contains the path.
    #[error("{0} is not a regular file; name a file with --embedded=FILE")]
    NotAFile(PathBuf),
    /// The disk is full, or the store file has reached a size limit.
    #[error(
        "cannot write {path}: {cause}; nothing is lost: free space on its disk, or raise the limit for the size of a file (ulimit -f)"
    )]
    NoSpace {
        /// The path of the store file.
        path: PathBuf,
        /// The error of SQLite.
        cause: rusqlite::Error,
    },
    /// The file exists but is not a store. Contains its path.
    #[error("{0} is not a store of the embedded API")]
    Foreign(PathBuf),
    /// The file is a store, but it is damaged.
    #[error(
        "{path} {damage}; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store"
    )]
    Damaged {
        /// The path of the store file.
        path: PathBuf,
        /// How the store file is damaged.
        damage: Damage,
    },
    /// The store file does not exist, and read-only access does not create it. Contains its path.
    #[error("there is no store {0}, and this command creates none")]
    Absent(PathBuf),
    /// The newest changes of the store are in its write-ahead log, which cannot be read because the folder is not
    /// writable.
    #[error(
        "cannot read {path}: its newest changes are still in {path}-wal, and nothing can be written beside it; make the folder writable, or copy the file and its -wal file elsewhere"
    )]
    Unfolded {
        /// The path of the store file.
        path: PathBuf,
    },
    /// A newer version of this crate has written the store file.
    #[error("{path} has layout {found}, and this program knows {known}: use a newer version")]
    Newer {
        /// The path of the store file.
        path: PathBuf,
        /// The version of the file's layout.
        found: i32,
        /// The newest version of the layout that this version of the crate can read.
        known: i32,
    },
    /// Another process has locked the store file for too long.
    #[error("{path} is locked: another process is writing to it")]
    Locked {
        /// The path of the store file.
        path: PathBuf,
    },
    /// SQLite failed for another reason.
    #[error("cannot open {path}: {cause}")]
    Sqlite {
        /// The path of the store file.
        path: PathBuf,
        /// The error of SQLite.
        cause: rusqlite::Error,
    },
    /// The objects of the setup could not be installed in the store.
    #[error("cannot set up {path}: {message}")]
    SetUp {
        /// The path of the store file.
        path: PathBuf,
        /// The reason why the installation failed.
        message: String,
    },
}

impl Store {
    /// Opens or creates a store file for reading and writing. If this process has already opened the file, returns
    /// the same store.
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

    /// Opens an existing store file, and never changes it: writes to the store fail with
    /// [`StoreError::Closed`](super::StoreError::Closed). If this process has already opened the file for writing,
    /// returns that store instead.
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

/// How the connections of a store access the store file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The connections read and write.
    Write,
    /// The connections only read, with locks. So they can read while other processes write.
    Read,
    /// The connections read without locks and create no files next to the store. This works only while no process
    /// changes the store file.
    Frozen,
}

/// The state of a store file in the file system. As long as the state is the same, no process has written to the
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    /// Whether SQLite's `-wal` and `-shm` files exist next to the store, because a process has the store open.
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

    /// Returns how a reader that must not create files accesses the store file.
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
    // The path of the real file is used instead of a symbolic link, because SQLite keeps its log next to the real
    // file.
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
    // The file is checked before the settings are applied, because they would change a file of another program.
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

/// Opens a store file for reading, without the thread that writes and compacts.
pub(super) fn start_readonly(path: &Path) -> Result<Arc<Inner>, OpenError> {
    waiting::set_file(path);
    refuse_special(path)?;
    refuse_emptied(path)?;
    let outside = Outside::of(path);
    let (access, tail, is_store) = match examined(path, outside.access()) {
        Ok((tail, is_store)) => (outside.access(), tail, is_store),
        // SQLite could not create the files next to the store that readers with locks need, so the store is read
        // without locks.
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
    // Nobody receives the jobs of this channel, so that each write fails with `StoreError::Closed`.
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

/// Returns an error for a path that exists and is not a regular file. Such a path is not opened, because opening a
/// pipe would block without end.
fn refuse_special(path: &Path) -> Result<(), OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(OpenError::IsFolder(path.to_owned())),
        Ok(found) if !found.is_file() => Err(OpenError::NotAFile(path.to_owned())),
        _ => Ok(()),
    }
}

/// Returns an error for an empty file that has a write-ahead log. Such a file is not opened, because SQLite would
/// treat it as a new database and delete the log.
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

/// Opens a connection and checks the file. The boolean is false if the file is still empty.
fn examined(path: &Path, access: Access) -> Result<(Connection, bool), OpenError> {
    let connection = connect(path, access).map_err(|cause| refused(path, cause))?;
    let is_store = examine(&connection, path)?;
    Ok((connection, is_store))
}

/// Returns whether SQLite failed because it could not create or change a file next to the store.
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

/// Converts an error of SQLite to an error of the store file, and finds its cause: damage, a full disk, or a lock.
fn refused(path: &Path, cause: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match Damage::of(&path, &cause) {
        Some(damage) => OpenError::Damaged { path, damage },
        None if is_no_space(&cause) => OpenError::NoSpace { path, cause },
        None if is_locked(&cause) => OpenError::Locked { path },
        None => OpenError::Sqlite { path, cause },
    }
}

/// Returns whether SQLite failed because another process has locked the store file.
fn is_locked(cause: &rusqlite::Error) -> bool {
    matches!(
        cause.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// Returns whether SQLite failed because the disk is full or the file has reached a size limit. SQLite reports a size
/// limit as a disk error.
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

/// Creates the store file so that only its owner can access it, because it contains secrets.
fn make_private_file(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    // An error is ignored: the file may exist already, and otherwise SQLite reports the error later.
    drop(options.open(path));
}

/// Opens a connection to a store file, and applies the settings of stores.
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
    // With this setting, SQLite plans each statement only once. Otherwise it plans again for other bound values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Returns the SQLite URI of a store file that no process changes. Special characters in the path are escaped.
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
    // This setting must be the first, because SQLite ignores it after the first table is created.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    use_wal(connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    connection.pragma_update(None, "temp_store", "MEMORY")
}

/// Switches the store file to a write-ahead log. The function tries several times, because SQLite does not wait if
/// another process does the same.
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

/// Checks a file. Returns true if it is a store with a known layout, and false if it is still empty.
///
/// The check is a single statement, because another process could create the tables between two statements.
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
    // Another process may create the tables at the same time, so the lock is taken first. The process that gets it
    // later finds the tables.
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

/// The tables of a store. In `log`, the columns `meta` and `rest` come last, so that reading a key or metadata does
/// not read the pages of a large body.
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

/// Returns the newest revision that a write ever got. Its row may be a deletion, or may be compacted.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<Revision> {
    connection
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'log'")?
        .query_row([], |row| row.get(0))
}

/// Checks the store file for commits of other processes, until the store is closed.
fn follow(store: Weak<Inner>, connection: Connection, mut seen: Revision) {
    let version = || {
        connection
            .pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))
            .ok()
    };
    // The first round always reads the changes, because another process may have written after the file was opened.
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

/// Checks a store file that is read without locks for writes of other processes. If another process opens the file
/// for writing, it is read with locks from then on.
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

/// Returns the changes in the log after a revision.
fn news(connection: &Connection, seen: Revision) -> rusqlite::Result<News> {
    // One read transaction is used, so that the newest revision and the rows are from the same state.
    let transaction = connection.unchecked_transaction()?;
    news_within(&transaction, seen)
}

/// Returns the changes in the log after a revision. The caller must have begun a transaction.
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
