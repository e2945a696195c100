//! The facts of a row that a filter checks, in a compact form, so that bowline can filter 100,000 rows after each key
//! press.
//!
//! All names of a row are one text, one name per line. The state of each cell takes a few bytes. bowline computes the
//! facts when the object of the row changes, so that a filter does not access the read model.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::api::hold::Hold;
use crate::engine::world::{Key, Labels, World};
use crate::subjects::release_pin::matrix::{self, Cell, Columns, Health};
use crate::subjects::release_pin::past::Recorded;
use crate::subjects::release_pin::rows::{Pin, ReleaseRow, SnapshotRow};
use crate::subjects::{self, workload};

/// The maximum size of a row's text in bytes. Only malicious objects have more names than fit; bowline leaves out the
/// rest.
const TEXT: usize = 16 * 1024;
/// The maximum length of one name in characters; a longer name is cut.
const NAME: usize = 300;

/// The inputs for computing the facts of a row.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub world: &'a World,
    /// The columns of the table, one per environment.
    pub columns: &'a Columns,
    /// The name of the current user, for the term `mine`.
    pub user: &'a str,
    pub now: Timestamp,
}

/// The facts of one row that filters check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The names of the row, one per line. The first is the name of the object itself.
    text: Box<str>,
    /// `text` in lower case; None if `text` is already in lower case.
    folded: Option<Box<str>>,
    places: Box<[Place]>,
    labels: Box<[Labels]>,
    /// The label lines of all objects of the row, without duplicates. For most rows, one search in this text decides
    /// whether a label selector matches.
    all_labels: Box<str>,
    /// The values by which screens sort and count rows.
    pub summary: RowSummary,
}

/// The values by which screens sort and count rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSummary {
    /// The worst health among the cells of the row.
    pub worst: Health,
    /// Whether at least one cell of the row is progressing.
    pub progressing: bool,
    /// The largest number of releases by which a cell of the row is behind.
    pub behind: u16,
    /// The number of the row's cells with an active hold.
    pub held: u16,
    /// The time of the latest change of a cell of the row. For a release or a snapshot, the time of its creation.
    pub changed: Option<Timestamp>,
    /// The size of the row's object in bytes; 0 if unknown.
    pub size: u64,
    /// The earliest end of an active hold of the row; None if no active hold has an end.
    pub expires: Option<Timestamp>,
}

impl Default for RowSummary {
    fn default() -> Self {
        Self {
            worst: Health::Ready,
            progressing: false,
            behind: 0,
            held: 0,
            changed: None,
            size: 0,
            expires: None,
        }
    }
}

/// The facts of one cell: the state of the row's object in one environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// The index of the environment's column, or [`NOWHERE`].
    pub(super) column: u16,
    pub(super) behind: Option<u16>,
    release: Span,
    version: Span,
    pub(super) health: Option<Health>,
    pub(super) held: bool,
    pub(super) bad: bool,
    pub(super) mine: bool,
}

/// The column number for a cell without a column: of a release that is effective nowhere, or of an environment that
/// the table does not show.
pub(super) const NOWHERE: u16 = u16::MAX;

/// A range of bytes in the text of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Span {
    start: u16,
    length: u16,
}

impl Facts {
    /// Returns the facts of a component, from its ReleasePins.
    pub fn of_component(view: &View<'_>, component: &Key) -> Self {
        let mut builder = Builder::default();
        builder.text.add(&component.name);
        for pin in view.world.pins_of(component) {
            builder.pin(view, component, pin, true);
        }
        let newest = view.world.releases_of(component).next();
        if builder.places.is_empty()
            && let Some(newest) = newest
        {
            builder.facts.summary.changed = Some(newest.created);
        }
        builder.finish()
    }

    /// Returns the facts of a workload, which has one cell.
    pub fn of_workload(view: &View<'_>, row: &workload::rows::Row) -> Self {
        let mut builder = Builder::default();
        builder.text.add(&row.key.name);
        builder.labels(&row.labels);
        let name = workload::matrix::column(view.world, &row.key.namespace);
        let column = view.columns.position(name);
        let cell = column.and_then(|column| {
            let cell = subjects::matrix::cell(view.world, view.columns, &row.key, column, view.now);
            Some((column, cell?))
        });
        if let Some((column, cell)) = cell {
            let release = builder.text.add(cell.release);
            let mut active = row.holds.iter().filter(|hold| hold.is_active(view.now));
            let mine = active.any(|hold| hold.owner == view.user);
            builder.cell(column, &cell, release, release, mine);
            builder.ends(&row.holds, view.now);
        }
        builder.finish()
    }

