//! What the read model is asked.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Key, Pin, ReleaseRow, SnapshotRow, Source, World};
use crate::api::DeploymentPipeline;
use crate::api::Environment;
use crate::api::environment::{DeploymentPipelineSpec, PipelineFault};

impl World {
    /// Returns a pin by name.
    pub fn pin(&self, key: &Key) -> Option<&Pin> {
        self.pins.get(key)
    }

    /// Returns the pin of a component in an environment.
    pub fn pin_of(&self, component: &Key, environment: &str) -> Option<&Pin> {
        let name = self.components.get(component)?.pins.get(environment)?;
        self.pins.get(&Key {
            namespace: component.namespace.clone(),
            name: name.clone(),
        })
    }

    /// Returns the pins of a component, in the order of their environments' names.
    pub fn pins_of(&self, component: &Key) -> impl Iterator<Item = &Pin> {
        let of_component = self.components.get(component);
        let names = of_component
            .into_iter()
            .flat_map(|found| found.pins.values());
        let namespace = component.namespace.clone();
        names.filter_map(move |name| {
            self.pins.get(&Key {
                namespace: namespace.clone(),
                name: name.clone(),
            })
        })
    }

    /// Returns a release by name.
    pub fn release(&self, key: &Key) -> Option<&ReleaseRow> {
        self.releases.get(key)
    }

    /// Returns the releases of a component, newest first.
    pub fn releases_of(&self, component: &Key) -> impl Iterator<Item = &ReleaseRow> {
        let of_component = self.components.get(component);
        let names = of_component
            .into_iter()
            .flat_map(|found| found.releases.iter());
        let namespace = component.namespace.clone();
        names.filter_map(move |Reverse((_, name))| {
            self.releases.get(&Key {
                namespace: namespace.clone(),
                name: name.clone(),
            })
        })
    }

    /// Returns every release that is known, in no order.
    pub fn all_releases(&self) -> impl Iterator<Item = &ReleaseRow> {
        self.releases.rows.values().map(|(_, row)| row)
    }

    /// Returns the releases that name no component, by name.
    pub fn unowned_releases(&self) -> impl Iterator<Item = &ReleaseRow> {
        self.unowned.iter().filter_map(|key| self.releases.get(key))
    }

    /// Returns a snapshot by name.
    pub fn snapshot(&self, key: &Key) -> Option<&SnapshotRow> {
        self.snapshots.get(key)
    }

    /// Returns every snapshot that is known, in no order.
    pub fn all_snapshots(&self) -> impl Iterator<Item = &SnapshotRow> {
        self.snapshots.rows.values().map(|(_, row)| row)
    }

    /// Returns the snapshots of a component, by environment, newest first.
    pub fn snapshots_of(&self, component: &Key) -> impl Iterator<Item = (&str, Vec<&SnapshotRow>)> {
        let of_component = self.components.get(component);
        let by_environment = of_component.into_iter().flat_map(|found| &found.snapshots);
        let namespace = component.namespace.clone();
        by_environment.map(move |(environment, places)| {
            let rows = places.iter().filter_map(|Reverse((_, name))| {
                self.snapshots.get(&Key {
                    namespace: namespace.clone(),
                    name: name.clone(),
                })
            });
            (&**environment, rows.collect())
        })
    }

    /// Returns the names of the pins that name a release, also one that is not there.
    pub fn pins_naming(&self, release: &Key) -> impl Iterator<Item = &str> {
        let named = self.named_by.get(release);
        named.into_iter().flatten().map(|name| &**name)
    }

    /// Returns the component that an object is of.
    pub fn component_of(&self, source: Source, key: &Key) -> Option<&Arc<str>> {
        match source {
            Source::Pins => self.pin(key).map(|pin| &pin.component),
            Source::Releases => self.release(key)?.component.as_ref(),
            Source::Snapshots => self.snapshot(key).map(|snapshot| &snapshot.component),
            Source::Environments | Source::Pipelines => None,
        }
    }

    /// Returns the namespaces that hold a component, an environment or a pipeline.
    pub fn namespaces(&self) -> BTreeSet<&Arc<str>> {
        let components = self.components.keys();
        let environments = self.environments.rows.keys();
        let all = components
            .chain(environments)
            .chain(self.pipelines.rows.keys());
        all.map(|key| &key.namespace).collect()
    }

