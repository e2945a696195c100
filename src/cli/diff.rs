//! `bowline diff`: compares two environments, two revisions of a ReleasePin, rendered with live objects, or two
//! releases.
//!
//! Each form reads the objects of both sides and compares them with the diff of the engine. It writes nothing.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::actions::not_shown;
use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::subject::{Named, named_by};
use super::{Outcome, output, session};
use crate::engine::compare::{Side, Sides};
use crate::engine::diff;
use crate::subjects::release_pin::compare::{CompareError, Comparer};
use crate::subjects::release_pin::revisions::Subject;

/// The arguments of `diff`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    component: Option<String>,
    /// The environment whose effective release is the old side; needs --to. For a workload: the older revision
    #[arg(long, value_name = "ENVIRONMENT", conflicts_with_all = ["environment", "release"])]
    from: Option<String>,
    /// The environment whose effective release is the new side; needs --from. For a workload: the newer
    /// revision
    #[arg(long, value_name = "ENVIRONMENT")]
    to: Option<String>,
    /// Compare two revisions of the component in this environment [default: the previous revision with the
    /// current one]
    #[arg(short, long, value_name = "NAME", conflicts_with = "release")]
    environment: Option<String>,
    /// The number of the older revision; needs --environment
    #[arg(long, value_name = "N", requires = "environment")]
    from_revision: Option<i64>,
    /// The number of the newer revision; needs --environment
    #[arg(long, value_name = "N", requires = "environment")]
    to_revision: Option<i64>,
    /// Compare the rendered manifests of the component with the live objects; needs --environment
    #[arg(long, requires = "environment", conflicts_with_all = ["from_revision", "to_revision"])]
    live: bool,
    /// Compare the definitions of these two releases
    #[arg(long, num_args = 2, value_names = ["RELEASE", "RELEASE"], conflicts_with = "component")]
    release: Vec<String>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    git: GitFlags,
}

/// How bowline prints a difference.
#[derive(Args, Debug)]
pub struct Show {
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    output: Form,
    /// Show noise too: fields that servers and controllers write, and reorderings
    #[arg(long)]
    noise: bool,
    /// The number of unchanged lines to show around a change
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    /// Compare single lines and words for this long; afterwards bowline compares whole blocks
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = super::duration)]
    deadline: Duration,
    /// Exit with 3, not with 0, if something differs
    #[arg(long)]
    exit_code: bool,
}

/// The output formats of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text for people, object by object
    Text,
    /// A unified diff of each object's YAML
    Unified,
    /// JSON with the changed fields, lines and words
    Json,
    /// The content of json, as YAML
    Yaml,
}

impl Arguments {
    /// Returns the subject if the user named it together with its kind, such as `deploy/web`; None if the user named
    /// a component.
    pub(super) fn subject(&self) -> Option<Named> {
        named_by(self.component.as_ref())
    }
}

/// Returns the difference between the two sides as output. Prints through `say` what the two sides are.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    clock: Clock,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    if let Some(named) = arguments.subject() {
        let number = |word: &Option<String>| {
            let read = |word: &String| {
                let message = format!("{word} is not the number of a revision");
                word.parse::<i64>()
                    .map_err(|_| Error::new(Exit::Usage, message))
            };
            word.as_ref().map(read).transpose()
        };
        let wanted = (number(&arguments.from)?, number(&arguments.to)?);
        let sides = named.sides(wanted, options, environment, clock()).await?;
        return arguments.show.print(&sides, say);
    }
    let connection = connect::connect(options, environment).await?;
    let git = arguments.git.on(&connection, environment)?;
    let comparer = Comparer::new(&connection, &git, clock);
    let mut notes = Vec::new();
    let component = || session::component(&connection, arguments.component.as_deref());
    let sides = match arguments {
        Arguments { release, .. } if let [one, two] = release.as_slice() => {
            comparer.releases([one, two], &mut notes).await
        }
        Arguments {
            from: Some(from),
            to: Some(to),
            ..
        } => {
            let component = component()?;
            comparer
                .environments(&component, [from, to], &mut notes)
                .await
        }
        Arguments {
            environment: Some(place),
            live: true,
            ..
        } => {
            let component = component()?;
            let data_plane = |name: String| data_plane(name, options, environment);
            comparer
                .live(&component, place, data_plane, &mut notes)
                .await
        }
        Arguments {
            environment: Some(place),
            from_revision,
            to_revision,
            ..
        } => {
            let subject = Subject::of(&component()?, place);
            let wanted = (*from_revision, *to_revision);
            comparer.revisions(&subject, wanted, &mut notes).await
        }
        _ => {
            return Err(Error::new(Exit::Usage, "diff needs two sides to compare")
                .with_hint("two environments: --from A --to B")
                .and_hint("two revisions in an environment: -e NAME")
                .and_hint("two releases: --release A B"));
        }
    };
    let sides = noticed(notes, sides, say)?;
    arguments.show.print(&sides, say)
}

impl Show {
    /// Prints through `say` what the two sides are, and returns their difference as output.
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
            say(format!("{coarse}; --deadline allows more time"));
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

/// Opens a read-only connection to a data plane. `context` is the kubeconfig context of the data plane.
async fn data_plane(
    context: String,
    options: &Options,
    environment: &Environment,
) -> Result<(Client, String), connect::Error> {
    let options = Options {
        context: Some(context),
        embedded: None,
        repo: None,
        namespace: None,
        readonly: true,
        // A data plane usually does not have the CRDs of bowline, so none are required.
        kinds: Vec::new(),
        ..options.clone()
    };
    let connection = connect::connect(&options, environment).await?;
    Ok((connection.client, connection.target.to_string()))
}

pub type Clock = fn() -> Timestamp;

/// Prints the notes of a lookup as warnings, and returns the result of the lookup.
pub fn noticed<T>(
    notes: Vec<String>,
    found: Result<T, CompareError>,
    say: &mut dyn FnMut(String),
) -> Result<T, Error> {
    notes.into_iter().for_each(say);
    Ok(found?)
}

impl From<CompareError> for Error {
    fn from(error: CompareError) -> Error {
        let hint = error.hint();
        let said = match error {
            CompareError::Subject(error) => error.into(),
            CompareError::Preview(error) => not_shown(error),
            CompareError::Connect(error) => error.into(),
            CompareError::Target(error) => error.into(),
            CompareError::Live(failed) => {
                let mut error = Error::from(&failed.error);
                error.message = format!("{}: {}", failed.object, error.message);
                error
            }
            error @ CompareError::NoCluster(_) => Error::new(Exit::Usage, error.to_string()),
            error @ (CompareError::Revision(_)
            | CompareError::Unrecorded { .. }
            | CompareError::Gone { .. }
            | CompareError::NoDataPlane { .. }
            | CompareError::Other(_)
            | CompareError::NoWay(_)) => Error::new(Exit::Failed, error.to_string()),
        };
        match hint {
            Some(hint) => said.with_hint(hint),
            None => said,
        }
    }
}
