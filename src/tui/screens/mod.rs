//! The screens: each a state, what it does with an action, and how it is drawn.
//!
//! A screen knows the read model and what it was answered; what it wants of the rest it says through its
//! [`Turn`]. Screens do not know each other but by the names they open.

pub mod matrix;
pub mod plan;

use crossterm::event::KeyEvent;

use super::action::{Action, Mode};
use super::effect::{Answer, Ticket};
use super::model::{Subject, Turn};
use super::pen::Sheet;
use crate::engine::world::World;
use crate::engine::world::feed::Touched;

/// What is in front.
#[derive(Debug)]
pub enum Screen {
    /// Components against environments.
    Matrix(Box<matrix::State>),
    /// What an action would do, and its confirmation.
    Plan(Box<plan::State>),
}

/// Whether a screen did something with what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// It did.
    Yes,
    /// It means nothing there.
    No,
}

impl Screen {
    /// Returns what the trail calls it.
    pub fn title(&self) -> String {
        match self {
            Self::Matrix(state) => state.title(),
            Self::Plan(state) => state.order.verb().to_owned(),
        }
    }

    /// Returns where its keys are looked up, the first that knows one first.
    pub fn modes(&self) -> &'static [Mode] {
        match self {
            Self::Matrix(_) => &[Mode::Matrix, Mode::List, Mode::Global],
            Self::Plan(state) => state.modes(),
        }
    }

    /// Does what a key means there.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match self {
            Self::Matrix(state) => state.act(action, turn),
            Self::Plan(state) => state.act(action, turn),
        }
    }

    /// Takes a key that is text there, before it is looked up.
    pub fn key(&mut self, key: KeyEvent, turn: &mut Turn<'_>) -> Handled {
        match self {
            Self::Plan(state) => state.key(key, turn),
            Self::Matrix(_) => Handled::No,
        }
    }

    /// Takes text that was pasted.
    pub fn paste(&mut self, text: &str) -> Handled {
        match self {
            Self::Plan(state) => state.paste(text),
            Self::Matrix(_) => Handled::No,
        }
    }

    /// Takes what a request brought, if it was its own.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match self {
            Self::Matrix(state) => state.answer(ticket, answer, turn),
            Self::Plan(state) => state.answer(ticket, answer, turn),
        }
    }

    /// Follows what changed in the read model.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        match self {
            Self::Matrix(state) => state.touched(touched, turn),
            Self::Plan(_) => {}
        }
    }

    /// Lets time go by, while it is in front.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        match self {
            Self::Matrix(state) => state.tick(turn),
            Self::Plan(_) => {}
        }
    }

    /// Returns what an action would be done to.
    pub fn subject(&self, world: &World) -> Subject {
        match self {
            Self::Matrix(state) => state.subject(world),
            Self::Plan(state) => state.subject(),
        }
    }

    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        match self {
            Self::Matrix(state) => state.view(sheet, scene),
            Self::Plan(state) => state.view(sheet, scene),
        }
    }
}

/// What a screen may look at while it is drawn.
pub struct Scene<'a> {
    /// The read model.
    pub world: &'a World,
    /// Where we are, what is under way, which keys there are.
    pub model: &'a super::model::Model,
}
