//! Reads the log: author, time, message and changed files of each commit.

use std::collections::{BTreeSet, HashSet};
use std::iter::Peekable;
use std::str::Split;

use jiff::Timestamp;

use super::arguments::Arguments;
use super::{Blob, BlobLimits, GitError, WorkTree};

/// A commit, with the files that differ from its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    /// The ids of the parents. The first parent is the commit that was the tip of the branch before.
    pub parents: Vec<String>,
    /// The author, as `Name <address>`.
    pub author: String,
    /// The author time. A rebase or a merge keeps it.
    pub written: Timestamp,
    /// The commit time. A rebase changes it.
    pub at: Timestamp,
    /// The whole message, with its trailers.
    pub message: String,
    pub files: Vec<Changed>,
}

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The old path; None if the file was not renamed.
    pub from: Option<String>,
    /// The path; for a removed file, the path that it had.
    pub path: String,
    /// The id of the old blob; None if the file is new.
    pub old: Option<String>,
    /// The id of the new blob; None if the file was removed.
    pub blob: Option<String>,
    /// Whether the file is new and was not renamed.
    pub added: bool,
}

/// Blob ids, each with its index in the list of the caller.
type Numbered<'i> = Vec<(usize, &'i String)>;

/// A trailer: key and value.
pub type Trailer<'m> = (&'m str, &'m str);

/// The lines of a paragraph, and its trailers; None if the paragraph is not made of trailers.
type Part<'m> = (Vec<&'m str>, Option<Vec<Trailer<'m>>>);

impl Commit {
    /// Returns the first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Returns the commit as text for the field `recordedBy` of an audit entry.
    pub fn recorder(&self) -> String {
        format!("git commit {}", self.id.get(..12).unwrap_or_default())
    }

    /// Returns all trailers of the message, in their order.
    pub fn trailers(&self) -> Vec<Trailer<'_>> {
        self.trailer_paragraphs().into_iter().flatten().collect()
    }

    /// Returns the trailers by paragraph: those of the last paragraph, if each of its lines is `Word: value`,
    /// and those of all other paragraphs with trailers of bowline. A squashed commit joins the messages of
    /// several commits.
    pub fn trailer_paragraphs(&self) -> Vec<Vec<Trailer<'_>>> {
        let parts = self.parts().into_iter();
        parts.filter_map(|(_, trailers)| trailers).collect()
    }

    /// Returns the text between the subject and the trailers.
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

/// Returns bowline's own trailers in a message, in their order.
pub(super) fn own_trailers(message: &str) -> Vec<Trailer<'_>> {
    let trailers = parts(message).into_iter().filter_map(|(_, found)| found);
    let own = |(word, _): &Trailer<'_>| word.starts_with(OURS);
    trailers.flatten().filter(own).collect()
}

/// Returns the paragraphs after the subject, each with its trailers if it is made of trailers.
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

/// Parses a paragraph of trailers; None if another line is in the paragraph.
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

/// The text before each commit in the output of git. No id and no file mode begins with it.
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
    /// Lists the commits of a revision, newest first. With `since`, leaves out the commits in the history of
    /// `since`. The files of a merge are those that differ from its first parent.
    pub fn log(&self, revision: &str, since: Option<&str>) -> Result<Vec<Commit>, GitError> {
        match self.log_with("--find-renames", revision, since) {
            // To find a file that was renamed and edited, git must read blobs, which a partial clone may not
            // have. A file that was only renamed keeps its blob id, so git finds it without reading.
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
                // Ignores the user's setting for the order of files.
                "-O/dev/null",
                "--topo-order",
            ],
        );
        let question = PLAIN.into_iter().fold(question, Arguments::setting);
        let question = question.value("--format", format).operand(range).paths([]);
        Ok(commits(&self.ask(question)?))
    }

    /// Reads blobs of the log, like [`WorkTree::each_blob`]. The result is [`Blob::Missing`] if a partial
    /// clone does not have the blob and cannot fetch it.
    pub fn each_blob_of_log(
        &self,
        ids: &[String],
        limits: BlobLimits<'_>,
        take: &mut dyn FnMut(usize, Blob),
    ) -> Result<(), GitError> {
        // If git fails at a missing blob, the blobs before it were already passed to the caller, so only the
        // rest is read again.
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

    /// Returns whether one of these files exists or existed in the history of a revision. Follows only first
    /// parents.
    pub fn has_had(&self, revision: &str, paths: &[&str]) -> Result<bool, GitError> {
        if paths.is_empty() {
            return Ok(false);
        }
        let question = Arguments::plain("rev-list", ["-1", "--first-parent"]);
        let question = question.operand(revision).paths(paths.iter().copied());
        Ok(!self.ask(question)?.is_empty())
    }

    /// Returns the same work tree without the effect of `git replace` and grafts: commits have their original
    /// content and parents.
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

    /// Returns the ids of the commits at which the history of a shallow clone ends, one per line; None if the
    /// clone is complete.
    pub fn shallow(&self) -> Option<String> {
        std::fs::read_to_string(self.common_dir.join("shallow")).ok()
    }
}

/// Parses the output of git. A NUL character ends each field, because no message, name or path can contain
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

/// Parses a time in seconds. Replaces an impossible time by the nearest possible one.
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
    // The format is `:mode mode id id STATUS`, then the path, or two paths for a rename.
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
            // The first message is that of a squash by GitHub, the second that of a squash by git.
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
