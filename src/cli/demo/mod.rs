//! `bowline demo`: an example in a temporary store, with a history and simulated users.
//!
//! On a terminal, the demo opens the terminal UI with a guided tour, controllers and a simulated data plane.
//! Otherwise it prints the matrix. All writes go through the engine. The demo deletes its store at the end, and does
//! not touch the user's files and clusters.

mod company;
mod example;
mod past;
mod script;
mod signals;
mod stage;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::wait::await_condition;
use kube_embedded::Clock;
use tempfile::TempDir;

use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::status::Matrix;
use super::{Interactive, Screens};
use crate::api::choreo::rendered::{self, RenderedRelease};
use crate::api::labels;
use crate::connect::{Environment, Options, StoreFile};
use crate::controllers::beside::Beside;
use crate::engine::world::{Key, World};
use crate::resolve::git::Git;
use crate::subjects::release_pin::actions::release::{self, Source};
use crate::subjects::release_pin::catalog::Catalog;
use crate::subjects::release_pin::matrix::Health;
use crate::text;
use bowline_core::render::{self, Inputs, Library};
use signals::Signals;
use stage::{NAMESPACE, Stage, StageError};

/// The creation time of the example's objects, in seconds relative to the start of the demo.
const FOUNDED: i64 = -70 * 24 * 60 * 60;

/// How long the demo waits for the rollouts of the example before it opens the terminal UI.
const ROLLS_OUT: Duration = Duration::from_secs(20);

/// The environments of the example, in the order of its pipeline.
const ENVIRONMENTS: [&str; 4] = ["development", "staging", "production-eu", "production-us"];

/// The arguments of `demo`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    how: Interactive,
    /// Start without the guided tour
    #[arg(long)]
    no_tour: bool,
}

impl From<StageError> for Error {
    fn from(error: StageError) -> Self {
        Self::new(Exit::Failed, format!("cannot prepare the demo: {error}"))
    }
}

/// Returns whether stdin and stdout are a terminal, so that the terminal UI can open.
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Fills a new store, and opens the terminal UI on it. Returns when the user quits.
pub async fn open(
    arguments: Arguments,
    screens: &Screens,
    environment: &Environment,
    now: Timestamp,
) -> Result<Exit, Error> {
    eprintln!("preparing an example shop with a history...");
    let demo = Demo::play(environment, now).await?;
    demo.roll_out().await?;
    let company = tokio::spawn(company::keep(demo.stage.clone()));
    let how = Interactive {
        tour: !arguments.no_tour,
        ..arguments.how
    };
    let (options, environment) = (demo.options.clone(), demo.environment.clone());
    demo.signals.handled_elsewhere();
    let opened = (screens.open)(options, environment, demo.git.clone(), how).await;
    company.abort();
    let _ = company.await;
    demo.end()?;
    super::ended(opened)
}

/// Fills a new store, and returns its matrix as text. For a demo without a terminal.
pub async fn run(environment: &Environment, now: Timestamp) -> Result<String, Error> {
    let demo = Demo::play(environment, now).await?;
    let printed = {
        let matrix = Matrix::of(&demo.stage.feed.world(), Some(NAMESPACE), now);
        format!("{}\n{}", matrix.text(), rendered(&demo.stage.catalog)?)
    };
    demo.end()?;
    Ok(printed)
}

/// A running demo: its temporary store with the example and the history.
struct Demo {
    stage: Arc<Stage>,
    options: Options,
    environment: Environment,
    git: Git,
    directory: TempDir,
    signals: Signals,
}

impl Demo {
    async fn play(environment: &Environment, now: Timestamp) -> Result<Self, Error> {
        let signals = Signals::watch()?;
        let directory = tempfile::Builder::new().prefix("bowline-demo-").tempdir()?;
        signals.delete(directory.path());
        let options = Options {
            embedded: Some(StoreFile::At(directory.path().join("bowline.db"))),
            ..Options::default()
        };
        let environment = apart(environment, directory.path());
        let git = GitFlags::default().git(&environment)?;
        let founded = past::moment(now, FOUNDED);
        let stage = Stage::open(&options, &environment, git.clone(), founded).await?;
        let stage = Arc::new(stage);
        past::play(&stage, now).await?;
        Ok(Self {
            stage,
            options,
            environment,
            git,
            directory,
            signals,
        })
    }

