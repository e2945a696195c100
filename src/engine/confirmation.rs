//! The input by which a user confirms an action: the higher the risk of the action, the more the user has to type.
//!
//! In a first environment of the pipeline, one key confirms. In any other environment, the user must also have seen
//! the diff. In production, the user types the name of the environment, and for several subjects also their number.
//! Any text after these words is the reason. This module does not print or wait: the front ends ask the user and pass
//! the answer to it.

use super::plan::Plan;
use super::world::World;

/// The word that the user types on the command line where the terminal UI asks for one key.
const KEY: &str = "y";

/// The input that a user must give before bowline applies an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confirmation {
    /// The words that the user must type, in this order.
    pub words: Vec<String>,
    /// The noun for the objects that the last word counts, such as `components`. None if the last word is no number.
    pub counts: Option<&'static str>,
    /// Whether the user may or must type a reason after the confirming words.
    pub reason: Reason,
    /// Whether the user must have seen the diff of the action before the confirmation.
    pub shown: bool,
    /// The effect of a risky action, such as `the deletion of 3 objects`. If it is set, the action needs an answer on
    /// a terminal or a confirming flag. None for an action that needs neither.
    pub risk: Option<String>,
}

/// Whether the user may or must type a reason for the action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// The action records no reason, so bowline refuses text after the confirming words.
    Unrecorded,
    #[default]
    Optional,
    Required,
}

/// The answer of the user to a request for confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The user answered on a terminal.
    Given {
        /// The text that the user typed; empty if the user pressed a key.
        typed: &'a str,
        /// Whether the user has seen the diff of the action.
        shown: bool,
    },
    /// A flag on the command line confirms the action in advance.
    Flag,
    /// The user was not asked, because there is no terminal, and no flag confirms the action.
    Absent,
}

/// An answer that confirms the action, with the reason that the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub reason: Option<String>,
    /// Whether the user answered on a terminal. False if a flag confirmed: a protected context accepts no flag.
    pub answered: bool,
}

/// The reason why an answer does not confirm the action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotConfirmed {
    /// The user typed a wrong word or no word.
    #[error("{}", wrong_word(.wanted, .typed))]
    Word {
        wanted: String,
        /// The word that the user typed instead of `wanted`; empty if the user typed none.
        typed: String,
    },
    /// The user typed a wrong number or no number.
    #[error("Type the number of {counted} ({wanted}){}", if *.after_name { " after the name" } else { "" })]
    Count {
        /// The noun for the counted objects, such as `components`.
        counted: &'static str,
        wanted: String,
        /// Whether the user must type the number after the name of an environment.
        after_name: bool,
    },
    /// The action requires a reason, and the user typed none.
    #[error("{}", match .after {
        None => "Type a reason".to_owned(),
        Some(after) => format!("Add a reason after the {after}"),
    })]
    Reason {
        /// What the user must type before the reason: `name` or `number`. None if the user types only the reason.
        after: Option<&'static str>,
    },
    /// The user must first see the diff of the action.
    #[error("the changes were not on the screen yet")]
    NotShown,
    /// The action is risky, but there was no terminal to ask on, and no flag confirmed the action.
    #[error("nothing was changed: {risk} needs a confirmation and there is no terminal")]
    Unasked {
        /// The effect of the action that needs the confirmation, such as `the deletion of 3 objects`.
        risk: String,
    },
}

fn wrong_word(wanted: &str, typed: &str) -> String {
    match typed {
        "" => format!("type {wanted} to confirm"),
        typed => format!("Type {wanted} (you typed {typed})"),
    }
}

impl Confirmation {
    /// Returns the confirmation that a plan needs, which depends on the environments that the plan changes.
    pub fn of_plan(plan: &Plan, world: &World) -> Self {
        let is_first = |environment: &str, namespace: &str| {
            let pipeline = world.pipeline(namespace);
            pipeline.is_some_and(|pipeline| pipeline.first_environments().contains(&environment))
        };
        let production = plan.changing().filter(|change| change.is_production);
        let production = production.map(|change| change.environment.as_str());
        let mut confirmation = Self::of_production(production);
        let count = plan.changing().count();
        if count > 1 {
            confirmation.words.push(count.to_string());
            confirmation.counts = Some("components");
        }
        if plan.lacks_reason().is_some() {
            confirmation.reason = Reason::Required;
        }
        confirmation.shown = !plan
            .changing()
            .all(|change| is_first(&change.environment, &change.key().namespace));
        confirmation
    }

