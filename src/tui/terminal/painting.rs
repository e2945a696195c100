//! Tests of the painter: a terminal emulator must understand its output, and the output must be short.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use ratatui::Frame;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::links::Link;
use super::modes::Options;
use super::{Drawn, Terminal};

/// The bytes that the terminal of a test received, one element per write call.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<Vec<u8>>>>);

impl Wire {
    fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn text(&self) -> String {
        String::from_utf8(self.take().concat())
            .unwrap()
            .replace('\x1b', "^")
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn terminal(width: u16, height: u16) -> (Terminal, Wire) {
    let wire = Wire::default();
    let options = Options::of("xterm-256color", false, false).unwrap();
    let size = Size { width, height };
    let terminal = Terminal::over(Box::new(wire.clone()), size, options).unwrap();
    (terminal, wire)
}

fn put(frame: &mut Frame<'_>, x: u16, y: u16, text: &str, style: Style) {
    frame.buffer_mut().set_string(x, y, text, style);
}

#[test]
fn a_frame_is_one_write_and_one_without_changes_none() {
    let (mut terminal, wire) = terminal(200, 60);
    let fill = |frame: &mut Frame<'_>| {
        for y in 0..60 {
            put(
                frame,
                0,
                y,
                &"ab".repeat(100),
                Style::new().fg(Color::Indexed(y as u8)),
            );
        }
    };
    let drawn = terminal.draw(fill).unwrap();
    let writes = wire.take();
    assert_eq!(writes.len(), 1);
    assert_eq!(
        drawn,
        Drawn {
            bytes: writes[0].len()
        }
    );
    assert!(writes[0].starts_with(b"\x1b[?2026h"));
    assert!(writes[0].ends_with(b"\x1b[?2026l"));

    assert_eq!(terminal.draw(fill).unwrap(), Drawn { bytes: 0 });
    assert_eq!(wire.take(), Vec::<Vec<u8>>::new());
}

#[test]
fn moves_and_looks_are_said_shortly() {
    let (mut terminal, wire) = terminal(20, 5);
    terminal.draw(|_| ()).unwrap();
    wire.take();
    let red = Style::new().fg(Color::Red);
    terminal
        .draw(|frame| {
            put(frame, 0, 0, "ab", red);
            put(frame, 3, 0, "c", red);
            put(frame, 16, 0, "wxyz", red);
            put(frame, 0, 1, "next", red);
            put(frame, 0, 3, "●", red);
            put(frame, 2, 3, "later", Style::new());
            put(frame, 4, 4, "last", Style::new());
        })
        .unwrap();
    // Some terminals draw the symbol in the fourth row with double width, so the painter moves the cursor after it.
    assert_eq!(
        wire.text(),
        "^[?2026h^[H^[31mab^[Cc^[17Gwxyz\r\nnext^[4H●^[3G^[mlater^[5;5Hlast^[?2026l"
            .replace("^[H", "^[1H")
    );
}

#[test]
fn the_cursor_is_shown_where_it_was_asked_for() {
    let (mut terminal, wire) = terminal(20, 5);
    terminal
        .draw(|frame| put(frame, 0, 0, "x", Style::new()))
        .unwrap();
    wire.take();
    let asked = |frame: &mut Frame<'_>| {
        put(frame, 0, 0, "x", Style::new());
        frame.set_cursor_position((5, 2));
    };
    terminal.draw(asked).unwrap();
    assert_eq!(wire.text(), "^[?2026h^[?25h^[3;6H^[?2026l");
    terminal.draw(asked).unwrap();
    assert_eq!(wire.text(), "", "it is there already");
    terminal
        .draw(|frame| put(frame, 0, 0, "x", Style::new()))
        .unwrap();
    assert_eq!(wire.text(), "^[?2026h^[?25l^[?2026l");
}

