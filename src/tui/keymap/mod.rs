//! Which keys mean what: keymaps as data, from which footer, help and the popup of chords are made too.
//!
//! A keymap is read from TOML, one line per key with a description; the user's file is laid over a built-in
//! one. What is wrong in it is collected and shown, and the lines that are right count: a typing error must
//! not keep anybody from a rollback.
//!
//! Keys are looked up in the modes of what is in front, the most particular first: the matrix is
//! `[Matrix, List, Global]`, other rows are `[List, Global]`, a diff is `[Diff, Global]`, a plan
//! `[Plan, Global]`, or `[Plan, Text]` once its line has taken what is typed, and any other line is `[Text]`.

pub mod file;
mod key;
mod read;
#[cfg(test)]
mod tests;
mod trie;

use std::path::Path;

use self::file::Source;
pub use self::key::{Key, UnknownKey};
use self::read::Meaning;
pub use self::read::{Fault, Problem};
use self::trie::{Branch, Found, Leaf, Node};
use super::action::{Action, Mode};
use crate::yaml::Place;

/// The keymaps that are in the program, by name; the first counts where none is chosen.
const BUILT_IN: [(&str, &str); 2] = [
    ("default", include_str!("../../../keymaps/default.toml")),
    ("emacs", include_str!("../../../keymaps/emacs.toml")),
];

/// The name of the user's file in bowline's configuration directory.
pub const FILE: &str = "keymap.toml";

/// What is said of keys that only begin others.
const BEGINS: &str = "more keys";

/// Which keys mean what, in every mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    modes: [Branch; Mode::WORDS.len()],
}

