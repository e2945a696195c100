//! `release create`: builds a Release from definitions. The name of the release contains the version, or else the
//! hash of the content.

use kube::ResourceExt;
use kube_values::name::label_value;
use serde_json::Value;

use crate::api::openchoreo::release::{
    AddonReference, Content, GitRef, Reference, Release, ReleaseSpec,
};
use crate::api::{AddonDefinition, Definitions, Object, labels, names};
use crate::resolve::content;

/// Where a release stores its definitions: in itself, or in git.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The release itself contains the definitions; large definitions are compressed.
    Embedded,
    /// The release contains references to the definitions in commits of a git repository.
    Git(Box<GitSources>),
}

/// The git references from a release to the files with its definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitSources {
    pub component: GitRef,
    pub component_type_definition: GitRef,
    /// The references to the addon definitions, in the order of the component's addon instances.
    pub addons: Vec<GitRef>,
}

/// Builds a release from definitions. If `version` is None, its name contains the hash of the content, so equal
/// definitions give the same name.
pub fn release(definitions: &Definitions, version: Option<&str>, source: &Source) -> Release {
    let component = definitions.component.name_any();
    let hash = definitions.content_hash();
    let name = match version {
        Some(version) => names::release(&component, version),
        None => names::release_by_content(&component, &hash),
    };
    let mut spec = spec(definitions, source, |object| content::pack(&object));
    let packed = contents_mut(&mut spec).any(|content| content.compressed().is_some());
    let mut release = Release::new(&name, spec);
    let size = size(&release.spec);
    let own = release.labels_mut();
    own.insert(labels::COMPONENT.to_owned(), names::label_value(&component));
    if let Some(version) = version.filter(|version| label_value(version).is_ok()) {
        own.insert(labels::VERSION.to_owned(), version.to_owned());
    }
    let own = release.annotations_mut();
    own.insert(labels::CONTENT_HASH.to_owned(), hash);
    own.insert(labels::SIZE.to_owned(), size.to_string());
    own.insert(labels::IMAGES.to_owned(), definitions.images().join(","));
    if let Some(version) = version {
        own.insert(labels::VERSION_TEXT.to_owned(), version.to_owned());
    }
    if packed {
        own.insert(
            labels::COMPRESSION.to_owned(),
            labels::COMPRESSION_GZIP.to_owned(),
        );
    }
    release
}

/// Returns the size of a release's spec in bytes, as JSON.
pub fn size(spec: &ReleaseSpec) -> usize {
    serde_json::to_vec(spec).map_or(0, |json| json.len())
}

/// Returns the definitions that the spec of a release embeds, to change them.
pub fn contents_mut(spec: &mut ReleaseSpec) -> impl Iterator<Item = &mut Content> {
    [
        &mut spec.component.content,
        &mut spec.component_type_definition.content,
    ]
    .into_iter()
    .chain(spec.addons.iter_mut().map(|addon| &mut addon.content))
    .flatten()
}

/// Returns a release spec that embeds all definitions without compression.
pub fn plain_spec(definitions: &Definitions) -> ReleaseSpec {
    spec(definitions, &Source::Embedded, Content)
}

fn spec(
    definitions: &Definitions,
    source: &Source,
    embedded: fn(Object) -> Content,
) -> ReleaseSpec {
    let embed = |object| (None, Some(embedded(object)));
    let from_git = |reference: &GitRef| (Some(reference.clone()), None);
    let (component, type_) = match source {
        Source::Embedded => (
            embed(plain(&definitions.component)),
            embed(plain(&definitions.component_type_definition)),
        ),
        Source::Git(files) => (
            from_git(&files.component),
            from_git(&files.component_type_definition),
        ),
    };
    let reference = |name: String, (git_ref, content)| Reference {
        name,
        git_ref,
        content,
    };
    let addon = |(at, definition): (usize, &AddonDefinition)| {
        let (git_ref, content) = match source {
            Source::Git(files) if let Some(file) = files.addons.get(at) => from_git(file),
            _ => embed(plain(&definition.addon)),
        };
        AddonReference {
            name: definition.name.clone(),
            instance_id: definition.instance_id.clone(),
            git_ref,
            content,
        }
    };
    ReleaseSpec {
        component: reference(definitions.component.name_any(), component),
        component_type_definition: reference(
            definitions.component_type_definition.name_any(),
            type_,
        ),
        addons: definitions.addons.iter().enumerate().map(addon).collect(),
        workload: plain(&definitions.workload),
    }
}

/// Converts a definition to a JSON object.
fn plain(definition: &impl serde::Serialize) -> Object {
    match serde_json::to_value(definition) {
        Ok(Value::Object(object)) => object,
        _ => unreachable!("BUG: a definition is an object"),
    }
}
