//! The command `:push`, which pushes the commits of a repository to its remote. The terminal UI never pushes without
//! this command.

use jiff::Timestamp;

use super::effect::{Effect, Refused};
use super::model::{Level, Model, ScreenRequest};
use super::tasks::Logged;
use super::update::say;
use crate::gitops::propose::Pushed;
use crate::text::quoted;

/// Returns the names of the repository's remotes; empty if the target is a server.
pub fn remotes(model: &Model) -> Vec<String> {
    let work_tree = model.target_info.work_tree();
    work_tree.map_or_else(Vec::new, |work_tree| work_tree.remotes.clone())
}

/// Starts a push, or shows why there is nothing to push or why a push is not allowed.
pub fn push(
    model: &mut Model,
    now: Timestamp,
    remote: Option<&str>,
    effects: &mut Vec<Effect>,
) -> Vec<ScreenRequest> {
    let refused = |why: String| vec![ScreenRequest::Say(Level::Error, why)];
    if let Some(why) = model.target_info.unwritable(now) {
        return refused(format!("read-only: {why}"));
    }
    if let Err(why) = model.target_info.begin_push() {
        return refused(why.to_owned());
    }
    model.tickets += 1;
    let remote = remote.map(str::to_owned);
    effects.push(Effect::Push(model.tickets, remote));
    Vec::new()
}

