//! The Environments and DeploymentPipelines in the read model. They are in the engine because all kinds of subjects
//! use them.

use std::sync::Arc;

use super::{Event, Key, Source, World};
use crate::api::openchoreo::environment::{DeploymentPipelineSpec, PipelineFault};
use crate::api::{DeploymentPipeline, Environment};

impl World {
    /// Updates the Environments in the read model by a watch event.
    pub fn environments(&mut self, event: Event<Environment>) {
        match event {
            Event::Listing => self.environments.start_list(),
            Event::Applied(environment) => {
                let key = self.key(&environment);
                self.environments.put(key, environment);
            }
            Event::Deleted(environment) => {
                self.environments.remove(&self.key(&environment));
            }
            Event::Listed => {
                self.environments.remove_unlisted();
                self.listed(Source::ENVIRONMENTS);
            }
        }
    }

    /// Updates the DeploymentPipelines in the read model by a watch event.
    pub fn pipelines(&mut self, event: Event<DeploymentPipeline>) {
        match event {
            Event::Listing => self.pipelines.start_list(),
            Event::Applied(pipeline) => {
                let key = self.key(&pipeline);
                self.pipelines.put(key, pipeline);
            }
            Event::Deleted(pipeline) => {
                self.pipelines.remove(&self.key(&pipeline));
            }
            Event::Listed => {
                self.pipelines.remove_unlisted();
                self.listed(Source::PIPELINES);
            }
        }
    }

    /// Returns the namespaces with an Environment or a DeploymentPipeline; a namespace may occur several
    /// times.
    pub fn pipeline_namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        let environments = self.environments.iter().map(|(key, _)| key);
        let pipelines = self.pipelines.iter().map(|(key, _)| key);
        environments.chain(pipelines).map(|key| &key.namespace)
    }

    pub fn environment(&self, key: &Key) -> Option<&Environment> {
        self.environments.get(key)
    }

    /// Returns the names of the Environments whose workloads run in `namespace`. The order is undefined.
    pub fn environments_naming(&self, namespace: &str) -> impl Iterator<Item = &str> {
        let rows = self.environments.iter();
        let naming = rows.filter(move |(_, environment)| environment.spec.namespace == namespace);
        naming.map(|(key, _)| &*key.name)
    }

    /// Returns the names of the Environments in a namespace, sorted.
    pub fn environment_names(&self, namespace: &str) -> Vec<String> {
        let here = self.environments.iter().map(|(key, _)| key);
        let mut names: Vec<String> = here
            .filter(|key| &*key.namespace == namespace)
            .map(|key| key.name.to_string())
            .collect();
        names.sort();
        names
    }

    /// Returns the pipelines of a namespace, sorted by name. A namespace with several pipelines is a fault.
    pub fn pipelines_in(&self, namespace: &str) -> Vec<(&Key, &DeploymentPipelineSpec)> {
        let rows = self.pipelines.iter();
        let here = rows.filter(|(key, _)| &*key.namespace == namespace);
        let mut found: Vec<_> = here.map(|(key, pipeline)| (key, &pipeline.spec)).collect();
        found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        found
    }

    /// Returns the pipeline of a namespace; None if there is none. If there are several, returns the first by name.
    pub fn pipeline(&self, namespace: &str) -> Option<&DeploymentPipelineSpec> {
        self.pipeline_object(namespace)
            .map(|pipeline| &pipeline.spec)
    }

    /// Returns the DeploymentPipeline object of a namespace; None if there is none. If there are several, returns the
    /// first by name.
    pub fn pipeline_object(&self, namespace: &str) -> Option<&DeploymentPipeline> {
        let here = |(key, _): &(&Key, &DeploymentPipeline)| &*key.namespace == namespace;
        let found = self.pipelines.iter().filter(here);
        let first = found.min_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        first.map(|(_, pipeline)| pipeline)
    }

    /// Returns the fault of the pipeline because of which bowline refuses promotions in a namespace. None if the
    /// pipeline is valid or does not exist.
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
}
