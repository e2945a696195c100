//! `bowline delete`: deletes objects. It deletes each object by its uid, so it never deletes a new object with the
//! same name.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Preconditions, PropagationPolicy};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};

use super::apply;
use super::connect::{self, Address, Connection, Environment, Options, Target};
use super::error::{Error, Exit, Failures};
use super::gitflags::GitFlags;
use super::kinds::{self, Kinds};
use super::output::Format;
use super::report::Report;
use super::target_object::TargetObject;
use super::{commits, confirm, manifests, observing};
use crate::api::{self, ReleasePin, RenderedRelease};
use crate::controllers::beside::Beside;
use crate::engine::confirmation::{Confirmation, Reason};
use crate::text;

/// The arguments of `delete`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A kind and the names of its objects, or KIND/NAME for each
    #[arg(
        value_name = "KIND NAME",
        required_unless_present = "filename",
        conflicts_with = "filename"
    )]
    words: Vec<String>,
    /// A file, a directory, or - for stdin, with the objects to delete; repeat the flag for several
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<String>,
    /// Read subdirectories too
    #[arg(short = 'R', long, requires = "filename")]
    recursive: bool,
    /// Do not report objects that do not exist
    #[arg(long)]
    ignore_not_found: bool,
    /// What happens to the dependents of a deleted object
    #[arg(long, value_enum, default_value_t = Cascade::Background)]
    cascade: Cascade,
    /// Send a server-side dry run; exit with 3 if something would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Wait until the objects are gone
    #[arg(long)]
    wait: bool,
    /// How long --wait waits for all objects together (30s, 2m)
    #[arg(long, value_name = "DURATION", value_parser = super::duration, default_value = "5m")]
    timeout: Duration,
}

/// The effect on dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cascade {
    /// The server deletes them after the object
    Background,
    /// The server deletes them before the object
    Foreground,
    /// The server keeps them
    Orphan,
}

/// An object to delete, and its effect on production.
struct ToDelete {
    place: TargetObject,
    uid: Option<String>,
    origin: Option<String>,
    /// The production environment that the deletion of the object affects; None if it affects none.
    production: Option<String>,
}

impl ToDelete {
    fn error(&self, error: Error) -> Error {
        match &self.origin {
            Some(origin) => manifests::at(origin, error),
            None => error,
        }
    }
}

/// Deletes the objects, prints a line for each of them, and returns the exit code of bowline.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let connection = connect::connect(options, environment).await?;
    apply::writable(&connection, "delete")?;
    let mut failures = Failures::default();
    let address = Address::of(&connection, options, environment);
    let places = places(
        arguments,
        options,
        (&connection, &address),
        &mut failures,
        say,
    )
    .await?;
    let mut condemned = Vec::new();
    for (place, origin) in places {
        match look(arguments, &connection, place, origin, &address).await {
            Ok(found) => condemned.extend(found),
            // If the server cannot be reached, the other requests would fail too, so stop here.
            Err(error) if error.exit == Exit::Unreachable => return Err(error),
            Err(error) => failures.add(error, say),
        }
    }
    let ask = !arguments.yes && !arguments.dry_run && !condemned.is_empty();
    if ask {
        confirm_all(&condemned, &connection)?;
    }
    let cleanups = match arguments.dry_run {
        true => Vec::new(),
        false => cleanups(arguments, &connection, &condemned).await?,
    };
    let mut gone = Vec::new();
    let mut report = Report::new(out, arguments.output, arguments.dry_run);
    let mut files = BTreeSet::new();
    for object in condemned {
        let file = commits::file_of(&connection, &object.place);
        match delete(arguments, &object).await {
            Ok(()) => {
                files.extend(file.filter(|_| !arguments.dry_run));
                report.add(&object.place, "deleted");
                gone.push(object);
            }
            Err(error) => failures.add(object.error(error), say),
        }
    }
    let changes = arguments.dry_run && !gone.is_empty();
    let beside = Beside {
        connection: &connection,
        options,
        environment,
        git: &GitFlags::default().git(environment)?,
    };
    if !arguments.wait && !gone.is_empty() {
        clean_up(&beside, cleanups, say).await;
    } else if arguments.wait && !arguments.dry_run {
        let waited = tokio::time::timeout(arguments.timeout, wait(gone, cleanups));
        let error = match beside.until(waited).await? {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_elapsed) => Some(
                Error::new(
                    Exit::Failed,
                    format!(
                        "the server accepted the deletion; not all objects are gone after {:?}",
                        arguments.timeout
                    ),
                )
                .with_hint("a finalizer may block the deletion: bowline get KIND NAME -o yaml"),
            ),
        };
        if let Some(error) = error {
            failures.add(error, say);
        }
    }
    commits::say_uncommitted(&files, say);
    report.end(!failures.is_empty(), say)?;
    Ok(match failures.exit() {
        Exit::Done if changes => Exit::Changes,
        exit => exit,
    })
}

