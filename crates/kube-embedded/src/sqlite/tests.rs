//! Compares the store with a simple model, and tests what it guarantees for watches and for the size of the file.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const KEYS: usize = 6;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A store whose file is deleted when the test ends.
struct Fresh {
    store: Store,
    folder: tempfile::TempDir,
}

impl Fresh {
    fn new() -> Fresh {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        Fresh { store, folder }
    }

    /// Opens the same store file with its own connections and threads, like another process.
    fn other_process(&self) -> Store {
        Store(open::start(&self.folder.path().join("store.db")).unwrap())
    }

    fn file_bytes(&self) -> u64 {
        let connection = open::connect(self.store.path(), open::Access::Write).unwrap();
        let pragma = |name| {
            connection
                .pragma_query_value(None, name, |row| row.get::<_, u64>(0))
                .unwrap()
        };
        pragma("page_count") * pragma("page_size")
    }

    /// Runs the work that the writer does while it is idle, until nothing is left.
    fn rest(&self) {
        let mut connection = open::connect(self.store.path(), open::Access::Write).unwrap();
        while compact::tidy(&mut connection, &self.store.0.bounds, false).unwrap() {}
    }
}

/// Returns a key for a number. The keys belong to two resources, one of them in two namespaces.
fn key(index: usize) -> Key {
    let (resource, namespace) = match index % 3 {
        0 => ("/widgets", ""),
        1 => ("/widgets", "a"),
        _ => ("x/gadgets", "a"),
    };
    Key {
        resource: resource.into(),
        namespace: namespace.into(),
        name: format!("n{}", index / 3),
    }
}

fn put(key: Key, expect: Expect, rest: Vec<u8>) -> Write {
    Write::Put(Put {
        uid: format!("uid-{}-{}", key.namespace, key.name),
        key,
        expect,
        deleting: false,
        meta: b"{}".to_vec(),
        rest,
        owners_gained: Vec::new(),
        owners_lost: Vec::new(),
        follow_ups: Vec::new(),
    })
}

fn remove(key: Key, expect: Revision, rest: Vec<u8>) -> Write {
    Write::Remove(Remove {
        uid: format!("uid-{}-{}", key.namespace, key.name),
        key,
        expect,
        meta: b"{}".to_vec(),
        rest,
        owners: Vec::new(),
    })
}

fn scope(key: &Key, one: bool) -> Scope {
    Scope {
        resource: key.resource.clone(),
        namespace: one.then(|| key.namespace.clone()),
    }
}

/// Creates the namespace `a`, in which the test objects are.
async fn namespace(store: &Store) -> Revision {
    let key = Key {
        resource: "/namespaces".into(),
        namespace: String::new(),
        name: "a".into(),
    };
    let write = put(key, Expect::Absent, b"{}".to_vec());
    store.write(write).await.unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    /// A write to a key. The boolean is true if the write expects the current revision, and false for a wrong one.
    Put(usize, bool, u8),
    Remove(usize, bool),
    Compact,
    /// Reads a list of the key's resource, `back` revisions before the newest revision.
    Page {
        of: usize,
        one: bool,
        back: u64,
        rows: usize,
        bytes: usize,
        bodies: bool,
    },
    Changes {
        of: usize,
        one: bool,
        back: u64,
        previous: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..KEYS, prop::bool::weighted(0.8), any::<u8>()).prop_map(|(k, right, size)| Step::Put(k, right, size)),
        3 => (0..KEYS, prop::bool::weighted(0.8)).prop_map(|(k, right)| Step::Remove(k, right)),
        1 => Just(Step::Compact),
        4 => (0..KEYS, any::<bool>(), 0..12u64, 0..4usize, prop_oneof![Just(1usize), Just(400), Just(1 << 20)], any::<bool>())
            .prop_map(|(of, one, back, rows, bytes, bodies)| Step::Page { of, one, back, rows, bytes, bodies }),
        4 => (0..KEYS, any::<bool>(), 0..12u64, any::<bool>())
            .prop_map(|(of, one, back, previous)| Step::Changes { of, one, back, previous }),
    ];
    prop::collection::vec(step, 1..40)
}

