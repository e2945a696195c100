//! The arguments of the verbs that change ReleasePins and workloads.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use crate::duration;
use crate::engine::subject::command::Verb as SubjectVerb;
use crate::error::{Error, Exit};
use crate::gitflags::GitFlags;
use crate::gitops::propose::BeforePlan;
use crate::output::Format;
use crate::subject::{Named, named_by};

/// The verbs that move and pin ReleasePins.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Deploy a release to a first environment of the pipeline: one that no promotion path leads to
    Deploy(DeployArguments),
    /// Deploy the effective release of one environment to the next environment
    Promote(PromoteArguments),
    /// Roll back to the last good release and pin it
    Rollback(RollbackArguments),
    /// Place a hold on a ReleasePin or a workload: no promotion, deployment or automation moves it; a rollback
    /// still can
    #[command(visible_alias = "hold")]
    Pin(PinArguments),
    /// Remove a hold from a ReleasePin or a workload
    #[command(visible_alias = "unhold")]
    Unpin(UnpinArguments),
    /// Reverse the last action on a ReleasePin or a workload
    Undo(UndoArguments),
}

impl Verb {
    /// Returns whether bowline fetches from the git remote before it plans this verb. Only used if the target is a
    /// repository.
    pub(super) fn before_plan(&self) -> BeforePlan {
        match self {
            Self::Deploy(_) | Self::Promote(_) => BeforePlan::Fetch,
            Self::Rollback(_) | Self::Pin(_) | Self::Unpin(_) | Self::Undo(_) => {
                BeforePlan::NameRemote
            }
        }
    }

    /// Returns the subject if the user named it together with its kind, such as `deploy/web`; None if the user named
    /// a component.
    pub(crate) fn subject(&self) -> Option<Named> {
        named_by(match self {
            Self::Deploy(_) | Self::Promote(_) => None,
            Self::Rollback(arguments) => arguments.component.as_ref(),
            Self::Pin(arguments) => arguments.component.as_ref(),
            Self::Unpin(arguments) => arguments.component.as_ref(),
            Self::Undo(arguments) => arguments.component.as_ref(),
        })
    }

    /// Converts the verb to a command on a subject such as `deploy/web`. Fails if the user gave a flag that is only
    /// valid for components.
    pub(super) fn on_subject(&self, now: Timestamp) -> Result<SubjectVerb, Error> {
        let only_releases = |flag: &str| {
            let message = format!("{flag} is only for components: it names a release");
            Err(Error::new(Exit::Usage, message))
        };
        Ok(match self {
            Self::Rollback(arguments) if arguments.to.is_some() => {
                return only_releases("--to")
                    .map_err(|error| error.with_hint("use --to-revision N"));
            }
            Self::Pin(arguments) if arguments.release.is_some() => {
                return only_releases("--release");
            }
            Self::Rollback(arguments) => SubjectVerb::Rollback {
                to: arguments.to_revision,
                hold: !arguments.no_hold,
                force: arguments.force,
            },
            Self::Pin(arguments) => SubjectVerb::Pin {
                until: arguments.until.map(|until| until.from(now)).transpose()?,
                freeze: arguments.freeze,
            },
            Self::Unpin(arguments) => SubjectVerb::Unpin {
                hold: arguments.hold.clone(),
            },
            Self::Undo(_) => SubjectVerb::Undo,
            Self::Deploy(_) | Self::Promote(_) => {
                return Err(Error::new(Exit::Usage, "this verb is only for components"));
            }
        })
    }

    /// Returns an error if the user gave a flag that is only valid for workloads, because it has no effect on a
    /// ReleasePin.
    pub(super) fn check(&self) -> Result<(), Error> {
        let flag = match self {
            Self::Rollback(arguments) if arguments.force => "--force",
            Self::Pin(arguments) if arguments.freeze => "--freeze",
            _ => return Ok(()),
        };
        let message = format!("{flag} is only for workloads, such as deploy/web");
        Err(Error::new(Exit::Usage, message))
    }

    pub(super) fn changes(&self) -> &Changes {
        match self {
            Self::Deploy(arguments) => &arguments.changes,
            Self::Promote(arguments) => &arguments.changes,
            Self::Rollback(arguments) => &arguments.changes,
            Self::Pin(arguments) => &arguments.changes,
            Self::Unpin(arguments) => &arguments.changes,
            Self::Undo(arguments) => &arguments.changes,
        }
    }
}

/// The flags of every verb that changes something.
#[derive(Args, Debug)]
pub struct Changes {
    /// The reason for the change; the audit trail records it
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Print the plan, change nothing, and exit with 3 if something would change
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Wait until the rollout is ready; exit with 1 if it fails or if --timeout ends first
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long --wait waits for the rollout (30s, 10m); needs --wait
    #[arg(long, value_name = "DURATION", default_value = "5m", requires = "wait", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
    #[command(flatten)]
    pub(crate) git: GitFlags,
}

