//! The user's configuration file: the theme, the keymap, and the settings of contexts and directories. An example:
//!
//! ```toml
//! theme = "light"
//! keymap = "emacs"
//!
//! [contexts.prod-eu]
//! protected = true
//!
//! [contexts.audit]
//! readonly = true
//!
//! [directories."/home/ana/src/cart"]
//! component = "cart"
//! layout.Release = "releases/{component}/{name}.yaml"
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bounded_yaml::{self, Place};
use serde::Deserialize;
use toml::Spanned;

/// The name of the configuration file in the user's configuration directory.
const FILE: &str = "config.toml";

/// The content of the user's configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    theme: Option<Spanned<String>>,
    keymap: Option<Spanned<String>>,
    #[serde(skip)]
    file: PathBuf,
    #[serde(skip)]
    text: String,
    /// The settings of contexts. The key is the name of the context in the kubeconfig.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
    /// The settings of directories, by path. The settings of a directory also apply to all directories below it.
    #[serde(default)]
    pub directories: BTreeMap<PathBuf, Directory>,
}

/// The theme and the keymap in the user's configuration file, each with its position in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// The name of the theme and its position; None if the user configured no theme.
    pub theme: Option<(String, Place)>,
    /// The name of the keymap and its position; None if the user configured no keymap.
    pub keymap: Option<(String, Place)>,
}

/// The user's settings for one context of the kubeconfig.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Whether bowline is read-only on the context: it sends only reads to the server.
    #[serde(default)]
    pub readonly: bool,
    /// Whether bowline sends only reads on the context, except after the user allowed writes for a limited time or
    /// confirmed a plan by typing.
    #[serde(default)]
    pub protected: bool,
    /// The component that commands on the context use by default.
    pub component: Option<String>,
}

/// The user's settings for one directory, and for all directories below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// The component that commands in the directory use by default.
    pub component: Option<String>,
    /// Where bowline creates the files of new objects in a repository: a path with placeholders for each kind.
    #[serde(default)]
    pub layout: BTreeMap<String, String>,
}

/// The configuration file is invalid or cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", file.display())]
pub struct ConfigError {
    /// The path of the configuration file.
    pub file: PathBuf,
    /// The problem in the configuration file, with its position.
    pub why: String,
}

impl Config {
    /// Reads the configuration file in a directory. Returns an empty configuration if `directory` is None or the file
    /// does not exist.
    pub fn read(directory: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(file) = directory.map(|directory| directory.join(FILE)) else {
            return Ok(Self::default());
        };
        let text = match crate::small_file::small_file(&file, crate::small_file::Links::Follow) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Self::default()),
            Err(error) => {
                let why = error.to_string();
                return Err(ConfigError { file, why });
            }
        };
        match toml::from_str(&text) {
            Ok(config) => Ok(Self {
                file,
                text,
                ..config
            }),
            Err(error) => Err(ConfigError {
                file,
                why: error.to_string().trim_end().to_owned(),
            }),
        }
    }

    /// Returns the theme and the keymap in the configuration file.
    pub fn looks(&self) -> Looks {
        let origin = self.file.display().to_string();
        let chosen = |name: &Spanned<String>| {
            let place = Place::of(&origin, &self.text, name.span().start);
            (name.get_ref().clone(), place)
        };
        Looks {
            theme: self.theme.as_ref().map(chosen),
            keymap: self.keymap.as_ref().map(chosen),
        }
    }

    /// Returns the default component for a directory, or else for a context; None if neither has one. If several
    /// directories above have settings, the deepest one has priority.
    pub fn component(&self, directory: Option<&Path>, context: Option<&str>) -> Option<&str> {
        let here = self
            .directories
            .iter()
            .filter(|(above, _)| directory.is_some_and(|directory| directory.starts_with(above)));
        let here = here
            .filter_map(|(above, of)| Some((above.components().count(), of.component.as_deref()?)));
        let deepest = here.max_by_key(|(depth, _)| *depth);
        let of_context = context.and_then(|context| self.contexts.get(context));
        deepest
            .map(|(_, component)| component)
            .or_else(|| of_context?.component.as_deref())
    }

    /// Returns where bowline creates the files of new objects: a path with placeholders for each kind. If several
    /// directories above `directory` have settings, the deepest one has priority.
    pub fn layout(&self, directory: &Path) -> BTreeMap<String, String> {
        let directory = directory.canonicalize();
        let mut found = BTreeMap::new();
        // The loop ends with the deepest directory, so its settings replace those of the other directories.
        for (above, of) in &self.directories {
            if directory
                .as_ref()
                .is_ok_and(|directory| directory.starts_with(above))
            {
                found.extend(of.layout.clone());
            }
        }
        found
    }

    /// Returns whether the user's configuration makes a context read-only.
    pub fn is_readonly(&self, context: &str) -> bool {
        let context = self.contexts.get(context);
        context.is_some_and(|context| context.readonly)
    }

    /// Returns whether the user's configuration protects a context.
    pub fn is_protected(&self, context: &str) -> bool {
        let context = self.contexts.get(context);
        context.is_some_and(|context| context.protected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        Config::read(Some(folder.path()))
    }

    #[test]
    fn a_theme_and_a_keymap_are_known_by_where_they_stand() {
        let config = read("keymap = \"emacs\"\n\n  theme = \"drak\"\n[contexts]\n").unwrap();
        let looks = config.looks();
        for (found, name, line, column) in
            [(looks.keymap, "emacs", 1, 10), (looks.theme, "drak", 3, 11)]
        {
            let (found, place) = found.unwrap();
            assert_eq!((&*found, place.line, place.column), (name, line, column));
            assert!(place.origin.ends_with("config.toml"), "{place}");
        }
        assert_eq!(read("").unwrap().looks(), Looks::default());
        let wrong = read("theme = 7").unwrap_err().to_string();
        assert!(wrong.contains("line 1"), "{wrong}");
    }

    #[test]
    fn the_deepest_directory_counts_before_the_context() {
        let config = read(
            r#"
            [contexts.eu]
            component = "of-eu"
            readonly = true
            [contexts.us]
            protected = true
            [directories."/src"]
            component = "of-src"
            [directories."/src/cart"]
            component = "of-cart"
            [directories."/src/cart/none"]
            "#,
        )
        .unwrap();
        for (directory, context, expected) in [
            (Some("/src/cart/web"), Some("eu"), Some("of-cart")),
            (Some("/src/cart/none"), None, Some("of-cart")),
            (Some("/src/carting"), None, Some("of-src")),
            (Some("/tmp"), Some("eu"), Some("of-eu")),
            (None, Some("us"), None),
            (None, None, None),
        ] {
            let found = config.component(directory.map(Path::new), context);
            assert_eq!(found, expected, "{directory:?} {context:?}");
        }
        assert!(config.is_readonly("eu") && !config.is_readonly("us") && !config.is_readonly("x"));
        assert!(
            config.is_protected("us") && !config.is_protected("eu") && !config.is_protected("x")
        );
    }

    #[test]
    fn what_makes_no_sense_is_named_by_file_and_line() {
        for (text, words) in [
            ("[contexts.eu]\nreadonli = true", "unknown field `readonli`"),
            ("[contexts.eu]\nreadonly = 3", "line 2"),
            ("]", "line 1"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains(FILE), "{error}");
        }
        assert_eq!(Config::read(None).unwrap(), Config::default());
        let nothing = Path::new("/nowhere/at/all");
        assert_eq!(Config::read(Some(nothing)).unwrap(), Config::default());
    }
}
