//! The command prompt, which opens with a colon: completes and runs the typed commands.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::action::{Action, WORDS};
use super::effect::{Destination, Effect};
use super::from_keys::{self, Wanted};
use super::model::{Level, Model, ScreenRequest};
use super::prompt::{Offer, Over};
use super::screens::{Screen, is_bad, since};
use crate::engine::audit::Span;
use crate::engine::time_input;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::service;
use crate::text;

/// A command of the prompt, with its arguments, and with a description for the help screen.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
}

impl Command {
    fn needs_argument(&self) -> bool {
        !self.arguments.is_empty() && !self.arguments.starts_with('[')
    }
}

/// The commands that have arguments or that run no [`Action`]. For all other actions, the prompt accepts the word of
/// the action as a command.
const COMMANDS: &[Command] = &[
    Command {
        name: "pin",
        arguments: "[FOR | UNTIL]",
        about: "pin for 4h, until 18:00, or without an end",
    },
    Command {
        name: "hold",
        arguments: "[FOR | UNTIL]",
        about: "the same as :pin",
    },
    Command {
        name: "promote",
        arguments: "[ENVIRONMENT]",
        about: "promote to ENVIRONMENT [default: the next environment]",
    },
    Command {
        name: "deploy",
        arguments: "[RELEASE]",
        about: "deploy RELEASE [default: a new release] into this environment",
    },
    Command {
        name: "rollback",
        arguments: "[RELEASE]",
        about: "roll back to RELEASE [default: the last good release]",
    },
    Command {
        name: "context",
        arguments: "NAME",
        about: "switch to another context",
    },
    Command {
        name: "ns",
        arguments: "NAME",
        about: "switch to another namespace",
    },
    Command {
        name: "filter",
        arguments: "[WORDS]",
        about: "filter the rows of this screen",
    },
    Command {
        name: "audit",
        arguments: "[WORDS]",
        about: "open the audit trail, filtered by WORDS",
    },
    Command {
        name: "theme",
        arguments: "NAME",
        about: "change the theme",
    },
    Command {
        name: "write",
        arguments: "[FOR | off]",
        about: "allow writes on a protected context for this long [default: 15m]",
    },
    Command {
        name: "at",
        arguments: "TIME",
        about: "show the matrix at a past time: 14:02, 20m ago, yesterday 14:02",
    },
    Command {
        name: "since",
        arguments: "TIME",
        about: "list the changes before and after the start of an incident",
    },
    Command {
        name: "export",
        arguments: "incident [START [END]] [FILE]",
        about: "write the audit trail as a Markdown timeline",
    },
    Command {
        name: "push",
        arguments: "[REMOTE]",
        about: "push the branch with the new commits",
    },
    Command {
        name: "tour",
        arguments: "[off]",
        about: "start or end the guided tour",
    },
    Command {
        name: "q",
        arguments: "",
        about: "leave bowline",
    },
];

/// Returns all commands as (name, arguments, description).
pub fn listing() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let commands = COMMANDS.iter();
    commands.map(|command| (command.name, command.arguments, command.about))
}

/// Further names of actions that the prompt accepts, because users try them.
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

/// Returns the completions of the typed text. If the completions are namespaces, also adds an effect that requests
/// the namespaces.
pub fn offers(
    model: &mut Model,
    world: &World,
    text: &str,
    effects: &mut Vec<Effect>,
) -> Vec<Offer> {
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
            let contexts = model.target_info.contexts.iter();
            contexts.map(|known| known.name.clone()).collect()
        }
        "ns" | "namespace" => {
            if let Some(Over::Prompt(prompt)) = &mut model.over
                && model.target_info.namespaces.is_empty()
                && !std::mem::replace(&mut prompt.asked, true)
            {
                model.tickets += 1;
                effects.push(Effect::Namespaces(model.tickets));
            }
            model.target_info.namespaces.clone()
        }
        "rollback" | "deploy" => releases(model, world),
        "promote" => world.environment_names(&model.target_info.namespace),
        "hold" | "pin" => ["1h", "4h", "8h", "24h", "7d"].map(str::to_owned).to_vec(),
        "push" => super::push::remotes(model),
        "export" => vec!["incident".to_owned()],
        "write" => vec!["15m".to_owned(), "off".to_owned()],
        "theme" => model.look.themes.clone(),
        "tour" => vec!["off".to_owned()],
        _ => Vec::new(),
    };
    let namespace = &model.target_info.namespace;
    let about = |word: &str| match matches!(name, "rollback" | "deploy") {
        true if is_bad(world, namespace, word) => "marked bad",
        _ => "",
    };
    let fitting = known.iter().filter(|word| word.starts_with(rest));
    fitting.map(|word| Offer::new(word, about(word))).collect()
}

