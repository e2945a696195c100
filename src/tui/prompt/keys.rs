//! Handles the keys while a prompt or a choice is open.

use crossterm::event::KeyEvent;
use jiff::Timestamp;

use crate::action::{Action, Mode};
use crate::commands;
use crate::effect::Effect;
use crate::engine::world::World;
use crate::filter;
use crate::filter::Problem;
use crate::keymap::{Key, Step};
use crate::model::{Level, Model};
use crate::prompt::{Offer, Over, Prompt, PromptKind, edit};
use crate::screens::Screen;
use crate::update::{command, plan, say};

/// Opens a prompt that edits the filter of the front screen. Shows a notice if the screen has no filter.
pub fn filter(model: &mut Model, now: Timestamp) {
    let current = model.front().filter().map(ToString::to_string);
    match current {
        Some(current) => {
            let prompt = Prompt::open(PromptKind::Filter, &current);
            model.over = Some(Over::Prompt(Box::new(prompt)));
        }
        None => {
            let words = without_filter(model);
            say(model, now, Level::Info, words);
        }
    }
}

/// Sets the filter of the front screen. Shows a notice if the screen has no filter, or if the text is not a valid
/// filter.
pub fn set_filter(model: &mut Model, now: Timestamp, text: &str) {
    if model.front().filter().is_none() {
        let words = without_filter(model);
        return say(model, now, Level::Info, words);
    }
    if let Some(problem) = refilter(model, text) {
        say(model, now, Level::Error, words(problem));
    }
}

/// Returns the message that the front screen has no filter, and that names keys that the user can press instead.
fn without_filter(model: &Model) -> String {
    let (front, keymap) = (model.front(), &model.look.keymap);
    let keys = |action| keymap.keys_or_word(front.modes(), action);
    let instead = match front {
        Screen::Diff(_) => {
            let (next, before) = (keys(Action::NextHunk), keys(Action::PreviousHunk));
            format!("{next} and {before} go to the next change and the one before")
        }
        Screen::Matrix(_) => "wait until the target is read".to_owned(),
        _ => format!(
            "{} goes back to the list, which has one",
            keys(Action::Back)
        ),
    };
    format!("{} has no filter; {instead}", front.title())
}

/// Handles a key press in the prompt or choice.
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
        Some(Over::Choice(_)) => choose(model, now, key, action, effects),
        Some(Over::Prompt(_)) => line(model, world, now, event, action, effects),
        None => {}
    }
}

/// Inserts the first line of a pasted text into the prompt; a choice ignores it.
pub fn paste(model: &mut Model, world: &World, text: &str, effects: &mut Vec<Effect>) {
    if let Some(Over::Prompt(prompt)) = &mut model.over {
        prompt.line.insert_str(crate::text::line(text));
        typed(model, world, effects);
    }
}

fn choose(
    model: &mut Model,
    now: Timestamp,
    key: Key,
    action: Option<Action>,
    effects: &mut Vec<Effect>,
) {
    let Some(Over::Choice(choice)) = &mut model.over else {
        return;
    };
    let count = choice.options.len().max(1);
    // The keys 1 to 9 choose an option.
    let number = key.character().and_then(|c| c.to_digit(10));
    let number = number.and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1));
    if let Some(number) = number.filter(|number| *number < count) {
        choice.chosen = number;
        return take(model, now, effects);
    }
    match action {
        Some(Action::Up) => choice.chosen = (choice.chosen + count - 1) % count,
        Some(Action::Down) => choice.chosen = (choice.chosen + 1) % count,
        Some(Action::Open | Action::Confirm) => take(model, now, effects),
        Some(Action::Back | Action::Interrupt | Action::Quit) => model.over = None,
        _ => {}
    }
}

