//! `bowline apply`: writes the objects of files to the target by server-side apply.
//!
//! It tries every object, and reports each failure with file and line. It deletes nothing. In a repository, it edits
//! files and makes no commit.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use clap::Args;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::connect::{self, Connection, Environment, Options, Target};
use super::error::{Error, Exit, Failures};
use super::gitflags::GitFlags;
use super::kinds::{self, Kinds};
use super::manifests::{self, Manifest};
use super::output::Format;
use super::report::Report;
use super::target_object::TargetObject;
use super::{commits, observing};
use crate::api::ReleasePin;
use crate::controllers::beside::Beside;
use crate::engine::world::Key;

/// How long bowline waits until the server accepts objects of a newly created kind.
const ESTABLISHED: Duration = Duration::from_secs(30);

/// The arguments of `apply`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A file, a directory, or - for stdin; repeat the flag for several
    #[arg(short, long, required = true, value_name = "FILE")]
    filename: Vec<String>,
    /// Read subdirectories too
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Send a server-side dry run; exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// Take over fields that other field managers own
    #[arg(long)]
    force_conflicts: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// The name under which the server records who owns the applied fields
    #[arg(long, value_name = "NAME", default_value = "bowline-apply")]
    field_manager: String,
    /// Accepted for compatibility with kubectl: bowline always uses server-side apply
    #[arg(long, hide = true)]
    server_side: bool,
}

/// The effect of applying an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object did not exist and was created.
    Created,
    /// The object existed and was changed.
    Configured,
    /// The object already had the content of the file.
    Unchanged,
}

impl Change {
    /// Returns the word that kubectl prints for this effect.
    pub fn word(self) -> &'static str {
        match self {
            Change::Created => "created",
            Change::Configured => "configured",
            Change::Unchanged => "unchanged",
        }
    }
}

/// Applies the objects, prints a line for each of them, and returns the exit code of bowline.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let connection = connect::connect(options, environment).await?;
    writable(&connection, "apply")?;
    let mut failures = Failures::default();
    let manifests = manifests::read(&arguments.filename, arguments.recursive, &mut failures, say);
    let mut kinds = Kinds::new(&connection.client);
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    let mut changes = false;
    let mut report = Report::new(out, arguments.output, arguments.dry_run);
    let parameters = PatchParams {
        dry_run: arguments.dry_run,
        // In a repository, git is the only field manager. So there are no conflicts, and the write is forced.
        force: arguments.force_conflicts || !connection.target.has_field_managers(),
        field_manager: Some(arguments.field_manager.clone()),
        field_validation: Some(ValidationDirective::Strict),
    };
    let (mut pins, mut files) = (Vec::new(), BTreeSet::new());
    let (all, mut new_kinds) = (manifests.len(), Vec::<String>::new());
    for (done, manifest) in manifests.into_iter().enumerate() {
        if !manifest.is_crd() {
            for name in std::mem::take(&mut new_kinds) {
                if let Err(error) = established(&connection.client, &name).await {
                    failures.add(error, say);
                }
            }
        }
        let rest = all - done - 1;
        let place = match place(&mut kinds, &connection, options, &manifest).await {
            Ok(place) => place,
            Err(error) => {
                let silent = error.exit == Exit::Unreachable;
                failures.add(manifests::at(&manifest.origin, error), say);
                if silent {
                    say(format!("stopped; {rest} of {all} objects were not sent"));
                    break;
                }
                continue;
            }
        };
        if let Some(first) = places.insert(place.key(), manifest.origin.clone()) {
            let origin = &manifest.origin;
            say(format!(
                "warning: {origin}: {} is also in {first}; the last one wins",
                place.label()
            ));
        }
        if let Err(error) = storable(&connection, &place) {
            failures.add(manifests::at(&manifest.origin, error), say);
            continue;
        }
        match put(&place, &manifest.value, &parameters).await {
            Ok(change) => {
                changes |= change != Change::Unchanged;
                report.add(&place, change.word());
                if arguments.dry_run || change == Change::Unchanged {
                    continue;
                }
                files.extend(commits::file_of(&connection, &place));
                if manifest.is_crd() && change == Change::Created {
                    new_kinds.push(manifest.name);
                } else if place.kind.resource == ApiResource::erase::<ReleasePin>(&()) {
                    pins.push(place);
                }
            }
            Err(error) => {
                let silent = !matches!(error, kube::Error::Api(_))
                    && connect::failure(&error) == connect::Failure::Unreachable;
                failures.add(
                    manifests::at(&manifest.origin, explained(&place, error)),
                    say,
                );
                if silent {
                    say(format!("stopped; {rest} of {all} objects were not sent"));
                    break;
                }
            }
        }
    }
    if let Err(error) = observed(&connection, options, environment, &pins, say).await {
        let why = error.message;
        say(format!("warning: the changes were made, but {why}"));
    }
    commits::say_uncommitted(&files, say);
    report.end(!failures.is_empty(), say)?;
    Ok(match failures.exit() {
        Exit::Done if arguments.dry_run && changes => Exit::Changes,
        exit => exit,
    })
}

