//! The contexts screen, on which the user switches to another context of the kubeconfig or to another namespace of
//! the current context. The screen also shows which of them are read-only.

use super::{Handled, Scene};
use crate::action::Action;
use crate::connect::Known;
use crate::effect::{Answer, Destination, Effect, Ticket};
use crate::filter::{Facts, Filter};
use crate::model::{Level, ScreenRequest, TargetInfo, Turn};
use crate::pen::Sheet;
use crate::rows::{Row, Rows, page};
use crate::text;
use crate::theme::Role;
use crate::widgets::table::{self, Cell, Column, Line, MARGIN, Window, cell};

const COLUMNS: &[Column] = &[
    Column::new("", 1, 90),
    Column::new("CONTEXT", 10, 100),
    Column::new("WRITES", 8, 95),
    Column::new("NAMESPACE", 6, 80),
    Column::new("CLUSTER", 8, 60),
    Column::new("USER", 6, 50),
];

#[derive(Debug)]
pub struct State {
    rows: Rows<Place>,
    ticket: Ticket,
}

/// A row: a context or a namespace to switch to.
#[derive(Debug)]
enum Place {
    Context(Known),
    Namespace(String),
}

impl Place {
    fn name(&self) -> &str {
        match self {
            Self::Context(known) => &known.name,
            Self::Namespace(name) => name,
        }
    }

    fn row(self) -> Row<Self> {
        let (id, facts) = match &self {
            Self::Context(known) => {
                let texts = [&known.name, &known.cluster, &known.namespace, &known.user];
                let texts = texts.into_iter().map(String::as_str);
                let facts = Facts::of_texts(texts.chain([writes(known).0]));
                (format!("context/{}", known.name), facts)
            }
            Self::Namespace(name) => (
                format!("namespace/{name}"),
                Facts::of_texts([name.as_str(), "namespace"]),
            ),
        };
        Row {
            id,
            facts,
            item: self,
        }
    }
}

impl State {
    /// Opens the screen with the current context selected, and requests the namespaces.
    pub fn open(target_info: &TargetInfo, ticket: Ticket, effects: &mut Vec<Effect>) -> Self {
        effects.push(Effect::Namespaces(ticket));
        let mut state = Self {
            rows: Rows::default(),
            ticket,
        };
        state.lay(target_info, Vec::new());
        state.rows.select(&format!("context/{}", target_info.name));
        state
    }

    /// Rebuilds the rows: all contexts, with the namespaces below the current context.
    fn lay(&mut self, target_info: &TargetInfo, namespaces: Vec<String>) {
        let mut places: Vec<Place> = Vec::new();
        let mut below = None;
        for known in &target_info.contexts {
            places.push(Place::Context(known.clone()));
            if known.name == target_info.name {
                below = Some(places.len());
            }
        }
        let at = below.unwrap_or(places.len());
        places.splice(at..at, namespaces.into_iter().map(Place::Namespace));
        self.rows
            .replace(places.into_iter().map(Place::row).collect());
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match answer {
            Answer::Namespaces(found) if ticket == self.ticket => {
                match found {
                    Ok(namespaces) => self.lay(turn.target_info, namespaces),
                    Err(why) => turn.say(
                        Level::Warning,
                        format!(
                            "cannot list namespaces; :ns NAME still switches to a namespace: {why}"
                        ),
                    ),
                }
                None
            }
            other => Some(other),
        }
    }

    pub fn filter(&self) -> &Filter {
        self.rows.filter()
    }

    pub fn set_filter(&mut self, filter: Filter) {
        self.rows.set_filter(filter);
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        let contexts = || {
            self.rows.all().filter_map(|place| match place {
                Place::Context(known) => Some(known),
                Place::Namespace(_) => None,
            })
        };
        let protected = contexts()
            .filter(|known| known.protected && !known.readonly)
            .count();
        let all = contexts().count();
        let mut parts = vec![(text::counted(all, "contexts"), Role::Muted)];
        if all < self.rows.total() {
            let namespaces = self.rows.total() - all;
            parts.push((text::counted(namespaces, "namespaces"), Role::Muted));
        }
        if protected > 0 {
            parts.push((format!("{protected} protected"), Role::Warning));
        }
        parts
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if self.rows.act(action, page(turn.size)) == Handled::Yes {
            return Handled::Yes;
        }
        let Some(place) = self.rows.selected() else {
            return Handled::No;
        };
        let (context, namespace) = match place {
            Place::Context(known) => (Some(known.name.clone()), None),
            Place::Namespace(name) => (None, Some(name.clone())),
        };
        let target_info = turn.target_info;
        match action {
            Action::Open if is_here(place, target_info) => {
                turn.requests.push(ScreenRequest::Close);
                turn.say(Level::Info, format!("{} is the current one", place.name()));
            }
            Action::Open => {
                let there = Destination { context, namespace };
                turn.requests.push(ScreenRequest::Connect(there));
            }
            Action::Copy => {
                turn.effects.push(Effect::Copy(place.name().to_owned()));
                turn.say(Level::Info, format!("copied {}", place.name()));
            }
            Action::CopyCommand => {
                let address = &target_info.address;
                let address = match place {
                    Place::Namespace(name) => address.in_namespace(name),
                    Place::Context(known) if known.name == target_info.name => address.clone(),
                    Place::Context(known) => address.of_other(&known.name, &known.namespace),
                };
                let line = address.bowline("bowline");
                turn.say(Level::Info, format!("copied {line}"));
                turn.effects.push(Effect::Copy(line));
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let target_info = &scene.model.target_info;
        let height = usize::from(sheet.height().saturating_sub(1));
        let (first, seen) = self.rows.window(height);
        let here = sheet.glyphs.ready;
        let lines: Vec<Line> = seen
            .into_iter()
            .map(|(selected, place)| Line {
                cells: cells(place, target_info, here),
                selected,
                marked: false,
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
                    "no kubeconfig with contexts; the target is {}",
                    target_info.name
                ),
                _ => scene.no_match(),
            };
            sheet.line(2).skip(MARGIN).put(&words, Role::Muted);
        }
    }
}

/// Returns whether a row is the context or the namespace that the UI shows now.
fn is_here(place: &Place, target_info: &TargetInfo) -> bool {
    match place {
        Place::Context(known) => known.name == target_info.name,
        Place::Namespace(name) => *name == target_info.namespace,
    }
}

/// Returns the table cells of a row.
fn cells(place: &Place, target_info: &TargetInfo, here: &str) -> Vec<Cell> {
    let is_here = is_here(place, target_info);
    let (sign, role) = match is_here {
        true => (here, Role::Title),
        false => (" ", Role::Text),
    };
    let sign = cell(sign, Role::Good);
    let known = match place {
        Place::Context(known) => known,
        Place::Namespace(name) => return vec![sign, cell(format!("  {name}"), role)],
    };
    let (words, of_writes) = writes(known);
    let namespace = match is_here {
        true => &target_info.namespace,
        false => &known.namespace,
    };
    vec![
        sign,
        cell(&known.name, role),
        cell(words, of_writes),
        cell(namespace, Role::Text),
        cell(&known.cluster, Role::Muted),
        cell(&known.user, Role::Muted),
    ]
}

/// Returns the text that says whether a context allows writes.
fn writes(known: &Known) -> (&'static str, Role) {
    match (known.readonly, known.protected) {
        (true, _) => ("read-only", Role::Warning),
        (false, true) => ("protected", Role::Hold),
        (false, false) => ("pass", Role::Muted),
    }
}
