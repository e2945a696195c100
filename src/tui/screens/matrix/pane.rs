//! The pane below the matrix, which describes the selected cell in sentences. The sentences are short, because users
//! read them first during an incident.

use jiff::Timestamp;

use super::{Effective, State};
use crate::api::bowline::audit::Action;
use crate::api::openchoreo::release::Verdict;
use crate::engine::world::{Key, World};
use crate::gitops::tree::LeftOutPin;
use crate::model::TargetInfo;
use crate::pen::Sheet;
use crate::roster::RowSet;
use crate::screens::Scene;
use crate::subjects;
use crate::subjects::release_pin::matrix::{self, Cell, Columns, Health};
use crate::subjects::release_pin::past::{Change, Recorded};
use crate::subjects::release_pin::revisions::Made;
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::workload::rows;
use crate::text;
use crate::theme::Role;
use crate::widgets::wrap;

/// Draws the pane.
pub fn view(state: &State, sheet: &mut Sheet<'_>, scene: &Scene<'_>, roster: &RowSet) {
    let Some((component, environment)) = roster
        .selected()
        .zip(roster.columns().names().get(state.column))
    else {
        return;
    };
    let title = format!("{} in {environment}", component.name);
    sheet.rule(0, &title, Role::Title);
    let width = usize::from(sheet.width().saturating_sub(4));
    if let Some(travel) = &state.travel {
        let then = travel.past.then(scene.world, roster.columns(), travel.at);
        let ran = then.cell(component, state.column);
        let made = then.made(component, state.column);
        let changed = travel.past.at(travel.at);
        let said = past(
            ran,
            made,
            changed,
            travel.at,
            &scene.model.target_info,
            sheet.now,
        );
        put(sheet, width, said);
        return;
    }
    let pin = scene.world.pin_of(component, environment);
    let made = pin.and_then(|pin| state.made.get(&Effective::of(pin, sheet.now)));
    let made = made.map(|made| made.as_ref().map_err(String::as_str));
    let place = (roster.columns(), state.column);
    let said = sentences(sheet, scene, place, component, made);
    put(sheet, width, said);
}

/// Draws sentences below the title of the pane.
fn put(sheet: &mut Sheet<'_>, width: usize, said: Vec<(String, Role)>) {
    let lines = said.iter().flat_map(|(sentence, role)| {
        let lines = wrap(sentence, width).into_iter();
        lines.map(move |line| (line, *role))
    });
    for (row, (line, role)) in (1..).zip(lines) {
        sheet.line(row).skip(3).put_wrapped(&line, width, role);
    }
}

/// The change that made a release effective, or the error from reading this change. None while bowline is still
/// reading.
pub(in crate::screens) type Cause<'m> = Option<Result<&'m Made, &'m str>>;

/// Describes the cell of a component in sentences.
pub(in crate::screens) fn sentences(
    sheet: &Sheet<'_>,
    scene: &Scene<'_>,
    (columns, column): (&Columns, usize),
    component: &Key,
    made: Cause<'_>,
) -> Vec<(String, Role)> {
    let (world, target_info) = (scene.world, &scene.model.target_info);
    let environment = columns.names().get(column).map_or("", |name| &**name);
    if let Some(row) = world.workload(component) {
        return workload(sheet, scene, (columns, column), row);
    }
    let cell = matrix::cell(world, columns, component, column, sheet.now);
    let pin = world.pin_of(component, environment);
    let (Some(cell), Some(pin)) = (cell, pin) else {
        if let Some(pin) = target_info.left_out(&component.name, environment) {
            return vec![(left_out(pin), Role::Unknown)];
        }
        let newest = world.releases_of(component).next();
        let newest = newest.map_or("it has no release yet".to_owned(), |release| {
            format!("its newest release is {}", release.key.name)
        });
        return vec![(
            format!(
                "{} is not deployed in {environment}; {newest}.",
                component.name
            ),
            Role::Muted,
        )];
    };
    let mut said = vec![(what(&cell, made, target_info, sheet.now), Role::Text)];
    said.extend(wrong(&cell, pin, target_info));
    said.extend(holds(&cell, target_info, sheet.now));
    said.push((
        way_back(&cell, world, component, target_info, sheet.now),
        Role::Muted,
    ));
    said.push((made_of(&cell, world, component, pin), Role::Muted));
    said
}

