//! Reads the ReleasePins of a commit, for actions that must know all of them.
//!
//! git does not always report that files on disk differ from the commit, because the flags skip-worktree and
//! assume-unchanged hide this. So this module reads the commit itself.

use serde_json::Value;

use super::files::{self, Charts, is_manifest};
use super::identity::{is_of_us, names_us};
use super::manifest::{Unreadable, values};
use super::moves::blob_limits;
use super::read::letters;
use super::{hidden, is_in};
use crate::git::{Blob, GitError, WorkTree};

/// A ReleasePin, or a patch of a ReleasePin, in a file of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedPin {
    /// The namespace of the ReleasePin in the file; empty if the file names none.
    pub namespace: String,
    pub name: String,
    /// All strings in the spec of the ReleasePin. So the release names are among them, even if the spec is not valid.
    pub texts: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommittedPins {
    /// The ReleasePins in the files of the commit that can be read.
    pub pins: Vec<CommittedPin>,
    /// The paths of the files in the commit that may contain ReleasePins but cannot be read.
    pub unread: Vec<String>,
}

/// Reads the ReleasePins of a commit. Reads only files in the directory that the user named.
pub fn committed_pins(work: &WorkTree, commit: &str) -> Result<CommittedPins, GitError> {
    let within = work.within();
    let mut paths: Vec<String> = work.files_of(commit)?.into_iter().collect();
    paths.retain(|path| is_in(&within, path));
    let charts = Charts::of(&paths);
    paths.retain(|path| is_manifest(path) || charts.is_template(path));
    let mut found = CommittedPins::default();
    let names = paths.iter().map(|path| format!("{commit}:{path}"));
    let names: Vec<String> = names.collect();
    work.each_blob(&names, blob_limits(), &mut |at, blob| {
        let Some(path) = paths.get(at) else {
            return;
        };
        let read = match blob {
            Blob::Whole(bytes) => pins(path, &bytes, charts.is_template(path)),
            Blob::TooLarge { has_word, .. } if !has_word && !files::is_kustomization(path) => {
                Ok(Vec::new())
            }
            // The file exists in the commit, but its content is not in this clone or is too large to read.
            Blob::TooLarge { .. } | Blob::Missing => Err(Unreadable),
        };
        match read {
            Ok(pins) => found.pins.extend(pins),
            Err(Unreadable) => found.unread.push(path.clone()),
        }
    })?;
    Ok(found)
}

/// Returns the ReleasePins and the patches of ReleasePins in a file.
fn pins(path: &str, bytes: &[u8], template: bool) -> Result<Vec<CommittedPin>, Unreadable> {
    if template {
        return match hidden::problem_of_template(path, bytes) {
            Some(_) => Err(Unreadable),
            None => Ok(Vec::new()),
        };
    }
    let kustomization = files::is_kustomization(path);
    let has = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    // A text in UTF-16 may look like valid UTF-8 with zero bytes, but cannot be parsed.
    if std::str::from_utf8(bytes).is_err() || bytes.contains(&0) {
        return match kustomization || names_us(&letters(bytes)) {
            true => Err(Unreadable),
            false => Ok(Vec::new()),
        };
    }
    if !kustomization && !has("ReleasePin") && !has("fieldPaths") {
        return Ok(Vec::new());
    }
    let values = match values(bytes) {
        Ok(values) => values,
        // Many JSON files of other tools mention an API group of bowline, but contain no objects.
        Err(_) if files::is_json(path) && !has("apiVersion") => Vec::new(),
        Err(error) if kustomization || names_us(bytes) => return Err(error),
        Err(_) => Vec::new(),
    };
    let is_foreign = |value: &&Value| !is_of_us(value["apiVersion"].as_str().unwrap_or_default());
    let mut foreign = values.iter().filter(is_foreign);
    if foreign.any(|value| hidden::problem(value).is_some()) {
        return Err(Unreadable);
    }
    let ours = values.iter().filter(|value| value["kind"] == "ReleasePin");
    let pins = ours.map(|value| {
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let mut texts = Vec::new();
        collect(&value["spec"], &mut texts);
        CommittedPin {
            namespace: text("namespace").to_owned(),
            name: text("name").to_owned(),
            texts,
        }
    });
    Ok(pins.collect())
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata: {name: cart-prod}\nspec: {component: cart, environment: prod, releaseRef: {name: cart-1}}\n";

    #[test]
    fn a_file_that_may_have_a_release_pin_is_read_or_reported() {
        let with_hold = PIN.replace(
            "cart-1}",
            "cart-1}, holds: [{release: cart-2, until: never}]",
        );
        let utf16: Vec<u8> = PIN.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (path, bytes, expected) in [
            ("p.yaml", PIN.as_bytes(), Ok(vec!["cart-1"])),
            // The strings of a spec that is not valid are returned too.
            ("p.yaml", with_hold.as_bytes(), Ok(vec!["cart-1", "cart-2"])),
            (
                "p.yaml",
                b"kind: ReleasePin\nspec: {releaseRef: {name: cart-3}}\n",
                Ok(vec!["cart-3"]),
            ),
            ("p.yaml", b"kind: Deployment\n", Ok(Vec::new())),
            ("p.yaml", b"a: [\n", Ok(Vec::new())),
            (
                "p.yaml",
                b"# openchoreo.dev ReleasePin\na: [\n",
                Err(Unreadable),
            ),
            ("p.yaml", &utf16, Err(Unreadable)),
            ("kustomization.yaml", b"a: [\n", Err(Unreadable)),
            (
                "kustomization.yaml",
                b"patches: [{path: p.yaml, target: {kind: ReleasePin}}]\n",
                Err(Unreadable),
            ),
            ("p.jsonnet", b"{ kind: 'ReleasePin' }", Err(Unreadable)),
            ("p.jsonnet", b"{ kind: 'Deployment' }", Ok(Vec::new())),
        ] {
            let found = pins(path, bytes, files::is_template(path));
            let found = found.map(|pins| {
                let texts = pins.into_iter().flat_map(|pin| pin.texts);
                let mut texts: Vec<String> = texts.collect();
                texts.retain(|text| text.starts_with("cart-"));
                texts.sort();
                texts
            });
            let expected = expected.map(|texts| texts.into_iter().map(str::to_owned).collect());
            assert_eq!(found, expected, "{path} {}", String::from_utf8_lossy(bytes));
        }
    }
}
