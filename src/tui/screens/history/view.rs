//! Draws the list of revisions, and the details of the selected revision.

use jiff::Timestamp;

use super::{Found, History, missing, number};
use crate::api::openchoreo::release::Verdict;
use crate::engine::revisions::{Revision, Row, State};
use crate::engine::world::Key;
use crate::pen::{Glyphs, Pen, Sheet};
use crate::screens::matrix::pane::{done, word};
use crate::screens::{BAD, Scene, is_bad};
use crate::subjects::release_pin::matrix;
use crate::subjects::release_pin::revisions::Pinned;
use crate::text;
use crate::theme::Role;
use crate::widgets::{scrolled, wrap};

/// The widths of the columns for one width of the screen; 0 for a column that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Widths {
    number: u16,
    release: u16,
    when: u16,
    lasted: u16,
    what: u16,
    by: u16,
    outcome: u16,
}

impl Widths {
    fn of(width: u16, label: usize, today: bool) -> Self {
        let label = u16::try_from(label).unwrap_or(u16::MAX);
        let release = (label + 7).clamp(10, 34).min((width / 4).max(14));
        Self {
            number: 6,
            release,
            when: match (width, today) {
                (..60, _) => 0,
                (_, true) => 10,
                (_, false) => 18,
            },
            lasted: 8,
            what: if width < 70 { 0 } else { 16 },
            by: match width {
                ..90 => 0,
                90..150 => 14,
                _ => 22,
            },
            outcome: if width < 110 { 0 } else { 14 },
        }
    }
}

impl History {
    /// Draws the list of revisions.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        match &self.found {
            Found::Reading => {
                let words = "Loading revisions...";
                sheet.line(1).skip(3).put(words, Role::Muted);
            }
            Found::Failed(why) => {
                let width = usize::from(sheet.width().saturating_sub(6));
                for (row, line) in (1..).zip(wrap(why, width)) {
                    sheet.line(row).skip(3).put(&line, Role::Warning);
                }
            }
            Found::Known(_) => self.list(sheet, scene),
        }
    }

    fn list(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let target_info = &scene.model.target_info;
        let component = Key::new(&target_info.namespace, &self.place.component);
        let rows: Vec<&Row<Pinned>> = self.rows().collect();
        let all: Vec<&Row<Pinned>> = self.all().collect();
        if rows.is_empty() && !all.is_empty() {
            sheet.line(1).skip(3).put(&scene.no_match(), Role::Muted);
            return;
        }
        let height = usize::from(sheet.height().saturating_sub(1));
        let at = self.position();
        let first = scrolled(at.saturating_sub(height / 2), at, height, rows.len());
        let seen = || rows.iter().enumerate().skip(first).take(height);
        let label = |revision: &Revision<Pinned>| {
            let content = revision.content.as_ref();
            content.map_or("?".to_owned(), |content| {
                matrix::label(scene.world, &component, &content.release.name).to_owned()
            })
        };
        let known = |row: &Row<Pinned>| match row {
            Row::Known(revision) => Some(text::width(&label(revision))),
            Row::Missing(_) => None,
        };
        let longest = seen().filter_map(|(_, row)| known(row)).max();
        let now = sheet.now;
        let clock = |at: Timestamp| target_info.clock(at, now);
        let today = seen().all(|(_, row)| match row {
            Row::Known(revision) => revision.created.is_none_or(|at| clock(at).len() <= 8),
            Row::Missing(_) => true,
        });
        let widths = Widths::of(sheet.width(), longest.unwrap_or_default(), today);
        header(sheet, widths);
        for (y, (index, row)) in (1..).zip(seen()) {
            let selected = index == at;
            let Row::Known(revision) = row else {
                gap(sheet, y, widths, row, selected);
                continue;
            };
            // The rows above this one contain newer revisions. The filter may hide the next one.
            let newer = all.iter().take_while(|other| !std::ptr::eq(**other, *row));
            let newer: Vec<&&Row<Pinned>> = newer.collect();
            let next = newer.into_iter().rev().find_map(|row| match row {
                Row::Known(next) => next.created,
                Row::Missing(_) => None,
            });
            let lasted = match (revision.created, next) {
                (Some(from), Some(to)) => text::age(to.duration_since(from).as_secs()),
                (Some(from), None) => sheet.age(from),
                (None, _) => "?".to_owned(),
            };
            let when = revision.created.map_or("?".to_owned(), clock);
            let name = revision
                .content
                .as_ref()
                .map(|content| &content.release.name);
            let line = Line {
                revision,
                label: label(revision),
                bad: revision.mark == Some(Verdict::Bad)
                    || name.is_some_and(|name| is_bad(scene.world, &target_info.namespace, name)),
                when,
                lasted,
                selected,
                marked: self.marked.contains(&number(row)),
            };
            line.put(sheet, y, widths);
        }
    }

    /// Draws the details of the selected revision below the list.
    pub fn detail(&self, sheet: &mut Sheet<'_>) {
        let Some(row) = self.row() else {
            return;
        };
        let mut said: Vec<(String, Role)> = Vec::new();
        match row {
            Row::Missing(_) => {
                sheet.rule(0, &missing(row), Role::Title);
                let words = "A revision without a record cannot be compared or restored.";
                said.push((words.to_owned(), Role::Muted));
            }
            Row::Known(revision) => {
                sheet.rule(0, &format!("revision {}", revision.number), Role::Title);
                said.extend(sentences(revision));
            }
        }
        let width = usize::from(sheet.width().saturating_sub(6));
        let mut y = 1;
        for (words, role) in said {
            for line in wrap(&words, width) {
                sheet.line(y).skip(3).put_wrapped(&line, width, role);
                y += 1;
            }
        }
    }
}