/// The maximum number of releases in a completion list.
const OFFERED: usize = 200;

/// Returns the release names of the selected components, or of all components of the namespace if none is selected.
/// The newest release of each component comes first.
pub fn releases(model: &Model, world: &World) -> Vec<String> {
    let namespace = &model.target_info.namespace;
    let selected = model.front().subject(world).components;
    let components: Vec<Key> = match selected.is_empty() {
        true => {
            let all = world.components();
            all.filter(|key| *key.namespace == **namespace)
                .cloned()
                .collect()
        }
        false => selected
            .iter()
            .map(|name| Key::new(namespace, name))
            .collect(),
    };
    let releases = components
        .iter()
        .flat_map(|component| world.releases_of(component));
    let names = releases.map(|release| release.key.name.to_string());
    names.take(OFFERED).collect()
}

/// Replaces the last word of the text by the chosen completion.
pub fn completed(text: &str, offer: &str) -> String {
    match text.rsplit_once(' ') {
        Some((before, _)) => format!("{before} {offer}"),
        None => offer.to_owned(),
    }
}

/// Runs a line of the command prompt. Returns requests to the model, for example to open a screen.
pub fn run(
    model: &mut Model,
    world: &World,
    now: Timestamp,
    line: &str,
    effects: &mut Vec<Effect>,
) -> Vec<ScreenRequest> {
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else {
        return Vec::new();
    };
    let rest: Vec<&str> = words.collect();
    let said = |level, text: String| vec![ScreenRequest::Say(level, text)];
    if let Screen::Matrix(matrix) = model.front()
        && matches!(name, "hold" | "pin" | "promote" | "deploy" | "rollback")
        && let Some(why) = matrix.refuses_in_past(&model.look.keymap, "where you can plan")
    {
        return said(Level::Warning, why);
    }
    match (name, rest.as_slice()) {
        ("q" | "quit", []) => {
            super::update::quit(model, now, effects);
            Vec::new()
        }
        ("q!", []) => {
            effects.push(Effect::Quit);
            Vec::new()
        }
        ("hold" | "pin", [_, ..]) => match until(&rest.join(" "), now, model) {
            Err(why) => said(Level::Error, why),
            Ok(until) => {
                let subject = model.front().subject(world);
                let subject = from_keys::deployed(&subject, world, &model.target_info);
                match from_keys::hold(&subject, Some(until)) {
                    Ok(command) => vec![ScreenRequest::Plan(command)],
                    Err(why) => said(Level::Warning, why),
                }
            }
        },
        ("promote", [environment]) => {
            let subject = model.front().subject(world);
            match from_keys::promote_to(&subject, environment) {
                Ok(command) => vec![ScreenRequest::Plan(command)],
                Err(why) => said(Level::Warning, why),
            }
        }
        ("deploy", [release]) => {
            let subject = model.front().subject(world);
            match from_keys::deploy(&subject, Some(release), world, &model.target_info) {
                Ok(Wanted::Command(command)) => vec![ScreenRequest::Plan(command)],
                Ok(Wanted::Choice(choice)) => vec![ScreenRequest::Choose(choice)],
                Err(why) => said(Level::Warning, why),
            }
        }
        ("rollback", [release]) => {
            let subject = model.front().subject(world);
            match from_keys::of(Action::Rollback, &subject, world, &model.target_info, now) {
                Ok(Wanted::Command(service::Command::Change(
                    planner::ActionRequest::Rollback {
                        component,
                        environment,
                        hold,
                        ..
                    },
                ))) => {
                    vec![ScreenRequest::Plan(service::Command::Change(
                        planner::ActionRequest::Rollback {
                            component,
                            environment,
                            to: Target::Release((*release).to_owned()),
                            hold,
                        },
                    ))]
                }
                Ok(_) => Vec::new(),
                Err(why) => said(Level::Warning, why),
            }
        }
        ("context" | "ctx", [context]) => vec![ScreenRequest::Connect(Destination {
            context: Some((*context).to_owned()),
            namespace: None,
        })],
        ("ns" | "namespace", [namespace]) => vec![ScreenRequest::Connect(Destination {
            context: None,
            namespace: Some((*namespace).to_owned()),
        })],
        ("theme", [name]) => {
            effects.push(Effect::Theme((*name).to_owned()));
            Vec::new()
        }
        ("write", ["off"]) if model.target_info.protected => {
            model.target_info.armed = None;
            effects.push(Effect::Arm(Duration::ZERO));
            Vec::new()
        }
        ("write", [lasting]) => write(model, now, lasting, effects),
        ("at", [_, ..]) => match time_input::read(&rest.join(" "), now, &model.target_info.zone) {
            Err(error) => said(Level::Error, error.to_string()),
            Ok(at) => vec![ScreenRequest::Travel(at)],
        },
        ("since", [_, ..]) => match time_input::read(&rest.join(" "), now, &model.target_info.zone)
        {
            Err(error) => said(Level::Error, error.to_string()),
            Ok(start) => {
                model.tickets += 1;
                let state = since::State::open(start, model.tickets, effects);
                vec![ScreenRequest::Open(Box::new(Screen::Since(Box::new(
                    state,
                ))))]
            }
        },
        ("export", ["incident", words @ ..]) => {
            let zone = model.target_info.zone.clone();
            match incident(words, now, &zone) {
                Err(why) => said(Level::Error, why),
                Ok((span, file)) => {
                    let at = now.to_zoned(zone);
                    let named = || at.strftime("incident-%Y-%m-%d-%H%M.md").to_string();
                    let file = file.map_or_else(named, str::to_owned);
                    super::open_screen::export(model, now, file.into(), span, effects)
                }
            }
        }
        ("write", []) => write(model, now, "15m", effects),
        ("push", []) => super::push::push(model, now, None, effects),
        ("push", [remote]) => super::push::push(model, now, Some(remote), effects),
        ("tour", ["off"]) => {
            model.tour = None;
            Vec::new()
        }
        ("tour", []) => {
            super::tour::start(model, now);
            Vec::new()
        }
        ("filter", [_, ..]) => vec![ScreenRequest::Filter(rest.join(" "))],
        ("audit", [_, ..]) => vec![
            ScreenRequest::Run(Action::GoAudit),
            ScreenRequest::Filter(rest.join(" ")),
        ],
        (name, []) => {
            let alias = ALIASES.iter().find(|(known, _)| *known == name);
            match alias
                .map(|(_, action)| *action)
                .or_else(|| Action::named(name))
            {
                Some(action) => vec![ScreenRequest::Run(action)],
                None => said(Level::Error, usage(name)),
            }
        }
        (name, _) => said(Level::Error, usage(name)),
    }
}

