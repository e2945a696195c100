//! The whole frame: header, the screen in front, what lies over it, footer.

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::keymap::Step;
use super::model::{Level, Model, Notice, Standing};
use super::pen::{Notes, Pen, Sheet};
use super::prompt::{Choice, Offer, Over, Prompt};
use super::screens::{Scene, Screen};
use super::theme::Role;
use super::tour;
use super::widgets::wrap;
use crate::engine::world::{Freshness, Source, World};
use crate::text;

/// How soon a search that is not done goes on.
const AGAIN: SignedDuration = SignedDuration::from_millis(5);

/// Draws everything; returns when something drawn turns over by itself.
pub fn view(
    model: &Model,
    world: &World,
    now: Timestamp,
    buffer: &mut Buffer,
) -> Option<Timestamp> {
    view_noting(model, world, now, buffer).turns.get()
}

/// Draws everything; returns what is said of the frame beside its cells.
pub fn view_noting(model: &Model, world: &World, now: Timestamp, buffer: &mut Buffer) -> Notes {
    let notes = Notes::default();
    let look = &model.look;
    let mut sheet = Sheet::new(buffer, &look.theme, look.glyphs, now, &notes);
    let height = sheet.height();
    for row in 0..height {
        sheet.fill(row, Role::Text);
    }
    let scene = Scene { world, model };
    let tour = tour::height(model, sheet.width(), height);
    let (head, foot) = (2.min(height), 1);
    let body = height.saturating_sub(head + foot + tour);
    header(&mut sheet, &scene);
    model.front().view(&mut sheet.rows(head, body), &scene);
    if tour > 0 {
        tour::view(&mut sheet.rows(head + body, tour), model);
    }
    let mut last = sheet.rows(height.saturating_sub(foot), foot);
    match &model.over {
        Some(Over::Prompt(prompt)) => line(&mut last, prompt),
        _ => footer(&mut last, &scene),
    }
    let above = sheet.rows(head, body);
    over(above, model);
    notes
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
    let one = |words: String, role: Role| vec![(words, role)];
    let apart =
        |words: &str, role: Role| vec![(format!(" {dot} "), Role::Muted), (words.to_owned(), role)];
    let mut parts: Vec<Part> = vec![
        (6, one("bowline  ".to_owned(), Role::Title)),
        (8, one(ground.target.clone(), Role::Text)),
    ];
    let standing = ground.repository.iter().flat_map(Standing::words);
    for (at, (words, matters)) in standing.enumerate() {
        let role = if matters { Role::Warning } else { Role::Text };
        parts.push(match at {
            0 => (7, apart(&words, role)),
            _ => (5, vec![(", ".to_owned(), Role::Muted), (words, role)]),
        });
    }
    for (need, part) in [(3, &ground.namespace), (2, &ground.user)] {
        if !part.is_empty() {
            parts.push((need, apart(part, Role::Text)));
        }
    }
    let banner = match (armed, ground.unwritable(now)) {
        (Some(left), _) => Some((left, Role::Armed)),
        (None, Some(_)) => Some((" READ-ONLY ".to_owned(), Role::Readonly)),
        (None, None) => None,
    };
    parts.extend(banner.map(|banner| (STAYS, vec![("  ".to_owned(), Role::Text), banner])));
    if ground.simulated {
        parts.push((4, one("  simulated".to_owned(), Role::Warning)));
        parts.push((1, one(" data plane".to_owned(), Role::Warning)));
    }
    let mut right: Vec<Part> = vec![
        (STAYS, one(format!("  {fresh} "), role)),
        (2, one(format!("   {clock} "), Role::Muted)),
    ];
    let mut pen = sheet.line(0);
    pen.skip(1);
    while wide(&parts) + wide(&right) > pen.room() {
        let (of_parts, of_right) = (least(&parts), least(&right));
        match (of_parts, of_right) {
            (Some((need, at)), other) if other.is_none_or(|(more, _)| need < more) => {
                parts.remove(at);
            }
            (_, Some((_, at))) => {
                right.remove(at);
            }
            _ => break,
        }
    }
    let between = pen.room().saturating_sub(wide(&parts) + wide(&right));
    for (words, role) in parts.into_iter().flat_map(|(_, spans)| spans) {
        pen.put(&words, role);
    }
    pen.skip(u16::try_from(between).unwrap_or_default());
    for (words, role) in right.into_iter().flat_map(|(_, spans)| spans) {
        pen.put(&words, role);
    }
    crumbs(sheet, scene);
}

/// A part of the header, and how much it is needed: what is needed least goes where there is no room.
type Part = (u8, Vec<(String, Role)>);

/// The need of what never goes: how fresh everything is, and whether it can be changed.
const STAYS: u8 = 9;