    /// Returns the facts of a component at a past time. `cells` has one element per column.
    pub fn of_past(component: &Key, cells: &[Recorded<'_>]) -> Self {
        let mut builder = Builder::default();
        builder.text.add(&component.name);
        for (column, recorded) in cells.iter().enumerate() {
            let Recorded::Ran(cell) = recorded else {
                continue;
            };
            let release = builder.text.add(cell.release);
            let version = builder.text.add(cell.version);
            builder.cell(column, cell, release, version, false);
        }
        builder.finish()
    }

    /// Returns the facts of a row in the list of ReleasePins.
    pub fn of_pin(view: &View<'_>, pin: &Pin) -> Self {
        let mut builder = Builder::default();
        builder.text.add(&pin.key.name);
        builder.text.add(&pin.component);
        let component = Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        };
        builder.pin(view, &component, pin, false);
        builder.finish()
    }

    /// Returns the facts of a release. The row has a cell for each environment in which the release is effective.
    pub fn of_release(view: &View<'_>, release: &ReleaseRow) -> Self {
        let mut builder = Builder::default();
        let name = builder.text.add(&release.key.name);
        let version = builder
            .text
            .add(release.version.as_deref().unwrap_or_default());
        builder
            .text
            .add(release.component.as_deref().unwrap_or_default());
        builder
            .text
            .add(release.images.as_deref().unwrap_or_default());
        builder.labels(&release.labels);
        let bad = release.mark == Some(crate::api::openchoreo::release::Verdict::Bad);
        let pins = view.world.pins_naming(&release.key);
        let pins = pins.filter_map(|pin| {
            let pin = view.world.pin(&Key::new(&release.key.namespace, pin))?;
            Some((pin, view.columns.position(&pin.environment)?))
        });
        for (pin, column) in pins {
            // The end of a hold can change which release is effective, so the facts must be computed again then.
            builder.ends(&pin.holds, view.now);
            if pin.effective_release(view.now) != &*release.key.name {
                continue;
            }
            let component = Key {
                namespace: pin.key.namespace.clone(),
                name: pin.component.clone(),
            };
            let cell = matrix::glance(view.world, view.columns, &component, column, pin, view.now);
            builder.place(view, column, pin, &cell, name, version);
        }
        if builder.places.is_empty() {
            builder.places.push(Place {
                column: NOWHERE,
                behind: None,
                release: name,
                version,
                health: None,
                held: false,
                bad,
                mine: false,
            });
        }
        let summary = &mut builder.facts.summary;
        summary.changed = Some(release.created);
        summary.size = release.size.unwrap_or_default();
        builder.finish()
    }

    pub fn of_snapshot(view: &View<'_>, snapshot: &SnapshotRow) -> Self {
        let mut builder = Builder::default();
        builder.text.add(&snapshot.key.name);
        builder.text.add(&snapshot.component);
        builder.labels(&snapshot.labels);
        let column = view.columns.position(&snapshot.environment);
        builder.places.push(Place {
            column: column
                .and_then(|at| u16::try_from(at).ok())
                .unwrap_or(NOWHERE),
            behind: None,
            release: Span::default(),
            version: Span::default(),
            health: None,
            held: false,
            bad: false,
            mine: false,
        });
        let summary = &mut builder.facts.summary;
        summary.changed = Some(snapshot.created);
        summary.size = snapshot.size.unwrap_or_default();
        builder.finish()
    }

