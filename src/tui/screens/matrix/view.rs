//! How the matrix is drawn. Only the rows and columns that are seen are looked at.

use super::travel::Travel;
use super::{RECENT, State};
use crate::engine::matrix::{Cell, Columns, Health};
use crate::engine::past::Recorded;
use crate::engine::world::{Freshness, Source};
use crate::text;
use crate::tui::action::Action;
use crate::tui::pen::{Glyphs, Pen, Sheet};
use crate::tui::roster::{Seen, Sort};
use crate::tui::screens::Scene;
use crate::tui::theme::Role;
use crate::tui::widgets::{scrolled, wrap};

/// Colours along a row: the same release has the same one.
const TINTS: [Role; 6] = [
    Role::Tint1,
    Role::Tint2,
    Role::Tint3,
    Role::Tint4,
    Role::Tint5,
    Role::Tint6,
];
/// What is left of the first column.
const MARGIN: u16 = 3;
/// How narrow a cell may become before columns are left out.
const NARROWEST: u16 = 12;
/// How wide a cell becomes at most.
const WIDEST: u16 = 30;

/// Where the columns are, for one width of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    name: u16,
    cell: u16,
    /// The first column that is seen, and how many.
    first: usize,
    count: usize,
    /// The column that says what a rollback restores; 0 where there is no room.
    back: u16,
}

