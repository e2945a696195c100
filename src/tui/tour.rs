//! The guided tour of the demo: a few sentences at the bottom of the screen. Each step ends when the user does what
//! its text says.
//!
//! The tour never blocks a key. It observes the user's actions and the front screen, and stays at its step while the
//! user does something else. The sentences name the keys of the user's keymap.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use ratatui::layout::Rect;

use super::action::{Action, Mode};
use super::model::{Level, Model};
use super::pen::Sheet;
use super::screens::Screen;
use super::theme::Role;
use super::update::say;
use crate::text;

/// The minimum number of terminal rows with which the tour is shown.
const LEAST: u16 = 17;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tour {
    /// The index of the current step.
    step: usize,
    /// The number of plans that the user had confirmed before the current step started.
    confirmed: usize,
    /// The user's last action during the tour; None before the first one.
    acted: Option<Action>,
}

/// A condition on the state of the UI.
type Looks = fn(&Seen<'_>) -> bool;

/// One step of the tour: its text, and the condition that ends the step.
struct Step {
    title: &'static str,
    /// The text of the step. In place of an action in braces, the tour shows the keys of this action.
    words: &'static str,
    done: Looks,
    /// A condition and a text. If the condition holds, the user has left the path of this step, and the tour shows
    /// this text instead of `words`.
    astray: Option<(Looks, &'static str)>,
}

/// The state of the UI that the condition of a step checks.
struct Seen<'m> {
    model: &'m Model,
    tour: &'m Tour,
}

impl Seen<'_> {
    fn is_on_matrix(&self) -> bool {
        self.model.stack.len() == 1 && self.model.over.is_none()
    }

    /// Returns whether the matrix is the front screen and the last action was not Diff.
    fn is_back(&self) -> bool {
        self.is_on_matrix() && self.tour.acted.is_some_and(|action| action != Action::Diff)
    }

    fn acted(&self, actions: &[Action]) -> bool {
        let acted = self.tour.acted;
        acted.is_some_and(|action| actions.contains(&action))
    }

    /// Returns whether the front screen is the plan of a command with this verb.
    fn is_planned(&self, verb: &str) -> bool {
        matches!(self.model.front(), Screen::Plan(plan) if plan.command.verb() == verb)
    }

    /// Returns whether the user confirmed a command with this verb during this step.
    fn is_confirmed(&self, verb: &str) -> bool {
        let mut since = self.model.tasks.iter().skip(self.tour.confirmed);
        since.any(|task| task.command.verb() == verb)
    }
}

/// The actions that move the cursor.
const MOVES: [Action; 6] = [
    Action::Left,
    Action::Right,
    Action::Up,
    Action::Down,
    Action::NextFault,
    Action::PreviousFault,
];

const STEPS: &[Step] = &[
    Step {
        title: "the matrix",
        words: "Each row is a component, each column an environment, in the order of the pipeline. The \
                cursor is on the cell that fails. The pane below explains it: the release, since when, who \
                deployed it and why, and the release that a rollback would restore. Move with {left} {down} \
                {up} {right}; {next-fault} returns to the failing cell.",
        done: |seen| seen.acted(&MOVES) || seen.acted(&[Action::Diff, Action::Rollback]),
        astray: None,
    },
    Step {
        title: "the difference",
        words: "Return to the failing cell ({next-fault}) and press {diff} to compare it with the previous \
                environment.",
        done: |seen| seen.acted(&[Action::Diff]) || seen.is_planned("rollback"),
        astray: None,
    },
    Step {
        title: "a diff",
        words: "bowline compares object by object, then line by line. It hides noise and masks Secrets. \
                {next-hunk} and {previous-hunk} move between changes. {back} goes back, here and on every \
                screen.",
        done: |seen| seen.is_back() || seen.is_planned("rollback"),
        astray: None,
    },
    Step {
        title: "a rollback",
        words: "The hotfix works in staging and crashes in production. Put the cursor on it \
                ({next-fault}) and press {rollback} to plan a rollback to the last good release. A plan \
                changes nothing until you confirm it.",
        done: |seen| seen.is_planned("rollback"),
        astray: None,
    },
    Step {
        title: "the confirmation",
        words: "The plan shows the changes object by object, and why it skips the release in between. \
                Production needs a stronger confirmation: its name and a reason. Type  @environment INC-42 \
                rolled back  and press {confirm}. {back} cancels, and nothing changes.",
        done: |seen| seen.is_confirmed("rollback"),
        astray: Some((
            |seen| !seen.is_planned("rollback"),
            "No plan is open, and nothing was changed. Press {rollback} on the failing cell to open the plan, \
             or {tour-next} to skip this step.",
        )),
    },
    Step {
        title: "the rollout",
        words: "The audit trail records the change, and this screen follows the rollout until all objects \
                are ready. A hold in your name stops automation from reverting it; {undo} plans the reverse. \
                {back} leaves the rollout running; {go-tasks} lists the tasks.",
        done: |seen| seen.is_back(),
        astray: None,
    },
    Step {
        title: "a promotion",
        words: "Now promote. Put the cursor on a component that is ready in staging, such as cart, and \
                press {promote}: bowline plans its release for the next environment. You see right away if a \
                rule blocks it.",
        done: |seen| seen.is_planned("promote"),
        astray: None,
    },
    Step {
        title: "a hold",
        words: "Confirm the promotion, or cancel it with {back}. Then press {pin} on any cell to pin it, \
                and choose how long: the hold stops promotions and automation until it ends or {unpin} \
                removes it. Colleagues work here too; the line above the keys shows their changes.",
        done: |seen| seen.is_planned("pin"),
        astray: None,
    },
    Step {
        title: "the audit trail",
        words: "Confirm the hold, or cancel it with {back}. Then {go-audit} shows who changed what, when \
                and why, including your changes. bowline detects every rewritten entry.",
        done: |seen| seen.acted(&[Action::GoAudit]),
        astray: None,
    },
    Step {
        title: "help",
        words: "{help} lists the keys of the current screen and runs them. {command} takes commands, \
                {filter} filters the rows, and {jump} jumps to any object by a part of its name.",
        done: |seen| seen.acted(&[Action::Help]),
        astray: None,
    },
    Step {
        title: "the end",
        words: "This is the end of the tour. You can break anything here: the demo uses a temporary store and \
                deletes it when you quit with {quit} on the matrix. {tour-off} closes the tour; :tour starts \
                it again.",
        done: |seen| seen.acted(&[Action::TourNext]),
        astray: None,
    },
];

