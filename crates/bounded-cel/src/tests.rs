use std::cell::RefCell;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn run(source: &str, bindings: &Bindings<'_>) -> Result<Value, CelError> {
    Program::compile(source, &Limits::default())?.evaluate(bindings)
}

fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "metadata": {
            "name": "checkout-production",
            "namespace": "shop",
            "labels": {"app": "checkout", "example.com/component": "checkout"},
            "annotations": {},
        },
        "spec": {
            "replicas": 3,
            "ratio": 0.5,
            "whole": 3.0,
            "list": [1, 2, 3],
            "names": ["b", "a", "c"],
            "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}],
            "x-prop": "dash", "a.b": "dot", "a/b": "slash", "a__b": "underscores",
            "nothing": null,
            "memory": "1.5Gi",
            "until": "2026-03-01T10:00:00Z",
        },
    })
}

#[test]
fn what_expressions_say() {
    let object = object();
    let table: &[(&str, Value)] = &[
        // The following expressions use values and fields.
        ("1 + 2 * 3", json!(7)),
        ("-7 / 2", json!(-3)),
        ("-7 % 3", json!(-1)),
        ("1.5 + 2.0", json!(3.5)),
        ("'a' + 'b'", json!("ab")),
        ("[1] + [2, 3]", json!([1, 2, 3])),
        (
            "{'a': 1, 'b': [true, null]}",
            json!({"a": 1, "b": [true, null]}),
        ),
        ("{1: 'a', true: 'b'}", json!({"1": "a", "true": "b"})),
        ("object.metadata.name", json!("checkout-production")),
        (
            "object['metadata']['labels']['example.com/component']",
            json!("checkout"),
        ),
        ("object.spec.list[1]", json!(2)),
        ("object.spec.list[1.0]", json!(2)),
        ("object.metadata.namespace", json!("shop")),
        (
            "object.spec['a.b'] + object.spec.a__b",
            json!("dotunderscores"),
        ),
        ("object.spec.`x-prop`", json!("dash")),
        ("has(object.spec.x__dash__prop)", json!(false)),
        (
            "has(object.spec.nothing.x) || has(object.spec.replicas.x)",
            json!(false),
        ),
        ("b'abc'", json!("YWJj")),
        ("r'\\d' + '\\u00e9' + \"\"\"x\ny\"\"\"", json!("\\déx\ny")),
        ("0x1F", json!(31)),
        // The following expressions use equality and order.
        ("object.spec.replicas == 3.0", json!(true)),
        ("object.spec.whole == 3 && 3u == 3", json!(true)),
        ("1 == '1'", json!(false)),
        ("object.spec == object.spec", json!(true)),
        ("object.spec.nothing == null", json!(true)),
        ("[1, [2.0]] == [1.0, [2]]", json!(true)),
        (
            "{'a': 1} == {'a': 1.0} && {'a': 1} != {'b': 1}",
            json!(true),
        ),
        (
            "1 < 1.5 && 2u > 1 && 'a' < 'b' && false < true",
            json!(true),
        ),
        ("object.spec.ratio < 1", json!(true)),
        ("9223372036854775807 < 9223372036854775808u", json!(true)),
        // The following expressions use `&&`, `||` and `!`.
        ("true || object.no.such == 1", json!(true)),
        ("object.no.such == 1 || true", json!(true)),
        ("object.no.such == 1 && false", json!(false)),
        ("object.spec.replicas > 2 ? 'many' : 'few'", json!("many")),
        (
            "!has(object.spec.missing) && has(object.spec.nothing)",
            json!(true),
        ),
        // The following expressions use the operator `in`.
        (
            "2 in object.spec.list && !(4 in object.spec.list)",
            json!(true),
        ),
        (
            "'app' in object.metadata.labels && 2.0 in [1, 2]",
            json!(true),
        ),
        // The following expressions use loops.
        ("object.spec.list.all(x, x > 0)", json!(true)),
        ("object.spec.list.exists(x, x == 2)", json!(true)),
        ("object.spec.list.exists_one(x, x > 2)", json!(true)),
        ("object.spec.list.map(x, x * 2)", json!([2, 4, 6])),
        ("object.spec.list.map(x, x > 1, x * 2)", json!([4, 6])),
        (
            "object.spec.ports.filter(p, p.port > 100)[0].name",
            json!("https"),
        ),
        ("object.metadata.labels.all(k, k != 'x')", json!(true)),
        (
            "object.metadata.labels.map(k, object.metadata.labels[k])",
            json!(["checkout", "checkout"]),
        ),
        ("[1, 0].exists(x, 10 / x == 10)", json!(true)),
        ("[0, 1].all(x, 10 / x == 0)", json!(false)),
        ("object.spec.list.all(i, v, v == i + 1)", json!(true)),
        (
            "object.metadata.labels.exists(k, v, k == 'app' && v == 'checkout')",
            json!(true),
        ),
        (
            "['a', 'b'].transformList(i, v, v + string(i))",
            json!(["a0", "b1"]),
        ),
        (
            "{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10)",
            json!({"b": 20}),
        ),
        ("['a'].transformMapEntry(i, v, {v: i})", json!({"a": 0})),
        (
            "[[1, 2], [3]].map(l, l.map(x, x + 1))",
            json!([[2, 3], [4]]),
        ),
        ("[1].map(object, object)", json!([1])),
        // The following expressions use optionals.
        ("object.?spec.?missing.orValue('none')", json!("none")),
        ("object.?spec.?replicas.orValue(1)", json!(3)),
        ("object.?nope.missing.hasValue()", json!(false)),
        ("object.spec.?list[?7].orValue(9)", json!(9)),
        ("object.spec.list[?0].value()", json!(1)),
        ("optional.of(1).or(optional.of(2)).value()", json!(1)),
        ("optional.none().or(optional.of(2)).value()", json!(2)),
        ("optional.ofNonZeroValue('').hasValue()", json!(false)),
        ("optional.of(2).optMap(x, x + 1).value()", json!(3)),
        (
            "optional.of(2).optFlatMap(x, optional.none()).hasValue()",
            json!(false),
        ),
        ("[?optional.none(), ?optional.of(1)]", json!([1])),
        (
            "{?'a': optional.none(), ?'b': optional.of(1)}",
            json!({"b": 1}),
        ),
        ("optional.none()", json!(null)),
        ("[1, 2].first().value() + [].last().orValue(5)", json!(6)),
        // The following expressions use strings.
        (
            "size('größe') + 'abc'.size() + size([1]) + size({'a': 1}) + size(b'ab')",
            json!(12),
        ),
        (
            "object.metadata.name.startsWith('check') && 'abc'.endsWith('c') && 'abc'.contains('b')",
            json!(true),
        ),
        (
            "'4f2c' .matches('^[0-9a-f]{4}$') && !matches('x', '^[0-9]+$')",
            json!(true),
        ),
        (
            "['a1b22'].map(s, s.find('[0-9]+') + s.findAll('[0-9]+')[1])",
            json!(["122"]),
        ),
        ("'a,b,c'.split(',')", json!(["a", "b", "c"])),
        ("'a,b,c'.split(',', 2)", json!(["a", "b,c"])),
        ("'abc'.split('')", json!(["a", "b", "c"])),
        ("['a', 'b'].join('-') + ['x', 'y'].join()", json!("a-bxy")),
        ("'AbC'.lowerAscii() + 'AbC'.upperAscii()", json!("abcABC")),
        (
            "'banana'.replace('a', 'o') + 'banana'.replace('a', 'o', 1) + 'ab'.replace('', '-')",
            json!("bonono".to_owned() + "bonana" + "-a-b-"),
        ),
        (
            "'größe'.substring(2) + 'größe'.substring(0, 3)",
            json!("ößegrö"),
        ),
        (
            "'größe'.indexOf('ß') * 10 + 'banana'.lastIndexOf('a')",
            json!(35),
        ),
        (
            "'banana'.indexOf('a', 2) * 10 + 'banana'.lastIndexOf('a', 4)",
            json!(33),
        ),
        ("'x'.indexOf('y')", json!(-1)),
        (
            "'größe'.charAt(2) + ' x '.trim() + 'abc'.reverse()",
            json!("öxcba"),
        ),
        ("strings.quote('a\"b\\n')", json!("\"a\\\"b\\n\"")),
        (
            "'%s has %d, %.2f, %x, %e %%'.format(['a', 3, 1.5, 255, 1234.5])",
            json!("a has 3, 1.50, ff, 1.234500×10⁰³ %"),
        ),
        (
            "'%s'.format([[1, 'a', {'k': true}, 1.0]])",
            json!("[1, \"a\", {\"k\":true}, 1.000000]"),
        ),
        // The following expressions use lists and sets.
        (
            "[1, 2].isSorted() && !object.spec.names.isSorted()",
            json!(true),
        ),
        (
            "[1, 2, 3].sum() + [3, 1].min() + [3, 1].max() + [].sum()",
            json!(10),
        ),
        (
            "['a', 'b', 'a'].indexOf('a') * 10 + ['a', 'b', 'a'].lastIndexOf('a')",
            json!(2),
        ),
        ("object.spec.names.sort()", json!(["a", "b", "c"])),
        (
            "[1, 1, 2].distinct() + [1, 2].reverse() + [1, 2, 3].slice(1, 2)",
            json!([1, 2, 2, 1, 2]),
        ),
        ("[[1], [2, [3]]].flatten()", json!([1, 2, [3]])),
        ("lists.range(3)", json!([0, 1, 2])),
        (
            "sets.contains([1, 2], [2]) && sets.equivalent([1, 1], [1]) && sets.intersects([1], [1, 2])",
            json!(true),
        ),
        (
            "math.greatest(1, 2.5) + math.least([1.0, 3.0]) + math.ceil(1.2) + math.abs(-1.0)",
            json!(6.5),
        ),
        (
            "base64.encode(b'hi') + string(base64.decode('aGk='))",
            json!("aGk=hi"),
        ),
        // The following expressions convert types.
        ("int('42') + int(3.9) + int(2u)", json!(47)),
        (
            "string(1) + string(1.5) + string(true) + string(b'x') + string(1000000.0) + string(3.0)",
            json!("11.5truex1e+063"),
        ),
        ("double('1.5') + double(1)", json!(2.5)),
        ("uint(3) == 3u && bool('true')", json!(true)),
        (
            "type(1) == int && type('a') == string && type([]) == list && type(null) == null_type && type(type(1)) == type",
            json!(true),
        ),
        ("dyn(1) == 1", json!(true)),
        // The following expressions use timestamps and durations.
        (
            "timestamp('2026-03-01T10:00:00Z') + duration('1h30m')",
            json!("2026-03-01T11:30:00Z"),
        ),
        (
            "timestamp('2026-03-02T00:00:00Z') - timestamp('2026-03-01T00:00:00Z') == duration('24h')",
            json!(true),
        ),
        (
            "timestamp(object.spec.until) > timestamp('2025-01-01T00:00:00+01:00')",
            json!(true),
        ),
        (
            "timestamp('2026-03-01T10:11:12.345Z').getFullYear() + timestamp('2026-03-01T10:11:12Z').getMonth()",
            json!(2028),
        ),
        (
            "timestamp('2026-03-01T23:11:12Z').getHours('+02:00') * 100 + timestamp('2026-03-01T23:11:12Z').getDayOfWeek()",
            json!(100),
        ),
        (
            "duration('90m').getHours() * 100 + duration('-1.5s').getMilliseconds()",
            json!(-1400),
        ),
        (
            "string(duration('1h30m')) + string(duration('1500ms'))",
            json!("5400s1.5s"),
        ),
        ("int(timestamp('1970-01-01T00:01:00Z'))", json!(60)),
        // The following expressions use quantities.
        (
            "quantity('1.5Gi').isGreaterThan(quantity('1G')) && isQuantity('100m') && !isQuantity('x')",
            json!(true),
        ),
        (
            "quantity('2').add(quantity('500m')).compareTo(quantity('2500m'))",
            json!(0),
        ),
        ("quantity('2Gi').asInteger()", json!(2147483648u64)),
        ("string(quantity('0.1').sub(quantity('50m')))", json!("50m")),
    ];
    assert!(table.len() >= 60);
    let bindings = Bindings::new().with("object", &object);
    for (source, expected) in table {
        match run(source, &bindings) {
            Ok(value) => assert_eq!(&value, expected, "{source}"),
            Err(error) => panic!("{source}: {error}"),
        }
    }
}

