//! `bowline uninstall`: removes the objects from a cluster that `install` created, and nothing else.
//!
//! Without `--remove-running`, all workloads continue to run, even if somebody deletes bowline's objects later. To
//! ensure this, `uninstall` ends the controller and removes the finalizers of the RenderedReleases. With such a
//! finalizer, the deletion of a RenderedRelease would wait for a controller, which would then delete the workloads.
//! With `--remove-running`, the controller deletes the workloads before it ends.
//!
//! CRDs whose kind still has objects stay, and so does a namespace with other objects. Each step can be repeated, so
//! a second run continues an interrupted one.

mod lease;
mod removal;
mod rendered;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use futures::{StreamExt, TryStreamExt};
use kube::api::{
    DeleteParams, DynamicObject, ListParams, ObjectMeta, Preconditions, PropagationPolicy,
};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use tokio::time::Instant;

use super::bundle::{self, Piece};
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::install::on_cluster;
use super::output::Format;
use super::report::Report;
use super::{confirm, kinds};
use crate::api::labels;
use crate::connect::Address;
use crate::engine::confirmation::{Confirmation, Reason};
use rendered::Rendered;

/// The flags of `uninstall`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Remove nothing; exit with 3 if something would be removed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Keep every workload running that bowline deployed; this is the default
    #[arg(long, conflicts_with = "remove_running")]
    keep_running: bool,
    /// Delete every ReleasePin and RenderedRelease first; the controller removes their workloads
    #[arg(long)]
    remove_running: bool,
    /// How long to wait for the controller and for objects that are being deleted (30s, 2m)
    #[arg(long, value_name = "DURATION", value_parser = super::duration, default_value = "5m")]
    timeout: Duration,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The objects of bowline that `uninstall` found on a cluster.
struct Survey {
    pieces: Vec<Piece>,
    /// The RenderedReleases on the cluster; empty if bowline did not install their CRD.
    rendered: Vec<Rendered>,
    /// The metadata of the ReleasePins on the cluster; empty if bowline did not install their CRD.
    pins: Vec<ObjectMeta>,
}

impl Survey {
    async fn take(connection: &Connection) -> Result<Self, Error> {
        let pieces = bundle::look(connection, None, &mut |_| {}).await?;
        Ok(Self {
            rendered: rendered::list(&connection.client, &pieces).await?,
            pins: removal::pins(&connection.client, &pieces).await?,
            pieces,
        })
    }

    /// Splits the objects of bowline into those to remove, in the order of their removal, and those that stay, each
    /// with the reason.
    async fn sort(
        &self,
        connection: &Connection,
        removes_running: bool,
    ) -> Result<(Vec<&Piece>, Vec<String>), Error> {
        let (mut going, mut staying) = (Vec::new(), Vec::new());
        for piece in self.pieces.iter().rev() {
            if piece.found.is_none() {
                continue;
            }
            let is_emptied = removes_running && rendered::is_removed_with_workloads(piece);
            match stays(connection, piece).await? {
                Some(why) if !is_emptied => {
                    staying.push(format!("{} stays: {why}", piece.place.label()));
                }
                _ => going.push(piece),
            }
        }
        // Remove each object before the objects that it depends on.
        going.sort_by_key(|it| (it.is_namespace(), it.is_crd(), !it.is_controller()));
        Ok((going, staying))
    }

    fn claimed(&self) -> impl Iterator<Item = &Rendered> {
        self.rendered.iter().filter(|it| it.is_claimed())
    }
}

/// Removes the objects, prints a line for each of them, and returns the exit code of bowline.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let connection = connect::connect(options, environment).await?;
    on_cluster(&connection, "uninstall")?;
    let address = Address::of(&connection, options, environment);
    let mut report = Report::new(out, arguments.output, arguments.dry_run);
    let ended = uninstall(arguments, &connection, &address, &mut report, say).await;
    report.end(ended.is_err(), say)?;
    ended
}

