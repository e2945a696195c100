//! Keymaps: which keys run which actions. The footer, the help and the popup with the next keys of a chord use the
//! same data.
//!
//! A keymap is a TOML file; each line has keys, an action and a description. The user's file overrides a built-in
//! keymap. bowline reports invalid lines and uses the valid lines, because a typing error must not prevent a
//! rollback.
//!
//! bowline looks up keys in the modes of the front screen, the most specific mode first:
//!
//! - the matrix: `[Matrix, List, Global]`; other lists and a choice: `[List, Global]`
//! - a diff: `[Diff, Global]`; an object as text: `[Diff, List, Global]`
//! - a plan: `[Plan, Global]`; if its confirmation takes text: `[Plan, Text]`; a refused plan: `[Plan, List, Global]`
//! - the help: `[Text, Global]`; a prompt: `[Text]`

pub mod file;
mod key;
mod read;
#[cfg(test)]
mod tests;
mod trie;

use std::path::Path;

use bounded_yaml::Place;

use self::file::Source;
pub use self::key::{Key, UnknownKey};
use self::read::Meaning;
pub use self::read::{Fault, Problem};
use self::trie::{Branch, Found, Leaf, Node};
use super::action::{Action, Mode};

/// The built-in keymaps, as (name, text). The first keymap is the default.
const BUILT_IN: [(&str, &str); 2] = [
    ("default", include_str!("../../../keymaps/default.toml")),
    ("emacs", include_str!("../../../keymaps/emacs.toml")),
];

/// The name of the user's keymap file in the configuration directory.
pub const FILE: &str = "keymap.toml";

/// The description that bowline shows for a key that starts a chord (several keys pressed in sequence).
const BEGINS: &str = "more keys";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    modes: [Branch; Mode::WORDS.len()],
}

/// The result of looking up the keys that the user has pressed so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'k> {
    Run(Action),
    /// The keys are the start of a chord. Each element is a possible next key, with its action and description. The
    /// action is None if the chord continues after this key, too.
    More(Vec<(Key, Option<Action>, &'k str)>),
    Nothing,
}

pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl Keymap {
    /// Returns a built-in keymap; None if there is no keymap with this name.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        let (keymap, _) = Self::lay_over(None, &Source { name, text });
        Some(keymap)
    }

    /// Parses the user's file, given as (name, text). Its lines override a built-in keymap: the keymap that the file
    /// names as its base, or else `base`. Also returns the mistakes in the file.
    pub fn read(base: &str, user: Option<(&str, &str)>) -> (Self, Vec<Fault>) {
        let (name, text) = user.unwrap_or((FILE, ""));
        Self::lay_over(Some(base), &Source { name, text })
    }

    /// Reads `keymap.toml` in the configuration directory, if the file exists. Its lines override a built-in keymap.
    /// Also returns the mistakes in the file.
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

    /// Looks up the keys that the user has pressed so far. If several of the modes bind these keys, the first of the
    /// modes decides.
    pub fn step(&self, modes: &[Mode], pressed: &[Key]) -> Step<'_> {
        let mut more: Vec<(Key, Option<Action>, &str)> = Vec::new();
        for mode in modes {
            match self.of(*mode).find(pressed) {
                Found::Nothing => {}
                Found::Leaf(leaf) if more.is_empty() => return Step::Run(leaf.action),
                // Ignore this mode in two cases: the keys start a chord of an earlier mode, or a shorter sequence of
                // the keys already runs an action of this mode.
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

    /// Returns the first key sequence that runs an action; None if no keys are bound to it.
    pub fn keys_for(&self, modes: &[Mode], action: Action) -> Option<String> {
        let first = self.reachable(modes).find(|leaf| leaf.action == action);
        first.map(|leaf| leaf.keys.clone())
    }

    /// Returns the keys that run an action, as text for a message. If no keys are bound to the action, returns its
    /// command (`:word`).
    pub fn keys_or_word(&self, modes: &[Mode], action: Action) -> String {
        let keys = self.keys_for(modes, action);
        keys.unwrap_or_else(|| format!(":{}", action.word()))
    }

    /// Returns all active bindings as (keys, action, description), in the order of the modes.
    pub fn listing(&self, modes: &[Mode]) -> Vec<(String, Action, &str)> {
        self.reachable(modes)
            .map(|leaf| (leaf.keys.clone(), leaf.action, leaf.desc.as_str()))
            .collect()
    }

    /// Returns the bindings that no earlier mode hides. In text modes, keys that type a character
    /// are left out.
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
        // Lines that unbind keys are applied first, whatever their order in the file, so that the old bindings do not
        // conflict with new ones.
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
