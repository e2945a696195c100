//! What a plan changes: the objects of the environments, and in a repository the lines of the files.

use ratatui::layout::Rect;

use super::{Shown, State};
use crate::engine::actions::gc::Collection;
use crate::engine::diff::{Change, Diff, ObjectDiff};
use crate::engine::plan::Plan;
use crate::engine::repository::Proposal;
use crate::text;
use crate::tui::order::Prepared;
use crate::tui::pen::Sheet;
use crate::tui::theme::Role;

/// From so many columns on, files and objects stand beside each other.
const ABREAST: u16 = 160;

impl State {
    /// Draws what changes, between two rows.
    pub(super) fn changes(
        &self,
        sheet: &mut Sheet<'_>,
        row: u16,
        end: u16,
        prepared: &Prepared,
        shown: &Shown,
    ) {
        if row >= end {
            return;
        }
        let objects = objects(prepared, shown, sheet.glyphs.arrow);
        let files = self.files.as_deref().map(in_files);
        match (objects, files) {
            (None, None) => {}
            (Some(part), None) | (None, Some(part)) => self.part(sheet, row, end, part),
            (Some(objects), Some(files)) if sheet.width() >= ABREAST => {
                let area = sheet.area;
                let half = area.width / 2;
                let side = |x, width| Rect { x, width, ..area };
                self.part(&mut sheet.part(side(area.x, half)), row, end, files);
                let right = side(area.x + half, area.width - half);
                self.part(&mut sheet.part(right), row, end, objects);
            }
            (Some((title, lines)), Some((files, mut all))) => {
                all.push(vec![(title, Role::Title)]);
                all.extend(lines);
                self.part(sheet, row, end, (files, all));
            }
        }
    }

    fn part(&self, sheet: &mut Sheet<'_>, row: u16, end: u16, (title, lines): Part) {
        sheet.rule(row, &title, Role::Title);
        let height = usize::from(end.saturating_sub(row + 1));
        let first = self.scroll.min(lines.len().saturating_sub(height));
        for (at, line) in (row + 1..end).zip(lines.iter().skip(first)) {
            let mut pen = sheet.line(at);
            pen.skip(3);
            for (text, role) in line {
                pen.put(text, *role);
            }
        }
        let hidden = lines.len().saturating_sub(first + height);
        if hidden > 0 && height > 0 {
            let words = format!(" {hidden} more lines ");
            sheet.line(end - 1).right(&words, Role::Muted);
        }
    }
}

/// A title, and the lines under it.
type Part = (String, Vec<Spans>);

/// Words what changes in the environments, or goes.
fn objects(prepared: &Prepared, shown: &Shown, arrow: &str) -> Option<Part> {
    let one = |words: &str, role| ("changes".to_owned(), vec![vec![(words.to_owned(), role)]]);
    Some(match (prepared, shown) {
        (Prepared::Collection(collection), _) => ("what goes".to_owned(), going(collection)),
        (Prepared::Mark(_), _) => return None,
        (_, Shown::Rendering) => one("what changes is being rendered", Role::Muted),
        (_, Shown::Failed(why)) => one(why, Role::Error),
        (Prepared::Moves(draft), Shown::Diffs(diffs)) => changed(&draft.plan, diffs, arrow),
    })
}

