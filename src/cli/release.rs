//! `bowline release`: creates, shows and lists releases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, ListParams, PartialObjectMeta, PostParams};
use serde_json::{Value, json};

use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::kinds::check_name;
use super::output::{self, Format};
use super::render::resolved;
use super::{Outcome, commits, gc, session};
use crate::api::openchoreo::release::Release;
use crate::api::{Definitions, ReleasePin, labels};
use crate::gitops::propose::{BeforePlan, Commits};
use crate::resolve::content;
use crate::resolve::git::Git;
use crate::subjects::release_pin::actions::release::{self as action, Source};
use crate::subjects::release_pin::catalog::Catalog;
use crate::subjects::release_pin::repository;
use crate::subjects::release_pin::sources::{self, NoReference, Sourced};
use crate::text::{self, quoted};

/// The arguments of `release`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a release from a component's current definitions
    Create(Create),
    /// Print a release with its definitions uncompressed
    Show(Show),
    /// List releases
    List(List),
    /// Delete releases and snapshots that are no longer needed, as `bowline gc` does
    Gc(gc::Arguments),
}

/// The arguments of `release create`.
#[derive(Args, Debug)]
pub struct Create {
    /// The component [default: the component that config.toml names]
    component: Option<String>,
    /// The version, which becomes part of the name of the release [default: the hash of the content]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Store a git reference to each definition instead of its content; needs a clean work tree
    #[arg(long, conflicts_with = "embed")]
    git: bool,
    /// Store the content of each definition in the release [default, except in a repository with a remote]
    #[arg(long)]
    embed: bool,
    /// Read the definitions from this directory instead of the target [default with --git: the current
    /// directory]
    #[arg(short, long, value_name = "DIR")]
    file: Option<PathBuf>,
    /// The reason for the release; in a repository, the commit message contains it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Create nothing; exit with 3 if a release would be created
    #[arg(long)]
    dry_run: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Name)]
    output: Format,
    #[command(flatten)]
    git_flags: GitFlags,
}

impl Create {
    /// Returns the options `--version` and `-f` as the user gave them, to repeat them in a suggested command.
    fn options(&self) -> String {
        let file = self.file.as_ref().map(|file| file.to_string_lossy());
        let options = [
            ("--version", self.version.as_deref()),
            ("--file", file.as_deref()),
        ];
        let given = options.into_iter().filter_map(|(flag, value)| {
            let value = value?;
            Some(format!(" {}", quoted(&format!("{flag}={value}"))))
        });
        given.collect()
    }
}

/// The arguments of `release show`.
#[derive(Args, Debug)]
pub struct Show {
    /// The name of the release
    name: String,
    /// Fetch the git references of the release and print their content
    #[arg(long)]
    resolve: bool,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
    #[command(flatten)]
    git_flags: GitFlags,
}

/// The arguments of `release list`.
#[derive(Args, Debug)]
pub struct List {
    /// The component [default: all]
    component: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    match verb {
        Verb::Create(arguments) => create(arguments, options, environment, say).await,
        Verb::Show(arguments) => show(arguments, options, environment, say)
            .await
            .map(Outcome::done),
        Verb::List(arguments) => {
            let connection = connect::connect(options, environment).await?;
            list(arguments, &connection, now, say)
                .await
                .map(Outcome::done)
        }
        Verb::Gc(arguments) => gc::run(arguments, options, environment, say).await,
    }
}

