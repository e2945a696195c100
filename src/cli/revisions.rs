//! `bowline revisions`: the revisions of a subject, and the difference between two of them.

use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::connect::{self, Environment, Options};
use super::diff::{Clock, Show, noticed};
use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::kinds::check_name;
use super::output::{self, Format};
use super::{Outcome, commits};
use crate::engine::revisions::{Revision, Revisions, Row};
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
    /// COMPONENT/ENVIRONMENT or releasepin/NAME
    #[arg(value_parser = subject)]
    subject: Subject,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The arguments of `revisions diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// COMPONENT/ENVIRONMENT or releasepin/NAME
    #[arg(value_parser = subject)]
    subject: Subject,
    /// The older revision [default: the one before --to]
    #[arg(long, value_name = "N")]
    from: Option<i64>,
    /// The newer revision [default: the current one]
    #[arg(long, value_name = "N")]
    to: Option<i64>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    git: GitFlags,
}

/// Parses a subject: `COMPONENT/ENVIRONMENT` or `releasepin/NAME`.
fn subject(text: &str) -> Result<Subject, String> {
    let wanted = || "write it as COMPONENT/ENVIRONMENT or as releasepin/NAME".to_owned();
    let (kind, name) = text.split_once('/').ok_or_else(wanted)?;
    for part in [kind, name] {
        check_name("name", part).map_err(|_| wanted())?;
    }
    Ok(match kind {
        "pin" | "releasepin" => Subject {
            name: name.to_owned(),
            place: None,
        },
        component => Subject::of(component, name),
    })
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

/// Runs a verb and returns its output.
pub async fn run(
    verb: &Verb,
    options: &Options,
    environment: &Environment,
    clock: Clock,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let connection = connect::connect(options, environment).await?;
    match verb {
        Verb::List(List { subject, output }) => {
            let now = clock();
            commits::say_where_the_log_ends(&connection, say);
            let (client, namespace) = (&connection.client, &connection.namespace);
            let (_, found) = subject.read(client, namespace, now).await?;
            Ok(Outcome::done(print(&found, *output, now)))
        }
        Verb::Diff(arguments) => {
            let git = arguments.git.on(&connection, environment)?;
            let comparer = Comparer::new(&connection, &git, clock);
            let wanted = (arguments.from, arguments.to);
            let mut notes = Vec::new();
            let sides = comparer
                .revisions(&arguments.subject, wanted, &mut notes)
                .await;
            let sides = noticed(notes, sides, say)?;
            arguments.show.print(&sides, say)
        }
    }
}

/// Prints the revisions of a ReleasePin, newest first.
pub fn print(found: &Revisions<Pinned>, format: Format, now: Timestamp) -> String {
    let newest_first: Vec<&Row<Pinned>> = found.rows.iter().rev().collect();
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
                "REVISION", "RELEASE", "ACTION", "BY", "AGE", "OUTCOME", "REASON",
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

fn cells(row: &Row<Pinned>, now: Timestamp, wide: bool) -> Vec<String> {
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

fn known(revision: &Revision<Pinned>, now: Timestamp, wide: bool) -> Vec<String> {
    let unknown = || "?".to_owned();
    let (cause, content) = (revision.cause.as_ref(), revision.content.as_ref());
    let mut cells = vec![
        revision.number.to_string(),
        content.map_or_else(unknown, |content| content.release.name.clone()),
        cause.map_or_else(unknown, |cause| format!("{:?}", cause.action)),
        cause
            .and_then(|cause| cause.actor.clone())
            .unwrap_or_else(unknown),
        revision.created.map_or_else(unknown, |created| {
            text::age(now.as_second() - created.as_second())
        }),
        revision.state.word().to_owned(),
        cause
            .and_then(|cause| cause.reason.clone())
            .unwrap_or_default(),
    ];
    if wide {
        let holds = content.map_or(0, |content| content.holds.len());
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
        let pin = |name: &str, place: Option<(&str, &str)>| Subject {
            name: name.to_owned(),
            place: place.map(|(a, b)| (a.to_owned(), b.to_owned())),
        };
        for (text, expected) in [
            (
                "cart/staging",
                Some(pin("cart-staging", Some(("cart", "staging")))),
            ),
            ("pin/cart-staging", Some(pin("cart-staging", None))),
            ("releasepin/a", Some(pin("a", None))),
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
