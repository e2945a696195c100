mod operations;
mod properties;

use serde_json::{Value, json};

use super::*;

fn run(
    resource: &Value,
    verb: PatchVerb,
    path: &str,
    value: Option<Value>,
) -> Result<Value, String> {
    let path = Path::parse(path).map_err(|error| format!("{path}: {error}"))?;
    let mut patched = resource.clone();
    let done = apply(&mut patched, verb, &path, value.as_ref());
    match done {
        Ok(_) => Ok(patched),
        Err(error) => {
            assert_eq!(&patched, resource, "{path} failed, so nothing may change");
            Err(error.to_string())
        }
    }
}

/// Returns the value at a JSON pointer; null if it does not exist.
fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn paths_that_are_none() {
    for (text, column, message) in [
        (
            "spec",
            1,
            "expected a path that begins with `/`, found `spec`",
        ),
        (
            "[*]",
            1,
            "expected a path that begins with `/`, found `[*]`",
        ),
        (
            "/",
            2,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/spec/",
            7,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/spec//x",
            7,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/a~x",
            3,
            "`~` begins an escape: ~0 is ~, ~1 is /, ~2 is [, ~3 is ' and ~4 is \"",
        ),
        (
            "/größe~",
            7,
            "`~` begins an escape: ~0 is ~, ~1 is /, ~2 is [, ~3 is ' and ~4 is \"",
        ),
        (
            "/a[",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[x]",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[1",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[*]b",
            6,
            "expected `/` or the end of the path, found `b`",
        ),
        (
            "/a[?@.b=='c']",
            5,
            "expected `(` after `[?`, found `@.b=='c']`",
        ),
        (
            "/a[?(b=='c')]",
            6,
            "expected `@`, which is the item, as in `@.name`, found `b=='c')]`",
        ),
        (
            "/a[?(@.=='c')]",
            8,
            "expected the name of a field, found `=='c')]`",
        ),
        ("/a[?(@.b)]", 9, "expected `==` or `!=`, found `)]`"),
        ("/a[?(@.b='c')]", 9, "expected `==` or `!=`, found `='c')]`"),
        ("/a[?(@.b<3)]", 9, "expected `==` or `!=`, found `<3)]`"),
        (
            "/a[?(@.b==c)]",
            11,
            "expected a text in quotes, a number, true or false, found `c)]`",
        ),
        (
            "/a[?(@.b==null)]",
            11,
            "expected a text in quotes, a number, true or false, found `null)]`",
        ),
        (
            "/a[?(@.b==)]",
            11,
            "expected a text in quotes, a number, true or false, found `)]`",
        ),
        ("/a[?(@.b=='c)]", 11, "the quote is not closed"),
        ("/a[?(@.b==\"c')]", 11, "the quote is not closed"),
        (
            "/a[?(@.b=='c'",
            14,
            "expected `&&` or `)]`, found the end of the path",
        ),
        (
            "/a[?(@.b=='c')",
            15,
            "expected `]` after the filter, found the end of the path",
        ),
        (
            "/a[?(@.b=='c' || @.d=='e')]",
            15,
            "expected `&&` or `)]`, found `|| @.d=='e')]`",
        ),
        (
            "/a[?(@.b=='c' && )]",
            18,
            "expected `@`, which is the item, as in `@.name`, found `)]`",
        ),
        (
            "/a[?(@[b]=='c')]",
            8,
            "expected a quoted name of a field, as in `@['a.b']`, found `b]=='c')]`",
        ),
        (
            "/a[?(@['b'=='c')]",
            11,
            "expected `]` after the name, found `=='c')]`",
        ),
    ] {
        let error = Path::parse(text).expect_err(text);
        assert_eq!(
            (error.column, error.message.as_str()),
            (column, message),
            "{text}"
        );
    }
}

