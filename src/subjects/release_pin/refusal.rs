//! The reasons why rules refuse an action, each with the next step for the user.

use jiff::Timestamp;

use crate::api::openchoreo::environment::PipelineFault;
use crate::engine::ownership::GitOps;
use crate::text::{self, quoted};

/// The hint for [`Refusal::Unready`].
pub const UNREADY_ANYWAY: &str = "to promote it although it is not ready: add --unready";

/// The reason why a rule refuses an action.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The component does not exist.
    #[error("component {component} does not exist{}", instead(.known))]
    NoComponent {
        component: String,
        /// The names of existing components.
        known: Vec<String>,
    },
    /// The environment does not exist.
    #[error("environment {environment} does not exist{}", instead(.known))]
    NoEnvironment {
        environment: String,
        /// The names of the existing environments.
        known: Vec<String>,
    },
    /// The component has no ReleasePin in the environment.
    #[error("{component} is not deployed in {environment}")]
    NoPin {
        component: String,
        environment: String,
        /// The next step towards a deployment in this environment.
        step: Step,
        /// Whether the environment of the next step requires a reason for every change.
        requires_reason: bool,
    },
    /// The ReleasePin is in a file that git has not checked out, or that bowline cannot parse.
    #[error("the release of {component} in {environment} is not known: {why}")]
    NotRead {
        component: String,
        environment: String,
        /// The problem with the file.
        why: String,
        /// The git command that checks the file out; None if the file is on disk and cannot be read.
        check_out: Option<String>,
    },
    /// The ReleasePin name is taken by another pair of component and environment: `a-b` in `c` and `a` in
    /// `b-c` give the same name.
    #[error("the name {name} is taken: it is the ReleasePin of {component} in {environment}")]
    NameTaken {
        /// The name of the ReleasePin.
        name: String,
        /// The other component.
        component: String,
        /// The other environment.
        environment: String,
    },
    /// No component is deployed in the source environment, so there is nothing to promote.
    #[error("nothing is deployed in {environment}")]
    Nothing {
        /// The source environment.
        environment: String,
    },
    /// The release does not exist.
    #[error("release {release} does not exist{}", instead(.known))]
    NoRelease {
        release: String,
        /// The newest releases of the component.
        known: Vec<String>,
    },
    /// The release belongs to another component.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        release: String,
        /// The component of the action.
        component: String,
        /// The component of the release.
        owner: String,
    },
    /// Somebody marked the release bad.
    #[error("release {release} is marked bad")]
    Bad { release: String },
    /// The release is being deleted.
    #[error("release {release} is being deleted")]
    Deleting { release: String },
    /// The pipeline has no path from the source to the target environment.
    #[error("the pipeline has no path from {from} to {to}")]
    NoPath {
        from: String,
        to: String,
        /// The environments that the paths from the source environment lead to.
        leads: Vec<String>,
    },
    /// A deploy is refused because a promotion path leads to the environment.
    #[error("{environment} is not a first environment of the pipeline")]
    NotFirst {
        environment: String,
        /// The first environments of the pipeline, where a deploy is possible.
        first: Vec<String>,
    },
    /// The namespace has no pipeline.
    #[error("namespace {namespace} has no DeploymentPipeline, so there are no promotion paths")]
    NoPipeline { namespace: String },
    /// The pipeline has a cycle, or the namespace has several pipelines.
    #[error(transparent)]
    Pipeline(#[from] PipelineFault),
    /// Several pipelines of the namespace have different retentions.
    #[error("the DeploymentPipelines of namespace {namespace} ({}) have different retentions", .pipelines.join(", "))]
    RetentionDiffers {
        namespace: String,
        pipelines: Vec<String>,
    },
    /// A ReleasePin names a release that does not exist. More releases or ReleasePins may be lost, so gc is
    /// refused.
    #[error(
        "gc deletes nothing, because ReleasePin {pin} names release {release}, which does not exist"
    )]
    ReleaseLost {
        /// The name of the ReleasePin.
        pin: String,
        release: String,
    },
    /// A RenderedRelease has no ReleasePin, so nobody knows which releases its workloads need, and gc is
    /// refused.
    #[error(
        "gc deletes nothing, because RenderedRelease {rendered} runs workloads and its ReleasePin does not exist"
    )]
    Unpinned {
        /// The name of the RenderedRelease.
        rendered: String,
    },
    /// A promotion is refused because the release is not ready in the source environment.
    #[error("{component} is not ready in {environment}: {why}")]
    Unready {
        component: String,
        environment: String,
        /// The health of the release, as text for the user.
        why: String,
    },
    /// Active holds on the ReleasePin block the change.
    #[error("{component} in {environment} is held at {release} ({holds})")]
    Held {
        component: String,
        environment: String,
        /// The effective release of the ReleasePin.
        release: String,
        /// The owner, reason and end of each active hold, as text for the user.
        holds: String,
        /// The ids of the active holds; empty if the ReleasePin has only one hold, expired ones included.
        ids: Vec<String>,
        /// Whether the environment requires a reason for every change.
        requires_reason: bool,
    },
    /// A GitOps tool owns the ReleasePin and would revert the change.
    #[error("{} owns {component} in {environment} and would revert a change made here", .tool.name())]
    OwnedByGit {
        component: String,
        environment: String,
        /// The release that the action would make effective.
        release: String,
        /// The GitOps tool.
        tool: GitOps,
    },
    /// The environment requires a reason, and the user gave none.
    #[error("{environment} requires a reason for every change")]
    NoReason { environment: String },
    /// The mark needs a reason, and the user gave none: a bad mark, or a good mark that replaces a bad one.
    #[error("marking {release} {verdict} needs a reason")]
    NoNote {
        release: String,
        /// The verdict of the mark: `bad` or `good`.
        verdict: &'static str,
    },
    /// The watch of a kind is disconnected, so the read model may be out of date.
    #[error("the data of {what} is stale: the watch was disconnected at {since} ({why})")]
    Stale {
        /// The plural word for the kind.
        what: &'static str,
        /// The time since which the watch is disconnected.
        since: Timestamp,
        /// The error of the watch.
        why: String,
    },
    /// The cluster does not have kinds that the action needs.
    #[error("the cluster does not have the kinds {kinds}: bowline is not installed there")]
    KindsAbsent {
        /// The names of the kinds, separated by commas.
        kinds: String,
    },
    /// The first list of a watch has not ended yet, so the read model is not complete.
    #[error("the {what} are still loading")]
    Loading {
        /// The plural word for the kind.
        what: &'static str,
    },
    /// A rollback without a target is refused because there is no last good release.
    #[error(
        "{component} has no release to roll back to in {environment}: {}", why_none(.bad, .abandoned)
    )]
    NoLastGood {
        component: String,
        environment: String,
        /// The releases that were healthy but are marked bad, newest first.
        bad: Vec<MarkedBad>,
        /// The releases that were healthy but abandoned, each as the end of a sentence: `skips cart-v3:
        /// staging went back from it to cart-v2`.
        abandoned: Vec<String>,
    },
    /// A rollback without a target is refused because the controller has not observed the newest change.
    #[error(
        "the controller has not observed the latest change of {component} in {environment}, so the last good release is not known"
    )]
    NotObserved {
        component: String,
        environment: String,
    },
    /// A rollback without a target is refused because no controller runs, so the health of releases may be
    /// out of date.
    #[error(
        "no controller runs ({why}), so the last good release of {component} in {environment} is not known"
    )]
    NoController {
        component: String,
        environment: String,
        /// The reason why bowline knows that no controller runs.
        why: String,
    },
    /// The ReleasePin has no revision with this number.
    #[error("{component} has no revision {revision} in {environment}{}", instead(.known))]
    NoRevision {
        component: String,
        environment: String,
        /// The requested revision.
        revision: i64,
        /// The numbers of the known revisions.
        known: Vec<String>,
    },
    /// The retention of the pipeline has an invalid minimum age.
    #[error("spec.retention.minAge of the DeploymentPipeline is not valid: {why}")]
    BadRetention {
        /// The reason why the minimum age is invalid.
        why: String,
    },
    /// The last action created the ReleasePin, so undo has no state to restore.
    #[error(
        "the last action was the first deployment of {component} in {environment}: there is no earlier state"
    )]
    NothingBefore {
        pin: String,
        component: String,
        environment: String,
    },
    /// The git clone is shallow, so the state before the last action is unknown.
    #[error(
        "the history of this clone ends here, so the state of {component} in {environment} before the last action is not known"
    )]
    CloneEnds {
        component: String,
        environment: String,
    },
    /// The audit trail does not contain the revision that undo would restore.
    #[error("revision {revision} of {component} in {environment} is not recorded")]
    NotOnRecord {
        component: String,
        environment: String,
        /// The missing revision.
        revision: i64,
    },
    /// The ReleasePin has no hold to remove.
    #[error("{component} has no hold in {environment}")]
    NoHold {
        component: String,
        environment: String,
    },
    /// The ReleasePin has no hold with this id.
    #[error("{component} has no hold {id} in {environment}{}", instead(.known))]
    NoSuchHold {
        component: String,
        environment: String,
        /// The requested id.
        id: String,
        /// The ids of the existing holds.
        known: Vec<String>,
    },
    /// The ReleasePin has several holds, and the user did not say which one to remove.
    #[error("{component} has {} holds in {environment}: name one{}", .holds.len(), lines(.holds))]
    SeveralHolds {
        component: String,
        environment: String,
        /// The id, owner, reason and end of each hold, as text for the user.
        holds: Vec<String>,
    },
}

