//! A table that fits its columns to the width of the screen: it first narrows columns, then hides some.

use ratatui::layout::Rect;

use crate::pen::Sheet;
use crate::text;
use crate::theme::Role;

/// The number of screen columns to the left of the first table column, for the cursor and the mark.
pub const MARGIN: u16 = 3;
/// The number of blank screen columns between two table columns.
const GAP: u16 = 2;
/// The table hides columns with a priority below this value before it narrows any column.
const OPTIONAL: u8 = 50;
/// A column that is wider than this may be narrowed before the table hides any column.
const LONG: u16 = 32;

#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The text at the top of the column.
    pub head: &'static str,
    /// The minimum width of the column. If there is less room, the table hides the column.
    pub least: u16,
    /// The priority of the column. The table hides the column with the lowest priority first.
    pub stays: u8,
    /// Whether the texts of the column are aligned to the right.
    pub right: bool,
    /// Whether the texts of the column are names. The table cuts a name in the middle, because names often differ at
    /// the end.
    pub named: bool,
}

impl Column {
    /// Creates a column whose texts are aligned to the left.
    pub const fn new(head: &'static str, least: u16, stays: u8) -> Self {
        Self {
            head,
            least,
            stays,
            right: false,
            named: false,
        }
    }

    /// Makes the table cut the texts of this column in the middle, because they are names.
    pub const fn named(self) -> Self {
        Self {
            named: true,
            ..self
        }
    }

    pub const fn right(self) -> Self {
        Self {
            right: true,
            ..self
        }
    }
}

/// The content of a table cell: pieces of text, each with its role.
pub type Cell = Vec<(String, Role)>;

pub fn cell(text: impl Into<String>, role: Role) -> Cell {
    vec![(text.into(), role)]
}

#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The cells of the row, one per column.
    pub cells: Vec<Cell>,
    /// Whether the cursor is on the row.
    pub selected: bool,
    /// Whether the user has marked the row.
    pub marked: bool,
}

/// The position of the drawn rows within all rows of the table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub first: usize,
    pub count: usize,
}

/// Returns the label that follows the name of a release that is marked bad.
pub fn bad() -> (String, Role) {
    (" bad".to_owned(), Role::Degraded)
}

/// The column by which the rows are sorted, and the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// The text at the top of the column by which the rows are sorted.
    pub head: &'static str,
    pub falling: bool,
}

/// Draws the titles of the columns and the rows, without a sort arrow.
pub fn draw(sheet: &mut Sheet<'_>, columns: &[Column], lines: &[Line], window: Window) {
    draw_sorted(sheet, columns, lines, window, None);
}

/// Draws the titles of the columns and the rows, with an arrow at the column by which the rows are sorted.
pub fn draw_sorted(
    sheet: &mut Sheet<'_>,
    columns: &[Column],
    lines: &[Line],
    window: Window,
    sorted: Option<Sorted>,
) {
    let glyphs = sheet.glyphs;
    let head = |column: &Column| match sorted.filter(|sorted| sorted.head == column.head) {
        Some(sorted) => format!("{}{}", column.head, glyphs.sorted(sorted.falling)),
        None => column.head.to_owned(),
    };
    let mut heads: Vec<String> = columns.iter().map(head).collect();
    let room = sheet.width().saturating_sub(MARGIN + 1);
    let natural = |heads: &[String]| -> Vec<u16> {
        let columns = heads.iter().enumerate().map(|(at, head)| {
            let cells = lines.iter().filter_map(|line| line.cells.get(at));
            let widest = cells.map(width).max().unwrap_or_default();
            u16::try_from(widest.max(text::width(head))).unwrap_or(u16::MAX)
        });
        columns.collect()
    };
    let mut widths = self::widths(columns, &natural(&heads), room);
    // If the sort column is hidden, the title of the first visible column also names the sort column.
    let is_seen = |sorted: &Sorted| {
        let mut seen = columns.iter().zip(&widths).filter(|(_, width)| **width > 0);
        seen.any(|(column, _)| column.head == sorted.head)
    };
    let unseen = sorted.filter(|sorted| !sorted.head.is_empty() && !is_seen(sorted));
    let first = widths.iter().position(|width| *width > 0);
    if let (Some(Sorted { head, falling }), Some(first)) = (unseen, first)
        && let Some(named) = heads.get_mut(first)
    {
        *named = format!("{named} BY {head}{}", glyphs.sorted(falling));
        widths = self::widths(columns, &natural(&heads), room);
    }
    let mut pen = sheet.line(0);
    pen.skip(MARGIN);
    let seen = columns.iter().zip(&heads).zip(&widths);
    for ((column, head), width) in seen.filter(|(_, width)| **width > 0) {
        match column.right {
            true => pen.cell_right(head, *width, Role::Header),
            false => pen.cell(head, *width, Role::Header),
        };
        pen.skip(GAP);
    }
    for (row, line) in (1..sheet.height()).zip(lines) {
        put(sheet, row, columns, &widths, line);
    }
    scrollbar(sheet, window);
}

fn width(cell: &Cell) -> usize {
    cell.iter().map(|(part, _)| text::width(part)).sum()
}

