//! Reads from the store: one object, a page of a list, or a page of the log.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, ffi, params};

use super::{Event, FollowUp, Inner, Key, Revision, Row, Store, StoreError, open, waiting};

/// The objects of one resource, in one namespace or in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The resource of the objects, as `{group}/{plural}`; the group is empty for core resources.
    pub resource: Arc<str>,
    /// The namespace of the objects; None for all namespaces.
    pub namespace: Option<String>,
}

/// The request for one page of a list.
#[derive(Clone, Debug)]
pub struct PageRequest {
    /// The resource and the namespace of the list.
    pub scope: Scope,
    /// The namespace and name of the object after which the page begins; None for the first page.
    pub after: Option<(String, String)>,
    /// The revision at which the list is read; None for the newest.
    pub at: Option<Revision>,
    /// The largest number of objects on the page.
    pub rows: usize,
    /// The size in bytes at which the page ends. Its first object may be larger.
    pub bytes: usize,
    /// Whether the page contains whole objects; false for only their metadata.
    pub bodies: bool,
}

/// A page of a list, sorted by namespace and name.
#[derive(Debug)]
pub struct Page {
    /// The objects on the page.
    pub rows: Vec<Row>,
    /// The revision at which the list was read.
    pub revision: Revision,
    /// Whether the list has more objects after this page.
    pub more: bool,
}

/// A page of the log: changes, sorted by revision.
#[derive(Debug)]
pub struct Changes {
    /// The changes, each with the state of its object before; None if the caller did not ask for it or there is none.
    pub rows: Vec<(Row, Option<Row>)>,
    /// The revision up to which this page contains all changes.
    pub upto: Revision,
    /// Whether the log has more revisions after `upto`.
    pub more: bool,
}

const CHANGE_ROWS: usize = 256;
const CHANGE_BYTES: usize = 4 << 20;
/// The largest number of revisions that one query reads. Revisions of other resources are counted too.
const CHANGE_SPAN: Revision = 16_384;

impl Store {
    /// Returns the newest state of an object; None if the object does not exist.
    pub async fn get(&self, key: &Key) -> Result<Option<Row>, StoreError> {
        let key = key.clone();
        // A single statement needs no transaction, so `query` is sufficient.
        self.query(move |connection| {
            let row = newest_row(connection, &key)?;
            Ok(Ok(row.filter(|row| row.event != Event::Deleted)))
        })
        .await
    }

    /// Reads one page of a list at the requested revision.
    pub async fn page(&self, request: PageRequest) -> Result<Page, StoreError> {
        self.read(move |connection| page(connection, &request))
            .await
    }

