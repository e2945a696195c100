//! Draws a diff. Draws only the visible rows, and searches for changed words only in these rows.

use std::ops::Range;

use jiff::Timestamp;
use ratatui::layout::Rect;
use unicode_segmentation::UnicodeSegmentation;

use super::rows::{Count, Row, Spot};
use super::{Frame, Shown, Stage, State};
use crate::action::Action;
use crate::engine::diff::{Change, Hunk, Identity, Kind, ObjectDiff, labels};
use crate::model::TargetInfo;
use crate::pen::{Glyphs, Pen, Sheet};
use crate::screens::Scene;
use crate::text;
use crate::theme::Role;
use crate::widgets::{scrolled, wrap};

/// The maximum number of bytes that are drawn of one line.
const LONGEST: usize = 4_096;
/// The maximum length of a line in bytes for highlighting changed words. Longer lines have no highlighting.
const WORDS: usize = 1_024;
/// The number of columns that stay visible to the left of a change, if a long line is scrolled to the change.
const BEFORE: usize = 8;
/// A word that continues after a change by at most this many bytes stays visible to its end.
const WORD_END: usize = 4;
/// The width of the line numbers, in columns.
const NUMBER: u16 = 5;

impl State {
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        match &self.stage {
            Stage::Reading => {
                let words = "Loading and rendering both sides...";
                sheet.line(1).skip(3).put(words, Role::Muted);
            }
            Stage::Failed(why) => {
                let width = usize::from(sheet.width().saturating_sub(6));
                for (row, line) in (1..).zip(wrap(why, width)) {
                    sheet.line(row).skip(3).put(&line, Role::Error);
                }
            }
            Stage::Shown(shown) => self.shown(sheet, scene, shown),
        }
    }

    fn shown(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, shown: &Shown) {
        let frame = Frame::of(sheet.width(), sheet.height(), self.split);
        title(sheet, &scene.model.target_info, shown, frame, self.as_of);
        self.rule(sheet, shown, frame);
        let top = frame.title + 1;
        let height = sheet.height().saturating_sub(top);
        let area = sheet.rows(top, height).area;
        let object = shown.rows.rows.get(self.cursor).map(Row::object);
        if frame.list > 0 {
            let left = Rect {
                width: frame.list,
                ..area
            };
            list(&mut sheet.part(left), shown, object);
        }
        let right = Rect {
            x: area.x + frame.list,
            width: area.width.saturating_sub(frame.list),
            ..area
        };
        self.rows(&mut sheet.part(right), scene, shown);
    }

    /// Draws a horizontal line with the name of the object, and the number of the change, under the cursor.
    fn rule(&self, sheet: &mut Sheet<'_>, shown: &Shown, frame: Frame) {
        let rows = &shown.rows;
        let object = rows.rows.get(self.cursor).map(Row::object);
        let at = object.and_then(|object| {
            let found = rows.objects.iter().position(|(known, _)| *known == object);
            Some((shown.compare.diff.objects.get(object)?, found?))
        });
        let (name, place) = match at {
            None => ("no differences".to_owned(), String::new()),
            Some((object, at)) => {
                let hunk = rows.hunks.partition_point(|row| *row <= self.cursor);
                let hunks = rows.hunks.len();
                let (at, all) = (at + 1, rows.objects.len());
                let place = match sheet.width() {
                    ..60 => format!(" {at}/{all} "),
                    _ => format!(" object {at} of {all}, hunk {hunk} of {hunks} "),
                };
                (title_of(&object.identity), place)
            }
        };
        let noise = match (self.again, self.noise) {
            (true, _) => " loading again ",
            (false, true) => " with noise ",
            (false, false) => "",
        };
        let width = usize::from(sheet.width());
        let room = width.saturating_sub(text::width(&place) + text::width(noise) + 6);
        let row = frame.title;
        sheet.rule(row, &text::fit(&name, room), Role::Title);
        let ends = text::width(&place) + text::width(noise);
        if width > ends + 4 {
            let column = u16::try_from(width - ends - 2).unwrap_or_default();
            sheet
                .part(Rect {
                    x: sheet.area.x + column,
                    y: sheet.area.y + row,
                    width: u16::try_from(ends).unwrap_or_default(),
                    height: 1,
                })
                .line(0)
                .put(noise, Role::Warning)
                .put(&place, Role::Muted);
        }
    }

    fn rows(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>, shown: &Shown) {
        let rows = &shown.rows.rows;
        if rows.is_empty() {
            let words = match (self.asked.is_some(), self.noise) {
                (true, false) => {
                    let keys = scene.keys(Action::Noise);
                    format!("no differences; {keys} also shows noise")
                }
                _ => "no differences".to_owned(),
            };
            sheet.line(1).skip(3).put(&words, Role::Muted);
            return;
        }
        let height = usize::from(sheet.height());
        let first = scrolled(self.first, self.cursor, height, rows.len());
        let seen = rows.iter().enumerate().skip(first).take(height);
        for (y, (at, row)) in (0..).zip(seen) {
            let selected = at == self.cursor;
            match row {
                Row::Gap(_) => {
                    let glyphs = sheet.glyphs;
                    cursor(&mut sheet.line(y), glyphs, selected);
                }
                Row::Object(object) => head(sheet, y, shown, *object, selected),
                Row::Fold { count, path, .. } => fold(sheet, y, *count, path, selected),
                Row::Line(spot) => self.line(sheet, y, shown, *spot, selected),
            }
        }
    }

    fn line(&self, sheet: &mut Sheet<'_>, y: u16, shown: &Shown, spot: Spot, selected: bool) {
        let objects = &shown.compare.diff.objects;
        let object = objects.get(spot.object);
        let Some(hunk) = object.and_then(|object| object.hunks.get(spot.hunk)) else {
            return;
        };
        let glyphs = sheet.glyphs;
        if !shown.split {
            let mut pen = sheet.line(y);
            cursor(&mut pen, glyphs, selected);
            let of = spot.before.or(spot.after);
            self.half(&mut pen, hunk, of, Of::Both, selected);
            return;
        }
        let row = sheet.rows(y, 1).area;
        let middle = row.width.div_ceil(2);
        let left = Rect {
            width: middle,
            ..row
        };
        let right = Rect {
            x: row.x + middle,
            width: row.width - middle,
            ..row
        };
        let mut part = sheet.part(left);
        let mut pen = part.line(0);
        cursor(&mut pen, glyphs, selected);
        self.half(&mut pen, hunk, spot.before, Of::Before, selected);
        let mut part = sheet.part(right);
        let mut pen = part.line(0);
        pen.put(glyphs.bar, Role::Border);
        self.half(&mut pen, hunk, spot.after, Of::After, selected);
    }

    /// Draws one side of a row: line number, sign and text. If `at` is None, the side is empty.
    fn half(&self, pen: &mut Pen<'_>, hunk: &Hunk, at: Option<u32>, of: Of, selected: bool) {
        let at = at.and_then(|at| usize::try_from(at).ok());
        let Some((at, line)) = at.and_then(|at| Some((at, hunk.lines.get(at)?))) else {
            return;
        };
        let number = |number: Option<usize>| number.map_or(String::new(), |it| it.to_string());
        let (own, sign, role, word) = match line.kind {
            Kind::Context if of == Of::Before => {
                (line.before, "  ", Role::ContextLine, Role::ContextLine)
            }
            Kind::Context => (line.after, "  ", Role::ContextLine, Role::ContextLine),
            Kind::Removed => (line.before, "- ", Role::Removed, Role::RemovedWord),
            Kind::Added => (line.after, "+ ", Role::Added, Role::AddedWord),
        };
        let role = match selected && line.kind == Kind::Context {
            true => Role::Text,
            false => role,
        };
        if pen.room() > 50 || of != Of::Both {
            pen.cell_right(&number(own), NUMBER - 1, Role::Muted)
                .skip(1);
        }
        pen.put(sign, role);
        let whole = hunk.text(line);
        let pair = line.pair.and_then(|pair| hunk.lines.get(pair));
        let change = pair.map(|pair| change(whole, hunk.text(pair)));
        let words = match (whole.len() <= WORDS, &change) {
            (true, _) => hunk.words(at),
            (false, Some(change)) => vec![change.clone()],
            (false, None) => Vec::new(),
        };
        let shift = match (self.shift, change) {
            (0, Some(change)) => hidden(whole, &change, pen.room()),
            (shift, _) => shift,
        };
        if shift > self.shift {
            pen.put(text::ELLIPSIS.encode_utf8(&mut [0; 4]), role);
        }
        let pieces = pieces(whole, &words, shift);
        let mut left: usize = pieces.iter().map(|(piece, _)| text::width(piece)).sum();
        for (mut piece, is_word) in pieces {
            let wide = text::width(&piece);
            left -= wide;
            // The piece fills the line, but more text follows. A blank makes the piece too long, so that the pen cuts
            // it and draws dots.
            if wide == pen.room() && left > 0 {
                piece.push(' ');
            }
            pen.put(&piece, if is_word { word } else { role });
        }
    }
}

