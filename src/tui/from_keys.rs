//! Converts the key press that opens a plan, together with the selection, to the command to plan.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::action::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::release::Verdict;
use crate::effect::CellKey;
use crate::engine::subject::Capability;
use crate::engine::world::{Key, World};
use crate::model::{Subject, TargetInfo};
use crate::prompt::Choice;
use crate::subjects::release_pin::actions::gc::Gc;
use crate::subjects::release_pin::actions::mark::Mark;
use crate::subjects::release_pin::actions::pin::{PinHold, Unpin};
use crate::subjects::release_pin::actions::promote::Promote;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::actions::undo::Undo;
use crate::subjects::release_pin::planner;
use crate::subjects::release_pin::rules::{Refusal, Step};
use crate::subjects::service::Command;
use crate::subjects::{self, workload};

/// Returns the message for a selection that has no environment, or more than one.
fn nowhere(subject: &Subject) -> String {
    match &subject.release {
        Some(release) => format!("{release} runs in no environment; select a cell of the matrix"),
        None => {
            "the marked rows are in several environments or in none; mark rows of one environment"
                .to_owned()
        }
    }
}

/// The result for an action that opens a plan: one command, or a choice between several.
#[derive(Debug)]
pub enum Wanted {
    Command(Command),
    /// Several commands are possible, so the user has to choose one.
    Choice(Choice),
}

impl From<planner::ActionRequest> for Wanted {
    fn from(order: planner::ActionRequest) -> Self {
        Self::Command(Command::Change(order))
    }
}

/// Returns the command or the choice for an action; the error says why the selection does not allow
/// the action.
pub fn of(
    action: Action,
    subject: &Subject,
    world: &World,
    target_info: &TargetInfo,
    now: Timestamp,
) -> Result<Wanted, String> {
    let mut components = subject.components.iter();
    if let Some(why) = components.find_map(|name| not_for_workloads(action, name)) {
        return Err(why);
    }
    match action {
        Action::Promote => promote(subject, world, target_info),
        Action::Deploy => deploy(subject, None, world, target_info),
        Action::Hold => holds(&deployed(subject, world, target_info), now),
        Action::Undo => undo(&deployed(subject, world, target_info)),
        Action::Unhold if subject.components.len() > 1 => unhold_all(subject, world, target_info),
        Action::Collect => Ok(Wanted::Command(Command::Collect(Gc::default()))),
        Action::MarkBad => mark(subject, world, target_info, now, Verdict::Bad),
        Action::MarkGood => mark(subject, world, target_info, now, Verdict::Good),
        _ => {
            let place = subject
                .place()
                .ok_or_else(|| match subject.components.len() {
                    0 => "select a component first".to_owned(),
                    1 => nowhere(subject),
                    _ => "this action takes one component; unmark the others first".to_owned(),
                })?;
            let (component, environment) =
                (place.component.to_string(), place.environment.to_string());
            let order = match action {
                Action::Rollback => planner::ActionRequest::Rollback {
                    component,
                    environment,
                    to: Target::LastGood,
                    hold: true,
                },
                Action::Unhold => return unhold(&component, &environment, world, target_info),
                other => return Err(format!("{} is not an action with a plan", other.word())),
            };
            Ok(order.into())
        }
    }
}

/// Returns the command if there is only one option, or a choice if there are several; None if there
/// is no option.
fn one_of(question: &str, mut options: Vec<(String, Command)>) -> Option<Wanted> {
    match options.len() {
        0 => None,
        1 => options.pop().map(|(_, command)| Wanted::Command(command)),
        _ => Some(Wanted::Choice(Choice {
            question: question.to_owned(),
            options,
            chosen: 0,
        })),
    }
}

/// Returns the selected or marked components, and their environment; the error says what to select.
fn places(subject: &Subject) -> Result<(&[Arc<str>], &str), String> {
    if subject.components.is_empty() {
        return Err("select a component first".to_owned());
    }
    let environment = subject.environment.as_deref();
    let environment = environment.ok_or_else(|| nowhere(subject))?;
    Ok((&subject.components, environment))
}

