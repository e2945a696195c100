//! The columns of the lists of releases, ReleasePins and snapshots. Table cells are computed only for visible rows.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::Scene;
use super::super::matrix::health;
use super::opinion;
use crate::api::hold::Hold;
use crate::api::openchoreo::release::Verdict;
use crate::engine::world::{Key, World};
use crate::pen::Sheet;
use crate::roster::{Kind, RowSet, Sort};
use crate::subjects::release_pin::matrix::{self, Columns, Health};
use crate::subjects::release_pin::rows::{Pin, ReleaseRow, SnapshotRow};
use crate::text;
use crate::theme::Role;
use crate::widgets::table::{Cell, Column, Sorted, bad, cell};

const RELEASES: &[Column] = &[
    Column::new("COMPONENT", 12, 90).named(),
    Column::new("VERSION", 7, 100),
    Column::new("MADE", 4, 60).right(),
    Column::new("SIZE", 6, 50).right(),
    Column::new("RUNS IN", 20, 80),
    Column::new("BEHIND", 6, 40),
    Column::new("MARK", 12, 70),
    Column::new("IMAGES", 22, 30),
];
const RELEASES_OTHER: &[Column] = &[
    Column::new("RELEASE", 12, 100).named(),
    Column::new("CONTENT", 10, 60),
    Column::new("IN USE", 9, 70),
    Column::new("CLAIMED", 7, 50).right(),
    Column::new("OWNER", 5, 80),
    Column::new("LABELS", 16, 40),
];
const PINS: &[Column] = &[
    Column::new("COMPONENT", 10, 97).named(),
    Column::new("ENVIRONMENT", 10, 98).named(),
    Column::new("RELEASE", 7, 100).named(),
    // If there is no room for the word, the column shows only the symbol.
    Column::new("HEALTH", 1, 95),
    Column::new("SINCE", 5, 70).right(),
    Column::new("BEHIND", 6, 60),
    Column::new("HOLDS", 8, 80),
    Column::new("OWNER", 7, 40),
    Column::new("CHANGED BY", 10, 45),
];
const PINS_OTHER: &[Column] = &[
    Column::new("RELEASEPIN", 12, 100).named(),
    Column::new("RELEASE", 8, 70),
    Column::new("LAST GOOD", 9, 80),
    Column::new("REVISION", 8, 60).right(),
    Column::new("OBSERVED", 8, 50),
    Column::new("SNAPSHOT", 10, 40).named(),
    Column::new("LABELS", 16, 30),
];
const SNAPSHOTS: &[Column] = &[
    Column::new("COMPONENT", 9, 100).named(),
    Column::new("ENVIRONMENT", 8, 90).named(),
    Column::new("SIZE", 6, 70).right(),
    Column::new("AGE", 4, 60).right(),
    Column::new("USED BY", 8, 80).named(),
    Column::new("SNAPSHOT", 12, 50).named(),
];
const SNAPSHOTS_OTHER: &[Column] = &[
    Column::new("SNAPSHOT", 12, 100).named(),
    Column::new("REFERENCES", 10, 60),
    Column::new("LABELS", 16, 40),
];

/// Returns the columns for a kind of rows: the second set of columns if `other` is true, otherwise the first.
pub(super) fn of(kind: Kind, other: bool) -> &'static [Column] {
    match (kind, other) {
        (Kind::Releases, false) => RELEASES,
        (Kind::Releases, true) => RELEASES_OTHER,
        (Kind::Pins | Kind::Components, false) => PINS,
        (Kind::Pins | Kind::Components, true) => PINS_OTHER,
        (Kind::Snapshots, false) => SNAPSHOTS,
        (Kind::Snapshots, true) => SNAPSHOTS_OTHER,
    }
}

/// Returns the column by which the rows are sorted, and the direction. Ages count as ascending if the newest row is
/// first.
pub(super) fn sorted(kind: Kind, other: bool, (sort, reversed): (Sort, bool)) -> Sorted {
    let (head, falling) = match (kind, sort) {
        (_, Sort::Name) => (
            of(kind, other).first().map_or("", |first| first.head),
            false,
        ),
        (Kind::Releases, Sort::Changed) => ("MADE", false),
        (Kind::Pins | Kind::Components, Sort::Changed) => ("SINCE", false),
        (Kind::Snapshots, Sort::Changed) => ("AGE", false),
        (Kind::Releases, Sort::Health) => ("RUNS IN", true),
        (_, Sort::Health) => ("HEALTH", true),
        (_, Sort::Behind) => ("BEHIND", true),
        (_, Sort::Held) => ("HOLDS", true),
        (_, Sort::Size) => ("SIZE", true),
    };
    Sorted {
        head,
        falling: falling != reversed,
    }
}

