//! Parses a YAML text to nodes (maps, lists, scalars) with their byte offsets.

use serde_saphyr::granit_parser::{self, Event, Parser, ScalarStyle, Span, StructureStyle};

use crate::json;
use crate::read::place;
use crate::{Limits, YamlError};

/// A map, list or scalar of a document, with its byte range in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) what: What,
    /// The byte offset at which the node starts, after its anchor or tag.
    pub(super) start: usize,
    /// The byte offset at which the node ends; for a map or list in block style, the end of its last entry.
    pub(super) end: usize,
}

#[derive(Debug)]
pub(super) enum What {
    Scalar(ScalarStyle),
    Alias,
    Map { flow: bool, entries: Vec<Entry> },
    List { flow: bool, items: Vec<Node> },
}

/// An entry of a map.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The byte offsets at which the key of the entry starts and ends.
    pub(super) key_start: usize,
    pub(super) key_end: usize,
    pub(super) value: Node,
}

impl Node {
    /// Returns an object inside this node; None if it does not exist. An empty `at` means this node. For an object in
    /// a Kubernetes list, `at` is the object's index in the key `items`; for nested lists, `at` contains one index
    /// per list.
    pub(super) fn item(&self, at: &[usize]) -> Option<&Node> {
        let Some((first, rest)) = at.split_first() else {
            return Some(self);
        };
        let What::Map { entries, .. } = &self.what else {
            return None;
        };
        let items = entries.iter().find(|entry| entry.key == "items")?;
        match &items.value.what {
            What::List { items, .. } => items.get(*first)?.item(rest),
            _ => None,
        }
    }

    /// Returns whether the node has no text, which means the value null.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.what, What::Scalar(ScalarStyle::Plain)) && self.start == self.end
    }
}

impl Entry {
    /// Returns the byte offset at which the entry ends.
    pub(super) fn end(&self) -> usize {
        match self.value.is_empty() {
            true => self.key_end,
            false => self.value.end,
        }
    }
}

/// The key of a map entry whose value the parser reports next, with the byte offsets of the start and the end of the
/// key; None if the parser reports a key next.
type Key = Option<(String, usize, usize)>;

enum Open {
    Map(Vec<Entry>, Key),
    List(Vec<Node>),
}

struct Frame {
    open: Open,
    flow: bool,
    start: usize,
}

/// Parses the nodes of all documents, in the order of [`crate::documents`]. Empty documents are left out.
pub(super) fn documents(origin: &str, text: &str) -> Result<Vec<Node>, YamlError> {
    let mark = match text.starts_with('\u{feff}') {
        true => '\u{feff}'.len_utf8(),
        false => 0,
    };
    let body = text.get(mark..).unwrap_or_default();
    let depth = Limits::default().depth.saturating_add(1);
    let mut options = granit_parser::options! {
        flow_nesting_limit: depth,
        block_nesting_limit: depth,
    };
    options.set_emit_comments(false);
    let mut nodes = Nodes {
        text,
        stack: Vec::new(),
        found: Vec::new(),
    };
    for part in json::parts(body) {
        for item in Parser::new_from_str_with_options(&part.text, options.clone()) {
            let (event, span) = item.map_err(|error| YamlError::Syntax {
                place: place(origin, part.lines, error.marker()),
                message: error.info(),
            })?;
            nodes.take(event, bytes(&span, mark + part.start));
        }
    }
    Ok(nodes.found)
}

/// The state of the parsing: the nodes that are not complete yet, and the complete documents.
struct Nodes<'t> {
    text: &'t str,
    stack: Vec<Frame>,
    found: Vec<Node>,
}

impl Nodes<'_> {
    fn take(&mut self, event: Event<'_>, (start, end): (usize, usize)) {
        let node = match event {
            Event::Scalar(content, style, ..) => {
                if let Some(key) = self.wanted_key() {
                    *key = Some((content.into_owned(), start, end));
                    return;
                }
                let end = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded => trimmed(self.text, start, end),
                    _ => end,
                };
                Node {
                    what: What::Scalar(style),
                    start,
                    end,
                }
            }
            Event::Alias(_) => {
                if let Some(key) = self.wanted_key() {
                    *key = Some((String::new(), start, end));
                    return;
                }
                Node {
                    what: What::Alias,
                    start,
                    end,
                }
            }
            Event::MappingStart(style, ..) => {
                return self.open(Open::Map(Vec::new(), None), style, start);
            }
            Event::SequenceStart(style, ..) => {
                return self.open(Open::List(Vec::new()), style, start);
            }
            Event::MappingEnd | Event::SequenceEnd => match self.stack.pop() {
                Some(frame) => frame.close(end),
                None => return,
            },
            _ => return,
        };
        match self.stack.last_mut() {
            None if is_nothing(self.text, &node) => {}
            None => self.found.push(node),
            Some(frame) => frame.take(node),
        }
    }

    fn open(&mut self, open: Open, style: StructureStyle, start: usize) {
        self.stack.push(Frame {
            open,
            flow: style == StructureStyle::Flow,
            start,
        });
    }

    /// Returns where to store the next node as a key; None if the next node is not the key of a map entry.
    fn wanted_key(&mut self) -> Option<&mut Key> {
        match self.stack.last_mut() {
            Some(Frame {
                open: Open::Map(_, key @ None),
                ..
            }) => Some(key),
            _ => None,
        }
    }
}

impl Frame {
    fn take(&mut self, node: Node) {
        match &mut self.open {
            Open::List(items) => items.push(node),
            Open::Map(entries, key) => {
                if let Some((key, key_start, key_end)) = key.take() {
                    entries.push(Entry {
                        key,
                        key_start,
                        key_end,
                        value: node,
                    });
                }
            }
        }
    }

    fn close(self, end: usize) -> Node {
        let Frame { open, flow, start } = self;
        match open {
            Open::Map(entries, _) => {
                let last = entries.last().map_or(start, Entry::end);
                let first = entries.first().map_or(start, |entry| entry.key_start);
                Node {
                    start: if flow { start } else { first },
                    end: if flow { end } else { last },
                    what: What::Map { flow, entries },
                }
            }
            Open::List(items) => {
                let last = items.last().map_or(start, |item| item.end.max(item.start));
                Node {
                    start,
                    end: if flow { end } else { last },
                    what: What::List { flow, items },
                }
            }
        }
    }
}

fn bytes(span: &Span, mark: usize) -> (usize, usize) {
    let range = span.byte_range().unwrap_or_default();
    (range.start + mark, range.end + mark)
}

/// Returns whether a document is empty, because it contains only comments, `---` or null.
fn is_nothing(text: &str, node: &Node) -> bool {
    let plain = matches!(node.what, What::Scalar(ScalarStyle::Plain));
    let said = text.get(node.start..node.end).unwrap_or_default();
    plain && matches!(said, "" | "~" | "null" | "Null" | "NULL")
}

/// Returns the end of a map or list in block style, without the blank space after it, which the parser counts as a
/// part of it.
fn trimmed(text: &str, start: usize, end: usize) -> usize {
    let block = text.get(start..end).unwrap_or_default();
    start + block.trim_end_matches([' ', '\t', '\r', '\n']).len()
}
