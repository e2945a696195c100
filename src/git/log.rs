//! Reads git's log: author, time, message and changed files of each commit.

use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;
use std::str::Split;

use jiff::Timestamp;

use super::arguments::Arguments;
use super::{Blob, BlobLimits, GitError, WorkTree};

/// A commit, with the files that it changed compared with its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    /// The ids of the parent commits. The first parent is the commit that was the tip of the branch before this
    /// commit.
    pub parents: Vec<String>,
    /// The author of the commit, as `Name <address>`.
    pub author: String,
    /// The author time: when the change was written. It stays the same in a rebase or a merge.
    pub written: Timestamp,
    /// The commit time: when this commit was created. It changes in a rebase.
    pub at: Timestamp,
    /// The whole commit message, including its trailers.
    pub message: String,
    pub files: Vec<Changed>,
}

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The path of the file before the commit renamed it; None if the commit did not rename it.
    pub from: Option<String>,
    /// The path of the file after the commit; for a removed file, its last path.
    pub path: String,
    /// The id of the file's blob before the commit; None if the commit added the file.
    pub old: Option<String>,
    /// The id of the file's blob after the commit; None if the commit removed the file.
    pub blob: Option<String>,
    /// Whether the commit added the file, and not by renaming another file.
    pub added: bool,
}

/// Blob ids, each with its index in the list that the caller passed.
type Numbered<'i> = Vec<(usize, &'i String)>;

/// A trailer of a commit message: key and value.
pub type Trailer<'m> = (&'m str, &'m str);

/// The lines of a paragraph of a commit message, and its trailers; None if a line of the paragraph is not a trailer.
type Part<'m> = (Vec<&'m str>, Option<Vec<Trailer<'m>>>);

impl Commit {
    /// Returns the first line of the commit message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Returns the text that names this commit in the field `recordedBy` of an audit entry.
    pub fn recorder(&self) -> String {
        format!("git commit {}", self.id.get(..12).unwrap_or_default())
    }

    /// Returns all trailers of the commit message, in the order of the message.
    pub fn trailers(&self) -> Vec<Trailer<'_>> {
        self.trailer_paragraphs().into_iter().flatten().collect()
    }

    /// Returns the trailers of the commit message, by paragraph. A squashed commit has several paragraphs of
    /// trailers, because it joins the messages of several commits. So this includes each paragraph with a trailer of
    /// bowline, and the last paragraph if each of its lines is `Word: value`.
    pub fn trailer_paragraphs(&self) -> Vec<Vec<Trailer<'_>>> {
        let parts = self.parts().into_iter();
        parts.filter_map(|(_, trailers)| trailers).collect()
    }

    /// Returns the text between the first line of the commit message and its trailers.
    pub fn body(&self) -> String {
        let text = self.parts().into_iter();
        let text = text.filter(|(_, trailers)| trailers.is_none());
        let text: Vec<String> = text.map(|(lines, _)| lines.join("\n")).collect();
        text.join("\n\n").trim().to_owned()
    }

    fn parts(&self) -> Vec<Part<'_>> {
        parts(&self.message)
    }
}

/// Returns the trailers of bowline in a commit message, in the order of the message.
pub(super) fn own_trailers(message: &str) -> Vec<Trailer<'_>> {
    let trailers = parts(message).into_iter().filter_map(|(_, found)| found);
    let own = |(word, _): &Trailer<'_>| word.starts_with(OURS);
    trailers.flatten().filter(own).collect()
}

/// Returns the paragraphs of a commit message after its first, each with its trailers if it consists of trailers.
fn parts(message: &str) -> Vec<Part<'_>> {
    let lines: Vec<&str> = message.trim_end().lines().collect();
    let paragraphs = lines.split(|line| line.trim().is_empty());
    let paragraphs: Vec<&[&str]> = paragraphs.filter(|lines| !lines.is_empty()).collect();
    let last = paragraphs.len().saturating_sub(1);
    let numbered = paragraphs.into_iter().enumerate().skip(1);
    numbered
        .map(|(at, lines)| {
            let trailers = trailers(lines);
            let counts = |found: &Vec<Trailer<'_>>| {
                at == last || found.iter().any(|(word, _)| word.starts_with(OURS))
            };
            (lines.to_vec(), trailers.filter(counts))
        })
        .collect()
}

