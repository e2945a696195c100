//! The read model: tables with one row per object. Watches write it; planners and screens read it.
//!
//! The code of a subject registers a table of its own type and the watches that fill it. This module itself has only
//! the Environments and DeploymentPipelines. The cost of an event or a lookup does not depend on the number of
//! objects. This module sends no requests, because [`feed`] does that.

mod environments;
pub mod feed;
mod key;
pub mod raw;
mod table;

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::ApiResource;

use crate::api::{DeploymentPipeline, Environment};

pub use key::{Key, Labels};
pub use table::Table;

/// The read model: one row for each object that the watches have reported.
#[derive(Default)]
pub struct World {
    /// The names of namespaces, components and environments. Equal names share one allocation, to save memory.
    names: HashSet<Arc<str>>,
    /// The tables that subjects registered, at most one per type.
    tables: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
    environments: Table<Environment>,
    pipelines: Table<DeploymentPipeline>,
    /// The watched kinds, in the order of their registration.
    watched: Vec<Watched>,
    freshness: BTreeMap<Source, Freshness>,
}

/// A watched kind, identified by its plural word in messages, such as `environments`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub &'static str);

impl Source {
    /// The watched kind Environment.
    pub const ENVIRONMENTS: Self = Self("environments");
    /// The watched kind DeploymentPipeline.
    pub const PIPELINES: Self = Self("pipelines");

    /// Returns the plural word for the kind in messages.
    pub fn word(self) -> &'static str {
        self.0
    }
}

/// A kind that a watch follows, with its API resource.
#[derive(Clone, Debug)]
pub struct Watched {
    pub source: Source,
    pub kind: ApiResource,
    /// Whether bowline defines the kind. If another program defines it, the kind may be absent or unreadable for the
    /// user, which is no problem.
    pub own: bool,
}

/// Whether the rows of a watched kind are up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// The first list of the kind is not complete yet.
    #[default]
    Loading,
    /// The watch works, and the rows are up to date.
    Live,
    /// The server does not have the kind. When the server gets the kind, the watch starts.
    Absent,
    /// The watch is disconnected, so the rows may be out of date.
    Stale {
        /// The time at which the watch was disconnected.
        since: Timestamp,
        why: String,
        /// Whether the server denies the user this watch. Then a retry does not help.
        denied: bool,
    },
}

/// A watch event.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// A list begins. Objects that exist in the read model but are not in this list are deleted at its end.
    Listing,
    /// An object in a list, or an object that is new or has changed.
    Applied(K),
    /// An object was deleted.
    Deleted(K),
    Listed,
}

impl World {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty read model for these watched kinds.
    pub fn watching(watched: Vec<Watched>) -> Self {
        Self {
            watched,
            ..Self::default()
        }
    }

