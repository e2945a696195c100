//! Draws the matrix. Computes only the visible rows and columns.

use std::iter::{once, repeat};

use super::travel::Travel;
use super::{RECENT, State};
use crate::action::Action;
use crate::engine::world::{Freshness, Source};
use crate::pen::{Glyphs, Pen, Sheet};
use crate::roster::{RowSet, Seen, Sort};
use crate::screens::Scene;
use crate::subjects::release_pin::matrix::{Cell, Columns, Health};
use crate::subjects::release_pin::past::Recorded;
use crate::subjects::workload::WORKLOADS;
use crate::text;
use crate::theme::Role;
use crate::widgets::{scrolled, wrap};

/// The roles (colours) for the releases in a row. Cells with the same release have the same role.
const TINTS: [Role; 6] = [
    Role::Tint1,
    Role::Tint2,
    Role::Tint3,
    Role::Tint4,
    Role::Tint5,
    Role::Tint6,
];
/// The number of columns left of the first cell, for the cursor and the mark.
const MARGIN: u16 = 3;
/// The minimum width of a cell. If there is too little room for all cells of this width, some environments are
/// hidden.
const NARROWEST: u16 = 12;
/// The maximum width of a cell.
const WIDEST: u16 = 30;
/// The minimum width of the last column, which shows the revision that a rollback restores.
const BACK: u16 = 14;

/// The positions of the columns for one width of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    name: u16,
    cell: u16,
    /// The index of the first visible environment column.
    first: usize,
    count: usize,
    /// The width of the last column, which shows the revision that a rollback restores; 0 if this column does not
    /// fit.
    back: u16,
}

impl Layout {
    /// Computes the layout. `left` is the first visible environment of the last frame, `longest` the width of the
    /// longest component name, and `back` the width of the longest title of the last column.
    fn of(
        width: u16,
        columns: usize,
        selected: usize,
        left: usize,
        longest: usize,
        back: usize,
    ) -> Self {
        let longest = u16::try_from(longest).unwrap_or(u16::MAX);
        let name = longest.clamp(9, 34).min(width / 4).max(9) + 2;
        let room = width.saturating_sub(MARGIN + name);
        let all = u16::try_from(columns.max(1)).unwrap_or(u16::MAX);
        let wanted = u16::try_from(back).unwrap_or(u16::MAX).max(BACK);
        let fits = |back: &u16| room.saturating_sub(*back) / all >= 19;
        let back = [wanted, BACK].into_iter().find(fits).unwrap_or(0);
        let room = room.saturating_sub(back);
        let fit = usize::from(room / NARROWEST).max(1);
        // On a narrow screen, show only one environment, because its whole text is more useful than cut texts of
        // several.
        let count = match width < 60 {
            true => 1,
            false => fit.min(columns.max(1)),
        };
        let cell = (room / u16::try_from(count).unwrap_or(1)).min(WIDEST);
        let first = scrolled(left, selected, count, columns);
        Self {
            name,
            cell,
            first,
            count,
            back,
        }
    }
}