/// A simple model of the store: all changes that were ever made, and the newest compacted revision.
#[derive(Default)]
struct Model {
    log: Vec<(Revision, Key, Event, Vec<u8>)>,
    newest: Revision,
    compacted: Revision,
}

impl Model {
    /// Returns the objects of a scope at a revision, each with its own revision.
    fn at(&self, scope: &Scope, at: Revision) -> BTreeMap<(String, String), (Revision, Vec<u8>)> {
        let mut found = BTreeMap::new();
        for (revision, key, event, rest) in &self.log {
            if *revision > at || !inside(scope, key) {
                continue;
            }
            let place = (key.namespace.clone(), key.name.clone());
            match event {
                Event::Deleted => found.remove(&place),
                _ => found.insert(place, (*revision, rest.clone())),
            };
        }
        found
    }

    fn current(&self, key: &Key) -> Option<(Revision, Vec<u8>)> {
        let all = self.at(&scope(key, true), Revision::MAX);
        all.get(&(key.namespace.clone(), key.name.clone())).cloned()
    }

    fn record(&mut self, revision: Revision, key: Key, event: Event, rest: Vec<u8>) {
        assert!(revision > self.newest, "revisions only grow");
        self.newest = revision;
        self.log.push((revision, key, event, rest));
    }
}

fn inside(scope: &Scope, key: &Key) -> bool {
    key.resource == scope.resource && scope.namespace.as_ref().is_none_or(|n| *n == key.namespace)
}

