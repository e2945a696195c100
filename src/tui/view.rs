//! The whole frame: header, the screen in front, what lies over it, footer.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::Action;
use super::keymap::Step;
use super::model::{Level, Model};
use super::pen::Sheet;
use super::prompt::{Choice, Over, Prompt};
use super::screens::{Scene, Screen};
use super::theme::Role;
use crate::engine::world::{Freshness, Source, World};
use crate::text;

/// Draws everything; returns when something drawn turns over by itself.
pub fn view(
    model: &Model,
    world: &World,
    now: Timestamp,
    buffer: &mut Buffer,
) -> Option<Timestamp> {
    let turns = Cell::new(None);
    let look = &model.look;
    let mut sheet = Sheet::new(buffer, &look.theme, look.glyphs, now, &turns);
    let height = sheet.height();
    for row in 0..height {
        sheet.fill(row, Role::Text);
    }
    let scene = Scene { world, model };
    let tour = tour_height(model, sheet.width(), height);
    let (head, foot) = (2.min(height), 1);
    let body = height.saturating_sub(head + foot + tour);
    header(&mut sheet, &scene);
    model.front().view(&mut sheet.rows(head, body), &scene);
    if tour > 0 {
        guide(&mut sheet.rows(head + body, tour), model);
    }
    let mut last = sheet.rows(height.saturating_sub(foot), foot);
    match &model.over {
        Some(Over::Prompt(prompt)) => line(&mut last, prompt),
        _ => footer(&mut last, &scene),
    }
    let above = sheet.rows(head, body);
    over(above, model);
    turns.get()
}

fn header(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let ground = &model.ground;
    let (now, dot) = (sheet.now, sheet.glyphs.dot);
    let zoned = now.to_zoned(ground.zone.clone());
    let clock = zoned.strftime("%H:%M").to_string();
    // The clock shows minutes: seconds would draw for nothing.
    let minute = now.as_second().div_euclid(60) * 60 + 60;
    if let Ok(at) = Timestamp::from_second(minute) {
        sheet.turn(at);
    }
    let (fresh, role) = freshness(sheet, scene.world);
    let armed = ground.armed.filter(|until| now < *until).map(|until| {
        let left = until.duration_since(now).as_secs();
        sheet.turn(
            now.checked_add(SignedDuration::from_secs(1))
                .unwrap_or(until),
        );
        format!(" WRITE {} ", text::age(left))
    });
    let mut pen = sheet.line(0);
    pen.skip(1)
        .put("bowline", Role::Title)
        .skip(2)
        .put(&ground.target, Role::Text);
    for part in [&ground.namespace, &ground.user] {
        if !part.is_empty() {
            pen.put(&format!(" {dot} "), Role::Muted)
                .put(part, Role::Text);
        }
    }
    pen.skip(2);
    match (&armed, ground.unwritable(now)) {
        (Some(left), _) => {
            pen.put(left, Role::Armed).skip(1);
        }
        (None, Some(_)) => {
            pen.put(" READ-ONLY ", Role::Readonly).skip(1);
        }
        (None, None) => {}
    }
    if ground.simulated {
        pen.put("simulated data plane", Role::Warning).skip(1);
    }
    let right = text::width(&fresh) + text::width(&clock) + 5;
    if pen.room() > right {
        let wide = u16::try_from(pen.room() - right).unwrap_or_default();
        pen.skip(wide)
            .put(&fresh, role)
            .right(&format!("{clock} "), Role::Muted);
    }
    crumbs(sheet, scene);
}

/// Says how fresh the data is, of the source that is worst.
fn freshness(sheet: &Sheet<'_>, world: &World) -> (String, Role) {
    let mut stale = None;
    for source in Source::ALL {
        match world.freshness(source) {
            Freshness::Live => {}
            Freshness::Loading => return ("reading".to_owned(), Role::Progressing),
            Freshness::Stale { since, denied, .. } => {
                let older = stale.is_none_or(|(known, _)| *since < known);
                if older {
                    stale = Some((*since, *denied));
                }
            }
        }
    }
    match stale {
        None => ("live".to_owned(), Role::Good),
        Some((_, true)) => ("not everything may be read".to_owned(), Role::Stale),
        Some((since, false)) => (format!("STALE {}", sheet.age(since)), Role::Stale),
    }
}

