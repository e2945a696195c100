//! Draws any screen of a target without a terminal, for runbooks, tickets and documents.
//!
//! bowline opens the screen by the name that users type after `:`, so only screens with such a name are possible. A
//! screenshot confirms no plan, so it changes nothing on the target.

use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use thiserror::Error;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::commands;
use super::effect::{Answer, Effect};
use super::keymap::Keymap;
use super::looks::variable;
use super::model::{Event, Look, Model};
use super::pen;
use super::picture::svg::{DARK, LIGHT, Paper, svg};
use super::picture::{ansi, text};
use super::prompt::Over;
use super::run;
use super::runner::{self, Runner, Session};
use super::theme::{Depth, Theme, available};
use super::update::update;
use super::view::view;
use crate::connect::{self, DataPlanes, Environment, Options};
use crate::engine::world::World;
use crate::resolve::git::Git;
use crate::subjects::release_pin::READ_BY_GC;

/// The time limit for reading the target and preparing the screen together.
const PATIENCE: Duration = Duration::from_secs(30);

/// The interval at which bowline checks whether background work is still running.
const LOOK: Duration = Duration::from_millis(10);

/// The output format of a screenshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    /// Text with colour sequences, for a terminal.
    Ansi,
    Svg,
}

/// The options of a screenshot.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The command that opens the screen, as a user types it after the colon.
    pub screen: String,
    /// The size of the screen: columns and rows.
    pub size: (u16, u16),
    pub form: Form,
    /// The name of the theme; None for the default theme.
    pub theme: Option<String>,
    /// Whether the screenshot contains only ASCII characters.
    pub ascii: bool,
    /// Whether an SVG screenshot has a window frame around the screen.
    pub frame: bool,
}

/// The reasons why bowline cannot make a screenshot.
#[derive(Debug, Error)]
pub enum ScreenshotError {
    #[error(transparent)]
    Connect(#[from] connect::Error),
    #[error("unknown theme {name}: {}", .known.join(", "))]
    Theme {
        name: String,
        /// The names of all themes, for the message.
        known: Vec<String>,
    },
    #[error("cannot show {screen}: {why}")]
    Screen {
        screen: String,
        /// The reason why bowline cannot show the screen, for the message.
        why: String,
    },
    /// The target did not answer before the time limit.
    #[error("the target did not answer within {} s", PATIENCE.as_secs())]
    Slow,
}

/// Draws one screen of a target, with the state that the target has now.
pub async fn screenshot(
    options: &Options,
    environment: &Environment,
    git: Git,
    wanted: &Wanted,
) -> Result<String, ScreenshotError> {
    let (look, paper) = look(wanted, environment)?;
    let connection = connect::connect(options, environment).await?;
    let planes = DataPlanes::of(&connection, options, environment);
    let session = Arc::new(Session::start(connection, git, planes));
    let drawn = draw(&session, options, environment, look, wanted);
    let buffer = tokio::time::timeout(PATIENCE, drawn)
        .await
        .map_err(|_| ScreenshotError::Slow)??;
    let title = wanted.frame.then(|| format!("bowline {}", wanted.screen));
    Ok(match wanted.form {
        Form::Text => text(&buffer),
        Form::Ansi => ansi(&buffer),
        Form::Svg => svg(&buffer, paper, title.as_deref()),
    })
}

/// Loads the theme, the keymap and the character set, and chooses the default colours that fit the theme.
fn look(
    wanted: &Wanted,
    environment: &Environment,
) -> Result<(Look, &'static Paper), ScreenshotError> {
    let directory = environment.config_dir.as_deref();
    let name = wanted.theme.as_deref().unwrap_or("dark");
    let known = available(directory);
    if !known.iter().any(|one| one == name) {
        return Err(ScreenshotError::Theme {
            name: name.to_owned(),
            known,
        });
    }
    let (theme, _) = Theme::load(name, directory);
    let (keymap, _) = Keymap::load("default", directory);
    let glyphs = match wanted.ascii {
        true => &pen::ASCII,
        false => &pen::UNICODE,
    };
    let paper = match name.contains("light") {
        true => &LIGHT,
        false => &DARK,
    };
    // A screenshot can have all colours, because no terminal limits them. `NO_COLOR` turns them off.
    let none = variable(environment, "NO_COLOR").is_some_and(|value| !value.is_empty());
    let depth = if none { Depth::Mono } else { Depth::True };
    let look = Look {
        theme: theme.at(depth),
        keymap,
        glyphs,
        themes: known,
    };
    Ok((look, paper))
}

async fn draw(
    session: &Arc<Session>,
    options: &Options,
    environment: &Environment,
    look: Look,
    wanted: &Wanted,
) -> Result<Buffer, ScreenshotError> {
    let mut versions = session.feed.versions();
    while !session.feed.world().are_known(&READ_BY_GC) {
        // The session keeps the channel open, so this wait cannot fail.
        let _ = versions.changed().await;
    }
    let (sender, answers) = mpsc::unbounded_channel();
    runner::introduce(session, &sender);
    let (width, height) = wanted.size;
    let target_info = run::target_info(session, environment, options);
    let mut camera = Camera {
        model: Model::new(target_info, look, wanted.size),
        runner: Runner::new(session.clone(), sender),
        session: session.clone(),
        answers,
    };
    camera.tell(Event::World(Vec::new()));
    let environments = {
        let world: &World = &session.feed.world();
        world.environment_names(&camera.model.target_info.namespace)
    };
    camera.runner.run(Effect::Rights(0, environments));
    if let Some(work_tree) = runner::look(session).await {
        camera.tell(Event::Answer(0, Answer::WorkTree(Box::new(work_tree))));
    }
    camera.settle().await;
    camera.go(&wanted.screen)?;
    camera.settle().await;
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let world = session.feed.world();
    view(&camera.model, &world, session.now(), &mut buffer);
    Ok(buffer)
}

struct Camera {
    model: Model,
    runner: Runner,
    session: Arc<Session>,
    answers: UnboundedReceiver<Event>,
}

impl Camera {
    fn tell(&mut self, event: Event) {
        let effects = {
            let world = self.session.feed.world();
            update(&mut self.model, &world, self.session.now(), event)
        };
        self.model.was_drawn();
        for effect in effects {
            // Effects that concern the terminal are ignored, because there is no terminal.
            let _ = self.runner.run(effect);
        }
    }

