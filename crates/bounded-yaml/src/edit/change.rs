//! Converts the difference of two values of a document to edits of its text.

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::ScalarStyle;

use super::flow::quoted;
use super::node::{Entry, Node, What};
use super::text::{Edit, line_end, line_ending, line_start, next_line};
use crate::json;
use crate::write::{self, inline};

/// The byte offset of a change that the text does not allow, and the reason.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) at: usize,
    pub(super) why: String,
}

/// Returns the edits that change a document from its old value to a new value.
pub(super) fn changes(
    text: &str,
    node: &Node,
    old: &Value,
    new: &Value,
) -> Result<Vec<Edit>, Refused> {
    let mut writer = Writer {
        text,
        json: json::is_json(text),
        indented_lists: has_indented_lists(text, node),
        edits: Vec::new(),
    };
    writer.change(node, old, new, false)?;
    Ok(writer.edits)
}

pub(super) struct Writer<'t> {
    pub(super) text: &'t str,
    /// Whether the text of the document is JSON and must stay JSON.
    pub(super) json: bool,
    /// Whether the items of a list in the document are indented more than the key of the list.
    indented_lists: bool,
    edits: Vec<Edit>,
}

impl Writer<'_> {
    pub(super) fn put(&mut self, start: usize, end: usize, text: String) {
        self.edits.push(Edit { start, end, text });
    }

    fn change(&mut self, node: &Node, old: &Value, new: &Value, flow: bool) -> Result<(), Refused> {
        if old == new {
            return Ok(());
        }
        let refused = |why: &str| {
            Err(Refused {
                at: node.start,
                why: why.to_owned(),
            })
        };
        match (&node.what, old, new) {
            (What::Alias, ..) => refused("what stands there is an alias of something else"),
            (What::Map { flow, entries }, Value::Object(old), Value::Object(new)) => {
                self.map(node, *flow, entries, old, new)
            }
            (What::List { flow, items }, Value::Array(old), Value::Array(new)) => {
                self.list(node, *flow, items, old, new)
            }
            (What::Scalar(style), _, new) => self.scalar(node, *style, new, flow),
            (What::Map { flow: true, .. } | What::List { flow: true, .. }, _, new) => {
                let written = self.in_flow(new);
                self.put(node.start, node.end, written);
                Ok(())
            }
            _ => refused("what stands there would change its form"),
        }
    }

    fn scalar(
        &mut self,
        node: &Node,
        style: ScalarStyle,
        new: &Value,
        flow: bool,
    ) -> Result<(), Refused> {
        let refused = |why: &str| {
            Err(Refused {
                at: node.start,
                why: why.to_owned(),
            })
        };
        let said = self.text.get(node.start..node.end).unwrap_or_default();
        let fits_line = |text: &str| !text.contains(|c: char| c.is_control());
        let written = match (style, new) {
            (ScalarStyle::Literal | ScalarStyle::Folded, Value::String(text)) => {
                let lines: Vec<&str> = said.split('\n').collect();
                // The parser reports one of two starts for a block scalar: its indicator (`|` or `>`), or its text.
                let line = match lines.as_slice() {
                    [line] => Some(line),
                    [head, line] if head.starts_with(['|', '>']) => Some(line),
                    _ => None,
                };
                let Some(line) = line.filter(|_| fits_line(text)) else {
                    return refused("what stands there is a block of several lines");
                };
                let from = node.end - line.trim_start().len();
                self.put(from, node.end, text.clone());
                return Ok(());
            }
            (ScalarStyle::Literal | ScalarStyle::Folded, _) => {
                return refused("what stands there is a block of text");
            }
            (ScalarStyle::SingleQuoted, Value::String(text)) if fits_line(text) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            (ScalarStyle::DoubleQuoted, Value::String(text)) => quoted(text),
            (_, new) if flow => self.in_flow(new),
            (_, Value::Object(map)) if !map.is_empty() => self.in_flow(new),
            (_, Value::Array(list)) if !list.is_empty() => self.in_flow(new),
            (_, new) => {
                let mut out = String::new();
                inline(&mut out, new);
                out
            }
        };
        match node.is_empty() {
            true => refused("nothing stands there"),
            false => {
                self.put(node.start, node.end, written);
                Ok(())
            }
        }
    }

    fn map(
        &mut self,
        node: &Node,
        flow: bool,
        entries: &[Entry],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<(), Refused> {
        let going: Vec<usize> = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| !new.contains_key(&entry.key))
            .map(|(at, _)| at)
            .collect();
        let coming: Map<String, Value> = new
            .iter()
            .filter(|(key, _)| !old.contains_key(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for entry in entries {
            let (Some(before), Some(after)) = (old.get(&entry.key), new.get(&entry.key)) else {
                continue;
            };
            if before != after && entry.value.is_empty() && !flow {
                self.fill(entry, after)?;
            } else {
                self.change(&entry.value, before, after, flow)?;
            }
        }
        if flow {
            return self.flow(
                node,
                &entries
                    .iter()
                    .map(|entry| (entry.key_start, entry.end()))
                    .collect::<Vec<_>>(),
                &going,
                &coming
                    .iter()
                    .map(|(key, value)| (Some(key.as_str()), value))
                    .collect::<Vec<_>>(),
            );
        }
        if going.len() == entries.len() {
            return Err(Refused {
                at: node.start,
                why: "nothing would be left of the map".to_owned(),
            });
        }
        for at in going {
            if let Some(entry) = entries.get(at) {
                self.cut(entry.key_start, entry.end())?;
            }
        }
        let staying = entries.iter().rfind(|entry| new.contains_key(&entry.key));
        if let (Some(first), Some(last), false) = (entries.first(), staying, coming.is_empty()) {
            let line = line_start(self.text, first.key_start);
            // The new keys get the column of the first key, because all keys of a map must start in the same column,
            // also after the dash of a list item.
            let column = self.text.get(line..first.key_start).unwrap_or_default();
            let column = column.chars().count();
            for (key, value) in &coming {
                let lines = self.block(key, value);
                self.insert_after(last.end(), column, lines.iter().map(String::as_str));
            }
        }
        Ok(())
    }

    /// Writes `value` after a key whose value is empty in the text.
    fn fill(&mut self, entry: &Entry, value: &Value) -> Result<(), Refused> {
        let lines = self.block(&entry.key, value);
        let line = line_start(self.text, entry.key_start);
        let column = self.text.get(line..entry.key_start).unwrap_or_default();
        let column = column.chars().count();
        let (first, below) = (lines.first(), lines.get(1..).unwrap_or_default());
        let beside = first.and_then(|first| first.split_once(": "));
        match (beside, below.is_empty()) {
            (Some((_, written)), true) => {
                let rest = self.text.get(entry.key_end..).unwrap_or_default();
                let colon = rest
                    .find(':')
                    .map_or(entry.key_end, |at| entry.key_end + at + 1);
                self.put(colon, colon, format!(" {written}"));
                Ok(())
            }
            (None, false) => {
                self.insert_after(entry.key_end, column, below.iter().map(String::as_str));
                Ok(())
            }
            _ => Err(Refused {
                at: entry.key_start,
                why: "a block of text cannot be put there".to_owned(),
            }),
        }
    }

    fn list(
        &mut self,
        node: &Node,
        flow: bool,
        items: &[Node],
        old: &[Value],
        new: &[Value],
    ) -> Result<(), Refused> {
        let same = |(one, other): &(&Value, &Value)| one == other;
        let before = old.iter().zip(new).take_while(same).count();
        let (old_left, new_left) = (old.len() - before, new.len() - before);
        let rest = old.iter().rev().zip(new.iter().rev());
        let after = rest.take(old_left.min(new_left)).take_while(same).count();
        let (old_end, new_end) = (old.len() - after, new.len() - after);
        let pairs = (old_end - before).min(new_end - before);
        for at in before..before + pairs {
            if let (Some(item), Some(old), Some(new)) = (items.get(at), old.get(at), new.get(at)) {
                self.change(item, old, new, flow)?;
            }
        }
        let going: Vec<usize> = (before + pairs..old_end).collect();
        let coming = new.get(before + pairs..new_end).unwrap_or_default();
        if flow {
            if !coming.is_empty() && before + pairs != items.len() {
                return Err(Refused {
                    at: node.start,
                    why: "something would come between the items of a list".to_owned(),
                });
            }
            let places: Vec<(usize, usize)> =
                items.iter().map(|item| (item.start, item.end)).collect();
            let coming: Vec<_> = coming.iter().map(|value| (None, value)).collect();
            return self.flow(node, &places, &going, &coming);
        }
        if going.len() == items.len() {
            return Err(Refused {
                at: node.start,
                why: "nothing would be left of the list".to_owned(),
            });
        }
        for at in going {
            if let Some(item) = items.get(at) {
                let dash = self.dash(item)?;
                self.cut(dash, item.end)?;
            }
        }
        if coming.is_empty() {
            return Ok(());
        }
        let Some(last) = (before + pairs).checked_sub(1).and_then(|at| items.get(at)) else {
            return Err(Refused {
                at: node.start,
                why: "something would come before the first item of a list".to_owned(),
            });
        };
        let dash = self.dash(last)?;
        let column = dash - line_start(self.text, dash);
        for value in coming {
            let written = write::write(&Value::Array(vec![value.clone()]));
            self.insert_after(last.end, column, written.lines());
        }
        Ok(())
    }

    /// Returns the offset of the dash of a list item; fails if other text is before the dash on its line.
    fn dash(&self, item: &Node) -> Result<usize, Refused> {
        let before = self.text.get(..item.start).unwrap_or_default();
        let before = before.trim_end_matches([' ', '\t', '\r', '\n']);
        let dash = before.len().saturating_sub(1);
        let line = line_start(self.text, dash);
        let alone = self.text.get(line..dash).unwrap_or_default();
        match before.ends_with('-') && alone.trim().is_empty() {
            true => Ok(dash),
            false => Err(Refused {
                at: item.start,
                why: "the item shares its line with something else".to_owned(),
            }),
        }
    }

    /// Removes the lines from `start` to `end`; fails if other text is before `start` on its line.
    fn cut(&mut self, start: usize, end: usize) -> Result<(), Refused> {
        let line = line_start(self.text, start);
        let alone = self.text.get(line..start).unwrap_or_default();
        if !alone.trim().is_empty() {
            return Err(Refused {
                at: start,
                why: "it shares its line with something else".to_owned(),
            });
        }
        self.put(line, next_line(self.text, end), String::new());
        Ok(())
    }

    /// Inserts lines after the line that contains the offset `end`, indented to `column`.
    fn insert_after<'l>(
        &mut self,
        end: usize,
        column: usize,
        lines: impl Iterator<Item = &'l str>,
    ) {
        let at = line_end(self.text, end);
        let eol = line_ending(self.text, end);
        let mut out = String::new();
        for line in lines {
            out.push_str(eol);
            if !line.is_empty() {
                out.extend(std::iter::repeat_n(' ', column));
                out.push_str(line);
            }
        }
        self.put(at, at, out);
    }

    /// Formats an entry of a block map as lines of text.
    fn block(&self, key: &str, value: &Value) -> Vec<String> {
        let mut map = Map::new();
        map.insert(key.to_owned(), value.clone());
        let written = write::write(&Value::Object(map));
        let deeper =
            self.indented_lists && matches!(value, Value::Array(items) if !items.is_empty());
        let lines = written.lines().enumerate();
        lines
            .map(|(at, line)| match at > 0 && deeper {
                true => format!("  {line}"),
                false => line.to_owned(),
            })
            .collect()
    }
}

/// Returns whether a document indents list items more than the key of the list; true if the document has no
/// lists.
fn has_indented_lists(text: &str, node: &Node) -> bool {
    fn first(text: &str, node: &Node, column: Option<usize>) -> Option<bool> {
        match &node.what {
            What::Map { entries, .. } => entries.iter().find_map(|entry| {
                let column = entry.key_start - line_start(text, entry.key_start);
                first(text, &entry.value, Some(column))
            }),
            What::List { flow: false, items } => {
                let item = items.first()?;
                let before = text.get(..item.start)?;
                let dash = before.rfind('-')?;
                let own = dash - line_start(text, dash);
                column.map(|column| own > column)
            }
            _ => None,
        }
    }
    first(text, node, None).unwrap_or(true)
}
