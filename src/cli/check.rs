//! `bowline check`: checks the objects of a repository, and shows the changes of ReleasePins since the merge
//! base.

use std::collections::BTreeSet;

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::Outcome;
use super::actions::not_shown;
use super::connect::{self, Environment, Options};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::output::{self, Format};
use super::session::live_everywhere;
use crate::api::bowline::audit::ContentRef;
use crate::connect::Repository;
use crate::engine::diff;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::preview::{PreviewError, Stage, objects};
use crate::subjects::release_pin::repository::{self, Checked, Content, Promotion};
use crate::subjects::release_pin::rows::Pin;
use crate::text;

/// The arguments of `check`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Print the changes since the merge base of this commit and HEAD, and check them against the
    /// promotion rules
    #[arg(long, value_name = "REV")]
    base: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    git: GitFlags,
}

/// The output of `bowline check`.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// The changes of ReleasePins since the merge base.
    promotions: Vec<Shown>,
    /// Errors in files and objects.
    wrong: Vec<String>,
    /// Changes that a rule refuses.
    refused: Vec<String>,
    warnings: Vec<String>,
}

/// A change of a ReleasePin, with the diff of the rendered objects in its environment.
#[derive(Debug, Serialize)]
struct Shown {
    namespace: String,
    component: String,
    environment: String,
    from: Option<String>,
    to: Option<String>,
    /// One text per hold that was placed, removed or edited.
    holds: Vec<String>,
    diff: String,
}

impl Report {
    /// Prints the report. Each finding is one line, even if its text contains a line break.
    fn print(&self, format: Format) -> String {
        match format {
            Format::Json => output::json(self),
            Format::Yaml => output::yaml(self),
            Format::Name => {
                let pins = self.promotions.iter();
                let name = |shown: &Shown| format!("{}-{}", shown.component, shown.environment);
                pins.map(|shown| output::name_line("releasepin.openchoreo.dev", &name(shown)))
                    .collect()
            }
            Format::Table | Format::Wide => {
                let mut out: String = self.promotions.iter().map(Shown::text).collect();
                for (word, found) in [("wrong", &self.wrong), ("refused", &self.refused)] {
                    for what in found {
                        out += &format!("{word}: {what}\n");
                    }
                }
                text::clean(&out).into_owned()
            }
        }
    }
}

impl Shown {
    fn text(&self) -> String {
        let word = |release: &Option<String>| match release {
            Some(release) => release.clone(),
            None => "nothing".to_owned(),
        };
        let (from, to) = (word(&self.from), word(&self.to));
        let (component, environment) = (&self.component, &self.environment);
        let mut what: Vec<String> = match from == to {
            true if !self.holds.is_empty() => vec![to],
            _ => vec![format!("{from} -> {to}")],
        };
        what.extend(self.holds.iter().cloned());
        let line = format!("{component} in {environment}: {}", what.join(", "));
        format!("{}\n{}", text::line(&line), self.diff)
    }
}

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
    let feed = live_everywhere(&connection, options, &READ_BY_CHANGES).await?;
    let base = arguments.base.as_deref();
    let base = base.map(|base| went_apart(&repository, base)).transpose()?;
    let content = Content::fetch(&connection.client).await?;
    let mut checked = {
        let world = feed.world();
        repository::check(&repository, &world, &content, base.as_deref(), now)?
    };
    let git = arguments.git.on(&connection, environment)?;
    let mut report = Report::default();
    let promotions = std::mem::take(&mut checked.promotions);
    let moved: BTreeSet<&Key> = promotions.iter().map(|promotion| &promotion.pin).collect();
    // A change of settings or of an Environment can break a ReleasePin that did not change, so those are
    // rendered too.
    let mut others = pins(&feed.world(), now);
    others.retain(|pin| !moved.contains(&pin.pin));
    let namespaces = promotions.iter().chain(&others);
    let namespaces: BTreeSet<&str> = namespaces.map(|pin| &*pin.pin.namespace).collect();
    for namespace in namespaces {
        let stage = Stage::new(&connection.client, namespace, &git);
        let is_here = |pin: &&Promotion| &*pin.pin.namespace == namespace;
        for promotion in promotions.iter().filter(is_here) {
            let shown = show(promotion, &stage, &mut checked).await?;
            report.promotions.push(shown);
        }
        for pin in others.iter().filter(is_here) {
            fits(pin, &stage, &mut checked).await?;
        }
    }
    let lines = |found: &[String]| -> Vec<String> {
        let lines = found.iter().map(|what| text::line(what).into_owned());
        lines.collect()
    };
    checked.problems.dedup();
    report.wrong = lines(&checked.problems);
    report.refused = lines(&checked.refused);
    report.warnings = lines(&checked.warnings);
    for what in &report.warnings {
        say(format!("warning: {what}"));
    }
    let exit = match (checked.problems.is_empty(), checked.refused.is_empty()) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Refused,
        (true, true) => Exit::Done,
    };
    say(match exit {
        Exit::Done => "no problems found".to_owned(),
        _ => counted(checked.problems.len(), checked.refused.len()),
    });
    Ok(Outcome::ending(report.print(arguments.output), exit))
}

