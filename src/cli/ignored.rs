//! Finds flags that would have no effect for their verb. Such a flag is a usage error, because the user expects an
//! effect.

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The flags of the terminal UI: clap's id and the flag. They are valid only after a verb that opens the terminal UI.
const OF_THE_SCREENS: [(&str, &str); 4] = [
    ("theme", "--theme"),
    ("keymap", "--keymap"),
    ("ascii", "--ascii"),
    ("mouse", "--mouse"),
];

/// The flags that select a target and set the limits of its requests: clap's id and the flag.
const OF_THE_TARGET: [(&str, &str); 11] = [
    ("context", "--context"),
    ("kubeconfig", "--kubeconfig"),
    ("embedded", "--embedded"),
    ("repo", "--repo"),
    ("branch", "--branch"),
    ("push", "--push"),
    ("remote", "--remote"),
    ("namespace", "--namespace"),
    ("impersonate", "--as"),
    ("readonly", "--readonly"),
    ("request_timeout", "--request-timeout"),
];

/// The flags for commits in a repository: clap's id and the flag.
const OF_COMMITS: [(&str, &str); 3] = [
    ("branch", "--branch"),
    ("push", "--push"),
    ("remote", "--remote"),
];

/// The verbs that make a commit if the target is a repository. The verbs below `release` are in
/// [`COMMITTING_OF_RELEASE`].
const COMMITTING: [&str; 8] = [
    "deploy", "promote", "rollback", "pin", "unpin", "undo", "mark", "gc",
];
const COMMITTING_OF_RELEASE: [&str; 2] = ["create", "gc"];

/// Returns the message about the first flag that would have no effect; None if every flag has an effect.
pub(super) fn flags(matches: &ArgMatches, has_terminal: bool) -> Option<String> {
    let (verb, own) = matches.subcommand()?;
    if let Some(flag) = first(matches, &OF_THE_SCREENS) {
        return Some(format!(
            "{flag} before {verb} has no effect; if {verb} has this flag, write it after {verb}"
        ));
    }
    let why = match verb {
        "install" if own.get_flag("print") => "it asks no cluster with --print",
        "demo" => "demo has a store of its own",
        "crds" | "completions" | "man" | "theme" => "it uses no target",
        "version" if !own.get_flag("server") => "it uses no target without --server",
        _ if makes_commit(verb, own) => return None,
        _ => {
            let flag = first_of_all(own, &OF_COMMITS)?;
            return Some(format!(
                "{flag} has no effect with {verb}: it makes no commit"
            ));
        }
    };
    if let Some(flag) = first_of_all(own, &OF_THE_TARGET) {
        return Some(format!("{flag} has no effect with {verb}: {why}"));
    }
    if verb != "demo" {
        return None;
    }
    let screens = first(own, &OF_THE_SCREENS).or(first(own, &[("no_tour", "--no-tour")]));
    let flag = screens.filter(|_| !has_terminal)?;
    Some(format!(
        "{flag} has no effect with demo: without a terminal it prints the matrix"
    ))
}

/// Returns whether a verb makes a commit if the target is a repository.
fn makes_commit(verb: &str, own: &ArgMatches) -> bool {
    let of_release = || own.subcommand_name();
    COMMITTING.contains(&verb)
        || verb == "release" && of_release().is_some_and(|it| COMMITTING_OF_RELEASE.contains(&it))
}

/// Returns the first of `flags` that the user gave for a verb or its subcommands; None if the user gave none of them.
fn first_of_all(own: &ArgMatches, flags: &[(&str, &'static str)]) -> Option<&'static str> {
    let mut given = Some(own);
    while let Some(matches) = given {
        if let Some(flag) = first(matches, flags) {
            return Some(flag);
        }
        given = matches.subcommand().map(|(_, own)| own);
    }
    None
}

/// Returns the first of `flags` that the user gave on the command line; None if the user gave none of them. A value
/// from an environment variable does not count.
fn first(matches: &ArgMatches, flags: &[(&str, &'static str)]) -> Option<&'static str> {
    let given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut flags = flags.iter();
    flags.find_map(|(id, flag)| given(id).then_some(*flag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn a_flag_that_its_verb_ignores_is_an_error() {
        let demo = "with demo: demo has a store of its own";
        for (line, has_terminal, says) in [
            ("status --embedded", false, None),
            ("demo", false, None),
            ("demo --no-tour --theme dark", true, None),
            ("demo --context c", true, Some("--context has no effect")),
            ("--context c demo", true, Some(demo)),
            ("demo -n shop", true, Some("--namespace has no effect")),
            ("demo --as ana", true, Some("--as has no effect")),
            ("demo --readonly", true, Some(demo)),
            ("demo --embedded", true, Some(demo)),
            ("demo --repo .", true, Some(demo)),
            ("demo --no-tour", false, Some("without a terminal")),
            ("demo --mouse", false, Some("without a terminal")),
            ("--theme dark demo", true, Some("--theme before demo")),
            ("--ascii status", true, Some("--ascii before status")),
            ("--ascii", true, None),
            ("crds", true, None),
            (
                "crds --embedded",
                true,
                Some("--embedded has no effect with crds"),
            ),
            (
                "--context c man",
                true,
                Some("--context has no effect with man"),
            ),
            (
                "completions bash -n shop",
                true,
                Some("--namespace has no effect"),
            ),
            ("theme import nord.yaml", true, None),
            (
                "theme import nord.yaml --readonly",
                true,
                Some("--readonly has no effect with theme"),
            ),
            (
                "theme --embedded import nord.yaml",
                true,
                Some("--embedded has no effect with theme"),
            ),
            ("status --repo .", true, None),
            (
                "status --repo . --push",
                true,
                Some("--push has no effect with status: it makes no commit"),
            ),
            (
                "--branch b history cart -e dev --repo .",
                true,
                Some("--branch has no effect with history"),
            ),
            (
                "audit verify --repo . --push --remote r",
                true,
                Some("--push has no effect with audit"),
            ),
            (
                "release list --repo . --branch b",
                true,
                Some("--branch has no effect with release"),
            ),
            ("release create cart --repo . --branch b --push", true, None),
            ("mark bad cart-1 --repo . --branch b --push", true, None),
            ("pin cart -e dev --repo . --push --remote r", true, None),
            ("--repo . --branch b --push", true, None),
            ("version", true, None),
            ("version --server --embedded", true, None),
            (
                "version --embedded",
                true,
                Some("it uses no target without --server"),
            ),
            ("install --context c", true, None),
            ("install --print --image a", true, None),
            (
                "install --print --context c",
                true,
                Some("--context has no effect with install"),
            ),
            (
                "-n shop install --print",
                true,
                Some("--namespace has no effect"),
            ),
            (
                "install --print --embedded",
                true,
                Some("--embedded has no effect"),
            ),
        ] {
            let words = std::iter::once("bowline").chain(line.split(' '));
            let words = words.filter(|word| !word.is_empty());
            let matches = super::super::Cli::command()
                .try_get_matches_from(words)
                .unwrap();
            let found = flags(&matches, has_terminal);
            match (says, &found) {
                (None, None) => {}
                (Some(says), Some(found)) if found.contains(says) => {}
                _ => panic!("{line}: {found:?}"),
            }
        }
    }
}
