//! Selects the files of a work tree that bowline reads: manifests and templates.
//!
//! A file is a manifest if it has an extension of YAML or JSON, in upper or lower case. Other tools render manifests
//! from templates, so bowline only checks whether a template contains ReleasePins.

use std::collections::BTreeSet;

/// The file extensions of manifests.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];

/// The file extensions of templates.
const TEMPLATES: [&str; 9] = [
    "jsonnet",
    "libsonnet",
    "cue",
    "tpl",
    "tmpl",
    "gotmpl",
    "j2",
    "jinja",
    "jinja2",
];

/// The directories of the Helm charts in a repository. Files in their `templates/` directories are templates and not
/// manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Charts(BTreeSet<String>);

impl Charts {
    /// Finds the Helm charts in a list of the repository's files.
    pub(super) fn of(files: &[String]) -> Self {
        let charts = files
            .iter()
            .filter_map(|file| file.strip_suffix("Chart.yaml"));
        let charts = charts.filter(|folder| folder.is_empty() || folder.ends_with('/'));
        Self(charts.map(|folder| format!("{folder}templates/")).collect())
    }

    /// Returns whether a file is a template of a Helm chart or of another tool.
    pub(super) fn is_template(&self, path: &str) -> bool {
        let mut charts = self.0.iter();
        is_template(path) || charts.any(|folder| path.starts_with(folder.as_str()))
    }
}

/// Returns those of the files that are manifests or templates, sorted.
pub(super) fn candidates(files: Vec<String>) -> Vec<String> {
    let is_one = |file: &String| is_manifest(file) || is_template(file);
    let mut chosen: Vec<String> = files.into_iter().filter(is_one).collect();
    chosen.sort();
    chosen.dedup();
    chosen
}

/// Returns whether a file can be a manifest according to its name.
pub fn is_manifest(path: &str) -> bool {
    MANIFESTS.contains(&ending(path).as_str()) || is_kustomization(path)
}

/// Returns whether a file is a template according to its extension.
pub(super) fn is_template(path: &str) -> bool {
    TEMPLATES.contains(&ending(path).as_str())
}

/// Returns whether a file is JSON according to its extension.
pub(super) fn is_json(path: &str) -> bool {
    ending(path) == "json"
}

/// Returns whether a file is a kustomization according to its name.
pub(super) fn is_kustomization(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        "kustomization.yaml" | "kustomization.yml" | "Kustomization"
    )
}

/// Returns the extension of a file name in lower case, without the dot.
fn ending(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_templates_are_known_by_their_names() {
        let files = [
            "a.yaml",
            "b/c.YML",
            "d.Json",
            "e.txt",
            "README.md",
            "yaml",
            "k/Kustomization",
            "f.yaml.tpl",
            "g.jsonnet",
            "chart/Chart.yaml",
            "chart/templates/pin.yaml",
            "chart/templates/NOTES.txt",
        ];
        let files: Vec<String> = files.into_iter().map(str::to_owned).collect();
        let charts = Charts::of(&files);
        let chosen = candidates(files);
        let (templates, manifests): (Vec<&str>, Vec<&str>) = chosen
            .iter()
            .map(String::as_str)
            .partition(|path| charts.is_template(path));
        let expected = [
            "a.yaml",
            "b/c.YML",
            "chart/Chart.yaml",
            "d.Json",
            "k/Kustomization",
        ];
        assert_eq!(manifests, expected);
        let expected = ["chart/templates/pin.yaml", "f.yaml.tpl", "g.jsonnet"];
        assert_eq!(templates, expected);
    }
}
