//! Decides whether a change of the read model is visible on the front screen. For an invisible change, for example of
//! a row outside the window, bowline draws no frame.
//!
//! If this module cannot decide, it treats the change as visible.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::model::{Model, Notice};
use super::roster::{Kind, RowSet};
use super::screens::{Scene, Screen};
use super::theme::Role;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::subjects::release_pin::matrix::Columns;

/// The parts of the last frame that a change of any object can affect, even of an object without a visible row.
#[derive(Debug, PartialEq)]
pub struct FrameInputs {
    sources: Vec<Freshness>,
    notice: Option<Notice>,
    /// The titles of the open screens, as the last frame showed them.
    trail: Vec<String>,
    rows: Option<Rows>,
}

/// The visible rows of the last frame, and the totals and columns of the table.
#[derive(Debug, PartialEq)]
struct Rows {
    totals: Vec<(String, Role)>,
    /// The number of rows that match the filter.
    count: usize,
    seen: Vec<Key>,
    selected: Option<Key>,
    columns: Columns,
    next_expiry: Option<Timestamp>,
}

/// Returns the parts of the current frame that a change of any object can affect.
pub fn glimpse(model: &Model, world: &World) -> FrameInputs {
    let trail = model.stack.iter().map(Screen::title);
    FrameInputs {
        sources: world
            .sources()
            .map(|source| world.freshness(source).clone())
            .collect(),
        notice: model.notice.clone(),
        trail: trail.collect(),
        rows: window(model).map(|(roster, first)| Rows {
            totals: model.front().totals(&Scene { world, model }),
            count: roster.len(),
            seen: seen(model, roster, first),
            selected: roster.selected().cloned(),
            columns: roster.columns().clone(),
            next_expiry: roster.next_expiry(),
        }),
    }
}

/// Returns whether a change of these objects may be visible on the front screen; true if this is not certain.
pub fn shows(model: &Model, world: &World, touched: &[Touched]) -> bool {
    if touched.is_empty() {
        return false;
    }
    if model.tour.is_some() || model.over.is_some() {
        return true;
    }
    let Some((roster, first)) = window(model) else {
        return reads_the_world(model.front());
    };
    let of = |key: Key| -> Option<Arc<str>> {
        match roster.kind() {
            Kind::Components => Some(key.name),
            Kind::Pins => world.component_of(Source::RELEASE_PINS, &key).cloned(),
            Kind::Releases => world.component_of(Source::RELEASES, &key).cloned(),
            Kind::Snapshots => world.component_of(Source::SNAPSHOTS, &key).cloned(),
        }
    };
    let rows = seen(model, roster, first).into_iter();
    // The detail pane describes the selected row even if the filter hides this row.
    let rows = rows.chain(roster.selected().cloned());
    let components: BTreeSet<Option<Arc<str>>> = rows.map(of).collect();
    touched.iter().any(|one| {
        let is_whole = one.key.is_none() || one.component.is_none();
        is_whole || components.contains(&one.component)
    })
}

/// Returns the rows of the front screen, and the position of the first visible row. None if the front screen is
/// neither a matrix nor a list.
fn window(model: &Model) -> Option<(&RowSet, usize)> {
    match model.front() {
        Screen::Matrix(matrix) => Some((matrix.roster()?, matrix.first())),
        Screen::List(list) => Some((list.roster(), list.first())),
        _ => None,
    }
}

/// Returns the keys of as many rows as the terminal has lines, from the row `first`. These are all visible rows, and a
/// few rows below them.
fn seen(model: &Model, roster: &RowSet, first: usize) -> Vec<Key> {
    let rows = roster.window(first, usize::from(model.size.1));
    rows.map(|row| row.key.clone()).collect()
}

/// Returns whether a screen depends on the read model. The caller handles the matrix and the lists itself.
fn reads_the_world(screen: &Screen) -> bool {
    !matches!(
        screen,
        Screen::Help(_)
            | Screen::Log(_)
            | Screen::Contexts(_)
            | Screen::Diff(_)
            | Screen::Describe(_)
            | Screen::Entry(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::world::Event as Told;
    use crate::fixture::{self, held, key, pin, release, unready};
    use crate::model::Event;
    use crate::snapshot_test::SnapshotTest;

    /// Creates a hundred components, of which only the first are visible.
    fn many() -> SnapshotTest {
        let mut world = fixture::world();
        for number in 0..100 {
            let component = format!("c{number:02}");
            world.releases(Told::Applied(release(&component, "v1", 1)));
            world.pins(Told::Applied(pin(&component, "production", "v1")));
        }
        let still = SnapshotTest::of(world).keys("g g");
        let _ = still.screen();
        still
    }

    /// Changes a component. Returns two flags: whether bowline draws a frame, and whether the screen differs from
    /// before.
    fn touched(
        mut still: SnapshotTest,
        component: &str,
        change: impl FnOnce(&mut World),
    ) -> (bool, bool) {
        let screen = still.screen();
        let drawn = glimpse(&still.model, &still.world);
        change(&mut still.world);
        let touched = Touched {
            source: Source::RELEASE_PINS,
            key: Some(key(&format!("{component}-production"))),
            component: Some(component.into()),
        };
        let touched = [touched];
        let mut is_seen = shows(&still.model, &still.world, &touched);
        let still = still.tell(Event::World(touched.to_vec()));
        is_seen |= shows(&still.model, &still.world, &touched);
        is_seen |= glimpse(&still.model, &still.world) != drawn;
        (is_seen, still.screen() != screen)
    }

    #[test]
    fn a_change_that_nobody_sees_draws_no_frame() {
        let seen = pin("c01", "production", "v1");
        let failing = |pin| unready(pin, "Degraded", "0 of 3 ready", "13:00:00");
        let mut labelled = pin("c90", "production", "v1");
        labelled.metadata.resource_version = Some("7".to_owned());
        let holds = serde_json::json!([{"id": "h", "owner": "mei", "since": fixture::NOW}]);
        let counted = held(pin("c90", "production", "v1"), holds);
        for (what, component, changed, expected) in [
            (
                "a row in the window fails",
                "c01",
                failing(seen),
                (true, true),
            ),
            (
                "a row outside of it is written",
                "c90",
                labelled,
                (false, false),
            ),
            (
                "a total counts a row outside of it",
                "c90",
                counted,
                (true, true),
            ),
        ] {
            let found = touched(many(), component, |world| {
                world.pins(Told::Applied(changed))
            });
            assert_eq!(found, expected, "{what}");
        }
        let gone = pin("c90", "production", "v1");
        let found = touched(many(), "c90", |world| {
            world.pins(Told::Deleted(gone));
            world.releases(Told::Deleted(release("c90", "v1", 1)));
        });
        assert_eq!(found, (true, true), "a row outside of the window is gone");
        let found = touched(many(), "c01", |world| {
            world.cut_off(
                Source::RELEASE_PINS,
                fixture::now(),
                "no route".to_owned(),
                false,
            );
        });
        assert_eq!(
            found,
            (true, true),
            "the header says that the data is stale"
        );
    }

    #[test]
    fn a_screen_that_does_not_read_the_world_draws_no_frame() {
        let still = many().keys("?");
        let failing = unready(pin("c01", "production", "v1"), "Degraded", "", "13:00:00");
        let (is_seen, changed) = touched(still, "c01", |world| world.pins(Told::Applied(failing)));
        assert_eq!((is_seen, changed), (false, false));
    }
}
