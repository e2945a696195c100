//! Git work for the UI: prepares a repository for a plan, pushes the branch, and watches the state
//! of the work tree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::Session;
use crate::effect::{Answer, Refused, WorkTree};
use crate::gitops::propose::{Commits, NotCommitted, Pushed};
use crate::model::Event;
use crate::subjects::service::Command;

/// The minimum pause between two reads of the state of the work tree.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause lasts at least this many times as long as the last read, so that a large work tree causes little load.
const SHARE: u32 = 20;

impl From<NotCommitted> for Refused {
    fn from(error: NotCommitted) -> Self {
        Self {
            why: vec![error.to_string()],
            hints: error.hints(),
            ..Self::default()
        }
    }
}

/// Prepares the repository for a plan: reads all files, and cleans up after an interrupted action. Returns a message
/// about this cleanup; None if there was nothing to clean up.
pub(super) async fn begin(session: &Session, command: &Command) -> Result<Option<String>, Refused> {
    match Commits::of(&session.connection) {
        Some(commits) => Ok(commits.begin(command.before_plan(), false).await?),
        None => Ok(None),
    }
}

/// Pushes the branch that receives the commits; fails if the target is not a repository.
pub(super) async fn push(session: &Session, remote: Option<&str>) -> Result<Pushed, Refused> {
    match Commits::of(&session.connection) {
        Some(commits) => Ok(commits.push(remote).await?),
        None => Err("nothing to push: the target is not a repository"
            .to_owned()
            .into()),
    }
}

/// Reads the state of the work tree; None if the target is a server or if git fails.
pub async fn look(session: &Session) -> Option<WorkTree> {
    let repository = session.connection.repository.clone()?;
    let looking = tokio::task::spawn_blocking(move || {
        let state = repository.state()?;
        let remotes = repository.tree.work().remotes()?;
        Ok::<_, crate::git::GitError>(WorkTree {
            state,
            remotes,
            left_out: repository.tree.left_out_pins(),
            plain: repository.tree.is_plain(),
            cluster_trouble: repository.cluster_trouble(),
        })
    });
    match looking.await {
        Ok(Ok(work_tree)) => Some(work_tree),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the state of the work tree is not known yet");
            None
        }
        Err(_) => None,
    }
}

/// Reads the state of the work tree once, and sends it to the model.
pub(super) async fn tell(session: &Session, events: &UnboundedSender<Event>) {
    if let Some(work_tree) = look(session).await {
        let _ = events.send(Event::Answer(0, Answer::WorkTree(Box::new(work_tree))));
    }
}

/// Sends the state of the work tree to the model whenever it changes, until the session ends.
pub(super) fn follow(session: &Arc<Session>, events: &UnboundedSender<Event>) {
    if Commits::of(&session.connection).is_none() {
        return;
    }
    let (session, events) = (Arc::downgrade(session), events.clone());
    tokio::spawn(async move {
        let mut known = None;
        loop {
            let begun = Instant::now();
            {
                let Some(session) = session.upgrade().filter(|_| !events.is_closed()) else {
                    return;
                };
                let work_tree = look(&session).await;
                if work_tree.is_some() && work_tree != known {
                    known.clone_from(&work_tree);
                    if let Some(work_tree) = work_tree {
                        let _ =
                            events.send(Event::Answer(0, Answer::WorkTree(Box::new(work_tree))));
                    }
                }
            }
            tokio::time::sleep(PAUSE.max(begun.elapsed() * SHARE)).await;
        }
    });
}
