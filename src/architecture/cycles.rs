//! Tests that the modules inside a layer have no circular dependencies.
//!
//! The test compares the direct children of a folder. A deeper file belongs to the child that contains it. A
//! name that `mod.rs` re-exports belongs to the child that defines the name. The other items of `mod.rs` and
//! all test code are ignored.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::paths::{Segments, exported, paths, without_comments, without_tests};

/// The folders whose children the test compares. `*` stands for every folder.
const FOLDERS: &[&str] = &["*", "subjects::*", "gitops::tree"];

/// A dependency that closes a circle, but is allowed until a developer removes it.
struct Known {
    folder: &'static str,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

const fn known(
    folder: &'static str,
    from: &'static str,
    to: &'static str,
    reason: &'static str,
) -> Known {
    Known {
        folder,
        from,
        to,
        reason,
    }
}

/// The allowed dependencies that close a circle. Without them, the code has no circles. The test also fails
/// on an entry that no longer closes a circle, so entries are only removed.
const KNOWN: &[Known] = &[
    known(
        "cli",
        "actions",
        "subject",
        "the arguments of an action are names of subjects; reading them needs a module below actions",
    ),
    known(
        "gitops::tree",
        "index",
        "chronicle",
        "the index keeps entries that are not stored yet; the type needs to be below chronicle",
    ),
    known(
        "subjects::release_pin",
        "facts",
        "stale",
        "a fact describes how it became false; the caller could do that",
    ),
    known(
        "engine",
        "subject",
        "plan",
        "the command of a subject names the plan that it makes; it needs a module above plan",
    ),
    known(
        "tui",
        "looks",
        "run",
        "Start is in run; looks reads the theme of it",
    ),
    known(
        "tui",
        "model",
        "screens",
        "the model holds the open screens",
    ),
    known("tui", "model", "tour", "the model holds the tour"),
    known(
        "tui",
        "mouse",
        "update",
        "a click runs a command; update calls mouse",
    ),
    known(
        "tui",
        "open_screen",
        "update",
        "a new screen comes to the front",
    ),
    known(
        "tui",
        "prompt",
        "commands",
        "the keys of a prompt run commands",
    ),
    known("tui", "prompt", "jump", "the keys of a prompt run a jump"),
    known(
        "tui",
        "prompt",
        "model",
        "the keys of a prompt change the model",
    ),
    known(
        "tui",
        "prompt",
        "screens",
        "the keys of a prompt change the open screen",
    ),
    known(
        "tui",
        "prompt",
        "update",
        "the keys of a prompt run what update decides",
    ),
    known(
        "tui",
        "push",
        "update",
        "a result is told by update::say; say needs to be below update",
    ),
    known(
        "tui",
        "rows",
        "screens",
        "Handled is in screens; it needs a module below rows",
    ),
    known(
        "tui",
        "screens",
        "commands",
        "the help screen lists the commands",
    ),
    known(
        "tui",
        "screens",
        "view",
        "the page of a plan needs the size of the frame",
    ),
    known(
        "tui",
        "tour",
        "update",
        "the tour tells by update::say; say needs to be below update",
    ),
    known(
        "tui",
        "update",
        "commands",
        "update runs commands, and the command quit is in update",
    ),
    known(
        "tui",
        "update",
        "jump",
        "update opens a jump, and a jump ends in update",
    ),
];

/// The children of one folder. Each child has the set of children on which it depends.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// The source text of every module, by module path.
pub(super) type Sources = BTreeMap<Segments, String>;

pub(super) fn read() -> Sources {
    let read = super::program().into_iter().map(|(file, source)| {
        let file = file.with_extension("");
        let mut module: Segments = file
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        module.pop_if(|last| last == "mod");
        (module, source)
    });
    read.collect()
}

/// Removes the comments and the test code from the sources.
pub(super) fn without_test_code(sources: Sources) -> Sources {
    let mut tests: BTreeSet<Segments> = BTreeSet::new();
    let mut code: Sources = BTreeMap::new();
    for (module, source) in sources {
        let (kept, modules) = without_tests(&without_comments(&source));
        tests.extend(
            modules
                .into_iter()
                .map(|name| [module.clone(), vec![name]].concat()),
        );
        code.insert(module, kept);
    }
    code.retain(|module, _| {
        let mut parents = (1..=module.len()).filter_map(|length| module.get(..length));
        !parents.any(|parent| tests.contains(parent))
    });
    code
}

/// Returns the folders that match a pattern of [`FOLDERS`].
fn folders(code: &Sources, pattern: &str) -> BTreeSet<Segments> {
    let parts: Vec<&str> = pattern.split("::").collect();
    let long = code.keys().filter(|module| module.len() > parts.len());
    let fits = long.filter(|module| {
        let mut pairs = parts.iter().zip(module.iter());
        pairs.all(|(part, name)| *part == "*" || part == name)
    });
    fits.map(|module| module[..parts.len()].to_vec()).collect()
}

fn graph(code: &Sources, folder: &[String]) -> Graph {
    let depth = folder.len();
    let inside = || {
        code.iter()
            .filter(|(module, _)| module.len() > depth && module.starts_with(folder))
    };
    let mut graph: Graph = inside()
        .map(|(module, _)| (module[depth].clone(), BTreeSet::new()))
        .collect();
    let mut origins: BTreeMap<String, String> = BTreeMap::new();
    for mut path in code
        .get(folder)
        .map(|code| exported(code))
        .unwrap_or_default()
    {
        path.drain(..usize::from(path.first().is_some_and(|first| first == "self")));
        if let [child, .., name] = &path[..]
            && graph.contains_key(child)
        {
            origins.insert(name.clone(), child.clone());
        }
    }
    for (module, code) in inside() {
        for path in paths(code, &["crate", "super", "self"]) {
            let full = absolute(module, &path);
            let Some(name) = full.get(depth).filter(|_| full.starts_with(folder)) else {
                continue;
            };
            let child = origins.get(name).unwrap_or(name);
            if *child != module[depth] && graph.contains_key(child) {
                graph
                    .entry(module[depth].clone())
                    .or_default()
                    .insert(child.clone());
            }
        }
    }
    graph
}

/// Returns the full path that a path with `crate`, `self` or `super` means inside a module.
fn absolute(module: &[String], path: &[String]) -> Segments {
    let mut base = module;
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        base = match first.as_str() {
            "crate" => &[],
            "self" => base,
            "super" => base.split_last().map_or(base, |(_, parent)| parent),
            _ => break,
        };
        rest = after;
    }
    [base, rest].concat()
}