async fn uninstall(
    arguments: &Arguments,
    connection: &Connection,
    address: &Address,
    report: &mut Report<'_>,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let survey = Survey::take(connection).await?;
    let (going, staying) = survey.sort(connection, arguments.remove_running).await?;
    let removes =
        arguments.remove_running && !(survey.rendered.is_empty() && survey.pins.is_empty());
    if arguments.dry_run {
        return Ok(foresee(arguments, &survey, &going, staying, report, say));
    }
    if removes {
        let end = Instant::now() + arguments.timeout;
        removal::check_controller(&connection.client, &survey, address, end, say).await?;
    }
    confirm(arguments, connection, &survey, &going)?;
    let end = Instant::now() + arguments.timeout;
    if arguments.remove_running && !removes {
        say("there are no RenderedReleases, so uninstall removes no workload".to_owned());
    }
    if removes {
        removal::remove(&connection.client, &survey.pieces, end, report, say).await?;
    }
    for piece in going.iter().filter(|piece| piece.is_controller()) {
        remove(piece, PropagationPolicy::Foreground).await?;
        until_gone(piece, end).await?;
        report.add(&piece.place, "deleted");
    }
    let system = survey.pieces.iter().find(|piece| piece.is_namespace());
    if let Some(system) = system.filter(|system| system.is_being_deleted()) {
        // Deleting the namespace also deletes the Lease. Without the Lease, a controller that still runs stops.
        until_gone(system, end).await?;
    }
    let mut rest = Rest {
        connection,
        pieces: &survey.pieces,
        report,
        end,
    };
    // The controller may have added finalizers just before it ended, so look for them again.
    let left = rendered::list(&connection.client, &survey.pieces).await?;
    let removed = match left.iter().any(Rendered::is_claimed) {
        true => {
            let work = async |client| rest.remove(&client).await;
            lease::hold(&connection.client, end, say, work).await?
        }
        false => rest.remove(&connection.client).await?,
    };
    removed.staying.into_iter().for_each(&mut *say);
    if removed.released > 0 {
        let others = match removed.ending.is_empty() {
            true => "the workloads",
            false => "the other workloads",
        };
        if !removed.ending.is_empty() {
            say(format!(
                "warning: the deletion of these objects began before, and uninstall cannot stop it: {}",
                listed(&removed.ending)
            ));
        }
        say(format!(
            "{others} of {} continue to run, and no controller updates them; after bowline install, the controller manages them again",
            counted(removed.released, "RenderedRelease")
        ));
    }
    match removed.namespace {
        Some(namespace) => rest.remove_one(&namespace).await?,
        None => lease::delete(&connection.client, say).await?,
    }
    Ok(Exit::Done)
}

/// The values for the second part of `uninstall`, which runs after the controller has ended.
struct Rest<'a, 'o> {
    connection: &'a Connection,
    pieces: &'a [Piece],
    report: &'a mut Report<'o>,
    end: Instant,
}

/// The result of the second part of `uninstall`.
struct Removed {
    /// The number of RenderedReleases whose finalizer `uninstall` removed.
    released: usize,
    /// The workloads that are being deleted in spite of `uninstall`, because their deletion started before the
    /// finalizers were removed.
    ending: Vec<String>,
    /// The objects that stay on the cluster, each with the reason.
    staying: Vec<String>,
    /// The namespace of bowline, if it is to be removed. It is removed last, because it contains the Lease.
    namespace: Option<Piece>,
}

impl Rest<'_, '_> {
    /// Removes the finalizers of the RenderedReleases, using `client`. Then removes all objects of bowline except the
    /// namespace.
    async fn remove(&mut self, client: &Client) -> Result<Removed, Error> {
        let ending = rendered::ending(client, self.pieces).await?;
        let released = rendered::release(client, self.pieces, self.report).await?;
        let mut survey = Survey::take(self.connection).await?;
        let (going, staying) = survey.sort(self.connection, false).await?;
        let is_going = going.iter().any(|piece| piece.is_namespace());
        for piece in going.iter().filter(|piece| !piece.is_namespace()) {
            self.delete(piece).await?;
        }
        for piece in going.iter().filter(|piece| !piece.is_namespace()) {
            until_gone(piece, self.end).await?;
        }
        let namespace = survey.pieces.iter().position(|piece| piece.is_namespace());
        let namespace = namespace.map(|at| survey.pieces.swap_remove(at));
        Ok(Removed {
            released,
            ending,
            staying,
            namespace: namespace.filter(|_| is_going),
        })
    }

    async fn remove_one(&mut self, piece: &Piece) -> Result<(), Error> {
        self.delete(piece).await?;
        until_gone(piece, self.end).await
    }