/// Describes the cell of a workload in sentences.
fn workload(
    sheet: &Sheet<'_>,
    scene: &Scene<'_>,
    (columns, column): (&Columns, usize),
    row: &rows::Row,
) -> Vec<(String, Role)> {
    let (world, target_info) = (scene.world, &scene.model.target_info);
    let Some(cell) = subjects::matrix::cell(world, columns, &row.key, column, sheet.now) else {
        let environment = columns.names().get(column).map_or("", |name| &**name);
        let words = format!("{} does not exist in {environment}.", row.key.name);
        return vec![(words, Role::Muted)];
    };
    let current = subjects::workload::matrix::current(world, row);
    let since = cell.since.map(|since| target_info.clock(since, sheet.now));
    let mut what = match current {
        Some(current) => format!("Revision {}: {}", current.number, current.images),
        None => row.images.to_string(),
    };
    what += &since
        .map(|since| format!(", created {since}"))
        .unwrap_or_default();
    if row.paused {
        what += "; its rollouts are paused";
    }
    if let Some(tool) = row.gitops {
        what += &format!("; {} owns it", tool.name());
    }
    let mut said = vec![(what + ".", Role::Text)];
    let role = match cell.health() {
        Health::Ready => None,
        Health::Progressing => Some(Role::Progressing),
        Health::Unknown => Some(Role::Unknown),
        Health::Missing | Health::Degraded => Some(Role::Degraded),
    };
    if let Some(role) = role {
        said.push((failure(cell.health(), ("", &row.why)), role));
    }
    said.extend(holds(&cell, target_info, sheet.now));
    let back = match (&cell.good, target_info.lacks(&row.key.name)) {
        (_, Some(why)) => format!("Its actions are not available: {why}."),
        (Some(good), None) => format!(
            "A rollback restores {}; Kubernetes does not record whether it was healthy.",
            good.label
        ),
        (None, None) => "There is no older revision that a rollback may restore.".to_owned(),
    };
    said.push((back, Role::Muted));
    said
}

/// Describes the effective release: its name, since when it is effective, and which user made it effective.
fn what(cell: &Cell<'_>, made: Cause<'_>, target_info: &TargetInfo, now: Timestamp) -> String {
    let known = made.and_then(Result::ok);
    let since = cell.since.or(known.and_then(|made| made.since));
    let since = since.map(|since| format!(" since {}", target_info.clock(since, now)));
    let mut words = format!("{}{}", cell.label, since.unwrap_or_default());
    match made {
        None => words += " (loading who made it effective)",
        Some(Err(why)) => words += &format!("; cannot read who made it effective: {why}"),
        Some(Ok(Made { cause: None, .. })) => words += "; who made it effective is not recorded",
        Some(Ok(Made {
            cause: Some(cause), ..
        })) => {
            let actor = cause.actor.as_deref().unwrap_or("somebody");
            words += &format!(", {} by {actor}", done(cause.action));
            if let Some(reason) = &cause.reason {
                words += &format!(": \"{reason}\"");
            }
        }
    }
    if let Some(hold) = known.and_then(|made| made.ended.as_ref()) {
        let until = hold.until.as_ref();
        let until = until.map(|until| format!(" at {}", target_info.clock(until.0, now)));
        let until = until.unwrap_or_default();
        words += &format!("; effective since the hold of {} ended{until}", hold.owner);
    }
    if let Some(tool) = cell.gitops {
        words += &format!("; {} owns this ReleasePin", tool.name());
    }
    if let Some(wanted) = cell.wanted {
        words += &format!("; the ReleasePin names {wanted}, but a hold fixes this release");
    }
    if let Some(behind) = cell.behind.filter(|behind| *behind > 0) {
        let plural = if behind == 1 { "release" } else { "releases" };
        words += &format!("; {behind} {plural} behind the previous environment");
    }
    words + "."
}

/// Explains why the release of a cell is unknown: a sparse checkout leaves out the ReleasePin, or
/// bowline cannot read it.
fn left_out(pin: &LeftOutPin) -> String {
    let (component, environment) = (&pin.component, &pin.environment);
    if !pin.problem.is_empty() {
        let why = pin.why();
        return format!("The release of {component} in {environment} is not known: {why}.");
    }
    format!(
        "The ReleasePin of {component} in {environment} is not checked out, so its release is not known; \
         check it out: git sparse-checkout add DIR."
    )
}

