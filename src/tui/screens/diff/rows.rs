//! Computes all rows of a diff when the diff arrives, and when its folds or its layout change. Therefore, drawing
//! only has to look up the visible rows.

use std::collections::BTreeSet;

use crate::engine::diff::{Diff, Hunk, Kind};

/// The number of unchanged lines around a change that always stay visible.
const CONTEXT: usize = 3;
/// The minimum number of lines that a fold hides.
const WORTH: usize = 2;

/// One row of the diff screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The title row of an object; the number is the object's index in the diff.
    Object(usize),
    /// A fold: one row in place of consecutive unchanged lines.
    Fold {
        object: usize,
        /// The index of the folded hunk in the object.
        hunk: usize,
        /// The index in the hunk of the first folded line.
        from: usize,
        /// The number of folded lines.
        count: usize,
        /// The YAML path of the first line after the fold.
        path: Box<str>,
    },
    /// A line that one side or both sides contain.
    Line(Spot),
    /// The empty row before the object with this index.
    Gap(usize),
}

/// The line or pair of lines of a hunk that one row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The index in the diff of the object to which the line belongs.
    pub object: usize,
    /// The index in the object of the hunk to which the line belongs.
    pub hunk: usize,
    /// The index in the hunk of the older side's line; None if the row shows no line of the older side.
    pub before: Option<u32>,
    /// The index in the hunk of the newer side's line; None if the row shows no line of the newer side. Equal to
    /// `before` if the line is unchanged.
    pub after: Option<u32>,
}

impl Row {
    /// Returns the index of the row's object.
    pub fn object(&self) -> usize {
        match self {
            Self::Object(object) | Self::Fold { object, .. } | Self::Gap(object) => *object,
            Self::Line(spot) => spot.object,
        }
    }

    /// Returns the first line that the row shows or hides, as (hunk, line); None for a title or an empty row.
    fn line(&self) -> Option<(usize, usize)> {
        match self {
            Self::Object(_) | Self::Gap(_) => None,
            Self::Fold { hunk, from, .. } => Some((*hunk, *from)),
            Self::Line(spot) => {
                let line = spot.before.or(spot.after)?;
                Some((spot.hunk, usize::try_from(line).ok()?))
            }
        }
    }

    /// Returns whether the row shows this line, or hides it in a fold.
    fn covers(&self, object: usize, hunk: usize, line: usize) -> bool {
        match self {
            Self::Fold {
                object: own,
                hunk: of,
                from,
                count,
                ..
            } => (*own, *of) == (object, hunk) && (*from..from + count).contains(&line),
            Self::Line(spot) => {
                let own = |of: Option<u32>| of.and_then(|of| usize::try_from(of).ok());
                (spot.object, spot.hunk) == (object, hunk)
                    && (own(spot.before) == Some(line) || own(spot.after) == Some(line))
            }
            Self::Object(_) | Self::Gap(_) => false,
        }
    }
}

/// The folds that the user opened or closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folds {
    /// The indexes of folded objects, of which only the title row is visible.
    pub closed: BTreeSet<usize>,
    /// The places where the user has unfolded unchanged lines, as (object, hunk, first line).
    pub open: BTreeSet<(usize, usize, usize)>,
}

/// The number of changed lines of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The number of lines that only the newer side contains.
    pub added: usize,
    /// The number of lines that only the older side contains.
    pub removed: usize,
}

impl Count {
    pub fn of(hunks: &[Hunk]) -> Self {
        let mut count = Self::default();
        for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
            count.added += usize::from(line.kind == Kind::Added);
            count.removed += usize::from(line.kind == Kind::Removed);
        }
        count
    }
}

/// All rows of a diff in one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub rows: Vec<Row>,
    /// The indexes of the first row of each change.
    pub hunks: Vec<usize>,
    /// The changed objects, as (index of the object, index of its title row).
    pub objects: Vec<(usize, usize)>,
}

