//! The jump prompt: goes to any object, screen or context by a part of its name.

mod search;

use jiff::Timestamp;

pub use search::{Goal, Jump, Kind};

use crate::action::Action;
use crate::effect::{Destination, Effect};
use crate::engine::world::{Key, World};
use crate::filter::Filter;
use crate::model::{Model, ScreenRequest};
use crate::prompt::{Offer, Over, Prompt, PromptKind};
use crate::screens::{Screen, is_bad};
use crate::update::{fulfil, run};

/// The number of names that the search tries before bowline handles the next key press.
const PIECE: usize = 5_000;
/// The maximum number of results that the jump prompt lists.
const OFFERED: usize = 30;

/// The screens that a jump can open, as (name, action).
const SCREENS: &[(&str, Action)] = &[
    ("matrix", Action::GoMatrix),
    ("releases", Action::GoReleases),
    ("pins", Action::GoPins),
    ("snapshots", Action::GoSnapshots),
    ("gc", Action::GoCollect),
    ("audit", Action::GoAudit),
    ("tasks", Action::GoTasks),
    ("command log", Action::GoLog),
    ("contexts", Action::GoContexts),
    ("help", Action::Help),
];

pub fn open(model: &mut Model, world: &World) {
    let screens = SCREENS.iter().map(|(name, _)| *name);
    let contexts = model.target_info.contexts.iter().map(|known| &known.name);
    let jump = Jump::new(world, Some(&model.target_info.namespace), screens, contexts);
    let mut prompt = Prompt::open(PromptKind::Jump, "");
    prompt.jump = Some(Box::new(jump));
    model.over = Some(Over::Prompt(Box::new(prompt)));
}

/// Sets the query of the jump prompt and starts the search.
pub fn ask(model: &mut Model, world: &World, text: &str) {
    if let Some(Over::Prompt(prompt)) = &mut model.over
        && let Some(jump) = &mut prompt.jump
    {
        jump.ask(text);
        prompt.chosen = Some(0);
        look(prompt, world);
    }
}

/// Continues the search of the jump prompt, if it is not finished.
pub fn go_on(model: &mut Model, world: &World) {
    if let Some(Over::Prompt(prompt)) = &mut model.over
        && prompt.jump.as_ref().is_some_and(|jump| jump.is_busy())
    {
        look(prompt, world);
    }
}

fn look(prompt: &mut Prompt, world: &World) {
    let Some(jump) = &mut prompt.jump else {
        return;
    };
    if jump.query().is_empty() {
        prompt.offers.clear();
        return;
    }
    jump.work(world, PIECE);
    let best: Vec<Goal> = jump.best().take(OFFERED).cloned().collect();
    let about = |goal: &Goal| {
        let Goal { kind, key } = goal;
        let marked = *kind == Kind::Release && is_bad(world, &key.namespace, &key.name);
        match marked {
            true => format!("{}, marked bad", word(*kind)),
            false => word(*kind).to_owned(),
        }
    };
    let offers = best.into_iter().map(|goal| Offer {
        text: goal.key.name.to_string(),
        about: about(&goal),
        fits: jump.fitting(&goal.key.name),
        goal: Some(goal),
    });
    prompt.offers = offers.collect();
    let last = prompt.offers.len().saturating_sub(1);
    prompt.chosen = prompt.chosen.map(|chosen| chosen.min(last));
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Screen => "screen",
        Kind::Component => "component",
        Kind::Environment => "environment",
        Kind::Pin => "pin",
        Kind::Release => "release",
        Kind::Context => "context",
        Kind::Snapshot => "snapshot",
    }
}

/// Goes to the destination that the user chose in the jump prompt.
pub fn go(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    offer: &Offer,
    effects: &mut Vec<Effect>,
) {
    let Some(Goal { kind, key }) = &offer.goal else {
        return;
    };
    let list = match kind {
        Kind::Screen => {
            let found = SCREENS.iter().find(|(name, _)| **name == *key.name);
            if let Some((_, action)) = found {
                run(model, world, now, *action, effects);
            }
            return;
        }
        Kind::Context => {
            let destination = Destination {
                context: Some(key.name.to_string()),
                namespace: None,
            };
            return fulfil(
                model,
                world,
                now,
                ScreenRequest::Connect(destination),
                effects,
            );
        }
        Kind::Component => return to_cell(model, key, None),
        Kind::Environment => {
            let selected = model.matrix().roster().and_then(|roster| roster.selected());
            if let Some(component) = selected.cloned() {
                to_cell(model, &component, Some(&key.name));
            }
            return;
        }
        Kind::Pin => Action::GoPins,
        Kind::Release => Action::GoReleases,
        Kind::Snapshot => Action::GoSnapshots,
    };
    run(model, world, now, list, effects);
    if let Some(Screen::List(state)) = model.stack.last_mut()
        && !state.select(key)
    {
        // The user asked for this object by name, so the filter must not hide it.
        state.roster_mut().set_filter(Filter::default());
        state.select(key);
    }
}

/// Selects a cell of the matrix. If the filter hides the cell, removes the filter.
fn to_cell(model: &mut Model, component: &Key, environment: Option<&str>) {
    model.stack.truncate(1);
    if let Some(Screen::Matrix(matrix)) = model.stack.first_mut()
        && !matrix.select(component, environment)
    {
        if let Some(roster) = matrix.roster_mut() {
            roster.set_filter(Filter::default());
        }
        matrix.select(component, environment);
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::Effect;
    use crate::snapshot_test::SnapshotTest;

    fn jumped(to: &str) -> SnapshotTest {
        let still = SnapshotTest::fleet()
            .keys("ctrl-p")
            .keys(&format!("\"{to}\""));
        still.keys("enter")
    }

    #[test]
    fn anything_is_gone_to_by_a_part_of_its_name() {
        for (typed, shown) in [
            ("ledg", "ledger in production"),
            ("stag", "checkout-service in staging"),
            ("releas", "matrix > releases"),
            ("cart prod", "matrix > ReleasePins"),
            ("searchv770", "matrix > releases"),
            ("comlog", "matrix > command log"),
        ] {
            jumped(typed).shows(shown);
        }
        let still = jumped("cart prod").keys("Y");
        assert!(
            matches!(still.effects.last(), Some(Effect::Copy(line)) if line.contains("cart-production"))
        );
        let away = jumped("prod-us");
        assert!(
            matches!(away.effects.last(), Some(Effect::Connect(_, to)) if to.context.as_deref() == Some("prod-us"))
        );
    }

    #[test]
    fn what_fits_is_offered_while_it_is_typed() {
        let still = SnapshotTest::fleet().keys("ctrl-p").keys("\"cart\"");
        let still = still.shows("component").shows("cart-v0.9.0");
        let still = still.keys("\"zzz\"").hides("cart-v0.9.0");
        still.keys("enter").shows("COMPONENT");
    }

    #[test]
    fn a_filter_hides_nothing_that_is_asked_for_by_name() {
        let still = SnapshotTest::fleet()
            .keys("/")
            .keys("\"cart\"")
            .keys("enter")
            .hides("ledger ");
        let still = still.keys("ctrl-p").keys("\"ledger\"").keys("enter");
        still.shows("ledger in production");
    }
}
