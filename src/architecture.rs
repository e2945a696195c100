//! A test of the dependency rule: which modules of `lib.rs` may use which other modules.

mod cycles;
mod paths;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paths::{paths, without_comments};

/// The layers of DESIGN.md, lowest first. A module may use itself and the modules of lower layers, but no
/// other module of its own layer. `cycles` checks the modules inside a layer.
const LAYERS: &[&[&str]] = &[
    &["text", "small_file"],
    &["child"],
    &["git"],
    &["api"],
    &[TREE],
    &["connect"],
    &["render", "resolve"],
    &["gitops"],
    &["engine"],
    &["subjects"],
    &["controllers"],
    &["cli", "tui"],
    &["main", "lib", "architecture", "texts"],
];

/// The folder that has a layer of its own: `connect` serves a work tree, and the rest of `gitops` uses the
/// connection.
const TREE: &str = "gitops::tree";

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Finds the modules that a source names by `crate::` or `bowline::`, groups included.
fn named(source: &str) -> BTreeSet<String> {
    let found = paths(&without_comments(source), &["crate", "bowline"]);
    found
        .iter()
        .filter_map(|path| path.get(1..).filter(|inside| !inside.is_empty()))
        .map(module_of)
        .collect()
}

/// Returns the module with a layer that a path inside the crate belongs to.
fn module_of(path: &[String]) -> String {
    let joined = path.iter().take(2).cloned().collect::<Vec<_>>().join("::");
    match joined == TREE {
        true => joined,
        false => path.first().cloned().unwrap_or_default(),
    }
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
        .filter(|other| other != module)
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
        let path = inside.with_extension("");
        let path: Vec<String> = path
            .components()
            .map(|part| part.as_os_str().to_str().unwrap().to_owned())
            .collect();
        let module = module_of(&path);
        if module == "architecture" {
            continue;
        }
        let source = std::fs::read_to_string(&file).unwrap();
        for violation in violations(&module, &source) {
            wrong.push(format!("{}: {violation}", inside.display()));
        }
    }
    assert_eq!(wrong, [""; 0]);
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
        ("cli", "use crate::tui;", 1),
        ("connect", "use crate::{gitops::tree::Tree, api};", 0),
        ("connect", "use crate::gitops::{tree, propose};", 1),
        (TREE, "use crate::gitops::propose::Proposal;", 1),
        ("gitops", "use crate::{gitops::tree::Tree, connect};", 0),
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