/// Returns the subject without the components that are not deployed in its environment. If no
/// component is deployed there, returns the subject unchanged.
pub fn deployed(subject: &Subject, world: &World, target_info: &TargetInfo) -> Subject {
    let mut deployed = subject.clone();
    let Some(environment) = subject.environment.as_deref() else {
        return deployed;
    };
    let is_deployed = |component: &Arc<str>| {
        let key = Key::new(&target_info.namespace, component);
        holds_of(world, &key, environment).is_some()
    };
    if subject.components.iter().any(is_deployed) {
        deployed.components.retain(is_deployed);
    }
    deployed
}

/// Returns the holds of a component or workload in an environment; None if it is not deployed
/// there.
fn holds_of<'w>(world: &'w World, key: &Key, environment: &str) -> Option<&'w [Hold]> {
    if let Some(row) = world.workload(key) {
        let column = workload::matrix::column(world, &row.key.namespace);
        return (column == environment).then_some(&row.holds);
    }
    world.pin_of(key, environment).map(|pin| &*pin.holds)
}

/// Builds one command that runs the same action on each component.
fn for_each(components: &[Arc<str>], order: impl Fn(String) -> planner::ActionRequest) -> Command {
    let mut orders: Vec<planner::ActionRequest> = components
        .iter()
        .map(|component| order(component.to_string()))
        .collect();
    Command::Change(match (orders.len(), orders.pop()) {
        (1, Some(only)) => only,
        (_, last) => planner::ActionRequest::Set(orders.into_iter().chain(last).collect()),
    })
}

/// The durations of a hold that the user can choose: the label, and the number of hours (None for a
/// hold without an end).
const LASTING: [(&str, Option<i64>); 6] = [
    ("until unpinned", None),
    ("1 hour", Some(1)),
    ("4 hours", Some(4)),
    ("8 hours", Some(8)),
    ("24 hours", Some(24)),
    ("7 days", Some(7 * 24)),
];

/// Builds the choice between the durations of a hold.
fn holds(subject: &Subject, now: Timestamp) -> Result<Wanted, String> {
    let (components, environment) = places(subject)?;
    let question = match components {
        [one] => format!("pin {one} in {environment} for how long?"),
        several => format!(
            "pin {} components in {environment} for how long?",
            several.len()
        ),
    };
    let options = LASTING.iter().map(|(words, hours)| {
        let until = hours.and_then(|hours| now.checked_add(SignedDuration::from_hours(hours)).ok());
        Ok(((*words).to_owned(), hold(subject, until)?))
    });
    Ok(Wanted::Choice(Choice {
        question,
        options: options.collect::<Result<_, String>>()?,
        chosen: 0,
    }))
}

/// Builds the command that pins the selected or marked components. `until` is the end of the holds;
/// None for holds without an end.
pub fn hold(subject: &Subject, until: Option<Timestamp>) -> Result<Command, String> {
    let (components, environment) = places(subject)?;
    Ok(for_each(components, |component| {
        planner::ActionRequest::Pin(PinHold {
            component,
            environment: environment.to_owned(),
            until,
            release: None,
        })
    }))
}

/// Builds the command that undoes the last action on each selected or marked component.
fn undo(subject: &Subject) -> Result<Wanted, String> {
    let (components, environment) = places(subject)?;
    Ok(Wanted::Command(for_each(components, |component| {
        planner::ActionRequest::Undo(Undo {
            component,
            environment: environment.to_owned(),
        })
    })))
}

/// Builds the command that undoes the last action on each of these cells, given as (component,
/// environment); None if the list is empty.
pub fn undo_of(places: &[(String, String)]) -> Option<Command> {
    let undo = |(component, environment): &(String, String)| {
        planner::ActionRequest::Undo(Undo {
            component: component.clone(),
            environment: environment.clone(),
        })
    };
    let mut orders: Vec<planner::ActionRequest> = places.iter().map(undo).collect();
    match orders.len() {
        0 | 1 => orders.pop().map(Command::Change),
        _ => Some(Command::Change(planner::ActionRequest::Set(orders))),
    }
}

