//! What a key that opens a plan means for what is selected.

use jiff::Timestamp;

use super::action::Action;
use super::model::{Ground, Subject};
use super::order::Order;
use super::prompt::Choice;
use crate::api::release::Verdict;
use crate::engine::actions::gc::Gc;
use crate::engine::actions::mark::Mark;
use crate::engine::actions::pin::{PinHold, Unpin};
use crate::engine::actions::promote::Promote;
use crate::engine::actions::rollback::Target;
use crate::engine::actions::undo::Undo;
use crate::engine::desk;
use crate::engine::world::{Key, World};

/// What is said where nothing is selected in one environment: neither marks nor a release need be.
const NOT_ONE: &str =
    "what is selected is not in one environment: mark rows of one alone, or esc clears the marks";

/// What is wanted, or several things that could be.
#[derive(Debug)]
pub enum Wanted {
    /// This.
    Order(Order),
    /// One of these.
    Choice(Choice),
}

impl From<desk::Order> for Wanted {
    fn from(order: desk::Order) -> Self {
        Self::Order(Order::Move(order))
    }
}

/// Says what an action wants, or why it wants nothing.
pub fn of(
    action: Action,
    subject: &Subject,
    world: &World,
    ground: &Ground,
    now: Timestamp,
) -> Result<Wanted, String> {
    match action {
        Action::Promote => promote(subject, world, ground),
        Action::Deploy => deploy(subject, world, ground),
        Action::Collect => Ok(Wanted::Order(Order::Collect(Gc::default()))),
        Action::MarkBad => mark(subject, world, ground, now, Verdict::Bad),
        Action::MarkGood => mark(subject, world, ground, now, Verdict::Good),
        _ => {
            let place = subject
                .place()
                .ok_or_else(|| match subject.components.len() {
                    0 => "no component is selected".to_owned(),
                    1 => NOT_ONE.to_owned(),
                    _ => "this is done to one component at a time; esc clears the marks".to_owned(),
                })?;
            let (component, environment) =
                (place.component.to_string(), place.environment.to_string());
            let order = match action {
                Action::Rollback => desk::Order::Rollback {
                    component,
                    environment,
                    to: Target::LastGood,
                    hold: true,
                },
                Action::Hold => desk::Order::Pin(PinHold {
                    component,
                    environment,
                    until: None,
                    release: None,
                }),
                Action::Unhold => return unhold(&component, &environment, world, ground),
                Action::Undo => desk::Order::Undo(Undo {
                    component,
                    environment,
                }),
                other => return Err(format!("{} opens no plan", other.word())),
            };
            Ok(order.into())
        }
    }
}

/// Returns the only one of several, or a choice between them.
fn one_of(question: &str, mut options: Vec<(String, Order)>) -> Option<Wanted> {
    match options.len() {
        0 => None,
        1 => options.pop().map(|(_, order)| Wanted::Order(order)),
        _ => Some(Wanted::Choice(Choice {
            question: question.to_owned(),
            options,
            chosen: 0,
        })),
    }
}

/// From the selected environment to the next; from the last, what comes to it.
fn promote(subject: &Subject, world: &World, ground: &Ground) -> Result<Wanted, String> {
    if subject.components.is_empty() {
        return Err("no component is selected".to_owned());
    }
    let environment = subject.environment.as_deref().ok_or(NOT_ONE)?;
    let pipeline = world
        .pipeline(&ground.namespace)
        .ok_or("there is no DeploymentPipeline, so nothing says what comes after what")?;
    let order = |from: &str, to: &str| {
        Order::Move(desk::Order::Promote(Promote {
            components: subject.components.iter().map(ToString::to_string).collect(),
            from: from.to_owned(),
            to: to.to_owned(),
            unready: false,
            skip_path: false,
        }))
    };
    let onward = pipeline.targets_of(environment);
    let onward: Vec<_> = onward
        .iter()
        .map(|to| ((*to).to_owned(), order(environment, to)))
        .collect();
    let hither = pipeline.sources_of(environment);
    let hither: Vec<_> = hither
        .iter()
        .map(|from| (format!("from {from}"), order(from, environment)))
        .collect();
    let options = if onward.is_empty() { hither } else { onward };
    one_of("promote to which environment?", options)
        .ok_or_else(|| format!("no path leads from {environment} to another environment"))
}

/// A release of the current definitions, to where the pipeline begins.
fn deploy(subject: &Subject, world: &World, ground: &Ground) -> Result<Wanted, String> {
    let component = subject
        .component()
        .ok_or("one component is deployed at a time")?;
    let firsts: Vec<String> = match world.pipeline(&ground.namespace) {
        Some(pipeline) => pipeline
            .first_environments()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        None => world.environment_names(&ground.namespace),
    };
    let options = firsts.into_iter().map(|environment| {
        let order = Order::Move(desk::Order::Deploy {
            component: component.to_string(),
            environment: environment.clone(),
            release: None,
            skip_path: false,
        });
        (environment, order)
    });
    one_of("deploy to which environment?", options.collect())
        .ok_or_else(|| "there is no environment to deploy to".to_owned())
}

/// The hold that there is, or one of several.
fn unhold(
    component: &str,
    environment: &str,
    world: &World,
    ground: &Ground,
) -> Result<Wanted, String> {
    let key = Key::new(&ground.namespace, component);
    let pin = world
        .pin_of(&key, environment)
        .ok_or_else(|| format!("{component} is not deployed in {environment}"))?;
    let options = pin.holds.iter().map(|hold| {
        let why = hold.reason.as_deref().unwrap_or("no reason was given");
        let order = Order::Move(desk::Order::Unpin(Unpin {
            component: component.to_owned(),
            environment: environment.to_owned(),
            hold: Some(hold.id.clone()),
        }));
        (format!("{}: {why}", hold.owner), order)
    });
    one_of("lift which hold?", options.collect())
        .ok_or_else(|| format!("nobody holds {component} in {environment}"))
}

/// The release that is selected, or that counts where the cursor is.
fn mark(
    subject: &Subject,
    world: &World,
    ground: &Ground,
    now: Timestamp,
    verdict: Verdict,
) -> Result<Wanted, String> {
    let counts = subject.place().and_then(|place| {
        let component = Key::new(&ground.namespace, &place.component);
        let pin = world.pin_of(&component, &place.environment)?;
        Some(pin.effective_release(now).to_owned())
    });
    let release = counts.or_else(|| subject.release.clone());
    let release = release.ok_or("no release is selected")?;
    Ok(Wanted::Order(Order::Mark(Mark { release, verdict })))
}

/// Says why we may not, where that is known beforehand.
pub fn denied(ground: &Ground, order: &Order) -> Option<String> {
    let Order::Move(order) = order else {
        return None;
    };
    let environment = match order {
        desk::Order::Promote(promote) => promote.to.as_str(),
        order => order.place()?.1,
    };
    match ground.rights.get(environment)? {
        Ok(()) => None,
        Err(why) => Some(format!("you may not move pins in {environment}: {why}")),
    }
}