/// The prefix of all trailers of bowline.
const OURS: &str = "Bowline-";

/// Parses a paragraph of trailers; None if a line of the paragraph is not a trailer.
fn trailers<'m>(lines: &[&'m str]) -> Option<Vec<Trailer<'m>>> {
    let lines = lines.iter().map(|line| line.trim());
    // `cherry-pick -x` adds this line between the trailers.
    let lines = lines.filter(|line| !line.starts_with("(cherry picked from commit "));
    let read: Option<Vec<Trailer<'_>>> = lines
        .map(|line| {
            let (word, value) = line.split_once(": ")?;
            let is_word = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            (is_word && !word.is_empty()).then_some((word, value.trim()))
        })
        .collect();
    read.filter(|read| !read.is_empty())
}

/// The text before each commit in git's output. It is unmistakable, because no id and no file mode begins with it.
const BEGIN: &str = "\u{1}commit\u{1}";

/// Settings that make the output of git independent of the user's configuration.
const PLAIN: [&str; 5] = [
    "log.showSignature=false",
    "log.showRoot=true",
    "i18n.logOutputEncoding=UTF-8",
    "diff.relative=false",
    "diff.renameLimit=1000",
];

impl WorkTree {
    /// Lists the commits in the history of a revision, newest first. With `since`, leaves out the commits in the
    /// history of `since`. For a merge, lists the files that differ from its first parent.
    pub fn log(&self, revision: &str, since: Option<&str>) -> Result<Vec<Commit>, GitError> {
        match self.log_with("--find-renames", revision, since) {
            // The blobs of a partial clone may be missing, and git needs them to find a file that was both renamed
            // and edited. So this finds only renames without an edit, which git recognises by the blob id.
            Err(error) if error.is_of_partial_clone() => {
                self.log_with("--find-renames=100%", revision, since)
            }
            answer => answer,
        }
    }

    fn log_with(
        &self,
        renames: &'static str,
        revision: &str,
        since: Option<&str>,
    ) -> Result<Vec<Commit>, GitError> {
        let range = match since {
            Some(since) => format!("{since}..{revision}"),
            None => revision.to_owned(),
        };
        let format = format!("{BEGIN}%H%x00%P%x00%an <%ae>%x00%at%x00%ct%x00%B%x00");
        let question = Arguments::plain(
            "log",
            [
                "-z",
                "--raw",
                "--no-abbrev",
                "--diff-merges=first-parent",
                renames,
                // Switches off the user's setting for the order of files.
                "-O/dev/null",
                "--topo-order",
            ],
        );
        let question = PLAIN.into_iter().fold(question, Arguments::setting);
        let question = question.value("--format", format).operand(range).paths([]);
        Ok(commits(&self.ask(question)?))
    }

    /// Reads blobs like [`WorkTree::each_blob`]. The result is [`Blob::Missing`] for a blob that a partial clone does
    /// not have and cannot fetch.
    pub fn each_blob_of_log(
        &self,
        ids: &[String],
        limits: BlobLimits<'_>,
        take: &mut dyn FnMut(usize, Blob),
    ) -> Result<(), GitError> {
        // git fails at a missing blob. The caller already has the blobs before the missing one, so reading continues
        // after it.
        let mut done = 0;
        let mut counted = |at: usize, blob: Blob| {
            done = at + 1;
            take(at, blob);
        };
        match self.each_blob(ids, limits, &mut counted) {
            Err(error) if error.is_of_partial_clone() => {}
            answer => return answer,
        }
        let listed = self.ask(Arguments::plain(
            "cat-file",
            [
                "--batch-all-objects",
                "--unordered",
                "--batch-check=%(objectname)",
            ],
        ))?;
        let here: HashSet<&str> = listed.lines().collect();
        let rest = ids.iter().enumerate().skip(done);
        let (some, missing): (Numbered<'_>, Numbered<'_>) =
            rest.partition(|(_, id)| here.contains(id.as_str()));
        let names: Vec<String> = some.iter().map(|(_, id)| (*id).clone()).collect();
        let mut of_some = |at: usize, blob: Blob| {
            if let Some((at, _)) = some.get(at) {
                take(*at, blob);
            }
        };
        self.each_blob(&names, limits, &mut of_some)?;
        missing.iter().for_each(|(at, _)| take(*at, Blob::Missing));
        Ok(())
    }

