//! The connected target, as the screens need it: they ask this module, and not what kind of target it is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::effect::WorkTree;
use crate::connect::{Address, Known};
use crate::gitops::tree::LeftOutPin;

/// The connected target, the user, and the user's rights there.
#[derive(Clone, Debug)]
pub struct TargetInfo {
    /// The name of the target.
    pub name: String,
    /// The flags that select the target on any command line.
    pub address: Address,
    /// The namespace of the session.
    pub namespace: String,
    /// The user name, as the server reports it.
    pub user: String,
    /// The reason why writes are blocked; None if they are allowed.
    pub readonly: Option<String>,
    /// Whether the user can allow writes for some time.
    pub protected: bool,
    /// The time until which writes are allowed on a protected context.
    pub armed: Option<Timestamp>,
    /// Whether the data planes are simulated, so that nothing really runs.
    pub simulated: bool,
    /// The repository; None if the target is a server.
    pub repository: Option<RepositoryInfo>,
    /// The contexts that the user can switch to.
    pub contexts: Vec<Known>,
    /// The namespaces of the target; empty until the target lists them.
    pub namespaces: Vec<String>,
    /// Whether the user may change ReleasePins, by environment; the error is the reason why not. An environment is
    /// missing until bowline has checked it.
    pub rights: BTreeMap<String, Result<(), String>>,
    /// The time zone of displayed times.
    pub zone: TimeZone,
}

impl TargetInfo {
    /// Adds the flags of the target to a command line of bowline, so that it works from any shell.
    pub fn aimed(&self, line: String) -> String {
        self.address.bowline(&line)
    }

    /// Adds the flags of the target to kubectl commands; returns none if kubectl cannot reach the target.
    pub fn kubectl(&self, lines: &[String]) -> Vec<String> {
        let lines = lines.iter();
        lines
            .filter_map(|line| self.address.kubectl(line))
            .collect()
    }
}

/// A repository that is the target of the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryInfo {
    /// The state of the work tree; None until git has reported it.
    pub work_tree: Option<Box<WorkTree>>,
    /// The directory that the user named.
    pub directory: String,
    /// The branch that the user named for commits; None for the current branch.
    pub onto: Option<String>,
    /// Whether a push is running.
    pub pushing: bool,
}

impl RepositoryInfo {
    /// Describes the state in a few words; the flag marks a word that needs the user's attention.
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

    /// Returns whether a push is running.
    pub fn is_pushing(&self) -> bool {
        let repository = self.repository.as_ref();
        repository.is_some_and(|repository| repository.pushing)
    }

    /// Notes that a push starts. The error is the reason why no push can start.
    pub fn begin_push(&mut self) -> Result<(), &'static str> {
        let repository = self.repository.as_mut();
        let repository = repository.ok_or("nothing to push: the target is not a repository")?;
        match std::mem::replace(&mut repository.pushing, true) {
            true => Err("a push is already running"),
            false => Ok(()),
        }
    }

    /// Notes that a push has ended.
    pub fn end_push(&mut self) {
        if let Some(repository) = &mut self.repository {
            repository.pushing = false;
        }
    }

    /// Returns the ReleasePin of a component in an environment if a sparse checkout leaves it out, or if it
    /// cannot be read.
    pub fn left_out(&self, component: &str, environment: &str) -> Option<&LeftOutPin> {
        self.work_tree()?.left_out.iter().find(|pin| {
            pin.namespace == self.namespace
                && pin.component == component
                && pin.environment == environment
        })
    }

    /// Returns the reason why writes are blocked at a given time; None if they are allowed.
    pub fn unwritable(&self, now: Timestamp) -> Option<&str> {
        let armed = self.armed.is_some_and(|until| now < until);
        self.readonly.as_deref().filter(|_| !armed)
    }

    /// Formats a time: only the time of day for today, otherwise with the date.
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