/// Returns the objects to delete. The objects of files come in reverse order, so that an object is deleted before its
/// dependencies.
async fn places(
    arguments: &Arguments,
    options: &Options,
    (connection, address): (&Connection, &Address),
    failures: &mut Failures,
    say: &mut dyn FnMut(String),
) -> Result<Vec<(TargetObject, Option<String>)>, Error> {
    let mut finder = Kinds::new(&connection.client);
    let mut found = Vec::new();
    if arguments.filename.is_empty() {
        for (said, names) in kinds::objects_of(&arguments.words)? {
            if names.is_empty() {
                let get = address.bowline(&format!("bowline get {} -o name", text::quoted(&said)));
                let message = format!("the name of the {said} is missing");
                return Err(
                    Error::new(Exit::Usage, message).with_hint(format!("list the names: {get}"))
                );
            }
            let kind = finder.named(&said).await?;
            for name in names {
                let place =
                    TargetObject::new(connection, kind.clone(), &connection.namespace, &name);
                found.push((place, None));
            }
        }
        return Ok(found);
    }
    let manifests = manifests::read(&arguments.filename, arguments.recursive, failures, say);
    for manifest in manifests.into_iter().rev() {
        match apply::place(&mut finder, connection, options, &manifest).await {
            Ok(place) => found.push((place, Some(manifest.origin))),
            Err(error) => failures.add(manifests::at(&manifest.origin, error), say),
        }
    }
    Ok(found)
}

/// Looks up an object to delete. Returns None if the object does not exist and the user gave `--ignore-not-found`.
async fn look(
    arguments: &Arguments,
    connection: &Connection,
    place: TargetObject,
    origin: Option<String>,
    address: &Address,
) -> Result<Option<ToDelete>, Error> {
    let found = place.objects.get_metadata_opt(&place.name).await;
    let mut object = ToDelete {
        place,
        uid: None,
        origin,
        production: None,
    };
    match found {
        Ok(Some(metadata)) => {
            object.uid = metadata.uid();
            object.production = production(connection, &object.place).await?;
            Ok(Some(object))
        }
        Ok(None) if arguments.ignore_not_found => Ok(None),
        Ok(None) => {
            let TargetObject {
                kind,
                namespace,
                name,
                ..
            } = &object.place;
            let namespace = namespace.as_deref().unwrap_or_default();
            let error = kinds::missing(kind, &connection.client, namespace, name, address).await;
            Err(object.error(error))
        }
        Err(error) => {
            let error = kinds::about(&object.place.kind, &object.place.name, error);
            Err(object.error(error))
        }
    }
}

