//! The line of commands: what can be typed after a colon, what it offers, and what it does.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::action::{Action, WORDS};
use super::effect::{Destination, Effect};
use super::model::{Level, Model, Wish};
use super::order::Order;
use super::orders::{self, Wanted};
use super::prompt::Offer;
use super::screens::{Screen, since};
use crate::engine::actions::pin::PinHold;
use crate::engine::actions::rollback::Target;
use crate::engine::desk;
use crate::engine::moment;
use crate::engine::world::World;

/// A command, what follows it and what it does.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
}

/// The commands that are no action under another name.
const COMMANDS: &[Command] = &[
    Command {
        name: "hold",
        arguments: "[FOR]",
        about: "hold what is selected, for 4h or until lifted",
    },
    Command {
        name: "rollback",
        arguments: "[RELEASE]",
        about: "roll back, to a release or to the last good",
    },
    Command {
        name: "context",
        arguments: "NAME",
        about: "go to another context",
    },
    Command {
        name: "ns",
        arguments: "NAME",
        about: "go to another namespace",
    },
    Command {
        name: "theme",
        arguments: "NAME",
        about: "change the colours",
    },
    Command {
        name: "write",
        arguments: "[FOR | off]",
        about: "let writes pass on a protected context, for 15m",
    },
    Command {
        name: "at",
        arguments: "MOMENT",
        about: "the matrix as of 14:02, 20m ago or yesterday 14:02",
    },
    Command {
        name: "since",
        arguments: "MOMENT",
        about: "what changed around the start of an incident",
    },
    Command {
        name: "export",
        arguments: "incident [FILE]",
        about: "write what is on record as a Markdown timeline",
    },
    Command {
        name: "push",
        arguments: "[REMOTE]",
        about: "push the branch of a repository to its remote",
    },
    Command {
        name: "tour",
        arguments: "[off]",
        about: "begin the guided tour, or end it",
    },
    Command {
        name: "q",
        arguments: "",
        about: "leave bowline",
    },
];

/// Lists the commands: name, arguments, what it does.
pub fn listing() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let commands = COMMANDS.iter();
    commands.map(|command| (command.name, command.arguments, command.about))
}

/// Names that people try, for screens and actions.
const ALIASES: &[(&str, Action)] = &[
    ("matrix", Action::GoMatrix),
    ("component", Action::GoComponent),
    ("releases", Action::GoReleases),
    ("rel", Action::GoReleases),
    ("pins", Action::GoPins),
    ("snapshots", Action::GoSnapshots),
    ("revisions", Action::GoRevisions),
    ("history", Action::GoRevisions),
    ("gc", Action::GoCollect),
    ("collect", Action::Collect),
    ("audit", Action::GoAudit),
    ("tasks", Action::GoTasks),
    ("log", Action::GoLog),
    ("contexts", Action::GoContexts),
    ("ctx", Action::GoContexts),
    ("unpin", Action::Unhold),
    ("pin", Action::Hold),
    ("quit", Action::Quit),
];

/// Offers what could be meant.
pub fn offers(model: &Model, _: &World, text: &str) -> Vec<Offer> {
    let (name, rest) = match text.split_once(' ') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    let Some(rest) = rest else {
        let commands = COMMANDS.iter().map(|command| {
            let about = format!("{} {}", command.arguments, command.about);
            Offer::new(command.name, about.trim())
        });
        let aliases = ALIASES
            .iter()
            .map(|(name, action)| Offer::new(name, action.word()));
        let actions = WORDS.iter().map(|(word, _)| Offer::new(word, ""));
        let all = commands.chain(aliases).chain(actions);
        let mut found: Vec<Offer> = all.filter(|offer| offer.text.starts_with(name)).collect();
        found.sort_by(|one, other| one.text.cmp(&other.text));
        found.dedup_by(|one, other| one.text == other.text);
        return found;
    };
    let known: Vec<String> = match name {
        "context" | "ctx" => {
            let contexts = model.ground.contexts.iter();
            contexts.map(|known| known.name.clone()).collect()
        }
        "push" => super::pushing::remotes(model),
        "export" => vec!["incident".to_owned()],
        "write" => vec!["15m".to_owned(), "off".to_owned()],
        "theme" => model.look.themes.clone(),
        "tour" => vec!["off".to_owned()],
        _ => Vec::new(),
    };
    known
        .into_iter()
        .filter(|word| word.starts_with(rest))
        .map(|text| Offer::new(&text, ""))
        .collect()
}

/// Puts an offer where it belongs on the line.
pub fn completed(text: &str, offer: &str) -> String {
    match text.rsplit_once(' ') {
        Some((before, _)) => format!("{before} {offer}"),
        None => format!("{offer} "),
    }
}

