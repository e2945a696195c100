//! What the verbs that move and hold pins can be told.

use std::time::Duration;

use clap::{Args, Subcommand};
use jiff::{SignedDuration, Timestamp};

use crate::cli::duration;
use crate::cli::error::{Error, Exit};
use crate::cli::gitflags::GitFlags;
use crate::cli::output::Format;

/// The verbs that move and hold pins.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a release in an environment that nothing promotes to
    Deploy(DeployArguments),
    /// Run what one environment runs in the next one too
    Promote(PromoteArguments),
    /// Go back to a release that was good, and hold the pin there
    Rollback(RollbackArguments),
    /// Hold a pin, so that nothing moves it
    Pin(PinArguments),
    /// Lift a hold
    Unpin(UnpinArguments),
    /// Reverse the last action on a pin
    Undo(UndoArguments),
}

impl Verb {
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
    /// Why it is done
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,
    /// Print the plan, change nothing, and exit with 3 if something would change
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Wait until it is ready, and exit with 1 if it is not in time
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) wait: bool,
    /// How long to wait (30s, 10m)
    #[arg(long, value_name = "DURATION", default_value = "5m", requires = "wait", value_parser = duration)]
    pub(super) timeout: Duration,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    pub(super) output: Format,
    #[command(flatten)]
    pub(super) git: GitFlags,
}

/// What `deploy` can be told.
#[derive(Args, Debug)]
pub struct DeployArguments {
    /// The component; that of the configuration where it is left out
    pub(super) component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    /// The release; one is made of the current definitions where it is left out
    #[arg(short, long, value_name = "NAME")]
    pub(super) release: Option<String>,
    /// Deploy to an environment that is promoted to; needs a reason
    #[arg(long)]
    pub(super) skip_path: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// What `promote` can be told.
#[derive(Args, Debug)]
pub struct PromoteArguments {
    /// The components, of which several make one set; that of the configuration where none is named
    pub(super) components: Vec<String>,
    /// Every component that is deployed in the environment
    #[arg(long, conflicts_with = "components")]
    pub(super) all: bool,
    /// The environment whose release is taken
    #[arg(long, value_name = "NAME")]
    pub(super) from: String,
    /// The environment that gets it
    #[arg(long, value_name = "NAME")]
    pub(super) to: String,
    /// Promote although the release is not ready where it comes from
    #[arg(long)]
    pub(super) unready: bool,
    /// Promote where the pipeline has no path; needs a reason
    #[arg(long)]
    pub(super) skip_path: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// What `rollback` can be told.
#[derive(Args, Debug)]
pub struct RollbackArguments {
    /// The component; that of the configuration where it is left out
    pub(super) component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    /// The release to go back to; the last good one where it is left out
    #[arg(long, value_name = "RELEASE", conflicts_with = "to_revision")]
    pub(super) to: Option<String>,
    /// The revision to go back to
    #[arg(long, value_name = "N")]
    pub(super) to_revision: Option<i64>,
    /// Place no hold, so that automation may move the pin again
    #[arg(long)]
    pub(super) no_hold: bool,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// What `pin` can be told.
#[derive(Args, Debug)]
pub struct PinArguments {
    /// The component; that of the configuration where it is left out
    pub(super) component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    /// Until when, as 2026-01-31T18:00:00Z or 4h from now; without an end where it is left out
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) until: Option<Until>,
    /// The release that the hold fixes
    #[arg(short, long, value_name = "NAME")]
    pub(super) release: Option<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// What `unpin` can be told.
#[derive(Args, Debug)]
pub struct UnpinArguments {
    /// The component; that of the configuration where it is left out
    pub(super) component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    /// The hold; the only one where it is left out
    #[arg(long, value_name = "ID")]
    pub(super) hold: Option<String>,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// What `undo` can be told.
#[derive(Args, Debug)]
pub struct UndoArguments {
    /// The component; that of the configuration where it is left out
    pub(super) component: Option<String>,
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub(super) environment: String,
    #[command(flatten)]
    pub(super) changes: Changes,
}

/// When a hold ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// At a moment.
    At(Timestamp),
    /// So long from now, by the target's clock.
    In(SignedDuration),
}

impl Until {
    /// Returns the moment.
    pub(super) fn from(self, now: Timestamp) -> Result<Timestamp, Error> {
        match self {
            Self::At(moment) => Ok(moment),
            Self::In(span) => now
                .checked_add(span)
                .map_err(|error| Error::new(Exit::Usage, error.to_string())),
        }
    }
}

/// Reads a moment: a time stamp, or a span from now on.
fn moment(text: &str) -> Result<Until, String> {
    let moment = text.parse().map(Until::At);
    moment
        .or_else(|_| text.parse().map(Until::In))
        .map_err(|_| "write it as 2026-01-31T18:00:00Z, or as 4h for a span from now".to_owned())
}