/// The arguments of `deploy`.
#[derive(Args, Debug)]
pub struct DeployArguments {
    /// The component [default: the component that config.toml names]
    pub(super) component: Option<String>,
    /// The environment to deploy to
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    /// The release to deploy [default: a new release of the current definitions]
    #[arg(short, long, value_name = "NAME")]
    pub(super) release: Option<String>,
    /// Deploy although a promotion path leads to the environment; needs --reason
    #[arg(long)]
    pub(super) skip_path: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The arguments of `promote`.
#[derive(Args, Debug)]
pub struct PromoteArguments {
    /// The components; bowline plans and confirms several components together [default: the component that
    /// config.toml names]
    pub(super) components: Vec<String>,
    /// Promote all components that are deployed in the source environment
    #[arg(long, conflicts_with = "components")]
    pub(super) all: bool,
    /// The source environment: promote the release that is effective there
    #[arg(long, value_name = "NAME")]
    pub(super) from: String,
    /// The target environment: its ReleasePins change
    #[arg(long, value_name = "NAME")]
    pub(super) to: String,
    /// Promote although the release is not ready in the source environment
    #[arg(long)]
    pub(super) unready: bool,
    /// Promote although the pipeline has no path between the environments; needs --reason
    #[arg(long)]
    pub(super) skip_path: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The arguments of `rollback`.
#[derive(Args, Debug)]
pub struct RollbackArguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    pub(super) component: Option<String>,
    /// The environment of the component; a workload needs none
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: Option<String>,
    /// The release to roll back to; its version is enough if only one release of the component has it [default:
    /// the last good release]
    #[arg(long, value_name = "RELEASE", conflicts_with = "to_revision")]
    pub(super) to: Option<String>,
    /// The number of the revision to roll back to; bowline history lists the revisions
    #[arg(long, value_name = "N")]
    pub(super) to_revision: Option<i64>,
    /// Place no hold after the rollback, so that promotions and automation can move the ReleasePin again
    #[arg(long)]
    pub(super) no_hold: bool,
    /// Roll back a workload although a GitOps tool owns it; needs --reason
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The arguments of `pin`.
#[derive(Args, Debug)]
pub struct PinArguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    pub(super) component: Option<String>,
    /// The environment of the component; a workload needs none
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: Option<String>,
    /// When the hold ends: a time (2026-01-31T18:00:00Z) or a duration from now (4h) [default: it has no end]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) until: Option<Until>,
    /// The release that runs while the hold is active [default: the release stays as it is]
    #[arg(short, long, value_name = "NAME")]
    pub(super) release: Option<String>,
    /// Also pause a Deployment (spec.paused), so that Kubernetes rolls out no change of it; its rollout must be
    /// complete
    #[arg(long)]
    pub(super) freeze: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The arguments of `unpin`.
#[derive(Args, Debug)]
pub struct UnpinArguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    pub(super) component: Option<String>,
    /// The environment of the component; a workload needs none
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: Option<String>,
    /// The id of the hold to remove [default: the only hold]
    #[arg(long, value_name = "ID")]
    pub(super) hold: Option<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The arguments of `undo`.
#[derive(Args, Debug)]
pub struct UndoArguments {
    /// The component, or a workload with its kind (deploy/web) [default: the component that config.toml names]
    pub(super) component: Option<String>,
    /// The environment of the component; a workload needs none
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: Option<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// The end of a hold, as the user typed it: a time or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The hold ends at this time.
    At(Timestamp),
    /// The hold ends after this duration, by the target's clock.
    In(SignedDuration),
}

impl Until {
    /// Converts the end of the hold to a time. `now` is the current time by the target's clock.
    pub(super) fn from(self, now: Timestamp) -> Result<Timestamp, Error> {
        match self {
            Self::At(moment) => Ok(moment),
            Self::In(span) => now
                .checked_add(span)
                .map_err(|error| Error::new(Exit::Usage, error.to_string())),
        }
    }
}

/// Parses the end of a hold: a timestamp, or a duration from now.
fn moment(text: &str) -> Result<Until, String> {
    if let Ok(moment) = text.parse() {
        return Ok(Until::At(moment));
    }
    if let Ok(span) = text.parse::<SignedDuration>() {
        return match span < SHORTEST {
            true => Err("a hold lasts at least 1s".to_owned()),
            false => Ok(Until::In(span)),
        };
    }
    // The date is valid, but with its time zone it is later than the latest time that bowline can store.
    let date = text.strip_suffix('Z').unwrap_or(text);
    if date.parse::<DateTime>().is_ok() && text.starts_with("9999-12-3") {
        return Err(format!("the latest time is {}", Timestamp::MAX));
    }
    Err("write a time as 2026-01-31T18:00:00Z, or a duration from now as 4h".to_owned())
}

/// The shortest duration of a hold, because the API stores times in whole seconds.
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_hold_is_a_time_or_at_least_a_second_away() {
        let second = SignedDuration::from_secs(1);
        assert_eq!(moment("1s"), Ok(Until::In(second)));
        assert!(moment("2026-01-31T18:00:00Z").is_ok());
        for (text, why) in [
            ("1ns", "a hold lasts at least 1s"),
            ("0s", "a hold lasts at least 1s"),
            ("-4h", "a hold lasts at least 1s"),
            ("9999-12-31T23:59:59Z", "the latest time is 9999-12-30T"),
            ("soon", "write a time as"),
            ("", "write a time as"),
        ] {
            let error = moment(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
