//! Chooses the files of new objects: by the layout, or else next to similar objects.
//!
//! The layout is in `.bowline.toml` in the directory that the user named, so that all users of the repository have
//! the same layout. It can also be in the user's own configuration:
//!
//! ```toml
//! [layout]
//! ReleasePin = "environments/{environment}/{component}.yaml"
//! Release = "releases/{component}/{name}.yaml"
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use kube_embedded::object::meta;
use serde::Deserialize;
use serde_json::Value;

use super::index::Index;
use super::{TreeError, files, identity, kustomize};

/// The name of the file in a repository that contains the layout.
const FILE: &str = ".bowline.toml";

/// For each kind, the path of the file for a new object. The path may contain `{name}`, `{namespace}`, `{component}`
/// and `{environment}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Layout(pub BTreeMap<String, String>);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    layout: Layout,
}

impl Layout {
    /// Reads the layout from the file of a repository, and adds the user's own layout `of_user`. If the file and
    /// `of_user` contain the same kind, the path in `of_user` is used.
    pub(super) fn read(directory: &Path, of_user: Layout) -> Result<Self, TreeError> {
        let file = directory.join(FILE);
        let wrong = |why: String| TreeError::Layout {
            file: file.clone(),
            why,
        };
        let text = crate::small_file::small_file(&file, crate::small_file::Links::Refuse);
        let mut written = match text.map_err(|error| wrong(error.to_string()))? {
            Some(text) => {
                let read: Result<Written, _> = toml::from_str(&text);
                read.map_err(|error| wrong(error.to_string().trim_end().to_owned()))?
                    .layout
            }
            None => Layout::default(),
        };
        written.0.extend(of_user.0);
        for (kind, path) in &written.0 {
            let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
            if leaves || !files::is_manifest(path) {
                return Err(wrong(format!(
                    "layout.{kind}: {path:?} is no path of a YAML or JSON file in the repository"
                )));
            }
            let is_inside_git = |part: &str| part.eq_ignore_ascii_case(".git");
            if path.split('/').any(is_inside_git) {
                return Err(wrong(format!(
                    "layout.{kind}: {path:?} is inside the .git directory; choose a path outside of it"
                )));
            }
            if let Some(slot) = unknown_slot(path) {
                return Err(wrong(format!(
                    "layout.{kind}: {path:?} has {slot}, which bowline does not know; the placeholders are {}",
                    SLOTS.join(", ")
                )));
            }
        }
        Ok(written)
    }
}

/// The placeholders in a path of the layout.
const SLOTS: [&str; 4] = ["{name}", "{namespace}", "{component}", "{environment}"];

/// Returns the first text in braces that is no placeholder, or an unpaired brace. None if the path is valid.
fn unknown_slot(path: &str) -> Option<String> {
    let mut rest = path.to_owned();
    for slot in SLOTS {
        rest = rest.replace(slot, "");
    }
    let begin = rest.find(['{', '}'])?;
    let tail = rest.get(begin..)?;
    let end = tail.find('}').map_or(tail.len(), |end| end + 1);
    tail.get(..end).map(str::to_owned)
}

/// The values of a new object that replace the placeholders in a path.
struct Words<'o> {
    name: &'o str,
    namespace: &'o str,
    component: &'o str,
    environment: &'o str,
}

impl<'o> Words<'o> {
    fn of(object: &'o Value) -> Self {
        let spec = &object["spec"];
        let component = match &spec["component"] {
            Value::String(name) => Some(name.as_str()),
            other => other["name"].as_str(),
        };
        let owner = || spec["owner"]["componentName"].as_str();
        Self {
            name: meta(object, "name"),
            namespace: meta(object, "namespace"),
            component: component
                .or_else(owner)
                .unwrap_or_else(|| meta(object, "name")),
            environment: spec["environment"].as_str().unwrap_or_default(),
        }
    }
}

/// The error for a field of a new object that is no valid file name, although the layout puts it into the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its {what} is {word:?}, which cannot be part of a file's path")]
pub struct BadWord {
    pub what: &'static str,
    pub word: String,
}

impl Words<'_> {
    /// Returns an error for a value that would lead to another directory.
    fn check(&self) -> Result<(), BadWord> {
        for (what, word) in self.all() {
            let leads = matches!(word, "." | "..") || word.eq_ignore_ascii_case(".git");
            let parts = word.contains(|c: char| matches!(c, '/' | '\\') || c.is_control());
            if leads || parts {
                return Err(bad(what, word));
            }
        }
        Ok(())
    }

    fn all(&self) -> [(&'static str, &str); 4] {
        [
            ("name", self.name),
            ("namespace", self.namespace),
            ("component", self.component),
            ("environment", self.environment),
        ]
    }
}

fn bad(what: &'static str, word: &str) -> BadWord {
    let word = word.to_owned();
    BadWord { what, word }
}

/// Returns the path of the file for a new object, relative to the root of the work tree.
pub(super) fn choose(
    layout: &Layout,
    index: &Index,
    within: &str,
    resource: &str,
    object: &Value,
) -> Result<String, BadWord> {
    wanted(layout, index, within, resource, object).map(bounded)
}

/// The longest file name that file systems accept, in bytes.
const LONGEST: usize = 255;