impl State {
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let Some(roster) = self
            .roster
            .as_ref()
            .filter(|roster| roster.totals().rows > 0)
        else {
            match &self.travel {
                Some(travel) => nothing_then(sheet, scene, travel),
                None => nothing(sheet, scene),
            }
            return;
        };
        let pane = match self.closed || sheet.height() < 14 {
            true => 0,
            false => (sheet.height() / 4).clamp(5, 8),
        };
        if let Some(at) = roster.next_expiry() {
            sheet.turn(at);
        }
        // The faults of the pipelines belong to the present, so the matrix does not show them for a past time.
        let faults = match &self.travel {
            Some(_) => 0,
            None => faults(sheet, roster.columns(), pane > 0),
        };
        let mut body = sheet.rows(faults, sheet.height().saturating_sub(faults));
        let sheet = &mut body;
        let height = sheet.height().saturating_sub(pane + 1);
        let selected = roster.position().unwrap_or_default();
        let first = scrolled(
            self.first.get(),
            selected,
            usize::from(height),
            roster.len(),
        );
        self.first.set(first);
        let rows: Vec<Seen<'_>> = roster.window(first, usize::from(height)).collect();
        let longest = rows
            .iter()
            .map(|row| text::width(&row.key.name))
            .max()
            .unwrap_or_default();
        let columns = roster.columns();
        let (count, left) = (columns.names().len(), self.left.get());
        let heads = columns.names().iter();
        let back = heads.map(|name| text::width(&back_to(name))).max();
        let layout = Layout::of(
            sheet.width(),
            count,
            self.column,
            left,
            longest,
            back.unwrap_or_default(),
        );
        self.left.set(layout.first);
        self.header(sheet, columns, layout, roster.sort());
        if rows.is_empty() {
            let words = scene.no_match();
            sheet.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
        for (at, row) in (1..).zip(&rows) {
            self.row(sheet, scene, columns, layout, at, row);
        }
        if pane > 0 {
            let mut below = sheet.rows(height + 1, pane);
            super::pane::view(self, &mut below, scene, roster);
        }
    }

    fn header(
        &self,
        sheet: &mut Sheet<'_>,
        columns: &Columns,
        layout: Layout,
        sorted: (Sort, bool),
    ) {
        let has_workloads = self.roster.as_ref().is_some_and(RowSet::has_workloads);
        let noun = match has_workloads {
            true => "NAME",
            false => "COMPONENT",
        };
        let width = usize::from(layout.name - 1);
        let head = sorted_head(noun, sorted, sheet.glyphs, width);
        let mut pen = sheet.line(0);
        pen.skip(MARGIN).cell(&head, layout.name, Role::Header);
        let seen = columns
            .names()
            .iter()
            .enumerate()
            .skip(layout.first)
            .take(layout.count);
        for (column, name) in seen {
            let role = match column == self.column {
                true => Role::Title,
                false => Role::Header,
            };
            let more = match (
                column == layout.first && column > 0,
                column + 1 == layout.first + layout.count && column + 1 < columns.names().len(),
            ) {
                (true, true) => format!("< {} >", name.to_uppercase()),
                (true, false) => format!("< {}", name.to_uppercase()),
                (false, true) => format!("{} >", name.to_uppercase()),
                (false, false) => name.to_uppercase(),
            };
            pen.cell(
                &text::fit(&more, usize::from(layout.cell.saturating_sub(1))),
                layout.cell,
                role,
            );
        }
        if layout.back > 0 {
            let environment = columns.names().get(self.column);
            let head = environment.map(|name| back_to(name));
            let head = head.filter(|head| text::width(head) <= usize::from(layout.back));
            pen.put(head.as_deref().unwrap_or("BACK TO"), Role::Title);
        }
    }