impl Rows {
    /// Computes the rows of a diff: side by side if `split` is true, otherwise unified.
    pub fn of(diff: &Diff, folds: &Folds, split: bool) -> Self {
        let mut rows = Self::default();
        for at in diff.by_importance() {
            let Some(object) = diff.objects.get(at) else {
                continue;
            };
            if !rows.rows.is_empty() {
                rows.rows.push(Row::Gap(at));
            }
            rows.objects.push((at, rows.rows.len()));
            rows.rows.push(Row::Object(at));
            if folds.closed.contains(&at) {
                continue;
            }
            for (number, hunk) in object.hunks.iter().enumerate() {
                let place = (at, number);
                rows.hunk(place, hunk, folds, split);
            }
        }
        rows
    }

    fn hunk(&mut self, place: (usize, usize), hunk: &Hunk, folds: &Folds, split: bool) {
        let mut path = Path::default();
        let mut start = 0;
        let runs = hunk
            .lines
            .chunk_by(|one, next| (one.kind == Kind::Context) == (next.kind == Kind::Context));
        for run in runs {
            let range = start..start + run.len();
            start = range.end;
            let same = run.first().is_some_and(|line| line.kind == Kind::Context);
            match same {
                true => self.same(place, hunk, range.clone(), folds, &mut path),
                false => {
                    self.hunks.push(self.rows.len());
                    self.changed(place, hunk, range.clone(), split);
                    range.for_each(|at| path.enter(hunk, at));
                }
            }
        }
    }

    /// Adds the rows of unchanged lines, and folds those that are far from a change.
    fn same(
        &mut self,
        (object, number): (usize, usize),
        hunk: &Hunk,
        range: std::ops::Range<usize>,
        folds: &Folds,
        path: &mut Path,
    ) {
        let head = match range.start {
            0 => 0,
            _ => CONTEXT.min(range.len()),
        };
        let tail = match range.end == hunk.lines.len() {
            true => 0,
            false => CONTEXT.min(range.len() - head),
        };
        let folded = range.start + head..range.end - tail;
        let is_open = folded.len() < WORTH || folds.open.contains(&(object, number, folded.start));
        for at in range {
            if at == folded.start && !is_open {
                let above = path.above(hunk, at);
                folded.clone().for_each(|at| path.enter(hunk, at));
                let path = match folded.end < hunk.lines.len() {
                    true => path.above(hunk, folded.end),
                    false => above,
                };
                self.rows.push(Row::Fold {
                    object,
                    hunk: number,
                    from: folded.start,
                    count: folded.len(),
                    path: path.into(),
                });
            }
            if is_open || !folded.contains(&at) {
                let line = u32::try_from(at).ok();
                path.enter(hunk, at);
                self.rows.push(Row::Line(Spot {
                    object,
                    hunk: number,
                    before: line,
                    after: line,
                }));
            }
        }
    }

    /// Adds the rows of changed lines: in pairs if the layout is side by side, one after another if it is unified.
    fn changed(
        &mut self,
        (object, number): (usize, usize),
        hunk: &Hunk,
        range: std::ops::Range<usize>,
        split: bool,
    ) {
        let mut push = |before: Option<usize>, after: Option<usize>| {
            let line = |at: Option<usize>| at.and_then(|at| u32::try_from(at).ok());
            self.rows.push(Row::Line(Spot {
                object,
                hunk: number,
                before: line(before),
                after: line(after),
            }));
        };
        let of = |kind: Kind| {
            let lines = hunk.lines.iter().enumerate();
            let own = lines.skip(range.start).take(range.len());
            own.filter(move |(_, line)| line.kind == kind)
                .map(|(at, line)| (at, line.pair))
        };
        if !split {
            of(Kind::Removed).for_each(|(at, _)| push(Some(at), None));
            of(Kind::Added).for_each(|(at, _)| push(None, Some(at)));
            return;
        }
        let (mut old, mut new) = (of(Kind::Removed).peekable(), of(Kind::Added).peekable());
        loop {
            match (old.peek().copied(), new.peek().copied()) {
                (None, None) => break,
                // Both lines belong to the same pair, or both belong to no pair.
                (Some((one, pair)), Some((other, back)))
                    if pair == Some(other) || pair.is_none() && back.is_none() =>
                {
                    push(Some(one), Some(other));
                    old.next();
                    new.next();
                }
                (Some((one, None)), _) | (Some((one, _)), None) => {
                    push(Some(one), None);
                    old.next();
                }
                (_, Some((other, _))) => {
                    push(None, Some(other));
                    new.next();
                }
            }
        }
    }

