//! The rows of a diff. They are computed when the diff arrives, is folded or changes its layout, so that
//! drawing only looks up the visible rows.

use std::collections::BTreeSet;

use crate::engine::diff::{Diff, Hunk, Kind};

/// The number of equal lines that are never folded around a change.
const CONTEXT: usize = 3;
/// The smallest number of lines to fold.
const WORTH: usize = 2;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The name of an object.
    Object(usize),
    /// Folded equal lines.
    Fold {
        /// The index of the object.
        object: usize,
        /// The index of the hunk in the object.
        hunk: usize,
        /// The index of the first folded line.
        from: usize,
        /// The number of folded lines.
        count: usize,
        /// The path inside the object of the line after the fold.
        path: Box<str>,
    },
    /// A line of one side or of both.
    Line(Spot),
    /// An empty row between two objects.
    Gap(usize),
}

/// The lines of a hunk that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The index of the object.
    pub object: usize,
    /// The index of the hunk in the object.
    pub hunk: usize,
    /// The line of the older side.
    pub before: Option<u32>,
    /// The line of the newer side; the same number as `before` if both sides have the line.
    pub after: Option<u32>,
}

impl Row {
    /// Returns the object of the row.
    pub fn object(&self) -> usize {
        match self {
            Self::Object(object) | Self::Fold { object, .. } | Self::Gap(object) => *object,
            Self::Line(spot) => spot.object,
        }
    }

    /// Returns the hunk and the first line of the row; None if the row shows no line.
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

    /// Returns whether the row shows a line, folded or not.
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

/// The state of the folds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folds {
    /// The folded objects: only their names are shown.
    pub closed: BTreeSet<usize>,
    /// The unfolded equal lines: by object, hunk and first line.
    pub open: BTreeSet<(usize, usize, usize)>,
}

/// The number of changed lines of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Lines that only the newer side has.
    pub added: usize,
    /// Lines that only the older side has.
    pub removed: usize,
}

impl Count {
    /// Counts the changed lines of an object.
    pub fn of(hunks: &[Hunk]) -> Self {
        let mut count = Self::default();
        for line in hunks.iter().flat_map(|hunk| &hunk.lines) {
            count.added += usize::from(line.kind == Kind::Added);
            count.removed += usize::from(line.kind == Kind::Removed);
        }
        count
    }
}

/// The rows of a diff in one layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The rows.
    pub rows: Vec<Row>,
    /// The first row of each change.
    pub hunks: Vec<usize>,
    /// The changed objects: the index of the object, and the row of its name.
    pub objects: Vec<(usize, usize)>,
}

impl Rows {
    /// Computes the rows of a diff, side by side or unified.
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

    /// Adds equal lines; folds those far from a change.
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

    /// Adds changed lines: side by side in pairs, or unified in order.
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
                // The two lines are a pair, or neither of them has a pair.
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

    /// Returns the row of this layout that shows the same line as a row of another layout.
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

/// The path of a line in a YAML text, from the indentation of the lines before it.
#[derive(Debug, Default)]
struct Path {
    /// The enclosing keys and list items: indentation, name, whether it is a list item.
    parents: Vec<(usize, String, bool)>,
}

/// The number of lines in which the name of a list item is searched.
const REACH: usize = 40;

impl Path {
    /// Updates the path by one line.
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

    /// Removes the parents that do not enclose this indentation. List items may have the same indentation as
    /// the key of their list.
    fn leave(&mut self, indent: usize, item: bool) {
        let encloses = |(own, _, is_item): &(usize, String, bool)| {
            *own < indent || (*own == indent && item && !is_item)
        };
        while self.parents.last().is_some_and(|last| !encloses(last)) {
            self.parents.pop();
        }
    }

    /// Returns the path of the enclosing keys of a line.
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

/// Returns the name of a list item: its own `name` field.
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
        // After unfolding, all lines are there, and a row finds its line in the other layout.
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
