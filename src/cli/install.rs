//! `bowline install`: puts kinds, rules, rights and the controller on a cluster.
//!
//! Everything is looked at first. Where one of its names belongs to somebody else, nothing is written:
//! bowline's definition of a kind over another's would prune what that one's objects hold.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use kube::Client;
use kube::api::{Api, PatchParams, PostParams, ValidationDirective};

use super::apply::{self, Change, writable};
use super::bundle::{self, MANAGER, Piece};
use super::connect::{self, Connection, Environment, Options, Target};
use super::error::{Error, Exit};
use crate::api::pin::ReleasePinSpec;
use crate::api::reference::NameRef;
use crate::api::{ReleasePin, labels, names};
use crate::text;

/// How long policies may take to know new kinds, and how often they are asked.
const ADMITTED: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(100);

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
    let (mut namespace, mut created) = (false, false);
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
        created |= change == Change::Created;
        if piece.is_crd() && change == Change::Created && !arguments.dry_run {
            crds.push(&piece.place.name);
        }
        let dry = if arguments.dry_run { " (dry run)" } else { "" };
        let (label, word) = (piece.place.label(), change.word());
        writeln!(out, "{} {word}{dry}", text::line(&label))?;
    }
    out.flush()?;
    if created && !arguments.dry_run && !is_admitted(&connection.client).await {
        say("the server's policies do not know the new kinds yet: until then it refuses pins with 503".to_owned());
    }
    Ok(match arguments.dry_run && changes {
        true => Exit::Changes,
        false => Exit::Done,
    })
}

/// Waits until pins can be written: policies learn of a kind a moment after it is served, and until then
/// the server answers 503. Tells whether that is so now.
async fn is_admitted(client: &Client) -> bool {
    let (component, environment) = ("bowline", "install");
    let spec = ReleasePinSpec {
        component: component.to_owned(),
        environment: environment.to_owned(),
        release_ref: NameRef::new(component),
        holds: Vec::new(),
    };
    let mut pin = ReleasePin::new(&names::pin(component, environment), spec);
    let own = [
        (labels::COMPONENT, component),
        (labels::ENVIRONMENT, environment),
    ];
    let own = own.map(|(label, value)| (label.to_owned(), value.to_owned()));
    pin.metadata.labels = Some(own.into());
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE);
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let begun = Instant::now();
    loop {
        match pins.create(&dry, &pin).await {
            Err(kube::Error::Api(status)) if status.code == 503 => {}
            // Whatever else it says, the policies have looked at it.
            _ => return true,
        }
        if begun.elapsed() > ADMITTED {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
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
