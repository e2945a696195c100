//! The commands that users give, and their plans: changes of subjects, marks on releases, gc.
//!
//! The terminal UI can show each command as a command line that does the same.

use super::named;
use crate::api::openchoreo::release::Verdict;
use crate::connect::Address;
use crate::engine::confirmation::Confirmation;
use crate::engine::plan::{Change, Plan};
use crate::engine::world::{Source, World};
use crate::gitops::propose::BeforePlan;
use crate::subjects::release_pin::actions::gc::{Candidate, Collection, Gc};
use crate::subjects::release_pin::actions::mark::Mark;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::marking::Marking;
use crate::subjects::release_pin::planner::{ActionPlan, ActionRequest};
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::release_pin::{READ_BY_CHANGES, READ_BY_GC, kind};
use crate::text::quoted;

/// A command of a user, before it is planned.
#[derive(Clone, Debug)]
pub enum Command {
    /// Change ReleasePins or other subjects.
    Change(ActionRequest),
    /// Mark a release bad or good.
    Mark(Mark),
    /// Delete unused releases and snapshots.
    Collect(Gc),
}

/// Returns the `--environment` flag that selects a subject. Returns no flag for a name such as `deploy/web`, because
/// the namespace of the target selects this subject.
fn place<'a>(name: &str, environment: &'a str) -> Vec<&'a str> {
    match name.contains('/') {
        true => Vec::new(),
        false => vec!["--environment", environment],
    }
}

#[derive(Clone, Debug)]
pub enum PlannedCommand {
    /// The plan of a change.
    Changes(Box<ActionPlan>),
    /// The plan of a mark.
    Mark(Marking),
    /// The plan of a gc.
    Collection(Collection),
}