/// Shows the result of a push and adds it to the command log.
pub fn pushed(model: &mut Model, now: Timestamp, pushed: Result<Pushed, Refused>) {
    model.target_info.end_push();
    let (level, words, line) = match pushed {
        Ok(pushed) => {
            let (remote, branch) = (quoted(&pushed.remote), quoted(&pushed.branch));
            let line = format!("git push {remote} {branch}");
            (Level::Done, pushed.words(), line)
        }
        Err(Refused { why, hints, .. }) => {
            let words: Vec<String> = why.into_iter().chain(hints).collect();
            (Level::Error, words.join("; "), "git push".to_owned())
        }
    };
    model.log.push(Logged {
        at: now,
        bowline: vec![line],
        kubectl: Vec::new(),
        outcome: words.clone(),
    });
    say(model, now, level, words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Answer, WorkTree};
    use crate::git::State;
    use crate::model::{Event, RepositoryInfo};
    use crate::snapshot_test::SnapshotTest;

    fn still(state: State) -> SnapshotTest {
        let mut still = SnapshotTest::fleet();
        still.model.target_info.name = "deploy".to_owned();
        still.model.target_info.repository = Some(RepositoryInfo::default());
        let work_tree = Box::new(WorkTree {
            state,
            remotes: vec!["origin".to_owned(), "fork".to_owned()],
            left_out: Vec::new(),
            plain: false,
            cluster_trouble: None,
        });
        still
            .hides("main")
            .tell(Event::Answer(0, Answer::WorkTree(work_tree)))
    }

    #[test]
    fn a_pin_that_a_sparse_checkout_leaves_out_is_not_known() {
        let left_out = crate::gitops::tree::LeftOutPin {
            namespace: "shop".to_owned(),
            name: "notifier-development".to_owned(),
            component: "notifier".to_owned(),
            environment: "development".to_owned(),
            problem: String::new(),
        };
        let work_tree = WorkTree {
            state: on_main(),
            remotes: Vec::new(),
            left_out: vec![left_out],
            plain: false,
            cluster_trouble: None,
        };
        let row = |still: &SnapshotTest| {
            let screen = still.screen();
            let row = screen.lines().find(|line| line.contains("notifier"));
            row.unwrap().to_owned()
        };
        let still = still(on_main());
        assert!(row(&still).contains('·'), "{}", row(&still));
        let still = still
            .tell(Event::Answer(0, Answer::WorkTree(Box::new(work_tree))))
            .shows("not checked out, so the release is not known: notifier in development");
        assert!(!row(&still).contains('·'), "{}", row(&still));
        assert!(row(&still).contains('?'), "{}", row(&still));
        let still = still.keys("/").keys("\"notifier\"").keys("enter h h h");
        still.shows("The ReleasePin of notifier in development is not checked out");
    }

    fn on_main() -> State {
        State {
            branch: Some("main".to_owned()),
            ..State::default()
        }
    }

    #[test]
    fn a_repository_without_objects_says_so_and_what_to_do() {
        let mut still = SnapshotTest::of(crate::fixture::world());
        still.model.target_info.repository = Some(RepositoryInfo {
            directory: "/src/deploy".to_owned(),
            ..RepositoryInfo::default()
        });
        let work_tree = |plain| {
            let work_tree = WorkTree {
                state: on_main(),
                remotes: Vec::new(),
                left_out: Vec::new(),
                plain,
                cluster_trouble: None,
            };
            Event::Answer(0, Answer::WorkTree(Box::new(work_tree)))
        };
        still
            .tell(work_tree(true))
            .shows("/src/deploy has no objects of bowline's kinds: ReleasePin, Release")
            .shows("nothing is wrong with the repository")
            .shows("bowline release create COMPONENT -f DIR --context prod-eu")
            .tell(work_tree(false))
            .shows("nothing is deployed in namespace shop yet")
            .hides("nothing is wrong");
    }

    #[test]
    fn a_cluster_that_does_not_answer_beside_the_repository_is_told() {
        let mut still = still(on_main()).hides("cluster not read");
        let work_tree = |why: Option<&str>| {
            let work_tree = WorkTree {
                state: on_main(),
                remotes: Vec::new(),
                left_out: Vec::new(),
                plain: false,
                cluster_trouble: why.map(str::to_owned),
            };
            Event::Answer(0, Answer::WorkTree(Box::new(work_tree)))
        };
        still = still
            .tell(work_tree(Some("no route to host")))
            .shows("cluster not read")
            .shows("the cluster of this repository: no route to host");
        still.tell(work_tree(None)).hides("cluster not read");
    }

    #[test]
    fn the_header_says_where_the_repository_stands() {
        still(on_main()).shows("deploy ▪ main ▪ shop");
        still(State::default()).shows("deploy ▪ detached HEAD");
        let merging = State {
            under_way: Some("a merge"),
            ..on_main()
        };
        still(merging).shows("deploy ▪ main, a merge ▪ shop");
        let behind = State {
            ahead: 1,
            behind: 2,
            dirty: ["pins/staging/cart.yaml".to_owned()].into(),
            ..on_main()
        };
        still(behind)
            .shows("deploy ▪ main, ahead 1, behind 2, 1 dirty")
            .golden("repository");
    }

    #[test]
    fn a_push_is_under_way_until_it_is_told_what_became_of_it() {
        let still = still(on_main())
            .keys(":")
            .keys("\"push \"")
            .shows("origin")
            .shows("fork")
            .keys("f tab enter");
        assert!(
            matches!(still.effects.last(), Some(Effect::Push(_, Some(remote))) if remote == "fork"),
            "{:?}",
            still.effects.last()
        );
        let still = still
            .shows("main, pushing")
            .keys("q")
            .shows("a write is in progress")
            .keys(":")
            .keys("\"push\"")
            .keys("enter")
            .shows("a push is already running");
        let refused = Refused {
            why: vec!["the push was rejected: fork has newer commits on main".into()],
            hints: vec![
                "your commit is kept; to push it: git pull --rebase fork main && git push fork main"
                    .into(),
                "to discard your commit: git reset --keep fork/main".into(),
            ],
            ..Refused::default()
        };
        // The notice about a failed push is longer than one line, so the UI shows all its lines until the next key
        // press.
        still
            .answer(|_| Answer::Pushed(Err(refused)))
            .hides("pushing")
            .shows("the push was rejected")
            .shows("to discard your commit: git reset --keep fork/main")
            .keys("j")
            .hides("git reset --keep");
    }
}
