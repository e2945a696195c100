//! Tests of scrolling in the matrix: it scrolls only when the cursor leaves the visible rows.

use crate::engine::world::Event;
use crate::fixture::{self, pin, release};
use crate::snapshot_test::SnapshotTest;

/// Opens a matrix with a hundred components, `c00` to `c99`.
fn many() -> SnapshotTest {
    let mut world = fixture::world();
    for number in 0..100 {
        let component = format!("c{number:02}");
        world.releases(Event::Applied(release(&component, "v1", 1)));
        world.pins(Event::Applied(pin(&component, "production", "v1")));
    }
    let still = SnapshotTest::of(world).keys("g g");
    let _ = still.screen();
    still
}

/// Presses keys one by one, and draws a frame after each key.
fn drawn(mut still: SnapshotTest, keys: &str) -> SnapshotTest {
    for key in keys.split(' ') {
        still = still.keys(key);
        let _ = still.screen();
    }
    still
}

#[test]
fn the_rows_stay_until_the_cursor_reaches_an_end_of_them() {
    let still = drawn(many().shows("c00"), "G");
    let still = still.shows("c99").hides("c60");
    let first = (60..100)
        .map(|number| format!("c{number:02} "))
        .find(|name| still.screen().contains(name.as_str()))
        .unwrap();
    // Moving up does not scroll before the cursor has reached the first visible row.
    let still = drawn(still, "k k k k k").shows("c99").shows(&first);
    let still = drawn(still, "ctrl-u ctrl-u ctrl-u ctrl-u").hides("c99");
    still.shows("\u{25b8} c");
}

#[test]
fn the_columns_stay_until_the_cursor_reaches_an_end_of_them() {
    let mut still = many();
    still.model.size = (40, 24);
    let still = drawn(still, "h h h").shows("DEVELOPMENT >");
    drawn(still, "l").shows("< STAGING >");
}
