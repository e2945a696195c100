//! The table of the texts that users read, for reviews. A test compares the table with
//! `snapshots/texts.snap`.
//!
//! Each text comes from the value that the program uses: clap commands, errors, keymaps, schemas. Texts that
//! a function formats, such as the findings of `check`, have their own tests, so the table does not contain
//! them.

use std::time::Duration;

use clap::{Arg, Command};
use serde_json::Value;

use crate::api::openchoreo::environment::PipelineFault;
use crate::controllers::metrics::Metrics;
use crate::engine::claim::ClaimError;
use crate::engine::ownership::GitOps;
use crate::engine::publish::ApplyError;
use crate::git::commit::CommitError;
use crate::resolve::git::Cause;
use crate::subjects::release_pin::matrix::Health;
use crate::subjects::release_pin::rules::{MarkedBad, Refusal, Step};
use crate::tui::action::Mode;
use crate::tui::keymap::{self, Keymap};
use crate::{api, cli, connect, tui};

/// A text, after its source: where the program defines the text.
type Text = (String, String);

/// Words that users must not read, because the glossary has another word. The test ignores case and finds
/// only whole words.
const FORBIDDEN: &[&str] = &[
    "a pin",
    "the pin",
    "pins",
    "unpinned pin",
    "held pin",
    "holds a pin",
    "to hold",
    "unhold",
    "what counts",
    "that counts",
    "it counts",
    "where it is absent",
    "all the same",
    "is told",
    "are told",
    "nobody",
    "is wanted",
    "it is so already",
    "the target_info",
    "what became of",
    "what is on record",
];

/// The texts that may contain a forbidden word, each with the reason for the exception.
const ALLOWED: &[(&str, &str)] = &[
    ("[alias: hold]", "an alias of pin"),
    ("[alias: unhold]", "an alias of unpin"),
];

fn commands(command: &Command, path: &str, into: &mut Vec<Text>) {
    let path = match path {
        "" => command.get_name().to_owned(),
        path => format!("{path} {}", command.get_name()),
    };
    if command.is_hide_set() {
        return;
    }
    let mut add = |what: String, text: Option<String>| {
        into.extend(text.map(|text| (format!("cli: {what}"), text)));
    };
    let about = command.get_long_about().or(command.get_about());
    add(path.clone(), about.map(ToString::to_string));
    for argument in command.get_arguments() {
        if argument.is_hide_set() || path.contains(' ') && argument.is_global_set() {
            continue;
        }
        let name = format!("{path} {}", name(argument));
        let help = argument.get_long_help().or(argument.get_help());
        add(name.clone(), help.map(ToString::to_string));
        for value in argument.get_possible_values() {
            let help = value.get_help().map(ToString::to_string);
            add(format!("{name} {}", value.get_name()), help);
        }
    }
    for command in command.get_subcommands() {
        commands(command, &path, into);
    }
}

fn name(argument: &Arg) -> String {
    match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument.get_id().to_string(),
    }
}

