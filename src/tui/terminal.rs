//! The terminal: taking it, drawing on it in few bytes, and giving it back whatever happens.
//!
//! Nothing here knows what the screens show. A frame is one write, which the terminal shows in one go.
//! The terminal comes back as it was on every way out: the end, a signal, a panic, an abort.

pub mod hold;
pub mod input;
pub mod links;
pub mod modes;
pub mod osc;
mod painter;
#[cfg(test)]
mod painting;
pub mod pen;
pub mod signals;
pub mod symbol;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, PoisonError};

use ratatui::Frame;
use ratatui::backend::Backend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use thiserror::Error;
use unicode_width::UnicodeWidthStr;

use hold::Hold;
use input::Events;
use links::Link;
use modes::Options;
use osc::CopyError;
use painter::{Links, Painter};

/// Why a terminal was not taken.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Input or output go elsewhere.
    #[error("the terminal UI needs a terminal, for keys and for the screen")]
    NotATerminal,
    /// It cannot move its cursor.
    #[error("the terminal type '{0}' cannot show screens")]
    NoScreens(String),
    /// It could not be set up.
    #[error("cannot set up the terminal: {0}")]
    SetUp(#[from] io::Error),
}

/// What a frame cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// The bytes that were written.
    pub bytes: usize,
}

/// A terminal that the program has taken; dropping it gives it back.
pub struct Terminal {
    screen: ratatui::Terminal<Painter>,
    options: Options,
    links: Links,
    /// The links that are on the screen.
    linked: Vec<Link>,
    hold: Option<Hold>,
}

impl Terminal {
    /// Takes the terminal that the program was started in, with what comes from it.
    ///
    /// `term` and `in_tmux` are what `TERM` and `TMUX` say. Signals that end the program come as events
    /// from now on; one that is not answered within two seconds ends it all the same.
    pub fn open(term: &str, in_tmux: bool, mouse: bool) -> Result<(Terminal, Events), OpenError> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(OpenError::NotATerminal);
        }
        let options =
            Options::of(term, in_tmux, mouse).ok_or_else(|| OpenError::NoScreens(term.into()))?;
        let size = size()?;
        let signals = signals::watch()?;
        let hold = Hold::take(output()?, &options)?;
        let mut terminal = Terminal::over(output()?, size, options)?;
        terminal.hold = Some(hold);
        let ask = options.ask();
        terminal.screen.backend_mut().say(ask)?;
        Ok((terminal, Events::of_terminal(signals, !ask.is_empty())))
    }

    /// Draws on anything that takes bytes, and takes nothing.
    pub fn over(out: Box<dyn Write + Send>, size: Size, options: Options) -> io::Result<Terminal> {
        let links = Links::default();
        let painter = Painter::new(out, size, links.clone());
        Ok(Terminal {
            screen: ratatui::Terminal::new(painter)?,
            options,
            links,
            linked: Vec::new(),
            hold: None,
        })
    }

    /// Draws a frame.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<Drawn> {
        self.draw_linked(|frame| {
            paint(frame);
            Vec::new()
        })
    }

    /// Draws a frame, some of whose cells are links.
    pub fn draw_linked(
        &mut self,
        paint: impl FnOnce(&mut Frame<'_>) -> Vec<Link>,
    ) -> io::Result<Drawn> {
        if self.hold.as_ref().is_some_and(|hold| !hold.is_held()) {
            return Err(io::Error::other("the terminal is restored"));
        }
        let (links, can_link) = (Arc::clone(&self.links), self.options.osc);
        let drawn = self.screen.draw(|frame| {
            let painted = paint(frame);
            let mut links = links.lock().unwrap_or_else(PoisonError::into_inner);
            *links = if can_link { painted } else { Vec::new() };
        })?;
        let now = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let again = links::changed(&self.linked, &now);
        let cells = cells_in(drawn.buffer, &again);
        self.linked.clone_from(&now);
        drop(now);
        let painter = self.screen.backend_mut();
        painter.draw(cells.iter().map(|(x, y, cell)| (*x, *y, cell)))?;
        painter.send()?;
        let (bytes, _) = painter.bytes();
        Ok(Drawn { bytes })
    }

    /// Takes note that the terminal has another size; the next frame has it.
    pub fn resize(&mut self, size: Size) {
        self.screen.backend_mut().resize(size);
    }

    /// Returns the size of the next frame.
    pub fn size(&self) -> io::Result<Size> {
        self.screen.backend().size()
    }

    /// Makes the next frame draw everything anew.
    pub fn redraw(&mut self) -> io::Result<()> {
        self.screen.clear()
    }

    /// Returns how many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.screen.backend().bytes().1
    }

    /// Puts a text into the clipboard of whoever sits at the terminal, however far away.
    pub fn copy(&mut self, text: &str) -> Result<(), CopyError> {
        if !self.options.osc {
            return Err(CopyError::NotThere);
        }
        let sequence = osc::copy(text, self.options.between)?;
        Ok(self.screen.backend_mut().say(&sequence)?)
    }

    /// Names the terminal's window.
    pub fn title(&mut self, name: &str) -> io::Result<()> {
        match self.options.osc {
            true => self.screen.backend_mut().say(&osc::title(name)),
            false => Ok(()),
        }
    }

    /// Gives the terminal to the shell, sleeps until the program is continued, and takes it again.
    ///
    /// Returns false, and does nothing, where no shell waits that could continue it.
    pub fn suspend(&mut self) -> io::Result<bool> {
        if !signals::can_be_continued() {
            return Ok(false);
        }
        if let Some(hold) = &mut self.hold {
            hold.give_back();
        }
        signals::stop()?;
        self.resume()?;
        Ok(true)
    }

    /// Takes the terminal again after somebody else had it, and has the next frame drawn anew.
    pub fn resume(&mut self) -> io::Result<()> {
        if let Some(hold) = &mut self.hold {
            hold.take_again(output()?, &self.options)?;
            let size = size()?;
            self.screen.backend_mut().resize(size);
        }
        self.screen.backend_mut().forget();
        self.redraw()
    }
}

/// The output of the program without the buffer of `Stdout`, which would break a frame at its last line.
fn output() -> io::Result<Box<dyn Write + Send>> {
    let own = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Box::new(File::from(own)))
}

fn size() -> io::Result<Size> {
    let (width, height) = crossterm::terminal::size()?;
    Ok(Size { width, height })
}

/// Copies the cells of areas out of a frame.
fn cells_in(buffer: &Buffer, areas: &[Rect]) -> Vec<(u16, u16, Cell)> {
    let mut cells = Vec::new();
    for area in areas {
        // The cell behind a wide character belongs to it.
        let mut covered = Position::ORIGIN;
        for at in area.intersection(buffer.area).positions() {
            let Some(cell) = buffer.cell(at) else {
                continue;
            };
            if at.y == covered.y && at.x < covered.x {
                continue;
            }
            let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
            covered = Position::new(at.x.saturating_add(width), at.y);
            cells.push((at.x, at.y, cell.clone()));
        }
    }
    cells
}