fn put(sheet: &mut Sheet<'_>, row: u16, columns: &[Column], widths: &[u16], line: &Line) {
    let glyphs = sheet.glyphs;
    let (sign, role) = match (line.marked, line.selected) {
        (true, _) => (glyphs.marked, Role::Marked),
        (false, true) => (glyphs.cursor, Role::Title),
        (false, false) => (" ", Role::Text),
    };
    let mut pen = sheet.line(row);
    if line.selected {
        pen.over(Role::Selection);
    }
    pen.skip(1).cell(sign, MARGIN - 1, role);
    let cells = columns.iter().zip(widths).zip(&line.cells);
    for ((column, width), cell) in cells.filter(|((_, width), _)| **width > 0) {
        let end = pen.column() + width;
        let wide = u16::try_from(self::width(cell)).unwrap_or(u16::MAX);
        if column.right {
            pen.skip(width.saturating_sub(wide));
        }
        // A long name is cut, because the label after it must stay visible.
        let word = bad();
        let kept = match cell.as_slice() {
            [_, last, ..] if *last == word => text::width(&word.0),
            _ => 0,
        };
        for (at, (part, role)) in cell.iter().enumerate() {
            let room = usize::from(end.saturating_sub(pen.column()));
            let room = if at == 0 {
                room.saturating_sub(kept)
            } else {
                room
            };
            let cut = match column.named {
                true => text::fit_name(part, room),
                false => text::fit(part, room),
            };
            pen.put(&cut, *role);
        }
        pen.to(end).skip(GAP);
    }
    if line.selected {
        pen.rest();
    }
}

/// Returns the widths of the columns; a column with the width 0 is hidden.
fn widths(columns: &[Column], natural: &[u16], room: u16) -> Vec<u16> {
    let least: Vec<u16> = columns
        .iter()
        .zip(natural)
        .map(|(column, natural)| column.least.min(*natural).max(1))
        .collect();
    let mut widths = least.clone();
    let used = |widths: &[u16]| -> u32 {
        let seen = widths.iter().filter(|width| **width > 0);
        let gaps =
            u32::from(GAP) * u32::try_from(seen.clone().count().saturating_sub(1)).unwrap_or(0);
        seen.map(|width| u32::from(*width)).sum::<u32>() + gaps
    };
    let whole = |widths: &[u16]| -> Vec<u16> {
        let natural = widths.iter().zip(natural);
        natural
            .map(|(width, natural)| match width {
                0 => 0,
                least => (*natural).min(LONG).max(*least),
            })
            .collect()
    };
    loop {
        let crowded = used(&widths) > u32::from(room);
        let cut = used(&whole(&widths)) > u32::from(room);
        if !crowded && !cut {
            break;
        }
        let seen = (0..columns.len()).filter(|at| widths.get(*at).is_some_and(|width| *width > 0));
        let seen: Vec<usize> = seen.collect();
        let stays = |at: &usize| columns.get(*at).map(|column| column.stays);
        // Of several columns with the lowest priority, hide the last one. Never hide the column with the highest
        // priority.
        let goes = seen.iter().rev().min_by_key(|at| stays(at)).copied();
        let optional = goes
            .as_ref()
            .and_then(stays)
            .is_some_and(|stays| stays < OPTIONAL);
        match goes
            .filter(|_| seen.len() > 1 && (crowded || optional))
            .and_then(|at| widths.get_mut(at))
        {
            Some(width) => *width = 0,
            None => break,
        }
    }
    let mut left = u32::from(room).saturating_sub(used(&widths));
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(columns.get(*at).map(|column| column.stays)));
    for at in order {
        if let (Some(width), Some(natural)) = (widths.get_mut(at), natural.get(at))
            && *width > 0
        {
            let more = u32::from(natural.saturating_sub(*width)).min(left);
            *width += u16::try_from(more).unwrap_or(0);
            left -= more;
        }
    }
    if let [only] = widths.as_mut_slice() {
        *only = (*only).min(room);
    }
    widths
}

/// Draws a scrollbar at the right edge, if the table has more rows than fit.
fn scrollbar(sheet: &mut Sheet<'_>, window: Window) {
    let height = usize::from(sheet.height().saturating_sub(1));
    if window.count <= height || height == 0 {
        return;
    }
    let long = (height * height / window.count).max(1);
    let top = window.first * (height - long) / (window.count - height);
    let thumb = sheet.glyphs.thumb;
    let area = Rect {
        x: sheet.area.right().saturating_sub(1),
        width: 1.min(sheet.area.width),
        ..sheet.area
    };
    let mut edge = sheet.part(area);
    for row in top..top + long {
        let row = u16::try_from(row + 1).unwrap_or(u16::MAX);
        edge.line(row).put(thumb, Role::Scrollbar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_shrink_to_their_least_and_then_go_by_how_long_they_stay() {
        let columns = [
            Column::new("A", 4, 90),
            Column::new("B", 3, 10),
            Column::new("C", 5, 60),
        ];
        for (room, expected) in [
            (100, [10, 10, 10]),
            (34, [10, 10, 10]),
            // Columns of low priority are hidden before the other columns are narrowed.
            (33, [10, 0, 10]),
            (22, [10, 0, 10]),
            (15, [8, 0, 5]),
            (11, [4, 0, 5]),
            (10, [10, 0, 0]),
            (5, [5, 0, 0]),
        ] {
            assert_eq!(widths(&columns, &[10, 10, 10], room), expected, "{room}");
        }
        // A column is never wider than its longest text.
        assert_eq!(widths(&columns, &[2, 3, 4], 100), [2, 3, 4]);
        assert_eq!(widths(&[], &[], 10), [0u16; 0]);
        assert_eq!(widths(&columns[..1], &[10], 2), [2]);
    }
}