/// Returns the word for an action, such as "promoted". Tables show this word next to the release that the action made
/// effective. For a rollback it is "rollback", because this release is the restored one.
pub(in crate::screens) fn word(action: Action) -> &'static str {
    match action {
        Action::Rollback => "rollback",
        Action::Undo => "undo",
        other => done(other),
    }
}

/// Returns the words that say how an action made a release effective, such as "promoted". The caller adds "by" and
/// the user after these words.
pub(in crate::screens) fn done(action: Action) -> &'static str {
    match action {
        Action::Deploy => "deployed",
        Action::AutoDeploy => "auto-deployed",
        Action::Promote => "promoted",
        Action::Rollback => "restored by a rollback",
        Action::Pin => "pinned",
        Action::Unpin => "unpinned",
        Action::Undo => "restored by an undo",
        Action::Edit => "edited",
        Action::MarkBad => "marked bad",
        Action::MarkGood => "marked good",
        Action::Collect => "collected",
        Action::Restore => "restored",
        Action::Gap => "changed (not observed)",
        Action::Checkpoint => "retired",
    }
}

/// Describes the health of a cell, with the reason and the message of the Ready condition; None if the cell is ready.
fn wrong(cell: &Cell<'_>, pin: &Pin, target_info: &TargetInfo) -> Option<(String, Role)> {
    let role = match cell.health() {
        Health::Ready => return None,
        Health::Progressing => Role::Progressing,
        Health::Unknown => Role::Unknown,
        Health::Missing | Health::Degraded => Role::Degraded,
    };
    let words = match (cell.health(), &pin.ready, cell.reason) {
        (Health::Missing, ..) => format!(
            "Missing: release {} does not exist; the running resources stay.",
            cell.release
        ),
        (Health::Unknown, ..) if !target_info.has_controller() && pin.observed.is_none() => {
            "Unknown: a repository has no controller; --context NAME adds the state of its cluster."
                .to_owned()
        }
        (Health::Unknown, ..) => {
            "Unknown: no controller has observed the latest change of the ReleasePin.".to_owned()
        }
        (health, _, Some(reason)) => failure(health, reason),
        (health, Some(ready), None) => format!("{}: {}.", health.word(), ready.message),
        (health, None, None) => format!("{}.", health.word()),
    };
    Some((words, role))
}

/// Describes a failure with its reason and message. Leaves out a reason that only repeats the word for the health.
fn failure(health: Health, (reason, message): (&str, &str)) -> String {
    let word = health.word();
    let reason = match reason.is_empty() || reason == word {
        true => word.to_owned(),
        false => format!("{word} ({reason})"),
    };
    match message.is_empty() {
        true => format!("{reason}."),
        false => format!("{reason}: {message}."),
    }
}

fn holds(cell: &Cell<'_>, target_info: &TargetInfo, now: Timestamp) -> Vec<(String, Role)> {
    let hold = |hold: &crate::api::hold::Hold| {
        let until = match &hold.until {
            Some(until) if until.0 <= now => {
                format!(", expired {}", target_info.clock(until.0, now))
            }
            Some(until) => format!(" until {}", target_info.clock(until.0, now)),
            None => ", without an end".to_owned(),
        };
        let why = hold.reason.as_deref().map(|why| format!(": \"{why}\""));
        let fixes = hold
            .release
            .as_deref()
            .map(|release| format!(", at {release}"));
        let words = format!(
            "Held by {}{until}{}{}.",
            hold.owner,
            fixes.unwrap_or_default(),
            why.unwrap_or_default()
        );
        (words, Role::Hold)
    };
    cell.holds.iter().map(hold).collect()
}