    /// Handles answers of the runner until no work is running.
    async fn settle(&mut self) {
        loop {
            match tokio::time::timeout(LOOK, self.answers.recv()).await {
                Ok(Some(event)) => self.tell(event),
                Ok(None) => return,
                Err(_) if self.runner.is_busy() => {}
                Err(_) => return,
            }
        }
    }

    /// Opens a screen by the command that users type after `:`. Fails if the command does not open a screen.
    fn go(&mut self, screen: &str) -> Result<(), ScreenshotError> {
        let stack = self.model.stack.len();
        let key = |code| Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        self.tell(key(KeyCode::Char(':')));
        self.tell(Event::Paste(screen.to_owned()));
        self.tell(key(KeyCode::Enter));
        let complaint = match &self.model.over {
            Some(Over::Prompt(prompt)) => prompt.complaint.clone(),
            _ => None,
        };
        let said = self.model.notice.as_ref().map(|notice| notice.text.clone());
        let went = self.model.stack.len() > stack || screen == "matrix";
        match complaint.or(said.filter(|_| !went)) {
            None => Ok(()),
            Some(why) => Err(ScreenshotError::Screen {
                screen: screen.to_owned(),
                why: commands::without_keys(screen).unwrap_or(why),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Role;

    #[test]
    fn a_picture_has_no_colours_where_the_user_wants_none() {
        let wanted = Wanted {
            screen: "matrix".to_owned(),
            size: (80, 24),
            form: Form::Ansi,
            theme: None,
            ascii: false,
            frame: false,
        };
        for (value, coloured) in [(None, true), (Some(""), true), (Some("1"), false)] {
            let variables = value.map(|value| ("NO_COLOR".into(), value.into()));
            let environment = Environment {
                variables: variables.into_iter().collect(),
                ..Environment::default()
            };
            let (look, _) = look(&wanted, &environment).unwrap();
            let colour = look.theme.style(Role::Degraded).fg;
            let is_coloured = colour.is_some_and(|colour| colour != ratatui::style::Color::Reset);
            assert_eq!(is_coloured, coloured, "{value:?}");
        }
    }
}