/// Returns the changed part of a line, as a range of bytes. The text before and after this part is the same in both
/// lines of the pair.
pub(super) fn change(whole: &str, pair: &str) -> Range<usize> {
    let same = |(one, other): &((usize, char), char)| one.1 == *other;
    let head = whole.char_indices().zip(pair.chars());
    let head = head.take_while(same).last();
    let head = head.map_or(0, |((at, c), _)| at + c.len_utf8());
    let (end, other) = (
        whole.get(head..).unwrap_or_default(),
        pair.get(head..).unwrap_or_default(),
    );
    let tail = end.chars().rev().zip(other.chars().rev());
    let tail = tail.take_while(|(one, other)| one == other);
    let tail: usize = tail.map(|(c, _)| c.len_utf8()).sum();
    head..whole.len() - tail
}

/// Returns the number of columns to hide at the left of a line, so that its changed part is visible in a width of
/// `room` columns.
pub(super) fn hidden(whole: &str, change: &Range<usize>, room: usize) -> usize {
    let columns = |end: usize| text::width(whole.get(..end).unwrap_or_default());
    // A change can end inside a word: `8s` and `5s` differ in one character, but the user wants to see the whole
    // value.
    let behind = whole.get(change.end..).unwrap_or_default();
    let word = behind.find(|c: char| !c.is_alphanumeric());
    let word = word.unwrap_or(behind.len());
    let word = if word <= WORD_END { word } else { 0 };
    let (start, end) = (columns(change.start), columns(change.end + word));
    // If the line is cut at the right, its last column shows dots.
    let dots = usize::from(text::width(whole) > room);
    if end + dots <= room {
        return 0;
    }
    // The last `1` is for the column with the dots. If the change is wider than the room, its start is visible.
    (end + 1)
        .saturating_sub(room)
        .min(start.saturating_sub(BEFORE))
        + 1
}

