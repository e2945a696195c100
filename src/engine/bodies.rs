//! A cache of object bodies. The read model keeps objects without their specs; a body is the spec of such an object.
//! The cache fetches each body once, and keeps it compressed within a budget of bytes.
//!
//! The cache keeps only kinds whose spec never changes, so a body in the cache is never out of date. If another
//! object gets the same name, it has another uid. Labels and annotations can change, so the cache does not keep them.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, Shared, WeakShared};
use kube::api::Api;
use kube::core::object::HasSpec;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The budget of [`Bodies::default`], in compressed bytes.
pub const BUDGET: usize = 32 << 20;

/// The zstd level. YAML bodies shrink to about a fifth; higher levels save little space and need
/// much more time.
const LEVEL: i32 = 3;

#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("{kind} {name} no longer exists")]
    Gone { kind: String, name: String },
    /// The caller asked for a uid, but an object with another uid has this name now.
    #[error("{kind} {name} was deleted and created again")]
    Replaced { kind: String, name: String },
    /// The cached spec of the object cannot be compressed or parsed.
    #[error("cannot read {kind} {name}: {why}")]
    Broken {
        kind: String,
        name: String,
        /// The error of the parser.
        why: String,
    },
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// The key of a body in the cache: it identifies one object by its uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: String,
    namespace: String,
    name: String,
    uid: String,
}

type Answer = Result<Arc<[u8]>, Arc<BodyError>>;
type Fetch = BoxFuture<'static, Answer>;

pub struct Bodies {
    shelf: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    budget: usize,
    used: usize,
    /// The number of lookups so far. Each body keeps the number of its last lookup, so the cache can drop the least
    /// recently used body.
    uses: u64,
    kept: HashMap<Key, (u64, Arc<[u8]>)>,
    by_use: BTreeMap<u64, Key>,
    /// The fetches that at least one caller waits for.
    underway: HashMap<Key, WeakShared<Fetch>>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self::new(BUDGET)
    }
}

impl Bodies {
    /// Creates an empty cache with a budget in compressed bytes.
    pub fn new(budget: usize) -> Self {
        let shelf = Shelf {
            budget,
            ..Shelf::default()
        };
        Self {
            shelf: Mutex::new(shelf),
        }
    }

    pub fn used(&self) -> usize {
        self.shelf().used
    }

    /// Returns the spec of an object from the cache, or else from the server. If `uid` is None, the function first
    /// asks the server for the uid of the object with this name.
    pub async fn spec<K>(
        &self,
        client: &Client,
        namespace: &str,
        name: &str,
        uid: Option<&str>,
    ) -> Result<K::Spec, Arc<BodyError>>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + HasSpec
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + 'static,
        K::Spec: Serialize + DeserializeOwned,
    {
        let kind = K::kind(&()).into_owned();
        let api: Api<K> = Api::namespaced(client.clone(), namespace);
        let uid = match uid {
            Some(uid) => uid.to_owned(),
            None => present_uid(&api, &kind, name).await?,
        };
        let key = Key {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid,
        };
        let wanted = key.clone();
        let packed = self.packed(&key, || async move { fetched(&api, &wanted).await });
        unpacked(&packed.await?).map_err(|why| {
            Arc::new(BodyError::Broken {
                kind,
                name: name.to_owned(),
                why,
            })
        })
    }

    /// Adds the spec of a planned object to the cache. The object does not exist on the server yet, so its uid is
    /// empty in the cache.
    pub fn suppose<K>(&self, namespace: &str, object: &K)
    where
        K: Resource<DynamicType = ()> + HasSpec,
        K::Spec: Serialize,
    {
        let key = Key {
            kind: K::kind(&()).into_owned(),
            namespace: namespace.to_owned(),
            name: object.name_any(),
            uid: String::new(),
        };
        // If the spec cannot be compressed, a later lookup reports it as missing.
        if let Ok(bytes) = packed(object.spec()) {
            self.shelf().keep(&key, bytes.into());
        }
    }