/// Draws the trail of screens and, on the matrix, its totals.
fn crumbs(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let mut pen = sheet.line(1);
    pen.skip(1);
    for (at, screen) in model.stack.iter().enumerate() {
        if at > 0 {
            pen.put(" > ", Role::Muted);
        }
        let role = if at + 1 == model.stack.len() {
            Role::Title
        } else {
            Role::Breadcrumb
        };
        pen.put(&screen.title(), role);
    }
    if let Screen::Matrix(matrix) = model.front()
        && let Some(roster) = matrix.roster()
    {
        let filter = roster.filter().to_string();
        if !filter.is_empty() {
            pen.skip(2).put("/", Role::Prompt).put(&filter, Role::Match);
            let shown = format!("  {} shown", roster.len());
            pen.put(&shown, Role::Muted);
        }
        let totals = roster.totals();
        let parts = [
            (totals.rows, "components", Role::Muted),
            (totals.degraded, "degraded", Role::Degraded),
            (totals.progressing, "rolling", Role::Progressing),
            (totals.held, "held", Role::Hold),
            (totals.behind, "behind", Role::Behind),
            (roster.marked().len(), "marked", Role::Marked),
        ];
        let parts: Vec<(String, Role)> = parts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, word, role)| (format!("{count} {word}"), role))
            .collect();
        let wide: usize = parts.iter().map(|(part, _)| text::width(part) + 2).sum();
        if pen.room() > wide {
            let gap = u16::try_from(pen.room() - wide).unwrap_or_default();
            pen.skip(gap);
            for (part, role) in parts {
                pen.put(&part, role).skip(2);
            }
        }
    }
}

/// Draws the last line: what was said last, the keys of a chord, or what the keys do here.
fn footer(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let (keymap, modes) = (&model.look.keymap, model.front().modes());
    let now = sheet.now;
    let mut pen = sheet.line(0);
    pen.skip(1);
    if !model.pressed.is_empty() {
        let so_far = super::keymap::Key::print(&model.pressed);
        pen.put(&so_far, Role::Key).put(" ...", Role::Muted);
        return;
    }
    if let Some(notice) = &model.notice {
        let role = match notice.level {
            Level::Info => Role::Text,
            Level::Done => Role::Good,
            Level::Warning => Role::Warning,
            Level::Error => Role::Error,
        };
        pen.put(&notice.text, role);
        return;
    }
    let wanted = [
        (Action::Promote, "promote"),
        (Action::Rollback, "rollback"),
        (Action::Hold, "hold"),
        (Action::Diff, "diff"),
        (Action::Open, "open"),
        (Action::Mark, "mark"),
        (Action::Filter, "filter"),
        (Action::Command, "command"),
        (Action::TimeTravel, "time"),
        (Action::Help, "help"),
    ];
    for (action, word) in wanted {
        let Some(keys) = keymap.keys_for(modes, action) else {
            continue;
        };
        // A key that is refused stays listed, dimmed.
        let refused = action.plans() && model.ground.unwritable(now).is_some();
        let (key, description) = match refused {
            true => (Role::Muted, Role::Muted),
            false => (Role::Key, Role::KeyDescription),
        };
        let wide = text::width(&keys) + text::width(word) + 3;
        if pen.room() < wide {
            break;
        }
        pen.put(&keys, key)
            .put(" ", key)
            .put(word, description)
            .skip(2);
    }
}

/// Draws the line that is typed.
fn line(sheet: &mut Sheet<'_>, prompt: &Prompt) {
    let mut pen = sheet.line(0);
    pen.put(prompt.sign(), Role::Prompt);
    let column = pen.column();
    if let Some(complaint) = &prompt.complaint {
        pen.skip(40).right(&format!("{complaint} "), Role::Error);
    }
    let area = Rect {
        x: sheet.area.x + column,
        width: sheet.area.width.saturating_sub(column) / 2,
        ..sheet.area
    };
    sheet.part(area).widget(&prompt.line);
}

/// Draws what lies over the screen.
fn over(mut sheet: Sheet<'_>, model: &Model) {
    match &model.over {
        Some(Over::Prompt(prompt)) if !prompt.offers.is_empty() => offers(&mut sheet, prompt),
        Some(Over::Choice(choice)) => choices(&mut sheet, choice),
        Some(Over::Prompt(_)) => {}
        None => which_key(&mut sheet, model),
    }
}

