//! The terminal UI: shows which release is effective in which environment, and runs every action from the
//! keyboard.
//!
//! A key goes through the [`keymap`] and becomes an [`action::Action`]. [`update`] is pure: it changes the
//! [`model`] and returns the [`effect`]s to perform. Effects run in the background, and their results come
//! back as events. Screens show only the state that the target's watches report, never an expected state.

pub mod action;
mod commands;
mod confirm;
pub mod effect;
pub mod filter;
mod from_keys;
mod hints;
pub mod jump;
pub mod keymap;
mod looks;
pub mod model;
mod mouse;
mod open_screen;
pub mod pen;
pub mod picture;
pub mod prompt;
mod push;
pub mod roster;
pub mod rows;
pub mod run;
pub mod runner;
pub mod screens;
pub mod screenshot;
#[cfg(test)]
mod snapshot_test;
#[cfg(test)]
mod story;
pub mod target_info;
pub mod tasks;
pub mod terminal;
pub mod theme;
mod tour;
pub mod update;
pub mod view;
mod visible;
mod widgets;

/// Returns the descriptions of the commands and the texts of the tour, each with its name, for the test that
/// checks all texts of bowline.
#[cfg(test)]
pub(crate) fn texts() -> Vec<(String, String)> {
    let commands = commands::listing()
        .map(|(name, arguments, about)| (format!(":{name} {arguments}"), about.to_owned()));
    commands.chain(tour::texts()).collect()
}