/// Returns the shortest chain of dependencies from one module to another; None if there is no chain.
fn way(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut open = VecDeque::from([vec![from.to_owned()]]);
    let mut seen = BTreeSet::from([from.to_owned()]);
    while let Some(way) = open.pop_front() {
        let last = way.last()?;
        if last == to {
            return Some(way);
        }
        for next in graph.get(last).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push_back([&way[..], std::slice::from_ref(next)].concat());
            }
        }
    }
    None
}

/// Returns a message for each circle that `list` does not allow, and for each entry of `list` that closes no
/// circle.
fn problems(code: &Sources, patterns: &[&str], list: &[Known]) -> Vec<String> {
    let mut found = Vec::new();
    let mut checked = BTreeSet::new();
    for folder in patterns.iter().flat_map(|pattern| folders(code, pattern)) {
        let name = folder.join("::");
        let mut graph = graph(code, &folder);
        let own: Vec<&Known> = list.iter().filter(|known| known.folder == name).collect();
        for Known { from, to, .. } in &own {
            if !graph.get_mut(*from).is_some_and(|uses| uses.remove(*to)) {
                found.push(format!(
                    "{name}: {from} does not use {to} any more: remove it from KNOWN"
                ));
            }
        }
        for Known { from, to, .. } in &own {
            if way(&graph, to, from).is_none() {
                found.push(format!(
                    "{name}: {from} -> {to} closes no circle any more: remove it from KNOWN"
                ));
            }
        }
        let mut circles = BTreeSet::new();
        for (from, uses) in &graph {
            for to in uses {
                let Some(way) = way(&graph, to, from) else {
                    continue;
                };
                // The search finds the same circle from each of its modules, so a set removes the duplicates.
                if circles.insert(way.iter().cloned().collect::<BTreeSet<_>>()) {
                    found.push(format!("{name}: {from} -> {}", way.join(" -> ")));
                }
            }
        }
        checked.insert(name);
    }
    for Known { folder, .. } in list {
        if !checked.contains(*folder) {
            found.push(format!("{folder} is no folder: remove it from KNOWN"));
        }
    }
    found
}

#[test]
fn no_modules_of_a_layer_depend_in_a_circle() {
    let code = without_test_code(read());
    let found = problems(&code, FOLDERS, KNOWN);
    assert!(
        found.is_empty(),
        "move a type or a function down, so that one of these dependencies goes away:\n{}",
        found.join("\n")
    );
    for Known {
        from, to, reason, ..
    } in KNOWN
    {
        assert!(!reason.is_empty(), "{from} -> {to} needs a reason");
    }
}

#[test]
fn circles_are_found_and_the_list_stays_exact() {
    let sources = |files: &[(&str, &str)]| -> Sources {
        let files = files.iter().map(|(module, source)| {
            let module = module.split("::").map(str::to_owned).collect();
            (module, (*source).to_owned())
        });
        without_test_code(files.collect())
    };
    let closes = |from, to| known("m", from, to, "a reason");
    for (files, list, expected) in [
        (
            vec![("m::a", "use super::b::X;"), ("m::b", "")],
            vec![],
            vec![],
        ),
        (
            vec![
                ("m::a", "use super::b::X;"),
                ("m::b", "use crate::m::{a::Y, c};"),
            ],
            vec![],
            vec!["m: a -> b -> a"],
        ),
        (
            vec![
                ("m", "pub use self::c::Z;"),
                ("m::a::deep", "fn f() { super::super::b::g() }"),
                ("m::b", "use super::Z;"),
                ("m::c", "use super::{\n    a,\n};"),
            ],
            vec![],
            vec!["m: a -> b -> c -> a"],
        ),
        (
            vec![
                ("m::a", "use super::b::X;"),
                (
                    "m::b",
                    "// use super::a;\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}\n",
                ),
            ],
            vec![],
            vec![],
        ),
        (
            vec![
                ("m", "#[cfg(test)]\nmod fixture;\nmod a;\n"),
                ("m::a", "use super::fixture;"),
                ("m::fixture", "use super::a;"),
            ],
            vec![],
            vec![],
        ),
        (
            vec![("m::a", "use super::b::X;"), ("m::b", "use super::a;")],
            vec![closes("b", "a")],
            vec![],
        ),
        (
            vec![("m::a", "use super::b::X;"), ("m::b", "")],
            vec![closes("a", "b")],
            vec!["m: a -> b closes no circle any more: remove it from KNOWN"],
        ),
        (
            vec![("m::a", ""), ("m::b", "use super::a;")],
            vec![closes("a", "b")],
            vec!["m: a does not use b any more: remove it from KNOWN"],
        ),
    ] {
        assert_eq!(
            problems(&sources(&files), &["*"], &list),
            expected,
            "{files:?}"
        );
    }
}
