//! The actions on a workload: rollback, pin, unpin, undo, mark. Reads the workload and its revisions from the
//! server, then plans with pure functions.
//!
//! Every plan depends on the pod template and, for a Deployment, on `paused`. It does not depend on the number of
//! replicas, because an autoscaler may change that number at any time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DynamicObject;
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::abandoned::Abandoned;
use super::revisions::{self, Stored, Workload, manifest, publishing};
use super::template::{self, DEPLOYMENT_KIND, PAUSED, TEMPLATE};
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::api::openchoreo::release::Verdict;
use crate::api::{Environment, labels};
use crate::connect::kinds;
use crate::engine::audit::EntriesOf;
use crate::engine::ownership::{GitOps, gitops};
use crate::engine::plan::{Asked, Change, Field, MarkOn, Plan};
use crate::engine::production::{Place, place};
use crate::engine::revisions::NoRevision;
use crate::engine::rights::{self, Right};
use crate::engine::subject::command::{Command, Planned, SubjectError, Verb};
use crate::engine::subject::{SubjectRef, field};

/// The path of the pod template in managed fields.
pub(super) const OF_TEMPLATE: &[&str] = &["f:spec", "f:template"];

/// Plans a command on a workload.
pub async fn plan(
    client: &Client,
    command: &Command,
    asked: &Asked,
) -> Result<Planned, SubjectError> {
    let subject = &command.subject;
    let workload = Workload::read(client, subject).await?;
    let place = place(client, &subject.key.namespace).await;
    let marks = match &command.verb {
        Verb::Mark { revision, .. } => workload.find(*revision),
        _ => None,
    };
    let marks = marks.map(|stored| stored.object.name_any());
    allowed(client, subject, marks.as_deref(), &place).await?;
    let mut planner = Planner::new(subject, &workload, &place, asked);
    let mut planned = planner.plan(&command.verb)?;
    planned.record = EntriesOf::ask(client, subject.kind).await.note();
    Ok(planned)
}

/// Refuses a change if the user does not have the permission. `marks` is the object of the revision that the change
/// marks. If the server does not answer this question, the check passes, and the server decides when bowline writes.
async fn allowed(
    client: &Client,
    subject: &SubjectRef,
    marks: Option<&str>,
    place: &Place,
) -> Result<(), SubjectError> {
    let key = &subject.key;
    let mark = marks.map(|name| {
        let resource = revisions::stored_as(subject.kind);
        Right::patch(resource).on(&key.namespace, Some(name))
    });
    let change = Right::patch(subject.kind.resource).on(&key.namespace, Some(&key.name));
    let promote = place.environment.as_ref().map(|(namespace, name)| {
        let promote = Right {
            verb: "promote",
            resource: kinds::kind::<Environment>,
        };
        promote.on(namespace, Some(name))
    });
    let questions = [Some(change), mark, promote].into_iter().flatten();
    match rights::lacking(client, questions).await {
        None => Ok(()),
        Some(lacking) => Err(SubjectError::Denied(format!(
            "cannot change {} in {}: {lacking}",
            subject.words(),
            place.name,
        ))),
    }
}

/// Plans commands on one workload. All functions are pure.
struct Planner<'a> {
    subject: &'a SubjectRef,
    workload: &'a Workload,
    place: &'a Place,
    asked: &'a Asked,
    holds: Vec<Hold>,
    gitops: Option<GitOps>,
    fields: Vec<Field>,
    mark: Option<MarkOn>,
    notes: Vec<String>,
    warnings: Vec<String>,
}

