//! Resolves the references in a release to definitions. A reference names a file in git, or embeds the definition.
//!
//! The definition of a git reference can be cached, because the reference contains a commit id, so its file never
//! changes. A definition is the same whichever form its reference has.

pub mod content;
pub mod definition;
pub mod git;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::openchoreo::definitions::Mismatch;
use crate::api::openchoreo::release::{Content, GitRef, ReleaseSpec};
use crate::api::{AddonDefinition, Definitions, Object, lists};
use content::ContentError;
use definition::DefinitionError;
use git::{Git, GitError};

/// The definitions to which the references of a release were resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub definitions: Definitions,
    /// Warnings about unknown fields in the definitions.
    pub warnings: Vec<String>,
}

/// The reason why a release cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// A reference of the release cannot be read.
    #[error("{what}: {cause}")]
    Reference {
        /// The definition that the reference names, for example `component checkout`.
        what: String,
        /// The reason why the reference cannot be read.
        cause: Cause,
    },
    /// The definitions of the release do not fit each other.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// The reason why a reference in a release cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The reference has neither a gitRef nor embedded content, or it has both.
    #[error("a reference must have exactly one of gitRef and content")]
    NotOne,
    /// The file cannot be read from git.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The embedded content cannot be uncompressed or parsed.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The file in git is not valid YAML.
    #[error(transparent)]
    Yaml(#[from] bounded_yaml::YamlError),
    /// The file in git does not contain an object with the kind and name of the reference.
    #[error("{file} has no {kind} {name}; it has {found}")]
    NotInFile {
        /// The path of the file, with its repository and revision.
        file: String,
        /// The kind that the reference names.
        kind: String,
        /// The object name that the reference needs.
        name: String,
        /// The objects that the file does contain, in words.
        found: String,
    },
    /// The file in git contains the object more than once, for example for several namespaces.
    #[error(
        "{file} has {kind} {name} more than once; a reference cannot tell them apart, so keep one in a file"
    )]
    TwiceInFile {
        /// The path of the file, with its repository and revision.
        file: String,
        /// The kind of the object.
        kind: String,
        /// The name of the object.
        name: String,
    },
    /// The object that the reference names is not a valid definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Reading was cancelled, for example because bowline ends.
    #[error("the read was cancelled")]
    GivenUp,
}

/// Resolves the references in a release to definitions.
pub async fn resolve(release: &ReleaseSpec, git: &Git) -> Result<Resolved, ResolveError> {
    let mut reader = Reader {
        git,
        warnings: Vec::new(),
    };
    let component = &release.component;
    let name = &component.name;
    let (git_ref, content) = (&component.git_ref, &component.content);
    let component = reader
        .read("component", name, name, git_ref, content)
        .await?;
    let reference = &release.component_type_definition;
    let type_ = reader
        .read(
            "type",
            &reference.name,
            &reference.name,
            &reference.git_ref,
            &reference.content,
        )
        .await?;
    let mut addons = Vec::with_capacity(release.addons.len());
    for addon in &release.addons {
        let shown = format!("{} ({})", addon.name, addon.instance_id);
        addons.push(AddonDefinition {
            name: addon.name.clone(),
            instance_id: addon.instance_id.clone(),
            addon: reader
                .read("addon", &shown, &addon.name, &addon.git_ref, &addon.content)
                .await?,
        });
    }
    let workload = reader.typed("workload", name, name, release.workload.clone())?;
    Ok(Resolved {
        definitions: Definitions::assemble(component, type_, addons, workload)?,
        warnings: reader.warnings,
    })
}

struct Reader<'a> {
    git: &'a Git,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// Reads the definition of one reference. `shown` is the definition's name in messages, `name` is the name that
    /// the object must have.
    async fn read<K>(
        &mut self,
        word: &str,
        shown: &str,
        name: &str,
        git_ref: &Option<GitRef>,
        content: &Option<Content>,
    ) -> Result<K, ResolveError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize,
    {
        let object = match (git_ref, content) {
            (Some(reference), None) => {
                let (version, kind) = (K::api_version(&()), K::kind(&()));
                self.git_file(reference, &version, &kind, name).await
            }
            (None, Some(content)) => content::unpack(content).map_err(Cause::from),
            _ => Err(Cause::NotOne),
        };
        let object = object.map_err(|cause| reference_error(word, shown, cause))?;
        self.typed(word, shown, name, object)
    }

    fn typed<K>(
        &mut self,
        word: &str,
        shown: &str,
        name: &str,
        object: Object,
    ) -> Result<K, ResolveError>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize,
    {
        let mut warnings = Vec::new();
        let definition = definition::typed(object, name, &mut warnings)
            .map_err(|error| reference_error(word, shown, error.into()))?;
        let warnings = warnings.into_iter();
        self.warnings
            .extend(warnings.map(|warning| format!("{word} {shown}: {warning}")));
        Ok(definition)
    }

    async fn git_file(
        &self,
        reference: &GitRef,
        version: &str,
        kind: &str,
        name: &str,
    ) -> Result<Object, Cause> {
        let (git, asked) = (self.git.clone(), reference.clone());
        let bytes = tokio::task::spawn_blocking(move || git.read(&asked))
            .await
            .map_err(|_| Cause::GivenUp)??;
        let file = format!(
            "{}@{}:{}",
            git::shown(&reference.repository),
            reference.revision,
            reference.path
        );
        in_file(&file, &bytes, version, kind, name)
    }
}

fn reference_error(word: &str, shown: &str, cause: Cause) -> ResolveError {
    ResolveError::Reference {
        what: format!("{word} {shown}"),
        cause,
    }
}

/// Returns the object with this kind and name from the content of a file. The file may also contain other objects.
pub fn in_file(
    file: &str,
    bytes: &[u8],
    version: &str,
    kind: &str,
    name: &str,
) -> Result<Object, Cause> {
    let text = std::str::from_utf8(bytes).map_err(|_| ContentError::NotText)?;
    let mut found = None;
    let mut others = Vec::new();
    let documents = bounded_yaml::documents(file, text)?.into_iter();
    for document in documents.flat_map(|document| lists::objects(document.value)) {
        let said = |pointer| document.value.pointer(pointer).and_then(Value::as_str);
        let its = (said("/apiVersion"), said("/kind"), said("/metadata/name"));
        if its == (Some(version), Some(kind), Some(name))
            && let Value::Object(object) = document.value
        {
            if found.replace(object).is_some() {
                return Err(Cause::TwiceInFile {
                    file: file.to_owned(),
                    kind: kind.to_owned(),
                    name: name.to_owned(),
                });
            }
            continue;
        }
        others.push(match its {
            (_, Some(kind), Some(name)) => format!("{kind} {name}"),
            _ => "no Kubernetes object".to_owned(),
        });
    }
    found.ok_or_else(|| {
        others.truncate(10);
        Cause::NotInFile {
            file: file.to_owned(),
            kind: format!("{kind} of {version}"),
            name: name.to_owned(),
            found: match others.is_empty() {
                true => "nothing".to_owned(),
                false => others.join(", "),
            },
        }
    })
}
