//! What a plan would change in its environment: manifests before and after, object by object.
//!
//! Nothing is written. A release that cannot be rendered with the settings of the environment is found
//! here, before anything moves.

use std::sync::Arc;

use kube::Client;
use serde_json::Value;

use super::bodies::{Bodies, BodyError};
use super::catalog::{Catalog, CatalogError};
use super::diff::{self, Diff};
use super::plan::Item;
use crate::api::audit::ReleaseIdentity;
use crate::api::{Definitions, Release, digest};
use crate::render::{self, Inputs, Library, RenderError, Rendered};
use crate::resolve::git::Git;
use crate::resolve::{self, ResolveError};

/// What would change, and what was noticed on the way.
#[derive(Debug)]
pub struct Preview {
    /// The difference.
    pub diff: Diff,
    /// The hash of the manifests before and after, for the record.
    pub hash: String,
    /// What was noticed.
    pub warnings: Vec<String>,
}

/// Why a change cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The release does not fit the environment.
    #[error("release {release} does not fit {environment}: {error}")]
    DoesNotFit {
        /// The release.
        release: String,
        /// The environment.
        environment: String,
        /// Why.
        error: RenderError,
    },
    /// The release is of another component.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        /// The release.
        release: String,
        /// The component that was asked for.
        component: String,
        /// The component that it is of.
        owner: String,
    },
    /// The release cannot be resolved.
    #[error("release {release}: {error}")]
    Unresolved {
        /// The release.
        release: String,
        /// Why.
        error: ResolveError,
    },
    /// The release cannot be had.
    #[error(transparent)]
    Body(#[from] Arc<BodyError>),
    /// The environment or its settings cannot be had.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl PreviewError {
    /// Tells whether the release has no business there.
    pub fn is_of_another(&self) -> bool {
        matches!(self, Self::OfAnother { .. })
    }
}

/// Renders the releases of one namespace; one that is needed several times is fetched once.
pub struct Stage<'a> {
    client: Client,
    namespace: String,
    git: &'a Git,
    library: Library,
    bodies: Bodies,
}

impl<'a> Stage<'a> {
    /// Makes a stage that has fetched nothing yet.
    pub fn new(client: &Client, namespace: &str, git: &'a Git) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            git,
            library: Library::new(),
            bodies: Bodies::default(),
        }
    }

    /// Supposes that a release were stored, to show what it would change.
    pub fn suppose(&self, release: &Release) {
        self.bodies.suppose(&self.namespace, release);
    }

    /// Shows what the change of one pin would change in its environment.
    pub async fn preview(
        &self,
        item: &Item,
        options: &diff::Options,
    ) -> Result<Preview, PreviewError> {
        let catalog = self.catalog(&item.component, &item.environment).await?;
        let mut warnings = Vec::new();
        let place = (item.component.as_str(), item.environment.as_str());
        let after = self
            .render(&catalog, place, &item.to, &mut warnings)
            .await?;
        let before = match &item.from {
            Some(from) if from.name == item.to.name => Some(after.clone()),
            // What runs now may be gone or broken; that is no reason not to move away from it.
            Some(from) => self
                .render(&catalog, place, from, &mut Vec::new())
                .await
                .ok(),
            None => None,
        };
        if before.is_none() && item.from.is_some() {
            warnings.push(
                "the current release cannot be rendered, so every object is shown as new"
                    .to_owned(),
            );
        }
        let before = before.unwrap_or_default();
        Ok(Preview {
            diff: diff::diff(&objects(&before), &objects(&after), options),
            hash: digest::of(&(before.hash(), after.hash())),
            warnings,
        })
    }

    /// Renders a release as an environment has it, with the settings that the environment has now.
    pub async fn rendered(
        &self,
        component: &str,
        environment: &str,
        release: &ReleaseIdentity,
        warnings: &mut Vec<String>,
    ) -> Result<Rendered, PreviewError> {
        let catalog = self.catalog(component, environment).await?;
        let place = (component, environment);
        let rendered = self.render(&catalog, place, release, warnings).await;
        warnings.extend(catalog.warnings());
        rendered
    }

    /// Resolves a release, however its definitions are stored.
    pub async fn definitions(
        &self,
        release: &ReleaseIdentity,
        warnings: &mut Vec<String>,
    ) -> Result<Definitions, PreviewError> {
        let (name, uid) = (&release.name, release.uid.as_deref());
        let spec = self
            .bodies
            .spec::<Release>(&self.client, &self.namespace, name, uid)
            .await?;
        let resolved = resolve::resolve(&spec, self.git).await;
        let resolved = resolved.map_err(|error| PreviewError::Unresolved {
            release: name.clone(),
            error,
        })?;
        warnings.extend(resolved.warnings);
        Ok(resolved.definitions)
    }

    async fn catalog(&self, component: &str, environment: &str) -> Result<Catalog, PreviewError> {
        let mut catalog = Catalog::empty(&self.namespace);
        catalog
            .fetch_environment(&self.client, component, environment)
            .await?;
        Ok(catalog)
    }

    async fn render(
        &self,
        catalog: &Catalog,
        (component, environment): (&str, &str),
        release: &ReleaseIdentity,
        warnings: &mut Vec<String>,
    ) -> Result<Rendered, PreviewError> {
        let definitions = self.definitions(release, warnings).await?;
        let owner = definitions.component.metadata.name.as_deref();
        let owner = owner.unwrap_or_default();
        if owner != component {
            return Err(PreviewError::OfAnother {
                release: release.name.clone(),
                component: component.to_owned(),
                owner: owner.to_owned(),
            });
        }
        let settings = catalog.settings(component, environment)?;
        let inputs = Inputs {
            definitions: &definitions,
            settings: settings.as_ref(),
            environment: &catalog.environment(environment)?,
            namespace: &catalog.namespace,
        };
        let rendered = render::render(&inputs, &self.library);
        let rendered = rendered.map_err(|error| PreviewError::DoesNotFit {
            release: release.name.clone(),
            environment: environment.to_owned(),
            error,
        })?;
        warnings.extend(rendered.warnings.iter().map(ToString::to_string));
        Ok(rendered)
    }
}

/// Returns rendered resources as objects.
pub fn objects(rendered: &Rendered) -> Vec<Value> {
    let resources = rendered.resources.iter();
    resources
        .map(|resource| Value::Object(resource.object.clone()))
        .collect()
}
