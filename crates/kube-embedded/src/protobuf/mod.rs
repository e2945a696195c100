//! Decodes the protobuf bodies of requests to JSON.
//!
//! Go's typed clients send built-in kinds only as protobuf, but accept JSON in answers. So this module decodes
//! protobuf and does not encode it. The message types and their fields are in the table `wire.json`, which a Go
//! program of the conformance suite generates.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The media type of protobuf bodies in Kubernetes.
pub(super) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The bytes with which every protobuf body of Kubernetes begins.
const MAGIC: &[u8] = b"k8s\0";
/// The largest nesting depth of protobuf messages. Valid messages are less deep, even the schemas of CRDs.
const DEPTH: usize = 100;

/// The reason why a protobuf body cannot be decoded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    NoMagic,
    #[error("no kind {1:?} is registered for version {0:?} in protobuf; send it as JSON")]
    UnknownKind(String, String),
    #[error("the protobuf message ends before its {0} does")]
    CutShort(&'static str),
    #[error("the protobuf message has {0}")]
    Broken(&'static str),
}

#[derive(Deserialize)]
struct Table {
    kinds: HashMap<String, String>,
    types: HashMap<String, Vec<String>>,
}

struct Types {
    kinds: HashMap<String, String>,
    fields: HashMap<String, HashMap<u64, Field>>,
}

struct Field {
    name: String,
    shape: Shape,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// The protobuf message always contains the field, and the JSON object does too.
    Always,
    /// The protobuf message always contains the field. The JSON object contains it only if it is not zero.
    UnlessZero,
    /// The protobuf message contains the field only if it was set.
    Pointer,
    List,
    Map,
    /// The field is a message whose fields belong directly to the JSON object of the outer message.
    Inline,
}

enum Kind {
    Text,
    Bytes,
    Bool,
    Int,
    Double,
    Texts,
    Time,
    MicroTime,
    Raw,
    Quantity,
    IntOrString,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrTexts,
    Message(String),
}

const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let table: Table = serde_json::from_str(include_str!("wire.json"))
        .expect("BUG: wire.json is part of the program");
    let fields = |lines: &Vec<String>| lines.iter().filter_map(|line| field(line)).collect();
    Types {
        kinds: table.kinds,
        fields: table
            .types
            .iter()
            .map(|(name, lines)| (name.clone(), fields(lines)))
            .collect(),
    }
});

fn field(line: &str) -> Option<(u64, Field)> {
    let mut words = line.splitn(3, ' ');
    let (number, name, kind) = (words.next()?, words.next()?, words.next()?);
    let shapes = [
        ("[]", Shape::List),
        ("{}", Shape::Map),
        ("*", Shape::Pointer),
        ("?", Shape::UnlessZero),
        ("<", Shape::Inline),
    ];
    let (kind, shape) = shapes
        .into_iter()
        .find_map(|(mark, shape)| Some((kind.strip_prefix(mark)?, shape)))
        .unwrap_or((kind, Shape::Always));
    let kind = match kind {
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "double" => Kind::Double,
        "strings" => Kind::Texts,
        "time" => Kind::Time,
        "microtime" => Kind::MicroTime,
        "raw" => Kind::Raw,
        "quantity" => Kind::Quantity,
        "intorstring" => Kind::IntOrString,
        "schemaorbool" => Kind::SchemaOrBool,
        "schemaorarray" => Kind::SchemaOrArray,
        "schemaorstrings" => Kind::SchemaOrTexts,
        name => Kind::Message(name.to_owned()),
    };
    let name = name.to_owned();
    Some((number.parse().ok()?, Field { name, shape, kind }))
}

/// Decodes a protobuf request body to a JSON object.
pub(super) fn decode(body: &[u8]) -> Result<Value, Unreadable> {
    let body = body.strip_prefix(MAGIC).ok_or(Unreadable::NoMagic)?;
    let envelope = collect(body)?;
    let meta = match last(&envelope, 1) {
        Some(meta) => collect(meta.bytes()?)?,
        None => Vec::new(),
    };
    let word = |number| -> Result<String, Unreadable> {
        last(&meta, number).map_or(Ok(String::new()), Piece::text)
    };
    let (api_version, kind) = (word(1)?, word(2)?);
    let known = TYPES
        .kinds
        .get(&format!("{api_version} {kind}"))
        // If the API group does not have the kind, it is looked up without the group, because DeleteOptions and other
        // options are the same in every group.
        .or_else(|| TYPES.kinds.get(&kind));
    let Some(name) = known else {
        return Err(Unreadable::UnknownKind(api_version, kind));
    };
    let raw = last(&envelope, 2).map_or(Ok(&[][..]), Piece::bytes)?;
    let mut object = message(name, raw, DEPTH)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(object.into())
}

