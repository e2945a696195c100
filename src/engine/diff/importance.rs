//! Sorts changes by their importance for the reader: images, then environment variables and configuration data, then
//! replicas and resources, then the rest. If several objects change in the same way, their change is one line.
//!
//! The plan screen, the plan on the command line and the object list of the diff screen use this order.

use std::collections::HashMap;

use serde_json::Value;

use super::{Change, Diff, FieldChange, Identity, ObjectDiff};
use crate::text;

/// The largest width of a value in a change line, in terminal columns.
const VALUE: usize = 160;

/// How important a change is for the reader. The first variant is the most important one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// A change of an image, or a container that is added or removed.
    Image,
    /// A change of an environment variable, an argument or configuration data.
    Data,
    /// A change of the number of replicas, or of the resources of a container.
    Scale,
    /// Any other change.
    Other,
}

/// One line of the change summary: a change of one object, or the same change of several objects.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeLine<'d> {
    pub importance: Importance,
    /// The objects that this line is about; at least one.
    pub objects: Vec<&'d Identity>,
    /// How the objects change. `Added` and `Removed` mean whole objects; `Changed` means the field `field`.
    pub change: Change,
    /// The short name of the changed field, such as `containers[web].image`; empty if a whole object changes.
    pub field: String,
    /// The old value of the field; None if the change adds the field.
    pub before: Option<&'d Value>,
    /// The new value of the field; None if the change removes the field.
    pub after: Option<&'d Value>,
}

impl ChangeLine<'_> {
    /// Returns the old and the new value of the field as text for the user.
    pub fn values(&self) -> (String, String) {
        let word = |value: Option<&Value>, absent: &str| match value {
            None => absent.to_owned(),
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(other) => other.to_string(),
        };
        let (before, after) = (word(self.before, "(none)"), word(self.after, "(removed)"));
        // Both texts are equal if only the type changed, for example from the number 1 to the string "1". So the
        // values are printed as JSON, which shows the type.
        match before == after {
            true => {
                let exact = |value: Option<&Value>| value.map_or(String::new(), Value::to_string);
                (exact(self.before), exact(self.after))
            }
            false => (before, after),
        }
    }
}

/// A step of a field path: the key of a map, or an item of a list.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(String),
}

impl Diff {
    /// Returns the change lines of the diff, the most important first. If several objects change in the same way,
    /// they share one line.
    pub fn change_lines(&self) -> Vec<ChangeLine<'_>> {
        let mut lines: Vec<ChangeLine<'_>> = Vec::new();
        let mut known: HashMap<(String, String), usize> = HashMap::new();
        for object in self.changed() {
            if object.change != Change::Changed {
                lines.push(ChangeLine {
                    importance: of_object(&object.identity),
                    objects: vec![&object.identity],
                    change: object.change,
                    field: String::new(),
                    before: None,
                    after: None,
                });
                continue;
            }
            let paths: Vec<Vec<Step>> = object.fields.iter().map(|it| steps(&it.path)).collect();
            let shorts: Vec<String> = paths.iter().map(|steps| short(steps)).collect();
            for ((field, steps), name) in object.fields.iter().zip(&paths).zip(&shorts) {
                // If two changed fields of an object have the same short name, the line shows their full paths
                // instead.
                let same = shorts.iter().filter(|other| *other == name).count();
                let name = match same > 1 && meta(steps).is_none() {
                    true => written(steps),
                    false => name.clone(),
                };
                let line = ChangeLine {
                    importance: of_field(&object.identity, steps, field),
                    objects: vec![&object.identity],
                    change: Change::Changed,
                    field: name,
                    before: field.before.as_ref(),
                    after: field.after.as_ref(),
                };
                // All masked values look the same, even if two Secrets change in different ways. So each Secret gets
                // its own line.
                if object.identity.kind == "Secret" {
                    lines.push(line);
                    continue;
                }
                let values = format!("{:?} {:?}", field.before, field.after);
                let at = *known
                    .entry((line.field.clone(), values))
                    .or_insert(lines.len());
                match lines.get_mut(at) {
                    None => lines.push(line),
                    Some(shared) => {
                        shared.importance = shared.importance.min(line.importance);
                        if !shared.objects.contains(&&object.identity) {
                            shared.objects.push(&object.identity);
                        }
                    }
                }
            }
        }
        // The sort is stable, so lines of the same importance stay in the order of the objects.
        lines.sort_by_key(|line| line.importance);
        lines
    }

    /// Returns the indexes of the changed objects in `objects`. The object with the most important change comes
    /// first.
    pub fn by_importance(&self) -> Vec<usize> {
        let changed = self.objects.iter().enumerate();
        let changed = changed.filter(|(_, object)| object.change != Change::Same);
        let mut places: Vec<(Importance, usize)> =
            changed.map(|(at, object)| (of(object), at)).collect();
        places.sort();
        places.into_iter().map(|(_, at)| at).collect()
    }

    /// Returns the change lines as text for the user, the most important first.
    pub fn changes_text(&self) -> String {
        let mut out = String::new();
        let mut head: Option<&Identity> = None;
        for line in self.change_lines() {
            let object = line.objects.first().copied();
            let name = object.map(ToString::to_string).unwrap_or_default();
            let said = match line.change {
                Change::Added => format!("  + {name}: added"),
                Change::Removed => format!("  - {name}: removed"),
                Change::Changed | Change::Same => {
                    let (before, after) = line.values();
                    let (before, after) = shortened(&before, &after, VALUE);
                    let values = format!("{}: {before} -> {after}", line.field);
                    match line.objects.as_slice() {
                        [_] => {
                            if head != object {
                                out += &format!("  ~ {}\n", text::line(&name));
                            }
                            format!("      {values}")
                        }
                        several => format!("  ~ {values} on {} objects", several.len()),
                    }
                }
            };
            let alone = line.objects.len() == 1 && line.change == Change::Changed;
            head = object.filter(|_| alone);
            out += &text::line(&said);
            out.push('\n');
        }
        out
    }
}

