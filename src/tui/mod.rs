//! The terminal UI: shows which release is effective in which environment, and runs every action from the
//! keyboard.
//!
//! A key press goes through the [`keymap`] and becomes an [`action::Action`]. [`update`] is pure:
//! it changes the [`model`] and returns the [`effect`]s to perform. The runner performs the effects
//! in the background and sends their results back as events. Screens show only the state that the
//! target's watches report, never an expected state.

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

// These imports let the code of every package use the same paths, such as `crate::engine`.
use bowline_controllers as controllers;
#[cfg(test)]
use bowline_core::fixture;
use bowline_core::{api, connect, engine, git, gitops, resolve, small_file, subjects, text};

/// Returns all descriptions of commands and all texts of the tour, each with its name, for a test that checks the
/// wording.
pub fn texts() -> Vec<(String, String)> {
    let commands = commands::listing()
        .map(|(name, arguments, about)| (format!(":{name} {arguments}"), about.to_owned()));
    commands.chain(tour::texts()).collect()
}
