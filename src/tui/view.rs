//! Draws the whole frame: header, front screen, prompt or choice over the front screen, footer.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::action::Action;
use super::from_keys;
use super::keymap::Step;
use super::model::{Level, Model, Notice};
use super::pen::{Notes, Pen, Sheet};
use super::prompt::{Choice, Offer, Over, Prompt};
use super::screens::Scene;
use super::theme::Role;
use super::tour;
use super::widgets::{scrolled, wrap};
use crate::engine::world::{Freshness, World};
use crate::text;

/// The pause after which an unfinished search continues.
const AGAIN: SignedDuration = SignedDuration::from_millis(5);

/// The number of rows of the header.
pub const HEAD: u16 = 2;
const FOOT: u16 = 1;
/// The minimum width of the screen, in columns, at which the footer always shows the help key. A narrower footer has
/// no room for it.
const ROOM_FOR_HELP: u16 = 60;
/// The number of rows that the header and the footer use on every screen.
pub const FRAME: u16 = HEAD + FOOT;

/// Returns the size of the area that remains for the front screen: columns and rows.
pub fn body(model: &Model, now: Timestamp) -> (u16, u16) {
    let (width, height) = model.size;
    let tour = tour::height(model, width, height);
    let room = height.saturating_sub(FRAME + tour);
    let said = told(model, width, room, now).len();
    let said = u16::try_from(said).unwrap_or(u16::MAX);
    (width, room.saturating_sub(said))
}

/// Draws the frame. Returns the time at which a drawn label, such as an age, changes; None if no label changes.
pub fn view(
    model: &Model,
    world: &World,
    now: Timestamp,
    buffer: &mut Buffer,
) -> Option<Timestamp> {
    view_noting(model, world, now, buffer).turns.get()
}

/// Draws the frame. Returns the links in the frame, and the time at which a drawn label changes.
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
    let (head, foot) = (HEAD.min(height), FOOT);
    let room = height.saturating_sub(head + foot + tour);
    let told = told(model, sheet.width(), room, now);
    let said = u16::try_from(told.len()).unwrap_or(u16::MAX);
    let body = room.saturating_sub(said);
    header(&mut sheet, &scene);
    model.front().view(&mut sheet.rows(head, body), &scene);
    if tour > 0 {
        tour::view(&mut sheet.rows(head + body, tour), model);
    }
    if let Some(notice) = model.notice.as_ref().filter(|_| said > 0) {
        let mut part = sheet.rows(head + body + tour, said);
        part.turn(notice.ends());
        for (row, line) in (0..).zip(&told) {
            part.line(row).skip(1).put(line, notice_role(notice));
        }
    }
    let mut last = sheet.rows(height.saturating_sub(foot), foot);
    match &model.over {
        Some(Over::Prompt(prompt)) => line(&mut last, prompt),
        _ => footer(&mut last, &scene),
    }
    let above = sheet.rows(head, body);
    over(above, model);
    sheet.to_ascii();
    notes
}

