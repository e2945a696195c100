//! Writes to the store. One thread makes all writes of this process: it puts all waiting writes into one transaction,
//! because each transaction syncs the disk.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use super::{
    Event, Inner, Key, News, Revision, Row, Store, StoreError, compact, open, read, waiting,
};

/// The precondition of a write: the expected state of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The object does not exist.
    Absent,
    /// The newest revision of the object is this revision.
    Revision(Revision),
}

/// A change of one object to store.
#[derive(Debug)]
pub enum Write {
    /// Creates or replaces an object.
    Put(Put),
    /// Deletes an object.
    Remove(Remove),
}

/// A write that creates or replaces an object.
#[derive(Debug)]
pub struct Put {
    /// The key of the object.
    pub key: Key,
    /// The precondition of the write.
    pub expect: Expect,
    /// The object's uid.
    pub uid: String,
    /// Whether the object has a deletionTimestamp, so that it is being deleted.
    pub deleting: bool,
    /// The object's `metadata` as JSON, without the resourceVersion.
    pub meta: Vec<u8>,
    /// All fields of the object except apiVersion, kind and metadata, as JSON.
    pub rest: Vec<u8>,
    /// The uids that this write adds to the ownerReferences.
    pub owners_gained: Vec<String>,
    /// The uids that this write removes from the ownerReferences.
    pub owners_lost: Vec<String>,
    /// The follow-up work to store with this write.
    pub follow_ups: Vec<FollowUp>,
}

/// A write that deletes an object.
#[derive(Debug)]
pub struct Remove {
    /// The key of the object.
    pub key: Key,
    /// The revision that the object must have.
    pub expect: Revision,
    /// The object's uid.
    pub uid: String,
    /// The last metadata of the object, for the deletion event of watches.
    pub meta: Vec<u8>,
    /// The last state of the object without its metadata, for the deletion event of watches.
    pub rest: Vec<u8>,
    /// The uids in the object's ownerReferences.
    pub owners: Vec<String>,
}

/// An object of an origin, such as a file, whose state is copied to the store.
#[derive(Debug)]
pub struct Fill {
    /// The key of the object.
    pub key: Key,
    /// The object's uid.
    pub uid: String,
    /// The object's metadata (without the resourceVersion) and the rest of the object; None if the object does not
    /// exist in the origin.
    pub state: Option<(Vec<u8>, Vec<u8>)>,
}

/// Work that must be done after a write, such as deleting the dependents of a deleted owner. It is stored in the
/// transaction of the write, so that a crash does not lose it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FollowUp {
    /// The kind of the work.
    pub what: Follow,
    /// The object that the work is about: its uid, its key or its name.
    pub subject: String,
    /// The revision of the last write that requested this work; set by the store. If a newer write requests the same
    /// work while it is being done, the work is kept and done again.
    pub since: Revision,
}

/// The kinds of follow-up work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Follow {
    /// Delete the dependents of a deleted owner. The subject is the owner's uid.
    Dependents,
    /// Delete the dependents of an owner, then the owner. The subject is the owner's key.
    Foreground,
    /// Remove the owner from its dependents, then delete the owner. The subject is the owner's key.
    Orphan,
    /// Delete all objects in a namespace, then the namespace. The subject is the name of the namespace.
    Namespace,
    /// Delete all objects of a CustomResourceDefinition, then the definition. The subject is the name of the
    /// definition.
    Definition,
}

impl Follow {
    const NAMES: [(Follow, &str); 5] = [
        (Follow::Dependents, "dependents"),
        (Follow::Foreground, "foreground"),
        (Follow::Orphan, "orphan"),
        (Follow::Namespace, "namespace"),
        (Follow::Definition, "definition"),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.into_iter().find(|(what, _)| *what == self);
        found.map_or("", |(_, name)| name)
    }
}

impl FollowUp {
    pub(super) fn stored(what: &str, subject: String, since: Revision) -> Option<FollowUp> {
        let (what, _) = Follow::NAMES.into_iter().find(|(_, name)| *name == what)?;
        Some(FollowUp {
            what,
            subject,
            since,
        })
    }
}

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(super) enum Job {
    Write(Write, Reply<Revision>),
    Fill(Vec<Fill>, Reply<usize>),
    Done(FollowUp, Reply<()>),
    Installed(u64, Reply<()>),
    Compact(Reply<Revision>),
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Job::Write(Write::Put(put), _) => put.meta.len() + put.rest.len(),
            Job::Write(Write::Remove(remove), _) => remove.meta.len() + remove.rest.len(),
            Job::Fill(..) => BATCH_BYTES,
            _ => 0,
        }
    }
}