    /// Returns the environments of a namespace that something is pinned in, whether they are there or not.
    pub fn pinned_environments(&self, namespace: &str) -> BTreeSet<&Arc<str>> {
        let here = self.components.iter();
        let here = here.filter(|(key, _)| &*key.namespace == namespace);
        here.flat_map(|(_, of_component)| of_component.pins.keys())
            .collect()
    }

    /// Tells whether a component has a pin, a release or a snapshot.
    pub fn has_component(&self, component: &Key) -> bool {
        self.components.contains_key(component)
    }

    /// Returns every pin that is known, in no order.
    pub fn all_pins(&self) -> impl Iterator<Item = &Pin> {
        self.pins.rows.values().map(|(_, row)| row)
    }

    /// Returns the components that have a pin, a release or a snapshot, in no order.
    pub fn components(&self) -> impl Iterator<Item = &Key> {
        self.components.keys()
    }

    /// Returns an environment.
    pub fn environment(&self, key: &Key) -> Option<&Environment> {
        self.environments.get(key)
    }

    /// Returns the names of the environments of a namespace, in order.
    pub fn environment_names(&self, namespace: &str) -> Vec<String> {
        let here = self.environments.rows.keys();
        let mut names: Vec<String> = here
            .filter(|key| &*key.namespace == namespace)
            .map(|key| key.name.to_string())
            .collect();
        names.sort();
        names
    }

    /// Returns the pipelines of a namespace, by name. One is allowed.
    pub fn pipelines_in(&self, namespace: &str) -> Vec<(&Key, &DeploymentPipelineSpec)> {
        let rows = self.pipelines.rows.iter();
        let here = rows.filter(|(key, _)| &*key.namespace == namespace);
        let mut found: Vec<_> = here
            .map(|(key, (_, pipeline))| (key, &pipeline.spec))
            .collect();
        found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        found
    }

    /// Returns the pipeline of a namespace; of several, the first by name.
    pub fn pipeline(&self, namespace: &str) -> Option<&DeploymentPipelineSpec> {
        self.pipeline_object(namespace)
            .map(|pipeline| &pipeline.spec)
    }

    /// Returns the DeploymentPipeline of a namespace with its metadata.
    pub fn pipeline_object(&self, namespace: &str) -> Option<&DeploymentPipeline> {
        let here = |(key, _): &(&Key, &(u32, DeploymentPipeline))| &*key.namespace == namespace;
        let found = self.pipelines.rows.iter().filter(here);
        let first = found.min_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        first.map(|(_, (_, pipeline))| pipeline)
    }

    /// Returns the fault for which bowline refuses promotions in a namespace.
    pub fn pipeline_fault(&self, namespace: &str) -> Option<PipelineFault> {
        let found = self.pipelines_in(namespace);
        match found.as_slice() {
            [] => None,
            [(key, pipeline)] => {
                let cycle = pipeline.order().err()?;
                let pipeline = key.name.to_string();
                Some(PipelineFault::Cycle { pipeline, cycle })
            }
            several => Some(PipelineFault::Several {
                namespace: namespace.to_owned(),
                pipelines: several
                    .iter()
                    .map(|(key, _)| key.name.to_string())
                    .collect(),
            }),
        }
    }

    /// Returns how many releases of their component a pin is behind another; None where one of the two
    /// releases is not there.
    pub fn behind(&self, pin: &Pin, ahead: &Pin, now: Timestamp) -> Option<usize> {
        let component = Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        };
        let (own, other) = (pin.effective_release(now), ahead.effective_release(now));
        self.releases_between(&component, own, other)
    }

    /// Returns by how many releases of their component one is older than another; 0 where it is newer, and
    /// None where one of them is not there.
    pub fn releases_between(&self, component: &Key, one: &str, other: &str) -> Option<usize> {
        let releases = &self.components.get(component)?.releases;
        let place = |wanted: &str| {
            let mut names = releases.iter().map(|Reverse((_, name))| &**name);
            names.position(|name| name == wanted)
        };
        Some(place(one)?.saturating_sub(place(other)?))
    }
}