/// Returns the table cells of a row: for the second set of columns if `other` is true, otherwise for the first.
pub(super) fn cells(
    kind: Kind,
    other: bool,
    sheet: &Sheet<'_>,
    scene: &Scene<'_>,
    roster: &RowSet,
    key: &Key,
) -> Vec<Cell> {
    let world = scene.world;
    let columns = roster.columns();
    let cells = match kind {
        Kind::Releases => world.release(key).map(|row| match other {
            false => release(sheet, world, columns, row),
            true => release_other(sheet, scene.world, row),
        }),
        Kind::Pins => world.pin(key).map(|pin| match other {
            false => self::pin(sheet, scene, columns, pin),
            true => pin_other(sheet, world, pin),
        }),
        Kind::Snapshots => world.snapshot(key).map(|row| match other {
            false => snapshot(sheet, world, row),
            true => snapshot_other(row),
        }),
        Kind::Components => None,
    };
    cells.unwrap_or_default()
}

/// Returns the environments in which a release is effective, in the order of the pipeline. With each environment
/// returns the health of its cell, and the number of releases by which the cell is behind.
pub(super) fn runs<'c>(
    world: &World,
    columns: &'c Columns,
    release: &Key,
    now: Timestamp,
) -> Vec<(&'c Arc<str>, (Health, usize))> {
    let mut found = Vec::new();
    for name in world.pins_naming(release) {
        let Some(pin) = world.pin(&Key::new(&release.namespace, name)) else {
            continue;
        };
        if pin.effective_release(now) != &*release.name {
            continue;
        }
        let Some(column) = columns.position(&pin.environment) else {
            continue;
        };
        let component = component(pin);
        let cell = matrix::glance(world, columns, &component, column, pin, now);
        let summary = (cell.health(), cell.behind.unwrap_or_default());
        found.extend(
            columns
                .names()
                .get(column)
                .map(|name| (column, name, summary)),
        );
    }
    found.sort_by_key(|(column, ..)| *column);
    found
        .into_iter()
        .map(|(_, name, summary)| (name, summary))
        .collect()
}

fn component(pin: &Pin) -> Key {
    Key {
        namespace: pin.key.namespace.clone(),
        name: pin.component.clone(),
    }
}

fn none(sheet: &Sheet<'_>) -> Cell {
    cell(sheet.glyphs.nothing, Role::Muted)
}

fn or_none(sheet: &Sheet<'_>, text: Option<&str>, role: Role) -> Cell {
    text.filter(|text| !text.is_empty())
        .map_or_else(|| none(sheet), |text| cell(text, role))
}

fn size(size: Option<u64>) -> Cell {
    match size {
        Some(size) => cell(text::bytes(size), Role::Muted),
        None => cell("?", Role::Unknown),
    }
}

/// Returns a table cell with the first 12 characters of a hash.
fn hash(sheet: &Sheet<'_>, hash: Option<&str>) -> Cell {
    let short: Option<String> = hash.map(|hash| hash.chars().take(12).collect());
    or_none(sheet, short.as_deref(), Role::Muted)
}

fn labels<'l>(labels: impl Iterator<Item = (&'l str, &'l str)>) -> Cell {
    let labels: Vec<String> = labels
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    cell(labels.join(","), Role::Muted)
}

fn behind(sheet: &Sheet<'_>, behind: usize) -> Cell {
    match behind {
        0 => cell("", Role::Muted),
        behind => cell(format!("{}{behind}", sheet.glyphs.behind), Role::Behind),
    }
}

fn release(sheet: &Sheet<'_>, world: &World, columns: &Columns, row: &ReleaseRow) -> Vec<Cell> {
    let runs = runs(world, columns, &row.key, sheet.now);
    let furthest = runs.iter().map(|(_, (_, behind))| *behind).max();
    let mut places: Cell = Vec::new();
    for (at, (name, (how, _))) in runs.iter().enumerate() {
        let (glyph, role) = health(*how, sheet.glyphs);
        if at > 0 {
            places.push(("  ".to_owned(), Role::Text));
        }
        places.push((format!("{glyph} "), role));
        places.push((name.to_string(), Role::Text));
    }
    let quiet = if runs.is_empty() {
        Role::Muted
    } else {
        Role::Text
    };
    let bare = || {
        let component = row.component.as_deref().unwrap_or_default();
        let rest = row.key.name.strip_prefix(component);
        let rest = rest.map(|rest| rest.trim_start_matches('-'));
        rest.filter(|rest| !rest.is_empty())
            .unwrap_or(&row.key.name)
    };
    vec![
        row.component
            .as_deref()
            .map_or_else(|| cell("?", Role::Unknown), |name| cell(name, quiet)),
        named(row, row.version.as_deref().unwrap_or_else(bare), quiet),
        cell(sheet.age(row.created), Role::Muted),
        size(row.size),
        places,
        behind(sheet, furthest.unwrap_or_default()),
        opinion(row).map_or_else(Vec::new, |(words, role)| cell(words, role)),
        match &row.images {
            Some(images) => cell(images.replace(',', ", "), Role::Muted),
            None => cell("?", Role::Unknown),
        },
    ]
}

/// Returns the table cell with the name of a release, and with the label "bad" if the release is marked bad.
fn named(row: &ReleaseRow, name: &str, role: Role) -> Cell {
    let mut what = cell(name, role);
    what.extend((row.mark == Some(Verdict::Bad)).then(bad));
    what
}