    /// Returns the facts of a row that is not an object of the read model, for example a line of a log. Only filters
    /// for words apply to these facts.
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut builder = Builder::default();
        for text in texts {
            builder.text.add(&crate::text::line(text));
        }
        builder.finish()
    }

    /// Returns the column that needs attention first, and its health: a column with a fault in
    /// production, or else the column with the worst health. None if no cell has a known health.
    pub fn worst_column(&self, is_production: impl Fn(usize) -> bool) -> Option<(usize, Health)> {
        let places = self.places.iter().filter(|place| place.column != NOWHERE);
        let worst = places.max_by_key(|place| {
            let column = usize::from(place.column);
            let fault = place.health.is_some_and(Health::is_fault);
            (
                fault && is_production(column),
                place.health,
                std::cmp::Reverse(column),
            )
        });
        worst.and_then(|place| Some((usize::from(place.column), place.health?)))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn folded(&self) -> &str {
        self.folded.as_deref().unwrap_or(&self.text)
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(super) fn labels(&self) -> &[Labels] {
        &self.labels
    }

    /// Returns the labels of all objects of the row as one text, in the format of [`Labels::text`].
    pub(super) fn all_labels(&self) -> &str {
        &self.all_labels
    }

    /// Returns the name and the version of the effective release of a cell.
    pub(super) fn release(&self, place: &Place) -> (&str, &str) {
        let part = |span: Span| {
            let start = usize::from(span.start);
            self.text
                .get(start..start + usize::from(span.length))
                .unwrap_or_default()
        };
        (part(place.release), part(place.version))
    }
}

/// Collects the facts of one row.
#[derive(Default)]
struct Builder {
    text: Text,
    places: Vec<Place>,
    labels: Vec<Labels>,
    facts: Facts,
}

impl Builder {
    fn labels(&mut self, labels: &Labels) {
        if !labels.is_empty() && !self.labels.contains(labels) {
            self.labels.push(labels.clone());
        }
    }

    /// Adds the cell of a ReleasePin and the labels of the ReleasePin. `with_release` also adds the
    /// labels of the effective release.
    fn pin(&mut self, view: &View<'_>, component: &Key, pin: &Pin, with_release: bool) {
        let Some(column) = view.columns.position(&pin.environment) else {
            return;
        };
        let cell = matrix::glance(view.world, view.columns, component, column, pin, view.now);
        let release = self.text.add(cell.release);
        let version = self.text.add(cell.version);
        self.labels(&pin.labels);
        if with_release {
            let key = Key {
                namespace: component.namespace.clone(),
                name: cell.release.into(),
            };
            if let Some(row) = view.world.release(&key) {
                self.labels(&row.labels);
            }
        }
        self.place(view, column, pin, &cell, release, version);
    }

    fn place(
        &mut self,
        view: &View<'_>,
        column: usize,
        pin: &Pin,
        cell: &Cell<'_>,
        release: Span,
        version: Span,
    ) {
        let held_by_me = || {
            let mut active = pin.active_holds(view.now);
            active.any(|hold| hold.owner == view.user)
        };
        let mine = pin.changed_by.as_deref() == Some(view.user) || held_by_me();
        self.cell(column, cell, release, version, mine);
        self.ends(&pin.holds, view.now);
    }

    /// Records the earliest end of these active holds, if it is before the end that the builder already has.
    fn ends(&mut self, holds: &[Hold], now: Timestamp) {
        let summary = &mut self.facts.summary;
        let ends = holds.iter().filter_map(|hold| Some(hold.until.as_ref()?.0));
        let next = ends.filter(|end| *end > now).min();
        summary.expires = match (summary.expires, next) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// Adds a cell, and updates the summary of the row.
    fn cell(&mut self, column: usize, cell: &Cell<'_>, release: Span, version: Span, mine: bool) {
        let small = |number: usize| u16::try_from(number).unwrap_or(u16::MAX - 1);
        let health = cell.health();
        let place = Place {
            column: small(column),
            behind: cell.behind.map(small),
            release,
            version,
            health: Some(health),
            held: cell.held > 0,
            bad: cell.bad,
            mine,
        };
        let summary = &mut self.facts.summary;
        summary.worst = summary.worst.max(health);
        summary.progressing |= health == Health::Progressing;
        summary.behind = summary.behind.max(place.behind.unwrap_or_default());
        summary.held = summary.held.saturating_add(u16::from(place.held));
        summary.changed = summary.changed.max(cell.changed());
        self.places.push(place);
    }

    fn finish(mut self) -> Facts {
        let lower = self.text.0.to_lowercase();
        self.facts.folded = (lower != self.text.0).then(|| lower.into());
        self.facts.text = self.text.0.into();
        self.facts.places = self.places.into();
        self.facts.all_labels = together(&self.labels).into();
        self.facts.labels = self.labels.into();
        self.facts
    }
}

/// Joins the labels of several objects into one text, without duplicate lines.
fn together(all: &[Labels]) -> String {
    let lines: BTreeSet<&str> = all
        .iter()
        .flat_map(|labels| labels.text().lines())
        .collect();
    let lines = lines.iter().filter(|line| !line.is_empty());
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("\n{lines}"),
    }
}

/// The names of a row, one per line, without duplicates.
#[derive(Default)]
struct Text(String);

impl Text {
    /// Adds a name, and returns the position of the name in the text. The position is empty for an empty name, or if
    /// the text is full.
    fn add(&mut self, name: &str) -> Span {
        let cut = name
            .char_indices()
            .nth(NAME)
            .map_or(name.len(), |(at, _)| at);
        let name = name.get(..cut).unwrap_or_default();
        if name.is_empty() || name.contains('\n') || self.0.len() + name.len() > TEXT {
            return Span::default();
        }
        let mut start = 0;
        let known = self.0.lines().any(|line| {
            let found = line == name;
            if !found {
                start += line.len() + 1;
            }
            found
        });
        if !known {
            self.0.push_str(name);
            self.0.push('\n');
        }
        Span {
            start: u16::try_from(start).unwrap_or_default(),
            length: u16::try_from(name.len()).unwrap_or_default(),
        }
    }
}