/// Goes to the next step if the condition of the current step holds. After the last step, ends the tour.
pub fn follow(model: &mut Model) {
    let Some(mut tour) = model.tour.take() else {
        return;
    };
    while let Some(step) = STEPS.get(tour.step) {
        let seen = Seen { model, tour: &tour };
        if !(step.done)(&seen) {
            break;
        }
        tour.go_to(tour.step + 1, model.tasks.len());
    }
    tour.acted = None;
    model.tour = (tour.step < STEPS.len()).then_some(tour);
}

/// Records the user's action. Returns true if the action controls the tour (next, back, off), because nobody else
/// must handle it then.
pub fn steer(model: &mut Model, now: Timestamp, action: Action) -> bool {
    let confirmed = model.tasks.len();
    let steers = matches!(
        action,
        Action::TourNext | Action::TourBack | Action::TourOff
    );
    match (&mut model.tour, action) {
        (_, Action::TourOff) => model.tour = None,
        (None, Action::TourNext | Action::TourBack) => {
            say(model, now, Level::Info, "no tour is open; :tour starts it");
        }
        (Some(tour), Action::TourNext) => {
            let next = tour.step + 1;
            tour.go_to(next, confirmed);
            if next >= STEPS.len() {
                model.tour = None;
            }
        }
        (Some(tour), Action::TourBack) => tour.go_to(tour.step.saturating_sub(1), confirmed),
        (Some(tour), action) => tour.acted = Some(action),
        (None, _) => {}
    }
    steers
}

/// Starts the tour, or shows a warning if the terminal has too few rows.
pub fn start(model: &mut Model, now: Timestamp) {
    let (_, rows) = model.size;
    if rows < LEAST {
        let words = format!("the tour needs {LEAST} rows, this terminal has {rows}");
        return say(model, now, Level::Warning, words);
    }
    model.tour = Some(begin(model.tasks.len()));
}

/// Creates a tour at its first step. `confirmed` is the number of plans that the user has confirmed before the tour.
pub fn begin(confirmed: usize) -> Tour {
    Tour {
        confirmed,
        ..Tour::default()
    }
}

impl Tour {
    fn go_to(&mut self, step: usize, confirmed: usize) {
        (self.step, self.confirmed) = (step, confirmed);
    }

    fn words(&self, model: &Model) -> &'static str {
        let Some(step) = STEPS.get(self.step) else {
            return "";
        };
        let seen = Seen { model, tour: self };
        match step.astray {
            Some((is_astray, instead)) if is_astray(&seen) => instead,
            _ => step.words,
        }
    }
}

/// A piece of a sentence, as (text, whether the text is a key).
type Piece = (String, bool);