impl Layout {
    /// Lays the columns out; `left` is the first that was seen last.
    fn of(width: u16, columns: usize, selected: usize, left: usize, longest: usize) -> Self {
        let longest = u16::try_from(longest).unwrap_or(u16::MAX);
        let name = longest.clamp(9, 34).min(width / 4).max(9) + 2;
        let room = width.saturating_sub(MARGIN + name);
        let all = u16::try_from(columns.max(1)).unwrap_or(u16::MAX);
        let back = match room.saturating_sub(14) / all >= 19 {
            true => 14,
            false => 0,
        };
        let room = room.saturating_sub(back);
        let fit = usize::from(room / NARROWEST).max(1);
        // On a narrow screen one environment at a time says more than all of them cut short.
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
    /// Draws it.
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
        // The faults are those of the present.
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
        let layout = Layout::of(sheet.width(), count, self.column, left, longest);
        self.left.set(layout.first);
        self.header(sheet, columns, layout, roster.sort());
        if rows.is_empty() {
            sheet
                .line(2)
                .skip(MARGIN)
                .put("no row matches the filter; esc clears it", Role::Muted);
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
        let head = sorted_head(sorted, sheet.glyphs, usize::from(layout.name - 1));
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
            pen.put("BACK TO", Role::Header);
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
        let ground = &scene.model.ground;
        let is_left_out = |column: usize| {
            let name = columns
                .names()
                .get(column)
                .filter(|_| self.travel.is_none());
            name.is_some_and(|name| ground.leaves_out(&row.key.name, name))
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
        let name = match (row.marked, row.standing.worst) {
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

/// Names the first column, and what the rows are sorted by where that is something else.
fn sorted_head((sort, reversed): (Sort, bool), glyphs: &Glyphs, width: usize) -> String {
    // Only names and ages grow downward.
    let falling = !matches!(sort, Sort::Name | Sort::Changed) != reversed;
    let arrow = glyphs.sorted(falling);
    if sort == Sort::Name {
        return format!("COMPONENT{arrow}");
    }
    let name = Sort::ALL.iter().find(|(known, _)| *known == sort);
    let by = format!(
        "BY {}{arrow}",
        name.map_or("", |(_, name)| name).to_uppercase()
    );
    let whole = format!("COMPONENT {by}");
    match text::width(&whole) <= width {
        true => whole,
        false => text::fit(&by, width),
    }
}

/// Draws the faults of the pipelines above everything else; returns how many rows they take.
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

/// Draws one cell, up to a column.
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
    let mut signs: Vec<(String, Role)> = Vec::new();
    if let Some(progress) = cell.progress
        && end.saturating_sub(pen.column()) >= 14
    {
        signs.push((progress.to_string(), role));
    }
    if let Some(behind) = cell.behind.filter(|behind| *behind > 0) {
        signs.push((format!("{}{behind}", glyphs.behind), Role::Behind));
    }
    if cell.bad {
        signs.push(("bad".to_owned(), Role::Degraded));
    }
    if cell.held > 0 {
        signs.push((glyphs.held.to_owned(), Role::Hold));
    } else if cell.expired() > 0 {
        signs.push((glyphs.expired.to_owned(), Role::Muted));
    }
    let age_width = age.map_or(0, |age| text::width(age) + 1);
    let signs_width: usize = signs.iter().map(|(sign, _)| text::width(sign) + 1).sum();
    let room = usize::from(end.saturating_sub(pen.column()));
    let label = match cell.wanted {
        // A hold keeps another release running than the one that is named.
        Some(_) => format!("{}!", cell.label),
        None => cell.label.to_owned(),
    };
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

/// Returns the glyph and the colour of a health.
pub(in crate::tui) fn health(health: Health, glyphs: &Glyphs) -> (&'static str, Role) {
    match health {
        Health::Ready => (glyphs.ready, Role::Good),
        Health::Progressing => (glyphs.progressing, Role::Progressing),
        Health::Degraded | Health::Missing => (glyphs.degraded, Role::Degraded),
        Health::Unknown => (glyphs.unknown, Role::Unknown),
    }
}

/// Gives each release of a row a colour.
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

/// Draws the reason why a past moment has no rows.
fn nothing_then(sheet: &mut Sheet<'_>, scene: &Scene<'_>, travel: &Travel) {
    let clock = |at| scene.model.ground.clock(at, sheet.now);
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
    let hint = "esc comes back to the present";
    sheet.line(3).skip(MARGIN).put(hint, Role::Muted);
}

/// Says why there is nothing to see.
fn nothing(sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
    let world = scene.world;
    let namespace = &scene.model.ground.namespace;
    let words = match world.freshness(Source::Pins) {
        Freshness::Loading => vec!["loading the ReleasePins".to_owned()],
        Freshness::Absent => vec![
            format!(
                "{} does not have bowline's kinds: {}",
                scene.model.ground.target,
                world.absent_kinds().join(", ")
            ),
            "nothing is wrong with the cluster: bowline is not installed there, or only in part".to_owned(),
            "run bowline install in a shell to install the kinds; this screen shows them as soon as they exist".to_owned(),
            "run bowline get deployments in a shell to list the existing objects; :ctx NAME switches to another cluster".to_owned(),
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
                "bowline apply -f deploy/examples -R applies an example; {} deploys a component; :ns NAME switches the namespace",
                scene.keys(Action::Deploy)
            ),
        ],
    };
    for (row, line) in (2..).zip(&words) {
        let role = if row == 2 { Role::Text } else { Role::Muted };
        sheet.line(row).skip(MARGIN).put(line, role);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let layout = Layout::of(width, columns, selected, left, longest);
            let seen = layout.first..layout.first + layout.count;
            assert!(seen.contains(&selected), "{width} {layout:?}");
            let count = u16::try_from(layout.count).unwrap();
            let used = MARGIN + layout.name + layout.cell * count + layout.back;
            assert!(used <= width.max(24), "{width} {layout:?}");
        }
        assert_eq!(Layout::of(40, 4, 2, 0, 16).count, 1);
        assert_eq!(Layout::of(80, 4, 2, 0, 16).count, 4);
        assert!(Layout::of(120, 3, 2, 0, 16).back > 0);
        // The window stays where it is while what is selected is in it.
        let seen = Layout::of(80, 12, 11, 0, 16);
        assert_eq!(
            Layout::of(80, 12, seen.first, seen.first, 16).first,
            seen.first
        );
        assert_eq!(
            Layout::of(80, 12, seen.first - 1, seen.first, 16).first,
            seen.first - 1
        );
    }
}
