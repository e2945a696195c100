//! `bowline diff`: two environments, two revisions of a pin, what is rendered against what is there, or
//! two releases.
//!
//! Every form makes two sides of objects and leaves the rest to the engine's diff. Nothing is written.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures::TryFutureExt;
use jiff::Timestamp;
use kube::api::Api;
use serde_json::{Value, json};

use super::Outcome;
use super::actions::not_shown;
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::revisions::Subject;
use super::{output, session};
use crate::api::audit::ReleaseIdentity;
use crate::api::environment::{EnvironmentSpec, Reach};
use crate::api::{self, DataPlane, Definitions, ReleasePin, names};
use crate::engine::bodies::BodyError;
use crate::engine::diff::{self, Identity};
use crate::engine::live;
use crate::engine::ownership;
use crate::engine::preview::{self, PreviewError, Stage};
use crate::engine::revisions::{Pinned, Revision, Revisions};
use crate::resolve::git::Git;

/// What `diff` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component; that of the configuration where it is left out
    component: Option<String>,
    /// Compare what counts in this environment with what counts in another one
    #[arg(long, value_name = "ENVIRONMENT", requires = "to", conflicts_with_all = ["environment", "release"])]
    from: Option<String>,
    /// The other environment
    #[arg(long, value_name = "ENVIRONMENT", requires = "from")]
    to: Option<String>,
    /// Compare two revisions in this environment: the one before with the current one
    #[arg(short, long, value_name = "NAME", conflicts_with = "release")]
    environment: Option<String>,
    /// The older revision
    #[arg(long, value_name = "N", requires = "environment")]
    from_revision: Option<i64>,
    /// The newer revision
    #[arg(long, value_name = "N", requires = "environment")]
    to_revision: Option<i64>,
    /// Compare what is rendered for the environment with what is there
    #[arg(long, requires = "environment", conflicts_with_all = ["from_revision", "to_revision"])]
    live: bool,
    /// Compare the definitions of two releases
    #[arg(long, num_args = 2, value_names = ["RELEASE", "RELEASE"], conflicts_with = "component")]
    release: Vec<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    git: GitFlags,
}

/// How a difference is shown.
#[derive(Args, Debug)]
pub struct Show {
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// Show what servers and controllers write, and reorderings
    #[arg(long)]
    noise: bool,
    /// How many equal lines stand around a change
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    /// How long comparing may take; then whole blocks are compared
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = super::duration)]
    deadline: Duration,
    /// Exit with 3 if something differs
    #[arg(long)]
    exit_code: bool,
}

/// The forms of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// By object, for people
    Text,
    /// A unified diff of each object's YAML
    Unified,
    /// JSON, with fields, lines and words
    Json,
    /// The same as YAML
    Yaml,
}

/// One of the two things that are compared.
#[derive(Debug)]
pub struct Side {
    /// What it is.
    what: String,
    /// Its objects.
    objects: Vec<Value>,
    /// When it was read.
    read: Timestamp,
}

/// What is compared with what.
#[derive(Debug)]
pub struct Sides {
    before: Side,
    after: Side,
    /// Whether the second side is what is there, with everything that servers fill in.
    is_live: bool,
}

/// Returns the difference; what is compared with what goes to `say`.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    clock: Clock,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let connection = connect::connect(options, environment).await?;
    let git = arguments.git.on(&connection, environment)?;
    let target = Target::new(&connection, &git, clock);
    let component = || session::component(&connection, arguments.component.as_deref());
    let sides = match arguments {
        Arguments { release, .. } if let [one, two] = release.as_slice() => {
            target.releases([one, two], say).await?
        }
        Arguments {
            from: Some(from),
            to: Some(to),
            ..
        } => target.environments(&component()?, [from, to], say).await?,
        Arguments {
            environment: Some(place),
            live: true,
            ..
        } => {
            let data_plane = |name: String| data_plane(name, options, environment);
            target.live(&component()?, place, data_plane, say).await?
        }
        Arguments {
            environment: Some(place),
            from_revision,
            to_revision,
            ..
        } => {
            let component = component()?;
            let subject = Subject {
                name: names::pin(&component, place),
                place: Some((component, place.clone())),
            };
            let wanted = (*from_revision, *to_revision);
            target.revisions(&subject, wanted, say).await?
        }
        _ => {
            return Err(Error::new(Exit::Usage, "diff needs two things to compare")
                .with_hint("--from A --to B, --environment E, or --release R1 R2"));
        }
    };
    arguments.show.print(&sides, say)
}