/// The side to which a line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Before,
    After,
    Both,
}

/// Splits a line into pieces, as (text, whether the piece is a changed word). Leaves out the first `shift` columns.
fn pieces(whole: &str, words: &[Range<usize>], shift: usize) -> Vec<(String, bool)> {
    let mut end = whole.len().min(LONGEST + shift);
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut put = |range: Range<usize>, is_word: bool| {
        let piece = whole.get(range.start.min(end)..range.end.min(end));
        if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
            pieces.push((piece.to_owned(), is_word));
        }
    };
    for word in words {
        put(at..word.start, false);
        put(word.clone(), true);
        at = word.end;
    }
    put(at..whole.len(), false);
    let mut hidden = shift;
    for (piece, _) in &mut pieces {
        let mut cut = 0;
        for grapheme in piece.graphemes(true) {
            if hidden == 0 {
                break;
            }
            hidden = hidden.saturating_sub(text::width(grapheme));
            cut += grapheme.len();
        }
        piece.drain(..cut);
    }
    pieces
}

fn cursor(pen: &mut Pen<'_>, glyphs: &Glyphs, selected: bool) {
    match selected {
        true => pen.put(glyphs.cursor, Role::Title),
        false => pen.skip(1),
    };
}

/// Draws the titles of the two sides, and a time: the past time at which both sides were effective, or the time at
/// which bowline read each side.
fn title(
    sheet: &mut Sheet<'_>,
    target_info: &TargetInfo,
    shown: &Shown,
    frame: Frame,
    as_of: Option<Timestamp>,
) {
    let compare = &shown.compare;
    let arrow = sheet.glyphs.arrow;
    let now = sheet.now;
    if frame.title == 1 {
        let (before, after) = told_apart(&compare.before.what, &compare.after.what);
        let words = format!("{before} {arrow} {after}");
        sheet.line(0).skip(1).put(&words, Role::Text);
        return;
    }
    let said = match &compare.diff.coarse {
        Some(coarse) => vec![(coarse.clone(), Role::Warning)],
        None => {
            let notes = compare.notes.iter();
            notes.map(|note| (note.clone(), Role::Muted)).collect()
        }
    };
    let rows = [
        (&compare.before, "-", Role::Removed, counts(shown)),
        (&compare.after, "+", Role::Added, said),
    ];
    for (row, (half, sign, role, right)) in (0..).zip(rows) {
        let time = target_info.clock(as_of.unwrap_or(half.read), now);
        let mut pen = sheet.line(row);
        pen.skip(1)
            .put(sign, role)
            .skip(1)
            .put(&half.what, Role::Text)
            .skip(2);
        // If there is too little room for all texts, the titles have priority, then the time.
        let long = match as_of {
            Some(_) => format!("effective at {time}"),
            None => format!("read {time}"),
        };
        for words in [long, time] {
            if text::width(&words) < pen.room() {
                pen.put(&words, Role::Muted).skip(2);
                break;
            }
        }
        let room = pen.room();
        let whole = right
            .iter()
            .find(|(words, _)| text::width(words) < room)
            .map(|(words, role)| (format!("{words} "), *role));
        let cut = right.first().filter(|(_, role)| *role == Role::Warning);
        let cut = cut.map(|(words, role)| (text::fit(words, room), *role));
        if let Some((words, role)) = whole.or(cut) {
            pen.right(&words, role);
        }
    }
}

