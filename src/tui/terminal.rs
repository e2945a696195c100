//! Takes control of the terminal, draws frames with few bytes, and restores the terminal.
//!
//! This module knows no screens. It writes each frame with one write call, so that the terminal shows the whole frame
//! at once. It restores the terminal on every exit: normal end, signal, panic, abort.

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

#[derive(Debug, Error)]
pub enum OpenError {
    /// Standard input or standard output is not a terminal.
    #[error("the terminal UI needs a terminal, for keys and for the screen")]
    NotATerminal,
    /// The terminal cannot move its cursor, so it cannot show screens. The text is the terminal type.
    #[error("the terminal type '{0}' cannot show screens")]
    NoScreens(String),
    #[error("cannot set up the terminal: {0}")]
    SetUp(#[from] io::Error),
}

/// The cost of drawing one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn {
    pub bytes: usize,
}

/// A terminal that bowline controls. Dropping this value restores the terminal.
pub struct Terminal {
    screen: ratatui::Terminal<Painter>,
    options: Options,
    links: Links,
    /// The links that the last frame contained.
    linked: Vec<Link>,
    hold: Option<Hold>,
}

impl Terminal {
    /// Checks whether the terminal can show screens, and returns the modes to set. Does not change
    /// the terminal.
    ///
    /// # Errors
    ///
    /// Fails if standard input or output is not a terminal, or if the terminal cannot move its
    /// cursor.
    pub fn check(term: &str, in_tmux: bool, mouse: bool) -> Result<Options, OpenError> {
        if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Err(OpenError::NotATerminal);
        }
        Options::of(term, in_tmux, mouse).ok_or_else(|| OpenError::NoScreens(term.into()))
    }

    /// Takes over the terminal, and returns it with its events. `term` and `in_tmux` are the values
    /// of `TERM` and `TMUX`.
    ///
    /// From now on, signals that end a process arrive as events. If bowline does not react within
    /// two seconds, the signal ends the process.
    pub fn open(term: &str, in_tmux: bool, mouse: bool) -> Result<(Terminal, Events), OpenError> {
        let options = Terminal::check(term, in_tmux, mouse)?;
        let size = size()?;
        let signals = signals::watch()?;
        let hold = Hold::take(output()?, &options)?;
        let mut terminal = Terminal::over(output()?, size, options)?;
        terminal.hold = Some(hold);
        let ask = options.ask();
        terminal.screen.backend_mut().say(ask)?;
        Ok((terminal, Events::of_terminal(signals, !ask.is_empty())))
    }

    /// Creates a terminal that draws on a writer, without taking over a real terminal.
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

    /// Draws a frame without links. Returns the cost of the frame.
    pub fn draw(&mut self, paint: impl FnOnce(&mut Frame<'_>)) -> io::Result<Drawn> {
        self.draw_linked(|frame| {
            paint(frame);
            Vec::new()
        })
    }

    /// Draws a frame with links, which `paint` returns. Returns the cost of the frame.
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

    /// Sets the size of the terminal for the next frame.
    pub fn resize(&mut self, size: Size) {
        self.screen.backend_mut().resize(size);
    }

    /// Returns the size of the next frame.
    pub fn size(&self) -> io::Result<Size> {
        self.screen.backend().size()
    }

    /// Makes the next frame write every cell, even the unchanged ones.
    pub fn redraw(&mut self) -> io::Result<()> {
        self.screen.clear()
    }

    /// Returns the number of bytes that bowline has written to the terminal since the start.
    pub fn bytes(&self) -> u64 {
        self.screen.backend().bytes().1
    }

    /// Copies a text to the clipboard of the user's terminal. The sequence for this (OSC 52) also works over SSH.
    /// Fails if the terminal has no such sequence, or if the text is too long.
    pub fn copy(&mut self, text: &str) -> Result<(), CopyError> {
        if !self.options.osc {
            return Err(CopyError::NotThere);
        }
        let sequence = osc::copy(text, self.options.between)?;
        Ok(self.screen.backend_mut().say(&sequence)?)
    }

    /// Sets the title of the terminal window, if the terminal supports it.
    pub fn title(&mut self, name: &str) -> io::Result<()> {
        match self.options.osc {
            true => self.screen.backend_mut().say(&osc::title(name)),
            false => Ok(()),
        }
    }

    /// Restores the terminal for the shell, and stops the process. When the shell continues the process, takes
    /// control of the terminal again.
    ///
    /// Returns false and does nothing if no shell could continue the process.
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

    /// Takes control of the terminal again. The next frame then writes every cell.
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

/// Opens stdout without a line buffer, because the buffer of `Stdout` would split a frame at its last line break.
fn output() -> io::Result<Box<dyn Write + Send>> {
    let own = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Box::new(File::from(own)))
}

fn size() -> io::Result<Size> {
    let (width, height) = crossterm::terminal::size()?;
    Ok(Size { width, height })
}

/// Returns the cells in these areas of a frame, with their positions.
fn cells_in(buffer: &Buffer, areas: &[Rect]) -> Vec<(u16, u16, Cell)> {
    let mut cells = Vec::new();
    for area in areas {
        // The second cell of a wide character is part of that character, so skip it.
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
