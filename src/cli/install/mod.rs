//! `bowline install`: installs CRDs, policies, RBAC and the controller on a cluster.
//!
//! It first reads all live objects, and then writes nothing in two cases. First, somebody else owns an object
//! with one of the names: if bowline replaced a CRD of another owner, the server would remove fields from
//! that owner's objects. Second, one of the objects is being deleted.
//!
//! Values that somebody else has set on an installed object stay, and so does the controller's image.

mod values;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use kube::api::{Api, PatchParams, PostParams, ValidationDirective};
use kube::{Client, ResourceExt};

use super::apply::{self, Change, writable};
use super::bundle::{self, MANAGER, Piece};
use super::connect::{self, Connection, Environment, Options, Target};
use super::error::{Error, Exit};
use super::output::Format;
use super::report::Report;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::reference::NameRef;
use crate::api::{ReleasePin, labels, names};

/// How long `install` waits until the policies judge the new kinds, and how often it tests that.
const ADMITTED: Duration = Duration::from_secs(30);
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

/// Runs the verb, prints a line for each object, and returns the exit code of the program.
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
        // Other objects wait until the server serves the CRDs that were created before them; CRDs themselves
        // do not wait.
        if !piece.is_crd() {
            for name in crds.drain(..) {
                apply::established(&connection.client, name).await?;
            }
        }
        // A namespace that somebody else created stays unchanged.
        if piece.is_namespace() && piece.is_foreign() {
            continue;
        }
        namespace |= piece.is_namespace() && piece.found.is_none();
        let change = match namespace && arguments.dry_run && piece.place.namespace.is_some() {
            // In a dry run the namespace may not exist yet, so the server would refuse its objects.
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

/// Waits until the admission policies of the server judge ReleasePins. Returns false after a timeout.
///
/// After the creation of a policy, the server first admits everything. Once it has loaded the policy, it
/// answers 503 until the policy knows the kind.
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
            // The mutating policy adds this annotation, so without it the server has not loaded the policy
            // yet.
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

/// Returns whether the server gives this answer only while it does not know a new kind or has not loaded its
/// policy.
fn is_early(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 || status.code >= 500)
}

/// Returns an error if the target is an embedded store or a repository, which have all kinds built in, or in
/// read-only mode.
pub(super) fn on_cluster(connection: &Connection, verb: &str) -> Result<(), Error> {
    if let Target::Embedded { .. } | Target::Repository { .. } = &connection.target {
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

/// Returns an error if somebody else owns an object with a name of the bundle.
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

/// Returns an error if one of the objects is being deleted. The deletion of a CRD deletes all objects of its
/// kind; a controller that starts during that time would delete running workloads.
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

/// Prints which image the controller keeps, if it is not the image of this version.
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

/// The comment at the start of the printed objects. `--print` does not know the version of the server.
const PRINTED_NOTE: &str = "\
# The MutatingAdmissionPolicy and its binding (admissionregistration.k8s.io/v1) need Kubernetes 1.36. Remove both
# for an older server; the audit trail then does not name the author of a ReleasePin change that another tool makes.
";

/// Prints the objects of the bundle as YAML documents.
fn printed(image: Option<&str>) -> Result<String, Error> {
    let mut text = format!("# bowline {}\n{PRINTED_NOTE}", env!("CARGO_PKG_VERSION"));
    for object in bundle::objects(image)? {
        let document = serde_yaml::to_string(&object)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        text += &format!("---\n{document}");
    }
    Ok(text)
}

/// Applies an object of the bundle. Values that somebody else set on the live object stay.
async fn put(
    piece: &Piece,
    arguments: &Arguments,
    say: &mut dyn FnMut(String),
) -> Result<Change, Error> {
    let mut value = piece.value.clone();
    let mut kept = Vec::new();
    let live = piece.found.as_ref().and_then(|found| found.live.as_ref());
    // A CRD has no values that a user could set, and is too large for an annotation.
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
        // The uid is a precondition, so a new object with the same name is not changed.
        value["metadata"]["uid"] = serde_json::json!(found.uid);
    }
    // An object that appeared after the lookup may belong to somebody else, so bowline does not force its
    // values.
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
            // Only the image can still conflict, and the user has named it explicitly.
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
