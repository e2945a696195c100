//! `bowline install`: installs CRDs, policies, RBAC and the controller on a cluster.
//!
//! It first reads all live objects, and writes nothing in two cases. One: somebody else owns an object with a name of
//! the bundle; if bowline replaced such a CRD, the server would remove fields from the owner's objects. Two: an
//! object of the bundle is being deleted.
//!
//! On an installed object, values that somebody else has set stay. The controller also keeps its image.

mod values;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use kube::api::{Api, PatchParams, PostParams, ValidationDirective};
use kube::{Client, ResourceExt};

use super::apply::{self, Change, writable};
use super::bundle::{self, MANAGER, Piece};
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::output::Format;
use super::report::Report;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::reference::NameRef;
use crate::api::{ReleasePin, labels, names};

/// How long `install` waits until the admission policies apply to the new kinds.
const ADMITTED: Duration = Duration::from_secs(30);
/// The pause between two tests whether the admission policies apply to the new kinds.
const LOOK: Duration = Duration::from_millis(100);

/// The arguments of `install`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Send a server-side dry run; exit with 3 if something would change
    #[arg(long)]
    dry_run: bool,
    /// The image of the controller [default: that of the installed controller, else that of this version]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Set every value of the objects to that of this version, also values that others have changed on the
    /// cluster
    #[arg(long)]
    reset_values: bool,
    /// Print the objects as YAML, and send no request to a cluster
    #[arg(long, conflicts_with_all = ["dry_run", "reset_values", "output"])]
    print: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// Installs the objects, prints a line for each of them, and returns the exit code of bowline.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    if arguments.print {
        out.write_all(printed(arguments.image.as_deref())?.as_bytes())?;
        out.flush()?;
        return Ok(Exit::Done);
    }
    let connection = connect::connect(options, environment).await?;
    on_cluster(&connection, "install")?;
    let mut report = Report::new(out, arguments.output, arguments.dry_run);
    let installed = install(arguments, &connection, &mut report, say).await;
    report.end(installed.is_err(), say)?;
    installed
}

async fn install(
    arguments: &Arguments,
    connection: &Connection,
    report: &mut Report<'_>,
    say: &mut dyn FnMut(String),
) -> Result<Exit, Error> {
    let pieces = bundle::look(connection, arguments.image.as_deref(), say).await?;
    refuse_foreign(&pieces)?;
    refuse_deleted(&pieces)?;
    tell_image(&pieces, arguments, say)?;
    let (mut changes, mut crds) = (false, Vec::new());
    let (mut namespace, mut created) = (false, false);
    for piece in &pieces {
        // Before an object that is no CRD, wait until the server accepts objects of the CRDs that were created so
        // far.
        if !piece.is_crd() {
            for name in crds.drain(..) {
                apply::established(&connection.client, name).await?;
            }
        }
        // If somebody else created the namespace, it is used without a change.
        if piece.is_namespace() && piece.is_foreign() {
            continue;
        }
        namespace |= piece.is_namespace() && piece.found.is_none();
        let change = match namespace && arguments.dry_run && piece.place.namespace.is_some() {
            // In a dry run the namespace may not exist yet. The server would then refuse its objects, so nothing is
            // sent.
            true => Change::Created,
            false => put(piece, arguments, say).await?,
        };
        changes |= change != Change::Unchanged;
        created |= change == Change::Created;
        if piece.is_crd() && change == Change::Created && !arguments.dry_run {
            crds.push(&piece.place.name);
        }
        report.add(&piece.place, change.word());
    }
    let stamps = pieces.iter().any(Piece::is_mutating_policy);
    if created && !arguments.dry_run && !is_admitted(&connection.client, stamps).await {
        say("the server's admission policies do not know the new kinds yet: until then the server answers 503 to ReleasePin writes".to_owned());
    }
    Ok(match arguments.dry_run && changes {
        true => Exit::Changes,
        false => Exit::Done,
    })
}