fn refusals() -> Vec<Refusal> {
    let text = |text: &str| text.to_owned();
    let (component, environment) = (|| text("cart"), || text("staging"));
    let release = || text("cart-v1");
    vec![
        Refusal::NoComponent {
            component: component(),
            known: vec![text("frontend")],
        },
        Refusal::NoEnvironment {
            environment: environment(),
            known: vec![text("dev"), text("prod")],
        },
        Refusal::NoPin {
            component: component(),
            environment: environment(),
            step: Step::Promote {
                from: text("dev"),
                to: environment(),
            },
            requires_reason: false,
        },
        Refusal::NoPin {
            component: component(),
            environment: environment(),
            step: Step::Deploy {
                environment: text("dev"),
            },
            requires_reason: false,
        },
        Refusal::NameTaken {
            name: text("a-b-c"),
            component: text("a"),
            environment: text("b-c"),
        },
        Refusal::Nothing {
            environment: environment(),
        },
        Refusal::NoRelease {
            release: release(),
            known: vec![text("cart-v2")],
        },
        Refusal::OfAnother {
            release: release(),
            component: text("frontend"),
            owner: component(),
        },
        Refusal::Bad { release: release() },
        Refusal::Deleting { release: release() },
        Refusal::NoPath {
            from: text("dev"),
            to: text("prod"),
            leads: vec![environment()],
        },
        Refusal::NoPath {
            from: text("prod"),
            to: text("dev"),
            leads: Vec::new(),
        },
        Refusal::NotFirst {
            environment: environment(),
            first: vec![text("dev")],
        },
        Refusal::NotFirst {
            environment: environment(),
            first: Vec::new(),
        },
        Refusal::NoPipeline {
            namespace: text("shop"),
        },
        Refusal::Pipeline(PipelineFault::Several {
            namespace: text("shop"),
            pipelines: vec![text("a"), text("b")],
        }),
        Refusal::RetentionDiffers {
            namespace: text("shop"),
            pipelines: vec![text("a"), text("b")],
        },
        Refusal::Unready {
            component: component(),
            environment: environment(),
            why: text("crashes (Degraded)"),
        },
        Refusal::Held {
            component: component(),
            environment: environment(),
            release: release(),
            holds: text("ana, INC-42"),
            ids: Vec::new(),
            requires_reason: true,
        },
        Refusal::Held {
            component: component(),
            environment: environment(),
            release: release(),
            holds: text("ana, INC-42; bob"),
            ids: vec![text("hold-1"), text("hold-2")],
            requires_reason: false,
        },
        Refusal::OwnedByGit {
            component: component(),
            environment: environment(),
            release: release(),
            tool: GitOps::Flux,
        },
        Refusal::NoReason {
            environment: environment(),
        },
        Refusal::ReleaseLost {
            pin: text("cart-staging"),
            release: release(),
        },
        Refusal::Unpinned {
            rendered: text("cart-staging"),
        },
        Refusal::NoNote {
            release: release(),
            verdict: "bad",
        },
        Refusal::Stale {
            what: "ReleasePins",
            since: jiff::Timestamp::UNIX_EPOCH,
            why: text("connection refused"),
        },
        Refusal::KindsAbsent {
            kinds: text("releasepins.openchoreo.dev"),
        },
        Refusal::Loading {
            what: "ReleasePins",
        },
        Refusal::NoLastGood {
            component: component(),
            environment: environment(),
            bad: Vec::new(),
            abandoned: vec![text("skips cart-v3: staging went back from it to cart-v2")],
        },
        Refusal::NoLastGood {
            component: component(),
            environment: environment(),
            bad: vec![MarkedBad {
                release: release(),
                why: Some(text("by cleo: leaks connections")),
            }],
            abandoned: Vec::new(),
        },
        Refusal::NotObserved {
            component: component(),
            environment: environment(),
        },
        Refusal::NoController {
            component: component(),
            environment: environment(),
            why: text("the last controller stopped"),
        },
        Refusal::NoRevision {
            component: component(),
            environment: environment(),
            revision: 7,
            known: vec![text("6")],
        },
        Refusal::BadRetention {
            why: text("not a duration"),
        },
        Refusal::NothingBefore {
            pin: text("cart-staging"),
            component: component(),
            environment: environment(),
        },
        Refusal::CloneEnds {
            component: component(),
            environment: environment(),
        },
        Refusal::NotRead {
            component: component(),
            environment: environment(),
            why: text("its ReleasePin is not checked out"),
            check_out: Some(text("git sparse-checkout add pins/staging")),
        },
        Refusal::NotOnRecord {
            component: component(),
            environment: environment(),
            revision: 7,
        },
        Refusal::NoHold {
            component: component(),
            environment: environment(),
        },
        Refusal::NoSuchHold {
            component: component(),
            environment: environment(),
            id: text("hold-2"),
            known: vec![text("hold-1")],
        },
        Refusal::SeveralHolds {
            component: component(),
            environment: environment(),
            holds: vec![text("hold-1: ana, INC-42"), text("hold-2: bob")],
        },
    ]
}