/// What the keys that were pressed so far amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'k> {
    /// They run an action.
    Run(Action),
    /// They begin something: what can come next, what it would run, and what that does.
    More(Vec<(Key, Option<Action>, &'k str)>),
    /// They mean nothing.
    Nothing,
}

/// Lists the names of the keymaps that are in the program.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl Keymap {
    /// Returns a keymap that is in the program.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        let (keymap, _) = Self::lay_over(None, &Source { name, text });
        Some(keymap)
    }

    /// Lays a user's file, given as its name and text, over a built-in keymap: the one that the file names
    /// as its base, or else `base`.
    pub fn read(base: &str, user: Option<(&str, &str)>) -> (Self, Vec<Fault>) {
        let (name, text) = user.unwrap_or((FILE, ""));
        Self::lay_over(Some(base), &Source { name, text })
    }

    /// Reads `keymap.toml` of bowline's configuration directory, if it is there, over a built-in keymap.
    pub fn load(base: &str, config_dir: Option<&Path>) -> (Self, Vec<Fault>) {
        let Some(path) = config_dir.map(|directory| directory.join(FILE)) else {
            return Self::read(base, None);
        };
        let name = path.display().to_string();
        match file::text_of(&path) {
            Ok(text) => Self::read(base, Some((&name, text.as_deref().unwrap_or_default()))),
            Err(error) => {
                let (keymap, mut faults) = Self::read(base, None);
                let place = Source {
                    name: &name,
                    text: "",
                }
                .place(0);
                let problem = Problem::Unreadable(error.to_string());
                faults.push(Fault { place, problem });
                (keymap, faults)
            }
        }
    }

    /// Says what the keys that were pressed so far amount to; what an earlier mode says of them counts.
    pub fn step(&self, modes: &[Mode], pressed: &[Key]) -> Step<'_> {
        let mut more: Vec<(Key, Option<Action>, &str)> = Vec::new();
        for mode in modes {
            match self.of(*mode).find(pressed) {
                Found::Nothing => {}
                Found::Leaf(leaf) if more.is_empty() => return Step::Run(leaf.action),
                // An earlier mode waits for another key, or would have run without waiting.
                Found::Leaf(_) | Found::Past => break,
                Found::Branch(branch) => {
                    for (key, node) in branch.next() {
                        if more.iter().all(|(known, ..)| known != key) {
                            more.push(match node {
                                Node::Leaf(leaf) => (*key, Some(leaf.action), &leaf.desc),
                                Node::Branch(_) => (*key, None, BEGINS),
                            });
                        }
                    }
                }
            }
        }
        if more.is_empty() {
            Step::Nothing
        } else {
            Step::More(more)
        }
    }

    /// Returns the keys that run an action, as they are written: the first of them, for footer and help.
    pub fn keys_for(&self, modes: &[Mode], action: Action) -> Option<String> {
        let first = self.reachable(modes).find(|leaf| leaf.action == action);
        first.map(|leaf| leaf.keys.clone())
    }

    /// Returns the keys that run an action for a message; the action's word as a command where no key does.
    pub fn keys_or_word(&self, modes: &[Mode], action: Action) -> String {
        let keys = self.keys_for(modes, action);
        keys.unwrap_or_else(|| format!(":{}", action.word()))
    }

    /// Lists all keys that run something, with the action and its description, in the order of modes.
    pub fn listing(&self, modes: &[Mode]) -> Vec<(String, Action, &str)> {
        self.reachable(modes)
            .map(|leaf| (leaf.keys.clone(), leaf.action, leaf.desc.as_str()))
            .collect()
    }

    /// Returns what is bound in the modes, not hidden by an earlier one, and not typed where text is.
    fn reachable<'k, 'm>(
        &'k self,
        modes: &'m [Mode],
    ) -> impl Iterator<Item = &'k Leaf> + use<'k, 'm> {
        modes.iter().enumerate().flat_map(move |(depth, mode)| {
            let mut leaves = Vec::new();
            self.of(*mode).leaves(&mut leaves);
            let earlier = modes.get(..depth).unwrap_or_default();
            let is_text = modes.contains(&Mode::Text);
            leaves.into_iter().filter(move |leaf| {
                let is_typed = is_text && leaf.pressed.first().is_some_and(|key| key.is_typed());
                !is_typed
                    && earlier.iter().all(|mode| {
                        let found = self.of(*mode).find(&leaf.pressed);
                        matches!(found, Found::Nothing)
                    })
            })
        })
    }

    fn of(&self, mode: Mode) -> &Branch {
        let [global, list, matrix, diff, plan, text] = &self.modes;
        match mode {
            Mode::Global => global,
            Mode::List => list,
            Mode::Matrix => matrix,
            Mode::Diff => diff,
            Mode::Plan => plan,
            Mode::Text => text,
        }
    }

    fn of_mut(&mut self, mode: Mode) -> &mut Branch {
        let [global, list, matrix, diff, plan, text] = &mut self.modes;
        match mode {
            Mode::Global => global,
            Mode::List => list,
            Mode::Matrix => matrix,
            Mode::Diff => diff,
            Mode::Plan => plan,
            Mode::Text => text,
        }
    }

    fn lay_over(base: Option<&str>, source: &Source<'_>) -> (Self, Vec<Fault>) {
        let mut read = read::read(source);
        let mut keymap = Self {
            modes: Default::default(),
        };
        if let Some(base) = base {
            let start = source.place(0);
            let (chosen, place) = read.base.take().unwrap_or((base.to_owned(), start));
            let built_in = Self::built_in(&chosen);
            if built_in.is_none() {
                let problem = Problem::Base { name: chosen };
                read.faults.push(Fault { place, problem });
            }
            let or = || BUILT_IN.iter().find_map(|(name, _)| Self::built_in(name));
            keymap = built_in.or_else(or).unwrap_or(keymap);
        }
        keymap.lay(read.lines, &mut read.faults);
        read.faults.sort_by_key(|fault| fault.place.line);
        (keymap, read.faults)
    }

    fn lay(&mut self, lines: Vec<read::Line>, faults: &mut Vec<Fault>) {
        // What is unbound makes room for what is bound, whichever stands first.
        let (unbinding, binding): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .partition(|line| matches!(line.meaning, Meaning::Nothing));
        for line in unbinding.into_iter().chain(binding) {
            let keys = Key::print(&line.keys);
            let branch = self.of_mut(line.mode);
            let mode = read::word_of(line.mode);
            let wrong = match line.meaning {
                Meaning::Nothing if branch.unbind(&line.keys) => None,
                Meaning::Nothing => Some(Problem::Unbound { keys, mode }),
                Meaning::Run(action, desc) => {
                    let leaf = Leaf {
                        action,
                        keys: keys.clone(),
                        pressed: line.keys.clone(),
                        desc,
                    };
                    let bound = branch.bind(&line.keys, leaf);
                    bound
                        .err()
                        .map(|other| Problem::Begins { keys, other, mode })
                }
            };
            let place: Place = line.place;
            faults.extend(wrong.map(|problem| Fault { place, problem }));
        }
    }
}