fn release_other(sheet: &Sheet<'_>, world: &World, row: &ReleaseRow) -> Vec<Cell> {
    vec![
        named(row, &row.key.name, Role::Text),
        hash(sheet, row.hash.as_deref()),
        match (world.pins_naming(&row.key).next().is_some(), row.deleting) {
            (_, true) => cell("deleting", Role::Warning),
            (true, _) => cell("yes", Role::Good),
            (false, _) => none(sheet),
        },
        match row.claimed {
            Some(at) => cell(sheet.age(at), Role::Muted),
            None => none(sheet),
        },
        or_none(sheet, row.gitops.map(|tool| tool.name()), Role::Text),
        labels(row.labels.iter()),
    ]
}

fn pin(sheet: &Sheet<'_>, scene: &Scene<'_>, columns: &Columns, pin: &Pin) -> Vec<Cell> {
    let world = scene.world;
    let key = component(pin);
    let column = columns.position(&pin.environment).unwrap_or(usize::MAX);
    let glance = matrix::glance(world, columns, &key, column, pin, sheet.now);
    let (glyph, role) = health(glance.health(), sheet.glyphs);
    let word = format!(" {}", glance.health().word());
    let mut how: Cell = vec![(glyph.to_owned(), role), (word, role)];
    if let Some(progress) = glance.progress {
        how.push((format!(" {progress}"), role));
    }
    let mut what = cell(glance.label, Role::Text);
    if glance.bad {
        what.push(bad());
    }
    if let Some(wanted) = glance.wanted {
        what.push((format!(" (releaseRef: {wanted})"), Role::Muted));
    }
    let production = columns.is_production(&key.namespace, column);
    vec![
        cell(&*pin.component, Role::Text),
        cell(
            &*pin.environment,
            if production {
                Role::Production
            } else {
                Role::Text
            },
        ),
        what,
        how,
        glance
            .since
            .map_or_else(|| none(sheet), |since| cell(sheet.age(since), Role::Muted)),
        behind(sheet, glance.behind.unwrap_or_default()),
        holds(sheet, scene, pin),
        or_none(sheet, pin.gitops.map(|tool| tool.name()), Role::Muted),
        or_none(sheet, pin.changed_by.as_deref(), Role::Muted),
    ]
}

fn holds(sheet: &Sheet<'_>, scene: &Scene<'_>, pin: &Pin) -> Cell {
    let target_info = &scene.model.target_info;
    let words = |hold: &Hold| {
        let mut words = hold.owner.clone();
        if let Some(until) = &hold.until {
            sheet.turn(until.0);
            words += &format!(" until {}", target_info.clock(until.0, sheet.now));
        }
        if let Some(reason) = &hold.reason {
            words += &format!(": {reason}");
        }
        words
    };
    let active: Vec<String> = pin.active_holds(sheet.now).map(words).collect();
    match (active.is_empty(), pin.holds.is_empty()) {
        (false, _) => cell(
            format!("{} {}", sheet.glyphs.held, active.join("; ")),
            Role::Hold,
        ),
        (true, false) => cell(format!("{} expired", sheet.glyphs.expired), Role::Muted),
        (true, true) => Vec::new(),
    }
}

fn pin_other(sheet: &Sheet<'_>, world: &World, pin: &Pin) -> Vec<Cell> {
    let good = matrix::good(world, pin, sheet.now);
    let seen = match pin.observed {
        None => cell("never", Role::Warning),
        Some(observed) if observed == pin.generation => cell("current", Role::Muted),
        Some(observed) => cell(format!("revision {observed}"), Role::Warning),
    };
    vec![
        cell(&*pin.key.name, Role::Text),
        cell(&*pin.release, Role::Text),
        match good {
            Some(good) => cell(format!("{} {}", sheet.glyphs.back, good.label), Role::Text),
            None => cell("none", Role::Muted),
        },
        cell(pin.generation.to_string(), Role::Muted),
        seen,
        or_none(sheet, pin.snapshot.as_deref(), Role::Muted),
        labels(pin.labels.iter()),
    ]
}

fn snapshot(sheet: &Sheet<'_>, world: &World, row: &SnapshotRow) -> Vec<Cell> {
    let component = Key {
        namespace: row.key.namespace.clone(),
        name: row.component.clone(),
    };
    let pin = world.pin_of(&component, &row.environment);
    let user = pin.filter(|pin| pin.snapshot.as_deref() == Some(&*row.key.name));
    let quiet = if user.is_some() {
        Role::Text
    } else {
        Role::Muted
    };
    vec![
        cell(&*row.component, quiet),
        cell(&*row.environment, quiet),
        size(row.size),
        cell(sheet.age(row.created), Role::Muted),
        match user {
            Some(pin) => cell(&*pin.key.name, Role::Text),
            None => cell("nobody", Role::Muted),
        },
        cell(&*row.key.name, Role::Muted),
    ]
}

fn snapshot_other(row: &SnapshotRow) -> Vec<Cell> {
    let references: String = row
        .references
        .as_deref()
        .unwrap_or_default()
        .chars()
        .take(12)
        .collect();
    vec![
        cell(&*row.key.name, Role::Text),
        cell(references, Role::Muted),
        labels(row.labels.iter()),
    ]
}