#[test]
fn what_fails_and_how() {
    let object = object();
    let bindings = Bindings::new().with("object", &object);
    for (source, says) in [
        ("object.spec.missing", "no such key: missing"),
        ("object['x']", "no such key: x"),
        ("has(object.missing.field)", "no such key: missing"),
        ("object.spec.list[9]", "index out of bounds: 9"),
        ("object.spec.list[-1]", "index out of bounds"),
        ("object.metadata.name.first", "no such key: first"),
        ("object.spec.nothing.x", "no such key: x"),
        ("object.spec.replicas[0]", "no such key: 0"),
        (
            "object.spec.list['a']",
            "unsupported index type 'string' in list",
        ),
        ("1 / 0", "division by zero"),
        ("1 % 0", "modulus by zero"),
        ("9223372036854775807 + 1", "integer overflow"),
        ("-9223372036854775808 / -1", "integer overflow"),
        ("0u - 1u", "integer overflow"),
        ("1 + 1.0", "no such overload: +(int, double)"),
        ("1 + 'a'", "no such overload: +(int, string)"),
        ("'a' < 1", "no such overload: <(string, int)"),
        ("1 ? 2 : 3", "true or false is needed"),
        ("!1", "true or false is needed"),
        ("nobody", "nobody is not defined"),
        ("variables.x", "variables.x is not defined"),
        (
            "authorizer.group('').resource('pods').check('get').allowed()",
            "authorizer is not defined",
        ),
        ("{'a': 1, 'a': 2}", "a key stands twice"),
        ("{[1]: 2}", "cannot be a key"),
        ("[1, 0].all(x, 10 / x > 0)", "division by zero"),
        ("[0].map(x, 10 / x)", "division by zero"),
        ("1.map(x, x)", "cannot be looped over"),
        ("optional.none().value()", "has no value"),
        ("int('a')", "to 'int'"),
        ("int(1e30)", "to 'int'"),
        ("timestamp('yesterday')", "'google.protobuf.Timestamp'"),
        ("duration('1 day')", "'google.protobuf.Duration'"),
        ("quantity('1.5Zi')", "no quantity"),
        (
            "timestamp('2026-03-01T10:00:00Z').getHours('Europe/Berlin')",
            "time zone",
        ),
        ("'abc'.substring(2, 1)", "invalid substring"),
        ("'abc'.charAt(9)", "out of range"),
        ("[].max()", "not empty"),
        ("'a'.matches(object.metadata.name + '(')", "invalid pattern"),
        ("'%d'.format(['a'])", "no such overload"),
        ("'%s %s'.format(['a'])", "more clauses"),
        ("0.0 / 0.0", "not finite"),
        ("object", ""),
    ] {
        match run(source, &bindings) {
            Err(CelError::Failed(message)) => {
                assert!(message.contains(says), "{source}: {message}")
            }
            Ok(_) if source == "object" => {}
            other => panic!("{source} gave {other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_read() {
    for source in [
        "",
        " ",
        "1 +",
        "a b",
        "(",
        "[1",
        "'abc",
        "a.",
        "a ? b",
        "1 = 2",
        "@",
        "has(a)",
        "has(1)",
        "[1].map(1, 2)",
        "[1].all(a.b, true)",
        "99999999999999999999",
        "if",
        "'a'.matches('(')",
    ] {
        let result = Program::compile(source, &Limits::default());
        assert!(
            matches!(result, Err(CelError::Syntax(_) | CelError::Failed(_))),
            "{source:?} gave {result:?}"
        );
    }
    for source in [
        "nosuch(1)",
        "'a'.nosuch()",
        "size(1, 2)",
        "url('http://x')",
        "a.b.C{x: 1}",
        "'a'.substring()",
        "math.nosuch(1)",
        "authorizer.nosuch(1, 2)",
    ] {
        let result = Program::compile(source, &Limits::default());
        assert!(
            matches!(result, Err(CelError::Unknown(_))),
            "{source:?} gave {result:?}"
        );
    }
}

#[test]
fn names_that_are_needed() {
    for (source, names) in [
        ("self.a > oldSelf.a", vec!["oldSelf", "self"]),
        ("[1].map(x, x + y)", vec!["y"]),
        ("x + [1].map(x, x)[0]", vec!["x"]),
        ("type(self) == int", vec!["self"]),
        (
            "variables.a && optional.of(1).hasValue()",
            vec!["variables"],
        ),
        ("1", vec![]),
    ] {
        let program = Program::compile(source, &Limits::default()).unwrap();
        assert_eq!(program.names().collect::<Vec<_>>(), names, "{source}");
    }
}

#[test]
fn bombs_end_at_a_limit() {
    let items: Value = (0..300).collect();
    let many: Value = (0..30_000).collect();
    let long = json!("a".repeat(200_000));
    let bindings = Bindings::new()
        .with("items", &items)
        .with("many", &many)
        .with("long", &long);
    let nest = |text: &str, count: usize| text.repeat(count);
    for (name, source, bound) in [
        (
            "four loops over 300 items",
            "items.all(a, items.all(b, items.all(c, items.all(d, a + b + c + d >= 0))))".to_owned(),
            Bound::Steps,
        ),
        (
            "a sum of 10,000 terms",
            format!("1{}", nest("+1", 9_999)),
            Bound::Source,
        ),
        (
            "a sum of 5,000 terms",
            format!("1{}", nest("+1", 4_999)),
            Bound::Depth,
        ),
        ("a long source", " ".repeat(20_000), Bound::Source),
        (
            "a long chain",
            format!("a{}", nest(".a", 4_000)),
            Bound::Depth,
        ),
        (
            "a long chain of calls",
            format!("''{}", nest(".trim()", 1_000)),
            Bound::Depth,
        ),
        (
            "many items",
            format!("[{}1]", nest("1,", 7_000)),
            Bound::Nodes,
        ),
        (
            "six nested loops",
            "[1].map(a, [1].map(b, [1].map(c, [1].map(d, [1].map(e, [1].map(f, 1))))))".to_owned(),
            Bound::Loops,
        ),
        (
            "a loop over too much",
            "many.all(x, true)".to_owned(),
            Bound::Range,
        ),
        (
            "a range too long",
            "lists.range(1000000000)".to_owned(),
            Bound::Range,
        ),
        (
            "doubling text",
            format!("['x']{}", nest(".map(s, s + s)", 40)),
            Bound::Memory,
        ),
        (
            "doubling lists",
            format!("[[1]]{}", nest(".map(l, l + l)", 40)),
            Bound::Memory,
        ),
        (
            "sharing doubles the output",
            format!("[[1]]{}", nest(".map(l, [l, l])", 40)),
            Bound::Output,
        ),
        (
            "sharing doubles a comparison",
            format!(
                "[[1]]{} == [[1]]{}",
                nest(".map(l, [l, l])", 40),
                nest(".map(l, [l, l])", 40)
            ),
            Bound::Steps,
        ),
        (
            "replacing nothing by much",
            "long.replace('', long)".to_owned(),
            Bound::Memory,
        ),
        (
            "replacing much by much",
            "long.replace('a', long)".to_owned(),
            Bound::Memory,
        ),
        (
            "joining by much",
            "items.map(i, 'x').join(long)".to_owned(),
            Bound::Memory,
        ),
        (
            "concatenating in a loop",
            "items.map(i, long + long)".to_owned(),
            Bound::Memory,
        ),
        (
            "formatting shared lists",
            format!("'%s'.format([[1]]{})", nest(".map(l, [l, l])", 40)),
            Bound::Steps,
        ),
        (
            "patterns in a loop",
            "items.all(i, items.all(j, 'x'.matches('x' + string(i * j)) || true))".to_owned(),
            Bound::Steps,
        ),
        (
            "a heavy pattern on long text",
            "items.all(i, long.matches('(a?){50}(a{1,50}){20}b') || true)".to_owned(),
            Bound::Steps,
        ),
        (
            "distinct of much",
            "items.map(i, items.map(j, i * 300 + j)).flatten().distinct()".to_owned(),
            Bound::Steps,
        ),
        (
            "searching a list in a loop",
            "items.all(i, items.all(j, !(string(i) in ['a', 'b']) && !('x' in items)))".to_owned(),
            Bound::Steps,
        ),
        (
            "asking text again and again",
            "items.all(i, items.all(j, !long.contains('b')))".to_owned(),
            Bound::Steps,
        ),
        (
            "splitting in a loop",
            "items.map(i, long.split(''))".to_owned(),
            Bound::Memory,
        ),
        (
            "errors do not hide a limit",
            "items.all(a, items.all(b, items.all(c, items.all(d, a / 0 == 1)))) || true".to_owned(),
            Bound::Steps,
        ),
    ] {
        // The test has no deadline, so that a slow machine reaches the same limit as a fast one.
        let limits = Limits {
            deadline: Duration::MAX,
            ..Limits::default()
        };
        let result = Program::compile(&source, &limits).and_then(|p| p.evaluate(&bindings));
        match result {
            Err(error) => assert_eq!(error.bound(), Some(bound), "{name}: {error}"),
            Ok(value) => panic!("{name} gave {} bytes", value.to_string().len()),
        }
    }
}

#[test]
fn deep_brackets_end_in_an_error() {
    let wrap = |open: &str, close: &str, times: usize| {
        format!("{}1{}", open.repeat(times), close.repeat(times))
    };
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1: ", "}"),
        ("size(", ")"),
        ("a[", "]"),
        ("a.b[?", "]"),
        ("![-{'a': size([(", ")])}]"),
        ("true ? (1 + [2, ", "][0] * 3) : 4"),
        ("[1].map(x, x + ", ")"),
    ] {
        for times in [10, 50, 95, 97, 500] {
            let result = Program::compile(&wrap(open, close, times), &Limits::default());
            let fits = times == 10 || times == 50 && matches!(open, "(" | "[" | "size(" | "{1: ");
            match result {
                Ok(_) => assert!(times < 500, "{open} {times} times"),
                Err(error) => assert!(!fits || open.len() > 6, "{open} {times} times: {error}"),
            }
        }
    }
}

#[test]
fn a_deadline_ends_an_evaluation() {
    let items: Value = (0..300).collect();
    let limits = Limits {
        deadline: Duration::ZERO,
        ..Limits::default()
    };
    let program = Program::compile("items.all(a, items.all(b, a + b >= 0))", &limits).unwrap();
    let error = program
        .evaluate(&Bindings::new().with("items", &items))
        .unwrap_err();
    assert_eq!(error.bound(), Some(Bound::Deadline));
}

#[test]
fn the_deepest_expression_fits_a_small_stack() {
    // A thread of Tokio has 2 MiB of stack. This test allows a quarter of it, because a debug build needs more stack
    // than a release build.
    let worker = std::thread::Builder::new().stack_size(512 << 10).spawn(|| {
        let sum = format!("1{}", "+1".repeat(98));
        let lists = format!("{}1{}", "[".repeat(40), "]".repeat(40));
        let calls = format!("'x'{}", ".trim()".repeat(90));
        let choices = format!("{}0", "true ? 1 : ".repeat(30));
        for source in [sum, lists, calls, choices] {
            run(&source, &Bindings::new()).unwrap();
        }
        // Each policy variable uses the one before it, until the sum of their depths exceeds the limit.
        let limits = Limits::default();
        let first = Program::compile("1", &limits).unwrap();
        let next = Program::compile(&format!("variables.v{}", "+ 1".repeat(50)), &limits).unwrap();
        let mut bindings = Bindings::new().with_variable("v", &first);
        for _ in 0..10 {
            bindings = bindings.with_variable("v", &next);
        }
        let error = run("variables.v", &bindings).unwrap_err();
        assert_eq!(error.bound(), Some(Bound::Depth));
    });
    worker.unwrap().join().unwrap();
}

#[test]
fn variables_are_lazy_and_see_those_before_them() {
    let object = object();
    let limits = Limits::default();
    let program = |source: &str| Program::compile(source, &limits).unwrap();
    let (name, upper, broken, itself) = (
        program("object.metadata.name"),
        program("variables.name.upperAscii()"),
        program("1 / 0"),
        program("variables.itself"),
    );
    let bindings = Bindings::new()
        .with("object", &object)
        .with_variable("name", &name)
        .with_variable("upper", &upper)
        .with_variable("broken", &broken)
        .with_variable("itself", &itself);
    assert_eq!(
        run(
            "variables.upper + variables.upper.substring(0, 1)",
            &bindings
        ),
        Ok(json!("CHECKOUT-PRODUCTIONC"))
    );
    assert_eq!(
        run("[1, 2].all(name, variables.name != '')", &bindings),
        Ok(json!(true))
    );
    assert!(run("variables.broken == 1", &bindings).is_err());
    let error = run("variables.itself", &bindings).unwrap_err();
    assert_eq!(
        error.to_string(),
        "composited variable \"itself\" fails to evaluate: variables.itself is not defined"
    );
}

#[test]
fn the_authorizer_is_asked() {
    let asked = RefCell::new(Vec::new());
    let authorizer = |query: &AccessQuery| {
        asked.borrow_mut().push(query.clone());
        query.name == "production"
    };
    let bindings = Bindings::new()
        .with_authorizer(&authorizer)
        .with_request_resource(AccessQuery {
            resource: "pods".into(),
            name: "production".into(),
            ..AccessQuery::default()
        });
    let question = "authorizer.group('example.com').resource('places').namespace('shop').name('production').check('enter').allowed()";
    assert_eq!(run(question, &bindings), Ok(json!(true)));
    assert_eq!(
        asked.borrow()[0],
        AccessQuery {
            verb: "enter".into(),
            group: "example.com".into(),
            resource: "places".into(),
            namespace: "shop".into(),
            name: "production".into(),
            ..AccessQuery::default()
        }
    );
    assert_eq!(
        run(
            "authorizer.group('').resource('pods').subresource('log').check('get').allowed()",
            &bindings
        ),
        Ok(json!(false))
    );
    assert_eq!(
        run(
            "authorizer.requestResource.check('delete').allowed()",
            &bindings
        ),
        Ok(json!(true))
    );
    assert_eq!(
        run(
            "authorizer.path('/metrics').check('get').reason()",
            &bindings
        ),
        Ok(json!(""))
    );
    assert_eq!(
        run(
            "authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').errored()",
            &bindings
        ),
        Ok(json!(false))
    );
    assert_eq!(
        asked.borrow()[4].service_account,
        Some(("ns".into(), "sa".into()))
    );
    assert_eq!(asked.borrow()[3].path.as_deref(), Some("/metrics"));
}

#[test]
fn schemas_give_types() {
    let schema = json!({
        "type": "object",
        "properties": {
            "since": {"type": "string", "format": "date-time"},
            "wait": {"type": "string", "format": "duration"},
            "data": {"type": "string", "format": "byte"},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "format": "duration"}},
            "named": {"type": "object", "properties": {"x-prop": {}, "namespace": {}, "a.b": {}, "a/b": {}, "a__b": {}}},
            "free": {"type": "object", "additionalProperties": {"type": "integer"}},
            "number": {"type": "number"},
        },
    });
    let value = json!({
        "since": "2026-03-01T10:00:00Z", "wait": "1h", "data": "aGk=", "set": ["a", "b"],
        "times": ["2026-03-01T10:00:00Z"], "map": {"x": "30m"}, "number": 3,
        "named": {"x-prop": 1, "namespace": 2, "a.b": 3, "a/b": 4, "a__b": 5, "x__dash__prop": 9}, "free": {"a__dash__b": 1},
    });
    let other = json!({"set": ["b", "a"]});
    let bindings = Bindings::new()
        .with_schema("self", &value, &schema)
        .with_schema("oldSelf", &other, &schema)
        .with_optional("maybe", Some(&value), Some(&schema))
        .with_optional("nothing", None, None)
        .with_absent("absent");
    for source in [
        "self.since + self.wait == timestamp('2026-03-01T11:00:00Z')",
        "timestamp(self.since) == self.since",
        "self.data == b'hi'",
        "self.set == oldSelf.set",
        "self.times.all(t, t.getHours() == 10)",
        "self.map['x'] < self.wait",
        "maybe.since.value() == self.since && maybe.hasValue()",
        "!nothing.hasValue() && nothing.since.orValue(1) == 1",
        "absent == null",
        "self.named.x__dash__prop == 1 && self.named.__namespace__ == 2 && self.named.a__dot__b == 3",
        "self.named.a__slash__b == 4 && self.named.a__underscores__b == 5 && has(self.named.x__dash__prop)",
        "self.free.a__dash__b == 1 && !has(self.free.a__dot__b)",
        "self.number * 2.0 == 6.0",
    ] {
        assert_eq!(run(source, &bindings), Ok(json!(true)), "{source}");
    }
    assert_eq!(
        run("self", &bindings),
        Ok(value.clone()),
        "what goes out is what came in"
    );
}

