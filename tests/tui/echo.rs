//! A small program that uses bowline's terminal code, for tests. The test program starts itself again in this
//! role.
//!
//! The small program draws the input that it gets from the terminal. A test can end the small program in
//! every way in which a program can end.

use std::collections::VecDeque;

use bowline::tui::terminal::Terminal;
use bowline::tui::terminal::input::Input;
use bowline::tui::terminal::signals::{self, Signal};
use crossterm::event::KeyCode;
use ratatui::widgets::Paragraph;

/// How many inputs the small program shows on its screen.
const SHOWN: usize = 12;

/// Runs the small program. In the role `answers` it ends when it gets a signal to end. In the role `deaf` it
/// does not react to this signal.
pub async fn play(part: &str) {
    let (mut terminal, mut events) = Terminal::open("xterm-256color", false, true).unwrap();
    terminal.title("a test of bowline").unwrap();
    let mut seen = VecDeque::from(["held".to_owned()]);
    loop {
        let drawn = terminal.draw(|frame| {
            let size = format!("{}x{}", frame.area().width, frame.area().height);
            let lines: Vec<String> = [size].into_iter().chain(seen.iter().cloned()).collect();
            frame.render_widget(Paragraph::new(lines.join("\n")), frame.area());
        });
        if drawn.is_err() {
            return;
        }
        for input in events.next().await {
            seen.push_back(format!("{input:?}").to_lowercase());
            match input {
                Input::Resize(size) => terminal.resize(size),
                Input::Signal(Signal::Stop) => {
                    terminal.suspend().unwrap();
                }
                Input::Signal(Signal::Continued) => terminal.resume().unwrap(),
                Input::Signal(Signal::End(signal)) if part == "answers" => {
                    drop(terminal);
                    println!("ended in order");
                    signals::end_by(signal);
                    return;
                }
                Input::Gone => return,
                Input::Key(key) => match key.code {
                    KeyCode::Char('q') => return,
                    KeyCode::Char('p') => panic!("on purpose"),
                    KeyCode::Char('t') => {
                        let _ = tokio::spawn(async { panic!("in a task, on purpose") }).await;
                    }
                    KeyCode::Char('a') => std::process::abort(),
                    KeyCode::Char('z') => {
                        let slept = terminal.suspend().unwrap();
                        seen.push_back(format!("slept: {slept}"));
                    }
                    KeyCode::Char('y') => terminal.copy("copied").unwrap(),
                    _ => {}
                },
                _ => {}
            }
            while seen.len() > SHOWN {
                seen.pop_front();
            }
        }
    }
}
