//! Definitions by where they lie in git, for a release made by reference.

use std::path::Path;

use kube::{Resource, ResourceExt};

use crate::api::release::GitRef;
use crate::api::{Definitions, Release, labels};
use crate::embedded::tree::Tree;
use crate::engine::actions::release::{GitSources, Source};
use crate::resolve::{self, git};

/// Why a definition cannot be referred to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name} by reference: {why}")]
pub struct NoReference {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Why.
    pub why: String,
}

impl NoReference {
    /// Says what the person can do instead.
    pub fn hint(&self) -> &'static str {
        "or embed the definitions: bowline release create --embed"
    }
}

/// Refers to definitions by where they lie in a repository.
pub fn sources(
    tree: &Tree,
    namespace: &str,
    definitions: &Definitions,
) -> Result<Source, NoReference> {
    let file = |kind: &str, name: &str| {
        let resource = format!("{}/{}s", labels::OPENCHOREO_GROUP, kind.to_lowercase());
        let place = tree.place(&resource, namespace, name)?;
        let file = tree.work().root().join(place.path);
        Some(file.to_string_lossy().into_owned())
    };
    let found = references(&file, definitions)?;
    Ok(Source::Git(Box::new(found)))
}

/// Finds where in git the files of definitions are.
pub fn references(
    file: &dyn Fn(&str, &str) -> Option<String>,
    definitions: &Definitions,
) -> Result<GitSources, NoReference> {
    let reference = |kind: &str, name: &str| -> Result<GitRef, NoReference> {
        let refused = |why: String| NoReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            why,
        };
        let file = file(kind, name).unwrap_or_default();
        let reference =
            git::work_tree(Path::new(&file)).map_err(|error| refused(error.to_string()))?;
        // What the reference will be read as has to be what was read here.
        let bytes = std::fs::read(&file).map_err(|error| refused(error.to_string()))?;
        let version = Release::api_version(&());
        resolve::in_file(&file, &bytes, &version, kind, name)
            .map_err(|error| refused(error.to_string()))?;
        Ok(reference)
    };
    Ok(GitSources {
        component: reference("Component", &definitions.component.name_any())?,
        component_type_definition: reference(
            "ComponentTypeDefinition",
            &definitions.component_type_definition.name_any(),
        )?,
        addons: definitions
            .addons
            .iter()
            .map(|addon| reference("Addon", &addon.name))
            .collect::<Result<_, _>>()?,
    })
}
