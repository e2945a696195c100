//! `bowline uninstall`: takes away what `install` put on a cluster, and nothing else.
//!
//! What holds somebody's work stays and is named: kinds that have objects, a namespace with more in it.
//! What runs goes on running.

use std::io::Write;

use clap::Args;
use futures::{StreamExt, TryStreamExt};
use kube::api::{DeleteParams, DynamicObject, ListParams, Preconditions};
use kube::{Api, ResourceExt};

use super::bundle::{self, Piece};
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::install::on_cluster;
use super::{confirm, kinds};
use crate::api::labels;
use crate::text;

/// What `uninstall` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Remove nothing, and exit with 3 if something would be removed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// Runs the verb, prints a line for each object, and returns how the program ends.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let connection = connect::connect(options, environment).await?;
    on_cluster(&connection, "uninstall")?;
    let pieces = bundle::look(&connection, None, &mut |_| {}).await?;
    let (mut going, mut staying) = (Vec::new(), Vec::new());
    // What needs others goes before them: the controller before its rights, the kinds last.
    for piece in pieces.into_iter().rev() {
        let label = piece.place.label();
        match stays(&connection, &piece).await? {
            Some(why) => staying.push(format!("{label} stays: {why}")),
            None if piece.found.is_some() => going.push(piece),
            None => {}
        }
    }
    going.sort_by_key(|piece| (piece.is_crd(), piece.is_namespace()));
    if !going.is_empty() && !arguments.dry_run && !arguments.yes && confirm::can_ask() {
        let mut shown: String = going
            .iter()
            .map(|piece| format!("{}\n", piece.place.label()))
            .collect();
        shown += &format!("Removes {} from {}. ", going.len(), connection.target);
        confirm::ask(&shown, "y")?;
    }
    let dry = if arguments.dry_run { " (dry run)" } else { "" };
    for piece in &going {
        if !arguments.dry_run {
            remove(piece).await?;
        }
        writeln!(out, "{} deleted{dry}", text::line(&piece.place.label()))?;
    }
    out.flush()?;
    let kept = !staying.is_empty();
    staying.into_iter().for_each(&mut *say);
    if kept {
        say("what runs goes on running; nobody follows its pins any more".to_owned());
    }
    Ok(match arguments.dry_run && !going.is_empty() {
        true => Exit::Changes,
        false => Exit::Done,
    })
}

/// Says why something that is there is not removed.
async fn stays(connection: &Connection, piece: &Piece) -> Result<Option<String>, Error> {
    if piece.is_foreign() {
        return Ok(Some("bowline did not create it".to_owned()));
    }
    if piece.found.is_none() {
        return Ok(None);
    }
    if piece.is_crd() {
        return has_objects(connection, piece).await;
    }
    if piece.is_namespace() {
        let others = others(connection, &piece.place.name).await?;
        return Ok(others.first().map(|first| match others.len() {
            1 => format!("{first} is in it"),
            many => format!("{first} is in it, and {} more", many - 1),
        }));
    }
    Ok(None)
}

/// Says how many objects a kind has, if any: they would go with it, and what they stand for.
async fn has_objects(connection: &Connection, piece: &Piece) -> Result<Option<String>, Error> {
    let spec = &piece.value["spec"];
    let [group, kind] = ["/group", "/names/kind"].map(|at| {
        spec.pointer(at)
            .and_then(|text| text.as_str())
            .unwrap_or_default()
    });
    let version = spec["versions"][0]["name"].as_str().unwrap_or_default();
    let mut finder = kinds::Kinds::new(&connection.client);
    let kind = finder.of(&format!("{group}/{version}"), kind).await?;
    let objects: Api<DynamicObject> = kind.objects(&connection.client, None);
    let some = objects.list_metadata(&ListParams::default().limit(1)).await;
    let some = match some {
        // A kind that is not served has nothing to lose.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        some => some?,
    };
    let Some(first) = some.items.first() else {
        return Ok(None);
    };
    let rest = some.metadata.remaining_item_count.unwrap_or_default();
    let plural = format!("{}.{group}", kind.resource.plural);
    Ok(Some(format!(
        "it has {} such as {}/{}; kubectl delete crd {plural} removes all of them",
        match rest {
            0 => "objects".to_owned(),
            rest => format!("{} objects", rest + 1),
        },
        first.namespace().unwrap_or_default(),
        first.name_any(),
    )))
}

/// Lists what somebody else has in our namespace.
async fn others(connection: &Connection, namespace: &str) -> Result<Vec<String>, Error> {
    let finder = kinds::Kinds::new(&connection.client);
    let kinds = finder.in_namespaces().await?;
    let found = futures::stream::iter(kinds)
        .map(|kind| async move {
            let objects = kind.objects(&connection.client, Some(namespace));
            let listed = match objects.list_metadata(&ListParams::default()).await {
                // Kinds that cannot be listed keep nothing.
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

/// Tells whether an object is ours, or made by Kubernetes for every namespace or for what is ours.
fn is_cared_for(kind: &kinds::Kind, object: &impl ResourceExt) -> bool {
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

async fn remove(piece: &Piece) -> Result<(), Error> {
    let uid = piece.found.as_ref().and_then(|found| found.uid.clone());
    let parameters = DeleteParams {
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    let place = &piece.place;
    match place.objects.delete(&place.name, &parameters).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(kinds::about(&place.kind, &place.name, error)),
    }
}
