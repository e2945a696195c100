//! The reasons why rules refuse an action, and the next step after each of them.

use jiff::Timestamp;

use crate::api::openchoreo::environment::PipelineFault;
use crate::engine::ownership::GitOps;
use crate::text::{self, quoted};

/// The hint for a promotion in spite of [`Refusal::Unready`].
pub const UNREADY_ANYWAY: &str = "to promote it although it is not ready: add --unready";

/// The reason why an action is not planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The component does not exist.
    #[error("component {component} does not exist{}", instead(.known))]
    NoComponent {
        /// The name of the component.
        component: String,
        /// The existing components.
        known: Vec<String>,
    },
    /// The environment does not exist.
    #[error("environment {environment} does not exist{}", instead(.known))]
    NoEnvironment {
        /// The name of the environment.
        environment: String,
        /// The existing environments.
        known: Vec<String>,
    },
    /// The component is not deployed in the environment.
    #[error("{component} is not deployed in {environment}")]
    NoPin {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The first step towards a deployment in this environment.
        step: Step,
        /// Whether the environment of the step requires a reason for every change.
        requires_reason: bool,
    },
    /// The ReleasePin is in a file that is not checked out, or that cannot be read.
    #[error("the release of {component} in {environment} is not known: {why}")]
    NotRead {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The problem of the file.
        why: String,
        /// The git command that checks the file out; None if the file is on disk and cannot be read.
        check_out: Option<String>,
    },
    /// Another component and environment already have a ReleasePin of this name.
    #[error("the name {name} is taken: it is the ReleasePin of {component} in {environment}")]
    NameTaken {
        /// The name of the ReleasePin.
        name: String,
        /// The other component.
        component: String,
        /// The other environment.
        environment: String,
    },
    /// There is nothing to promote.
    #[error("nothing is deployed in {environment}")]
    Nothing {
        /// The source environment.
        environment: String,
    },
    /// The release does not exist.
    #[error("release {release} does not exist{}", instead(.known))]
    NoRelease {
        /// The name of the release.
        release: String,
        /// The newest releases of the component.
        known: Vec<String>,
    },
    /// The release belongs to another component.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        /// The name of the release.
        release: String,
        /// The component of the action.
        component: String,
        /// The component of the release.
        owner: String,
    },
    /// The release is marked bad.
    #[error("release {release} is marked bad")]
    Bad {
        /// The name of the release.
        release: String,
    },
    /// The release is being deleted.
    #[error("release {release} is being deleted")]
    Deleting {
        /// The name of the release.
        release: String,
    },
    /// The pipeline has no path between the environments.
    #[error("the pipeline has no path from {from} to {to}")]
    NoPath {
        /// The source environment.
        from: String,
        /// The target environment.
        to: String,
        /// The targets of the paths from the source environment.
        leads: Vec<String>,
    },
    /// A promotion path leads to the environment.
    #[error("{environment} is not a first environment of the pipeline")]
    NotFirst {
        /// The name of the environment.
        environment: String,
        /// The environments without a path into them.
        first: Vec<String>,
    },
    /// The namespace has no pipeline.
    #[error("namespace {namespace} has no DeploymentPipeline, so there are no promotion paths")]
    NoPipeline {
        /// The name of the namespace.
        namespace: String,
    },
    /// The pipeline has a cycle, or the namespace has several pipelines.
    #[error(transparent)]
    Pipeline(#[from] PipelineFault),
    /// The pipelines of a namespace have different retentions.
    #[error("the DeploymentPipelines of namespace {namespace} ({}) have different retentions", .pipelines.join(", "))]
    RetentionDiffers {
        /// The name of the namespace.
        namespace: String,
        /// The names of the pipelines.
        pipelines: Vec<String>,
    },
    /// A ReleasePin names a release that does not exist: more releases or ReleasePins may be lost.
    #[error(
        "gc deletes nothing, because ReleasePin {pin} names release {release}, which does not exist"
    )]
    ReleaseLost {
        /// The ReleasePin.
        pin: String,
        /// The name of the release.
        release: String,
    },
    /// A RenderedRelease has lost its ReleasePin, so it is unknown which releases its workloads need.
    #[error(
        "gc deletes nothing, because RenderedRelease {rendered} runs workloads and its ReleasePin does not exist"
    )]
    Unpinned {
        /// The RenderedRelease.
        rendered: String,
    },
    /// The release is not ready in the source environment.
    #[error("{component} is not ready in {environment}: {why}")]
    Unready {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The state of the release.
        why: String,
    },
    /// A hold blocks the change.
    #[error("{component} in {environment} is held at {release} ({holds})")]
    Held {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The held release.
        release: String,
        /// Owner, reason and end of the holds.
        holds: String,
        /// The ids of these holds, if the ReleasePin has several holds, including expired holds;
        /// empty if it has only one.
        ids: Vec<String>,
        /// Whether the environment requires a reason for every change.
        requires_reason: bool,
    },
    /// A GitOps tool owns the ReleasePin.
    #[error("{} owns {component} in {environment} and would revert a change made here", .tool.name())]
    OwnedByGit {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The release of the action.
        release: String,
        /// The tool that owns the ReleasePin.
        tool: GitOps,
    },
    /// The environment requires a reason.
    #[error("{environment} requires a reason for every change")]
    NoReason {
        /// The name of the environment.
        environment: String,
    },
    /// A bad mark needs a reason, and so does the good mark that replaces a bad mark.
    #[error("marking {release} {verdict} needs a reason")]
    NoNote {
        /// The name of the release.
        release: String,
        /// The word for the mark: `bad` or `good`.
        verdict: &'static str,
    },
    /// The read model has stale data of a kind.
    #[error("the data of {what} is stale: the watch was disconnected at {since} ({why})")]
    Stale {
        /// The word for the objects of the kind.
        what: &'static str,
        /// The time since which the data is stale.
        since: Timestamp,
        /// The error of the watch.
        why: String,
    },
    /// The cluster does not have kinds that the action needs.
    #[error("the cluster does not have the kinds {kinds}: bowline is not installed there")]
    KindsAbsent {
        /// The missing kinds, separated by commas.
        kinds: String,
    },
    /// The read model is not complete: the first list has not ended yet.
    #[error("the {what} are still loading")]
    Loading {
        /// The word for the objects of the kind.
        what: &'static str,
    },
    /// There is no last good release.
    #[error(
        "{component} has no earlier release in {environment} that was healthy when it was replaced{}", skipped(.bad, .abandoned)
    )]
    NoLastGood {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The releases that were healthy and are marked bad, the newest first.
        bad: Vec<MarkedBad>,
        /// For each release that was healthy and that the environment went back from: the words after "the
        /// rollback", such as `skips cart-v3: staging went back from it to cart-v2`.
        abandoned: Vec<String>,
    },
    /// The controller has not observed the newest change, so the last good release is unknown.
    #[error(
        "the controller has not observed the latest change of {component} in {environment}, so the last good release is not known"
    )]
    NotObserved {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
    },
    /// No controller runs, so the health of releases is unknown.
    #[error(
        "no controller runs ({why}), so the last good release of {component} in {environment} is not known"
    )]
    NoController {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The reason why bowline knows that no controller runs.
        why: String,
    },
    /// The revision does not exist.
    #[error("{component} has no revision {revision} in {environment}{}", instead(.known))]
    NoRevision {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The number that the user gave.
        revision: i64,
        /// The known revisions.
        known: Vec<String>,
    },
    /// The retention of the pipeline is not valid.
    #[error("spec.retention.minAge of the DeploymentPipeline is not valid: {why}")]
    BadRetention {
        /// The reason why the minimum age is not valid.
        why: String,
    },
    /// The last action created the ReleasePin.
    #[error(
        "the last action was the first deployment of {component} in {environment}: there is no earlier state"
    )]
    NothingBefore {
        /// The ReleasePin.
        pin: String,
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
    },
    /// The clone is shallow, so the state before the last action is unknown.
    #[error(
        "the history of this clone ends here, so the state of {component} in {environment} before the last action is not known"
    )]
    CloneEnds {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
    },
    /// The audit trail does not contain the previous revision.
    #[error("revision {revision} of {component} in {environment} is not recorded")]
    NotOnRecord {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The number of the revision.
        revision: i64,
    },
    /// The ReleasePin has no hold.
    #[error("{component} has no hold in {environment}")]
    NoHold {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
    },
    /// The named hold does not exist.
    #[error("{component} has no hold {id} in {environment}{}", instead(.known))]
    NoSuchHold {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// The id of the hold.
        id: String,
        /// The ids of the existing holds.
        known: Vec<String>,
    },
    /// The ReleasePin has several holds, and the user named none of them.
    #[error("{component} has {} holds in {environment}: name one{}", .holds.len(), lines(.holds))]
    SeveralHolds {
        /// The name of the component.
        component: String,
        /// The name of the environment.
        environment: String,
        /// Id, owner, reason and end of each hold.
        holds: Vec<String>,
    },
}