/// Builds the command that unpins each marked component. Components without a hold are left out; a
/// component with several holds is an error.
fn unhold_all(
    subject: &Subject,
    world: &World,
    target_info: &TargetInfo,
) -> Result<Wanted, String> {
    let (components, environment) = places(subject)?;
    let mut held: Vec<Arc<str>> = Vec::new();
    for component in components {
        let key = Key::new(&target_info.namespace, component);
        let holds = holds_of(world, &key, environment).map_or(0, <[Hold]>::len);
        match holds {
            0 => {}
            1 => held.push(component.clone()),
            several => {
                return Err(format!(
                    "{component} has {several} holds in {environment}: remove them one at a time, without marks"
                ));
            }
        }
    }
    if held.is_empty() {
        return Err(format!("no marked component has a hold in {environment}"));
    }
    Ok(Wanted::Command(for_each(&held, |component| {
        planner::ActionRequest::Unpin(Unpin {
            component,
            environment: environment.to_owned(),
            hold: None,
        })
    })))
}

/// Builds the command that promotes from the selected environment to the next one in the pipeline.
/// Returns a choice if there are several next environments.
fn promote(subject: &Subject, world: &World, target_info: &TargetInfo) -> Result<Wanted, String> {
    let (_, environment) = places(subject)?;
    if let Some(fault) = world.pipeline_fault(&target_info.namespace) {
        return Err(fault.to_string());
    }
    let pipeline = world
        .pipeline(&target_info.namespace)
        .ok_or("there is no DeploymentPipeline, so there are no promotion paths")?;
    let onward = pipeline.targets_of(environment);
    let options = onward
        .iter()
        .map(|to| Ok(((*to).to_owned(), promote_to(subject, to)?)));
    let options: Vec<(String, Command)> = options.collect::<Result<_, String>>()?;
    one_of("promote to which environment?", options).ok_or_else(|| {
        let sources = pipeline.sources_of(environment);
        let from = match sources.as_slice() {
            [] => String::new(),
            sources => format!(
                "; to promote to {environment}, put the cursor on {}",
                sources.join(" or ")
            ),
        };
        format!("no promotion path starts at {environment}{from}")
    })
}

/// Builds the command that promotes from the selected environment to the given one.
pub fn promote_to(subject: &Subject, to: &str) -> Result<Command, String> {
    let (components, from) = places(subject)?;
    Ok(Command::Change(planner::ActionRequest::Promote(Promote {
        components: components.iter().map(ToString::to_string).collect(),
        from: from.to_owned(),
        to: to.to_owned(),
        unready: false,
        skip_path: false,
    })))
}

/// Builds the command that deploys a release into the selected environment. Without `release`, it
/// deploys a new release from the current definitions. Without a selected environment, it deploys
/// into a first environment of the pipeline.
pub fn deploy(
    subject: &Subject,
    release: Option<&str>,
    world: &World,
    target_info: &TargetInfo,
) -> Result<Wanted, String> {
    let component = subject
        .component()
        .ok_or("deploy one component at a time")?;
    let pipeline = world.pipeline(&target_info.namespace);
    let firsts: Option<Vec<String>> = pipeline.map(|pipeline| {
        let firsts = pipeline.first_environments().into_iter();
        firsts.map(str::to_owned).collect()
    });
    let environments = match (&subject.environment, &firsts) {
        (Some(environment), _) => vec![environment.to_string()],
        (None, Some(firsts)) => firsts.clone(),
        (None, None) => world.environment_names(&target_info.namespace),
    };
    let options = environments.into_iter().map(|environment| {
        let mut firsts = firsts.iter().flatten();
        let order = Command::Change(planner::ActionRequest::Deploy {
            component: component.to_string(),
            release: release.map(str::to_owned),
            skip_path: pipeline.is_some() && !firsts.any(|first| *first == environment),
            environment: environment.clone(),
        });
        (environment, order)
    });
    one_of("deploy to which environment?", options.collect())
        .ok_or_else(|| "there is no environment to deploy to".to_owned())
}

