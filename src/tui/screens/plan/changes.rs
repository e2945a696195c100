//! The lines that describe the changes of a plan: the objects in the environments, and in a
//! repository the files.

use super::Shown;
use super::page::{Part, Spans};
use crate::engine::diff::{Change, ChangeLine, Diff, Identity, Kind, labels, shortened};
use crate::engine::plan::Plan;
use crate::gitops::propose::Proposal;
use crate::subjects::release_pin::actions::gc::{Candidate, Collection};
use crate::subjects::service::PlannedCommand;
use crate::text;
use crate::theme::Role;
use crate::widgets::wrap;

/// Below this screen width, in columns, lines have a smaller indentation.
const NARROW: usize = 60;
/// If fewer columns than this remain for a value, the value is drawn below the name of its field.
const VALUE: usize = 14;
/// From this screen width on, in columns, all values start in the same column.
const ALIGNED: usize = 100;
/// The maximum width to which the names of fields are padded.
const FIELD: usize = 40;

/// Returns the lines of the diffs that a plan causes, or of the objects that gc deletes. None if there is nothing to
/// list.
pub(super) fn objects(
    prepared: &PlannedCommand,
    shown: &Shown,
    arrow: &str,
    columns: usize,
) -> Option<Part> {
    let one = |words: &str, role| {
        let (indent, width) = indent(columns);
        let lines = wrap(words, width);
        let lines = lines.into_iter();
        let lines = lines.map(|line| vec![(format!("{:indent$}{line}", ""), role)]);
        ("changes".to_owned(), lines.collect())
    };
    Some(match (prepared, shown) {
        (PlannedCommand::Collection(collection), _) => {
            ("objects to delete".to_owned(), going(collection, columns))
        }
        (PlannedCommand::Mark(_), _) => return None,
        (_, Shown::Rendering) => one("the changes are being rendered", Role::Muted),
        (_, Shown::Failed(why)) => one(why, Role::Error),
        (PlannedCommand::Changes(action_plan), Shown::Diffs(diffs)) => {
            let changed = changed(&action_plan.plan, diffs, arrow, columns);
            changed.unwrap_or_else(|| one("no object changes in the environment", Role::Muted))
        }
    })
}

/// Returns two widths: of the indentation of lines, and of the remaining text.
fn indent(columns: usize) -> (usize, usize) {
    let indent = if columns < NARROW { 1 } else { 3 };
    (indent, columns.saturating_sub(indent + 1))
}

/// Returns the lines of the changed files: the name of each file, and its changed lines.
pub(super) fn in_files(files: &Proposal, columns: usize) -> Part {
    let (indent, width) = indent(columns);
    let (mut added, mut removed) = (0, 0);
    let mut lines: Vec<Spans> = Vec::new();
    let mut begins = false;
    let mut push = |line: &str, role: Role| {
        // The end of a long line may be the changed part, so wrap the line instead of cutting it.
        for part in cut(line, width) {
            lines.push(vec![(format!("{:indent$}{part}", ""), role)]);
        }
    };
    for line in files.diff().lines() {
        let role = match line.get(..1) {
            _ if line.starts_with("--- ") => continue,
            _ if line.starts_with("+++ b/") => {
                begins = true;
                push(line.trim_start_matches("+++ b/"), Role::Changed);
                continue;
            }
            // Omit the first position marker (`@@`) of a file, because the lines around the change show the position.
            Some("@") if std::mem::take(&mut begins) => continue,
            Some("@") => Role::Muted,
            Some("+") => {
                added += 1;
                Role::Added
            }
            Some("-") => {
                removed += 1;
                Role::Removed
            }
            _ if line.starts_with("removed ") => Role::Removed,
            _ => Role::ContextLine,
        };
        push(line, role);
    }
    let count = text::counted(files.edits.len(), "files");
    (format!("{count}, +{added} -{removed} lines"), lines)
}