/// Draws what could be meant, above the line.
fn offers(sheet: &mut Sheet<'_>, prompt: &Prompt) {
    let height = u16::try_from(prompt.offers.len())
        .unwrap_or(u16::MAX)
        .min(10)
        .min(sheet.height());
    let top = sheet.height() - height;
    let mut part = sheet.rows(top, height);
    part.clear();
    let chosen = prompt.chosen.unwrap_or(usize::MAX);
    let first = match chosen {
        usize::MAX => 0,
        chosen => (chosen + 1).saturating_sub(usize::from(height)),
    };
    for (row, (at, offer)) in (0..height).zip(prompt.offers.iter().enumerate().skip(first)) {
        let mut pen = part.line(row);
        if at == chosen {
            pen.over(Role::Selection);
        }
        pen.skip(1)
            .cell(&offer.text, 40, Role::Text)
            .skip(1)
            .put(&offer.about, Role::Muted)
            .rest();
    }
}

/// Draws a choice in the middle.
fn choices(sheet: &mut Sheet<'_>, choice: &Choice) {
    let widest = choice
        .options
        .iter()
        .map(|(name, _)| text::width(name))
        .max()
        .unwrap_or_default();
    let width = widest.max(text::width(&choice.question)) + 8;
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(sheet.width());
    let height = u16::try_from(choice.options.len() + 3)
        .unwrap_or(u16::MAX)
        .min(sheet.height());
    let area = Rect {
        x: sheet.area.x + (sheet.width() - width) / 2,
        y: sheet.area.y + (sheet.height() - height) / 2,
        width,
        height,
    };
    let mut part = sheet.part(area);
    part.clear();
    part.rule(0, &choice.question, Role::Title);
    for (row, (at, (name, _))) in
        (1..height.saturating_sub(1)).zip(choice.options.iter().enumerate())
    {
        let mut pen = part.line(row);
        if at == choice.chosen {
            pen.over(Role::Selection);
        }
        pen.skip(2)
            .put(&format!("{} ", at + 1), Role::Key)
            .put(name, Role::Text)
            .rest();
    }
    part.rule(height - 1, "", Role::Border);
}

/// Draws what can follow the keys of a chord.
fn which_key(sheet: &mut Sheet<'_>, model: &Model) {
    if model.pressed.is_empty() {
        return;
    }
    let modes = model.front().modes();
    let Step::More(next) = model.look.keymap.step(modes, &model.pressed) else {
        return;
    };
    let columns = usize::from((sheet.width() / 40).max(1));
    let rows = next.len().div_ceil(columns);
    let height = u16::try_from(rows + 1)
        .unwrap_or(u16::MAX)
        .min(sheet.height());
    let top = sheet.height() - height;
    let mut part = sheet.rows(top, height);
    part.clear();
    part.rule(0, "and then", Role::Title);
    for (at, (key, _, description)) in next.iter().enumerate() {
        let (row, column) = (at % rows.max(1), at / rows.max(1));
        let row = u16::try_from(row + 1).unwrap_or(u16::MAX);
        let column = u16::try_from(column * 40 + 2).unwrap_or(u16::MAX);
        let mut pen = part.line(row);
        pen.to(column)
            .cell(&key.to_string(), 6, Role::Key)
            .put(description, Role::KeyDescription);
    }
}

fn tour_height(model: &Model, width: u16, height: u16) -> u16 {
    let Some(words) = model.tour.as_ref().and_then(super::tour::Tour::words) else {
        return 0;
    };
    let lines = super::widgets::wrap(words, usize::from(width.saturating_sub(4))).len();
    match height > 16 {
        true => u16::try_from(lines + 1).unwrap_or(3).min(4),
        false => 0,
    }
}

/// Draws the tour of the demo.
fn guide(sheet: &mut Sheet<'_>, model: &Model) {
    let Some((tour, words)) = model
        .tour
        .as_ref()
        .and_then(|tour| Some((tour, tour.words()?)))
    else {
        return;
    };
    let (step, of) = tour.place();
    sheet.rule(
        0,
        &format!("tour {step} of {of}, :tour off ends it"),
        Role::Prompt,
    );
    let width = usize::from(sheet.width().saturating_sub(4));
    for (row, line) in (1..).zip(super::widgets::wrap(words, width)) {
        sheet.line(row).skip(3).put(&line, Role::Text);
    }
}
