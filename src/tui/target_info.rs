//! The connected target, as the screens need it. Screens ask this module about abilities of the target, and do not
//! distinguish kinds of targets.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::effect::WorkTree;
use crate::connect::{Address, Known};
use crate::gitops::tree::LeftOutPin;
use crate::subjects;

/// The connected target, the user, and the rights of the user on the target.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// The display name of the target.
    pub name: String,
    /// The flags that select the target on a `bowline` command line.
    pub address: Address,
    pub namespace: String,
    /// The user name, as the server reports it; empty until the server answers.
    pub user: String,
    /// The reason why bowline blocks writes to this target; None if it allows them. [`TargetInfo::armed`] can allow
    /// writes for some time anyway.
    pub readonly: Option<String>,
    /// Whether the context is protected: bowline blocks writes until the user allows them with `:write`.
    pub protected: bool,
    /// The end of the permission to write to a protected context; None if there is no permission.
    pub armed: Option<Timestamp>,
    /// Whether the data planes are simulated, so that no container runs.
    pub simulated: bool,
    /// The repository that is the target; None if the target is a server.
    pub repository: Option<RepositoryInfo>,
    /// The contexts that the user can switch to.
    pub contexts: Vec<Known>,
    /// The namespaces of the target; empty until the target has listed them.
    pub namespaces: Vec<String>,
    /// By environment: Ok if the user is allowed to change ReleasePins there, otherwise the reason why not. The map
    /// has no entry for an environment that bowline has not checked yet.
    pub rights: BTreeMap<String, Result<(), String>>,
    /// The kinds of workloads that the user may not change, each with the reason; empty until bowline
    /// has checked it. A role can still allow a change of one object.
    pub lacking: BTreeMap<&'static str, String>,
    /// The time zone in which screens show times.
    pub zone: TimeZone,
}

impl TargetInfo {
    /// Returns the reason why the user may not change the subject of a row such as `deploy/web`; None if
    /// the user may, and for a component.
    pub fn lacks(&self, row: &str) -> Option<&str> {
        let (subject, _) = subjects::matrix::named("", row)?;
        self.lacking.get(subject.kind.name).map(String::as_str)
    }

    /// Adds the flags of the target to a `bowline` command line, so that it works in any shell.
    pub fn aimed(&self, line: String) -> String {
        self.address.bowline(&line)
    }

    /// Adds the flags that select this target to kubectl command lines. Returns an empty list if kubectl cannot reach
    /// the target.
    pub fn kubectl(&self, lines: &[String]) -> Vec<String> {
        let lines = lines.iter();
        lines
            .filter_map(|line| self.address.kubectl(line))
            .collect()
    }
}

/// The repository that is the target, and the state of its work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryInfo {
    /// The state of the work tree; None until bowline has read it.
    pub work_tree: Option<Box<WorkTree>>,
    pub directory: String,
    /// The branch that the user named for the commits of bowline; None for the current branch.
    pub onto: Option<String>,
    pub pushing: bool,
}

impl RepositoryInfo {
    /// Describes the state of the work tree in a few words. The flag is true for words to which the user should
    /// react.
    pub fn words(&self) -> Vec<(String, bool)> {
        let Some(work_tree) = &self.work_tree else {
            return Vec::new();
        };
        let state = &work_tree.state;
        let mut words = vec![match &state.branch {
            Some(branch) => (branch.clone(), false),
            None => ("detached HEAD".to_owned(), true),
        }];
        let onto = self.onto.as_ref();
        if let Some(onto) = onto.filter(|onto| state.branch.as_ref() != Some(onto)) {
            words.push((format!("commits to {onto}"), false));
        }
        let count = |count: u64, text: String, known: bool| (count > 0).then_some((text, known));
        let dirty = u64::try_from(state.dirty.len()).unwrap_or(u64::MAX);
        words.extend(count(state.ahead, format!("ahead {}", state.ahead), false));
        words.extend(count(
            state.behind,
            format!("behind {}", state.behind),
            true,
        ));
        words.extend(count(dirty, format!("{dirty} dirty"), true));
        words.extend(state.under_way.map(|what| (what.to_owned(), true)));
        if work_tree.cluster_trouble.is_some() {
            words.push(("cluster not read".to_owned(), true));
        }
        if self.pushing {
            words.push(("pushing".to_owned(), false));
        }
        words
    }
}

impl TargetInfo {
    /// Returns the state of the work tree; None for a server, and until git has reported it.
    pub fn work_tree(&self) -> Option<&WorkTree> {
        self.repository.as_ref()?.work_tree.as_deref()
    }

    /// Describes the state of the work tree, see [`RepositoryInfo::words`]; empty for a server.
    pub fn work_tree_words(&self) -> Vec<(String, bool)> {
        let repository = self.repository.as_ref();
        repository.map(RepositoryInfo::words).unwrap_or_default()
    }

    /// Returns the directory of the repository; None for a server.
    pub fn directory(&self) -> Option<&str> {
        let repository = self.repository.as_ref();
        repository.map(|repository| repository.directory.as_str())
    }

    /// Returns whether the target has a controller that can observe ReleasePins; a repository has none.
    pub fn has_controller(&self) -> bool {
        self.repository.is_none()
    }

    /// Returns whether a push to the remote is running.
    pub fn is_pushing(&self) -> bool {
        let repository = self.repository.as_ref();
        repository.is_some_and(|repository| repository.pushing)
    }

    /// Records that a push to the remote starts. Fails with a reason if a push cannot start now.
    pub fn begin_push(&mut self) -> Result<(), &'static str> {
        let repository = self.repository.as_mut();
        let repository = repository.ok_or("nothing to push: the target is not a repository")?;
        match std::mem::replace(&mut repository.pushing, true) {
            true => Err("a push is already running"),
            false => Ok(()),
        }
    }

    /// Records that the running push has ended.
    pub fn end_push(&mut self) {
        if let Some(repository) = &mut self.repository {
            repository.pushing = false;
        }
    }

    /// Returns the ReleasePin of a cell if bowline does not know it, because a sparse checkout leaves it out or
    /// because bowline cannot read it. None if bowline has read it.
    pub fn left_out(&self, component: &str, environment: &str) -> Option<&LeftOutPin> {
        self.work_tree()?.left_out.iter().find(|pin| {
            pin.namespace == self.namespace
                && pin.component == component
                && pin.environment == environment
        })
    }

    /// Returns the reason why bowline blocks writes to the target at this time; None if bowline allows them.
    pub fn unwritable(&self, now: Timestamp) -> Option<&str> {
        let armed = self.armed.is_some_and(|until| now < until);
        self.readonly.as_deref().filter(|_| !armed)
    }

    /// Formats a time for display. Leaves out the date if it is the same as the date of `now`.
    pub fn clock(&self, at: Timestamp, now: Timestamp) -> String {
        let (at, now) = (
            at.to_zoned(self.zone.clone()),
            now.to_zoned(self.zone.clone()),
        );
        let format = match at.date() == now.date() {
            true => "%H:%M:%S",
            false => "%Y-%m-%d %H:%M",
        };
        at.strftime(format).to_string()
    }
}