    /// Returns the index of the row that shows the same line as `row`, which is a row of another layout.
    pub fn like(&self, row: &Row) -> usize {
        let object = row.object();
        let line = row.line().and_then(|(hunk, line)| {
            self.rows
                .iter()
                .position(|row| row.covers(object, hunk, line))
        });
        line.unwrap_or_else(|| {
            let found = self.objects.iter().find(|(known, _)| *known == object);
            found.map_or(0, |(_, row)| *row)
        })
    }
}

/// The YAML path of a line, computed from the indentation of the lines before it.
#[derive(Debug, Default)]
struct Path {
    /// The keys and list items that enclose the line, as (indentation, name, whether it is a list item).
    parents: Vec<(usize, String, bool)>,
}

/// The maximum number of lines in which bowline searches for the field `name` of a list item.
const REACH: usize = 40;

impl Path {
    /// Updates the path from the previous line to the next line.
    fn enter(&mut self, hunk: &Hunk, at: usize) {
        let Some(line) = hunk.lines.get(at).map(|line| hunk.text(line)) else {
            return;
        };
        let mut text = line.trim_start();
        let mut indent = line.len() - text.len();
        if text.is_empty() {
            return;
        }
        while let Some(rest) = text.strip_prefix("- ") {
            self.leave(indent, true);
            let inside = rest.trim_start();
            let deeper = indent + 2 + rest.len() - inside.len();
            let name = name(hunk, at, inside, deeper).unwrap_or_default();
            self.parents.push((indent, format!("[{name}]"), true));
            (text, indent) = (inside, deeper);
        }
        self.leave(indent, false);
        if let Some((key, _)) = text.split_once(':') {
            self.parents.push((indent, key.to_owned(), false));
        }
    }

    /// Removes the parents that do not enclose a line of this indentation. A list item may have the same indentation
    /// as the key of its list, so `item` says whether the line starts a list item.
    fn leave(&mut self, indent: usize, item: bool) {
        let encloses = |(own, _, is_item): &(usize, String, bool)| {
            *own < indent || (*own == indent && item && !is_item)
        };
        while self.parents.last().is_some_and(|last| !encloses(last)) {
            self.parents.pop();
        }
    }

    /// Returns the path of the keys that enclose this line.
    fn above(&self, hunk: &Hunk, at: usize) -> String {
        let line = hunk.lines.get(at).map_or("", |line| hunk.text(line));
        let text = line.trim_start();
        let (indent, item) = (line.len() - text.len(), text.starts_with("- "));
        let mut path = String::new();
        let encloses = |(own, _, is_item): &&(usize, String, bool)| {
            *own < indent || (*own == indent && item && !is_item)
        };
        for (_, name, is_item) in self.parents.iter().take_while(encloses) {
            if !path.is_empty() && !is_item {
                path.push('.');
            }
            path.push_str(name);
        }
        path
    }
}

