//! Makes the RenderedRelease of a ReleasePin: resolves the release, writes a snapshot of its definitions,
//! renders the manifests, and writes the RenderedRelease. Writes only the objects that differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{CustomResourceExt, Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::rendered::Row;
use super::status::{Step, Trouble};
use super::{Settings, Shared};
use crate::api::choreo::rendered::{RenderedOwner, RenderedReleaseSpec};
use crate::api::condition;
use crate::api::openchoreo::release::{Content, Reference, ReleaseSpec};
use crate::api::openchoreo::snapshot::{AddonCopy, ComponentEnvSnapshotSpec};
use crate::api::{
    ComponentEnvSnapshot, Definitions, EnvSettings, Environment, Release, ReleasePin,
    RenderedRelease, digest, labels, names,
};
use crate::connect::explain;
use crate::engine::bodies::BodyError;
use crate::engine::world::Key;
use crate::render::{self, Inputs, Rendered};
use crate::resolve::{self, Cause, ResolveError, content};
use crate::subjects::release_pin::actions::release as release_action;

/// The inputs of a render. Equal inputs give an equal RenderedRelease, so a reconcile with equal inputs
/// renders nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RenderInputs {
    /// The uid of the ReleasePin, which owns the RenderedRelease.
    pin: String,
    /// The uid of the release. The uid is sufficient, because the content of a release never changes.
    release: String,
    /// The uid and the generation of the Environment object; None if the Environment does not exist.
    environment: Option<(String, i64)>,
    /// The uid and the generation of each EnvSettings object.
    settings: Vec<(String, i64)>,
}

/// Returns whether a release names at least one definition by git reference.
fn is_by_git(spec: &ReleaseSpec) -> bool {
    spec.component.git_ref.is_some()
        || spec.component_type_definition.git_ref.is_some()
        || spec.addons.iter().any(|addon| addon.git_ref.is_some())
}

/// The result of a render, and the identity of the RenderedRelease that contains this result.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) inputs: RenderInputs,
    pub(super) snapshot: String,
    pub(super) resources: usize,
    pub(super) warnings: Vec<String>,
    hash: String,
    /// The uid of the written RenderedRelease.
    pub(super) uid: String,
    pub(super) generation: i64,
}

impl Made {
    /// Returns whether the RenderedRelease is unchanged since the controller wrote it. Also returns true if
    /// `row` is None or older than the write, because then nothing proves a change.
    fn stands(&self, row: Option<&Row>) -> bool {
        row.is_none_or(|row| {
            row.uid == self.uid
                && !row.deleting
                && (row.generation < self.generation
                    || (row.generation == self.generation
                        && row.hash.as_deref() == Some(&self.hash)))
        })
    }
}

/// The ReleasePin and the objects that one reconcile of it uses.
pub(super) struct Work<'a> {
    pub(super) shared: &'a Shared,
    pub(super) pin: &'a ReleasePin,
    pub(super) key: &'a Key,
    /// The name of the effective release.
    pub(super) release: &'a str,
    pub(super) environment: Option<Environment>,
    pub(super) settings: Vec<Settings>,
    pub(super) row: Option<Row>,
}

