//! `bowline man`: generates manual pages from the help texts.

use std::path::PathBuf;

use clap::{Args, Command};

use super::error::{Error, Exit};

/// The arguments of `man`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Write one page per verb into this directory [default: print the main page]
    directory: Option<PathBuf>,
}

#[cfg(test)]
impl Arguments {
    pub(super) fn into(directory: &std::path::Path) -> Arguments {
        Arguments {
            directory: Some(directory.to_owned()),
        }
    }
}

/// Writes the manual pages to the given directory. If the user gave no directory, returns the main page as text.
pub fn run(arguments: &Arguments, command: Command) -> Result<String, Error> {
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return Ok(String::from_utf8_lossy(&page).into_owned());
    };
    std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory))
        .map_err(|error| Error::new(Exit::Failed, format!("{}: {error}", directory.display())))?;
    Ok(String::new())
}