/// Describes a revision in sentences.
fn sentences(revision: &Revision<Pinned>) -> Vec<(String, Role)> {
    let mut said = Vec::new();
    let release = revision.content.as_ref().map(|content| &content.release);
    let name = release.map_or("an unrecorded release", |it| it.name.as_str());
    let made = match &revision.cause {
        None => format!("{name}; the user who deployed it is not recorded."),
        Some(cause) => {
            let by = cause.actor.as_deref().unwrap_or("somebody");
            let why = cause.reason.as_deref();
            let why = why.map_or(", without a reason".to_owned(), |why| {
                format!(": \"{why}\"")
            });
            format!("{name}, {} by {by}{why}.", done(cause.action))
        }
    };
    said.push((made, Role::Text));
    if let Some(from) = revision.restored_from {
        let words = format!("It restored revision {from}.");
        said.push((words, Role::Text));
    }
    let (_, role) = outcome(revision.state, &crate::pen::ASCII);
    let why = revision.why.as_deref();
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    let state = match revision.state {
        State::Current => "It is effective, and its health is not known yet".to_owned(),
        State::Healthy => "It is healthy, or was healthy when it was replaced".to_owned(),
        State::Unhealthy => "It is unhealthy, or was unhealthy when it was replaced".to_owned(),
        State::Unknown => "It was replaced before its health was known".to_owned(),
        State::Superseded => "It was replaced, and its health is not recorded".to_owned(),
    };
    said.push((format!("{state}{why}."), role));
    for hold in revision.content.iter().flat_map(|content| &content.holds) {
        let why = hold.reason.as_deref().unwrap_or("no reason was given");
        said.push((format!("Held by {}: {why}.", hold.owner), Role::Hold));
    }
    let mut small = Vec::new();
    if let Some(operation) = revision.cause.iter().find_map(|it| it.operation.as_ref()) {
        small.push(format!("operation {operation}"));
    }
    if let Some(hash) = &revision.hash {
        small.push(format!("content {hash}"));
    }
    if !small.is_empty() {
        said.push((small.join("   "), Role::Muted));
    }
    said
}

fn header(sheet: &mut Sheet<'_>, widths: Widths) {
    let mut pen = sheet.line(0);
    pen.skip(3);
    for (word, width) in [
        ("REV", widths.number),
        ("RELEASE", widths.release),
        ("WHEN", widths.when),
        ("LASTED", widths.lasted),
        ("WHAT", widths.what),
        ("BY", widths.by),
        ("OUTCOME", widths.outcome),
    ] {
        if width > 0 {
            pen.cell(word, width, Role::Header);
        }
    }
    if pen.room() > 8 {
        pen.put("REASON", Role::Header);
    }
}

