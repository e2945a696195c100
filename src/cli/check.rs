//! `bowline check`: whether what a repository says holds together, and what a change of it promotes.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;

use super::Outcome;
use super::actions::not_shown;
use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::session::live_everywhere;
use crate::api::audit::ReleaseIdentity;
use crate::connect::Repository;
use crate::engine::diff;
use crate::engine::preview::{PreviewError, Stage, objects};
use crate::engine::repository::{self, Checked, Content, Promotion};
use crate::engine::world::{Key, Pin, Source, World};
use crate::text;

/// What `check` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print what changed since what is checked out and this commit went apart, and hold it to the rules of
    /// promotion
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    #[command(flatten)]
    git: GitFlags,
}

/// Checks, and prints what is found.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let connection = connect::connect(options, environment).await?;
    let Some(repository) = connection.repository.clone() else {
        let message = "check needs a repository";
        return Err(
            Error::new(Exit::Usage, message).with_hint("name the repository with --repo DIR")
        );
    };
    let read = repository.whole().await;
    read.map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
    let feed = live_everywhere(&connection, options, &Source::OF_MOVES).await?;
    let base = arguments.base.as_deref();
    let base = base.map(|base| went_apart(&repository, base)).transpose()?;
    let content = Content::fetch(&connection.client).await?;
    let mut checked = {
        let world = feed.world();
        repository::check(&repository, &world, &content, base.as_deref(), now)?
    };
    let git = arguments.git.on(&connection, environment)?;
    let mut out = String::new();
    let promotions = std::mem::take(&mut checked.promotions);
    let moved: BTreeSet<&Key> = promotions.iter().map(|promotion| &promotion.pin).collect();
    // Settings and environments change, too: what did not move has to fit as well.
    let mut others = pins(&feed.world(), now);
    others.retain(|pin| !moved.contains(&pin.pin));
    let namespaces = promotions.iter().chain(&others);
    let namespaces: BTreeSet<&str> = namespaces.map(|pin| &*pin.pin.namespace).collect();
    for namespace in namespaces {
        let stage = Stage::new(&connection.client, namespace, &git);
        let is_here = |pin: &&Promotion| &*pin.pin.namespace == namespace;
        for promotion in promotions.iter().filter(is_here) {
            out += &show(promotion, &stage, &mut checked).await?;
        }
        for pin in others.iter().filter(is_here) {
            fits(pin, &stage, &mut checked).await?;
        }
    }
    checked
        .warnings
        .iter()
        .for_each(|what| say(format!("warning: {what}")));
    checked.problems.dedup();
    for (word, found) in [("wrong", &checked.problems), ("refused", &checked.refused)] {
        for what in found {
            out += &format!("{word}: {what}\n");
        }
    }
    let exit = match (checked.problems.is_empty(), checked.refused.is_empty()) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Refused,
        (true, true) => Exit::Done,
    };
    say(match exit {
        Exit::Done => "no problems found".to_owned(),
        _ => format!(
            "{} wrong, {} refused",
            checked.problems.len(),
            checked.refused.len()
        ),
    });
    Ok(Outcome::ending(text::clean(&out).into_owned(), exit))
}

/// Finds the commit that what is checked out and a base both come from: what came to the base since then is
/// no part of the change.
fn went_apart(repository: &Repository, base: &str) -> Result<String, Error> {
    let work = repository.tree.work();
    let shallow = "a shallow clone may not have the commit: git fetch --unshallow";
    let Some(commit) = work.commit_of(base)? else {
        let message = format!("{base} is not a commit");
        return Err(Error::new(Exit::Usage, message).with_hint(shallow));
    };
    work.merge_base(&commit)?.ok_or_else(|| {
        let message = format!("{base} and HEAD have no common commit");
        Error::new(Exit::Usage, message).with_hint(shallow)
    })
}

/// Lists the pins as they are, by component.
fn pins(world: &World, now: Timestamp) -> Vec<Promotion> {
    let mut components: Vec<_> = world.components().cloned().collect();
    components.sort();
    let pins = components
        .iter()
        .flat_map(|component| world.pins_of(component));
    let promotion = |pin: &Pin| Promotion {
        pin: pin.key.clone(),
        component: pin.component.to_string(),
        environment: pin.environment.to_string(),
        from: None,
        to: Some(pin.effective_release(now).to_owned()),
    };
    pins.map(promotion).collect()
}

/// Prints one promotion, and what it changes in its environment.
async fn show(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<String, Error> {
    let Promotion {
        component,
        environment,
        from,
        to,
        ..
    } = promotion;
    let word = |release: &Option<String>| release.clone().unwrap_or_else(|| "nothing".to_owned());
    let line = format!(
        "{component} in {environment}: {} -> {}\n",
        word(from),
        word(to)
    );
    let Some(after) = fits(promotion, stage, checked).await? else {
        return Ok(line);
    };
    let before = match from {
        None => Vec::new(),
        Some(from) => {
            let identity = ReleaseIdentity::named(from);
            let rendered = stage
                .rendered(component, environment, &identity, &mut Vec::new())
                .await;
            // What ran before may be broken; that is no reason not to move away from it.
            rendered
                .map(|rendered| objects(&rendered))
                .unwrap_or_default()
        }
    };
    let diff = diff::diff(&before, &after, &diff::Options::default());
    Ok(line + &diff.text())
}

/// Renders what a pin wants, where it can be.
async fn fits(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<Option<Vec<serde_json::Value>>, Error> {
    let Some(to) = &promotion.to else {
        return Ok(None);
    };
    let identity = ReleaseIdentity::named(to);
    let (component, environment) = (&promotion.component, &promotion.environment);
    let rendered = stage
        .rendered(component, environment, &identity, &mut checked.warnings)
        .await;
    match rendered {
        Ok(rendered) => Ok(Some(objects(&rendered))),
        Err(error @ (PreviewError::DoesNotFit { .. } | PreviewError::OfAnother { .. })) => {
            checked.refused.push(error.to_string());
            Ok(None)
        }
        // What is missing was said by then; what cannot be fetched is no fault of the files.
        Err(error @ (PreviewError::Unresolved { .. } | PreviewError::Body(_))) => {
            checked.warnings.push(format!("not rendered: {error}"));
            Ok(None)
        }
        Err(PreviewError::Catalog(error)) => {
            checked
                .problems
                .push(format!("{component} in {environment}: {error}"));
            Ok(None)
        }
        Err(error) => Err(not_shown(error)),
    }
}