/// Opens the plan for the command of the option that the user chose.
fn take(model: &mut Model, now: Timestamp, effects: &mut Vec<Effect>) {
    if let Some(Over::Choice(mut choice)) = model.over.take()
        && choice.chosen < choice.options.len()
    {
        let (_, command) = choice.options.swap_remove(choice.chosen);
        plan(model, now, command, effects);
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
        Some(Action::Complete) if prompt.kind == PromptKind::Jump => {
            let chosen = prompt.chosen.unwrap_or(0);
            if let Some(offer) = prompt.offers.get(chosen) {
                let text = offer.text.clone();
                prompt.replace(&text);
                typed(model, world, effects);
            }
        }
        Some(Action::Complete) => complete(model, world, true, effects),
        Some(Action::NextField) if prompt.kind != PromptKind::Jump => {
            complete(model, world, false, effects);
        }
        Some(Action::Up | Action::Down) if prompt.kind == PromptKind::Jump => {
            let count = prompt.offers.len().max(1);
            let chosen = prompt.chosen.unwrap_or(0);
            prompt.chosen = Some(match action {
                Some(Action::Up) => (chosen + count - 1) % count,
                _ => (chosen + 1) % count,
            });
        }
        Some(Action::Up) => recall(model, world, true, effects),
        Some(Action::Down) => recall(model, world, false, effects),
        _ => {
            prompt.recalled = None;
            edit(&mut prompt.line, event);
            typed(model, world, effects);
        }
    }
}

/// Completes the last word of the prompt. If several completions fit, each call chooses the next one, or the previous
/// one if `onward` is false.
fn complete(model: &mut Model, world: &World, onward: bool, effects: &mut Vec<Effect>) {
    let Some(Over::Prompt(prompt)) = &model.over else {
        return;
    };
    let (kind, text) = (prompt.kind, prompt.text().to_owned());
    let begins = prompt.stem.is_none();
    let offers = match (begins, kind) {
        (false, _) => None,
        (true, PromptKind::Filter) => Some(filters(model, world, &text)),
        (true, _) => Some(commands::offers(model, world, &text, effects)),
    };
    let Some(Over::Prompt(prompt)) = &mut model.over else {
        return;
    };
    if let Some(offers) = offers {
        (prompt.offers, prompt.chosen) = (offers, None);
    }
    let count = prompt.offers.len();
    let at = match (prompt.chosen, onward) {
        (None, true) => 0,
        (None, false) => count.saturating_sub(1),
        (Some(at), true) => (at + 1) % count.max(1),
        (Some(at), false) => (at + count.saturating_sub(1)) % count.max(1),
    };
    let Some(offer) = prompt.offers.get(at) else {
        return;
    };
    let stem = prompt.stem.clone().unwrap_or(text);
    let completed = commands::completed(&stem, &offer.text);
    if count == 1 {
        // The only completion was accepted, so the list now shows the completions of the next word.
        let more = kind == PromptKind::Command && !completed.contains(' ');
        prompt.replace(&format!("{completed}{}", if more { " " } else { "" }));
        return typed(model, world, effects);
    }
    prompt.replace(&completed);
    (prompt.stem, prompt.chosen) = (Some(stem), Some(at));
    if kind == PromptKind::Filter {
        let complaint = refilter(model, &completed).filter(|problem| !problem.incomplete);
        if let Some(Over::Prompt(prompt)) = &mut model.over {
            prompt.complaint = complaint.map(words);
        }
    }
}

/// Returns the completions of the last word of a filter; empty on a screen that filters plain text.
fn filters(model: &Model, world: &World, text: &str) -> Vec<Offer> {
    if model.front().filters_text() {
        return Vec::new();
    }
    let namespace = &model.target_info.namespace;
    let environments = world.environment_names(namespace);
    let releases = commands::releases(model, world);
    let known = filter::completions(text, &environments, &releases);
    known.iter().map(|word| Offer::new(word, "")).collect()
}

/// Replaces the line of the prompt by an older or newer line of the history.
fn recall(model: &mut Model, world: &World, older: bool, effects: &mut Vec<Effect>) {
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
    typed(model, world, effects);
}

/// Updates the prompt after its text changed: applies the filter and computes the completions.
fn typed(model: &mut Model, world: &World, effects: &mut Vec<Effect>) {
    let Some(Over::Prompt(prompt)) = &model.over else {
        return;
    };
    let (kind, text) = (prompt.kind, prompt.text().to_owned());
    let (offers, problem) = match kind {
        PromptKind::Filter => (Vec::new(), refilter(model, &text)),
        PromptKind::Command if text.is_empty() => (Vec::new(), None),
        PromptKind::Command => (commands::offers(model, world, &text, effects), None),
        PromptKind::Jump => return crate::jump::ask(model, world, &text),
    };
    if let Some(Over::Prompt(prompt)) = &mut model.over {
        // If the prompt already shows a mistake, keep showing mistakes until the text is correct. Otherwise wait
        // until the last word is complete.
        let told = prompt.complaint.is_some();
        let problem = problem.filter(|problem| told || !problem.incomplete);
        prompt.complaint = problem.map(words);
        (prompt.offers, prompt.chosen, prompt.stem) = (offers, None, None);
    }
}