impl Work<'_> {
    /// Renders and writes the RenderedRelease, unless an earlier reconcile did both with the same inputs.
    pub(super) async fn make(&self) -> Result<Arc<Made>, Trouble> {
        let uid = self.release_uid().await?;
        let inputs = self.inputs(&uid);
        if let Some(made) = self.shared.made(self.key)
            && made.inputs == inputs
            && made.stands(self.row.as_ref())
        {
            return Ok(made);
        }
        let spec = self.spec(&uid).await?;
        if spec.component.name != self.pin.spec.component {
            let message = format!(
                "release {} belongs to component {}, not to {}",
                self.release, spec.component.name, self.pin.spec.component
            );
            let reason = condition::RELEASE_OF_ANOTHER_COMPONENT;
            return Err(Trouble::lasting(Step::Resolve, reason, message));
        }
        let references = digest::of(&spec);
        let (definitions, mut warnings) = self.definitions(&spec, &references).await?;
        let definitions = Arc::new(definitions);
        let snapshot = Snapshot::of(self.pin, &definitions, &references);
        if !is_by_git(&spec) {
            let stored = release_action::size(&spec);
            let metrics = &self.shared.base.metrics;
            metrics.packed("release", snapshot.plain, stored);
        }
        let keep = self.keep(&snapshot);
        let render = async {
            let rendered = self.render(&definitions).await?;
            let hash = rendered.hash();
            let (uid, generation) = match &self.row {
                Some(row) if self.is_written(row, &hash) => (row.uid.clone(), row.generation),
                _ => {
                    self.check_settings().await?;
                    self.write(&definitions, &rendered, &hash).await?
                }
            };
            Ok((rendered, hash, uid, generation))
        };
        let (kept, rendered) = futures::join!(keep, render);
        kept?;
        let (rendered, hash, uid, generation) = rendered?;
        warnings.extend(rendered.warnings.iter().map(ToString::to_string));
        let made = Arc::new(Made {
            inputs,
            snapshot: snapshot.name,
            resources: rendered.resources.len(),
            warnings,
            hash,
            uid,
            generation,
        });
        self.shared.remember(self.key, made.clone());
        Ok(made)
    }

    /// Returns an error if the settings of a running component disappeared although no user deleted them.
    /// This is the case if the kind EnvSettings is missing or is being deleted, because then its objects are
    /// missing too.
    async fn check_settings(&self) -> Result<(), Trouble> {
        let unknown = |why: &str| {
            let message = format!(
                "the settings of {} in {} are not known, because {why}; once bowline install has installed the kind again, restore its objects",
                self.pin.spec.component, self.pin.spec.environment
            );
            Trouble::lasting(Step::Render, condition::SETTINGS_UNKNOWN, message)
        };
        let kind = EnvSettings::crd_name();
        if self.shared.settings.is_absent() {
            return Err(unknown(&format!("the kind {kind} does not exist")));
        }
        // If the last render had no settings, no settings can be lost.
        let had_none = match self.shared.made(self.key) {
            Some(made) => made.inputs.settings.is_empty(),
            None => self.row.is_none(),
        };
        if !self.settings.is_empty() || had_none {
            return Ok(());
        }
        let kinds: Api<CustomResourceDefinition> = Api::all(self.shared.base.client.clone());
        match kinds.get_metadata_opt(kind).await {
            Ok(Some(found)) if found.metadata.deletion_timestamp.is_none() => Ok(()),
            Ok(Some(_)) => Err(unknown(&format!("the kind {kind} is being deleted"))),
            Ok(None) => Err(unknown(&format!("the kind {kind} does not exist"))),
            Err(error) => Err(unread(Step::Render, &error)),
        }
    }

    fn namespace(&self) -> &str {
        &self.key.namespace
    }

    fn beside(&self, name: &str) -> Key {
        Key::new(&self.key.namespace, name)
    }

    fn inputs(&self, release: &str) -> RenderInputs {
        let identity = |object: &dyn Fn() -> (Option<String>, Option<i64>)| {
            let (uid, generation) = object();
            (uid.unwrap_or_default(), generation.unwrap_or_default())
        };
        let environment = self
            .environment
            .as_ref()
            .map(|environment| identity(&|| (environment.uid(), environment.metadata.generation)));
        let settings = self.settings.iter();
        RenderInputs {
            pin: self.pin.uid().unwrap_or_default(),
            release: release.to_owned(),
            environment,
            settings: settings
                .map(|settings| (settings.uid.clone(), settings.generation))
                .collect(),
        }
    }

    /// Returns the uid of the effective release: from the read model, or else from the server.
    async fn release_uid(&self) -> Result<String, Trouble> {
        let known = {
            let world = self.shared.base.feed().world();
            world
                .release(&self.beside(self.release))
                .map(|row| row.uid.to_string())
        };
        if let Some(uid) = known {
            return Ok(uid);
        }
        let releases = self.shared.base.within::<Release>(self.namespace());
        match releases.get_metadata_opt(self.release).await {
            Ok(Some(found)) => Ok(found.uid().unwrap_or_default()),
            Ok(None) => Err(self.missing()),
            Err(error) => Err(unread(Step::Resolve, &error)),
        }
    }

    fn missing(&self) -> Trouble {
        let message = format!("release {} does not exist", self.release);
        Trouble::lasting(Step::Resolve, condition::RELEASE_MISSING, message)
    }

    async fn spec(&self, uid: &str) -> Result<ReleaseSpec, Trouble> {
        let base = &self.shared.base;
        let (client, namespace) = (&base.client, self.namespace());
        let spec = base
            .bodies
            .spec::<Release>(client, namespace, self.release, Some(uid));
        spec.await.map_err(|error| match &*error {
            BodyError::Gone { .. } => self.missing(),
            BodyError::Target(error) => unread(Step::Resolve, error),
            error => {
                let reason = condition::READ_FAILED;
                Trouble::passing(Step::Resolve, reason, error.to_string())
            }
        })
    }

    /// Returns the definitions of a release, and the warnings of the resolution. If a snapshot has the
    /// definitions of the same git references, uses the snapshot and fetches nothing from git.
    async fn definitions(
        &self,
        spec: &ReleaseSpec,
        references: &str,
    ) -> Result<(Definitions, Vec<String>), Trouble> {
        if is_by_git(spec)
            && let Some(found) = self.of_snapshot(references).await
        {
            self.shared.base.metrics.snapshot_reused();
            return Ok((found, Vec::new()));
        }
        match resolve::resolve(spec, &self.shared.base.git).await {
            Ok(resolved) => Ok((resolved.definitions, resolved.warnings)),
            Err(error) => Err(unresolved(self.release, &error)),
        }
    }

    /// Returns the definitions of the snapshot with the same git references. Returns None if there is no such
    /// snapshot, or if its definitions cannot be read or do not match its name.
    async fn of_snapshot(&self, references: &str) -> Option<Definitions> {
        let (name, uid) = {
            let world = self.shared.base.feed().world();
            let component = self.beside(&self.pin.spec.component);
            let of_environment = world
                .snapshots_of(&component)
                .find(|(environment, _)| *environment == self.pin.spec.environment);
            let (_, rows) = of_environment?;
            let found = rows
                .into_iter()
                .find(|row| row.references.as_deref() == Some(references))?;
            (found.key.name.clone(), found.uid.to_string())
        };
        let base = &self.shared.base;
        let spec = base.bodies.spec::<ComponentEnvSnapshot>(
            &base.client,
            self.namespace(),
            &name,
            Some(&uid),
        );
        // If the snapshot cannot be read, the caller fetches from git and writes the snapshot again.
        let spec = as_release(&spec.await.ok()?)?;
        let resolved = resolve::resolve(&spec, &base.git).await.ok()?;
        let hash = resolved.definitions.content_hash();
        let expected = names::snapshot(&self.pin.spec.component, &self.pin.spec.environment, &hash);
        // The name of a snapshot contains the content hash, so another hash shows that a user edited the
        // snapshot.
        (*name == *expected).then_some(resolved.definitions)
    }

    /// Writes a snapshot, unless the same snapshot already exists.
    async fn keep(&self, snapshot: &Snapshot) -> Result<(), Trouble> {
        let there = {
            let world = self.shared.base.feed().world();
            let row = world.snapshot(&self.beside(&snapshot.name));
            row.is_some_and(|row| {
                row.owner.as_deref() == self.pin.metadata.uid.as_deref()
                    && row.references.as_deref() == Some(&snapshot.references)
            })
        };
        let same = self
            .shared
            .made(self.key)
            .is_some_and(|made| made.snapshot == snapshot.name);
        if there || same {
            return Ok(());
        }
        let metrics = &self.shared.base.metrics;
        metrics.packed("snapshot", snapshot.plain, snapshot.stored);
        let name = &snapshot.name;
        match self
            .apply::<ComponentEnvSnapshot>(name, &snapshot.object)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) => {
                let message = format!("cannot write snapshot {name}: {}", explain(&error));
                let reason = condition::RESOLVE_FAILED;
                Err(Trouble::passing(Step::Resolve, reason, message))
            }
        }
    }

    async fn render(&self, definitions: &Arc<Definitions>) -> Result<Rendered, Trouble> {
        let lasting = |reason, message| Trouble::lasting(Step::Render, reason, message);
        let Some(environment) = self.environment.clone() else {
            let message = format!("environment {} does not exist", self.pin.spec.environment);
            return Err(lasting(condition::ENVIRONMENT_MISSING, message));
        };
        let settings = match self.settings.as_slice() {
            [] => None,
            [one] => Some(one.object.clone()),
            [one, other, ..] => {
                let message = format!(
                    "the EnvSettings {} and {} are both for {} in {}; remove one of them",
                    one.object.name_any(),
                    other.object.name_any(),
                    self.pin.spec.component,
                    self.pin.spec.environment
                );
                return Err(lasting(condition::SETTINGS_AMBIGUOUS, message));
            }
        };
        let (library, definitions) = (self.shared.library.clone(), definitions.clone());
        let namespace = self.namespace().to_owned();
        let rendering = tokio::task::spawn_blocking(move || {
            let inputs = Inputs {
                definitions: &definitions,
                settings: settings.as_deref(),
                environment: &environment,
                namespace: &namespace,
            };
            render::render(&inputs, &library)
        });
        let rendered = rendering.await.map_err(|_| {
            let message = "rendering was cancelled";
            Trouble::passing(Step::Render, condition::RENDER_FAILED, message)
        })?;
        rendered.map_err(|error| lasting(condition::RENDER_FAILED, error.to_string()))
    }

    /// Returns whether a RenderedRelease has the rendered content, belongs to this ReleasePin, and was not
    /// edited by another user.
    fn is_written(&self, row: &Row, hash: &str) -> bool {
        let before = self.shared.made(self.key);
        // `edited` stays true after this controller's own write, because another field manager may still own
        // fields. Only a generation after that write shows a new edit.
        let seen =
            before.is_some_and(|made| made.uid == row.uid && made.generation == row.generation);
        row.hash.as_deref() == Some(hash)
            && row.owner.as_deref() == self.pin.metadata.uid.as_deref()
            && !row.deleting
            && (!row.edited || seen)
    }

    async fn write(
        &self,
        definitions: &Definitions,
        rendered: &Rendered,
        hash: &str,
    ) -> Result<(String, i64), Trouble> {
        let name = names::pin(&self.pin.spec.component, &self.pin.spec.environment);
        if self.row.as_ref().is_some_and(|row| row.deleting) {
            let message = format!(
                "the rendered release {name} is being deleted; the controller creates it again afterwards"
            );
            return Err(Trouble::lasting(
                Step::Apply,
                condition::APPLY_FAILED,
                message,
            ));
        }
        let owner = definitions.component.spec.owner.as_ref();
        let spec = RenderedReleaseSpec {
            owner: RenderedOwner {
                project_name: owner
                    .map_or("default", |owner| &owner.project_name)
                    .to_owned(),
                component_name: self.pin.spec.component.clone(),
            },
            environment_name: self.pin.spec.environment.clone(),
            resources: rendered.resources.clone(),
            ..RenderedReleaseSpec::default()
        };
        let annotations = BTreeMap::from([(labels::RENDERED_HASH, hash.to_owned())]);
        let object = owned::<RenderedRelease>(self.pin, &name, annotations, &spec);
        match self.apply::<RenderedRelease>(&name, &object).await {
            Ok(written) => Ok((
                written.uid().unwrap_or_default(),
                written.metadata.generation.unwrap_or_default(),
            )),
            Err(error) => {
                let message = format!(
                    "cannot write the rendered release {name}: {}",
                    explain(&error)
                );
                Err(Trouble::passing(
                    Step::Apply,
                    condition::APPLY_FAILED,
                    message,
                ))
            }
        }
    }

    /// Applies an object that the ReleasePin owns, and returns the metadata of the object.
    async fn apply<K>(
        &self,
        name: &str,
        object: &Value,
    ) -> Result<PartialObjectMeta<K>, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api = self.shared.base.within::<K>(self.namespace());
        let ours = PatchParams::apply(labels::MANAGER_CONTROLLER).force();
        api.patch_metadata(name, &ours, &Patch::Apply(object)).await
    }
}