fn gap(sheet: &mut Sheet<'_>, y: u16, widths: Widths, row: &Row<Pinned>, selected: bool) {
    let glyphs = sheet.glyphs;
    let mut pen = sheet.line(y);
    sign(&mut pen, glyphs, selected, false);
    if selected {
        pen.over(Role::Selection);
    }
    pen.cell("", widths.number, Role::Muted)
        .put(&missing(row), Role::Unknown)
        .rest();
}

fn sign(pen: &mut Pen<'_>, glyphs: &Glyphs, selected: bool, marked: bool) {
    let (sign, role) = match (selected, marked) {
        (_, true) => (glyphs.marked, Role::Marked),
        (true, false) => (glyphs.cursor, Role::Title),
        (false, false) => (" ", Role::Text),
    };
    pen.skip(1).cell(sign, 2, role);
}

/// The content of one row of the list.
struct Line<'a> {
    revision: &'a Revision<Pinned>,
    label: String,
    bad: bool,
    when: String,
    lasted: String,
    selected: bool,
    marked: bool,
}

impl Line<'_> {
    fn put(&self, sheet: &mut Sheet<'_>, y: u16, widths: Widths) {
        let glyphs = sheet.glyphs;
        let revision = self.revision;
        let cause = revision.cause.as_ref();
        let (glyph, role) = outcome(revision.state, glyphs);
        let mut pen = sheet.line(y);
        sign(&mut pen, glyphs, self.selected, self.marked);
        if self.selected {
            pen.over(Role::Selection);
        }
        let number = match self.marked {
            true => Role::Marked,
            false => Role::Text,
        };
        pen.cell(&revision.number.to_string(), widths.number, number);
        let end = pen.column() + widths.release;
        let held = revision
            .content
            .as_ref()
            .is_some_and(|content| !content.holds.is_empty());
        let hold = match held {
            true => text::width(glyphs.held) + 1,
            false => 0,
        };
        let bad = if self.bad { BAD.len() + 1 } else { 0 };
        let room = usize::from(widths.release).saturating_sub(3 + hold + bad);
        pen.put(glyph, role)
            .put(" ", role)
            .put(&text::fit(&self.label, room), Role::Text);
        if self.bad {
            pen.put(" ", Role::Degraded).put(BAD, Role::Degraded);
        }
        if held {
            pen.put(" ", Role::Hold).put(glyphs.held, Role::Hold);
        }
        pen.to(end);
        if widths.when > 0 {
            pen.cell(&self.when, widths.when, Role::Muted);
        }
        pen.cell(&self.lasted, widths.lasted, Role::Muted);
        if widths.what > 0 {
            let mut what = cause.map_or("?", |cause| word(cause.action)).to_owned();
            if let Some(from) = revision.restored_from {
                what += &format!(" {}{from}", glyphs.back);
            }
            let fit = text::fit(&what, usize::from(widths.what.saturating_sub(1)));
            pen.cell(&fit, widths.what, Role::Text);
        }
        if widths.by > 0 {
            let by = cause.and_then(|cause| cause.actor.as_deref());
            let fit = text::fit(by.unwrap_or("?"), usize::from(widths.by.saturating_sub(1)));
            pen.cell(&fit, widths.by, Role::Text);
        }
        if widths.outcome > 0 {
            pen.cell(revision.state.word(), widths.outcome, role);
        }
        if pen.room() > 8
            && let Some(reason) = cause.and_then(|cause| cause.reason.as_deref())
        {
            pen.put(reason, Role::Muted);
        }
        pen.rest();
    }
}

/// Returns the symbol and the role for the outcome of a revision.
fn outcome(state: State, glyphs: &Glyphs) -> (&'static str, Role) {
    match state {
        State::Current => (glyphs.progressing, Role::Progressing),
        State::Healthy => (glyphs.ready, Role::Good),
        State::Unhealthy => (glyphs.degraded, Role::Degraded),
        State::Unknown => (glyphs.unknown, Role::Unknown),
        State::Superseded => (glyphs.nothing, Role::Muted),
    }
}
