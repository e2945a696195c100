//! Tests of notices, sort arrows, marks and ASCII mode on every screen.

use crate::effect::Answer;
use crate::fixture::at;
use crate::model::{Event, Level};
use crate::pen;
use crate::screens::history::tests::opened;
use crate::snapshot_test::{SIZES, SnapshotTest, rolled_back};
use crate::update::say;

use super::data::{record, shop};

#[test]
fn a_message_goes_away_by_itself_and_hides_no_key() {
    for (level, gone) in [
        (Level::Info, "14:00:08"),
        (Level::Warning, "14:00:13"),
        (Level::Error, "14:00:33"),
    ] {
        let mut still = SnapshotTest::fleet();
        let now = still.now;
        say(&mut still.model, now, level, "tom changed cart in staging");
        let mut still = still.shows("tom changed cart").shows("P promote");
        still.now = at("14:00:04");
        still = still.shows("tom changed cart");
        still.now = at(gone);
        still.hides("tom changed cart").shows("P promote");
    }
}

#[test]
fn a_message_covers_nothing_of_the_screen() {
    let still = rolled_back(SnapshotTest::fleet().keys("R"));
    let still = still.keys("alt-y").shows("on the clipboard");
    still
        .shows("type production and why")
        .shows("[ Cancel ]")
        .shows("esc cancel");
}

#[test]
fn every_mistake_of_the_users_files_is_a_line() {
    let mut still = SnapshotTest::fleet();
    let now = still.now;
    let faults = [
        "keymap.toml:1:1: one is wrong",
        "themes/mine.toml:2:2: two is wrong",
    ];
    say(&mut still.model, now, Level::Error, faults.join("\n"));
    let screen = still.screen();
    for fault in faults {
        assert!(screen.lines().any(|line| line.trim() == fault), "{screen}");
    }
}

#[test]
fn in_ascii_nothing_else_is_drawn() {
    let world = || SnapshotTest::of(shop());
    let long = "\"caf\u{e9} \u{754c}\"";
    let audit = world()
        .keys("g a")
        .answer(|_| Answer::Record(Ok(record(true))));
    for (name, still) in [
        ("matrix", world()),
        ("sorted", world().keys("s S")),
        ("marked", world().keys("* g")),
        ("filter", world().keys("/").keys(long)),
        ("choice", world().keys("H")),
        ("plan", rolled_back(SnapshotTest::fleet().keys("R"))),
        ("releases", world().keys("g r")),
        ("pins", world().keys("g p c")),
        ("gc", world().keys("g c")),
        ("audit", audit),
        ("help", world().keys("?")),
        ("component", opened("enter")),
        ("revisions", opened("g v")),
    ] {
        let mut still = still;
        still.model.look.glyphs = &pen::ASCII;
        for size in SIZES {
            still = still.tell(Event::Resize(size.0, size.1));
            let screen = still.screen();
            let other = screen.chars().find(|c| !c.is_ascii());
            assert_eq!(other, None, "{name} {size:?}:\n{screen}");
        }
    }
}

#[test]
fn the_sorted_column_has_an_arrow() {
    let still = SnapshotTest::fleet().shows("COMPONENT\u{25b2}");
    let still = still.keys("S").shows("COMPONENT\u{25bc}");
    still.keys("s").shows("BY HEALTH\u{25bc}");
    let releases = SnapshotTest::of(shop()).keys("g r").shows("MADE\u{25b2}");
    releases
        .keys("s s")
        .shows("SIZE\u{25bc}")
        .hides("MADE\u{25b2}");
    SnapshotTest::of(shop()).keys("g c s").shows("SIZE\u{25bc}");
}

#[test]
fn every_list_says_what_is_marked_bad() {
    let still = || SnapshotTest::of(shop());
    still().keys("g r").shows("v1.2.2 bad");
    still().keys("g r c").shows("checkout-service-v1.2.2 bad");
    still().keys("g c").shows("checkout-service-v1.2.2 bad");
    let jump = still().keys("ctrl-p").keys("\"checkout122\"");
    jump.shows("release, marked bad");
    let command = still().keys(":").keys("\"rollback \"");
    command.shows("marked bad");
    opened("g v").shows("v1.2.2 bad");
}

#[test]
fn a_message_goes_away_with_its_cause() {
    let command = |still: SnapshotTest, line: &str| {
        let line = format!("\"{line}\"");
        still.keys(":").keys(&line).keys("enter")
    };
    let mistaken = || command(SnapshotTest::fleet(), "at 25:99").shows("25:99");
    command(mistaken(), "at yesterday").hides("25:99");
    for keys in ["j", "s", "g r", "R", "H esc", ": esc", "/ esc", "g t"] {
        mistaken().keys(keys).hides("25:99");
    }
    // The first key of a chord does not remove the notice.
    let chord = mistaken().keys("g");
    assert!(chord.model.notice.is_some());
    // If a screen opens without a key press, the notice of the previous screen disappears.
    let planned = rolled_back(command(SnapshotTest::fleet(), "cart").keys("R"));
    planned.hides("unknown command");
}

#[test]
fn a_choice_says_that_it_has_more_rows_and_shows_the_chosen_one() {
    let still = SnapshotTest::fleet().tell(Event::Resize(40, 10)).keys("H");
    let still = still.shows("1 to 5 of 6").hides("7 days");
    let still = still
        .keys("j j j j j")
        .shows("6 7 days")
        .shows("2 to 6 of 6");
    still
        .tell(Event::Resize(80, 24))
        .shows("6 7 days")
        .hides("of 6");
}
