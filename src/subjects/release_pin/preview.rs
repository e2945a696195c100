//! Renders the manifests before and after a planned change, and compares them object by object.
//!
//! This module writes nothing. It runs before the write, so bowline finds a release that cannot be rendered with the
//! settings of the environment in time.

use std::sync::Arc;

use kube::Client;
use serde_json::Value;

use super::catalog::{Catalog, CatalogError};
use crate::api::bowline::audit::ContentRef;
use crate::api::{Definitions, Release, digest};
use crate::engine::bodies::{Bodies, BodyError};
use crate::engine::diff::{self, Diff};
use crate::engine::plan::Change;
use crate::render::{self, Inputs, Library, RenderError, Rendered};
use crate::resolve::git::Git;
use crate::resolve::{self, ResolveError};

/// How a change affects the rendered manifests.
#[derive(Debug)]
pub struct Preview {
    /// The difference between the manifests before and after the change.
    pub diff: Diff,
    /// A hash of the manifests before and after the change, which the audit entry records.
    pub hash: String,
    pub warnings: Vec<String>,
}

/// The reason why a change could not be rendered.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The release cannot be rendered with the settings of the environment.
    #[error("release {release} does not fit {environment}: {error}")]
    DoesNotFit {
        release: String,
        environment: String,
        /// The error of the renderer.
        error: RenderError,
    },
    /// The release belongs to another component than the ReleasePin.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        release: String,
        component: String,
        /// The component that the release belongs to.
        owner: String,
    },
    /// A git or OCI reference in the release cannot be resolved.
    #[error("release {release}: {error}")]
    Unresolved {
        release: String,
        /// The error of the resolver.
        error: ResolveError,
    },
    /// The content of the release is not available.
    #[error(transparent)]
    Body(#[from] Arc<BodyError>),
    /// The environment or its settings are not available.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl PreviewError {
    /// Returns whether the release belongs to another component.
    pub fn is_of_another(&self) -> bool {
        matches!(self, Self::OfAnother { .. })
    }
}

/// Renders releases in one namespace. A cache ensures that each release is fetched only once.
pub struct Stage<'a> {
    client: Client,
    namespace: String,
    git: &'a Git,
    library: Library,
    bodies: Bodies,
}

impl<'a> Stage<'a> {
    /// Creates a renderer of releases with an empty cache.
    pub fn new(client: &Client, namespace: &str, git: &'a Git) -> Self {
        Self {
            client: client.clone(),
            namespace: namespace.to_owned(),
            git,
            library: Library::new(),
            bodies: Bodies::default(),
        }
    }

    /// Adds a planned release to the cache. The server does not have this release yet, so it could not be fetched.
    pub fn suppose(&self, release: &Release) {
        self.bodies.suppose(&self.namespace, release);
    }

    /// Renders the manifests before and after the change of a ReleasePin, and compares them.
    pub async fn preview(
        &self,
        change: &Change,
        options: &diff::Options,
    ) -> Result<Preview, PreviewError> {
        let catalog = self.catalog(&change.name, &change.environment).await?;
        let mut warnings = Vec::new();
        let place = (change.name.as_str(), change.environment.as_str());
        let after = self
            .render(&catalog, place, &change.to, &mut warnings)
            .await?;
        let before = match &change.from {
            Some(from) if from.name == change.to.name => Some(after.clone()),
            // The current release may be deleted or broken. It then counts as empty, because the change to another
            // release must stay possible.
            Some(from) => self
                .render(&catalog, place, from, &mut Vec::new())
                .await
                .ok(),
            None => None,
        };
        if before.is_none() && change.from.is_some() {
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

    /// Renders a release of a component with the current settings of an environment.
    pub async fn rendered(
        &self,
        component: &str,
        environment: &str,
        release: &ContentRef,
        warnings: &mut Vec<String>,
    ) -> Result<Rendered, PreviewError> {
        let catalog = self.catalog(component, environment).await?;
        let place = (component, environment);
        let rendered = self.render(&catalog, place, release, warnings).await;
        warnings.extend(catalog.warnings());
        rendered
    }

    /// Returns the definitions that a release refers to or contains.
    pub async fn definitions(
        &self,
        release: &ContentRef,
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
        release: &ContentRef,
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

/// Returns rendered resources as JSON objects.
pub fn objects(rendered: &Rendered) -> Vec<Value> {
    let resources = rendered.resources.iter();
    resources
        .map(|resource| Value::Object(resource.object.clone()))
        .collect()
}