/// Returns the name of a variant. The match has no `_` arm, so a new variant does not compile until it is
/// added here and to [`refusals`].
fn variant(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoComponent { .. } => "NoComponent",
        Refusal::NoEnvironment { .. } => "NoEnvironment",
        Refusal::NoPin { .. } => "NoPin",
        Refusal::NameTaken { .. } => "NameTaken",
        Refusal::Nothing { .. } => "Nothing",
        Refusal::NoRelease { .. } => "NoRelease",
        Refusal::OfAnother { .. } => "OfAnother",
        Refusal::Bad { .. } => "Bad",
        Refusal::Deleting { .. } => "Deleting",
        Refusal::NoPath { .. } => "NoPath",
        Refusal::NotFirst { .. } => "NotFirst",
        Refusal::NoPipeline { .. } => "NoPipeline",
        Refusal::Pipeline(_) => "Pipeline",
        Refusal::RetentionDiffers { .. } => "RetentionDiffers",
        Refusal::Unready { .. } => "Unready",
        Refusal::Held { .. } => "Held",
        Refusal::OwnedByGit { .. } => "OwnedByGit",
        Refusal::NoReason { .. } => "NoReason",
        Refusal::NoNote { .. } => "NoNote",
        Refusal::ReleaseLost { .. } => "ReleaseLost",
        Refusal::Unpinned { .. } => "Unpinned",
        Refusal::Stale { .. } => "Stale",
        Refusal::KindsAbsent { .. } => "KindsAbsent",
        Refusal::Loading { .. } => "Loading",
        Refusal::NoLastGood { .. } => "NoLastGood",
        Refusal::NotObserved { .. } => "NotObserved",
        Refusal::NoController { .. } => "NoController",
        Refusal::NoRevision { .. } => "NoRevision",
        Refusal::BadRetention { .. } => "BadRetention",
        Refusal::NothingBefore { .. } => "NothingBefore",
        Refusal::CloneEnds { .. } => "CloneEnds",
        Refusal::NotRead { .. } => "NotRead",
        Refusal::NotOnRecord { .. } => "NotOnRecord",
        Refusal::NoHold { .. } => "NoHold",
        Refusal::NoSuchHold { .. } => "NoSuchHold",
        Refusal::SeveralHolds { .. } => "SeveralHolds",
    }
}

/// Returns the error of a server that answers 403, as the cause of other errors.
fn forbidden() -> kube::Error {
    let status = kube::core::Status::failure("releasepins is forbidden", "Forbidden");
    kube::Error::Api(status.with_code(403).boxed())
}