/// A snapshot to write, with its sizes in bytes before and after compression.
struct Snapshot {
    name: String,
    references: String,
    object: Value,
    plain: usize,
    stored: usize,
}

impl Snapshot {
    fn of(pin: &ReleasePin, definitions: &Definitions, references: &str) -> Self {
        // A snapshot has the same form as a release with embedded definitions: compressed if it is large.
        let source = release_action::Source::Embedded;
        let packed = release_action::release(definitions, None, &source);
        let plain = release_action::size(&release_action::plain_spec(definitions));
        let stored = release_action::size(&packed.spec);
        let mut annotations: BTreeMap<&str, String> = BTreeMap::new();
        for name in [
            labels::CONTENT_HASH,
            labels::SIZE,
            labels::IMAGES,
            labels::COMPRESSION,
        ] {
            if let Some(value) = packed.annotations().get(name) {
                annotations.insert(name, value.clone());
            }
        }
        annotations.insert(labels::REFERENCES_HASH, references.to_owned());
        let hash = annotations
            .get(labels::CONTENT_HASH)
            .cloned()
            .unwrap_or_default();
        let (component, environment) = (&pin.spec.component, &pin.spec.environment);
        let name = names::snapshot(component, environment, &hash);
        let release = packed.spec;
        let addons = release.addons.into_iter().map(|addon| AddonCopy {
            name: addon.name,
            instance_id: addon.instance_id,
            content: addon.content.unwrap_or_default(),
        });
        let spec = ComponentEnvSnapshotSpec {
            owner: crate::api::openchoreo::reference::ComponentOwner {
                component_name: component.clone(),
            },
            environment: environment.clone(),
            component_type_definition: release
                .component_type_definition
                .content
                .unwrap_or_default(),
            component: release.component.content.unwrap_or_default(),
            addons: addons.collect(),
            workload: release.workload,
        };
        Self {
            object: owned::<ComponentEnvSnapshot>(pin, &name, annotations, &spec),
            name,
            references: references.to_owned(),
            plain,
            stored,
        }
    }
}

