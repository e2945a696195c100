//! `bowline render`: prints the manifests that a component renders to. Writes nothing to the target.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::Value;

use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::output;
use crate::api::{Definitions, Release, ReleasePin, names};
use crate::resolve::git::Git;
use crate::resolve::{self, Resolved};
use crate::subjects::release_pin::catalog::{Catalog, CatalogError};
use crate::subjects::release_pin::ownership;
use crate::text;
use bowline_core::render::{self, Inputs, Library, Rendered};

/// The arguments of `render`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The component to render [default with --file: all components]
    #[arg(required_unless_present = "file")]
    component: Option<String>,
    /// The environment to render for [default with --file: all environments]
    #[arg(short, long, value_name = "NAME", required_unless_present = "file")]
    environment: Option<String>,
    /// The release to render [default: the effective release; without a ReleasePin, the current definitions]
    #[arg(short, long, value_name = "NAME")]
    release: Option<String>,
    /// Read the objects from the files of this directory instead of a target
    #[arg(short, long, value_name = "DIR")]
    file: Option<PathBuf>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,
    #[command(flatten)]
    git: GitFlags,
}

/// The output formats of manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    Yaml,
    Json,
    Name,
}

/// Returns the rendered manifests as output. Prints warnings through `say`.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let library = Library::new();
    let Some(path) = &arguments.file else {
        let (Some(component), Some(environment_name)) =
            (&arguments.component, &arguments.environment)
        else {
            return Err(Error::new(
                Exit::Usage,
                "render needs a component and an environment",
            ));
        };
        let connection = connect::connect(options, environment).await?;
        let git = arguments.git.on(&connection, environment)?;
        let (catalog, definitions) = from_target(
            &connection,
            component,
            environment_name,
            arguments,
            &git,
            now,
            say,
        )
        .await?;
        let own = definitions.component.name_any();
        if own != *component {
            return Err(of_another(&own, component));
        }
        // All objects are in the same namespace of the cluster, so messages need not say where each object is.
        let origins = Origins::Settings;
        let rendered = one(
            &catalog,
            origins,
            &definitions,
            environment_name,
            &library,
            say,
        )?;
        catalog.warnings().for_each(&mut *say);
        return Ok(print(arguments.output, &[(String::new(), rendered)]));
    };
    let git = arguments.git.git(environment)?;
    let catalog = Catalog::read(path, options.namespace.as_deref())?;
    let mut all = Vec::new();
    for (component, definitions) in from_files(&catalog, arguments, &git, say).await? {
        // With `--release`, the definitions come from the release. Then messages must not name files that contain
        // objects with the same names.
        let origins = match arguments.release {
            Some(_) => Origins::Settings,
            None => Origins::All,
        };
        let chosen = match &arguments.environment {
            Some(name) => vec![name.as_str()],
            None => catalog.names("Environment").collect(),
        };
        for environment in chosen {
            let title = text::line(&format!("# {component} in {environment}")).into_owned() + "\n";
            let rendered = one(&catalog, origins, &definitions, environment, &library, say)?;
            all.push((title, rendered));
        }
    }
    catalog.warnings().for_each(&mut *say);
    if let [(title, _)] = all.as_mut_slice() {
        title.clear();
    }
    if all.is_empty() {
        let message = format!(
            "{} contains no Component, or no Environment",
            path.display()
        );
        return Err(Error::new(Exit::Failed, message));
    }
    Ok(print(arguments.output, &all))
}

/// Returns the components to render: the one that the user named, or else that of the named release, or else all.
async fn from_files(
    catalog: &Catalog,
    arguments: &Arguments,
    git: &Git,
    say: &mut dyn FnMut(String),
) -> Result<Vec<(String, Definitions)>, Error> {
    if let Some(name) = &arguments.release {
        let definitions = resolved(&catalog.release(name)?, git, say).await?;
        let component = definitions.component.name_any();
        if let Some(asked) = arguments
            .component
            .as_ref()
            .filter(|asked| **asked != component)
        {
            return Err(of_another(&component, asked));
        }
        return Ok(vec![(component, definitions)]);
    }
    let components: Vec<_> = match &arguments.component {
        Some(name) => vec![name.as_str()],
        None => catalog.names("Component").collect(),
    };
    components
        .into_iter()
        .map(|name| Ok((name.to_owned(), catalog.definitions(name)?)))
        .collect()
}

fn of_another(component: &str, asked: &str) -> Error {
    let message = format!("the release belongs to component {component}, not to {asked}");
    Error::new(Exit::Failed, message)
}

