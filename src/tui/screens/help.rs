//! The help screen: all commands, and all keys of the screen from which the user opened the help. Typed text filters
//! the list; enter runs the selected line.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::plan::PlanKey;
use super::{Handled, Scene};
use crate::action::{Action, Mode};
use crate::filter::{self, Facts};
use crate::keymap::Keymap;
use crate::model::{ScreenRequest, Turn};
use crate::pen::{Glyphs, Sheet, UNICODE};
use crate::rows::{Row, Rows, page};
use crate::theme::Role;
use crate::widgets::table::{self, Column, Line, MARGIN, Window, cell};

const COLUMNS: &[Column] = &[
    Column::new("KEYS", 9, 100),
    Column::new("DESCRIPTION", 20, 90),
    Column::new("NAME", 10, 45),
    Column::new("WHERE", 7, 40),
];

/// The filter terms with their descriptions. The help lists them like commands, but no key runs them.
const FILTERS: &[(&str, &str)] = &[
    (
        "/word",
        "rows that contain the word; several words must all match",
    ),
    ("/!word", "rows that do not contain it"),
    ("/re:^cart-", "names that match the regular expression"),
    ("/-l team=payments", "rows with these labels, as in kubectl"),
    (
        "/health:degraded",
        "rows with this health somewhere; tab lists the values",
    ),
    (
        "/failing, /degraded, /ready",
        "rows that are in this state somewhere",
    ),
    (
        "/behind, /behind:>1",
        "rows that are behind the previous environment",
    ),
    (
        "/env:production",
        "rows that are deployed in the environment",
    ),
    ("/release:v1.2*", "rows that run such a release"),
    (
        "/held, /bad, /mine, /fault",
        "held, running a bad release, changed by you, failing",
    ),
];

/// The symbols in the matrix and in lists, with their meanings.
const SYMBOLS: &[(Symbol, &str)] = &[
    (|glyphs| glyphs.ready, "ready"),
    (|glyphs| glyphs.progressing, "the rollout is not finished"),
    (|glyphs| glyphs.degraded, "the rollout failed"),
    (|glyphs| glyphs.suspended, "suspended"),
    (|glyphs| glyphs.unknown, "not known"),
    (|glyphs| glyphs.nothing, "not deployed"),
    (
        |glyphs| glyphs.behind,
        "releases that the previous environment is ahead",
    ),
    (|glyphs| glyphs.held, "held"),
    (
        |glyphs| glyphs.expired,
        "the hold is past its end and has no effect",
    ),
    (|glyphs| glyphs.back, "the release that a rollback restores"),
];

type Symbol = fn(&Glyphs) -> &'static str;

#[derive(Debug)]
pub struct State {
    of: String,
    typed: String,
    rows: Rows<Item>,
}

