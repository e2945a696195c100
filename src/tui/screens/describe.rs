//! The describe screen: one object as YAML, without the fields that the server maintains, with masked Secrets and
//! unpacked content.
//!
//! The user can search in the text with the filter key, and go to the next and previous match. Web addresses are
//! links. A commit id is a link if a line above names its repository.

use std::collections::BTreeMap;

use super::list::kubectl_get;
use super::{Handled, Scene};
use crate::action::{Action, Mode};
use crate::api::openchoreo::release::Revision;
use crate::effect::{Answer, Effect, Object, Ticket};
use crate::engine::world::{Key, World};
use crate::filter::{Facts, Filter, Matcher};
use crate::model::{Level, Subject, TargetInfo, Turn};
use crate::pen::Sheet;
use crate::rows::page;
use crate::text;
use crate::text::quoted;
use crate::theme::Role;

#[derive(Debug)]
pub struct State {
    object: Object,
    namespace: String,
    ticket: Ticket,
    text: Text,
    /// Returns the text that says whether bowline allows writes to a context, and the role of the text.
    top: usize,
    filter: Filter,
    /// The indexes of the lines that match the search of the user.
    found: Vec<usize>,
    /// The index in `found` of the match to which the user went last.
    hit: usize,
    /// The web addresses of commits. The key is the index of the line that names the commit.
    commits: BTreeMap<usize, String>,
}

#[derive(Debug)]
enum Text {
    Reading,
    Lines(Vec<String>),
    Failed(String),
}

impl State {
    /// Opens the screen for an object, and requests the YAML of the object.
    pub fn open(object: Object, turn: &mut Turn<'_>) -> Self {
        let ticket = turn.ticket();
        turn.effects.push(Effect::Describe(ticket, object.clone()));
        Self {
            object,
            namespace: turn.target_info.namespace.clone(),
            ticket,
            text: Text::Reading,
            top: 0,
            filter: Filter::default(),
            found: Vec::new(),
            hit: 0,
            commits: BTreeMap::new(),
        }
    }

    pub fn title(&self) -> String {
        name(&self.object).to_owned()
    }

    pub fn subject(&self, world: &World) -> Subject {
        let key = |name: &str| Key::new(&self.namespace, name);
        match &self.object {
            Object::Pin(name) => world.pin(&key(name)).map(|pin| Subject {
                components: vec![pin.component.clone()],
                environment: Some(pin.environment.clone()),
                release: None,
            }),
            Object::Snapshot(name) => world.snapshot(&key(name)).map(|row| Subject {
                components: vec![row.component.clone()],
                environment: Some(row.environment.clone()),
                release: None,
            }),
            Object::Release(name) => world.release(&key(name)).map(|row| Subject {
                components: row.component.iter().cloned().collect(),
                environment: None,
                release: Some(name.clone()),
            }),
            Object::Entry(_) => None,
        }
        .unwrap_or_default()
    }

    pub fn answer(&mut self, ticket: Ticket, answer: Answer) -> Option<Answer> {
        match answer {
            Answer::Described(described) if ticket == self.ticket => {
                self.text = match described {
                    Ok(text) => {
                        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                        self.commits = commits(&lines);
                        Text::Lines(lines)
                    }
                    Err(why) => Text::Failed(why),
                };
                let filter = std::mem::take(&mut self.filter);
                self.set_filter(filter);
                None
            }
            other => Some(other),
        }
    }