/// The largest number of writes in one transaction.
const BATCH: usize = 128;
/// The size in bytes above which a transaction takes no more writes, because it must fit into memory and into the
/// write-ahead log.
const BATCH_BYTES: usize = 4 << 20;
/// The size of the write-ahead log in bytes above which the writer waits for readers to checkpoint it.
const WAL_LIMIT: u64 = 16 << 20;
/// The longest time that the writer waits for readers to checkpoint the write-ahead log.
const WAL_WAIT: Duration = Duration::from_secs(1);
/// The time without writes after which compaction begins.
const IDLE: Duration = Duration::from_millis(200);
/// The pause between two compaction steps while no writes arrive.
const STEP: Duration = Duration::from_millis(5);

impl Store {
    /// Stores one change if its precondition is true, and returns the change's revision. The change is then on disk.
    pub async fn write(&self, write: Write) -> Result<Revision, StoreError> {
        self.ask(|reply| Job::Write(write, reply)).await
    }

    /// Copies the states of objects from an origin to the store, in one transaction. Returns how many of the stored
    /// objects changed.
    pub async fn fill(&self, fills: Vec<Fill>) -> Result<usize, StoreError> {
        self.ask(|reply| Job::Fill(fills, reply)).await
    }

    /// Removes finished follow-up work from the store.
    pub async fn done(&self, work: FollowUp) -> Result<(), StoreError> {
        self.ask(|reply| Job::Done(work, reply)).await
    }

    /// Records which objects are installed. `mark` is their digest, which [`Store::installed`] returns.
    pub async fn set_installed(&self, mark: u64) -> Result<(), StoreError> {
        self.ask(|reply| Job::Installed(mark, reply)).await
    }

    /// Removes the whole history. A watch that starts at an older revision then fails, so its client must list again.
    pub async fn compact(&self) -> Result<Revision, StoreError> {
        self.ask(Job::Compact).await
    }

    async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.0
            .jobs
            .send(job(reply))
            .map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }
}

/// Makes the writes of this process, until the store is dropped.
pub(super) fn run(
    store: Weak<Inner>,
    mut connection: Connection,
    inbox: Receiver<Job>,
    mut seen: Revision,
) {
    let mut wait = IDLE;
    let mut wal_limit = WAL_LIMIT;
    loop {
        let first = match inbox.recv_timeout(wait) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(inner) = store.upgrade() else { return };
        let Some(first) = first else {
            wait = match compact::tidy(&mut connection, &inner.bounds, false) {
                Ok(true) => STEP,
                Ok(false) => {
                    // The write-ahead log is checkpointed, because only this makes the store file smaller.
                    fold_wal(&mut connection, STEP).ok();
                    Duration::from_secs(3600)
                }
                Err(cause) => {
                    tracing::warn!(%cause, "compaction failed; it is tried again");
                    IDLE
                }
            };
            continue;
        };
        wait = IDLE;
        let mut bytes = first.bytes();
        let mut jobs = vec![first];
        while jobs.len() < BATCH
            && bytes < BATCH_BYTES
            && let Ok(job) = inbox.try_recv()
        {
            bytes += job.bytes();
            jobs.push(job);
        }
        commit(&mut connection, &inner, jobs, &mut seen);
        if let Err(cause) = compact::tidy(&mut connection, &inner.bounds, true) {
            tracing::warn!(%cause, "compaction failed; it is tried again");
        }
        wal_limit = bound_wal(&mut connection, &inner.path, wal_limit);
    }
}

/// Checkpoints the write-ahead log if it is larger than `limit` bytes. Returns the limit for the next call.
///
/// SQLite checkpoints the log itself at 4 MiB, but only when no reader is active. With many short readers, there may
/// be no such moment.
fn bound_wal(connection: &mut Connection, path: &Path, limit: u64) -> u64 {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let size = std::fs::metadata(wal).map_or(0, |file| file.len());
    if size <= limit {
        return limit;
    }
    match fold_wal(connection, WAL_WAIT) {
        Ok(true) => WAL_LIMIT,
        // A reader is slower than the readers of this crate are. To avoid a wait at every write, the next checkpoint
        // is tried when the log has grown more.
        _ => size + WAL_LIMIT,
    }
}