impl<'a> Planner<'a> {
    fn new(
        subject: &'a SubjectRef,
        workload: &'a Workload,
        place: &'a Place,
        asked: &'a Asked,
    ) -> Self {
        Self {
            subject,
            workload,
            place,
            asked,
            holds: subject.kind.holds_of(&workload.object),
            gitops: gitops(&workload.object.metadata, OF_TEMPLATE),
            fields: Vec::new(),
            mark: None,
            notes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn plan(&mut self, verb: &Verb) -> Result<Planned, SubjectError> {
        // Every change writes the list of holds, so a hold that bowline cannot read would be lost.
        if let Some(why) = self.subject.kind.unreadable_holds(&self.workload.object) {
            let (name, namespace) = (&self.subject.key.name, &self.subject.key.namespace);
            let kind = self.subject.kind.name.to_lowercase();
            let correct = format!("correct it: kubectl edit {kind} {name} -n {namespace}");
            return Err(SubjectError::refused(why, correct));
        }
        match verb {
            Verb::Rollback { to, hold, force } => self.rollback(*to, *hold, *force),
            Verb::Pin { until, freeze } => self.pin(*until, *freeze),
            Verb::Unpin { hold } => self.unpin(hold.as_deref()),
            Verb::Undo => self.undo(),
            Verb::Mark { revision, verdict } => self.mark(*revision, *verdict),
        }
    }

    fn rollback(
        &mut self,
        to: Option<i64>,
        hold: bool,
        force: bool,
    ) -> Result<Planned, SubjectError> {
        let workload = self.workload;
        let target = match to {
            Some(number) => self.stored(number)?,
            None => self.last_good()?,
        };
        self.may_move("roll back", force)?;
        self.restore(target)?;
        let mut holds = self.holds.clone();
        if hold {
            holds.push(self.new_hold(None));
        }
        let restored = Some(target.number);
        Ok(self.planned(Action::Rollback, Some(target), restored, holds, workload))
    }

    /// Returns the revision that a rollback restores by default. It is the newest older revision that has another
    /// template, is not marked bad and is not abandoned.
    fn last_good(&mut self) -> Result<&'a Stored, SubjectError> {
        let workload = self.workload;
        let current = template::hash(&workload.template());
        let newest = workload
            .current()
            .map_or(i64::MAX, |current| current.number);
        let mut older =
            workload.stored.iter().rev().filter(|stored| {
                stored.number < newest && template::hash(&stored.template) != current
            });
        let abandoned = Abandoned::of(workload.object.annotations());
        let mut skipped = Vec::new();
        let found = older.find(|stored| {
            let is_abandoned = abandoned.has(&template::hash(&stored.template), stored.number);
            let left = || is_abandoned.then(|| "a rollback or an undo replaced it".to_owned());
            let why = stored.bad().or_else(left);
            skipped.extend(
                why.iter()
                    .map(|why| format!("rev {} is skipped: {why}", stored.number)),
            );
            why.is_none()
        });
        let name = self.subject.words();
        let found = found.ok_or_else(|| {
            SubjectError::refused(
                format!(
                    "{name} has no older revision with another template{}",
                    match skipped.is_empty() {
                        true => String::new(),
                        false => format!(" that may be restored: {}", skipped.join("; ")),
                    }
                ),
                format!("bowline history {name}"),
            )
        })?;
        self.notes.extend(skipped);
        self.notes.push(format!(
            "rev {} is the newest older revision; Kubernetes does not record whether it was healthy",
            found.number
        ));
        Ok(found)
    }

    fn stored(&self, number: i64) -> Result<&'a Stored, SubjectError> {
        self.workload.find(number).ok_or_else(|| {
            let known = self
                .workload
                .stored
                .iter()
                .map(|stored| stored.number.to_string());
            let known = known.collect::<Vec<_>>().join(", ");
            let subject = self.subject.words();
            let newest = self.workload.stored.last();
            let is_old = number > 0 && newest.is_some_and(|newest| number < newest.number);
            let none = match is_old {
                true => NoRevision::Gone {
                    subject,
                    number,
                    known,
                },
                false => NoRevision::Never {
                    subject,
                    number,
                    known,
                },
            };
            none.into()
        })
    }

    /// Refuses to restore a revision that is marked bad.
    fn not_bad(&self, stored: &Stored) -> Result<(), SubjectError> {
        let (name, number) = (self.subject.words(), stored.number);
        match stored.bad() {
            None => Ok(()),
            Some(why) => Err(SubjectError::refused(
                format!("rev {number} of {name} is {why}"),
                format!("bowline mark good {name} --revision {number} --reason TEXT"),
            )),
        }
    }

    fn mark(&mut self, number: i64, verdict: Verdict) -> Result<Planned, SubjectError> {
        let stored = self.stored(number)?;
        let was = stored.verdict();
        if was != Some(verdict) {
            let object = &stored.object;
            self.mark = Some(MarkOn {
                resource: revisions::stored_as(self.subject.kind)(),
                key: self.subject.key.beside(&object.name_any()),
                uid: object.uid().unwrap_or_default(),
                hash: template::hash(&stored.template),
                was,
                verdict,
            });
            // kubectl rollout undo copies the annotations of a revision to the workload, and Kubernetes copies those
            // of the workload to its newest revision, where they would replace the mark.
            self.fields
                .push(removed(&["metadata", "annotations", labels::MARK]));
        }
        let is_current = self.workload.current().map(|current| current.number) == Some(number);
        if verdict == Verdict::Bad && is_current {
            let name = self.subject.words();
            self.warnings.push(format!(
                "rev {number} still runs: a mark does not stop it; use bowline rollback {name}"
            ));
        }
        let action = match verdict {
            Verdict::Bad => Action::MarkBad,
            Verdict::Good => Action::MarkGood,
        };
        let holds = self.holds.clone();
        Ok(self.planned(action, Some(stored), None, holds, self.workload))
    }

