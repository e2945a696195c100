//! `bowline screenshot`: draws a screen of the terminal UI without a terminal.

use std::io::Write;

use clap::{Args, ValueEnum};

use super::error::{Error, Exit};
use super::gitflags::GitFlags;
use super::{ScreenError, Screens};
use crate::connect::{Environment, Options};

/// The arguments of `screenshot`.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The screen, by the name that you type after ':' in the terminal UI
    #[arg(default_value = "matrix")]
    pub screen: String,
    /// The size of the screen in columns and rows
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
    /// The output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The theme of the screen
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Draw only ASCII characters
    #[arg(long)]
    pub ascii: bool,
    /// Draw a window frame around the picture, with --format svg
    #[arg(long)]
    pub frame: bool,
}

/// The formats of a screenshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Plain text
    Text,
    /// Text with colours, for a terminal
    Ansi,
    /// An SVG picture
    Svg,
}

pub async fn run(
    arguments: Arguments,
    screens: &Screens,
    options: Options,
    environment: Environment,
) -> Result<Exit, Error> {
    let git = GitFlags::default().git(&environment)?;
    let drawn = (screens.draw)(options, environment, git, arguments).await;
    let drawn = drawn.map_err(|error| match error {
        ScreenError::Connect(error) => error.into(),
        ScreenError::Terminal(why) => Error::new(Exit::Usage, why),
        ScreenError::Signal(signal) => {
            Error::new(Exit::Failed, format!("stopped by signal {signal}"))
        }
    })?;
    // The text is printed unchanged, because it contains escape sequences for colours. Other control characters are
    // already removed.
    std::io::stdout().write_all(drawn.as_bytes())?;
    Ok(Exit::Done)
}

/// The smallest and the largest size of a screen, in columns and rows.
const SIZES: [(u16, u16); 2] = [(20, 5), (1000, 500)];

fn size(text: &str) -> Result<(u16, u16), String> {
    let [smallest, largest] = SIZES;
    let sides = text.split_once('x');
    let sides = sides.and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    let sides: (u16, u16) = sides.ok_or("write columns and rows as 120x40")?;
    let fits = |side: u16, smallest, largest| (smallest..=largest).contains(&side);
    match fits(sides.0, smallest.0, largest.0) && fits(sides.1, smallest.1, largest.1) {
        true => Ok(sides),
        false => Err(format!(
            "from {}x{} to {}x{}",
            smallest.0, smallest.1, largest.0, largest.1
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_columns_and_rows() {
        for (text, read) in [
            ("120x40", Some((120, 40))),
            ("20x5", Some((20, 5))),
            ("19x40", None),
            ("1001x40", None),
            ("120x", None),
            ("120", None),
            ("x", None),
            ("-1x5", None),
            ("70000x40", None),
        ] {
            assert_eq!(size(text).ok(), read, "{text}");
        }
    }
}
