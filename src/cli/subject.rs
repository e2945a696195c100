//! The verbs on a subject that the user names together with its kind, such as `deploy/web`: they read its revisions,
//! compare two of them, or change the subject.

use std::io::IsTerminal;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use jiff::Timestamp;
use kube::api::{Api, DynamicObject};

use super::actions::{Changes, applied, shown};
use super::connect::{self, Address, Connection, Environment, Options};
use super::error::{self, Error, Exit};
use super::output::Format;
use super::session::Server;
use super::{Outcome, confirm};
use crate::api::choreo::rendered::Health;
use crate::engine::compare::{self, Sides};
use crate::engine::confirmation::Confirmation;
use crate::engine::diff::{self, Diff};
use crate::engine::health::wait;
use crate::engine::publish::apply_all;
use crate::engine::revisions::Revisions;
use crate::engine::subject::command::{Actions, Command, Content, Verb};
use crate::engine::subject::{Kind, SubjectRef};
use crate::engine::world::{Key, World};
use crate::subjects;

/// A subject that the user named together with its kind. Its namespace is known only after the connection is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    kind: &'static Kind,
    name: String,
}

/// Parses a subject with its kind, such as `deploy/web`. Returns None if the word contains no kind, or if the kind is
/// ReleasePin, which has its own planner.
pub(super) fn named(word: &str) -> Option<Named> {
    let (prefix, name) = word.split_once('/')?;
    let kind = subjects::kinds().find(|kind| kind.prefixes.contains(&prefix))?;
    (kind.actions.is_some() && !name.is_empty()).then(|| Named {
        kind,
        name: name.to_owned(),
    })
}

/// Parses the optional argument of a verb like [`named`]; None if the argument is missing.
pub(super) fn named_by(word: Option<&String>) -> Option<Named> {
    named(word?)
}