/// Moves the changes in the write-ahead log to the store file and truncates the log. Returns false if readers
/// prevented this.
fn fold_wal(connection: &mut Connection, patience: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(patience)?;
    let busy: rusqlite::Result<bool> =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    connection.busy_handler(Some(waiting::wait_for_lock))?;
    Ok(!busy?)
}

/// Sends the answer for one request, after its transaction was committed or has failed.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Makes a batch of jobs in one transaction, and answers their requests.
fn commit(connection: &mut Connection, inner: &Inner, jobs: Vec<Job>, seen: &mut Revision) {
    let mut answers: Vec<Answer> = Vec::new();
    let mut compactions = Vec::new();
    match write_all(connection, jobs, *seen, &mut answers, &mut compactions) {
        Ok(written) => {
            *seen = written.newest;
            inner.publish(written);
            answers.into_iter().for_each(|answer| answer(Ok(())));
            for reply in compactions {
                let done = compact::everything(connection)
                    .and_then(|done| fold_wal(connection, WAL_WAIT).map(|_| done))
                    .map_err(|cause| inner.failed(cause));
                drop(reply.send(done));
            }
        }
        Err(cause) => {
            let cause = Arc::new(cause);
            for answer in answers {
                answer(Err(StoreError::Sqlite {
                    path: inner.path.clone(),
                    cause: cause.clone(),
                }));
            }
        }
    }
}

fn write_all(
    connection: &mut Connection,
    jobs: Vec<Job>,
    seen: Revision,
    answers: &mut Vec<Answer>,
    compactions: &mut Vec<Reply<Revision>>,
) -> rusqlite::Result<News> {
    // The answers are sent after the transaction, so that its failure reaches all requests.
    let mut writes = Vec::new();
    let mut fills = Vec::new();
    let mut finished = Vec::new();
    let mut mark = None;
    for job in jobs {
        match job {
            Job::Write(write, reply) => {
                let (outcome, settled) = std::sync::mpsc::channel();
                answers.push(Box::new(move |fate| {
                    let answer =
                        fate.and_then(|()| settled.recv().unwrap_or(Err(StoreError::Closed)));
                    drop(reply.send(answer));
                }));
                writes.push((write, outcome));
            }
            Job::Fill(states, reply) => {
                let (outcome, settled) = std::sync::mpsc::channel();
                answers.push(Box::new(move |fate| {
                    let answer = fate.and_then(|()| settled.recv().map_err(|_| StoreError::Closed));
                    drop(reply.send(answer));
                }));
                fills.push((states, outcome));
            }
            Job::Done(work, reply) => {
                answers.push(Box::new(move |fate| drop(reply.send(fate))));
                finished.push(work);
            }
            Job::Installed(number, reply) => {
                answers.push(Box::new(move |fate| drop(reply.send(fate))));
                mark = Some(number);
            }
            Job::Compact(reply) => compactions.push(reply),
        }
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut batch = Batch::begin(&transaction, seen)?;
    for (write, outcome) in writes {
        drop(outcome.send(batch.store(write)?));
    }
    for (states, outcome) in fills {
        let mut news = 0;
        for state in states {
            news += usize::from(batch.fill(state)?);
        }
        let _ = outcome.send(news);
    }
    for work in finished {
        transaction
            .prepare_cached(
                "DELETE FROM follow_up WHERE what = ?1 AND subject = ?2 AND since = ?3",
            )?
            .execute(params![work.what.name(), work.subject, work.since])?;
    }
    if let Some(mark) = mark {
        transaction.execute(
            "UPDATE state SET value = ?1 WHERE name = 'installed'",
            [mark],
        )?;
    }
    let written = batch.finish()?;
    transaction.commit()?;
    Ok(written)
}

/// An open transaction, with the changes and the sizes that it will publish.
struct Batch<'a> {
    connection: &'a Connection,
    news: News,
    live: i64,
    dead: i64,
}