#[test]
fn nothing_in_a_cell_steers_the_terminal() {
    let (mut terminal, wire) = terminal(20, 1);
    for symbol in [
        "\x1b[2J", "\u{9b}", "\n", "a\x07", "\u{202e}", "\u{200b}", "",
    ] {
        // Set the symbol without ratatui's methods, which reject some symbols in debug builds.
        let mut cell = Cell::default();
        cell.set_symbol(symbol);
        let painter = terminal.screen.backend_mut();
        painter.draw([(0, 0, &cell)].into_iter()).unwrap();
        painter.send().unwrap();
        let text = wire.text();
        assert!(text.contains('\u{fffd}'), "{symbol:?}: {text}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\r'), "{text}");
        assert!(!text.contains("2J"), "{text}");
    }
}

#[test]
fn links_are_written_when_they_come_and_when_they_go() {
    let (mut terminal, wire) = terminal(20, 2);
    let link = Link::new(Rect::new(4, 0, 4, 1), "https://a.example/x");
    let text = |frame: &mut Frame<'_>| put(frame, 0, 0, "see here now", Style::new());
    terminal.draw(text).unwrap();
    wire.take();
    let mut drawn = |links: Option<Link>| {
        let linked = terminal.draw_linked(|frame| {
            text(frame);
            links.into_iter().collect()
        });
        linked.unwrap();
        wire.text()
    };
    assert_eq!(
        drawn(link.clone()),
        "^[?2026h^[5G^]8;;https://a.example/x^\\here^]8;;^\\^[?2026l"
    );
    assert_eq!(drawn(link), "");
    assert_eq!(drawn(None), "^[?2026h^[5Ghere^[?2026l");
}

#[test]
fn another_size_is_drawn_anew_in_one_frame() {
    let (mut terminal, wire) = terminal(20, 2);
    let text = |frame: &mut Frame<'_>| put(frame, 0, 0, "here", Style::new().bg(Color::Blue));
    terminal.draw(text).unwrap();
    wire.take();
    terminal.resize(Size::new(10, 4));
    terminal.draw(text).unwrap();
    let writes = wire.take();
    assert_eq!(writes.len(), 1);
    let written = String::from_utf8(writes.concat()).unwrap();
    assert_eq!(
        written.replace('\x1b', "^"),
        "^[?2026h^[m^[2J^[2J^[1H^[44mhere^[?2026l",
        "cleared without the colour of the last cell"
    );
    terminal.redraw().unwrap();
    assert!(terminal.draw(text).unwrap().bytes > 0);
}

/// Draws a table like the matrix: eight columns with a glyph and words in several colours, a detail
/// pane, and a selected row in its own colours.
fn table(frame: &mut Frame<'_>, selected: u16) {
    let colour = |n: u16| Color::Rgb((n * 37 % 200) as u8 + 40, (n * 91 % 200) as u8 + 40, 120);
    for y in 2..50 {
        let row = y - 2;
        let mut spans = vec![Span::from(format!("   component-number-{row:<10}"))];
        for column in 0..6 {
            let dim = Style::new().fg(Color::Rgb(110, 110, 120));
            spans.push(Span::styled(
                "● ",
                Style::new().fg(Color::Rgb(120, 190, 110)),
            ));
            spans.push(Span::styled(
                format!("v1.{}.{:<8}", row % 7, column),
                Style::new().fg(colour(row % 5 + column)).bold(),
            ));
            spans.push(Span::styled(
                "↑1",
                Style::new().fg(Color::Rgb(220, 180, 90)),
            ));
            spans.push(Span::styled(format!("{:>8}    ", format!("{row}m")), dim));
        }
        frame.buffer_mut().set_line(0, y, &Line::from(spans), 200);
        if row == selected {
            let area = Rect::new(0, y, 200, 1);
            let highlight = Style::new().bg(Color::Rgb(48, 52, 70));
            frame.buffer_mut().set_style(area, highlight);
            put(frame, 1, y, "▸", Style::new().bold());
        }
    }
    for line in 0..4 {
        let words = format!(
            "   component-number-{selected} is at v1.{selected}.{line} since 13:4{line}, promoted by ana: \"hotfix\""
        );
        put(
            frame,
            0,
            52 + line,
            &words,
            Style::new().fg(Color::Rgb(200, 200, 205)),
        );
    }
}

/// Returns the number of bytes that ratatui's crossterm backend writes for the same two frames.
fn as_crossterm_writes() -> usize {
    let frame = |selected| {
        let mut terminal =
            ratatui::Terminal::new(ratatui::backend::TestBackend::new(200, 60)).unwrap();
        let drawn = terminal.draw(|frame| table(frame, selected)).unwrap();
        drawn.buffer.clone()
    };
    let (before, after) = (frame(10), frame(11));
    let wire = Wire::default();
    let mut backend = CrosstermBackend::new(wire.clone());
    backend.draw(before.diff(&after).into_iter()).unwrap();
    wire.take().concat().len()
}

#[test]
fn moving_the_selection_costs_less_than_two_kilobytes() {
    let (mut terminal, _) = terminal(200, 60);
    terminal.draw(|frame| table(frame, 10)).unwrap();
    let ours = terminal.draw(|frame| table(frame, 11)).unwrap().bytes;
    let theirs = as_crossterm_writes();
    println!("moving the selection at 200x60: {ours} bytes; ratatui's own backend: {theirs}");
    assert!(ours <= 2048, "{ours} bytes");
    assert!(ours * 4 < theirs * 3, "{ours} of {theirs} bytes");
}

fn colour() -> impl Strategy<Value = Color> {
    prop_oneof![
        Just(Color::Reset),
        (0u8..=255).prop_map(Color::Indexed),
        Just(Color::LightBlue),
        any::<(u8, u8, u8)>().prop_map(|(r, g, b)| Color::Rgb(r, g, b)),
    ]
}

fn style() -> impl Strategy<Value = Style> {
    // Use only attributes that vt100, the terminal emulator of this test, can distinguish.
    let known = [
        Modifier::BOLD,
        Modifier::DIM,
        Modifier::ITALIC,
        Modifier::UNDERLINED,
        Modifier::REVERSED,
    ];
    let modifiers = proptest::sample::subsequence(known.to_vec(), 0..=3);
    (colour(), colour(), modifiers).prop_map(|(fg, bg, modifiers)| {
        let all = modifiers
            .into_iter()
            .fold(Modifier::empty(), Modifier::union);
        Style::new().fg(fg).bg(bg).add_modifier(all)
    })
}

type Written = Vec<(u16, u16, String, Style)>;

fn frames() -> impl Strategy<Value = Vec<Written>> {
    // Wide characters have their own columns here, because terminals differ if one covers half of another character.
    let narrow = prop_oneof!["[a-z ]{1,12}", "[ ]{1,9}", "[─│ü●é]{1,6}"];
    let narrow = (0u16..24, 0u16..4, narrow, style());
    let wide = (0u16..12, 4u16..6, "(界|──|  ){1,6}", style());
    let wide = wide.prop_map(|(x, y, text, style)| (2 * x, y, text, style));
    let one = prop_oneof![narrow, wide];
    proptest::collection::vec(proptest::collection::vec(one, 0..12), 1..6)
}

fn as_vt100(colour: Color) -> vt100::Color {
    match colour {
        Color::Reset => vt100::Color::Default,
        Color::Rgb(r, g, b) => vt100::Color::Rgb(r, g, b),
        named => vt100::Color::Idx(super::pen::index(named)),
    }
}

proptest! {
    #[test]
    fn a_terminal_shows_what_was_drawn(frames in frames()) {
        let (mut terminal, wire) = terminal(24, 6);
        let mut screen = vt100::Parser::new(6u16.try_into().unwrap(), 24u16.try_into().unwrap(), 0);
        for written in frames {
            let mut expected = Buffer::empty(Rect::new(0, 0, 24, 6));
            terminal.draw(|frame| {
                for (x, y, text, style) in &written {
                    put(frame, *x, *y, text, *style);
                }
                expected = frame.buffer_mut().clone();
            }).unwrap();
            for bytes in wire.take() {
                screen.process(&bytes);
            }
            for at in expected.area.positions() {
                let cell = &expected[at];
                let shown = screen.screen().cell(at.y, at.x).unwrap();
                if shown.is_wide_continuation() {
                    continue;
                }
                let text = if shown.has_contents() { shown.contents() } else { " " };
                prop_assert_eq!(text, cell.symbol(), "at {}", at);
                prop_assert_eq!(shown.bgcolor(), as_vt100(cell.bg), "at {}", at);
                let has = |modifier| cell.modifier.contains(modifier);
                prop_assert_eq!(shown.underline(), has(Modifier::UNDERLINED));
                prop_assert_eq!(shown.inverse(), has(Modifier::REVERSED));
                if cell.symbol() != " " {
                    prop_assert_eq!(shown.fgcolor(), as_vt100(cell.fg), "at {}", at);
                    prop_assert_eq!(shown.italic(), has(Modifier::ITALIC));
                    // vt100, the terminal emulator of this test, stores only one of bold and dim.
                    if has(Modifier::BOLD) != has(Modifier::DIM) {
                        prop_assert_eq!(shown.bold(), has(Modifier::BOLD), "at {}", at);
                        prop_assert_eq!(shown.dim(), has(Modifier::DIM), "at {}", at);
                    }
                }
            }
        }
    }
}