    fn row(
        &self,
        sheet: &mut Sheet<'_>,
        scene: &Scene<'_>,
        columns: &Columns,
        layout: Layout,
        at: u16,
        row: &Seen<'_>,
    ) {
        let (glyphs, world) = (sheet.glyphs, scene.world);
        let target_info = &scene.model.target_info;
        let is_left_out = |column: usize| {
            let name = columns
                .names()
                .get(column)
                .filter(|_| self.travel.is_none());
            name.is_some_and(|name| target_info.left_out(&row.key.name, name).is_some())
        };
        let recorded = self.cells(world, columns, row.key, sheet.now);
        let cells: Vec<Option<Cell<'_>>> =
            recorded.iter().map(|recorded| recorded.cell()).collect();
        let age = |since| match &self.travel {
            None => sheet.age(since),
            Some(travel) => text::age(travel.at.duration_since(since).as_secs()),
        };
        let ages: Vec<Option<String>> = cells
            .iter()
            .map(|cell| {
                let since = cell.as_ref().and_then(|cell| cell.since)?;
                (layout.cell >= 18).then(|| age(since))
            })
            .collect();
        let recent: Vec<bool> = columns
            .names()
            .iter()
            .map(|environment| {
                let pin = world.pin_of(row.key, environment);
                let pin = pin.filter(|_| self.travel.is_none());
                let at = pin.and_then(|pin| self.recent.get(&pin.key));
                at.is_some_and(|at| {
                    if let Ok(end) = at.checked_add(RECENT) {
                        sheet.turn(end);
                    }
                    sheet.now.duration_since(*at) < RECENT
                })
            })
            .collect();
        let tints = tints(&cells);
        let name = match (row.marked, row.summary.worst) {
            (true, _) => Role::Marked,
            (false, Health::Degraded | Health::Missing) => Role::Degraded,
            (false, _) => Role::Text,
        };
        let mut pen = sheet.line(at);
        pen.skip(1);
        let sign = match (row.selected, row.marked) {
            (_, true) => glyphs.marked,
            (true, false) => glyphs.cursor,
            (false, false) => " ",
        };
        pen.cell(
            sign,
            MARGIN - 1,
            if row.marked {
                Role::Marked
            } else {
                Role::Title
            },
        );
        pen.cell(
            &text::fit(&row.key.name, usize::from(layout.name - 1)),
            layout.name,
            name,
        );
        for column in layout.first..(layout.first + layout.count).min(cells.len()) {
            let end = pen.column() + layout.cell;
            if row.selected && column == self.column {
                pen.over(Role::Selection);
            }
            let cell = match recorded.get(column) {
                Some(Recorded::Ran(cell)) => Ok(cell),
                Some(Recorded::NotYet | Recorded::Deleted(_)) => Err(glyphs.unknown),
                Some(Recorded::Nothing) if is_left_out(column) => Err(glyphs.unknown),
                Some(Recorded::Nothing) | None => Err(glyphs.nothing),
            };
            let age = ages.get(column).and_then(Option::as_deref);
            let recent = recent.get(column).copied().unwrap_or_default();
            let tint = tints.get(column).copied().unwrap_or(Role::Text);
            put_cell(
                &mut pen,
                glyphs,
                cell,
                age,
                recent,
                tint,
                end.saturating_sub(1),
            );
            pen.plain().to(end);
        }
        if layout.back > 0 {
            let cell = cells.get(self.column).and_then(Option::as_ref);
            let back = match cell {
                None => String::new(),
                Some(cell) => match &cell.good {
                    Some(good) => format!("{} {}", glyphs.back, good.label),
                    None => format!("{} none", glyphs.back),
                },
            };
            pen.put(&back, Role::Muted);
        }
    }
}

/// Returns the title of the last column, which is about the environment under the cursor.
fn back_to(environment: &str) -> String {
    format!("BACK TO in {environment}")
}

/// Returns the title of the first column, with the sort order if the rows are not sorted by name.
fn sorted_head(
    noun: &str,
    (sort, reversed): (Sort, bool),
    glyphs: &Glyphs,
    width: usize,
) -> String {
    // By default, names and ages are ascending, and all other columns are descending.
    let falling = !matches!(sort, Sort::Name | Sort::Changed) != reversed;
    let arrow = glyphs.sorted(falling);
    if sort == Sort::Name {
        return format!("{noun}{arrow}");
    }
    let name = Sort::ALL.iter().find(|(known, _)| *known == sort);
    let by = format!(
        "BY {}{arrow}",
        name.map_or("", |(_, name)| name).to_uppercase()
    );
    let whole = format!("{noun} {by}");
    match text::width(&whole) <= width {
        true => whole,
        false => text::fit(&by, width),
    }
}