    /// Returns a compressed body: from the cache, or else from `fetch`. Concurrent callers share one fetch.
    async fn packed<F>(&self, key: &Key, fetch: impl FnOnce() -> F) -> Answer
    where
        F: Future<Output = Result<Vec<u8>, BodyError>> + Send + 'static,
    {
        let underway = {
            let mut shelf = self.shelf();
            if let Some(kept) = shelf.find(key) {
                return Ok(kept);
            }
            match shelf.underway.get(key).and_then(WeakShared::upgrade) {
                Some(underway) => underway,
                None => shelf.begin(key, fetch()),
            }
        };
        let answer = underway.await;
        self.shelf().finish(key, &answer);
        answer
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    fn find(&mut self, key: &Key) -> Option<Arc<[u8]>> {
        let (used, bytes) = self.kept.get_mut(key)?;
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, key.clone());
        Some(bytes.clone())
    }

    fn begin(
        &mut self,
        key: &Key,
        fetch: impl Future<Output = Result<Vec<u8>, BodyError>> + Send + 'static,
    ) -> Shared<Fetch> {
        let fetch: Fetch = fetch
            .map(|answer| answer.map(Arc::from).map_err(Arc::new))
            .boxed();
        let shared = fetch.shared();
        self.underway.retain(|_, fetch| fetch.upgrade().is_some());
        if let Some(weak) = shared.downgrade() {
            self.underway.insert(key.clone(), weak);
        }
        shared
    }

    /// Ends a fetch and adds the fetched body to the cache. Each caller that waited for the fetch calls this; all
    /// calls except the first do nothing.
    fn finish(&mut self, key: &Key, answer: &Answer) {
        if self.underway.remove(key).is_some()
            && let Ok(bytes) = answer
        {
            self.keep(key, bytes.clone());
        }
    }

    fn keep(&mut self, key: &Key, bytes: Arc<[u8]>) {
        if bytes.len() > self.budget || self.kept.contains_key(key) {
            return;
        }
        while self.used + bytes.len() > self.budget {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            if let Some((_, gone)) = self.kept.remove(&oldest) {
                self.used -= gone.len();
            }
        }
        self.uses += 1;
        self.used += bytes.len();
        self.by_use.insert(self.uses, key.clone());
        self.kept.insert(key.clone(), (self.uses, bytes));
    }
}

async fn present_uid<K>(api: &Api<K>, kind: &str, name: &str) -> Result<String, Arc<BodyError>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let found = api.get_metadata_opt(name).await;
    let found = found.map_err(|error| Arc::new(error.into()))?;
    let gone = || BodyError::Gone {
        kind: kind.to_owned(),
        name: name.to_owned(),
    };
    let found = found.ok_or_else(|| Arc::new(gone()))?;
    Ok(found.uid().unwrap_or_default())
}

/// Fetches an object from the server and compresses its spec.
async fn fetched<K>(api: &Api<K>, key: &Key) -> Result<Vec<u8>, BodyError>
where
    K: Resource<DynamicType = ()> + HasSpec + Clone + std::fmt::Debug + DeserializeOwned,
    K::Spec: Serialize,
{
    let (kind, name) = (key.kind.clone(), key.name.clone());
    let Some(object) = api.get_opt(&name).await? else {
        return Err(BodyError::Gone { kind, name });
    };
    if object.uid().unwrap_or_default() != key.uid {
        return Err(BodyError::Replaced { kind, name });
    }
    packed(object.spec()).map_err(|error| BodyError::Broken {
        kind,
        name,
        why: error.to_string(),
    })
}

fn packed(spec: &impl Serialize) -> Result<Vec<u8>, io::Error> {
    let json = serde_json::to_vec(spec)?;
    zstd::encode_all(json.as_slice(), LEVEL)
}