async fn delete(arguments: &Arguments, object: &ToDelete) -> Result<(), Error> {
    let parameters = DeleteParams {
        dry_run: arguments.dry_run,
        propagation_policy: Some(match arguments.cascade {
            Cascade::Background => PropagationPolicy::Background,
            Cascade::Foreground => PropagationPolicy::Foreground,
            Cascade::Orphan => PropagationPolicy::Orphan,
        }),
        preconditions: Some(Preconditions {
            uid: object.uid.clone(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let TargetObject {
        kind,
        objects,
        name,
        ..
    } = &object.place;
    match objects.delete(name, &parameters).await {
        Ok(_) => Ok(()),
        // Another client has deleted the object since it was looked up.
        Err(kube::Error::Api(status)) if status.code == 404 && arguments.ignore_not_found => Ok(()),
        Err(error) => Err(kinds::about(kind, name, error)),
    }
}

async fn wait(gone: Vec<ToDelete>, cleanups: Vec<Cleanup>) -> Result<(), Error> {
    for ToDelete { place, uid, .. } in gone {
        let uid = uid.unwrap_or_default();
        await_condition(place.objects, &place.name, conditions::is_deleted(&uid)).await?;
    }
    for (api, name, uid) in cleanups {
        await_condition(api, &name, conditions::is_deleted(&uid)).await?;
    }
    Ok(())
}

/// A RenderedRelease that the deletion removes: its API client, its name and its uid. The controller first deletes
/// its workloads.
type Cleanup = (Api<RenderedRelease>, String, String);

/// Returns the RenderedReleases of an embedded store that a deletion removes: those that the user named, those that a
/// deleted object owns, and those in a deleted namespace. Empty for other targets.
async fn cleanups(
    arguments: &Arguments,
    connection: &Connection,
    condemned: &[ToDelete],
) -> Result<Vec<Cleanup>, Error> {
    if !matches!(connection.target, Target::Embedded { .. }) || condemned.is_empty() {
        return Ok(Vec::new());
    }
    let all: Api<RenderedRelease> = Api::all(connection.client.clone());
    let is_removed = |release: &RenderedRelease| {
        let owners = release.owner_references().iter();
        let owners: Vec<&str> = owners.map(|owner| owner.uid.as_str()).collect();
        condemned.iter().any(|object| {
            let uid = object.uid.as_deref().unwrap_or_default();
            let place = &object.place;
            let is_namespace = place.kind.resource.plural == "namespaces";
            release.uid().as_deref() == Some(uid)
                || arguments.cascade != Cascade::Orphan && owners.contains(&uid)
                || is_namespace && release.namespace().as_deref() == Some(&*place.name)
        })
    };
    let found = all.list(&ListParams::default()).await?;
    let removed = found.items.into_iter().filter(is_removed);
    Ok(removed
        .filter_map(|release| {
            let namespace = release.namespace()?;
            let api = Api::namespaced(connection.client.clone(), &namespace);
            Some((api, release.name_any(), release.uid()?))
        })
        .collect())
}

/// Runs the controllers of an embedded store until they have deleted the workloads of these RenderedReleases. An
/// error is only a warning, because the objects are already deleted.
async fn clean_up(beside: &Beside<'_>, cleanups: Vec<Cleanup>, say: &mut dyn FnMut(String)) {
    if cleanups.is_empty() {
        return;
    }
    let count = cleanups.len();
    let ended = async {
        for (api, name, uid) in cleanups {
            // If the watch fails, the error is ignored: the controllers delete the workloads the next time they run.
            let _ = await_condition(api, &name, conditions::is_deleted(&uid)).await;
        }
    };
    let why = match beside.cleaned(ended).await {
        Ok(true) => return,
        Ok(false) => "the controllers have not removed all workloads yet".to_owned(),
        Err(error) => error.to_string(),
    };
    let releases = text::counted(count, "RenderedReleases");
    say(format!(
        "warning: the objects were deleted; {why} ({releases})"
    ));
    if observing::is_unattended(beside.connection).await {
        let how = observing::how_to_continue(&observing::address(beside));
        say(format!("hint: {how}"));
    }
}

/// Returns the production environment that a ReleasePin, a RenderedRelease or an Environment belongs to. None if it
/// belongs to no production environment, or for other kinds.
async fn production(
    connection: &Connection,
    place: &TargetObject,
) -> Result<Option<String>, Error> {
    let is = |resource: &ApiResource| {
        (&place.kind.resource.group, &place.kind.resource.plural)
            == (&resource.group, &resource.plural)
    };
    let field = if is(&ApiResource::erase::<ReleasePin>(&())) {
        "/spec/environment"
    } else if is(&ApiResource::erase::<RenderedRelease>(&())) {
        "/spec/environmentName"
    } else if is(&ApiResource::erase::<api::Environment>(&())) {
        "/metadata/name"
    } else {
        return Ok(None);
    };
    let Some(namespace) = &place.namespace else {
        return Ok(None);
    };
    let found = place.objects.get_opt(&place.name).await?;
    let found = found.and_then(|found| serde_json::to_value(found).ok());
    let name = found
        .as_ref()
        .and_then(|found| found.pointer(field)?.as_str());
    let Some(name) = name else {
        return Ok(None);
    };
    let environments: Api<api::Environment> = Api::namespaced(connection.client.clone(), namespace);
    let environment = environments.get_opt(name).await?;
    let production = environment.is_some_and(|environment| environment.spec.is_production);
    Ok(production.then(|| name.to_owned()))
}

/// Asks for confirmation on a terminal. Without a terminal, refuses a deletion that affects production.
fn confirm_all(condemned: &[ToDelete], connection: &Connection) -> Result<(), Error> {
    let production = condemned
        .iter()
        .find_map(|object| object.production.as_deref());
    let confirmation = Confirmation {
        reason: Reason::Unrecorded,
        ..Confirmation::of_production(production)
    };
    let mut shown = String::new();
    for ToDelete { place, .. } in condemned {
        let namespace = place.namespace.iter();
        let namespace = namespace.map(|namespace| format!(" in {namespace}"));
        shown += &format!("{}{}\n", place.label(), namespace.collect::<String>());
    }
    shown += &format!("Deletes {} on {}. ", condemned.len(), connection.target);
    confirm::confirm(confirmation, false, &shown).map(drop)
}