/// Draws the faults of the pipelines at the top; returns the number of rows that they use.
fn faults(sheet: &mut Sheet<'_>, columns: &Columns, is_roomy: bool) -> u16 {
    let width = usize::from(sheet.width().saturating_sub(2));
    let most = if is_roomy { 4 } else { 1 };
    let lines: Vec<String> = columns
        .faults()
        .flat_map(|fault| wrap(&format!("{} {fault}", sheet.glyphs.degraded), width))
        .take(most)
        .collect();
    for (row, line) in (0..).zip(&lines) {
        sheet.line(row).skip(1).put(line, Role::Error);
    }
    u16::try_from(lines.len()).unwrap_or_default()
}

/// Draws one cell of the matrix. `end` is the column of the screen at which the cell is cut.
fn put_cell(
    pen: &mut Pen<'_>,
    glyphs: &Glyphs,
    cell: Result<&Cell<'_>, &str>,
    age: Option<&str>,
    recent: bool,
    tint: Role,
    end: u16,
) {
    let cell = match cell {
        Ok(cell) => cell,
        Err(sign) => {
            pen.put(sign, Role::Muted).to(end);
            return;
        }
    };
    let (glyph, role) = health(cell.health(), glyphs);
    pen.put(glyph, role).put(" ", role);
    let room = usize::from(end.saturating_sub(pen.column()));
    let label = match cell.wanted {
        // The exclamation mark says that a hold keeps another release than the releaseRef names.
        Some(_) => format!("{}!", cell.label),
        None => cell.label.to_owned(),
    };
    // The symbols of the cell (behind, bad, held), starting with the least important one.
    let mut signs: Vec<(String, Role)> = Vec::new();
    let mut optional = 0;
    if let Some(progress) = cell.progress
        && room >= 14
    {
        signs.push((progress.to_string(), role));
        optional += 1;
    }
    if let Some(behind) = cell.behind.filter(|behind| *behind > 0) {
        signs.push((format!("{}{behind}", glyphs.behind), Role::Behind));
        optional += 1;
    }
    if cell.bad {
        signs.push(("bad".to_owned(), Role::Degraded));
    }
    if cell.held > 0 {
        signs.push((glyphs.held.to_owned(), Role::Hold));
    } else if cell.expired() > 0 {
        signs.push((glyphs.expired.to_owned(), Role::Muted));
    }
    let widths: Vec<usize> = signs
        .iter()
        .map(|(sign, _)| text::width(sign) + 1)
        .collect();
    let age_width = age.map_or(0, |age| text::width(age) + 1);
    let kept = kept(room, text::width(&label), age_width, &widths, optional);
    let age = age.filter(|_| kept.age);
    signs.drain(..kept.dropped);
    let age_width = age.map_or(0, |age| text::width(age) + 1);
    let signs_width: usize = signs.iter().map(|(sign, _)| text::width(sign) + 1).sum();
    let label = text::fit(
        &label,
        room.saturating_sub(age_width + signs_width)
            .max(4)
            .min(room),
    );
    pen.put(&label, if recent { Role::Changed } else { tint });
    for (sign, role) in signs {
        pen.put(" ", role).put(&sign, role);
    }
    if let Some(age) = age {
        let at = end.saturating_sub(u16::try_from(text::width(age)).unwrap_or(0));
        if at > pen.column() {
            pen.to(at).put(age, Role::Muted);
        }
    }
    pen.to(end);
}

/// The parts of a cell that are drawn next to the name of the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kept {
    age: bool,
    /// The number of signs that are not drawn, counted from the first (least important) sign.
    dropped: usize,
}

/// Chooses the parts of a cell so that its release is not cut: leaves out the age first, then up to `optional` signs.
/// If the release does not fit even then, keeps all parts, because the caller must cut the release anyway.
fn kept(room: usize, label: usize, age: usize, signs: &[usize], optional: usize) -> Kept {
    let all = Kept {
        age: true,
        dropped: 0,
    };
    let without = (0..=optional).map(|dropped| Kept {
        age: false,
        dropped,
    });
    let fits = |kept: &Kept| {
        let signs: usize = signs.iter().skip(kept.dropped).sum();
        let age = if kept.age { age } else { 0 };
        label + signs + age <= room
    };
    once(all).chain(without).find(fits).unwrap_or(all)
}