fn header(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let target_info = &model.target_info;
    let (now, dot) = (sheet.now, sheet.glyphs.dot);
    let zoned = now.to_zoned(target_info.zone.clone());
    let clock = zoned.strftime("%H:%M").to_string();
    let as_of = model.front().as_of();
    // The clock shows no seconds, because bowline would have to draw a frame every second.
    let minute = now.as_second().div_euclid(60) * 60 + 60;
    if let Ok(at) = Timestamp::from_second(minute)
        && as_of.is_none()
    {
        sheet.turn(at);
    }
    let armed = target_info.armed.filter(|until| now < *until).map(|until| {
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
        (8, one(target_info.name.clone(), Role::Text)),
    ];
    let standing = target_info.work_tree_words().into_iter();
    for (at, (words, matters)) in standing.enumerate() {
        let role = if matters { Role::Warning } else { Role::Text };
        parts.push(match at {
            0 => (7, apart(&words, role)),
            _ => (5, vec![(", ".to_owned(), Role::Muted), (words, role)]),
        });
    }
    for (need, part) in [(3, &target_info.namespace), (2, &target_info.user)] {
        if !part.is_empty() {
            parts.push((need, apart(part, Role::Text)));
        }
    }
    if let Some(connecting) = &model.connecting {
        let word = match connecting.target_info {
            Some(_) => "connected",
            None => "connecting",
        };
        let words = format!("{word} to {}", connecting.place);
        parts.push((6, apart(&words, Role::Progressing)));
    }
    let banner = match (armed, target_info.unwritable(now)) {
        (Some(left), _) => Some((left, Role::Armed)),
        (None, Some(_)) => Some((" READ-ONLY ".to_owned(), Role::Readonly)),
        (None, None) => None,
    };
    parts.extend(banner.map(|banner| (STAYS, vec![("  ".to_owned(), Role::Text), banner])));
    if target_info.simulated {
        parts.push((4, one("  simulated".to_owned(), Role::Warning)));
        parts.push((1, one(" data plane".to_owned(), Role::Warning)));
    }
    let mut right: Vec<Part> = match as_of {
        // At a past time, the header shows neither freshness nor a running clock, because the past does not change.
        Some(at) => {
            let moment = format!(" AS OF {} ", target_info.clock(at, now));
            vec![(
                STAYS,
                vec![("  ".to_owned(), Role::Text), (moment, Role::AsOf)],
            )]
        }
        None => {
            let (fresh, role) = freshness(sheet, scene.world);
            vec![
                (STAYS, one(format!("  {fresh} "), role)),
                (2, one(format!("   {clock} "), Role::Muted)),
            ]
        }
    };
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

/// A part of the header with its priority. If the header is too long, the parts with the lowest priority are left out
/// first.
type Part = (u8, Vec<(String, Role)>);

/// The priority of parts that are always drawn: freshness and read-only.
const STAYS: u8 = 9;

fn wide(parts: &[Part]) -> usize {
    let spans = parts.iter().flat_map(|(_, spans)| spans);
    spans.map(|(words, _)| text::width(words)).sum()
}

/// Returns the priority and the index of the part to leave out next: the last part among those with the lowest
/// priority. None if there are no parts.
fn least(parts: &[Part]) -> Option<(u8, usize)> {
    let may_go = parts.iter().enumerate().rev();
    let may_go = may_go.filter(|(_, (need, _))| *need < STAYS);
    may_go
        .map(|(at, (need, _))| (*need, at))
        .min_by_key(|(need, _)| *need)
}

/// Describes whether the data is current: names the kinds that are still loading, or else the data that has been
/// stale for the longest time.
fn freshness(sheet: &Sheet<'_>, world: &World) -> (String, Role) {
    let mut stale = None;
    let mut loading: Vec<&str> = Vec::new();
    for source in world.sources() {
        match world.freshness(source) {
            Freshness::Live | Freshness::Absent => {}
            Freshness::Loading => loading.push(source.word()),
            Freshness::Stale { since, denied, .. } => {
                let older = stale.is_none_or(|(known, _)| *since < known);
                if older {
                    stale = Some((*since, *denied));
                }
            }
        }
    }
    match loading.as_slice() {
        [] => {}
        [one] => return (format!("loading {one}"), Role::Progressing),
        [first, rest @ ..] => {
            let words = format!("loading {first} and {} more", rest.len());
            return (words, Role::Progressing);
        }
    }
    match stale {
        None if !world.absent_kinds().is_empty() => match world.workloads().next() {
            // bowline shows workloads even if its own kinds are not installed in the cluster, so this is not an
            // error.
            Some(_) => ("live, bowline is not installed".to_owned(), Role::Muted),
            None => ("kinds missing".to_owned(), Role::Stale),
        },
        None => ("live".to_owned(), Role::Good),
        Some((_, true)) => ("some kinds are not readable".to_owned(), Role::Stale),
        Some((since, false)) => (format!("STALE {}", sheet.age(since)), Role::Stale),
    }
}

/// Draws a line with the titles of the open screens, and with the filter and the totals of the front screen.
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
    // If there is too little room, leave out the last totals, because they are the least important.
    while wide(&parts) >= pen.room() && parts.pop().is_some() {}
    let gap = pen.room().saturating_sub(wide(&parts));
    pen.skip(u16::try_from(gap).unwrap_or_default());
    for (part, role) in parts {
        pen.put(&part, role).skip(2);
    }
}

/// Draws the last line: the pressed keys of a chord, or else the keys of the front screen.
fn footer(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let model = scene.model;
    let (keymap, modes) = (&model.look.keymap, model.front().modes());
    let now = sheet.now;
    let is_wide = sheet.width() >= ROOM_FOR_HELP;
    let mut pen = sheet.line(0);
    pen.skip(1);
    if !model.pressed.is_empty() {
        let so_far = super::keymap::Key::print(&model.pressed);
        pen.put(&so_far, Role::Key).put(" ...", Role::Muted);
        return;
    }
    let hints = model.front().hints();
    let selected = model.front().subject(scene.world).components;
    // Reserve room for the help key, because the help lists all keys for which the footer has no room.
    let help = hints.iter().find(|(action, _)| *action == Action::Help);
    let help = help.filter(|_| is_wide).and_then(|(action, word)| {
        let keys = keymap.keys_for(modes, *action)?;
        Some(text::width(&keys) + text::width(word) + 3)
    });
    let mut reserved = help.unwrap_or_default();
    let mut is_full = false;
    for group in hints.chunk_by(|(_, one), (_, next)| one == next) {
        let Some((action, word)) = group.first() else {
            continue;
        };
        let keys = group.iter();
        let keys: Vec<String> = keys
            .filter_map(|(action, _)| keymap.keys_for(modes, *action))
            .collect();
        if keys.is_empty() {
            continue;
        }
        let keys = keys.join("/");
        // The footer shows an action that is not allowed or not possible, but dimmed.
        let lacks = |name: &Arc<str>| {
            from_keys::not_for_workloads(*action, name).is_some()
                || model.target_info.lacks(name).is_some()
        };
        let refused = action.plans()
            && (model.target_info.unwritable(now).is_some() || selected.iter().any(lacks));
        let (key, description) = match refused {
            true => (Role::Muted, Role::Muted),
            false => (Role::Key, Role::KeyDescription),
        };
        let wide = text::width(&keys) + text::width(word) + 3;
        if *action == Action::Help {
            reserved = 0;
        }
        let is_kept = is_wide && *action == Action::Help;
        is_full |= pen.room() < wide + reserved && !is_kept;
        if is_full && !is_kept || pen.room() < wide {
            continue;
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

/// Wraps the current notice into lines. Returns no lines if the notice has expired, or if a prompt is open.
fn told(model: &Model, width: u16, room: u16, now: Timestamp) -> Vec<String> {
    let is_free = model.over.is_none() && model.pressed.is_empty();
    let notice = model.notice.as_ref().filter(|_| is_free);
    let Some(notice) = notice.filter(|notice| now < notice.ends()) else {
        return Vec::new();
    };
    let width = usize::from(width.saturating_sub(2));
    let mut lines = wrap(&notice.text, width);
    let most = usize::from(room);
    if lines.len() > most {
        lines.truncate(most);
        // There is no room for further lines, so the last line ends with dots.
        if let Some(last) = lines.last_mut() {
            last.push_str(" ...");
            *last = text::fit(last, width);
        }
    }
    lines
}

/// Draws the prompt line, in which the user types.
fn line(sheet: &mut Sheet<'_>, prompt: &Prompt) {
    let mut pen = sheet.line(0);
    pen.put(prompt.sign(), Role::Prompt);
    let column = pen.column();
    let area = Rect {
        x: sheet.area.x + column,
        width: sheet.area.width.saturating_sub(column),
        ..sheet.area
    };
    sheet.part(area).widget(&prompt.line);
}

fn over(mut sheet: Sheet<'_>, model: &Model) {
    match &model.over {
        Some(Over::Prompt(prompt)) if !prompt.offers.is_empty() => offers(&mut sheet, prompt),
        Some(Over::Choice(choice)) => choices(&mut sheet, choice),
        Some(Over::Prompt(prompt)) => {
            if let Some(complaint) = &prompt.complaint {
                complain(&mut sheet, complaint);
            }
        }
        None => which_key(&mut sheet, model),
    }
}

/// Draws the message about a mistake in the typed line, above this line.
fn complain(sheet: &mut Sheet<'_>, complaint: &str) {
    let width = usize::from(sheet.width().saturating_sub(2));
    let lines = wrap(complaint, width);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let height = height.min(sheet.height());
    let mut part = sheet.rows(sheet.height() - height, height);
    part.clear();
    for (row, line) in (0..height).zip(&lines) {
        part.line(row).skip(1).put(line, Role::Error);
    }
}

/// Draws the list of completions, above the typed line.
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

/// Writes a completion, and highlights the characters that match the typed text.
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
    let (count, rows) = (choice.options.len(), usize::from(height.saturating_sub(2)));
    let first = scrolled(0, choice.chosen, rows, count);
    let seen = choice.options.iter().enumerate().skip(first);
    for (row, (at, (name, _))) in (1..height.saturating_sub(1)).zip(seen) {
        let mut pen = part.line(row);
        if at == choice.chosen {
            pen.over(Role::Selection);
        }
        pen.skip(2)
            .put(&format!("{} ", at + 1), Role::Key)
            .put(name, Role::Text)
            .rest();
    }
    let more = match count > rows {
        true => format!("{} to {} of {count}", first + 1, (first + rows).min(count)),
        false => String::new(),
    };
    part.rule(height - 1, &more, Role::Muted);
}

/// Draws the keys that can continue the chord.
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