fn errors() -> Vec<Text> {
    let text = |text: &str| text.to_owned();
    let applies = [
        ApplyError::Stale {
            what: text("ana moved cart in staging to cart-v2 at 14:02"),
        },
        ApplyError::NotBegun {
            why: "an earlier change of the set failed",
        },
        ApplyError::NoReason {
            rule: text("prod requires a reason for every change"),
        },
        ApplyError::Unmarked {
            revision: text("rev 3 web:3 of deploy/web"),
            error: forbidden(),
        },
        ApplyError::Claim(ClaimError::Gone(text("release cart-v1"))),
        ApplyError::Claim(ClaimError::Bad(text("release cart-v1"))),
        ApplyError::Claim(ClaimError::Deleting(text("release cart-v1"))),
        ApplyError::Unknown {
            subject: text("cart-staging"),
            error: forbidden(),
        },
        ApplyError::Overtaken {
            what: text("ana moved cart in staging to cart-v2 at 14:02"),
        },
    ];
    let connects = [
        connect::Error::NoSuchContext {
            name: text("prod"),
            known: vec![text("dev")],
        },
        connect::Error::NoSuchContext {
            name: text("prod"),
            known: Vec::new(),
        },
        connect::Error::NoCurrentContext,
        connect::Error::NoEmbeddedPlane,
        connect::Error::NoPlaneKubeconfig {
            name: text("prod"),
            file: "/kubeconfig/config".into(),
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::Server(text("localhost:6443")),
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::Proxy(text("socks5://localhost:1080")),
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::Token,
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::TokenFile {
                file: text("/run/token"),
                why: text("permission denied"),
            },
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::Impersonated,
        },
        connect::Error::Setting {
            context: text("prod"),
            wrong: connect::BadSetting::Provider(text("gcp")),
        },
        connect::Error::PluginWantsTerminal {
            context: text("prod"),
            command: text("aws"),
        },
        connect::Error::PluginTooSlow {
            context: text("prod"),
            after: Duration::from_secs(60),
        },
        connect::Error::Client {
            context: text("prod"),
            error: Box::new(forbidden()),
        },
        connect::Error::Interrupted(text("the connection was not made")),
        connect::Error::Namespace(text("a b")),
        connect::Error::NoDataDirectory,
        connect::Error::Beside {
            context: text("prod"),
            error: Box::new(forbidden()),
        },
        connect::Error::KindsAbsent {
            target: text("context prod"),
            kinds: text("releasepins.openchoreo.dev/v1alpha1"),
            flag: text(" --context prod"),
        },
        connect::Error::StoreWithoutKinds {
            file: "/data/bowline.db".into(),
            kinds: text("Release (openchoreo.dev/v1alpha1)"),
        },
        connect::Error::Unanswered {
            target: text("context prod"),
            error: Box::new(forbidden()),
        },
    ];
    let gits = [
        Cause::Deadline {
            allowed: Duration::from_secs(60),
        },
        Cause::TooLarge {
            what: "the pack",
            limit: 100,
            unit: "MB",
        },
        Cause::Unreachable {
            why: text("connection refused"),
        },
        Cause::Denied { why: text("403") },
        Cause::NoRepository { why: text("404") },
        Cause::Redirect {
            to: text("https://example.com/a.git"),
        },
        Cause::Server { why: text("500") },
        Cause::NoCommit {
            why: text("not our ref"),
        },
        Cause::OtherHash {
            ours: "SHA-1",
            theirs: text("SHA-256"),
        },
        Cause::Broken {
            why: text("a checksum is wrong"),
        },
        Cause::NoPath,
        Cause::Directory,
        Cause::SymbolicLink { at: text("a/b") },
        Cause::Submodule { at: text("a/b") },
        Cause::LfsPointer,
        Cause::Program {
            program: text("ssh"),
            why: text("not found"),
        },
        Cause::Token {
            host: text("git.example.com"),
            why: text("permission denied"),
        },
        Cause::NotFetched,
        Cause::Cache {
            path: "/cache".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        },
    ];
    let commits = [
        CommitError::Detached,
        CommitError::UnderWay(text("a rebase")),
        CommitError::Dirty {
            path: text("pins/a.yaml"),
        },
        CommitError::Untracked {
            path: text("pins/a.yaml"),
        },
        CommitError::Hidden {
            path: text("pins/a.yaml"),
        },
        CommitError::Changed {
            path: text("pins/a.yaml"),
        },
        CommitError::Busy {
            lock: ".git/index.lock".into(),
        },
        CommitError::NoBranchName(text("a..b")),
    ];
    let source = |kind: &str, error: &dyn std::error::Error| {
        let debug = format!("{error:?}");
        let variant = debug.split([' ', '(']).next().unwrap_or_default();
        format!("{kind}: {variant}")
    };
    let mut found = Vec::new();
    for error in &applies {
        found.push((source("apply", error), error.to_string()));
    }
    for error in &connects {
        found.push((source("connect", error), error.to_string()));
        let hints = error.hints().into_iter();
        found.extend(hints.map(|hint| (source("connect hint", error), hint)));
    }
    for error in &gits {
        found.push((source("git reference", error), error.to_string()));
    }
    for error in &commits {
        found.push((source("commit", error), error.to_string()));
    }
    found
}

fn screens(into: &mut Vec<Text>) {
    let modes = [
        ("global", Mode::Global),
        ("list", Mode::List),
        ("matrix", Mode::Matrix),
        ("diff", Mode::Diff),
        ("plan", Mode::Plan),
        ("text", Mode::Text),
    ];
    for name in keymap::names() {
        let keymap = Keymap::built_in(name).unwrap();
        for (mode, stack) in modes {
            for (keys, _, desc) in keymap.listing(&[stack]) {
                into.push((format!("keymap {name} {mode}: {keys}"), desc.to_owned()));
            }
        }
    }
    into.extend(tui::texts());
    for health in [
        Health::Ready,
        Health::Unknown,
        Health::Progressing,
        Health::Missing,
        Health::Degraded,
    ] {
        into.push(("health".to_owned(), health.word().to_owned()));
    }
}

/// Collects the texts that a JSON value has under the given keys, each with its path.
fn under(value: &Value, keys: &[&str], path: &str, into: &mut Vec<Text>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = format!("{path}.{key}");
                match value {
                    Value::String(text) if keys.contains(&key.as_str()) => {
                        into.push((path, text.clone()));
                    }
                    value => under(value, keys, &path, into),
                }
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate() {
                under(value, keys, &format!("{path}[{at}]"), into);
            }
        }
        _ => {}
    }
}