fn unpacked<S: DeserializeOwned>(bytes: &[u8]) -> Result<S, String> {
    let json = zstd::decode_all(bytes).map_err(|error| error.to_string())?;
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;
    use serde_json::{Value, json};
    use tokio::sync::Notify;

    use super::*;

    fn key(name: &str) -> Key {
        Key {
            kind: "Release".into(),
            namespace: "shop".into(),
            name: name.into(),
            uid: format!("uid-{name}"),
        }
    }

    fn gone() -> BodyError {
        BodyError::Gone {
            kind: "Release".into(),
            name: "a".into(),
        }
    }

    #[test]
    fn a_body_is_small_while_kept_and_the_same_afterwards() {
        let lines: Vec<Value> = (0..2000)
            .map(|at| json!({"name": format!("SETTING_{at}"), "value": "on"}))
            .collect();
        let body = Value::from(lines);
        let packed = packed(&body).unwrap();
        assert!(
            packed.len() * 5 < body.to_string().len(),
            "{}",
            packed.len()
        );
        assert_eq!(unpacked::<Value>(&packed), Ok(body));
        for broken in [&b""[..], b"nonsense", &packed[..packed.len() / 2]] {
            assert!(unpacked::<Value>(broken).is_err());
        }
        let other_form = zstd::encode_all(&b"[1]"[..], LEVEL).unwrap();
        assert!(unpacked::<String>(&other_form).is_err());
    }

    #[tokio::test]
    async fn many_askers_make_one_fetch() {
        let bodies = Arc::new(Bodies::new(100));
        let (fetches, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let ask = |bodies: Arc<Bodies>| {
            let (fetches, ready) = (fetches.clone(), ready.clone());
            async move {
                let fetch = || async move {
                    fetches.fetch_add(1, Ordering::Relaxed);
                    ready.notified().await;
                    Ok(vec![7; 10])
                };
                bodies.packed(&key("a"), fetch).await
            }
        };
        // If the caller that started the fetch is dropped, the other callers still get the answer.
        let first = ask(bodies.clone());
        let mut first = Box::pin(first);
        assert!(first.as_mut().now_or_never().is_none());
        let asked: Vec<_> = (0..8).map(|_| ask(bodies.clone())).collect();
        let mut all = Box::pin(futures::future::join_all(asked));
        assert!(all.as_mut().now_or_never().is_none());
        drop(first);
        ready.notify_one();
        for answer in all.await {
            assert_eq!(&*answer.unwrap(), &[7; 10]);
        }
        assert_eq!(&*ask(bodies.clone()).await.unwrap(), &[7; 10]);
        assert_eq!(fetches.load(Ordering::Relaxed), 1);
        assert_eq!(bodies.used(), 10);
    }

    #[tokio::test]
    async fn a_failure_is_told_to_all_who_wait_and_not_kept() {
        let bodies = Bodies::new(100);
        let fetch = || async {
            tokio::task::yield_now().await;
            Err(gone())
        };
        let (a, b) = (key("a"), key("a"));
        let (one, two) = tokio::join!(bodies.packed(&a, fetch), bodies.packed(&b, fetch));
        assert!(Arc::ptr_eq(&one.unwrap_err(), &two.unwrap_err()));
        let again = bodies.packed(&a, || async { Ok(vec![1]) }).await;
        assert_eq!(&*again.unwrap(), &[1]);
    }

    #[tokio::test]
    async fn a_fetch_that_nobody_waits_for_any_more_is_begun_again() {
        let bodies = Bodies::new(100);
        let key = key("a");
        let never = Box::pin(bodies.packed(&key, futures::future::pending));
        assert!(never.now_or_never().is_none());
        let again = bodies.packed(&key, || async { Ok(vec![1]) }).await;
        assert_eq!(&*again.unwrap(), &[1]);
        assert!(bodies.shelf().underway.is_empty());
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_the_last_used_stay(
            budget in 0usize..60,
            asked in proptest::collection::vec((0u8..12, 0usize..30), 0..60),
        ) {
            let bodies = Bodies::new(budget);
            // A body never changes, so its compressed size is the same at each fetch.
            let mut sizes: HashMap<u8, usize> = HashMap::new();
            let mut recent: Vec<u8> = Vec::new();
            for (name, size) in asked {
                let size = *sizes.entry(name).or_insert(size);
                let key = key(&name.to_string());
                let fetched = Arc::new(AtomicUsize::new(0));
                let counter = fetched.clone();
                let fetch = || async move {
                    counter.fetch_add(1, Ordering::Relaxed);
                    Ok(vec![name; size])
                };
                let answer = bodies.packed(&key, fetch).now_or_never();
                prop_assert_eq!(answer.unwrap().unwrap().to_vec(), vec![name; size]);
                // The cache must contain the most recently used bodies, as many as its budget allows.
                let was_kept = recent.contains(&name);
                prop_assert_eq!(fetched.load(Ordering::Relaxed), usize::from(!was_kept));
                recent.retain(|other| *other != name);
                if size <= budget {
                    while recent.iter().map(|name| sizes[name]).sum::<usize>() + size > budget {
                        recent.remove(0);
                    }
                    recent.push(name);
                }
                let used: usize = recent.iter().map(|name| sizes[name]).sum();
                prop_assert_eq!(bodies.used(), used);
                prop_assert!(used <= budget);
            }
        }
    }
}
