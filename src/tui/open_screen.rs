//! Opens the screens that actions such as `go-releases` lead to.

use std::path::PathBuf;

use jiff::Timestamp;

use super::action::Action;
use super::effect::{CellKey, Effect};
use super::model::{Level, Model, ScreenRequest, Subject};
use super::roster::Kind;
use super::screens::{
    Screen, audit, collect, component, contexts, diff, help, list, log, revisions, tasks,
};
use super::update::front;
use crate::engine::audit::Span;
use crate::engine::world::{Key, World};

/// Returns the request that opens the screen of an action, or that shows a notice if the screen cannot be opened. If
/// the screen is already open, brings it to the front and returns None.
pub fn screen(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    action: Action,
    effects: &mut Vec<Effect>,
) -> Option<ScreenRequest> {
    if let Some(at) = model
        .stack
        .iter()
        .position(|screen| is_what(screen, action))
    {
        // Go back to the open screen instead of opening a second one.
        model.stack.truncate(at + 1);
        return None;
    }
    let list = |model: &Model, kind| {
        let subject: Subject = model.front().subject(world);
        let state = list::State::open(kind, &subject, world, &model.target_info, now);
        Screen::List(Box::new(state))
    };
    let opened = match action {
        Action::GoReleases => list(model, Kind::Releases),
        Action::GoPins => list(model, Kind::Pins),
        Action::GoSnapshots => list(model, Kind::Snapshots),
        Action::GoCollect => {
            let state = collect::State::open(world, &model.target_info, now);
            Screen::Collect(Box::new(state))
        }
        Action::GoAudit => {
            model.tickets += 1;
            let state = audit::State::open(model.tickets, now, effects);
            Screen::Audit(Box::new(state))
        }
        Action::GoTasks => Screen::Tasks(Box::new(tasks::State::open(&model.tasks))),
        Action::GoLog => Screen::Log(Box::new(log::State::open(&model.log))),
        Action::GoContexts => {
            model.tickets += 1;
            let state = contexts::State::open(&model.target_info, model.tickets, effects);
            Screen::Contexts(Box::new(state))
        }
        Action::Help => {
            let front = model.front();
            let taken = match front {
                Screen::Plan(plan) => Some(plan.keys()),
                _ => None,
            };
            let (title, modes) = (front.title(), front.modes());
            let lacks = |action| front.lacks(action);
            let keymap = &model.look.keymap;
            let state = help::State::open(title, keymap, modes, &lacks, taken.as_deref());
            Screen::Help(Box::new(state))
        }
        Action::GoComponent | Action::Open if can_open(model, action) => {
            let (component, environment) = match place(model, world) {
                Ok(place) => (place.component, Some(place.environment)),
                Err(why) => match model.front().subject(world).component() {
                    Some(component) => (component.clone(), None),
                    None => return Some(ScreenRequest::Say(Level::Warning, why)),
                },
            };
            let environment = environment.clone();
            front(model, world, now, effects, |_, turn| {
                // A workload has only one environment, so bowline opens its revisions instead of a
                // component screen.
                let key = Key::new(&turn.target_info.namespace, &component);
                if let (Some(_), Some(environment)) = (world.workload(&key), &environment) {
                    let place = CellKey::new(&component, environment);
                    return Screen::Revisions(Box::new(revisions::State::open(place, turn)));
                }
                let opened = component::State::open(component, environment, turn);
                Screen::Component(Box::new(opened))
            })?
        }
        Action::GoRevisions => match place(model, world) {
            Err(why) => return Some(ScreenRequest::Say(Level::Warning, why)),
            Ok(place) => front(model, world, now, effects, |_, turn| {
                Screen::Revisions(Box::new(revisions::State::open(place, turn)))
            })?,
        },
        Action::Diff => {
            let namespace = &model.target_info.namespace;
            let own = model.front().comparison();
            let compared = match own {
                Some(own) => Ok(own.what),
                None => place(model, world)
                    .and_then(|place| diff::of_place(world, namespace, &place, now)),
            };
            match compared {
                Err(why) => return Some(ScreenRequest::Say(Level::Warning, why)),
                Ok(compared) => front(model, world, now, effects, |_, turn| {
                    Screen::Diff(Box::new(diff::State::open(compared, turn)))
                })?,
            }
        }
        action => {
            return Some(ScreenRequest::Say(
                Level::Info,
                match action {
                    Action::Copy | Action::CopyCommand => "Nothing to copy here".to_owned(),
                    action => format!("{} has no effect on this screen", action.word()),
                },
            ));
        }
    };
    Some(ScreenRequest::Open(Box::new(opened)))
}

/// Returns whether this is the screen that the action opens.
fn is_what(screen: &Screen, action: Action) -> bool {
    match screen {
        Screen::Matrix(_) => action == Action::GoMatrix,
        Screen::List(state) => match state.kind() {
            Kind::Releases => action == Action::GoReleases,
            Kind::Pins => action == Action::GoPins,
            Kind::Snapshots => action == Action::GoSnapshots,
            Kind::Components => false,
        },
        Screen::Collect(_) => action == Action::GoCollect,
        Screen::Audit(_) => action == Action::GoAudit,
        Screen::Tasks(_) => action == Action::GoTasks,
        Screen::Log(_) => action == Action::GoLog,
        Screen::Contexts(_) => action == Action::GoContexts,
        _ => false,
    }
}

/// Writes the timeline of a period to a file. If the audit screen is not open, opens it first; then the file is
/// written after the audit trail has arrived.
pub fn export(
    model: &mut Model,
    now: Timestamp,
    file: PathBuf,
    span: Span,
    effects: &mut Vec<Effect>,
) -> Vec<ScreenRequest> {
    model.tickets += 1;
    let ticket = model.tickets;
    let Model {
        stack, target_info, ..
    } = model;
    let open = stack.iter_mut().rev().find_map(|screen| match screen {
        Screen::Audit(state) => Some(state),
        _ => None,
    });
    if let Some(state) = open {
        effects.extend(state.export(file, span, target_info, ticket));
        return Vec::new();
    }
    let mut state = audit::State::open(ticket, now, effects);
    effects.extend(state.export(file, span, target_info, ticket));
    vec![ScreenRequest::Open(Box::new(Screen::Audit(Box::new(
        state,
    ))))]
}

/// Returns whether the action opens a component: `GoComponent` does so on every screen, other actions only on the
/// matrix.
fn can_open(model: &Model, action: Action) -> bool {
    action == Action::GoComponent || matches!(model.front(), Screen::Matrix(_))
}

/// Returns the selected cell. On the matrix, this is the cell under the cursor, even if rows are marked. The error
/// tells the user to select a cell.
fn place(model: &Model, world: &World) -> Result<CellKey, String> {
    let place = match model.front() {
        Screen::Matrix(matrix) => matrix.place(),
        screen => screen.subject(world).place(),
    };
    place.ok_or_else(|| "select a component in an environment first".to_owned())
}
