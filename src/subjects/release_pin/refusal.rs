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
    /// The component of the action does not exist.
    #[error("component {component} does not exist{}", instead(.known))]
    NoComponent {
        component: String,
        /// The names of some existing components.
        known: Vec<String>,
    },
    /// The environment of the action does not exist.
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
        /// What the user can do to deploy the component in this environment.
        step: Step,
        /// Whether the environment that the step changes requires a reason for every change.
        requires_reason: bool,
    },
    /// The ReleasePin is in a file that git has not checked out, or that bowline cannot read.
    #[error("the release of {component} in {environment} is not known: {why}")]
    NotRead {
        component: String,
        environment: String,
        /// The reason why bowline cannot read the file.
        why: String,
        /// The git command that checks the file out. None if the file is on disk but cannot be read.
        check_out: Option<String>,
    },
    /// Another pair of component and environment already uses the ReleasePin name. For example, `a-b` in `c` and `a`
    /// in `b-c` give the same name.
    #[error("the name {name} is taken: it is the ReleasePin of {component} in {environment}")]
    NameTaken {
        /// The name of the ReleasePin, which both pairs use.
        name: String,
        /// The component that already uses the name.
        component: String,
        /// The environment that already uses the name.
        environment: String,
    },
    /// No component is deployed in the source environment, so the user has nothing to promote.
    #[error("nothing is deployed in {environment}")]
    Nothing {
        /// The source environment of the promotion.
        environment: String,
    },
    /// The release of the action does not exist.
    #[error("release {release} does not exist{}", instead(.known))]
    NoRelease {
        release: String,
        /// The names of the newest releases of the component.
        known: Vec<String>,
    },
    /// The release belongs to another component than the action.
    #[error("release {release} belongs to component {owner}, not to {component}")]
    OfAnother {
        release: String,
        /// The component that the user named in the action.
        component: String,
        /// The component that the release belongs to.
        owner: String,
    },
    /// A user marked the release bad, so no action may deploy it.
    #[error("release {release} is marked bad")]
    Bad { release: String },
    /// Somebody is deleting the release, so no action may deploy it.
    #[error("release {release} is being deleted")]
    Deleting { release: String },
    /// The pipeline has no path from the source to the target environment.
    #[error("the pipeline has no path from {from} to {to}")]
    NoPath {
        from: String,
        to: String,
        /// The environments to which a promotion from the source environment is possible.
        leads: Vec<String>,
    },
    /// The user wants to deploy to an environment that is reached only by promotions.
    #[error("{environment} is not a first environment of the pipeline")]
    NotFirst {
        environment: String,
        /// The first environments of the pipeline, to which a deploy is possible.
        first: Vec<String>,
    },
    /// The namespace has no pipeline.
    #[error("namespace {namespace} has no DeploymentPipeline, so there are no promotion paths")]
    NoPipeline { namespace: String },
    /// The pipeline has a cycle, or the namespace has several pipelines.
    #[error(transparent)]
    Pipeline(#[from] PipelineFault),
    /// Several pipelines of the namespace have different retentions, so the limits of gc are not clear.
    #[error("the DeploymentPipelines of namespace {namespace} ({}) have different retentions", .pipelines.join(", "))]
    RetentionDiffers {
        namespace: String,
        pipelines: Vec<String>,
    },
    /// Gc is refused because a ReleasePin names a release that does not exist. More releases or ReleasePins may be
    /// lost.
    #[error(
        "gc deletes nothing, because ReleasePin {pin} names release {release}, which does not exist"
    )]
    ReleaseLost {
        /// The name of the ReleasePin whose release does not exist.
        pin: String,
        release: String,
    },
    /// Gc is refused because a RenderedRelease has no ReleasePin. So nobody knows which releases its workloads need.
    #[error(
        "gc deletes nothing, because RenderedRelease {rendered} runs workloads and its ReleasePin does not exist"
    )]
    Unpinned {
        /// The name of the RenderedRelease without a ReleasePin.
        rendered: String,
    },
    /// The promotion is refused because the release is not ready in the source environment.
    #[error("{component} is not ready in {environment}: {why}")]
    Unready {
        component: String,
        environment: String,
        /// The health of the release in the source environment, as text for the user.
        why: String,
    },
    /// Active holds on the ReleasePin forbid the change.
    #[error("{component} in {environment} is held at {release} ({holds})")]
    Held {
        component: String,
        environment: String,
        /// The effective release of the ReleasePin.
        release: String,
        /// The owner, reason and end of each active hold, as text for the user.
        holds: String,
        /// The ids of the active holds. Empty if the ReleasePin has only one hold, because then the hint needs no id.
        ids: Vec<String>,
        /// Whether the environment requires a reason for every change.
        requires_reason: bool,
    },
    /// A GitOps tool owns the ReleasePin, so the tool would revert the change.
    #[error("{} owns {component} in {environment} and would revert a change made here", .tool.name())]
    OwnedByGit {
        component: String,
        environment: String,
        /// The release that the action would make effective.
        release: String,
        /// The GitOps tool that owns the ReleasePin.
        tool: GitOps,
    },
    /// The environment requires a reason for every change, and the user gave none.
    #[error("{environment} requires a reason for every change")]
    NoReason { environment: String },
    /// A mark that sets or replaces the verdict bad needs a reason, and the user gave none.
    #[error("marking {release} {verdict} needs a reason")]
    NoNote {
        release: String,
        /// The verdict of the mark: `bad` or `good`.
        verdict: &'static str,
    },
    /// The watch of a kind is disconnected, so the read model may be out of date.
    #[error("the data of {what} is stale: the watch was disconnected at {since} ({why})")]
    Stale {
        /// The plural word for the watched kind, such as `releases`.
        what: &'static str,
        /// The time at which the watch was disconnected.
        since: Timestamp,
        /// The error that disconnected the watch.
        why: String,
    },
    /// The cluster does not have kinds that the action needs.
    #[error("the cluster does not have the kinds {kinds}: bowline is not installed there")]
    KindsAbsent {
        /// The names of the missing kinds, separated by commas.
        kinds: String,
    },
    /// The first list of a watch is not complete yet, so the read model is not complete.
    #[error("the {what} are still loading")]
    Loading {
        /// The plural word for the watched kind, such as `releases`.
        what: &'static str,
    },
    /// The user named no release for a rollback, and there is no last good release.
    #[error(
        "{component} has no release to roll back to in {environment}: {}", why_none(.bad, .abandoned)
    )]
    NoLastGood {
        component: String,
        environment: String,
        /// The releases that were healthy but are marked bad, so that the rollback skips them. The newest comes
        /// first.
        bad: Vec<MarkedBad>,
        /// The releases that were healthy but are abandoned, each as the end of a sentence: `skips cart-v3: staging
        /// went back from it to cart-v2`.
        abandoned: Vec<String>,
    },
    /// The user named no release for a rollback, and the controller has not observed the newest change yet. So the
    /// last good release is unknown.
    #[error(
        "the controller has not observed the latest change of {component} in {environment}, so the last good release is not known"
    )]
    NotObserved {
        component: String,
        environment: String,
    },
    /// The user named no release for a rollback, and no controller runs. So the health of releases may be out of
    /// date.
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
        /// The number of the requested revision.
        revision: i64,
        /// The numbers of the revisions that the ReleasePin has.
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
    /// The git clone is shallow, so bowline does not know the state before the last action.
    #[error(
        "the history of this clone ends here, so the state of {component} in {environment} before the last action is not known"
    )]
    CloneEnds {
        component: String,
        environment: String,
    },
    /// The audit trail does not contain the revision that undo has to restore.
    #[error("revision {revision} of {component} in {environment} is not recorded")]
    NotOnRecord {
        component: String,
        environment: String,
        /// The number of the revision that undo has to restore.
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
        /// The id of the hold that the user wants to remove.
        id: String,
        /// The ids of the holds that the ReleasePin has.
        known: Vec<String>,
    },
    /// The ReleasePin has several holds, and the user did not say which one to remove.
    #[error("{component} has {} holds in {environment}: name one{}", .holds.len(), lines(.holds))]
    SeveralHolds {
        component: String,
        environment: String,
        /// One text for the user per hold of the ReleasePin: its id, owner, reason and end.
        holds: Vec<String>,
    },
}