impl<'a> Batch<'a> {
    /// Begins a transaction. Its changes begin with those of other processes: they have older revisions, and when
    /// readers see a revision, all changes up to it must be known.
    fn begin(connection: &'a Connection, seen: Revision) -> rusqlite::Result<Self> {
        Ok(Batch {
            news: open::news_within(connection, seen)?,
            connection,
            live: 0,
            dead: 0,
        })
    }

    /// Makes one write. The precondition is checked first, so that a refused write changes nothing.
    fn store(&mut self, write: Write) -> rusqlite::Result<Result<Revision, StoreError>> {
        match write {
            Write::Put(put) => self.put(put),
            Write::Remove(remove) => self.remove(remove),
        }
    }

    fn put(&mut self, put: Put) -> rusqlite::Result<Result<Revision, StoreError>> {
        let current = match self.current(&put.key, put.expect)? {
            Ok(current) => current,
            Err(conflict) => return Ok(Err(conflict)),
        };
        if put.expect == Expect::Absent
            && let Err(refused) = self.namespace_takes(&put.key)?
        {
            return Ok(Err(refused));
        }
        let event = match put.expect {
            Expect::Absent => Event::Created,
            Expect::Revision(_) => Event::Updated,
        };
        let revision = self.append(&put.key, event, put.deleting, current, &put.meta, &put.rest)?;
        if event == Event::Created {
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO alive VALUES (?1)")?
                .execute([&put.uid])?;
        }
        for owner in &put.owners_lost {
            self.disown(owner, &put.key)?;
        }
        for owner in &put.owners_gained {
            if !self.exists("SELECT 1 FROM alive WHERE uid = ?1", owner)? {
                // The new owner does not exist, so the collector must delete this object.
                self.remember(Follow::Dependents, owner)?;
            }
            self.connection
                .prepare_cached("INSERT OR IGNORE INTO owned VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![
                    owner,
                    put.key.resource.as_ref(),
                    put.key.namespace,
                    put.key.name
                ])?;
        }
        for work in &put.follow_ups {
            self.remember(work.what, &work.subject)?;
        }
        Ok(Ok(revision))
    }

    fn remove(&mut self, remove: Remove) -> rusqlite::Result<Result<Revision, StoreError>> {
        let expect = Expect::Revision(remove.expect);
        let current = match self.current(&remove.key, expect)? {
            Ok(current) => current,
            Err(conflict) => return Ok(Err(conflict)),
        };
        let revision = self.append(
            &remove.key,
            Event::Deleted,
            true,
            current,
            &remove.meta,
            &remove.rest,
        )?;
        for owner in &remove.owners {
            self.disown(owner, &remove.key)?;
        }
        self.connection
            .prepare_cached("DELETE FROM alive WHERE uid = ?1")?
            .execute([&remove.uid])?;
        if self.exists("SELECT 1 FROM owned WHERE owner = ?1", &remove.uid)? {
            self.remember(Follow::Dependents, &remove.uid)?;
        }
        Ok(Ok(revision))
    }

    /// Copies the state of an object from an origin. Returns whether the stored object changed.
    fn fill(&mut self, fill: Fill) -> rusqlite::Result<bool> {
        let Fill { key, uid, state } = fill;
        let there = read::newest_row(self.connection, &key)?;
        let there = there.filter(|row| row.event != Event::Deleted);
        let replaced = there.as_ref().map(|row| {
            let size = row.meta.len() + row.rest.len() + compact::ROW_OVERHEAD;
            (row.revision, size as i64)
        });
        let (event, meta, rest) = match (state, there) {
            (Some((meta, rest)), Some(row)) if (&row.meta, &row.rest) == (&meta, &rest) => {
                return Ok(false);
            }
            (Some((meta, rest)), Some(_)) => (Event::Updated, meta, rest),
            (Some((meta, rest)), None) => (Event::Created, meta, rest),
            (None, Some(row)) => (Event::Deleted, row.meta, row.rest),
            (None, None) => return Ok(false),
        };
        let deleting = event == Event::Deleted;
        self.append(&key, event, deleting, replaced, &meta, &rest)?;
        let alive = match event {
            Event::Created => "INSERT OR IGNORE INTO alive VALUES (?1)",
            Event::Deleted => "DELETE FROM alive WHERE uid = ?1",
            Event::Updated => return Ok(true),
        };
        self.connection.prepare_cached(alive)?.execute([&uid])?;
        Ok(true)
    }

    /// Checks the precondition of a write. Returns the revision and the size of the object's current row, or the
    /// conflict.
    fn current(
        &self,
        key: &Key,
        expect: Expect,
    ) -> rusqlite::Result<Result<Option<(Revision, i64)>, StoreError>> {
        let found: Option<(Revision, i64, i64)> = self
            .connection
            .prepare_cached(
                "SELECT id, event, size FROM log
                 WHERE resource = ?1 AND namespace = ?2 AND name = ?3 ORDER BY id DESC LIMIT 1",
            )?
            .query_row(
                params![key.resource.as_ref(), key.namespace, key.name],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .optional()?;
        let there = found
            .filter(|(_, event, _)| *event != Event::Deleted as i64)
            .map(|(revision, _, size)| (revision, size));
        match (there, expect) {
            (None, Expect::Absent) => Ok(Ok(None)),
            (Some(found), Expect::Revision(revision)) if found.0 == revision => Ok(Ok(Some(found))),
            (None, _) => Ok(Err(StoreError::Conflict(None))),
            (Some(_), _) => {
                let row: Option<Row> = read::newest_row(self.connection, key)?;
                Ok(Err(StoreError::Conflict(row.map(Box::new))))
            }
        }
    }

    /// Checks that the namespace of a key exists and is not being deleted. This happens in the transaction of the
    /// write, so that the namespace cannot change in between.
    fn namespace_takes(&self, key: &Key) -> rusqlite::Result<Result<(), StoreError>> {
        if key.namespace.is_empty() {
            return Ok(Ok(()));
        }
        let found: Option<(i64, bool)> = self
            .connection
            .prepare_cached(
                "SELECT event, deleting FROM log WHERE resource = '/namespaces'
                 AND namespace = '' AND name = ?1 ORDER BY id DESC LIMIT 1",
            )?
            .query_row([&key.namespace], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        Ok(match found {
            Some((event, false)) if event != Event::Deleted as i64 => Ok(()),
            Some((event, true)) if event != Event::Deleted as i64 => {
                Err(StoreError::Namespace { terminating: true })
            }
            _ => Err(StoreError::Namespace { terminating: false }),
        })
    }

    fn append(
        &mut self,
        key: &Key,
        event: Event,
        deleting: bool,
        replaced: Option<(Revision, i64)>,
        meta: &[u8],
        rest: &[u8],
    ) -> rusqlite::Result<Revision> {
        let size = (meta.len() + rest.len() + compact::ROW_OVERHEAD) as i64;
        let revision = self.news.newest + 1;
        self.connection
            .prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?
            .execute(params![
                revision,
                key.resource.as_ref(),
                key.namespace,
                key.name,
                event as i64,
                deleting,
                replaced.map_or(0, |(id, _)| id),
                size,
                meta,
                rest
            ])?;
        self.news.newest = revision;
        self.news.changed.insert(key.resource.clone(), revision);
        if let Some((_, old)) = replaced {
            self.live -= old;
            self.dead += old;
        }
        match event {
            Event::Deleted => self.dead += size,
            _ => self.live += size,
        }
        Ok(revision)
    }

    fn exists(&self, sql: &str, uid: &str) -> rusqlite::Result<bool> {
        self.connection.prepare_cached(sql)?.exists([uid])
    }

    fn disown(&self, owner: &str, key: &Key) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "DELETE FROM owned
                 WHERE owner = ?1 AND resource = ?2 AND namespace = ?3 AND name = ?4",
            )?
            .execute(params![
                owner,
                key.resource.as_ref(),
                key.namespace,
                key.name
            ])
            .map(drop)
    }

    fn remember(&self, what: Follow, subject: &str) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO follow_up VALUES (?1, ?2, ?3)")?
            .execute(params![what.name(), subject, self.news.newest])
            .map(drop)
    }

    fn finish(self) -> rusqlite::Result<News> {
        let mut add = self
            .connection
            .prepare_cached("UPDATE state SET value = max(0, value + ?2) WHERE name = ?1")?;
        for (name, amount) in [("live", self.live), ("dead", self.dead)] {
            if amount != 0 {
                add.execute(params![name, amount])?;
            }
        }
        Ok(self.news)
    }
}