/// Returns the reason why `bowline screenshot` cannot show a screen. Missing arguments are a reason, because nobody
/// can type them into a screenshot. None if there is no reason.
pub(super) fn without_keys(screen: &str) -> Option<String> {
    let (name, arguments) = screen.split_once(' ').unwrap_or((screen, ""));
    let command = COMMANDS.iter().find(|command| command.name == name);
    match command {
        Some(command) if arguments.trim().is_empty() && command.needs_argument() => {
            let example = format!("{name} {}", command.arguments.replace("TIME", "1h"));
            Some(format!(
                "it needs an argument, as in: bowline screenshot {}",
                text::quoted(&example)
            ))
        }
        Some(_) => None,
        None => {
            let is_action = ALIASES.iter().any(|(known, _)| *known == name);
            let is_known = is_action || Action::named(name).is_some();
            let screens = ALIASES.iter();
            let screens = screens.filter(|(name, action)| {
                action.word().starts_with("go-") && *name != "rel" && *name != "ctx"
            });
            let mut screens: Vec<&str> = screens.map(|(name, _)| *name).collect();
            screens.sort_unstable();
            (!is_known).then(|| {
                format!(
                    "there is no such screen; the screens are: {}",
                    screens.join(", ")
                )
            })
        }
    }
}

/// Returns the usage text of a command, or a message that the command does not exist.
fn usage(name: &str) -> String {
    let full = match name {
        "ctx" => "context",
        "namespace" => "ns",
        "q!" => "q",
        other => other,
    };
    let is_action = || {
        let alias = ALIASES.iter().any(|(known, _)| *known == name);
        alias || Action::named(name).is_some()
    };
    match COMMANDS.iter().find(|command| command.name == full) {
        Some(command) if !command.arguments.is_empty() => {
            format!(":{name} {}", command.arguments)
        }
        None if !is_action() => format!("unknown command {name}; tab lists the commands"),
        _ => format!("{name} takes no argument"),
    }
}

