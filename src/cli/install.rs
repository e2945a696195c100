//! `bowline install`: puts kinds, rules, rights and the controller on a cluster.
//!
//! Everything is looked at first. Where one of its names belongs to somebody else, nothing is written:
//! bowline's definition of a kind over another's would prune what that one's objects hold.

use std::io::Write;

use clap::Args;
use kube::api::{PatchParams, ValidationDirective};

use super::apply::{self, Change, writable};
use super::bundle::{self, MANAGER, Piece};
use super::connect::{self, Connection, Environment, Options, Target};
use super::error::{Error, Exit};
use crate::api::labels;
use crate::text;

/// What `install` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Change nothing; let the server try it, and exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// The image of the controller
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
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
    on_cluster(&connection, "install")?;
    let pieces = bundle::look(&connection, arguments.image.as_deref(), say).await?;
    refuse_foreign(&pieces)?;
    let (mut changes, mut crds) = (false, Vec::new());
    let mut namespace = false;
    for piece in &pieces {
        // What stands before the kinds need not wait for them.
        if !piece.is_crd() {
            for name in crds.drain(..) {
                apply::established(&connection.client, name).await?;
            }
        }
        // A namespace that somebody made for us is good as it is.
        if piece.is_namespace() && piece.is_foreign() {
            continue;
        }
        namespace |= piece.is_namespace() && piece.found.is_none();
        let change = match namespace && arguments.dry_run && piece.place.namespace.is_some() {
            // The server tries nothing in a namespace that is not there yet.
            true => Change::Created,
            false => put(piece, arguments.dry_run).await?,
        };
        changes |= change != Change::Unchanged;
        if piece.is_crd() && change == Change::Created && !arguments.dry_run {
            crds.push(&piece.place.name);
        }
        let dry = if arguments.dry_run { " (dry run)" } else { "" };
        let (label, word) = (piece.place.label(), change.word());
        writeln!(out, "{} {word}{dry}", text::line(&label))?;
    }
    out.flush()?;
    Ok(match arguments.dry_run && changes {
        true => Exit::Changes,
        false => Exit::Done,
    })
}

/// Refuses what makes no sense on a store that has everything, or where only reads pass.
pub(super) fn on_cluster(connection: &Connection, verb: &str) -> Result<(), Error> {
    if let Target::Embedded { .. } | Target::Repository { .. } = &connection.target {
        let message = format!(
            "{verb} is for a cluster; {} has everything",
            connection.target
        );
        return Err(Error::new(Exit::Usage, message).with_hint("--context chooses a cluster"));
    }
    writable(connection, verb)
}

/// Refuses a cluster where somebody else's object has one of our names.
fn refuse_foreign(pieces: &[Piece]) -> Result<(), Error> {
    let foreign: Vec<&Piece> = pieces
        .iter()
        .filter(|piece| piece.is_foreign() && !piece.is_namespace())
        .collect();
    let Some(first) = foreign.first() else {
        return Ok(());
    };
    let mut message = String::from("nothing was changed: bowline did not create what is there");
    for piece in &foreign {
        let writers = piece.found.iter().flat_map(|found| &found.writers);
        let writers: Vec<&str> = writers.map(String::as_str).collect();
        let by = if writers.is_empty() {
            String::new()
        } else {
            format!(" (written by {})", writers.join(", "))
        };
        message += &format!("\n  {}{by}", piece.place.label());
    }
    let resource = &first.place.kind.resource;
    let label = format!(
        "kubectl label {}.{} {} {}={}",
        resource.plural,
        resource.group,
        first.place.name,
        labels::PART_OF,
        labels::PART_OF_BOWLINE
    );
    let hint = match foreign.iter().any(|piece| piece.is_crd()) {
        true => format!(
            "bowline's definition of a kind would prune what its owner keeps there. Install bowline on a cluster of its own and name this one in a DataPlane (spec.context); or, once nobody else uses the kind, give it to bowline: {label}"
        ),
        false => format!("remove it, or give it to bowline: {label}"),
    };
    Err(Error::new(Exit::Refused, message).with_hint(hint))
}

async fn put(piece: &Piece, dry_run: bool) -> Result<Change, Error> {
    let mut value = piece.value.clone();
    if let Some(found) = &piece.found {
        // What was looked at, and nothing that took its name since.
        value["metadata"]["uid"] = serde_json::json!(found.uid);
    }
    let parameters = PatchParams {
        dry_run,
        // What was not there a moment ago may be somebody else's now.
        force: piece.found.is_some(),
        field_manager: Some(MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
    };
    let put = apply::put(&piece.place, &value, &parameters).await;
    put.map_err(|error| apply::explained(&piece.place, error))
}