/// Builds the command that unpins the component, or a choice if it has several holds.
fn unhold(
    component: &str,
    environment: &str,
    world: &World,
    target_info: &TargetInfo,
) -> Result<Wanted, String> {
    let key = Key::new(&target_info.namespace, component);
    let holds = holds_of(world, &key, environment)
        .ok_or_else(|| format!("{component} is not deployed in {environment}"))?;
    let options = holds.iter().map(|hold| {
        let why = hold.reason.as_deref().unwrap_or("no reason was given");
        let order = Command::Change(planner::ActionRequest::Unpin(Unpin {
            component: component.to_owned(),
            environment: environment.to_owned(),
            hold: Some(hold.id.clone()),
        }));
        (format!("{}: {why}", hold.owner), order)
    });
    one_of("remove which hold?", options.collect())
        .ok_or_else(|| format!("{component} has no hold in {environment}"))
}

/// Builds the command that removes the cause of a refusal, for example unpins a held component.
/// Returns a choice if several commands are possible.
pub fn remedy(
    action: Action,
    refusals: &[Refusal],
    world: &World,
    target_info: &TargetInfo,
) -> Result<Wanted, String> {
    let mut options: Vec<(String, Command)> = Vec::new();
    for refusal in refusals {
        let wanted = match (action, refusal) {
            (
                Action::Unhold,
                Refusal::Held {
                    component,
                    environment,
                    ..
                },
            ) => {
                let name = format!("{component} in {environment}");
                (name, unhold(component, environment, world, target_info)?)
            }
            (
                Action::Deploy,
                Refusal::NoPin {
                    component,
                    step: Step::Deploy { environment },
                    ..
                },
            ) => {
                let subject = Subject {
                    components: vec![component.as_str().into()],
                    environment: Some(environment.as_str().into()),
                    release: None,
                };
                let name = format!("{component} in {environment}");
                (name, deploy(&subject, None, world, target_info)?)
            }
            (
                Action::Promote,
                Refusal::NoPin {
                    component,
                    step: Step::Promote { from, to },
                    ..
                },
            ) => {
                let subject = Subject {
                    components: vec![component.as_str().into()],
                    environment: Some(from.as_str().into()),
                    release: None,
                };
                let name = format!("{component} in {to}");
                (name, Wanted::Command(promote_to(&subject, to)?))
            }
            (Action::MarkGood, Refusal::Bad { release }) => {
                let verdict = Verdict::Good;
                let mark = Mark {
                    release: release.clone(),
                    verdict,
                };
                (release.clone(), Wanted::Command(Command::Mark(mark)))
            }
            _ => continue,
        };
        match wanted {
            (name, Wanted::Command(command)) => options.push((name, command)),
            (name, Wanted::Choice(choice)) => {
                let own = choice.options.into_iter();
                options.extend(own.map(|(words, command)| (format!("{name}: {words}"), command)));
            }
        }
    }
    one_of("which one?", options)
        .ok_or_else(|| format!("{} has no effect on this screen", action.word()))
}

/// Returns the reason why an action cannot run on a workload; None if it can, or if `name` (the
/// name of a row) is a component.
pub(super) fn not_for_workloads(action: Action, name: &str) -> Option<String> {
    let (subject, _) = subjects::matrix::named("", name)?;
    let needed = match action {
        Action::Promote => Capability::Promote,
        Action::Deploy => Capability::Deploy,
        Action::Rollback => Capability::Rollback,
        Action::Hold | Action::Unhold => Capability::Pin,
        Action::Undo => Capability::Undo,
        Action::MarkBad | Action::MarkGood => Capability::Mark,
        _ => return None,
    };
    (!subject.kind.capabilities.contains(&needed)).then(|| {
        format!(
            "{name} has no releases: {} needs a component",
            action.word()
        )
    })
}