/// The first step towards a deployment of a component in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Deploy the component in this first environment of the pipeline.
    Deploy {
        /// The name of the environment.
        environment: String,
    },
    /// Promote the component from an environment where it is deployed.
    Promote {
        /// The source environment.
        from: String,
        /// The target environment.
        to: String,
    },
}

impl Step {
    /// Returns the environment in which the component is deployed after the step.
    pub fn target(&self) -> &str {
        match self {
            Self::Deploy { environment } => environment,
            Self::Promote { to, .. } => to,
        }
    }

    fn command(&self, component: &str) -> String {
        let component = quoted(component);
        match self {
            Self::Deploy { environment } => {
                format!("bowline deploy {component} -e {}", quoted(environment))
            }
            Self::Promote { from, to } => {
                let (from, to) = (quoted(from), quoted(to));
                format!("bowline promote {component} --from {from} --to {to}")
            }
        }
    }
}

/// A release that is marked bad.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedBad {
    /// The name of the release.
    pub release: String,
    /// The user and the reason of the mark; None if they are not known.
    pub why: Option<String>,
}

impl MarkedBad {
    pub(super) fn words(&self) -> String {
        match &self.why {
            Some(why) => format!("{} ({why})", self.release),
            None => self.release.clone(),
        }
    }
}

