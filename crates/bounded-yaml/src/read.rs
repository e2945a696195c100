//! Converts the events of the YAML parser to JSON values, and checks the limits.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{self, Event, Marker, Parser, ScalarStyle, Tag};

use super::json;
use super::scalar::{self, Plain};
use super::{Document, Limits, Place, YamlError};

/// Reads all documents of a text with the default limits. Empty documents are left out.
pub fn documents(origin: &str, text: &str) -> Result<Vec<Document>, YamlError> {
    documents_with(origin, text, &Limits::default())
}

/// Reads all documents of a text with the given limits. Empty documents are left out.
pub fn documents_with(
    origin: &str,
    text: &str,
    limits: &Limits,
) -> Result<Vec<Document>, YamlError> {
    if text.len() > limits.bytes {
        return Err(YamlError::TooLarge {
            origin: origin.to_owned(),
            size: text.len(),
            limit: limits.bytes,
        });
    }
    let mut options = granit_parser::options! {
        // The parser gets a limit that is larger by one, so that this module notices the exceeded limit first and
        // reports it in its own words.
        flow_nesting_limit: limits.depth.saturating_add(1),
        block_nesting_limit: limits.depth.saturating_add(1),
    };
    options.set_emit_comments(false);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parts = json::parts(text);
    let mut builder = Builder::new(origin, limits);
    for part in &parts {
        builder.lines = part.lines;
        for item in Parser::new_from_str_with_options(&part.text, options.clone()) {
            let (event, span) = item.map_err(|error| YamlError::Syntax {
                place: place(origin, part.lines, error.marker()),
                message: error.info(),
            })?;
            builder.take(event, span.start)?;
        }
    }
    Ok(builder.done)
}

/// Converts a position in a parsed part to a position in the whole text. `lines` is the number of lines before the
/// part.
pub(super) fn place(origin: &str, lines: usize, at: &Marker) -> Place {
    Place {
        origin: origin.to_owned(),
        line: lines + at.line(),
        column: at.col() + 1,
    }
}

/// Shortens a text from the input to 40 characters and escapes it for a message.
fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        out.push('…');
    }
    out
}

/// The size of a node and of all nodes inside it: the number of nodes, the bytes of text and the number of
/// levels.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Weight {
    fn add(&mut self, child: Weight) {
        self.nodes += child.nodes;
        self.bytes += child.bytes;
        self.depth = self.depth.max(child.depth + 1);
    }
}

enum Open<'t> {
    List(Vec<Value>),
    Map {
        entries: Map<String, Value>,
        /// The keys of the map as written in the text, each with its line number, to report a key that occurs twice.
        lines: Vec<(Cow<'t, str>, usize)>,
        key: Option<String>,
    },
}

struct Frame<'t> {
    open: Open<'t>,
    anchor: usize,
    weight: Weight,
    start: Marker,
}

struct Builder<'l, 't> {
    origin: String,
    limits: &'l Limits,
    /// The number of lines in the text before the part that is being parsed.
    lines: usize,
    stack: Vec<Frame<'t>>,
    anchors: HashMap<usize, (Value, Weight)>,
    nodes: usize,
    alias_bytes: usize,
    documents: usize,
    done: Vec<Document>,
}