/// Returns the text of the current step, wrapped to this width, with keys in place of actions.
fn lines(model: &Model, tour: &Tour, width: usize) -> Vec<Vec<Piece>> {
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut used = 0;
    for word in tour.words(model).split_whitespace() {
        let word = pieces(model, word);
        let wide: usize = word.iter().map(|(piece, _)| text::width(piece)).sum();
        let gap = usize::from(used > 0);
        if used + gap + wide > width && used > 0 {
            lines.push(Vec::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push((" ".to_owned(), false));
                used += 1;
            }
            line.extend(word);
            used += wide;
        }
    }
    lines
}

/// Splits a word of the text into pieces. Replaces an action in braces by its keys, and `@environment` by the name of
/// the environment.
fn pieces(model: &Model, word: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        let (named, behind) = after.split_once('}').unwrap_or((after, ""));
        if !before.is_empty() {
            pieces.push((before.to_owned(), false));
        }
        pieces.push((key(model, named), true));
        rest = behind;
    }
    if rest == "@environment" {
        let place = match model.front() {
            Screen::Plan(plan) => plan.subject().environment,
            _ => None,
        };
        pieces.push((
            place.map_or("production".to_owned(), |name| name.to_string()),
            true,
        ));
    } else if !rest.is_empty() {
        pieces.push((rest.to_owned(), false));
    }
    pieces
}

/// Returns the keys of an action on the front screen, or else on the matrix, a diff or a plan. If no key is bound to
/// the action, returns its command.
fn key(model: &Model, word: &str) -> String {
    let keymap = &model.look.keymap;
    let everywhere: [&[Mode]; 4] = [
        model.front().modes(),
        &[Mode::Matrix, Mode::List, Mode::Global],
        &[Mode::Diff, Mode::Global],
        &[Mode::Plan, Mode::Text],
    ];
    let bound = Action::named(word).and_then(|action| {
        let mut modes = everywhere.iter();
        modes.find_map(|modes| keymap.keys_for(modes, action))
    });
    bound.unwrap_or_else(|| format!(":{word}"))
}

/// Returns the number of rows that the tour needs; 0 if no tour is running or the terminal has too few rows.
pub fn height(model: &Model, width: u16, height: u16) -> u16 {
    let Some(tour) = model.tour.as_ref().filter(|_| height >= LEAST) else {
        return 0;
    };
    let lines = lines(model, tour, usize::from(width.saturating_sub(6))).len();
    let rows = u16::try_from(lines + 1).unwrap_or(u16::MAX);
    rows.min((height / 4).max(4))
}

pub fn view(sheet: &mut Sheet<'_>, model: &Model) {
    let Some(tour) = &model.tour else {
        return;
    };
    let title = STEPS.get(tour.step).map_or("", |step| step.title);
    let place = format!("tour {} of {}: {title}", tour.step + 1, STEPS.len());
    sheet.rule(0, &place, Role::Prompt);
    let steering = [
        (Action::TourBack, "back"),
        (Action::TourNext, "on"),
        (Action::TourOff, "end the tour"),
    ];
    let steering: Vec<(String, &str)> = steering
        .into_iter()
        .map(|(action, does)| (key(model, action.word()), does))
        .collect();
    let wide: usize = steering
        .iter()
        .map(|(key, does)| text::width(key) + text::width(does) + 3)
        .sum();
    let wide = u16::try_from(wide).unwrap_or(u16::MAX);
    let start = sheet.width().saturating_sub(wide.saturating_add(2));
    if usize::from(start) > text::width(&place) + 8 {
        let area = Rect {
            x: sheet.area.x + start,
            width: wide,
            ..sheet.area
        };
        let mut corner = sheet.part(area);
        let mut pen = corner.line(0);
        for (key, does) in steering {
            pen.put(" ", Role::Text)
                .put(&key, Role::Key)
                .put(" ", Role::Text)
                .put(does, Role::KeyDescription)
                .put(" ", Role::Text);
        }
    }
    let width = usize::from(sheet.width().saturating_sub(6));
    for (row, line) in (1..).zip(lines(model, tour, width)) {
        let mut pen = sheet.line(row);
        pen.skip(3);
        for (piece, is_key) in line {
            pen.put(&piece, if is_key { Role::Key } else { Role::Text });
        }
    }
}

/// Returns the texts of all steps, each with the title of its step, for a test that checks the wording.
pub(super) fn texts() -> impl Iterator<Item = (String, String)> {
    STEPS.iter().flat_map(|step| {
        let words = [Some(step.words), step.astray.map(|(_, words)| words)];
        let texts = words.into_iter().flatten();
        texts.map(|words| (format!("tour: {}", step.title), words.to_owned()))
    })
}
