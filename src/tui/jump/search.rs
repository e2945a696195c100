//! The fuzzy search of the jump prompt: finds objects, screens and contexts by a part of their names.
//!
//! Each call does a limited amount of work and returns whether more is left, so that a key press does not wait for
//! 100,000 names. A new query replaces the old query. If the new query extends the old query, the search tries only
//! the names that matched the old query.

use std::cmp::Reverse;
use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use crate::engine::world::{Key, World};

/// The maximum number of results that the search keeps in memory.
const BEST: usize = 200;

/// The kind of a destination. The search ranks names that match equally well in the order of these kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Screen,
    Component,
    Environment,
    Pin,
    Release,
    Context,
    Snapshot,
}

/// A destination of a jump: an object, a screen or a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    pub kind: Kind,
    /// The name of the destination, with its namespace. The namespace is empty for screens and contexts.
    pub key: Key,
}

/// The sort key of a result: first the best match, then the kind, then the shorter name.
type Rank = (Reverse<u32>, Kind, usize, Key);

/// The search of a jump prompt, with its results so far.
pub struct Jump {
    goals: Vec<Goal>,
    /// The components whose ReleasePins, releases and snapshots the search has not yet added to `goals`.
    components: Vec<Key>,
    unowned: bool,
    namespace: Option<Arc<str>>,
    query: String,
    pattern: Pattern,
    matcher: Matcher,
    /// The indexes of goals that matched the previous query, and that the search still has to compare with the new
    /// query.
    again: Vec<u32>,
    /// The index of the first goal that the search has never tried.
    fresh: u32,
    fits: Vec<u32>,
    best: Vec<(Rank, u32)>,
    letters: Vec<char>,
}

impl std::fmt::Debug for Jump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} among {} names", self.query, self.goals.len())
    }
}