impl Command {
    /// Returns the watched kinds that must be up to date to plan this command.
    pub fn reads(&self) -> &'static [Source] {
        match self {
            // A request on a subject such as `deploy/web` is planned from the server and not from the read model, so
            // it needs no watch.
            Self::Change(request) if named::is_named(request) => &[],
            Self::Change(_) | Self::Mark(_) => &READ_BY_CHANGES,
            Self::Collect(_) => &READ_BY_GC,
        }
    }

    /// Returns whether bowline fetches from the git remote of a repository before it plans the command. An urgent
    /// command does not wait for the remote.
    pub fn before_plan(&self) -> BeforePlan {
        match self {
            Self::Change(request) if request.is_urgent() => BeforePlan::NameRemote,
            Self::Change(_) | Self::Mark(_) | Self::Collect(_) => BeforePlan::Fetch,
        }
    }

    /// Returns the component and the environment of the command; None for a command on several ReleasePins or on
    /// releases.
    pub fn place(&self) -> Option<(&str, &str)> {
        match self {
            Self::Change(request) => request.place(),
            Self::Mark(_) | Self::Collect(_) => None,
        }
    }

    /// Returns whether the command names a subject together with its kind, such as `deploy/web`.
    pub fn is_named(&self) -> bool {
        matches!(self, Self::Change(request) if named::is_named(request))
    }

    pub fn verb(&self) -> &'static str {
        match self {
            Self::Change(ActionRequest::Deploy { .. }) => "deploy",
            Self::Change(ActionRequest::Promote(_)) => "promote",
            Self::Change(ActionRequest::Rollback { .. }) => "rollback",
            Self::Change(ActionRequest::Pin(_)) => "pin",
            Self::Change(ActionRequest::Unpin(_)) => "unpin",
            Self::Change(ActionRequest::Undo(_)) => "undo",
            Self::Change(ActionRequest::Set(requests)) => requests
                .first()
                .map_or("", |first| Self::Change(first.clone()).verb()),
            Self::Change(ActionRequest::Mark { verdict, .. })
            | Self::Mark(Mark { verdict, .. }) => match verdict {
                Verdict::Bad => "mark bad",
                Verdict::Good => "mark good",
            },
            Self::Collect(_) => "collect",
        }
    }

    /// Returns what the command acts on, as text for the user, such as `cart to staging`.
    pub fn subject(&self) -> String {
        match self {
            Self::Change(ActionRequest::Promote(promote)) => {
                let what = match promote.components.as_slice() {
                    [one] => one.clone(),
                    several => format!("{} components", several.len()),
                };
                format!("{what}  from  {}  to  {}", promote.from, promote.to)
            }
            Self::Change(ActionRequest::Deploy {
                component,
                environment,
                skip_path,
                ..
            }) => match skip_path {
                false => format!("{component}  into  {environment}"),
                true => format!("{component}  into  {environment}, past the promotion path"),
            },
            Self::Change(ActionRequest::Mark {
                component,
                environment,
                revision,
                ..
            }) => format!("revision {revision}  of  {component}  in  {environment}"),
            Self::Change(ActionRequest::Set(requests)) => {
                let places = requests.iter().filter_map(ActionRequest::place);
                let mut environments: Vec<&str> = places.map(|(_, name)| name).collect();
                environments.dedup();
                let environments = environments.join(", ");
                format!("{} components  in  {environments}", requests.len())
            }
            Self::Change(request) => {
                let (component, environment) = request.place().unwrap_or_default();
                format!("{component}  in  {environment}")
            }
            Self::Mark(mark) => mark.release.clone(),
            Self::Collect(_) => "releases and snapshots that are no longer needed".to_owned(),
        }
    }

    /// Returns what the command acts on, as a short text for a narrow screen.
    pub fn short_subject(&self) -> String {
        match self {
            Self::Change(ActionRequest::Promote(promote)) => match promote.components.as_slice() {
                [one] => format!("{one} to {}", promote.to),
                several => format!("{} components to {}", several.len(), promote.to),
            },
            other => {
                let subject = other.subject();
                subject.split_whitespace().collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// Returns command lines that do the same as this command, with the flags of the target. They are joined with
    /// `&&`, so that the user can paste them into a shell.
    pub fn aimed(&self, reason: Option<&str>, address: &Address) -> String {
        let lines = self.command_lines(reason);
        let lines: Vec<String> = lines.iter().map(|line| address.bowline(line)).collect();
        lines.join(" && ")
    }

    /// Returns command lines that do the same as this command, without the flags that select the target.
    pub fn command_lines(&self, reason: Option<&str>) -> Vec<String> {
        let requests = match self {
            Self::Change(ActionRequest::Set(requests)) => requests.iter(),
            one => return vec![one.command_line(reason)],
        };
        let lines = requests.map(|request| Self::Change(request.clone()).command_lines(reason));
        lines.flatten().collect()
    }

    fn command_line(&self, reason: Option<&str>) -> String {
        let mut words: Vec<String> = vec!["bowline".to_owned()];
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| quoted(word)));
        match self {
            Self::Change(ActionRequest::Deploy {
                component,
                environment,
                release,
                skip_path,
            }) => {
                add(&["deploy", component, "--environment", environment]);
                if let Some(release) = release {
                    add(&["--release", release]);
                }
                if *skip_path {
                    add(&["--skip-path"]);
                }
            }
            Self::Change(ActionRequest::Promote(promote)) => {
                add(&["promote"]);
                for component in &promote.components {
                    add(&[component]);
                }
                add(&["--from", &promote.from, "--to", &promote.to]);
                if promote.unready {
                    add(&["--unready"]);
                }
                if promote.skip_path {
                    add(&["--skip-path"]);
                }
            }
            Self::Change(ActionRequest::Rollback {
                component,
                environment,
                to,
                hold,
            }) => {
                add(&["rollback", component]);
                add(&place(component, environment));
                match to {
                    Target::LastGood => {}
                    Target::Release(release) => add(&["--to", release]),
                    Target::Revision(revision) => add(&["--to-revision", &revision.to_string()]),
                }
                if !hold {
                    add(&["--no-hold"]);
                }
            }
            Self::Change(ActionRequest::Pin(pin)) => {
                add(&["pin", &pin.component]);
                add(&place(&pin.component, &pin.environment));
                if let Some(until) = pin.until {
                    add(&["--until", &format!("{until:.0}")]);
                }
                if let Some(release) = &pin.release {
                    add(&["--release", release]);
                }
            }
            Self::Change(ActionRequest::Unpin(unpin)) => {
                add(&["unpin", &unpin.component]);
                add(&place(&unpin.component, &unpin.environment));
                if let Some(hold) = &unpin.hold {
                    add(&["--hold", hold]);
                }
            }
            Self::Change(ActionRequest::Undo(undo)) => {
                add(&["undo", &undo.component]);
                add(&place(&undo.component, &undo.environment));
            }
            Self::Change(ActionRequest::Mark {
                component,
                revision,
                verdict,
                ..
            }) => add(&[
                "mark",
                verdict.word(),
                component,
                "--revision",
                &revision.to_string(),
            ]),
            // A set has no command line of its own: `command_lines` writes one for each of its commands.
            Self::Change(ActionRequest::Set(_)) => {}
            Self::Mark(mark) => add(&["mark", mark.verdict.word(), &mark.release]),
            Self::Collect(gc) => {
                add(&["gc", "--confirm"]);
                for component in &gc.components {
                    add(&[component]);
                }
                if let Some(keep) = gc.keep {
                    add(&["--keep", &keep.to_string()]);
                }
                if let Some(least) = gc.min_age {
                    add(&["--min-age", &format!("{}s", least.as_secs())]);
                }
            }
        }
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
            // The form `--reason TEXT` does not accept a text that begins with a dash, so such a text needs `=`.
            match reason.starts_with('-') {
                true => add(&[&format!("--reason={reason}")]),
                false => add(&["--reason", reason]),
            }
        }
        words.join(" ")
    }
}

