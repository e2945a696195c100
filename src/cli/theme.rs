//! `bowline theme`: converts themes of other programs to themes of bowline.

mod names;
mod skin;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::connect::Environment;
use super::error::{Error, Exit};

/// The name of the folder with the user's themes, in the configuration directory of bowline.
const DIRECTORY: &str = "themes";

/// The arguments of `theme`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Convert a k9s skin to a theme
    Import(Import),
}

/// The arguments of `theme import`.
#[derive(Args, Debug)]
pub struct Import {
    /// The skin (a YAML file)
    file: PathBuf,
    /// Save the theme under this name [default: print it]
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,
}

/// Converts a skin of k9s to a theme. Prints the theme, or saves it if the user gave a name.
pub fn run(
    Verb::Import(arguments): &Verb,
    environment: &Environment,
    say: &mut dyn FnMut(String),
) -> Result<String, Error> {
    let file = &arguments.file;
    let origin = file.display().to_string();
    let no_skin = |why: &str| {
        Error::new(Exit::Failed, format!("{origin}: {why}"))
            .with_hint("k9s keeps skins in the directory skins of its configuration directory")
    };
    let text = std::fs::read_to_string(file).map_err(|error| no_skin(&error.to_string()))?;
    let documents = bounded_yaml::documents(&origin, &text)
        .map_err(|error| Error::new(Exit::Failed, error.to_string()))?;
    let short = file.file_name().unwrap_or_default().to_string_lossy();
    let converted = documents
        .first()
        .and_then(|document| skin::convert(&short, &document.value));
    let converted =
        converted.ok_or_else(|| no_skin("the file is not a k9s skin: it has no key k9s"))?;
    for warning in converted.warnings {
        say(format!("warning: {origin}: {warning}"));
    }
    let Some(name) = &arguments.name else {
        return Ok(converted.theme);
    };
    let kept = keep(name, &converted.theme, environment.config_dir.as_deref())?;
    say(format!("the theme {name} is in {}", kept.display()));
    Ok(String::new())
}

/// Saves a theme in the folder of the user's themes, and returns its path. Fails if a theme with this name exists.
fn keep(name: &str, theme: &str, config_dir: Option<&Path>) -> Result<PathBuf, Error> {
    let Some(config_dir) = config_dir else {
        let why = "no home directory, so the theme cannot be saved";
        return Err(Error::new(Exit::Failed, why).with_hint("leave out --name to print the theme"));
    };
    let directory = config_dir.join(DIRECTORY);
    let path = directory.join(format!("{name}.toml"));
    let failed =
        |error: std::io::Error| Error::new(Exit::Failed, format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let mut file = match std::fs::File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let what = format!("theme {name} already exists: {}", path.display());
            return Err(Error::new(Exit::Conflict, what)
                .with_hint("choose another --name, or remove that file first"));
        }
        Err(error) => return Err(failed(error)),
    };
    file.write_all(theme.as_bytes()).map_err(failed)?;
    Ok(path)
}

fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.starts_with(['.', '-']) || !text.chars().all(fits) {
        return Err("a name consists of letters, digits, -, _ and .".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_files() {
        for (text, fits) in [
            ("gruvbox-dark", true),
            ("Nord_2.1", true),
            ("", false),
            ("../dark", false),
            (".hidden", false),
            ("-x", false),
            ("a b", false),
            ("é", false),
        ] {
            assert_eq!(name(text).is_ok(), fits, "{text}");
        }
    }
}
