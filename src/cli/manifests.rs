//! Reads the objects in the files that the user gave with `-f`, each with its file and line.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::error::{Error, Exit, Failures};
use super::kinds::check_name;
use crate::api::lists;
use crate::subjects::release_pin::catalog;

#[derive(Debug, PartialEq)]
pub struct Manifest {
    /// The file and the line of the object.
    pub origin: String,
    pub api_version: String,
    pub kind: String,
    /// The namespace of the object; None if the file names none.
    pub namespace: Option<String>,
    pub name: String,
    pub value: Value,
}

impl Manifest {
    /// Reads apiVersion, kind, namespace and name of an object in a file. Fails if apiVersion, kind or name is
    /// missing.
    pub fn new(origin: String, value: Value) -> Result<Manifest, Error> {
        let text = |pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let needed = |pointer: &str| {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            text(pointer).ok_or_else(|| {
                Error::new(Exit::Failed, format!("{origin}: the object has no {field}"))
                    .with_hint("an object has apiVersion, kind and metadata.name")
            })
        };
        let (api_version, kind) = (needed("/apiVersion")?, needed("/kind")?);
        let (name, namespace) = (needed("/metadata/name")?, text("/metadata/namespace"));
        for (what, word) in [("name", Some(&name)), ("namespace", namespace.as_ref())] {
            if let Some(word) = word {
                check_name(what, word).map_err(|error| at(&origin, error))?;
            }
        }
        Ok(Manifest {
            origin,
            api_version,
            kind,
            namespace,
            name,
            value,
        })
    }

    /// Returns whether other objects may need this object first. This is the case for a Namespace and a
    /// CustomResourceDefinition.
    pub fn comes_first(&self) -> bool {
        self.is_crd() || (self.kind == "Namespace" && self.api_version == "v1")
    }

    pub fn is_crd(&self) -> bool {
        self.kind == "CustomResourceDefinition"
            && self.api_version.starts_with("apiextensions.k8s.io/")
    }
}

/// Adds the file and line of an object to the start of an error message.
pub fn at(origin: &str, mut error: Error) -> Error {
    error.message = format!("{origin}: {}", error.message);
    // The error is in the file and not in the command line, so it is no usage error.
    if error.exit == Exit::Usage {
        error.exit = Exit::Failed;
    }
    error
}

/// Reads the objects of files and directories; `-` stands for stdin. Reports each file that cannot be read as a
/// failure. Namespaces and CustomResourceDefinitions come first in the result.
pub fn read(
    paths: &[String],
    recursive: bool,
    failures: &mut Failures,
    say: &mut dyn FnMut(String),
) -> Vec<Manifest> {
    let mut found = Vec::new();
    for path in paths {
        let texts = match texts(path, recursive) {
            Ok(texts) => texts,
            Err(error) => {
                failures.add(error, say);
                continue;
            }
        };
        for (origin, text) in texts {
            let text = text.and_then(|text| {
                let documents = bounded_yaml::documents(&origin, &text);
                documents.map_err(|error| Error::new(Exit::Failed, error.to_string()))
            });
            match text {
                Err(error) => failures.add(error, say),
                Ok(documents) => {
                    for document in documents {
                        let origin = format!("{origin}:{}", document.line);
                        for manifest in expand(&origin, document.value) {
                            match manifest {
                                Ok(manifest) => found.push(manifest),
                                Err(error) => failures.add(error, say),
                            }
                        }
                    }
                }
            }
        }
    }
    if found.is_empty() && failures.is_empty() {
        let error = Error::new(Exit::Failed, format!("no objects in {}", paths.join(", ")));
        failures.add(error, say);
    }
    found.sort_by_key(|manifest| !manifest.comes_first());
    found
}

type Text = (String, Result<String, Error>);

fn texts(path: &str, recursive: bool) -> Result<Vec<Text>, Error> {
    if path == "-" {
        let limit = bounded_yaml::Limits::default().bytes as u64;
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .take(limit + 1)
            .read_to_string(&mut text)?;
        return Ok(vec![("stdin".to_owned(), Ok(text))]);
    }
    let directory = Path::new(path);
    let files = catalog::files(directory, recursive)?;
    if files.is_empty() {
        let error = Error::new(Exit::Failed, format!("no YAML or JSON files in {path}"));
        return Err(match recursive {
            true => error,
            false => error.with_hint("read the directories below it too: -R"),
        });
    }
    let text = |file: &std::path::PathBuf| {
        let text = catalog::read_text(file).map_err(Error::from);
        (file.display().to_string(), text)
    };
    Ok(files.iter().map(text).collect())
}

/// Returns the objects of a YAML document: the items of a list, or none for an empty document.
fn expand(origin: &str, value: Value) -> Vec<Result<Manifest, Error>> {
    let values = lists::objects(value).into_iter().map(|item| item.value);
    let values = values.filter(|value| !value.is_null());
    values
        .map(|value| Manifest::new(origin.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> (String, String) {
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().display().to_string();
        let (mut failures, mut said) = (Failures::default(), String::new());
        let mut say = |line: String| said += &line.replace(&path, "f");
        let found = read(std::slice::from_ref(&path), false, &mut failures, &mut say);
        let found = found.iter().map(|manifest| {
            let line = manifest.origin.replace(&path, "");
            format!("{}/{}{line}", manifest.kind, manifest.name)
        });
        (found.collect::<Vec<_>>().join(" "), said)
    }

    #[test]
    fn documents_and_lists_become_objects_with_their_line() {
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}}";
        let space = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
        for (text, found, says) in [
            (pod.to_owned(), "Pod/a:1", ""),
            (format!("---\n---\n{pod}\n---\n# end\n"), "Pod/a:3", ""),
            (
                format!("{pod}\n---\n{space}"),
                "Namespace/shop:3 Pod/a:1",
                "",
            ),
            (
                format!("{{apiVersion: v1, kind: List, items: [{pod}, {space}]}}"),
                "Namespace/shop:1 Pod/a:1",
                "",
            ),
            // The items of a typed list may have no kind, so they get it from the list.
            (
                "{apiVersion: v1, kind: PodList, items: [{metadata: {name: a}}, {metadata: {name: b}}]}"
                    .to_owned(),
                "Pod/a:1 Pod/b:1",
                "",
            ),
            (
                format!("{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: List, items: [{pod}]}}]}}"),
                "Pod/a:1",
                "",
            ),
            (
                format!("{pod}\n---\n{{apiVersion: v1, kind: Pod}}"),
                "Pod/a:1",
                "f:3: the object has no metadata.name",
            ),
            ("[a, b]".to_owned(), "", "f:1: the object has no apiVersion"),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: ../x}}".to_owned(),
                "",
                "f:1: \"../x\" cannot be a name",
            ),
            ("a: [".to_owned(), "", "error: f:"),
            (String::new(), "", "no objects in f"),
        ] {
            let (objects, said) = read_text(&text);
            assert_eq!(objects, found, "{text}");
            assert!(
                said.contains(says) && said.is_empty() == says.is_empty(),
                "{text}: {said}"
            );
        }
    }
}