/// Returns the flag with the reason, for a command that needs a reason; otherwise an empty text.
fn reason(requires_reason: bool) -> &'static str {
    match requires_reason {
        true => " --reason TEXT",
        false => "",
    }
}

/// Lists the healthy releases that are marked bad or abandoned, if there are any.
fn skipped(bad: &[MarkedBad], abandoned: &[String]) -> String {
    let words: Vec<String> = bad.iter().map(MarkedBad::words).collect();
    let mut said = match words.is_empty() {
        true => String::new(),
        false => format!(
            " and is not marked bad; marked bad: {}",
            text::line(&words.join(", "))
        ),
    };
    for words in abandoned {
        said += &format!("; the rollback {}", text::line(words));
    }
    said
}

/// Puts each text on a line of its own.
fn lines(texts: &[String]) -> String {
    let lines = texts.iter().map(|one| format!("\n  {}", text::line(one)));
    lines.collect()
}

/// Lists the known names, if there are any.
pub(super) fn instead(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; known: {}", text::line(&names.join(", "))),
    }
}

impl Refusal {
    /// Returns whether a rule refuses the action. Otherwise an object is missing.
    pub fn is_rule(&self) -> bool {
        matches!(
            self,
            Self::Bad { .. }
                | Self::ReleaseLost { .. }
                | Self::Unpinned { .. }
                | Self::OfAnother { .. }
                | Self::NameTaken { .. }
                | Self::NoPath { .. }
                | Self::NoPipeline { .. }
                | Self::Pipeline(_)
                | Self::RetentionDiffers { .. }
                | Self::NotFirst { .. }
                | Self::Unready { .. }
                | Self::Held { .. }
                | Self::OwnedByGit { .. }
                | Self::NoReason { .. }
                | Self::NoNote { .. }
                | Self::NoLastGood { .. }
                | Self::NotObserved { .. }
                | Self::NoController { .. }
                | Self::NothingBefore { .. }
                | Self::CloneEnds { .. }
                | Self::NotRead { .. }
                | Self::NotOnRecord { .. }
                | Self::KindsAbsent { .. }
        )
    }