/// Returns the number of problems and of refused changes as text. Leaves out a zero.
fn counted(problems: usize, refused: usize) -> String {
    let mut counts = Vec::new();
    if problems > 0 {
        counts.push(text::counted(problems, "problems"));
    }
    if refused > 0 {
        counts.push(text::counted(refused, "refused changes"));
    }
    format!("found {}", counts.join(" and "))
}

/// Returns the merge base of HEAD and the base branch. Later commits on the base branch are not part of the
/// change.
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

/// Returns a promotion with the effective release of every ReleasePin, sorted by component.
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
        holds: Vec::new(),
    };
    pins.map(promotion).collect()
}

/// Renders a promotion before and after, and returns it with the diff.
async fn show(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<Shown, Error> {
    let Promotion {
        component,
        environment,
        from,
        ..
    } = promotion;
    let shown = |diff: String| Shown {
        namespace: promotion.pin.namespace.to_string(),
        component: component.clone(),
        environment: environment.clone(),
        from: from.clone(),
        to: promotion.to.clone(),
        holds: promotion.holds.clone(),
        diff,
    };
    let Some(after) = fits(promotion, stage, checked).await? else {
        return Ok(shown(String::new()));
    };
    let before = match from {
        None => Vec::new(),
        Some(from) => {
            let identity = ContentRef::named(from);
            let rendered = stage
                .rendered(component, environment, &identity, &mut Vec::new())
                .await;
            // If the old release cannot be rendered, this does not forbid a promotion to another release.
            rendered
                .map(|rendered| objects(&rendered))
                .unwrap_or_default()
        }
    };
    let diff = diff::diff(&before, &after, &diff::Options::default());
    // A change that touches only holds does not change the rendered objects.
    let is_hold_only = diff.is_empty() && !promotion.holds.is_empty();
    Ok(shown(match is_hold_only {
        true => String::new(),
        false => diff.text(),
    }))
}

/// Renders the release of a promotion. None if the promotion has no release, or if the release cannot be
/// rendered; then the report has the reason.
async fn fits(
    promotion: &Promotion,
    stage: &Stage<'_>,
    checked: &mut Checked,
) -> Result<Option<Vec<serde_json::Value>>, Error> {
    let Some(to) = &promotion.to else {
        return Ok(None);
    };
    let identity = ContentRef::named(to);
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
        // Another check reports a missing object, and a failed fetch is no error in the files. So this is
        // only a warning.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_hold_alone_names_the_hold() {
        let shown = Shown {
            namespace: "shop".to_owned(),
            component: "cart".to_owned(),
            environment: "staging".to_owned(),
            from: Some("cart-2".to_owned()),
            to: Some("cart-2".to_owned()),
            holds: vec!["lifts the hold of ana: sale weekend".to_owned()],
            diff: String::new(),
        };
        assert_eq!(
            shown.text(),
            "cart in staging: cart-2, lifts the hold of ana: sale weekend\n"
        );
    }

    #[test]
    fn a_report_has_the_same_findings_in_every_form() {
        let report = Report {
            promotions: vec![Shown {
                namespace: "shop".to_owned(),
                component: "cart".to_owned(),
                environment: "prod\nwrong: x".to_owned(),
                from: None,
                to: Some("cart-2".to_owned()),
                holds: Vec::new(),
                diff: "diff\n".to_owned(),
            }],
            wrong: vec!["a".to_owned()],
            refused: vec!["b".to_owned()],
            warnings: vec!["c".to_owned()],
        };
        let table = report.print(Format::Table);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[0].starts_with("cart in prod") && lines[0].ends_with("nothing -> cart-2"));
        assert_eq!(lines[1..], ["diff", "wrong: a", "refused: b"]);
        let json: serde_json::Value = serde_json::from_str(&report.print(Format::Json)).unwrap();
        assert_eq!(json["promotions"][0]["to"], "cart-2");
        assert_eq!(json["promotions"][0]["from"], serde_json::Value::Null);
        assert_eq!(json["wrong"][0], "a");
        assert_eq!(json["refused"][0], "b");
        assert_eq!(json["warnings"][0], "c");
    }
}