fn schemas(into: &mut Vec<Text>) {
    for definition in api::crds() {
        let value = serde_json::to_value(&definition).unwrap();
        let name = definition.metadata.name.unwrap();
        for version in value["spec"]["versions"].as_array().unwrap() {
            let schema = &version["schema"]["openAPIV3Schema"];
            let mut found = Vec::new();
            under(schema, &["description", "message"], "", &mut found);
            into.extend(found.into_iter().map(|(path, text)| {
                let path = path.replace(".properties", "").replace(".items", "[]");
                (format!("crd {name}: {path}"), text)
            }));
        }
    }
    let policies = include_str!("../deploy/policies.yaml");
    for document in bounded_yaml::documents("policies.yaml", policies).unwrap() {
        let name = document.value["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        let mut found = Vec::new();
        under(
            &document.value,
            &["message", "messageExpression"],
            "",
            &mut found,
        );
        into.extend(
            found
                .into_iter()
                .map(|(_, text)| (format!("policy {name}"), text)),
        );
    }
}

/// Returns metrics that all have a value, because the text for Prometheus leaves out metrics without a value.
fn metrics() -> Metrics {
    let metrics = Metrics::default();
    metrics.reconciled("pin", true, Duration::ZERO);
    metrics.watch_failed("pin");
    metrics.restarted("pin");
    metrics.packed("release", 1, 1);
    metrics.collected("release", 1);
    metrics
}

fn table() -> Vec<Text> {
    let mut texts = Vec::new();
    commands(&cli::command(), "", &mut texts);
    for refusal in refusals() {
        let name = variant(&refusal);
        texts.push((format!("refusal: {name}"), refusal.to_string()));
        let hints = refusal.hints(&|line| line.to_owned()).into_iter();
        texts.extend(hints.map(|hint| (format!("refusal hint: {name}"), hint)));
    }
    texts.extend(errors());
    screens(&mut texts);
    for line in metrics().text().lines() {
        if let Some((name, help)) = line
            .strip_prefix("# HELP ")
            .and_then(|help| help.split_once(' '))
        {
            texts.push((format!("metric {name}"), help.to_owned()));
        }
    }
    schemas(&mut texts);
    texts
}

/// Returns whether a text contains a phrase as whole words, in any case.
fn has(text: &str, phrase: &str) -> bool {
    // The tour has its keys in braces. They are skipped, unless the phrase itself has braces.
    let mut parts = text.split(['{', '}']).enumerate();
    let shown = |at: usize| phrase.contains('{') || at.is_multiple_of(2);
    let text = parts
        .by_ref()
        .filter(|(at, _)| shown(*at))
        .fold(String::new(), |all, (_, part)| all + part + " ");
    let words = |text: &str| -> String {
        let words =
            text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | '/'));
        let words = words
            .map(|word| word.trim_matches(['.', '-']))
            .filter(|word| !word.is_empty());
        words.fold(" ".to_owned(), |all, word| all + &word.to_lowercase() + " ")
    };
    words(&text).contains(&words(phrase))
}

#[test]
fn texts_that_users_read_are_on_file() {
    let mut lines = String::new();
    for (source, text) in table() {
        lines += &format!("{source} | {}\n", text.replace('\n', " "));
    }
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("texts", lines));
}

#[test]
fn texts_use_the_words_of_the_glossary() {
    let mut wrong = Vec::new();
    for (source, text) in table() {
        let allowed = |(part, _): &(&str, &str)| text.contains(part);
        if ALLOWED.iter().any(allowed) {
            continue;
        }
        let found = FORBIDDEN.iter().filter(|phrase| has(&text, phrase));
        wrong.extend(found.map(|phrase| format!("{source}: {phrase:?} in {text:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_phrase_is_compared_as_whole_words() {
    for (text, phrase, found) in [
        ("Nobody deletes it", "nobody", true),
        ("the pins of a component", "pins", true),
        ("the label of a pin.", "a pin", true),
        ("releasepins.openchoreo.dev", "pins", false),
        ("a pinned release", "a pin", false),
        ("pins/staging/cart.yaml", "pins", false),
        ("{unhold} removes it", "unhold", false),
    ] {
        assert_eq!(has(text, phrase), found, "{text}");
    }
}