    /// Returns whether the last good release is unknown, so that the user has to name a release.
    pub fn is_about_last_good(&self) -> bool {
        matches!(
            self,
            Self::NoLastGood { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the action becomes possible once a controller has run.
    pub fn waits_for_controller(&self) -> bool {
        matches!(
            self,
            Self::Unready { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the read model is stale or still loading.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Loading { .. })
    }

    /// Returns the next steps of a user on the command line, one for each alternative. `aim` adds the flags of
    /// the target to a command, so that the command works from any directory and context.
    pub fn hints(&self, aim: &dyn Fn(&str) -> String) -> Vec<String> {
        let at = |component: &str, environment: &str| {
            format!("{} -e {}", quoted(component), quoted(environment))
        };
        let history = |component: &str, environment: &str| {
            aim(&format!("bowline history {}", at(component, environment)))
        };
        let skip_path = || "to do it without a path: add --skip-path --reason TEXT".to_owned();
        match self {
            Self::NoPin {
                component,
                environment,
                step,
                requires_reason,
            } => {
                let command = step.command(component);
                let command = aim(&format!("{command}{}", reason(*requires_reason)));
                vec![match step.target() == environment {
                    true => format!("to deploy it there: {command}"),
                    false => format!("to deploy it there, begin with: {command}"),
                }]
            }
            Self::NameTaken { .. } => vec![
                "rename the component or the environment: the name of a ReleasePin is COMPONENT-ENVIRONMENT"
                    .to_owned(),
            ],
            Self::ReleaseLost { release, .. } => vec![
                format!(
                    "create release {release} again: {}",
                    aim("bowline apply -f FILE")
                ),
                format!(
                    "or deploy an existing release: {}",
                    aim("bowline deploy COMPONENT -e ENVIRONMENT --release NAME")
                ),
            ],
            Self::Unpinned { rendered } => {
                let delete = format!(
                    "bowline delete releases.core.choreo.dev {}",
                    quoted(rendered)
                );
                vec![
                    format!(
                        "to keep the workloads, create ReleasePin {rendered} again: {}",
                        aim("bowline apply -f FILE")
                    ),
                    format!("to remove the workloads: {}", aim(&delete)),
                ]
            }
            Self::NoRelease { .. } => {
                vec![format!("list all releases: {}", aim("bowline release list"))]
            }
            Self::Bad { release } => {
                let good = format!("bowline mark good {} --reason TEXT", quoted(release));
                vec![
                    format!("choose another release: {}", aim("bowline release list")),
                    format!("if {release} is good: {}", aim(&good)),
                ]
            }
            Self::Deleting { .. } => {
                vec![format!(
                    "choose another release: {}",
                    aim("bowline release list")
                )]
            }
            Self::NoPath { from, leads, .. } => vec![
                match leads.is_empty() {
                    true => format!("no path starts at {from}"),
                    false => format!("the paths from {from} lead to {}", leads.join(", ")),
                },
                skip_path(),
            ],
            Self::NotFirst { first, .. } => vec![
                match first.is_empty() {
                    true => "the pipeline has no paths".to_owned(),
                    false => format!("deploy to {} and promote from there", first.join(" or ")),
                },
                skip_path(),
            ],
            Self::NoPipeline { .. } => vec![
                format!(
                    "create a DeploymentPipeline: {}",
                    aim("bowline apply -f FILE")
                ),
                skip_path(),
            ],
            Self::Unready { .. } => vec![
                "wait until it is ready, then repeat the command".to_owned(),
                UNREADY_ANYWAY.to_owned(),
            ],
            Self::Held {
                component,
                environment,
                ids,
                requires_reason,
                ..
            } => {
                let unpin = format!("bowline unpin {}", at(component, environment));
                let reason = reason(*requires_reason);
                match ids.is_empty() {
                    true => vec![aim(&format!("{unpin}{reason}"))],
                    false => {
                        let each = ids.iter();
                        let each = each
                            .map(|id| aim(&format!("{unpin} --hold {}{reason}", quoted(id))));
                        each.collect()
                    }
                }
            }
            Self::OwnedByGit {
                component,
                environment,
                release,
                ..
            } => vec![format!(
                "change it in git: bowline --repo DIR deploy {} --release {}",
                at(component, environment),
                quoted(release)
            )],
            Self::NoReason { .. } | Self::NoNote { .. } => vec!["add --reason TEXT".to_owned()],
            Self::KindsAbsent { .. } => {
                vec![format!("install the kinds: {}", aim("bowline install"))]
            }
            Self::Stale { .. } | Self::Loading { .. } => vec!["try again in a moment".to_owned()],
            Self::NoLastGood {
                component,
                environment,
                bad,
                ..
            } if let [newest, ..] = bad.as_slice() => {
                let release = &newest.release;
                let good = format!("bowline mark good {} --reason TEXT", quoted(release));
                vec![
                    format!("if {release} is good: {}", aim(&good)),
                    format!(
                        "otherwise choose a release with --to RELEASE, from: {}",
                        history(component, environment)
                    ),
                ]
            }
            Self::NoLastGood {
                component,
                environment,
                ..
            }
            | Self::NotObserved {
                component,
                environment,
                ..
            }
            | Self::NoController {
                component,
                environment,
                ..
            }
            | Self::NotOnRecord {
                component,
                environment,
                ..
            } => vec![format!(
                "choose a release with --to RELEASE, from: {}",
                history(component, environment)
            )],
            Self::NothingBefore { pin, .. } => {
                let delete = format!("bowline delete releasepins.openchoreo.dev {}", quoted(pin));
                vec![format!("to remove the deployment: {}", aim(&delete))]
            }
            Self::CloneEnds { .. } => {
                vec!["fetch the rest of the history: git fetch --unshallow".to_owned()]
            }
            Self::NotRead { check_out, .. } => vec![match check_out {
                Some(command) => format!("check it out: {command}"),
                None => format!(
                    "correct the file; list the problems: {}",
                    aim("bowline check")
                ),
            }],
            Self::BadRetention { .. } => vec![
                "correct it: kubectl edit deploymentpipelines.openchoreo.dev".to_owned(),
                "or set the minimum age for this command: --min-age AGE".to_owned(),
            ],
            Self::SeveralHolds { .. } => vec!["add --hold ID".to_owned()],
            Self::NoSuchHold { known, .. } if !known.is_empty() => {
                vec!["name an existing hold: --hold ID".to_owned()]
            }
            Self::Pipeline(fault) => vec![fault.hint()],
            Self::RetentionDiffers { .. } => vec![
                "delete all but one: kubectl delete deploymentpipelines.openchoreo.dev NAME"
                    .to_owned(),
                "or set both limits for this command: --keep N --min-age AGE".to_owned(),
            ],
            Self::NoComponent { .. }
            | Self::NoEnvironment { .. }
            | Self::Nothing { .. }
            | Self::OfAnother { .. }
            | Self::NoRevision { .. }
            | Self::NoHold { .. }
            | Self::NoSuchHold { .. } => Vec::new(),
        }
    }
}