/// The next step towards a deployment of a component in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Deploy the component in a first environment of the pipeline.
    Deploy { environment: String },
    /// Promote the component from an environment where it is deployed.
    Promote { from: String, to: String },
}

impl Step {
    /// Returns the environment where the component is deployed after the step.
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
    pub release: String,
    /// The user and the reason of the mark; None if they are unknown.
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

/// Returns the `--reason` flag for a suggested command if the command needs it; otherwise an empty text.
fn reason(requires_reason: bool) -> &'static str {
    match requires_reason {
        true => " --reason TEXT",
        false => "",
    }
}

/// Returns the reason why there is no last good release.
fn why_none(bad: &[MarkedBad], abandoned: &[String]) -> String {
    let words: Vec<String> = bad.iter().map(MarkedBad::words).collect();
    let mut said = match words.is_empty() {
        true => "no earlier release was healthy when it was replaced".to_owned(),
        false => format!(
            "the earlier releases that were healthy are marked bad: {}",
            text::line(&words.join(", "))
        ),
    };
    for words in abandoned {
        said += &format!("; the rollback {}", text::line(words));
    }
    said
}

/// Returns a text with each item on its own line.
fn lines(texts: &[String]) -> String {
    let lines = texts.iter().map(|one| format!("\n  {}", text::line(one)));
    lines.collect()
}

/// Returns a text that lists the known names; empty if there are none.
pub(super) fn instead(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; known: {}", text::line(&names.join(", "))),
    }
}

impl Refusal {
    /// Returns whether a rule refuses the action. For the other refusals, an object is missing.
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

    /// Returns whether the last good release is unknown, so that the user must name a target.
    pub fn is_about_last_good(&self) -> bool {
        matches!(
            self,
            Self::NoLastGood { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the action may become possible after a controller has run.
    pub fn waits_for_controller(&self) -> bool {
        matches!(
            self,
            Self::Unready { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the read model is incomplete or may be out of date.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Loading { .. })
    }

    /// Returns the next step for a user of the command line. `aim` adds the flags of the target to a command.
    pub fn hints(&self, aim: &dyn Fn(&str) -> String) -> Vec<String> {
        let at = |component: &str, environment: &str| {
            format!("{} -e {}", quoted(component), quoted(environment))
        };
        let history = |component: &str, environment: &str| {
            aim(&format!("bowline history {}", at(component, environment)))
        };
        let skip_path = || "or skip the promotion path: add --skip-path --reason TEXT".to_owned();
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