#[derive(Debug)]
struct Item {
    keys: String,
    /// The symbol that the line explains; None if the line explains a key or a command.
    symbol: Option<Symbol>,
    about: String,
    name: String,
    mode: &'static str,
    runs: Runs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Runs {
    Action(Action),
    Command(&'static str),
    Nothing,
}

impl State {
    /// Opens the help for a screen with this title and these modes. Leaves out the actions for which `lacks` returns
    /// true. For a plan, lists only the keys that the plan accepts now.
    pub fn open(
        of: String,
        keymap: &Keymap,
        modes: &[Mode],
        lacks: &dyn Fn(Action) -> bool,
        plan: Option<&[PlanKey]>,
    ) -> Self {
        let mut items: Vec<Item> = Vec::new();
        for (at, mode) in modes.iter().enumerate() {
            // If an earlier mode binds the same key, only the binding of the earlier mode is listed.
            let mode_and_earlier = modes.get(..=at).unwrap_or_default();
            let earlier = modes.get(..at).unwrap_or_default();
            let hidden = keymap.listing(earlier).len();
            for (keys, action, about) in keymap.listing(mode_and_earlier).into_iter().skip(hidden) {
                if lacks(action) {
                    continue;
                }
                let taken = plan.map(|keys| keys.iter().find(|key| key.action == action));
                let about = match taken {
                    Some(Some(key)) => key.does,
                    Some(None) if !action.is_everywhere() => continue,
                    Some(None) | None => about,
                };
                let known = items
                    .iter_mut()
                    .find(|item| item.runs == Runs::Action(action));
                match known {
                    Some(item) => {
                        item.keys += &format!(", {keys}");
                    }
                    None => items.push(Item {
                        keys,
                        symbol: None,
                        about: about.to_owned(),
                        name: action.word().to_owned(),
                        mode: place(*mode),
                        runs: Runs::Action(action),
                    }),
                }
            }
        }
        for (name, arguments, about) in crate::commands::listing() {
            items.push(Item {
                keys: format!(":{name} {arguments}").trim_end().to_owned(),
                symbol: None,
                about: about.to_owned(),
                name: String::new(),
                mode: "command",
                runs: Runs::Command(name),
            });
        }
        for (text, about) in FILTERS {
            items.push(Item {
                keys: (*text).to_owned(),
                symbol: None,
                about: (*about).to_owned(),
                name: String::new(),
                mode: "filter",
                runs: Runs::Nothing,
            });
        }
        for (symbol, about) in SYMBOLS {
            items.push(Item {
                keys: symbol(&UNICODE).to_owned(),
                symbol: Some(*symbol),
                about: (*about).to_owned(),
                name: String::new(),
                mode: "symbol",
                runs: Runs::Nothing,
            });
        }
        let rows = items.into_iter().map(|item| Row {
            id: format!("{} {}", item.mode, item.keys),
            facts: Facts::of_texts([item.keys.as_str(), &item.about, &item.name, item.mode]),
            item,
        });
        let mut list = Rows::default();
        list.replace(rows.collect());
        Self {
            of,
            typed: String::new(),
            rows: list,
        }
    }

    /// Returns the title of the screen whose keys the help lists, and the number of matching lines.
    pub fn totals(&self) -> Vec<(String, Role)> {
        vec![
            (format!("of the {} screen", self.of), Role::Muted),
            (
                format!("{} of {}", self.rows.len(), self.rows.total()),
                Role::Muted,
            ),
        ]
    }

    /// Adds a typed character to the search text, or removes its last character.
    pub fn key(&mut self, key: KeyEvent) -> Handled {
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match key.code {
            KeyCode::Char(c) if plain => self.typed.push(c),
            KeyCode::Backspace if plain => {
                self.typed.pop();
            }
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => self.typed.clear(),
            _ => return Handled::No,
        }
        self.narrow();
        Handled::Yes
    }

    pub fn paste(&mut self, text: &str) -> Handled {
        self.typed += &crate::text::line(text);
        self.narrow();
        Handled::Yes
    }

    fn narrow(&mut self) {
        // The search has no operators, because a user searches for keys such as `/` or `!`.
        let words = self.typed.split_whitespace();
        let terms = words.map(|word| filter::Term::new(filter::Ask::Word(word.to_owned())));
        self.rows.set_filter(filter::Filter {
            terms: terms.collect(),
        });
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::Back if !self.typed.is_empty() => {
                self.typed.clear();
                self.narrow();
            }
            Action::Back | Action::Interrupt => turn.requests.push(ScreenRequest::Close),
            Action::Confirm | Action::Open => {
                let Some(item) = self.rows.selected() else {
                    return Handled::Yes;
                };
                turn.requests.push(ScreenRequest::Close);
                match item.runs {
                    Runs::Action(action) => turn.requests.push(ScreenRequest::Run(action)),
                    Runs::Command(name) => {
                        turn.requests.push(ScreenRequest::Type(format!("{name} ")))
                    }
                    Runs::Nothing => turn.requests.push(ScreenRequest::Run(Action::Filter)),
                }
            }
            action => return self.rows.act(action, page(turn.size)),
        }
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let caret = sheet.glyphs.caret;
        let mut pen = sheet.line(0);
        pen.skip(1)
            .put("find ", Role::Prompt)
            .put(&self.typed, Role::Text)
            .put(caret, Role::Prompt);
        if self.typed.is_empty() {
            pen.skip(1)
                .put("type to filter, enter runs the selected entry", Role::Muted);
        }
        let height = sheet.height().saturating_sub(1);
        let mut below = sheet.rows(1, height);
        let (first, seen) = self.rows.window(usize::from(height.saturating_sub(1)));
        let unwritable = scene.model.target_info.unwritable(below.now);
        let lines: Vec<Line> = seen
            .into_iter()
            .map(|(selected, item)| {
                let keys = item.symbol.map(|symbol| symbol(below.glyphs));
                // The list contains actions that are not allowed now, too: dimmed, with the reason.
                let refused = match item.runs {
                    Runs::Action(action) if action.plans() => unwritable,
                    _ => None,
                };
                let (key, about) = match refused {
                    None => (Role::Key, Role::Text),
                    Some(_) => (Role::Muted, Role::Muted),
                };
                let mut words = cell(&item.about, about);
                words.extend(refused.map(|why| (format!("  (read-only: {why})"), Role::Warning)));
                Line {
                    cells: vec![
                        cell(keys.unwrap_or(&item.keys), key),
                        words,
                        cell(&item.name, Role::Muted),
                        cell(item.mode, Role::Muted),
                    ],
                    selected,
                    marked: false,
                }
            })
            .collect();
        let window = Window {
            first,
            count: self.rows.len(),
        };
        table::draw(&mut below, COLUMNS, &lines, window);
        if lines.is_empty() {
            let keys = scene.keys(Action::Back);
            let words = format!("no key and no command matches; {keys} clears the filter");
            below.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
    }
}

/// Returns the name of the screens to which a mode applies.
fn place(mode: Mode) -> &'static str {
    match mode {
        Mode::Global => "everywhere",
        Mode::List => "lists",
        Mode::Matrix => "matrix",
        Mode::Diff => "diff",
        Mode::Plan => "plan",
        Mode::Text => "text",
    }
}
