//! `bowline check`: checks the objects of a repository. Also shows the changes of ReleasePins since the merge base
//! with a base branch.

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
use crate::gitops::check::BaseError;
use crate::subjects::release_pin::READ_BY_CHANGES;
use crate::subjects::release_pin::check::{Check, CheckError, Promotion};
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

/// The output of `bowline check`, before it is printed.
#[derive(Debug, Default, Serialize)]
struct Report {
    /// The changes of ReleasePins since the merge base.
    promotions: Vec<Shown>,
    /// Errors in the files and objects of the repository.
    wrong: Vec<String>,
    /// Changes of ReleasePins or marks that a rule refuses.
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
    /// One text for each hold of the ReleasePin that was placed, removed or edited.
    holds: Vec<String>,
    diff: String,
}

impl Report {
    /// Returns the report as text in a format. Each finding is one line, even if its text contains a line break.
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
    fn of(promotion: Promotion) -> Self {
        Self {
            namespace: promotion.pin.namespace.to_string(),
            component: promotion.component,
            environment: promotion.environment,
            from: promotion.from,
            to: promotion.to,
            holds: promotion.holds,
            diff: promotion.diff,
        }
    }

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
    let check = Check {
        tree: &repository.tree,
        client: &connection.client,
        feed: &feed,
        git: &arguments.git.on(&connection, environment)?,
    };
    let checked = check.run(arguments.base.as_deref(), now).await?;
    let lines = |found: &[String]| -> Vec<String> {
        let lines = found.iter().map(|what| text::line(what).into_owned());
        lines.collect()
    };
    let report = Report {
        promotions: checked.promotions.into_iter().map(Shown::of).collect(),
        wrong: lines(&checked.problems),
        refused: lines(&checked.refused),
        warnings: lines(&checked.warnings),
    };
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

/// Returns the numbers of problems and of refused changes as text. A number that is zero is left out.
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

impl From<CheckError> for Error {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Base(BaseError::Git(error)) | CheckError::Git(error) => error.into(),
            CheckError::Base(error) => Error::new(Exit::Usage, error.to_string())
                .with_hint("a shallow clone may not have the commit: git fetch --unshallow"),
            CheckError::Target(error) => error.into(),
            CheckError::Preview(error) => not_shown(error),
        }
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
