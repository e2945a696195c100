//! Tests which modules of `lib.rs` may use which other modules.

mod cycles;
mod paths;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paths::{paths, without_comments};

/// The layers of the modules, lowest layer first. A module may use itself and the modules of lower layers,
/// but no other module of its own layer.
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
    &["fixture"],
    &["controllers"],
    &["cli", "tui"],
    // Roots of packages: they only name the modules.
    &["core", "main", "lib", "architecture", "texts"],
];

/// The one folder that has another layer than its parent, because `connect` uses `gitops::tree` and the rest
/// of `gitops` uses `connect`.
const TREE: &str = "gitops::tree";

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Returns the modules that a source text names by `crate::` or `bowline::`. Also finds modules inside groups
/// (`{a, b}`).
fn named(source: &str) -> BTreeSet<String> {
    let found = paths(&without_comments(source), &["crate", "bowline"]);
    found
        .iter()
        .filter_map(|path| path.get(1..).filter(|inside| !inside.is_empty()))
        .map(module_of)
        .collect()
}

/// Returns the module of [`LAYERS`] to which a path inside the crate belongs.
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

/// The folders that Cargo builds as packages of their own. In the package `cli`, `crate::x` means
/// `crate::cli::x` of the whole program.
const PACKAGES: &[&str] = &["cli", "controllers", "tui"];

/// Returns the sources of the whole program by their path in `src`. Rewrites module paths in the sources, as
/// if the program were one package.
fn program() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let read = files.into_iter().map(|file| {
        let mut source = std::fs::read_to_string(&file).unwrap();
        let inside = file.strip_prefix(&root).unwrap().to_owned();
        let folder = inside.iter().next().unwrap().to_str().unwrap();
        if PACKAGES.contains(&folder) {
            let exists = |module: &str| {
                let path = root.join(folder).join(module);
                path.is_dir() || path.with_extension("rs").is_file()
            };
            source = as_one_package(&source, folder, exists);
        }
        (inside, source)
    });
    read.collect()
}

/// Rewrites the module paths in a source of a package, as if the whole program were one package. `is_own`
/// returns true for the modules of `package`.
fn as_one_package(source: &str, package: &str, is_own: impl Fn(&str) -> bool) -> String {
    let mut parts = source.split("crate::");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_');
        let first = &part[..end.unwrap_or(part.len())];
        whole.push_str("crate::");
        // An item in the root of the package has no layer.
        if is_own(first) || layer(first).is_none() {
            whole.push_str(package);
            whole.push_str("::");
        }
        whole.push_str(part);
    }
    whole
        .replace("bowline_core::", "crate::")
        .replace("bowline_controllers::", "crate::controllers::")
}

/// Returns the forbidden dependencies of one source file, as messages.
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
            // The name is an item of lib.rs. lib.rs has only modules, and should not get other items.
            None => Some(format!(
                "{module} names {other}, which is no module with a layer"
            )),
        })
        .collect()
}

#[test]
fn no_arrow_points_up() {
    let files = program();
    assert!(files.len() > 10, "the sources were not found");
    let mut wrong = Vec::new();
    for (inside, source) in files {
        let path = inside.with_extension("");
        let path: Vec<String> = path
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        let module = module_of(&path);
        if module == "architecture" {
            continue;
        }
        for violation in violations(&module, &source) {
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
fn the_engine_names_no_kind_of_subject() {
    let engine = program()
        .into_iter()
        .filter(|(file, _)| file.starts_with("engine"));
    let wrong = engine.filter(|(_, source)| {
        ["ReleasePin", "releaseRef"]
            .iter()
            .any(|word| source.contains(word))
    });
    let wrong: Vec<_> = wrong.map(|(file, _)| file).collect();
    assert_eq!(wrong, [""; 0].map(PathBuf::from));
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

#[test]
fn a_package_is_checked_like_the_folder_that_it_is() {
    let own = |module: &str| matches!(module, "render" | "error");
    for (source, expected) in [
        ("use crate::error::Exit;", "use crate::cli::error::Exit;"),
        ("use crate::Context;", "use crate::cli::Context;"),
        ("use crate::engine::plan;", "use crate::engine::plan;"),
        (
            "use bowline_core::render::Inputs;",
            "use crate::render::Inputs;",
        ),
        ("use bowline_core::{api, text};", "use crate::{api, text};"),
        (
            "f(crate::render::g(), bowline_controllers::h())",
            "f(crate::cli::render::g(), crate::controllers::h())",
        ),
    ] {
        assert_eq!(as_one_package(source, "cli", own), expected);
    }
}