    /// Returns the search for text, which other screens use as their filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Starts a search. Goes to the first match that is visible or below; if there is none, to the first match of
    /// all.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
        let Text::Lines(lines) = &self.text else {
            return;
        };
        self.found.clear();
        if self.filter.is_empty() {
            return;
        }
        let matcher = Matcher::new(&self.filter, &[]);
        let numbered = lines.iter().enumerate();
        let found =
            numbered.filter(|(_, line)| matcher.keeps(&Facts::of_texts([line.as_str()]), false));
        self.found = found.map(|(at, _)| at).collect();
        let here = self
            .found
            .iter()
            .find(|at| **at >= self.top)
            .or(self.found.first());
        let number = |at: &usize| self.found.iter().position(|found| found == at);
        self.hit = here.and_then(number).unwrap_or_default();
        self.top = here.map_or(self.top, |at| at.saturating_sub(2));
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let page = page(turn.size);
        let last = match &self.text {
            Text::Lines(lines) => lines.len().saturating_sub(page.unsigned_abs()),
            Text::Reading | Text::Failed(_) => 0,
        };
        let mut scroll = |by: isize| self.top = self.top.saturating_add_signed(by).min(last);
        match action {
            Action::Up => scroll(-1),
            Action::Down => scroll(1),
            Action::PageUp => scroll(-page),
            Action::PageDown => scroll(page),
            Action::HalfPageUp => scroll(-(page / 2).max(1)),
            Action::HalfPageDown => scroll((page / 2).max(1)),
            Action::Top => self.top = 0,
            Action::Bottom => self.top = last,
            Action::NextHunk | Action::PreviousHunk => {
                let count = self.found.len().max(1);
                self.hit = match action {
                    Action::NextHunk => (self.hit + 1) % count,
                    _ => (self.hit + count - 1) % count,
                };
                match self.found.get(self.hit) {
                    Some(at) => self.top = at.saturating_sub(2),
                    None => {
                        let modes = &[Mode::Diff, Mode::List, Mode::Global];
                        let keys = turn.look.keymap.keys_or_word(modes, Action::Filter);
                        turn.say(Level::Info, format!("no search; {keys} searches"));
                    }
                }
            }
            Action::Copy => {
                if let Text::Lines(lines) = &self.text {
                    turn.effects.push(Effect::Copy(lines.join("\n") + "\n"));
                    turn.say(Level::Info, format!("copied {} lines", lines.len()));
                }
            }
            Action::CopyCommand => {
                let line = command_line(&self.object, turn.target_info);
                turn.say(Level::Info, format!("copied {line}"));
                turn.effects.push(Effect::Copy(line));
            }
            Action::Back if !self.filter.is_empty() => self.set_filter(Filter::default()),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    pub fn totals(&self) -> Vec<(String, Role)> {
        match &self.text {
            Text::Lines(lines) => {
                let mut parts = vec![(text::counted(lines.len(), "lines"), Role::Muted)];
                if !self.filter.is_empty() {
                    parts.push((format!("{} found", self.found.len()), Role::Match));
                }
                parts
            }
            Text::Reading | Text::Failed(_) => Vec::new(),
        }
    }

    pub fn view(&self, sheet: &mut Sheet<'_>, _: &Scene<'_>) {
        let lines = match &self.text {
            Text::Lines(lines) => lines,
            Text::Reading => {
                sheet.line(1).skip(3).put("Loading...", Role::Muted);
                return;
            }
            Text::Failed(why) => {
                let width = usize::from(sheet.width().saturating_sub(4));
                for (row, line) in (1..).zip(crate::widgets::wrap(why, width)) {
                    sheet.line(row).skip(3).put(&line, Role::Error);
                }
                return;
            }
        };
        let height = usize::from(sheet.height());
        let top = self.top.min(lines.len().saturating_sub(height));
        let seen = lines.iter().enumerate().skip(top).take(height);
        for (row, (at, line)) in (0..).zip(seen) {
            let found = self.found.binary_search(&at).is_ok();
            let mut pen = sheet.line(row);
            pen.skip(2);
            let (name, rest) = match (found, key(line)) {
                (true, _) => {
                    pen.put_linking(line, Role::Match);
                    continue;
                }
                (false, Some(split)) => split,
                (false, None) => ("", line.as_str()),
            };
            pen.put(name, Role::Breadcrumb);
            match self.commits.get(&at) {
                Some(url) => pen.link(rest, Role::Text, url),
                None => pen.put_linking(rest, Role::Text),
            };
        }
    }
}

/// Splits a line of YAML after its key and colon; None if the line has no key.
fn key(line: &str) -> Option<(&str, &str)> {
    let bare = line.trim_start_matches([' ', '-']);
    let indent = line.len() - bare.len();
    let length = bare
        .find(": ")
        .or_else(|| bare.strip_suffix(':').map(str::len))?;
    let is_name = bare
        .get(..length)?
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./$\"'".contains(c));
    is_name.then(|| line.split_at(indent + length + 1))
}

/// Finds the lines that name a commit next to a line that names its repository. Returns the web addresses of these
/// commits, by the index of the line.
fn commits(lines: &[String]) -> BTreeMap<usize, String> {
    let value = |line: &str, name: &str| {
        let (key, value) = key(line)?;
        let value = value.trim().trim_matches(['"', '\'']);
        (key.trim_start_matches([' ', '-']) == name).then(|| value.to_owned())
    };
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let mut found = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(Ok(commit)) = value(line, "revision:").map(|text| text.parse::<Revision>()) else {
            continue;
        };
        let above = lines.iter().take(at).rev();
        let mut beside = above.take_while(|other| indent(other) == indent(line));
        let Some(repository) = beside.find_map(|other| value(other, "repository:")) else {
            continue;
        };
        let repository = repository.trim_end_matches('/').trim_end_matches(".git");
        found.insert(at, format!("{repository}/commit/{}", commit.as_str()));
    }
    found
}

fn name(object: &Object) -> &str {
    match object {
        Object::Release(name)
        | Object::Pin(name)
        | Object::Snapshot(name)
        | Object::Entry(name) => name,
    }
}

/// Returns the command line that shows the same object as text.
pub(super) fn command_line(object: &Object, target_info: &TargetInfo) -> String {
    match object {
        Object::Release(name) => {
            target_info.aimed(format!("bowline release show {}", quoted(name)))
        }
        Object::Entry(name) => target_info.aimed(format!("bowline audit show {}", quoted(name))),
        Object::Pin(name) => kubectl_get("releasepins.openchoreo.dev", name, target_info),
        Object::Snapshot(name) => {
            kubectl_get("componentenvsnapshots.openchoreo.dev", name, target_info)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_leads_to_where_its_repository_shows_it() {
        let commit = "a1".repeat(20);
        let text = format!(
            "revision: {commit}\ngitRef:\n  path: a.yaml\n  repository: https://git.example/shop.git\n  revision: {commit}\nother:\n  revision: {commit}\n- repository: \"git@example:shop\"\n  revision: main\n"
        );
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let expected = format!("https://git.example/shop/commit/{commit}");
        assert_eq!(commits(&lines), BTreeMap::from([(4, expected)]));
    }

    #[test]
    fn keys_are_told_from_values() {
        for (line, expected) in [
            ("kind: Release", Some(("kind:", " Release"))),
            ("  spec:", Some(("  spec:", ""))),
            ("  - name: web", Some(("  - name:", " web"))),
            ("  - web", None),
            ("a sentence: with a colon", None),
            ("https://example.com", None),
            ("", None),
        ] {
            assert_eq!(key(line), expected, "{line:?}");
        }
    }
}