impl Show {
    /// Compares two sides and says what they are.
    pub fn print(&self, sides: &Sides, say: &mut dyn FnMut(String)) -> Result<Outcome, Error> {
        for (word, side) in [("before", &sides.before), ("after", &sides.after)] {
            say(format!("{word}: {}, read {:.0}", side.what, side.read));
        }
        let options = diff::Options {
            show_noise: self.noise,
            live: sides.is_live.then_some(diff::Side::After),
            lines: true,
            context: self.context_lines,
            deadline: Instant::now().checked_add(self.deadline),
        };
        let found = diff::diff(&sides.before.objects, &sides.after.objects, &options);
        if let Some(coarse) = &found.coarse {
            say(format!("{coarse}; --deadline gives it more time"));
        }
        let text = match self.output {
            Form::Text => found.text(),
            Form::Unified => found.unified(),
            Form::Json => output::json(&value(sides, &found)),
            Form::Yaml => output::yaml(&value(sides, &found)),
        };
        Ok(match self.exit_code && !found.is_empty() {
            true => Outcome::changes(text),
            false => Outcome::done(text),
        })
    }
}

fn value(sides: &Sides, found: &diff::Diff) -> Value {
    let side = |side: &Side| json!({"what": side.what, "read": format!("{:.0}", side.read)});
    let mut value = found.json();
    if let Value::Object(fields) = &mut value {
        fields.insert("before".to_owned(), side(&sides.before));
        fields.insert("after".to_owned(), side(&sides.after));
    }
    value
}

fn release_of<'r>(
    found: &Revisions<Pinned>,
    revision: &'r Revision<Pinned>,
) -> Result<&'r ReleaseIdentity, Error> {
    let content = revision.content.as_ref();
    content.map(|content| &content.release).ok_or_else(|| {
        let message = format!(
            "nobody recorded which release revision {} of {} was",
            revision.number, found.subject
        );
        Error::new(Exit::Failed, message)
    })
}

/// Says that the release of a revision is gone, which is no failure of the target.
fn not_there(number: i64, error: PreviewError) -> Error {
    match &error {
        PreviewError::Body(body)
            if matches!(**body, BodyError::Gone { .. } | BodyError::Replaced { .. }) =>
        {
            let message = format!("revision {number} cannot be rendered: {body}");
            Error::new(Exit::Failed, message).with_hint(
                "bowline release list shows what is still there; choose a revision of it",
            )
        }
        _ => not_shown(error),
    }
}

fn pair(sides: Vec<Side>, is_live: bool) -> Result<Sides, Error> {
    match <[Side; 2]>::try_from(sides) {
        Ok([before, after]) => Ok(Sides {
            before,
            after,
            is_live,
        }),
        Err(_) => Err(Error::new(Exit::Failed, "there are not two sides")),
    }
}

/// Makes the connection of a data plane that a context of the kubeconfig leads to. It only reads.
async fn data_plane(
    context: String,
    options: &Options,
    environment: &Environment,
) -> Result<Connection, Error> {
    let options = Options {
        context: Some(context),
        embedded: None,
        namespace: None,
        readonly: true,
        ..options.clone()
    };
    Ok(connect::connect(&options, environment).await?)
}

/// Tells the time.
pub type Clock = fn() -> Timestamp;

/// Where both sides are read.
pub struct Target<'a> {
    connection: &'a Connection,
    stage: Stage<'a>,
    clock: Clock,
}

impl<'a> Target<'a> {
    /// Reads from a connection.
    pub fn new(connection: &'a Connection, git: &'a Git, clock: Clock) -> Self {
        Self {
            connection,
            stage: Stage::new(&connection.client, &connection.namespace, git),
            clock,
        }
    }

    /// Takes what was read just now.
    fn side(&self, what: String, objects: Vec<Value>) -> Side {
        Side {
            what,
            objects,
            read: (self.clock)(),
        }
    }

    /// Compares two revisions of a pin; by default the one before with the current one.
    pub async fn revisions(
        &self,
        subject: &Subject,
        (from, to): (Option<i64>, Option<i64>),
        say: &mut dyn FnMut(String),
    ) -> Result<Sides, Error> {
        let (pin, found) = subject.read(self.connection, (self.clock)()).await?;
        let after = match to {
            Some(number) => found.find(number)?,
            None => found.current()?,
        };
        let before = match from {
            Some(number) => found.find(number)?,
            None => found.before(after.number)?,
        };
        let (component, environment) = (&pin.spec.component, &pin.spec.environment);
        let mut sides = Vec::with_capacity(2);
        for revision in [before, after] {
            let release = release_of(&found, revision)?;
            let what = format!(
                "{component} in {environment}, revision {}, release {}",
                revision.number, release.name
            );
            let mut warnings = Vec::new();
            let rendered = self
                .stage
                .rendered(component, environment, release, &mut warnings)
                .await
                .map_err(|error| not_there(revision.number, error))?;
            warnings.into_iter().for_each(&mut *say);
            sides.push(self.side(what, preview::objects(&rendered)));
        }
        say(format!(
            "both are rendered with the settings that {environment} has now"
        ));
        pair(sides, false)
    }

    /// Compares what counts in two environments, each with its own settings.
    async fn environments(
        &self,
        component: &str,
        environments: [&str; 2],
        say: &mut dyn FnMut(String),
    ) -> Result<Sides, Error> {
        let mut sides = Vec::with_capacity(2);
        let mut own = Vec::with_capacity(2);
        for environment in environments {
            let mut side = self.rendered(component, environment, say).await?;
            let namespace = self.environment(environment).await?.namespace;
            leave_out(&namespace, &mut side.objects);
            sides.push(side);
            own.push(namespace);
        }
        own.dedup();
        if own.len() > 1 {
            say(format!(
                "their own namespaces, {}, are left out",
                own.join(" and ")
            ));
        }
        pair(sides, false)
    }