async fn run(steps: Vec<Step>) {
    let fresh = Fresh::new();
    let store = &fresh.store;
    let mut model = Model {
        newest: namespace(store).await,
        ..Model::default()
    };
    for step in steps {
        match step {
            Step::Put(index, right, size) => {
                let key = key(index);
                let current = model.current(&key);
                let expect = match (&current, right) {
                    (Some((revision, _)), true) => Expect::Revision(*revision),
                    (None, true) | (Some(_), false) => Expect::Absent,
                    (None, false) => Expect::Revision(model.newest),
                };
                let rest = vec![b'x'; usize::from(size) * 40];
                match store.write(put(key.clone(), expect, rest.clone())).await {
                    Ok(revision) => {
                        assert!(right);
                        let event = match current {
                            None => Event::Created,
                            Some(_) => Event::Updated,
                        };
                        model.record(revision, key, event, rest);
                    }
                    Err(StoreError::Conflict(there)) => {
                        assert!(!right);
                        assert_eq!(there.map(|row| (row.revision, row.rest)), current);
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Remove(index, right) => {
                let key = key(index);
                let current = model.current(&key);
                let expect = match &current {
                    Some((revision, _)) if right => *revision,
                    _ => model.newest + 1,
                };
                let rest = current.clone().unwrap_or_default().1;
                match store.write(remove(key.clone(), expect, rest.clone())).await {
                    Ok(revision) => {
                        assert!(right && current.is_some());
                        model.record(revision, key, Event::Deleted, rest);
                    }
                    Err(StoreError::Conflict(_)) => assert!(!right || current.is_none()),
                    Err(other) => panic!("{other}"),
                }
            }
            Step::Compact => {
                model.compacted = store.compact().await.unwrap();
                assert_eq!(model.compacted, model.newest);
            }
            Step::Page {
                of,
                one,
                back,
                rows,
                bytes,
                bodies,
            } => {
                let scope = scope(&key(of), one);
                let at = model.newest.saturating_sub(back);
                compare_pages(store, &model, scope, at, rows, bytes, bodies).await;
            }
            Step::Changes {
                of,
                one,
                back,
                previous,
            } => {
                let scope = scope(&key(of), one);
                let after = model.newest.saturating_sub(back);
                compare_changes(store, &model, scope, after, previous).await;
            }
        }
    }
    for index in 0..KEYS {
        let found = store.get(&key(index)).await.unwrap();
        let found = found.map(|row| (row.revision, row.rest));
        assert_eq!(found, model.current(&key(index)));
    }
    // The recorded sizes must be exact, because compaction uses them.
    let row = |rest: &[u8]| (rest.len() + 2 + compact::ROW_OVERHEAD) as u64;
    let mut live = row(b"{}");
    for index in 0..KEYS {
        live += model.current(&key(index)).map_or(0, |(_, rest)| row(&rest));
    }
    assert_eq!(store.sizes().await.unwrap().0, live);
    store.compact().await.unwrap();
    assert_eq!(store.sizes().await.unwrap(), (live, 0));
}

async fn compare_pages(
    store: &Store,
    model: &Model,
    scope: Scope,
    at: Revision,
    rows: usize,
    bytes: usize,
    bodies: bool,
) {
    let expected: Vec<_> = model.at(&scope, at).into_iter().collect();
    let mut request = PageRequest {
        scope,
        after: None,
        at: Some(at),
        rows,
        bytes,
        bodies,
    };
    let mut found = Vec::new();
    loop {
        let page = match store.page(request.clone()).await {
            Ok(page) => page,
            Err(StoreError::Compacted { asked, compacted }) => {
                assert_eq!((asked, compacted), (at, model.compacted));
                assert!(at < model.compacted);
                return;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(at >= model.compacted);
        assert_eq!(page.revision, at);
        assert!(page.rows.len() <= rows);
        for row in &page.rows {
            let place = (row.key.namespace.clone(), row.key.name.clone());
            request.after = Some(place.clone());
            found.push((place, (row.revision, row.rest.clone())));
        }
        if rows == 0 {
            assert_eq!(page.more, !expected.is_empty());
            return;
        }
        assert!(!page.rows.is_empty() || !page.more, "no page stands still");
        if !page.more {
            break;
        }
    }
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(place, (revision, rest))| (place, (revision, if bodies { rest } else { vec![] })))
        .collect();
    assert_eq!(found, expected);
    if let Some((place, _)) = expected.first() {
        let left = store.count_after(request.scope, place.clone(), at).await;
        assert_eq!(left.unwrap(), expected.len() as u64 - 1);
    }
}

async fn compare_changes(
    store: &Store,
    model: &Model,
    scope: Scope,
    after: Revision,
    previous: bool,
) {
    let changes = match store.changes(scope.clone(), after, previous, true).await {
        Ok(changes) => changes,
        Err(StoreError::Compacted { .. }) => return assert!(after < model.compacted),
        Err(other) => panic!("{other}"),
    };
    assert!(after >= model.compacted);
    assert_eq!((changes.upto, changes.more), (model.newest, false));
    let expected: Vec<_> = model
        .log
        .iter()
        .filter(|(revision, key, ..)| *revision > after && inside(&scope, key))
        .collect();
    assert_eq!(changes.rows.len(), expected.len());
    for ((row, before), (revision, key, event, rest)) in changes.rows.iter().zip(expected) {
        assert_eq!(
            (row.revision, &row.key, row.event, &row.rest),
            (*revision, key, *event, rest)
        );
        let place = (key.namespace.clone(), key.name.clone());
        let was = model.at(&scope, revision - 1).remove(&place);
        let before = before.as_ref().map(|row| (row.revision, row.rest.clone()));
        assert_eq!(before, was.filter(|_| previous));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_a_map_with_a_history(steps in steps()) {
        runtime().block_on(run(steps));
    }
}

#[tokio::test]
async fn what_another_process_wrote_is_known_before_our_own_later_write() {
    let fresh = Fresh::new();
    let (ours, theirs) = (&fresh.store, fresh.other_process());
    for round in 0..20 {
        let create = |resource: &str| {
            let key = Key {
                resource: resource.into(),
                namespace: String::new(),
                name: format!("n{round}"),
            };
            put(key, Expect::Absent, b"{}".to_vec())
        };
        let first = theirs.write(create("/widgets")).await.unwrap();
        let second = ours.write(create("x/gadgets")).await.unwrap();
        assert!(second > first);
        assert!(*ours.head().borrow() >= second);
        // A watch that sees the newest revision relies on this: `touched` includes all earlier changes.
        assert!(ours.touched("/widgets") >= first, "round {round}");
    }
}

#[test]
fn many_may_open_a_file_that_is_not_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let file = folder.path().join(format!("{round}.db"));
        std::thread::scope(|scope| {
            let open = || open::start(&file).map(drop);
            let opening: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
            for opened in opening {
                opened.join().unwrap().unwrap();
            }
        });
    }
}

#[tokio::test]
async fn what_was_compacted_unseen_touches_every_resource() {
    let fresh = Fresh::new();
    let (ours, theirs) = (&fresh.store, fresh.other_process());
    let mut head = ours.head();
    let created = put(key(0), Expect::Absent, b"{}".to_vec());
    let created = theirs.write(created).await.unwrap();
    head.wait_for(|head| *head >= created).await.unwrap();
    let gone = theirs.write(remove(key(0), created, b"{}".to_vec()));
    let gone = gone.await.unwrap();
    theirs.compact().await.unwrap();
    head.wait_for(|head| *head >= gone).await.unwrap();
    assert!(ours.touched(&key(0).resource) >= gone);
    let late = ours.changes(scope(&key(0), false), created, false, true);
    assert!(matches!(
        late.await,
        Err(StoreError::Compacted { asked, .. }) if asked == created
    ));
}

#[tokio::test]
async fn what_was_written_while_the_file_was_opened_is_seen() {
    let fresh = Fresh::new();
    for round in 0..10 {
        let theirs = fresh.other_process();
        let key = Key {
            name: format!("n{round}"),
            ..key(0)
        };
        let write = put(key, Expect::Absent, b"{}".to_vec());
        let revision = fresh.store.write(write).await.unwrap();
        let mut head = theirs.head();
        head.wait_for(|head| *head >= revision).await.unwrap();
        assert!(theirs.touched("/widgets") >= revision);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_go_away_leave_no_connections_behind() {
    let fresh = Fresh::new();
    for _ in 0..200 {
        let store = fresh.store.clone();
        let asked = tokio::spawn(async move { store.get(&key(0)).await.map(drop) });
        asked.abort();
        drop(asked.await);
    }
    fresh.store.get(&key(0)).await.unwrap();
    let idle = fresh.store.0.idle.lock().unwrap().len();
    assert!(idle <= 4, "{idle} connections");
}

#[tokio::test]
async fn of_many_that_expect_the_same_state_one_wins() {
    let fresh = Fresh::new();
    let other = fresh.other_process();
    let created = put(key(0), Expect::Absent, b"{}".to_vec());
    let mut current = fresh.store.write(created).await.unwrap();
    for _ in 0..10 {
        let writes = (0..40).map(|writer| {
            let store = if writer % 2 == 0 {
                &fresh.store
            } else {
                &other
            };
            store.write(put(key(0), Expect::Revision(current), b"{}".to_vec()))
        });
        let answers = futures::future::join_all(writes).await;
        let won: Vec<Revision> = answers
            .iter()
            .filter_map(|a| a.as_ref().ok())
            .copied()
            .collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        current = won[0];
        for answer in answers {
            let Err(StoreError::Conflict(Some(there))) = answer else {
                continue;
            };
            assert_eq!(there.revision, current);
        }
    }
}

#[tokio::test]
async fn work_asked_for_again_is_not_struck() {
    let fresh = Fresh::new();
    let store = &fresh.store;
    let ask = |name: &str| {
        let Write::Put(mut put) = put(
            Key {
                name: name.into(),
                ..key(0)
            },
            Expect::Absent,
            b"{}".to_vec(),
        ) else {
            unreachable!()
        };
        put.follow_ups.push(FollowUp {
            what: Follow::Namespace,
            subject: "a".into(),
            since: 0,
        });
        Write::Put(put)
    };
    store.write(ask("first")).await.unwrap();
    let todo = store.follow_ups().await.unwrap();
    assert_eq!(todo.len(), 1);
    store.write(ask("second")).await.unwrap();
    store.done(todo[0].clone()).await.unwrap();
    let again = store.follow_ups().await.unwrap();
    assert_eq!(again.len(), 1);
    store.done(again[0].clone()).await.unwrap();
    assert!(store.follow_ups().await.unwrap().is_empty());
}

/// Creates `count` objects of one size, then overwrites or deletes them as `pattern` says.
async fn churn(fresh: &Fresh, size: usize, count: usize, pattern: &str) {
    let store = &fresh.store;
    let key = |index: usize| Key {
        name: format!("n{index:06}"),
        ..key(0)
    };
    let body = vec![b'x'; size];
    let create = |index| store.write(put(key(index), Expect::Absent, body.clone()));
    let created = futures::future::try_join_all((0..count).map(create)).await;
    let mut revisions = created.unwrap();
    let rounds = if pattern == "overwrite all" { 4 } else { 1 };
    for _ in 0..rounds {
        // The objects that are kept are distributed evenly, so that every page of the file contains live and replaced
        // rows.
        let chosen: Vec<usize> = (0..count)
            .filter(|i| pattern == "overwrite all" || i % 5 != 3)
            .collect();
        for part in chosen.chunks(128) {
            let writes = part.iter().map(|&index| {
                let expect = revisions[index];
                store.write(match pattern {
                    "delete most" => remove(key(index), expect, body.clone()),
                    _ => put(key(index), Expect::Revision(expect), body.clone()),
                })
            });
            let written = futures::future::try_join_all(writes).await.unwrap();
            for (&index, revision) in part.iter().zip(written) {
                revisions[index] = revision;
            }
        }
    }
}

#[test]
fn the_file_stays_within_twice_the_live_data() {
    const SLACK: u64 = 6 << 20;
    let full = std::env::var_os("KUBE_EMBEDDED_FULL").is_some();
    let volume = if full { 48 << 20 } else { 8 << 20 };
    for pattern in ["overwrite all", "overwrite most", "delete most"] {
        for size in [100, 700, 2_000, 5_000, 100_000] {
            let fresh = Fresh::new();
            let count = volume / (size + 300);
            runtime().block_on(churn(&fresh, size, count, pattern));
            fresh.rest();
            let (live, dead) = runtime().block_on(fresh.store.sizes()).unwrap();
            let file = fresh.file_bytes();
            println!(
                "{pattern}, {size} bytes: live {live}, dead {dead}, file {file}, {:.2}",
                file as f64 / live as f64
            );
            assert!(
                file <= 2 * live + SLACK,
                "{pattern}, {size} bytes: live {live}, dead {dead}, file {file}"
            );
        }
    }
}

#[tokio::test]
async fn the_write_ahead_log_is_bounded_however_busy_the_readers() {
    let fresh = Fresh::new();
    let body = vec![b'x'; 200_000];
    let write = put(key(0), Expect::Absent, body.clone());
    let mut revision = fresh.store.write(write).await.unwrap();
    // The two readers take turns so that at every moment at least one of them is reading.
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let path = fresh.store.path().to_owned();
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                let connect = || open::connect(&path, open::Access::Write).unwrap();
                let (a, b) = (connect(), connect());
                let begin = |c: &Connection| {
                    c.execute_batch("BEGIN").unwrap();
                    open::newest(c).unwrap();
                };
                begin(&a);
                while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                    begin(&b);
                    a.execute_batch("COMMIT").unwrap();
                    begin(&a);
                    b.execute_batch("COMMIT").unwrap();
                }
            });
            (stop, thread)
        })
        .collect();
    let wal = fresh.folder.path().join("store.db-wal");
    let mut largest = 0;
    for _ in 0..500 {
        let write = put(key(0), Expect::Revision(revision), body.clone());
        revision = fresh.store.write(write).await.unwrap();
        largest = largest.max(std::fs::metadata(&wal).unwrap().len());
    }
    for (stop, thread) in readers {
        drop(stop);
        thread.join().unwrap();
    }
    println!("largest write-ahead log: {largest} bytes for 100 MB of writes");
    assert!(largest < 48 << 20, "{largest}");
}

#[test]
fn a_long_wait_for_the_lock_of_another_process_reports_the_file() {
    let fresh = Fresh::new();
    let path = fresh.store.path().to_owned();
    let mut waits = waiting::long_waits();
    let other = open::connect(&path, open::Access::Write).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let opening = std::thread::spawn({
        let path = path.clone();
        move || open::start(&path).map(drop)
    });
    let reported = runtime().block_on(async {
        let report = waits.wait_for(|file| file.as_ref() == Some(&path));
        let limit = std::time::Duration::from_secs(15);
        tokio::time::timeout(limit, report).await.is_ok()
    });
    other.execute_batch("ROLLBACK").unwrap();
    assert!(reported, "nothing was reported");
    opening.join().unwrap().unwrap();
}
