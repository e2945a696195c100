//! Embedded content of a release: a definition as a plain object, or as gzip in base64 if it is large.
//!
//! A definition larger than [`PACK_OVER`] is compressed, because an API server needs much less time and memory for
//! one string than for a large object. Equal definitions become equal bytes.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::api::Object;
use crate::api::openchoreo::release::Content;

/// The size of a definition as JSON, in bytes, above which it is compressed.
pub const PACK_OVER: usize = 20 << 10;
/// The largest size of a definition after uncompressing, in bytes.
pub const UNPACKED_AT_MOST: usize = 8 << 20;

/// The reason why the embedded content of a release cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The compressed content is not base64. Contains the error.
    #[error(
        "`compressed` is not base64 ({0}); it must contain the gzip of the definition in base64"
    )]
    Base64(String),
    /// The compressed content is not gzip. Contains the error.
    #[error("`compressed` is not the base64 of a gzip ({0}); create the release again")]
    Gzip(String),
    /// The uncompressed content is larger than the limit.
    #[error(
        "the content has more than {UNPACKED_AT_MOST} bytes uncompressed; no definition needs that much"
    )]
    TooLarge,
    /// The uncompressed content is not UTF-8.
    #[error("the uncompressed content is not UTF-8; create the release again")]
    NotText,
    /// The uncompressed content is not valid YAML.
    #[error("{0}")]
    Yaml(#[from] bounded_yaml::YamlError),
    /// The uncompressed content is not exactly one object.
    #[error("the content must be one object, but is {0}")]
    NotOneObject(String),
}

/// Converts a definition to embedded content: compressed if it is larger than [`PACK_OVER`], otherwise plain.
pub fn pack(object: &Object) -> Content {
    let json = serde_json::to_vec(object).expect("BUG: a JSON object is JSON");
    if json.len() <= PACK_OVER {
        return Content(object.clone());
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    let packed = gzip.write_all(&json).and_then(|()| gzip.finish());
    let packed = packed.expect("BUG: a Vec takes every write");
    Content::from_compressed(STANDARD.encode(packed))
}

/// Returns the definition in embedded content, uncompressed if necessary.
pub fn unpack(content: &Content) -> Result<Object, ContentError> {
    let Some(base64) = content.compressed() else {
        return Ok(content.0.clone());
    };
    let packed = STANDARD
        .decode(base64)
        .map_err(|error| ContentError::Base64(error.to_string()))?;
    let mut bytes = Vec::new();
    MultiGzDecoder::new(packed.as_slice())
        .take(UNPACKED_AT_MOST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| ContentError::Gzip(error.to_string()))?;
    if bytes.len() > UNPACKED_AT_MOST {
        return Err(ContentError::TooLarge);
    }
    one_object("compressed content", &bytes)
}

/// Parses a JSON or YAML text that must contain exactly one object. `origin` is the name of the text in errors.
fn one_object(origin: &str, bytes: &[u8]) -> Result<Object, ContentError> {
    let text = std::str::from_utf8(bytes).map_err(|_| ContentError::NotText)?;
    // The text is first read as JSON, because `pack` writes JSON and the YAML parser refuses some JSON numbers, such
    // as 1e+21.
    if let Ok(object) = serde_json::from_str(text) {
        return Ok(object);
    }
    let mut documents = bounded_yaml::documents(origin, text)?;
    match (
        documents.pop().map(|document| document.value),
        documents.len(),
    ) {
        (Some(Value::Object(object)), 0) => Ok(object),
        (Some(_), 0) => Err(ContentError::NotOneObject("not a map".to_owned())),
        (None, _) => Err(ContentError::NotOneObject("empty".to_owned())),
        (_, more) => Err(ContentError::NotOneObject(format!(
            "{} documents",
            more + 1
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    fn gzip(bytes: &[u8]) -> String {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(bytes).unwrap();
        STANDARD.encode(gzip.finish().unwrap())
    }

    #[test]
    fn only_what_is_large_is_packed() {
        let small = object(json!({"kind": "Addon"}));
        assert_eq!(pack(&small).whole(), Some(&small));
        let large = object(json!({"kind": "Addon", "spec": "x".repeat(PACK_OVER)}));
        let packed = pack(&large);
        assert!(packed.compressed().is_some_and(|text| text.len() < 1000));
        assert_eq!(unpack(&packed).unwrap(), large);
        assert_eq!(pack(&large), packed);
    }

    #[test]
    fn what_cannot_be_unpacked_says_why() {
        for (compressed, why) in [
            ("%%%".to_owned(), "is not base64"),
            (STANDARD.encode("plain"), "gzip"),
            (gzip(b"{\"kind\": \"Addon\"}")[..20].to_owned(), "gzip"),
            (gzip(b"[1]"), "is not a map"),
            (gzip(b""), "is empty"),
            (gzip(b"a: 1\n---\na: 2\n"), "is 2 documents"),
            (gzip(b"\xff\xfe"), "not UTF-8"),
            (gzip(b"a: [\n"), "compressed content:"),
            (gzip(b"a: 1\na: 2\n"), "compressed content:2"),
        ] {
            let error = unpack(&Content::from_compressed(compressed)).unwrap_err();
            assert!(error.to_string().contains(why), "{error} has no {why:?}");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = gzip(&vec![b' '; UNPACKED_AT_MOST + 1]);
        assert!(bomb.len() < 20_000);
        let error = unpack(&Content::from_compressed(bomb)).unwrap_err();
        assert_eq!(error, ContentError::TooLarge);
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let below = level - 1;
            let items = vec![format!("*a{below}"); 10].join(", ");
            aliases.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        let error = unpack(&Content::from_compressed(gzip(aliases.as_bytes()))).unwrap_err();
        assert!(
            matches!(
                error,
                ContentError::Yaml(bounded_yaml::YamlError::Limit { .. })
            ),
            "{error}"
        );
    }

    #[test]
    fn yaml_and_json_are_read_alike() {
        let plain = object(json!({"kind": "Addon", "spec": {"creates": []}}));
        for text in [
            &b"kind: Addon\nspec:\n  creates: []\n"[..],
            br#"{"kind":"Addon","spec":{"creates":[]}}"#,
        ] {
            let content = Content::from_compressed(gzip(text));
            assert_eq!(unpack(&content).unwrap(), plain);
        }
    }

    /// Returns any JSON value that a definition can contain.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter_map("finite", |number| {
                serde_json::Number::from_f64(number).map(Value::Number)
            }),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(value in any_json()) {
            let filler = "x".repeat(PACK_OVER);
            let packed = object(json!({"filler": filler, "value": value}));
            let content = pack(&packed);
            prop_assert!(content.compressed().is_some());
            let unpacked = unpack(&content).unwrap();
            prop_assert_eq!(unpacked.get("value"), packed.get("value"));
        }

        #[test]
        fn no_text_breaks_it(text in ".{0,200}") {
            let _ = unpack(&Content::from_compressed(text));
        }
    }
}