/// Returns the importance of the most important change of an object.
fn of(object: &ObjectDiff) -> Importance {
    if object.change != Change::Changed {
        return of_object(&object.identity);
    }
    let fields = object.fields.iter();
    let fields = fields.map(|field| of_field(&object.identity, &steps(&field.path), field));
    fields.min().unwrap_or(Importance::Other)
}

/// Returns the importance of an added or removed object, by its kind.
fn of_object(identity: &Identity) -> Importance {
    match (identity.group.as_str(), identity.kind.as_str()) {
        ("apps" | "batch", _) | ("", "Pod" | "ReplicationController") => Importance::Image,
        ("", "ConfigMap" | "Secret") => Importance::Data,
        ("autoscaling", _) => Importance::Scale,
        _ => Importance::Other,
    }
}

fn of_field(identity: &Identity, steps: &[Step], field: &FieldChange) -> Importance {
    let keys = || {
        steps.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        })
    };
    let has = |wanted: &[&str]| keys().any(|key| wanted.contains(&key));
    let first = keys().next().unwrap_or_default();
    let configures = identity.group.is_empty()
        && matches!(identity.kind.as_str(), "ConfigMap" | "Secret")
        && matches!(first, "data" | "binaryData" | "stringData");
    if configures || has(&["env", "envFrom", "args", "command"]) {
        return Importance::Data;
    }
    let last = steps.last();
    let holds_image = |value: &Option<Value>| {
        let value = value.as_ref();
        value.is_some_and(|value| value.get("image").is_some())
    };
    let is_container = matches!(last, Some(Step::Item(_)))
        && (holds_image(&field.before) || holds_image(&field.after));
    if is_container || matches!(last, Some(Step::Key(key)) if key == "image") {
        return Importance::Image;
    }
    let scales = [
        "replicas",
        "minReplicas",
        "maxReplicas",
        "resources",
        "parallelism",
    ];
    match has(&scales) {
        true => Importance::Scale,
        false => Importance::Other,
    }
}

/// Splits a field path such as `a.b[name=c]["d.e"][0]` into its steps.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let mut quoted = serde_json::Deserializer::from_str(inside).into_iter::<String>();
            if inside.starts_with('"')
                && let Some(Ok(key)) = quoted.next()
            {
                let end = quoted.byte_offset() + 1;
                steps.push(Step::Key(key));
                rest = inside.get(end..).unwrap_or_default();
                continue;
            }
            let (item, after) = inside.split_once(']').unwrap_or((inside, ""));
            let name = item.split_once('=').map_or(item, |(_, name)| name);
            steps.push(Step::Item(name.to_owned()));
            rest = after;
            continue;
        }
        let plain = rest.strip_prefix('.').unwrap_or(rest);
        let end = plain.find(['.', '[']).unwrap_or(plain.len());
        let (key, after) = plain.split_at(end);
        if !key.is_empty() {
            steps.push(Step::Key(key.to_owned()));
        }
        rest = after;
    }
    steps
}

