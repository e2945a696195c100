//! The read model: typed tables of summaries. An event of a watch changes only the row of its
//! object.
//!
//! Watches write the read model, planners and screens read it. A subject registers a table of its
//! own type and the watches that fill it; this module has the environments and pipelines that all
//! subjects share. An event and a lookup need the same time for any number of objects. This module
//! does not talk to a server; [`feed`] does.

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

/// The objects that the watches reported, as summaries.
#[derive(Default)]
pub struct World {
    /// The names of namespaces, components and environments; equal names share one allocation.
    names: HashSet<Arc<str>>,
    /// The tables of the subjects, at most one of each type.
    tables: Vec<(TypeId, Box<dyn Any + Send + Sync>)>,
    environments: Table<Environment>,
    pipelines: Table<DeploymentPipeline>,
    /// The watched kinds, in the order of their registration.
    watched: Vec<Watched>,
    freshness: BTreeMap<Source, Freshness>,
}

/// A watched kind, by the plural word that messages use for its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source(pub &'static str);

impl Source {
    /// Environments.
    pub const ENVIRONMENTS: Self = Self("environments");
    /// DeploymentPipelines.
    pub const PIPELINES: Self = Self("pipelines");

    /// Returns the word for the objects of the kind.
    pub fn word(self) -> &'static str {
        self.0
    }
}

/// A kind that a watch follows.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The kind, by the word that messages use.
    pub source: Source,
    /// The API resource of the kind.
    pub kind: ApiResource,
    /// Whether the kind belongs to bowline. It is no problem if any other kind is absent or not
    /// readable.
    pub own: bool,
}

/// Whether the watch of a kind is up to date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// The first list is not complete.
    #[default]
    Loading,
    /// The watch runs.
    Live,
    /// The server does not have the kind; the watch starts when the server has it.
    Absent,
    /// The watch is disconnected.
    Stale {
        /// The time of the disconnection.
        since: Timestamp,
        /// The error of the watch.
        why: String,
        /// Whether the server denies the user the watch, so that a retry does not help.
        denied: bool,
    },
}

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// A list begins; the objects that it does not contain are deleted.
    Listing,
    /// An object of a list, or a changed object.
    Applied(K),
    /// A deleted object.
    Deleted(K),
    /// The list is complete.
    Listed,
}

impl World {
    /// Returns an empty read model.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty read model of the kinds that watches fill.
    pub fn watching(watched: Vec<Watched>) -> Self {
        Self {
            watched,
            ..Self::default()
        }
    }

    /// Returns the table of a subject; None if nothing was written to it yet.
    pub fn table<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let (_, table) = self
            .tables
            .iter()
            .find(|(id, _)| *id == TypeId::of::<T>())?;
        table.downcast_ref()
    }

    /// Returns the table of a subject for writing; an empty one the first time. Only watches call this.
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

    /// Returns the watched kinds, except the kinds of other programs that the user may not read.
    pub fn sources(&self) -> impl Iterator<Item = Source> {
        let readable = self.watched.iter();
        let readable = readable.filter(|watched| watched.own || !self.is_denied(watched.source));
        readable.map(|watched| watched.source)
    }

    /// Returns the API resource of a watched kind.
    pub fn kind(&self, source: Source) -> Option<&ApiResource> {
        let mut watched = self.watched.iter();
        let found = watched.find(|watched| watched.source == source);
        found.map(|watched| &watched.kind)
    }

    /// Records that the lists of some kinds are complete; for a read model that no watch fills.
    pub fn all_listed(&mut self, sources: &[Source]) {
        for source in sources {
            self.listed(*source);
        }
    }

    /// Records that the list of a kind is complete.
    pub fn listed(&mut self, source: Source) {
        self.freshness.insert(source, Freshness::Live);
        // Remove the names that no row uses any more.
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    /// Records that the watch of a kind is disconnected. The rows of the kind stay, although they
    /// may be out of date.
    pub fn cut_off(&mut self, source: Source, now: Timestamp, why: String, denied: bool) {
        let known = self.freshness.entry(source).or_default();
        let since = match known {
            Freshness::Stale { since, .. } => *since,
            _ => now,
        };
        *known = Freshness::Stale { since, why, denied };
    }

    /// Records that the server does not have a kind. Its objects were deleted with it.
    fn absent(&mut self, source: Source) {
        self.freshness.insert(source, Freshness::Absent);
    }

    /// Records that a watch runs again.
    pub fn live(&mut self, source: Source) {
        let known = self.freshness.entry(source).or_default();
        if matches!(known, Freshness::Stale { .. }) {
            *known = Freshness::Live;
        }
    }

    /// Returns whether the watch of a kind is up to date.
    pub fn freshness(&self, source: Source) -> &Freshness {
        self.freshness.get(&source).unwrap_or(&Freshness::Loading)
    }

    /// Returns why the watch of a kind is disconnected; None if it is not.
    pub fn why_stale(&self, source: Source) -> Option<&str> {
        match self.freshness(source) {
            Freshness::Stale { why, .. } => Some(why),
            _ => None,
        }
    }

    /// Returns whether the server does not have a kind.
    pub fn is_absent(&self, source: Source) -> bool {
        *self.freshness(source) == Freshness::Absent
    }

    /// Returns the kinds of bowline that the server does not have.
    pub fn absent_kinds(&self) -> Vec<String> {
        let own = self.watched.iter().filter(|watched| watched.own);
        let absent = own.filter(|watched| self.is_absent(watched.source));
        absent.map(|watched| watched.kind.kind.clone()).collect()
    }

    /// Returns whether each of some kinds is listed or absent.
    pub fn are_known(&self, sources: &[Source]) -> bool {
        let is_known = |source: &Source| match self.freshness(*source) {
            Freshness::Live | Freshness::Absent => true,
            Freshness::Loading | Freshness::Stale { .. } => false,
        };
        sources.iter().all(is_known)
    }

    /// Returns whether every watch runs. Ignores kinds of other programs that are absent or not
    /// readable.
    pub fn is_live(&self) -> bool {
        let is_own = |source: Source| {
            let mut watched = self.watched.iter();
            watched.any(|watched| watched.source == source && watched.own)
        };
        let is_no_problem = |source: Source| !is_own(source) && self.is_absent(source);
        self.sources()
            .all(|source| self.are_live(&[source]) || is_no_problem(source))
    }

    /// Returns whether no watch is loading or disconnected: every kind is up to date or absent.
    pub fn is_current(&self) -> bool {
        self.sources().all(|source| self.are_known(&[source]))
    }

    /// Returns whether the watches of all these kinds run.
    pub fn are_live(&self, sources: &[Source]) -> bool {
        let live = |source: &Source| *self.freshness(*source) == Freshness::Live;
        sources.iter().all(live)
    }

    /// Returns the shared allocation of a name.
    pub fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return known.clone();
        }
        let name: Arc<str> = text.into();
        self.names.insert(name.clone());
        name
    }

    /// Returns the key of an object.
    pub fn key(&self, object: &impl ResourceExt) -> Key {
        let namespace = object.namespace().unwrap_or_default();
        let known = self.names.get(namespace.as_str()).cloned();
        Key {
            namespace: known.unwrap_or_else(|| namespace.into()),
            name: object.name_any().into(),
        }
    }
}