/// Describes the revision that a rollback of the cell would restore.
fn way_back(
    cell: &Cell<'_>,
    world: &World,
    component: &Key,
    target_info: &TargetInfo,
    now: Timestamp,
) -> String {
    let mut words = match &cell.good {
        None => "No earlier good release is known here".to_owned(),
        Some(good) => {
            let ran = good.until.map(|until| {
                let ran = text::age(until.duration_since(good.since).as_secs());
                format!(" (ran {ran}, until {})", target_info.clock(until, now))
            });
            format!("Last good {}{}", good.label, ran.unwrap_or_default())
        }
    };
    let bad: Vec<&str> = world
        .releases_of(component)
        .filter(|release| release.mark == Some(Verdict::Bad))
        .map(|release| &*release.key.name)
        .take(3)
        .collect();
    if !bad.is_empty() {
        words += &format!("; marked bad: {}", bad.join(", "));
    }
    words + "."
}

/// Describes what the release of a cell contains, such as its images.
fn made_of(cell: &Cell<'_>, world: &World, component: &Key, pin: &Pin) -> String {
    let release = world.release(&Key::new(&component.namespace, cell.release));
    let mut parts = Vec::new();
    if let Some(images) = release.and_then(|release| release.images.as_deref()) {
        parts.push(format!("Images {images}"));
    }
    if let Some(size) = release.and_then(|release| release.size) {
        parts.push(format!("release {}", text::bytes(size)));
    }
    let snapshot = pin.snapshot.as_deref();
    let snapshot = snapshot.and_then(|name| world.snapshot(&Key::new(&component.namespace, name)));
    if let Some(size) = snapshot.and_then(|snapshot| snapshot.size) {
        parts.push(format!("snapshot {}", text::bytes(size)));
    }
    if cell.holds.is_empty() {
        parts.push("no hold".to_owned());
    }
    parts.join("; ") + "."
}

/// Describes a cell at a past time, as the audit trail recorded it. Also describes the changes that happened at
/// exactly this time.
fn past(
    ran: Recorded<'_>,
    made: Option<&Change>,
    changed: &[Change],
    at: Timestamp,
    target_info: &TargetInfo,
    now: Timestamp,
) -> Vec<(String, Role)> {
    let moment = target_info.clock(at, now);
    let mut said = Vec::new();
    match ran {
        Recorded::NotYet => {
            let words = format!("At {moment}: not known, the audit trail begins later.");
            said.push((words, Role::Unknown));
        }
        Recorded::Deleted(last) => {
            let last = target_info.clock(last, now);
            let words = format!(
                "At {moment}: not known. Its ReleasePin was deleted at some time after {last}, its last recorded change."
            );
            said.push((words, Role::Unknown));
        }
        Recorded::Nothing => {
            said.push((
                format!("At {moment} nothing was deployed there."),
                Role::Text,
            ));
        }
        Recorded::Ran(cell) => {
            let by = made.map(|change| {
                let did = change.action.map_or("changed", done);
                let actor = change.actor.as_deref().unwrap_or("somebody");
                let why = change.reason.as_deref().map(|why| format!(": \"{why}\""));
                let when = target_info.clock(change.at, now);
                format!(", {did} by {actor} at {when}{}", why.unwrap_or_default())
            });
            let words = format!(
                "At {moment} {} ran there{}.",
                cell.label,
                by.unwrap_or_default()
            );
            said.push((words, Role::Text));
            said.extend(health_then(&cell));
            said.extend(holds(&cell, target_info, at));
        }
    }
    said.extend(changed.iter().map(|change| {
        let did = change.action.map_or("changed", done);
        let actor = change.actor.as_deref().unwrap_or("somebody");
        let environment = change.environment.as_deref().unwrap_or("all environments");
        let to = change.to.as_deref().unwrap_or("nothing");
        let words = format!(
            "At this time: {} in {environment} {did} by {actor}: {to}.",
            change.component.name
        );
        (words, Role::AsOf)
    }));
    said
}

/// Describes the health of a cell at a past time; None if the cell was ready.
fn health_then(cell: &Cell<'_>) -> Option<(String, Role)> {
    let health = cell.health();
    let (words, role) = match health {
        Health::Ready => return None,
        Health::Unknown => ("Its health then is not recorded.".to_owned(), Role::Unknown),
        Health::Progressing => ("Progressing.".to_owned(), Role::Progressing),
        Health::Missing | Health::Degraded => {
            let words = format!("{}; the reason then is not recorded.", health.word());
            (words, Role::Degraded)
        }
    };
    Some((words, role))
}