/// Allows writes to a protected context for a limited time (`:write`).
fn write(
    model: &mut Model,
    now: Timestamp,
    lasting: &str,
    effects: &mut Vec<Effect>,
) -> Vec<ScreenRequest> {
    let say = |level, text: String| vec![ScreenRequest::Say(level, text)];
    if !model.target_info.protected {
        return match &model.target_info.readonly {
            Some(why) => say(
                Level::Error,
                format!("read-only mode cannot be turned off here: {why}"),
            ),
            None => say(Level::Info, "this context already allows writes".to_owned()),
        };
    }
    match span(lasting) {
        Err(why) => say(Level::Error, why),
        Ok(lasting) => {
            model.target_info.armed = now.checked_add(lasting).ok();
            effects.push(Effect::Arm(Duration::try_from(lasting).unwrap_or_default()));
            Vec::new()
        }
    }
}

/// Parses the end of a hold: a duration, a time of day (its next occurrence), or a date with a
/// time.
fn until(text: &str, now: Timestamp, model: &Model) -> Result<Timestamp, String> {
    if let Ok(lasting) = span(text) {
        if lasting < SignedDuration::from_secs(1) {
            return Err("a hold lasts at least 1s".to_owned());
        }
        return now
            .checked_add(lasting)
            .map_err(|_| format!("{text} is too long"));
    }
    let read = time_input::read(text, now, &model.target_info.zone);
    let at = read.map_err(|_| {
        format!(
            "{text} is not a duration and not a time; write 4h, 7d, 18:00 or 2026-01-31T18:00:00Z"
        )
    })?;
    if at > now {
        return Ok(at);
    }
    // A time of day that is already past means tomorrow.
    let is_of_day = !text.contains('-') && text.contains(':');
    let next = at.to_zoned(model.target_info.zone.clone()).tomorrow();
    match next {
        Ok(next) if is_of_day && next.timestamp() > now => Ok(next.timestamp()),
        _ => Err(format!(
            "{text} is in the past; the end of a hold must be in the future"
        )),
    }
}