/// Returns the first parts in which the titles of two sides differ. If the titles are equal, returns both unchanged.
fn told_apart<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let mut parts = before.split(", ").zip(after.split(", "));
    let Some((one, other)) = parts.find(|(one, other)| one != other) else {
        return (before, after);
    };
    match (one.split_once(" in "), other.split_once(" in ")) {
        (Some((own, one)), Some((same, other))) if own == same => (one, other),
        _ => (one, other),
    }
}

/// Returns texts that say how many differences there are, from the longest to the shortest text. The caller draws the
/// longest that fits.
fn counts(shown: &Shown) -> Vec<(String, Role)> {
    let diff = &shown.compare.diff;
    let objects = match diff.changed().count() {
        0 => return Vec::new(),
        1 => "1 object differs".to_owned(),
        objects => format!("{objects} objects differ"),
    };
    let sum = |of: fn(&Count) -> usize| shown.counts.iter().map(of).sum::<usize>();
    let lines = format!("+{} -{}", sum(|it| it.added), sum(|it| it.removed));
    let same = match diff.count(Change::Same) {
        0 => String::new(),
        same => format!(", {same} the same"),
    };
    [
        format!("{objects}{same}   {lines} lines"),
        format!("{objects}   {lines} lines"),
        lines,
    ]
    .map(|words| (words, Role::Text))
    .into()
}

/// Draws the list of objects at the left.
fn list(sheet: &mut Sheet<'_>, shown: &Shown, current: Option<usize>) {
    let objects = &shown.rows.objects;
    let height = usize::from(sheet.height());
    let at = objects
        .iter()
        .position(|(object, _)| Some(*object) == current)
        .unwrap_or_default();
    let first = scrolled(at.saturating_sub(height / 2), at, height, objects.len());
    let bar = sheet.glyphs.bar;
    let width = sheet.width();
    for y in 0..sheet.height() {
        sheet
            .line(y)
            .skip(width.saturating_sub(1))
            .put(bar, Role::Border);
    }
    let counted = |index: usize| words_of(shown.counts.get(index).copied().unwrap_or_default());
    let widest = objects
        .iter()
        .map(|(index, _)| text::width(&counted(*index)))
        .max();
    let room = usize::from(width).saturating_sub(widest.unwrap_or_default() + 6);
    let changed = |index: usize| shown.compare.diff.objects.get(index);
    let identities = objects.iter().filter_map(|(index, _)| changed(*index));
    let identities: Vec<&Identity> = identities.map(|object| &object.identity).collect();
    let names = labels(&identities, room);
    let seen = objects.iter().zip(&names).skip(first).take(height);
    for (y, ((index, _), name)) in (0..).zip(seen) {
        let Some(object) = changed(*index) else {
            continue;
        };
        let mut pen = sheet.line(y);
        pen.until(width.saturating_sub(1));
        if Some(*index) == current {
            pen.over(Role::Selection);
        }
        let (sign, role) = sign(object);
        pen.skip(1).put(sign, role).skip(1).put(name, Role::Text);
        pen.right(&format!("{} ", counted(*index)), Role::Muted)
            .rest();
    }
}