impl PlannedCommand {
    /// Returns the plan of a change; None for marks and gc.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Changes(action_plan) => Some(&action_plan.plan),
            Self::Mark(_) | Self::Collection(_) => None,
        }
    }

    /// Returns the confirmation that the plan needs. `protected` is the name of the target's context if the context
    /// is protected.
    pub fn confirmation(&self, world: &World, protected: Option<&str>) -> Confirmation {
        let mut confirmation = match self {
            Self::Changes(action_plan) => Confirmation::of_plan(&action_plan.plan, world),
            Self::Mark(marking) => marking.confirmation(),
            Self::Collection(collection) => collection.confirmation(),
        };
        if let Some(context) = protected {
            confirmation.on_protected(context);
        }
        confirmation
    }

    /// Returns a refusal if an environment requires a reason and the plan has none. Front ends still show such a
    /// plan, but cannot apply it.
    pub fn lacks_reason(&self) -> Option<Refusal> {
        match self {
            Self::Changes(action_plan) => {
                let change = action_plan.plan.lacks_reason()?;
                Some(match &change.mark {
                    Some(mark) if mark.needs_reason() => Refusal::NoNote {
                        release: change.marked(),
                        verdict: mark.verdict.word(),
                    },
                    _ => Refusal::NoReason {
                        environment: change.environment.clone(),
                    },
                })
            }
            Self::Mark(marking) => marking.noted().err(),
            Self::Collection(_) => None,
        }
    }

    /// Returns whether the plan writes nothing.
    pub fn is_idle(&self) -> bool {
        match self {
            Self::Changes(action_plan) => action_plan.plan.changing().next().is_none(),
            Self::Mark(marking) => marking.unchanged,
            Self::Collection(collection) => collection.is_idle(),
        }
    }

    pub fn because(&mut self, reason: Option<String>) {
        match self {
            Self::Changes(action_plan) => action_plan.plan.because(reason),
            Self::Mark(marking) => marking.reason = reason,
            Self::Collection(collection) => collection.reason = reason,
        }
    }

    /// Returns kubectl commands that do nearly the same as the plan. The command log shows them to explain the plan.
    pub fn kubectl(&self) -> Vec<String> {
        match self {
            Self::Changes(action_plan) => {
                let changing = action_plan.plan.changing();
                let patch = |change: &Change| {
                    if change.subject.kind.actions.is_some() {
                        return patch_of(change);
                    }
                    let spec = serde_json::json!({
                        "spec": {"releaseRef": {"name": kind::release_ref(change)}, "holds": change.holds}
                    });
                    format!(
                        "kubectl patch releasepins.openchoreo.dev {} --namespace {} --type merge --patch {}",
                        quoted(&change.key().name),
                        quoted(&change.key().namespace),
                        quoted(&spec.to_string())
                    )
                };
                changing.map(patch).collect()
            }
            Self::Mark(marking) => vec![format!(
                "kubectl annotate releases.openchoreo.dev {} --namespace {} --overwrite {}",
                quoted(&marking.release.name),
                quoted(&marking.release.namespace),
                quoted(&format!(
                    "bowline.dev/mark={}",
                    serde_json::json!({"verdict": marking.verdict, "note": marking.reason})
                ))
            )],
            Self::Collection(collection) => {
                let line = |candidate: &Candidate| {
                    let kind = match candidate.environment {
                        None => "releases.openchoreo.dev",
                        Some(_) => "componentenvsnapshots.openchoreo.dev",
                    };
                    format!(
                        "kubectl delete {kind} {} --namespace {}",
                        quoted(&candidate.key.name),
                        quoted(&candidate.key.namespace)
                    )
                };
                collection.going().map(line).collect()
            }
        }
    }
}