impl<'l, 't> Builder<'l, 't> {
    fn new(origin: &str, limits: &'l Limits) -> Self {
        Self {
            origin: origin.to_owned(),
            limits,
            lines: 0,
            stack: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            alias_bytes: 0,
            documents: 0,
            done: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'t>, at: Marker) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, at)?;
                let weight = Weight {
                    nodes: 1,
                    bytes: text.len(),
                    depth: 0,
                };
                if self.wants_key() {
                    if anchor != 0 {
                        let value = Value::String(text.clone().into_owned());
                        self.keep(anchor, &value, weight, at)?;
                    }
                    let key = self.key(&text, style, tag.as_deref(), at)?;
                    return self.set_key(key, text, at);
                }
                let value = self.scalar(text, style, tag.as_deref(), at)?;
                self.put(value, anchor, weight, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", at)?;
                self.open(Open::List(Vec::new()), anchor, at)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", at)?;
                let open = Open::Map {
                    entries: Map::new(),
                    lines: Vec::new(),
                    key: None,
                };
                self.open(open, anchor, at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, at),
            Event::DocumentStart(..) => {
                self.documents += 1;
                self.anchors.clear();
                self.limit(self.documents, self.limits.documents, "documents", at)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, open: Open<'t>, anchor: usize, at: Marker) -> Result<(), YamlError> {
        if self.wants_key() {
            return Err(self.unsupported(
                "a key that is a map or a list".to_owned(),
                "JSON knows only text as keys",
                at,
            ));
        }
        self.count(1, at)?;
        self.stack.push(Frame {
            open,
            anchor,
            weight: Weight {
                nodes: 1,
                ..Weight::default()
            },
            start: at,
        });
        self.limit(self.stack.len(), self.limits.depth, "levels of nesting", at)
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        let value = match frame.open {
            Open::List(items) => Value::Array(items),
            Open::Map { entries, .. } => Value::Object(entries),
        };
        self.put(value, frame.anchor, frame.weight, frame.start)
    }

    fn alias(&mut self, id: usize, at: Marker) -> Result<(), YamlError> {
        let Some((value, weight)) = self.anchors.get(&id).cloned() else {
            return Err(self.unsupported(
                "an alias inside of what it names".to_owned(),
                "write the value out",
                at,
            ));
        };
        self.count(weight.nodes, at)?;
        self.copied(weight.bytes, at)?;
        let depth = self.stack.len() + weight.depth;
        self.limit(depth, self.limits.depth, "levels of nesting", at)?;
        if self.wants_key() {
            return match value {
                Value::String(key) => self.set_key(key.clone(), key.into(), at),
                _ => Err(self.unsupported(
                    "a key that is not text".to_owned(),
                    "write the key out",
                    at,
                )),
            };
        }
        self.put(value, 0, weight, at)
    }

    /// Adds a complete node to the map or list that contains it. A node outside of all maps and lists becomes a
    /// document.
    fn put(
        &mut self,
        value: Value,
        anchor: usize,
        weight: Weight,
        at: Marker,
    ) -> Result<(), YamlError> {
        if anchor != 0 {
            self.keep(anchor, &value, weight, at)?;
        }
        match self.stack.last_mut() {
            None => {
                // A document that contains only comments, `---` or null is empty.
                if !value.is_null() {
                    self.done.push(Document {
                        value,
                        line: self.lines + at.line(),
                    });
                }
            }
            Some(frame) => {
                frame.weight.add(weight);
                match &mut frame.open {
                    Open::List(items) => items.push(value),
                    Open::Map { entries, key, .. } => {
                        if let Some(key) = key.take() {
                            entries.insert(key, value);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores a copy of an anchored node, which its aliases will copy again. The stored copy counts against the
    /// limits too.
    fn keep(
        &mut self,
        anchor: usize,
        value: &Value,
        weight: Weight,
        at: Marker,
    ) -> Result<(), YamlError> {
        self.copied(weight.bytes, at)?;
        self.count(weight.nodes, at)?;
        self.anchors.insert(anchor, (value.clone(), weight));
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(
            self.stack.last(),
            Some(Frame {
                open: Open::Map { key: None, .. },
                ..
            })
        )
    }

    fn set_key(
        &mut self,
        name: String,
        written: Cow<'t, str>,
        at: Marker,
    ) -> Result<(), YamlError> {
        let Some(Frame {
            open:
                Open::Map {
                    entries,
                    lines,
                    key,
                },
            weight,
            ..
        }) = self.stack.last_mut()
        else {
            return Ok(());
        };
        weight.bytes += name.len();
        weight.nodes += 1;
        if entries.contains_key(&name) {
            let first = lines.iter().find(|(written, _)| *written == name);
            return Err(YamlError::Duplicate {
                place: place(&self.origin, self.lines, &at),
                key: shown(&name),
                first: first.map_or(self.lines + at.line(), |(_, line)| *line),
            });
        }
        lines.push((written, self.lines + at.line()));
        *key = Some(name);
        Ok(())
    }

    /// Converts the key of a map to a string. A number or boolean becomes text, as in Kubernetes. Fails if this text
    /// differs from the written key, for example `16` from `0x10`.
    fn key(
        &self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Marker,
    ) -> Result<String, YamlError> {
        if style == ScalarStyle::Plain && text == "<<" {
            return Err(self.unsupported(
                "merge keys (<<) are not part of YAML 1.2".to_owned(),
                "write the keys out, or quote it ('<<') if text is meant",
                at,
            ));
        }
        match self.scalar(Cow::Borrowed(text), style, tag, at)? {
            Value::String(key) => Ok(key),
            Value::Null => Err(self.unsupported(
                "a key that is empty or null".to_owned(),
                "quote it if text is meant",
                at,
            )),
            other => {
                let canonical = other.to_string();
                if canonical == text {
                    return Ok(canonical);
                }
                Err(self.unsupported(
                    format!("key {} would become {canonical}", shown(text)),
                    "quote the key",
                    at,
                ))
            }
        }
    }

    fn scalar(
        &self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Marker,
    ) -> Result<Value, YamlError> {
        if let Some(tag) = tag {
            let is_text = tag.core_suffix() == Some("str") || tag.original() == "!";
            return match is_text {
                true => Ok(Value::String(text.into_owned())),
                false => Err(self.foreign_tag(tag, at)),
            };
        }
        if style != ScalarStyle::Plain {
            return Ok(Value::String(text.into_owned()));
        }
        match scalar::plain(&text) {
            Plain::Means(value) => Ok(value),
            Plain::Ambiguous(old, new, instead) => Err(YamlError::Ambiguous {
                place: place(&self.origin, self.lines, &at),
                text: shown(&text),
                old,
                new,
                instead,
            }),
            Plain::Unholdable(what, hint) => {
                Err(self.unsupported(format!("{} is {what}", shown(&text)), hint, at))
            }
        }
    }

    fn check_tag(&self, tag: Option<&Tag>, kind: &str, at: Marker) -> Result<(), YamlError> {
        match tag {
            Some(tag) if tag.core_suffix() != Some(kind) => Err(self.foreign_tag(tag, at)),
            _ => Ok(()),
        }
    }

    fn foreign_tag(&self, tag: &Tag, at: Marker) -> YamlError {
        self.unsupported(
            format!("tag {} is not supported", shown(&tag.original())),
            "remove the tag; of all tags only !!str, !!map and !!seq are read",
            at,
        )
    }

    fn count(&mut self, nodes: usize, at: Marker) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.limit(
            self.nodes,
            self.limits.nodes,
            "nodes (aliases expanded)",
            at,
        )
    }

    fn copied(&mut self, bytes: usize, at: Marker) -> Result<(), YamlError> {
        self.alias_bytes = self.alias_bytes.saturating_add(bytes);
        self.limit(
            self.alias_bytes,
            self.limits.alias_bytes,
            "bytes copied by aliases",
            at,
        )
    }

    fn limit(
        &self,
        used: usize,
        limit: usize,
        what: &'static str,
        at: Marker,
    ) -> Result<(), YamlError> {
        if used <= limit {
            return Ok(());
        }
        Err(YamlError::Limit {
            place: place(&self.origin, self.lines, &at),
            what,
            limit,
        })
    }

    fn unsupported(&self, what: String, hint: &'static str, at: Marker) -> YamlError {
        YamlError::Unsupported {
            place: place(&self.origin, self.lines, &at),
            what,
            hint,
        }
    }
}