impl Named {
    fn actions(&self) -> &'static Actions {
        let actions = self.kind.actions.as_ref();
        actions.expect("BUG: only kinds with actions are named")
    }

    async fn connect(
        &self,
        options: &Options,
        environment: &Environment,
    ) -> Result<(Connection, SubjectRef), Error> {
        super::kinds::check_name("name", &self.name)?;

        // Workloads exist on every cluster, so the verb does not require the CRDs of bowline.
        let options = Options {
            kinds: Vec::new(),
            ..options.clone()
        };
        let connection = connect::connect(&options, environment).await?;
        if !connection.target.stores(&(self.kind.resource)().group) {
            let message = format!("a repository has no {}", self.kind.words(&self.name));
            return Err(Error::new(Exit::Usage, message)
                .with_hint("leave out --repo to use the current context"));
        }
        let key = Key::new(&connection.namespace, &self.name);
        Ok((connection, SubjectRef::new(self.kind, key)))
    }

    /// Reads the revisions of the subject.
    pub(super) async fn revisions(
        &self,
        options: &Options,
        environment: &Environment,
        now: Timestamp,
    ) -> Result<Revisions<Content>, Error> {
        let (connection, subject) = self.connect(options, environment).await?;
        let address = Address::of(&connection, options, environment);
        let found = (self.actions().revisions)(&connection.client, &subject, now).await;
        found.map_err(|error| error::of_subject(error, &address))
    }

    /// Reads two revisions of the subject as the two sides of a comparison.
    pub(super) async fn sides(
        &self,
        wanted: (Option<i64>, Option<i64>),
        options: &Options,
        environment: &Environment,
        now: Timestamp,
    ) -> Result<Sides, Error> {
        let found = self.revisions(options, environment, now).await?;
        compare::revisions(&found, wanted, now)
            .map_err(|error| Error::new(Exit::Failed, error.to_string()))
    }

    /// Runs a verb on the subject: plans, shows the plan, asks for confirmation, applies the plan and waits for the
    /// rollout.
    pub(super) async fn act(
        &self,
        verb: impl FnOnce(Timestamp) -> Result<Verb, Error>,
        changes: &Changes,
        options: &Options,
        environment: &Environment,
        say: &mut dyn FnMut(String),
    ) -> Result<Outcome, Error> {
        let (mut connection, subject) = self.connect(options, environment).await?;
        let address = Address::of(&connection, options, environment);
        let server = Server::ask(&connection, say).await?;
        let asked = server.asked(&connection, changes.reason.clone());
        let verb = verb(asked.now)?;
        let command = Command { subject, verb };
        let planned = (self.actions().plan)(&connection.client, &command, &asked).await;
        let planned = planned.map_err(|error| error::of_subject(error, &address))?;
        let notes = planned.notes.into_iter().chain(planned.record);
        notes.for_each(&mut *say);
        let plan = planned.plan;
        for change in &plan.changes {
            change
                .warnings
                .iter()
                .for_each(|warning| say(format!("warning: {warning}")));
        }
        if let Some(change) = plan.lacks_reason() {
            let lacks = change.reason_rule();
            match (changes.dry_run, confirm::asks(changes.yes)) {
                (true, _) => say(format!("{lacks}; without --reason bowline refuses it")),
                // The plan needs a reason. The user can type it at the question for confirmation.
                (false, true) => {}
                (false, false) => {
                    return Err(Error::new(Exit::Refused, lacks).with_hint("add --reason TEXT"));
                }
            }
        }
        let shown: Vec<Option<Diff>> = planned.objects.iter().map(difference).collect();
        let is_changing = plan.changing().next().is_some();
        if changes.dry_run {
            let text = shown::planned(&plan, &shown, None, changes.output);
            return Ok(match is_changing {
                false => Outcome::done(text),
                true => Outcome::changes(text),
            });
        }
        let mut plan = plan;
        if is_changing {
            // These subjects are in no pipeline, so the confirmation does not depend on the read model, which may be
            // empty.
            let confirmation = Confirmation::of_plan(&plan, &World::new());
            let question = shown::planned(&plan, &shown, None, Format::Table);
            let accepted = confirm::confirm(confirmation, changes.yes, &question)?;
            if accepted.reason.is_some() {
                plan.because(accepted.reason);
            }
            if accepted.answered {
                connection = connection.for_confirmed_plan();
            }
        }
        let clock = server.clock();
        let never = AtomicBool::new(false);
        let results = apply_all(&connection.client, &plan, &clock, &never).await;
        let became = applied::became(&plan, &results, &address, say);
        let exit = match changes.wait && became.exit == Exit::Done {
            true => self.wait(&connection, &command.subject, changes, say).await,
            false => became.exit,
        };
        let text = shown::done(&plan, &shown, &became, None, changes.output);
        Ok(Outcome::ending(text, exit).made())
    }

    /// Waits until the rollout of the changed subject is healthy. An error here does not undo the change.
    async fn wait(
        &self,
        connection: &Connection,
        subject: &SubjectRef,
        changes: &Changes,
        say: &mut dyn FnMut(String),
    ) -> Exit {
        let api: Api<DynamicObject> = Api::namespaced_with(
            connection.client.clone(),
            &subject.key.namespace,
            &(self.kind.resource)(),
        );
        let name = subject.words();
        let shows = std::io::stderr().is_terminal();
        let mut told = String::new();
        let mut progress = |verdict: &crate::engine::health::Verdict| {
            let line = verdict.message.clone().unwrap_or_default();
            if shows && told != line {
                eprintln!("{name}: {}", crate::text::line(&line));
                told = line;
            }
        };
        let settled = wait::settled(api, &subject.key.name, self.kind.name, &mut progress);
        let why = match tokio::time::timeout(changes.timeout, settled).await {
            Ok(Some(verdict)) if verdict.health == Health::Healthy => return Exit::Done,
            Ok(Some(verdict)) => {
                format!(
                    "its rollout failed: {}",
                    verdict.message.unwrap_or_default()
                )
            }
            Ok(None) => "it was deleted".to_owned(),
            Err(_) => "it is not ready in time".to_owned(),
        };
        say(format!(
            "error: the change was made, but {why}: {}",
            subject.words()
        ));
        Exit::Failed
    }
}

/// Returns the diff of an object before and after a change; None if the object stays the same.
fn difference([before, after]: &[serde_json::Value; 2]) -> Option<Diff> {
    let options = diff::Options {
        lines: true,
        deadline: Instant::now().checked_add(std::time::Duration::from_secs(10)),
        ..diff::Options::default()
    };
    let one = std::slice::from_ref;
    (before != after).then(|| diff::diff(one(before), one(after), &options))
}