#[test]
fn a_rule_has_to_say_true_or_false() {
    let mut budget = Budget::new(1000, Duration::from_secs(60));
    let program = Program::compile("1", &Limits::default()).unwrap();
    let result = program.holds(&Bindings::new(), &mut budget);
    assert!(matches!(result, Err(CelError::Failed(_))));
    let program = Program::compile("1 < 2", &Limits::default()).unwrap();
    assert_eq!(program.holds(&Bindings::new(), &mut budget), Ok(true));
}

#[test]
fn a_shared_budget_ends_many_cheap_evaluations() {
    let mut budget = Budget::new(100, Duration::from_secs(60));
    let program = Program::compile("1 < 2", &Limits::default()).unwrap();
    let runs: Vec<_> = (0..100)
        .map(|_| program.holds(&Bindings::new(), &mut budget))
        .collect();
    assert_eq!(runs.first(), Some(&Ok(true)));
    let last = runs.last().and_then(|run| run.as_ref().err());
    assert_eq!(last.and_then(CelError::bound), Some(Bound::Steps));
    assert!(budget.is_spent());
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("o".to_owned()),
        Just("o.a".to_owned()),
        Just("o.list".to_owned()),
        Just("'x'".to_owned()),
        Just("1".to_owned()),
        Just("2.5".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("[1, 2]".to_owned()),
        Just("{'a': 1}".to_owned()),
        Just("-1".to_owned()),
        Just("b'x'".to_owned()),
        Just("duration('1h')".to_owned()),
        Just("timestamp('2026-01-01T00:00:00Z')".to_owned()),
        Just("optional.of(1)".to_owned()),
        Just("x".to_owned()),
        Just("9223372036854775807".to_owned()),
        Just("'é界'".to_owned()),
        Just("quantity('1Gi')".to_owned()),
    ];
    leaf.prop_recursive(5, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), "(\\+|-|\\*|/|%|==|!=|<|<=|>|>=| in |&&|\\|\\|)", inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
            (inner.clone(), "(all|exists|exists_one|map|filter|optMap)", inner.clone()).prop_map(|(a, f, b)| format!("({a}).{f}(x, {b})")),
            (inner.clone(), "(size|lowerAscii|trim|reverse|sort|distinct|flatten|sum|min|max|first|last|join|isSorted|getHours|getDayOfWeek|value|hasValue|isInteger|asInteger)").prop_map(|(a, f)| format!("({a}).{f}()")),
            (inner.clone(), "(contains|startsWith|split|indexOf|lastIndexOf|charAt|substring|matches|join|orValue|format|replace|flatten|add|find|findAll)", inner.clone()).prop_map(|(a, f, b)| format!("({a}).{f}({b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}).substring({b}, {c})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}).lastIndexOf({b}, {c})")),
            ("(int|uint|double|string|bytes|bool|type|size|duration|timestamp|quantity|lists\\.range|math\\.abs)", inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            inner.clone().prop_map(|a| format!("({a}).?a.b")),
            inner.prop_map(|a| format!("-({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_source_panics(source in "[-a-c0-9+*/%<>=!&|?:.,(){}\\[\\]'\"\\\\ @$`~^_\\n]{0,40}") {
        let value = json!({"a": 1});
        let _ = run(&source, &Bindings::new().with("a", &value));
    }

    #[test]
    fn no_characters_panic(source in any::<String>()) {
        let _ = run(&source, &Bindings::new());
    }

    #[test]
    fn no_expression_panics(source in expression()) {
        let value = json!({"a": 1, "list": [3, 1, 2]});
        let result = run(&source, &Bindings::new().with("o", &value));
        prop_assert!(!matches!(result, Err(CelError::Syntax(_))), "{} gave {:?}", source, result);
    }

    #[test]
    fn comparing_json_is_comparing_values(a in -5i64..5, b in -5i64..5, c in -2.0f64..2.0) {
        let left = json!({"n": [a, c]});
        let right = json!({"n": [b, c]});
        let bindings = Bindings::new().with("l", &left).with("r", &right);
        prop_assert_eq!(run("l == r", &bindings), Ok(json!(a == b)));
        prop_assert_eq!(run("l.n[0] <= r.n[0]", &bindings), Ok(json!(a <= b)));
        prop_assert_eq!(run("l.n[1] < r.n[0]", &bindings), Ok(json!(c < b as f64)));
    }
}

fn shout(text: &str) -> String {
    text.to_uppercase()
}

const TEXTS: &[(&str, TextFunction)] = &[("shout", shout)];

fn run_template(source: &str) -> Result<Option<Value>, CelError> {
    let limits = Limits::default();
    let object = object();
    let bindings = Bindings::new().with("object", &object);
    let mut budget = Budget::new(limits.steps, limits.deadline);
    Program::compile_template(source, &limits, TEXTS)?.evaluate_template(&bindings, &mut budget)
}

#[test]
fn templates_have_more_than_kubernetes() {
    for (source, expected) in [
        ("omit()", None),
        ("object.?missing", None),
        ("object.spec.?replicas", Some(json!(3))),
        ("{'a': omit(), 'b': [omit(), 1]}", Some(json!({"b": [1]}))),
        (
            "merge({'a': {'b': 1}}, {'a': {'c': 2}})",
            Some(json!({"a": {"b": 1, "c": 2}})),
        ),
        ("shout('a', 7, 'b')", Some(json!("A-7-B"))),
        ("null", Some(Value::Null)),
    ] {
        assert_eq!(run_template(source), Ok(expected), "{source}");
        let plain = Program::compile(source, &Limits::default());
        let known = !["omit", "merge", "shout"]
            .iter()
            .any(|name| source.contains(name));
        assert_eq!(plain.is_ok(), known, "{source}");
    }
    for source in [
        "shout()",
        "shout([1])",
        "merge(1, 2)",
        "omit(1)",
        "object.merge(object)",
    ] {
        assert!(run_template(source).is_err(), "{source}");
    }
}

#[test]
fn results_are_bounded_together() {
    let limits = Limits::default();
    let program = Program::compile_template("'0123456789'", &limits, &[]).unwrap();
    let mut budget = Budget::new(limits.steps, limits.deadline).with_output(30);
    let bindings = Bindings::new();
    let mut evaluate = || program.evaluate_template(&bindings, &mut budget);
    assert!(evaluate().is_ok());
    assert!(evaluate().is_ok());
    assert_eq!(evaluate().unwrap_err().bound(), Some(Bound::Output));
}
