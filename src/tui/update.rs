//! Applies events to the model, and returns the effects to perform. The functions of this module only compute: they
//! neither wait nor perform effects.

use crossterm::event::KeyEvent;
use jiff::Timestamp;

use super::action::{Action, Mode};
use super::effect::{Answer, Effect, Refused, Ticket, WorkTree};
use super::from_keys::{self, Wanted};
use super::keymap::{Key, Step};
use super::model::{Connecting, Event, Level, Model, Notice, ScreenRequest, TargetInfo, Turn};
use super::prompt::{Over, Prompt, PromptKind};
use super::screens::plan::Outcome;
use super::screens::{Handled, Screen, plan};
use super::{commands, tasks, tour};
use crate::engine::world::World;
use crate::subjects::service::{self, Command};

/// Applies an event to the model; returns the effects to perform.
pub fn update(model: &mut Model, world: &World, now: Timestamp, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Key(key) => pressed(model, world, now, key, &mut effects),
        Event::Paste(text) => pasted(model, world, now, &text, &mut effects),
        Event::Resize(width, height) => {
            model.size = (width, height);
            let screens = model.stack.iter_mut().chain(&mut model.forth);
            screens.for_each(|screen| screen.resized((width, height)));
        }
        Event::Focus(focused) => model.focused = focused,
        Event::Mouse(mouse) => super::mouse::used(model, world, now, mouse, &mut effects),
        Event::World(touched) => {
            tasks::follow(&mut model.tasks, world);
            // Hidden screens and screens in the forward history follow the read model too, so that each screen is
            // current when the user returns to it.
            each(model, world, now, &mut effects, |screen, turn| {
                screen.touched(&touched, turn);
            });
        }
        Event::Tick => {
            super::jump::go_on(model, world);
            each(model, world, now, &mut effects, Screen::tick);
        }
        Event::Answer(ticket, answer) => answered(model, world, now, ticket, answer, &mut effects),
        Event::Known(user) => {
            model.target_info.user = user;
            // The filter `mine` depends on the user name, so the screens must apply it again.
            each(model, world, now, &mut effects, |screen, turn| {
                screen.touched(&[], turn);
            });
        }
        Event::Connected(ticket, made) => connected(model, world, now, ticket, made, &mut effects),
    }
    tour::follow(model);
    effects
}

/// Handles the result of connecting to another target: switches to the target, or lets it wait while the user is
/// busy. `world` is the read model of the old target.
fn connected(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    ticket: Ticket,
    made: Result<Box<TargetInfo>, String>,
    effects: &mut Vec<Effect>,
) {
    let is_occupied = model.is_occupied();
    let Some(connecting) = model.connecting.as_mut().filter(|it| it.ticket == ticket) else {
        return;
    };
    match made {
        Err(why) => {
            model.connecting = None;
            say(model, now, Level::Error, why);
        }
        Ok(target_info) => {
            connecting.target_info = Some(target_info);
            match is_occupied {
                true => {
                    let words = waiting(model);
                    say(model, now, Level::Warning, words);
                }
                false => switch(model, world, now, effects),
            }
        }
    }
}

/// Returns the message that the new target is ready, with the key that switches to it.
fn waiting(model: &Model) -> String {
    let place = model.connecting.as_ref().map_or("", |it| &it.place);
    let modes = &[Mode::Global];
    let keys = model.look.keymap.keys_for(modes, Action::Switch);
    let keys = keys.unwrap_or_default();
    format!("connected to {place}: finish or close this first, then {keys} switches to it")
}

/// Switches to the target that bowline has connected to in the background. Shows a notice if there is no such target.
fn switch(model: &mut Model, world: &World, now: Timestamp, effects: &mut Vec<Effect>) {
    let waits = model.connecting.take();
    let Some(target_info) = waits.as_ref().and_then(|it| it.target_info.clone()) else {
        let words = match &waits {
            Some(connecting) => format!("still connecting to {}", connecting.place),
            None => "no other target is connected; :ctx NAME connects to one".to_owned(),
        };
        model.connecting = waits;
        return say(model, now, Level::Info, words);
    };
    tasks::leave(&mut model.tasks, world, &model.target_info);
    model.target_info = *target_info;
    tasks::arrive(&mut model.tasks, &model.target_info);
    model.stack = vec![Screen::Matrix(Box::default())];
    model.forth.clear();
    model.over = None;
    effects.push(Effect::Switch);
    let words = format!(
        "now in {}, namespace {}",
        model.target_info.name, model.target_info.namespace
    );
    say(model, now, Level::Info, words);
}

