//! `bowline demo`: the worked example in a store of its own, with a past and with company.
//!
//! On a terminal the UI opens on it, with the guided tour, controllers beside it and a simulated data
//! plane; elsewhere its matrix is printed. Everything goes through the API and the engine like anybody's.
//! Nothing of it outlives the command, and nothing of the user's own is touched.

mod company;
mod example;
mod past;
mod script;
mod stage;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use tempfile::TempDir;

use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::status::Matrix;
use super::{Interactive, Screens};
use crate::connect::{Environment, Options, StoreFile};
use crate::engine::actions::release::{self, Source};
use crate::engine::catalog::Catalog;
use crate::render::{self, Inputs, Library};
use crate::resolve::git::Git;
use crate::text;
use stage::{NAMESPACE, Stage, StageError};

/// How long ago the example was put into the store, in seconds.
const FOUNDED: i64 = -70 * 24 * 60 * 60;

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

/// Tells whether there is a terminal that the UI can be opened on.
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Opens the UI on a fresh store, until the person leaves it.
pub async fn open(
    arguments: Arguments,
    screens: &Screens,
    environment: &Environment,
    now: Timestamp,
) -> Result<Exit, Error> {
    let demo = Demo::play(environment, now).await?;
    let company = tokio::spawn(company::keep(demo.stage.clone()));
    let how = Interactive {
        tour: !arguments.no_tour,
        ..arguments.how
    };
    let (options, environment) = (demo.options.clone(), demo.environment.clone());
    let opened = (screens.open)(options, environment, demo.git.clone(), how).await;
    company.abort();
    let _ = company.await;
    demo.end()?;
    super::ended(opened)
}

/// Fills a fresh store and returns the matrix of what is in it.
pub async fn run(environment: &Environment, now: Timestamp) -> Result<String, Error> {
    let demo = Demo::play(environment, now).await?;
    let printed = {
        let matrix = Matrix::of(&demo.stage.feed.world(), Some(NAMESPACE), now);
        format!("{}\n{}", matrix.text(), rendered(&demo.stage.catalog)?)
    };
    demo.end()?;
    Ok(printed)
}

/// A store with the example and its past in it.
struct Demo {
    stage: Arc<Stage>,
    options: Options,
    environment: Environment,
    git: Git,
    directory: TempDir,
}

impl Demo {
    async fn play(environment: &Environment, now: Timestamp) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("bowline-demo-").tempdir()?;
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
        })
    }

    /// Takes everything away.
    fn end(self) -> Result<(), Error> {
        drop(self.stage);
        Ok(self.directory.close()?)
    }
}

/// Returns surroundings in which nothing of the user's own is reached: no context to go to, no cache, no
/// store. How things look stays as they have it.
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

/// Says what one release becomes where.
fn rendered(catalog: &Catalog) -> Result<String, Error> {
    let (component, version) = ("checkout-service", "v1.2.4");
    let definitions = example::definitions(catalog, component, version)?;
    let release = release::release(&definitions, Some(version), &Source::Embedded);
    let library = Library::new();
    let mut out = format!(
        "{}, stored in {}, would become:\n",
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
        let rendered = render::render(&inputs, &library)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
        let kinds: Vec<_> = rendered
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

/// Lists kinds that are in order, equal ones with their number.
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
