//! The input from a terminal: keys, pastes, sizes, signals, and the terminal's report of its background colour.
//!
//! This module reads all available input at once, so that many fast key presses cost only one frame. It ignores key
//! releases. A terminal reports its background colour as a sequence that looks like typed keys; this module
//! recognises the sequence, so that the report never runs an action.

use std::collections::VecDeque;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use crossterm::event::{
    Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEvent, MouseEventKind,
};
use futures::stream::{BoxStream, StreamExt};
use ratatui::layout::Size;
use tokio::sync::mpsc::UnboundedReceiver;

use super::osc::{self, Rgb};
use super::signals::Signal;

/// The maximum number of inputs that are read before bowline draws a frame.
const BURST: usize = 1024;

/// The maximum length of the terminal's report of its background colour, in characters.
const LONGEST_ANSWER: usize = 64;

/// An input from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key press, or a repeat of a key that is held down.
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Focus(bool),
    Resize(Size),
    /// The terminal reports the colour of its background.
    Background(Rgb),
    /// The process received a signal.
    Signal(Signal),
    /// The terminal is closed, so no more input can arrive.
    Gone,
}

/// The inputs of a terminal as an asynchronous stream.
pub struct Events {
    keys: BoxStream<'static, io::Result<Event>>,
    signals: UnboundedReceiver<Signal>,
    answers: Answers,
    waiting: VecDeque<Input>,
    is_gone: bool,
}

impl Events {
    /// Reads the terminal of the process. `asked` says whether bowline has requested the background colour, so that a
    /// report can arrive.
    pub fn of_terminal(signals: UnboundedReceiver<Signal>, asked: bool) -> Events {
        Events::of(EventStream::new().boxed(), signals, asked)
    }

    /// Reads the events of a stream instead of a terminal, for tests.
    pub fn of(
        keys: BoxStream<'static, io::Result<Event>>,
        signals: UnboundedReceiver<Signal>,
        asked: bool,
    ) -> Events {
        Events {
            keys,
            signals,
            answers: Answers {
                asked,
                ..Answers::default()
            },
            waiting: VecDeque::new(),
            is_gone: false,
        }
    }

    /// Waits for input, and returns all input that is available. Dropping the future loses no input. After
    /// [`Input::Gone`], the future never completes, because no more input can arrive.
    pub async fn next(&mut self) -> Vec<Input> {
        std::future::poll_fn(|context| {
            self.gather(context);
            match self.waiting.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(self.waiting.drain(..).collect()),
            }
        })
        .await
    }

    /// Waits at most `longest` for the background colour; None if the terminal does not report its colour in time.
    /// Other input stays available for [`Events::next`].
    pub async fn background(&mut self, longest: Duration) -> Option<Rgb> {
        let told = std::future::poll_fn(|context| {
            self.gather(context);
            let told = self.waiting.iter().find_map(|input| match input {
                Input::Background(colour) => Some(*colour),
                _ => None,
            });
            match told {
                _ if !self.answers.asked && told.is_none() => Poll::Ready(None),
                None => Poll::Pending,
                told => Poll::Ready(told),
            }
        });
        tokio::time::timeout(longest, told).await.ok().flatten()
    }

    /// Reads all available input. Further input wakes the current task.
    fn gather(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(signal)) = self.signals.poll_recv(context) {
            self.waiting.push_back(Input::Signal(signal));
        }
        while !self.is_gone && self.waiting.len() < BURST {
            match self.keys.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(event))) => self.answers.take(event, &mut self.waiting),
                // crossterm does not know this sequence, so skip it and continue with the next one.
                Poll::Ready(Some(Err(error))) if error.kind() == io::ErrorKind::Other => {}
                Poll::Ready(Some(Err(_)) | None) => {
                    self.is_gone = true;
                    self.waiting.push_back(Input::Gone);
                }
                Poll::Pending => return,
            }
        }
        if self.waiting.len() >= BURST {
            context.waker().wake_by_ref();
        }
    }
}