fn wide(parts: &[Part]) -> usize {
    let spans = parts.iter().flat_map(|(_, spans)| spans);
    spans.map(|(words, _)| text::width(words)).sum()
}

/// Finds what goes first of some parts: of those that are needed least, the last.
fn least(parts: &[Part]) -> Option<(u8, usize)> {
    let may_go = parts.iter().enumerate().rev();
    let may_go = may_go.filter(|(_, (need, _))| *need < STAYS);
    may_go
        .map(|(at, (need, _))| (*need, at))
        .min_by_key(|(need, _)| *need)
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

/// Draws the trail of screens, what the one in front is filtered by, and its totals.
fn crumbs(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let as_of = match model.front() {
        Screen::Matrix(matrix) => matrix.as_of(),
        _ => None,
    };
    let as_of = as_of.map(|at| format!(" AS OF {} ", model.ground.clock(at, sheet.now)));
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
    if let Some(as_of) = as_of {
        pen.skip(2).put(&as_of, Role::AsOf);
    }
    let filter = model.front().filter().map(ToString::to_string);
    if let Some(filter) = filter.filter(|filter| !filter.is_empty()) {
        pen.skip(2).put("/", Role::Prompt).put(&filter, Role::Match);
        if let Some(shown) = model.front().shown() {
            pen.put(&format!("  {shown} shown"), Role::Muted);
        }
    }
    let mut parts = model.front().totals(scene);
    let wide = |parts: &[(String, Role)]| -> usize {
        parts.iter().map(|(part, _)| text::width(part) + 2).sum()
    };
    // What comes last is needed least.
    while wide(&parts) >= pen.room() && parts.pop().is_some() {}
    let gap = pen.room().saturating_sub(wide(&parts));
    pen.skip(u16::try_from(gap).unwrap_or_default());
    for (part, role) in parts {
        pen.put(&part, role).skip(2);
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
        let told = told(notice, model.size.0);
        let last = told.last().map_or(notice.text.as_str(), String::as_str);
        pen.put(last, notice_role(notice));
        return;
    }
    for (action, word) in model.front().hints() {
        let Some(keys) = keymap.keys_for(modes, *action) else {
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

fn notice_role(notice: &Notice) -> Role {
    match notice.level {
        Level::Info => Role::Text,
        Level::Done => Role::Good,
        Level::Warning => Role::Warning,
        Level::Error => Role::Error,
    }
}

/// Breaks what was said into the lines that it takes, where it is shown in full and one is not enough.
fn told(notice: &Notice, width: u16) -> Vec<String> {
    let width = usize::from(width.saturating_sub(2));
    match notice.whole && text::width(&notice.text) > width {
        true => wrap(&notice.text, width),
        false => Vec::new(),
    }
}

/// Draws what was said, but for its last line, which is in the footer.
fn notice(sheet: &mut Sheet<'_>, notice: &Notice) {
    let lines = told(notice, sheet.width());
    let above = lines.len().saturating_sub(1);
    let height = u16::try_from(above).unwrap_or(u16::MAX).min(sheet.height());
    let mut part = sheet.rows(sheet.height() - height, height);
    part.clear();
    for (row, line) in (0..height).zip(&lines) {
        part.line(row).skip(1).put(line, notice_role(notice));
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
        None => match &model.notice {
            Some(said) if model.pressed.is_empty() => notice(&mut sheet, said),
            _ => which_key(&mut sheet, model),
        },
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
    if prompt.jump.as_ref().is_some_and(|jump| jump.is_busy())
        && let Ok(at) = part.now.checked_add(AGAIN)
    {
        part.turn(at);
    }
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
        pen.skip(1);
        match offer.fits.is_empty() {
            true => pen.cell(&offer.text, 40, Role::Text),
            false => fitting(&mut pen, offer),
        };
        pen.skip(1).put(&offer.about, Role::Muted).rest();
    }
}

/// Writes an offer with the characters that fit what is typed.
fn fitting<'p, 'a>(pen: &'p mut Pen<'a>, offer: &Offer) -> &'p mut Pen<'a> {
    let end = pen.column() + 48;
    for (number, letter) in (0..).zip(text::fit(&offer.text, 48).chars()) {
        let role = match offer.fits.binary_search(&number).is_ok() {
            true => Role::Match,
            false => Role::Text,
        };
        pen.put(letter.encode_utf8(&mut [0; 4]), role);
    }
    pen.to(end)
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
    let rows = rows.max(1);
    for row in 0..rows {
        let mut pen = part.line(u16::try_from(row + 1).unwrap_or(u16::MAX));
        for (column, (key, _, description)) in next.iter().skip(row).step_by(rows).enumerate() {
            pen.to(u16::try_from(column * 40 + 2).unwrap_or(u16::MAX))
                .cell(&key.to_string(), 6, Role::Key)
                .put(description, Role::KeyDescription);
        }
    }
}