    /// Returns the number of objects in a scope at a revision that come after the namespace and name `after`.
    pub async fn count_after(
        &self,
        scope: Scope,
        after: (String, String),
        at: Revision,
    ) -> Result<u64, StoreError> {
        self.read(move |connection| {
            let sql = format!(
                "SELECT count(*) FROM ({}) WHERE event < 2",
                newest_of_each(scope.namespace.is_some(), "")
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let namespace = scope.namespace.as_deref().unwrap_or(&after.0);
            statement
                .query_row(
                    params![scope.resource.as_ref(), namespace, after.1, at],
                    |row| row.get(0),
                )
                .map(Ok)
        })
        .await
    }

    /// Reads a page of the changes in a scope after a revision, oldest first. With `with_previous`, also reads the
    /// state before each change; with `bodies`, reads whole objects.
    pub async fn changes(
        &self,
        scope: Scope,
        after: Revision,
        with_previous: bool,
        bodies: bool,
    ) -> Result<Changes, StoreError> {
        self.read(move |connection| changes(connection, &scope, after, with_previous, bodies))
            .await
    }

    /// Returns the keys of the objects that have an ownerReference to this uid.
    pub async fn dependents(&self, owner: &str) -> Result<Vec<Key>, StoreError> {
        let owner = owner.to_owned();
        self.read(move |connection| {
            connection
                .prepare_cached("SELECT resource, namespace, name FROM owned WHERE owner = ?1")?
                .query_map([owner], |row| {
                    Ok(Key {
                        resource: row.get::<_, String>(0)?.into(),
                        namespace: row.get(1)?,
                        name: row.get(2)?,
                    })
                })?
                .collect::<Result<_, _>>()
                .map(Ok)
        })
        .await
    }

    /// Returns the follow-up work of deletions that is not done yet.
    pub async fn follow_ups(&self) -> Result<Vec<FollowUp>, StoreError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT what, subject, since FROM follow_up")?;
            let rows = statement.query_map([], |row| {
                let what: String = row.get(0)?;
                Ok(FollowUp::stored(&what, row.get(1)?, row.get(2)?))
            })?;
            let found = rows
                .filter_map(Result::transpose)
                .collect::<Result<_, _>>()?;
            Ok(Ok(found))
        })
        .await
    }

    /// Returns two sizes in bytes: of the live data, and of the history, which compaction can remove.
    pub async fn sizes(&self) -> Result<(u64, u64), StoreError> {
        self.read(|connection| Ok(Ok((state(connection, "live")?, state(connection, "dead")?))))
            .await
    }

    /// Returns the digest of the objects that were installed last, as stored by [`Store::set_installed`]; 0 if
    /// nothing was installed.
    pub async fn installed(&self) -> Result<u64, StoreError> {
        self.query(|connection| state(connection, "installed").map(Ok))
            .await
    }

    /// Returns the newest revision in the store file. It may come from another process, because the function reads
    /// the file.
    pub async fn newest(&self) -> Result<Revision, StoreError> {
        self.query(|connection| open::newest(connection).map(Ok))
            .await
    }

    /// Returns the revision of a resource's newest change in the store file; 0 if it has no changes. The change may
    /// come from another process, because the function reads the file.
    pub async fn newest_of(&self, resource: &'static str) -> Result<Revision, StoreError> {
        self.query(move |connection| {
            connection
                .prepare_cached("SELECT coalesce(max(id), 0) FROM log WHERE resource = ?1")?
                .query_row([resource], |row| row.get(0))
                .map(Ok)
        })
        .await
    }

    /// Runs a query in a read transaction, so that all its statements read the same state of the store.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.query(|connection| {
            let _transaction = connection.unchecked_transaction()?;
            query(connection)
        })
        .await
    }

    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let turn = self
            .0
            .readers
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        tokio::task::spawn_blocking(move || {
            // The thread owns the permit, because the query continues even if its caller is cancelled.
            let _turn = turn;
            waiting::set_file(&store.0.path);
            let (access, outside) = store.0.access();
            let connection = match store.0.idle_connection() {
                Some(connection) => connection,
                None => {
                    open::connect(&store.0.path, access).map_err(|cause| store.failed(cause))?
                }
            };
            let answer = query(&connection);
            if store.0.access() == (access, outside) {
                let mut idle = store.0.idle.lock().unwrap_or_else(|e| e.into_inner());
                idle.push(connection);
            } else if access == open::Access::Frozen {
                // The file has changed during a query without locks, so the query may have read an incomplete write
                // and fails.
                let busy = ffi::Error::new(ffi::SQLITE_BUSY);
                let why = "somebody wrote to the file while it was read; try again".to_owned();
                let cause = rusqlite::Error::SqliteFailure(busy, Some(why));
                return Err(store.failed(cause));
            }
            answer.map_err(|cause| store.failed(cause))?
        })
        .await
        .map_err(|_| StoreError::Closed)?
    }
}

impl Inner {
    /// Returns how a connection accesses the store file now. If another process has opened a file that was read
    /// without locks, the file is read with locks from now on.
    fn access(&self) -> (open::Access, open::Outside) {
        let mut access = self.access.lock().unwrap_or_else(|e| e.into_inner());
        if access.0 == open::Access::Frozen {
            let now = open::Outside::of(&self.path);
            if now != access.1 {
                *access = (now.access(), now);
                self.idle.lock().unwrap_or_else(|e| e.into_inner()).clear();
            }
        }
        *access
    }