/// Returns the symbol and the role for a health.
pub(crate) fn health(health: Health, glyphs: &Glyphs) -> (&'static str, Role) {
    match health {
        Health::Ready => (glyphs.ready, Role::Good),
        Health::Progressing => (glyphs.progressing, Role::Progressing),
        Health::Degraded | Health::Missing => (glyphs.degraded, Role::Degraded),
        Health::Unknown => (glyphs.unknown, Role::Unknown),
    }
}

/// Returns the role of each cell; cells with the same release have the same role.
fn tints(cells: &[Option<Cell<'_>>]) -> Vec<Role> {
    let mut known: Vec<&str> = Vec::new();
    let mut roles = Vec::with_capacity(cells.len());
    for cell in cells {
        if let Some(cell) = cell
            && !known.contains(&cell.release)
        {
            known.push(cell.release);
        }
        let at = cell
            .as_ref()
            .and_then(|cell| known.iter().position(|known| *known == cell.release));
        roles.push(at.map_or(Role::Muted, |at| {
            TINTS.get(at % TINTS.len()).copied().unwrap_or(Role::Text)
        }));
    }
    roles
}

/// Draws the message that says why the matrix has no rows at a past time.
fn nothing_then(sheet: &mut Sheet<'_>, scene: &Scene<'_>, travel: &Travel) {
    let clock = |at| scene.model.target_info.clock(at, sheet.now);
    let begins = travel.past.begins().map(|begins| {
        let begins = clock(begins);
        format!("; the audit trail begins at {begins}")
    });
    let words = format!(
        "nothing is recorded of {}{}",
        clock(travel.at),
        begins.unwrap_or_default()
    );
    sheet.line(2).skip(MARGIN).put(&words, Role::Text);
    let hint = format!("{} returns to the present", scene.keys(Action::Back));
    sheet.line(3).skip(MARGIN).put(&hint, Role::Muted);
}

/// Draws the message that says why the matrix is empty.
fn nothing(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let world = scene.world;
    let target_info = &scene.model.target_info;
    let namespace = &target_info.namespace;
    let aimed = |line: &str| target_info.aimed(line.to_owned());
    let is_plain = target_info.work_tree().is_some_and(|found| found.plain);
    let kinds: Vec<&str> = world
        .sources()
        .filter_map(|source| Some(world.kind(source)?.kind.as_str()))
        .collect();
    let denied = WORKLOADS
        .iter()
        .find_map(|source| match world.freshness(*source) {
            Freshness::Stale {
                why, denied: true, ..
            } => Some(why),
            _ => None,
        });
    let words = match world.freshness(Source::RELEASE_PINS) {
        Freshness::Live if is_plain => vec![
            format!(
                "{} has no objects of bowline's kinds: {}",
                target_info.directory().unwrap_or_default(),
                kinds.join(", ")
            ),
            "nothing is wrong with the repository: no file mentions openchoreo.dev, core.choreo.dev or bowline.dev yet".to_owned(),
            format!(
                "run {} in a shell to create the first release of your definitions; this screen shows it as soon as it exists",
                aimed("bowline release create COMPONENT -f DIR")
            ),
            "read the steps in docs/gitops.md, \"The first objects\"".to_owned(),
            "or open another directory: bowline --repo DIR".to_owned(),
        ],
        Freshness::Loading => vec!["loading the ReleasePins".to_owned()],
        Freshness::Absent => vec![
            format!(
                "{} does not have bowline's kinds: {}",
                target_info.name,
                world.absent_kinds().join(", ")
            ),
            "nothing is wrong with the cluster: bowline is not installed there, or only in part".to_owned(),
            format!(
                "run {} in a shell to install the kinds; this screen shows them as soon as they exist",
                aimed("bowline install")
            ),
            match denied {
                Some(why) => format!("cannot read the workloads: {why}"),
                None => format!("no Deployment, StatefulSet or DaemonSet is in namespace {namespace} either"),
            },
            ":ns NAME switches to another namespace, :ctx NAME to another cluster".to_owned(),
        ],
        Freshness::Stale { why, denied: true, .. } => vec![
            format!("cannot read ReleasePins: {why}"),
            "ask for the role bowline-reader, or switch the namespace with :ns NAME".to_owned(),
        ],
        Freshness::Stale { why, .. } => vec![
            format!("cannot reach the target: {why}"),
            "bowline tries again until it succeeds".to_owned(),
        ],
        Freshness::Live => vec![
            format!("nothing is deployed in namespace {namespace} yet"),
            format!(
                "{} deploys a component; :ns NAME switches the namespace",
                scene.keys(Action::Deploy)
            ),
            format!(
                "run {} in a shell to apply the example of the source code",
                aimed("bowline apply -f deploy/examples -R")
            ),
            "run bowline demo in a shell to see an example without any files".to_owned(),
        ],
    };
    let width = usize::from(sheet.width().saturating_sub(MARGIN + 1));
    let roles = once(Role::Text).chain(repeat(Role::Muted));
    let lines = words.iter().zip(roles);
    let lines = lines.flat_map(|(words, role)| wrap(words, width).into_iter().zip(repeat(role)));
    for (row, (line, role)) in (2..).zip(lines) {
        sheet.line(row).skip(MARGIN).put(&line, role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_cell_drops_the_age_and_the_distance_before_it_cuts_the_release() {
        for (room, label, age, signs, optional, expected) in [
            (20, 7, 4, &[3, 2][..], 1, (true, 0)),
            (13, 7, 4, &[3, 2], 1, (false, 0)),
            (10, 7, 0, &[3, 2], 1, (false, 1)),
            (10, 6, 0, &[4, 3, 2], 2, (false, 2)),
            // The last sign (a hold) always stays. A release that never fits is cut.
            (7, 7, 0, &[3, 2], 1, (true, 0)),
            (10, 40, 4, &[3, 2], 1, (true, 0)),
        ] {
            let kept = kept(room, label, age, signs, optional);
            assert_eq!((kept.age, kept.dropped), expected, "{room} {label} {age}");
        }
    }

    #[test]
    fn columns_shrink_then_go() {
        for (width, columns, selected, left, longest) in [
            (200, 4, 0, 0, 20),
            (120, 3, 2, 0, 16),
            (120, 4, 3, 9, 16),
            (80, 4, 0, 3, 16),
            (80, 12, 11, 0, 16),
            (80, 12, 0, 11, 16),
            (40, 4, 2, 0, 16),
            (10, 4, 2, 3, 16),
        ] {
            let layout = Layout::of(width, columns, selected, left, longest, 14);
            let seen = layout.first..layout.first + layout.count;
            assert!(seen.contains(&selected), "{width} {layout:?}");
            let count = u16::try_from(layout.count).unwrap();
            let used = MARGIN + layout.name + layout.cell * count + layout.back;
            assert!(used <= width.max(24), "{width} {layout:?}");
        }
        assert_eq!(Layout::of(40, 4, 2, 0, 16, 14).count, 1);
        assert_eq!(Layout::of(80, 4, 2, 0, 16, 14).count, 4);
        assert!(Layout::of(120, 3, 2, 0, 16, 14).back > 0);
        // The window does not scroll while the selected column is visible.
        let seen = Layout::of(80, 12, 11, 0, 16, 14);
        assert_eq!(
            Layout::of(80, 12, seen.first, seen.first, 16, 14).first,
            seen.first
        );
        assert_eq!(
            Layout::of(80, 12, seen.first - 1, seen.first, 16, 14).first,
            seen.first - 1
        );
    }
}
