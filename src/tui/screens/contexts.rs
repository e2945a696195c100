//! Contexts: where one can go, and where writes do not pass.

use super::{Handled, Scene};
use crate::connect::Known;
use crate::tui::action::Action;
use crate::tui::effect::{Destination, Effect};
use crate::tui::filter::{Facts, Filter};
use crate::tui::model::{Ground, Level, Turn, Wish};
use crate::tui::pen::Sheet;
use crate::tui::rows::{Row, Rows, page};
use crate::tui::theme::Role;
use crate::tui::widgets::table::{self, Column, Line, MARGIN, Window, cell};

const COLUMNS: &[Column] = &[
    Column::new("", 1, 90),
    Column::new("CONTEXT", 10, 100),
    Column::new("WRITES", 8, 95),
    Column::new("NAMESPACE", 6, 80),
    Column::new("CLUSTER", 8, 60),
    Column::new("USER", 6, 50),
];

/// The contexts of the kubeconfig.
#[derive(Debug)]
pub struct State {
    rows: Rows<Known>,
}

impl State {
    /// Lists them, with the cursor on where we are.
    pub fn open(ground: &Ground) -> Self {
        let mut rows = Rows::default();
        let all = ground.contexts.iter().map(|known| Row {
            id: known.name.clone(),
            facts: Facts::of_texts([
                known.name.as_str(),
                &known.cluster,
                &known.namespace,
                &known.user,
                writes(known).0,
            ]),
            item: known.clone(),
        });
        rows.replace(all.collect());
        rows.select(&ground.target);
        Self { rows }
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Filter {
        self.rows.filter()
    }

    /// Shows what a filter keeps.
    pub fn set_filter(&mut self, filter: Filter) {
        self.rows.set_filter(filter);
    }

    /// Returns the totals, for the line under the header.
    pub fn totals(&self) -> Vec<(String, Role)> {
        let protected = self
            .rows
            .all()
            .filter(|known| known.protected && !known.readonly)
            .count();
        let mut parts = vec![(format!("{} contexts", self.rows.total()), Role::Muted)];
        if protected > 0 {
            parts.push((format!("{protected} protected"), Role::Warning));
        }
        parts
    }

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if self.rows.act(action, page(turn.size)) == Handled::Yes {
            return Handled::Yes;
        }
        let Some(known) = self.rows.selected() else {
            return Handled::No;
        };
        match action {
            Action::Open if known.name == turn.ground.target => {
                turn.wishes.push(Wish::Close);
                turn.say(Level::Info, format!("{} is where you are", known.name));
            }
            Action::Open => turn.wishes.push(Wish::Connect(Destination {
                context: Some(known.name.clone()),
                namespace: None,
            })),
            Action::Copy => {
                turn.effects.push(Effect::Copy(known.name.clone()));
                turn.say(Level::Info, format!("copied {}", known.name));
            }
            Action::CopyCommand => {
                let line = format!(
                    "bowline --context {}",
                    crate::tui::order::quoted(&known.name)
                );
                turn.say(Level::Info, format!("copied {line}"));
                turn.effects.push(Effect::Copy(line));
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let ground = &scene.model.ground;
        let height = usize::from(sheet.height().saturating_sub(1));
        let (first, seen) = self.rows.window(height);
        let here = sheet.glyphs.ready;
        let lines: Vec<Line> = seen
            .into_iter()
            .map(|(selected, known)| {
                let is_here = known.name == ground.target;
                let (words, role) = writes(known);
                let namespace = if is_here {
                    &ground.namespace
                } else {
                    &known.namespace
                };
                Line {
                    cells: vec![
                        cell(if is_here { here } else { " " }, Role::Good),
                        cell(&known.name, if is_here { Role::Title } else { Role::Text }),
                        cell(words, role),
                        cell(namespace, Role::Text),
                        cell(&known.cluster, Role::Muted),
                        cell(&known.user, Role::Muted),
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
        table::draw(sheet, COLUMNS, &lines, window);
        if lines.is_empty() {
            let words = match self.rows.total() {
                0 => format!(
                    "there is no kubeconfig with contexts; you are in {}",
                    ground.target
                ),
                _ => "nothing matches the filter; esc clears it".to_owned(),
            };
            sheet.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
    }
}

/// Says whether writes pass on a context.
fn writes(known: &Known) -> (&'static str, Role) {
    match (known.readonly, known.protected) {
        (true, _) => ("read-only", Role::Warning),
        (false, true) => ("protected", Role::Hold),
        (false, false) => ("pass", Role::Muted),
    }
}
