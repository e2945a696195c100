//! Builds the git references from a release to the definitions in a repository.

use std::collections::BTreeSet;
use std::path::Path;

use kube::{Resource, ResourceExt};

use crate::api::openchoreo::release::GitRef;
use crate::api::{Definitions, Release, labels};
use crate::connect::Address;
use crate::git::GitError;
use crate::gitops::tree::Tree;
use crate::resolve;
use crate::resolve::git::{self, WorkTreeError};
use crate::subjects::release_pin::actions::release::{GitSources, Source};
use crate::text::quoted;

/// The reason why a release cannot refer to a definition in git.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name} by reference: {why}")]
pub struct NoReference {
    pub kind: String,
    pub name: String,
    /// The reason, as text for the user.
    pub why: String,
    /// The component that the release belongs to.
    component: String,
    /// Whether the repository has no remote. Then no cluster could fetch its files, so no release can refer to them.
    no_remote: bool,
}

impl NoReference {
    /// Returns the next step for the user: the command that embeds the definitions instead of referring to git.
    /// `options` are the other options of the user's command; `address` adds the flags of the target.
    pub fn hint(&self, options: &str, address: &Address) -> String {
        let component = quoted(&self.component);
        let line = format!("bowline release create {component}{options} --embed");
        format!("or embed the definitions: {}", address.bowline(&line))
    }
}

/// Where a release stores its definitions, and a note about this for the user if there is one.
pub type Sourced = (Source, Option<&'static str>);

/// Returns git references to the definitions in a repository. If the repository has no remote, returns that the
/// release embeds the definitions, with a note for the user.
pub fn sources(
    tree: &Tree,
    namespace: &str,
    definitions: &Definitions,
) -> Result<Sourced, NoReference> {
    let file = |kind: &str, name: &str| {
        let resource = format!("{}/{}s", labels::OPENCHOREO_GROUP, kind.to_lowercase());
        let place = tree.place(&resource, namespace, name)?;
        let file = tree.work().root().join(place.path);
        Some(file.to_string_lossy().into_owned())
    };
    match references(&file, definitions) {
        Ok(found) => Ok((Source::Git(Box::new(found)), None)),
        Err(error) if error.no_remote => Ok((
            Source::Embedded,
            Some("the repository has no remote to refer to, so the release embeds the definitions"),
        )),
        Err(error) => Err(error),
    }
}

/// Returns the files whose definitions the release embeds and that are not committed. With git references, this can
/// only be the file of the Workload.
pub fn uncommitted(
    tree: &Tree,
    namespace: &str,
    definitions: &Definitions,
    source: &Source,
) -> Result<BTreeSet<String>, GitError> {
    let mut embedded = vec![("workloads", definitions.workload.name_any())];
    if *source == Source::Embedded {
        let own_type = definitions.component_type_definition.name_any();
        embedded.push(("components", definitions.component.name_any()));
        embedded.push(("componenttypedefinitions", own_type));
        let addons = definitions.addons.iter();
        embedded.extend(addons.map(|addon| ("addons", addon.name.clone())));
    }
    let limit = bounded_yaml::Limits::default().bytes;
    let mut files = BTreeSet::new();
    for (plural, name) in embedded {
        let resource = format!("{}/{plural}", labels::OPENCHOREO_GROUP);
        let Some(place) = tree.place(&resource, namespace, &name) else {
            continue;
        };
        let on_disk = std::fs::read(tree.work().root().join(&place.path)).ok();
        if tree.work().blob("HEAD", &place.path, limit)? != on_disk {
            files.insert(place.path);
        }
    }
    Ok(files)
}

/// Returns git references to the files that contain the definitions.
pub fn references(
    file: &dyn Fn(&str, &str) -> Option<String>,
    definitions: &Definitions,
) -> Result<GitSources, NoReference> {
    let reference = |kind: &str, name: &str| -> Result<GitRef, NoReference> {
        let refused = |why: String| NoReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            why,
            component: definitions.component.name_any(),
            no_remote: false,
        };
        let file = file(kind, name).unwrap_or_default();
        let reference = git::work_tree(Path::new(&file)).map_err(|error| NoReference {
            no_remote: matches!(error, WorkTreeError::NoRemote { .. }),
            ..refused(error.to_string())
        })?;
        // Check that the reference resolves to the same definition that was read before.
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