/// Returns a kubectl command that is similar to a change of a subject that users name with its kind.
fn patch_of(change: &Change) -> String {
    if let Some(mark) = &change.mark {
        return format!(
            "kubectl annotate {}.{} {} --namespace {} --overwrite {}",
            mark.resource.plural,
            mark.resource.group,
            quoted(&mark.key.name),
            quoted(&mark.key.namespace),
            quoted(&format!(
                "bowline.dev/mark={}",
                serde_json::json!({"verdict": mark.verdict})
            ))
        );
    }
    let mut patch = serde_json::json!({});
    for mut field in change.all_fields() {
        field.value = Some(field.value.unwrap_or_default());
        field.write(&mut patch);
    }
    let resource = (change.subject.kind.resource)();
    format!(
        "kubectl patch {}.{} {} --namespace {} --type merge --patch {}",
        resource.plural,
        resource.group,
        quoted(&change.key().name),
        quoted(&change.key().namespace),
        quoted(&patch.to_string())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::release_pin::actions::pin::PinHold;
    use crate::subjects::release_pin::actions::promote::Promote;
    use crate::subjects::release_pin::actions::undo::Undo;

    #[test]
    fn a_command_is_also_a_command_line() {
        let rollback = |to, hold| {
            Command::Change(ActionRequest::Rollback {
                component: "cart".into(),
                environment: "production".into(),
                to,
                hold,
            })
        };
        let promote = |components: &[&str], skip_path| {
            Command::Change(ActionRequest::Promote(Promote {
                components: components.iter().map(|name| (*name).to_owned()).collect(),
                from: "dev".into(),
                to: "staging".into(),
                unready: skip_path,
                skip_path,
            }))
        };
        for (request, reason, expected) in [
            (
                rollback(Target::LastGood, true),
                Some("errors up since 13:41"),
                "bowline rollback cart --environment production --reason 'errors up since 13:41'",
            ),
            (
                rollback(Target::Revision(4), false),
                None,
                "bowline rollback cart --environment production --to-revision 4 --no-hold",
            ),
            (
                rollback(Target::Release("cart-v1".into()), true),
                Some("it's bad"),
                r"bowline rollback cart --environment production --to cart-v1 --reason 'it'\''s bad'",
            ),
            (
                promote(&["a", "b"], true),
                None,
                "bowline promote a b --from dev --to staging --unready --skip-path",
            ),
            (
                Command::Change(ActionRequest::Pin(PinHold {
                    component: "cart".into(),
                    environment: "dev".into(),
                    until: Some("2026-01-06T12:00:00Z".parse().unwrap()),
                    release: None,
                })),
                Some(" "),
                "bowline pin cart --environment dev --until 2026-01-06T12:00:00Z",
            ),
            (
                Command::Change(ActionRequest::Undo(Undo {
                    component: "cart".into(),
                    environment: "dev".into(),
                })),
                None,
                "bowline undo cart --environment dev",
            ),
            (
                Command::Mark(Mark {
                    release: "cart-v1".into(),
                    verdict: Verdict::Bad,
                }),
                Some("leaks"),
                "bowline mark bad cart-v1 --reason leaks",
            ),
            (
                Command::Mark(Mark {
                    release: "cart-v1".into(),
                    verdict: Verdict::Bad,
                }),
                Some("-5 % of requests"),
                "bowline mark bad cart-v1 '--reason=-5 % of requests'",
            ),
        ] {
            assert_eq!(request.command_lines(reason), [expected]);
        }
    }

    #[test]
    fn every_command_of_a_set_names_the_target() {
        let undo = |component: &str| {
            ActionRequest::Undo(Undo {
                component: component.into(),
                environment: "dev".into(),
            })
        };
        let set = Command::Change(ActionRequest::Set(vec![undo("cart"), undo("ledger")]));
        let target = "--context prod-eu --kubeconfig /home/ana/.kube/config --namespace shop";
        assert_eq!(
            set.aimed(
                Some("wrong one"),
                &Address::of_context("prod-eu", "/home/ana/.kube/config", "shop")
            ),
            format!(
                "bowline undo cart --environment dev --reason 'wrong one' {target} && \
                 bowline undo ledger --environment dev --reason 'wrong one' {target}"
            )
        );
    }
}
