//! The terminal UI: what runs where, at a glance, and every action from the keyboard.
//!
//! A key goes through the [`keymap`] and becomes an [`action::Action`]. `update` is pure: it changes the
//! model and says which effects are wanted. Effects run beside the keyboard and come back as events. Only
//! what the target's watches tell is shown, never what was hoped for.

pub mod action;
pub mod filter;
pub mod jump;
pub mod keymap;
pub mod roster;
pub mod theme;