/// Runs a line, and says what it wants of the model.
pub fn run(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    line: &str,
    effects: &mut Vec<Effect>,
) -> Vec<Wish> {
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else {
        return Vec::new();
    };
    let rest: Vec<&str> = words.collect();
    let said = |level, text: String| vec![Wish::Say(level, text)];
    match (name, rest.as_slice()) {
        ("q" | "quit", []) => {
            super::update::quit(model, now, effects);
            Vec::new()
        }
        ("q!", []) => {
            effects.push(Effect::Quit);
            Vec::new()
        }
        ("hold" | "pin", [lasting]) => match span(lasting) {
            Err(why) => said(Level::Error, why),
            Ok(lasting) => {
                let subject = model.front().subject(world);
                match subject.place() {
                    None => said(Level::Warning, "one component is held at a time".to_owned()),
                    Some(place) => vec![Wish::Order(Order::Move(desk::Order::Pin(PinHold {
                        component: place.component.to_string(),
                        environment: place.environment.to_string(),
                        until: now.checked_add(lasting).ok(),
                        release: None,
                    })))],
                }
            }
        },
        ("rollback", [release]) => {
            let subject = model.front().subject(world);
            match orders::of(Action::Rollback, &subject, world, &model.ground, now) {
                Ok(Wanted::Order(Order::Move(desk::Order::Rollback {
                    component,
                    environment,
                    hold,
                    ..
                }))) => {
                    vec![Wish::Order(Order::Move(desk::Order::Rollback {
                        component,
                        environment,
                        to: Target::Release((*release).to_owned()),
                        hold,
                    }))]
                }
                Ok(_) => Vec::new(),
                Err(why) => said(Level::Warning, why),
            }
        }
        ("context" | "ctx", [context]) => vec![Wish::Connect(Destination {
            context: Some((*context).to_owned()),
            namespace: None,
        })],
        ("ns" | "namespace", [namespace]) => vec![Wish::Connect(Destination {
            context: None,
            namespace: Some((*namespace).to_owned()),
        })],
        ("theme", [name]) => {
            effects.push(Effect::Theme((*name).to_owned()));
            Vec::new()
        }
        ("write", ["off"]) if model.ground.protected => {
            model.ground.armed = None;
            effects.push(Effect::Arm(Duration::ZERO));
            Vec::new()
        }
        ("write", [lasting]) => write(model, now, lasting, effects),
        ("at", [_, ..]) => match moment::read(&rest.join(" "), now, &model.ground.zone) {
            Err(error) => said(Level::Error, error.to_string()),
            Ok(at) => vec![Wish::Travel(at)],
        },
        ("since", [_, ..]) => match moment::read(&rest.join(" "), now, &model.ground.zone) {
            Err(error) => said(Level::Error, error.to_string()),
            Ok(start) => {
                model.tickets += 1;
                let state = since::State::open(start, model.tickets, effects);
                vec![Wish::Open(Box::new(Screen::Since(Box::new(state))))]
            }
        },
        ("export", ["incident"]) => {
            let at = now.to_zoned(model.ground.zone.clone());
            let file = at.strftime("incident-%Y-%m-%d-%H%M.md").to_string();
            super::opening::export(model, now, file.into(), effects)
        }
        ("export", ["incident", file]) => super::opening::export(model, now, file.into(), effects),
        ("write", []) => write(model, now, "15m", effects),
        ("push", []) => super::pushing::push(model, now, None, effects),
        ("push", [remote]) => super::pushing::push(model, now, Some(remote), effects),
        ("tour", ["off"]) => {
            model.tour = None;
            Vec::new()
        }
        ("tour", []) => {
            model.tour = Some(super::tour::begin(model.tasks.len()));
            Vec::new()
        }
        (name, []) => {
            let alias = ALIASES.iter().find(|(known, _)| *known == name);
            match alias
                .map(|(_, action)| *action)
                .or_else(|| Action::named(name))
            {
                Some(action) => vec![Wish::Run(action)],
                None => said(Level::Error, usage(name)),
            }
        }
        (name, _) => said(Level::Error, usage(name)),
    }
}

/// Says what a command takes, or that there is none.
fn usage(name: &str) -> String {
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => format!(":{name} {}", command.arguments),
        None => format!("there is no command {name}; tab lists those that there are"),
    }
}

/// Lets writes pass on a protected context for a while.
fn write(model: &mut Model, now: Timestamp, lasting: &str, effects: &mut Vec<Effect>) -> Vec<Wish> {
    let say = |level, text: String| vec![Wish::Say(level, text)];
    if !model.ground.protected {
        return match &model.ground.readonly {
            Some(why) => say(
                Level::Error,
                format!("read-only cannot be lifted here: {why}"),
            ),
            None => say(Level::Info, "writes pass here already".to_owned()),
        };
    }
    match span(lasting) {
        Err(why) => say(Level::Error, why),
        Ok(lasting) => {
            model.ground.armed = now.checked_add(lasting).ok();
            effects.push(Effect::Arm(Duration::try_from(lasting).unwrap_or_default()));
            Vec::new()
        }
    }
}

/// Reads how long something lasts.
fn span(text: &str) -> Result<SignedDuration, String> {
    let interval = crate::api::interval::Interval::from(text);
    let lasting = interval.duration().map_err(|error| error.to_string())?;
    SignedDuration::try_from(lasting).map_err(|_| format!("{text} is too long"))
}