#[test]
fn paths_are_bounded() {
    assert!(Path::parse(&"/a".repeat(MAX_SEGMENTS)).is_ok());
    for (text, message) in [
        ("/a".repeat(MAX_SEGMENTS + 1), "more than 64 segments"),
        (
            format!("/a{}", "[*]".repeat(4_000)),
            "more than 64 segments",
        ),
        (format!("/{}", "a".repeat(MAX_LENGTH)), "longer than"),
        (
            format!("/a[?({})]", ["@.b==1"; 17].join("&&")),
            "at most 16 conditions",
        ),
        (
            format!("/a[?(@{}==1)]", ".b".repeat(100)),
            "more than 64 parts",
        ),
    ] {
        let error = Path::parse(&text).expect_err(message);
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn one_form_of_many() {
    for (text, shown) in [
        ("", ""),
        ("/spec/containers/0", "/spec/containers/0"),
        ("/spec/containers[0]", "/spec/containers/0"),
        ("/a[*][*]/b", "/a/[*]/[*]/b"),
        ("/[*]/b", "/[*]/b"),
        ("/c[?( @.name == \"main\" )]", "/c/[?(@.name=='main')]"),
        (
            "/c/[?(@.a.b!='x'&&@.n==1.50)]",
            "/c/[?(@.a.b!='x' && @.n==1.5)]",
        ),
        ("/c[?(@=='a/b')]", "/c/[?(@=='a~1b')]"),
        ("/c[?(@['a.b/c']==true)]", "/c/[?(@['a.b~1c']==true)]"),
        ("/c[?(@.x==\"it's\")]/d", "/c/[?(@.x=='it~3s')]/d"),
        ("/a~1b/c~0d/e~2f", "/a~1b/c~0d/e~2f"),
        ("/it's", "/it~3s"),
    ] {
        let path = Path::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(path.to_string(), shown, "{text}");
        assert_eq!(Path::parse(shown), Ok(path), "{text}");
    }
}

#[test]
fn any_text_is_one_key() {
    for text in [
        "a/b",
        "a~1b",
        "[*]",
        "[?(@.x=='y')]",
        "'",
        "\"",
        "a b",
        "-",
        "é",
    ] {
        let key = Path::parse(&format!("/x/{}", escape(text))).unwrap();
        assert_eq!(
            key.segments,
            [Segment::Key("x".into()), Segment::Key(text.into())]
        );
        let resource = json!({"x": [{"name": text, "hit": 0}, {"name": "other"}]});
        for quote in ["'", "\""] {
            let path = format!("/x[?(@.name=={quote}{}{quote})]/hit", escape(text));
            let patched = run(&resource, PatchVerb::Replace, &path, Some(json!(1))).unwrap();
            assert_eq!(at(&patched, "/x/0/hit"), json!(1), "{path}");
        }
    }
}

#[test]
fn operations_are_bounded() {
    let many: Vec<Value> = (0..MAX_MATCHES + 1)
        .map(|n| json!({"n": n, "inner": [1, 2]}))
        .collect();
    let resource = json!({"many": many, "some": many[..MAX_MATCHES].to_vec()});
    let too_many = Err(PatchError::TooManyMatches.to_string());
    assert_eq!(
        run(&resource, PatchVerb::Add, "/many[*]/x", Some(json!(1))),
        too_many
    );
    assert_eq!(
        run(&resource, PatchVerb::Remove, "/many[*]", None),
        too_many
    );
    assert_eq!(
        run(
            &resource,
            PatchVerb::Replace,
            "/some[*]/inner[*]",
            Some(json!(1))
        ),
        too_many
    );
    assert_eq!(
        run(&resource, PatchVerb::Remove, "/some[*]/inner[*]", None),
        too_many
    );
    assert!(run(&resource, PatchVerb::Add, "/some[*]/x", Some(json!(1))).is_ok());
    let large = json!("x".repeat(MAX_ADDED / 100));
    assert_eq!(
        run(&resource, PatchVerb::Add, "/some[*]/x", Some(large.clone())),
        Err(PatchError::TooMuch.to_string())
    );
    assert!(run(&resource, PatchVerb::Add, "/some/0/x", Some(large)).is_ok());
}