    /// Returns the table of type `T`; None if no watch has written to it yet.
    pub fn table<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let (_, table) = self
            .tables
            .iter()
            .find(|(id, _)| *id == TypeId::of::<T>())?;
        table.downcast_ref()
    }

    /// Returns the table of type `T` for writing, for watches only. The first call creates an empty table.
    pub fn table_mut<T: Default + Send + Sync + 'static>(&mut self) -> &mut T {
        let id = TypeId::of::<T>();
        let at = match self.tables.iter().position(|(known, _)| *known == id) {
            Some(at) => at,
            None => {
                self.tables.push((id, Box::<T>::default()));
                self.tables.len() - 1
            }
        };
        let (_, table) = &mut self.tables[at];
        table
            .downcast_mut()
            .expect("BUG: a table is stored under its own type")
    }

    fn is_denied(&self, source: Source) -> bool {
        matches!(
            self.freshness(source),
            Freshness::Stale { denied: true, .. }
        )
    }

    /// Returns the watched kinds, except kinds of other programs that the user may not read.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let readable = self.watched.iter();
        let readable = readable.filter(|watched| watched.own || !self.is_denied(watched.source));
        readable.map(|watched| watched.source)
    }

    /// Returns the API resource of a watched kind; None if no watch follows the kind.
    pub fn kind(&self, source: Source) -> Option<&ApiResource> {
        let mut watched = self.watched.iter();
        let found = watched.find(|watched| watched.source == source);
        found.map(|watched| &watched.kind)
    }

    /// Marks kinds as completely listed. For a read model that the caller fills without watches.
    pub fn all_listed(&mut self, sources: &[Source]) {
        for source in sources {
            self.listed(*source);
        }
    }

    /// Marks a kind as completely listed.
    pub fn listed(&mut self, source: Source) {
        self.freshness.insert(source, Freshness::Live);
        // Drop the shared names that no row uses any more.
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    /// Marks the watch of a kind as disconnected since `now`, with the error `why`. The rows stay, although they may
    /// be out of date.
    pub fn cut_off(&mut self, source: Source, now: Timestamp, why: String, denied: bool) {
        let known = self.freshness.entry(source).or_default();
        let since = match known {
            Freshness::Stale { since, .. } => *since,
            _ => now,
        };
        *known = Freshness::Stale { since, why, denied };
    }

    fn absent(&mut self, source: Source) {
        self.freshness.insert(source, Freshness::Absent);
    }

    /// Marks the disconnected watch of a kind as working again.
    pub fn live(&mut self, source: Source) {
        let known = self.freshness.entry(source).or_default();
        if matches!(known, Freshness::Stale { .. }) {
            *known = Freshness::Live;
        }
    }

    /// Returns whether the rows of a kind are up to date.
    pub fn freshness(&self, source: Source) -> &Freshness {
        self.freshness.get(&source).unwrap_or(&Freshness::Loading)
    }

    /// Returns the error of a disconnected watch; None if the watch is not disconnected.
    pub fn why_stale(&self, source: Source) -> Option<&str> {
        match self.freshness(source) {
            Freshness::Stale { why, .. } => Some(why),
            _ => None,
        }
    }

    pub fn is_absent(&self, source: Source) -> bool {
        *self.freshness(source) == Freshness::Absent
    }

    /// Returns the kinds that bowline defines and that the server does not have.
    pub fn absent_kinds(&self) -> Vec<String> {
        let own = self.watched.iter().filter(|watched| watched.own);
        let absent = own.filter(|watched| self.is_absent(watched.source));
        absent.map(|watched| watched.kind.kind.clone()).collect()
    }

    /// Returns whether all of `sources` are up to date or absent. If not, no action may depend on their rows.
    pub fn are_known(&self, sources: &[Source]) -> bool {
        let is_known = |source: &Source| match self.freshness(*source) {
            Freshness::Live | Freshness::Absent => true,
            Freshness::Loading | Freshness::Stale { .. } => false,
        };
        sources.iter().all(is_known)
    }

    /// Returns whether every watch works. Kinds of other programs may also be absent or unreadable for the user.
    pub fn is_live(&self) -> bool {
        let is_own = |source: Source| {
            let mut watched = self.watched.iter();
            watched.any(|watched| watched.source == source && watched.own)
        };
        let is_no_problem = |source: Source| !is_own(source) && self.is_absent(source);
        self.sources()
            .all(|source| self.are_live(&[source]) || is_no_problem(source))
    }

    /// Returns whether every kind is up to date or absent: no watch is loading or disconnected.
    pub fn is_current(&self) -> bool {
        self.sources().all(|source| self.are_known(&[source]))
    }

    /// Returns whether the watches of all `sources` work. The watch of an absent kind does not work.
    pub fn are_live(&self, sources: &[Source]) -> bool {
        let live = |source: &Source| *self.freshness(*source) == Freshness::Live;
        sources.iter().all(live)
    }

    /// Returns the shared allocation of a name. A new name is added to the shared names.
    pub fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return known.clone();
        }
        let name: Arc<str> = text.into();
        self.names.insert(name.clone());
        name
    }

    /// Returns the key of an object. If the namespace is already known, the key shares its allocation.
    pub fn key(&self, object: &impl ResourceExt) -> Key {
        let namespace = object.namespace().unwrap_or_default();
        let known = self.names.get(namespace.as_str()).cloned();
        Key {
            namespace: known.unwrap_or_else(|| namespace.into()),
            name: object.name_any().into(),
        }
    }
}