/// Parses the arguments of `:incident`: the start and the end of a period (both optional, each of one or two words),
/// and then an optional file name.
fn incident<'w>(
    words: &[&'w str],
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(Span, Option<&'w str>), String> {
    let mut rest = words;
    let mut next = || {
        for count in (1..=rest.len().min(2)).rev() {
            let (taken, after) = rest.split_at(count);
            if let Ok(at) = time_input::read(&taken.join(" "), now, zone) {
                rest = after;
                return Some(at);
            }
        }
        None
    };
    let span = Span {
        since: next(),
        until: next(),
    };
    if let (Some(since), Some(until)) = (span.since, span.until)
        && until <= since
    {
        return Err(format!(
            "the incident would end at {until:.0}, before it begins at {since:.0}: write the start first"
        ));
    }
    match rest {
        [] => Ok((span, None)),
        [file] if file.contains(['.', '/']) && !file.contains(':') => Ok((span, Some(file))),
        [word, ..] => Err(format!(
            "{word} is not a time and not a file; write :export incident 13:30 14:15 incident.md"
        )),
    }
}

/// Parses a duration, such as `4h`.
fn span(text: &str) -> Result<SignedDuration, String> {
    let interval = crate::api::interval::Interval::from(text);
    let lasting = interval.duration().map_err(|error| error.to_string())?;
    SignedDuration::try_from(lasting).map_err(|_| format!("{text} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot_test::SnapshotTest;

    #[test]
    fn an_incident_has_a_start_an_end_and_a_file() {
        let now: Timestamp = "2026-01-06T15:00:00Z".parse().unwrap();
        let at = |text: &str| Some(format!("2026-01-0{text}:00Z").parse::<Timestamp>().unwrap());
        for (line, since, until, file) in [
            ("", None, None, None),
            ("13:30", at("6T13:30"), None, None),
            ("13:30 14:15", at("6T13:30"), at("6T14:15"), None),
            (
                "13:30 14:15 a.md",
                at("6T13:30"),
                at("6T14:15"),
                Some("a.md"),
            ),
            (
                "yesterday 13:30 20m ago",
                at("5T13:30"),
                at("6T14:40"),
                None,
            ),
            ("2h a/b", at("6T13:00"), None, Some("a/b")),
            ("out.md", None, None, Some("out.md")),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let read = incident(&words, now, &TimeZone::UTC).unwrap();
            assert_eq!((read.0.since, read.0.until), (since, until), "{line}");
            assert_eq!(read.1, file, "{line}");
        }
        for (line, why) in [
            ("14:15 13:30", "before it begins"),
            ("13:3x", "not a time"),
            ("13:30 half", "not a time"),
            ("a.md b.md", "not a time"),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let said = incident(&words, now, &TimeZone::UTC).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn a_screen_of_the_command_line_is_explained_without_keys() {
        for (screen, expected) in [
            (
                "since",
                Some("it needs an argument, as in: bowline screenshot 'since 1h'"),
            ),
            ("since 1h", None),
            ("audit", None),
            ("releases", None),
            ("promote", None),
        ] {
            assert_eq!(without_keys(screen).as_deref(), expected, "{screen}");
        }
        let unknown = without_keys("nosuch").unwrap();
        assert!(
            unknown.starts_with("there is no such screen; the screens are: audit, "),
            "{unknown}"
        );
        assert!(!unknown.contains("tab"), "{unknown}");
    }

    #[test]
    fn every_command_says_which_arguments_it_takes() {
        for (name, expected) in [
            ("diff", "diff takes no argument"),
            ("releases", "releases takes no argument"),
            ("q", "q takes no argument"),
            ("q!", "q! takes no argument"),
            ("quit", "quit takes no argument"),
            ("ctx", ":ctx NAME"),
            ("namespace", ":namespace NAME"),
            ("tour", ":tour [off]"),
            ("cart", "unknown command cart; tab lists the commands"),
        ] {
            assert_eq!(usage(name), expected);
        }
        let commands = COMMANDS.iter().map(|command| command.name);
        let aliases = ALIASES.iter().map(|(name, _)| *name);
        let actions = WORDS.iter().map(|(word, _)| *word);
        for name in commands.chain(aliases).chain(actions) {
            let line = format!("\"{name} cart cart cart cart\"");
            let still = SnapshotTest::fleet().keys(":").keys(&line).keys("enter");
            still.hides("unknown command");
        }
    }

    #[test]
    fn a_filter_and_the_audit_trail_take_words() {
        let command = |line: &str| {
            let line = format!("\"{line}\"");
            SnapshotTest::fleet().keys(":").keys(&line).keys("enter")
        };
        command("filter cart").shows("/cart").hides("ledger");
        command("filter health:x").shows("unknown health x");
        command("audit cart").shows("matrix > audit  /cart");
        command("diff cart").shows("diff takes no argument");
    }
}