/// For which objects a message names the file or namespace: for all, or only for EnvSettings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origins {
    All,
    Settings,
}

async fn from_target(
    connection: &connect::Connection,
    component: &str,
    environment: &str,
    arguments: &Arguments,
    git: &Git,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<(Catalog, Definitions), Error> {
    let (client, namespace) = (&connection.client, &connection.namespace);
    let pinned = match &arguments.release {
        Some(release) => Some(release.clone()),
        None => {
            let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
            let pin = pins.get_opt(&names::pin(component, environment)).await?;
            pin.map(|pin| ownership::effective_release(&pin, now).to_owned())
        }
    };
    let (mut catalog, definitions) = match pinned {
        Some(name) => {
            let releases: Api<Release> = Api::namespaced(client.clone(), namespace);
            let release = releases.get(&name).await?;
            let definitions = resolved(&release, git, say).await?;
            if arguments.release.is_none() {
                say(format!(
                    "rendering {name}, the effective release of {component} in {environment}"
                ));
            }
            (Catalog::empty(namespace), definitions)
        }
        None => {
            let catalog = Catalog::fetch(client, namespace, component).await?;
            let definitions = catalog.definitions(component)?;
            say(format!(
                "{component} has no ReleasePin in {environment}; rendering the current definitions"
            ));
            (catalog, definitions)
        }
    };
    catalog
        .fetch_environment(client, component, environment)
        .await?;
    Ok((catalog, definitions))
}

/// Resolves the git and OCI references of a release to its definitions, and prints the warnings.
pub(super) async fn resolved(
    release: &Release,
    git: &Git,
    say: &mut dyn FnMut(String),
) -> Result<Definitions, Error> {
    let Resolved {
        definitions,
        warnings,
    } = resolve::resolve(&release.spec, git)
        .await
        .map_err(|error| {
            let name = release.metadata.name.as_deref().unwrap_or_default();
            Error::new(Exit::Failed, format!("release {name}: {error}"))
        })?;
    warnings.into_iter().for_each(say);
    Ok(definitions)
}

fn one(
    catalog: &Catalog,
    origins: Origins,
    definitions: &Definitions,
    environment: &str,
    library: &Library,
    say: &mut dyn FnMut(String),
) -> Result<Rendered, Error> {
    let component = definitions.component.name_any();
    let settings = catalog.settings(&component, environment)?;
    let environment = catalog.environment(environment)?;
    let inputs = Inputs {
        definitions,
        settings: settings.as_ref(),
        environment: &environment,
        namespace: &catalog.namespace,
    };
    let place = |problem: &render::Problem| {
        let render::Definition { kind, name } = &problem.definition;
        let known = origins == Origins::All || *kind == "EnvSettings";
        match catalog.origin(kind, name).filter(|_| known) {
            Some(origin) => format!("{origin}: {problem}"),
            None => problem.to_string(),
        }
    };
    let rendered = render::render(&inputs, library).map_err(|error| {
        let problems: Vec<_> = error.0.iter().map(place).collect();
        Error::new(Exit::Failed, problems.join("\n"))
    })?;
    for warning in &rendered.warnings {
        say(place(warning));
    }
    Ok(rendered)
}

fn print(form: Form, all: &[(String, Rendered)]) -> String {
    let objects = || all.iter().flat_map(|(_, rendered)| &rendered.resources);
    match form {
        Form::Yaml => all
            .iter()
            .map(|(title, rendered)| format!("{title}{}", rendered.yaml()))
            .collect(),
        Form::Json => output::json(&serde_json::json!({
            "apiVersion": "v1",
            "kind": "List",
            "items": objects().map(|resource| &resource.object).collect::<Vec<_>>(),
        })),
        Form::Name => objects()
            .map(|resource| {
                let said = |pointer: &str| -> String {
                    let object = Value::Object(resource.object.clone());
                    let text = object.pointer(pointer).and_then(Value::as_str);
                    text::line(text.unwrap_or_default()).into_owned()
                };
                let (kind, name) = (said("/kind").to_lowercase(), said("/metadata/name"));
                match said("/apiVersion").rsplit_once('/') {
                    Some((group, _)) => format!("{kind}.{group}/{name}\n"),
                    None => format!("{kind}/{name}\n"),
                }
            })
            .collect(),
    }
}

impl From<CatalogError> for Error {
    fn from(error: CatalogError) -> Error {
        match error {
            CatalogError::Target(error) => error.into(),
            error => Error::new(Exit::Failed, error.to_string()),
        }
    }
}