/// Returns the manifest of a new object, with the ReleasePin as its owner.
fn owned<K: Resource<DynamicType = ()>>(
    pin: &ReleasePin,
    name: &str,
    annotations: BTreeMap<&str, String>,
    spec: &impl Serialize,
) -> Value {
    json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "metadata": {
            "name": name,
            "namespace": pin.namespace(),
            "labels": {
                labels::COMPONENT: names::label_value(&pin.spec.component),
                labels::ENVIRONMENT: names::label_value(&pin.spec.environment),
            },
            "annotations": annotations,
            "ownerReferences": pin.controller_owner_ref(&()).into_iter().collect::<Vec<_>>(),
        },
        "spec": spec,
    })
}

/// Converts a snapshot to a release with embedded definitions.
fn as_release(snapshot: &ComponentEnvSnapshotSpec) -> Option<ReleaseSpec> {
    let type_ = content::unpack(&snapshot.component_type_definition).ok()?;
    let type_name = type_.get("metadata")?.get("name")?.as_str()?.to_owned();
    let reference = |name: String, content: Content| Reference {
        name,
        git_ref: None,
        content: Some(content),
    };
    let addons = snapshot.addons.iter().cloned().map(|addon| {
        crate::api::openchoreo::release::AddonReference {
            name: addon.name,
            instance_id: addon.instance_id,
            git_ref: None,
            content: Some(addon.content),
        }
    });
    Some(ReleaseSpec {
        component: reference(
            snapshot.owner.component_name.clone(),
            snapshot.component.clone(),
        ),
        component_type_definition: reference(type_name, Content(type_)),
        addons: addons.collect(),
        workload: snapshot.workload.clone(),
    })
}

fn unresolved(release: &str, error: &ResolveError) -> Trouble {
    let message = format!("release {release}: {error}");
    match error {
        ResolveError::Reference {
            cause: Cause::Git(_),
            ..
        } => Trouble::passing(Step::Resolve, condition::GIT_FETCH_FAILED, message),
        ResolveError::Reference {
            cause: Cause::GivenUp,
            ..
        } => Trouble::passing(Step::Resolve, condition::RESOLVE_FAILED, message),
        _ => Trouble::lasting(Step::Resolve, condition::RESOLVE_FAILED, message),
    }
}

pub(super) fn unread(step: Step, error: &kube::Error) -> Trouble {
    Trouble::passing(step, condition::READ_FAILED, explain(error))
}