/// Returns the value of the field `name` of a list item; None if the next lines contain no such field.
fn name<'h>(hunk: &'h Hunk, at: usize, first: &'h str, indent: usize) -> Option<&'h str> {
    if let Some(name) = first.strip_prefix("name: ") {
        return Some(name);
    }
    let following = hunk.lines.iter().skip(at + 1).take(REACH);
    for line in following.map(|line| hunk.text(line)) {
        let text = line.trim_start();
        let own = line.len() - text.len();
        if own < indent {
            return None;
        }
        if own == indent
            && let Some(name) = text.strip_prefix("name: ")
        {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::engine::diff::{Options, WHOLE, diff};

    fn deployment(image: &str, replicas: u8, extra: bool) -> Value {
        let mut env: Vec<Value> = (0..8)
            .map(|n| json!({"name": format!("V{n}"), "value": n.to_string()}))
            .collect();
        if extra {
            env.push(json!({"name": "NEW", "value": "1"}));
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "cart", "labels": {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [
                {"name": "web", "image": image, "env": env},
            ]}}},
        })
    }

    fn compared(before: &[Value], after: &[Value]) -> Diff {
        let options = Options {
            context: WHOLE,
            ..Options::default()
        };
        diff(before, after, &options)
    }

    fn words(diff: &Diff, rows: &Rows) -> Vec<String> {
        let text = |spot: &Spot, at: Option<u32>| {
            let hunk = &diff.objects[spot.object].hunks[spot.hunk];
            at.map_or("", |at| hunk.text(&hunk.lines[at as usize]).trim())
        };
        let row = |row: &Row| match row {
            Row::Object(at) => format!("= {}", diff.objects[*at].identity),
            Row::Fold { count, path, .. } => format!("... {count} {path}"),
            Row::Line(spot) => match spot.before == spot.after {
                true => text(spot, spot.before).to_owned(),
                false => format!("{} | {}", text(spot, spot.before), text(spot, spot.after)),
            },
            Row::Gap(_) => String::new(),
        };
        rows.rows.iter().map(row).collect()
    }

    #[test]
    fn what_is_equal_is_folded_under_its_path() {
        let found = compared(
            &[deployment("cart:1", 1, false)],
            &[deployment("cart:2", 1, true)],
        );
        let rows = Rows::of(&found, &Folds::default(), true);
        assert_eq!(
            words(&found, &rows),
            [
                "= Deployment.apps cart",
                "... 29 spec.template.spec.containers[web].env[V6]",
                "value: \"6\"",
                "- name: V7",
                "value: \"7\"",
                " | - name: NEW",
                " | value: \"1\"",
                "image: cart:1 | image: cart:2",
                "name: web",
            ]
        );
        assert_eq!(rows.objects, [(0, 0)]);
        // All lines are unfolded, so each row of one layout must find its line in the other layout.
        let mut folds = Folds::default();
        for row in &rows.rows {
            if let Row::Fold {
                object, hunk, from, ..
            } = row
            {
                folds.open.insert((*object, *hunk, *from));
            }
        }
        let open = Rows::of(&found, &folds, true);
        assert!(!open.rows.iter().any(|row| matches!(row, Row::Fold { .. })));
        assert!(open.rows.len() > rows.rows.len());
        for row in &rows.rows {
            let there = &open.rows[open.like(row)];
            assert_eq!(there.object(), row.object());
        }
    }

    #[test]
    fn a_line_stands_beside_what_it_became() {
        let found = compared(
            &[deployment("cart:1", 1, false)],
            &[deployment("cart:2", 2, false)],
        );
        let beside = words(&found, &Rows::of(&found, &Folds::default(), true));
        assert!(
            beside.contains(&"image: cart:1 | image: cart:2".to_owned()),
            "{beside:?}"
        );
        let below = words(&found, &Rows::of(&found, &Folds::default(), false));
        let at = below
            .iter()
            .position(|row| row == "image: cart:1 | ")
            .unwrap();
        assert_eq!(below[at + 1], " | image: cart:2");
    }

    #[test]
    fn objects_come_go_and_close() {
        let named = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}});
        let found = compared(&[named("a"), named("b")], &[named("b"), named("c")]);
        let rows = Rows::of(&found, &Folds::default(), true);
        assert_eq!(rows.objects.len(), 2, "{rows:?}");
        assert_eq!(rows.hunks.len(), 2);
        let closed = Folds {
            closed: [0, 2].into(),
            ..Folds::default()
        };
        let rows = Rows::of(&found, &closed, true);
        assert_eq!(words(&found, &rows), ["= ConfigMap a", "", "= ConfigMap c"]);
        assert!(rows.hunks.is_empty());
    }
}