/// What a user can do next to deploy a component in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Deploy the component in a first environment of the pipeline.
    Deploy { environment: String },
    /// Promote the component from an environment where it is deployed.
    Promote { from: String, to: String },
}

impl Step {
    /// Returns the environment that the step deploys the component to.
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

/// A release that is marked bad, so that a rollback skips it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedBad {
    pub release: String,
    /// The user and the reason of the bad mark; None if they are unknown.
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

/// Returns the `--reason` flag for a suggested command. Empty if the environment requires no reason.
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

/// Returns the texts as one text, with a line break before each.
fn lines(texts: &[String]) -> String {
    let lines = texts.iter().map(|one| format!("\n  {}", text::line(one)));
    lines.collect()
}

/// Returns the end of a message that lists the known names; empty if `names` is empty.
pub(super) fn instead(names: &[String]) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!("; known: {}", text::line(&names.join(", "))),
    }
}

impl Refusal {
    /// Returns whether a rule refuses the action. False if the action fails because an object is missing.
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

    /// Returns whether a rollback is refused because the last good release is unknown. Then the user can name a
    /// release.
    pub fn is_about_last_good(&self) -> bool {
        matches!(
            self,
            Self::NoLastGood { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the action may be accepted after a controller has run.
    pub fn waits_for_controller(&self) -> bool {
        matches!(
            self,
            Self::Unready { .. } | Self::NotObserved { .. } | Self::NoController { .. }
        )
    }

    /// Returns whether the action is refused because the read model is incomplete or may be out of date.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Loading { .. })
    }

    /// Returns the suggested commands for a user of the command line. `aim` adds the flags of the target to a
    /// command.
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
