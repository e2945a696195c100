//! What keys do while a line or a choice lies over the screen.

use crossterm::event::KeyEvent;
use jiff::Timestamp;

use super::action::{Action, Mode};
use super::effect::Effect;
use super::keymap::{Key, Step};
use super::model::Model;
use super::prompt::{Over, Prompt, PromptKind};
use super::screens::Screen;
use super::update::{command, plan};
use super::{commands, filter};
use crate::engine::world::World;

/// Opens the filter of the screen in front, with what it is now.
pub fn filter(model: &mut Model) {
    let current = model.front().filter().map(ToString::to_string);
    if let Some(current) = current {
        model.over = Some(Over::Prompt(Box::new(Prompt::open(
            PromptKind::Filter,
            &current,
        ))));
    }
}

/// Takes a key.
pub fn key(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    event: KeyEvent,
    key: Key,
    effects: &mut Vec<Effect>,
) {
    let modes: &[Mode] = match model.over {
        Some(Over::Choice(_)) => &[Mode::List, Mode::Global],
        _ => &[Mode::Text],
    };
    let action = match model.look.keymap.step(modes, &[key]) {
        Step::Run(action) => Some(action),
        Step::More(_) | Step::Nothing => None,
    };
    match &mut model.over {
        Some(Over::Choice(_)) => choose(model, world, now, key, action, effects),
        Some(Over::Prompt(_)) => line(model, world, now, event, action, effects),
        None => {}
    }
}

/// Takes text that was pasted.
pub fn paste(model: &mut Model, world: &World, text: &str) {
    if let Some(Over::Prompt(prompt)) = &mut model.over {
        prompt.line.insert_str(crate::text::line(text));
        typed(model, world);
    }
}

fn choose(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    key: Key,
    action: Option<Action>,
    effects: &mut Vec<Effect>,
) {
    let Some(Over::Choice(choice)) = &mut model.over else {
        return;
    };
    let count = choice.options.len().max(1);
    // The first nine can be had by their number.
    let number = key.character().and_then(|c| c.to_digit(10));
    let number = number.and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1));
    if let Some(number) = number.filter(|number| *number < count) {
        choice.chosen = number;
        return take(model, world, now, effects);
    }
    match action {
        Some(Action::Up) => choice.chosen = (choice.chosen + count - 1) % count,
        Some(Action::Down) => choice.chosen = (choice.chosen + 1) % count,
        Some(Action::Open | Action::Confirm) => take(model, world, now, effects),
        Some(Action::Back | Action::Interrupt | Action::Quit) => model.over = None,
        _ => {}
    }
}

/// Takes what is chosen.
fn take(model: &mut Model, world: &World, now: Timestamp, effects: &mut Vec<Effect>) {
    if let Some(Over::Choice(mut choice)) = model.over.take()
        && choice.chosen < choice.options.len()
    {
        let (_, order) = choice.options.swap_remove(choice.chosen);
        plan(model, world, now, order, effects);
    }
}

fn line(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    event: KeyEvent,
    action: Option<Action>,
    effects: &mut Vec<Effect>,
) {
    let Some(Over::Prompt(prompt)) = &mut model.over else {
        return;
    };
    match action {
        Some(Action::Back | Action::Interrupt) => {
            if prompt.kind == PromptKind::Filter {
                let before = prompt.before.clone();
                refilter(model, &before);
            }
            model.over = None;
        }
        Some(Action::Confirm) => entered(model, world, now, effects),
        Some(Action::Complete) => {
            let chosen = prompt.chosen.unwrap_or(0);
            if let Some(offer) = prompt.offers.get(chosen) {
                let text = match prompt.kind {
                    PromptKind::Command => commands::completed(prompt.text(), &offer.text),
                    PromptKind::Filter | PromptKind::Jump => offer.text.clone(),
                };
                prompt.replace(&text);
                typed(model, world);
            }
        }
        Some(Action::Up | Action::Down) if prompt.kind == PromptKind::Jump => {
            let count = prompt.offers.len().max(1);
            let chosen = prompt.chosen.unwrap_or(0);
            prompt.chosen = Some(match action {
                Some(Action::Up) => (chosen + count - 1) % count,
                _ => (chosen + 1) % count,
            });
        }
        Some(Action::Up) => recall(model, world, true),
        Some(Action::Down) => recall(model, world, false),
        _ => {
            prompt.recalled = None;
            prompt.line.input(event);
            typed(model, world);
        }
    }
}

/// Brings back what was typed before.
fn recall(model: &mut Model, world: &World, older: bool) {
    let Model {
        over, typed: past, ..
    } = model;
    let Some(Over::Prompt(prompt)) = over else {
        return;
    };
    let sign = prompt.sign();
    let past: Vec<&str> = past
        .iter()
        .rev()
        .filter_map(|line| line.strip_prefix(sign))
        .collect();
    let at = match (prompt.recalled, older) {
        (None, true) => Some(0),
        (Some(at), true) => Some((at + 1).min(past.len().saturating_sub(1))),
        (Some(at), false) => at.checked_sub(1),
        (None, false) => None,
    };
    let text = at
        .and_then(|at| past.get(at))
        .map_or("", |text| *text)
        .to_owned();
    prompt.replace(&text);
    prompt.recalled = at;
    typed(model, world);
}

/// Follows what is typed: the filter counts at once, and what could be meant is offered.
fn typed(model: &mut Model, world: &World) {
    let Some(Over::Prompt(prompt)) = &model.over else {
        return;
    };
    let (kind, text) = (prompt.kind, prompt.text().to_owned());
    let (offers, complaint) = match kind {
        PromptKind::Filter => (Vec::new(), refilter(model, &text)),
        PromptKind::Command => (commands::offers(model, world, &text), None),
        PromptKind::Jump => return super::jumping::ask(model, world, &text),
    };
    if let Some(Over::Prompt(prompt)) = &mut model.over {
        prompt.chosen = (!offers.is_empty() && kind == PromptKind::Jump).then_some(0);
        prompt.offers = offers;
        prompt.complaint = complaint;
    }
}

/// Shows what a filter keeps; says what is wrong with it.
fn refilter(model: &mut Model, text: &str) -> Option<String> {
    let read = match model.front() {
        Screen::Describe(_) => filter::words(text),
        _ => filter::read(text),
    };
    if let Some(screen) = model.stack.last_mut() {
        screen.set_filter(read.filter);
    }
    let problem = read.problem.filter(|problem| !problem.incomplete);
    problem.map(|problem| format!("column {}: {}", problem.column + 1, problem.message))
}

fn entered(model: &mut Model, world: &World, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(Over::Prompt(prompt)) = model.over.take() else {
        return;
    };
    let text = prompt.text().trim().to_owned();
    if !text.is_empty() && prompt.kind != PromptKind::Jump {
        let line = format!("{}{text}", prompt.sign());
        model.typed.retain(|known| *known != line);
        model.typed.push(line);
    }
    match prompt.kind {
        PromptKind::Filter => {}
        PromptKind::Command => command(model, world, now, &text, effects),
        PromptKind::Jump => {
            let chosen = prompt.offers.get(prompt.chosen.unwrap_or(0));
            if let Some(offer) = chosen {
                super::jumping::go(model, world, now, offer, effects);
            }
        }
    }
}
