//! A test of the dependency rule: which modules of `lib.rs` may use which other modules.

mod cycles;
mod paths;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paths::{paths, without_comments};

/// The layers of DESIGN.md, lowest first. A module may use itself and the modules of lower layers, but no
/// other module of its own layer. The tests of every layer may use `fixture`. `cycles` checks the modules inside a
/// layer.
const LAYERS: &[&[&str]] = &[
    &["text", "small_file"],
    &["child"],
    &["git"],
    &["api"],
    &["gitops"],
    &["connect"],
    &["render", "resolve"],
    &["engine"],
    &["subjects"],
    &["controllers"],
    &["fixture"],
    &["cli", "tui"],
    &["main", "lib", "architecture", "texts"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Finds the modules that a source names by `crate::` or `bowline::`, groups included.
fn named(source: &str) -> BTreeSet<String> {
    let found = paths(&without_comments(source), &["crate", "bowline"]);
    found
        .into_iter()
        .filter_map(|path| path.into_iter().nth(1))
        .collect()
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Returns the errors in a source file of a module; empty if there are none.
fn violations(module: &str, source: &str) -> Vec<String> {
    let Some(own) = layer(module) else {
        return vec![format!(
            "{module} has no layer; give it one in src/architecture.rs"
        )];
    };
    named(source)
        .into_iter()
        .filter(|other| other != module && other != "fixture")
        .filter_map(|other| match layer(&other) {
            Some(theirs) if theirs < own => None,
            Some(_) => Some(format!("{module} must not know {other}")),
            // An item of lib.rs itself; lib.rs has no items besides modules, and should not get any.
            None => Some(format!(
                "{module} names {other}, which is no module with a layer"
            )),
        })
        .collect()
}

#[test]
fn no_arrow_points_up() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 10, "the sources were not found");
    let mut wrong = Vec::new();
    for file in files {
        let inside = file.strip_prefix(&root).unwrap();
        let first = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        if module == "architecture" {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        for violation in violations(module, &source) {
            wrong.push(format!("{}: {violation}", inside.display()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn only_tests_and_the_demo_use_fixtures() {
    let code = cycles::without_test_code(cycles::read());
    assert!(code.len() > 10, "the sources were not found");
    let users = code
        .iter()
        .filter(|(_, code)| named(code).contains("fixture"));
    let users: Vec<_> = users.map(|(module, _)| module.join("::")).collect();
    let wrong = users.iter().filter(|user| {
        ["architecture", "fixture", "cli::demo"]
            .iter()
            .all(|allowed| !user.starts_with(allowed))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn arrows_are_seen_however_they_are_written() {
    for (module, source, expected) in [
        ("api", "use crate::text;", 0),
        ("api", "use crate::api::labels;", 0),
        ("api", "use crate::gitops::tree::Tree;", 1),
        ("api", "use crate::{text, gitops::{self, x}, connect};", 2),
        ("api", "use crate::{\n    text,\n    cli::error,\n};", 1),
        ("api", "fn f() { crate::connect::connect() }", 1),
        ("text", "use crate::git;", 1),
        ("text", "use crate::fixture;", 0),
        ("cli", "use crate::tui;", 1),
        ("connect", "use crate::{gitops, api};", 0),
        ("gitops", "pub(crate) fn f() {}", 0),
        ("gitops", "// use crate::cli;", 0),
        ("gitops", "let x = other_crate::cli::main();", 0),
        ("main", "bowline::cli::main()", 0),
        ("engine", "use bowline::controllers;", 1),
        ("novel", "", 1),
    ] {
        assert_eq!(
            violations(module, source).len(),
            expected,
            "{module}: {source}"
        );
    }
}