/// Waits until the controllers of an embedded store have observed the changed ReleasePins. Does nothing for other
/// targets.
async fn observed(
    connection: &Connection,
    options: &Options,
    environment: &Environment,
    pins: &[TargetObject],
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let is_embedded = matches!(connection.target, Target::Embedded { .. });
    if pins.is_empty() || !is_embedded {
        return Ok(());
    }
    let mut changed = Vec::with_capacity(pins.len());
    for place in pins {
        let found = place.objects.get_metadata_opt(&place.name).await?;
        let namespace = place.namespace.as_deref().unwrap_or_default();
        let generation = found.and_then(|found| found.metadata.generation);
        changed.push((
            Key::new(namespace, &place.name),
            generation.unwrap_or_default(),
        ));
    }
    let beside = Beside {
        connection,
        options,
        environment,
        git: &GitFlags::default().git(environment)?,
    };
    observing::observe(&beside, &changed, say).await;
    Ok(())
}

/// Returns an error in read-only mode. Verbs that write call this first, so that they fail before they send a
/// request.
pub fn writable(connection: &Connection, verb: &str) -> Result<(), Error> {
    match &connection.readonly {
        None => Ok(()),
        Some(why) => Err(Error::new(
            Exit::NotAllowed,
            format!("read-only: {verb} is not allowed ({why})"),
        )),
    }
}

/// Returns an error if the target is a repository and another program defines the object's kind, because bowline
/// cannot write such an object to a repository.
fn storable(connection: &Connection, place: &TargetObject) -> Result<(), Error> {
    match connection.target.stores(&place.kind.resource.group) {
        false => {
            let message = format!("{} is no object of bowline", place.label());
            Err(Error::new(Exit::Refused, message)
                .with_hint("add a file of another kind to the repository with git"))
        }
        true => Ok(()),
    }
}

/// Finds the kind, namespace and name under which an object of a file is stored on the target.
pub async fn place(
    kinds: &mut Kinds<'_>,
    connection: &Connection,
    options: &Options,
    manifest: &Manifest,
) -> Result<TargetObject, Error> {
    let kind = kinds.of(&manifest.api_version, &manifest.kind).await?;
    let namespace = match (&manifest.namespace, &options.namespace) {
        (Some(own), Some(told)) if own != told && kind.namespaced => {
            let message = format!(
                "{}/{} names the namespace {own}, but -n names {told}",
                kind.label(),
                manifest.name
            );
            return Err(Error::new(Exit::Failed, message)
                .with_hint("leave out -n")
                .and_hint("or remove the namespace from the file"));
        }
        (Some(own), _) => own,
        (None, _) => &connection.namespace,
    };
    Ok(TargetObject::new(
        connection,
        kind,
        namespace,
        &manifest.name,
    ))
}

/// Applies an object of a file to the target. Returns whether this created, changed or did not change the object.
pub async fn put(
    place: &TargetObject,
    object: &Value,
    parameters: &PatchParams,
) -> Result<Change, kube::Error> {
    let (name, patch) = (&place.name, Patch::Apply(object));
    if parameters.dry_run {
        // In a dry run, the server returns the old resourceVersion even if the object would change. So the contents
        // before and after are compared.
        let before = place.objects.get_opt(name).await?;
        let after = place.objects.patch(name, parameters, &patch).await?;
        return Ok(match before {
            None => Change::Created,
            Some(before) if comparable(&before) == comparable(&after) => Change::Unchanged,
            Some(_) => Change::Configured,
        });
    }
    let before = place.objects.get_metadata_opt(name).await?;
    let after = place
        .objects
        .patch_metadata(name, parameters, &patch)
        .await?;
    Ok(match before {
        None => Change::Created,
        Some(before) if before.resource_version() == after.resource_version() => Change::Unchanged,
        Some(_) => Change::Configured,
    })
}

/// Returns an object without the fields that differ between two answers of the server even if the content is the
/// same.
fn comparable(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or(Value::Null);
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.remove("resourceVersion");
        if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
            for manager in managers.iter_mut().filter_map(Value::as_object_mut) {
                manager.remove("time");
            }
        }
    }
    value
}

/// Converts the error of applying an object. If another field manager owns a field, adds a hint.
pub fn explained(place: &TargetObject, error: kube::Error) -> Error {
    let is_managed = match &error {
        kube::Error::Api(status) => status.details.iter().any(|details| {
            let mut causes = details.causes.iter();
            causes.any(|cause| cause.reason == "FieldManagerConflict")
        }),
        _ => false,
    };
    let error = kinds::about(&place.kind, &place.name, error);
    match is_managed {
        true => error
            .with_hint("other field managers own these fields: remove the fields from the file")
            .and_hint("or take the fields over: --force-conflicts"),
        false => error,
    }
}

/// Waits until the server accepts objects of the newly created CRD `name`.
pub async fn established(client: &Client, name: &str) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let ready = await_condition(api, name, conditions::is_crd_established());
    match tokio::time::timeout(ESTABLISHED, ready).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_elapsed) => {
            let message = format!("{name} is not served after {ESTABLISHED:?}");
            let hint = format!("look at its conditions: bowline get crd {name} -o yaml");
            Err(Error::new(Exit::Failed, message).with_hint(hint))
        }
    }
}
