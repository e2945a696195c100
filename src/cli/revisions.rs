//! `bowline revisions`: lists the revisions of a subject, and compares two of them.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;

use super::connect::{self, Environment, Options};
use super::diff::{Clock, Show, noticed};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::kinds::check_name;
use super::output::{self, Format};
use super::subject::{Named, named};
use super::{Outcome, commits};
use crate::engine::revisions::{Revision, Revisions, Row};
use crate::engine::subject::command::Content;
use crate::subjects::release_pin::compare::Comparer;
use crate::subjects::release_pin::revisions::{NoSubject, Pinned, Subject};
use crate::text;

/// The arguments of `revisions`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the revisions of a subject, newest first
    List(List),
    /// Show what changed between two revisions of a subject
    Diff(Diff),
}

/// The arguments of `revisions list`.
#[derive(Args, Debug)]
pub struct List {
    /// COMPONENT/ENVIRONMENT, releasepin/NAME, or a workload with its kind (deploy/web)
    #[arg(value_parser = subject)]
    subject: Wanted,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The arguments of `revisions diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// COMPONENT/ENVIRONMENT, releasepin/NAME, or a workload with its kind (deploy/web)
    #[arg(value_parser = subject)]
    subject: Wanted,
    /// The number of the older revision [default: the revision before --to]
    #[arg(long, value_name = "N")]
    from: Option<i64>,
    /// The number of the newer revision [default: the current revision]
    #[arg(long, value_name = "N")]
    to: Option<i64>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    git: GitFlags,
}

/// The subject whose revisions the user wants to see.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Pin(Subject),
    /// A subject that is no ReleasePin, such as a workload.
    Named(Named),
}

impl Verb {
    /// Returns the subject if the user named it together with its kind, such as `deploy/web`; None for a ReleasePin.
    pub(super) fn subject(&self) -> Option<&Named> {
        let (Self::List(List { subject, .. }) | Self::Diff(Diff { subject, .. })) = self;
        match subject {
            Wanted::Pin(_) => None,
            Wanted::Named(named) => Some(named),
        }
    }
}

/// Parses the subject that a user typed: `COMPONENT/ENVIRONMENT`, `releasepin/NAME` or `deploy/NAME`.
fn subject(text: &str) -> Result<Wanted, String> {
    let wanted =
        || "write it as COMPONENT/ENVIRONMENT, as releasepin/NAME or as deploy/NAME".to_owned();
    let (kind, name) = text.split_once('/').ok_or_else(wanted)?;
    for part in [kind, name] {
        check_name("name", part).map_err(|_| wanted())?;
    }
    if let Some(named) = named(text) {
        return Ok(Wanted::Named(named));
    }
    Ok(Wanted::Pin(match kind {
        "pin" | "releasepin" => Subject {
            name: name.to_owned(),
            place: None,
        },
        component => Subject::of(component, name),
    }))
}

impl From<NoSubject> for Error {
    fn from(error: NoSubject) -> Error {
        let hint = error.hint();
        let said = match error {
            NoSubject::Target(error) => error.into(),
            error => Error::new(Exit::Failed, error.to_string()),
        };
        match hint {
            Some(hint) => said.with_hint(hint),
            None => said,
        }
    }
}

pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    clock: Clock,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    match verb {
        Verb::List(List { subject, output }) => {
            let now = clock();
            let subject = match subject {
                Wanted::Pin(subject) => subject,
                Wanted::Named(named) => {
                    let found = named.revisions(options, environment, now).await?;
                    found.record.iter().cloned().for_each(&mut *say);
                    return Ok(Outcome::done(print(&found, *output, now)));
                }
            };
            let connection = connect::connect(options, environment).await?;
            commits::say_where_the_log_ends(&connection, say);
            let (client, namespace) = (&connection.client, &connection.namespace);
            let (_, found) = subject.read(client, namespace, now).await?;
            Ok(Outcome::done(print(&found, *output, now)))
        }
        Verb::Diff(arguments) => {
            let wanted = (arguments.from, arguments.to);
            let subject = match &arguments.subject {
                Wanted::Pin(subject) => subject,
                Wanted::Named(named) => {
                    let sides = named.sides(wanted, options, environment, clock()).await?;
                    return arguments.show.print(&sides, say);
                }
            };
            let connection = connect::connect(options, environment).await?;
            let git = arguments.git.on(&connection, environment)?;
            let comparer = Comparer::new(&connection, &git, clock);
            let mut notes = Vec::new();
            let sides = comparer.revisions(subject, wanted, &mut notes).await;
            let sides = noticed(notes, sides, say)?;
            arguments.show.print(&sides, say)
        }
    }
}

/// The content of a revision, in the form that a column of the table shows.
pub trait Shown: Serialize {
    /// The header of the content column, such as `RELEASE`.
    const HEAD: &'static str;
    /// Returns the text of the content column for this revision.
    fn label(&self) -> &str;
    /// Returns the number of holds that the subject had in this revision.
    fn holds(&self) -> usize;
}

impl Shown for Pinned {
    const HEAD: &'static str = "RELEASE";

    fn label(&self) -> &str {
        &self.release.name
    }

    fn holds(&self) -> usize {
        self.holds.len()
    }
}

impl Shown for Content {
    const HEAD: &'static str = "CONTENT";

    fn label(&self) -> &str {
        &self.label
    }

    fn holds(&self) -> usize {
        0
    }
}

/// Returns the revisions of a subject in the output format. A table shows the newest revision first.
pub fn print<C: Shown>(found: &Revisions<C>, format: Format, now: Timestamp) -> String {
    let newest_first: Vec<&Row<C>> = found.rows.iter().rev().collect();
    match format {
        Format::Json => output::json(&newest_first),
        Format::Yaml => output::yaml(&newest_first),
        Format::Name => {
            let numbers = found.known().rev().map(|revision| revision.number);
            numbers.map(|number| format!("{number}\n")).collect()
        }
        Format::Table | Format::Wide => {
            let wide = format == Format::Wide;
            let mut header = vec![
                "REVISION",
                C::HEAD,
                "ACTION",
                "BY",
                "AGE",
                "OUTCOME",
                "REASON",
            ];
            if wide {
                header.extend(["HOLDS", "RESTORED", "WHY", "OPERATION", "HASH"]);
            }
            let mut rows = vec![header.into_iter().map(str::to_owned).collect()];
            rows.extend(newest_first.into_iter().map(|row| cells(row, now, wide)));
            output::table(&rows)
        }
    }
}

fn cells<C: Shown>(row: &Row<C>, now: Timestamp, wide: bool) -> Vec<String> {
    match row {
        Row::Known(revision) => known(revision, now, wide),
        Row::Missing(missing) => {
            let numbers = match missing.first == missing.last {
                true => missing.first.to_string(),
                false => format!("{}-{}", missing.first, missing.last),
            };
            vec![numbers, "?".to_owned(), missing.missing.words().to_owned()]
        }
    }
}

fn known<C: Shown>(revision: &Revision<C>, now: Timestamp, wide: bool) -> Vec<String> {
    let unknown = || "?".to_owned();
    let (cause, content) = (revision.cause.as_ref(), revision.content.as_ref());
    let mut cells = vec![
        revision.number.to_string(),
        content.map_or_else(unknown, |content| content.label().to_owned()),
        cause.map_or_else(unknown, |cause| format!("{:?}", cause.action)),
        cause
            .and_then(|cause| cause.actor.clone())
            .unwrap_or_else(unknown),
        revision.created.map_or_else(unknown, |created| {
            text::age(now.as_second() - created.as_second())
        }),
        match revision.mark {
            Some(mark) => format!("{}, marked {}", revision.state.word(), mark.word()),
            None => revision.state.word().to_owned(),
        },
        cause
            .and_then(|cause| cause.reason.clone())
            .unwrap_or_default(),
    ];
    if wide {
        let holds = content.map_or(0, Shown::holds);
        let hash = revision.hash.as_ref();
        cells.extend([
            holds.to_string(),
            revision
                .restored_from
                .map_or(String::new(), |number| number.to_string()),
            revision.why.clone().unwrap_or_default(),
            cause
                .and_then(|cause| cause.operation.clone())
                .unwrap_or_default(),
            hash.map_or_else(unknown, |hash| hash.chars().take(10).collect()),
        ]);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read() {
        let pin = |name: &str, place: Option<(&str, &str)>| {
            Wanted::Pin(Subject {
                name: name.to_owned(),
                place: place.map(|(a, b)| (a.to_owned(), b.to_owned())),
            })
        };
        for (text, expected) in [
            (
                "cart/staging",
                Some(pin("cart-staging", Some(("cart", "staging")))),
            ),
            ("pin/cart-staging", Some(pin("cart-staging", None))),
            ("releasepin/a", Some(pin("a", None))),
            ("deploy/web", named("deploy/web").map(Wanted::Named)),
            ("sts/db", named("sts/db").map(Wanted::Named)),
            ("cart", None),
            ("cart/", None),
            ("/staging", None),
            ("cart/staging/1", None),
            ("cart/../x", None),
            ("cart/..", None),
        ] {
            assert_eq!(subject(text).ok(), expected, "{text}");
        }
    }
}