/// Returns the short name of a field, which leaves out the path to the pod template. The short name of a label or an
/// annotation is its key.
fn short(steps: &[Step]) -> String {
    let is =
        |at: usize, wanted: &str| matches!(steps.get(at), Some(Step::Key(key)) if key == wanted);
    if let Some(meta) = meta(steps) {
        return meta;
    }
    let container = (0..steps.len()).find(|at| {
        ["containers", "initContainers", "ephemeralContainers"]
            .iter()
            .any(|wanted| is(*at, wanted))
    });
    let template = (0..steps.len()).find(|at| is(*at, "template") && is(at + 1, "spec"));
    let start = container.or(template.map(|at| at + 2)).unwrap_or_default();
    let value = steps.len().checked_sub(3).filter(|at| *at >= start);
    let end = match value {
        Some(at) if is(at, "env") && is(at + 2, "value") => steps.len() - 1,
        _ => steps.len(),
    };
    written(steps.get(start..end).unwrap_or_default())
}

/// Returns the key of a label or an annotation from its field path; None if the field is neither.
fn meta(steps: &[Step]) -> Option<String> {
    let [.., Step::Key(metadata), Step::Key(kind), Step::Key(key)] = steps else {
        return None;
    };
    match (metadata.as_str(), kind.as_str()) {
        ("metadata", "labels") => Some(format!("label {key}")),
        ("metadata", "annotations") => Some(format!("annotation {key}")),
        _ => None,
    }
}

/// Joins the steps of a field path to text.
fn written(steps: &[Step]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            Step::Item(name) => out += &format!("[{name}]"),
            Step::Key(key) if key.contains(['.', '[', ' ', '/']) => out += &format!("[{key}]"),
            Step::Key(key) if out.is_empty() => out += key,
            Step::Key(key) => out += &format!(".{key}"),
        }
    }
    out
}

/// Shortens two different values to at most `columns` each, so that the reader still sees the difference.
///
/// First cuts the text that both values have in common at the start and the end. If the difference itself is too
/// long, cuts its middle.
pub fn shortened(before: &str, after: &str, columns: usize) -> (String, String) {
    let (before, after) = (text::line(before), text::line(after));
    let common = |one: &mut dyn Iterator<Item = char>, other: &mut dyn Iterator<Item = char>| {
        let same = one.zip(other).take_while(|(a, b)| a == b);
        same.count()
    };
    let head = common(&mut before.chars(), &mut after.chars());
    let rest = |text: &str| text.chars().count() - head;
    let tail = common(&mut before.chars().rev(), &mut after.chars().rev());
    let tail = tail.min(rest(&before)).min(rest(&after));
    let one = |text: &str| window(text, head, tail, columns);
    (one(&before), one(&after))
}

/// The largest number of characters that are shown after the difference to complete a changed word.
const WORD_END: usize = 4;

/// Shortens a text to `columns`, so that the difference from another text stays visible. The first `head` and the
/// last `tail` characters of the two texts are equal.
fn window(text: &str, head: usize, tail: usize, columns: usize) -> String {
    if text::width(text) <= columns {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let wide = |c: &char| text::width(c.encode_utf8(&mut [0; 4]));
    let middle = chars.get(head..chars.len() - tail).unwrap_or_default();
    let needed: usize = middle.iter().map(wide).sum();
    if needed + 2 > columns {
        let mark = |is_cut: bool| {
            if is_cut {
                text::ELLIPSIS.to_string()
            } else {
                String::new()
            }
        };
        // Complete the changed word: `8s` and `5s` differ only in the digit, but the reader needs the unit.
        let behind = chars.get(chars.len() - tail..).unwrap_or_default();
        let word = behind.iter().take_while(|c| c.is_alphanumeric()).count();
        let word = if word <= WORD_END { word } else { 0 };
        let end: String = behind.iter().take(word).collect();
        let middle: String = middle.iter().collect();
        let (before, after) = (mark(head > 0), mark(word < tail));
        let room = columns.saturating_sub(text::width(&before) + text::width(&after));
        return format!(
            "{before}{}{after}",
            text::fit_name(&format!("{middle}{end}"), room)
        );
    }
    // The remaining columns show the text before the difference, because it names the value. If columns are left,
    // they show the text after the difference.
    let mut room = columns - needed;
    let mut start = head;
    let mut end = chars.len() - tail;
    let tail_mark = usize::from(tail > 0);
    while let Some(c) = start.checked_sub(1).and_then(|at| chars.get(at)) {
        let mark = usize::from(start > 1);
        if wide(c) + mark + tail_mark > room {
            break;
        }
        room -= wide(c);
        start -= 1;
    }
    room -= usize::from(start > 0);
    while let Some(c) = chars.get(end) {
        let mark = usize::from(end + 1 < chars.len());
        if wide(c) + mark > room {
            break;
        }
        room -= wide(c);
        end += 1;
    }
    let mut out = String::new();
    if start > 0 {
        out.push(text::ELLIPSIS);
    }
    out.extend(chars.get(start..end).unwrap_or_default());
    if end < chars.len() {
        out.push(text::ELLIPSIS);
    }
    out
}
