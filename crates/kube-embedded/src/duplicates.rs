//! Finds fields that occur twice in an object of a JSON body. This must happen on the bytes, because a parsed object
//! has each field only once.
//!
//! The search reads the bytes once, and stores only the field names of the objects around the current position. It
//! ignores syntax errors, because the parser of the body reports them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{self, Write};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The largest number of duplicate fields that are returned, as in kube-apiserver.
const MOST: usize = 100;

/// Returns the paths of the fields that occur more than once in an object of the body, such as `data.k`.
pub fn duplicates(body: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(body);
    let root = Place {
        parent: None,
        step: Step::Root,
        found: &mut found,
    };
    match root.deserialize(&mut reader) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

/// One step of a path. It refers to the step before it, so that only the paths of duplicate fields are converted to
/// text.
#[derive(Clone, Copy)]
struct Link<'p> {
    parent: Option<&'p Link<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl Link<'_> {
    fn write(&self, out: &mut String) {
        if let Some(parent) = self.parent {
            parent.write(out);
        }
        match self.step {
            Step::Root => {}
            Step::Key(key) => {
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(key);
            }
            // Writing to a string cannot fail.
            Step::Index(at) => write!(out, "[{at}]").unwrap_or_default(),
        }
    }
}

/// The path of the next value in the body, and the paths of the duplicate fields that were found so far.
struct Place<'p, 'f> {
    parent: Option<&'p Link<'p>>,
    step: Step<'p>,
    found: &'f mut Vec<String>,
}

#[derive(serde::Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

impl<'de> DeserializeSeed<'de> for Place<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let here = Link {
            parent: self.parent,
            step: self.step,
        };
        let mut seen: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            if seen.contains(&key) && self.found.len() < MOST {
                let mut path = String::new();
                let twice = Link {
                    parent: Some(&here),
                    step: Step::Key(&key),
                };
                twice.write(&mut path);
                if !self.found.contains(&path) {
                    self.found.push(path);
                }
            }
            map.next_value_seed(Place {
                parent: Some(&here),
                step: Step::Key(&key),
                found: self.found,
            })?;
            seen.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let here = Link {
            parent: self.parent,
            step: self.step,
        };
        let mut at = 0;
        while let Some(()) = items.next_element_seed(Place {
            parent: Some(&here),
            step: Step::Index(at),
            found: self.found,
        })? {
            at += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::duplicates;

    #[test]
    fn paths_of_fields_that_stand_twice() {
        for (body, wanted) in [
            (r#"{"a": 1, "b": {"a": 2}}"#, &[] as &[&str]),
            (r#"{"a": 1, "a": 2}"#, &["a"]),
            (r#"{"a": 1, "\u0061": 2, "a": 3}"#, &["a"]),
            (
                r#"{"data": {"k": "v", "k": "w", "l": null, "l": []}}"#,
                &["data.k", "data.l"],
            ),
            (
                r#"{"spec": {"list": [{}, {"x": {"y": 1.5, "y": -1}}]}}"#,
                &["spec.list[1].x.y"],
            ),
            (
                r#"{"a": {"x": 1}, "a": {"x": 1, "x": true}}"#,
                &["a", "a.x"],
            ),
            (r#"{"a": 1, "a": "#, &[]),
            ("[1, \"a\", {\"b\": 1, \"b\": 1}]", &["[2].b"]),
            ("", &[]),
        ] {
            assert_eq!(duplicates(body.as_bytes()), wanted, "{body}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(".{0,3}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_printed_has_none(value in value()) {
            prop_assert!(duplicates(value.to_string().as_bytes()).is_empty());
        }

        #[test]
        fn no_bytes_make_it_stumble(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert!(duplicates(&bytes).len() <= super::MOST);
        }
    }
}