/// Builds the command that marks a revision of a workload, such as `deploy/web`.
pub fn mark_revision(place: &CellKey, revision: i64, verdict: Verdict) -> Command {
    Command::Change(planner::ActionRequest::Mark {
        component: place.component.to_string(),
        environment: place.environment.to_string(),
        revision,
        verdict,
    })
}

/// Builds the command that marks the selected release, or else the effective release of the
/// selected cell. For a workload, marks the current revision.
fn mark(
    subject: &Subject,
    world: &World,
    target_info: &TargetInfo,
    now: Timestamp,
    verdict: Verdict,
) -> Result<Wanted, String> {
    if let Some(place) = subject.place()
        && let Some(row) = world.workload(&Key::new(&target_info.namespace, &place.component))
    {
        let current = workload::matrix::current(world, row);
        let current = current.ok_or("the current revision is not known yet")?;
        let command = mark_revision(&place, current.number, verdict);
        return Ok(Wanted::Command(command));
    }
    let effective = || {
        let place = subject.place()?;
        let component = Key::new(&target_info.namespace, &place.component);
        let pin = world.pin_of(&component, &place.environment)?;
        Some(pin.effective_release(now).to_owned())
    };
    let release = subject.release.clone().or_else(effective);
    let release = release.ok_or("select a release first")?;
    Ok(Wanted::Command(Command::Mark(Mark { release, verdict })))
}

/// Returns the reason why the user may not change the environment of a command; None if the user
/// may, or if bowline has not checked it yet.
pub fn denied(target_info: &TargetInfo, command: &Command) -> Option<String> {
    match command {
        Command::Change(order) => denied_move(target_info, order),
        Command::Mark(_) | Command::Collect(_) => None,
    }
}

fn denied_move(target_info: &TargetInfo, order: &planner::ActionRequest) -> Option<String> {
    let environment = match order {
        planner::ActionRequest::Promote(promote) => promote.to.as_str(),
        planner::ActionRequest::Set(orders) => {
            let mut orders = orders.iter();
            return orders.find_map(|order| denied_move(target_info, order));
        }
        order => order.place()?.1,
    };
    match target_info.rights.get(environment)? {
        Ok(()) => None,
        Err(why) => Some(format!(
            "you may not change ReleasePins in {environment}: {why}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot_test::{SnapshotTest, fleet, target_info};

    #[test]
    fn without_an_environment_an_action_says_why() {
        let subject = |components: &[&str], release: Option<&str>| Subject {
            components: components.iter().map(|name| (*name).into()).collect(),
            environment: None,
            release: release.map(str::to_owned),
        };
        let (world, target_info) = (fleet(), target_info());
        for (subject, expected) in [
            (
                subject(&["cart"], Some("cart-v0.8.6")),
                "cart-v0.8.6 runs in no environment; select a cell of the matrix",
            ),
            (
                subject(&["cart", "ledger"], None),
                "the marked rows are in several environments or in none; mark rows of one environment",
            ),
            (subject(&[], None), "select a component first"),
        ] {
            for action in [Action::Promote, Action::Hold, Action::Undo] {
                let found = of(
                    action,
                    &subject,
                    &world,
                    &target_info,
                    Timestamp::UNIX_EPOCH,
                );
                assert_eq!(found.unwrap_err(), expected, "{action:?}");
            }
        }
    }

    #[test]
    fn a_set_leaves_out_what_is_not_deployed_there() {
        let still = SnapshotTest::fleet().keys("h h * H");
        let still = still.shows("pin 4 components in development");
        still
            .keys("enter")
            .shows("pin  4 components  in  development");
        let still = SnapshotTest::fleet().keys("h * Z");
        still.shows("undo  5 components  in  staging");
    }
}
