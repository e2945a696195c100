//! Formats a diff: as text for users, as a unified diff and as JSON.
//!
//! The text and the unified diff contain no characters that control a terminal. JSON contains the values unchanged.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Change, Diff, Hunk, Identity, Kind, ObjectDiff};
use crate::text;

impl Diff {
    /// Returns whether the diff shows no change. Hidden noise does not count as a change.
    pub fn is_empty(&self) -> bool {
        self.changed().next().is_none()
    }

    pub fn changed(&self) -> impl Iterator<Item = &ObjectDiff> {
        let objects = self.objects.iter();
        objects.filter(|object| object.change != Change::Same)
    }

    /// Returns the number of objects that differ in the way `change`.
    pub fn count(&self, change: Change) -> usize {
        let objects = self.objects.iter();
        objects.filter(|object| object.change == change).count()
    }

    /// Returns a copy of the diff with at most `context` equal lines around each change.
    pub fn narrowed(&self, context: usize) -> Diff {
        let object = |object: &ObjectDiff| ObjectDiff {
            hunks: object
                .hunks
                .iter()
                .flat_map(|hunk| hunk.narrowed(context))
                .collect(),
            ..object.clone()
        };
        Diff {
            objects: self.objects.iter().map(object).collect(),
            coarse: self.coarse.clone(),
        }
    }

    /// Returns the diff as text for the user: each changed object with its hunks, or else its changed fields, then a
    /// summary. The object with the most important change comes first.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let places = self.by_importance();
        for object in places.into_iter().filter_map(|at| self.objects.get(at)) {
            let (mark, what) = match object.change {
                Change::Added => ('+', "added".to_owned()),
                Change::Removed => ('-', "removed".to_owned()),
                Change::Changed | Change::Same => ('~', fields(object.fields.len())),
            };
            let name = object.identity.to_string();
            let _ = writeln!(out, "{mark} {}: {what}", text::line(&name));
            match object.hunks.is_empty() {
                true => write_fields(&mut out, object),
                false => write_hunks(&mut out, &object.hunks),
            }
            out.push('\n');
        }
        out.push_str(&self.summary());
        out.push('\n');
        if let Some(coarse) = &self.coarse {
            let _ = writeln!(out, "note: {coarse}");
        }
        out
    }

    /// Returns the numbers of added, removed and changed objects as one line.
    pub fn summary(&self) -> String {
        if self.is_empty() {
            return "no changes".to_owned();
        }
        let counts = [
            (Change::Added, "added"),
            (Change::Removed, "removed"),
            (Change::Changed, "changed"),
            (Change::Same, "unchanged"),
        ];
        let words = counts.map(|(change, word)| format!("{} {word}", self.count(change)));
        words.join(", ")
    }

    /// Returns a unified diff of the YAML of each object, in the format of `patch`.
    pub fn unified(&self) -> String {
        let mut out = String::new();
        if let Some(coarse) = &self.coarse {
            let _ = writeln!(out, "# {coarse}");
        }
        for object in self.changed() {
            let path = path(&object.identity);
            let side = |gone: Change, prefix: &str| match object.change == gone {
                true => "/dev/null".to_owned(),
                false => format!("{prefix}/{path}"),
            };
            let _ = writeln!(out, "--- {}", side(Change::Added, "a"));
            let _ = writeln!(out, "+++ {}", side(Change::Removed, "b"));
            write_hunks(&mut out, &object.hunks);
        }
        out
    }

    /// Returns the changed objects as JSON, and the number of unchanged objects.
    pub fn json(&self) -> Value {
        let objects: Vec<Value> = self
            .changed()
            .map(|object| {
                json!({
                    "identity": object.identity,
                    "change": object.change,
                    "fields": object.fields,
                    "hunks": object.hunks.iter().map(hunk).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "objects": objects,
            "added": self.count(Change::Added),
            "removed": self.count(Change::Removed),
            "changed": self.count(Change::Changed),
            "unchanged": self.count(Change::Same),
            "coarse": self.coarse,
        })
    }
}

fn fields(count: usize) -> String {
    match count {
        1 => "1 field changed".to_owned(),
        count => format!("{count} fields changed"),
    }
}

/// Returns the path of an object in the unified diff, such as `apps/Deployment/shop/cart`.
fn path(identity: &Identity) -> String {
    let group = match identity.group.as_str() {
        "" => "core",
        group => group,
    };
    let parts = [group, &identity.kind, &identity.namespace, &identity.name];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| text::line(part).replace([' ', '/'], "_"))
        .collect();
    parts.join("/")
}

fn write_fields(out: &mut String, object: &ObjectDiff) {
    let shown = |value: &Option<Value>| value.as_ref().map_or("none".to_owned(), Value::to_string);
    for field in &object.fields {
        let line = format!(
            "{}: {} -> {}",
            field.path,
            shown(&field.before),
            shown(&field.after)
        );
        let _ = writeln!(out, "  {}", text::line(&line));
    }
}

pub(super) fn write_hunks(out: &mut String, hunks: &[Hunk]) {
    for hunk in hunks {
        let (a, b) = (hunk.before, hunk.after);
        let _ = writeln!(
            out,
            "@@ -{},{} +{},{} @@",
            a.start, a.count, b.start, b.count
        );
        for line in &hunk.lines {
            out.push(match line.kind {
                Kind::Context => ' ',
                Kind::Removed => '-',
                Kind::Added => '+',
            });
            out.push_str(&text::clean(hunk.text(line)));
            out.push('\n');
            if !line.ended {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
}

fn hunk(hunk: &Hunk) -> Value {
    let lines = hunk.lines.iter().enumerate().map(|(at, line)| {
        let words = hunk.words(at);
        let words: Vec<[usize; 2]> = words.iter().map(|word| [word.start, word.end]).collect();
        json!({
            "kind": line.kind,
            "before": line.before,
            "after": line.after,
            "text": hunk.text(line),
            "words": words,
        })
    });
    json!({
        "before": hunk.before,
        "after": hunk.after,
        "lines": lines.collect::<Vec<_>>(),
    })
}