    /// Compares what is rendered for an environment with what is there.
    async fn live<F>(
        &self,
        component: &str,
        environment: &str,
        data_plane: impl FnOnce(String) -> F,
        say: &mut dyn FnMut(String),
    ) -> Result<Sides, Error>
    where
        F: Future<Output = Result<Connection, Error>>,
    {
        let rendered = self.rendered(component, environment, say).await?;
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let name = self.environment(environment).await?.data_plane_ref.name;
        let planes: Api<DataPlane> = Api::namespaced(client.clone(), namespace);
        let Some(plane) = planes.get_opt(&name).await? else {
            let message = format!("{environment} runs on data plane {name}, and there is none");
            return Err(Error::new(Exit::Failed, message).with_hint("bowline get dataplanes"));
        };
        let (client, place) = match plane.spec.reach() {
            Some(Reach::InCluster | Reach::Embedded) => {
                (client.clone(), self.connection.target.to_string())
            }
            Some(Reach::Context(context)) => {
                let connection = data_plane(context.to_owned()).await?;
                (connection.client, connection.target.to_string())
            }
            None => {
                let message = format!("data plane {name} does not say how it is reached");
                return Err(Error::new(Exit::Failed, message));
            }
        };
        let found = live::live(&client, &rendered.objects)
            .map_err(|failed| {
                let mut error = Error::from(&failed.error);
                error.message = format!("{}: {}", failed.object, error.message);
                error
            })
            .await?;
        for kind in &found.unknown {
            say(format!("data plane {name} has no kind {kind}"));
        }
        let what = format!("{component} in {environment} as it is on data plane {name} ({place})");
        pair(vec![rendered, self.side(what, found.objects)], true)
    }

    /// Compares the definitions of two releases, however they are stored.
    async fn releases(
        &self,
        names: [&str; 2],
        say: &mut dyn FnMut(String),
    ) -> Result<Sides, Error> {
        let mut sides = Vec::with_capacity(2);
        for name in names {
            let mut warnings = Vec::new();
            let release = ReleaseIdentity::named(name);
            let definitions = self.stage.definitions(&release, &mut warnings).await;
            let definitions = definitions.map_err(not_shown)?;
            warnings.into_iter().for_each(&mut *say);
            sides.push(self.side(format!("release {name}"), objects(&definitions)));
        }
        pair(sides, false)
    }

    async fn environment(&self, name: &str) -> Result<EnvironmentSpec, Error> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let environments: Api<api::Environment> = Api::namespaced(client.clone(), namespace);
        Ok(environments.get(name).await?.spec)
    }

    async fn rendered(
        &self,
        component: &str,
        environment: &str,
        say: &mut dyn FnMut(String),
    ) -> Result<Side, Error> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
        let found = pins.get_opt(&names::pin(component, environment)).await?;
        let asked = (component, environment);
        // Two places can come to the same name.
        let found = found
            .filter(|pin| (pin.spec.component.as_str(), pin.spec.environment.as_str()) == asked);
        let Some(pin) = found else {
            let message = format!("{component} is not deployed in {environment}");
            return Err(Error::new(Exit::Failed, message)
                .with_hint("bowline status shows what is deployed where"));
        };
        let release = ReleaseIdentity::named(ownership::effective_release(&pin, (self.clock)()));
        let mut warnings = Vec::new();
        let rendered = self
            .stage
            .rendered(component, environment, &release, &mut warnings)
            .await
            .map_err(not_shown)?;
        warnings.into_iter().for_each(say);
        let what = format!("{component} in {environment}, release {}", release.name);
        Ok(self.side(what, preview::objects(&rendered)))
    }
}

/// Takes the namespace off the objects that are in it, so that those of two environments meet.
fn leave_out(namespace: &str, objects: &mut [Value]) {
    for object in objects {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata
            && metadata.get("namespace").and_then(Value::as_str) == Some(namespace)
        {
            metadata.remove("namespace");
        }
    }
}

/// Returns definitions as objects; an addon that several instances use alike is there once.
fn objects(definitions: &Definitions) -> Vec<Value> {
    let addons = definitions
        .addons
        .iter()
        .map(|addon| serde_json::to_value(&addon.addon));
    let mut objects = Vec::new();
    for object in [
        serde_json::to_value(&definitions.component),
        serde_json::to_value(&definitions.component_type_definition),
        serde_json::to_value(&definitions.workload),
    ]
    .into_iter()
    .chain(addons)
    .flatten()
    {
        let is_there = |known: &Value| Identity::of(known) == Identity::of(&object);
        if !objects
            .iter()
            .any(|known| is_there(known) && *known == object)
        {
            objects.push(object);
        }
    }
    objects
}
