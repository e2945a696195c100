//! The terminal UI: what runs where, at a glance, and every action from the keyboard.
//!
//! A key goes through the [`keymap`] and becomes an [`action::Action`]. [`update`] is pure: it changes the
//! [`model`] and says which [`effect`]s are wanted. Effects run beside the keyboard and come back as
//! events. Only what the target's watches tell is shown, never what was hoped for.

pub mod action;
mod commands;
mod confirm;
pub mod effect;
pub mod filter;
mod hints;
pub mod jump;
mod jumping;
pub mod keymap;
mod looks;
pub mod model;
mod mouse;
mod opening;
pub mod order;
mod orders;
pub mod pen;
pub mod picture;
pub mod prompt;
mod prompting;
mod pushing;
pub mod roster;
pub mod rows;
pub mod run;
pub mod runner;
pub mod screens;
pub mod screenshot;
#[cfg(test)]
mod still;
#[cfg(test)]
mod story;
pub mod tasks;
pub mod terminal;
pub mod theme;
mod tour;
pub mod update;
pub mod view;
mod visible;
mod widgets;

/// Returns the texts of commands and of the tour with their sources, for the table of texts.
#[cfg(test)]
pub(crate) fn texts() -> Vec<(String, String)> {
    let commands = commands::listing()
        .map(|(name, arguments, about)| (format!(":{name} {arguments}"), about.to_owned()));
    commands.chain(tour::texts()).collect()
}