/// Recognises the terminal's report of its background colour among the keys. The report arrives as the keys `alt-]`,
/// then `11;rgb:...`, then `alt-\` or `ctrl-g`.
#[derive(Default)]
struct Answers {
    asked: bool,
    held: Vec<KeyEvent>,
    text: String,
}

impl Answers {
    fn take(&mut self, event: Event, into: &mut VecDeque<Input>) {
        let key = match event {
            Event::Key(key) if key.kind == KeyEventKind::Release => return,
            Event::Key(key) => key,
            other => {
                self.release(into);
                return push(other, into);
            }
        };
        let plain = key.modifiers.difference(KeyModifiers::SHIFT);
        let is = |code, modifiers| key.code == KeyCode::Char(code) && plain == modifiers;
        if self.held.is_empty() {
            match self.asked && is(']', KeyModifiers::ALT) {
                true => self.held.push(key),
                false => into.push_back(Input::Key(key)),
            }
            return;
        }
        if is('\\', KeyModifiers::ALT) || is('g', KeyModifiers::CONTROL) {
            let colour = self.text.strip_prefix("11;").and_then(osc::background);
            if let Some(colour) = colour {
                into.push_back(Input::Background(colour));
                *self = Answers::default();
                return;
            }
        }
        self.held.push(key);
        match key.code {
            KeyCode::Char(c) if plain.is_empty() => self.text.push(c),
            _ => return self.release(into),
        }
        let is_beginning = match self.text.strip_prefix("11;") {
            Some(colour) => {
                let fits = |c: char| c.is_ascii_hexdigit() || "rgba:/".contains(c);
                colour.len() <= LONGEST_ANSWER && colour.chars().all(fits)
            }
            None => "11;".starts_with(&self.text),
        };
        if !is_beginning {
            self.release(into);
        }
    }

    /// Passes on the keys that looked like the start of a report, because they are not a report.
    fn release(&mut self, into: &mut VecDeque<Input>) {
        into.extend(self.held.drain(..).map(Input::Key));
        self.text.clear();
    }
}