/// Computes the completions of a command again, for example after the namespaces arrived.
pub fn refresh(model: &mut Model, world: &World, effects: &mut Vec<Effect>) {
    if let Some(Over::Prompt(prompt)) = &model.over
        && prompt.kind == PromptKind::Command
        && prompt.stem.is_none()
    {
        typed(model, world, effects);
    }
}

/// Formats a mistake in a filter, with its column.
fn words(problem: Problem) -> String {
    format!("column {}: {}", problem.column + 1, problem.message)
}

/// Sets the filter of the front screen; returns the first mistake in the text of the filter.
fn refilter(model: &mut Model, text: &str) -> Option<Problem> {
    let read = match model.front() {
        Screen::Describe(_) => filter::words(text),
        front if front.filters_text() => filter::list_words(text),
        _ => filter::read(text),
    };
    if let Some(screen) = model.stack.last_mut() {
        screen.set_filter(read.filter);
    }
    read.problem
}

fn entered(model: &mut Model, world: &World, now: Timestamp, effects: &mut Vec<Effect>) {
    let Some(Over::Prompt(mut prompt)) = model.over.take() else {
        return;
    };
    let text = prompt.text().trim().to_owned();
    if prompt.kind == PromptKind::Filter
        && let Some(problem) = refilter(model, &text)
    {
        // The typed filter has a mistake, so the prompt stays open until the user corrects it or cancels.
        prompt.complaint = Some(words(problem));
        model.over = Some(Over::Prompt(prompt));
        return;
    }
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
                crate::jump::go(model, world, now, offer, effects);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::snapshot_test::SnapshotTest;

    #[test]
    fn a_mistake_in_a_filter_stays_until_it_is_corrected() {
        let still = SnapshotTest::fleet().keys("/").keys("\"health:x\"");
        let still = still
            .keys("enter")
            .shows("unknown health x; use one of ready");
        let still = still.keys("enter").shows("unknown health x");
        let still = still.keys("backspace").shows("health: needs one of ready");
        let still = still.keys("\"deg\"").hides("health: needs").keys("enter");
        still.shows("/health:degraded").hides("is no health");
    }

    #[test]
    fn an_unfinished_filter_is_told_when_it_is_entered() {
        let still = SnapshotTest::fleet().keys("/").keys("\"health:\"");
        let still = still.hides("needs one of").keys("enter");
        still
            .shows("column 8: health: needs one of ready")
            .keys("esc")
            .hides("needs one of")
            .shows("checkout-service");
    }

    #[test]
    fn a_command_is_completed_from_nothing_and_around() {
        let still = SnapshotTest::fleet().keys(": tab tab").shows(":at");
        let still = still.keys("tab").shows(":audit");
        let still = still.keys("shift-tab shift-tab").hides(":at");
        let still = still.keys("tab").shows(":at");
        // A character that the user types after choosing a completion is added to the completed word.
        let still = still.keys("\" 14\"").shows(":at 14");
        let still = still.keys("ctrl-u").hides(":at");
        let still = still.keys("\"thema\"").keys("tab").shows(":thema");
        still
            .keys("backspace tab")
            .shows("high-contrast")
            .keys("\"dar\"")
            .keys("tab")
            .shows(":theme dark");
    }

    #[test]
    fn a_filter_is_completed() {
        let still = SnapshotTest::fleet()
            .keys("/")
            .keys("\"health:m\"")
            .keys("tab");
        let still = still.shows("/health:missing").keys("ctrl-u");
        let still = still
            .keys("\"env:\"")
            .keys("tab tab")
            .shows("/env:production");
        still.keys("enter").shows("/env:production");
    }

    #[test]
    fn every_list_has_a_filter_and_other_screens_say_that_they_have_none() {
        for (keys, typed, kept) in [
            ("g r", "cart", "cart"),
            ("g p", "cart", "cart"),
            ("g c", "cart", "cart"),
            ("g x", "prod-us", "prod-us"),
        ] {
            let still = SnapshotTest::fleet().keys(keys).keys("/");
            let still = still.keys(&format!("\"{typed}\"")).keys("enter");
            still.shows(&format!("/{typed}")).shows(kept);
        }
        SnapshotTest::fleet()
            .keys("d /")
            .shows("diff has no filter");
        SnapshotTest::fleet()
            .keys("g t /")
            .shows("tasks has no filter");
    }
}
