//! What a plan would change in its environment: manifests before and after, object by object.
//!
//! Nothing is written. A release that cannot be rendered with the settings of the environment is found
//! here, before anything moves.

use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::catalog::{Catalog, CatalogError};
use super::diff::{self, Diff};
use super::plan::Item;
use crate::api::{Release, digest};
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
    /// The release cannot be resolved.
    #[error("release {release}: {error}")]
    Unresolved {
        /// The release.
        release: String,
        /// Why.
        error: ResolveError,
    },
    /// The environment or its settings cannot be had.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// Shows what the change of one pin would change in its environment.
pub async fn preview(
    client: &Client,
    git: &Git,
    item: &Item,
    library: &Library,
) -> Result<Preview, PreviewError> {
    let namespace = &item.pin.namespace;
    let mut catalog = Catalog::empty(namespace);
    let (component, environment) = (&item.component, &item.environment);
    catalog
        .fetch_environment(client, component, environment)
        .await?;
    let scene = Scene {
        releases: Api::namespaced(client.clone(), namespace),
        catalog,
        git,
        library,
        item,
    };
    let mut warnings = Vec::new();
    let after = scene.rendered(&item.to.name, &mut warnings).await?;
    let before = match &item.from {
        Some(from) if from.name == item.to.name => Some(after.clone()),
        // What runs now may be gone or broken; that is no reason not to move away from it.
        Some(from) => scene.rendered(&from.name, &mut Vec::new()).await.ok(),
        None => None,
    };
    if before.is_none() && item.from.is_some() {
        warnings.push("what runs now cannot be rendered, so everything shows as new".to_owned());
    }
    let before = before.unwrap_or_default();
    let objects = |rendered: &Rendered| -> Vec<Value> {
        let resources = rendered.resources.iter();
        resources
            .map(|resource| Value::Object(resource.object.clone()))
            .collect()
    };
    Ok(Preview {
        diff: diff::diff(
            &objects(&before),
            &objects(&after),
            &diff::Options::default(),
        ),
        hash: digest::of(&(before.hash(), after.hash())),
        warnings,
    })
}

struct Scene<'a> {
    releases: Api<Release>,
    catalog: Catalog,
    git: &'a Git,
    library: &'a Library,
    item: &'a Item,
}

impl Scene<'_> {
    async fn rendered(
        &self,
        name: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Rendered, PreviewError> {
        let release = self.releases.get(name).await?;
        let resolved = resolve::resolve(&release.spec, self.git).await;
        let resolved = resolved.map_err(|error| PreviewError::Unresolved {
            release: name.to_owned(),
            error,
        })?;
        warnings.extend(resolved.warnings);
        let (component, environment) = (&self.item.component, &self.item.environment);
        let settings = self.catalog.settings(component, environment)?;
        let inputs = Inputs {
            definitions: &resolved.definitions,
            settings: settings.as_ref(),
            environment: &self.catalog.environment(environment)?,
            namespace: &self.catalog.namespace,
        };
        let rendered = render::render(&inputs, self.library);
        let rendered = rendered.map_err(|error| PreviewError::DoesNotFit {
            release: name.to_owned(),
            environment: environment.clone(),
            error,
        })?;
        warnings.extend(rendered.warnings.iter().map(ToString::to_string));
        Ok(rendered)
    }
}