fn words_of(count: Count) -> String {
    match (count.added, count.removed) {
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("-{removed}"),
        (added, removed) => format!("+{added} -{removed}"),
    }
}

fn sign(object: &ObjectDiff) -> (&'static str, Role) {
    match object.change {
        Change::Added => ("+", Role::Added),
        Change::Removed => ("-", Role::Removed),
        Change::Changed | Change::Same => ("~", Role::Changed),
    }
}

/// Draws the title row of an object.
fn head(sheet: &mut Sheet<'_>, y: u16, shown: &Shown, index: usize, selected: bool) {
    let Some(object) = shown.compare.diff.objects.get(index) else {
        return;
    };
    let count = shown.counts.get(index).copied().unwrap_or_default();
    let closed = shown.folds.closed.contains(&index);
    let (sign, role) = sign(object);
    let glyphs = sheet.glyphs;
    let mut pen = sheet.line(y);
    cursor(&mut pen, glyphs, selected);
    if selected {
        pen.over(Role::Selection);
    }
    pen.put(sign, role)
        .put(" ", role)
        .put(&title_of(&object.identity), Role::Header)
        .put("  ", Role::Muted);
    let what = match object.change {
        Change::Added => "added, ".to_owned(),
        Change::Removed => "removed, ".to_owned(),
        Change::Changed | Change::Same => String::new(),
    };
    let folded = if closed { ", folded" } else { "" };
    pen.put(&format!("{what}{}{folded}", words_of(count)), Role::Muted)
        .plain();
}

/// Draws the row that stands for folded lines.
fn fold(sheet: &mut Sheet<'_>, y: u16, count: usize, path: &str, selected: bool) {
    let dots = match sheet.glyphs.arrow {
        "->" => "...",
        _ => "⋯",
    };
    let glyphs = sheet.glyphs;
    let mut pen = sheet.line(y);
    cursor(&mut pen, glyphs, selected);
    if selected {
        pen.over(Role::Selection);
    }
    pen.skip(NUMBER)
        .put(&format!("{dots} {count} lines the same"), Role::Muted);
    if !path.is_empty() {
        pen.put("   ", Role::Muted).put(path, Role::Breadcrumb);
    }
    pen.plain();
}

/// Returns the full name of an object, for its title row.
fn title_of(identity: &Identity) -> String {
    identity.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_named_by_what_tells_them_apart() {
        for (before, after, expected) in [
            (
                "cart in staging, release cart-v1",
                "cart in production, release cart-v2",
                ("staging", "production"),
            ),
            (
                "cart in production, revision 6, release cart-v1",
                "cart in production, revision 7, release cart-v2",
                ("revision 6", "revision 7"),
            ),
            ("release a", "release b", ("release a", "release b")),
            ("same", "same", ("same", "same")),
        ] {
            assert_eq!(told_apart(before, after), expected);
        }
    }

    #[test]
    fn a_line_is_cut_where_words_begin_and_moved_to_the_left() {
        let words = [2..5, 8..9];
        for (shift, expected) in [
            (
                0,
                vec![
                    ("ab", false),
                    ("cde", true),
                    ("fgh", false),
                    ("i", true),
                    ("j", false),
                ],
            ),
            (
                3,
                vec![
                    ("", false),
                    ("de", true),
                    ("fgh", false),
                    ("i", true),
                    ("j", false),
                ],
            ),
            (
                99,
                vec![
                    ("", false),
                    ("", true),
                    ("", false),
                    ("", true),
                    ("", false),
                ],
            ),
        ] {
            let found = pieces("abcdefghij", &words, shift);
            let found: Vec<(&str, bool)> =
                found.iter().map(|(it, is)| (it.as_str(), *is)).collect();
            assert_eq!(found, expected, "{shift}");
        }
        assert_eq!(pieces("日本語", &[], 2), [("本語".to_owned(), false)]);
        assert!(pieces(&"x".repeat(1_000_000), &[], 0)[0].0.len() <= LONGEST);
    }
}