/// Shortens the file name in a path if it is too long. Adds a hash, so that the name stays unique.
fn bounded(path: String) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    if name.len() <= LONGEST {
        return path;
    }
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "yaml"));
    let hash: String = identity::hash(name.as_bytes()).chars().take(16).collect();
    let stem = stem
        .get(..stem.floor_char_boundary(100))
        .unwrap_or_default();
    let name = format!("{stem}-{hash}.{extension}");
    match folder.is_empty() {
        true => name,
        false => format!("{folder}/{name}"),
    }
}

fn wanted(
    layout: &Layout,
    index: &Index,
    within: &str,
    resource: &str,
    object: &Value,
) -> Result<String, BadWord> {
    let words = Words::of(object);
    words.check()?;
    let kind = object["kind"].as_str().unwrap_or_default();
    let inside = |path: String| match within.is_empty() {
        true => path,
        false => format!("{within}/{path}"),
    };
    if let Some(template) = layout.0.get(kind) {
        let mut path = template.clone();
        for (what, word) in words.all() {
            let slot = format!("{{{what}}}");
            if word.is_empty() && path.contains(&slot) {
                return Err(bad(what, word));
            }
            path = path.replace(&slot, word);
        }
        return Ok(inside(path));
    }
    if let Some(path) = beside(index, resource, &words) {
        return Ok(path);
    }
    let plural = resource.rsplit('/').next().unwrap_or_default();
    Ok(inside(match words.environment.is_empty() {
        true if words.component != words.name => {
            format!("{plural}/{}/{}.yaml", words.component, words.name)
        }
        true => format!("{plural}/{}.yaml", words.name),
        false => format!("{plural}/{}/{}.yaml", words.environment, words.component),
    }))
}

/// Chooses the file of a new object by the most similar object. In that object's path, replaces the values of that
/// object by those of the new object. None if there is no similar object.
fn beside(index: &Index, resource: &str, words: &Words<'_>) -> Option<String> {
    let (patches, _) = kustomize::named(&index.files);
    let mut best: Option<(u8, usize, String)> = None;
    for (path, known) in &index.files {
        if patches.contains(path.as_str()) {
            continue;
        }
        for held in known
            .objects
            .iter()
            .filter(|held| held.resource == resource)
        {
            // The names of ReleasePins and releases begin with the name of their component, so the name tells the
            // component.
            let rest = held.name.strip_prefix(words.component);
            let same_component = rest.is_some_and(|rest| rest.starts_with('-'));
            let environment = format!("-{}", words.environment);
            let same_environment =
                !words.environment.is_empty() && held.name.ends_with(&environment);
            let other = match (same_environment, same_component) {
                (true, _) => {
                    let other = held.name.strip_suffix(&environment).unwrap_or_default();
                    swap(path, &held.name, words.name)
                        .or_else(|| swap(path, other, words.component))
                }
                (false, true) => swap(path, &held.name, words.name).or_else(|| {
                    let other = rest.map(|rest| rest.trim_start_matches('-'))?;
                    swap(path, other, words.environment)
                }),
                (false, false) => swap(path, &held.name, words.name),
            };
            // The new object goes into the same file in two cases: the file already has several objects, or its path
            // contains no value of the similar object.
            let found = match known.objects.len() > 1 {
                true => path.clone(),
                false => other.unwrap_or_else(|| path.clone()),
            };
            let rank = match (same_environment, same_component) {
                (true, _) => 3,
                (false, true) => 2,
                (false, false) => 1,
            };
            let better = best
                .as_ref()
                .is_none_or(|(known, length, _)| (rank, held.name.len()) > (*known, *length));
            if better {
                best = Some((rank, held.name.len(), found));
            }
        }
    }
    best.map(|(_, _, path)| path)
}

/// Replaces a whole word in a path by another word. None if the path does not contain the word.
fn swap(path: &str, word: &str, by: &str) -> Option<String> {
    if word.is_empty() || by.is_empty() {
        return None;
    }
    let is_edge = |c: Option<char>| c.is_none_or(|c| matches!(c, '/' | '.' | '-' | '_'));
    let found = path.match_indices(word).filter(|(at, _)| {
        let before = path.get(..*at).and_then(|text| text.chars().next_back());
        let after = path
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        is_edge(before) && is_edge(after)
    });
    let (at, _) = found.last()?;
    let (before, after) = (path.get(..at)?, path.get(at + word.len()..)?);
    Some(format!("{before}{by}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_with_an_unknown_placeholder_is_refused() {
        for (path, slot) in [
            ("pins/{environment}/{component}.yaml", None),
            ("{namespace}/{name}.yaml", None),
            ("{nope}.yaml", Some("{nope}")),
            ("{name}/{Name}.yaml", Some("{Name}")),
            ("{{name}}.yaml", Some("{}")),
            ("{name.yaml", Some("{name.yaml")),
            ("name}.yaml", Some("}")),
        ] {
            assert_eq!(unknown_slot(path).as_deref(), slot, "{path}");
        }
        let folder = tempfile::tempdir().unwrap();
        for (path, why) in [
            ("{nope}.yaml", "the placeholders are {name}"),
            (".git/x.yaml", "is inside the .git directory"),
            ("../x.yaml", "is no path of a YAML or JSON file"),
        ] {
            let layout = Layout([("ReleasePin".to_owned(), path.to_owned())].into());
            let error = Layout::read(folder.path(), layout).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