    /// Returns the confirmation of an action on these production environments: the user types the names of all of
    /// them. If there are no environments, one key confirms.
    pub fn of_production<'e>(environments: impl IntoIterator<Item = &'e str>) -> Self {
        let mut words: Vec<String> = Vec::new();
        for environment in environments {
            if !words.iter().any(|known| known == environment) {
                words.push(environment.to_owned());
            }
        }
        Self {
            risk: words
                .first()
                .map(|name| format!("a change of the production environment {name}")),
            words,
            ..Self::default()
        }
    }

    /// Returns the confirmation of an action on `count` objects: the user types the number.
    pub fn of_count(count: usize, counts: &'static str, risk: String) -> Self {
        Self {
            words: vec![count.to_string()],
            counts: Some(counts),
            risk: Some(risk),
            ..Self::default()
        }
    }

    /// Adapts the confirmation to a protected context, where the user must type a word. If one key would be enough,
    /// the user types the name of the context instead.
    pub fn on_protected(&mut self, context: &str) {
        if self.words.is_empty() {
            self.words.push(context.to_owned());
        }
    }

    /// Adapts the confirmation to the command line, where the user types a line. If one key would be enough, the user
    /// types `y` instead.
    pub fn on_a_line(mut self) -> Self {
        if self.words.is_empty() {
            self.words.push(KEY.to_owned());
        }
        self
    }

    pub fn needs_reason(&self) -> bool {
        self.reason == Reason::Required
    }

    /// Returns whether one key confirms.
    pub fn is_key(&self) -> bool {
        self.words.is_empty() && !self.needs_reason()
    }

    /// Returns the input that the user must type as text, such as `production and why`; empty if one key confirms.
    pub fn wanted(&self) -> String {
        match (self.words.as_slice(), self.needs_reason()) {
            ([], false) => String::new(),
            ([], true) => "why".to_owned(),
            (words, false) => words.join(" "),
            (words, true) => format!("{} and why", words.join(" ")),
        }
    }

    /// Returns the text that asks the user for the input, such as `type production`; empty if one key confirms.
    pub fn prompt(&self) -> String {
        match self.is_key() {
            true => String::new(),
            false => format!("type {}", self.wanted()),
        }
    }

    /// Returns the text that asks the user for the input. If one key confirms, it is `type why`, because the user may
    /// still type a reason.
    pub fn prompt_or_why(&self) -> String {
        match self.is_key() {
            true => "type why".to_owned(),
            false => self.prompt(),
        }
    }

    /// Reads the text that the user typed. Returns the reason in it; None if there is no reason. The error names the
    /// missing or wrong input.
    pub fn read(&self, typed: &str) -> Result<Option<String>, NotConfirmed> {
        let mut rest = typed.trim();
        for (at, word) in self.words.iter().enumerate() {
            let (first, after) = match rest.split_once(char::is_whitespace) {
                Some((first, after)) => (first, after.trim_start()),
                None => (rest, ""),
            };
            if first != word {
                let is_last = at + 1 == self.words.len();
                return Err(match self.counts.filter(|_| is_last) {
                    Some(counted) => NotConfirmed::Count {
                        counted,
                        wanted: word.clone(),
                        after_name: at > 0,
                    },
                    None => NotConfirmed::Word {
                        wanted: word.clone(),
                        typed: first.to_owned(),
                    },
                });
            }
            rest = after;
        }
        match (rest, self.reason) {
            ("", Reason::Required) => Err(NotConfirmed::Reason {
                after: match (self.words.is_empty(), self.counts) {
                    (true, _) => None,
                    (false, None) => Some("name"),
                    (false, Some(_)) => Some("number"),
                },
            }),
            ("", Reason::Optional | Reason::Unrecorded) => Ok(None),
            (_, Reason::Unrecorded) => Err(NotConfirmed::Word {
                wanted: self.words.join(" "),
                typed: typed.trim().to_owned(),
            }),
            (reason, Reason::Optional | Reason::Required) => Ok(Some(reason.to_owned())),
        }
    }

    /// Checks the answer of a user. Returns the reason, and whether the user answered on a terminal.
    pub fn check(&self, answer: Answer<'_>) -> Result<Accepted, NotConfirmed> {
        match answer {
            Answer::Given { shown: false, .. } if self.shown => Err(NotConfirmed::NotShown),
            Answer::Given { typed, .. } => Ok(Accepted {
                reason: self.read(typed)?,
                answered: true,
            }),
            Answer::Absent if self.risk.is_some() => Err(NotConfirmed::Unasked {
                risk: self.risk.clone().unwrap_or_default(),
            }),
            Answer::Flag | Answer::Absent if self.needs_reason() => {
                Err(NotConfirmed::Reason { after: None })
            }
            Answer::Flag | Answer::Absent => Ok(Accepted {
                reason: None,
                answered: false,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmation(words: &[&str], reason: Reason) -> Confirmation {
        Confirmation {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            counts: (words.last() == Some(&"3")).then_some("components"),
            reason,
            shown: true,
            risk: None,
        }
    }

    #[test]
    fn the_typed_text_confirms_and_gives_the_reason() {
        use Reason::{Optional, Required, Unrecorded};
        let ok = |reason: &str| Ok(Some(reason.to_owned()));
        let no = |why: &str| Err(why.to_owned());
        let three: &[&str] = &["production", "3"];
        for (words, reason, typed, expected) in [
            (
                &["production"][..],
                Required,
                "production errors up",
                ok("errors up"),
            ),
            (
                &["production"],
                Required,
                "  production   errors\nup ",
                ok("errors\nup"),
            ),
            (
                &["production"],
                Required,
                "production",
                no("Add a reason after the name"),
            ),
            (
                &["production"],
                Required,
                "",
                no("type production to confirm"),
            ),
            (&["production"], Optional, "production\r\n", Ok(None)),
            (
                &["production"],
                Optional,
                "production errors up",
                ok("errors up"),
            ),
            (
                &["production"],
                Optional,
                "prod",
                no("Type production (you typed prod)"),
            ),
            (
                &["production"],
                Optional,
                "productions",
                no("Type production (you typed productions)"),
            ),
            (three, Optional, "production 3 all of it", ok("all of it")),
            (
                three,
                Optional,
                "production 2",
                no("Type the number of components (3) after the name"),
            ),
            (
                three,
                Optional,
                "production",
                no("Type the number of components (3) after the name"),
            ),
            (three, Optional, "3", no("Type production (you typed 3)")),
            (
                &["3"],
                Optional,
                "ship",
                no("Type the number of components (3)"),
            ),
            (&["3"], Required, "3", no("Add a reason after the number")),
            (&[], Required, " ", no("Type a reason")),
            (&[], Required, "leaks", ok("leaks")),
            (&[], Optional, "", Ok(None)),
            (&["remove"], Unrecorded, "remove", Ok(None)),
            (
                &["remove"],
                Unrecorded,
                "remove it",
                no("Type remove (you typed remove it)"),
            ),
        ] {
            let found = confirmation(words, reason).read(typed);
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, expected, "{typed:?}");
        }
    }

    #[test]
    fn an_answer_confirms_only_the_shown_and_a_risk_needs_an_answer_or_a_flag() {
        let given = |typed, shown| Answer::Given { typed, shown };
        let key = || Confirmation::default();
        let staging = || confirmation(&[], Reason::Optional);
        let production = || Confirmation::of_production(["production"]);
        let strict = || confirmation(&[], Reason::Required);
        let deletion =
            || Confirmation::of_count(3, "objects", "the deletion of 3 objects".to_owned());
        let no = |why: &str| Err(why.to_owned());
        for (confirmation, answer, expected) in [
            (key(), given("", false), Ok(true)),
            (
                staging(),
                given("", false),
                no("the changes were not on the screen yet"),
            ),
            (staging(), given("", true), Ok(true)),
            (staging(), Answer::Absent, Ok(false)),
            (staging(), Answer::Flag, Ok(false)),
            (production(), given("production", true), Ok(true)),
            (production(), Answer::Flag, Ok(false)),
            (
                production(),
                Answer::Absent,
                no(
                    "nothing was changed: a change of the production environment production needs a confirmation and there is no terminal",
                ),
            ),
            (strict(), given("late", true), Ok(true)),
            (strict(), Answer::Flag, no("Type a reason")),
            (strict(), Answer::Absent, no("Type a reason")),
            (deletion(), given("3", false), Ok(true)),
            (deletion(), Answer::Flag, Ok(false)),
            (
                deletion(),
                Answer::Absent,
                no(
                    "nothing was changed: the deletion of 3 objects needs a confirmation and there is no terminal",
                ),
            ),
        ] {
            let found = confirmation.check(answer);
            let answered = found.map(|accepted| accepted.answered);
            let answered = answered.map_err(|error| error.to_string());
            assert_eq!(answered, expected, "{confirmation:?} {answer:?}");
        }
    }

    #[test]
    fn a_protected_context_and_a_line_need_more_than_a_key() {
        let protected = |mut confirmation: Confirmation| {
            confirmation.on_protected("prod-eu");
            confirmation
        };
        let required = || confirmation(&[], Reason::Required);
        for (confirmation, wanted) in [
            (Confirmation::default(), ""),
            (Confirmation::default().on_a_line(), "y"),
            (required(), "why"),
            (required().on_a_line(), "y and why"),
            (protected(Confirmation::default()), "prod-eu"),
            (protected(Confirmation::default()).on_a_line(), "prod-eu"),
            (protected(required()), "prod-eu and why"),
            (
                protected(Confirmation::of_production(["production"])),
                "production",
            ),
        ] {
            assert_eq!(confirmation.wanted(), wanted);
            assert_eq!(confirmation.is_key(), wanted.is_empty());
        }
    }
}