    /// Returns whether a commit in the history of a revision changed one of these files, so that the file exists or
    /// existed. Of merges, only the first parents are followed.
    pub fn has_had(&self, revision: &str, paths: &[&str]) -> Result<bool, GitError> {
        if paths.is_empty() {
            return Ok(false);
        }
        let question = Arguments::plain("rev-list", ["-1", "--first-parent"]);
        let question = question.operand(revision).paths(paths.iter().copied());
        Ok(!self.ask(question)?.is_empty())
    }

    /// Returns this work tree for reading commits with their original content and parents, without the effect of `git
    /// replace` and of grafts.
    pub fn unreplaced(&self) -> WorkTree {
        let mut own = self.clone();
        let none = self.notes().join("no-grafts");
        let variables = [
            ("GIT_NO_REPLACE_OBJECTS", "1".into()),
            ("GIT_GRAFT_FILE", none.into_os_string()),
        ];
        own.variables
            .extend(variables.map(|(name, value)| (name.into(), value)));
        own
    }

    /// Returns the ids of the objects that `git replace` or a graft replaces.
    pub fn replaced(&self) -> Result<BTreeSet<String>, GitError> {
        let question = Arguments::plain(
            "for-each-ref",
            ["--format=%(refname:lstrip=2)", "refs/replace/"],
        );
        let listed = self.ask(question)?;
        let grafts = self.common_dir.join("info").join("grafts");
        let grafts = std::fs::read_to_string(grafts).unwrap_or_default();
        let grafts = grafts.lines().filter_map(|line| line.split(' ').next());
        Ok(listed.lines().chain(grafts).map(str::to_owned).collect())
    }

    /// Returns the ids of the commits at which the history of a shallow clone ends, one per line; None if the clone
    /// has the whole history.
    pub fn shallow(&self) -> Option<String> {
        std::fs::read_to_string(self.common_dir.join("shallow")).ok()
    }
}

/// Parses git's output for a log. Each field ends at a NUL character, because no message, name or path can contain
/// one.
fn commits(text: &str) -> Vec<Commit> {
    let mut fields = text.split('\0').peekable();
    let mut found = Vec::new();
    while let Some(field) = fields.next() {
        if let Some(id) = field.strip_prefix(BEGIN) {
            found.extend(read(id, &mut fields));
        }
    }
    found
}

/// Parses a time in seconds since 1970. A time that a `Timestamp` cannot contain becomes the nearest one that it can
/// contain.
fn time(seconds: &str) -> Timestamp {
    let seconds = seconds.parse().unwrap_or(i64::MAX);
    let (first, last) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
    let seconds = seconds.clamp(first.as_second(), last.as_second());
    Timestamp::from_second(seconds).unwrap_or(last)
}