impl Jump {
    /// Starts a search in the screens, the contexts and the objects of a namespace. If the namespace is None,
    /// searches all namespaces.
    pub fn new(
        world: &World,
        namespace: Option<&str>,
        screens: impl IntoIterator<Item = impl AsRef<str>>,
        contexts: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let here = |key: &&Key| namespace.is_none_or(|namespace| *key.namespace == *namespace);
        let mut goals = Vec::new();
        for screen in screens {
            let key = Key::new("", screen.as_ref());
            goals.push(Goal {
                kind: Kind::Screen,
                key,
            });
        }
        for context in contexts {
            let key = Key::new("", context.as_ref());
            goals.push(Goal {
                kind: Kind::Context,
                key,
            });
        }
        let namespaces = world.namespaces().into_iter();
        for held in namespaces.filter(|held| namespace.is_none_or(|wanted| *wanted == ***held)) {
            for name in world.environment_names(held) {
                let key = Key::new(held, &name);
                goals.push(Goal {
                    kind: Kind::Environment,
                    key,
                });
            }
        }
        let components: Vec<Key> = world.components().filter(here).cloned().collect();
        goals.extend(components.iter().map(|key| Goal {
            kind: Kind::Component,
            key: key.clone(),
        }));
        Self {
            goals,
            components,
            unowned: true,
            namespace: namespace.map(Into::into),
            query: String::new(),
            pattern: Pattern::default(),
            matcher: Matcher::new(Config::DEFAULT),
            again: Vec::new(),
            fresh: 0,
            fits: Vec::new(),
            best: Vec::new(),
            letters: Vec::new(),
        }
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    /// Sets the query. Call [`Jump::work`] afterwards to search.
    pub fn ask(&mut self, query: &str) {
        if query == self.query {
            return;
        }
        // With these operators (negation, start, end, escape), a longer query can match more names than the shorter
        // query.
        let plain = !query.contains(['!', '^', '$', '\'', '\\']);
        match plain && query.starts_with(&self.query) {
            true => {
                let mut again = std::mem::take(&mut self.fits);
                again.append(&mut self.again);
                self.again = again;
            }
            false => {
                self.again.clear();
                self.fits.clear();
                self.fresh = 0;
            }
        }
        self.best.clear();
        self.query = query.to_owned();
        self.pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
    }

    /// Collects and tries about `limit` names; returns whether more work is left.
    pub fn work(&mut self, world: &World, limit: usize) -> bool {
        self.gather(world, limit);
        for _ in 0..limit {
            let number = match self.again.pop() {
                Some(number) => number,
                None if (self.fresh as usize) < self.goals.len() => {
                    self.fresh += 1;
                    self.fresh - 1
                }
                None => break,
            };
            self.try_goal(number);
        }
        self.is_busy()
    }

    /// Returns whether work is left. If no work is left, the results of [`Jump::best`] are final.
    pub fn is_busy(&self) -> bool {
        self.unowned
            || !self.components.is_empty()
            || !self.again.is_empty()
            || (self.fresh as usize) < self.goals.len()
    }

    /// Returns the best results found so far, the best first.
    pub fn best(&self) -> impl Iterator<Item = &Goal> {
        self.best
            .iter()
            .filter_map(|(_, number)| self.goals.get(*number as usize))
    }

    /// Returns the number of matching names found so far, and the number of all names.
    pub fn counts(&self) -> (usize, usize) {
        (self.fits.len(), self.goals.len())
    }

    /// Returns the positions of the characters in a name that match the query, for highlighting.
    pub fn fitting(&mut self, name: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let text = Utf32Str::new(name, &mut self.letters);
        self.pattern.indices(text, &mut self.matcher, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn gather(&mut self, world: &World, limit: usize) {
        let end = self.goals.len().saturating_add(limit);
        while self.goals.len() < end {
            let Some(component) = self.components.pop() else {
                break;
            };
            let of = |kind| {
                move |key: &Key| Goal {
                    kind,
                    key: key.clone(),
                }
            };
            let pins = world.pins_of(&component).map(|pin| &pin.key);
            self.goals.extend(pins.map(of(Kind::Pin)));
            let releases = world.releases_of(&component).map(|release| &release.key);
            self.goals.extend(releases.map(of(Kind::Release)));
            for (_, snapshots) in world.snapshots_of(&component) {
                let snapshots = snapshots.into_iter().map(|snapshot| &snapshot.key);
                self.goals.extend(snapshots.map(of(Kind::Snapshot)));
            }
        }
        if self.components.is_empty() && self.unowned {
            self.unowned = false;
            let namespace = self.namespace.as_ref();
            let unowned = world.unowned_releases().filter(|release| {
                namespace.is_none_or(|namespace| release.key.namespace == *namespace)
            });
            self.goals.extend(unowned.map(|release| Goal {
                kind: Kind::Release,
                key: release.key.clone(),
            }));
        }
    }

    fn try_goal(&mut self, number: u32) {
        let Some(goal) = self.goals.get(number as usize) else {
            return;
        };
        let text = Utf32Str::new(&goal.key.name, &mut self.letters);
        let Some(score) = self.pattern.score(text, &mut self.matcher) else {
            return;
        };
        self.fits.push(number);
        let cheap = (Reverse(score), goal.kind, goal.key.name.len());
        if self.best.len() >= BEST
            && let Some(((worst, kind, length, key), _)) = self.best.last()
            && (cheap, &goal.key) >= ((*worst, *kind, *length), key)
        {
            return;
        }
        let rank = (cheap.0, cheap.1, cheap.2, goal.key.clone());
        let at = self.best.partition_point(|(other, _)| *other < rank);
        self.best.insert(at, (rank, number));
        self.best.truncate(BEST);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::world::Event;
    use crate::fixture::*;

    fn fleet() -> World {
        let mut world = world();
        for component in ["checkout", "cart", "chart-reports", "search"] {
            for (minute, version) in ["v1", "v2"].into_iter().enumerate() {
                world.releases(Event::Applied(release(component, version, minute as u8)));
            }
            world.pins(Event::Applied(pin(component, "production", "v1")));
        }
        let mut foreign = release("x", "foreign", 1);
        foreign.metadata.labels = None;
        world.releases(Event::Applied(foreign));
        world
    }

    fn jump(world: &World) -> Jump {
        Jump::new(world, Some("shop"), ["matrix", "releases"], ["prod-eu"])
    }

    /// Calls [`Jump::work`] until the search is finished; returns the results.
    fn finish(jump: &mut Jump, world: &World, limit: usize) -> Vec<String> {
        while jump.work(world, limit) {}
        let best = jump.best();
        best.map(|goal| format!("{:?} {}", goal.kind, goal.key.name))
            .collect()
    }

    #[test]
    fn what_fits_best_comes_first() {
        let world = fleet();
        for (query, expected) in [
            ("matrix", "Screen matrix"),
            ("cart", "Component cart"),
            ("cartv2", "Release cart-v2"),
            ("cart prod", "Pin cart-production"),
            ("chk", "Component checkout"),
            ("prod", "Environment production"),
            ("eu", "Context prod-eu"),
            ("foreign", "Release x-foreign"),
        ] {
            let mut jump = jump(&world);
            jump.ask(query);
            let found = finish(&mut jump, &world, 3);
            assert_eq!(
                found.first().map(String::as_str),
                Some(expected),
                "{query}: {found:?}"
            );
        }
        let mut jump = jump(&world);
        jump.ask("zzz");
        assert_eq!(finish(&mut jump, &world, 100), [] as [&str; 0]);
        assert_eq!(jump.counts(), (0, 2 + 1 + 3 + 4 + 4 + 8 + 1));
        jump.ask("crt");
        assert_eq!(jump.fitting("cart"), [0, 2, 3]);
    }

    #[test]
    fn no_call_does_more_than_it_is_told() {
        let world = fleet();
        let mut jump = jump(&world);
        jump.ask("c");
        let mut calls = 0;
        while jump.work(&world, 2) {
            calls += 1;
            assert!(jump.counts().0 <= 2 * (calls + 1));
        }
        assert!(calls >= 10, "{calls}");
    }

    proptest! {
        #[test]
        fn typing_on_finds_what_typing_at_once_does(
            queries in prop::collection::vec("[!^c][ahr]{0,2}[t-v]{0,2}", 1..5), limit in 1..9usize, early in 0..4usize
        ) {
            let world = fleet();
            let mut typed = jump(&world);
            for query in &queries {
                for end in 0..=query.len() {
                    typed.ask(&query[..end]);
                    for _ in 0..early {
                        typed.work(&world, limit);
                    }
                }
            }
            let last = queries.last().unwrap();
            let mut at_once = jump(&world);
            at_once.ask(last);
            prop_assert_eq!(finish(&mut typed, &world, limit), finish(&mut at_once, &world, 1000));
            prop_assert_eq!(typed.counts(), at_once.counts());
        }
    }
}