    async fn delete(&mut self, piece: &Piece) -> Result<(), Error> {
        if !piece.is_being_deleted() {
            remove(piece, PropagationPolicy::Background).await?;
            self.report.add(&piece.place, "deleted");
        }
        Ok(())
    }
}

/// Returns the first few of the names as text, and the number of the other names.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(removal::NAMED);
    let shown: Vec<&str> = shown.map(String::as_str).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Prints what `uninstall` would do, for a dry run.
fn foresee(
    arguments: &Arguments,
    survey: &Survey,
    going: &[&Piece],
    staying: Vec<String>,
    report: &mut Report<'_>,
    say: &mut dyn FnMut(String),
) -> Exit {
    if arguments.remove_running {
        for pin in &survey.pins {
            removal::report_pin(report, pin);
        }
        for each in &survey.rendered {
            each.report(report, "deleted with its workloads");
        }
    } else {
        for each in survey.claimed() {
            each.report(report, "loses its finalizer");
        }
    }
    for piece in going {
        report.add(&piece.place, "deleted");
    }
    staying.into_iter().for_each(say);
    let removes = arguments.remove_running && !survey.rendered.is_empty();
    match going.is_empty() && !removes && survey.claimed().next().is_none() {
        true => Exit::Done,
        false => Exit::Changes,
    }
}

/// Prints what `uninstall` will do, and asks for confirmation. Without a terminal, `--yes` is needed to change
/// RenderedReleases.
fn confirm(
    arguments: &Arguments,
    connection: &Connection,
    survey: &Survey,
    going: &[&Piece],
) -> Result<(), Error> {
    let lines = |items: Vec<String>| {
        items
            .iter()
            .map(|it| format!("  {it}\n"))
            .collect::<String>()
    };
    let concerned: Vec<String> = match arguments.remove_running {
        true => survey.rendered.iter().map(ToString::to_string).collect(),
        false => survey.claimed().map(ToString::to_string).collect(),
    };
    if arguments.yes || (going.is_empty() && concerned.is_empty()) {
        return Ok(());
    }
    let confirmation = Confirmation {
        words: match arguments.remove_running {
            true => vec!["remove".to_owned()],
            false => Vec::new(),
        },
        reason: Reason::Unrecorded,
        risk: (!concerned.is_empty()).then(|| {
            let concerned = counted(concerned.len(), "RenderedRelease");
            format!("uninstall (it affects {concerned})")
        }),
        ..Confirmation::default()
    };
    let mut shown = String::new();
    if !concerned.is_empty() {
        shown += match arguments.remove_running {
            true => "The controller removes every workload of these RenderedReleases:\n",
            false => {
                "These RenderedReleases lose their finalizer. Their workloads continue to run, even if the RenderedReleases are deleted later:\n"
            }
        };
        shown += &lines(concerned);
    }
    let begun: Vec<&&Piece> = going.iter().filter(|it| it.is_being_deleted()).collect();
    if !begun.is_empty() {
        shown += "The cluster is already deleting these objects, and with a kind all objects of that kind:\n";
        shown += &lines(begun.iter().map(|it| it.place.label()).collect());
    }
    let rest: Vec<&&Piece> = going.iter().filter(|it| !it.is_being_deleted()).collect();
    if !rest.is_empty() {
        shown += "Uninstall deletes:\n";
        shown += &lines(rest.iter().map(|it| it.place.label()).collect());
    }
    shown += &format!("On {}. ", connection.target);
    confirm::confirm(confirmation, false, &shown).map(drop)
}

/// Returns the reason why an object stays on the cluster; None if `uninstall` removes it.
async fn stays(connection: &Connection, piece: &Piece) -> Result<Option<String>, Error> {
    if piece.is_foreign() {
        return Ok(Some("bowline did not create it".to_owned()));
    }
    // The cluster is already deleting the object, so it does not stay.
    if piece.is_being_deleted() {
        return Ok(None);
    }
    if piece.is_crd() {
        return has_objects(&connection.client, piece).await;
    }
    if piece.is_namespace() {
        let others = others(connection, &piece.place.name).await?;
        return Ok(others.first().map(|first| match others.len() {
            1 => format!("it contains {first}"),
            many => format!("it contains {first} and {} more", many - 1),
        }));
    }
    Ok(None)
}