/// Waits until the admission policies apply to ReleasePins. Returns false after a timeout.
///
/// At first, the server admits everything after the creation of a policy. Once it has loaded the policy, it answers
/// 503 until the policy knows the kind. So only a test request shows when the policies apply.
async fn is_admitted(client: &Client, stamps: bool) -> bool {
    let (component, environment) = ("bowline", "install");
    let spec = ReleasePinSpec {
        component: component.to_owned(),
        environment: environment.to_owned(),
        release_ref: NameRef::new(component),
        holds: Vec::new(),
    };
    let unlabelled = ReleasePin::new(&names::pin(component, environment), spec);
    let mut valid = unlabelled.clone();
    let own = [
        (labels::COMPONENT, component),
        (labels::ENVIRONMENT, environment),
    ];
    let own = own.map(|(label, value)| (label.to_owned(), value.to_owned()));
    valid.metadata.labels = Some(own.into());
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE);
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let begun = Instant::now();
    while begun.elapsed() < ADMITTED {
        let refuses =
            matches!(pins.create(&dry, &unlabelled).await, Err(error) if !is_early(&error));
        let admits = match pins.create(&dry, &valid).await {
            // The mutating policy adds this annotation. If it is missing, the server has not loaded the policy yet.
            Ok(pin) => !stamps || pin.annotations().contains_key(labels::CHANGED_BY),
            Err(error) => !is_early(&error),
        };
        if refuses && admits {
            return true;
        }
        tokio::time::sleep(LOOK).await;
    }
    false
}

/// Returns whether an error is temporary after `install`: the server does not know a new kind yet, or has not loaded
/// its policy yet.
fn is_early(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 || status.code >= 500)
}

/// Returns an error if the target is no cluster, because an embedded store and a repository have all kinds built in.
/// Also returns an error in read-only mode.
pub(super) fn on_cluster(connection: &Connection, verb: &str) -> Result<(), Error> {
    if !connection.target.is_cluster() {
        let message = format!(
            "{verb} needs a cluster; {} has all kinds built in",
            connection.target
        );
        return Err(
            Error::new(Exit::Usage, message).with_hint("choose a cluster with --context NAME")
        );
    }
    writable(connection, verb)
}

/// Returns an error if somebody else owns a live object with a name of the bundle.
fn refuse_foreign(pieces: &[Piece]) -> Result<(), Error> {
    let foreign: Vec<&Piece> = pieces
        .iter()
        .filter(|piece| piece.is_foreign() && !piece.is_namespace())
        .collect();
    let Some(first) = foreign.first() else {
        return Ok(());
    };
    let mut message = String::from(
        "nothing was changed: the cluster already has objects with these names that bowline did not create",
    );
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
            "bowline's definition of the kind would delete fields of the objects of its owner: install bowline on another cluster, with a DataPlane for this one; or, if no other program uses the kind, give it to bowline: {label}"
        ),
        false => format!("remove it, or give it to bowline: {label}"),
    };
    Err(Error::new(Exit::Refused, message).with_hint(hint))
}

/// Returns an error if an object of the bundle is being deleted. The deletion of a CRD deletes all objects of its
/// kind, and a controller that starts during that time would delete running workloads.
fn refuse_deleted(pieces: &[Piece]) -> Result<(), Error> {
    let going: Vec<&Piece> = pieces.iter().filter(|it| it.is_being_deleted()).collect();
    if going.is_empty() {
        return Ok(());
    }
    let mut message = String::from("nothing was changed: the cluster is deleting these objects");
    for piece in &going {
        message += &format!("\n  {}", piece.place.label());
    }
    let error = Error::new(Exit::Refused, message);
    Err(match going.iter().any(|piece| piece.is_crd()) {
        true => error
            .with_hint("finish the deletion, then install again: bowline uninstall")
            .and_hint("or remove the workloads too: bowline uninstall --remove-running"),
        false => error.with_hint("wait until they are gone, then install again"),
    })
}

