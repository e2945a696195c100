//! `bowline completions`: prints the completion script of a shell.

use clap::{Args, Command};
use clap_complete::Shell;

/// The arguments of `completions`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(arguments: &Arguments, mut command: Command) -> String {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::{CommandFactory, ValueEnum};

    fn walk(command: &Command, look: &mut dyn FnMut(&Command)) {
        look(command);
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            walk(verb, look);
        }
    }

    #[test]
    fn every_shell_and_the_manual_know_every_verb() {
        let manual = tempfile::tempdir().unwrap();
        let arguments = super::super::man::Arguments::into(manual.path());
        assert_eq!(
            super::super::man::run(&arguments, Cli::command()).unwrap(),
            ""
        );
        let mut command = Cli::command().disable_help_subcommand(true);
        let scripts: Vec<String> = Shell::value_variants()
            .iter()
            .map(|&shell| run(&Arguments { shell }, command.clone()))
            .collect();
        command.build();
        let mut verbs = 0;
        walk(&command, &mut |verb| {
            verbs += 1;
            for script in &scripts {
                assert!(script.contains(verb.get_name()), "{}", verb.get_name());
            }
            let page = format!("{}.1", verb.get_display_name().unwrap_or("bowline"));
            let file = manual.path().join(&page);
            let about = verb
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let first = about.split(['\'', '-', ',']).next().unwrap_or_default();
            assert!(!about.is_empty() && text.contains(first), "{page}: {text}");
        });
        assert!(verbs > 10, "{verbs}");
        let hidden = crate::connect::plugin::VERB;
        assert!(!manual.path().join(format!("bowline-{hidden}.1")).exists());
    }

    #[test]
    fn help_is_said_in_sentences() {
        let check = |what: String, help: Option<String>| {
            let help = help.unwrap_or_default();
            let upper = help.chars().next().is_some_and(char::is_uppercase);
            assert!(upper && help.contains(' '), "{what}: {help:?}");
        };
        walk(&Cli::command(), &mut |verb| {
            let name = verb.get_name().to_owned();
            check(name.clone(), verb.get_about().map(ToString::to_string));
            for argument in verb.get_arguments().filter(|one| !one.is_hide_set()) {
                let help = argument.get_help().map(ToString::to_string);
                check(format!("{name} {}", argument.get_id()), help);
            }
        });
    }
}