/// Returns the number of objects that a CRD has as text; None if it has none. A CRD with objects must stay, because
/// its deletion would delete them.
async fn has_objects(client: &Client, piece: &Piece) -> Result<Option<String>, Error> {
    let kind = rendered::defined(piece);
    let objects: Api<DynamicObject> = kind.objects(client, None);
    let some = objects.list_metadata(&ListParams::default().limit(1)).await;
    let some = match some {
        // The server does not have the kind, so there are no objects.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        some => some?,
    };
    let Some(first) = some.items.first() else {
        return Ok(None);
    };
    let rest = some.metadata.remaining_item_count.unwrap_or_default();
    Ok(Some(format!(
        "it has {} such as {}/{}",
        match rest {
            0 => "objects".to_owned(),
            rest => format!("{} objects", rest + 1),
        },
        first.namespace().unwrap_or_default(),
        first.name_any(),
    )))
}

/// Returns the objects in bowline's namespace that belong to users or to other programs, so that the namespace must
/// stay.
async fn others(connection: &Connection, namespace: &str) -> Result<Vec<String>, Error> {
    let finder = kinds::Kinds::new(&connection.client);
    let kinds = finder.in_namespaces().await?;
    let found = futures::stream::iter(kinds)
        .map(|kind| async move {
            let objects = kind.objects(&connection.client, Some(namespace));
            let listed = match objects.list_metadata(&ListParams::default()).await {
                // The server cannot list objects of this kind, so the kind is ignored.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 405) => Vec::new(),
                listed => listed?.items,
            };
            let foreign = listed
                .into_iter()
                .filter(|object| !is_cared_for(&kind, object));
            Ok::<_, kube::Error>(
                foreign
                    .map(|object| format!("{}/{}", kind.label(), object.name_any()))
                    .collect::<Vec<_>>(),
            )
        })
        .buffered(8)
        .try_concat()
        .await;
    Ok(found?)
}

/// Returns whether an object need not keep the namespace: it belongs to bowline, or Kubernetes created it for the
/// namespace or for an object of bowline.
fn is_cared_for(kind: &kinds::Kind, object: &impl ResourceExt) -> bool {
    // bowline deployed this workload for a user, so it belongs to the user and keeps the namespace.
    if object.labels().contains_key(labels::RELEASE_UID) {
        return false;
    }
    let ours = object.labels().get(labels::PART_OF);
    let owned = !object.owner_references().is_empty();
    let resource = (kind.resource.kind.as_str(), object.name_any());
    ours.is_some_and(|part| part == labels::PART_OF_BOWLINE)
        || owned
        || matches!(&resource, ("ConfigMap", name) if name == "kube-root-ca.crt")
        || matches!(&resource, ("ServiceAccount", name) if name == "default")
        || matches!(
            resource.0,
            "Event" | "Endpoints" | "EndpointSlice" | "PodMetrics"
        )
}

async fn remove(piece: &Piece, dependents: PropagationPolicy) -> Result<(), Error> {
    let uid = piece.found.as_ref().and_then(|found| found.uid.clone());
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        propagation_policy: Some(dependents),
        ..DeleteParams::default()
    };
    let place = &piece.place;
    match place.objects.delete(&place.name, &parameters).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(kinds::about(&place.kind, &place.name, error)),
    }
}

/// Waits until an object is deleted, at most until `end`.
async fn until_gone(piece: &Piece, end: Instant) -> Result<(), Error> {
    let place = &piece.place;
    let uid = piece.found.as_ref().and_then(|found| found.uid.clone());
    let uid = uid.unwrap_or_default();
    let is_gone = conditions::is_deleted(&uid);
    let gone = await_condition(place.objects.clone(), &place.name, is_gone);
    match tokio::time::timeout_at(end, gone).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.into()),
        Err(_elapsed) => {
            let message = format!("{} is still being deleted", place.label());
            let hint = match piece.is_crd() {
                true => {
                    "finalizers that bowline did not set block the deletion of its objects; when they are removed, repeat bowline uninstall"
                }
                false => "repeat bowline uninstall, with a longer --timeout",
            };
            Err(Error::new(Exit::Failed, message).with_hint(hint))
        }
    }
}

fn counted(number: usize, kind: &str) -> String {
    match number {
        1 => format!("1 {kind}"),
        number => format!("{number} {kind}s"),
    }
}