    /// Runs the controllers until each rollout on the simulated data plane is ready or has failed. After this, the
    /// terminal UI shows the failed rollout of the example from its first screen on.
    async fn roll_out(&self) -> Result<(), Error> {
        let clock: Clock = Arc::new(Timestamp::now);
        let connection = self.stage.connection(labels::MANAGER_CONTROLLER, &clock);
        let pins: Vec<Key> = self
            .stage
            .feed
            .world()
            .all_pins()
            .map(|pin| pin.key.clone())
            .collect();
        let rendered: Api<RenderedRelease> = Api::namespaced(connection.client.clone(), NAMESPACE);
        let is_over = |found: Option<&RenderedRelease>| {
            let status = found.and_then(|found| found.status.as_ref());
            status.is_some_and(|status| {
                use rendered::Health::{Progressing, Unknown};
                !status.resources.is_empty() && !matches!(status.health(), Progressing | Unknown)
            })
        };
        let all = pins
            .iter()
            .map(|pin| await_condition(rendered.clone(), &pin.name, is_over));
        let rolled_out = async {
            let _ = try_join_all(all).await;
            let has_ended = |world: &World| {
                let mut pins = world.all_pins();
                pins.all(|pin| {
                    matches!(Health::told(pin, clock()), Health::Ready | Health::Degraded)
                })
            };
            self.stage.feed.when(has_ended).await;
        };
        let beside = Beside {
            connection: &connection,
            options: &self.options,
            environment: &self.environment,
            git: &self.git,
        };
        // If a slow machine needs longer, the terminal UI opens before the rollouts have ended.
        beside
            .until(tokio::time::timeout(ROLLS_OUT, rolled_out))
            .await?
            .ok();
        Ok(())
    }

    /// Deletes the temporary store of the demo.
    fn end(self) -> Result<(), Error> {
        drop(self.stage);
        match self.directory.close() {
            // The thread that handles signals has already deleted the directory of the store.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            closed => Ok(closed?),
        }
    }
}

/// Returns the environment for the demo, without the user's contexts, cache and store. It keeps the user's colours
/// and keys.
fn apart(environment: &Environment, directory: &Path) -> Environment {
    Environment {
        kubeconfig: None,
        home: None,
        in_pod: false,
        data_dir: Some(directory.to_owned()),
        cache_dir: Some(directory.join("cache")),
        ..environment.clone()
    }
}

/// Returns a text that says, for each environment, to which objects a release renders.
fn rendered(catalog: &Catalog) -> Result<String, Error> {
    let (component, version) = ("checkout-service", "v1.2.4");
    let definitions = example::definitions(catalog, component, version)?;
    let release = release::release(&definitions, Some(version), &Source::Embedded);
    let library = Library::new();
    let mut out = format!(
        "{} needs {} of storage; its manifests in each environment:\n",
        release.name_any(),
        text::bytes(release::size(&release.spec) as u64)
    );
    for environment in ENVIRONMENTS {
        let settings = catalog.settings(component, environment)?;
        let inputs = Inputs {
            definitions: &definitions,
            settings: settings.as_ref(),
            environment: &catalog.environment(environment)?,
            namespace: &catalog.namespace,
        };
        let manifests = render::render(&inputs, &library)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        let kinds: Vec<_> = manifests
            .resources
            .iter()
            .filter_map(|resource| resource.object.get("kind")?.as_str())
            .collect();
        out += &format!("  {environment:<14} {:>2} manifests: ", kinds.len());
        out += &counted(&kinds);
        out.push('\n');
    }
    Ok(out)
}

/// Returns a sorted list of kinds as text. A kind that occurs several times is listed once, with its number.
fn counted(kinds: &[&str]) -> String {
    let words: Vec<String> = kinds
        .chunk_by(|one, next| one == next)
        .filter_map(|same| match same {
            [] => None,
            [one] => Some((*one).to_owned()),
            [one, ..] => Some(format!("{} {one}s", same.len())),
        })
        .collect();
    words.join(", ")
}

#[cfg(test)]
mod tests;