/// The bytes of one field in a protobuf message, not decoded to the field's type yet.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Varint(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Piece<'a> {
    fn bytes(self) -> Result<&'a [u8], Unreadable> {
        match self {
            Piece::Bytes(bytes) => Ok(bytes),
            _ => Err(Unreadable::Broken("a number where a message should be")),
        }
    }

    fn number(self) -> Result<u64, Unreadable> {
        match self {
            Piece::Varint(number) | Piece::Fixed(number) => Ok(number),
            Piece::Bytes(_) => Err(Unreadable::Broken("bytes where a number should be")),
        }
    }

    fn text(self) -> Result<String, Unreadable> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| Unreadable::Broken("text that is not UTF-8"))
    }
}

/// Splits a protobuf message into its fields: the number and the bytes of each.
fn collect(mut rest: &[u8]) -> Result<Vec<(u64, Piece<'_>)>, Unreadable> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        let piece = match tag & 7 {
            0 => Piece::Varint(varint(&mut rest)?),
            1 => Piece::Fixed(fixed::<8>(&mut rest).map(u64::from_le_bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut rest)?)
                    .map_err(|_| Unreadable::CutShort("field"))?;
                let (bytes, after) = rest
                    .split_at_checked(length)
                    .ok_or(Unreadable::CutShort("field"))?;
                rest = after;
                Piece::Bytes(bytes)
            }
            5 => Piece::Fixed(u64::from(fixed::<4>(&mut rest).map(u32::from_le_bytes)?)),
            _ => return Err(Unreadable::Broken("a field of an unknown form")),
        };
        found.push((tag >> 3, piece));
    }
    Ok(found)
}

fn varint(rest: &mut &[u8]) -> Result<u64, Unreadable> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(Unreadable::CutShort("number"))?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Unreadable::Broken("a number that is too long"))
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Unreadable> {
    let (bytes, after) = rest
        .split_first_chunk::<N>()
        .ok_or(Unreadable::CutShort("number"))?;
    *rest = after;
    Ok(*bytes)
}