    /// Refuses to change the template if a GitOps tool owns the workload, unless the user accepts that with
    /// `force`.
    fn may_move(&mut self, verb: &str, force: bool) -> Result<(), SubjectError> {
        let Some(tool) = self.gitops else {
            return Ok(());
        };
        let (name, tool) = (self.subject.words(), tool.name());
        if !force {
            return Err(SubjectError::refused(
                format!(
                    "cannot {verb} {name}: {tool} owns it and would restore the template of git"
                ),
                format!(
                    "revert the change in git; or suspend {tool} for it and add --force with --reason"
                ),
            ));
        }
        if self.asked.reason.is_none() {
            return Err(SubjectError::refused(
                format!("cannot {verb} {name} with --force without a reason: {tool} owns it"),
                "add --reason TEXT".to_owned(),
            ));
        }
        self.warnings.push(format!(
            "{tool} owns {name} and may restore the template of git at its next sync"
        ));
        Ok(())
    }

    /// Plans to restore the pod template of a revision. If the Deployment is paused, also resumes it, so that the
    /// rollout starts.
    fn restore(&mut self, target: &Stored) -> Result<(), SubjectError> {
        self.not_bad(target)?;
        if template::hash(&self.workload.template()) == template::hash(&target.template) {
            return Err(SubjectError::Refused {
                why: format!(
                    "{} already has the template of rev {}",
                    self.subject.words(),
                    target.number
                ),
                hint: None,
            });
        }
        self.fields
            .push(Field::set(TEMPLATE, target.template.clone()));
        let newer = self
            .workload
            .stored
            .iter()
            .filter(|stored| stored.number > target.number);
        let newer: Vec<(String, i64)> = newer
            .map(|stored| (template::hash(&stored.template), stored.number))
            .collect();
        let abandoned = Abandoned::of(self.workload.object.annotations()).after_return_to(
            (&template::hash(&target.template), target.number),
            newer.iter().map(|(hash, number)| (hash.as_str(), *number)),
        );
        let path = ["metadata", "annotations", labels::ABANDONED];
        self.fields.push(Field::set(&path, abandoned));
        if self.is_paused() {
            self.resume();
            self.notes
                .push("the Deployment is paused; this action resumes it".to_owned());
        }
        let strategy = self
            .workload
            .object
            .data
            .pointer("/spec/updateStrategy/type");
        if strategy.and_then(Value::as_str) == Some("OnDelete") {
            self.warnings.push(
                "its updateStrategy is OnDelete: a pod gets the old template only after somebody deletes the pod"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn is_paused(&self) -> bool {
        field(&self.workload.object, PAUSED) == Some(Value::Bool(true))
    }

    fn resume(&mut self) {
        self.fields.push(removed(PAUSED));
        let hold = self.frozen_by();
        if hold.is_some() {
            self.fields.push(removed(&[
                "metadata",
                "annotations",
                labels::PAUSED_BY_HOLD,
            ]));
        }
        let hold = hold.map_or("", String::as_str);
        let resumed = format!("{}/{hold}", self.asked.operation);
        let path = ["metadata", "annotations", labels::RESUMED];
        self.fields.push(Field::set(&path, resumed));
    }

    fn pause(&mut self, hold: String) {
        self.fields.push(Field::set(PAUSED, true));
        let by = ["metadata", "annotations", labels::PAUSED_BY_HOLD];
        self.fields.push(Field::set(&by, hold));
    }

    /// Plans to pause the Deployment again if the operation `last` resumed it. If `moves` says that this action also
    /// changes the template, only warns, because a paused Deployment does not roll out its template.
    fn pause_again(&mut self, last: &str, moves: bool) {
        let annotations = self.workload.object.annotations();
        let resumed = annotations.get(labels::RESUMED);
        let resumed = resumed.and_then(|resumed| resumed.split_once('/'));
        let Some((_, hold)) = resumed.filter(|(operation, _)| *operation == last) else {
            return;
        };
        if self.is_paused() {
            return;
        }
        if !moves && !hold.is_empty() {
            return self.pause(hold.to_owned());
        }
        self.warnings.push(format!(
            "the last action resumed the paused Deployment; undo does not pause it, so that its template rolls out; after the rollout, pause it again with bowline pin {} --freeze",
            self.subject.words()
        ));
    }

    /// Returns the id of the hold that paused the Deployment; None if the Deployment is not paused by a hold.
    fn frozen_by(&self) -> Option<&'a String> {
        self.workload
            .object
            .annotations()
            .get(labels::PAUSED_BY_HOLD)
    }

    fn new_hold(&self, until: Option<jiff::Timestamp>) -> Hold {
        Hold {
            id: self.asked.hold_id(),
            owner: self.asked.user.clone(),
            reason: self.asked.reason.clone(),
            since: Time(self.asked.now),
            until: until.map(Time),
            release: None,
        }
    }

    fn pin(
        &mut self,
        until: Option<jiff::Timestamp>,
        freeze: bool,
    ) -> Result<Planned, SubjectError> {
        let name = self.subject.words();
        if freeze {
            self.freeze(&name)?;
        }
        if until.is_some_and(|until| until <= self.asked.now) {
            self.warnings
                .push("the hold ends in the past, so it has no effect".to_owned());
        }
        self.notes.push(
            "the verbs of bowline obey this hold; kubectl and other tools do not know it"
                .to_owned(),
        );
        let mut holds = self.holds.clone();
        holds.push(self.new_hold(until));
        Ok(self.planned(Action::Pin, None, None, holds, self.workload))
    }

    /// Plans to pause a Deployment together with a hold. Refuses if its rollout is not complete.
    fn freeze(&mut self, name: &str) -> Result<(), SubjectError> {
        if self.subject.kind.name != DEPLOYMENT_KIND {
            return Err(SubjectError::Refused {
                why: format!("cannot pin {name} with --freeze: only a Deployment can be paused"),
                hint: Some(format!("bowline pin {name}")),
            });
        }
        let health = self.workload.health();
        if health.health != crate::api::choreo::rendered::Health::Healthy && !self.is_paused() {
            let why = health.message.unwrap_or_default();
            return Err(SubjectError::Refused {
                why: format!("cannot pin {name} with --freeze: its rollout is not complete: {why}"),
                hint: Some(format!("bowline pin {name}")),
            });
        }
        if !self.is_paused() {
            self.pause(self.asked.hold_id());
        }
        Ok(())
    }

    fn unpin(&mut self, id: Option<&str>) -> Result<Planned, SubjectError> {
        let name = self.subject.words();
        let position = match (id, self.holds.as_slice()) {
            (Some(id), holds) => holds.iter().position(|hold| hold.id == id),
            (None, [_]) => Some(0),
            (None, []) => {
                return Err(SubjectError::Refused {
                    why: format!("{name} has no hold"),
                    hint: None,
                });
            }
            (None, holds) => {
                let ids: Vec<&str> = holds.iter().map(|hold| hold.id.as_str()).collect();
                return Err(SubjectError::refused(
                    format!("{name} has {} holds: {}", holds.len(), ids.join(", ")),
                    format!("bowline unpin {name} --hold ID"),
                ));
            }
        };
        let Some(position) = position else {
            return Err(SubjectError::Refused {
                why: format!("{name} has no hold {}", id.unwrap_or_default()),
                hint: None,
            });
        };
        let mut holds = self.holds.clone();
        let lifted = holds.remove(position);
        if self.frozen_by() == Some(&lifted.id) && self.is_paused() {
            self.resume();
        }
        Ok(self.planned(Action::Unpin, None, None, holds, self.workload))
    }

    fn undo(&mut self) -> Result<Planned, SubjectError> {
        let name = self.subject.words();
        let last = self.subject.kind.operation(&self.workload.object);
        let last = last.ok_or_else(|| SubjectError::Refused {
            why: format!("bowline has not changed {name}, so there is nothing to undo"),
            hint: None,
        })?;
        if let (Action::MarkBad | Action::MarkGood, Some(to)) = (last.action, &last.to) {
            let (done, back) = match last.action {
                Action::MarkBad => ("bad", "good"),
                _ => ("good", "bad"),
            };
            return Err(SubjectError::refused(
                format!(
                    "the last action on {name} marked {} {done}, and undo does not change marks",
                    to.name
                ),
                format!("bowline mark {back} {name} --revision N --reason TEXT"),
            ));
        }
        let hash = |content: &Option<crate::api::bowline::audit::ContentRef>| {
            content.as_ref().and_then(|content| content.hash.clone())
        };
        let (from, to) = (hash(&last.from), hash(&last.to));
        let mut target = None;
        if from != to {
            if to != Some(template::hash(&self.workload.template())) {
                return Err(SubjectError::refused(
                    format!(
                        "cannot undo the last {:?} of {name}: another program has changed it since",
                        last.action
                    ),
                    format!("bowline rollback {name} --to-revision N"),
                ));
            }
            self.may_move("undo the last action on", false)?;
            let mut newest = self.workload.stored.iter().rev();
            let found = newest.find(|stored| Some(template::hash(&stored.template)) == from);
            let found = found.ok_or_else(|| SubjectError::refused(
                format!("cannot undo the last {:?} of {name}: its earlier revision is no longer stored", last.action),
                format!("bowline history {name}"),
            ))?;
            self.restore(found)?;
            target = Some(found);
        } else if self.frozen_by() == Some(&hold_of(&last.id)) && self.is_paused() {
            self.resume();
        }
        self.pause_again(&last.id, from != to);
        let restored = target.map(|target| target.number);
        Ok(self.planned(
            Action::Undo,
            target,
            restored,
            last.holds_before,
            self.workload,
        ))
    }

    /// Keeps the operation that published the current template, for the history: the record of this action replaces
    /// it.
    fn keep_published(&mut self) {
        let moves = self.fields.iter().any(|field| field.path == TEMPLATE);
        let workload = self.workload;
        let hash = template::hash(&workload.template());
        let text = workload.object.annotations().get(labels::OPERATION);
        if let Some(text) = text.filter(|text| !moves && publishing(text, &hash).is_some()) {
            let path = ["metadata", "annotations", labels::PUBLISHED];
            self.fields.push(Field::set(&path, text.clone()));
        }
    }

    fn planned(
        &mut self,
        action: Action,
        target: Option<&Stored>,
        restored_from: Option<i64>,
        holds: Vec<Hold>,
        workload: &Workload,
    ) -> Planned {
        let to = target.map_or_else(|| workload.content(), Stored::content);
        // A mark is about one revision, and changes no content.
        let from = match action {
            Action::MarkBad | Action::MarkGood => to.clone(),
            _ => workload.content(),
        };
        let unchanged = self.fields.is_empty() && holds == self.holds;
        self.keep_published();
        let change = Change {
            subject: self.subject.clone(),
            name: self.subject.words(),
            environment: self.place.name.clone(),
            is_production: self.place.is_production,
            requires_reason: self.place.requires_reason,
            expected: self.subject.kind.expected(&workload.object),
            unchanged,
            fields: std::mem::take(&mut self.fields),
            holds_before: self.holds.clone(),
            holds,
            claims: Vec::new(),
            mark: self.mark.take(),
            from: Some(from),
            to,
            restored_from,
            rendered_hash: None,
            facts: Vec::new(),
            warnings: std::mem::take(&mut self.warnings),
        };
        let objects = vec![shown(self.subject, &workload.object, &change)];
        Planned {
            plan: Plan {
                action,
                operation: self.asked.operation.clone(),
                at: self.asked.now,
                reason: self.asked.reason.clone(),
                changes: vec![change],
            },
            notes: std::mem::take(&mut self.notes),
            record: None,
            objects,
        }
    }
}

/// Returns the id of the hold that an operation places.
fn hold_of(operation: &str) -> String {
    crate::engine::plan::hold_id(operation)
}

fn removed(path: &[&str]) -> Field {
    Field {
        path: path.iter().map(|step| (*step).to_owned()).collect(),
        value: None,
    }
}

/// Returns the parts of a workload that a change can write, first before and then after the change. A diff compares
/// them.
fn shown(subject: &SubjectRef, object: &DynamicObject, change: &Change) -> [Value; 2] {
    let mut before = manifest(
        subject,
        &template::plain(field(object, TEMPLATE).unwrap_or_default()),
    );
    if let Some(paused) = field(object, PAUSED) {
        Field::set(PAUSED, paused).write(&mut before);
    }
    let mut after = before.clone();
    let of_spec = change
        .fields
        .iter()
        .filter(|field| field.path.first().is_some_and(|first| first == "spec"));
    for field in of_spec {
        field.write(&mut after);
    }
    [before, after]
}