/// Splits a line into pieces of at most `width` columns.
fn cut(line: &str, width: usize) -> Vec<String> {
    let cleaned = text::line(line);
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in cleaned.chars() {
        let wide = text::width(c.encode_utf8(&mut [0; 4]));
        if used + wide > width.max(2) {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

fn going(collection: &Collection, columns: usize) -> Vec<Spans> {
    let (indent, width) = indent(columns);
    let lines = |candidate: &Candidate| {
        let size = candidate.size.map_or("?".to_owned(), text::bytes);
        let age = text::age(i64::try_from(candidate.age.as_secs()).unwrap_or(i64::MAX));
        let name = candidate.key.name.to_string();
        if columns >= 100 && text::width(&name) <= 48 {
            return vec![vec![
                (format!("{:indent$}{name:<48} ", ""), Role::Removed),
                (format!("{size:>9} {age:>6}  "), Role::Muted),
                (candidate.why(), Role::Muted),
            ]];
        }
        let mut lines: Vec<Spans> = cut(&name, width)
            .into_iter()
            .map(|part| vec![(format!("{:indent$}{part}", ""), Role::Removed)])
            .collect();
        let words = format!("{size} {age}  {}", candidate.why());
        for line in wrap(&words, width.saturating_sub(2)) {
            lines.push(vec![(format!("{:indent$}  {line}", ""), Role::Muted)]);
        }
        lines
    };
    collection.going().flat_map(lines).collect()
}

/// Returns the lines of all diffs of a plan, the most important change first; None if there is no difference.
fn changed(plan: &Plan, diffs: &[Option<Diff>], arrow: &str, columns: usize) -> Option<Part> {
    let mut lines: Vec<Spans> = Vec::new();
    let (mut objects, mut added, mut removed) = (0, 0, 0);
    let (indent, width) = indent(columns);
    for (change, diff) in plan.changes.iter().zip(diffs) {
        let Some(diff) = diff else {
            continue;
        };
        if plan.changes.len() > 1 {
            let words = format!("{} in {}", change.name, change.environment);
            lines.push(vec![(format!("{:indent$}{words}", ""), Role::Title)]);
        }
        for object in diff.changed() {
            objects += 1;
            for line in object.hunks.iter().flat_map(|hunk| &hunk.lines) {
                added += usize::from(line.kind == Kind::Added);
                removed += usize::from(line.kind == Kind::Removed);
            }
        }
        for mut line in object_lines(diff, arrow, width) {
            line.insert(0, (" ".repeat(indent), Role::Muted));
            lines.push(line);
        }
        if let Some(why) = &diff.coarse {
            for line in wrap(why, width) {
                lines.push(vec![(format!("{:indent$}{line}", ""), Role::Warning)]);
            }
        }
    }
    let count = text::counted(objects, "objects");
    let title = format!("changes: {count}, +{added} -{removed} lines");
    (objects > 0).then_some((title, lines))
}

/// Returns the lines of the diff of one environment. Each object's name comes first, then the changes of this object.
fn object_lines(diff: &Diff, arrow: &str, width: usize) -> Vec<Spans> {
    let changes = diff.change_lines();
    let identities: Vec<&Identity> = diff.changed().map(|object| &object.identity).collect();
    let short = labels(&identities, width.saturating_sub(2));
    let name = |of: &Identity| {
        let full = of.to_string();
        let place = identities.iter().position(|known| *known == of);
        let short = place.and_then(|at| short.get(at));
        match (text::width(&full) + 2 <= width, short) {
            (false, Some(short)) => short.clone(),
            _ => full,
        }
    };
    let alone = changes.iter().filter(|line| line.objects.len() == 1);
    let fields = alone.map(|line| text::width(&line.field));
    let aligned = match width >= ALIGNED {
        true => fields.max().unwrap_or_default().min(FIELD),
        false => 0,
    };
    let mut lines: Vec<Spans> = Vec::new();
    let mut head: Option<&Identity> = None;
    for line in &changes {
        let object = line.objects.first().copied();
        let named = object.map(name).unwrap_or_default();
        let shared = line.objects.len() > 1;
        match line.change {
            Change::Added => lines.push(vec![
                (format!("+ {named}"), Role::Added),
                ("  is created".to_owned(), Role::Muted),
            ]),
            Change::Removed => lines.push(vec![
                (format!("- {named}"), Role::Removed),
                ("  is deleted".to_owned(), Role::Muted),
            ]),
            Change::Changed | Change::Same => {
                if !shared && head != object {
                    lines.push(vec![(named, Role::Changed)]);
                }
                lines.extend(field_lines(line, arrow, width, aligned));
            }
        }
        let alone = !shared && line.change == Change::Changed;
        head = object.filter(|_| alone);
    }
    lines
}

/// Returns the lines of one change. If both values fit, this is one line; otherwise the values are below the field.
fn field_lines(line: &ChangeLine<'_>, arrow: &str, width: usize, aligned: usize) -> Vec<Spans> {
    let (before, after) = line.values();
    let (indent, role, count) = match line.objects.len() {
        1 if width < NARROW => (2, Role::Muted, String::new()),
        1 => (4, Role::Muted, String::new()),
        several => (0, Role::Changed, format!("  on {several} objects")),
    };
    let arrow = format!(" {arrow} ");
    let field = text::fit_name(&line.field, width.saturating_sub(indent));
    let taken = text::width(&arrow) + text::width(&count);
    let values = |pair: (String, String), name: String, indent: usize| -> Spans {
        vec![
            (" ".repeat(indent), Role::Muted),
            (name, role),
            (pair.0, Role::Removed),
            (arrow.clone(), Role::Muted),
            (pair.1, Role::Added),
            (count.clone(), Role::Muted),
        ]
    };
    let whole = text::width(&text::line(&before)) + text::width(&text::line(&after));
    let wide = |name: usize| indent + name + 2 + taken;
    let alone = line.objects.len() == 1;
    let aligned = aligned.max(text::width(&field));
    let aligned = if alone { aligned } else { text::width(&field) };
    for name in [aligned, text::width(&field)] {
        let room = width.saturating_sub(wide(name));
        let each = room / 2;
        if whole <= room || each >= 2 * VALUE {
            let pair = match whole <= room {
                true => (text::line(&before).into(), text::line(&after).into()),
                false => shortened(&before, &after, each),
            };
            let name = format!("{field:<name$}  ");
            return vec![values(pair, name, indent)];
        }
    }
    let room = width.saturating_sub(indent + 2 + taken);
    let pair = match whole <= room {
        true => (text::line(&before).into(), text::line(&after).into()),
        false => shortened(&before, &after, room / 2),
    };
    vec![
        vec![(" ".repeat(indent), Role::Muted), (field, role)],
        values(pair, String::new(), indent + 2),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::git::commit::FileEdit;
    use crate::screens::Screen;
    use crate::snapshot_test::{SnapshotTest, rolled_back};

    #[test]
    fn the_lines_of_the_files_stand_with_the_objects_that_they_change() {
        let line = |release: &str| format!("spec:\n  releaseRef:\n    name: {release}\n");
        let edit = FileEdit {
            path: "pins/production/checkout-service.yaml".to_owned(),
            before: Some(line("checkout-service-v1.2.3").into_bytes()),
            after: Some(line("checkout-service-v1.2.1").into_bytes()),
        };
        let files = Proposal {
            operation: "x".to_owned(),
            message: "roll back\n".to_owned(),
            edits: vec![edit],
            facts: Default::default(),
            warnings: vec!["somebody should know".to_owned(); 5],
        };
        let mut still = rolled_back(SnapshotTest::fleet().keys("R"));
        let Some(Screen::Plan(state)) = still.model.stack.last_mut() else {
            panic!("no plan is in front");
        };
        state.files = Some(Arc::new(files));
        still
            .shows("1 file, +1 -1 lines")
            .shows("-    name: checkout-service-v1.2.3")
            .shows("+    name: checkout-service-v1.2.1")
            .shows("registry/checkout:1.2.1")
            .golden("plan-repository");
    }
}