/// Cancels the background connection to another target; returns false if there is no such connection.
fn drop_connection(model: &mut Model, now: Timestamp, effects: &mut Vec<Effect>) -> bool {
    let Some(connecting) = model.connecting.take() else {
        return false;
    };
    effects.push(Effect::Cancel(connecting.ticket));
    let words = format!("the connection to {} was cancelled", connecting.place);
    say(model, now, Level::Info, words);
    true
}

/// Calls the function `tell` for every open screen and for every screen in the forward history.
fn each(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    effects: &mut Vec<Effect>,
    mut tell: impl FnMut(&mut Screen, &mut Turn<'_>),
) {
    for at in 0..model.stack.len() + model.forth.len() {
        turn(model, world, now, at, effects, &mut tell);
    }
}

/// Calls the function `tell` for one screen, and fulfils the screen's requests. `at` counts the open screens first,
/// then the screens in the forward history. Requests of the latter are ignored, because the user does not see these
/// screens.
fn turn<T>(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    at: usize,
    effects: &mut Vec<Effect>,
    tell: impl FnOnce(&mut Screen, &mut Turn<'_>) -> T,
) -> Option<T> {
    let mut turn = Turn {
        world,
        now,
        target_info: &model.target_info,
        size: model.size,
        body: super::view::body(model, now),
        look: &model.look,
        tasks: &model.tasks,
        log: &model.log,
        effects: Vec::new(),
        requests: Vec::new(),
        tickets: &mut model.tickets,
    };
    let is_left = at >= model.stack.len();
    let mut screens = model.stack.iter_mut().chain(&mut model.forth);
    let told = tell(screens.nth(at)?, &mut turn);
    let Turn {
        effects: wanted,
        requests,
        ..
    } = turn;
    effects.extend(wanted);
    for request in requests.into_iter().filter(|_| !is_left) {
        fulfil(model, world, now, request, effects);
    }
    Some(told)
}

/// Calls the function `tell` for the front screen, and fulfils the screen's requests.
pub(super) fn front<T>(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    effects: &mut Vec<Effect>,
    tell: impl FnOnce(&mut Screen, &mut Turn<'_>) -> T,
) -> Option<T> {
    let at = model.stack.len().checked_sub(1)?;
    turn(model, world, now, at, effects, tell)
}

/// Fulfils a request that a screen or a command sent to the model.
pub(super) fn fulfil(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    request: ScreenRequest,
    effects: &mut Vec<Effect>,
) {
    match request {
        ScreenRequest::Open(screen) => open(model, *screen),
        ScreenRequest::Close => close(model),
        ScreenRequest::Say(level, text) => say(model, now, level, text),
        ScreenRequest::Plan(command) => plan(model, now, command, effects),
        ScreenRequest::Run(action) => run(model, world, now, action, effects),
        ScreenRequest::Choose(choice) => model.over = Some(Over::Choice(choice)),
        ScreenRequest::Follow(task) => model.tasks.push(*task),
        ScreenRequest::Log(logged) => model.log.push(logged),
        ScreenRequest::Travel(at) => {
            model.stack.truncate(1);
            model.forth.clear();
            front(model, world, now, effects, |screen, turn| {
                if let Screen::Matrix(matrix) = screen {
                    matrix.travel(Some(at), turn);
                }
            });
        }
        ScreenRequest::Connect(destination) => {
            model.tickets += 1;
            model.connecting = Some(Connecting {
                ticket: model.tickets,
                place: destination.words(),
                target_info: None,
            });
            effects.push(Effect::Connect(model.tickets, destination));
        }
        ScreenRequest::Filter(text) => super::prompt::keys::set_filter(model, now, &text),
        ScreenRequest::Type(text) => {
            model.over = Some(Over::Prompt(Box::new(Prompt::open(
                PromptKind::Command,
                &text,
            ))));
        }
    }
}

/// Shows a notice at the bottom of the screen.
pub(super) fn say(model: &mut Model, now: Timestamp, level: Level, text: impl Into<String>) {
    model.notice = Some(Notice {
        text: text.into(),
        level,
        at: now,
    });
}

fn open(model: &mut Model, screen: Screen) {
    // The notice is about the previous front screen, so remove it.
    model.notice = None;
    model.forth.clear();
    model.stack.push(screen);
}

fn close(model: &mut Model) {
    if model.stack.len() > 1
        && let Some(left) = model.stack.pop()
        // The forward history contains no plans, because the tasks keep their results, and no help, because it is
        // always opened anew.
        && !matches!(left, Screen::Plan(_) | Screen::Help(_))
    {
        model.forth.push(left);
    }
}

/// Opens the plan screen for a command. Shows an error instead if bowline already knows that the user is not allowed
/// to change the environment.
pub(super) fn plan(model: &mut Model, now: Timestamp, command: Command, effects: &mut Vec<Effect>) {
    if let Some(why) = from_keys::denied(&model.target_info, &command) {
        say(model, now, Level::Error, why);
        return;
    }
    model.tickets += 1;
    let state = plan::State::open(command, model.tickets, now, effects);
    open(model, Screen::Plan(Box::new(state)));
}

fn pressed(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    event: KeyEvent,
    effects: &mut Vec<Effect>,
) {
    let Some(key) = Key::of(event) else {
        return;
    };
    let notice = model.notice.take();
    if !acted(model, world, now, event, key, effects) && model.notice.is_none() {
        model.notice = notice;
    }
}

/// Handles a key press; returns false if the key has no effect on the front screen.
fn acted(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    event: KeyEvent,
    key: Key,
    effects: &mut Vec<Effect>,
) -> bool {
    if model.over.is_some() {
        super::prompt::keys::key(model, world, now, event, key, effects);
        return true;
    }
    if model.pressed.is_empty() {
        let handled = front(model, world, now, effects, |screen, turn| {
            screen.key(event, turn)
        });
        if handled == Some(Handled::Yes) {
            return true;
        }
    }
    model.pressed.push(key);
    let modes = model.front().modes();
    match model.look.keymap.step(modes, &model.pressed) {
        Step::Run(action) => {
            model.pressed.clear();
            run(model, world, now, action, effects);
            true
        }
        Step::More(_) => false,
        Step::Nothing => {
            let unknown = Key::print(&model.pressed);
            model.pressed.clear();
            if !modes.contains(&Mode::Text) {
                let keys = model.look.keymap.keys_or_word(modes, Action::Help);
                let words = format!("{unknown} has no action here; {keys} lists the keys");
                say(model, now, Level::Info, words);
            }
            false
        }
    }
}

fn pasted(model: &mut Model, world: &World, now: Timestamp, text: &str, effects: &mut Vec<Effect>) {
    if model.over.is_some() {
        super::prompt::keys::paste(model, world, text, effects);
        return;
    }
    let taken = front(model, world, now, effects, |screen, _| screen.paste(text));
    if taken != Some(Handled::Yes) {
        // Pasted text must not run actions, because the user did not press these keys.
        say(
            model,
            now,
            Level::Warning,
            "pasted text ignored: there is no text field here",
        );
    }
}

/// Runs an action on the front screen. If the front screen does not handle the action, runs it for the whole program.
pub(super) fn run(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    action: Action,
    effects: &mut Vec<Effect>,
) {
    if tour::steer(model, now, action) {
        return;
    }
    let handled = front(model, world, now, effects, |screen, turn| {
        screen.act(action, turn)
    });
    if handled == Some(Handled::Yes) {
        if matches!(action, Action::TimeTravel | Action::StepBack) {
            // The screens in the forward history show the present, so the user must not reach them from a past time.
            model.forth.clear();
        }
        return;
    }
    match action {
        Action::Interrupt if drop_connection(model, now, effects) => {}
        Action::Back if model.stack.len() == 1 && drop_connection(model, now, effects) => {}
        Action::Switch if model.is_occupied() => {
            let words = match &model.connecting {
                Some(_) => waiting(model),
                None => "no other target is connected; :ctx NAME connects to one".to_owned(),
            };
            say(model, now, Level::Warning, words);
        }
        Action::Switch => switch(model, world, now, effects),
        Action::Quit if model.stack.len() > 1 => close(model),
        Action::Quit | Action::Leave => quit(model, now, effects),
        Action::Back | Action::HistoryBack => close(model),
        Action::Interrupt => match model.stack.len() {
            1 => {
                let keymap = &model.look.keymap;
                let keys = keymap.keys_or_word(model.front().modes(), Action::Quit);
                let words = format!("no operation is running; {keys} quits bowline");
                say(model, now, Level::Info, words);
            }
            _ => close(model),
        },
        Action::HistoryForth => {
            if let Some(screen) = model.forth.pop() {
                model.stack.push(screen);
            }
        }
        Action::Redraw => effects.push(Effect::Redraw),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Command => {
            model.over = Some(Over::Prompt(Box::new(Prompt::open(
                PromptKind::Command,
                "",
            ))))
        }
        Action::Jump => super::jump::open(model, world),
        Action::Filter => super::prompt::keys::filter(model, now),
        action if action.plans() => {
            let subject = model.front().subject(world);
            match from_keys::of(action, &subject, world, &model.target_info, now) {
                Ok(Wanted::Command(command)) => plan(model, now, command, effects),
                Ok(Wanted::Choice(choice)) => model.over = Some(Over::Choice(choice)),
                Err(why) => say(model, now, Level::Warning, why),
            }
        }
        action => {
            if let Some(request) = super::open_screen::screen(model, world, now, action, effects) {
                fulfil(model, world, now, request, effects);
            }
        }
    }
}

/// Leaves the program. If a write or a push is running, shows a notice instead.
pub(super) fn quit(model: &mut Model, now: Timestamp, effects: &mut Vec<Effect>) {
    let writing = model
        .tasks
        .iter()
        .any(|task| matches!(task.state, tasks::State::Applying));
    match writing || model.target_info.is_pushing() {
        true => say(
            model,
            now,
            Level::Warning,
            "a write is in progress; wait until it is done, or :q! quits at once",
        ),
        false => effects.push(Effect::Quit),
    }
}

fn answered(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    ticket: u64,
    answer: Answer,
    effects: &mut Vec<Effect>,
) {
    if let Answer::Applied(became) = &answer {
        settle(model, now, ticket, became);
    }
    if let Answer::Namespaces(Ok(namespaces)) = &answer {
        model.target_info.namespaces.clone_from(namespaces);
        super::prompt::keys::refresh(model, world, effects);
    }
    let mut answer = match answer {
        Answer::Rights(rights) => {
            model.target_info.rights = rights;
            return;
        }
        Answer::Lacking(lacking) => {
            model.target_info.lacking = lacking;
            return;
        }
        Answer::Exported(Ok(path)) => {
            return say(
                model,
                now,
                Level::Done,
                format!("written to {}", path.display()),
            );
        }
        Answer::Exported(Err(why)) => return say(model, now, Level::Error, why),
        Answer::WorkTree(work_tree) => {
            let Some(repository) = &mut model.target_info.repository else {
                return;
            };
            let trouble = |work_tree: &WorkTree| work_tree.cluster_trouble.clone();
            let known = repository.work_tree.as_deref().and_then(trouble);
            let news = trouble(&work_tree).filter(|why| known.as_ref() != Some(why));
            let known = repository.work_tree.replace(work_tree);
            if let Some(words) = left_out(model, known.as_deref()) {
                say(model, now, Level::Warning, words);
            }
            if let Some(why) = news {
                let words = format!("the cluster of this repository: {why}");
                say(model, now, Level::Warning, words);
            }
            return;
        }
        Answer::Pushed(pushed) => return super::push::pushed(model, now, pushed),
        answer => Some(answer),
    };
    for at in (0..model.stack.len() + model.forth.len()).rev() {
        let Some(given) = answer.take() else {
            return;
        };
        answer = turn(model, world, now, at, effects, |screen, turn| {
            screen.answer(ticket, given, turn)
        })
        .flatten();
    }
}

/// Returns a warning that names the ReleasePins that bowline could not read, for example because of a sparse
/// checkout. None if there are no such ReleasePins, or if the warning would be the same as before.
fn left_out(model: &Model, known: Option<&WorkTree>) -> Option<String> {
    let work_tree = model.target_info.work_tree()?;
    let before = known.map_or(&[][..], |known| &known.left_out);
    if work_tree.left_out.is_empty() || work_tree.left_out == before {
        return None;
    }
    let namespace = &model.target_info.namespace;
    let here = work_tree.left_out.iter();
    let here = here.filter(|pin| pin.namespace == *namespace);
    let (left_out, unread): (Vec<_>, Vec<_>) = here.partition(|pin| pin.problem.is_empty());
    if let Some(pin) = unread.first() {
        return Some(format!(
            "the release of {} in {} is not known: {}",
            pin.component,
            pin.environment,
            pin.why()
        ));
    }
    let names = left_out
        .into_iter()
        .map(|pin| format!("{} in {}", pin.component, pin.environment));
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "not checked out, so the release is not known: {}; check them out: git sparse-checkout add DIR",
            names.join(", ")
        )
    })
}

/// Records the result of an applied plan in its task and in the command log, even if the plan screen is already
/// closed.
fn settle(
    model: &mut Model,
    now: Timestamp,
    ticket: u64,
    applied: &Result<service::Outcome, Refused>,
) {
    let Some(task) = model.tasks.iter_mut().find(|task| task.ticket == ticket) else {
        return;
    };
    let outcome = Outcome::of(&task.prepared, applied);
    task.settle(outcome.task(), &model.target_info);
    let mut logged = outcome.logged(task, now);
    logged.aim(&task.target);
    let level = match outcome.is_done() {
        true => Level::Done,
        false => Level::Error,
    };
    model.log.push(logged);
    say(model, now, level, outcome.words());
}

/// Runs a line of the command prompt.
pub(super) fn command(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    line: &str,
    effects: &mut Vec<Effect>,
) {
    for request in commands::run(model, world, now, line, effects) {
        fulfil(model, world, now, request, effects);
    }
}