async fn create(
    arguments: &Create,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    if let Some(version) = &arguments.version
        && !version.contains(|c: char| c.is_ascii_alphanumeric())
    {
        let message = format!("{version:?} is not a version: it has no letter and no digit");
        return Err(Error::new(Exit::Usage, message));
    }
    let connection = connect::connect(options, environment).await?;
    commits::begin(
        &connection,
        options,
        BeforePlan::Fetch,
        arguments.dry_run,
        say,
    )
    .await?;
    let (definitions, sourced) = definitions(arguments, &connection, options, say).await?;
    // This release is used only to compare the content. So its git references may name a commit that is not pushed
    // yet.
    let likeness = sourced.as_ref().map(|(source, _)| source);
    let likeness = likeness.unwrap_or(&Source::Embedded);
    let made = action::release(&definitions, arguments.version.as_deref(), likeness);
    let sourced = sourced.map_err(|error| {
        let address = Address::of(&connection, options, environment);
        commits::no_reference(&error, &arguments.options(), &address)
    });
    let name = made.name_any();
    let git = arguments.git_flags.on(&connection, environment)?;
    let api: Api<Release> = Api::namespaced(connection.client.clone(), &connection.namespace);
    if let Some(existing) = api.get_opt(&name).await? {
        let same = existing_is_the_same(arguments, existing, &made, &git, say).await;
        let same = match (same, sourced) {
            (Err(_), Err(no_reference)) => return Err(no_reference),
            (same, _) => same?,
        };
        let exit = match arguments.dry_run {
            true => Exit::Done,
            false => commits::push_again(&connection, say).await,
        };
        return Ok(Outcome { exit, ..same });
    }
    let (_, note) = sourced?;
    note.map(str::to_owned).into_iter().for_each(&mut *say);
    say_sizes(&made, say);
    let would_be = |say: &mut dyn FnMut(String)| {
        say(format!("release {name} would be created"));
        Ok(Outcome::changes(print(arguments.output, &made)))
    };
    if let Some(commits) = Commits::of(&connection) {
        let operation = uuid::Uuid::new_v4().to_string();
        let tree = &commits.repository.tree;
        let reason = arguments.reason.as_deref();
        let proposal = repository::release(tree, &made, &operation, reason)?;
        proposal.warnings.iter().cloned().for_each(&mut *say);
        if arguments.dry_run {
            commits.admits(&proposal).await?;
            let files = proposal.edits.iter().map(|edit| edit.path.as_str());
            say(format!("in {}", files.collect::<Vec<_>>().join(", ")));
            return would_be(say);
        }
        let committed = commits.commit(&proposal).await?;
        let exit = commits::told(&committed, say);
        return Ok(Outcome::ending(print(arguments.output, &made), exit).made());
    }
    if arguments.dry_run {
        return would_be(say);
    }
    match api.create(&PostParams::default(), &made).await {
        Ok(created) => {
            say(format!("release {name} created"));
            Ok(Outcome::done(print(arguments.output, &created)).made())
        }
        // Another client has created the release since the lookup, so compare with that release.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let existing = api.get(&name).await?;
            existing_is_the_same(arguments, existing, &made, &git, say).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the outcome for a release that already exists; an error if its content differs. The content may be the
/// same even if one release embeds the definitions and the other refers to git.
async fn existing_is_the_same(
    arguments: &Create,
    existing: Release,
    made: &Release,
    git: &Git,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let name = made.name_any();
    let (own, other) = (&made.spec.component.name, &existing.spec.component.name);
    if own != other {
        let message = format!("release {name} already exists and belongs to component {other}");
        return Err(Error::new(Exit::Refused, message)
            .with_hint("choose another version, so that the names differ"));
    }
    let hash = made.annotations().get(labels::CONTENT_HASH);
    let same = existing.spec == made.spec || {
        let definitions = resolved(&existing, git, &mut |_| {}).await?;
        Some(&definitions.content_hash()) == hash
    };
    if !same {
        let message = format!("release {name} already exists with different content");
        return Err(Error::new(Exit::Refused, message)
            .with_hint("a release never changes; choose another version"));
    }
    say(format!("release {name} already exists"));
    Ok(Outcome::done(print(arguments.output, &existing)))
}

/// Reads the definitions of a component from the target, or from the files that the user gave.
async fn definitions(
    arguments: &Create,
    connection: &Connection,
    options: &Options,
    say: &mut dyn FnMut(String),
) -> Result<(Definitions, Result<Sourced, NoReference>), Error> {
    let component = &session::component(connection, arguments.component.as_deref())?;
    let files = match (&arguments.file, arguments.git) {
        (Some(path), _) => Some(path.as_path()),
        (None, true) => Some(Path::new(".")),
        (None, false) => None,
    };
    let own = connection
        .repository
        .as_ref()
        .filter(|_| arguments.file.is_none());
    let files = files.filter(|_| own.is_none());
    let Some(path) = files else {
        let catalog = Catalog::fetch(&connection.client, &connection.namespace, component).await?;
        let definitions = catalog.definitions(component)?;
        catalog.warnings().for_each(&mut *say);
        let source = match own.filter(|_| !arguments.embed) {
            Some(own) => sources::sources(&own.tree, &connection.namespace, &definitions),
            None => Ok((Source::Embedded, None)),
        };
        if let (Some(own), Ok((source, _))) = (own, &source) {
            let namespace = &connection.namespace;
            let files = sources::uncommitted(&own.tree, namespace, &definitions, source)?;
            for file in files {
                say(format!(
                    "warning: {file} has changes that are not committed, and the release embeds them"
                ));
            }
        }
        return Ok((definitions, source));
    };
    let catalog = Catalog::read(path, options.namespace.as_deref())?;
    let definitions = catalog.definitions(component)?;
    catalog.warnings().for_each(say);
    let source = match arguments.git {
        true => {
            let file = |kind: &str, name: &str| catalog.file(kind, name).map(str::to_owned);
            let found = sources::references(&file, &definitions);
            found.map(|found| (Source::Git(Box::new(found)), None))
        }
        false => Ok((Source::Embedded, None)),
    };
    Ok((definitions, source))
}

async fn show(
    arguments: &Show,
    options: &Options,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let connection = connect::connect(options, environment).await?;
    let api: Api<Release> = Api::namespaced(connection.client.clone(), &connection.namespace);
    check_name("release", &arguments.name)?;
    let mut release = api.get(&arguments.name).await?;
    say_sizes(&release, say);
    let unreadable = |error: content::ContentError| {
        Error::new(Exit::Failed, format!("release {}: {error}", arguments.name))
    };
    for content in action::contents_mut(&mut release.spec) {
        content.0 = content::unpack(content).map_err(unreadable)?;
    }
    if arguments.resolve {
        let git = arguments.git_flags.on(&connection, environment)?;
        let definitions = resolved(&release, &git, say).await?;
        release.spec = action::plain_spec(&definitions);
    }
    // Remove the managed fields and the annotation about compression, because they are no content of the release.
    release.metadata.managed_fields = None;
    release.annotations_mut().remove(labels::COMPRESSION);
    Ok(print(arguments.output, &release))
}

/// Prints the size of a release, and how many bytes the compression of its definitions saves.
fn say_sizes(release: &Release, say: &mut dyn FnMut(String)) {
    let stored = action::size(&release.spec);
    let mut plain = release.spec.clone();
    for content in action::contents_mut(&mut plain) {
        if let Ok(object) = content::unpack(content) {
            content.0 = object;
        }
    }
    let plain = action::size(&plain);
    let name = release.name_any();
    let words = |size: usize| text::bytes(size as u64);
    say(match stored < plain {
        true => format!(
            "release {name}: {}, stored compressed in {} ({} % saved)",
            words(plain),
            words(stored),
            100 - stored * 100 / plain
        ),
        false => format!("release {name}: {}", words(stored)),
    });
}

fn print(format: Format, release: &Release) -> String {
    match format {
        Format::Json => output::json(release),
        Format::Yaml | Format::Table | Format::Wide => output::yaml(release),
        Format::Name => output::name_line("release.openchoreo.dev", &release.name_any()),
    }
}

async fn list(
    arguments: &List,
    connection: &Connection,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let api: Api<Release> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let params = match &arguments.component {
        Some(component) => {
            ListParams::default().fields(&format!("spec.component.name={component}"))
        }
        None => ListParams::default(),
    };
    if matches!(arguments.output, Format::Json | Format::Yaml) {
        let items: Vec<Value> = api
            .list(&params)
            .await?
            .items
            .iter()
            .filter_map(|release| serde_json::to_value(release).ok())
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        return Ok(match arguments.output {
            Format::Json => output::json(&list),
            _ => output::yaml(&list),
        });
    }
    let named = named(connection).await;
    // List only the metadata: it contains all values for the table, and the specs are large.
    let mut releases = api.list_metadata(&params).await?.items;
    releases.sort_by_key(|release| {
        (
            release.labels().get(labels::COMPONENT).cloned(),
            std::cmp::Reverse(release.metadata.creation_timestamp.clone()),
            release.name_any(),
        )
    });
    if arguments.output == Format::Name {
        let names = releases.iter().map(|release| release.name_any());
        return Ok(names
            .map(|name| output::name_line("release.openchoreo.dev", &name))
            .collect());
    }
    let sizes = releases.iter().filter_map(size);
    say(format!(
        "{} releases, {}",
        releases.len(),
        text::bytes(sizes.fold(0, u64::saturating_add))
    ));
    let wide = arguments.output == Format::Wide;
    let mut rows = vec![header(wide)];
    rows.extend(
        releases
            .iter()
            .map(|release| row(release, named.as_ref(), now, wide)),
    );
    Ok(output::table(&rows))
}

fn header(wide: bool) -> Vec<String> {
    let mut columns = vec![
        "NAME",
        "COMPONENT",
        "VERSION",
        "SIZE",
        "MARK",
        "IN USE",
        "AGE",
    ];
    if wide {
        columns.extend(["IMAGES", "HASH"]);
    }
    columns.into_iter().map(str::to_owned).collect()
}

fn size(release: &PartialObjectMeta<Release>) -> Option<u64> {
    release.annotations().get(labels::SIZE)?.parse().ok()
}

/// Returns the releases that ReleasePins name in their releaseRefs and holds. None if the ReleasePins cannot be read.
async fn named(connection: &Connection) -> Option<BTreeSet<String>> {
    let pins: Api<ReleasePin> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let pins = pins.list(&ListParams::default()).await.ok()?.items;
    let specs = pins.into_iter().map(|pin| pin.spec);
    let names = specs.flat_map(|spec| {
        let fixed = spec.holds.into_iter().filter_map(|hold| hold.release);
        std::iter::once(spec.release_ref.name).chain(fixed)
    });
    Some(names.collect())
}

/// Returns the table row of a release. If the metadata does not contain a value, because another tool created the
/// release, the column shows `?`.
fn row(
    release: &PartialObjectMeta<Release>,
    named: Option<&BTreeSet<String>>,
    now: Timestamp,
    wide: bool,
) -> Vec<String> {
    let unknown = || "?".to_owned();
    let annotation = |name| release.annotations().get(name).cloned();
    let age = release.metadata.creation_timestamp.as_ref();
    let mark = annotation(labels::MARK).and_then(|mark| {
        let mark: Value = serde_json::from_str(&mark).ok()?;
        mark.get("verdict")?.as_str().map(str::to_owned)
    });
    let component = release.labels().get(labels::COMPONENT).cloned();
    let in_use = named.map_or("?", |named| match named.contains(&release.name_any()) {
        true => "yes",
        false => "",
    });
    let mut cells = vec![
        release.name_any(),
        component.unwrap_or_else(unknown),
        annotation(labels::VERSION_TEXT).unwrap_or_default(),
        size(release).map_or_else(unknown, text::bytes),
        mark.unwrap_or_default(),
        in_use.to_owned(),
        age.map_or_else(unknown, |since| {
            text::age(now.as_second() - since.0.as_second())
        }),
    ];
    if wide {
        let hash = annotation(labels::CONTENT_HASH);
        cells.push(annotation(labels::IMAGES).unwrap_or_else(unknown));
        cells.push(hash.map_or_else(unknown, |hash| hash.chars().take(10).collect()));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{labelled, now, release};

    #[test]
    fn a_release_is_in_use_only_while_a_release_pin_names_it() {
        let protected = labelled(
            release("cart", "v1", 1),
            labels::PINNED,
            labels::PINNED_TRUE,
        );
        let in_use = header(false).iter().position(|name| name == "IN USE");
        let in_use = |named: Option<&[&str]>| {
            let named = named.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
            let cells = row(&protected, named.as_ref(), now(), false);
            cells[in_use.unwrap()].clone()
        };
        assert_eq!(in_use(Some(&["cart-v1"])), "yes");
        assert_eq!(in_use(Some(&["cart-v2"])), "");
        assert_eq!(in_use(None), "?");
    }
}
