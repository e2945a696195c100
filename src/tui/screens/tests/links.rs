//! Tests of links. They read the addresses from the bytes that the terminal receives.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use ratatui::layout::Size;

use super::still;
use crate::effect::Answer;
use crate::snapshot_test::SnapshotTest;
use crate::terminal::Terminal;
use crate::terminal::modes::Options;
use crate::view::view_noting;

#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<u8>>>);

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the addresses of the links in the output of a frame, in the order of that output.
fn leads(still: &SnapshotTest) -> Vec<String> {
    let (width, height) = still.model.size;
    let wire = Wire::default();
    let options = Options::of("xterm-256color", false, false).unwrap();
    let size = Size::new(width, height);
    let mut terminal = Terminal::over(Box::new(wire.clone()), size, options).unwrap();
    let drawn = terminal.draw_linked(|frame| {
        let notes = view_noting(&still.model, &still.world, still.now, frame.buffer_mut());
        notes.links.into_inner()
    });
    drawn.unwrap();
    let written = String::from_utf8(wire.0.lock().unwrap().clone()).unwrap();
    let mut found: Vec<String> = Vec::new();
    for sequence in written.split("\u{1b}]8;;").skip(1) {
        let (url, _) = sequence.split_once("\u{1b}\\").unwrap();
        if !url.is_empty() && found.iter().all(|known| known != url) {
            found.push(url.to_owned());
        }
    }
    found
}

fn described(yaml: &str) -> SnapshotTest {
    let yaml = yaml.to_owned();
    still()
        .keys("g r enter")
        .answer(|_| Answer::Described(Ok(yaml)))
}

#[test]
fn what_a_release_names_leads_there() {
    let commit = "a1".repeat(20);
    let yaml = format!(
        "kind: Release\nmetadata:\n  annotations:\n    ci: https://ci.example/runs/7\nspec:\n  component:\n    gitRef:\n      repository: https://git.example/shop.git\n      revision: {commit}\n"
    );
    assert_eq!(
        leads(&described(&yaml)),
        [
            "https://ci.example/runs/7".to_owned(),
            "https://git.example/shop.git".to_owned(),
            format!("https://git.example/shop/commit/{commit}"),
        ]
    );
}

#[test]
fn what_is_no_address_of_the_web_leads_nowhere() {
    let commit = "a1".repeat(20);
    for line in [
        "ci: file:///etc/passwd",
        "ci: javascript:alert(1)",
        "ci: https://a.example/\u{1b}]8;;https://b.example\u{1b}\\",
        "ci: https://a.example/\u{202e}gpj.exe",
        "ci: https://gr\u{f6}\u{df}e.example",
    ] {
        assert_eq!(leads(&described(line)), [""; 0], "{line:?}");
    }
    let local = format!("repository: /srv/shop.git\nrevision: {commit}\n");
    assert_eq!(leads(&described(&local)), [""; 0]);
}

#[test]
fn what_lies_over_a_link_leads_nowhere() {
    let yaml = "a: https://a.example\n".repeat(40);
    let still = described(&yaml).keys("g");
    let (width, height) = still.model.size;
    let mut buffer =
        ratatui::buffer::Buffer::empty(ratatui::layout::Rect::new(0, 0, width, height));
    let notes = view_noting(&still.model, &still.world, still.now, &mut buffer);
    let lowest = notes.links.borrow().iter().map(|link| link.area.y).max();
    let popup = buffer
        .content()
        .iter()
        .position(|cell| cell.symbol() == "\u{2500}");
    let popup = u16::try_from(popup.unwrap() / usize::from(width)).unwrap();
    assert!(lowest.unwrap() < popup, "{lowest:?} {popup}");
}
