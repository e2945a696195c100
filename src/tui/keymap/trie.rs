//! The bindings of one mode, as a trie. A key either runs an action or starts a longer sequence,
//! never both.

use super::key::Key;
use crate::action::Action;

/// An action, and the keys that run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) action: Action,
    pub(super) pressed: Vec<Key>,
    pub(super) keys: String,
    pub(super) desc: String,
}

/// The action or the further keys that follow a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Leaf(Leaf),
    Branch(Branch),
}

/// The possible next keys, in the order of their bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Branch {
    next: Vec<(Key, Node)>,
}

/// The result of looking up the pressed keys in the trie.
pub(super) enum Found<'t> {
    Nothing,
    /// The first of these keys already run an action, so the sequence is too long.
    Past,
    Leaf(&'t Leaf),
    /// These keys start longer sequences.
    Branch(&'t Branch),
}

impl Branch {
    pub(super) fn next(&self) -> impl Iterator<Item = &(Key, Node)> {
        self.next.iter()
    }

    /// Follows the pressed keys from this branch.
    pub(super) fn find(&self, pressed: &[Key]) -> Found<'_> {
        let Some((key, rest)) = pressed.split_first() else {
            return Found::Branch(self);
        };
        match self.next.iter().find(|(known, _)| known == key) {
            None => Found::Nothing,
            Some((_, Node::Branch(branch))) => branch.find(rest),
            Some((_, Node::Leaf(leaf))) if rest.is_empty() => Found::Leaf(leaf),
            Some((_, Node::Leaf(_))) => Found::Past,
        }
    }

    /// Adds all bindings below this branch to `into`.
    pub(super) fn leaves<'t>(&'t self, into: &mut Vec<&'t Leaf>) {
        for (_, node) in &self.next {
            match node {
                Node::Leaf(leaf) => into.push(leaf),
                Node::Branch(branch) => branch.leaves(into),
            }
        }
    }

    /// Binds keys to an action, and replaces an existing binding of the same keys. Fails if the new or the existing
    /// sequence is the start of the other; the error is the existing sequence.
    pub(super) fn bind(&mut self, keys: &[Key], leaf: Leaf) -> Result<(), String> {
        let Some((key, rest)) = keys.split_first() else {
            return Ok(());
        };
        let position = self.next.iter().position(|(known, _)| known == key);
        match position.and_then(|position| self.next.get_mut(position)) {
            None => {
                let mut node = Node::Leaf(leaf);
                for key in rest.iter().rev() {
                    let next = vec![(*key, node)];
                    node = Node::Branch(Branch { next });
                }
                self.next.push((*key, node));
                Ok(())
            }
            Some((_, Node::Branch(branch))) if !rest.is_empty() => branch.bind(rest, leaf),
            Some((_, Node::Leaf(old))) if rest.is_empty() => {
                *old = leaf;
                Ok(())
            }
            Some((_, Node::Leaf(old))) => Err(old.keys.clone()),
            Some((_, Node::Branch(branch))) => {
                let mut leaves = Vec::new();
                branch.leaves(&mut leaves);
                Err(leaves
                    .first()
                    .map(|leaf| leaf.keys.clone())
                    .unwrap_or_default())
            }
        }
    }

    /// Removes the bindings of these keys and of all longer sequences that start with them. Returns false if there
    /// were no such bindings.
    pub(super) fn unbind(&mut self, keys: &[Key]) -> bool {
        let Some((key, rest)) = keys.split_first() else {
            return false;
        };
        let Some(position) = self.next.iter().position(|(known, _)| known == key) else {
            return false;
        };
        let (unbound, empty) = match self.next.get_mut(position) {
            Some((_, Node::Branch(branch))) if !rest.is_empty() => {
                (branch.unbind(rest), branch.next.is_empty())
            }
            _ => (rest.is_empty(), rest.is_empty()),
        };
        if empty {
            self.next.remove(position);
        }
        unbound
    }
}