    fn idle_connection(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner()).pop()
    }
}

/// Reads a number from the table `state`, such as the size of the live data.
pub(super) fn state(connection: &Connection, name: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT value FROM state WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
}

/// Returns the newest row of a key; None if the key has none. The row may be a deletion.
pub(super) fn newest_row(connection: &Connection, key: &Key) -> rusqlite::Result<Option<Row>> {
    connection
        .prepare_cached(
            "SELECT id, event, previous, meta, rest FROM log
             WHERE resource = ?1 AND namespace = ?2 AND name = ?3 ORDER BY id DESC LIMIT 1",
        )?
        .query_row(
            params![key.resource.as_ref(), key.namespace, key.name],
            |row| {
                Ok(Row {
                    revision: row.get(0)?,
                    key: key.clone(),
                    event: event(row.get(1)?),
                    previous: row.get(2)?,
                    meta: json(row, 3)?,
                    rest: json(row, 4)?,
                })
            },
        )
        .optional()
}

/// Reads a column that contains JSON. Bytes that are not text are an error, because only a corrupt file contains
/// them.
fn json(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Vec<u8>> {
    let bytes: Vec<u8> = row.get(column)?;
    match std::str::from_utf8(&bytes) {
        Ok(_) => Ok(bytes),
        Err(cause) => Err(rusqlite::Error::Utf8Error(column, cause)),
    }
}

fn event(code: i64) -> Event {
    match code {
        0 => Event::Created,
        1 => Event::Updated,
        _ => Event::Deleted,
    }
}

/// Returns the SQL that selects the newest row of each key at a revision. It needs only the index, because in SQLite
/// a column next to max() has the value of the row with the maximum.
fn newest_of_each(one_namespace: bool, limit: &str) -> String {
    let range = if one_namespace {
        "namespace = ?2 AND name > ?3"
    } else {
        "(namespace, name) > (?2, ?3)"
    };
    format!(
        "SELECT max(id) AS id, event, namespace, name FROM log
         WHERE resource = ?1 AND {range} AND id <= ?4
         GROUP BY namespace, name ORDER BY namespace, name {limit}"
    )
}

fn page(
    connection: &Connection,
    request: &PageRequest,
) -> rusqlite::Result<Result<Page, StoreError>> {
    let newest = open::newest(connection)?;
    let at = request.at.unwrap_or(newest);
    if let Err(refused) = readable(connection, at, newest)? {
        return Ok(Err(refused));
    }
    let scope = &request.scope;
    let (mut namespace, mut name) = request.after.clone().unwrap_or_default();
    if let Some(only) = &scope.namespace {
        namespace.clone_from(only);
    }
    let sql = newest_of_each(scope.namespace.is_some(), "LIMIT ?5");
    let mut keys = connection.prepare_cached(&sql)?;
    let mut bodies = connection.prepare_cached(if request.bodies {
        "SELECT previous, meta, rest FROM log WHERE id = ?1"
    } else {
        "SELECT previous, meta, x'' FROM log WHERE id = ?1"
    })?;
    let mut found = Page {
        rows: Vec::new(),
        revision: at,
        more: false,
    };
    let mut bytes = 0;
    loop {
        // One more row than requested is read, to find out whether there is a next page.
        let wanted = request.rows.saturating_sub(found.rows.len()).clamp(15, 512) + 1;
        let batch: Vec<(Revision, i64, String, String)> = keys
            .query_map(
                params![scope.resource.as_ref(), namespace, name, at, wanted],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
            )?
            .collect::<Result<_, _>>()?;
        let last = batch.len() < wanted;
        for (id, code, ns, n) in batch {
            (namespace, name) = (ns.clone(), n.clone());
            if event(code) == Event::Deleted {
                continue;
            }
            if found.rows.len() >= request.rows || bytes >= request.bytes {
                found.more = true;
                return Ok(Ok(found));
            }
            let row = bodies.query_row([id], |row| {
                Ok(Row {
                    revision: id,
                    key: Key {
                        resource: scope.resource.clone(),
                        namespace: ns,
                        name: n,
                    },
                    event: event(code),
                    previous: row.get(0)?,
                    meta: json(row, 1)?,
                    rest: json(row, 2)?,
                })
            })?;
            bytes += row.meta.len() + row.rest.len();
            found.rows.push(row);
        }
        if last {
            return Ok(Ok(found));
        }
    }
}

fn readable(
    connection: &Connection,
    asked: Revision,
    newest: Revision,
) -> rusqlite::Result<Result<(), StoreError>> {
    if asked > newest {
        return Ok(Err(StoreError::Future { asked, newest }));
    }
    let compacted = state(connection, "compacted")?;
    if asked < compacted {
        return Ok(Err(StoreError::Compacted { asked, compacted }));
    }
    Ok(Ok(()))
}

fn changes(
    connection: &Connection,
    scope: &Scope,
    after: Revision,
    with_previous: bool,
    bodies: bool,
) -> rusqlite::Result<Result<Changes, StoreError>> {
    let newest = open::newest(connection)?;
    if let Err(refused) = readable(connection, after, newest)? {
        return Ok(Err(refused));
    }
    let rest = |table: &str| match bodies {
        true => format!("{table}.rest"),
        false => "x''".to_owned(),
    };
    let (columns, join) = match with_previous {
        true => (
            format!("p.event, p.previous, p.meta, {}", rest("p")),
            "LEFT JOIN log p ON p.id = l.previous",
        ),
        false => ("NULL, NULL, NULL, NULL".to_owned(), ""),
    };
    let only = if scope.namespace.is_some() {
        "AND l.namespace = ?3"
    } else {
        "AND ?3 IS NULL"
    };
    // The plus sign makes SQLite use the primary key instead of the index, so that it reads only new rows.
    let sql = format!(
        "SELECT l.id, l.namespace, l.name, l.event, l.previous, l.meta, {}, {columns}
         FROM log l {join} WHERE l.id > ?1 AND l.id <= ?4 AND +l.resource = ?2 {only} ORDER BY l.id LIMIT {CHANGE_ROWS}",
        rest("l")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let end = newest.min(after.saturating_add(CHANGE_SPAN));
    let mut rows = statement.query(params![
        after,
        scope.resource.as_ref(),
        scope.namespace,
        end
    ])?;
    let mut found = Changes {
        rows: Vec::new(),
        upto: end,
        more: end < newest,
    };
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let key = Key {
            resource: scope.resource.clone(),
            namespace: row.get(1)?,
            name: row.get(2)?,
        };
        let previous: Revision = row.get(4)?;
        let before = match row.get::<_, Option<i64>>(7)? {
            Some(code) => Some(Row {
                revision: previous,
                key: key.clone(),
                event: event(code),
                previous: row.get(8)?,
                meta: json(row, 9)?,
                rest: json(row, 10)?,
            }),
            None => None,
        };
        let change = Row {
            revision: row.get(0)?,
            key,
            event: event(row.get(3)?),
            previous,
            meta: json(row, 5)?,
            rest: json(row, 6)?,
        };
        bytes += change.meta.len() + change.rest.len();
        bytes += before
            .iter()
            .map(|b| b.meta.len() + b.rest.len())
            .sum::<usize>();
        let revision = change.revision;
        found.rows.push((change, before));
        if found.rows.len() == CHANGE_ROWS || bytes >= CHANGE_BYTES {
            found.upto = revision;
            found.more = revision < newest;
            break;
        }
    }
    Ok(Ok(found))
}