/// Words what changes in the files: the name of each, and its lines.
fn in_files(files: &Proposal) -> Part {
    let (mut added, mut removed) = (0, 0);
    let mut lines: Vec<Spans> = Vec::new();
    let mut begins = false;
    for line in files.diff().lines() {
        let role = match line.get(..1) {
            _ if line.starts_with("--- ") => continue,
            _ if line.starts_with("+++ b/") => {
                begins = true;
                let path = line.trim_start_matches("+++ b/");
                lines.push(vec![(path.to_owned(), Role::Changed)]);
                continue;
            }
            // Where in the file it is tells the lines around it.
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
        lines.push(vec![(line.to_owned(), role)]);
    }
    let count = files.edits.len();
    let noun = if count == 1 { "file" } else { "files" };
    let title = format!("{count} {noun}, +{added} -{removed} lines");
    (title, lines)
}

type Spans = Vec<(String, Role)>;

fn going(collection: &Collection) -> Vec<Spans> {
    let line = |candidate: &crate::engine::actions::gc::Candidate| {
        let size = candidate.size.map_or("?".to_owned(), text::bytes);
        let age = text::age(i64::try_from(candidate.age.as_secs()).unwrap_or(i64::MAX));
        vec![
            (format!("{:<48} ", candidate.key.name), Role::Removed),
            (format!("{size:>9} {age:>6}  "), Role::Muted),
            (candidate.why(), Role::Muted),
        ]
    };
    collection.going().map(line).collect()
}

/// Words what changes, object by object.
fn changed(plan: &Plan, diffs: &[Option<Diff>], arrow: &str) -> (String, Vec<Spans>) {
    let mut lines = Vec::new();
    let (mut objects, mut added, mut removed) = (0, 0, 0);
    let several = plan.items.len() > 1;
    for (item, diff) in plan.items.iter().zip(diffs) {
        let Some(diff) = diff else {
            continue;
        };
        if several {
            lines.push(vec![(
                format!("{} in {}", item.component, item.environment),
                Role::Title,
            )]);
        }
        for object in diff
            .objects
            .iter()
            .filter(|object| object.change != Change::Same)
        {
            objects += 1;
            for hunk in &object.hunks {
                for line in &hunk.lines {
                    match line.kind {
                        crate::engine::diff::Kind::Added => added += 1,
                        crate::engine::diff::Kind::Removed => removed += 1,
                        crate::engine::diff::Kind::Context => {}
                    }
                }
            }
            lines.extend(object_lines(object, arrow));
        }
        let coarse = diff.coarse.iter();
        lines.extend(coarse.map(|why| vec![(why.clone(), Role::Warning)]));
    }
    if objects == 0 {
        let words = "nothing changes in the environment".to_owned();
        return ("changes".to_owned(), vec![vec![(words, Role::Muted)]]);
    }
    let plural = if objects == 1 { "object" } else { "objects" };
    (
        format!("changes: {objects} {plural}, +{added} -{removed} lines"),
        lines,
    )
}

fn object_lines(object: &ObjectDiff, arrow: &str) -> Vec<Spans> {
    let name = object.identity.to_string();
    let mut lines = vec![match object.change {
        Change::Added => vec![
            (format!("+ {name}"), Role::Added),
            ("  comes".to_owned(), Role::Muted),
        ],
        Change::Removed => vec![
            (format!("- {name}"), Role::Removed),
            ("  goes".to_owned(), Role::Muted),
        ],
        Change::Changed | Change::Same => vec![(name, Role::Changed)],
    }];
    let value = |value: &Option<serde_json::Value>| match value {
        None => "(nothing)".to_owned(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    for field in &object.fields {
        lines.push(vec![
            (format!("    {:<44} ", field.path), Role::Muted),
            (shortened(&value(&field.before), 44), Role::Removed),
            (format!("  {arrow}  "), Role::Muted),
            (shortened(&value(&field.after), 60), Role::Added),
        ]);
    }
    lines
}

/// Cuts a value to some columns. What tells two images or paths apart is at their end, so that is kept.
fn shortened(value: &str, columns: usize) -> String {
    let cleaned = text::line(value);
    if text::width(&cleaned) <= columns || cleaned.contains(' ') {
        return text::fit(&cleaned, columns);
    }
    let mut used = 1;
    let kept = cleaned.char_indices().rev().take_while(|(_, c)| {
        used += text::width(c.encode_utf8(&mut [0; 4]));
        used <= columns
    });
    let start = kept.last().map_or(cleaned.len(), |(at, _)| at);
    format!(
        "{}{}",
        text::ELLIPSIS,
        cleaned.get(start..).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::git::commit::FileEdit;
    use crate::tui::screens::Screen;
    use crate::tui::still::{Still, rolled_back};

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
            grounds: Default::default(),
            warnings: vec!["somebody should know".to_owned(); 5],
        };
        let mut still = rolled_back(Still::fleet().keys("R"));
        let Some(Screen::Plan(state)) = still.model.stack.last_mut() else {
            panic!("no plan is in front");
        };
        state.files = Some(Arc::new(files));
        still
            .shows("1 file, +1 -1 lines")
            .shows("-    name: checkout-service-v1.2.3")
            .shows("+    name: checkout-service-v1.2.1")
            .shows("and 2 more")
            .shows("registry/checkout:1.2.1")
            .golden("plan-repository");
    }

    #[test]
    fn the_end_of_an_image_is_kept_and_the_beginning_of_a_sentence() {
        for (value, columns, expected) in [
            ("shop/cart:v1", 20, "shop/cart:v1"),
            ("registry.example/shop/cart:v1.2.3", 12, "…cart:v1.2.3"),
            ("one two three", 8, "one two…"),
            ("日本語日本語", 5, "…本語"),
        ] {
            assert_eq!(shortened(value, columns), expected);
        }
    }
}
