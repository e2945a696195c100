//! Draws the component screen: environments, details of the selected environment, revisions.

use super::State;
use crate::engine::world::Key;
use crate::pen::{Glyphs, Sheet};
use crate::screens::matrix::{health, pane};
use crate::screens::{BAD, Scene};
use crate::subjects::release_pin::matrix::{self, Cell};
use crate::text;
use crate::theme::Role;
use crate::widgets::{scrolled, wrap};

/// The maximum number of rows for the list of environments.
const ENVIRONMENTS: u16 = 8;
/// The maximum number of rows for the sentences about the selected environment.
const SAID: u16 = 6;

impl State {
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let component = &self.component;
        if sheet.height() < 14 {
            let row = self.narrow(sheet, scene, component);
            let height = sheet.height().saturating_sub(row);
            self.history.view(&mut sheet.rows(row, height), scene);
            return;
        }
        self.head(sheet, scene, component);
        let mut row = self.environments(sheet, scene, component, 2) + 1;
        row = self.said(sheet, scene, component, row);
        let title = format!("revisions in {}", self.history.place.environment);
        sheet.rule(row, &title, Role::Title);
        let height = sheet.height().saturating_sub(row + 1);
        self.history.view(&mut sheet.rows(row + 1, height), scene);
    }

    fn head(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, component: &Key) {
        let mut releases = scene.world.releases_of(component);
        let newest = releases.next();
        let all = newest.map_or(0, |_| releases.count() + 1);
        let words = newest.map_or("no release yet ".to_owned(), |newest| {
            let label = matrix::label(scene.world, component, &newest.key.name);
            let age = sheet.age(newest.created);
            let plural = if all == 1 { "release" } else { "releases" };
            format!("{all} {plural}, newest {label}, created {age} ago ")
        });
        sheet
            .line(0)
            .skip(1)
            .put(&self.component.name, Role::Title)
            .skip(2)
            .right(&words, Role::Muted);
    }

    /// Draws one row per environment; returns the index of the next free row of the sheet.
    fn environments(
        &self,
        sheet: &mut Sheet<'_>,
        scene: &Scene<'_>,
        component: &Key,
        row: u16,
    ) -> u16 {
        let names = self.columns.names();
        let longest = names.iter().map(|name| text::width(name)).max();
        let longest = u16::try_from(longest.unwrap_or_default()).unwrap_or(u16::MAX);
        let name = (longest + 2).clamp(13, (sheet.width() / 4).max(14));
        let release = (sheet.width() / 5).clamp(16, 30);
        let mut pen = sheet.line(row);
        pen.skip(3)
            .cell("ENVIRONMENT", name, Role::Header)
            .cell("RUNS", release, Role::Header)
            .cell("SINCE", 8, Role::Header);
        if pen.room() > 20 {
            pen.put("STATE", Role::Header);
        }
        let height = usize::from(ENVIRONMENTS.min(sheet.height() / 4).max(2));
        let first = scrolled(0, self.column, height, names.len());
        let seen = names.iter().enumerate().skip(first).take(height);
        let (mut y, now) = (row + 1, sheet.now);
        for (column, environment) in seen {
            let cell = matrix::cell(scene.world, &self.columns, component, column, sheet.now);
            let since = cell.as_ref().and_then(|cell| cell.since);
            let age = since.map_or(String::new(), |since| sheet.age(since));
            let glyphs = sheet.glyphs;
            let production = self.columns.is_production(&component.namespace, column);
            let selected = column == self.column;
            let mut pen = sheet.line(y);
            let sign = if selected { glyphs.cursor } else { " " };
            pen.skip(1).cell(sign, 2, Role::Title);
            let role = match production {
                true => Role::Production,
                false => Role::Text,
            };
            if selected {
                pen.over(Role::Selection);
            }
            pen.cell(environment, name, role);
            let end = pen.column() + release;
            match &cell {
                None => {
                    let target_info = &scene.model.target_info;
                    let sign = match target_info.left_out(&component.name, environment).is_some() {
                        true => glyphs.unknown,
                        false => glyphs.nothing,
                    };
                    pen.put(sign, Role::Muted);
                }
                Some(cell) => {
                    let (glyph, role) = health(cell.health(), glyphs);
                    let signs = signs(cell, glyphs);
                    let room = usize::from(release).saturating_sub(3 + text::width(&signs));
                    pen.put(glyph, role)
                        .put(" ", role)
                        .put(&text::fit(cell.label, room), Role::Text)
                        .put(&signs, Role::Behind);
                }
            }
            pen.to(end).cell(&age, 8, Role::Muted);
            if pen.room() > 20
                && let Some(cell) = &cell
            {
                let (_, role) = health(cell.health(), glyphs);
                pen.put(cell.health().word(), role);
                // `judged` returns the Ready condition only if the condition describes the effective release.
                let pin = scene.world.pin_of(component, environment);
                let ready = pin.and_then(|pin| pin.judged(now));
                let message = ready.map_or("", |ready| &*ready.message);
                if !message.is_empty() && cell.health() != matrix::Health::Ready {
                    pen.put(": ", role).put(message, role);
                }
            }
            pen.rest();
            y += 1;
        }
        y
    }

    /// Draws the sentences about the selected environment; returns the index of the next free row of the sheet.
    fn said(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, component: &Key, row: u16) -> u16 {
        let title = format!(
            "{} in {}",
            self.component.name, self.history.place.environment
        );
        sheet.rule(row, &title, Role::Title);
        let width = usize::from(sheet.width().saturating_sub(4));
        let environment = &self.history.place.environment;
        let pin = scene.world.pin_of(component, environment);
        let made = pin.and_then(|pin| self.history.made(pin, sheet.now));
        let made = made
            .as_ref()
            .map(|made| made.as_ref().map_err(String::as_str));
        let place = (&self.columns, self.column);
        let said = pane::sentences(sheet, scene, place, component, made);
        let room = SAID.min(sheet.height().saturating_sub(row + 6));
        let mut y = row + 1;
        for (words, role) in said {
            for line in wrap(&words, width) {
                if y > row + room {
                    return y;
                }
                sheet.line(y).skip(3).put_wrapped(&line, width, role);
                y += 1;
            }
        }
        y
    }

    /// Draws only the selected environment in two rows, because the terminal has few rows. Returns the index of the
    /// next free row.
    fn narrow(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, component: &Key) -> u16 {
        let cell = matrix::cell(
            scene.world,
            &self.columns,
            component,
            self.column,
            sheet.now,
        );
        let since = cell.as_ref().and_then(|cell| cell.since);
        let age = since.map_or(String::new(), |since| sheet.age(since));
        let glyphs = sheet.glyphs;
        let last = self.columns.names().len().saturating_sub(1);
        let mut pen = sheet.line(0);
        pen.skip(1)
            .put(if self.column > 0 { "< " } else { "  " }, Role::Key)
            .put(&self.history.place.environment, Role::Title)
            .put(if self.column < last { " >" } else { "  " }, Role::Key)
            .skip(1);
        match &cell {
            None => {
                pen.put("not deployed", Role::Muted);
            }
            Some(cell) => {
                let (glyph, role) = health(cell.health(), glyphs);
                let signs = signs(cell, glyphs);
                pen.put(glyph, role)
                    .put(" ", role)
                    .put(cell.label, Role::Text)
                    .put(&signs, Role::Behind)
                    .right(&format!("{age} "), Role::Muted);
            }
        }
        1
    }
}

/// Returns the progress of a cell's rollout, followed by the symbols for behind, a bad release, and
/// a hold.
fn signs(cell: &Cell<'_>, glyphs: &Glyphs) -> String {
    let mut signs = String::new();
    if let Some(progress) = cell.progress {
        signs += &format!(" {progress}");
    }
    if let Some(count) = cell.behind.filter(|count| *count > 0) {
        signs += &format!(" {}{count}", glyphs.behind);
    }
    if cell.bad {
        signs += &format!(" {BAD}");
    }
    if cell.held > 0 {
        signs += &format!(" {}", glyphs.held);
    } else if cell.expired() > 0 {
        signs += &format!(" {}", glyphs.expired);
    }
    signs
}