/// Prints the image that the controller keeps, if this is not the image of this version of bowline.
fn tell_image(
    pieces: &[Piece],
    arguments: &Arguments,
    say: &mut dyn FnMut(String),
) -> Result<(), Error> {
    if arguments.image.is_some() {
        return Ok(());
    }
    let bundled = bundle::objects(None)?;
    for piece in pieces.iter().filter(|piece| piece.is_controller()) {
        let kept = piece.image().unwrap_or_default();
        if !bundled.iter().any(|it| bundle::image(it) == Some(kept)) {
            say(format!(
                "{} keeps the image {kept}; --image names another",
                piece.place.label()
            ));
        }
    }
    Ok(())
}

/// The comment at the start of the output of `--print`. It is needed because `--print` does not know the version of
/// the server.
const PRINTED_NOTE: &str = "\
# The MutatingAdmissionPolicy and its binding (admissionregistration.k8s.io/v1) need Kubernetes 1.36. Remove both
# for an older server; the audit trail then does not name the author of a ReleasePin change that another tool makes.
";

/// Returns the objects of the bundle as YAML documents.
fn printed(image: Option<&str>) -> Result<String, Error> {
    let mut text = format!("# bowline {}\n{PRINTED_NOTE}", env!("CARGO_PKG_VERSION"));
    for object in bundle::objects(image)? {
        let document = serde_yaml::to_string(&object)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        text += &format!("---\n{document}");
    }
    Ok(text)
}

/// Applies an object of the bundle to the cluster. Values that somebody else has set on the live object stay.
async fn put(
    piece: &Piece,
    arguments: &Arguments,
    say: &mut dyn FnMut(String),
) -> Result<Change, Error> {
    let mut value = piece.value.clone();
    let mut kept = Vec::new();
    let live = piece.found.as_ref().and_then(|found| found.live.as_ref());
    // A CRD has no values that a user could set, so nothing is recorded. It would also be too large for an
    // annotation.
    let has_values = !piece.is_crd();
    if has_values {
        values::record(&mut value);
        if let Some((live, last)) = live.and_then(|live| Some((live, values::recorded(live)?)))
            && !arguments.reset_values
        {
            let removed = values::without_removed(&mut value, &last, live);
            kept.extend(
                removed
                    .into_iter()
                    .map(|field| format!("{field} (removed)")),
            );
        }
    }
    if let Some(found) = &piece.found {
        // With the uid, the write fails if the object was replaced by a new one with the same name.
        value["metadata"]["uid"] = serde_json::json!(found.uid);
    }
    // If the object did not exist at the lookup, somebody else may have created it since. So bowline does not
    // overwrite its values.
    let is_there = piece.found.is_some();
    let mut parameters = PatchParams {
        dry_run: arguments.dry_run,
        force: is_there && (arguments.reset_values || !has_values),
        field_manager: Some(MANAGER.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
    };
    let is_named = |field: &str| arguments.image.is_some() && field.ends_with("].image");
    let mut put = apply::put(&piece.place, &value, &parameters).await;
    if is_there && let Err(error) = &put {
        let conflicts = values::conflicts(error);
        let mut is_solved = !conflicts.is_empty();
        for conflict in conflicts.iter().filter(|it| !is_named(&it.field)) {
            let field = &conflict.field;
            let (ours, theirs) = (
                values::take_out(&mut value, field),
                live.cloned()
                    .and_then(|mut live| values::take_out(&mut live, field)),
            );
            is_solved &= ours.is_some();
            let is_same = ours
                .zip(theirs)
                .is_some_and(|(ours, theirs)| values::is_covered(&ours, &theirs));
            if !is_same {
                kept.push(format!("{field} (set by {})", conflict.managers.join(", ")));
            }
        }
        if is_solved {
            // After the other conflicts are left out, only the image may conflict. The user has named it, so it is
            // overwritten.
            parameters.force = conflicts.iter().any(|it| is_named(&it.field));
            put = apply::put(&piece.place, &value, &parameters).await;
        }
    }
    let change = put.map_err(|error| apply::explained(&piece.place, error))?;
    if !kept.is_empty() {
        kept.dedup();
        say(format!(
            "{} keeps {}; --reset-values sets the values of this version",
            piece.place.label(),
            kept.join(", ")
        ));
    }
    Ok(change)
}