/// Returns the last field that has this number, because in protobuf a later field replaces an earlier one.
fn last<'a>(pieces: &[(u64, Piece<'a>)], number: u64) -> Option<Piece<'a>> {
    pieces
        .iter()
        .rev()
        .find(|(found, _)| *found == number)
        .map(|(_, piece)| *piece)
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, Unreadable> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Unreadable::Broken("messages in messages without end"));
    };
    let mut object = Map::new();
    let Some(fields) = TYPES.fields.get(name) else {
        return Ok(object);
    };
    for (number, piece) in collect(bytes)? {
        // An unknown field is ignored, as in kube-apiserver: a newer client may send it.
        let Some(field) = fields.get(&number) else {
            continue;
        };
        match field.shape {
            Shape::List => {
                let items = object
                    .entry(&field.name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                let more = items_of(&field.kind, piece, depth)?;
                if let Value::Array(items) = items {
                    items.extend(more);
                }
            }
            Shape::Map => {
                let entry = collect(piece.bytes()?)?;
                let key = last(&entry, 1).map_or(Ok(String::new()), Piece::text)?;
                let value = last(&entry, 2).unwrap_or(Piece::Bytes(&[]));
                let value = read(&field.kind, value, depth)?;
                let entries = object
                    .entry(&field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(entries) = entries {
                    entries.insert(key, value);
                }
            }
            Shape::Inline => {
                if let Value::Object(inner) = read(&field.kind, piece, depth)? {
                    object.extend(inner);
                }
            }
            Shape::Pointer | Shape::Always | Shape::UnlessZero => {
                let value = read(&field.kind, piece, depth)?;
                let absent = value.is_null() || field.shape == Shape::UnlessZero && is_zero(&value);
                if !absent {
                    object.insert(field.name.clone(), value);
                }
            }
        }
    }
    Ok(object)
}

/// Decodes one list item from a field, or several numbers from a packed field.
fn items_of(kind: &Kind, piece: Piece<'_>, depth: usize) -> Result<Vec<Value>, Unreadable> {
    match (kind, piece) {
        (Kind::Int | Kind::Bool, Piece::Bytes(mut rest)) => {
            let mut found = Vec::new();
            while !rest.is_empty() {
                found.push(read(kind, Piece::Varint(varint(&mut rest)?), depth)?);
            }
            Ok(found)
        }
        _ => Ok(vec![read(kind, piece, depth)?]),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn read(kind: &Kind, piece: Piece<'_>, depth: usize) -> Result<Value, Unreadable> {
    Ok(match kind {
        Kind::Text => piece.text()?.into(),
        Kind::Bytes => BASE64_STANDARD.encode(piece.bytes()?).into(),
        Kind::Bool => (piece.number()? != 0).into(),
        // The number is reinterpreted as signed, because negative numbers are encoded in two's complement.
        Kind::Int => piece.number()?.cast_signed().into(),
        Kind::Double => f64::from_bits(piece.number()?).into(),
        Kind::Texts => texts(piece, 1)?,
        Kind::Time => time(piece, "%Y-%m-%dT%H:%M:%SZ")?,
        Kind::MicroTime => time(piece, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
        Kind::Raw => match last(&collect(piece.bytes()?)?, 1) {
            None => Value::Null,
            Some(raw) => serde_json::from_slice(raw.bytes()?)
                .map_err(|_| Unreadable::Broken("raw JSON that is none"))?,
        },
        Kind::Quantity => match last(&collect(piece.bytes()?)?, 1) {
            Some(text) => text.text()?.into(),
            None => "0".into(),
        },
        Kind::IntOrString => {
            let pieces = collect(piece.bytes()?)?;
            match last(&pieces, 1).map_or(Ok(0), Piece::number)? {
                0 => last(&pieces, 2)
                    .map_or(Ok(0), Piece::number)?
                    .cast_signed()
                    .into(),
                _ => last(&pieces, 3)
                    .map_or(Ok(String::new()), Piece::text)?
                    .into(),
            }
        }
        Kind::SchemaOrBool => {
            let pieces = collect(piece.bytes()?)?;
            match last(&pieces, 2) {
                Some(schema) => message(SCHEMA, schema.bytes()?, depth)?.into(),
                None => (last(&pieces, 1).map_or(Ok(0), Piece::number)? != 0).into(),
            }
        }
        Kind::SchemaOrArray => {
            let pieces = collect(piece.bytes()?)?;
            let several = pieces.iter().filter(|(number, _)| *number == 2);
            let several: Vec<Value> = several
                .map(|(_, schema)| Ok(message(SCHEMA, schema.bytes()?, depth)?.into()))
                .collect::<Result<_, _>>()?;
            match last(&pieces, 1) {
                Some(schema) if several.is_empty() => {
                    message(SCHEMA, schema.bytes()?, depth)?.into()
                }
                _ => several.into(),
            }
        }
        Kind::SchemaOrTexts => match last(&collect(piece.bytes()?)?, 1) {
            Some(schema) => message(SCHEMA, schema.bytes()?, depth)?.into(),
            None => texts(piece, 2)?,
        },
        Kind::Message(name) => message(name, piece.bytes()?, depth)?.into(),
    })
}

fn texts(piece: Piece<'_>, wanted: u64) -> Result<Value, Unreadable> {
    collect(piece.bytes()?)?
        .into_iter()
        .filter(|(number, _)| *number == wanted)
        .map(|(_, text)| text.text().map(Value::from))
        .collect()
}

/// Decodes a time. Returns null for zero seconds and nanoseconds, because this means that the time is not set.
fn time(piece: Piece<'_>, format: &str) -> Result<Value, Unreadable> {
    let pieces = collect(piece.bytes()?)?;
    let number = |at| last(&pieces, at).map_or(Ok(0), Piece::number);
    let (seconds, nanos) = (number(1)?.cast_signed(), number(2)?.cast_signed());
    if seconds == 0 && nanos == 0 {
        return Ok(Value::Null);
    }
    let nanos = i32::try_from(nanos).unwrap_or_default();
    let stamp = jiff::Timestamp::new(seconds, nanos)
        .map_err(|_| Unreadable::Broken("a time out of range"))?;
    Ok(stamp.strftime(format).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![(number << 3 | 2) as u8, bytes.len() as u8];
        out.extend_from_slice(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), part(1, &meta), part(2, raw)].concat()
    }

    #[test]
    fn a_deployment_is_read() {
        let meta = [
            part(1, b"web"),
            part(2, b""),
            part(11, &[part(1, b"a"), part(2, b"b")].concat()),
        ]
        .concat();
        let spec = [vec![0x08, 0], part(4, &[]), vec![0x28, 7]].concat();
        let body = envelope(
            "apps/v1",
            "Deployment",
            &[part(1, &meta), part(2, &spec)].concat(),
        );
        assert_eq!(
            decode(&body),
            Ok(json!({
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "labels": {"a": "b"}},
                "spec": {"replicas": 0, "strategy": {}, "minReadySeconds": 7},
            }))
        );
    }

    #[test]
    fn bytes_times_and_options_are_read() {
        let data = [part(1, b"token"), part(2, b"s3cret")].concat();
        let created = part(8, &[0x08, 0x80, 0xa3, 0x05]);
        let secret = envelope(
            "v1",
            "Secret",
            &[part(1, &created), part(2, &data)].concat(),
        );
        assert_eq!(
            decode(&secret),
            Ok(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"creationTimestamp": "1970-01-02T00:00:00Z"},
                "data": {"token": "czNjcmV0"},
            }))
        );
        let options = envelope(
            "v1",
            "DeleteOptions",
            &[&[0x08, 0][..], &part(4, b"Orphan")].concat(),
        );
        assert_eq!(
            decode(&options),
            Ok(json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "gracePeriodSeconds": 0,
                "propagationPolicy": "Orphan",
            }))
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(decode(b"{}"), Err(Unreadable::NoMagic));
        let unknown = envelope("example.com/v1alpha1", "Widget", &[]);
        assert!(matches!(decode(&unknown), Err(Unreadable::UnknownKind(..))));
        let cut = envelope("v1", "Secret", &[0x0a, 9, 1]);
        assert_eq!(decode(&cut), Err(Unreadable::CutShort("field")));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_bring_it_down(raw in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
            let kinds = [("v1", "Pod"), ("apps/v1", "Deployment"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")];
            for (api_version, kind) in kinds {
                let _ = decode(&envelope(api_version, kind, &raw));
            }
        }
    }
}