/// Adds an input to the queue. Of several sizes, or of consecutive mouse moves, only the newest stays in the queue.
fn push(event: Event, into: &mut VecDeque<Input>) {
    let input = match event {
        Event::Key(key) => Input::Key(key),
        Event::Paste(text) => Input::Paste(text),
        Event::Mouse(mouse) => Input::Mouse(mouse),
        Event::FocusGained => Input::Focus(true),
        Event::FocusLost => Input::Focus(false),
        Event::Resize(width, height) => Input::Resize(Size { width, height }),
    };
    let moved = |input: Option<&Input>| match input {
        Some(Input::Mouse(mouse)) => match mouse.kind {
            MouseEventKind::Drag(_) | MouseEventKind::Moved => Some(mouse.kind),
            _ => None,
        },
        _ => None,
    };
    match &input {
        Input::Resize(_) => into.retain(|earlier| !matches!(earlier, Input::Resize(_))),
        newest => {
            let kind = moved(Some(newest));
            if kind.is_some() && kind == moved(into.back()) {
                into.pop_back();
            }
        }
    }
    into.push_back(input);
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use tokio::sync::mpsc;

    fn key(code: char, modifiers: KeyModifiers) -> Event {
        Event::Key(KeyEvent::new(KeyCode::Char(code), modifiers))
    }

    /// Converts text to the events that crossterm reports for it. In the text, `^` means alt with the next key, and a
    /// bell character means ctrl-g.
    fn typed(text: &str) -> Vec<Event> {
        let mut alt = KeyModifiers::NONE;
        let mut events = Vec::new();
        for c in text.chars() {
            match c {
                '^' => alt = KeyModifiers::ALT,
                '\x07' => events.push(key('g', KeyModifiers::CONTROL)),
                c => events.push(key(c, std::mem::replace(&mut alt, KeyModifiers::NONE))),
            }
        }
        events
    }

    fn told(events: Vec<Event>) -> String {
        let mut answers = Answers {
            asked: true,
            ..Answers::default()
        };
        let mut into = VecDeque::new();
        for event in events {
            answers.take(event, &mut into);
        }
        let word = |input: &Input| match input {
            Input::Key(key) if key.modifiers == KeyModifiers::ALT => format!("^{}", key.code),
            Input::Key(key) => key.code.to_string(),
            Input::Background(rgb) => format!("<{},{},{}>", rgb.red, rgb.green, rgb.blue),
            other => format!("{other:?}"),
        };
        into.iter().map(word).collect()
    }

    #[test]
    fn the_answer_is_told_from_keys() {
        for (keys, expected) in [
            ("jk", "jk"),
            ("^]11;rgb:1e1e/1e1e/2e2e^\\", "<30,30,46>"),
            ("^]11;rgb:ff/ff/ff\x07", "<255,255,255>"),
            ("j^]11;rgba:0/0/0/f^\\k", "j<0,0,0>k"),
            // The user has typed these keys, because the last key cannot be part of a report.
            ("^]x", "^]x"),
            ("^]11x", "^]11x"),
            ("^]11;rgb:zz", "^]11;rgb:zz"),
            ("^]11;rgb:1/2^\\", "^]11;rgb:1/2^\\"),
            // bowline has requested only one report, so the keys of a second report are passed on as typed keys.
            ("^]11;rgb:0/0/0\x07^]j", "<0,0,0>^]j"),
        ] {
            assert_eq!(told(typed(keys)), expected, "{keys:?}");
        }
        let mut endless = typed("^]11;rgb:");
        endless.extend(typed(&"f".repeat(100)));
        assert!(told(endless).starts_with("^]11;rgb:fff"));
    }

    fn events(events: Vec<Event>) -> (Events, mpsc::UnboundedSender<Signal>) {
        let (tell, signals) = mpsc::unbounded_channel();
        let stream = stream::iter(events.into_iter().map(Ok)).chain(stream::pending());
        (Events::of(stream.boxed(), signals, true), tell)
    }

    #[tokio::test]
    async fn a_burst_is_taken_at_once_and_without_releases() {
        let mut release = KeyEvent::new(KeyCode::Char('j'), KeyModifiers::NONE);
        release.kind = KeyEventKind::Release;
        let (mut events, tell) = events(vec![
            key('j', KeyModifiers::NONE),
            Event::Key(release),
            Event::Resize(80, 24),
            key('k', KeyModifiers::NONE),
            Event::Resize(120, 40),
            Event::Paste("a\nb".to_owned()),
            Event::FocusLost,
        ]);
        tell.send(Signal::Stop).unwrap();
        let key = |c| Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
        let size = Size::new(120, 40);
        assert_eq!(
            events.next().await,
            [
                Input::Signal(Signal::Stop),
                key('j'),
                key('k'),
                Input::Resize(size),
                Input::Paste("a\nb".to_owned()),
                Input::Focus(false),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_the_background_loses_no_keys() {
        let wait = Duration::from_millis(50);
        let (mut silent, _tell) = events(typed("j"));
        assert_eq!(silent.background(wait).await, None);
        assert_eq!(silent.next().await.len(), 1);

        let (mut dark, _tell) = events(typed("j^]11;rgb:0/0/0^\\k"));
        let black = osc::background("rgb:0/0/0").unwrap();
        assert_eq!(dark.background(wait).await, Some(black));
        assert_eq!(dark.next().await.len(), 3, "the answer and two keys");
    }

    #[tokio::test]
    async fn a_terminal_that_is_gone_says_so_once() {
        let (_tell, signals) = mpsc::unbounded_channel();
        let hung_up = io::Error::from(io::ErrorKind::BrokenPipe);
        let unknown = io::Error::other("no such sequence");
        let stream = stream::iter([Err(unknown), Err(hung_up)]);
        let mut events = Events::of(stream.boxed(), signals, false);
        assert_eq!(events.next().await, [Input::Gone]);
    }
}