fn read(id: &str, fields: &mut Peekable<Split<'_, char>>) -> Option<Commit> {
    let parents = fields.next()?.split(' ');
    let parents = parents.filter(|id| !id.is_empty()).map(str::to_owned);
    let mut commit = Commit {
        id: id.to_owned(),
        parents: parents.collect(),
        author: fields.next()?.to_owned(),
        written: time(fields.next()?),
        at: time(fields.next()?),
        message: fields.next()?.to_owned(),
        files: Vec::new(),
    };
    // A changed file is `:mode mode id id STATUS` and its path; for a renamed file, two paths.
    while let Some(field) = fields.next_if(|field| !field.starts_with(BEGIN)) {
        let Some(raw) = field.trim_start().strip_prefix(':') else {
            continue;
        };
        let words: Vec<&str> = raw.split(' ').collect();
        let [_, mode, old, blob, status] = words.as_slice() else {
            continue;
        };
        let renamed = status.starts_with(['R', 'C']);
        let first = fields.next()?.to_owned();
        let (from, path) = match renamed {
            true => (Some(first), fields.next()?.to_owned()),
            false => (None, first),
        };
        let removed = status.starts_with('D');
        // Symbolic links and submodules are skipped, because they contain no YAML.
        if !removed && !mode.starts_with("100") {
            continue;
        }
        let added = status.starts_with(['A', 'C']);
        commit.files.push(Changed {
            added,
            old: (!added).then(|| (*old).to_owned()),
            from: from.filter(|_| status.starts_with('R')),
            path,
            blob: (!removed).then(|| (*blob).to_owned()),
        });
    }
    Some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Commit {
        Commit {
            id: String::new(),
            parents: Vec::new(),
            author: String::new(),
            written: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            message: message.to_owned(),
            files: Vec::new(),
        }
    }

    #[test]
    fn trailers_are_the_last_paragraph() {
        for (message, trailers, body) in [
            ("subject\n", 0, ""),
            ("Fix: subject\n", 0, ""),
            (
                "subject\n\nbody: not a\ntrailer\n",
                0,
                "body: not a\ntrailer",
            ),
            ("subject\n\nwhy\n\nA: 1\nB-C: 2\n", 2, "why"),
            ("subject\n\nA: 1\n", 1, ""),
            (
                "subject\n\nwhy\n\nA: 1\n(cherry picked from commit 0123)\n",
                1,
                "why",
            ),
            (
                "subject\n\n(cherry picked from commit 0123)\n",
                0,
                "(cherry picked from commit 0123)",
            ),
            // The first message was written by a squash on GitHub, the second by a squash with git.
            (
                "two (#7)\n\n* one\n\nwhy\n\nBowline-To: a\nBowline-X: b\n\n* other\n\nBowline-To: c\n\nCo-authored-by: Bob\n",
                4,
                "* one\n\nwhy\n\n* other",
            ),
            (
                "Squashed\n\ncommit 01\nAuthor: Ana\n\n    one\n    \n    Bowline-To: a\n\ncommit 02\n\n    two\n",
                1,
                "commit 01\nAuthor: Ana\n\n    one\n\ncommit 02\n\n    two",
            ),
            ("subject\n\nNote: this\n\nA: 1\n", 1, "Note: this"),
            (
                "subject\n\nBowline-To: a\nand more\n\nA: 1\n",
                1,
                "Bowline-To: a\nand more",
            ),
        ] {
            let commit = of(message);
            assert_eq!(commit.trailers().len(), trailers, "{message}");
            assert_eq!(commit.body(), body, "{message}");
        }
    }

    #[test]
    fn a_commit_is_what_git_says_whatever_its_message_and_its_clock_say() {
        let raw = ":100644 100644 aa bb M\0a.yaml\0";
        let commit = |id: &str, at: &str, message: &str| {
            format!("{BEGIN}{id}\0p\0Ana <a@b>\0{at}\0{at}\0{message}\0\0\n{raw}")
        };
        let hiding = format!("tidy up\n\n{BEGIN}\n:100644 100644 aa cc M\n");
        let text = [
            commit("03", "253402300800", "far"),
            commit("02", "99999999999999999999", &hiding),
            commit("01", "1700000000", &format!("{BEGIN}begin")),
        ];
        let read = commits(&text.concat());
        let brief: Vec<(&str, usize)> = read
            .iter()
            .map(|commit| (commit.id.as_str(), commit.files.len()))
            .collect();
        assert_eq!(brief, [("03", 1), ("02", 1), ("01", 1)]);
        assert_eq!(read[1].message, hiding);
        let last = Timestamp::MAX.as_second();
        let times: Vec<i64> = read.iter().map(|commit| commit.at.as_second()).collect();
        assert_eq!(times, [last, last, 1_700_000_000]);
    }
}
